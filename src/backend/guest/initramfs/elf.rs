//! The shared libraries that a program needs, found as the dynamic linker would find them.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, File};
use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::rc::Rc;

use object::Endianness;
use object::elf::{DT_NEEDED, DT_RPATH, DT_RUNPATH, FileHeader64};
use object::read::elf::{FileHeader, ProgramHeader};

use super::Error;

/// A library that a program needs, the dynamic linker included.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Library {
    /// The name under which it is asked for.
    pub(super) name: String,
    /// Where it is on this machine.
    pub(super) host: PathBuf,
    /// Why it is found there.
    pub(super) found: Found,
}

/// Why a library is found where it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Found {
    /// The program asks for it by its path, as it does for its dynamic linker, or it is in a folder in which every linker looks.
    Anywhere,
    /// It lies beside who asks for it (`$ORIGIN`).
    Beside,
    /// This machine's configuration or environment names its folder, which says nothing to another machine's linker. There it
    /// has to be in this folder too, where its C library is.
    Here,
}

/// The dynamic linker of this machine, as far as finding libraries goes.
#[derive(Debug)]
pub(super) struct Linker {
    search: Search,
    machine: u16,
    known: BTreeMap<PathBuf, Result<Rc<Needs>, String>>,
}

impl Linker {
    /// # Errors
    /// If this program cannot read itself.
    pub(super) fn of_this_host() -> Result<Self, Error> {
        Ok(Self { search: Search::of_this_host(), machine: own_machine()?, known: BTreeMap::new() })
    }

    /// The libraries that a program or a library needs, its dynamic linker first. None for a statically linked program.
    ///
    /// # Errors
    /// If it is no 64-bit ELF file for this machine's processor, or a library cannot be found.
    pub(super) fn libraries(&mut self, program: &Path) -> Result<Vec<Library>, Error> {
        let not = |reason: String| Error::NotAProgram { path: program.to_path_buf(), reason };
        let needs = self.read(program)?.map_err(not)?;
        if needs.machine != self.machine {
            return Err(not("it is for another processor".to_owned()));
        }
        let mut known = BTreeSet::new();
        let mut found = Vec::new();
        if let Some(interpreter) = &needs.interpreter {
            let name = Path::new(interpreter).file_name().unwrap_or_default().to_string_lossy().into_owned();
            known.insert(name.clone());
            found.push(Library { name, host: PathBuf::from(interpreter), found: Found::Anywhere });
        }
        let linkers = found.len();
        let program_rpath = needs.rpath.clone();
        let mut queue = vec![(program.to_path_buf(), needs)];
        while let Some((by, needs)) = queue.pop() {
            for name in &needs.libraries {
                if !known.insert(name.clone()) {
                    continue;
                }
                let dirs = self.search.dirs(&needs, &program_rpath);
                let library = self.find(name, &dirs).ok_or_else(|| Error::MissingLibrary {
                    library: name.clone(),
                    by: by.clone(),
                    looked: dirs.iter().map(|dir| format!("`{}`", dir.path.display())).collect::<Vec<_>>().join(", "),
                })?;
                if let Ok(needs) = self.read(&library.host)? {
                    queue.push((library.host.clone(), needs));
                }
                found.push(library);
            }
        }
        found[linkers..].sort_by(|a, b| a.name.cmp(&b.name));
        Ok(found)
    }

    /// The library of that name in the standard folders, if it is there.
    pub(super) fn standard(&mut self, name: &str) -> Option<Library> {
        let dirs: Vec<Dir> = self.search.standard.clone();
        self.find(name, &dirs)
    }

    /// The library of that name, wherever this machine's linker finds it for a program that names no folder itself.
    pub(super) fn installed(&mut self, name: &str) -> Option<Library> {
        let dirs = self.search.dirs(&Needs::default(), &[]);
        self.find(name, &dirs)
    }

    /// The folder into which a library goes that this machine alone would find: where the C library is, in which every linker
    /// looks, or else the most usual one.
    pub(super) fn home(&mut self) -> PathBuf {
        let c_library = self.standard("libc.so.6").and_then(|library| library.host.parent().map(Path::to_path_buf));
        c_library.unwrap_or_else(|| PathBuf::from("/usr/lib"))
    }

    /// The first file of that name for this machine's processor.
    fn find(&mut self, name: &str, dirs: &[Dir]) -> Option<Library> {
        let library = |host, found| Library { name: name.to_owned(), host, found };
        if name.contains('/') {
            return Some(library(PathBuf::from(name), Found::Anywhere)).filter(|library| library.host.is_file());
        }
        dirs.iter().find_map(|dir| {
            let path = dir.path.join(name);
            let fits = path.is_file() && matches!(self.read(&path), Ok(Ok(needs)) if needs.machine == self.machine);
            fits.then(|| library(path, dir.found))
        })
    }

    /// Reads a file; the inner error says why it is no 64-bit ELF file.
    fn read(&mut self, path: &Path) -> Result<Result<Rc<Needs>, String>, Error> {
        if let Some(known) = self.known.get(path) {
            return Ok(known.clone());
        }
        let read = Needs::read(path)?.map(Rc::new);
        self.known.insert(path.to_path_buf(), read.clone());
        Ok(read)
    }
}

/// For which processor this program was built, as ELF headers number it.
fn own_machine() -> Result<u16, Error> {
    const SELF: &str = "/proc/self/exe";
    let mut header = [0; size_of::<FileHeader64<Endianness>>()];
    File::open(SELF).and_then(|mut file| file.read_exact(&mut header)).map_err(Error::io("read", Path::new(SELF)))?;
    let not = |e: object::Error| Error::NotAProgram { path: SELF.into(), reason: e.to_string() };
    let header = FileHeader64::<Endianness>::parse(&header[..]).map_err(not)?;
    Ok(header.e_machine(header.endian().map_err(not)?).0)
}

/// What an ELF file asks of the dynamic linker.
#[derive(Debug, Default)]
struct Needs {
    machine: u16,
    interpreter: Option<String>,
    libraries: Vec<String>,
    rpath: Vec<Dir>,
    runpath: Vec<Dir>,
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
                DT_RPATH => needs.rpath = split_path(&text()?, origin, Found::Anywhere),
                DT_RUNPATH => needs.runpath = split_path(&text()?, origin, Found::Anywhere),
                _ => {}
            }
        }
        Ok(needs)
    }
}

/// A folder in which libraries are looked for.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Dir {
    path: PathBuf,
    /// What a library that is there is found by.
    found: Found,
}

/// The folders of an RPATH, with `$ORIGIN` replaced.
fn split_path(text: &str, origin: &Path, otherwise: Found) -> Vec<Dir> {
    let origin = origin.to_string_lossy();
    text.split(':')
        .filter(|dir| !dir.is_empty())
        .map(|dir| {
            let path = dir.replace("${ORIGIN}", &origin).replace("$ORIGIN", &origin);
            let found = if path == dir { otherwise } else { Found::Beside };
            Dir { path: PathBuf::from(path), found }
        })
        .collect()
}

/// Where this host's dynamic linker looks.
#[derive(Debug)]
struct Search {
    environment: Vec<Dir>,
    configured: Vec<Dir>,
    standard: Vec<Dir>,
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
        let dir = |path, found| Dir { path, found };
        let standard = standard.map(PathBuf::from);
        // The distribution's own configuration names standard folders too.
        configured.retain(|path| !standard.contains(path));
        Self {
            environment: split_path(&environment, Path::new("/"), Found::Here),
            configured: configured.into_iter().map(|path| dir(path, Found::Here)).collect(),
            standard: standard.map(|path| dir(path, Found::Anywhere)).to_vec(),
        }
    }

    /// The folders in which a file's libraries are looked for, in order.
    fn dirs(&self, needs: &Needs, program_rpath: &[Dir]) -> Vec<Dir> {
        // RPATH counts only without a RUNPATH, and is inherited from the program; RUNPATH is not.
        let rpath = if needs.runpath.is_empty() { [&needs.rpath, program_rpath].concat() } else { Vec::new() };
        let mut dirs: Vec<Dir> = Vec::new();
        for dir in [&rpath, &self.environment, &needs.runpath, &self.configured, &self.standard].into_iter().flatten() {
            if !dirs.iter().any(|known| known.path == dir.path) {
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
    use super::{Dir, Error, Found, Linker, Path, PathBuf, fs, read_ld_so_conf, split_path};

    fn libraries(program: &Path) -> Result<Vec<super::Library>, Error> {
        Linker::of_this_host().unwrap().libraries(program)
    }

    #[test]
    fn the_libraries_of_this_test_are_found() {
        let libraries = libraries(Path::new("/proc/self/exe")).unwrap();
        if libraries.is_empty() {
            return; // Built for a static target.
        }
        assert!(libraries[0].name.contains("ld-"), "the linker comes first: {libraries:?}");
        assert!(libraries.iter().any(|library| library.name.starts_with("libc.")), "{libraries:?}");
        for library in &libraries {
            assert!(library.host.is_file(), "{library:?}");
        }
    }

    /// This test's own executable, asking for a library that nobody has instead of the C library.
    fn needy(path: &Path) -> bool {
        let mut bytes = fs::read("/proc/self/exe").unwrap();
        let at = bytes.windows(10).position(|window| window == b"libc.so.6\0");
        if let Some(at) = at {
            bytes[at..at + 9].copy_from_slice(b"libq.so.6");
            fs::write(path, bytes).unwrap();
        }
        at.is_some()
    }

    #[test]
    fn a_library_that_is_not_there_is_told_with_who_needs_it() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("program");
        if !needy(&path) {
            return; // Built for a static target.
        }
        match libraries(&path) {
            Err(Error::MissingLibrary { library, by, .. }) => {
                assert_eq!(library, "libq.so.6");
                assert_eq!(by, path);
            }
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn a_library_that_only_this_machine_would_find_is_known_as_such() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("program");
        if !needy(&path) {
            return; // Built for a static target.
        }
        let mut linker = Linker::of_this_host().unwrap();
        let own = linker.libraries(Path::new("/proc/self/exe")).unwrap();
        let c_library = own.iter().find(|library| library.name == "libc.so.6").unwrap();
        fs::copy(&c_library.host, dir.path().join("libq.so.6")).unwrap();
        linker.search.configured.push(Dir { path: dir.path().to_owned(), found: Found::Here });
        let found = linker.libraries(&path).unwrap();
        let library = found.iter().find(|library| library.name == "libq.so.6").unwrap();
        assert_eq!((library.host.clone(), library.found), (dir.path().join("libq.so.6"), Found::Here));
        assert_eq!(c_library.found, Found::Anywhere);
        assert_eq!(Some(linker.home().as_path()), c_library.host.parent());
    }

    #[test]
    fn a_script_is_no_program() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("script");
        fs::write(&path, "#!/bin/sh\n").unwrap();
        assert!(matches!(libraries(&path), Err(Error::NotAProgram { .. })));
    }

    #[test]
    fn a_program_for_another_processor_is_told() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("program");
        let mut bytes = fs::read("/proc/self/exe").unwrap();
        bytes[18..20].copy_from_slice(&object::elf::EM_S390.0.to_le_bytes());
        fs::write(&path, bytes).unwrap();
        match libraries(&path) {
            Err(Error::NotAProgram { reason, .. }) => assert_eq!(reason, "it is for another processor"),
            other => panic!("{other:?}"),
        }
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
        let origin = split_path("$ORIGIN/../lib::/x:${ORIGIN}", Path::new("/a/b"), Found::Anywhere);
        let dir = |path: &str, found| Dir { path: PathBuf::from(path), found };
        assert_eq!(origin, [dir("/a/b/../lib", Found::Beside), dir("/x", Found::Anywhere), dir("/a/b", Found::Beside)]);
    }
}
