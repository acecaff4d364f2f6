//! `sweep`: a Linux-kernel-aware parameter sweep harness for sockets.
//!
//! It answers one question: *what do these socket settings do to latency and throughput, on this kernel, and why?*
//!
//! Data flows one way through the rooms below; `tests/layering.rs` fails on an import against that direction.

// They end the program where the stream is closed or full. Tests may.
#![cfg_attr(not(test), warn(clippy::print_stdout, clippy::print_stderr))]

pub mod backend;
pub mod cli;
pub mod explain;
pub mod gate;
pub mod measurement;
pub mod plan;
pub mod plot;
pub mod record;
pub mod report;
pub mod run;
pub mod settings;
pub mod spec;
pub mod stats;
pub mod sys;
pub mod units;
pub mod workload;
