//! This machine's own kernel: two threads, each in a network namespace of its own, made for one repeat and gone with it.

mod counters;
mod link;
mod sysctls;

use std::ops::ControlFlow;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread;
use std::time::Instant;

use crate::measurement::{Measurement, Outcome};
use crate::settings::{Clock, Settings, Topology};
use crate::sys::{namespace, process};
use crate::units::Span;
use crate::workload::{self, Addresses, BufferLimits, ClientSeat, Control, Report, ServerSeat};

use self::counters::Counters;
use super::share::share_out;
use super::{Backend, BackendError, Event, Job, Machine, Parallel};

pub use link::LinkError;

/// The kernel that this process runs on.
#[derive(Debug)]
pub struct Native {
    machine: Machine,
    at_once: usize,
}

/// What a worker tells of a job.
enum Told {
    Started(usize),
    Ended(usize, Box<Measurement>),
}

impl Native {
    /// Looks at this machine. `why` says why the sweep runs here.
    ///
    /// # Errors
    /// When network namespaces cannot be made here, with what to do.
    pub fn new(why: impl Into<String>) -> Result<Self, BackendError> {
        let name = process::kernel_name().map_err(|error| BackendError::Broken(format!("uname failed: {error}")))?;
        let limits = BufferLimits::probe()
            .map_err(|error| BackendError::Unavailable(format!("no socket can be opened here: {error}")))?;
        let sysctls = sysctls::in_new_namespace()
            .map_err(|error| BackendError::Unavailable(format!("no network namespace can be made here: {error}")))?;
        Ok(Self {
            machine: Machine {
                name: "native".to_owned(),
                image: "host".to_owned(),
                release: name.release,
                version: name.version,
                package_version: None,
                clock: Clock::Real,
                why: why.into(),
                limits,
                sysctls,
            },
            at_once: 1,
        })
    }

    /// Measures several cells at once, whatever that does to their figures.
    #[must_use]
    pub fn at_once(mut self, parallel: Parallel) -> Self {
        self.at_once = parallel.real_time;
        if let Some(warning) = parallel.warning() {
            self.machine.why = format!("{}; {warning}", self.machine.why);
        }
        self
    }

    /// What is known of this machine.
    pub const fn machine(&self) -> &Machine {
        &self.machine
    }

    /// Runs one repeat.
    pub fn measure(&self, job: &Job, interrupted: &AtomicBool) -> Measurement {
        measure(job, &self.machine.limits, interrupted, || {})
    }
}

impl Backend for Native {
    fn run(
        &mut self,
        jobs: &[Job],
        interrupted: &AtomicBool,
        tell: &mut dyn FnMut(Event<'_>) -> ControlFlow<()>,
    ) -> Result<(), BackendError> {
        if tell(Event::Machine(&self.machine)).is_break() {
            return Ok(());
        }
        let work = |_: usize, index: usize, say: &dyn Fn(Told)| {
            say(Told::Started(index));
            say(Told::Ended(index, Box::new(self.measure(&jobs[index], interrupted))));
        };
        share_out(jobs.len(), self.at_once, interrupted, work, |told| match told {
            Told::Started(index) => tell(Event::Started(index)),
            // What was under way when the run was interrupted has no figures of its own.
            Told::Ended(..) if interrupted.load(Ordering::Relaxed) => ControlFlow::Break(()),
            Told::Ended(index, measurement) => tell(Event::Ended(index, measurement)),
        });
        Ok(())
    }
}

/// Runs one repeat in fresh namespaces. `before_start` is called in the client's thread when the namespaces and the link
/// stand and nothing else is left to do but the workload.
pub fn measure(
    job: &Job,
    limits: &BufferLimits,
    interrupted: &AtomicBool,
    before_start: impl FnOnce() + Send,
) -> Measurement {
    let begun = Instant::now();
    let control = Control::new(job.timeout, interrupted).with_evidence(job.evidence);
    let (server_seat, client_seat) = workload::meet(&control);
    let (crossing_server, crossing_client) = cross();
    let settings = &job.settings;
    let mut setup = None;
    let mut started = None;
    let (server, client) = thread::scope(|scope| {
        let server = thread::Builder::new()
            .name("server".to_owned())
            .spawn_scoped(scope, move || serve(settings, limits, &server_seat, &crossing_server));
        let (setup, started) = (&mut setup, &mut started);
        let client = thread::Builder::new().name("client".to_owned()).spawn_scoped(scope, move || {
            request(settings, limits, &client_seat, &crossing_client, || {
                *setup = Some(begun.elapsed());
                before_start();
                *started = Some(Instant::now());
            })
        });
        (server.map(thread::ScopedJoinHandle::join), client.map(thread::ScopedJoinHandle::join))
    });
    let (server, client) = match (server, client) {
        (Ok(Ok(server)), Ok(Ok(client))) => (server, client),
        (Err(error), _) | (_, Err(error)) => {
            return Measurement::without_figures(Outcome::Failed, format!("no thread could be started: {error}"));
        }
        (Ok(Err(panic)), _) | (_, Ok(Err(panic))) => {
            return Measurement::without_figures(Outcome::Failed, format!("sweep panicked: {}", panic_text(&panic)));
        }
    };
    let mut measurement = match (server, client) {
        (Ok(server), Ok(client)) => workload::conclude(client, server),
        // Of two failures the other end's disappearance is the consequence.
        (Err(LinkError::OtherEnd) | Ok(_), Err(error)) | (Err(error), _) => {
            Measurement::without_figures(error.outcome(), error.to_string())
        }
    };
    measurement.elapsed_ns = started.map(|started| Span::from(started.elapsed()).0);
    measurement.setup_ns = setup.map(|setup| Span::from(setup).0);
    measurement
}

/// What a thread panicked with.
fn panic_text(panic: &(dyn std::any::Any + Send)) -> &str {
    panic
        .downcast_ref::<&str>()
        .copied()
        .or_else(|| panic.downcast_ref::<String>().map(String::as_str))
        .unwrap_or("without a message")
}

/// The server's half of the making of the namespaces.
struct ServerCrossing {
    /// The client's namespace, once it is made.
    from_client: Receiver<OwnedFd>,
    /// Tells the client that the link stands; carries the server's namespace where the two share it.
    to_client: SyncSender<Option<OwnedFd>>,
}

/// The client's half.
struct ClientCrossing {
    to_server: SyncSender<OwnedFd>,
    from_server: Receiver<Option<OwnedFd>>,
}

fn cross() -> (ServerCrossing, ClientCrossing) {
    let (to_server, from_client) = sync_channel(1);
    let (to_client, from_server) = sync_channel(1);
    (ServerCrossing { from_client, to_client }, ClientCrossing { to_server, from_server })
}

fn serve(
    settings: &Settings,
    limits: &BufferLimits,
    seat: &ServerSeat<'_>,
    crossing: &ServerCrossing,
) -> Result<Report, LinkError> {
    namespace::enter_new_network().map_err(LinkError::Namespace)?;
    let addresses = link::addresses(&settings.link);
    let tell = |own| crossing.to_client.send(own).map_err(|_| LinkError::OtherEnd);
    match settings.link.topology {
        Topology::Veth => {
            let client = crossing.from_client.recv().map_err(|_| LinkError::OtherEnd)?;
            link::make_server(&settings.link, client.as_fd(), || tell(None))?;
        }
        Topology::Loopback => {
            link::make_loopback(&settings.link)?;
            tell(Some(namespace::current_network().map_err(LinkError::Namespace)?.into()))?;
        }
    }
    // On loopback both ends are in one namespace, whose counters the client reads.
    let own = seat.control.evidence() && settings.link.topology == Topology::Veth;
    Ok(with_counters(own, || workload::serve(settings, addresses, limits, seat)))
}

fn request(
    settings: &Settings,
    limits: &BufferLimits,
    seat: &ClientSeat<'_>,
    crossing: &ClientCrossing,
    ready: impl FnOnce(),
) -> Result<Report, LinkError> {
    let addresses: Addresses = link::addresses(&settings.link);
    match settings.link.topology {
        Topology::Veth => {
            namespace::enter_new_network().map_err(LinkError::Namespace)?;
            let own = namespace::current_network().map_err(LinkError::Namespace)?;
            crossing.to_server.send(own.into()).map_err(|_| LinkError::OtherEnd)?;
            crossing.from_server.recv().map_err(|_| LinkError::OtherEnd)?;
            link::make_client(&settings.link)?;
        }
        Topology::Loopback => {
            let server = crossing.from_server.recv().map_err(|_| LinkError::OtherEnd)?.ok_or(LinkError::OtherEnd)?;
            namespace::enter_network(server.as_fd()).map_err(LinkError::Namespace)?;
        }
    }
    Ok(with_counters(seat.control.evidence(), || {
        ready();
        workload::request(settings, addresses, limits, seat)
    }))
}

/// Runs one end of a workload between two readings of its namespace's counters.
fn with_counters(wanted: bool, work: impl FnOnce() -> Report) -> Report {
    if !wanted {
        return work();
    }
    let begun = Instant::now();
    let before = Counters::read();
    let mut cost = begun.elapsed();
    let mut report = work();
    let done = Instant::now();
    let moved = Counters::read().since(&before);
    cost += done.elapsed();
    let evidence = report.end.evidence.get_or_insert_default();
    evidence.counters = Some(moved);
    evidence.cost_ns = Some(evidence.cost_ns.unwrap_or(0) + Span::from(cost).0);
    report
}
