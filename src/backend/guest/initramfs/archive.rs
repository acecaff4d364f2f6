//! The archive itself: newc, with the same bytes for the same contents on every host.

use std::fmt::Write as _;
use std::fs;
use std::path::PathBuf;

use sha2::{Digest, Sha256};

use crate::units::hex;

use super::Error;
use super::modules::Closure;
use super::packer::own_libraries;
use super::payload::Payload;
use super::tree::Tree;

/// Folders that a guest mounts things on, or that programs expect.
const FOLDERS: [&str; 10] = ["dev", "proc", "sys", "tmp", "run", "etc", "root", "var", "var/tmp", "var/lib"];

/// Files that the C library reads: who there is, where names are looked up, and what names stand for. Not this machine's own,
/// so that a guest is the same on every machine.
const NAMES: [(&str, &str); 6] = [
    ("etc/passwd", "root:x:0:0:root:/root:/bin/sh\nnobody:x:65534:65534:nobody:/:/bin/false\n"),
    ("etc/group", "root:x:0:\nnogroup:x:65534:\n"),
    ("etc/hosts", "127.0.0.1 localhost\n::1 localhost\n"),
    ("etc/nsswitch.conf", "passwd: files\ngroup: files\nhosts: files\nprotocols: files\nservices: files\n"),
    // Numbers of IANA; MPTCP's is Linux's own (`include/uapi/linux/in.h`).
    (
        "etc/protocols",
        "ip 0 IP\nicmp 1 ICMP\ntcp 6 TCP\nudp 17 UDP\ndccp 33 DCCP\nipv6 41 IPv6\nipv6-icmp 58 IPv6-ICMP\nsctp 132 SCTP\nudplite 136 UDPLite\nmptcp 262 MPTCP\n",
    ),
    (
        "etc/services",
        "echo 7/tcp\necho 7/udp\ndiscard 9/tcp sink null\ndiscard 9/udp sink null\nssh 22/tcp\ndomain 53/tcp\ndomain 53/udp\nhttp 80/tcp www\nhttps 443/tcp\n",
    ),
];

/// What goes into an initramfs.
#[derive(Debug, Clone, Default)]
pub struct Initramfs {
    /// The program: `/init` in the guest, and `/sweep` as a link to it. Its libraries come along.
    pub program: PathBuf,
    /// Modules: `/modules/NN-name.ko`, with their names in load order in `/modules/order`, one a line, and in
    /// `/modules/optional` the names of those that may fail to load.
    pub modules: Closure,
    /// Programs and files of the user's.
    pub payload: Payload,
}

impl Initramfs {
    /// Builds the archive, uncompressed: a guest under emulation would take longer to decompress it than to read it.
    ///
    /// # Errors
    /// If the program, a library or a file cannot be read or found.
    pub fn build(&self) -> Result<Vec<u8>, Error> {
        let mut tree = Tree::default();
        for folder in FOLDERS {
            tree.folder(folder, if folder.ends_with("tmp") { 0o1777 } else { 0o755 })?;
        }
        // Without a console in the archive PID 1 starts with no output at all.
        tree.device("dev/console", (5, 1))?;
        tree.device("dev/null", (1, 3))?;
        for (path, text) in NAMES {
            tree.file(path, 0o644, text.as_bytes().to_vec(), 0)?;
        }
        let mut payload = own_libraries(&self.program)?;
        payload.add(&self.payload)?;
        payload.plant(&mut tree)?;
        let program = fs::read(&self.program).map_err(Error::io("read", &self.program))?;
        tree.file("init", 0o755, program, 0)?;
        tree.link("sweep", "init")?;
        let (mut order, mut optional) = (String::new(), String::new());
        for (number, module) in self.modules.modules.iter().enumerate() {
            let name = format!("{number:02}-{}.ko", module.name);
            tree.file(&format!("modules/{name}"), 0o644, module.bytes.clone(), 0)?;
            let _ = writeln!(order, "{name}");
            if module.optional {
                let _ = writeln!(optional, "{name}");
            }
        }
        tree.file("modules/order", 0o644, order.into_bytes(), 0)?;
        tree.file("modules/optional", 0o644, optional.into_bytes(), 0)?;
        tree.write()
    }
}

/// SHA-256 of an archive, in hexadecimal: what identifies it in a cache.
pub fn digest(archive: &[u8]) -> String {
    hex(&Sha256::digest(archive))
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "a test fails by panicking")]
mod tests {
    use super::super::modules::Module;
    use super::super::{HERE, Wanted, pack};
    use super::{Closure, Initramfs, PathBuf, digest, fs};
    use cpio::newc;
    use std::collections::BTreeSet;
    use std::io::Read;
    use std::path::Path;

    fn initramfs() -> Initramfs {
        let module = |name: &str, optional| Module { name: name.to_owned(), optional, bytes: name.as_bytes().to_vec() };
        Initramfs {
            program: PathBuf::from("/proc/self/exe"),
            modules: Closure {
                modules: vec![module("crc32c_intel", true), module("sctp", false)],
                ..Closure::default()
            },
            ..Initramfs::default()
        }
    }

    /// The same, with a shell script beside a sweep.
    fn with_script(folder: &Path, text: &str) -> Initramfs {
        fs::write(folder.join("script"), text).unwrap();
        let wanted = Wanted { files: vec!["script".to_owned()], folder: folder.to_owned(), ..Wanted::default() };
        let packed = pack(&BTreeSet::from([wanted])).unwrap();
        assert!(packed.refused.is_empty(), "{:?}", packed.refused);
        Initramfs { payload: packed.payload, ..initramfs() }
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
        let folder = tempfile::tempdir().unwrap();
        let entries = read_back(&with_script(folder.path(), "echo").build().unwrap());
        let find = |path: &str| entries.iter().find(|entry| entry.0 == path).unwrap_or_else(|| panic!("no {path}"));
        assert_eq!(find("modules/order").3, b"00-crc32c_intel.ko\n01-sctp.ko\n");
        assert_eq!(find("modules/optional").3, b"00-crc32c_intel.ko\n");
        assert_eq!(find("modules/01-sctp.ko").3, b"sctp");
        let script = find(&format!("{}/script", &HERE[1..]));
        assert_eq!((script.1, script.2, script.3.as_slice()), (0o100_444, 0, &b"echo"[..]));
        assert_eq!((find("sweep").1, find("sweep").3.as_slice()), (0o120_777, &b"init"[..]));
        assert!(find("init").3 == fs::read("/proc/self/exe").unwrap());
        assert_eq!(find("dev/console").1, 0o020_666);
        assert_eq!(find("tmp").1, 0o041_777);
        assert!(find("etc/hosts").3.starts_with(b"127.0.0.1 localhost\n"));
        for (at, (path, ..)) in entries.iter().enumerate() {
            if let Some((folder, _)) = path.rsplit_once('/') {
                assert!(entries[..at].iter().any(|entry| entry.0 == folder), "{path} before its folder");
            }
        }
    }

    #[test]
    fn the_bytes_are_the_same_each_time_and_others_for_another_file() {
        let (one, other) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let a = with_script(one.path(), "echo").build().unwrap();
        // Wherever the sweep lies.
        assert!(a == with_script(other.path(), "echo").build().unwrap());
        assert_ne!(digest(&a), digest(&with_script(one.path(), "echo ").build().unwrap()));
        assert_ne!(digest(&a), digest(&initramfs().build().unwrap()));
        assert_eq!(digest(b"abc"), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
    }
}
