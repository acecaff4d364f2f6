//! The agent: this program as PID 1 of a guest. It mounts what it needs, loads the modules, and runs the native backend.

#![cfg_attr(
    not(test),
    expect(clippy::print_stderr, reason = "standard error is the guest's console, which does not close")
)]

use std::fmt::Display;
use std::fs::{self, File, OpenOptions};
use std::io::Write;
use std::panic;
use std::path::Path;
use std::sync::Mutex;
use std::sync::atomic::AtomicBool;
use std::thread;
use std::time::Duration;

use crate::backend::native::{self, Native, Reach};
use crate::sys::{clock, guest};
use crate::units::Span;

use super::protocol::{
    AGENT_FREEZE, AGENT_PORT, AGENT_VARIABLE, Assignment, FW_CFG_NAME, Fault, FaultKind, Hello, MODULES, Word,
};

/// How long the agent lets what the start-up left behind come to rest: namespaces being torn down, timers of interfaces.
const SETTLE: Duration = Duration::from_secs(2);
/// How long it sleeps after starting the watchdog, which stops the machine within that time, when all is idle.
const SLEEP: Duration = Duration::from_secs(guest::WATCHDOG_SECONDS + 1);
/// How long after that its first repeat begins: longer than reading the assignment and making the namespaces takes. Idle, so
/// it costs next to no time outside.
const START_AFTER: Duration = Duration::from_millis(500);

/// Whether this process is PID 1 of one of our guests.
pub fn is_agent() -> bool {
    std::process::id() == 1 && std::env::var_os(AGENT_VARIABLE).is_some()
}

/// Works through the assignment and ends the machine.
pub fn run() -> ! {
    mount_all();
    match Link::open() {
        Ok(link) => {
            let link: &'static Link = Box::leak(Box::new(link));
            panic::set_hook(Box::new(move |info| {
                eprintln!("sweep agent: {info}");
                link.say(&Word::Crashed { message: info.to_string() });
                guest::restart_machine();
            }));
            if let Err(message) = work(link) {
                link.say(&Word::Crashed { message });
            }
            link.drain();
        }
        Err(error) => eprintln!("sweep agent: cannot open {AGENT_PORT}: {error}"),
    }
    let error = guest::restart_machine();
    eprintln!("sweep agent: the machine does not go down: {error}");
    loop {
        thread::park();
    }
}

/// Folders that can be written.
const WRITABLE: [&str; 3] = ["/tmp", "/run", "/var/tmp"];
/// Links that programs expect beside the devices.
const DEVICE_LINKS: [(&str, &str); 4] = [
    ("/proc/self/fd", "/dev/fd"),
    ("/proc/self/fd/0", "/dev/stdin"),
    ("/proc/self/fd/1", "/dev/stdout"),
    ("/proc/self/fd/2", "/dev/stderr"),
];

/// Mounts what the agent and the user's programs need. What came along in the initramfs cannot be written: in a guest that
/// works through several jobs each finds it as the first did.
fn mount_all() {
    // Without these there is no way to say what is wrong, so an error shows in what fails next.
    let tell = |what: &str, result: std::io::Result<()>| {
        if let Err(error) = result
            && error.kind() != std::io::ErrorKind::ResourceBusy
        {
            eprintln!("sweep agent: cannot {what}: {error}");
        }
    };
    for (kind, target) in [("proc", "/proc"), ("sysfs", "/sys"), ("devtmpfs", "/dev")] {
        tell(&format!("mount {target}"), guest::mount(kind, target));
    }
    for (target, link) in DEVICE_LINKS {
        tell(&format!("make {link}"), std::os::unix::fs::symlink(target, link));
    }
    // POSIX's shared memory (shm_overview(7)).
    tell("mount /dev/shm", fs::create_dir("/dev/shm").and_then(|()| guest::mount("tmpfs", "/dev/shm")));
    for folder in WRITABLE {
        tell(&format!("keep {folder} writable"), guest::bind_to_itself(folder));
    }
    tell("make the root read-only", guest::make_read_only("/"));
}

/// The serial port.
struct Link(Mutex<File>);

impl Link {
    fn open() -> std::io::Result<Self> {
        let port = OpenOptions::new().read(true).write(true).open(AGENT_PORT)?;
        guest::make_raw(&port)?;
        Ok(Self(Mutex::new(port)))
    }

    fn say(&self, word: &Word) {
        let mut line = serde_json::to_vec(word).unwrap_or_default();
        line.push(b'\n');
        self.write(&line);
    }

    fn write(&self, bytes: &[u8]) {
        // Nobody is left to be told if even this fails; the other side notices the silence.
        let mut port = self.0.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        if let Err(error) = port.write_all(bytes) {
            eprintln!("sweep agent: cannot write to {AGENT_PORT}: {error}");
        }
    }

    fn drain(&self) {
        let port = self.0.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        if let Err(error) = guest::drain(&port) {
            eprintln!("sweep agent: cannot drain {AGENT_PORT}: {error}");
        }
    }
}

/// Puts what failed before the error.
fn failed<E: Display>(what: &str) -> impl FnOnce(E) -> String {
    let what = what.to_owned();
    move |error| format!("{what}: {error}")
}

fn work(link: &Link) -> Result<(), String> {
    let freeze = std::env::var_os(AGENT_VARIABLE).is_some_and(|value| value == AGENT_FREEZE);
    let modules_failed = load_modules(Path::new(MODULES));
    allow_congestion_controls();
    let native = Native::new("inside the guest").map_err(failed("the agent cannot measure"))?;
    let hello = |uptime: Span| {
        let machine = native.machine();
        Word::Hello(Hello {
            release: machine.release.clone(),
            version: machine.version.clone(),
            limits: machine.limits.clone(),
            sysctls: machine.sysctls.clone(),
            modules_failed: modules_failed.clone(),
            uptime_ns: uptime.0,
        })
    };
    let mut start = None;
    if freeze {
        link.say(&hello(clock::monotonic()));
        link.drain();
        thread::sleep(SETTLE);
        let watchdog = failed("the machine cannot be stopped");
        let wake = Span(clock::monotonic().0 + Span::from(SLEEP).0);
        guest::port::start_watchdog().map_err(watchdog)?;
        clock::sleep_until(wake);
        guest::port::stop_watchdog().map_err(failed("the watchdog cannot be stopped"))?;
        start = Some(Span(wake.0 + Span::from(START_AFTER).0));
    }
    let assignment = guest::port::read_fw_cfg(FW_CFG_NAME)
        .map_err(failed("the assignment cannot be read"))?
        .ok_or_else(|| format!("there is no {FW_CFG_NAME} in the firmware configuration"))?;
    let assignment: Assignment = serde_json::from_slice(&assignment).map_err(failed("the assignment is damaged"))?;
    if !freeze {
        link.say(&hello(clock::monotonic()));
    }
    let interrupted = AtomicBool::new(false);
    for (index, job) in assignment.jobs.iter().enumerate() {
        if !freeze {
            link.say(&Word::Started { job: index });
        }
        if let Some(Fault { job, kind }) = &assignment.fault
            && *job == index
        {
            commit(*kind, link);
        }
        let measurement = native::measure(job, &native.machine().limits, Reach::Machine, &interrupted, || {
            if let Some(start) = start {
                clock::sleep_until(Span(start.0 + job.phase.0));
            }
        });
        link.say(&Word::ended(index, measurement));
    }
    link.say(&Word::Done);
    Ok(())
}

/// Lets namespaces use every congestion control that the kernel has: by itself it allows them those that are no worse to others
/// than Reno (`tcp_set_default_congestion_control` in `net/ipv4/tcp_cong.c`).
fn allow_congestion_controls() {
    const FOLDER: &str = "/proc/sys/net/ipv4";
    // A kernel that refuses keeps its own list; a cell that wants another one then says so.
    let _ = fs::read_to_string(format!("{FOLDER}/tcp_available_congestion_control"))
        .and_then(|available| fs::write(format!("{FOLDER}/tcp_allowed_congestion_control"), available));
}

/// Loads the modules in the order of their list. Returns those that could not be loaded, and why: whether they are missed
/// shows when a cell needs them.
fn load_modules(folder: &Path) -> Vec<(String, String)> {
    let list = |file: &str| fs::read_to_string(folder.join(file)).unwrap_or_default();
    let (order, optional) = (list("order"), list("optional"));
    order
        .lines()
        .filter_map(|name| {
            let error = guest::load_module(&folder.join(name)).err()?;
            Some((name.to_owned(), error.to_string()))
        })
        // A variant for hardware that is not there.
        .filter(|(name, _)| !optional.lines().any(|optional| optional == name))
        .collect()
}

/// Commits a fault.
fn commit(kind: FaultKind, link: &Link) {
    match kind {
        FaultKind::Panic => {
            // Linux's own way to be brought down (Documentation/admin-guide/sysrq.rst).
            let down = fs::write("/proc/sys/kernel/sysrq", "1").and_then(|()| fs::write("/proc/sysrq-trigger", "c"));
            link.say(&Word::Crashed { message: format!("the kernel did not panic: {down:?}") });
        }
        FaultKind::Hang => loop {
            thread::park();
        },
        FaultKind::Spin => loop {
            std::hint::spin_loop();
        },
        FaultKind::Crash => panic!("a fault was asked for"),
        FaultKind::Exit => {
            guest::restart_machine();
        }
        FaultKind::Garble => link.write(b"{\"say\": \"nonsense\n"),
    }
}
