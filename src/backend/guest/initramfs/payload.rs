//! What of this machine comes along into a guest: programs, the libraries they need, and files, each with its place there.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::fs;
use std::path::{Path, PathBuf};

use crate::units::Bytes;

use super::Error;
use super::tree::Tree;

/// The most that all files together may take, in bytes. They are in the guest's memory twice while it boots, and each frozen
/// machine keeps them.
pub const MOST_BYTES: u64 = 256 << 20;
/// The most files, folders and links.
pub const MOST_ENTRIES: usize = 20_000;

/// What comes along, by its path in the guest without a leading `/`. Nothing is read before the archive is built.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Payload {
    items: BTreeMap<String, Item>,
    bytes: u64,
}

/// A file, folder or link of a payload.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Item {
    /// A folder.
    Folder,
    /// A file of this machine.
    File {
        /// Where it is here.
        host: PathBuf,
        /// Whether it may be executed.
        executable: bool,
        /// Its size in bytes.
        length: u64,
        /// When it was last changed, in seconds since 1970: 0 where that shall not decide what a guest is.
        modified: u32,
    },
    /// A symbolic link.
    Link(String),
}

impl Payload {
    /// Whether nothing comes along.
    pub fn is_empty(&self) -> bool {
        self.items.is_empty()
    }

    /// Bytes of all files together.
    pub const fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Everything, by its path in the guest.
    pub(super) fn items(&self) -> impl Iterator<Item = (&String, &Item)> {
        self.items.iter()
    }

    /// Adds an item at a path in the guest.
    ///
    /// # Errors
    /// If something else is there already, or it would be more than a guest may carry.
    pub(super) fn insert(&mut self, path: String, item: Item) -> Result<(), Error> {
        let length = match &item {
            Item::File { length, .. } => *length,
            Item::Folder | Item::Link(_) => 0,
        };
        match self.items.entry(path) {
            Entry::Occupied(there) if *there.get() == item => return Ok(()),
            Entry::Occupied(there) => {
                let path = format!("/{}", there.key());
                return Err(Error::Conflict { path, one: there.get().describe(), other: item.describe() });
            }
            Entry::Vacant(free) => free.insert(item),
        };
        self.bytes += length;
        if self.bytes > MOST_BYTES || self.items.len() > MOST_ENTRIES {
            return Err(Error::TooMuch {
                bytes: Bytes(self.bytes),
                entries: self.items.len(),
                largest: self.largest().join(", "),
            });
        }
        Ok(())
    }

    /// Adds all that another one has. On an error this one is as it was.
    ///
    /// # Errors
    /// If the two have different things at the same path, or are too much together.
    pub fn add(&mut self, other: &Self) -> Result<(), Error> {
        let mut both = self.clone();
        for (path, item) in &other.items {
            both.insert(path.clone(), item.clone())?;
        }
        *self = both;
        Ok(())
    }

    /// The folders that take most, with their size.
    fn largest(&self) -> Vec<String> {
        let mut folders: BTreeMap<&Path, u64> = BTreeMap::new();
        for (path, item) in &self.items {
            if let Item::File { length, .. } = item {
                *folders.entry(Path::new(path).parent().unwrap_or(Path::new(""))).or_default() += length;
            }
        }
        let mut folders: Vec<_> = folders.into_iter().collect();
        folders.sort_by_key(|(_, bytes)| std::cmp::Reverse(*bytes));
        let shown = folders.into_iter().take(3);
        shown.map(|(path, bytes)| format!("`/{}` with {}", path.display(), Bytes(bytes))).collect()
    }

    /// Puts everything into an archive's tree.
    pub(super) fn plant(&self, tree: &mut Tree) -> Result<(), Error> {
        for (path, item) in &self.items {
            match item {
                Item::Folder => tree.folder(path, 0o755)?,
                Item::Link(target) => tree.link(path, target)?,
                Item::File { host, executable, modified, .. } => {
                    let bytes = fs::read(host).map_err(Error::io("read", host))?;
                    // Whatever this user's umask was, the guest is the same.
                    tree.file(path, if *executable { 0o555 } else { 0o444 }, bytes, *modified)?;
                }
            }
        }
        Ok(())
    }

    /// Whether anything is below a path of the guest, for tests.
    #[cfg(test)]
    pub(super) fn holds(&self, path: &str) -> bool {
        let folder = format!("{}/", path.trim_start_matches('/'));
        self.items.keys().any(|path| path.starts_with(&folder))
    }

    /// What is at a path of the guest, for tests.
    #[cfg(test)]
    pub(super) fn at(&self, path: &str) -> Option<&Item> {
        self.items.get(path.trim_start_matches('/'))
    }
}

impl Item {
    fn describe(&self) -> String {
        match self {
            Self::Folder => "a folder".to_owned(),
            Self::File { host, .. } => format!("`{}`", host.display()),
            Self::Link(target) => format!("a link to `{target}`"),
        }
    }
}
