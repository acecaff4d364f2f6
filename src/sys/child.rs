//! Programs that are started for one repeat, in a PID namespace that ends them all: whatever they fork, wherever that hides, it dies with
//! the namespace's first process, and that dies with this program (`pid_namespaces(7)`).

use std::ffi::CStr;
use std::fs;
use std::io::{self, PipeReader, PipeWriter, Read};
use std::mem;
use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd};
use std::os::unix::process::CommandExt;
use std::process::{ChildStderr, ChildStdout, Command, Stdio};
use std::time::Duration;

use crate::units::Span;

use super::check;
use super::process::Usage;

/// A signal to end a program with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Signal(libc::c_int);

impl Signal {
    /// `SIGKILL`, which nothing ignores.
    pub const KILL: Self = Self(libc::SIGKILL);

    /// The signal of that name.
    pub fn named(name: &str) -> Option<Self> {
        Some(Self(match name {
            "SIGTERM" => libc::SIGTERM,
            "SIGINT" => libc::SIGINT,
            "SIGHUP" => libc::SIGHUP,
            "SIGQUIT" => libc::SIGQUIT,
            "SIGUSR1" => libc::SIGUSR1,
            "SIGUSR2" => libc::SIGUSR2,
            "SIGKILL" => libc::SIGKILL,
            _ => return None,
        }))
    }

    /// The signal's number.
    pub const fn number(self) -> i32 {
        self.0
    }
}

/// A PID namespace for the programs that the calling thread starts. Dropping it kills whatever is left in it.
///
/// Its first process only waits: it takes in orphans and dies when this program does, be it by `SIGKILL`.
#[derive(Debug)]
pub struct Nest {
    /// The first process, by the number that it has out here.
    first: libc::pid_t,
    /// Kept open for as long as the namespace is to be.
    _lifeline: PipeWriter,
}

impl Nest {
    /// Makes a namespace for the children of the calling thread (`unshare(2)` with `CLONE_NEWPID`). The thread cannot start threads
    /// after that, and cannot do this twice.
    ///
    /// # Errors
    /// `EPERM` without `CAP_SYS_ADMIN`, `ENOSPC` beyond `user.max_pid_namespaces`, `EINVAL` in a kernel without them.
    pub fn enter() -> io::Result<Self> {
        let (waits, lifeline) = io::pipe()?;
        // SAFETY: only children that are made after it are concerned.
        check(unsafe { libc::unshare(libc::CLONE_NEWPID) })?;
        // SAFETY: the child makes system calls only, all of them async-signal-safe, and never returns.
        let first = check(unsafe { libc::fork() })?;
        if first == 0 {
            be_first(&waits, &lifeline);
        }
        Ok(Self { first, _lifeline: lifeline })
    }

    /// Names of the processes in the namespace but its first one, as far as /proc tells: those that have not ended, and are not of a process
    /// group that was told to end.
    pub fn others(&self, told: Option<u32>) -> Vec<String> {
        let Ok(own) = fs::read_link(format!("/proc/{}/ns/pid", self.first)) else { return Vec::new() };
        let Ok(all) = fs::read_dir("/proc") else { return Vec::new() };
        let others = all.flatten().filter_map(|entry| {
            let process: libc::pid_t = entry.file_name().to_str()?.parse().ok()?;
            if process == self.first || fs::read_link(entry.path().join("ns/pid")).ok()? != own {
                return None;
            }
            // `pid (name) state parent group …`, see proc(5).
            let stat = fs::read_to_string(entry.path().join("stat")).ok()?;
            let (name, rest) = stat.split_once('(')?.1.rsplit_once(") ")?;
            let mut fields = rest.split(' ');
            let (state, group) = (fields.next()?, fields.nth(1)?.parse().ok());
            let gone = matches!(state, "Z" | "X") || (told.is_some() && group == told);
            (!gone).then(|| name.to_owned())
        });
        let mut others: Vec<String> = others.collect();
        others.sort_unstable();
        others
    }
}

impl Drop for Nest {
    fn drop(&mut self) {
        // SAFETY: the process is our child and not yet waited for, so that the number is still its own.
        unsafe { libc::kill(self.first, libc::SIGKILL) };
        // The kernel lets it end when all others have.
        while reap(self.first, false).is_err_and(|error| error.kind() == io::ErrorKind::Interrupted) {}
    }
}

/// What the first process of a namespace does: nothing, until the other end of the pipe is gone.
fn be_first(waits: &PipeReader, lifeline: &PipeWriter) -> ! {
    // SAFETY: all of these are async-signal-safe, and this process has nothing but its copy of the descriptors to lose.
    unsafe {
        libc::setpgid(0, 0);
        libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL);
        // Orphans that end are gone at once.
        libc::signal(libc::SIGCHLD, libc::SIG_IGN);
        libc::close(lifeline.as_raw_fd());
        libc::dup2(waits.as_raw_fd(), 0);
        // Other repeats' pipes are not to be held open: whoever starts a program just now reads one until nobody can write to it any more.
        // `close_range(2)` is of Linux 5.9.
        if libc::syscall(libc::SYS_close_range, 1u32, u32::MAX, 0u32) != 0 {
            let mut most = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
            libc::getrlimit(libc::RLIMIT_NOFILE, &raw mut most);
            for descriptor in 1..libc::c_int::try_from(most.rlim_cur).unwrap_or(libc::c_int::MAX).min(1 << 20) {
                libc::close(descriptor);
            }
        }
        let mut byte = 0u8;
        loop {
            let read = libc::read(0, (&raw mut byte).cast(), 1);
            if read == 0 || (read < 0 && *libc::__errno_location() != libc::EINTR) {
                libc::_exit(0);
            }
        }
    }
}

/// A program that was started.
#[derive(Debug)]
pub struct Program {
    process: libc::pid_t,
    /// Readable when it has ended.
    ended: OwnedFd,
    /// When it was about to be executed, by [`super::clock::monotonic`].
    pub begun: Span,
    /// What it writes to standard output.
    pub stdout: ChildStdout,
    /// What it writes to standard error.
    pub stderr: ChildStderr,
    reaped: bool,
}

/// How a program ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ended {
    /// Its exit code, if it ended with one.
    pub code: Option<i32>,
    /// The signal that ended it, if one did.
    pub signal: Option<i32>,
    /// What it and the descendants that it waited for have used.
    pub usage: Usage,
}

impl Program {
    /// Starts a command in the [`Nest`] of the calling thread: with a process group of its own, no standard input, a mount namespace in
    /// which /proc and /sys are those of its own namespaces, and to be killed when the calling thread ends.
    ///
    /// # Errors
    /// What `execve(2)` says, and `pidfd_open(2)`, which is of Linux 5.3.
    pub fn start(command: &mut Command, _nest: &Nest) -> io::Result<Self> {
        let (mut clock, told) = io::pipe()?;
        let told_fd = told.as_raw_fd();
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).process_group(0);
        // SAFETY: the closure runs between fork and exec and makes system calls only, all of them async-signal-safe.
        unsafe {
            command.pre_exec(move || {
                check(libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL))?;
                own_mounts();
                let now = super::clock::monotonic().0.to_ne_bytes();
                libc::write(told_fd, now.as_ptr().cast(), now.len());
                Ok(())
            });
        }
        let mut child = command.spawn()?;
        drop(told);
        let process = libc::pid_t::try_from(child.id()).map_err(io::Error::other)?;
        let (Some(stdout), Some(stderr)) = (child.stdout.take(), child.stderr.take()) else {
            return Err(io::Error::other("its output is not piped"));
        };
        let guard = Unwatched(process);
        // SAFETY: it takes two numbers and returns a descriptor of our own or -1.
        let told = unsafe { libc::syscall(libc::SYS_pidfd_open, process, 0) };
        let ended = check(libc::c_int::try_from(told).map_err(io::Error::other)?)?;
        // SAFETY: the descriptor was just made and nothing else has it.
        let ended = unsafe { OwnedFd::from_raw_fd(ended) };
        for output in [stdout.as_raw_fd(), stderr.as_raw_fd()] {
            // SAFETY: the descriptor is open, and no memory is touched.
            check(unsafe { libc::fcntl(output, libc::F_SETFL, libc::O_NONBLOCK) })?;
        }
        let mut begun = [0; 8];
        clock.read_exact(&mut begun)?;
        mem::forget(guard);
        Ok(Self { process, ended, begun: Span(u64::from_ne_bytes(begun)), stdout, stderr, reaped: false })
    }

    /// The process, by the number that it has out here.
    pub fn id(&self) -> u32 {
        self.process.unsigned_abs()
    }

    /// Readable when the program has ended.
    pub fn ended(&self) -> BorrowedFd<'_> {
        use std::os::fd::AsFd;
        self.ended.as_fd()
    }

    /// How it ended, if it has. Only the first call that says so does.
    ///
    /// # Errors
    /// `ECHILD` after it was told.
    pub fn reap(&mut self) -> io::Result<Option<Ended>> {
        let ended = reap(self.process, true)?;
        self.reaped |= ended.is_some();
        Ok(ended)
    }

    /// Sends a signal to its process group. One that has ended gets none.
    pub fn signal(&self, signal: Signal) {
        if !self.reaped {
            // SAFETY: the process is not yet waited for, so that the number is still its group's.
            unsafe { libc::kill(-self.process, signal.0) };
        }
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        if !self.reaped {
            drop(Unwatched(self.process));
        }
    }
}

/// A child that is to be killed and waited for.
struct Unwatched(libc::pid_t);

impl Drop for Unwatched {
    fn drop(&mut self) {
        // SAFETY: the child is not yet waited for, so that the number is still its own.
        unsafe { libc::kill(-self.0, libc::SIGKILL) };
        while reap(self.0, false).is_err_and(|error| error.kind() == io::ErrorKind::Interrupted) {}
    }
}

/// Gives the calling process mounts of its own, with a /proc and a /sys that show its own namespaces. Where that is refused, as in some
/// containers, it keeps those that there are.
///
/// Makes system calls only.
fn own_mounts() {
    const KEPT: libc::c_ulong = libc::MS_NOSUID | libc::MS_NODEV | libc::MS_NOEXEC;
    let mount = |kind: Option<&CStr>, target: &CStr, flags: libc::c_ulong| {
        let kind = kind.map_or(std::ptr::null(), CStr::as_ptr);
        // SAFETY: all texts end in NUL and live for the call; no data is passed.
        unsafe { libc::mount(c"none".as_ptr(), target.as_ptr(), kind, flags, std::ptr::null()) == 0 }
    };
    // SAFETY: only the calling process is concerned.
    if unsafe { libc::unshare(libc::CLONE_NEWNS) } == 0 && mount(None, c"/", libc::MS_REC | libc::MS_PRIVATE) {
        mount(Some(c"proc"), c"/proc", KEPT);
        mount(Some(c"sysfs"), c"/sys", KEPT);
    }
}

/// How a child ended (`wait4(2)`); with `at_once`, `None` if it has not.
fn reap(process: libc::pid_t, at_once: bool) -> io::Result<Option<Ended>> {
    let mut status = 0;
    // SAFETY: all-zero is a valid `rusage`.
    let mut usage: libc::rusage = unsafe { mem::zeroed() };
    let options = if at_once { libc::WNOHANG } else { 0 };
    // SAFETY: both pointers are valid for writes during the call.
    if check(unsafe { libc::wait4(process, &raw mut status, options, &raw mut usage) })? == 0 {
        return Ok(None);
    }
    Ok(Some(Ended {
        code: libc::WIFEXITED(status).then(|| libc::WEXITSTATUS(status)),
        signal: libc::WIFSIGNALED(status).then(|| libc::WTERMSIG(status)),
        usage: Usage::of(&usage),
    }))
}

/// Waits until one of some descriptors can be read or has no writer left, or the time is over (`ppoll(2)`). Which can. An interrupting
/// signal is not an error: none can then.
///
/// # Errors
/// None that a Linux kernel is known to give for descriptors that are open.
pub fn wait_readable<const N: usize>(
    descriptors: [Option<BorrowedFd<'_>>; N],
    patience: Duration,
) -> io::Result<[bool; N]> {
    // The kernel passes over a negative number.
    let mut entries =
        descriptors.map(|fd| libc::pollfd { fd: fd.map_or(-1, |fd| fd.as_raw_fd()), events: libc::POLLIN, revents: 0 });
    let timeout = libc::timespec {
        tv_sec: libc::time_t::try_from(patience.as_secs()).unwrap_or(libc::time_t::MAX),
        tv_nsec: patience.subsec_nanos().into(),
    };
    let many = N as libc::nfds_t;
    // SAFETY: so many valid `pollfd` and a valid timeout; a null signal mask leaves the mask as it is.
    match check(unsafe { libc::ppoll(entries.as_mut_ptr(), many, &raw const timeout, std::ptr::null()) }) {
        Ok(_) => Ok(entries.map(|entry| entry.revents != 0)),
        Err(error) if error.kind() == io::ErrorKind::Interrupted => Ok([false; N]),
        Err(error) => Err(error),
    }
}
