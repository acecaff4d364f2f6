//! Files that are there whole or not at all.

use std::ffi::OsStr;
use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use super::error::StoreError;

/// Puts `contents` where a reader sees either the old file or the new one, also after a crash: a temporary file beside
/// it is written, synchronised and renamed over it.
///
/// # Errors
/// If the folder cannot be written to or has no room. The old file is then as it was, and nothing else is left behind.
pub fn write_atomically(path: &Path, contents: &[u8]) -> Result<(), StoreError> {
    let folder = folder_of(path);
    let write = || -> io::Result<()> {
        let mut options = tempfile::Builder::new();
        // The default of a temporary file is to be the owner's alone. What a run leaves is for everyone who may look.
        let mut temporary = options.prefix(TEMPORARY).permissions(world_readable()).tempfile_in(folder)?;
        // Tells `sweep_up` that somebody is at it. Where that cannot be told nothing is swept up either.
        let _ = temporary.as_file().try_lock();
        temporary.write_all(contents)?;
        temporary.as_file().sync_all()?;
        temporary.persist(path).map_err(|error| error.error)?;
        sync_folder(folder)
    };
    write().map_err(StoreError::io("write", path))
}

/// How the name of a temporary file begins.
const TEMPORARY: &str = ".new-";

/// Whether a file of that name is one that [`write_atomically`] leaves if it is killed.
pub(super) fn is_temporary(name: &OsStr) -> bool {
    name.to_string_lossy().starts_with(TEMPORARY)
}

/// Takes away what processes that were killed while they wrote left in a folder.
pub(super) fn sweep_up(folder: &Path) {
    let Ok(entries) = fs::read_dir(folder) else { return };
    for entry in entries.flatten().filter(|entry| is_temporary(&entry.file_name())) {
        // A writer that lives holds its file. What cannot be taken away does no harm.
        if File::open(entry.path()).is_ok_and(|file| file.try_lock().is_ok()) {
            let _ = fs::remove_file(entry.path());
        }
    }
}

/// Makes a folder for what is to be written, with those that it lies in.
///
/// # Errors
/// If it cannot be made, or something else has its name.
pub fn ensure_folder(folder: &Path) -> Result<(), StoreError> {
    fs::create_dir_all(folder).map_err(StoreError::io("make the folder", folder))
}

/// Readable by all and writable by the owner, less what the umask takes away.
fn world_readable() -> fs::Permissions {
    use std::os::unix::fs::PermissionsExt;
    fs::Permissions::from_mode(0o644)
}

/// The folder that a path lies in.
fn folder_of(path: &Path) -> &Path {
    path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

/// Makes the names in a folder outlast a crash.
pub(super) fn sync_folder(folder: &Path) -> io::Result<()> {
    File::open(folder)?.sync_all()
}

/// Points the symbolic link `link` to `target` (relative to the link's folder) in one step.
///
/// # Errors
/// If `link` exists and is no symbolic link, or its folder cannot be written to.
pub(super) fn swap_link(link: &Path, target: &Path) -> Result<(), StoreError> {
    if fs::symlink_metadata(link).is_ok_and(|there| !there.file_type().is_symlink()) {
        return Err(StoreError::LatestIsNotALink(link.to_owned()));
    }
    let swap = || -> io::Result<()> {
        let temporary = temporary_link(folder_of(link), target)?;
        fs::rename(&temporary, link).inspect_err(|_| {
            // The error that matters is the rename's.
            let _ = fs::remove_file(&temporary);
        })
    };
    swap().map_err(StoreError::io("replace the link", link))
}

/// A symbolic link to `target` under a name that nobody else uses.
fn temporary_link(folder: &Path, target: &Path) -> io::Result<PathBuf> {
    let link =
        tempfile::Builder::new().prefix(".latest-").make_in(folder, |path| std::os::unix::fs::symlink(target, path))?;
    Ok(link.into_temp_path().keep()?)
}

/// Writes and deletes a file of `bytes` bytes in `folder`, to learn whether there is room for what is to come.
///
/// # Errors
/// If the folder cannot be written to or has less room.
pub(super) fn probe_room(folder: &Path, bytes: u64) -> Result<(), StoreError> {
    // Not zeros: a file system may store those in no room at all.
    let block: Vec<u8> = (0..=u8::MAX).cycle().map(|byte| byte.wrapping_mul(167)).take(1 << 16).collect();
    let probe = || -> io::Result<()> {
        let mut file = tempfile::tempfile_in(folder)?;
        let mut left = bytes;
        while left > 0 {
            let part = usize::try_from(left).unwrap_or(usize::MAX).min(block.len());
            file.write_all(&block[..part])?;
            left -= part as u64;
        }
        file.sync_data()
    };
    probe().map_err(StoreError::io("make room for the records in", folder))
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::path::Path;

    use super::{StoreError, ensure_folder, probe_room, swap_link, sweep_up, write_atomically};

    #[test]
    fn a_file_is_replaced_and_nothing_stays_beside_it() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("manifest.json");
        write_atomically(&path, b"old").expect("written");
        write_atomically(&path, b"new").expect("replaced");
        assert_eq!(fs::read(&path).expect("read"), b"new");
        assert_eq!(fs::read_dir(folder.path()).expect("listed").count(), 1);
        write_atomically(&folder.path().join("no/such"), b"").expect_err("no folder");
    }

    #[test]
    fn a_link_is_swapped_but_a_folder_is_not() {
        let folder = tempfile::tempdir().expect("a folder");
        let link = folder.path().join("latest");
        swap_link(&link, Path::new("first")).expect("made, though dangling");
        swap_link(&link, Path::new("second")).expect("swapped");
        assert_eq!(fs::read_link(&link).expect("a link"), Path::new("second"));
        assert_eq!(fs::read_dir(folder.path()).expect("listed").count(), 1);

        fs::remove_file(&link).expect("removed");
        fs::create_dir(&link).expect("a real folder");
        let error = swap_link(&link, Path::new("third")).expect_err("a folder is in the way");
        assert!(matches!(error, StoreError::LatestIsNotALink(_)), "{error}");
    }

    #[test]
    fn what_a_killed_writer_left_is_swept_up_and_nothing_else() {
        let folder = tempfile::tempdir().expect("a folder");
        for name in [".new-dead", ".new-alive", "manifest.json"] {
            fs::write(folder.path().join(name), "half").expect("written");
        }
        let alive = fs::File::open(folder.path().join(".new-alive")).expect("there");
        alive.lock().expect("held");
        sweep_up(folder.path());
        let mut left: Vec<_> =
            fs::read_dir(folder.path()).expect("listed").map(|entry| entry.expect("read").file_name()).collect();
        left.sort();
        assert_eq!(left, [".new-alive", "manifest.json"]);
    }

    #[test]
    fn an_error_names_the_file_that_was_meant_and_says_what_is_in_the_way() {
        let folder = tempfile::tempdir().expect("a folder");
        let file = folder.path().join("file");
        fs::write(&file, "").expect("written");
        let said = |error: StoreError| error.to_string().replace(&folder.path().display().to_string(), "DIR");
        assert_eq!(
            said(ensure_folder(&file).expect_err("a file")),
            "cannot make the folder `DIR/file`: File exists (os error 17); there is a file of that name: name another folder"
        );
        assert_eq!(
            said(write_atomically(&folder.path().join("no/such"), b"").expect_err("no folder")),
            "cannot write `DIR/no/such`: No such file or directory (os error 2); check the path"
        );
    }

    #[test]
    fn the_probe_leaves_nothing() {
        let folder = tempfile::tempdir().expect("a folder");
        probe_room(folder.path(), 100_000).expect("room");
        assert_eq!(fs::read_dir(folder.path()).expect("listed").count(), 0);
        probe_room(Path::new("/proc"), 1).expect_err("nothing can be written there");
    }
}
