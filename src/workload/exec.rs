//! Two programs of the user's as the two ends: each is started in its end's namespace, overseen until it ends, and ended with all that it
//! has started. What they print is kept, bounded in size, and numbers are taken from it.

mod locate;
mod metrics;
mod output;
mod ready;
mod running;
mod scratch;

use std::time::{Duration, Instant};

use super::SLICE;
use crate::measurement::{End, Output, ProgramFacts};
use crate::settings::{Exec, Settings, Side, Stands, Stop};
use crate::sys::child::{Ended, Nest, Signal};
use crate::units::Span;

use super::meeting::{ClientSeat, Control, ServerSeat};
use super::{Addresses, Failure, Report};

pub use locate::{Absent, locate};
use running::Running;
pub(super) use scratch::Scratch;

/// What looks at the sockets of a program from outside while it runs.
pub trait Watch: Send {
    /// Looks, if it is time to. How long until the next look is due.
    fn look(&mut self) -> Duration;

    /// Tells what it has seen, since the client's program was about to be started.
    fn tell(&mut self, origin: Instant, end: &mut End);
}

/// How long the client may be seen to end after the server for both to have ended at once. A program's sockets are closed before its end can
/// be seen, so that of two programs of which one ends since the other did, either may be seen first.
const AT_ONCE: Duration = SLICE;
/// How often it is looked meanwhile.
const GLANCE: Duration = Duration::from_millis(2);

/// Runs the server's program in this thread's namespace until the client has ended.
pub(super) fn serve(settings: &Settings, addresses: Addresses, seat: &ServerSeat<'_>) -> Report {
    let mut report = Report::default();
    if let Err(failure) = serve_into(settings, addresses, seat, &mut report) {
        report.fail(failure, seat.control);
    }
    report
}

fn serve_into(
    settings: &Settings,
    addresses: Addresses,
    seat: &ServerSeat<'_>,
    report: &mut Report,
) -> Result<(), Failure> {
    let exec = programs(settings)?;
    let (program, control) = (&exec.server, seat.control);
    let nest = nest()?;
    let mut running = Running::start(exec, Side::Server, addresses, control, &nest)?;
    let result = ready::wait(&mut running, program, settings, &nest, control).and_then(|()| {
        report.end.program.get_or_insert_default().ready_ns = Some(running.age().0);
        seat.listening()?;
        attend(&mut running, program.success.as_slice(), seat)
    });
    // Noted at once: what the client's program makes of it comes later.
    report.note(result, control);
    if let Some(watch) = seat.watch().as_mut() {
        watch.tell(control.started().unwrap_or_else(Instant::now), &mut report.end);
    }
    if report.failure.is_none() && program.stop == Stop::Itself {
        let result = leave(&mut running, exec, control);
        report.note(result, control);
    }
    if let Some(signal) =
        Signal::named(program.stop.name()).filter(|_| report.failure.is_none() || !control.is_interrupted())
        && !running.stop(signal, program.grace.duration())
    {
        report
            .remarks
            .push(format!("the server did not end within {} of {} and was killed", program.grace, program.stop));
    }
    conclude(running, nest, exec, Side::Server, report, control);
    seat.part();
    seat.leave();
    Ok(())
}

/// Keeps an eye on a server until its client is done.
fn attend(running: &mut Running, success: &[u8], seat: &ServerSeat<'_>) -> Result<(), Failure> {
    let control = seat.control;
    loop {
        // A client that failed says so before it is done.
        let is_done = seat.client_is_done();
        if let Err(failure) = control.check_other() {
            // It may have failed of what became of the server, whose end may not show yet.
            return Err(last_look(running, success, AT_ONCE, control).err().unwrap_or(failure));
        }
        if is_done {
            return Ok(());
        }
        let patience = seat.watch().as_mut().map_or(control.patience(), |watch| watch.look().min(control.patience()));
        let had_ended = running.ended().is_some();
        running.step(control.bell(), patience)?;
        if let Some((ended, _)) = running.ended().filter(|_| !had_ended)
            && !is_success(&ended, success)
            && !seat.client_is_done()
        {
            let seen = Instant::now();
            while !control.client_has_ended() && control.check_other().is_ok() {
                if seen.elapsed() >= AT_ONCE {
                    return Err(running.failed(&format!("{} before the client did", how(&ended))));
                }
                running.step(control.bell(), GLANCE)?;
            }
        }
    }
}

/// Whether a program that is about to be ended because the other end gave up fails by itself before that, or within so long.
fn last_look(running: &mut Running, success: &[u8], patience: Duration, control: &Control<'_>) -> Result<(), Failure> {
    let begun = Instant::now();
    loop {
        let left = patience.saturating_sub(begun.elapsed());
        running.step(None, left.min(GLANCE))?;
        if running.ended().is_some() || left.is_zero() || control.is_interrupted() {
            break;
        }
    }
    match running.ended() {
        Some((ended, _)) if !is_success(&ended, success) => Err(running.failed(&how(&ended))),
        _ => Ok(()),
    }
}

/// Waits for a server that ends by itself.
fn leave(running: &mut Running, exec: &Exec, control: &Control<'_>) -> Result<(), Failure> {
    let program = &exec.server;
    if !running.until_ended(program.grace.duration(), || control.check(|| "the server had not ended".to_owned()))? {
        return Err(running.failed(&format!(
            "did not end by itself within {} after the client had, as stop = \"{}\" says it does",
            program.grace, program.stop
        )));
    }
    match running.ended() {
        Some((ended, _)) if !is_success(&ended, &program.success) => Err(running.failed(&how(&ended))),
        _ => Ok(()),
    }
}

/// Runs the client's program in this thread's namespace until it ends.
pub(super) fn request(settings: &Settings, addresses: Addresses, seat: &ClientSeat<'_>) -> Report {
    let mut report = Report::default();
    if let Err(failure) = request_into(settings, addresses, seat, &mut report) {
        report.fail(failure, seat.control);
    }
    seat.control.ring();
    report
}

fn request_into(
    settings: &Settings,
    addresses: Addresses,
    seat: &ClientSeat<'_>,
    report: &mut Report,
) -> Result<(), Failure> {
    let exec = programs(settings)?;
    let control = seat.control;
    let nest = nest()?;
    seat.until_listening()?;
    let origin = control.start();
    let mut running = Running::start(exec, Side::Client, addresses, control, &nest)?;
    let result = follow(&mut running, &exec.client.success, seat);
    // Noted at once: when this program is ended, the server's may fail of that.
    report.note(result, control);
    if let Some(watch) = seat.watch().as_mut() {
        watch.tell(origin, &mut report.end);
    }
    if report.failure.is_none()
        && let Some((_, when)) = running.ended()
        && !exec.metrics.iter().any(|metric| metric.is == Stands::Completion)
    {
        report.completion_ns = Some(when.0.saturating_sub(running.begun().0));
    }
    conclude(running, nest, exec, Side::Client, report, control);
    control.ring();
    seat.part();
    seat.leave();
    Ok(())
}

/// Waits for the client's end.
fn follow(running: &mut Running, success: &[u8], seat: &ClientSeat<'_>) -> Result<(), Failure> {
    let control = seat.control;
    while running.ended().is_none() {
        if let Err(failure) = control.check(|| running.with_last_lines("the client had not ended")) {
            let failed = if matches!(failure, Failure::CalledOff) {
                last_look(running, success, Duration::ZERO, control).err()
            } else {
                None
            };
            return Err(failed.unwrap_or(failure));
        }
        let patience = seat.watch().as_mut().map_or(control.patience(), |watch| watch.look().min(control.patience()));
        running.step(None, patience)?;
    }
    control.client_ends();
    match running.ended() {
        Some((ended, _)) if !is_success(&ended, success) => Err(running.failed(&how(&ended))),
        _ => Ok(()),
    }
}

/// Ends a program with all that it has started, takes numbers from what it printed, and tells what became of it.
fn conclude(mut running: Running, nest: Nest, exec: &Exec, side: Side, report: &mut Report, control: &Control<'_>) {
    let last = running.kill();
    let others = nest.others(running.stopped_group());
    // Whatever is left of them ends here, and what they still had to say is in the pipes.
    drop(nest);
    running.drain();
    if !others.is_empty() && report.failure.is_none() {
        report.remarks.push(format!(
            "the {side} left {} behind ({}), ended with the repeat",
            if others.len() == 1 { "a process".to_owned() } else { format!("{} processes", others.len()) },
            others.join(", ")
        ));
    }
    let ready_ns = report.end.program.as_ref().and_then(|facts| facts.ready_ns);
    let facts = ProgramFacts { ready_ns, left_behind: others, ..running.facts() };
    if let Some(Ended { usage, .. }) = last {
        report.end.cpu_user_ns = Some(usage.user_ns);
        report.end.cpu_system_ns = Some(usage.system_ns);
        report.end.voluntary_switches = Some(usage.voluntary_switches);
        report.end.involuntary_switches = Some(usage.involuntary_switches);
    }
    if report.failure.is_none() {
        let result = metrics::take(exec, side, &running, report);
        report.note(result, control);
    }
    report.end.program = Some(Box::new(facts));
}

fn programs(settings: &Settings) -> Result<&Exec, Failure> {
    settings.exec.as_deref().ok_or_else(|| Failure::Protocol("the cell names no programs".to_owned()))
}

fn nest() -> Result<Nest, Failure> {
    Nest::enter().map_err(|error| Failure::Impossible {
        doing: "making a PID namespace, which ends programs with the repeat,".to_owned(),
        error,
    })
}

fn is_success(ended: &Ended, success: &[u8]) -> bool {
    ended.code.is_some_and(|code| success.iter().any(|&good| i32::from(good) == code))
}

/// How a program ended, in words.
fn how(ended: &Ended) -> String {
    match (ended.code, ended.signal) {
        (Some(code), _) => format!("ended with exit code {code}"),
        (None, Some(signal)) => format!("was ended by signal {signal}"),
        (None, None) => "ended".to_owned(),
    }
}

/// The last lines of what a program printed, as the end of a message.
fn last_lines(facts: &ProgramFacts) -> String {
    let lines = facts.last_lines();
    if lines.is_empty() {
        return "it printed nothing".to_owned();
    }
    format!("its last lines: {}", lines.join(" | "))
}

/// Most bytes of the begin and of the end of an output that numbers are looked for in.
const KEPT: usize = 1 << 20;

/// A bound to how long what is left in a pipe is read.
const MAX_DRAIN: usize = 2 << 20;

/// What is stored of an output of which that much is kept.
fn stored(head: &[u8], tail: &[u8], bytes: u64) -> Output {
    let kept = head.len() + tail.len();
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let left_out = bytes.saturating_sub(kept as u64);
    if left_out == 0 && kept <= Output::HEAD + Output::TAIL {
        return Output { bytes, head: text(&[head, tail].concat()), left_out_bytes: 0, tail: String::new() };
    }
    let all = [head, tail].concat();
    let (begin, end) = (&all[..Output::HEAD], &all[all.len() - Output::TAIL..]);
    Output { bytes, head: text(begin), left_out_bytes: bytes - (Output::HEAD + Output::TAIL) as u64, tail: text(end) }
}

/// Since the begin of a program.
fn since(begun: Span) -> Span {
    Span(crate::sys::clock::monotonic().0.saturating_sub(begun.0))
}
