//! A folder for the programs of one repeat.

use std::fs::{self, DirBuilder, File};
use std::io::{self, ErrorKind};
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use crate::sys::scratch;

/// A folder that is removed with this.
#[derive(Debug)]
pub(in crate::workload) struct Scratch {
    path: PathBuf,
    /// Held while it is in use; the kernel lets go when the process dies.
    _lock: File,
}

impl Scratch {
    /// Makes one below the system's folder for such things. Its name is not random: it stands in command lines, and in virtual time all of
    /// these are to be the same.
    pub(in crate::workload) fn make() -> io::Result<Self> {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        let parent = std::env::temp_dir();
        fs::create_dir_all(&parent)?;
        loop {
            let number = NEXT.fetch_add(1, Ordering::Relaxed);
            if number == 0 {
                sweep_up(&parent);
            }
            let path = parent.join(format!("sweep-{}-{number}", std::process::id()));
            match DirBuilder::new().mode(0o700).create(&path) {
                Ok(()) => {
                    let lock = scratch::hold(&path)?;
                    return Ok(Self { path, _lock: lock });
                }
                // Left by a process of the same number that was killed.
                Err(error) if error.kind() == ErrorKind::AlreadyExists => {}
                Err(error) => return Err(error),
            }
        }
    }

    pub(in crate::workload) fn path(&self) -> String {
        self.path.display().to_string()
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        // What cannot be removed is in the system's folder for such things.
        let _ = fs::remove_dir_all(&self.path);
    }
}

/// Takes away the folders of processes that were killed: neither is there such a process, nor does anybody hold the folder.
fn sweep_up(parent: &Path) {
    scratch::sweep_up(parent, |_, name| {
        let numbers = name.strip_prefix("sweep-").and_then(|rest| rest.split_once('-'));
        numbers.is_some_and(|(process, number)| {
            let is_one = process.parse::<u32>().is_ok() && number.parse::<u64>().is_ok();
            is_one && !Path::new("/proc").join(process).exists()
        })
    });
}

#[cfg(test)]
mod tests {
    use super::{Scratch, sweep_up};
    use std::path::Path;

    #[test]
    fn each_is_its_own_and_goes_with_all_in_it() {
        let (one, other) = (Scratch::make().expect("made"), Scratch::make().expect("made"));
        assert_ne!(one.path(), other.path());
        let path = one.path();
        std::fs::write(Path::new(&path).join("file"), "x").expect("written");
        drop(one);
        assert!(!Path::new(&path).exists() && Path::new(&other.path()).exists());
    }

    #[test]
    fn what_a_killed_process_left_is_taken_away_and_nothing_else() {
        let parent = tempfile::tempdir().expect("a folder");
        // No process has a number as large (PID_MAX_LIMIT).
        let living = format!("sweep-{}-0", std::process::id());
        for name in ["sweep-4194999-0", "sweep-4194999-1", &living, "sweep-vm-a", "sweep-4194999-x", "other"] {
            std::fs::create_dir(parent.path().join(name)).expect("made");
            std::fs::write(parent.path().join(name).join("file"), "x").expect("written");
        }
        // As in a container that shares the folder and has process numbers of its own.
        let held = std::fs::File::open(parent.path().join("sweep-4194999-1")).expect("there");
        held.lock().expect("held");
        sweep_up(parent.path());
        let mut left: Vec<_> =
            std::fs::read_dir(parent.path()).expect("listed").map(|entry| entry.expect("read").file_name()).collect();
        left.sort();
        let mut wanted = ["other", "sweep-4194999-1", "sweep-4194999-x", &living, "sweep-vm-a"];
        wanted.sort_unstable();
        assert_eq!(left, wanted);
    }
}
