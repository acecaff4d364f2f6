//! From the name of an image to a kernel that can be booted.
//!
//! [`ImageName`] is what a sweep file says (`debian:6.1`, `host`, a path). [`KernelStore`] is a folder of the user's
//! cache in which kernels of Debian's cloud flavour, and of `.deb` files, lie unpacked; nothing is ever installed and
//! nothing here needs root. [`Kernel`] is the answer: a `vmlinuz`, its modules, and what identifies them.

mod apt;
mod deb;
pub mod decompress;
mod error;
mod index;
mod local;
mod lz4;
mod name;
mod store;
mod tree;
pub mod version;
pub mod vmlinux;

use std::path::PathBuf;

pub use error::Error;
pub use local::{from_paths, from_vmlinuz, host};
pub use name::{DebianVersion, ImageName, ParseImageError};
pub use store::{Broken, KernelStore, Listing};

/// A result of this room.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// Called with a line that says what is being done, for whatever takes longer than an instant.
pub type Progress<'a> = &'a mut dyn FnMut(&str);

/// A kernel that can be booted: its image, its modules, and what identifies them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Kernel {
    /// What to ask for to get exactly this kernel again: an exact package version even where a series was asked for.
    pub image: ImageName,
    /// What `uname -r` says in it.
    pub release: String,
    /// The version of the package it came from.
    pub package_version: Option<String>,
    /// The name of the package it came from.
    pub package: Option<String>,
    /// The bootable image.
    pub vmlinuz: PathBuf,
    /// Its `lib/modules/<release>`.
    pub modules: PathBuf,
    /// SHA-256 of `vmlinuz`, in hexadecimal.
    pub sha256: String,
}

impl Kernel {
    /// The key by which kernels are sorted: the package's version, or the release where there is no package.
    pub(crate) fn sort_key(&self) -> &str {
        self.package_version.as_deref().unwrap_or(&self.release)
    }

    /// Path of the uncompressed ELF image, which boots about a second sooner under emulation than `vmlinuz`.
    ///
    /// It is extracted when first asked for and then kept in the store, also for a kernel that is not of the store.
    ///
    /// # Errors
    /// If the image is of a form that cannot be extracted or has no PVH entry point (boot `vmlinuz` instead), or if it
    /// cannot be read or the result cannot be stored.
    pub fn vmlinux(&self, store: &KernelStore) -> Result<PathBuf> {
        store.vmlinux(self)
    }
}
