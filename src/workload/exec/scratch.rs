//! A folder for the programs of one repeat.

use std::fs::{self, DirBuilder};
use std::io::{self, ErrorKind};
use std::os::unix::fs::DirBuilderExt;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};

/// A folder that is removed with this.
#[derive(Debug)]
pub(in crate::workload) struct Scratch(PathBuf);

impl Scratch {
    /// Makes one below the system's folder for such things. Its name is not random: it stands in command lines, and in virtual time all of
    /// these are to be the same.
    pub(in crate::workload) fn make() -> io::Result<Self> {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        let parent = std::env::temp_dir();
        fs::create_dir_all(&parent)?;
        loop {
            let number = NEXT.fetch_add(1, Ordering::Relaxed);
            let path = parent.join(format!("sweep-{}-{number}", std::process::id()));
            match DirBuilder::new().mode(0o700).create(&path) {
                Ok(()) => return Ok(Self(path)),
                // Left by a process of the same number that was killed.
                Err(error) if error.kind() == ErrorKind::AlreadyExists => {}
                Err(error) => return Err(error),
            }
        }
    }

    pub(in crate::workload) fn path(&self) -> String {
        self.0.display().to_string()
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        // What cannot be removed is in the system's folder for such things.
        let _ = fs::remove_dir_all(&self.0);
    }
}

#[cfg(test)]
mod tests {
    use super::Scratch;
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
}
