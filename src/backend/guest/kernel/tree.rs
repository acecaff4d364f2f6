//! Finding a kernel in a tree of unpacked packages.

use std::fs;
use std::path::{Path, PathBuf};

use super::{Error, Result};

/// Where modules lie in a package, before and after the merge of `/usr`.
const MODULES: [&str; 2] = ["usr/lib/modules", "lib/modules"];

/// A kernel in a tree.
#[derive(Debug)]
pub(crate) struct Found {
    pub(crate) release: String,
    pub(crate) vmlinuz: PathBuf,
    pub(crate) modules: PathBuf,
}

/// Finds the one kernel in a tree, or says what part of it is missing.
pub(crate) fn find(root: &Path) -> std::result::Result<Found, &'static str> {
    let module_dirs = MODULES.iter().flat_map(|dir| children(&root.join(dir)));
    let modules = module_dirs.filter(|dir| dir.is_dir()).max_by_key(|dir| has_modules(dir));
    let boot = children(&root.join("boot"))
        .into_iter()
        .find(|path| path.file_name().is_some_and(|name| name.to_string_lossy().starts_with("vmlinuz-")));
    let inside = MODULES
        .iter()
        .flat_map(|dir| children(&root.join(dir)))
        .map(|dir| dir.join("vmlinuz"))
        .find(|path| path.is_file());
    let vmlinuz = boot.or(inside).ok_or("kernel image (vmlinuz)")?;
    let modules = modules.filter(|dir| has_modules(dir)).ok_or("modules")?;
    let release = modules.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    Ok(Found { release, vmlinuz, modules })
}

/// Whether a folder of modules has any.
pub(crate) fn has_modules(dir: &Path) -> bool {
    dir.join("kernel").is_dir() || dir.join("modules.dep").is_file()
}

fn children(dir: &Path) -> Vec<PathBuf> {
    let mut paths: Vec<PathBuf> = fs::read_dir(dir).into_iter().flatten().flatten().map(|entry| entry.path()).collect();
    paths.sort();
    paths
}

/// Bytes that a folder takes up, links not followed.
pub(crate) fn bytes(dir: &Path) -> Result<u64> {
    let mut total = 0;
    for entry in fs::read_dir(dir).map_err(Error::io("read", dir))? {
        let entry = entry.map_err(Error::io("read", dir))?;
        let data = entry.metadata().map_err(Error::io("read", &entry.path()))?;
        total += if data.is_dir() { bytes(&entry.path())? } else { data.len() };
    }
    Ok(total)
}
