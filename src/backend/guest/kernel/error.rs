//! What can go wrong between the name of an image and a kernel.

use std::io;
use std::path::{Path, PathBuf};

use super::decompress::DecompressError;
use super::vmlinux::VmlinuxError;

/// Why a kernel could not be had.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// No folder for the cache is known or none can be written.
    #[error("no folder for kernels can be written ({tried}): set XDG_CACHE_HOME to a folder that can")]
    NoCache {
        /// The folders tried, each with what was wrong.
        tried: String,
    },
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
    /// A helper program is not installed or cannot be started.
    #[error("cannot run `{program}`: {source}; {remedy}")]
    Program {
        /// The program.
        program: String,
        /// Why it did not start.
        source: io::Error,
        /// What to do about it.
        remedy: &'static str,
    },
    /// A helper program ran and failed.
    #[error("`{program}` failed ({status}): {message}")]
    ProgramFailed {
        /// The program and what it was to do.
        program: String,
        /// How it ended.
        status: String,
        /// The last lines it printed.
        message: String,
    },
    /// The host has no Debian mirror among its package sources.
    #[error(
        "`{image}` comes from a Debian mirror, and this host's package sources name none: download the kernel's .deb on a \
         Debian host and give its path, or give the path of a vmlinuz"
    )]
    NoMirror {
        /// The image asked for.
        image: String,
    },
    /// There is no `apt-get` here.
    #[error(
        "`{image}` is fetched with apt-get, which this host does not have: give the path of a kernel's .deb or of a vmlinuz \
         that lies beside its modules"
    )]
    NoApt {
        /// The image asked for.
        image: String,
    },
    /// The package lists could not be fetched and there are no older ones.
    #[error(
        "cannot fetch the package lists (offline?): {message}; use a kernel of the store (`sweep kernel list`) or give the \
         path of a .deb or of a vmlinuz"
    )]
    Offline {
        /// What apt-get said last.
        message: String,
    },
    /// The Debian mirror has no such kernel.
    #[error("the Debian mirror has no cloud kernel `{image}`; {offers}")]
    NoSuchKernel {
        /// The image asked for.
        image: String,
        /// What there is.
        offers: String,
    },
    /// Debian builds no cloud kernel for this machine.
    #[error("Debian has no cloud kernel for this machine's architecture `{arch}`: give the path of a vmlinuz")]
    Architecture {
        /// The machine's architecture.
        arch: String,
    },
    /// The distribution has no cloud kernel that could be the default.
    #[error(
        "no default kernel is known for this host ({reason}): name one with `kernel.image`, for example a path to a .deb or a vmlinuz"
    )]
    NoDefault {
        /// Why there is none.
        reason: String,
    },
    /// A part of the host's own kernel is missing.
    #[error("the host's kernel cannot be booted: `{}` is missing; use a kernel of the store, such as `debian:6.12`", path.display())]
    HostMissing {
        /// What is missing.
        path: PathBuf,
    },
    /// A part of the host's own kernel cannot be read.
    #[error(
        "the host's kernel cannot be booted: `{}` cannot be read by this user (Ubuntu lets only root read it); run as root, or \
         use a kernel of the store, such as `debian:6.12`",
        path.display()
    )]
    HostUnreadable {
        /// What cannot be read.
        path: PathBuf,
    },
    /// A path that is neither a kernel image nor a package nor a folder of packages.
    #[error("`{}` is not a kernel: {reason}", path.display())]
    NotAKernel {
        /// The path given.
        path: PathBuf,
        /// What is wrong with it.
        reason: String,
    },
    /// The modules of a kernel image are nowhere near it.
    #[error(
        "no modules of release `{release}` for `{}`: put them at one of {looked}",
        vmlinuz.display()
    )]
    NoModules {
        /// The image.
        vmlinuz: PathBuf,
        /// Its release.
        release: String,
        /// Where they were looked for.
        looked: String,
    },
    /// A package is not readable as one.
    #[error("`{}` is not a Debian package: {reason}", path.display())]
    NotADeb {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        reason: String,
    },
    /// The packages at hand do not make a whole kernel.
    #[error(
        "{packages}: no {missing} in there; from 7.x image and modules are packages of their own (linux-binary-…, linux-modules-…, linux-base-…): put them in one folder and name that"
    )]
    Incomplete {
        /// The packages unpacked.
        packages: String,
        /// What they lack.
        missing: &'static str,
    },
    /// An entry of the store is damaged.
    #[error("`{}` in the kernel store is damaged: {reason}; remove that folder", path.display())]
    BrokenEntry {
        /// The entry's folder.
        path: PathBuf,
        /// What is wrong with it.
        reason: String,
    },
    /// No kernel in the store goes by that name.
    #[error("no kernel `{name}` in the store; it has {have}")]
    NotInStore {
        /// The name given.
        name: String,
        /// The names there are.
        have: String,
    },
    /// Several kernels in the store go by that name.
    #[error("`{name}` names more than one kernel of the store: {matches}; give one of these names")]
    Ambiguous {
        /// The name given.
        name: String,
        /// The kernels it matches.
        matches: String,
    },
    /// The uncompressed image could not be extracted.
    #[error("no uncompressed image from `{}`: {source}", path.display())]
    Vmlinux {
        /// The image.
        path: PathBuf,
        /// Why.
        source: VmlinuxError,
    },
    /// A compressed file is damaged or of an unsupported kind.
    #[error("cannot decompress `{}`: {source}", path.display())]
    Decompress {
        /// The file.
        path: PathBuf,
        /// Why.
        source: DecompressError,
    },
}

impl Error {
    /// For `map_err` on an operation on a file.
    pub(crate) fn io(action: &'static str, path: &Path) -> impl FnOnce(io::Error) -> Self {
        move |source| Self::Io { action, path: path.to_path_buf(), source }
    }
}
