//! This machine's own kernel: two threads, each in a network namespace of its own, made for one repeat and gone with it.

mod capture;
mod counters;
mod crossing;
mod link;
mod offload;
mod qdisc;
mod schedule;
mod sysctls;

use std::collections::{BTreeMap, BTreeSet};
use std::ops::ControlFlow;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Instant;

use crate::measurement::{
    CaptureLimits, Interface, LinkFacts, Measurement, Outcome, PlacementFacts, Scheduled, SysctlFacts,
};
use crate::settings::{Clock, Placement, Settings, Side, Topology, Work};
use crate::sys::{clock, namespace, process};
use crate::units::Span;
use crate::workload::{self, Addresses, BufferLimits, ClientSeat, Control, Pace, Report, ServerSeat, Sockets};

use self::capture::{Heard, Listening};
use self::counters::Counters;
use self::crossing::{ClientCrossing, Made, ServerCrossing, cross};
use super::share::share_out;
use super::{Backend, BackendError, Event, Job, Machine, Parallel};

pub use link::LinkError;
pub use schedule::ScheduleError;
pub use sysctls::{Reach, SysctlError};

use sysctls::Applied;

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
        measure(job, &self.machine.limits, Reach::Namespaces, interrupted, || {})
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

/// What this machine lacks that some of these cells ask of the link or of sysctls, if anything. Found by trying, in a namespace
/// that is made for it.
pub fn lack(cells: &[&Settings]) -> Option<String> {
    let names: BTreeSet<&String> = cells.iter().flat_map(|settings| settings.sysctls.0.keys()).collect();
    let ends = cells.iter().flat_map(|settings| [&settings.link.client, &settings.link.server]);
    let kinds: BTreeSet<&'static str> = ends.flat_map(qdisc::kinds).collect();
    if !names.is_empty()
        && let Some(error) = sysctls::lack(names)
    {
        return Some(error.to_string());
    }
    if kinds.is_empty() {
        return None;
    }
    let kinds: Vec<&'static str> = kinds.into_iter().collect();
    let absent = thread::scope(|scope| {
        let look = || {
            namespace::enter_new_network().map_err(LinkError::Namespace)?;
            link::absent_queue(&kinds)
        };
        scope.spawn(look).join().unwrap_or(Err(LinkError::OtherEnd))
    });
    match absent {
        Ok(absent) => absent.map(|kind| format!("no queue discipline `{kind}` in its kernel")),
        Err(error) => Some(error.to_string()),
    }
}

/// What an end's thread leaves behind.
struct Left {
    report: Report,
    interface: Option<Interface>,
    sysctls: BTreeMap<String, SysctlFacts>,
    scheduled: Scheduled,
    heard: Heard,
    /// Its namespace. With it a veth device goes at both ends, so it is kept until both are looked at.
    _namespace: OwnedFd,
}

/// Runs one repeat in fresh namespaces. `before_start` is called in the client's thread when the namespaces and the link
/// stand and nothing else is left to do but the workload. `reach` says how far sysctls may be set.
pub fn measure(
    job: &Job,
    limits: &BufferLimits,
    reach: Reach,
    interrupted: &AtomicBool,
    before_start: impl FnOnce() + Send,
) -> Measurement {
    let begun = Instant::now();
    let settings = &job.settings;
    let applied = match Applied::set(&settings.sysctls, reach) {
        Ok(applied) => applied,
        Err(error) => return Measurement::without_figures(error.outcome(), error.to_string()),
    };
    let limits = &applied.limits_here(limits);
    let control = Control::new(job.timeout, interrupted)
        .with_evidence(job.evidence)
        .with_connections(settings.workload.connections);
    let control = if settings.workload.kind == Work::Exec {
        match control.with_bell() {
            Ok(control) => control,
            Err(error) => {
                return Measurement::without_figures(Outcome::Failed, format!("no pipe can be made: {error}"));
            }
        }
    } else {
        control
    };
    let pace = if reach == Reach::Machine { Pace::GUEST } else { Pace::REAL };
    let (server_seat, client_seat) = workload::meet(&control);
    let (crossing_server, crossing_client) = cross();
    let mut setup = None;
    let mut started = None;
    let (server, client) = thread::scope(|scope| {
        let (applied, control) = (&applied, &control);
        let server = thread::Builder::new().name("server".to_owned()).spawn_scoped(scope, move || {
            serve(settings, job.capture, limits, applied, pace, &server_seat, &crossing_server).inspect_err(|_| {
                // The other end may be waiting for this one by now.
                control.call_off();
            })
        });
        let (setup, started) = (&mut setup, &mut started);
        let client = thread::Builder::new().name("client".to_owned()).spawn_scoped(scope, move || {
            request(settings, job.capture, limits, applied, pace, &client_seat, &crossing_client, || {
                *setup = Some(begun.elapsed());
                before_start();
                control.begin();
                *started = Some(Instant::now());
            })
            .inspect_err(|_| {
                control.call_off();
            })
        });
        (server.map(thread::ScopedJoinHandle::join), client.map(thread::ScopedJoinHandle::join))
    });
    let elapsed = started.map(|started| started.elapsed());
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
        (Ok(server), Ok(client)) => conclude(job, client, server, &applied),
        // Of two failures the other end's disappearance is the consequence.
        (Err(LinkError::OtherEnd) | Ok(_), Err(error)) | (Err(error), _) => {
            Measurement::without_figures(error.outcome(), error.to_string())
        }
    };
    measurement.elapsed_ns = elapsed.map(|elapsed| Span::from(elapsed).0);
    measurement.setup_ns = setup.map(|setup| Span::from(setup).0);
    measurement
}

/// Puts together what both ends left.
fn conclude(job: &Job, client: Left, server: Left, applied: &Applied<'_>) -> Measurement {
    let settings = &job.settings;
    let captured = capture::conclude(&settings.link, job.capture, client.heard, server.heard);
    let mut measurement = workload::conclude(&settings.workload, client.report, server.report);
    measurement.sysctls = sysctls::merge(server.sysctls, &applied.read_here());
    if settings.placement != Placement::default() {
        measurement.placement = Some(PlacementFacts { client: client.scheduled, server: server.scheduled });
    }
    if let (Some(mut client), Some(mut server)) = (client.interface, server.interface) {
        if settings.link.topology == Topology::Loopback {
            // One device, read by both: what was read last holds.
            let packets = |end: &Interface| end.queues.first().map(|queue| queue.packets);
            let last = if packets(&client) > packets(&server) { &client } else { &server }.clone();
            (client, server) = (last.clone(), last);
        }
        measurement.link = Some(LinkFacts { client, server });
    }
    if measurement.outcome == Outcome::Measured
        && let Some(reason) = unshaped(settings, measurement.link.as_ref())
    {
        measurement.void(Outcome::Invalid, reason);
    }
    if let Some(captured) = captured {
        measurement.capture = Some(Box::new(captured));
    }
    measurement
}

/// Why a link was not what it was to be, if it was not.
fn unshaped(settings: &Settings, facts: Option<&LinkFacts>) -> Option<String> {
    let ends = [("client", &settings.link.client), ("server", &settings.link.server)];
    ends.into_iter().find_map(|(name, end)| {
        let asked = qdisc::kinds(end);
        let outer = *asked.first()?;
        let Some(facts) = facts else {
            return Some(format!("the {name}'s queue could not be read after the repeat"));
        };
        let found = if name == "client" { &facts.client.queues } else { &facts.server.queues };
        let kinds: Vec<&str> = found.iter().map(|queue| queue.kind.as_str()).collect();
        if kinds != asked {
            let kinds = if kinds.is_empty() { "none".to_owned() } else { kinds.join(" with ") };
            return Some(format!("the {name}'s queue was to be {} and was {kinds} at the end", asked.join(" with ")));
        }
        (found[0].packets == 0).then(|| format!("no packet went through the {name}'s {outer}: the link was not shaped"))
    })
}

/// What a thread panicked with.
fn panic_text(panic: &(dyn std::any::Any + Send)) -> &str {
    panic
        .downcast_ref::<&str>()
        .copied()
        .or_else(|| panic.downcast_ref::<String>().map(String::as_str))
        .unwrap_or("without a message")
}

fn serve(
    settings: &Settings,
    capture: Option<CaptureLimits>,
    limits: &BufferLimits,
    applied: &Applied<'_>,
    pace: Pace,
    seat: &ServerSeat<'_>,
    crossing: &ServerCrossing,
) -> Result<Left, LinkError> {
    namespace::enter_new_network().map_err(LinkError::Namespace)?;
    let own: OwnedFd = namespace::current_network().map_err(LinkError::Namespace)?.into();
    applied.set_here()?;
    let addresses = link::addresses(&settings.link);
    let tell = |own| crossing.to_client.send(own).map_err(|_| LinkError::OtherEnd);
    match settings.link.topology {
        Topology::Veth => {
            let client = crossing.namespace()?;
            link::make_server(&settings.link, client.as_fd(), || tell(None), crossing.expects_the_end())?;
        }
        Topology::Loopback => {
            link::make_loopback(&settings.link)?;
            tell(Some(own.try_clone().map_err(LinkError::Namespace)?))?;
        }
    }
    schedule::place("server", settings.placement.server_cpu, settings.placement.policy)?;
    let (sysctls, scheduled) = (applied.read_here(), schedule::read());
    let limits = applied.limits_here(limits);
    if watches(settings, seat.control) {
        seat.watch_with(Box::new(Sockets::watch(settings, Side::Server, pace)));
    }
    // On loopback both ends are in one namespace, whose counters the client reads.
    let own_device = settings.link.topology == Topology::Veth;
    let listening = Listening::begin(&settings.link, capture.filter(|_| own_device));
    let counted = seat.control.evidence() && own_device;
    let report = with_counters(counted, || workload::serve(settings, addresses, &limits, seat));
    let heard = listening.end();
    let interface = link::read(&settings.link, &settings.link.server).ok();
    Ok(Left { report, interface, sysctls, scheduled, heard, _namespace: own })
}

#[expect(clippy::too_many_arguments, reason = "each is another part of what the two processes are told")]
fn request(
    settings: &Settings,
    capture: Option<CaptureLimits>,
    limits: &BufferLimits,
    applied: &Applied<'_>,
    pace: Pace,
    seat: &ClientSeat<'_>,
    crossing: &ClientCrossing,
    ready: impl FnOnce(),
) -> Result<Left, LinkError> {
    let addresses: Addresses = link::addresses(&settings.link);
    let own: OwnedFd = match settings.link.topology {
        Topology::Veth => {
            namespace::enter_new_network().map_err(LinkError::Namespace)?;
            let own: OwnedFd = namespace::current_network().map_err(LinkError::Namespace)?.into();
            applied.set_here()?;
            let other = own.try_clone().map_err(LinkError::Namespace)?;
            crossing.to_server.send(Made::Namespace(other)).map_err(|_| LinkError::OtherEnd)?;
            crossing.from_server.recv().map_err(|_| LinkError::OtherEnd)?;
            link::make_client(&settings.link)?;
            // A server that saw the link up, and is done already, needs no telling.
            let _ = crossing.to_server.send(Made::End);
            own
        }
        Topology::Loopback => {
            let server = crossing.from_server.recv().map_err(|_| LinkError::OtherEnd)?.ok_or(LinkError::OtherEnd)?;
            namespace::enter_network(server.as_fd()).map_err(LinkError::Namespace)?;
            server
        }
    };
    schedule::place("client", settings.placement.client_cpu, settings.placement.policy)?;
    let scheduled = schedule::read();
    let limits = applied.limits_here(limits);
    let machine = seat.control.evidence().then(|| (clock::tick(), counters::softnet_drops()));
    let listening = Listening::begin(&settings.link, capture);
    let mut report = with_counters(seat.control.evidence(), || {
        ready();
        if watches(settings, seat.control) {
            seat.watch_with(Box::new(Sockets::watch(settings, Side::Client, pace)));
        }
        workload::request(settings, addresses, &limits, seat)
    });
    let heard = listening.end();
    if let (Some((tick, before)), Some(evidence)) = (machine, &mut report.end.evidence) {
        evidence.tick_ns = tick.map(|tick| tick.0);
        evidence.softnet_drops = counters::softnet_drops().zip(before).map(|(now, before)| now.saturating_sub(before));
    }
    let interface = link::read(&settings.link, &settings.link.client).ok();
    Ok(Left { report, interface, sysctls: BTreeMap::new(), scheduled, heard, _namespace: own })
}

/// Whether the ends' sockets are a program's, to be looked at from outside.
fn watches(settings: &Settings, control: &Control<'_>) -> bool {
    settings.workload.kind == Work::Exec && control.evidence()
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

#[cfg(test)]
mod tests {
    use super::{ClientCrossing, Made, cross, unshaped};
    use crate::measurement::{Interface, LinkFacts, QueueFacts};
    use crate::settings::Settings;
    use crate::units::BitRate;

    /// A client that is refused its socket is gone in microseconds. That is no reason to take its link for one that will never stand, and
    /// to lose why it was refused.
    #[test]
    fn an_end_that_stands_is_expected_though_its_client_is_gone() {
        let (server, ClientCrossing { to_server, .. }) = cross();
        let mut expects = server.expects_the_end();
        assert!(expects(), "it is being made");
        to_server.send(Made::End).expect("sent");
        drop(to_server);
        assert!(expects() && expects() && expects(), "it stands");

        let (server, client) = cross();
        let mut expects = server.expects_the_end();
        drop(client);
        assert!(!expects(), "it will never stand");
    }

    /// C38: a queue that is missing, another one, or never used at the end voids the repeat (iota#11738, litmus-go#285, chaosblade#616).
    #[test]
    fn a_link_that_was_not_what_it_was_to_be_voids_the_repeat() {
        let mut settings = Settings::default();
        settings.link.server.rate = Some(BitRate(1_000_000));
        let facts = |queues: &[(&str, u64)]| {
            let queue = |(kind, packets): &(&str, u64)| QueueFacts {
                kind: (*kind).to_owned(),
                packets: *packets,
                ..QueueFacts::default()
            };
            let server = Interface { queues: queues.iter().map(queue).collect(), ..Interface::default() };
            LinkFacts { server, client: Interface::default() }
        };
        let said = |facts: Option<&LinkFacts>| unshaped(&settings, facts);
        assert_eq!(said(Some(&facts(&[("tbf", 1)]))), None);
        for (found, reason) in [
            (None, "the server's queue could not be read after the repeat"),
            (Some(facts(&[])), "the server's queue was to be tbf and was none at the end"),
            (Some(facts(&[("pfifo_fast", 1)])), "the server's queue was to be tbf and was pfifo_fast at the end"),
            (Some(facts(&[("tbf", 0)])), "no packet went through the server's tbf: the link was not shaped"),
        ] {
            assert_eq!(said(found.as_ref()).as_deref(), Some(reason));
        }
        assert_eq!(unshaped(&Settings::default(), None), None, "nothing was asked");
    }
}
