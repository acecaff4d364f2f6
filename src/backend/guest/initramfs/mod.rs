//! What a guest boots into: an archive with one program, the libraries it needs, and the kernel modules it needs.

mod archive;
mod elf;
mod identity;
mod modinfo;
mod modules;
mod packer;
mod payload;
mod programs;
mod script;
mod tree;
mod wanted;

use std::io;
use std::path::{Path, PathBuf};

use super::kernel::decompress::DecompressError;
use crate::units::Bytes;
use crate::workload::Absent;

pub use archive::{Initramfs, digest};
pub use identity::identities;
pub use modules::{Closure, Module, closure};
pub use packer::{HERE, Packed, pack};
pub use payload::{MOST_BYTES, MOST_ENTRIES, Payload};
pub(super) use programs::GUEST_PATH;
pub use wanted::Wanted;

/// Why an initramfs could not be built.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// An operation on a file failed.
    #[error("cannot {action} `{}`: {source}", path.display())]
    Io {
        /// What was being done.
        action: &'static str,
        /// On which path.
        path: PathBuf,
        /// Why it failed.
        source: io::Error,
    },
    /// A module needs another that the kernel does not have.
    #[error("kernel module `{module}` needs `{needs}`, which is neither in `{}` nor built in: the kernel's package is incomplete", dir.display())]
    MissingDependency {
        /// The module.
        module: String,
        /// What it needs.
        needs: String,
        /// Where the modules are.
        dir: PathBuf,
    },
    /// A module could not be decompressed.
    #[error("cannot decompress kernel module `{}`: {source}", path.display())]
    Decompress {
        /// The file.
        path: PathBuf,
        /// Why.
        source: DecompressError,
    },
    /// A file is not a module.
    #[error("`{}` is not a kernel module: {reason}", path.display())]
    NotAModule {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        reason: String,
    },
    /// The program is no executable that a guest can run.
    #[error("`{}` is no program that a guest can run: {reason}", path.display())]
    NotAProgram {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        reason: String,
    },
    /// A shared library is not installed.
    #[error("`{}` needs the shared library `{library}`, which is in none of {looked}: install it, or set LD_LIBRARY_PATH to its folder", by.display())]
    MissingLibrary {
        /// The library.
        library: String,
        /// Who needs it.
        by: PathBuf,
        /// Where it was looked for.
        looked: String,
    },
    /// A program is not on this machine.
    #[error("{absent} ({by} names it)")]
    Absent {
        /// What there is instead.
        absent: Absent,
        /// Who asks for it.
        by: String,
    },
    /// A file or folder is not there.
    #[error("`{}`, which {by} names, is not there{}", path.display(), at(path, missing))]
    Missing {
        /// As it was named.
        path: PathBuf,
        /// The part of the path that is not there.
        missing: PathBuf,
        /// Who asks for it.
        by: String,
    },
    /// A path lies where a guest has file systems of its own.
    #[error("`{}`, which {by} names, cannot come along: a guest has a {} of its own", path.display(), folder.display())]
    Mounted {
        /// As it was named.
        path: PathBuf,
        /// The folder.
        folder: PathBuf,
        /// Who asks for it.
        by: String,
    },
    /// A socket, pipe or device cannot come along.
    #[error("`{}`, which `files` names, is neither a file nor a folder", path.display())]
    NoPlainFile {
        /// The path.
        path: PathBuf,
    },
    /// A relative path goes far above the sweep's folder.
    #[error("`{}` is more than {most} folders above the sweep file: name it by its absolute path", path.display())]
    TooFarUp {
        /// Where it leads.
        path: PathBuf,
        /// How many are allowed.
        most: usize,
    },
    /// Two files would be at one place of the guest.
    #[error("{one} and {other} would both be `{path}` in the guest: leave out one of them")]
    Conflict {
        /// The place.
        path: String,
        /// What is there.
        one: String,
        /// What else would be there.
        other: String,
    },
    /// More than fits.
    #[error(
        "its files are {bytes} in {entries} entries, and a guest takes at most {} in {MOST_ENTRIES}: name less in `files`. The largest \
         folders are {largest}",
        Bytes(MOST_BYTES)
    )]
    TooMuch {
        /// Bytes of all files, as far as they were counted.
        bytes: Bytes,
        /// How many files, folders and links.
        entries: usize,
        /// The folders with most in them.
        largest: String,
    },
    /// A file has a path that cannot be in an archive.
    #[error("`{path}` cannot be a path in the guest: {reason}")]
    BadPath {
        /// The path.
        path: String,
        /// What is wrong with it.
        reason: &'static str,
    },
    /// A file is too large for the archive's format.
    #[error("`{path}` is larger than 4 GiB, the most that an initramfs can hold in a file")]
    TooLarge {
        /// Its path in the guest.
        path: String,
    },
}

impl Error {
    fn io(action: &'static str, path: &Path) -> impl FnOnce(io::Error) -> Self {
        move |source| Self::Io { action, path: path.to_path_buf(), source }
    }
}

/// Where a path ends, if that is not where it leads.
fn at(path: &Path, missing: &Path) -> String {
    if path.is_absolute() && path == missing {
        String::new()
    } else {
        format!(" (there is no `{}`)", missing.display())
    }
}
