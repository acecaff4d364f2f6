//! Programs by their name: where they are on this machine, and where the guest's shell and kernel will look for them.

use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;

use super::Error;

/// `PATH` in a guest.
pub(in crate::backend::guest) const GUEST_PATH: &str = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";
/// Where a program gets a link that is on this machine's `PATH` but not on the guest's.
pub(super) const GUEST_OWN: &str = "usr/local/bin";

/// Looks a program up in `PATH`, as `execvp(3)` does.
///
/// # Errors
/// When it is in none of the folders.
pub(super) fn find(name: &str, package: Option<&str>, by: &str) -> Result<PathBuf, Error> {
    let path = std::env::var_os("PATH").unwrap_or_else(|| GUEST_PATH.into());
    let is_program = |path: &PathBuf| {
        path.metadata().is_ok_and(|metadata| metadata.is_file() && metadata.permissions().mode() & 0o111 != 0)
    };
    std::env::split_paths(&path)
        .filter(|folder| folder.is_absolute())
        .map(|folder| folder.join(name))
        .find(is_program)
        .ok_or_else(|| Error::NotInstalled {
            program: name.to_owned(),
            by: by.to_owned(),
            package: package.map(str::to_owned),
        })
}
