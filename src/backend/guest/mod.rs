//! A QEMU guest with a kernel of its own: found, packed with this program as its PID 1, booted, and talked to. Inside it the
//! `native` backend measures; here the guest is only a machine.
//!
//! In real time a guest boots once and works through all its jobs. In virtual time a guest boots once, is frozen, and every
//! repeat starts from the frozen machine.

pub mod agent;
mod failure;
mod frozen;
pub mod initramfs;
pub mod kernel;
mod kvm;
mod protocol;
mod qemu;
mod qmp;
mod real;
mod scratch;
mod session;
mod virtual_time;

pub use frozen::{FrozenEntry, FrozenStore, MAX_STORE_BYTES};
pub use kvm::{KvmVerdict, probe as probe_kvm};
pub use qemu::{Accelerator, Qemu};

use std::ops::ControlFlow;
use std::path::PathBuf;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use tempfile::NamedTempFile;

use crate::settings::Clock;

use self::initramfs::{Initramfs, Payload};
use self::kernel::{Kernel, KernelStore};
use self::protocol::{Fault, Hello};

use super::{Backend, BackendError, Event, Job, Machine, Parallel};

/// How long a guest may take from its start to the agent's first word. An emulated boot takes 3 to 10 s on an idle host.
const BOOT_DEADLINE: Duration = Duration::from_mins(3);

/// Modules that every guest gets.
const MODULES: [&str; 2] = ["veth", "sctp"];
/// Modules that a guest gets where its kernel has them. A cell that needs one that is not there is skipped, and says so.
const OPTIONAL_MODULES: [&str; 15] = [
    "sch_netem",
    "sch_tbf",
    "sch_fq",
    "sch_fq_codel",
    "sch_codel",
    "sch_sfq",
    "sch_pie",
    "sch_fq_pie",
    "sch_cake",
    "tcp_bbr",
    "tcp_dctcp",
    "tcp_htcp",
    "tcp_vegas",
    "tcp_westwood",
    "tcp_yeah",
];
/// Modules that tell of a program's sockets, for guests that run programs.
const PROGRAM_MODULES: [&str; 4] = ["tcp_diag", "mptcp_diag", "sctp_diag", "udp_diag"];

/// Environment variable with a fault for the agent to commit, for tests: `panic@3`.
const FAULT_VARIABLE: &str = "SWEEP_TEST_FAULT";

/// What a guest is made of.
#[derive(Debug)]
struct Bootable {
    /// As named in sweeps, exact.
    image: String,
    kernel: PathBuf,
    kernel_sha256: String,
    package_version: Option<String>,
    initrd: Vec<u8>,
    memory_mib: u32,
    initrd_digest: String,
    /// Wanted modules that the kernel has neither built in nor as a file.
    absent: Vec<String>,
}

/// How guests are to be run.
#[derive(Clone, Debug)]
pub struct GuestOptions {
    /// How the processor is run, and by which clock.
    pub accelerator: Accelerator,
    /// Why this machine and no other, in a sentence.
    pub why: String,
    /// The program that becomes the agent.
    pub program: PathBuf,
    /// Programs and files of the user's that come along.
    pub payload: Payload,
    /// Where console logs go.
    pub consoles: PathBuf,
    /// Guests at once.
    pub parallel: Parallel,
}

/// The backend.
#[derive(Debug)]
pub struct Guest {
    qemu: Qemu,
    bootable: Bootable,
    options: GuestOptions,
    frozen: FrozenStore,
    fault: Option<Fault>,
}

impl Guest {
    /// Packs a guest: its kernel and an initramfs with the agent and the modules.
    ///
    /// # Errors
    /// When the initramfs cannot be made, with what is missing.
    pub fn new(qemu: Qemu, kernel: &Kernel, store: &KernelStore, options: GuestOptions) -> Result<Self, BackendError> {
        let unavailable = |error: &dyn std::fmt::Display| {
            BackendError::Unavailable(format!("kernel {} cannot be packed into a guest: {error}", kernel.image))
        };
        let of_programs: &[&str] = if options.payload.is_empty() { &[] } else { &PROGRAM_MODULES };
        let wanted = [&MODULES[..], &OPTIONAL_MODULES, of_programs].concat();
        let closure = initramfs::closure(&kernel.modules, &wanted).map_err(|error| unavailable(&error))?;
        let mut absent = closure.absent.clone();
        absent.retain(|name| MODULES.contains(&name.as_str()));
        let initrd = Initramfs { program: options.program.clone(), modules: closure, payload: options.payload.clone() }
            .build()
            .map_err(|error| unavailable(&error))?;
        // An uncompressed image boots a second sooner under emulation; where there is none the packed one does.
        let image = match options.accelerator {
            Accelerator::Kvm => kernel.vmlinuz.clone(),
            Accelerator::Tcg | Accelerator::TcgVirtual => {
                kernel.vmlinux(store).unwrap_or_else(|_| kernel.vmlinuz.clone())
            }
        };
        let bootable = Bootable {
            image: kernel.image.to_string(),
            kernel: image,
            kernel_sha256: kernel.sha256.clone(),
            package_version: kernel.package_version.clone(),
            initrd_digest: initramfs::digest(&initrd),
            memory_mib: qemu::memory_mib(initrd.len() as u64),
            initrd,
            absent,
        };
        let frozen = FrozenStore::below(store.path().parent().unwrap_or_else(|| store.path()));
        scratch::Scratch::sweep_up(&std::env::temp_dir(), qemu::FOLDERS);
        let fault = std::env::var(FAULT_VARIABLE).ok().and_then(|text| Fault::parse(&text));
        Ok(Self { qemu, bootable, options, frozen, fault })
    }

    /// The key of the frozen machine that virtual cells start from: a hash of kernel, modules, program, QEMU and flags.
    /// `None` in real time.
    pub fn machine_key(&self) -> Option<String> {
        (self.options.accelerator == Accelerator::TcgVirtual).then(|| FrozenStore::key(&self.bootable, &self.qemu))
    }

    /// What the agent told, as the records show it.
    fn machine(&self, hello: &Hello) -> Machine {
        let clock = match self.options.accelerator {
            Accelerator::Kvm | Accelerator::Tcg => Clock::Real,
            Accelerator::TcgVirtual => Clock::Virtual,
        };
        let warning = self.options.parallel.warning().filter(|_| clock == Clock::Real);
        Machine {
            name: self.options.accelerator.machine_name().to_owned(),
            image: self.bootable.image.clone(),
            release: hello.release.clone(),
            version: hello.version.clone(),
            package_version: self.bootable.package_version.clone(),
            clock,
            why: warning.map_or_else(|| self.options.why.clone(), |warning| format!("{}; {warning}", self.options.why)),
            limits: hello.limits.clone(),
            sysctls: hello.sysctls.clone(),
        }
    }

    /// What a person should know of the modules.
    fn notes(&self, hello: &Hello) -> Vec<String> {
        let mut notes = Vec::new();
        if !self.bootable.absent.is_empty() {
            notes.push(format!("kernel {} has no {}", self.bootable.image, self.bootable.absent.join(", ")));
        }
        for (name, error) in &hello.modules_failed {
            notes.push(format!("module {name} does not load in {}: {error}", self.bootable.image));
        }
        notes
    }

    /// A path for a guest's console log that does not exist yet.
    fn console(&self, what: &str) -> Result<PathBuf, BackendError> {
        let folder = &self.options.consoles;
        let broken = |error: std::io::Error| {
            BackendError::Broken(format!("`{}` cannot hold console logs: {error}", folder.display()))
        };
        std::fs::create_dir_all(folder).map_err(broken)?;
        let image: String =
            self.bootable.image.chars().map(|c| if c.is_ascii_alphanumeric() || c == '.' { c } else { '-' }).collect();
        let name = format!("{image}-{what}");
        // Created here, so that two guests never share a log.
        for number in 1.. {
            let path = folder.join(format!("{name}-{number}.log"));
            match std::fs::File::create_new(&path) {
                Ok(_) => return Ok(path),
                Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => {}
                Err(error) => return Err(broken(error)),
            }
        }
        Err(BackendError::Broken(format!("`{}` is full of console logs", folder.display())))
    }

    /// The initramfs as a file, for QEMU.
    fn initrd_file(&self) -> Result<NamedTempFile, BackendError> {
        let file = NamedTempFile::with_prefix("sweep-initrd-")
            .and_then(|file| std::fs::write(file.path(), &self.bootable.initrd).map(|()| file));
        file.map_err(|error| BackendError::Broken(format!("the initramfs cannot be written: {error}")))
    }
}

impl Backend for Guest {
    fn run(
        &mut self,
        jobs: &[Job],
        interrupted: &AtomicBool,
        tell: &mut dyn FnMut(Event<'_>) -> ControlFlow<()>,
    ) -> Result<(), BackendError> {
        match self.options.accelerator {
            Accelerator::Kvm | Accelerator::Tcg => real::run(self, jobs, interrupted, tell),
            Accelerator::TcgVirtual => virtual_time::run(self, jobs, interrupted, tell),
        }
    }
}
