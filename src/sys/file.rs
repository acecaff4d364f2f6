//! Files with holes.

use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;

/// Where the next data of a file begins, at or after an offset: `lseek(2)` with `SEEK_DATA`. `None` if only a hole follows. A
/// file system without holes says that all of the file is data.
///
/// # Errors
/// What `lseek(2)` says.
pub fn next_data(file: &File, from: u64) -> io::Result<Option<u64>> {
    let from = libc::off_t::try_from(from).map_err(io::Error::other)?;
    // SAFETY: `lseek` touches no memory of ours; the descriptor is open during the call.
    let found = unsafe { libc::lseek(file.as_raw_fd(), from, libc::SEEK_DATA) };
    match u64::try_from(found) {
        Ok(at) => Ok(Some(at)),
        Err(_) => match io::Error::last_os_error() {
            error if error.raw_os_error() == Some(libc::ENXIO) => Ok(None),
            error => Err(error),
        },
    }
}
