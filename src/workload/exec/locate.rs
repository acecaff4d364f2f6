//! Where a program is.

use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use crate::settings::Program;

/// Where programs are looked up if `PATH` is not set, as it is in a guest.
pub(super) const DEFAULT_PATH: &str = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

/// Why there is no such program.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Absent {
    /// Nothing by that name.
    #[error("`{name}` is not installed here{}", install(.package.as_ref()))]
    NotInstalled {
        /// The name as the sweep has it.
        name: String,
        /// The package to install.
        package: Option<String>,
    },
    /// Something by that name that cannot be run.
    #[error("`{path}` {why}")]
    Unusable {
        /// Where it lies.
        path: String,
        /// What is wrong with it.
        why: &'static str,
    },
}

fn install(package: Option<&String>) -> String {
    package.map_or_else(
        || ": install it, or write its path".to_owned(),
        |package| format!(": install the package `{package}`"),
    )
}

/// Finds a program: its name in `PATH`, or its path, which is below the folder of the sweep file if it is not absolute.
///
/// # Errors
/// When there is none, or none that can be run.
pub fn locate(program: &Program, word: &str, dir: &str) -> Result<PathBuf, Absent> {
    let absent = || Absent::NotInstalled { name: word.to_owned(), package: program.package.clone() };
    if word.contains('/') {
        let path = Path::new(dir).join(word);
        return match is_usable(&path) {
            Ok(true) => Ok(path),
            Ok(false) => Err(absent()),
            Err(why) => Err(Absent::Unusable { path: path.display().to_string(), why }),
        };
    }
    let path = search_path();
    let mut unusable = None;
    for folder in std::env::split_paths(&path) {
        let path = folder.join(word);
        match is_usable(&path) {
            Ok(true) => return Ok(path),
            Ok(false) => {}
            Err(why) => unusable = unusable.or(Some((path, why))),
        }
    }
    Err(unusable.map_or_else(absent, |(path, why)| Absent::Unusable { path: path.display().to_string(), why }))
}

/// Where programs are looked up.
pub(super) fn search_path() -> String {
    std::env::var("PATH").ok().filter(|path| !path.is_empty()).unwrap_or_else(|| DEFAULT_PATH.to_owned())
}

/// Whether there is a file that can be run; what is wrong with one that cannot.
fn is_usable(path: &Path) -> Result<bool, &'static str> {
    match path.metadata() {
        Err(_) => Ok(false),
        Ok(facts) if facts.is_dir() => Err("is a folder, and no program"),
        Ok(facts) if facts.permissions().mode() & 0o111 == 0 => {
            Err("is not executable: chmod +x, or name its interpreter first")
        }
        Ok(_) => Ok(true),
    }
}

#[cfg(test)]
mod tests {
    use super::{Absent, locate};
    use crate::settings::Program;
    use std::fs;
    use std::path::Path;

    #[test]
    fn names_are_looked_up_and_paths_are_below_the_folder() {
        let folder = tempfile::tempdir().expect("a folder");
        let dir = folder.path().to_str().expect("a name");
        let program = Program { package: Some("tool-pkg".into()), ..Program::default() };
        let find = |word: &str| locate(&program, word, dir);
        assert!(find("sh").expect("a shell").ends_with("sh"));
        assert_eq!(find("/bin/sh").as_deref(), Ok(Path::new("/bin/sh")));
        let absent = find("no-such-tool").expect_err("absent");
        assert_eq!(absent.to_string(), "`no-such-tool` is not installed here: install the package `tool-pkg`");
        assert!(matches!(find("./mine"), Err(Absent::NotInstalled { .. })));
        fs::write(folder.path().join("mine"), "#!/bin/sh\n").expect("written");
        let message = find("./mine").expect_err("not executable").to_string();
        assert!(message.contains("mine` is not executable"), "{message}");
        let message = find("/usr").expect_err("a folder").to_string();
        assert!(message.contains("is a folder"), "{message}");
    }
}
