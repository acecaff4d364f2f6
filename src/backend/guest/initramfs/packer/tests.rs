#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::collections::BTreeSet;
use std::fs::{self, File};
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::Path;

use tempfile::TempDir;

use super::super::payload::{Item, MOST_BYTES, Payload};
use super::{HERE, Packed, Wanted, pack};

/// A folder with executable scripts.
fn folder(scripts: &[(&str, &str)]) -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    for (name, text) in scripts {
        let path = folder.path().join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, text).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
    }
    folder
}

fn wanted(folder: &Path, programs: &[&str], files: &[&str]) -> Wanted {
    Wanted {
        programs: programs.iter().map(|&program| (program.to_owned(), None)).collect(),
        files: files.iter().map(|&file| file.to_owned()).collect(),
        mentioned: Vec::new(),
        folder: folder.to_owned(),
    }
}

fn packed(wanted: Wanted) -> Packed {
    pack(&BTreeSet::from([wanted])).unwrap()
}

#[track_caller]
fn payload(wanted: Wanted) -> Payload {
    let packed = packed(wanted);
    assert!(packed.refused.is_empty(), "{:?}", packed.refused);
    packed.payload
}

/// Why it is refused, in one line.
#[track_caller]
fn refused(wanted: Wanted) -> String {
    let packed = packed(wanted);
    assert!(packed.payload.is_empty());
    packed.refused.into_values().next().unwrap()
}

/// What a guest finds at a path, links followed as its kernel would.
fn resolve(payload: &Payload, path: &str) -> Option<Item> {
    let mut at = String::new();
    let mut rest: Vec<String> = path.split('/').rev().map(str::to_owned).collect();
    for _ in 0..200 {
        match rest.pop()?.as_str() {
            "" | "." => {}
            ".." => at.truncate(at.rfind('/').unwrap_or(0)),
            part => {
                let next = format!("{at}/{part}");
                match payload.at(&next) {
                    Some(Item::Link(target)) => {
                        if target.starts_with('/') {
                            at.clear();
                        }
                        rest.extend(target.split('/').rev().map(str::to_owned));
                    }
                    None if !payload.holds(&next) => return None,
                    _ => at = next,
                }
            }
        }
        if rest.is_empty() {
            return payload.at(&at).cloned();
        }
    }
    None
}

#[track_caller]
fn is_program(payload: &Payload, path: &str, host: &str) {
    match resolve(payload, path) {
        Some(Item::File { host: here, executable: true, .. }) => {
            assert_eq!(fs::canonicalize(here).unwrap(), fs::canonicalize(host).unwrap());
        }
        other => panic!("{path}: {other:?}"),
    }
}

#[test]
fn a_program_comes_with_its_linker_and_libraries_under_all_its_names() {
    let payload = payload(wanted(Path::new("/"), &["sh"], &[]));
    // Links such as that from `/bin` to `usr/bin` and from `sh` to `dash` are there as they are here.
    is_program(&payload, "/usr/bin/sh", "/bin/sh");
    for path in ["/bin", "/bin/sh", "/lib64", "/lib"] {
        if let (Ok(target), Some(item)) = (fs::read_link(path), payload.at(path)) {
            assert_eq!(*item, Item::Link(target.to_str().unwrap().to_owned()), "{path}");
        }
    }
    let libraries = super::Linker::of_this_host().unwrap().libraries(&fs::canonicalize("/bin/sh").unwrap()).unwrap();
    for library in &libraries {
        assert!(matches!(resolve(&payload, library.host.to_str().unwrap()), Some(Item::File { .. })), "{library:?}");
    }
    if libraries.iter().any(|library| library.name == "libc.so.6") {
        let companion = super::Linker::of_this_host().unwrap().standard("libgcc_s.so.1").unwrap();
        assert!(resolve(&payload, companion.host.to_str().unwrap()).is_some(), "what libc opens by itself");
    }
}

#[test]
fn a_script_beside_the_sweep_comes_with_its_interpreters() {
    let folder = folder(&[("bin/tool-2", "#!/usr/bin/env -S sh -e\n"), ("nested", ""), ("interpreter", "#!/bin/sh\n")]);
    let text = format!("#! {}/interpreter x\n", folder.path().display());
    fs::write(folder.path().join("nested"), text).unwrap();
    symlink("tool-2", folder.path().join("bin/tool")).unwrap();
    let payload = payload(wanted(folder.path(), &["bin/tool", "./nested"], &[]));
    assert_eq!(payload.at(&format!("{HERE}/bin/tool")), Some(&Item::Link("tool-2".to_owned())));
    is_program(&payload, &format!("{HERE}/bin/tool"), folder.path().join("bin/tool-2").to_str().unwrap());
    is_program(&payload, "/usr/bin/env", "/usr/bin/env");
    is_program(&payload, "/bin/sh", "/bin/sh");
    // Named by its absolute path, it is there too.
    let interpreter = fs::canonicalize(folder.path()).unwrap().join("interpreter");
    is_program(&payload, interpreter.to_str().unwrap(), interpreter.to_str().unwrap());
}

#[test]
fn what_is_missing_is_told_with_who_names_it_and_what_to_do() {
    let folder =
        folder(&[("shell", "#!/no/such/shell\n"), ("env", "#!/usr/bin/env no-such-shell\n"), ("text", "echo\n")]);
    fs::write(folder.path().join("plain"), "#!/bin/sh\n").unwrap();
    symlink("nowhere", folder.path().join("dangling")).unwrap();
    let at = |text: String| text.replace(folder.path().to_str().unwrap(), "HERE");
    let program = |name: &str| at(refused(wanted(folder.path(), &[name], &[])));
    let mut with_package = wanted(folder.path(), &[], &[]);
    with_package.programs.push(("no-such".to_owned(), Some("the-package".to_owned())));
    assert_eq!(
        refused(with_package),
        "`no-such` is not installed here: install the package `the-package` (`command` names it)"
    );
    assert_eq!(
        program("no-such"),
        "`no-such` is not installed here: install it, or write its path (`command` names it)"
    );
    assert_eq!(program("./no-such"), "`./no-such`, which `command` names, is not there (there is no `HERE/no-such`)");
    assert_eq!(program("dangling/x"), "`dangling/x`, which `command` names, is not there (there is no `HERE/nowhere`)");
    assert_eq!(
        program("./shell"),
        "`/no/such/shell`, which the first line of `HERE/shell` names, is not there (there is no `/no`)"
    );
    assert_eq!(
        program("./env"),
        "`no-such-shell` is not installed here: install it, or write its path (the first line of `HERE/env` names it)"
    );
    assert_eq!(
        program("./text"),
        "`HERE/text` is no program that a guest can run: it begins neither as an ELF program nor with `#!` and an interpreter"
    );
    assert_eq!(program("./plain"), "`HERE/plain` is no program that a guest can run: it may not be executed: chmod +x");
    assert_eq!(program("./"), "`HERE` is no program that a guest can run: it is no file");
    let file = |name: &str| at(refused(wanted(folder.path(), &[], &[name])));
    assert_eq!(file("data"), "`data`, which `files` names, is not there (there is no `HERE/data`)");
    assert_eq!(file("/no/such"), "`/no/such`, which `files` names, is not there (there is no `/no`)");
    assert_eq!(
        file("/proc/self/maps"),
        "`/proc/self/maps`, which `files` names, cannot come along: a guest has a /proc of its own"
    );
}

#[test]
fn a_script_that_is_its_own_interpreter_ends() {
    let folder = folder(&[("loop", "")]);
    let own = fs::canonicalize(folder.path().join("loop")).unwrap();
    fs::write(&own, format!("#!{}\n", own.display())).unwrap();
    // The kernel refuses it with ELOOP when it is started, and the cell then says so.
    assert!(payload(wanted(folder.path(), &["./loop"], &[])).at(&format!("{HERE}/loop")).is_some());
}

#[test]
fn a_folder_comes_with_all_that_is_in_it() {
    let folder =
        folder(&[("lib/run", "#!/bin/sh\n"), ("lib/deep/data", "x"), ("lib/odd", "#!/no/such\n"), ("beside", "y")]);
    let lib = folder.path().join("lib");
    symlink("..", lib.join("deep/round")).unwrap();
    symlink("nowhere", lib.join("dangling")).unwrap();
    symlink("../beside", lib.join("out")).unwrap();
    symlink("/proc/self/mounts", lib.join("mtab")).unwrap();
    std::os::unix::net::UnixListener::bind(lib.join("socket")).unwrap();
    let packed = packed(wanted(folder.path(), &[], &["lib"]));
    assert!(packed.refused.is_empty(), "{:?}", packed.refused);
    let here = |path: &str| packed.payload.at(&format!("{HERE}/{path}")).cloned();
    for (path, target) in
        [("dangling", "nowhere"), ("out", "../beside"), ("mtab", "/proc/self/mounts"), ("deep/round", "..")]
    {
        assert_eq!(here(&format!("lib/{path}")), Some(Item::Link(target.to_owned())));
    }
    assert!(matches!(here("lib/deep/data"), Some(Item::File { length: 1, modified: 0, .. })));
    assert!(matches!(here("beside"), Some(Item::File { .. })), "what a link leads to");
    assert_eq!(here("lib/socket"), None);
    is_program(&packed.payload, "/bin/sh", "/bin/sh");
    assert!(packed.notes.iter().any(|note| note.contains("lib/socket` is neither")), "{:?}", packed.notes);
    assert!(packed.notes.iter().any(|note| note.contains("/no/such")), "{:?}", packed.notes);
}

#[test]
fn what_a_cell_only_mentions_may_be_missing() {
    let folder = folder(&[("there", "x")]);
    let mentioned = ["there", "made later"].map(str::to_owned).to_vec();
    let payload = payload(Wanted { mentioned, ..wanted(folder.path(), &[], &[]) });
    assert!(payload.at(&format!("{HERE}/there")).is_some());
}

#[test]
fn a_name_alone_is_that_of_a_library_or_a_program_unless_it_lies_beside_the_sweep() {
    let folder = folder(&[("env", "#!/bin/sh\n")]);
    let payload = payload(wanted(folder.path(), &[], &["libgcc_s.so.1", "dirname", "env"]));
    let library = super::Linker::of_this_host().unwrap().standard("libgcc_s.so.1").unwrap();
    assert!(matches!(resolve(&payload, library.host.to_str().unwrap()), Some(Item::File { .. })));
    is_program(&payload, "/usr/bin/dirname", "/usr/bin/dirname");
    assert!(resolve(&payload, "/usr/bin/env").is_none(), "the one beside the sweep is meant");
    assert!(payload.at(&format!("{HERE}/env")).is_some());
}

#[test]
fn paths_above_the_sweep_keep_their_place_to_it() {
    let root = folder(&[("a/x", "1"), ("a/b/c/sweep", ""), ("y", "2")]);
    let sweep = root.path().join("a/b/c");
    let payload = payload(wanted(&sweep, &[], &["../../x", "../../../y"]));
    assert!(payload.at("/up/up/x").is_some() && payload.at("/up/y").is_some(), "{payload:?}");
    let far = refused(wanted(&sweep, &[], &["../../../../../etc/passwd"]));
    assert!(far.contains("is more than 3 folders above the sweep file"), "{far}");
}

#[test]
fn more_than_fits_is_refused_and_says_where_it_is() {
    let folder = folder(&[("small/x", "x"), ("small/y", "y")]);
    fs::create_dir(folder.path().join("big")).unwrap();
    File::create(folder.path().join("big/file")).unwrap().set_len(MOST_BYTES).unwrap();
    let text = refused(wanted(folder.path(), &[], &["small", "big"]));
    assert!(text.contains("a guest takes at most 256 MiB in 20000"), "{text}");
    assert!(text.contains(&format!("`{HERE}/big` with 256 MiB")), "{text}");

    // Two cells that fit one by one, but not into one guest.
    let (one, two) = (wanted(folder.path(), &[], &["big"]), wanted(folder.path(), &[], &["small"]));
    let packed = pack(&BTreeSet::from([one.clone(), two.clone()])).unwrap();
    assert_eq!(packed.refused.keys().collect::<Vec<_>>(), [&two], "the second is refused");
    assert!(packed.payload.at(&format!("{HERE}/small/y")).is_none());
}

#[test]
fn what_one_cell_lacks_keeps_no_other_from_being_packed() {
    let folder = folder(&[("good", "#!/bin/sh\n"), ("bad", "#!/no/such\n")]);
    let (good, bad) = (wanted(folder.path(), &["./good"], &[]), wanted(folder.path(), &["./bad"], &[]));
    let packed = pack(&BTreeSet::from([good.clone(), bad.clone()])).unwrap();
    assert_eq!(packed.refused.keys().collect::<Vec<_>>(), [&bad]);
    assert!(packed.payload.at(&format!("{HERE}/good")).is_some());
}

#[test]
fn a_program_outside_the_guests_path_gets_a_link_on_it() {
    // The tests' own runner is one: cargo lies in a home folder.
    let Some(cargo) = std::env::var_os("PATH")
        .iter()
        .flat_map(std::env::split_paths)
        .map(|folder| folder.join("cargo"))
        .find(|path| path.is_file())
        .filter(|path| !["/usr/bin/cargo", "/usr/local/bin/cargo"].map(Path::new).contains(&path.as_path()))
    else {
        return;
    };
    let payload = payload(wanted(Path::new("/"), &["cargo"], &[]));
    is_program(&payload, "/usr/local/bin/cargo", cargo.to_str().unwrap());
}
