//! Finds what a program and files need, as this machine would find it, and where each goes in a guest.
//!
//! A path is followed part by part, and each link on the way comes along as a link. So the guest has this machine's own layout, as far
//! as it has anything: `/bin` may be a link to `/usr/bin`, and `/bin/sh` one to `dash`.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsString;
use std::fs::{self, Metadata};
use std::io::Read as _;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Component, Path, PathBuf};

use crate::settings::Program;
use crate::workload;

use super::elf::{Found, Linker};
use super::payload::{Item, Payload};
use super::wanted::Wanted;
use super::{Error, programs, script};

/// Where the folder of the sweep file is in a guest, whatever it is here. Three folders above it may be named by `..`: what a guest is
/// shall not depend on where the sweep lies.
pub const HERE: &str = "/up/up/up/here";
/// How many folders above.
const MOST_UP: usize = 3;
/// Folders on which a guest mounts file systems of its own.
const MOUNTED: [&str; 3] = ["/proc", "/sys", "/dev"];
/// As many links as the kernel follows for one path (`MAXSYMLINKS`).
const MOST_LINKS: usize = 40;
/// As many interpreters of interpreters as the kernel follows (`exec_binprm` in `fs/exec.c`).
const MOST_INTERPRETERS: usize = 5;
/// What the C library opens by itself when a thread ends (`pthread_cancel`), and when a name is looked up, before glibc 2.34.
const COMPANIONS: [&str; 2] = ["libgcc_s.so.1", "libnss_files.so.2"];

/// Gathers what is wanted.
#[derive(Debug)]
pub(super) struct Packer<'a> {
    linker: &'a mut Linker,
    folder: PathBuf,
    payload: Payload,
    /// Files whose needs are met.
    met: BTreeSet<Place>,
    /// Folders that are there, with all that is in them.
    whole: BTreeSet<Place>,
    notes: Vec<String>,
}

/// A place on this machine, and whether it was reached from the sweep's folder.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Place {
    path: PathBuf,
    relative: bool,
}

impl Place {
    fn join(&self, part: impl AsRef<Path>) -> Self {
        Self { path: self.path.join(part), relative: self.relative }
    }
}

/// All that is wanted together, and of each what could not be had.
#[derive(Debug)]
pub struct Packed {
    /// What comes along.
    pub payload: Payload,
    /// Why the guest cannot do what these need.
    pub refused: BTreeMap<Wanted, String>,
    /// What a person should know.
    pub notes: Vec<String>,
}

/// Packs all that is wanted. What one cell lacks keeps no other from being packed.
///
/// # Errors
/// If this program cannot read itself.
pub fn pack(wanted: &BTreeSet<Wanted>) -> Result<Packed, Error> {
    let mut linker = Linker::of_this_host()?;
    let mut packed = Packed { payload: Payload::default(), refused: BTreeMap::new(), notes: Vec::new() };
    for wanted in wanted {
        let one = Packer::new(&mut linker, &wanted.folder).and_then(|packer| packer.all(wanted));
        match one.and_then(|(payload, notes)| packed.payload.add(&payload).map(|()| notes)) {
            Ok(notes) => {
                packed.notes.extend(notes);
            }
            Err(error) => {
                packed.refused.insert(wanted.clone(), error.to_string());
            }
        }
    }
    packed.notes.sort();
    packed.notes.dedup();
    Ok(packed)
}

/// What the libraries of this program itself are in a guest.
pub(super) fn own_libraries(program: &Path) -> Result<Payload, Error> {
    let mut linker = Linker::of_this_host()?;
    let mut packer = Packer::new(&mut linker, Path::new("/"))?;
    packer.libraries(&Place { path: program.to_path_buf(), relative: false })?;
    Ok(packer.payload)
}

impl<'a> Packer<'a> {
    fn new(linker: &'a mut Linker, folder: &Path) -> Result<Self, Error> {
        let folder = fs::canonicalize(folder).map_err(Error::io("read", folder))?;
        let (met, whole) = (BTreeSet::new(), BTreeSet::new());
        Ok(Self { linker, folder, payload: Payload::default(), met, whole, notes: Vec::new() })
    }

    fn all(mut self, wanted: &Wanted) -> Result<(Payload, Vec<String>), Error> {
        for (program, package) in &wanted.programs {
            let place = self.program(program, package.as_deref(), "`command`")?;
            self.needs(&place, MOST_INTERPRETERS)?;
        }
        for file in &wanted.files {
            self.file(file)?;
        }
        for file in &wanted.mentioned {
            match self.file(file) {
                Err(Error::Missing { .. }) | Ok(()) => {}
                Err(error) => return Err(error),
            }
        }
        Ok((self.payload, self.notes))
    }

    /// A program by its name or path: what the kernel would start. `by` names who asks for it.
    fn program(&mut self, name: &str, package: Option<&str>, by: &str) -> Result<Place, Error> {
        let found = if name.contains('/') { PathBuf::from(name) } else { look_up(name, package, by)? };
        let place = self.walk(&found, by)?;
        let metadata = fs::metadata(&place.path).map_err(Error::io("read", &place.path))?;
        if !metadata.is_file() || metadata.permissions().mode() & 0o111 == 0 {
            let why = if metadata.is_file() { "it may not be executed: chmod +x" } else { "it is no file" };
            return Err(Error::NotAProgram { path: place.path, reason: why.to_owned() });
        }
        if !name.contains('/') {
            let folder = found.parent().unwrap_or(Path::new("/"));
            if !programs::GUEST_PATH.split(':').any(|dir| folder == Path::new(dir)) {
                let target = self.guest_path(&place)?;
                self.payload.insert(format!("{}/{name}", programs::GUEST_OWN), Item::Link(target))?;
            }
        }
        Ok(place)
    }

    /// A file or folder that the sweep names, and what it needs.
    fn file(&mut self, name: &str) -> Result<(), Error> {
        let path = self.installed(name)?;
        let place = self.walk(&path, "`files`")?;
        let metadata = fs::metadata(&place.path).map_err(Error::io("read", &place.path))?;
        if metadata.is_dir() {
            return self.whole_folder(&place);
        }
        if !metadata.is_file() {
            return Err(Error::NoPlainFile { path: place.path });
        }
        let begin = beginning(&place.path)?;
        if begin.starts_with(b"\x7fELF") || (script::interpreter(&begin).is_some() && is_executable(&metadata)) {
            self.needs(&place, MOST_INTERPRETERS)?;
        }
        Ok(())
    }

    /// Where a file is. A name alone that is not in the sweep's folder is that of a library or of a program of this machine.
    fn installed(&mut self, name: &str) -> Result<PathBuf, Error> {
        let path = PathBuf::from(name);
        if name.contains('/') || self.folder.join(name).symlink_metadata().is_ok() {
            return Ok(path);
        }
        if let Some(library) = self.linker.installed(name) {
            return Ok(library.host);
        }
        match look_up(name, None, "`files`") {
            // It may be meant as either.
            Err(Error::Absent { .. }) => Ok(path),
            other => other,
        }
    }

    /// A folder with all that is in it. What a file there needs comes along as far as it is here: a folder may well hold parts that are
    /// never used.
    fn whole_folder(&mut self, folder: &Place) -> Result<(), Error> {
        if !self.whole.insert(folder.clone()) {
            return Ok(());
        }
        let read = |e| Error::io("read", &folder.path)(e);
        let mut names = Vec::new();
        for entry in fs::read_dir(&folder.path).map_err(read)? {
            names.push(entry.map_err(read)?.file_name());
        }
        names.sort();
        for name in names {
            let entry = folder.join(&name);
            let kind = fs::symlink_metadata(&entry.path).map_err(Error::io("read", &entry.path))?.file_type();
            let shown = format!("`{}`", folder.path.display());
            let place = match self.follow(folder.clone(), Path::new(&name), &shown) {
                // A link to nowhere, or to what a guest has of its own, is the same link in the guest.
                Err(Error::Missing { .. } | Error::Mounted { .. }) if kind.is_symlink() => continue,
                other => other?,
            };
            let metadata = fs::metadata(&place.path).map_err(Error::io("read", &place.path))?;
            if metadata.is_dir() {
                self.whole_folder(&place)?;
            } else if metadata.is_file() {
                self.member(&place, &metadata)?;
            } else {
                self.notes.push(format!("`{}` is neither file nor folder and is left out", entry.path.display()));
            }
        }
        Ok(())
    }

    /// What a file in a folder needs.
    fn member(&mut self, place: &Place, metadata: &Metadata) -> Result<(), Error> {
        let begin = beginning(&place.path)?;
        let is_script = is_executable(metadata) && script::interpreter(&begin).is_some();
        if !is_script && !begin.starts_with(b"\x7fELF") {
            return Ok(());
        }
        match self.needs(place, MOST_INTERPRETERS) {
            Err(error @ (Error::TooMuch { .. } | Error::Conflict { .. })) => Err(error),
            // No program of this machine: an object file, or one for another processor.
            Err(Error::NotAProgram { .. }) | Ok(()) => Ok(()),
            Err(error) => {
                self.notes.push(format!("not all that `{}` needs is in the guest: {error}", place.path.display()));
                Ok(())
            }
        }
    }

    /// What a program needs: its libraries, or its interpreter and what that needs.
    fn needs(&mut self, program: &Place, depth: usize) -> Result<(), Error> {
        if !self.met.insert(program.clone()) {
            return Ok(());
        }
        let begin = beginning(&program.path)?;
        if begin.starts_with(b"\x7fELF") {
            return self.libraries(program);
        }
        let not = |reason: &str| Error::NotAProgram { path: program.path.clone(), reason: reason.to_owned() };
        let interpreter = script::interpreter(&begin)
            .ok_or_else(|| not("it begins neither as an ELF program nor with `#!` and an interpreter"))?;
        let depth = depth.checked_sub(1).ok_or_else(|| not("its interpreter is a script of a script, and so on"))?;
        let by = format!("the first line of `{}`", program.path.display());
        if !interpreter.program.starts_with('/') {
            return Err(not("its interpreter is named by no absolute path"));
        }
        for name in [Some(interpreter.program), interpreter.looked_up].into_iter().flatten() {
            let place = self.program(&name, None, &by)?;
            self.needs(&place, depth)?;
        }
        Ok(())
    }

    fn libraries(&mut self, program: &Place) -> Result<(), Error> {
        let libraries = self.linker.libraries(&program.path)?;
        let by = format!("`{}`", program.path.display());
        let has_c_library = libraries.iter().any(|library| library.name == "libc.so.6");
        for library in libraries {
            let place = match library.found {
                Found::Beside if program.relative => self.beside(&library.host, &by)?,
                Found::Beside | Found::Anywhere | Found::Here => self.walk(&library.host, &by)?,
            };
            if library.found == Found::Here {
                let home = self.linker.home();
                let home = self.walk(&home, &by)?;
                let target = self.guest_path(&place)?;
                let link = self.guest_path(&home.join(&library.name))?;
                if link != target {
                    self.payload.insert(inner(&link), Item::Link(target))?;
                }
            }
        }
        if has_c_library {
            for library in COMPANIONS.iter().filter_map(|name| self.linker.standard(name)).collect::<Vec<_>>() {
                self.walk(&library.host, "the C library")?;
            }
        }
        Ok(())
    }

    /// A library that was found by `$ORIGIN` from a program of the sweep's folder.
    fn beside(&mut self, host: &Path, by: &str) -> Result<Place, Error> {
        let (Some(folder), Some(name)) = (host.parent(), host.file_name()) else {
            return self.walk(host, by);
        };
        let folder = fs::canonicalize(folder).map_err(Error::io("read", folder))?;
        match self
            .folder
            .ancestors()
            .take(MOST_UP + 1)
            .find_map(|above| folder.strip_prefix(above).ok().map(|rest| (above, rest)))
        {
            Some((above, rest)) => {
                let begin = Place { path: above.to_path_buf(), relative: true };
                self.follow(begin, &rest.join(name), by)
            }
            None => self.walk(host, by),
        }
    }

    /// Follows a path as it is written in a sweep, and takes what is on it along. Returns what is at its end.
    fn walk(&mut self, path: &Path, by: &str) -> Result<Place, Error> {
        let begin = if path.is_absolute() {
            Place { path: PathBuf::from("/"), relative: false }
        } else {
            Place { path: self.folder.clone(), relative: true }
        };
        self.follow(begin, path, by)
    }

    /// Follows a path from a folder.
    fn follow(&mut self, begin: Place, path: &Path, by: &str) -> Result<Place, Error> {
        let mut at = begin;
        let mut rest = parts(path);
        let mut links = 0;
        while let Some(part) = rest.pop() {
            if part == ".." {
                at.path.pop();
                continue;
            }
            let next = at.join(&part);
            if !next.relative && MOUNTED.iter().any(|mounted| next.path == Path::new(mounted)) {
                return Err(Error::Mounted { path: path.to_path_buf(), folder: next.path, by: by.to_owned() });
            }
            let metadata = fs::symlink_metadata(&next.path).map_err(|error| match error.kind() {
                std::io::ErrorKind::NotFound => {
                    Error::Missing { path: path.to_path_buf(), missing: next.path.clone(), by: by.to_owned() }
                }
                _ => Error::io("read", &next.path)(error),
            })?;
            if metadata.is_symlink() {
                links += 1;
                if links > MOST_LINKS {
                    return Err(Error::Missing { path: path.to_path_buf(), missing: next.path, by: by.to_owned() });
                }
                let target = fs::read_link(&next.path).map_err(Error::io("read", &next.path))?;
                let text = utf8(&target)?.to_owned();
                let place = self.guest_path(&next)?;
                self.payload.insert(inner(&place), Item::Link(text))?;
                if target.is_absolute() {
                    at = Place { path: PathBuf::from("/"), relative: false };
                }
                rest.extend(parts(&target));
                continue;
            }
            self.add(&next, &metadata)?;
            at = next;
        }
        Ok(at)
    }

    /// Adds a file or folder that is no link. Others are left to who knows whether they matter.
    fn add(&mut self, place: &Place, metadata: &Metadata) -> Result<(), Error> {
        let item = if metadata.is_dir() {
            Item::Folder
        } else if metadata.is_file() {
            // Of files beside the sweep the time says when they were checked out. Of those of the system it is the package's, and some
            // look at it (Python at that of its libraries).
            let modified = if place.relative { 0 } else { u32::try_from(metadata.mtime()).unwrap_or(0) };
            let executable = is_executable(metadata);
            Item::File { host: place.path.clone(), executable, length: metadata.len(), modified }
        } else {
            return Ok(());
        };
        let path = self.guest_path(place)?;
        self.payload.insert(inner(&path), item)
    }

    /// Where something of this machine is in the guest.
    fn guest_path(&self, place: &Place) -> Result<String, Error> {
        let path = utf8(&place.path)?;
        if !place.relative {
            return Ok(path.to_owned());
        }
        let mut here = Path::new(HERE);
        for above in self.folder.ancestors().take(MOST_UP + 1) {
            if let Ok(rest) = place.path.strip_prefix(above) {
                return Ok(utf8(&here.join(rest))?.trim_end_matches('/').to_owned());
            }
            here = here.parent().unwrap_or(Path::new("/"));
        }
        Err(Error::TooFarUp { path: place.path.clone(), most: MOST_UP })
    }
}

/// Where a program is by its name.
fn look_up(name: &str, package: Option<&str>, by: &str) -> Result<PathBuf, Error> {
    let program = Program { package: package.map(str::to_owned), ..Program::default() };
    let found = workload::locate(&program, name, "/").map_err(|absent| Error::Absent { absent, by: by.to_owned() })?;
    std::path::absolute(&found).map_err(Error::io("find", &found))
}

/// The parts of a path, the last one first.
fn parts(path: &Path) -> Vec<OsString> {
    let parts = path.components().filter_map(|part| match part {
        Component::Normal(name) => Some(name.to_owned()),
        Component::ParentDir => Some(OsString::from("..")),
        Component::CurDir | Component::RootDir | Component::Prefix(_) => None,
    });
    let mut parts: Vec<_> = parts.collect();
    parts.reverse();
    parts
}

/// A path of the guest as a payload has it.
fn inner(path: &str) -> String {
    path.trim_start_matches('/').to_owned()
}

fn utf8(path: &Path) -> Result<&str, Error> {
    path.to_str().ok_or_else(|| Error::BadPath {
        path: path.to_string_lossy().into_owned(),
        reason: "it is not UTF-8, which the archive's names are",
    })
}

fn is_executable(metadata: &Metadata) -> bool {
    metadata.permissions().mode() & 0o111 != 0
}

/// The first bytes of a file: enough to see what it is.
fn beginning(path: &Path) -> Result<Vec<u8>, Error> {
    let mut bytes = Vec::new();
    let file = fs::File::open(path).map_err(Error::io("read", path))?;
    file.take(256).read_to_end(&mut bytes).map_err(Error::io("read", path))?;
    Ok(bytes)
}

#[cfg(test)]
mod tests;
