//! The shared libraries that a program needs, found as the dynamic linker would find them.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use object::Endianness;
use object::elf::{DT_NEEDED, DT_RPATH, DT_RUNPATH, FileHeader64};
use object::read::elf::{FileHeader, ProgramHeader};

use super::Error;

/// A library that a program needs, the dynamic linker included.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Library {
    /// Where the guest's dynamic linker will look for it.
    pub guest: String,
    /// Where it is on the host.
    pub host: PathBuf,
}

/// The libraries that a program needs, its dynamic linker first. None for a statically linked program.
///
/// # Errors
/// If the program is no 64-bit ELF file, or a library cannot be found.
pub fn libraries(program: &Path) -> Result<Vec<Library>, Error> {
    let search = Search::of_this_host();
    let needs = Needs::read(program)?.map_err(|reason| Error::NotAProgram { path: program.to_path_buf(), reason })?;
    let machine = needs.machine;
    let mut libraries = Vec::new();
    let mut known = BTreeSet::new();
    if let Some(interpreter) = &needs.interpreter {
        known.extend(Path::new(interpreter).file_name().map(|name| name.to_string_lossy().into_owned()));
        libraries.push(Library { guest: interpreter.clone(), host: PathBuf::from(interpreter) });
    }
    let program_rpath = needs.rpath.clone();
    let mut queue = vec![(program.to_path_buf(), needs)];
    let mut found = Vec::new();
    while let Some((by, needs)) = queue.pop() {
        for name in &needs.libraries {
            if !known.insert(name.clone()) {
                continue;
            }
            let dirs = search.dirs(&needs, &program_rpath);
            let host = find(name, &dirs, machine).ok_or_else(|| Error::MissingLibrary {
                library: name.clone(),
                by: by.clone(),
                looked: dirs.iter().map(|dir| format!("`{}`", dir.display())).collect::<Vec<_>>().join(", "),
            })?;
            if let Ok(needs) = Needs::read(&host)? {
                queue.push((host.clone(), needs));
            }
            found.push((name.clone(), host));
        }
    }
    // Without a cache the guest's linker looks only in the standard folders: whatever was found elsewhere goes to where
    // the C library is, which is surely one of them.
    let is_standard = |path: &Path| path.parent().is_some_and(|dir| search.standard.iter().any(|s| s == dir));
    let c_library = found.iter().find(|(name, _)| name.starts_with("libc.")).map(|(_, path)| path);
    let home = c_library
        .and_then(|path| path.parent().filter(|_| is_standard(path)))
        .unwrap_or(Path::new("/usr/lib"))
        .to_path_buf();
    for (name, host) in found {
        let guest = if is_standard(&host) { host.clone() } else { home.join(&name) };
        libraries.push(Library { guest: guest.to_string_lossy().into_owned(), host });
    }
    let interpreter = libraries.first().cloned();
    libraries.sort_by_key(|library| (Some(library) != interpreter.as_ref(), library.guest.clone()));
    Ok(libraries)
}

/// The first file of that name for that machine.
fn find(name: &str, dirs: &[PathBuf], machine: u16) -> Option<PathBuf> {
    if name.contains('/') {
        return Some(PathBuf::from(name)).filter(|path| path.is_file());
    }
    dirs.iter()
        .map(|dir| dir.join(name))
        .find(|path| path.is_file() && matches!(Needs::read(path), Ok(Ok(needs)) if needs.machine == machine))
}

/// What an ELF file asks of the dynamic linker.
#[derive(Debug, Default)]
struct Needs {
    machine: u16,
    interpreter: Option<String>,
    libraries: Vec<String>,
    rpath: Vec<PathBuf>,
    runpath: Vec<PathBuf>,
}

impl Needs {
    /// Reads a file; the inner error says why it is no 64-bit ELF file.
    fn read(path: &Path) -> Result<Result<Self, String>, Error> {
        let bytes = fs::read(path).map_err(Error::io("read", path))?;
        let origin = path.parent().unwrap_or(Path::new("/"));
        let origin = fs::canonicalize(origin).unwrap_or_else(|_| origin.to_path_buf());
        Ok(Self::parse(&bytes, &origin).map_err(|e| e.to_string()))
    }

    fn parse(bytes: &[u8], origin: &Path) -> object::Result<Self> {
        let header = FileHeader64::<Endianness>::parse(bytes)?;
        let endian = header.endian()?;
        let mut needs = Self { machine: header.e_machine(endian).0, ..Self::default() };
        for segment in header.program_headers(endian, bytes)? {
            if let Some(interpreter) = segment.interpreter(endian, bytes)? {
                needs.interpreter = Some(String::from_utf8_lossy(interpreter).into_owned());
            }
        }
        let table = header.sections(endian, bytes)?.dynamic_table(endian, bytes)?;
        for entry in &table {
            let text = || table.string(entry).map(|text| String::from_utf8_lossy(text).into_owned());
            match entry.tag {
                DT_NEEDED => needs.libraries.push(text()?),
                DT_RPATH => needs.rpath = split_path(&text()?, origin),
                DT_RUNPATH => needs.runpath = split_path(&text()?, origin),
                _ => {}
            }
        }
        Ok(needs)
    }
}

/// The folders of an RPATH, with `$ORIGIN` replaced.
fn split_path(text: &str, origin: &Path) -> Vec<PathBuf> {
    let origin = origin.to_string_lossy();
    text.split(':')
        .filter(|dir| !dir.is_empty())
        .map(|dir| PathBuf::from(dir.replace("${ORIGIN}", &origin).replace("$ORIGIN", &origin)))
        .collect()
}

/// Where this host's dynamic linker looks.
struct Search {
    environment: Vec<PathBuf>,
    configured: Vec<PathBuf>,
    standard: Vec<PathBuf>,
}

impl Search {
    fn of_this_host() -> Self {
        let environment = std::env::var("LD_LIBRARY_PATH").unwrap_or_default();
        let mut configured = Vec::new();
        read_ld_so_conf(Path::new("/etc/ld.so.conf"), &mut configured, 0);
        let triplet = format!("{}-linux-gnu", std::env::consts::ARCH);
        let standard = [
            format!("/lib/{triplet}"),
            format!("/usr/lib/{triplet}"),
            "/lib64".to_owned(),
            "/usr/lib64".to_owned(),
            "/lib".to_owned(),
            "/usr/lib".to_owned(),
        ];
        Self {
            environment: split_path(&environment, Path::new("/")),
            configured,
            standard: standard.map(PathBuf::from).to_vec(),
        }
    }

    /// The folders in which a file's libraries are looked for, in order.
    fn dirs(&self, needs: &Needs, program_rpath: &[PathBuf]) -> Vec<PathBuf> {
        // RPATH counts only without a RUNPATH, and is inherited from the program; RUNPATH is not.
        let rpath = if needs.runpath.is_empty() { [&needs.rpath, program_rpath].concat() } else { Vec::new() };
        let mut dirs = Vec::new();
        for dir in [&rpath, &self.environment, &needs.runpath, &self.configured, &self.standard].into_iter().flatten() {
            if !dirs.contains(dir) {
                dirs.push(dir.clone());
            }
        }
        dirs
    }
}

/// Reads the linker's configuration and what it includes. A file that cannot be read is passed over, as the linker does.
fn read_ld_so_conf(path: &Path, dirs: &mut Vec<PathBuf>, depth: u32) {
    let Ok(text) = fs::read_to_string(path) else {
        return;
    };
    for line in text.lines().map(|line| line.split('#').next().unwrap_or_default().trim()) {
        if let Some(pattern) = line.strip_prefix("include").filter(|rest| rest.starts_with(char::is_whitespace)) {
            if depth < 4 {
                for pattern in pattern.split_whitespace() {
                    for file in expand(&path.parent().unwrap_or(Path::new("/")).join(pattern)) {
                        read_ld_so_conf(&file, dirs, depth + 1);
                    }
                }
            }
        } else if line.starts_with('/') {
            dirs.push(PathBuf::from(line));
        }
    }
}

/// Files that a pattern with one `*` in its last part names, sorted.
fn expand(pattern: &Path) -> Vec<PathBuf> {
    let (Some(dir), Some(name)) = (pattern.parent(), pattern.file_name().and_then(|name| name.to_str())) else {
        return Vec::new();
    };
    let Some((before, after)) = name.split_once('*') else {
        return vec![pattern.to_path_buf()];
    };
    let matches =
        |name: &str| name.len() >= before.len() + after.len() && name.starts_with(before) && name.ends_with(after);
    let mut files: Vec<PathBuf> = fs::read_dir(dir)
        .into_iter()
        .flatten()
        .flatten()
        .filter(|entry| entry.file_name().to_str().is_some_and(matches))
        .map(|entry| entry.path())
        .collect();
    files.sort();
    files
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "a test fails by panicking")]
mod tests {
    use super::{Error, Path, PathBuf, fs, libraries, read_ld_so_conf, split_path};

    #[test]
    fn the_libraries_of_this_test_are_found() {
        let libraries = libraries(Path::new("/proc/self/exe")).unwrap();
        if libraries.is_empty() {
            return; // Built for a static target.
        }
        assert!(libraries[0].guest.contains("ld-"), "the linker comes first: {libraries:?}");
        assert!(libraries.iter().any(|library| library.guest.contains("libc.")), "{libraries:?}");
        for library in &libraries {
            assert!(library.host.is_file(), "{library:?}");
            assert!(library.guest.starts_with('/'), "{library:?}");
        }
    }

    #[test]
    fn a_library_that_is_not_there_is_told_with_who_needs_it() {
        // This test's own executable, with the name of its C library made one that nobody has.
        let mut bytes = fs::read("/proc/self/exe").unwrap();
        let Some(at) = bytes.windows(10).position(|window| window == b"libc.so.6\0") else {
            return;
        };
        bytes[at..at + 9].copy_from_slice(b"libq.so.6");
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("program");
        fs::write(&path, bytes).unwrap();
        match libraries(&path) {
            Err(Error::MissingLibrary { library, by, .. }) => {
                assert_eq!(library, "libq.so.6");
                assert_eq!(by, path);
            }
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn a_script_is_no_program() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("script");
        fs::write(&path, "#!/bin/sh\n").unwrap();
        assert!(matches!(libraries(&path), Err(Error::NotAProgram { .. })));
    }

    #[test]
    fn the_linkers_configuration_is_followed() {
        let dir = tempfile::tempdir().unwrap();
        let conf = dir.path().join("ld.so.conf");
        fs::create_dir(dir.path().join("d")).unwrap();
        fs::write(&conf, "# comment\ninclude d/*.conf\n/opt/last\n").unwrap();
        fs::write(dir.path().join("d/b.conf"), "/opt/b # why\n").unwrap();
        fs::write(dir.path().join("d/a.conf"), "/opt/a\n").unwrap();
        fs::write(dir.path().join("d/a.txt"), "/opt/not\n").unwrap();
        let mut dirs = Vec::new();
        read_ld_so_conf(&conf, &mut dirs, 0);
        assert_eq!(dirs, ["/opt/a", "/opt/b", "/opt/last"].map(PathBuf::from));
        let origin = split_path("$ORIGIN/../lib::/x:${ORIGIN}", Path::new("/a/b"));
        assert_eq!(origin, ["/a/b/../lib", "/x", "/a/b"].map(PathBuf::from));
    }
}
