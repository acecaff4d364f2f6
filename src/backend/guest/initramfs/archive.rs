//! The archive itself: newc, with the same bytes for the same contents on every host.

use crate::units::hex;
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};

use cpio::newc;
use sha2::{Digest, Sha256};

use super::modules::Closure;
use super::{Error, elf};

const DIRECTORY: u32 = 0o040_000;
const FILE: u32 = 0o100_000;
const LINK: u32 = 0o120_000;
const CHARACTER_DEVICE: u32 = 0o020_000;

/// Folders that a guest mounts things on, or that programs expect.
const FOLDERS: [&str; 7] = ["dev", "proc", "sys", "tmp", "run", "etc", "root"];

/// What goes into an initramfs.
#[derive(Debug, Clone, Default)]
pub struct Initramfs {
    /// The program: `/init` in the guest, and `/sweep` as a link to it. Its libraries come along.
    pub program: PathBuf,
    /// Modules: `/modules/NN-name.ko`, with their names in load order in `/modules/order`, one a line, and in
    /// `/modules/optional` the names of those that may fail to load.
    pub modules: Closure,
    /// Further files.
    pub extra: Vec<ExtraFile>,
}

/// A further file in an initramfs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ExtraFile {
    /// Its path in the guest.
    pub path: String,
    /// What it holds.
    pub bytes: Vec<u8>,
    /// Its permissions, such as `0o644`.
    pub mode: u32,
}

struct Node {
    mode: u32,
    bytes: Vec<u8>,
    device: (u32, u32),
}

impl Initramfs {
    /// Builds the archive, uncompressed: a guest under emulation would take longer to decompress it than to read it.
    ///
    /// # Errors
    /// If the program or a library cannot be read or found, or an extra file has an impossible path.
    pub fn build(&self) -> Result<Vec<u8>, Error> {
        let mut tree = Tree::default();
        for folder in FOLDERS {
            tree.insert(folder, DIRECTORY | if folder == "tmp" { 0o1777 } else { 0o755 }, Vec::new())?;
        }
        // Without a console in the archive PID 1 starts with no output at all.
        tree.device("dev/console", (5, 1));
        tree.device("dev/null", (1, 3));
        tree.insert("init", FILE | 0o755, read(&self.program)?)?;
        tree.insert("sweep", LINK | 0o777, b"init".to_vec())?;
        for library in elf::libraries(&self.program)? {
            tree.insert(&library.guest, FILE | 0o755, read(&library.host)?)?;
        }
        let (mut order, mut optional) = (String::new(), String::new());
        for (number, module) in self.modules.modules.iter().enumerate() {
            let name = format!("{number:02}-{}.ko", module.name);
            tree.insert(&format!("modules/{name}"), FILE | 0o644, module.bytes.clone())?;
            let _ = writeln!(order, "{name}");
            if module.optional {
                let _ = writeln!(optional, "{name}");
            }
        }
        tree.insert("modules/order", FILE | 0o644, order.into_bytes())?;
        tree.insert("modules/optional", FILE | 0o644, optional.into_bytes())?;
        for file in &self.extra {
            tree.insert(&file.path, FILE | (file.mode & 0o7777), file.bytes.clone())?;
        }
        tree.write()
    }
}

/// SHA-256 of an archive, in hexadecimal: what identifies it in a cache.
pub fn digest(archive: &[u8]) -> String {
    hex(&Sha256::digest(archive))
}

fn read(path: &Path) -> Result<Vec<u8>, Error> {
    fs::read(path).map_err(Error::io("read", path))
}

/// What is in the archive, by path without a leading `/`; sorted, so a folder comes before what is in it.
#[derive(Default)]
struct Tree(BTreeMap<String, Node>);

impl Tree {
    /// Puts a node at a path, and the folders that it is in. One at the same path is replaced.
    fn insert(&mut self, path: &str, mode: u32, bytes: Vec<u8>) -> Result<(), Error> {
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
            let folder = self.0.entry(clean[..at].to_owned()).or_insert_with(|| Node {
                mode: DIRECTORY | 0o755,
                bytes: Vec::new(),
                device: (0, 0),
            });
            if folder.mode & DIRECTORY == 0 {
                return Err(bad("a part of it is a file"));
            }
        }
        if mode & DIRECTORY == 0 && self.0.get(clean).is_some_and(|node| node.mode & DIRECTORY != 0) {
            return Err(bad("it is a folder"));
        }
        let device = (0, 0);
        self.0.insert(clean.to_owned(), Node { mode, bytes, device });
        Ok(())
    }

    fn device(&mut self, path: &str, device: (u32, u32)) {
        let node = Node { mode: CHARACTER_DEVICE | 0o666, bytes: Vec::new(), device };
        self.0.insert(path.to_owned(), node);
    }

    fn write(self) -> Result<Vec<u8>, Error> {
        let size: usize = self.0.values().map(|node| node.bytes.len() + 256).sum();
        let mut archive = Vec::with_capacity(size);
        let written = |e| Error::io("write", Path::new("the initramfs"))(e);
        for (inode, (path, node)) in (1..).zip(self.0) {
            let length = u32::try_from(node.bytes.len()).map_err(|_| Error::TooLarge { path: path.clone() })?;
            let entry = newc::Builder::new(&path)
                .ino(inode)
                .mode(node.mode)
                .nlink(if node.mode & DIRECTORY == 0 { 1 } else { 2 })
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
#[expect(clippy::unwrap_used, reason = "a test fails by panicking")]
mod tests {
    use super::super::modules::Module;
    use super::{Closure, Error, ExtraFile, Initramfs, Path, PathBuf, digest, elf, fs, newc};
    use std::io::Read;

    fn initramfs() -> Initramfs {
        let module = |name: &str, optional| Module { name: name.to_owned(), optional, bytes: name.as_bytes().to_vec() };
        Initramfs {
            program: PathBuf::from("/proc/self/exe"),
            modules: Closure {
                modules: vec![module("crc32c_intel", true), module("sctp", false)],
                ..Closure::default()
            },
            extra: vec![ExtraFile { path: "/etc/deep/plan.json".to_owned(), bytes: b"{}".to_vec(), mode: 0o600 }],
        }
    }

    /// Path to mode, mtime and contents, in the archive's order.
    fn read_back(mut rest: &[u8]) -> Vec<(String, u32, u32, Vec<u8>)> {
        let mut entries = Vec::new();
        loop {
            let mut reader = newc::Reader::new(rest).unwrap();
            let entry = reader.entry().clone();
            if entry.is_trailer() {
                return entries;
            }
            let mut bytes = Vec::new();
            reader.read_to_end(&mut bytes).unwrap();
            entries.push((entry.name().to_owned(), entry.mode(), entry.mtime(), bytes));
            rest = reader.finish().unwrap();
        }
    }

    #[test]
    fn everything_is_there_and_folders_come_first() {
        let entries = read_back(&initramfs().build().unwrap());
        let find = |path: &str| entries.iter().find(|entry| entry.0 == path).unwrap_or_else(|| panic!("no {path}"));
        assert_eq!(find("modules/order").3, b"00-crc32c_intel.ko\n01-sctp.ko\n");
        assert_eq!(find("modules/optional").3, b"00-crc32c_intel.ko\n");
        assert_eq!(find("modules/01-sctp.ko").3, b"sctp");
        assert_eq!(find("etc/deep/plan.json").1, 0o100_600);
        assert_eq!((find("sweep").1, find("sweep").3.as_slice()), (0o120_777, &b"init"[..]));
        assert!(find("init").3 == fs::read("/proc/self/exe").unwrap());
        assert_eq!(find("dev/console").1, 0o020_666);
        for library in elf::libraries(Path::new("/proc/self/exe")).unwrap() {
            assert!(find(library.guest.trim_start_matches('/')).3 == fs::read(&library.host).unwrap());
        }
        for (at, (path, _, mtime, _)) in entries.iter().enumerate() {
            assert_eq!(*mtime, 0);
            if let Some((folder, _)) = path.rsplit_once('/') {
                assert!(entries[..at].iter().any(|entry| entry.0 == folder), "{path} before its folder");
            }
        }
    }

    #[test]
    fn the_bytes_are_the_same_each_time() {
        let (a, mut changed) = (initramfs().build().unwrap(), initramfs());
        assert!(a == initramfs().build().unwrap());
        changed.extra[0].bytes.push(b' ');
        assert_ne!(digest(&a), digest(&changed.build().unwrap()));
        assert_eq!(digest(b"abc"), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
    }

    #[test]
    fn impossible_paths_are_refused() {
        for path in ["", "/", "a/", "a//b", "../x", "etc/./x", "init/x", "modules", "a\0b"] {
            let mut initramfs = initramfs();
            path.clone_into(&mut initramfs.extra[0].path);
            assert!(matches!(initramfs.build(), Err(Error::BadPath { .. })), "{path:?}");
        }
    }
}
