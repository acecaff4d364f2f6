//! What a guest boots into: an archive with one program, the libraries it needs, and the kernel modules it needs.

mod archive;
mod elf;
mod modinfo;
mod modules;

use std::io;
use std::path::{Path, PathBuf};

use super::kernel::decompress::DecompressError;

pub use archive::{ExtraFile, Initramfs, digest};
pub use elf::{Library, libraries};
pub use modules::{Closure, Module, closure};

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
    #[error("`{}` is not a 64-bit ELF program: {reason}", path.display())]
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
    /// An extra file has a path that cannot be in an archive.
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
