//! `sweep check`: what a sweep would do, without doing it.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

use clap::Args;
use serde::Serialize;

use crate::backend::Parallel;
use crate::backend::guest::Qemu;
use crate::backend::guest::kernel::ImageName;
use crate::plan::{Cell, Description, Plan};
use crate::run::{Choice, Place, Placement, place};
use crate::settings::Clock;
use crate::workload::locate;

use super::exit::Exit;
use super::{SweepArgs, become_native, print, print_json, program, store};

/// Arguments of `sweep check`.
#[derive(Debug, Args)]
pub(super) struct CheckArgs {
    /// The sweep file.
    file: PathBuf,
    #[command(flatten)]
    sweep: SweepArgs,
    /// Print JSON.
    #[arg(long)]
    json: bool,
}

#[derive(Serialize)]
struct Check<'a> {
    #[serde(flatten)]
    description: &'a Description,
    places: &'a [Placement],
}

pub(super) fn check(arguments: &CheckArgs) -> Result<Exit, Exit> {
    let native_refused = become_native();
    let (sweep, _) = arguments.sweep.load(&arguments.file, false)?;
    let plan = Plan::new(&sweep);
    let description = Description::new(&sweep, &plan);
    let choice = Choice {
        program: program()?,
        parallel: Parallel { virtual_time: 1, real_time: 1 },
        native_refused,
        fake: false,
    };
    let places = place(&plan.cells, &choice);
    if arguments.json {
        return print_json(&Check { description: &description, places: &places });
    }
    print(&format!("{description}\n{}{}", describe(&places), absent(&plan.cells)))?;
    Ok(Exit::Done)
}

/// Where the cells run and why, a line or two for each place.
pub(super) fn describe(places: &[Placement]) -> String {
    let mut lines = BTreeMap::new();
    for (index, placement) in places.iter().enumerate() {
        let cells = placement.cells.len();
        let cells = format!("{cells} cell{}", if cells == 1 { "" } else { "s" });
        let place = match &placement.place {
            Place::Native => "on this machine's own kernel, in real time".to_owned(),
            Place::Fake => "nowhere, the figures are made up".to_owned(),
            Place::Guest { image, clock } => guest(image.as_deref(), *clock),
        };
        lines.insert(index, format!("where   {cells} {place}\n        because {}\n", placement.why));
    }
    lines.into_values().collect()
}

/// What is said of programs that are not here, each once.
fn absent(cells: &[Cell]) -> String {
    let mut lines = BTreeSet::new();
    for exec in cells.iter().filter_map(|cell| cell.settings.exec.as_deref()) {
        for program in [&exec.server, &exec.client] {
            if let Some(word) = program.command.first()
                && let Err(absent) = locate(program, word, &exec.dir)
            {
                lines.insert(format!("missing {absent}\n"));
            }
        }
    }
    lines.into_iter().collect()
}

/// What is known of a guest before it is prepared.
fn guest(image: Option<&str>, clock: Clock) -> String {
    let clock = match clock {
        Clock::Real => "in real time",
        Clock::Virtual => "in virtual time (1 ns per instruction)",
        Clock::Auto => "in real time if KVM works here, else in virtual time (1 ns per instruction)",
    };
    let kernel = match (image, store()) {
        (_, Err(error)) => format!("; but there is no store of kernels: {error}"),
        (None, Ok(store)) => match store.newest() {
            Ok(Some(kernel)) => format!(" with kernel {} ({}), the newest in the store", kernel.image, kernel.release),
            _ => " with the distribution's own cloud kernel, which is fetched first (about 30 MB)".to_owned(),
        },
        (Some(image), Ok(store)) => match image.parse::<ImageName>() {
            Err(error) => format!("; but {error}"),
            Ok(name) => match store.find(&name) {
                Ok(Some(kernel)) => format!(" with kernel {} ({}) from the store", kernel.image, kernel.release),
                _ => format!(" with kernel {image}, which is fetched first (about 30 MB)"),
            },
        },
    };
    let qemu = match Qemu::find() {
        Ok(_) => String::new(),
        Err(error) => format!("; but {error}"),
    };
    format!("in a QEMU guest{kernel}, {clock}{qemu}")
}
