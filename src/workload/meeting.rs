//! How the two ends of a repeat find each other, keep their deadline, and call each other off.

use std::cell::{RefCell, RefMut};
use std::convert::Infallible;
use std::fmt;
use std::io::{self, PipeReader, PipeWriter, Write};
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::Arc;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvError, RecvTimeoutError, Sender, TryRecvError, channel};
use std::time::{Duration, Instant};

use crate::units::Span;

use super::crowd::Gathering;
use super::exec::{Scratch, Watch};
use super::{Failure, SLICE};

/// What both ends of a repeat share; of several connections at once, what both ends of the first one share.
#[derive(Debug)]
pub struct Control<'a> {
    /// Set when the work begins: what is set up before, and waited for, is not of the time that it has.
    deadline: Arc<OnceLock<Instant>>,
    timeout: Span,
    /// Of all connections.
    called_off: Arc<AtomicBool>,
    interrupted: &'a AtomicBool,
    started: OnceLock<Instant>,
    sent: OnceLock<u64>,
    echo_over: AtomicBool,
    /// Whether the client's program was seen to have ended by itself.
    client_ended: AtomicBool,
    evidence: bool,
    /// Where several connections are made: where they wait for each other.
    gathering: Option<Arc<Gathering>>,
    /// What both ends of each further connection share.
    others: Vec<Self>,
    /// Where two programs are run: what the client's end rings when it is done.
    bell: Option<Bell>,
    /// The folder of two programs, once one of them has asked for it.
    scratch: OnceLock<Result<Scratch, String>>,
}

/// Wakes the server's end, which sleeps on descriptors.
#[derive(Debug)]
struct Bell {
    rung: AtomicBool,
    /// Readable once it has been rung.
    heard: PipeReader,
    ringer: PipeWriter,
}

impl<'a> Control<'a> {
    /// A repeat that must end within `timeout` from when it [begins](Control::begin), or as soon as `interrupted` is set.
    pub fn new(timeout: Span, interrupted: &'a AtomicBool) -> Self {
        Self {
            deadline: Arc::default(),
            timeout,
            called_off: Arc::default(),
            interrupted,
            started: OnceLock::new(),
            sent: OnceLock::new(),
            echo_over: AtomicBool::new(false),
            client_ended: AtomicBool::new(false),
            evidence: false,
            gathering: None,
            others: Vec::new(),
            bell: None,
            scratch: OnceLock::new(),
        }
    }

    /// Whether to ask the kernel, beside the figures, what it knows of the connection.
    #[must_use]
    pub fn with_evidence(mut self, evidence: bool) -> Self {
        self.evidence = evidence;
        self.others.iter_mut().for_each(|other| other.evidence = evidence);
        self
    }

    /// The same for so many connections at once, that end at the same deadline and are called off together.
    #[must_use]
    pub fn with_connections(mut self, connections: u32) -> Self {
        if connections > 1 {
            let gathering = Arc::new(Gathering::new(connections));
            let other = |_| Self {
                deadline: Arc::clone(&self.deadline),
                called_off: Arc::clone(&self.called_off),
                started: OnceLock::new(),
                sent: OnceLock::new(),
                echo_over: AtomicBool::new(false),
                client_ended: AtomicBool::new(false),
                gathering: Some(Arc::clone(&gathering)),
                others: Vec::new(),
                bell: None,
                scratch: OnceLock::new(),
                ..self
            };
            self.others = (1..connections).map(other).collect();
            self.gathering = Some(gathering);
        }
        self
    }

    /// The same for two programs, whose server is woken when the client is done.
    ///
    /// # Errors
    /// When no pipe can be made.
    pub fn with_bell(mut self) -> io::Result<Self> {
        let (heard, ringer) = io::pipe()?;
        self.bell = Some(Bell { rung: AtomicBool::new(false), heard, ringer });
        Ok(self)
    }

    /// Everything is set up: from now on the timeout runs, for all connections.
    pub fn begin(&self) {
        self.deadline.get_or_init(|| Instant::now() + self.timeout.duration());
    }

    fn is_over(&self, now: Instant) -> bool {
        self.deadline.get().is_some_and(|deadline| now >= *deadline)
    }

    /// Tells the server's end that the client's is done.
    pub(super) fn ring(&self) {
        if let Some(bell) = &self.bell
            && !bell.rung.swap(true, Ordering::Release)
        {
            // An empty pipe takes a byte, and the server looks by itself from time to time.
            let _ = (&bell.ringer).write(&[0]);
        }
    }

    /// Tells the server's end that the client's program has ended, before the client's end is done with it.
    pub(super) fn client_ends(&self) {
        self.client_ended.store(true, Ordering::Relaxed);
    }

    /// Whether it has.
    pub(super) fn client_has_ended(&self) -> bool {
        self.client_ended.load(Ordering::Relaxed)
    }

    /// Readable once the client's end is done.
    pub(super) fn bell(&self) -> Option<BorrowedFd<'_>> {
        self.bell.as_ref().map(|bell| bell.heard.as_fd())
    }

    /// Whether the run was interrupted.
    pub(super) fn is_interrupted(&self) -> bool {
        self.interrupted.load(Ordering::Relaxed)
    }

    /// The path of a folder for this repeat, which is removed after it.
    pub(super) fn scratch(&self) -> Result<String, Failure> {
        match self.scratch.get_or_init(|| Scratch::make().map_err(|error| error.to_string())) {
            Ok(scratch) => Ok(scratch.path()),
            Err(error) => Err(Failure::Program(format!("no scratch folder could be made: {error}"))),
        }
    }

    /// Where several connections wait for each other, if there are several.
    pub(super) fn gathering(&self) -> Option<&Gathering> {
        self.gathering.as_deref()
    }

    /// See [`Control::with_evidence`].
    pub const fn evidence(&self) -> bool {
        self.evidence
    }

    /// Tells the other end to give up. Whether this call was the first to say so.
    pub fn call_off(&self) -> bool {
        !self.called_off.swap(true, Ordering::Relaxed)
    }

    /// Checks whether to go on; `progress` is asked only if the deadline has passed.
    pub(super) fn check(&self, progress: impl FnOnce() -> String) -> Result<(), Failure> {
        if self.called_off.load(Ordering::Relaxed) || self.interrupted.load(Ordering::Relaxed) {
            return Err(Failure::CalledOff);
        }
        if self.is_over(Instant::now()) {
            return Err(Failure::TimedOut { after: self.timeout, progress: progress() });
        }
        Ok(())
    }

    /// Whether to go on, for an end that leaves the deadline to the other: that one knows what had not ended.
    pub(super) fn check_other(&self) -> Result<(), Failure> {
        if self.called_off.load(Ordering::Relaxed) || self.is_interrupted() { Err(Failure::CalledOff) } else { Ok(()) }
    }

    /// The same for a loop that has just looked at the clock: a workload that keeps moving has a deadline too.
    pub(super) fn check_at(&self, now: Instant, progress: impl FnOnce() -> String) -> Result<(), Failure> {
        let stop = self.called_off.load(Ordering::Relaxed) || self.interrupted.load(Ordering::Relaxed);
        if stop || self.is_over(now) { self.check(progress) } else { Ok(()) }
    }

    /// How long a call may block before [`Control::check`] is due again.
    pub(super) fn patience(&self) -> Duration {
        let left = self.deadline.get().map_or(SLICE, |deadline| deadline.saturating_duration_since(Instant::now()));
        left.clamp(Duration::from_millis(1), SLICE)
    }

    /// Marks the instant before the first send of a stream, or before the client's program is started.
    pub(super) fn start(&self) -> Instant {
        *self.started.get_or_init(Instant::now)
    }

    /// That instant, once it was marked.
    pub(super) fn started(&self) -> Option<Instant> {
        self.started.get().copied()
    }

    /// Tells the other end that all is sent, and how many chunks that were, beside a connection that may lose what is said on it.
    pub(super) fn all_sent(&self, chunks: u64) {
        self.sent.get_or_init(|| chunks);
    }

    /// How many chunks were sent, once all are.
    pub(super) fn sent(&self) -> Option<u64> {
        self.sent.get().copied()
    }

    /// Ends the stream that runs beside an echo.
    pub(super) fn end_beside(&self) {
        self.echo_over.store(true, Ordering::Relaxed);
    }

    /// Whether the echo is over that a stream runs beside. Never, for a stream on its own.
    pub(super) fn beside_is_over(&self) -> bool {
        self.echo_over.load(Ordering::Relaxed)
    }

    /// Does nothing for that long, but gives up when it must. How long that was.
    pub(super) fn pause(&self, span: Span, progress: impl Fn() -> String) -> Result<Duration, Failure> {
        if span.0 == 0 {
            return Ok(Duration::ZERO);
        }
        let begun = Instant::now();
        loop {
            let left = span.duration().saturating_sub(begun.elapsed());
            if left.is_zero() {
                return Ok(begun.elapsed());
            }
            self.check(&progress)?;
            std::thread::sleep(left.min(self.patience()));
        }
    }
}

/// What the server tells the client.
#[derive(Debug, PartialEq, Eq)]
enum Signal {
    Listening,
    Ready,
}

/// What looks at the sockets of a program, if anything does.
#[derive(Default)]
struct Watcher<'a>(RefCell<Option<Box<dyn Watch + 'a>>>);

impl fmt::Debug for Watcher<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Watcher")
    }
}

/// The server's half of a meeting.
#[derive(Debug)]
pub struct ServerSeat<'a> {
    /// What both ends share.
    pub control: &'a Control<'a>,
    watcher: Watcher<'a>,
    to_client: Sender<Signal>,
    parting: Parting,
    beside: RefCell<Option<Box<Self>>>,
    others: RefCell<Vec<Self>>,
}

/// The client's half of a meeting.
#[derive(Debug)]
pub struct ClientSeat<'a> {
    /// What both ends share.
    pub control: &'a Control<'a>,
    watcher: Watcher<'a>,
    from_server: Receiver<Signal>,
    parting: Parting,
    beside: RefCell<Option<Box<Self>>>,
    others: RefCell<Vec<Self>>,
}

/// The two seats of a repeat, one for each thread, with a second pair for a stream that runs beside, and a pair for each
/// further connection.
pub fn meet<'a>(control: &'a Control<'a>) -> (ServerSeat<'a>, ClientSeat<'a>) {
    let (server, client) = pair(control);
    let (server_beside, client_beside) = pair(control);
    server.beside.replace(Some(Box::new(server_beside)));
    client.beside.replace(Some(Box::new(client_beside)));
    let (servers, clients) = control.others.iter().map(pair).unzip();
    server.others.replace(servers);
    client.others.replace(clients);
    (server, client)
}

fn pair<'a>(control: &'a Control<'a>) -> (ServerSeat<'a>, ClientSeat<'a>) {
    let (to_client, from_server) = channel();
    let (server_done, client_done) = gates();
    let (server_read, client_read) = gates();
    let server = Parting { done: server_done, read: server_read };
    let client = Parting { done: client_done, read: client_read };
    (
        ServerSeat {
            control,
            watcher: Watcher::default(),
            to_client,
            parting: server,
            beside: RefCell::default(),
            others: RefCell::default(),
        },
        ClientSeat {
            control,
            watcher: Watcher::default(),
            from_server,
            parting: client,
            beside: RefCell::default(),
            others: RefCell::default(),
        },
    )
}

/// Neither end may close its socket, or let go of its namespace, while the other still has to send or receive: what was
/// lost on the way could not be sent again. Nor may it while the other reads what its kernel knows of the connection.
#[derive(Debug)]
struct Parting {
    /// Passed when both ends are done.
    done: Gate,
    /// Passed when both ends have read what they want to tell.
    read: Gate,
}

/// Passed when both ends are there, or when the other's thread has ended.
#[derive(Debug)]
struct Gate {
    /// Dropped when this end is there.
    here: RefCell<Option<Sender<Infallible>>>,
    /// Disconnects when the other end is there.
    other: Receiver<Infallible>,
}

fn gates() -> (Gate, Gate) {
    let (one_is_here, one_arrives) = channel();
    let (other_is_here, other_arrives) = channel();
    (
        Gate { here: RefCell::new(Some(one_is_here)), other: other_arrives },
        Gate { here: RefCell::new(Some(other_is_here)), other: one_arrives },
    )
}

impl Gate {
    fn wait(&self) {
        drop(self.here.take());
        // Nothing is ever sent: this returns when the other end has dropped its half.
        let Err(RecvError) = self.other.recv();
    }

    /// Whether the other end is there.
    fn other_is_here(&self) -> bool {
        matches!(self.other.try_recv(), Err(TryRecvError::Disconnected))
    }
}

impl<'a> ServerSeat<'a> {
    /// Has the program at this end watched.
    pub fn watch_with(&self, watch: Box<dyn Watch + 'a>) {
        self.watcher.0.replace(Some(watch));
    }

    /// What watches the program at this end.
    pub(super) fn watch(&self) -> RefMut<'_, Option<Box<dyn Watch + 'a>>> {
        self.watcher.0.borrow_mut()
    }

    /// Whether the client's program has ended, or its end has given up.
    pub(super) fn client_is_done(&self) -> bool {
        self.control.bell.as_ref().is_some_and(|bell| bell.rung.load(Ordering::Acquire))
            || self.parting.done.other_is_here()
    }

    /// The seat for a stream that runs beside, once.
    pub(super) fn beside(&self) -> Option<Box<ServerSeat<'a>>> {
        self.beside.take()
    }

    /// The seats for the further connections, once.
    pub(super) fn others(&self) -> Vec<ServerSeat<'a>> {
        self.others.take()
    }

    /// Waits until the client is done too.
    pub(super) fn part(&self) {
        self.parting.done.wait();
    }

    /// Waits until the client has read what it wants to tell too.
    pub(super) fn leave(&self) {
        self.parting.read.wait();
    }

    fn tell(&self, signal: Signal) -> Result<(), Failure> {
        self.to_client.send(signal).map_err(|_| Failure::CalledOff)
    }

    /// Tells the client that it may connect.
    pub(super) fn listening(&self) -> Result<(), Failure> {
        self.tell(Signal::Listening)
    }

    /// Tells the client that the connection is in the server's hands.
    pub(super) fn ready(&self) -> Result<(), Failure> {
        self.tell(Signal::Ready)
    }
}

impl<'a> ClientSeat<'a> {
    /// Has the program at this end watched.
    pub fn watch_with(&self, watch: Box<dyn Watch + 'a>) {
        self.watcher.0.replace(Some(watch));
    }

    /// What watches the program at this end.
    pub(super) fn watch(&self) -> RefMut<'_, Option<Box<dyn Watch + 'a>>> {
        self.watcher.0.borrow_mut()
    }

    /// The seat for a stream that runs beside, once.
    pub(super) fn beside(&self) -> Option<Box<ClientSeat<'a>>> {
        self.beside.take()
    }

    /// The seats for the further connections, once.
    pub(super) fn others(&self) -> Vec<ClientSeat<'a>> {
        self.others.take()
    }

    /// Waits until the server is done too.
    pub(super) fn part(&self) {
        self.parting.done.wait();
    }

    /// Waits until the server has read what it wants to tell too.
    pub(super) fn leave(&self) {
        self.parting.read.wait();
    }

    fn hear(&self, expected: &Signal) -> Result<(), Failure> {
        loop {
            match self.from_server.recv_timeout(self.control.patience()) {
                Ok(signal) if signal == *expected => return Ok(()),
                Ok(signal) => return Err(Failure::Protocol(format!("heard {signal:?} instead of {expected:?}"))),
                Err(RecvTimeoutError::Disconnected) => return Err(Failure::CalledOff),
                Err(RecvTimeoutError::Timeout) => self.control.check(|| "the server never got ready".to_owned())?,
            }
        }
    }

    /// Waits until the server listens.
    pub(super) fn until_listening(&self) -> Result<(), Failure> {
        self.hear(&Signal::Listening)
    }

    /// Waits until the server holds the connection.
    pub(super) fn until_ready(&self) -> Result<(), Failure> {
        self.hear(&Signal::Ready)
    }
}

#[cfg(test)]
mod tests;
