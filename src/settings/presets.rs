//! Presets: settings of programs that are known by name, so that a sweep can begin from what they do.

use super::{Axes, Settings, Value, find};

/// Several keys that are set together under one name. Any key that a sweep sets itself, or varies, wins over the preset.
#[derive(Debug)]
pub struct Preset {
    /// What a sweep file calls it.
    pub name: &'static str,
    /// What it stands for, and where that comes from.
    pub about: &'static str,
    /// The keys that it sets, by their paths.
    sets: &'static [(&'static str, Given)],
}

/// A value in a table.
#[derive(Clone, Copy, Debug)]
enum Given {
    Int(u64),
    Word(&'static str),
}
use Given::{Int, Word};

/// Names of the presets.
pub(super) const NAMES: &[&str] = &["none", "erlang-otp-27", "erlang-otp-28", "netperf-omni"];

/// All presets, in the order of their names.
pub static PRESETS: &[Preset] = &[
    Preset {
        name: "none",
        about: "Nothing is preset: every key has its own default. As one value of an axis, it is what the other presets are compared with.",
        sets: &[],
    },
    Preset {
        name: "erlang-otp-27",
        about: "An SCTP socket as gen_sctp of Erlang/OTP opened it up to release 27: one-to-many, all events subscribed, with the runtime's own defaults for both buffers. \
                The kernel makes 2304 bytes of the receive buffer, and a burst that overruns it waits for retransmission timers.",
        sets: &[
            ("workload.protocol", Word("sctp")),
            ("workload.style", Word("one-to-many")),
            ("socket.rcvbuf", Int(1024)),
            ("socket.sndbuf", Int(65536)),
            ("socket.sctp.events", Word("all")),
        ],
    },
    Preset {
        name: "erlang-otp-28",
        about: "The same socket since Erlang/OTP 28, which dropped its own defaults: both buffers are left to the system.",
        sets: &[
            ("workload.protocol", Word("sctp")),
            ("workload.style", Word("one-to-many")),
            ("socket.rcvbuf", Word(Value::DEFAULT)),
            ("socket.sndbuf", Word(Value::DEFAULT)),
            ("socket.sctp.events", Word("all")),
        ],
    },
    Preset {
        name: "netperf-omni",
        about: "The receive test of netperf's omni: a TCP stream from the remote side to the local one (from server to client here), 16 KiB to each send call, \
                no size asked for either buffer, so that autotuning decides. It says nothing of how long the stream is.",
        sets: &[
            ("workload.kind", Word("stream")),
            ("workload.protocol", Word("tcp")),
            ("workload.direction", Word("download")),
            ("workload.chunk_size", Int(16 << 10)),
            ("socket.rcvbuf", Word(Value::DEFAULT)),
            ("socket.sndbuf", Word(Value::DEFAULT)),
        ],
    },
];

impl Preset {
    /// The preset of that name.
    pub fn named(name: &str) -> Option<&'static Self> {
        PRESETS.iter().find(|preset| preset.name == name)
    }

    /// Whether it sets the key of that path.
    pub fn has(&self, path: &str) -> bool {
        self.sets.iter().any(|(set, _)| *set == path)
    }

    /// The keys that it sets, by their paths, and their values.
    pub fn values(&self) -> Axes {
        let value = |given: &Given| match *given {
            Int(number) => Value::Int(number),
            Word(word) => Value::Text(word.to_owned()),
        };
        Axes(self.sets.iter().map(|(path, given)| ((*path).to_owned(), value(given))).collect())
    }

    /// Sets all its keys.
    pub(super) fn apply(&self, settings: &mut Settings) {
        for (path, value) in self.values().0 {
            if let Some(key) = find(&path) {
                key.put(settings, &value);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{NAMES, PRESETS, Preset};
    use crate::settings::{Protocol, Settings, Style, canonical, find};
    use crate::units::Bytes;

    #[test]
    fn presets_set_keys_that_exist_to_values_that_they_take() {
        assert_eq!(PRESETS.iter().map(|preset| preset.name).collect::<Vec<_>>(), NAMES);
        for (path, value) in PRESETS.iter().flat_map(|preset| preset.values().0) {
            let key = find(&path).unwrap_or_else(|| panic!("{path} is no key"));
            assert_eq!(key.path, path, "written with its whole path");
            assert_eq!(key.kind.check(&value).as_ref(), Ok(&value), "{path}");
        }
    }

    #[test]
    fn erlang_asks_for_what_the_report_says() {
        let mut settings = Settings::default();
        Preset::named("erlang-otp-27").expect("a preset").apply(&mut settings);
        assert_eq!((settings.workload.protocol, settings.workload.style), (Protocol::Sctp, Style::OneToMany));
        for end in [&settings.client, &settings.server] {
            assert_eq!((end.rcvbuf, end.sndbuf, end.nodelay), (Some(Bytes(1024)), Some(Bytes(65536)), None));
        }
    }

    #[test]
    fn none_sets_nothing() {
        let mut settings = Settings::default();
        Preset::named("none").expect("a preset").apply(&mut settings);
        assert_eq!(canonical(&settings), "");
    }
}
