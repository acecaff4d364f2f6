//! Where figures come from, and what differs between two such places.

use std::collections::{BTreeMap, BTreeSet};
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use super::baseline::{Baseline, BaselineCell};
use super::cells::{Changed, Matched, changed_as_a_whole};
use crate::record::Manifest;
use crate::settings::Clock;
use crate::units::choice;

/// Digits of the program's digest that are kept: enough to tell two builds apart.
const DIGEST: usize = 16;

choice! {
    /// What can differ between two sides, or be missing on one.
    Aspect {
        /// Release, build or image of the kernel.
        #[default] Kernel = "kernel",
        /// Real time here, virtual time there.
        Clock = "clock",
        /// The computer that measured in real time.
        Host = "host",
        /// Native here, a guest there.
        Machine = "machine",
        /// The seed, which decides when within the timer tick a repeat in virtual time begins.
        Seed = "seed",
        /// Cells that only one side has.
        Cells = "cells",
        /// Cells at once, in real time.
        Jobs = "jobs",
        /// Settings that all cells share.
        Settings = "settings",
        /// The program itself, or one that the sweep runs.
        Program = "program",
        /// QEMU's version.
        Qemu = "qemu",
        /// Kernel parameters that decide about buffers.
        Sysctl = "sysctl",
    }
}

/// Why a text is not a thing to allow.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is nothing that can be allowed: choose from {names}", names = Aspect::REFUSED.map(Aspect::name).join(", "))]
pub struct ParseAspectError(String);

impl Aspect {
    /// Those that a gate refuses unless they are allowed. The others are told beside the figures.
    pub const REFUSED: [Self; 7] =
        [Self::Kernel, Self::Clock, Self::Host, Self::Machine, Self::Seed, Self::Cells, Self::Jobs];
}

impl FromStr for Aspect {
    type Err = ParseAspectError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        Self::named(text)
            .filter(|aspect| Self::REFUSED.contains(aspect))
            .ok_or_else(|| ParseAspectError(text.to_owned()))
    }
}

/// Where figures come from.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Environment {
    /// The program and its version: `sweep 0.1.0`.
    pub program: String,
    /// The git revision that it was built from, where the build said so.
    pub revision: Option<String>,
    /// The first digits of the SHA-256 of its executable.
    pub executable_sha256: Option<String>,
    /// QEMU's version, where a guest was run.
    pub qemu: Option<String>,
    /// What decides the order of the cells, and the start of repeats in virtual time.
    pub seed: Option<u64>,
    /// Cells at once in real time; `None` where all time is virtual, and in the files of earlier versions.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub at_once: Option<u64>,
    /// The first digits of the digest of each program and file that the sweep names, by that name; none where it names none, and in the
    /// files of earlier versions, which pass over it.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub programs: BTreeMap<String, String>,
    /// The host.
    pub host: HostFacts,
    /// The machines that cells ran on.
    pub machines: Vec<MachineFacts>,
}

/// What tells one host from another.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct HostFacts {
    /// Its name.
    pub hostname: Option<String>,
    /// Model of its first processor.
    pub cpu_model: Option<String>,
    /// Processors that the program may use.
    pub cores: Option<u64>,
    /// Maker and model, as the firmware says.
    pub platform: Option<String>,
    /// Architecture.
    pub arch: String,
}

/// A machine that cells ran on.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct MachineFacts {
    /// The kernel's image, as resolved.
    pub image: String,
    /// As `uname -r` says.
    pub kernel: Option<String>,
    /// As `uname -v` says.
    pub version: Option<String>,
    /// Version of the package that the image came from.
    pub package_version: Option<String>,
    /// The clock that measured.
    pub clock: Clock,
    /// `native`, `guest:tcg`, `guest:kvm` or `fake`.
    pub machine: String,
    /// Its kernel parameters that decide about buffers.
    #[serde(default)]
    pub sysctls: BTreeMap<String, String>,
}

impl Environment {
    /// Where the figures of a run come from.
    pub fn of(manifest: &Manifest) -> Self {
        let host = &manifest.host;
        let digits = |digest: &String| digest.chars().take(DIGEST).collect::<String>();
        Self {
            program: format!("{} {}", manifest.program.name, manifest.program.version),
            revision: manifest.program.revision.clone(),
            executable_sha256: manifest.program.executable_sha256.as_ref().map(digits),
            at_once: manifest.at_once.filter(|_| manifest.machines.iter().any(|machine| machine.clock == Clock::Real)),
            programs: manifest.programs.iter().map(|(name, digest)| (name.clone(), digits(digest))).collect(),
            qemu: manifest.tools.get("qemu").cloned(),
            seed: manifest.sweep.resolved.pointer("/run/seed").and_then(serde_json::Value::as_u64),
            host: HostFacts {
                hostname: host.hostname.clone(),
                cpu_model: host.cpu_model.clone(),
                cores: host.cores,
                platform: host.platform.clone(),
                arch: host.arch.clone(),
            },
            machines: manifest
                .machines
                .iter()
                .map(|machine| MachineFacts {
                    image: machine.image.clone(),
                    kernel: machine.release.clone(),
                    version: machine.version.clone(),
                    package_version: machine.package_version.clone(),
                    clock: machine.clock,
                    machine: machine.machine.clone(),
                    sysctls: machine.sysctls.clone(),
                })
                .collect(),
        }
    }

    /// The machine that a cell ran on.
    fn machine(&self, cell: &BaselineCell) -> Option<&MachineFacts> {
        self.machines.iter().find(|machine| machine.image == cell.image && machine.kernel == cell.kernel)
    }

    /// The kernel of a cell in words: release, build and image.
    fn kernel(&self, cell: &BaselineCell) -> String {
        let release = cell.kernel.as_deref().unwrap_or("none that came up");
        let build =
            self.machine(cell).and_then(|machine| machine.package_version.as_ref().or(machine.version.as_ref()));
        match build {
            Some(build) => format!("{release}, {build} ({})", cell.image),
            None => format!("{release} ({})", cell.image),
        }
    }
}

/// Something that differs between two sides.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Difference {
    /// What.
    pub aspect: Aspect,
    /// What it was and what it is, in words.
    pub text: String,
    /// Whether a gate refuses to judge because of it.
    pub refused: bool,
}

/// Everything that differs between the places where matched cells ran, except in these aspects refused.
pub(super) fn differences(
    before: &Baseline,
    after: &Baseline,
    matched: &[Matched<'_>],
    allowed: &BTreeSet<Aspect>,
) -> Vec<Difference> {
    let mut found = Found { list: Vec::new(), allowed };
    let pairs: Vec<(&BaselineCell, &BaselineCell)> =
        matched.iter().filter_map(|matched| matched.before.zip(matched.after)).collect();
    let (old, new) = (&before.environment, &after.environment);
    found.cells(Aspect::Kernel, &pairs, |cell, was| if was { old.kernel(cell) } else { new.kernel(cell) });
    found.cells(Aspect::Clock, &pairs, |cell, _| format!("{} time", cell.clock));
    found.cells(Aspect::Machine, &pairs, |cell, _| cell.machine.clone());
    let virtual_time =
        pairs.iter().any(|(before, after)| before.clock == Clock::Virtual && after.clock == Clock::Virtual);
    if old.seed != new.seed && virtual_time {
        let seed = |seed: Option<u64>| seed.map_or_else(|| "not known".to_owned(), |seed| seed.to_string());
        found.add(Aspect::Seed, true, "seed", &seed(old.seed), &seed(new.seed));
    }
    // What a figure of virtual time depends on is the cell, the kernel and the program; nothing of the host's.
    let real = pairs.iter().any(|(before, after)| before.clock == Clock::Real || after.clock == Clock::Real);
    let facts = |host: &HostFacts| {
        let text = |fact: &Option<String>| fact.clone().unwrap_or_else(|| "not known".to_owned());
        let cores = host.cores.map_or_else(|| "not known".to_owned(), |cores| cores.to_string());
        [text(&host.hostname), text(&host.cpu_model), cores, text(&host.platform), host.arch.clone()]
    };
    for ((name, was), is) in ["name", "processor", "processors", "platform", "architecture"]
        .iter()
        .zip(facts(&old.host))
        .zip(facts(&new.host))
    {
        found.add(Aspect::Host, real, &format!("host's {name}"), &was, &is);
    }
    if let (Some(was), Some(is)) = (old.at_once, new.at_once) {
        found.add(Aspect::Jobs, real, "cells at once (-j)", &was.to_string(), &is.to_string());
    }
    let text = |value: Option<&serde_json::Value>| value.map_or_else(|| "not set".to_owned(), ToString::to_string);
    for path in before.fixed.keys().chain(after.fixed.keys()).collect::<BTreeSet<_>>() {
        found.add(Aspect::Settings, false, path, &text(before.fixed.get(path)), &text(after.fixed.get(path)));
    }
    for Changed { axis, values: [was, is] } in changed_as_a_whole(before, after) {
        found.add(Aspect::Settings, false, &axis, &was, &is);
    }
    let program = |environment: &Environment| {
        let build = environment.revision.as_ref().or(environment.executable_sha256.as_ref());
        let build = build.map_or_else(String::new, |build| format!(" ({build})"));
        format!("{}{build}", environment.program)
    };
    found.add(Aspect::Program, false, "program", &program(old), &program(new));
    found.programs(old, new);
    let qemu = |environment: &Environment| environment.qemu.clone().unwrap_or_else(|| "not used".to_owned());
    found.add(Aspect::Qemu, false, "QEMU", &qemu(old), &qemu(new));
    found.sysctls(old, new, &pairs);
    found.list
}

struct Found<'a> {
    list: Vec<Difference>,
    allowed: &'a BTreeSet<Aspect>,
}

impl Found<'_> {
    fn add(&mut self, aspect: Aspect, matters: bool, what: &str, was: &str, is: &str) {
        if was != is {
            let refused = matters && Aspect::REFUSED.contains(&aspect) && !self.allowed.contains(&aspect);
            let difference = Difference { aspect, text: format!("{what}: was {was}, is {is}"), refused };
            if !self.list.contains(&difference) {
                self.list.push(difference);
            }
        }
    }

    /// A fact of each cell: each change once, with how many cells it is of.
    fn cells(
        &mut self,
        aspect: Aspect,
        pairs: &[(&BaselineCell, &BaselineCell)],
        fact: impl Fn(&BaselineCell, bool) -> String,
    ) {
        let mut changes: Vec<((String, String), usize)> = Vec::new();
        for (before, after) in pairs {
            let change = (fact(before, true), fact(after, false));
            match changes.iter_mut().find(|(known, _)| *known == change) {
                Some((_, count)) => *count += 1,
                None => changes.push((change, 1)),
            }
        }
        for ((was, is), count) in changes {
            let what = if count == pairs.len() { aspect.to_string() } else { format!("{aspect} of {count} cells") };
            self.add(aspect, true, &what, &was, &is);
        }
    }

    /// Programs that a sweep runs. A side that does not say what they were is of an earlier version.
    fn programs(&mut self, old: &Environment, new: &Environment) {
        if old.programs.is_empty() || new.programs.is_empty() {
            return;
        }
        let text =
            |side: &Environment, name: &str| side.programs.get(name).map_or("not named", String::as_str).to_owned();
        for name in old.programs.keys().chain(new.programs.keys()).collect::<BTreeSet<_>>() {
            self.add(Aspect::Program, false, &format!("program `{name}`"), &text(old, name), &text(new, name));
        }
    }

    fn sysctls(&mut self, old: &Environment, new: &Environment, pairs: &[(&BaselineCell, &BaselineCell)]) {
        let mut told: BTreeSet<(&str, &str)> = BTreeSet::new();
        for (before, after) in pairs {
            let (Some(was), Some(is)) = (old.machine(before), new.machine(after)) else { continue };
            if !told.insert((&was.image, &is.image)) {
                continue;
            }
            // A parameter that one side does not list was not there to be read, or not looked for by that version.
            for (name, value) in &was.sysctls {
                if let Some(now) = is.sysctls.get(name) {
                    self.add(Aspect::Sysctl, false, &format!("{name} ({})", is.image), value, now);
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::{Aspect, Difference, differences};
    use crate::gate::baseline::Baseline;
    use crate::gate::baseline::tests::of_completions;
    use crate::gate::cells::{Matching, matched};
    use crate::settings::Clock;

    fn between(before: &Baseline, after: &Baseline, allowed: &[Aspect]) -> Vec<Difference> {
        let allowed: BTreeSet<Aspect> = allowed.iter().copied().collect();
        differences(before, after, &matched(before, after, Matching::Id), &allowed)
    }

    #[test]
    fn the_same_place_has_no_differences() {
        let run = of_completions(Clock::Real, &[vec![1], vec![2]]);
        assert_eq!(between(&run, &run, &[]), []);
    }

    #[test]
    fn a_changed_kernel_is_named_and_refused_unless_allowed() {
        let before = of_completions(Clock::Virtual, &[vec![1], vec![2]]);
        let mut after = before.clone();
        after.cells.iter_mut().for_each(|cell| cell.kernel = Some("6.12.118".into()));
        let found = between(&before, &after, &[]);
        assert_eq!(found.len(), 1);
        assert!(
            found[0].refused && found[0].text.contains("was 6.12.117+deb13-cloud-amd64 (debian:6.12), is 6.12.118")
        );
        assert!(!between(&before, &after, &[Aspect::Kernel])[0].refused);
        after.cells[0].kernel.clone_from(&before.cells[0].kernel);
        assert!(between(&before, &after, &[])[0].text.starts_with("kernel of 1 cells: "));
    }

    #[test]
    fn another_host_is_refused_in_real_time_and_only_told_in_virtual_time() {
        for (clock, refused) in [(Clock::Real, true), (Clock::Virtual, false)] {
            let before = of_completions(clock, &[vec![1]]);
            let mut after = before.clone();
            after.environment.host.hostname = Some("another".into());
            after.environment.host.cores = Some(1000);
            let found = between(&before, &after, &[]);
            assert_eq!(
                found.iter().map(|difference| (difference.aspect, difference.refused)).collect::<Vec<_>>(),
                [(Aspect::Host, refused), (Aspect::Host, refused)]
            );
            assert!(between(&before, &after, &[Aspect::Host]).iter().all(|difference| !difference.refused));
        }
    }

    #[test]
    fn cells_at_once_are_refused_in_real_time_unless_one_side_does_not_say() {
        let mut before = of_completions(Clock::Real, &[vec![1]]);
        let mut after = before.clone();
        before.environment.at_once = Some(1);
        assert_eq!(between(&before, &after, &[]), []);
        after.environment.at_once = Some(4);
        let found = between(&before, &after, &[]);
        assert!(found[0].refused && found[0].text == "cells at once (-j): was 1, is 4", "{found:?}");
        assert!(!between(&before, &after, &[Aspect::Jobs])[0].refused);
    }

    #[test]
    fn the_seed_matters_in_virtual_time_only_and_the_program_is_told() {
        for (clock, refused) in [(Clock::Real, 0), (Clock::Virtual, 1)] {
            let before = of_completions(clock, &[vec![1]]);
            let mut after = before.clone();
            after.environment.seed = Some(2);
            after.environment.program = "sweep 9".into();
            let found = between(&before, &after, &[]);
            assert_eq!(found.iter().filter(|difference| difference.refused).count(), refused, "{found:?}");
            assert!(found.iter().any(|difference| difference.aspect == Aspect::Program && !difference.refused));
        }
    }

    #[test]
    fn another_program_of_the_sweep_is_told_and_is_a_cause() {
        let mut before = of_completions(Clock::Real, &[vec![1]]);
        let mut after = before.clone();
        after.environment.programs = [("./client".to_owned(), "2".to_owned())].into();
        assert_eq!(between(&before, &after, &[]), [], "an earlier version does not say");
        before.environment.programs =
            [("./client".to_owned(), "1".to_owned()), ("sh".to_owned(), "3".to_owned())].into();
        let found = between(&before, &after, &[]);
        let texts: Vec<&str> = found.iter().map(|difference| difference.text.as_str()).collect();
        assert_eq!(texts, ["program `./client`: was 1, is 2", "program `sh`: was 3, is not named"]);
        assert!(found.iter().all(|difference| !difference.refused) && crate::gate::judge::has_a_cause(&found));
    }

    #[test]
    fn only_what_is_refused_can_be_allowed() {
        assert_eq!("kernel".parse(), Ok(Aspect::Kernel));
        for text in ["program", "everything"] {
            assert!(text.parse::<Aspect>().expect_err("nothing to allow").to_string().contains("kernel, clock, host"));
        }
    }
}
