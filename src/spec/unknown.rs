//! What to say about a key or a table that is not known: where it belongs, or what was probably meant.

use crate::settings::{KEYS, nearest};

use super::run::RUN_KEYS;

/// Keys at the top of a file.
pub(super) const TOP: [&str; 2] = ["name", "description"];

/// Lists of tables.
pub(super) const LISTS: [&str; 3] = ["zip", "exclude", "include"];

/// The path that was probably meant, and the sentence that says so.
pub(super) struct Suggestion {
    /// The path of a key, so that nothing is concluded from its absence.
    pub(super) path: Option<&'static str>,
    /// What to do.
    pub(super) fix: String,
}

/// Every path that can be set in a table.
fn paths() -> impl Iterator<Item = &'static str> {
    RUN_KEYS.iter().map(|key| key.path).chain(KEYS.iter().copied().flatten().map(|key| key.path))
}

/// A path as its table and its last part; the table of `name` is empty.
pub(super) fn split(path: &str) -> (&str, &str) {
    path.rsplit_once('.').unwrap_or(("", path))
}

/// Where a key is written: `under [socket]`, `at the top of the file`.
pub(super) fn within(path: &str) -> String {
    match split(path).0 {
        "" => "at the top of the file".to_owned(),
        table => format!("under [{table}]"),
    }
}

/// A number of things.
pub(super) fn count(number: usize, thing: &str) -> String {
    format!("{number} {thing}{}", if number == 1 { "" } else { "s" })
}

/// Every table of a sweep file, in the order of documentation.
pub(super) fn tables() -> Vec<&'static str> {
    let mut tables: Vec<&'static str> = Vec::new();
    for (table, _) in paths().map(split) {
        if !table.is_empty() && !tables.contains(&table) {
            tables.push(table);
        }
    }
    tables.extend(["workload.server", "workload.client", "sysctl", "var"]);
    tables.push("axes");
    tables
}

/// Names in backticks, joined.
pub(super) fn list<'a>(names: impl IntoIterator<Item = &'a str>) -> String {
    names.into_iter().map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", ")
}

/// What to say of a path below `sysctl` that names no sysctl of the network.
fn sysctl(path: &str) -> Option<Suggestion> {
    path.starts_with("sysctl.").then(|| Suggestion {
        path: None,
        fix: "a sysctl is named below `net`, with dots: \"net.ipv4.tcp_rmem\" in [sysctl], \"sysctl.net.ipv4.tcp_rmem\" as an axis"
            .to_owned(),
    })
}

/// For a key that its table does not have.
pub(super) fn key(path: &str) -> Suggestion {
    if let Some(suggestion) = sysctl(path) {
        return suggestion;
    }
    let (table, name) = split(path);
    if !table.is_empty() && TOP.contains(&name) {
        return Suggestion {
            path: None,
            fix: format!("`{name}` belongs at the top of the file, before the first table"),
        };
    }
    // The most general home of that name: `rcvbuf` belongs to [socket] before it belongs to [socket.client].
    if let Some(home) = paths().find(|home| split(home).1 == name) {
        let fix = match split(home).0 {
            "" => format!("`{name}` belongs at the top of the file, before the first table"),
            home => format!("`{name}` belongs to [{home}]"),
        };
        return Suggestion { path: Some(home), fix };
    }
    let top = if table.is_empty() { TOP.as_slice() } else { &[] };
    let siblings: Vec<&str> =
        top.iter().copied().chain(paths().filter(|path| split(path).0 == table).map(|path| split(path).1)).collect();
    if let Some(near) = nearest(name, &siblings) {
        return Suggestion { path: in_table(table, near), fix: format!("did you mean `{near}`?") };
    }
    let all: Vec<&str> = paths().map(|path| split(path).1).collect();
    if let Some(near) = nearest(name, &all)
        && let Some(home) = paths().find(|home| split(home).1 == near)
    {
        let fix = match split(home).0 {
            "" => format!("did you mean `{near}` at the top of the file?"),
            home => format!("did you mean `{near}` of [{home}]?"),
        };
        return Suggestion { path: Some(home), fix };
    }
    let place = if table.is_empty() { "the top of the file".to_owned() } else { format!("[{table}]") };
    Suggestion { path: None, fix: format!("{place} takes {}", list(siblings)) }
}

/// The path of `name` in `table`.
fn in_table(table: &str, name: &str) -> Option<&'static str> {
    paths().find(|path| split(path) == (table, name))
}

/// For a table that does not exist.
pub(super) fn table(path: &str) -> Suggestion {
    let tables = tables();
    let last = split(path).1;
    let fix = if let Some(near) = nearest(path, &LISTS) {
        format!("did you mean [[{near}]]?")
    } else if let Some(near) = nearest(path, &tables) {
        format!("did you mean [{near}]?")
    } else if tables.iter().any(|table| split(table).1 == last) {
        let inner = tables.iter().filter(|table| split(table).1 == last).map(|table| format!("[{table}]"));
        format!("did you mean {}?", inner.collect::<Vec<_>>().join(" or "))
    } else {
        let tables = tables.iter().map(|table| format!("[{table}]"));
        let tables: Vec<_> = tables.chain(LISTS.iter().map(|list| format!("[[{list}]]"))).collect();
        format!("the tables are {}", tables.join(", "))
    };
    Suggestion { path: None, fix }
}

/// For an axis, or a `--set`, over something that is no key.
pub(super) fn axis(name: &str) -> Suggestion {
    if let Some(suggestion) = sysctl(name) {
        return suggestion;
    }
    let last = split(name).1;
    if let Some(home) = paths().find(|home| split(home).1 == last) {
        return Suggestion { path: Some(home), fix: format!("did you mean \"{home}\"?") };
    }
    let (names, near) = crate::settings::names(name);
    if let Some(near) = near {
        return Suggestion {
            path: crate::settings::find(near).map(|key| key.path),
            fix: format!(
                "did you mean {}?",
                if near.contains('.') { format!("\"{near}\"") } else { format!("`{near}`") }
            ),
        };
    }
    // The keys for one end are many, and like those for both.
    let names = names.into_iter().filter(|name| !name.contains(".client.") && !name.contains(".server."));
    Suggestion { path: None, fix: format!("an axis is one of {}, or a sysctl", list(names)) }
}

#[cfg(test)]
mod tests {
    use super::{axis, key, table};

    #[test]
    fn a_key_is_sent_home() {
        assert_eq!(key("socket.chunk_size").fix, "`chunk_size` belongs to [workload]");
        assert_eq!(key("rcvbuf").fix, "`rcvbuf` belongs to [socket]");
        assert_eq!(key("workload.repeat").fix, "`repeat` belongs to [run]");
        assert_eq!(key("run.name").fix, "`name` belongs at the top of the file, before the first table");
    }

    #[test]
    fn a_slip_is_understood() {
        assert_eq!(key("workload.protokol").fix, "did you mean `protocol`?");
        assert_eq!(key("workload.protokol").path, Some("workload.protocol"));
        assert_eq!(key("nmae").fix, "did you mean `name`?");
        assert_eq!(table("wokload").fix, "did you mean [workload]?");
        assert_eq!(table("client").fix, "did you mean [link.client] or [socket.client] or [workload.client]?");
        assert!(key("sysctl.kernel.panic").fix.starts_with("a sysctl is named below `net`"));
        assert_eq!(axis("mtu").fix, "did you mean \"link.mtu\"?");
        assert_eq!(axis("rcvbuff").fix, "did you mean `rcvbuf`?");
        assert!(key("link.qqq").fix.starts_with("[link] takes `topology`"));
    }
}
