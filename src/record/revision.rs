//! The git revision of the folder that a sweep file lies in.

use std::path::Path;
use std::process::{Command, Stdio};

use serde::{Deserialize, Serialize};

/// A state of a git checkout.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Revision {
    /// The commit, in full.
    pub commit: String,
    /// Whether tracked files differ from it. `None` if git could not tell.
    pub dirty: Option<bool>,
}

impl Revision {
    /// The revision of the folder that holds `file`: `None` outside a checkout, before its first commit and without git.
    pub fn of_folder_of(file: &Path) -> Option<Self> {
        let folder = file.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
        let commit = git(folder, &["rev-parse", "--verify", "--quiet", "HEAD"])?.trim().to_owned();
        let dirty = git(folder, &["status", "--porcelain", "--untracked-files=no"]).map(|changes| !changes.is_empty());
        Some(Self { commit, dirty })
    }
}

/// What git says about a folder, or `None` if it fails. It takes no lock, so a commit made meanwhile is not disturbed.
fn git(folder: &Path, arguments: &[&str]) -> Option<String> {
    let output = Command::new("git")
        .args(["--no-optional-locks", "-C"])
        .arg(folder)
        .args(arguments)
        .stdin(Stdio::null())
        .stderr(Stdio::null())
        .output()
        .ok()?;
    output.status.success().then(|| String::from_utf8_lossy(&output.stdout).into_owned())
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::process::Command;

    use super::{Revision, git};

    #[test]
    fn a_checkout_is_known_and_its_changes_are_seen() {
        if Command::new("git").arg("--version").output().is_err() {
            eprintln!("skipped: git is not installed");
            return;
        }
        let folder = tempfile::tempdir().expect("a folder");
        let file = folder.path().join("a.toml");
        fs::write(&file, "a").expect("written");
        assert_eq!(Revision::of_folder_of(&file), None, "no checkout");
        git(folder.path(), &["init", "--quiet"]).expect("init");
        assert_eq!(Revision::of_folder_of(&file), None, "no commit");
        git(folder.path(), &["add", "a.toml"]).expect("add");
        let author = ["-c", "user.name=n", "-c", "user.email=e", "-c", "commit.gpgsign=false"];
        let commit = [&author[..], &["commit", "--quiet", "--no-verify", "-m", "m"]].concat();
        git(folder.path(), &commit).expect("commit");
        let clean = Revision::of_folder_of(&file).expect("a revision");
        assert_eq!((clean.commit.len(), clean.dirty), (40, Some(false)));
        fs::write(&file, "b").expect("written");
        assert_eq!(Revision::of_folder_of(&file), Some(Revision { dirty: Some(true), ..clean }));
    }
}
