//! Where a cell runs.

pub mod guest;
