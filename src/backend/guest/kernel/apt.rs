//! `apt-get` with a state of its own, in the cache: the host's package database, lists and sources stay untouched.
//!
//! The sources are made at run time from the mirror that the host already uses, with the suites of all living Debian
//! releases. A suite that the mirror lacks costs nothing but itself.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use super::index::{FORMAT, Index, Offer};
use super::{Error, Progress, Result};
use crate::sys::process;
use crate::units::Bytes;

/// Releases whose suites are looked through, besides the host's own.
const RELEASES: [&str; 5] = ["bullseye", "bookworm", "trixie", "forky", "sid"];
/// Names under which a host's sources may have Debian's releases.
const ALIASES: [&str; 5] = ["stable", "oldstable", "oldoldstable", "testing", "unstable"];
/// How long package lists are used before they are fetched again.
const FRESH: Duration = Duration::from_hours(24);
/// How long they are not fetched again even if they lack what is asked for.
const RECENT: Duration = Duration::from_mins(10);
/// Less room than this may be why something failed: the lists take as much, and so does a kernel.
const LITTLE_ROOM: u64 = 100 << 20;
/// Keys that sign Debian's archive, on every Debian.
const KEYRING: &str = "/usr/share/keyrings/debian-archive-keyring.gpg";
/// Reads a package list however apt compressed it.
const APT_HELPER: &str = "/usr/lib/apt/apt-helper";

/// A private apt state.
#[derive(Debug)]
pub(crate) struct Apt {
    dir: PathBuf,
    arch: &'static str,
    image: String,
}

impl Apt {
    /// A state in `dir`, to look for `image` (which is named in messages).
    pub(crate) fn new(dir: PathBuf, arch: &'static str, image: String) -> Self {
        Self { dir, arch, image }
    }

    /// What the mirror has, from lists no older than a day if they can be had.
    pub(crate) fn index(&self, progress: Progress<'_>) -> Result<Index> {
        match self.stored_index() {
            Some(index) if age(&index) < FRESH => Ok(index),
            Some(index) => match self.refresh(progress) {
                Err(Error::Offline { .. }) => {
                    progress(&format!(
                        "the package lists could not be fetched; using those of {} days ago",
                        age(&index).as_secs() / 86_400
                    ));
                    Ok(index)
                }
                other => other,
            },
            None => self.refresh(progress),
        }
    }

    fn stored_index(&self) -> Option<Index> {
        let index: Index = serde_json::from_slice(&fs::read(self.dir.join("index.json")).ok()?).ok()?;
        let lists_are_there = fs::read_dir(self.dir.join("lists")).ok()?.count() > 1;
        (index.format == FORMAT && lists_are_there).then_some(index)
    }

    /// Fetches the lists and reads them.
    pub(crate) fn refresh(&self, progress: Progress<'_>) -> Result<Index> {
        self.prepare()?;
        progress("fetching Debian's package lists (about 50 MB the first time)");
        let output = self.apt_get(&["update"])?;
        let fetched = String::from_utf8_lossy(&output.stdout)
            .lines()
            .any(|line| line.starts_with("Get:") || line.starts_with("Hit:"));
        if !fetched {
            return Err(Error::Offline { message: self.with_room(last_lines(&output)) });
        }
        progress("reading the package lists");
        let mut index = Index { format: FORMAT, fetched: now(), packages: Vec::new() };
        let targets = self.apt_get(&["indextargets", "--format", "$(RELEASE) $(FILENAME)", "Created-By: Packages"])?;
        for line in String::from_utf8_lossy(&targets.stdout).lines() {
            let Some((suite, file)) = line.split_once(' ') else {
                continue;
            };
            if Path::new(file).exists() {
                index.read_list(&self.read_list(file)?, suite, self.arch);
            }
        }
        if index.packages.is_empty() {
            // Lists were fetched but none could be used: for want of a signing key, for example.
            return Err(self.failed("apt-get update", &output));
        }
        let json = serde_json::to_vec(&index).map_err(|e| Error::Io {
            action: "write",
            path: self.dir.join("index.json"),
            source: e.into(),
        })?;
        let (new, path) = (self.dir.join("index.json.new"), self.dir.join("index.json"));
        fs::write(&new, json).map_err(Error::io("write", &new))?;
        fs::rename(&new, &path).map_err(Error::io("write", &path))?;
        Ok(index)
    }

    /// What failed, with what apt does not say: that there is no room.
    fn failed(&self, program: &str, output: &Output) -> Error {
        let message = self.with_room(last_lines(output));
        Error::ProgramFailed { program: program.to_owned(), status: output.status.to_string(), message }
    }

    fn with_room(&self, message: String) -> String {
        match process::free_space(&self.dir) {
            Ok(free) if free < LITTLE_ROOM => format!("{message}; {}", little_room(free, &self.dir)),
            _ => message,
        }
    }

    fn read_list(&self, file: &str) -> Result<String> {
        let mut command = self.command(APT_HELPER);
        command.args(["cat-file", file]);
        let output = run(&mut command, &self.image)?;
        if !output.status.success() {
            return Err(self.failed("apt-helper cat-file", &output));
        }
        Ok(String::from_utf8_lossy(&output.stdout).into_owned())
    }

    /// Downloads the packages of a kernel into a folder.
    pub(crate) fn download(&self, offer: &Offer, into: &Path, progress: Progress<'_>) -> Result<Vec<PathBuf>> {
        progress(&format!("downloading Linux {} ({} MB)", offer.release, offer.size().div_ceil(1_000_000)));
        let mut command = self.command("apt-get");
        command.current_dir(into).arg("download");
        command.args(offer.packages.iter().map(|p| format!("{}={}", p.name, p.version)));
        let output = run(&mut command, &self.image)?;
        if !output.status.success() {
            return Err(self.failed("apt-get download", &output));
        }
        let debs = super::deb::debs_in(into)?;
        if debs.len() < offer.packages.len() {
            return Err(self.failed("apt-get download", &output));
        }
        Ok(debs)
    }

    /// Writes the configuration and the sources.
    fn prepare(&self) -> Result<()> {
        for sub in ["lists/partial", "cache/archives/partial", "empty/partial"] {
            let dir = self.dir.join(sub);
            fs::create_dir_all(&dir).map_err(Error::io("create", &dir))?;
        }
        self.write("status", "")?;
        self.write("apt.conf", &self.configuration()?)?;
        let mirror = self.mirror()?;
        self.write("sources.list", &mirror.sources(self.arch, &codename()))
    }

    fn write(&self, name: &str, text: &str) -> Result<()> {
        let path = self.dir.join(name);
        fs::write(&path, text).map_err(Error::io("write", &path))
    }

    /// apt reads this file after the host's own configuration, whose proxies and certificates stay in force. Its hooks
    /// do not: they are for the host's own lists.
    fn configuration(&self) -> Result<String> {
        let dir = self.dir.display().to_string();
        if dir.contains(['"', '\\', '\n']) {
            return Err(Error::NoCache { tried: format!("`{dir}` has a character that apt-get cannot take") });
        }
        let arch = self.arch;
        Ok(format!(
            r#"#clear APT::Update::Pre-Invoke;
#clear APT::Update::Post-Invoke;
#clear APT::Update::Post-Invoke-Success;
Dir::State "{dir}";
Dir::State::lists "{dir}/lists";
Dir::State::status "{dir}/status";
Dir::Cache "{dir}/cache";
Dir::Cache::archives "{dir}/cache/archives";
Dir::Cache::pkgcache "";
Dir::Cache::srcpkgcache "";
Dir::Etc::sourcelist "{dir}/sources.list";
Dir::Etc::sourceparts "/dev/null";
Dir::Etc::preferences "/dev/null";
Dir::Etc::preferencesparts "/dev/null";
APT::Architecture "{arch}";
APT::Sandbox::User "root";
APT::Get::List-Cleanup "true";
Acquire::Languages "none";
Acquire::GzipIndexes "true";
Acquire::Retries "1";
"#
        ))
    }

    /// The mirror that the host's own sources name.
    fn mirror(&self) -> Result<Mirror> {
        let mut command = plain("apt-get");
        command.args(["indextargets", "--format", "$(ORIGIN) $(REPO_URI) $(RELEASE)", "Created-By: Packages"]);
        let output = run(&mut command, &self.image)?;
        let known = String::from_utf8_lossy(&output.stdout).into_owned();
        let debian = known.lines().filter_map(|line| {
            let mut words = line.rsplitn(3, ' ');
            let (release, uri, origin) = (words.next()?, words.next()?, words.next()?);
            (origin == "Debian").then(|| (uri.to_owned(), release.to_owned()))
        });
        if let Some(mirror) = Mirror::of(debian.collect()) {
            return Ok(mirror);
        }
        // A host that has never updated (a fresh container) knows no origins: go by the names of the releases.
        let mut command = plain("apt-get");
        command.arg("-o");
        command.arg(format!("Dir::State::lists={}", self.dir.join("empty").display()));
        command.args(["--print-uris", "update"]);
        let output = run(&mut command, &self.image)?;
        let uris = String::from_utf8_lossy(&output.stdout).into_owned();
        Mirror::of(uris.lines().filter_map(release_file).collect())
            .ok_or_else(|| Error::NoMirror { image: self.image.clone() })
    }

    fn command(&self, program: &str) -> Command {
        let mut command = plain(program);
        command.arg("-c").arg(self.dir.join("apt.conf"));
        command
    }

    fn apt_get(&self, args: &[&str]) -> Result<Output> {
        run(self.command("apt-get").args(args), &self.image)
    }
}

/// `'http://…/debian/dists/bookworm/InRelease' …` to the archive's address and the release.
fn release_file(line: &str) -> Option<(String, String)> {
    let uri = line.strip_prefix('\'')?.split('\'').next()?;
    let (base, rest) = uri.split_once("/dists/")?;
    Some((format!("{base}/"), rest.strip_suffix("/InRelease")?.to_owned()))
}

/// Where the host has Debian's archive.
#[derive(Debug, PartialEq, Eq)]
struct Mirror {
    main: String,
    security: Option<String>,
    keyrings: Vec<String>,
}

impl Mirror {
    /// Picks the archive and its security counterpart out of (address, release) pairs: the address that has most of
    /// Debian's releases, since other vendors' archives also name one of theirs `bookworm`.
    fn of(pairs: Vec<(String, String)>) -> Option<Self> {
        let own = codename();
        let is_debian = |base: &str| RELEASES.contains(&base) || ALIASES.contains(&base) || base == own;
        let (mut main, mut security): (Vec<String>, Vec<String>) = (Vec::new(), Vec::new());
        for (uri, release) in pairs {
            if uri.starts_with("cdrom:") {
                continue;
            }
            let (base, variant) = release.split_once(['-', '/']).unwrap_or((&release, ""));
            match variant {
                _ if !is_debian(base) => {}
                "security" | "updates" if release.contains("security") || release.contains('/') => {
                    security.push(uri);
                }
                "" | "updates" | "backports" => main.push(uri),
                _ => {}
            }
        }
        let most = |uris: &[String]| {
            let distinct: BTreeSet<&String> = uris.iter().collect();
            let count = |uri: &String| uris.iter().filter(|other| *other == uri).count();
            distinct.into_iter().max_by_key(|uri| count(uri)).cloned()
        };
        let main = most(&main)?;
        let keyrings = keyrings(&main);
        Some(Self { security: most(&security), main, keyrings })
    }

    /// The private source list.
    fn sources(&self, arch: &str, own: &str) -> String {
        let mut releases: Vec<&str> = RELEASES.to_vec();
        if !own.is_empty() && !releases.contains(&own) {
            releases.push(own);
        }
        let mut options = format!("arch={arch} target=Packages");
        if !self.keyrings.is_empty() {
            let _ = write!(options, " signed-by={}", self.keyrings.join(","));
        }
        let mut text = String::new();
        let mut line = |uri: &str, suite: &str| {
            let _ = writeln!(text, "deb [{options}] {uri} {suite} main");
        };
        for release in releases {
            line(&self.main, release);
            if release == "sid" {
                continue;
            }
            line(&self.main, &format!("{release}-updates"));
            line(&self.main, &format!("{release}-backports"));
            if let Some(security) = &self.security {
                line(security, &format!("{release}-security"));
            }
        }
        text
    }
}

/// The keys to trust for the archive: Debian's own, and any that the host's sources name for that address.
fn keyrings(uri: &str) -> Vec<String> {
    let mut found = BTreeSet::new();
    if Path::new(KEYRING).exists() {
        found.insert(KEYRING.to_owned());
    }
    let address = uri.trim_end_matches('/');
    let parts = fs::read_dir("/etc/apt/sources.list.d").into_iter().flatten().flatten();
    let files = parts.map(|entry| entry.path()).chain([PathBuf::from("/etc/apt/sources.list")]);
    for text in files.filter_map(|file| fs::read_to_string(file).ok()) {
        for stanza in text.split("\n\n").filter(|stanza| stanza.contains(address)) {
            let deb822 = stanza.lines().filter_map(|line| line.strip_prefix("Signed-By:"));
            let one_line = stanza
                .lines()
                .filter(|line| line.contains(address))
                .filter_map(|line| line.split_once("signed-by=")?.1.split([']', ' ']).next());
            let keys = deb822.chain(one_line).map(str::trim);
            found.extend(keys.filter(|key| key.starts_with('/')).map(str::to_owned));
        }
    }
    found.into_iter().collect()
}

/// The codename of the Debian that this host is, or nothing.
pub(crate) fn codename() -> String {
    let text = fs::read_to_string("/etc/os-release").unwrap_or_default();
    let field = |name: &str| {
        text.lines()
            .find_map(|line| line.strip_prefix(name)?.strip_prefix('='))
            .map_or_else(String::new, |value| value.trim_matches('"').to_owned())
    };
    if field("ID") == "debian" { field("VERSION_CODENAME") } else { String::new() }
}

fn plain(program: &str) -> Command {
    let mut command = Command::new(program);
    command.env("LC_ALL", "C").env("DEBIAN_FRONTEND", "noninteractive").env_remove("APT_CONFIG");
    command.stdin(std::process::Stdio::null());
    command
}

fn run(command: &mut Command, image: &str) -> Result<Output> {
    command.output().map_err(|source| match source.kind() {
        ErrorKind::NotFound => Error::NoApt { image: image.to_owned() },
        _ => Error::Program {
            program: command.get_program().to_string_lossy().into_owned(),
            source,
            remedy: "give the path of a .deb or of a vmlinuz",
        },
    })
}

/// What to do where there is little room.
fn little_room(free: u64, dir: &Path) -> String {
    format!(
        "only {} are free in `{}`, and the package lists take about 100 MiB, and a kernel as much: make room there, or set XDG_CACHE_HOME to a folder with more",
        Bytes(free).short(),
        dir.display()
    )
}

/// The last few things said, errors first.
fn last_lines(output: &Output) -> String {
    let text = String::from_utf8_lossy(&output.stderr);
    let mut lines: Vec<&str> = text.lines().filter(|line| line.starts_with("E:")).collect();
    if lines.is_empty() {
        lines = text.lines().filter(|line| !line.trim().is_empty()).collect();
    }
    lines[lines.len().saturating_sub(3)..].join("; ")
}

fn now() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |d| d.as_secs())
}

/// Whether lists are so new that fetching them again would bring nothing.
pub(crate) fn is_recent(index: &Index) -> bool {
    age(index) < RECENT
}

fn age(index: &Index) -> Duration {
    Duration::from_secs(now().abs_diff(index.fetched))
}

#[cfg(test)]
mod tests {
    use super::{Apt, Mirror, release_file};

    fn pairs(list: &[(&str, &str)]) -> Vec<(String, String)> {
        list.iter().map(|(a, b)| ((*a).to_owned(), (*b).to_owned())).collect()
    }

    #[test]
    fn a_failure_where_there_is_no_room_says_so() {
        // A file system without any room.
        let said = Apt::new("/proc".into(), "amd64", "debian:6.1".to_owned()).with_room("no Release file".to_owned());
        assert!(said.starts_with("no Release file; only 0 B are free in `/proc`, and "), "{said}");
        assert!(said.contains("XDG_CACHE_HOME"), "{said}");
    }

    #[test]
    fn the_mirror_is_the_address_with_most_of_debians_releases() {
        let mirror = Mirror::of(pairs(&[
            ("http://vendor.invalid/linux/debian/", "bookworm"),
            ("http://m.invalid/debian/", "bookworm"),
            ("http://m.invalid/debian/", "bookworm-updates"),
            ("http://m.invalid/debian-security/", "bookworm-security"),
            ("http://llvm.invalid/", "llvm-toolchain-bookworm"),
        ]))
        .expect("a mirror");
        assert_eq!(mirror.main, "http://m.invalid/debian/");
        assert_eq!(mirror.security.as_deref(), Some("http://m.invalid/debian-security/"));
        assert_eq!(Mirror::of(pairs(&[("http://u.invalid/ubuntu/", "noble"), ("cdrom:x", "bookworm")])), None);
    }

    #[test]
    fn the_sources_have_every_release_on_the_right_path() {
        let mirror = Mirror {
            main: "http://m.invalid/debian/".into(),
            security: Some("http://m.invalid/sec/".into()),
            keyrings: vec!["/k.gpg".into()],
        };
        let text = mirror.sources("amd64", "duke");
        let options = "deb [arch=amd64 target=Packages signed-by=/k.gpg]";
        for line in [
            format!("{options} http://m.invalid/debian/ bookworm main"),
            format!("{options} http://m.invalid/sec/ trixie-security main"),
            format!("{options} http://m.invalid/debian/ duke-backports main"),
        ] {
            assert!(text.lines().any(|l| l == line), "{line} not in {text}");
        }
        assert!(!text.contains("sid-"));
    }

    #[test]
    fn a_release_file_tells_archive_and_release() {
        assert_eq!(
            release_file("'http://m.invalid/debian/dists/bookworm/InRelease' m_InRelease 0 "),
            Some(("http://m.invalid/debian/".into(), "bookworm".into()))
        );
        assert_eq!(release_file("'http://m.invalid/debian/dists/bookworm/main/x.xz' x 0 "), None);
    }
}
