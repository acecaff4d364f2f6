//! What the programs of a sweep are, whatever they are called: digests of all that they need, on a guest's or this machine's own kernel.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, File};
use std::io::{self, Read as _};
use std::path::Path;

use sha2::{Digest, Sha256};

use crate::settings::{Exec, template};
use crate::units::hex;

use super::packer::pack;
use super::payload::{Item, MOST_BYTES, Payload};
use super::wanted::Wanted;

/// A digest of each program and file that these name, by the name that the sweep has for it: of all that would come along into a guest for
/// it, such as its libraries and interpreters. What is not here, or is larger than anything that comes along, has none.
pub fn identities<'a>(programs: impl IntoIterator<Item = &'a Exec>) -> BTreeMap<String, String> {
    let mut found: BTreeMap<String, Option<String>> = BTreeMap::new();
    for exec in programs {
        for (name, wanted) in named(exec) {
            found.entry(name).or_insert_with_key(|name| identity(name, &wanted));
        }
    }
    found.into_iter().filter_map(|(name, digest)| Some((name, digest?))).collect()
}

/// Each thing that a cell's programs need, by itself and by its name. Arguments that are absolute paths of files are among them, which in a guest they are
/// only where `files` names them.
fn named(exec: &Exec) -> Vec<(String, Wanted)> {
    let all = Wanted::of_exec(exec);
    let one = |programs: &[(String, Option<String>)], file: Option<String>| Wanted {
        programs: programs.to_vec(),
        files: file.into_iter().collect(),
        folder: all.folder.clone(),
        ..Wanted::default()
    };
    let arguments = [&exec.server, &exec.client].into_iter().flat_map(|program| program.command.iter().skip(1));
    let arguments = arguments.filter_map(|text| template::fill_all(text, |_| None).ok());
    let absolute = arguments.filter(|path| path.starts_with('/') && Path::new(path).is_file());
    let mentioned = all.mentioned.iter().map(|path| (path.trim_start_matches("./").to_owned(), path.clone()));
    let files = all.files.iter().cloned().chain(absolute).map(|path| (path.clone(), path)).chain(mentioned);
    let programs = all.programs.iter().map(|program| (program.0.clone(), one(std::slice::from_ref(program), None)));
    programs.chain(files.map(|(name, file)| (name, one(&[], Some(file))))).collect()
}

/// The digest of one of them. What a guest could not run may still run here: then it is the file alone.
fn identity(name: &str, wanted: &Wanted) -> Option<String> {
    let packed = pack(&BTreeSet::from([wanted.clone()])).ok().filter(|packed| packed.refused.is_empty());
    packed.and_then(|packed| of_payload(&packed.payload).ok()).or_else(|| of_file(&wanted.folder.join(name)).ok())
}

/// The digest of all that comes along, and where to.
fn of_payload(payload: &Payload) -> io::Result<String> {
    let mut hash = Sha256::new();
    for (path, item) in payload.items() {
        let (kind, content) = match item {
            Item::Folder => ("folder", String::new()),
            Item::Link(target) => ("link", target.clone()),
            Item::File { host, executable: true, .. } => ("program", of_file(host)?),
            Item::File { host, executable: false, .. } => ("file", of_file(host)?),
        };
        hash.update(format!("{path}\0{kind}\0{content}\0"));
    }
    Ok(hex(&hash.finalize()))
}

/// The digest of a file that is no larger than what comes along.
fn of_file(path: &Path) -> io::Result<String> {
    let facts = fs::metadata(path)?;
    if !facts.is_file() || facts.len() > MOST_BYTES {
        return Err(io::ErrorKind::FileTooLarge.into());
    }
    let (mut file, mut hash, mut block) = (File::open(path)?.take(MOST_BYTES), Sha256::new(), vec![0; 1 << 16]);
    loop {
        let read = file.read(&mut block)?;
        if read == 0 {
            return Ok(hex(&hash.finalize()));
        }
        hash.update(&block[..read]);
    }
}

#[cfg(test)]
mod tests {
    use super::identities;
    use crate::settings::{Exec, Program};
    use std::fs;
    use std::os::unix::fs::PermissionsExt as _;

    #[test]
    fn a_digest_changes_with_what_a_program_is_and_needs_and_not_with_where_it_lies() {
        let outside = tempfile::NamedTempFile::new().expect("a file");
        fs::write(outside.path(), "1").expect("written");
        let folder = || {
            let folder = tempfile::tempdir().expect("a folder");
            fs::create_dir(folder.path().join("data")).expect("made");
            for (name, text) in [("tool", "#!/bin/sh\nexit\n"), ("data/a", "a"), ("script", "s"), ("other", "o")] {
                fs::write(folder.path().join(name), text).expect("written");
            }
            let tool = folder.path().join("tool");
            fs::set_permissions(tool, fs::Permissions::from_mode(0o755)).expect("executable");
            folder
        };
        let of = |folder: &tempfile::TempDir| {
            let program = |words: &[&str]| Program {
                command: words.iter().map(|&word| word.to_owned()).collect(),
                ..Program::default()
            };
            let outside = outside.path().display().to_string();
            identities([&Exec {
                server: program(&["./tool", "{dir}/script", "{scratch}/made", "{{x}}", &outside]),
                client: program(&["no-such-program", "other"]),
                files: vec!["data".to_owned()],
                dir: folder.path().display().to_string(),
                ..Exec::default()
            }])
        };
        let (one, two) = (folder(), folder());
        let before = of(&one);
        let names: Vec<&str> = before.keys().map(String::as_str).collect();
        let mut expected = ["./tool", outside.path().to_str().expect("a name"), "data", "script"];
        expected.sort_unstable();
        assert_eq!(names, expected);
        assert_eq!(of(&two), before, "wherever it lies");
        for (file, name) in [("tool", "./tool"), ("data/a", "data"), ("script", "script")] {
            let text = fs::read_to_string(one.path().join(file)).expect("read");
            fs::write(one.path().join(file), format!("{text}# more\n")).expect("written");
            let after = of(&one);
            let changed: Vec<&String> =
                after.iter().filter(|(name, is)| before[*name] != **is).map(|(n, _)| n).collect();
            assert_eq!(changed, [name], "{file}");
            fs::write(one.path().join(file), text).expect("written");
        }
        fs::write(one.path().join("other"), "a word is no path").expect("written");
        assert_eq!(of(&one), before);
        fs::remove_file(one.path().join("script")).expect("removed");
        assert_eq!(of(&one).len(), before.len() - 1, "what is not there has none");
    }
}
