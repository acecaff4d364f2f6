//! The tree of an archive: what is at which path, and its bytes in the newc format.

use std::collections::BTreeMap;
use std::io::Write as _;
use std::path::Path;

use cpio::newc;

use super::Error;

const DIRECTORY: u32 = 0o040_000;
const FILE: u32 = 0o100_000;
const LINK: u32 = 0o120_000;
const CHARACTER_DEVICE: u32 = 0o020_000;
/// The bits of a mode that say what a node is.
const KIND: u32 = 0o170_000;

/// What is in the archive, by path without a leading `/`; sorted, so a folder comes before what is in it.
#[derive(Default)]
pub(super) struct Tree(BTreeMap<String, Node>);

struct Node {
    mode: u32,
    /// In seconds since 1970.
    modified: u32,
    bytes: Vec<u8>,
    device: (u32, u32),
}

impl Node {
    const fn new(mode: u32, bytes: Vec<u8>) -> Self {
        Self { mode, modified: 0, bytes, device: (0, 0) }
    }

    const fn is_folder(&self) -> bool {
        self.mode & KIND == DIRECTORY
    }
}

impl Tree {
    /// A folder.
    pub(super) fn folder(&mut self, path: &str, permissions: u32) -> Result<(), Error> {
        self.insert(path, Node::new(DIRECTORY | permissions, Vec::new()))
    }

    /// A file, and when it was last changed, in seconds since 1970.
    pub(super) fn file(&mut self, path: &str, permissions: u32, bytes: Vec<u8>, modified: u32) -> Result<(), Error> {
        self.insert(path, Node { modified, ..Node::new(FILE | permissions, bytes) })
    }

    /// A symbolic link.
    pub(super) fn link(&mut self, path: &str, target: &str) -> Result<(), Error> {
        self.insert(path, Node::new(LINK | 0o777, target.as_bytes().to_vec()))
    }

    /// A character device of that major and minor number.
    pub(super) fn device(&mut self, path: &str, device: (u32, u32)) -> Result<(), Error> {
        self.insert(path, Node { device, ..Node::new(CHARACTER_DEVICE | 0o666, Vec::new()) })
    }

    /// Puts a node at a path, and the folders that it is in. One at the same path is replaced.
    fn insert(&mut self, path: &str, node: Node) -> Result<(), Error> {
        let bad = |reason| Error::BadPath { path: path.to_owned(), reason };
        let clean = path.trim_start_matches('/');
        if clean.is_empty() || clean.ends_with('/') {
            return Err(bad("it names no file"));
        }
        if clean.split('/').any(|part| matches!(part, "" | "." | "..")) {
            return Err(bad("a part of it is empty, `.` or `..`"));
        }
        if clean.contains('\0') {
            return Err(bad("it has a NUL in it"));
        }
        for (at, _) in clean.match_indices('/') {
            let folder =
                self.0.entry(clean[..at].to_owned()).or_insert_with(|| Node::new(DIRECTORY | 0o755, Vec::new()));
            if !folder.is_folder() {
                return Err(bad("a part of it is a file"));
            }
        }
        if !node.is_folder() && self.0.get(clean).is_some_and(Node::is_folder) {
            return Err(bad("it is a folder"));
        }
        self.0.insert(clean.to_owned(), node);
        Ok(())
    }

    /// The archive's bytes.
    pub(super) fn write(self) -> Result<Vec<u8>, Error> {
        let size: usize = self.0.values().map(|node| node.bytes.len() + 256).sum();
        let mut archive = Vec::with_capacity(size);
        let written = |e| Error::io("write", Path::new("the initramfs"))(e);
        for (inode, (path, node)) in (1..).zip(self.0) {
            let length = u32::try_from(node.bytes.len()).map_err(|_| Error::TooLarge { path: path.clone() })?;
            let entry = newc::Builder::new(&path)
                .ino(inode)
                .mode(node.mode)
                .nlink(if node.is_folder() { 2 } else { 1 })
                .mtime(node.modified)
                .rdev_major(node.device.0)
                .rdev_minor(node.device.1);
            let mut writer = entry.write(&mut archive, length);
            writer.write_all(&node.bytes).map_err(written)?;
            writer.finish().map_err(written)?;
        }
        newc::trailer(&mut archive).map_err(written)?;
        Ok(archive)
    }
}

#[cfg(test)]
mod tests {
    use super::{Error, Tree};

    #[test]
    fn impossible_paths_are_refused() {
        for path in ["", "/", "a/", "a//b", "../x", "etc/./x", "init/x", "modules", "a\0b"] {
            let mut tree = Tree::default();
            tree.file("init", 0o755, Vec::new(), 0).expect("a file");
            tree.file("modules/order", 0o644, Vec::new(), 0).expect("a file");
            assert!(matches!(tree.file(path, 0o644, Vec::new(), 0), Err(Error::BadPath { .. })), "{path:?}");
        }
    }
}
