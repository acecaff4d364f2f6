//! [[workload.metric]]: a number that is taken from what a program prints.

use crate::settings::{Kind, MetricSpec, Side, Source, Stands, Value};
use crate::spec::check::Draft;
use crate::spec::error::{Place, SpecError};
use crate::spec::raw::Entry;
use crate::spec::unknown::list;
use crate::units::Better;

use super::PartKey;

/// All keys of [[workload.metric]].
pub(in crate::spec) const METRIC_KEYS: [PartKey; 7] = [
    PartKey {
        name: "name",
        takes: "a text in quotes: letters, digits and `_`",
        default: "needed",
        about: "its name in records, tables and files",
        of_client: true,
    },
    PartKey {
        name: "regex",
        takes: "a text in quotes",
        default: "this or `json`",
        about: "a regular expression whose first group is the number; its last match counts, in standard output if there is one, else in standard error; `^` and `$` are ends of lines",
        of_client: true,
    },
    PartKey {
        name: "json",
        takes: "a text in quotes",
        default: "this or `regex`",
        about: "a JSON pointer (RFC 6901) to the number in standard output, which is one JSON document",
        of_client: true,
    },
    PartKey {
        name: "from",
        takes: "`\"client\"` or `\"server\"`",
        default: "`\"client\"`",
        about: "whose output it stands in",
        of_client: true,
    },
    PartKey {
        name: "unit",
        takes: "a text in quotes",
        default: "",
        about: "its unit; of a completion one of `s`, `ms`, `us`, `ns`, `min`, of a goodput one of `bit/s`, `kbit/s`, `Mbit/s`, `Gbit/s`, `B/s`, `kB/s`, `MB/s`, `GB/s`",
        of_client: true,
    },
    PartKey {
        name: "better",
        takes: "`\"lower\"` or `\"higher\"`",
        default: "needed but for a completion or a goodput",
        about: "which direction is an improvement",
        of_client: true,
    },
    PartKey {
        name: "is",
        takes: "`\"metric\"`, `\"completion\"` or `\"goodput\"`",
        default: "`\"metric\"`",
        about: "what it is: a figure of its own; the completion, in place of the client's life time; the goodput",
        of_client: true,
    },
];

/// Names that figures have already.
const TAKEN: [&str; 6] = ["completion", "goodput", "latency", "throughput", "cpu", "switches"];

impl Draft {
    /// Takes in a metric.
    pub(super) fn metric(&mut self, entries: &[Entry], place: &Place) -> Option<MetricSpec> {
        let before = self.errors.len();
        let mut texts: [Option<String>; 2] = [None, None];
        let [name, unit] = &mut texts;
        let (mut sources, mut better, mut from, mut is) = (Vec::new(), None, Side::Client, Stands::ForItself);
        for entry in entries {
            let choice = |names| Kind::Choice(names);
            match entry.path.as_str() {
                "name" => *name = self.part_value(entry, &Kind::Text).map(|value| value.to_string()),
                "unit" => *unit = self.part_value(entry, &Kind::Text).map(|value| value.to_string()),
                "regex" => sources.extend(self.pattern(entry)),
                "json" => sources.extend(self.pointer(entry)),
                "better" => better = self.word(entry, choice(Better::NAMES), Better::named),
                "from" => from = self.word(entry, choice(Side::NAMES), Side::named).unwrap_or_default(),
                "is" => is = self.word(entry, choice(Stands::NAMES), Stands::named).unwrap_or_default(),
                _ => self.no_such_part(entry, "[[workload.metric]]", &METRIC_KEYS),
            }
        }
        if self.errors.len() > before {
            return None;
        }
        let [name, unit] = texts;
        let mut fault =
            |message: String, fix: &str| self.errors.push(SpecError::new(message, fix).at(place, "this metric"));
        let Some(name) = name else {
            fault("this metric has no `name`".to_owned(), "write name = \"retransmits\", say");
            return None;
        };
        let fits = |c: char| c.is_ascii_alphanumeric() || c == '_';
        if !name.starts_with(|c: char| c.is_ascii_alphabetic()) || !name.chars().all(fits) || name.len() > 64 {
            fault(
                format!("`{name}` cannot name a metric"),
                "use letters, digits and `_`, at most 64, and begin with a letter",
            );
        }
        if is == Stands::ForItself && TAKEN.contains(&name.as_str()) {
            fault(
                format!("`{name}` is the name of a figure that each cell has"),
                "say that it is that one, is = \"completion\" or is = \"goodput\", or use another name",
            );
        }
        let unit = unit.unwrap_or_default();
        let natural = match is {
            Stands::ForItself => None,
            Stands::Completion => Some(Better::Lower),
            Stands::Goodput => Some(Better::Higher),
        };
        let units = MetricSpec::units_of(is);
        if natural.is_some() && !units.contains(&unit.as_str()) {
            fault(
                format!("a {is} has a unit, and `{unit}` is none of them"),
                &format!("write unit = one of {}", list(units)),
            );
        }
        match (better, natural) {
            (None, None) => fault(
                format!("the metric `{name}` does not say which direction is better"),
                "write better = \"lower\" or better = \"higher\"",
            ),
            (Some(better), Some(natural)) if better != natural => {
                fault(format!("of a {is}, {natural} is better"), "leave `better` out");
            }
            _ => {}
        }
        match sources.as_slice() {
            [source] if self.errors.len() == before => Some(MetricSpec {
                name,
                unit,
                better: better.or(natural).unwrap_or_default(),
                from,
                source: source.clone(),
                is,
            }),
            [_] => None,
            _ => {
                let message =
                    format!("the metric `{name}` is found by `regex` or by `json`, and has {}", sources.len());
                self.errors.push(SpecError::new(message, "write one of the two").at(place, "this metric"));
                None
            }
        }
    }

    /// Says which metrics cannot be beside each other.
    pub(super) fn metrics_together(&mut self) {
        let metrics = std::mem::take(&mut self.exec.metrics);
        for (index, (metric, place)) in metrics.iter().enumerate() {
            let clash = metrics[..index].iter().find(|(earlier, _)| {
                earlier.name == metric.name || (metric.is != Stands::ForItself && earlier.is == metric.is)
            });
            if let Some((earlier, first)) = clash {
                let message = if earlier.name == metric.name {
                    format!("two metrics are called `{}`", metric.name)
                } else {
                    format!("`{}` and `{}` are both the {}", earlier.name, metric.name, metric.is)
                };
                let error = SpecError::new(message, "rename one of them, or leave it out");
                self.errors.push(error.at(place, "again here").at(first, "first here"));
            }
        }
        self.exec.metrics = metrics;
    }

    fn word<T>(&mut self, entry: &Entry, kind: Kind, named: fn(&str) -> Option<T>) -> Option<T> {
        self.part_value(entry, &kind).as_ref().and_then(Value::text).and_then(named)
    }

    fn pattern(&mut self, entry: &Entry) -> Option<Source> {
        let pattern = self.part_value(entry, &Kind::Text)?.to_string();
        let regex = self.regex(&pattern, entry)?;
        if regex.captures_len() < 2 {
            let error = SpecError::new(
                "this regular expression has no group: what is the number?",
                "put the number in parentheses: 'rate ([0-9.]+) Mbit/s'",
            );
            self.errors.push(error.at(&self.place(&entry.span), "no group"));
            return None;
        }
        Some(Source::Regex(pattern))
    }

    fn pointer(&mut self, entry: &Entry) -> Option<Source> {
        let pointer = self.part_value(entry, &Kind::Text)?.to_string();
        if !pointer.starts_with('/') {
            let error = SpecError::new(
                format!("`{pointer}` is no JSON pointer"),
                "write the names of objects and the positions in lists from the top, each after a `/`: \"/end/streams/0/receiver/bytes\" (RFC 6901)",
            );
            self.errors.push(error.at(&self.place(&entry.span), "here"));
            return None;
        }
        Some(Source::Json(pointer))
    }
}
