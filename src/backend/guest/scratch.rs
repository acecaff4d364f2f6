//! Folders for guests that last as long as the process that uses them.

use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use tempfile::TempDir;

use crate::sys::scratch;

/// How old a folder is that is taken away: between its making and its lock lies a moment.
const AGE: Duration = Duration::from_secs(10);

/// A folder of this process.
#[derive(Debug)]
pub(super) struct Scratch {
    folder: TempDir,
    /// Held while it is in use.
    _lock: File,
}

impl Scratch {
    /// A new folder below another one, whose name begins so.
    pub(super) fn new(below: &Path, prefix: &str) -> io::Result<Self> {
        let folder = tempfile::Builder::new().prefix(prefix).tempdir_in(below)?;
        let lock = scratch::hold(folder.path())?;
        Ok(Self { folder, _lock: lock })
    }

    pub(super) fn path(&self) -> &Path {
        self.folder.path()
    }

    /// Keeps it from being taken away with the value; its name is for the caller to change.
    pub(super) fn keep(self) -> PathBuf {
        self.folder.keep()
    }

    /// Takes away the folders of that prefix whose processes are gone.
    pub(super) fn sweep_up(below: &Path, prefix: &str) {
        let is_old = |time: SystemTime| time.elapsed().is_ok_and(|age| age >= AGE);
        scratch::sweep_up(below, |entry, name| {
            name.starts_with(prefix) && entry.metadata().and_then(|facts| facts.modified()).is_ok_and(is_old)
        });
    }
}

#[cfg(test)]
mod tests {
    use std::fs::{self, File};
    use std::time::{Duration, SystemTime};

    use super::{AGE, Scratch};

    #[test]
    fn what_a_killed_process_left_is_taken_away_and_nothing_else() {
        let below = tempfile::tempdir().expect("a folder");
        let age = |name: &str, age: Duration| {
            let path = below.path().join(name);
            fs::create_dir_all(&path).expect("made");
            fs::write(path.join("memory"), "much").expect("written");
            File::open(&path).and_then(|folder| folder.set_modified(SystemTime::now() - age)).expect("aged");
        };
        drop(Scratch::new(below.path(), "vm-").expect("a folder"));
        assert_eq!(fs::read_dir(below.path()).expect("listed").count(), 0, "it goes with its value");

        let alive = Scratch::new(below.path(), "vm-").expect("a folder");
        let name = alive.path().file_name().and_then(|name| name.to_str()).expect("a name").to_owned();
        age(&name, AGE * 2);
        age("vm-dead", AGE * 2);
        age("vm-new", Duration::ZERO);
        age("other", AGE * 2);
        Scratch::sweep_up(below.path(), "vm-");
        let mut left: Vec<_> =
            fs::read_dir(below.path()).expect("listed").map(|entry| entry.expect("read").file_name()).collect();
        left.sort();
        let mut wanted = vec![name.as_str(), "other", "vm-new"];
        wanted.sort_unstable();
        assert_eq!(left, wanted);

        let kept = alive.keep();
        assert!(kept.is_dir());
    }
}
