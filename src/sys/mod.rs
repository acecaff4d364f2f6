//! Every unsafe call of the program: socket options, messages, namespaces, processes, and what PID 1 of a guest needs.
//!
//! Each function wraps one kernel interface, names it, and returns [`std::io::Error`] as the kernel gave it. What an error
//! means for a cell is decided above. Imports `units` only.

pub mod capture;
pub mod child;
pub mod clock;
pub mod device;
pub mod diag;
pub mod file;
pub mod guest;
pub mod namespace;
pub mod option;
pub mod process;
pub mod scratch;
pub mod sctp;
pub mod socket;

use std::io;

/// Turns the `-1` of a system call into the error it left in `errno`.
fn check(returned: libc::c_int) -> io::Result<libc::c_int> {
    if returned == -1 { Err(io::Error::last_os_error()) } else { Ok(returned) }
}

/// The same for calls that return a length.
fn check_len(returned: libc::ssize_t) -> io::Result<usize> {
    usize::try_from(returned).map_err(|_| io::Error::last_os_error())
}
