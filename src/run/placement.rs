//! Where each cell runs, and why: on the host's kernel where that can do it, else in a guest.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;

use serde::Serialize;

use crate::backend::fake::Fake;
use crate::backend::guest::initramfs::{self, Payload, Wanted};
use crate::backend::guest::kernel::{self, ImageName, Kernel, KernelStore};
use crate::backend::guest::{Accelerator, Guest, GuestOptions, Qemu, probe_kvm};
use crate::backend::native::{self, Native};
use crate::backend::{Backend, BackendError, Parallel};
use crate::plan::Cell;
use crate::settings::{Clock, Settings};
use crate::workload;

/// What the user chose about where cells run.
#[derive(Clone, Debug)]
pub struct Choice {
    /// The program that becomes the agent of guests.
    pub program: PathBuf,
    /// Cells at once.
    pub parallel: Parallel,
    /// Why native cells cannot run here, where that is known already (a user namespace was refused).
    pub native_refused: Option<String>,
    /// Measure nothing and make figures up, for tests of everything else.
    pub fake: bool,
}

/// Where a group of cells runs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Placement {
    /// The kernel as the sweep asked for it.
    pub asked: String,
    /// What runs there.
    pub place: Place,
    /// Why there, in a sentence.
    pub why: String,
    /// Cells by their index in the plan.
    #[serde(skip)]
    pub cells: Vec<usize>,
}

/// A place where cells run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Place {
    /// This machine's own kernel, in real time.
    Native,
    /// A guest with the kernel of that name.
    Guest {
        /// The kernel's name; `None` where the newest of the store, or else the distribution's own, is to be taken.
        image: Option<String>,
        /// The clock as asked for.
        clock: Clock,
    },
    /// Nowhere: figures are made up.
    Fake,
}

/// Decides for all cells of a plan. Looks at this machine, fetches nothing and boots nothing.
pub fn place(cells: &[Cell], choice: &Choice) -> Vec<Placement> {
    let mut groups: Vec<(String, Clock, Vec<usize>)> = Vec::new();
    for (index, cell) in cells.iter().enumerate() {
        let kernel = &cell.settings.kernel;
        match groups.iter_mut().find(|(image, clock, _)| *image == kernel.image && *clock == kernel.clock) {
            Some((_, _, members)) => members.push(index),
            None => groups.push((kernel.image.clone(), kernel.clock, vec![index])),
        }
    }
    groups
        .into_iter()
        .map(|(asked, clock, members)| {
            let settings: Vec<&Settings> = members.iter().map(|&index| &cells[index].settings).collect();
            let (place, why) = decide(&asked, clock, &settings, choice);
            Placement { asked, place, why, cells: members }
        })
        .collect()
}

fn decide(asked: &str, clock: Clock, settings: &[&Settings], choice: &Choice) -> (Place, String) {
    if choice.fake {
        return (Place::Fake, "the fake backend was asked for: no figure is real".to_owned());
    }
    let guest = |image: Option<&str>| Place::Guest { image: image.map(str::to_owned), clock };
    match asked {
        // In virtual time the host's kernel runs in a guest, from /boot and /lib/modules.
        "host" if clock == Clock::Virtual => {
            (guest(Some("host")), "kernel.clock = \"virtual\" needs a guest".to_owned())
        }
        "host" => (Place::Native, "kernel.image = \"host\"".to_owned()),
        "auto" if clock == Clock::Virtual => (guest(None), "kernel.clock = \"virtual\" needs a guest".to_owned()),
        "auto" => match host_lacks(settings, choice) {
            None => (Place::Native, "the host's own kernel can do every cell of it".to_owned()),
            Some(lack) => (guest(None), format!("the host cannot: {lack}")),
        },
        image => (guest(Some(image)), format!("kernel.image = \"{image}\"")),
    }
}

/// What this machine lacks for these cells, if anything.
fn host_lacks(settings: &[&Settings], choice: &Choice) -> Option<String> {
    if let Some(refused) = &choice.native_refused {
        return Some(refused.clone());
    }
    // One probe for each kind of socket and set of options.
    let kinds: BTreeMap<_, &Settings> = settings
        .iter()
        .map(|settings| {
            let Settings { workload, link, client, server, .. } = settings;
            let kind = (workload.protocol, workload.style, link.family, &client.options, &server.options);
            (kind, *settings)
        })
        .collect();
    let socket = kinds.values().find_map(|settings| match workload::probe(settings) {
        Ok(()) => None,
        Err(workload::Failure::NoProtocol { protocol, error }) => {
            Some(format!("no {} in its kernel ({error})", protocol.name().to_uppercase()))
        }
        Err(failure) => Some(failure.to_string()),
    });
    socket.or_else(|| native::lack(settings))
}

/// A machine that is ready to run cells.
pub(super) struct Ready {
    pub(super) backend: Box<dyn Backend>,
    /// What the figures of virtual cells depend on beside the cell: `None` in real time, where nothing can be reused.
    pub(super) purity: Option<String>,
    /// Tools and their versions, for the manifest.
    pub(super) tools: BTreeMap<String, String>,
}

impl Ready {
    fn bare(backend: impl Backend + 'static) -> Self {
        Self { backend: Box::new(backend), purity: None, tools: BTreeMap::new() }
    }
}

/// What the programs of a placement's cells need of this machine.
#[derive(Default)]
pub(super) struct Belongings {
    /// What comes along into the guest: that of all cells together, so that they share one machine.
    payload: Payload,
    /// Cells that lack something, by their index in the plan, and what.
    pub(super) refused: HashMap<usize, String>,
}

/// Finds what the programs of the cells need in a guest. On this machine itself everything is there, or the cell says what is not.
pub(super) fn pack(
    placement: &Placement,
    cells: &[Cell],
    note: &mut dyn FnMut(String),
) -> Result<Belongings, BackendError> {
    let Place::Guest { .. } = placement.place else { return Ok(Belongings::default()) };
    let wanted: BTreeMap<usize, Wanted> =
        placement.cells.iter().filter_map(|&index| Some((index, Wanted::of(&cells[index].settings)?))).collect();
    if wanted.is_empty() {
        return Ok(Belongings::default());
    }
    let distinct: BTreeSet<Wanted> = wanted.values().cloned().collect();
    let packed = initramfs::pack(&distinct)
        .map_err(|error| BackendError::Unavailable(format!("the programs cannot be packed into a guest: {error}")))?;
    packed.notes.into_iter().for_each(note);
    let refused =
        wanted.into_iter().filter_map(|(index, wanted)| Some((index, packed.refused.get(&wanted)?.clone()))).collect();
    Ok(Belongings { payload: packed.payload, refused })
}

/// Makes a machine ready: fetches its kernel if it must, and packs it.
pub(super) fn prepare(
    placement: &Placement,
    belongings: Belongings,
    choice: &Choice,
    store: &Result<KernelStore, String>,
    consoles: &Path,
    interrupted: &AtomicBool,
    note: &mut dyn FnMut(String),
) -> Result<Ready, BackendError> {
    match &placement.place {
        Place::Fake => Ok(Ready::bare(Fake)),
        Place::Native => native(placement, choice),
        Place::Guest { image, clock } => {
            let store = store.as_ref().map_err(|reason| BackendError::Unavailable(reason.clone()))?;
            let qemu = Qemu::find().map_err(BackendError::Unavailable)?;
            let kernel = kernel_of(image.as_deref(), store, note)?;
            let (accelerator, how) = accelerate(*clock, &qemu, &kernel, store, interrupted);
            let options = GuestOptions {
                accelerator,
                why: format!("{}; {how}", placement.why),
                program: choice.program.clone(),
                payload: belongings.payload,
                consoles: consoles.to_owned(),
                parallel: choice.parallel,
            };
            let tools = BTreeMap::from([("qemu".to_owned(), qemu.version.clone())]);
            let guest = Guest::new(qemu, &kernel, store, options)?;
            Ok(Ready { purity: guest.machine_key(), tools, backend: Box::new(guest) })
        }
    }
}

fn native(placement: &Placement, choice: &Choice) -> Result<Ready, BackendError> {
    match &choice.native_refused {
        Some(refused) => Err(BackendError::Unavailable(refused.clone())),
        None => Native::new(placement.why.clone()).map(|native| Ready::bare(native.at_once(choice.parallel))),
    }
}

/// The kernel of that name, fetched if it must be. Without a name the newest of the store, or else the distribution's own.
fn kernel_of(image: Option<&str>, store: &KernelStore, note: &mut dyn FnMut(String)) -> Result<Kernel, BackendError> {
    let unavailable = |error: kernel::Error| BackendError::Unavailable(error.to_string());
    let mut progress = |line: &str| note(line.to_owned());
    let name: ImageName = match image {
        Some(image) => {
            image.parse().map_err(|error: kernel::ParseImageError| BackendError::Unavailable(error.to_string()))?
        }
        None => match store.newest().map_err(unavailable)? {
            Some(kernel) => return Ok(kernel),
            None => store.distribution_default(&mut progress).map_err(unavailable)?,
        },
    };
    store.get_or_add(&name, &mut progress).map_err(unavailable)
}

/// How a guest's processor is run: KVM if it truly works and real time is wanted, else emulation, in virtual time unless
/// real time is asked for.
fn accelerate(
    clock: Clock,
    qemu: &Qemu,
    kernel: &Kernel,
    store: &KernelStore,
    interrupted: &AtomicBool,
) -> (Accelerator, String) {
    if clock == Clock::Virtual {
        return (Accelerator::TcgVirtual, "virtual time was asked for".to_owned());
    }
    let cache = store.path().parent().unwrap_or_else(|| store.path());
    let verdict = probe_kvm(qemu, &kernel.vmlinuz, cache, interrupted);
    match (verdict.works, clock) {
        (true, _) => (Accelerator::Kvm, format!("real time, {}", verdict.reason)),
        (false, Clock::Real) => (Accelerator::Tcg, format!("real time under emulation: {}", verdict.reason)),
        (false, _) => (Accelerator::TcgVirtual, format!("virtual time, since guests are emulated: {}", verdict.reason)),
    }
}
