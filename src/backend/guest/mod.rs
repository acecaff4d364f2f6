//! A cell in a guest of its own kernel.

pub mod initramfs;
pub mod kernel;
