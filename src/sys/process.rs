//! Processes and threads: what they used, and how they end.

use std::ffi::CString;
use std::io;
use std::mem;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::Command;

use super::check;

/// The user whose rights this process has (`geteuid(2)`), as files' owners are seen from its user namespace.
pub fn user() -> u32 {
    // SAFETY: takes nothing, changes nothing and cannot fail.
    unsafe { libc::geteuid() }
}

/// What a thread has used since it started.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Usage {
    /// CPU time in user mode, in nanoseconds (the kernel counts microseconds).
    pub user_ns: u64,
    /// CPU time in the kernel, in nanoseconds.
    pub system_ns: u64,
    /// Times it gave up the processor by itself.
    pub voluntary_switches: u64,
    /// Times the processor was taken from it.
    pub involuntary_switches: u64,
}

impl Usage {
    /// As the kernel counts it, in microseconds.
    pub(super) fn of(usage: &libc::rusage) -> Self {
        let nanoseconds = |time: libc::timeval| {
            u64::try_from(time.tv_sec).unwrap_or(0) * 1_000_000_000 + u64::try_from(time.tv_usec).unwrap_or(0) * 1000
        };
        Self {
            user_ns: nanoseconds(usage.ru_utime),
            system_ns: nanoseconds(usage.ru_stime),
            voluntary_switches: u64::try_from(usage.ru_nvcsw).unwrap_or(0),
            involuntary_switches: u64::try_from(usage.ru_nivcsw).unwrap_or(0),
        }
    }

    #[must_use]
    /// What was used since an `earlier` reading.
    pub const fn since(self, earlier: Self) -> Self {
        Self {
            user_ns: self.user_ns.saturating_sub(earlier.user_ns),
            system_ns: self.system_ns.saturating_sub(earlier.system_ns),
            voluntary_switches: self.voluntary_switches.saturating_sub(earlier.voluntary_switches),
            involuntary_switches: self.involuntary_switches.saturating_sub(earlier.involuntary_switches),
        }
    }
}

/// What the calling thread has used (`getrusage(2)` with `RUSAGE_THREAD`).
///
/// # Errors
/// None that a Linux kernel is known to give.
pub fn thread_usage() -> io::Result<Usage> {
    // SAFETY: all-zero is a valid `rusage`.
    let mut usage: libc::rusage = unsafe { mem::zeroed() };
    // SAFETY: `usage` is valid for writes during the call.
    check(unsafe { libc::getrusage(libc::RUSAGE_THREAD, &raw mut usage) })?;
    Ok(Usage::of(&usage))
}

/// Makes a child die with the thread that starts it, also when that is killed (`PR_SET_PDEATHSIG`), and keeps the
/// terminal's Ctrl-C from it (a process group of its own), so that only this program decides when it ends.
pub fn bind_to_parent(command: &mut Command) -> &mut Command {
    command.process_group(0);
    // SAFETY: the closure runs between fork and exec and makes two system calls, both async-signal-safe.
    unsafe {
        command.pre_exec(|| {
            check(libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL))?;
            Ok(())
        })
    }
}

/// The kernel's release, version and machine (`uname(2)`): `6.12.117-cloud-amd64`, `#1 SMP …`, `x86_64`.
///
/// # Errors
/// None that a Linux kernel is known to give.
pub fn kernel_name() -> io::Result<KernelName> {
    // SAFETY: all-zero is a valid `utsname`.
    let mut name: libc::utsname = unsafe { mem::zeroed() };
    // SAFETY: `name` is valid for writes during the call.
    check(unsafe { libc::uname(&raw mut name) })?;
    let text = |field: &[libc::c_char]| -> String {
        let bytes: Vec<u8> = field.iter().take_while(|&&c| c != 0).map(|&c| c.cast_unsigned()).collect();
        String::from_utf8_lossy(&bytes).into_owned()
    };
    Ok(KernelName { release: text(&name.release), version: text(&name.version), machine: text(&name.machine) })
}

/// What `uname(2)` says of the kernel.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KernelName {
    /// `uname -r`.
    pub release: String,
    /// `uname -v`.
    pub version: String,
    /// `uname -m`.
    pub machine: String,
}

/// Bytes that this user may still write in the file system of a folder (`statvfs(3)`).
///
/// # Errors
/// When the folder cannot be looked at.
pub fn free_space(folder: &Path) -> io::Result<u64> {
    let path = CString::new(folder.as_os_str().as_bytes())?;
    // SAFETY: all-zero is a valid `statvfs`.
    let mut facts: libc::statvfs = unsafe { mem::zeroed() };
    // SAFETY: the path ends in NUL and `facts` is valid for writes during the call.
    check(unsafe { libc::statvfs(path.as_ptr(), &raw mut facts) })?;
    Ok(facts.f_bavail.saturating_mul(facts.f_frsize))
}

/// The processors that the calling thread may run on (`sched_getaffinity(2)`), in order.
///
/// # Errors
/// `EINVAL` on a machine with more than 1024 processors.
pub fn allowed_processors() -> io::Result<Vec<usize>> {
    // SAFETY: all-zero is an empty `cpu_set_t`.
    let mut set: libc::cpu_set_t = unsafe { mem::zeroed() };
    // SAFETY: `set` is valid for writes of its size during the call.
    check(unsafe { libc::sched_getaffinity(0, size_of::<libc::cpu_set_t>(), &raw mut set) })?;
    let many = usize::try_from(libc::CPU_SETSIZE).unwrap_or(0);
    // SAFETY: the numbers stay below CPU_SETSIZE.
    Ok((0..many).filter(|&cpu| unsafe { libc::CPU_ISSET(cpu, &set) }).collect())
}

/// The processor that the calling thread runs on just now (`sched_getcpu(3)`), where the kernel tells.
pub fn current_processor() -> Option<usize> {
    // SAFETY: it takes nothing and returns a number.
    usize::try_from(unsafe { libc::sched_getcpu() }).ok()
}

/// Keeps the calling thread on one processor (`sched_setaffinity(2)`).
///
/// # Errors
/// `EINVAL` for a processor that does not exist or that this process may not use.
pub fn stay_on_processor(cpu: usize) -> io::Result<()> {
    let set = only(cpu)?;
    // SAFETY: `set` is valid for reads of its size during the call; 0 is the calling thread.
    check(unsafe { libc::sched_setaffinity(0, size_of::<libc::cpu_set_t>(), &raw const set) }).map(drop)
}

/// A set of one processor.
fn only(cpu: usize) -> io::Result<libc::cpu_set_t> {
    let many = usize::try_from(libc::CPU_SETSIZE).unwrap_or(0);
    if cpu >= many {
        return Err(io::ErrorKind::InvalidInput.into());
    }
    // SAFETY: all-zero is an empty `cpu_set_t`.
    let mut set: libc::cpu_set_t = unsafe { mem::zeroed() };
    // SAFETY: the number is below CPU_SETSIZE.
    unsafe { libc::CPU_SET(cpu, &mut set) };
    Ok(set)
}

/// How a thread is scheduled (`sched(7)`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SchedulingPolicy(libc::c_int);

/// Time shared.
pub const SCHED_OTHER: SchedulingPolicy = SchedulingPolicy(libc::SCHED_OTHER);
/// Time shared, and taken for a thread that computes.
pub const SCHED_BATCH: SchedulingPolicy = SchedulingPolicy(libc::SCHED_BATCH);
/// Runs until it waits.
pub const SCHED_FIFO: SchedulingPolicy = SchedulingPolicy(libc::SCHED_FIFO);
/// The same with turns.
pub const SCHED_RR: SchedulingPolicy = SchedulingPolicy(libc::SCHED_RR);

/// Gives the calling thread a scheduling policy, at the lowest priority that the policy has (`sched_setscheduler(2)`).
///
/// # Errors
/// `EPERM` for a real-time policy without `CAP_SYS_NICE` or a limit on real-time priorities above zero.
pub fn set_policy(policy: SchedulingPolicy) -> io::Result<()> {
    // SAFETY: it takes a number and returns one.
    let lowest = unsafe { libc::sched_get_priority_min(policy.0) };
    let parameter = libc::sched_param { sched_priority: check(lowest)? };
    // SAFETY: `parameter` is valid for reads during the call; 0 is the calling thread.
    check(unsafe { libc::sched_setscheduler(0, policy.0, &raw const parameter) }).map(drop)
}

/// The scheduling policy of the calling thread (`sched_getscheduler(2)`).
///
/// # Errors
/// None that a Linux kernel is known to give.
pub fn policy() -> io::Result<SchedulingPolicy> {
    // SAFETY: 0 is the calling thread; no memory is touched.
    check(unsafe { libc::sched_getscheduler(0) }).map(SchedulingPolicy)
}

/// Keeps every thread that a process has now, and all that these start later, on one processor (`sched_setaffinity(2)`).
///
/// # Errors
/// `EINVAL` for a processor that this process may not use, and what reading `/proc` says.
pub fn keep_on_processor(process: u32, cpu: usize) -> io::Result<()> {
    let set = only(cpu)?;
    for thread in threads(process)? {
        // SAFETY: `set` is valid for reads of its size during the call.
        or_gone(check(unsafe { libc::sched_setaffinity(thread, size_of::<libc::cpu_set_t>(), &raw const set) }))?;
    }
    Ok(())
}

/// A thread may end between the look at which there are and a call about it: then there is nothing to be done.
fn or_gone(result: io::Result<libc::c_int>) -> io::Result<()> {
    match result {
        Err(error) if error.raw_os_error() == Some(libc::ESRCH) => Ok(()),
        other => other.map(drop),
    }
}

/// Gives the threads of a process, all but one, precedence over all that is not real-time: they run the moment they can
/// (`SCHED_FIFO`, `sched(7)`). So do the threads that they start later.
///
/// # Errors
/// `EPERM` without `CAP_SYS_NICE` or a limit on real-time priorities above zero, and what reading `/proc` says.
pub fn give_precedence(process: u32, but: u32) -> io::Result<()> {
    let lowest = libc::sched_param { sched_priority: 1 };
    for thread in threads(process)? {
        if u32::try_from(thread).is_ok_and(|thread| thread == but) {
            continue;
        }
        // SAFETY: `lowest` is valid for reads during the call.
        or_gone(check(unsafe { libc::sched_setscheduler(thread, libc::SCHED_FIFO, &raw const lowest) }))?;
    }
    Ok(())
}

/// The threads that a process has now.
fn threads(process: u32) -> io::Result<Vec<libc::pid_t>> {
    let folder = std::fs::read_dir(format!("/proc/{process}/task"))?;
    let number = |entry: io::Result<std::fs::DirEntry>| {
        entry.map(|entry| entry.file_name().to_str().and_then(|name| name.parse().ok())).transpose()
    };
    folder.filter_map(number).collect()
}

#[cfg(test)]
mod tests {
    use super::{allowed_processors, keep_on_processor, kernel_name, thread_usage};

    #[test]
    fn threads_that_end_meanwhile_are_passed_over() {
        let cpu = allowed_processors().expect("told")[0];
        let done = std::sync::atomic::AtomicBool::new(false);
        std::thread::scope(|scope| {
            for _ in 0..2 {
                scope.spawn(|| {
                    while !done.load(std::sync::atomic::Ordering::Relaxed) {
                        std::thread::spawn(|| {}).join().expect("ended");
                    }
                });
            }
            let results: Vec<_> = (0..2000).map(|_| keep_on_processor(std::process::id(), cpu)).collect();
            done.store(true, std::sync::atomic::Ordering::Relaxed);
            let failed: Vec<_> = results.into_iter().filter_map(Result::err).collect();
            assert!(failed.is_empty(), "{} of 2000, such as {:?}", failed.len(), failed[0]);
        });
    }

    #[test]
    fn usage_of_this_thread_grows() {
        let before = thread_usage().expect("usage");
        let mut sum = 0u64;
        while thread_usage().expect("usage").since(before).user_ns
            + thread_usage().expect("usage").since(before).system_ns
            < 5_000_000
        {
            sum = std::hint::black_box(sum.wrapping_add(1));
        }
        let other = std::thread::spawn(|| thread_usage().expect("usage")).join().expect("joined");
        assert!(other.user_ns + other.system_ns < 5_000_000, "only the calling thread is counted");
    }

    #[test]
    fn the_kernel_has_a_name() {
        let release = std::fs::read_to_string("/proc/sys/kernel/osrelease").expect("proc is mounted");
        assert_eq!(kernel_name().expect("uname").release, release.trim());
    }
}
