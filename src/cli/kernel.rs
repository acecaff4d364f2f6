//! `sweep kernel`: the kernels that guests run, and the frozen machines made of them.

use clap::{Args, Subcommand};
use serde::Serialize;

use crate::backend::guest::kernel::ImageName;
use crate::backend::guest::{FrozenEntry, FrozenStore};
use crate::units::Bytes;

use super::exit::Exit;
use super::output::say;
use super::{complain, print, print_json, store};

/// Arguments of `sweep kernel`.
#[derive(Debug, Args)]
pub(super) struct KernelArgs {
    #[command(subcommand)]
    command: KernelCommand,
}

#[derive(Debug, Subcommand)]
enum KernelCommand {
    /// Fetch a kernel into the store: `debian:6.12`, an exact package version, a .deb, or a vmlinuz with its modules.
    Add {
        /// The kernel, as `kernel.image` in a sweep names it.
        image: ImageName,
    },
    /// List the kernels in the store, and the frozen machines.
    List {
        /// Print JSON.
        #[arg(long)]
        json: bool,
    },
    /// Remove a kernel from the store.
    Remove {
        /// Its image, release or package version.
        name: String,
    },
    /// Remove frozen machines, those used longest ago first, until the rest takes at most this much.
    Prune {
        /// What may stay.
        #[arg(long, value_name = "SIZE", default_value = "0")]
        keep: Bytes,
    },
}

#[derive(Serialize)]
struct List {
    kernels: Vec<KernelEntry>,
    machines: Vec<FrozenEntry>,
    broken: Vec<String>,
}

#[derive(Serialize)]
struct KernelEntry {
    image: String,
    release: String,
    package_version: Option<String>,
    bytes: u64,
}

pub(super) fn kernel(arguments: &KernelArgs) -> Result<Exit, Exit> {
    let store = store().map_err(|error| {
        say!("error: {error}");
        Exit::Wrong
    })?;
    let frozen = FrozenStore::below(store.path().parent().unwrap_or_else(|| store.path()));
    match &arguments.command {
        KernelCommand::Add { image } => {
            let added = store.add(image, &mut |line| say!("{line}")).map_err(|error| complain(&error))?;
            print(&format!("{} ({}) is in the store\n", added.image, added.release))?;
            Ok(Exit::Done)
        }
        KernelCommand::Remove { name } => {
            let removed = store.remove(name).map_err(|error| complain(&error))?;
            print(&format!("{} ({}) is removed\n", removed.image, removed.release))?;
            Ok(Exit::Done)
        }
        KernelCommand::Prune { keep } => {
            let removed = frozen.prune(keep.0, None).map_err(|error| complain(&error))?;
            let bytes = removed.iter().map(|entry| entry.bytes).sum();
            print(&format!("{} frozen machines removed, {}\n", removed.len(), Bytes(bytes).short()))?;
            Ok(Exit::Done)
        }
        KernelCommand::List { json } => {
            let listing = store.list().map_err(|error| complain(&error))?;
            let usage = store.usage().map_err(|error| complain(&error))?;
            let list = List {
                kernels: usage
                    .into_iter()
                    .map(|(kernel, bytes)| KernelEntry {
                        image: kernel.image.to_string(),
                        release: kernel.release,
                        package_version: kernel.package_version,
                        bytes,
                    })
                    .collect(),
                machines: frozen.list().map_err(|error| complain(&error))?,
                broken: listing
                    .broken
                    .iter()
                    .map(|entry| format!("{}: {}", entry.path.display(), entry.reason))
                    .collect(),
            };
            if *json {
                return print_json(&list);
            }
            print(&show(&list))?;
            Ok(Exit::Done)
        }
    }
}

/// What stands for the kernel and the release of a frozen machine that is damaged.
const DAMAGED: (&str, &str) = ("damaged", "the first that `sweep kernel prune` takes");

fn show(list: &List) -> String {
    let line = |kind: &str, image: &str, release: &str, bytes: u64| {
        format!("{kind:8}{image:24} {release:40} {:>10}\n", Bytes(bytes).short())
    };
    let empty = "no kernel in the store: `sweep kernel add debian:6.12` fetches one, and a run that needs one does so by itself\n";
    let none = list.kernels.is_empty().then(|| empty.to_owned());
    let kernels = list.kernels.iter().map(|entry| line("kernel", &entry.image, &entry.release, entry.bytes));
    let machines = list.machines.iter().map(|entry| {
        let (image, release) = entry.image.as_deref().zip(entry.release.as_deref()).unwrap_or(DAMAGED);
        line("frozen", image, release, entry.bytes)
    });
    let broken = list.broken.iter().map(|entry| format!("damaged {entry}\n"));
    none.into_iter().chain(kernels).chain(machines).chain(broken).collect()
}
