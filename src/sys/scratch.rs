//! Folders that last as long as the process that uses them: each is held by a lock (`flock(2)`), which the kernel lets go when the process is
//! killed, and whoever comes next takes away what nobody holds.

use std::fs::{self, DirEntry, File};
use std::io;
use std::path::Path;

/// Holds a folder until the file is closed.
///
/// # Errors
/// What `open(2)` and `flock(2)` say.
pub fn hold(folder: &Path) -> io::Result<File> {
    let file = File::open(folder)?;
    file.lock()?;
    Ok(file)
}

/// Takes away the folders in one that are such and that nobody holds. What cannot be taken away is another user's, or does no harm.
pub fn sweep_up(below: &Path, is_one: impl Fn(&DirEntry, &str) -> bool) {
    let Ok(entries) = fs::read_dir(below) else { return };
    for entry in entries.flatten() {
        if entry.file_type().is_ok_and(|kind| kind.is_dir())
            && is_one(&entry, &entry.file_name().to_string_lossy())
            && let Ok(lock) = File::open(entry.path())
            && lock.try_lock().is_ok()
        {
            let _ = fs::remove_dir_all(entry.path());
        }
    }
}
