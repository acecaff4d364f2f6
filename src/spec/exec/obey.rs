//! Whether the programs can do what the sweep asks of its cells: a key that reaches no program varies nothing.

use crate::settings::template::AT_RUN;
use crate::settings::{Key, Side, Work, find};
use crate::spec::cells::{Cells, Point};
use crate::spec::check::Draft;
use crate::spec::error::{Place, SpecError};
use crate::spec::program::value_of;
use crate::spec::unknown::split;

use super::{Name, unknown_name};

/// Keys of [workload] that are for exec too.
const OWN: [&str; 4] = ["workload.kind", "workload.protocol", "workload.style", "workload.port"];

impl Draft {
    /// Checks the programs against the cells that run them.
    pub(in crate::spec) fn programs(&mut self, cells: &Cells<'_>, points: &[Point<'_>]) {
        if self.broken.contains(&"workload.kind") {
            return;
        }
        let settings: Vec<_> = points.iter().map(|point| (point, cells.settings(point))).collect();
        let programs = settings.iter().filter(|(_, settings)| settings.workload.kind == Work::Exec).count();
        let set: Vec<(&'static Key, Place)> = self
            .fixed
            .iter()
            .map(|setting| (setting.key, setting.place.clone()))
            .chain(self.axes.iter().map(|axis| (axis.key, axis.place.clone())))
            .collect();
        if programs == 0 {
            self.no_programs(&set);
            return;
        }
        let names = std::mem::take(&mut self.exec.names);
        self.errors.extend(names.iter().filter_map(|name| unset(name, &set)));
        // Of what is wrong with a program nothing else is concluded.
        if self.exec.wrong || !self.both_programs(&set) {
            return;
        }
        let mut errors = Vec::new();
        for (key, place) in &set {
            errors.extend(taken(key, place));
            if !self.broken.contains(&key.path) && !is_used(key, &names) {
                errors.extend(unused(key, place, programs < points.len()));
            }
        }
        if errors.is_empty() {
            for name in names.iter().filter(|name| !name.optional) {
                let without = settings
                    .iter()
                    .filter(|(_, cell)| cell.workload.kind == Work::Exec && value_of(name.key, cell).is_default());
                let mut without = without.map(|(point, _)| cells.axes(point)).peekable();
                if let Some(first) = without.peek().cloned() {
                    let count = without.count();
                    let which = if count < points.len() {
                        format!(" in {count} of {} cells, the first `{first}`", points.len())
                    } else {
                        String::new()
                    };
                    let error = SpecError::new(
                        format!("`{{{}}}` is \"default\"{which}, which is no value for a program", name.typed),
                        format!(
                            "put it in brackets of its own, with the arguments that go with it: [\"…\", \"{{{}}}\"] is left out where the value is \"default\"; or set `{}`",
                            name.typed, name.key.path
                        ),
                    );
                    errors.push(error.at(&name.place, "no value"));
                }
            }
        }
        self.errors.extend(errors);
    }

    /// What is said of programs where no cell runs any.
    fn no_programs(&mut self, set: &[(&'static Key, Place)]) {
        let own = set.iter().find(|(key, _)| key.path.starts_with("var.") || key.path == "workload.port");
        let first = self.exec.first.clone().map(|place| ("the programs are".to_owned(), place));
        let first = first.or_else(|| own.map(|(key, place)| (format!("`{}` is", key.path), place.clone())));
        if let Some((what, place)) = first {
            let error = SpecError::new(
                format!("{what} for kind = \"exec\", and no cell has that"),
                "set kind = \"exec\" under [workload], or leave this out",
            );
            self.errors.push(error.at(&place, "not used"));
        }
    }

    /// Whether there are two programs. Says so if not.
    fn both_programs(&mut self, set: &[(&'static Key, Place)]) -> bool {
        let missing: Vec<Side> =
            [Side::Server, Side::Client].into_iter().filter(|side| !self.exec.programs.contains_key(side)).collect();
        for side in &missing {
            let mut error = SpecError::new(
                format!("kind = \"exec\" runs two programs, and there is no [workload.{side}]"),
                format!("write [workload.{side}] with command = [\"…\"]"),
            );
            if let Some((_, place)) = set.iter().find(|(key, _)| key.path == "workload.kind") {
                error = error.at(place, "asked for here");
            }
            self.errors.push(error);
        }
        missing.is_empty()
    }
}

/// The error of a placeholder for a value of the user's own that nothing sets.
fn unset(name: &Name, set: &[(&'static Key, Place)]) -> Option<SpecError> {
    let unset = name.key.path.starts_with("var.") && !set.iter().any(|(key, _)| std::ptr::eq(*key, name.key));
    unset.then(|| {
        SpecError::new(format!("`{{{}}}` stands for nothing", name.typed), unknown_name(&name.typed))
            .at(&name.place, "unknown placeholder")
    })
}

/// The error of a value of the user's own whose name stands for something else.
fn taken(key: &Key, place: &Place) -> Option<SpecError> {
    let name = key.path.strip_prefix("var.")?;
    (find(name).is_some() || AT_RUN.contains(&name)).then(|| {
        SpecError::new(
            format!("`{name}` stands for something else already"),
            format!("call it another name than {{{name}}}"),
        )
        .at(place, "taken")
    })
}

/// Whether a key stands in a command. One for both ends does by either end's.
fn is_used(key: &Key, names: &[Name]) -> bool {
    names.iter().any(|name| {
        std::ptr::eq(name.key, key) || name.key.path == key.path.replacen('.', &format!(".{}.", name.side), 1)
    })
}

/// The error of a key that reaches no program. `mixed` tells whether other cells run something else.
fn unused(key: &'static Key, place: &Place, mixed: bool) -> Option<SpecError> {
    let path = key.path;
    let named = format!("{{{}}}", key.name());
    let error = match split(path).0.split('.').next().unwrap_or_default() {
        "socket" => SpecError::new(
            format!("`{path}` reaches no program: socket options of a program are not ours to set"),
            format!("hand it to a program that takes it, as {named} in a command; or leave it out"),
        ),
        "workload" if !OWN.contains(&path) && !mixed => SpecError::new(
            format!("`{path}` is for sweep's own workloads, and no command names it"),
            format!("hand it to a program that takes it, as {named} in a command; or leave it out"),
        ),
        "var" => SpecError::new(
            format!("`{path}` stands in no command"),
            format!("write {named} where its value belongs; or leave it out"),
        ),
        _ if path == "preset" => SpecError::new(
            "a preset sets socket options, which of a program are not ours to set",
            "leave it out: what the program asks for is read from outside",
        ),
        _ => return None,
    };
    Some(error.at(place, "reaches no program"))
}
