//! Data flows one way: a room of `src` imports only what the table below allows. Also here: every room says what it holds,
//! `unsafe` stays in `sys`, and nothing pulls in all names of a module.
//!
//! Sources are read as tokens, so that comments and texts do not count and macros do.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use proc_macro2::{Delimiter, TokenStream, TokenTree};

/// Whether a room has to be there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// It is.
    Made,
    /// It may be missing for now.
    Planned,
}
use State::{Made, Planned};

/// Each room, and the rooms that it may import, besides itself. In the order in which data flows: a room imports only rooms
/// above it.
const ROOMS: &[(&str, State, &[&str])] = &[
    ("units", Made, &[]),
    ("settings", Made, &["units"]),
    ("measurement", Made, &["units"]),
    ("sys", Made, &["units"]),
    ("spec", Made, &["settings", "units"]),
    ("plan", Made, &["spec", "settings", "units"]),
    ("workload", Made, &["settings", "measurement", "sys", "units"]),
    ("backend", Made, &["plan", "workload", "settings", "measurement", "sys", "units"]),
    ("record", Made, &["plan", "settings", "measurement", "units"]),
    ("stats", Made, &["record", "settings", "measurement", "units"]),
    ("run", Made, &["plan", "spec", "backend", "record", "stats", "workload", "settings", "measurement", "units"]),
    ("explain", Made, &["stats", "record", "settings", "measurement", "units"]),
    ("plot", Made, &["explain", "stats", "record", "settings", "measurement", "units"]),
    ("report", Made, &["plot", "explain", "stats", "record", "settings", "measurement", "units"]),
    ("gate", Made, &["stats", "record", "settings", "measurement", "units"]),
    (
        "cli",
        Made,
        &[
            "units",
            "settings",
            "measurement",
            "sys",
            "spec",
            "plan",
            "workload",
            "backend",
            "record",
            "run",
            "stats",
            "explain",
            "plot",
            "report",
            "gate",
        ],
    ),
];

/// The room in which `unsafe` may be written.
const UNSAFE_ROOM: &str = "sys";

/// Something in a source that a rule is about, and its line.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Finding {
    /// A path that goes through this module at the root of the crate.
    Room(usize, String),
    /// The root of the crate itself under another name, behind which any room could be.
    Root(usize),
    /// All names of a module of this crate: `use super::*`.
    Glob(usize),
    /// The word `unsafe`.
    Unsafe(usize),
    /// `mod name;`
    Module(usize, String),
}

/// All that `source` holds, where its file is a module `depth` levels below the root of the crate.
fn scan(source: &str, depth: usize) -> Vec<Finding> {
    let tokens: TokenStream = source.parse().expect("a source that can be split into tokens");
    let mut found = Vec::new();
    scan_tokens(tokens, depth, &mut found);
    found
}

fn scan_tokens(tokens: TokenStream, depth: usize, found: &mut Vec<Finding>) {
    let tokens: Vec<TokenTree> = tokens.into_iter().collect();
    let mut at = 0;
    while let Some(token) = tokens.get(at) {
        match token {
            TokenTree::Group(group) => scan_tokens(group.stream(), depth, found),
            TokenTree::Ident(word) if word == "unsafe" => found.push(Finding::Unsafe(line(token))),
            TokenTree::Ident(word) if word == "crate" || word == "super" || word == "self" => {
                at = follow(&tokens, at, Some(depth), false, found);
                continue;
            }
            TokenTree::Ident(word) if word == "mod" => match (tokens.get(at + 1), tokens.get(at + 2)) {
                (Some(TokenTree::Ident(_)), Some(TokenTree::Group(body))) if body.delimiter() == Delimiter::Brace => {
                    scan_tokens(body.stream(), depth + 1, found);
                    at += 3;
                    continue;
                }
                (Some(TokenTree::Ident(name)), Some(end)) if is_punct(end, ';') => {
                    found.push(Finding::Module(line(token), name.to_string()));
                }
                _ => {}
            },
            _ => {}
        }
        at += 1;
    }
}

/// Follows the path that begins at `at`, seen from a module `depth` levels below the root (`None`: from some item, where no room
/// can be met any more), and returns the place after it.
fn follow(
    tokens: &[TokenTree],
    mut at: usize,
    mut depth: Option<usize>,
    in_group: bool,
    found: &mut Vec<Finding>,
) -> usize {
    while let Some(token) = tokens.get(at) {
        match token {
            TokenTree::Ident(word) if word == "crate" => depth = Some(0),
            TokenTree::Ident(word) if word == "super" => depth = depth.map(|depth| depth.saturating_sub(1)),
            TokenTree::Ident(word) if word == "self" => {}
            TokenTree::Ident(word) => {
                if depth == Some(0) {
                    found.push(Finding::Room(line(token), word.to_string()));
                }
                depth = None;
            }
            TokenTree::Group(group) if group.delimiter() == Delimiter::Brace => {
                let inner: Vec<TokenTree> = group.stream().into_iter().collect();
                for item in inner.split(|token| is_punct(token, ',')) {
                    follow(item, 0, depth, true, found);
                }
                return at + 1;
            }
            TokenTree::Punct(star) if star.as_char() == '*' => {
                found.push(Finding::Glob(line(token)));
                return at + 1;
            }
            // The arguments of a generic type, say: not part of the path, and looked at by the caller.
            _ => return at,
        }
        at += 1;
        if is_path_separator(tokens, at) {
            at += 2;
            continue;
        }
        let renamed = matches!(tokens.get(at), Some(TokenTree::Ident(word)) if word == "as");
        if depth == Some(0) && (renamed || in_group) {
            found.push(Finding::Root(line(token)));
        }
        return at;
    }
    at
}

fn is_punct(token: &TokenTree, wanted: char) -> bool {
    matches!(token, TokenTree::Punct(punct) if punct.as_char() == wanted)
}

fn is_path_separator(tokens: &[TokenTree], at: usize) -> bool {
    matches!(tokens.get(at..at + 2), Some([first, second]) if is_punct(first, ':') && is_punct(second, ':'))
}

fn line(token: &TokenTree) -> usize {
    token.span().start().line
}

/// A source of the crate.
struct Source {
    /// Relative to `src`, parts joined by `/`.
    path: String,
    text: String,
}

impl Source {
    /// The folder of `src` that it is in; `None` for `lib.rs` and `main.rs`.
    fn room(&self) -> Option<&str> {
        self.path.split_once('/').map(|(room, _)| room)
    }

    /// How far below the root of the crate its module is.
    fn depth(&self) -> usize {
        let path = self.path.strip_suffix(".rs").expect("a Rust source");
        path.split('/').filter(|part| !matches!(*part, "mod" | "lib" | "main")).count()
    }
}

fn sources() -> Vec<Source> {
    fn collect(folder: &Path, files: &mut Vec<PathBuf>) {
        for entry in fs::read_dir(folder).expect("a folder that can be read") {
            let path = entry.expect("an entry that can be read").path();
            if path.is_dir() {
                collect(&path, files);
            } else if path.extension().is_some_and(|extension| extension == "rs") {
                files.push(path);
            }
        }
    }
    let src = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let mut files = Vec::new();
    collect(&src, &mut files);
    files.sort();
    let source = |path: PathBuf| Source {
        path: path.strip_prefix(&src).expect("below src").to_str().expect("a plain name").replace('\\', "/"),
        text: fs::read_to_string(&path).expect("a source that can be read"),
    };
    files.into_iter().map(source).collect()
}

/// What the rules have against one source.
fn complaints(source: &Source) -> Vec<String> {
    let room = source.room();
    let may_import = ROOMS.iter().find(|(name, ..)| Some(*name) == room).map(|(_, _, imports)| *imports);
    let mut complaints = Vec::new();
    for finding in scan(&source.text, source.depth()) {
        let (line, complaint) = match finding {
            Finding::Room(line, target) => match (room, may_import) {
                (Some(room), _) if room == target => continue,
                (Some(_), Some(imports)) if imports.contains(&target.as_str()) => continue,
                (Some(room), Some(_)) if ROOMS.iter().any(|(name, ..)| *name == target) => {
                    (line, format!("`{room}` may not import `{target}`"))
                }
                _ => (line, format!("`crate::{target}` is not one of the rooms that this file may import")),
            },
            Finding::Root(line) => (line, "the root of the crate may not be imported: name the room".to_owned()),
            Finding::Glob(line) => (line, "all names of a module at once: import what is used by name".to_owned()),
            Finding::Unsafe(_) if room == Some(UNSAFE_ROOM) => continue,
            Finding::Unsafe(line) => (line, format!("`unsafe` belongs into `{UNSAFE_ROOM}`")),
            Finding::Module(..) => continue,
        };
        complaints.push(format!("src/{}:{line}: {complaint}", source.path));
    }
    complaints
}

#[test]
fn rooms_import_only_what_the_table_allows() {
    let complaints: Vec<String> = sources().iter().flat_map(complaints).collect();
    assert!(complaints.is_empty(), "against the rules of tests/layering.rs:\n{}", complaints.join("\n"));
}

#[test]
fn the_table_and_the_folders_agree() {
    let sources = sources();
    let folders: BTreeSet<&str> = sources.iter().filter_map(Source::room).collect();
    for folder in &folders {
        assert!(ROOMS.iter().any(|(name, ..)| name == folder), "src/{folder} is not in the table of rooms");
    }
    for (name, state, _) in ROOMS {
        assert!(*state == Planned || folders.contains(name), "the table names `{name}`, and there is no src/{name}");
    }
    let files: Vec<&str> = sources.iter().filter(|s| s.room().is_none()).map(|s| s.path.as_str()).collect();
    assert_eq!(files, ["lib.rs", "main.rs"], "every other source is in a room");
    let lib = sources.iter().find(|source| source.path == "lib.rs").expect("src/lib.rs");
    let modules: BTreeSet<String> = scan(&lib.text, 0)
        .into_iter()
        .filter_map(|finding| if let Finding::Module(_, name) = finding { Some(name) } else { None })
        .collect();
    assert_eq!(modules, folders.iter().map(|&folder| folder.to_owned()).collect(), "lib.rs and the folders of src");
}

#[test]
fn the_table_goes_one_way() {
    for (index, (name, _, imports)) in ROOMS.iter().enumerate() {
        for import in *imports {
            assert!(
                ROOMS[..index].iter().any(|(above, ..)| above == import),
                "`{name}` may import `{import}`, which is not above it in the table"
            );
        }
    }
}

#[test]
fn every_room_says_what_it_holds() {
    let sources = sources();
    for folder in sources.iter().filter_map(Source::room).collect::<BTreeSet<_>>() {
        let path = format!("{folder}/mod.rs");
        let source =
            sources.iter().find(|source| source.path == path).unwrap_or_else(|| panic!("there is no src/{path}"));
        assert!(source.text.trim_start().starts_with("//! "), "src/{path} does not begin with what the room holds");
    }
}

/// The parser that the rules stand on.
mod parser {
    use super::{Finding, Source, complaints, scan};

    /// Rooms that a source one level below the root goes through, in the order of its lines.
    fn rooms(source: &str) -> Vec<String> {
        rooms_from(source, 1)
    }

    fn rooms_from(source: &str, depth: usize) -> Vec<String> {
        let room = |finding| if let Finding::Room(_, name) = finding { Some(name) } else { None };
        scan(source, depth).into_iter().filter_map(room).collect()
    }

    fn complaints_about(path: &str, text: &str) -> Vec<String> {
        complaints(&Source { path: path.to_owned(), text: text.to_owned() })
    }

    #[test]
    fn plain_imports() {
        assert_eq!(rooms("use crate::plan::Cell;"), ["plan"]);
        assert_eq!(rooms("pub(crate) use crate::plan;"), ["plan"]);
        assert_eq!(rooms("use ::std::fs; use serde::Serialize; use plan::Cell;"), [""; 0]);
    }

    #[test]
    fn groups() {
        assert_eq!(rooms("use crate::{plan::Cell, sys::socket};"), ["plan", "sys"]);
        assert_eq!(rooms("use crate::{plan::{Cell, Plan as P, id::{self, CellId}}, sys};"), ["plan", "sys"]);
        assert_eq!(rooms("use crate::{{plan::Cell}, {sys::{a, b}, stats},};"), ["plan", "sys", "stats"]);
        assert_eq!(rooms("use {crate::plan::Cell, std::fs, crate::sys};"), ["plan", "sys"]);
    }

    #[test]
    fn several_lines() {
        let source =
            "use crate\n    ::{\n        plan::{\n            Cell,\n        },\n        // no\n        sys\n};";
        let found = scan(source, 1);
        assert_eq!(found, [Finding::Room(3, "plan".to_owned()), Finding::Room(7, "sys".to_owned())]);
    }

    #[test]
    fn paths_in_expressions_types_and_attributes() {
        assert_eq!(rooms("fn f() -> u8 { crate::plan::count() * 2 }"), ["plan"]);
        assert_eq!(rooms("fn f(x: &crate::sys::Fd, y: Vec<crate::stats::Summary>) {}"), ["sys", "stats"]);
        assert_eq!(rooms("impl<T: crate::a::A> crate::b::B<crate::c::C<T>> for crate::d::D {}"), ["a", "b", "c", "d"]);
        assert_eq!(
            rooms("fn f() { crate::a::new::<crate::b::B>(crate::c::C { x: crate::d::D }) }"),
            ["a", "b", "c", "d"]
        );
        assert_eq!(rooms("pub(in crate::plan) struct A; #[derive(crate::sys::Derive)] struct B;"), ["plan", "sys"]);
    }

    #[test]
    fn inside_macros() {
        assert_eq!(rooms("fn f() { println!(\"{}\", crate::plan::NAME); vec![crate::sys::A; 3]; }"), ["plan", "sys"]);
        assert_eq!(rooms("macro_rules! m { ($x:expr) => { $crate::plan::go($x) }; }"), ["plan"]);
    }

    #[test]
    fn comments_and_texts_do_not_count() {
        let source = r##"
            //! `crate::plan::Cell`, unsafe
            /// See [`crate::sys`]; use super::*;
            // use crate::plan::Cell;
            /* use crate::sys; /* nested: unsafe */ use super::*; */
            const A: &str = "crate::plan::Cell \" crate::sys";
            const B: &str = r#"use crate::"stats"::*; unsafe"#;
            const C: (&[u8], char, char) = (b"crate::sys", '"', '\'');
            fn f<'a>(x: &'a str) -> &'a str { x } // 'crate::plan
        "##;
        assert_eq!(scan(source, 1), []);
    }

    #[test]
    fn the_way_round_through_super() {
        assert_eq!(rooms("use super::plan::Cell;"), ["plan"]);
        assert_eq!(rooms("use self::super::{plan, sys::A};"), ["plan", "sys"]);
        assert_eq!(rooms_from("use super::sibling::Item;", 2), [""; 0]);
        assert_eq!(rooms_from("use super::super::sys::Item;", 2), ["sys"]);
        assert_eq!(rooms_from("use super::{item, super::{sys::Item}};", 2), ["sys"]);
        assert_eq!(rooms("mod tests { use super::item; use super::super::sys::Item; }"), ["sys"]);
        assert_eq!(rooms("mod tests { mod deeper { use super::super::item; } } use super::sys;"), ["sys"]);
    }

    #[test]
    fn the_root_itself() {
        for source in
            ["use crate as root;", "use crate::{self as root};", "use super as root;", "use crate::{self, plan};"]
        {
            assert!(matches!(scan(source, 1)[0], Finding::Root(1)), "{source}");
        }
        for source in ["pub(crate) fn f(self) -> u8 { self.0 as u8 }", "pub(super) struct A;", "fn f() { Self::g() }"] {
            assert_eq!(scan(source, 1), [], "{source}");
        }
    }

    #[test]
    fn globs() {
        for source in [
            "use super::*;",
            "mod tests { use super::*; }",
            "use super::{inner::*, Item};",
            "pub use self::inner::*;",
            "fn f() { use crate::plan::*; }",
        ] {
            assert!(scan(source, 1).contains(&Finding::Glob(1)), "{source}");
        }
        for source in
            ["use proptest::prelude::*;", "fn f() -> u8 { super::super::A * super::super::B }", "use Kind::*;"]
        {
            assert!(!scan(source, 3).contains(&Finding::Glob(1)), "{source}");
        }
    }

    #[test]
    fn the_word_unsafe() {
        assert_eq!(scan("fn f() {\n    unsafe { g() }\n}", 1), [Finding::Unsafe(2)]);
        assert_eq!(
            scan("unsafe impl Send for A {}\nunsafe extern \"C\" {}", 1),
            [Finding::Unsafe(1), Finding::Unsafe(2)]
        );
        assert_eq!(scan("#![forbid(unsafe_code)] fn unsafely() {}", 1), []);
    }

    #[test]
    fn what_is_said_of_a_source() {
        let text = "use crate::units::Bytes;\nuse crate::plan::Cell;\nuse crate::stats::Summary;\nuse super::*;\n";
        assert_eq!(
            complaints_about("plan/deep/inner.rs", text),
            [
                "src/plan/deep/inner.rs:3: `plan` may not import `stats`",
                "src/plan/deep/inner.rs:4: all names of a module at once: import what is used by name",
            ]
        );
        assert_eq!(
            complaints_about("plan/mod.rs", "use crate::nothing;\nunsafe fn f() {}\nuse super::{units, sys::A};"),
            [
                "src/plan/mod.rs:1: `crate::nothing` is not one of the rooms that this file may import",
                "src/plan/mod.rs:2: `unsafe` belongs into `sys`",
                "src/plan/mod.rs:3: `plan` may not import `sys`",
            ]
        );
        assert!(complaints_about("sys/socket.rs", "unsafe fn f() {}").is_empty());
        assert_eq!(complaints_about("unknown/mod.rs", "use crate::sys;").len(), 1);
        assert_eq!(complaints_about("main.rs", "fn main() { sweep::cli::main() }"), [""; 0]);
        assert_eq!(complaints_about("main.rs", "fn main() { crate::cli::main() }").len(), 1);
    }

    #[test]
    fn the_depth_of_a_source() {
        let depth = |path: &str| Source { path: path.to_owned(), text: String::new() }.depth();
        assert_eq!(["lib.rs", "plan/mod.rs", "plan/id.rs", "a/b/mod.rs", "a/b/c.rs"].map(depth), [0, 1, 2, 2, 3]);
    }
}
