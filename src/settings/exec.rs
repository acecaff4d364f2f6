//! Two programs of the user's as a workload: what is started, when the server counts as ready, how both end, and which numbers are
//! taken from what they print.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

use crate::units::{Better, Span, choice};

use super::Protocol;

choice! {
    /// One of the two ends of a cell.
    Side {
        /// The end that is started when the other is ready.
        #[default] Client = "client",
        /// The end that is started first.
        Server = "server",
    }
}

choice! {
    /// What a metric is.
    Stands {
        /// A figure of its own, under its own name.
        #[default] ForItself = "metric",
        /// The completion of the repeat, in place of the client's life time.
        Completion = "completion",
        /// The goodput of the repeat.
        Goodput = "goodput",
    }
}

choice! {
    /// How a program is ended.
    Stop {
        /// `SIGTERM` to its process group.
        #[default] Term = "SIGTERM",
        /// `SIGINT`.
        Int = "SIGINT",
        /// `SIGHUP`.
        Hup = "SIGHUP",
        /// `SIGQUIT`.
        Quit = "SIGQUIT",
        /// `SIGUSR1`.
        Usr1 = "SIGUSR1",
        /// `SIGUSR2`.
        Usr2 = "SIGUSR2",
        /// `SIGKILL`.
        Kill = "SIGKILL",
        /// Not at all: it ends by itself when its client has left.
        Itself = "itself",
    }
}

/// Two programs as the workload of a cell. Values of keys stand in their texts; `{server_addr}`, `{client_addr}`, `{scratch}` and
/// `{dir}` do not yet, see [`super::template`].
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Exec {
    /// What is started in the server's namespace, first.
    pub server: Program,
    /// What is started in the client's namespace when the server is ready.
    pub client: Program,
    /// Files and folders that the programs need besides their executables: absolute, or below [`Exec::dir`].
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub files: Vec<String>,
    /// The folder of the sweep file, absolute. Where it lies is no part of the cell's id.
    #[serde(default)]
    pub dir: String,
    /// Numbers that are taken from what the programs print.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub metrics: Vec<MetricSpec>,
}

impl Exec {
    /// What of it decides a cell, as lines `path=value`. Where its folder lies does not.
    pub(super) fn canonical(&self) -> Vec<String> {
        let mut lines = Vec::new();
        let mut add = |path: String, value: &dyn Fn() -> Result<String, serde_json::Error>| {
            // Texts, numbers and lists of these always have a form in JSON.
            lines.push(format!("{path}={}\n", value().unwrap_or_default()));
        };
        for (side, program) in [(Side::Client, &self.client), (Side::Server, &self.server)] {
            let usual = Program::default();
            let path = |name: &str| format!("exec.{side}.{name}");
            add(path("command"), &|| serde_json::to_string(&program.command));
            for (name, value) in &program.env {
                add(path(&format!("env.{name}")), &|| serde_json::to_string(value));
            }
            if program.ready != usual.ready {
                add(path("ready"), &|| serde_json::to_string(&program.ready));
            }
            if program.stop != usual.stop {
                add(path("stop"), &|| serde_json::to_string(&program.stop));
            }
            if program.success != usual.success {
                add(path("success"), &|| serde_json::to_string(&program.success));
            }
        }
        if !self.files.is_empty() {
            add("exec.files".to_owned(), &|| serde_json::to_string(&self.files));
        }
        // A metric of its own decides none of the figures that each cell has.
        for metric in self.metrics.iter().filter(|metric| metric.is != Stands::ForItself) {
            add(format!("exec.metric.{}", metric.name), &|| serde_json::to_string(metric));
        }
        lines
    }

    /// The program at one end.
    pub const fn program(&self, side: Side) -> &Program {
        match side {
            Side::Client => &self.client,
            Side::Server => &self.server,
        }
    }
}

/// One program.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Program {
    /// The program and its arguments. The first word is a name that is looked up in `PATH`, an absolute path, or a path below
    /// [`Exec::dir`].
    pub command: Vec<String>,
    /// Variables of its environment, beside `PATH`, `HOME`, `TMPDIR` and `LC_ALL`, which it is given where these do not name them.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub env: BTreeMap<String, String>,
    /// Paths of the keys whose values stand in its command or its environment.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub uses: BTreeSet<String>,
    /// The package to install where the program is not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub package: Option<String>,
    /// When it counts as ready. Of the server only.
    pub ready: Ready,
    /// How long it may take until it is.
    pub ready_timeout: Span,
    /// How it is ended. The client ends by itself.
    pub stop: Stop,
    /// How long it may take to end before `SIGKILL`.
    pub grace: Span,
    /// Exit codes that mean success.
    pub success: Vec<u8>,
}

impl Program {
    /// How long a server may take until it is ready, where the file does not say.
    pub const DEFAULT_READY_TIMEOUT: Span = Span(10_000_000_000);
    /// How long a server may take to end after it was told to, where the file does not say.
    pub const DEFAULT_GRACE: Span = Span(2_000_000_000);
}

impl Default for Program {
    fn default() -> Self {
        Self {
            command: Vec::new(),
            env: BTreeMap::new(),
            uses: BTreeSet::new(),
            package: None,
            ready: Ready::default(),
            ready_timeout: Self::DEFAULT_READY_TIMEOUT,
            stop: Stop::default(),
            grace: Self::DEFAULT_GRACE,
            success: vec![0],
        }
    }
}

/// When a server counts as ready.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Ready {
    /// When its namespace has a socket that takes what comes to a port.
    Port {
        /// Of this protocol; `None` for `workload.protocol`.
        protocol: Option<Protocol>,
        /// On this port; `None` for `workload.port`.
        port: Option<u16>,
    },
    /// When it has printed a line that matches this regular expression.
    Line(String),
    /// After so long.
    After(Span),
}

impl Default for Ready {
    fn default() -> Self {
        Self::Port { protocol: None, port: None }
    }
}

/// A number that is taken from what a program prints.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct MetricSpec {
    /// Its name in records, tables and pictures.
    pub name: String,
    /// Its unit. One of time for a completion, one of rate for a goodput, any word otherwise; may be empty.
    pub unit: String,
    /// Which direction is an improvement.
    pub better: Better,
    /// Whose output it stands in.
    pub from: Side,
    /// Where it stands there.
    pub source: Source,
    /// What it is.
    pub is: Stands,
}

/// Units of time, in nanoseconds.
const TIMES: [(&str, f64); 6] = [("s", 1e9), ("ms", 1e6), ("us", 1e3), ("µs", 1e3), ("ns", 1.0), ("min", 60e9)];
/// Units of rate, in bits per second.
const RATES: [(&str, f64); 8] = [
    ("bit/s", 1.0),
    ("kbit/s", 1e3),
    ("Mbit/s", 1e6),
    ("Gbit/s", 1e9),
    ("B/s", 8.0),
    ("kB/s", 8e3),
    ("MB/s", 8e6),
    ("GB/s", 8e9),
];

impl MetricSpec {
    /// A unit of time in nanoseconds; `None` for any other word.
    pub fn time_unit(unit: &str) -> Option<f64> {
        TIMES.iter().find(|(name, _)| *name == unit).map(|(_, scale)| *scale)
    }

    /// A unit of rate in bits per second; `None` for any other word.
    pub fn rate_unit(unit: &str) -> Option<f64> {
        RATES.iter().find(|(name, _)| *name == unit).map(|(_, scale)| *scale)
    }

    /// The units that a completion or a goodput may have.
    pub fn units_of(is: Stands) -> Vec<&'static str> {
        match is {
            Stands::ForItself => Vec::new(),
            Stands::Completion => TIMES.iter().map(|(name, _)| *name).collect(),
            Stands::Goodput => RATES.iter().map(|(name, _)| *name).collect(),
        }
    }
}

/// Where a number stands in the output of a program.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Source {
    /// What the first group of this regular expression matches, the last time that it does; standard output is looked at first, then
    /// standard error.
    Regex(String),
    /// What this JSON pointer (RFC 6901) points to in standard output, which is one JSON document.
    Json(String),
}
