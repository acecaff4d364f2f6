//! What a run leaves behind: the versioned form of a record, the folder that records are appended to, and the manifest
//! that says where they come from. Imports `settings`, `measurement` and `units`.
//!
//! A cell is a text here (its id) and the resolved sweep is JSON, so that stored runs are read without knowing how they
//! were planned.

mod environment;
mod error;
mod files;
mod format;
mod journal;
mod manifest;
mod revision;
mod store;

pub use environment::{Host, sysctls};
pub use error::{StoreError, Warning};
pub use files::{ensure_folder, write_atomically};
pub use format::{FORMAT, KernelFacts, Record};
pub use journal::{Loaded, RepeatKey};
pub use manifest::{Machine, Manifest, More, MoreRepeats, Program, SweepSource};
pub use revision::Revision;
pub use store::{RunDir, Writer};
#[cfg(test)]
pub(crate) use {format::tests::example, manifest::tests::example as example_manifest};
