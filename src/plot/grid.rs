//! Small pictures side by side: one panel for each combination of values that is not on x or y, each with its cells.

use std::collections::BTreeMap;

use super::space::{CLOCK, Choice, Dimension, KERNEL, Space};

/// One small picture.
#[derive(Clone, Debug)]
pub(super) struct Panel {
    /// One line for each axis that it is one value of.
    pub(super) titles: Vec<String>,
    /// The index of the cell at each place, row by row from below, `None` where there is none.
    pub(super) cells: Vec<Option<usize>>,
}

/// All of them.
#[derive(Clone, Debug)]
pub(super) struct Grid<'a> {
    pub(super) x: Option<&'a Dimension>,
    pub(super) y: Option<&'a Dimension>,
    /// What differs from panel to panel.
    pub(super) facets: Vec<&'a Dimension>,
    pub(super) panels: Vec<Panel>,
    /// How many values the axis has that varies fastest from one panel to the next.
    pub(super) period: usize,
}

/// How many places an axis has.
fn places(dimension: Option<&Dimension>) -> usize {
    dimension.map_or(1, |dimension| dimension.values.len().max(1))
}

/// A value as a title: `nodelay = on`. Kernels and clocks speak for themselves.
fn title(dimension: &Dimension, value: usize) -> String {
    let value = dimension.values.get(value).map_or("–", String::as_str);
    match dimension.name.as_str() {
        CLOCK => value.to_owned(),
        KERNEL => format!("kernel {value}"),
        name => format!("{name} = {value}"),
    }
}

impl<'a> Grid<'a> {
    pub(super) fn new(space: &'a Space, choice: &Choice) -> Self {
        let on = |chosen: Option<usize>| chosen.and_then(|index| space.dimensions.get(index));
        let (x, y) = (on(choice.x), on(choice.y));
        let (across, up) = (places(x), places(y));
        let mut panels: BTreeMap<Vec<usize>, Vec<Option<usize>>> = BTreeMap::new();
        for (cell, place) in space.places.iter().enumerate() {
            let at = |index: usize| place.get(index).copied().unwrap_or(0);
            let facet = choice.facets.iter().map(|index| at(*index)).collect();
            let cells = panels.entry(facet).or_insert_with(|| vec![None; across * up]);
            let (column, row) = (choice.x.map_or(0, at), choice.y.map_or(0, at));
            if let Some(spot) = cells.get_mut(row * across + column) {
                *spot = Some(cell);
            }
        }
        let facets: Vec<_> = choice.facets.iter().filter_map(|index| space.dimensions.get(*index)).collect();
        let panels = panels
            .into_iter()
            .map(|(values, cells)| Panel {
                titles: facets.iter().zip(values).map(|(dimension, value)| title(dimension, value)).collect(),
                cells,
            })
            .collect();
        let period = places(facets.last().copied());
        Self { x, y, facets, panels, period }
    }

    /// Cells from left to right in one panel.
    pub(super) fn across(&self) -> usize {
        places(self.x)
    }

    /// Whether only one axis varies within a panel: a line says more than a map of one row.
    pub(super) fn is_line(&self) -> bool {
        self.y.is_none() && self.across() > 1
    }

    /// Cells from bottom to top in one panel.
    pub(super) fn up(&self) -> usize {
        places(self.y)
    }

    /// How many panels stand side by side, if `most` have room: all, or such a number that rows are full and that panels
    /// beneath each other differ in as few axes as can be.
    pub(super) fn columns(&self, most: usize) -> usize {
        let total = self.panels.len().max(1);
        let most = most.clamp(1, total);
        let even = |columns: &usize| total.is_multiple_of(*columns);
        let aligned = |columns: &usize| columns.is_multiple_of(self.period) || self.period.is_multiple_of(*columns);
        (1..=most)
            .rev()
            .find(|columns| even(columns) && aligned(columns) && columns * 2 > most)
            .or_else(|| (1..=most).rev().find(|columns| even(columns) && columns * 2 > most))
            .unwrap_or_else(|| total.div_ceil(total.div_ceil(most)))
    }
}
