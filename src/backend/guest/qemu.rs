//! The QEMU process of a guest: how it is found, started, watched and ended.

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, ExitStatus, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use crate::sys::process::{bind_to_parent, give_precedence, keep_on_processor};

use super::initramfs::GUEST_PATH;
use super::protocol::{AGENT_FREEZE, AGENT_RUN, AGENT_VARIABLE, FW_CFG_NAME};
use super::scratch::Scratch;

/// Memory of a guest in MiB. Enough that the kernel sizes its TCP buffers as on a real machine: `tcp_init` bounds
/// `tcp_rmem` and `tcp_wmem` by 1/128 of memory, and gives the usual 6 MiB from 768 MiB on.
const MEMORY_MIB: u32 = 1024;

/// Initramfs that fits into [`MEMORY_MIB`] beside all that a cell needs, and steps in which memory grows beyond it.
const INITRAMFS_MIB: u64 = 64;
const STEP_MIB: u64 = 256;

/// Memory of a guest in MiB that boots from an initramfs of so many bytes. It is there twice while the kernel unpacks it, and once
/// from then on.
pub(super) fn memory_mib(initramfs_bytes: u64) -> u32 {
    let over = initramfs_bytes.div_ceil(1 << 20).saturating_sub(INITRAMFS_MIB);
    MEMORY_MIB + u32::try_from((2 * over).next_multiple_of(STEP_MIB)).unwrap_or(u32::MAX / 2)
}

/// How a guest's processor is run, and by which clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Accelerator {
    /// The host's processor, in real time.
    Kvm,
    /// Emulated, in real time.
    Tcg,
    /// Emulated, and the clock counts instructions: 1 ns each, idle time skipped.
    TcgVirtual,
}

impl Accelerator {
    /// As the records name the machine.
    pub const fn machine_name(self) -> &'static str {
        match self {
            Self::Kvm => "guest:kvm",
            Self::Tcg | Self::TcgVirtual => "guest:tcg",
        }
    }
}

/// A QEMU that is installed here.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Qemu {
    /// The program.
    pub program: PathBuf,
    /// Its own version line: `QEMU emulator version 7.2.22 (Debian …)`.
    pub version: String,
}

impl Qemu {
    /// Finds the QEMU for this machine's architecture on the `PATH`.
    ///
    /// # Errors
    /// When there is none, with what to install.
    pub fn find() -> Result<Self, String> {
        let name = format!("qemu-system-{}", std::env::consts::ARCH);
        let program = std::env::var_os("PATH")
            .iter()
            .flat_map(std::env::split_paths)
            .map(|folder| folder.join(&name))
            .find(|path| path.is_file())
            .ok_or_else(|| {
                format!(
                    "`{name}` is not on the PATH: install QEMU (Debian and Ubuntu: apt-get install qemu-system-x86)"
                )
            })?;
        let output = Command::new(&program)
            .arg("--version")
            .output()
            .map_err(|error| format!("`{}` does not start: {error}", program.display()))?;
        let text = String::from_utf8_lossy(&output.stdout);
        let version = text.lines().next().unwrap_or_default().trim().to_owned();
        if !output.status.success() || version.is_empty() {
            return Err(format!("`{} --version` says nothing", program.display()));
        }
        Ok(Self { program, version })
    }
}

/// What a guest is started with.
#[derive(Debug)]
pub(super) struct Launch<'a> {
    pub(super) accelerator: Accelerator,
    pub(super) kernel: &'a Path,
    pub(super) initrd: Option<&'a Path>,
    /// What the agent finds as its assignment.
    pub(super) assignment: &'a [u8],
    /// What holds the guest's memory.
    pub(super) memory: Memory<'a>,
    /// How much it has, in MiB.
    pub(super) memory_mib: u32,
    /// Stop at the agent's word, to be saved.
    pub(super) freeze: bool,
    /// Where the console's log goes: it is appended to.
    pub(super) console: &'a Path,
}

/// What holds a guest's memory.
#[derive(Clone, Copy, Debug)]
pub(super) enum Memory<'a> {
    /// Memory of QEMU's own.
    Own,
    /// A file, which keeps what the guest writes: the memory of a machine that is to be frozen.
    KeptIn(&'a Path),
    /// The memory and state of a frozen machine. The file is mapped privately: pages come into memory as the guest touches
    /// them, what it writes goes nowhere, and any number of guests go on from the same file at once.
    Frozen {
        /// The file with the memory.
        memory: &'a Path,
        /// The file with the state of the devices.
        state: &'a Path,
    },
}

/// The part of QEMU's command line that decides how the guest behaves. Part of the key of a frozen machine.
pub(super) fn flags(accelerator: Accelerator, memory_mib: u32) -> Vec<String> {
    let words: &[&str] = match accelerator {
        Accelerator::Kvm => &["-accel", "kvm", "-cpu", "host", "-smp", "2", "-M", "q35"],
        Accelerator::Tcg => &["-accel", "tcg", "-cpu", "max", "-smp", "1", "-M", "q35,hpet=off,smm=off,vmport=off"],
        Accelerator::TcgVirtual => &[
            "-accel",
            "tcg",
            "-icount",
            "shift=0,sleep=off",
            "-cpu",
            "max",
            "-smp",
            "1",
            "-M",
            "q35,hpet=off,smm=off,vmport=off",
            "-rtc",
            "base=2026-01-01T00:00:00,clock=vm",
            "-seed",
            "42",
            "-device",
            "ib700",
            "-action",
            "watchdog=pause",
        ],
    };
    let common = ["-nodefaults", "-no-user-config", "-no-reboot", "-display", "none", "-m"];
    words.iter().chain(&common).map(|&word| word.to_owned()).chain([memory_mib.to_string()]).collect()
}

/// The kernel's command line. Also part of the key of a frozen machine.
pub(super) fn command_line(accelerator: Accelerator, freeze: bool) -> String {
    let agent = if freeze { AGENT_FREEZE } else { AGENT_RUN };
    let tuning = match accelerator {
        Accelerator::Kvm => "",
        // The local APIC's calibration is half of an emulated boot; the others are work that an emulated, trusted and
        // single processor has no use for.
        Accelerator::Tcg => " nolapic no_timer_check tsc=reliable cryptomgr.notests mitigations=off",
        Accelerator::TcgVirtual => {
            " nolapic no_timer_check tsc=reliable cryptomgr.notests mitigations=off nokaslr norandmaps random.trust_cpu=on"
        }
    };
    // The kernel hands what it does not know to PID 1 as its environment.
    format!("console=ttyS0 quiet panic=-1{tuning} {AGENT_VARIABLE}={agent} PATH={GUEST_PATH} HOME=/tmp")
}

/// A QEMU process. It ends when this is dropped, or with this process.
#[derive(Debug)]
pub(super) struct Process {
    child: Child,
    /// Holds the files that QEMU was given.
    folder: Scratch,
}

/// How the names of the processes' folders begin, among the temporary ones.
pub(super) const FOLDERS: &str = "sweep-vm-";
/// Name of the file that the agent's serial port writes to, in the process's folder.
const RECORDS: &str = "records";
/// Names of the links to a frozen machine's files there.
pub(super) const STATE: &str = "state";
const MEMORY: &str = "memory";
/// Name of QEMU's standard error there.
const ERRORS: &str = "stderr";

impl Process {
    /// Starts QEMU. The thread that calls this must outlive the guest, which dies with it.
    pub(super) fn start(qemu: &Qemu, launch: &Launch<'_>) -> io::Result<(Self, ChildStdin, ChildStdout)> {
        let folder = Scratch::new(&std::env::temp_dir(), FOLDERS)?;
        File::create_new(folder.path().join(RECORDS))?;
        fs::write(folder.path().join("assignment"), launch.assignment)?;
        let console = std::path::absolute(launch.console)?;
        std::os::unix::fs::symlink(console, folder.path().join("console"))?;
        let mut command = Command::new(&qemu.program);
        command
            .current_dir(folder.path())
            .args(flags(launch.accelerator, launch.memory_mib))
            .arg("-kernel")
            .arg(std::path::absolute(launch.kernel)?)
            .arg("-append")
            .arg(command_line(launch.accelerator, launch.freeze));
        if let Some(initrd) = launch.initrd {
            command.arg("-initrd").arg(std::path::absolute(initrd)?);
        }
        // Relative names: a folder with a comma or a quote in its path would be taken apart otherwise.
        command.args(["-chardev", "file,id=console,path=console,append=on", "-device", "isa-serial,chardev=console"]);
        // A file takes every byte at once. A socket or a pipe may be full when the reader is slow, and the guest would see
        // its serial port wait: the host's load would show in virtual time.
        let records = format!("file,id=records,path={RECORDS},append=on");
        command.args(["-chardev", &records, "-device", "isa-serial,chardev=records"]);
        command.args(["-fw_cfg", &format!("name={FW_CFG_NAME},file=assignment")]);
        command.args(["-chardev", "stdio,id=qmp,signal=off", "-mon", "chardev=qmp,mode=control"]);
        let link =
            |to: &Path, name: &str| std::os::unix::fs::symlink(std::path::absolute(to)?, folder.path().join(name));
        let memory = match launch.memory {
            Memory::Own => None,
            Memory::KeptIn(file) => Some((file, "on")),
            Memory::Frozen { memory, state } => {
                link(state, STATE)?;
                command.args(["-S", "-incoming", "defer"]);
                Some((memory, "off"))
            }
        };
        if let Some((file, share)) = memory {
            link(file, MEMORY)?;
            let backend =
                format!("memory-backend-file,id=memory,size={}M,mem-path={MEMORY},share={share}", launch.memory_mib);
            command.args(["-object", &backend, "-machine", "memory-backend=memory"]);
        }
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(File::create(folder.path().join(ERRORS))?);
        let mut child = bind_to_parent(&mut command).spawn()?;
        let (Some(input), Some(output)) = (child.stdin.take(), child.stdout.take()) else {
            return Err(io::Error::other("QEMU's standard input and output are not there"));
        };
        Ok((Self { child, folder }, input, output))
    }

    /// Keeps QEMU on one processor, where its main loop and helpers go before `emulator`, the thread that emulates: they then
    /// take turns at moments that the guest decides, and not the host (see `Turns` in `virtual_time`).
    ///
    /// # Errors
    /// `EPERM` where this user may not give precedence.
    pub(super) fn take_turns(&self, processor: usize, emulator: u32) -> io::Result<()> {
        keep_on_processor(self.child.id(), processor)?;
        give_precedence(self.child.id(), emulator)
    }

    /// What the agent writes to its serial port, from the beginning.
    pub(super) fn records(&self) -> io::Result<File> {
        File::open(self.folder.path().join(RECORDS))
    }

    /// How QEMU has ended, if it has.
    pub(super) fn ended(&mut self) -> Option<ExitStatus> {
        self.child.try_wait().ok().flatten()
    }

    /// Waits a little for QEMU to end by itself.
    pub(super) fn wait_for_end(&mut self, at_most: Duration) -> Option<ExitStatus> {
        let deadline = Instant::now() + at_most;
        loop {
            let ended = self.ended();
            if ended.is_some() || Instant::now() > deadline {
                return ended;
            }
            thread::sleep(Duration::from_millis(2));
        }
    }

    /// What QEMU has written to its standard error, without the warnings that every start prints.
    pub(super) fn errors(&self) -> String {
        let text = fs::read(self.folder.path().join(ERRORS)).unwrap_or_default();
        let text = String::from_utf8_lossy(&text);
        text.lines().filter(|line| !line.contains(": warning: ")).collect::<Vec<_>>().join("; ")
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // It may have ended by itself, which is as well.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[cfg(test)]
mod tests {
    use super::memory_mib;

    #[test]
    fn memory_grows_with_what_comes_along_in_steps() {
        for (mib, memory) in [(0, 1024), (30, 1024), (64, 1024), (65, 1280), (192, 1280), (193, 1536), (320, 1536)] {
            assert_eq!(memory_mib(mib << 20), memory, "{mib} MiB");
        }
        // Twice what is there, and as much as a guest without anything.
        assert!(u64::from(memory_mib(256 << 20)) >= 2 * (256 - 64) + 1024);
    }
}
