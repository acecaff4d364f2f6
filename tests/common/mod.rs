//! What the tests of the whole program share.

#![allow(dead_code, unreachable_pub, clippy::allow_attributes, reason = "each test binary uses a part of this")]

pub mod cells;

use std::path::{Path, PathBuf};
use std::process::Output;

use assert_cmd::Command;
use serde_json::Value;

/// The program under test.
pub const PROGRAM: &str = env!("CARGO_BIN_EXE_sweep");

/// A folder with a sweep in it, in which the program is run.
pub struct Workshop {
    pub folder: tempfile::TempDir,
}

impl Workshop {
    /// With a sweep of that text as `sweep.toml`.
    pub fn new(sweep: &str) -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        std::fs::write(folder.path().join("sweep.toml"), sweep).expect("written");
        Self { folder }
    }

    pub fn path(&self) -> &Path {
        self.folder.path()
    }

    /// The program, in this folder, with these arguments.
    pub fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(PROGRAM);
        command.current_dir(self.path()).args(arguments).env_remove("GITHUB_STEP_SUMMARY");
        command
    }

    /// Runs it; the exit code and what it printed.
    pub fn run(&self, arguments: &[&str]) -> Ran {
        Ran::from(self.command(arguments).output().expect("the program starts"))
    }

    /// The records of a run below `results`.
    pub fn records(&self, run: &str) -> Vec<Value> {
        records(&self.path().join("results").join(run))
    }
}

/// The records in the folder of a run.
pub fn records(run: &Path) -> Vec<Value> {
    let text = std::fs::read_to_string(run.join("records.jsonl")).expect("records");
    text.lines().map(|line| serde_json::from_str(line).expect("a record")).collect()
}

/// How the program ended.
#[derive(Debug)]
pub struct Ran {
    pub code: Option<i32>,
    pub out: String,
    pub err: String,
}

impl From<Output> for Ran {
    fn from(output: Output) -> Self {
        Self {
            code: output.status.code(),
            out: String::from_utf8_lossy(&output.stdout).into_owned(),
            err: String::from_utf8_lossy(&output.stderr).into_owned(),
        }
    }
}

impl Ran {
    /// Fails the test, with all that was printed, if the program ended otherwise.
    #[track_caller]
    pub fn expect(self, code: i32) -> Self {
        assert_eq!(self.code, Some(code), "stdout:\n{}\nstderr:\n{}", self.out, self.err);
        self
    }
}

/// Each repeat of each cell as one text, sorted, so that a missing or doubled one shows.
pub fn repeats(records: &[Value]) -> Vec<String> {
    let mut keys: Vec<_> = records.iter().map(|r| format!("{} {} {}", r["cell"], r["repeat"], r["warmup"])).collect();
    keys.sort_unstable();
    keys
}

/// The folder in which this user's kernels and frozen machines are kept.
pub fn cache() -> PathBuf {
    let home = || std::env::var_os("HOME").map(|home| PathBuf::from(home).join(".cache"));
    std::env::var_os("XDG_CACHE_HOME").map(PathBuf::from).or_else(home).expect("a home").join("sweep")
}

/// A cache of a test's own that shares the kernels of the user's: what an earlier run of the tests left is not in it.
pub struct Cache(tempfile::TempDir);

impl Cache {
    pub fn new() -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let kernels = cache().join("kernels");
        std::fs::create_dir_all(&kernels).expect("a store");
        std::fs::create_dir(folder.path().join("sweep")).expect("a folder");
        for name in ["kernels", "apt"] {
            std::os::unix::fs::symlink(cache().join(name), folder.path().join("sweep").join(name)).expect("a link");
        }
        Self(folder)
    }

    /// What `XDG_CACHE_HOME` is to be.
    pub fn path(&self) -> &Path {
        self.0.path()
    }

    /// Runs the program with this cache.
    pub fn run(&self, workshop: &Workshop, arguments: &[&str]) -> Ran {
        let mut command = workshop.command(arguments);
        Ran::from(command.env("XDG_CACHE_HOME", self.path()).output().expect("the program starts"))
    }

    /// The folders of the frozen machines in it.
    pub fn machines(&self) -> Vec<PathBuf> {
        let machines = std::fs::read_dir(self.path().join("sweep/machines")).expect("machines");
        machines.map(|entry| entry.expect("an entry").path()).filter(|path| path.is_dir()).collect()
    }
}

/// Whether the tests run as root. Says which test is left out where they do not.
pub fn root_or_skip(test: &str) -> bool {
    let root = std::fs::read_to_string("/proc/self/status")
        .expect("proc")
        .lines()
        .any(|line| line.starts_with("Uid:") && line.split_whitespace().nth(2) == Some("0"));
    if !root {
        eprintln!("SKIPPED: {test} needs root");
    }
    root
}
