//! Whether KVM truly runs guests here. `/dev/kvm` may exist, open, and make a machine, and still never run a kernel in it
//! (nested hosts), so a real kernel is booted, with a deadline.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::qemu::{Accelerator, Launch, Memory, Process, Qemu, memory_mib};

/// How long a kernel without an initramfs may take under KVM to find that it has no root: a second or two.
const DEADLINE: Duration = Duration::from_secs(10);

/// What the probe found.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct KvmVerdict {
    /// Whether a kernel ran.
    pub works: bool,
    /// What was seen, in a sentence.
    pub reason: String,
}

/// What decides the verdict: it is kept until one of them changes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Kept {
    boot_id: String,
    qemu: String,
    user: String,
    verdict: KvmVerdict,
}

/// Boots a kernel under KVM, or tells what an earlier probe since the host's boot has found.
pub fn probe(qemu: &Qemu, kernel: &Path, cache: &Path, interrupted: &AtomicBool) -> KvmVerdict {
    if let Err(error) = fs::OpenOptions::new().read(true).write(true).open("/dev/kvm") {
        return KvmVerdict { works: false, reason: format!("/dev/kvm cannot be opened ({error})") };
    }
    let read = |path: &str| fs::read_to_string(path).unwrap_or_default().trim().to_owned();
    let (boot_id, user) = (read("/proc/sys/kernel/random/boot_id"), read("/proc/self/loginuid"));
    let file: PathBuf = cache.join("kvm.json");
    let kept: Option<Kept> = fs::read(&file).ok().and_then(|text| serde_json::from_slice(&text).ok());
    if let Some(kept) = kept
        && kept.boot_id == boot_id
        && kept.qemu == qemu.version
        && kept.user == user
    {
        return kept.verdict;
    }
    let verdict = boot(qemu, kernel, interrupted);
    if interrupted.load(Ordering::Relaxed) {
        // A kernel that was given no time to boot says nothing.
        return verdict;
    }
    let kept = Kept { boot_id, qemu: qemu.version.clone(), user, verdict: verdict.clone() };
    // A verdict that cannot be kept is found again next time.
    let _ = serde_json::to_vec(&kept).map(|text| fs::write(&file, text));
    verdict
}

fn boot(qemu: &Qemu, kernel: &Path, interrupted: &AtomicBool) -> KvmVerdict {
    let no = |reason: String| KvmVerdict { works: false, reason };
    let console = match tempfile::NamedTempFile::with_prefix("sweep-kvm-") {
        Ok(console) => console,
        Err(error) => return no(format!("no temporary file can be made ({error})")),
    };
    let launch = Launch {
        accelerator: Accelerator::Kvm,
        kernel,
        initrd: None,
        assignment: b"{}",
        memory: Memory::Own,
        memory_mib: memory_mib(0),
        freeze: false,
        console: console.path(),
    };
    let (mut process, _input, _output) = match Process::start(qemu, &launch) {
        Ok(started) => started,
        Err(error) => return no(format!("QEMU does not start ({error})")),
    };
    let begun = std::time::Instant::now();
    while begun.elapsed() < DEADLINE && !interrupted.load(Ordering::Relaxed) {
        if process.wait_for_end(Duration::from_millis(50)).is_some() {
            break;
        }
    }
    let ended = process.ended();
    let log = fs::read(console.path()).unwrap_or_default();
    if String::from_utf8_lossy(&log).contains("Kernel panic - not syncing: VFS") {
        return KvmVerdict { works: true, reason: "a kernel booted under KVM".to_owned() };
    }
    match ended {
        Some(status) => {
            let errors = process.errors();
            no(format!("/dev/kvm opens, and QEMU ended without having run a kernel ({status}; {errors})"))
        }
        None => no(format!("/dev/kvm opens, and a kernel had not booted after {} s", DEADLINE.as_secs())),
    }
}

#[cfg(test)]
mod tests {
    use super::{Qemu, probe};
    use std::fs;
    use std::os::unix::fs::PermissionsExt;
    use std::sync::atomic::AtomicBool;

    #[test]
    fn a_probe_that_was_interrupted_is_not_kept() {
        let folder = tempfile::tempdir().expect("a folder");
        let program = folder.path().join("qemu");
        fs::write(&program, "#!/bin/sh\nexec sleep 30\n").expect("written");
        fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).expect("executable");
        let qemu = Qemu { program, version: "none".to_owned() };
        let verdict = probe(&qemu, &folder.path().join("kernel"), folder.path(), &AtomicBool::new(true));
        assert!(!verdict.works, "{verdict:?}");
        assert!(!folder.path().join("kvm.json").exists(), "{verdict:?}");
    }
}
