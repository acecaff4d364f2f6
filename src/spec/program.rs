//! The two programs of exec as a sweep has them: commands in which the values of keys stand in braces.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};

use crate::settings::template::{AT_RUN, Piece, fill, pieces};
use crate::settings::{Exec, Key, MetricSpec, Program, Settings, Side, Value, find};

/// The two programs of a sweep.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ExecTemplate {
    /// What is started first.
    pub server: ProgramTemplate,
    /// What is started when that is ready.
    pub client: ProgramTemplate,
    /// Files and folders that the programs need.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub files: Vec<String>,
    /// The folder of the sweep file.
    pub dir: String,
    /// Numbers that are taken from what they print.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub metrics: Vec<MetricSpec>,
}

/// One program of a sweep.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProgramTemplate {
    /// The program and its arguments.
    pub command: Vec<Argument>,
    /// The rest of it. There the command is empty, and texts of the environment have their placeholders.
    pub rest: Program,
}

/// An argument of a command.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Argument {
    /// One that is always there.
    One(String),
    /// Several that are there together, or not where a value that they name is `"default"`.
    Group(Vec<String>),
}

/// What a placeholder stands for.
#[derive(Clone, Copy, Debug)]
pub(super) enum Meaning {
    /// The value of a key.
    Key(&'static Key),
    /// Something that is known when a repeat runs.
    AtRun,
    /// Nothing.
    Unknown,
}

/// What the placeholder of that name stands for in the command of one end. There a key for both ends is that end's.
pub(super) fn meaning(name: &str, side: Side) -> Meaning {
    if AT_RUN.contains(&name) {
        return Meaning::AtRun;
    }
    let found = find(name).or_else(|| find(&format!("var.{name}")).filter(|key| key.path != name));
    let Some(key) = found else { return Meaning::Unknown };
    let settings = Settings::default();
    if key.read(&settings).is_some() {
        return Meaning::Key(key);
    }
    match find(&key.path.replacen('.', &format!(".{side}."), 1)) {
        Some(own) if own.read(&settings).is_some() => Meaning::Key(own),
        _ => Meaning::Unknown,
    }
}

/// The keys whose values a template names in the command of one end.
pub(super) fn keys_of(template: &str, side: Side) -> Vec<&'static Key> {
    let pieces = pieces(template).unwrap_or_default();
    let key = |piece| match piece {
        Piece::Name(name, _) => match meaning(name, side) {
            Meaning::Key(key) => Some(key),
            Meaning::AtRun | Meaning::Unknown => None,
        },
        Piece::Text(_) => None,
    };
    pieces.into_iter().filter_map(key).collect()
}

/// The value of a key in a cell.
pub(super) fn value_of(key: &Key, settings: &Settings) -> Value {
    key.read(settings).unwrap_or_else(Value::kernel_default)
}

impl ProgramTemplate {
    /// Every text in which placeholders stand.
    fn texts(&self) -> impl Iterator<Item = &str> {
        let command = self.command.iter().flat_map(|argument| match argument {
            Argument::One(text) => std::slice::from_ref(text),
            Argument::Group(texts) => texts,
        });
        command.chain(self.rest.env.values()).map(String::as_str)
    }

    /// The program of a cell: values of keys in place of their placeholders.
    fn fill(&self, settings: &Settings, side: Side) -> Program {
        let mut uses = BTreeSet::new();
        let mut fill_one = |text: &String| {
            uses.extend(keys_of(text, side).into_iter().map(|key| key.path.to_owned()));
            let value = |name: &str| match meaning(name, side) {
                Meaning::Key(key) => Some(value_of(key, settings).to_string()),
                Meaning::AtRun | Meaning::Unknown => None,
            };
            // A sweep that was checked has no braces out of place.
            fill(text, value).unwrap_or_else(|_| text.clone())
        };
        let is_there = |text: &String| keys_of(text, side).into_iter().all(|key| !value_of(key, settings).is_default());
        let mut command = Vec::new();
        for argument in &self.command {
            match argument {
                Argument::One(text) => command.push(fill_one(text)),
                Argument::Group(texts) if texts.iter().all(is_there) => command.extend(texts.iter().map(&mut fill_one)),
                Argument::Group(_) => {}
            }
        }
        let env = self.rest.env.iter().filter(|(_, text)| is_there(text));
        let env = env.map(|(name, text)| (name.clone(), fill_one(text))).collect();
        Program { command, env, uses, ..self.rest.clone() }
    }
}

impl ExecTemplate {
    /// The keys whose values stand in the commands and in the environments.
    pub(super) fn keys(&self) -> Vec<&'static Key> {
        let sides = [(&self.server, Side::Server), (&self.client, Side::Client)];
        let texts = sides.into_iter().flat_map(|(program, side)| program.texts().map(move |text| (text, side)));
        texts.flat_map(|(text, side)| keys_of(text, side)).collect()
    }

    /// The two programs of a cell.
    pub(super) fn fill(&self, settings: &Settings) -> Exec {
        Exec {
            server: self.server.fill(settings, Side::Server),
            client: self.client.fill(settings, Side::Client),
            files: self.files.clone(),
            dir: self.dir.clone(),
            metrics: self.metrics.clone(),
        }
    }

    /// What changed from these to `now`, in words: a name, and both as they are stored. Where the file lies does not matter.
    pub(super) fn differences(&self, now: &Self) -> Vec<(&'static str, String, String)> {
        fn shown(part: &impl Serialize) -> String {
            serde_json::to_string(part).unwrap_or_default()
        }
        [
            ("workload.server", shown(&self.server), shown(&now.server)),
            ("workload.client", shown(&self.client), shown(&now.client)),
            ("workload.files", shown(&self.files), shown(&now.files)),
            ("workload.metric", shown(&self.metrics), shown(&now.metrics)),
        ]
        .into_iter()
        .filter(|(_, was, is)| was != is)
        .collect()
    }
}
