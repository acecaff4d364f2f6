//! Which modules have to be loaded, and in which order, to have the ones wanted.
//!
//! `modules.dep` tells it where depmod has run. In a package that was only unpacked it has not, and then each module's
//! own `.modinfo` tells the same. What should be loaded first if there is any such (`softdep`) always comes from there:
//! SCTP's checksum, for one, is asked for by an alias (`crc32c`) that several modules answer to.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::fs;
use std::path::{Path, PathBuf};

use super::Error;
use super::modinfo::{ModInfo, normal};
use crate::backend::guest::kernel::decompress::decompress;

/// The modules to load.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Closure {
    /// In the order in which to load them, decompressed.
    pub modules: Vec<Module>,
    /// Wanted ones that are part of the kernel image.
    pub built_in: Vec<String>,
    /// Wanted ones that this kernel does not have.
    pub absent: Vec<String>,
}

/// A kernel module.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Module {
    /// Its name, in the kernel's spelling (`crc32c_intel`).
    pub name: String,
    /// Whether it may fail to load without harm: a variant for hardware that may not be there.
    pub optional: bool,
    /// The decompressed file.
    pub bytes: Vec<u8>,
}

/// The modules to load to have the `wanted` ones, from a kernel's `lib/modules/<release>`. The order of what is wanted
/// does not change the result.
///
/// # Errors
/// If the folder or a module cannot be read, or if a module needs one that is not there. A wanted one that is not there
/// is no error: it is listed as absent.
pub fn closure(modules_dir: &Path, wanted: &[&str]) -> Result<Closure, Error> {
    let mut walk = Walk { tree: Tree::read(modules_dir)?, closure: Closure::default(), visited: BTreeSet::new() };
    let wanted: BTreeSet<String> = wanted.iter().map(|name| normal(name)).collect();
    for name in &wanted {
        if walk.tree.files.contains_key(name) {
            walk.visit(name, false)?;
        } else if walk.tree.built_in.contains(name) {
            walk.closure.built_in.push(name.clone());
        } else {
            walk.closure.absent.push(name.clone());
        }
    }
    // A module that something needs may have been met first as an optional one.
    let needed: BTreeSet<String> =
        walk.closure.modules.iter().filter(|m| !m.optional).map(|m| m.name.clone()).collect();
    let mut hard = wanted;
    for name in &needed {
        hard.extend(walk.tree.depends.get(name).cloned().unwrap_or_default());
    }
    for module in &mut walk.closure.modules {
        module.optional &= !hard.contains(&module.name);
    }
    Ok(walk.closure)
}

struct Walk {
    tree: Tree,
    closure: Closure,
    visited: BTreeSet<String>,
}

impl Walk {
    /// Adds a module after all that has to be loaded before it.
    fn visit(&mut self, name: &str, optional: bool) -> Result<(), Error> {
        if !self.visited.insert(name.to_owned()) {
            return Ok(());
        }
        let (bytes, info) = self.tree.load(name)?;
        let depends = self.tree.depends.entry(name.to_owned()).or_insert(info.depends).clone();
        for soft in &info.before {
            self.visit_soft(soft)?;
        }
        for needs in depends {
            if self.tree.files.contains_key(&needs) {
                self.visit(&needs, optional)?;
            } else if !self.tree.built_in.contains(&needs) && self.tree.knows_built_in {
                return Err(Error::MissingDependency { module: name.to_owned(), needs, dir: self.tree.dir.clone() });
            }
        }
        self.closure.modules.push(Module { name: name.to_owned(), optional, bytes });
        for soft in &info.after {
            self.visit_soft(soft)?;
        }
        Ok(())
    }

    /// Adds whatever answers to a name, if anything does.
    fn visit_soft(&mut self, name: &str) -> Result<(), Error> {
        if self.tree.files.contains_key(name) {
            return self.visit(name, true);
        }
        for module in self.tree.answering_to(name)? {
            self.visit(&module, true)?;
        }
        Ok(())
    }
}

/// A kernel's module folder.
struct Tree {
    dir: PathBuf,
    /// Name to path below `dir`.
    files: BTreeMap<String, PathBuf>,
    /// What each needs, as far as known: all of it from `modules.dep`, else filled while walking.
    depends: HashMap<String, Vec<String>>,
    built_in: BTreeSet<String>,
    /// Whether there is a list of what is built in.
    knows_built_in: bool,
}

impl Tree {
    fn read(dir: &Path) -> Result<Self, Error> {
        let mut tree = Self {
            dir: dir.to_path_buf(),
            files: BTreeMap::new(),
            depends: HashMap::new(),
            built_in: BTreeSet::new(),
            knows_built_in: false,
        };
        if let Some(text) = read_if_there(&dir.join("modules.dep"))? {
            for (path, needs) in text.lines().filter_map(|line| line.split_once(':')) {
                let name = module_name(Path::new(path)).unwrap_or_default();
                let needs = needs.split_whitespace().filter_map(|path| module_name(Path::new(path))).collect();
                tree.depends.insert(name.clone(), needs);
                tree.files.insert(name, PathBuf::from(path));
            }
        }
        if tree.files.is_empty() {
            tree.scan(dir)?;
        }
        if let Some(text) = read_if_there(&dir.join("modules.builtin"))? {
            tree.knows_built_in = true;
            tree.built_in.extend(text.lines().filter_map(|line| module_name(Path::new(line))));
        }
        Ok(tree)
    }

    fn scan(&mut self, dir: &Path) -> Result<(), Error> {
        for entry in fs::read_dir(dir).map_err(Error::io("read", dir))? {
            let entry = entry.map_err(Error::io("read", dir))?;
            let (path, kind) = (entry.path(), entry.file_type().map_err(Error::io("read", dir))?);
            if kind.is_dir() {
                self.scan(&path)?;
            } else if let (Some(name), Ok(below)) = (module_name(&path), path.strip_prefix(&self.dir)) {
                self.files.insert(name, below.to_path_buf());
            }
        }
        Ok(())
    }

    /// A module, decompressed, and what it says of itself.
    fn load(&self, name: &str) -> Result<(Vec<u8>, ModInfo), Error> {
        let path = self.dir.join(self.files.get(name).map_or(Path::new(name), PathBuf::as_path));
        let bytes = fs::read(&path).map_err(Error::io("read", &path))?;
        let bytes = decompress(bytes).map_err(|source| Error::Decompress { path: path.clone(), source })?;
        let info = ModInfo::of(&bytes).map_err(|reason| Error::NotAModule { path, reason })?;
        Ok((bytes, info))
    }

    /// Modules that answer to an alias: from `modules.alias`, or where depmod has not made one from the modules whose
    /// names begin with it, which holds for the algorithms that aliases are used for here.
    fn answering_to(&self, alias: &str) -> Result<Vec<String>, Error> {
        let mut found = BTreeSet::new();
        if let Some(text) = read_if_there(&self.dir.join("modules.alias"))? {
            for line in text.lines() {
                let mut words = line.split_whitespace();
                if let (Some("alias"), Some(pattern), Some(module)) = (words.next(), words.next(), words.next())
                    && normal(pattern) == alias
                    && self.files.contains_key(&normal(module))
                {
                    found.insert(normal(module));
                }
            }
        } else {
            for name in self.files.keys().filter(|name| name.starts_with(alias)) {
                if self.load(name)?.1.aliases.iter().any(|known| known == alias) {
                    found.insert(name.clone());
                }
            }
        }
        Ok(found.into_iter().collect())
    }
}

/// The name of the module in a file such as `kernel/net/sctp/sctp.ko.xz`.
fn module_name(path: &Path) -> Option<String> {
    let file = path.file_name()?.to_str()?;
    let (stem, rest) = file.split_once(".ko")?;
    matches!(rest, "" | ".gz" | ".xz" | ".zst").then(|| normal(stem))
}

fn read_if_there(path: &Path) -> Result<Option<String>, Error> {
    match fs::read_to_string(path) {
        Ok(text) => Ok(Some(text)),
        Err(e) if e.kind() == std::io::ErrorKind::NotFound => Ok(None),
        Err(source) => Err(Error::io("read", path)(source)),
    }
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "a test fails by panicking")]
mod tests {
    use super::super::modinfo::tests::module;
    use super::{Closure, Error, Path, closure, fs};
    use std::io::Write;

    /// A kernel whose modules are compressed in all four ways.
    fn kernel(dir: &Path) {
        let write = |path: &str, bytes: &[u8]| {
            let path = dir.join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, bytes).unwrap();
        };
        let mut gz = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        gz.write_all(&module("depends=libcrc32c,udp_tunnel")).unwrap();
        write("kernel/net/sctp/sctp.ko.gz", &gz.finish().unwrap());
        let mut xz = Vec::new();
        lzma_rs::xz_compress(&mut module("depends= softdep=pre:|crc32c").as_slice(), &mut xz).unwrap();
        write("kernel/lib/libcrc32c.ko.xz", &xz);
        let level = ruzstd::encoding::CompressionLevel::Fastest;
        let zst = ruzstd::encoding::compress_to_vec(module("depends=tcp_cubic").as_slice(), level);
        write("kernel/net/udp_tunnel.ko.zst", &zst);
        write("kernel/arch/x86/crypto/crc32c-intel.ko", &module("depends= alias=crc32c"));
        write("kernel/arch/x86/crypto/crc32c-other.ko", &module("depends="));
        write("kernel/drivers/net/veth.ko", &module("depends="));
        write("modules.builtin", b"kernel/net/ipv4/tcp_cubic.ko\nkernel/crypto/crc32c_generic.ko\n");
    }

    fn names(closure: &Closure) -> Vec<&str> {
        closure.modules.iter().map(|module| module.name.as_str()).collect()
    }

    #[test]
    fn the_closure_is_in_load_order_with_and_without_modules_dep() {
        let dir = tempfile::tempdir().unwrap();
        kernel(dir.path());
        let wanted = ["veth", "sctp", "tcp-cubic", "sch_netem"];
        let scanned = closure(dir.path(), &wanted).unwrap();
        assert_eq!(names(&scanned), ["crc32c_intel", "libcrc32c", "udp_tunnel", "sctp", "veth"]);
        let optional: Vec<bool> = scanned.modules.iter().map(|module| module.optional).collect();
        assert_eq!(optional, [true, false, false, false, false]);
        assert_eq!(scanned.built_in, ["tcp_cubic"]);
        assert_eq!(scanned.absent, ["sch_netem"]);
        assert_eq!(scanned.modules[3].bytes, module("depends=libcrc32c,udp_tunnel"));

        let dep = "kernel/net/sctp/sctp.ko.gz: kernel/net/udp_tunnel.ko.zst kernel/lib/libcrc32c.ko.xz\n\
                   kernel/net/udp_tunnel.ko.zst:\nkernel/lib/libcrc32c.ko.xz:\n\
                   kernel/arch/x86/crypto/crc32c-intel.ko:\nkernel/drivers/net/veth.ko:\n";
        fs::write(dir.path().join("modules.dep"), dep).unwrap();
        fs::write(dir.path().join("modules.alias"), "alias crc32c crc32c_intel\nalias x veth\n").unwrap();
        let listed = closure(dir.path(), &["sctp", "veth", "sch_netem", "tcp_cubic"]).unwrap();
        let mut sorted = names(&listed);
        sorted.sort_unstable();
        assert_eq!(sorted, ["crc32c_intel", "libcrc32c", "sctp", "udp_tunnel", "veth"]);
        let at = |name: &str| names(&listed).iter().position(|n| *n == name).unwrap();
        assert!(at("crc32c_intel") < at("libcrc32c") && at("libcrc32c") < at("sctp") && at("udp_tunnel") < at("sctp"));
    }

    #[test]
    fn an_optional_one_that_is_also_wanted_is_not_optional() {
        let dir = tempfile::tempdir().unwrap();
        kernel(dir.path());
        let closure = closure(dir.path(), &["sctp", "zzz", "crc32c_intel"]).unwrap();
        assert!(closure.modules.iter().all(|module| !module.optional), "{:?}", names(&closure));
    }

    #[test]
    fn a_missing_dependency_and_a_damaged_module_are_errors() {
        let dir = tempfile::tempdir().unwrap();
        kernel(dir.path());
        fs::remove_file(dir.path().join("kernel/net/udp_tunnel.ko.zst")).unwrap();
        match closure(dir.path(), &["sctp"]) {
            Err(Error::MissingDependency { module, needs, .. }) => {
                assert_eq!((module.as_str(), needs.as_str()), ("sctp", "udp_tunnel"));
            }
            other => panic!("{other:?}"),
        }
        fs::write(dir.path().join("kernel/drivers/net/veth.ko"), "damaged").unwrap();
        assert!(matches!(closure(dir.path(), &["veth"]), Err(Error::NotAModule { .. })));
        assert!(matches!(closure(&dir.path().join("none"), &["veth"]), Err(Error::Io { .. })));
    }
}
