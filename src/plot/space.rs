//! What varies in a run: the axes of the sweep, the kernel and the clock, each with its values in order; and which of them
//! go where on a picture.

use std::cmp::Ordering;
use std::collections::BTreeMap;

use super::error::PlotError;
use super::options::PlotOptions;
use super::text::clean;
use crate::record::Manifest;
use crate::settings::{Clock, Value, find};
use crate::stats::CellSummary;

/// The name of the dimension of kernels.
pub(crate) const KERNEL: &str = "kernel";
/// The name of the dimension of clocks.
pub(crate) const CLOCK: &str = "clock";
const KERNEL_IMAGE: &str = "kernel.image";
const KERNEL_CLOCK: &str = "kernel.clock";
/// Between the names, and between the values, of axes that move together.
const TOGETHER: &str = ", ";

/// One thing that varies, or that could have.
#[derive(Clone, Debug)]
pub(crate) struct Dimension {
    /// The axis's name, or `kernel` or `clock`; of axes that move together, all names.
    pub(crate) name: String,
    /// What it sets, in a line. Empty for what is not a key.
    pub(crate) about: &'static str,
    /// Its values in order, as they are shown.
    pub(crate) values: Vec<String>,
    /// Whether the values are numbers, so that labels can be left out between others.
    pub(crate) numbers: bool,
}

impl Dimension {
    /// Whether it is the axis of that name, or one of several that move together.
    pub(crate) fn is(&self, name: &str) -> bool {
        self.name == name || self.name.split(TOGETHER).any(|one| one == name)
    }

    fn varies(&self) -> bool {
        self.values.len() > 1
    }

    /// Kernels and clocks are put side by side rather than on an axis.
    fn is_facet(&self) -> bool {
        self.name == KERNEL || self.name == CLOCK
    }

    /// The name and what it sets: `rcvbuf: receive buffer asked for (SO_RCVBUF), on both ends`.
    pub(crate) fn title(&self) -> String {
        if self.about.is_empty() { self.name.clone() } else { format!("{}: {}", self.name, self.about) }
    }
}

/// All dimensions of a run, and the place of each cell on each.
#[derive(Clone, Debug)]
pub(crate) struct Space {
    pub(crate) dimensions: Vec<Dimension>,
    /// For each cell, the index of its value on each dimension.
    pub(crate) places: Vec<Vec<usize>>,
}

/// Which dimensions go where.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Choice {
    pub(crate) x: Option<usize>,
    pub(crate) y: Option<usize>,
    pub(crate) facets: Vec<usize>,
}

/// A value with its place in the order. Kernels are ordered by the numbers in their names.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Key {
    Missing,
    Axis(Value),
    /// A word, by its place in the sweep file: the order that a person gave it, such as `32K`, `128K`, `512K`.
    Word(usize, Vec<Part>),
    /// The kernel decides.
    Default,
    /// Of axes that move together.
    Together(Vec<Key>),
    Release(Vec<Part>),
    Clock(Clock),
}

/// A run of digits or of other characters.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Part {
    Number(u64),
    Text(String),
}

/// `6.12.9` comes before `6.12.10`.
fn parts(text: &str) -> Vec<Part> {
    let mut parts = Vec::new();
    let mut rest = text;
    while let Some(first) = rest.chars().next() {
        let digits = first.is_ascii_digit();
        let end = rest.find(|c: char| c.is_ascii_digit() != digits).unwrap_or(rest.len());
        let (part, after) = rest.split_at(end);
        parts.push(match part.parse() {
            Ok(number) if digits => Part::Number(number),
            _ => Part::Text(part.to_owned()),
        });
        rest = after;
    }
    parts
}

impl Key {
    fn rank(&self) -> u8 {
        match self {
            Self::Axis(_) => 0,
            Self::Word(..) => 1,
            Self::Default => 2,
            Self::Together(_) => 3,
            Self::Release(_) => 4,
            Self::Clock(_) => 5,
            Self::Missing => 6,
        }
    }
}

impl Ord for Key {
    fn cmp(&self, other: &Self) -> Ordering {
        match (self, other) {
            (Self::Axis(a), Self::Axis(b)) => a.cmp(b),
            (Self::Word(a, letters), Self::Word(b, others)) => a.cmp(b).then_with(|| letters.cmp(others)),
            (Self::Together(a), Self::Together(b)) => a.cmp(b),
            (Self::Release(a), Self::Release(b)) => a.cmp(b),
            (Self::Clock(a), Self::Clock(b)) => a.cmp(b),
            _ => self.rank().cmp(&other.rank()),
        }
    }
}

impl PartialOrd for Key {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

/// A kernel as pictures name it: its release, and the image where that says something else.
pub(crate) fn kernel_name(cell: &CellSummary) -> String {
    let kernel = &cell.kernel;
    match &kernel.release {
        None => format!("{} (did not come up)", kernel.image),
        Some(release) if kernel.image.is_empty() || matches!(kernel.image.as_str(), "host" | "auto") => release.clone(),
        Some(release) if kernel.image.len() > 24 => release.clone(),
        Some(release) => format!("{} ({release})", kernel.image),
    }
}

/// The clock in words, so that nobody takes one kind of time for the other.
pub(crate) const fn clock_name(clock: Clock) -> &'static str {
    match clock {
        Clock::Real => "real time",
        Clock::Virtual => "virtual time, 1 ns per instruction",
        Clock::Auto => "unknown clock",
    }
}

/// The axes that the sweep moves together, by name.
fn zips(manifest: &Manifest) -> Vec<Vec<String>> {
    let stored = manifest.sweep.resolved.get("zip").cloned();
    let paths: Vec<Vec<String>> = stored.and_then(|stored| serde_json::from_value(stored).ok()).unwrap_or_default();
    let name = |path: String| find(&path).map_or(path, |key| key.name().to_owned());
    paths.into_iter().map(|zip| zip.into_iter().map(name).collect()).collect()
}

/// What a key sets, without the kind of workload that it is for: a picture is of one that has it.
fn about(about: &'static str) -> &'static str {
    // Of a value of the user's own only they know what it is.
    if about.contains("{NAME}") { "" } else { about.split_once(" only: ").map_or(about, |(_, rest)| rest) }
}

/// The values of each axis as the sweep file has them, by name.
fn listed(manifest: &Manifest) -> BTreeMap<String, Vec<Value>> {
    let axes = manifest.sweep.resolved.get("axes").and_then(serde_json::Value::as_array);
    let named = axes.into_iter().flatten().filter_map(|axis| {
        let values = serde_json::from_value(axis.get("values")?.clone()).ok()?;
        Some((axis.get("name")?.as_str()?.to_owned(), values))
    });
    named.collect()
}

/// The place of a value among the others of its axis.
fn key(value: &Value, listed: Option<&Vec<Value>>) -> Key {
    match value {
        value if value.is_default() => Key::Default,
        Value::Text(text) if !value.has_size() => {
            let place = listed.and_then(|values| values.iter().position(|listed| listed == value));
            Key::Word(place.unwrap_or(usize::MAX), parts(text))
        }
        value => Key::Axis(value.clone()),
    }
}

/// The value of a cell on an axis.
fn value(cell: &CellSummary, name: &str, listed: Option<&Vec<Value>>) -> (Key, String) {
    match cell.axes.get(name) {
        None => (Key::Missing, "–".to_owned()),
        Some(value) => {
            let shown = find(name).map_or_else(|| value.to_string(), |key| key.kind.show(value));
            (key(value, listed), clean(&shown))
        }
    }
}

/// The values of a cell on axes that move together: one text where all are the same.
fn values(cell: &CellSummary, names: &[String], listed: &BTreeMap<String, Vec<Value>>) -> (Key, String) {
    let one = |name: &String| value(cell, name, listed.get(name));
    let (keys, mut shown): (Vec<Key>, Vec<String>) = names.iter().map(one).unzip();
    if shown.windows(2).all(|pair| pair[0] == pair[1]) {
        shown.truncate(1);
    }
    (Key::Together(keys), shown.join(TOGETHER))
}

impl Space {
    /// What varies in those cells of a run. Axes that its sweep moves together are one dimension.
    pub(crate) fn of(manifest: &Manifest, cells: &[CellSummary]) -> Self {
        let mut names: Vec<&str> = Vec::new();
        for (name, _) in cells.iter().flat_map(|cell| &cell.axes.0) {
            // The kernel and the clock that there were say more than those that were asked for.
            if !names.contains(&name.as_str()) && name != KERNEL_IMAGE && name != KERNEL_CLOCK {
                names.push(name);
            }
        }
        let zips: Vec<Vec<String>> =
            zips(manifest).into_iter().filter(|zip| zip.iter().all(|name| names.contains(&name.as_str()))).collect();
        let listed = listed(manifest);
        let mut space = Self { dimensions: Vec::new(), places: vec![Vec::new(); cells.len()] };
        for name in names {
            match zips.iter().find(|zip| zip.iter().any(|other| other == name)) {
                Some(zip) if zip.first().is_some_and(|first| first == name) => {
                    let name = clean(&zip.join(TOGETHER));
                    space.add(name, "they move together", cells.iter().map(|cell| values(cell, zip, &listed)));
                }
                Some(_) => {}
                None => {
                    let about = find(name).map_or("", |key| about(key.about));
                    space.add(clean(name), about, cells.iter().map(|cell| value(cell, name, listed.get(name))));
                }
            }
        }
        space.add(
            KERNEL.to_owned(),
            "",
            cells.iter().map(|cell| {
                let name = kernel_name(cell);
                (Key::Release(parts(&name)), clean(&name))
            }),
        );
        let clocks = cells.iter().map(|cell| (Key::Clock(cell.clock), clock_name(cell.clock).to_owned()));
        space.add(CLOCK.to_owned(), "", clocks);
        space
    }

    fn add(&mut self, name: String, about: &'static str, values: impl Iterator<Item = (Key, String)>) {
        let values: Vec<_> = values.collect();
        let ordered: BTreeMap<&Key, &String> = values.iter().map(|(key, shown)| (key, shown)).collect();
        let indexes: BTreeMap<&Key, usize> = ordered.keys().enumerate().map(|(index, key)| (*key, index)).collect();
        for (place, (key, _)) in self.places.iter_mut().zip(&values) {
            place.push(indexes.get(key).copied().unwrap_or(0));
        }
        let number = |key: &Key| matches!(key, Key::Axis(Value::Int(_)));
        let numbers = ordered.iter().any(|(key, shown)| match key {
            Key::Together(keys) => keys.iter().any(number) && !shown.contains(TOGETHER),
            key => number(key),
        });
        let values = ordered.into_values().cloned().collect();
        self.dimensions.push(Dimension { name, about, values, numbers });
    }

    /// The dimension of that name, which may also be the path of its key.
    fn named(&self, typed: &str) -> Result<usize, PlotError> {
        let name = find(typed).map_or(typed, |key| key.name());
        let name = match name {
            KERNEL_IMAGE => KERNEL,
            KERNEL_CLOCK => CLOCK,
            name => name,
        };
        self.dimensions.iter().position(|dimension| dimension.is(name)).ok_or_else(|| {
            let known: Vec<_> = self.dimensions.iter().map(|dimension| dimension.name.as_str()).collect();
            PlotError::unknown("axis", typed, &known)
        })
    }

    /// Which dimensions go where: as asked, else the two axes with most values on x and y. Everything else that varies
    /// makes a picture of its own for each of its values.
    pub(crate) fn choose(&self, options: &PlotOptions) -> Result<Choice, PlotError> {
        let asked = |typed: &Option<String>| typed.as_deref().map(|typed| self.named(typed)).transpose();
        let (asked_x, asked_y) = (asked(&options.x)?, asked(&options.y)?);
        if let (Some(x), Some(y)) = (asked_x, asked_y)
            && x == y
        {
            return Err(PlotError::SameAxis(self.name(x).to_owned()));
        }
        let mut facets = Vec::new();
        for typed in &options.facet {
            let facet = self.named(typed)?;
            if Some(facet) == asked_x || Some(facet) == asked_y {
                return Err(PlotError::SameAxis(self.name(facet).to_owned()));
            }
            if !facets.contains(&facet) {
                facets.push(facet);
            }
        }
        let mut free: Vec<usize> = (0..self.dimensions.len())
            .filter(|index| self.dimensions[*index].varies())
            .filter(|index| Some(*index) != asked_x && Some(*index) != asked_y && !facets.contains(index))
            .collect();
        let mut take = |may: fn(&Dimension) -> bool| {
            let best = free.iter().copied().filter(|index| may(&self.dimensions[*index])).min_by_key(|index| {
                let dimension = &self.dimensions[*index];
                (std::cmp::Reverse(dimension.values.len()), section(&dimension.name))
            });
            free.retain(|index| Some(*index) != best);
            best
        };
        let plain = |dimension: &Dimension| !dimension.is_facet();
        // With nothing else to put there, kernels and clocks are an axis.
        let x = asked_x.or_else(|| take(plain)).or_else(|| take(|_| true));
        let y = asked_y.or_else(|| take(plain));
        facets.extend(free);
        Ok(Choice { x, y, facets })
    }

    pub(crate) fn name(&self, dimension: usize) -> &str {
        self.dimensions.get(dimension).map_or("", |found| &found.name)
    }

    /// What is the same in all cells: `chunk_count 32`.
    pub(crate) fn fixed(&self) -> Vec<String> {
        let fixed = self.dimensions.iter().filter(|dimension| !dimension.varies() && !dimension.is_facet());
        fixed.filter_map(|dimension| Some(format!("{} {}", dimension.name, dimension.values.first()?))).collect()
    }
}

/// Where two axes have equally many values: socket options before the workload, and that before the rest.
fn section(name: &str) -> usize {
    let name = name.split(TOGETHER).next().unwrap_or(name);
    let path = find(name).map_or(name, |key| key.path);
    ["socket.", "workload."].iter().position(|section| path.starts_with(section)).unwrap_or(2)
}

#[cfg(test)]
mod tests {
    use super::{Value, key, parts};

    #[test]
    fn words_are_in_the_order_of_the_sweep_file_and_sizes_in_that_of_their_sizes() {
        let values =
            |texts: &[&str]| -> Vec<Value> { texts.iter().map(|text| Value::Text((*text).to_owned())).collect() };
        let sorted = |texts: &[&str], listed: &[&str]| -> Vec<String> {
            let (mut values, listed) = (values(texts), values(listed));
            values.sort_by_key(|value| key(value, Some(&listed)));
            values.iter().map(ToString::to_string).collect()
        };
        let sizes = ["default", "32K", "128K", "512K"];
        assert_eq!(sorted(&["512K", "default", "128K", "32K"], &sizes), ["32K", "128K", "512K", "default"]);
        assert_eq!(sorted(&["10ms", "2ms"], &["10ms", "2ms"]), ["2ms", "10ms"]);
        assert_eq!(sorted(&["v10", "v9"], &[]), ["v9", "v10"], "those that no file lists, by their numbers");
    }

    #[test]
    fn releases_are_ordered_by_their_numbers() {
        let mut releases = ["6.12.117", "6.1.170", "6.12.9", "5.10.0"];
        releases.sort_by_key(|release| parts(release));
        assert_eq!(releases, ["5.10.0", "6.1.170", "6.12.9", "6.12.117"]);
    }
}
