//! How one sweep differs from another, in words: what `--resume` refuses to mix.

use crate::settings::{Axes, Value};

use super::run::RUN_KEYS;
use super::sweep::{Axis, Sweep};

impl Sweep {
    /// What changed from this sweep to `now`, in words. Empty if nothing did that matters to a measurement: the description does
    /// not.
    pub fn differences(&self, now: &Self) -> Vec<String> {
        let mut found = Vec::new();
        let mut changed = |name: &str, was: &str, is: &str| {
            if was != is {
                found.push(format!("{name}: was {was}, is {is}"));
            }
        };
        changed("name", &self.name, &now.name);
        for key in RUN_KEYS {
            changed(key.path, &(key.get)(&self.run).to_string(), &(key.get)(&now.run).to_string());
        }
        for (path, was) in &self.fixed {
            match now.fixed.iter().find(|(other, _)| other == path) {
                Some((_, is)) => changed(path, &was.to_string(), &is.to_string()),
                None if now.axis(path).is_some() => found_axis(path, &mut changed),
                None => changed(path, &was.to_string(), "not set"),
            }
        }
        for (path, is) in &now.fixed {
            if !self.fixed.iter().any(|(other, _)| other == path) {
                let was = if self.axis(path).is_some() { "an axis" } else { "not set" };
                changed(path, was, &is.to_string());
            }
        }
        for axis in &self.axes {
            match now.axis(&axis.path) {
                Some(other) => found.extend(axis.differences(other)),
                None => found.push(format!("axis {}: removed", axis.name)),
            }
        }
        found.extend(
            now.axes
                .iter()
                .filter(|axis| self.axis(&axis.path).is_none())
                .map(|axis| format!("axis {}: added, with {}", axis.name, list(&axis.values))),
        );
        let order = |sweep: &Self, other: &Self| -> Vec<String> {
            let common = sweep.axes.iter().filter(|axis| other.axis(&axis.path).is_some());
            common.map(|axis| axis.name.clone()).collect()
        };
        let (was, is) = (order(self, now), order(now, self));
        if was != is {
            found.push(format!("order of the axes: was {}, is {}", was.join(", "), is.join(", ")));
        }
        let mut changed = |name: &str, was: Vec<String>, is: Vec<String>| {
            if was != is {
                let shown = |list: &[String]| if list.is_empty() { "nothing".to_owned() } else { list.join("; ") };
                found.push(format!("{name}: was {}, is {}", shown(&was), shown(&is)));
            }
        };
        changed("zip", zipped(self), zipped(now));
        changed("exclude", excluded(self), excluded(now));
        changed("include", included(self), included(now));
        match (&self.exec, &now.exec) {
            (Some(was), Some(is)) => {
                for (name, was, is) in was.differences(is) {
                    changed(name, vec![was], vec![is]);
                }
            }
            (was, is) => {
                let shown = |exec: bool| vec![if exec { "two".to_owned() } else { "none".to_owned() }];
                changed("programs", shown(was.is_some()), shown(is.is_some()));
            }
        }
        for (name, was) in &self.presets {
            if let Some(is) = now.presets.get(name) {
                changed(&format!("preset {name}"), vec![stored(was)], vec![stored(is)]);
            }
        }
        found
    }
}

/// The axes of each [[zip]].
fn zipped(sweep: &Sweep) -> Vec<String> {
    sweep.zip.iter().map(|paths| paths.join(" with ")).collect()
}

/// The values of each [[exclude]].
fn excluded(sweep: &Sweep) -> Vec<String> {
    let one = |named: &Vec<Axis>| {
        let named = named.iter().map(|axis| format!("{}={}", axis.name, list(&axis.values).replace(", ", "|")));
        named.collect::<Vec<_>>().join(" ")
    };
    sweep.exclude.iter().map(one).collect()
}

/// The cells that are added.
fn included(sweep: &Sweep) -> Vec<String> {
    sweep.include.iter().map(stored).collect()
}

/// Values as they are stored.
fn stored(axes: &Axes) -> String {
    axes.0.iter().map(|(name, value)| format!("{name}={value}")).collect::<Vec<_>>().join(" ")
}

/// Says that a fixed key has become an axis. Its values are told with the axis.
fn found_axis(path: &str, changed: &mut impl FnMut(&str, &str, &str)) {
    changed(path, "fixed", "an axis");
}

/// Values, joined.
fn list(values: &[Value]) -> String {
    values.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ")
}

impl Axis {
    /// What changed from this axis to `now`, in words.
    fn differences(&self, now: &Self) -> Vec<String> {
        let only = |one: &Self, other: &Self| -> Vec<Value> {
            one.values.iter().filter(|value| !other.values.contains(value)).cloned().collect()
        };
        let (removed, added) = (only(self, now), only(now, self));
        let mut found = Vec::new();
        if !removed.is_empty() {
            found.push(format!("axis {}: {} removed", self.name, list(&removed)));
        }
        if !added.is_empty() {
            found.push(format!("axis {}: {} added", self.name, list(&added)));
        }
        if found.is_empty() && self.values != now.values {
            found.push(format!("axis {}: was {}, is {}", self.name, list(&self.values), list(&now.values)));
        }
        found
    }
}
