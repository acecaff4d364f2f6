//! Frozen machines: guests that have booted, been stopped at an exact instant of their clock, and been saved.
//!
//! The instant is a watchdog's: the agent starts it and sleeps. QEMU's main loop, which moves the clock of an idle guest from
//! timer to timer, runs the watchdog's and stops the machine before it does anything else. A stop that the guest itself asks
//! for (a panic device, say) is carried out a moment later, and until then the main loop may or may not have moved the clock
//! of the stopped processor on to the next timer: two boots then differ by milliseconds.
//!
//! A machine is kept in `machines/<key>/` of the cache, where the key is a hash of all that goes into it: kernel,
//! initramfs (with the program and the modules), QEMU, its flags and the kernel's command line.

use std::fs::{self, File};
use std::io;
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant, SystemTime};

use serde::{Deserialize, Serialize};
use serde_json::json;
use sha2::{Digest, Sha256};

use super::failure::GuestFailure;
use super::protocol::Hello;
use super::qemu::{self, Accelerator, Launch, Memory, Qemu};
use super::qmp::QmpError;
use super::scratch::Scratch;
use super::session::Session;
use super::virtual_time::Turns;
use super::{BOOT_DEADLINE, Bootable};
use crate::sys;
use crate::units::{Span, hex};

/// Most that all frozen machines together may take, in bytes. The ones used longest ago go first.
pub const MAX_STORE_BYTES: u64 = 4 << 30;
/// How long QEMU may take to write a machine's memory out.
const SAVE_DEADLINE: Duration = Duration::from_mins(2);
/// Boots after which no further agreement is sought.
const MOST_BOOTS: usize = 6;
/// Raised when what is saved, or how, changes.
const VERSION: u32 = 3;

/// The state of the devices, and the memory: a sparse file that guests map privately.
const STATE: &str = "state";
const MEMORY: &str = "memory";
const INITRD: &str = "initrd";
const FACTS: &str = "machine.json";

/// How the name of a machine in the making begins.
const MAKING: &str = ".making-";

/// The store of frozen machines.
#[derive(Clone, Debug)]
pub struct FrozenStore {
    folder: PathBuf,
}

/// A frozen machine in the store.
#[derive(Clone, Debug)]
pub(super) struct Frozen {
    folder: PathBuf,
    facts: Facts,
    /// Whether it was made just now.
    pub(super) made: bool,
    /// Locked for as long as guests may go on from it, so that no other run prunes it meanwhile.
    _in_use: Arc<File>,
}

/// A machine that was booted and saved, and is not in the store yet.
struct Candidate {
    folder: Scratch,
    hello: Hello,
    memory_sha256: String,
    /// From QEMU's start to the agent's first word.
    booted_in: Span,
}

impl Candidate {
    fn boot(
        bootable: &Bootable,
        qemu: &Qemu,
        folder: Scratch,
        console: &Path,
        processor: Option<usize>,
        interrupted: &AtomicBool,
    ) -> Result<Self, GuestFailure> {
        fs::write(folder.path().join(INITRD), &bootable.initrd).map_err(failed("saved"))?;
        File::create(folder.path().join(MEMORY))
            .and_then(|file| file.set_len(u64::from(bootable.memory_mib) << 20))
            .map_err(failed("saved"))?;
        let (hello, booted_in) = freeze(bootable, qemu, folder.path(), console, processor, interrupted)?;
        let memory_sha256 = digest(&folder.path().join(MEMORY)).map_err(failed("saved"))?;
        Ok(Self { folder, hello, memory_sha256, booted_in })
    }
}

/// What is kept beside a machine.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct Facts {
    version: u32,
    key: String,
    image: String,
    qemu: String,
    hello: Hello,
    /// SHA-256 of the saved state and memory, so that a damaged one is noticed.
    state_sha256: String,
    memory_sha256: String,
}

/// A frozen machine, for lists.
#[derive(Clone, Debug, Serialize)]
pub struct FrozenEntry {
    /// Its key.
    pub key: String,
    /// The kernel: as named in sweeps. `None` of a machine that is damaged, which no run goes on from.
    pub image: Option<String>,
    /// `uname -r`.
    pub release: Option<String>,
    /// Bytes on disk.
    pub bytes: u64,
    /// When it was last used, in seconds since 1970.
    pub used: u64,
}

fn failed(what: &'static str) -> impl Fn(io::Error) -> GuestFailure {
    move |error| GuestFailure::State { what, message: error.to_string(), console: super::failure::Tail::default() }
}

impl FrozenStore {
    /// The store below a cache folder.
    pub fn below(cache: &Path) -> Self {
        Self { folder: cache.join("machines") }
    }

    /// The key of the machine that these make.
    pub(super) fn key(bootable: &Bootable, qemu: &Qemu) -> String {
        let mut hash = Sha256::new();
        for part in [
            VERSION.to_string(),
            bootable.kernel_sha256.clone(),
            bootable.initrd_digest.clone(),
            qemu.version.clone(),
            qemu::flags(Accelerator::TcgVirtual, bootable.memory_mib).join(" "),
            qemu::command_line(Accelerator::TcgVirtual, true),
        ] {
            hash.update((part.len() as u64).to_le_bytes());
            hash.update(part);
        }
        hex(&hash.finalize())[..32].to_owned()
    }

    /// The frozen machine of that kernel: from the store if it is there and whole, else booted and saved now.
    pub(super) fn get_or_make(
        &self,
        bootable: &Bootable,
        qemu: &Qemu,
        console: &Path,
        interrupted: &AtomicBool,
        note: &mut dyn FnMut(String),
    ) -> Result<Frozen, GuestFailure> {
        let key = Self::key(bootable, qemu);
        fs::create_dir_all(&self.folder).map_err(failed("saved"))?;
        let lock = File::create(self.folder.join(format!("{key}.lock"))).map_err(failed("saved"))?;
        // Two runs that want the same machine: the second waits, and finds it made.
        lock.lock().map_err(failed("saved"))?;
        let folder = self.folder.join(&key);
        match Frozen::load(&folder, &key) {
            Ok(Some(frozen)) => return Ok(frozen),
            Ok(None) => {}
            Err(reason) => {
                note(format!("the frozen machine of {} is damaged ({reason}) and is made again", bootable.image));
            }
        }
        // Each is as large as a guest's memory.
        Scratch::sweep_up(&self.folder, MAKING);
        note(format!("booting {} in virtual time and freezing it", bootable.image));
        let begun = Instant::now();
        let candidate = self.agreeing(bootable, qemu, console, interrupted, note)?;
        let booted_in = candidate.booted_in;
        let facts = Facts {
            version: VERSION,
            key: key.clone(),
            image: bootable.image.clone(),
            qemu: qemu.version.clone(),
            hello: candidate.hello,
            state_sha256: digest(&candidate.folder.path().join(STATE)).map_err(failed("saved"))?,
            memory_sha256: candidate.memory_sha256,
        };
        let text = serde_json::to_vec_pretty(&facts).map_err(|error| failed("saved")(error.into()))?;
        fs::write(candidate.folder.path().join(FACTS), text).map_err(failed("saved"))?;
        if folder.exists() {
            fs::remove_dir_all(&folder).map_err(failed("saved"))?;
        }
        let fresh = candidate.folder.keep();
        fs::rename(&fresh, &folder).map_err(failed("saved"))?;
        let in_use = hold(&folder).map_err(failed("saved"))?;
        self.prune(MAX_STORE_BYTES, Some(&key)).map_err(failed("saved"))?;
        note(format!("booted in {booted_in}, settled, saved and compared in {} in all", Span::from(begun.elapsed())));
        Ok(Frozen { folder, facts, made: true, _in_use: in_use })
    }

    /// Boots the machine until two boots agree in every byte of memory. The first two run side by side.
    ///
    /// A boot whose clock went wrong (see `Turns` in `virtual_time`) is thus found out: two do not agree by chance.
    fn agreeing(
        &self,
        bootable: &Bootable,
        qemu: &Qemu,
        console: &Path,
        interrupted: &AtomicBool,
        note: &mut dyn FnMut(String),
    ) -> Result<Candidate, GuestFailure> {
        let turns = Turns::new();
        let boot = |number: usize| {
            let folder = Scratch::new(&self.folder, MAKING).map_err(failed("saved"))?;
            let console = if number == 0 { console.to_owned() } else { folder.path().join("console.log") };
            Candidate::boot(bootable, qemu, folder, &console, turns.processor(number, 2), interrupted)
        };
        let (first, second) = std::thread::scope(|scope| {
            let second = scope.spawn(|| boot(1));
            let first = boot(0);
            let panicked = |_| Err(failed("saved")(io::Error::other("the thread that booted it panicked")));
            (first, second.join().unwrap_or_else(panicked))
        });
        let mut candidates = vec![first?, second?];
        loop {
            let Some(last) = candidates.pop() else {
                return Err(failed("saved")(io::Error::other("it was never booted")));
            };
            if candidates.iter().any(|other| other.memory_sha256 == last.memory_sha256) {
                return Ok(last);
            }
            candidates.push(last);
            if candidates.len() == MOST_BOOTS {
                note(format!(
                    "no two of {MOST_BOOTS} boots of {} agree: figures of this machine may differ from another one's by some \
                     nanoseconds",
                    bootable.image
                ));
                return candidates.pop().ok_or_else(|| failed("saved")(io::Error::other("it was never booted")));
            }
            candidates.push(boot(candidates.len())?);
        }
    }

    /// All frozen machines, the one used longest ago first.
    ///
    /// # Errors
    /// When the folder cannot be read.
    pub fn list(&self) -> io::Result<Vec<FrozenEntry>> {
        let mut entries = Vec::new();
        let folder = match fs::read_dir(&self.folder) {
            Ok(folder) => folder,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(entries),
            Err(error) => return Err(error),
        };
        for entry in folder {
            let path = entry?.path();
            let Some(name) = path.file_name().and_then(|name| name.to_str()).filter(|name| is_key(name)) else {
                continue;
            };
            let facts = Facts::read(&path);
            let mut bytes = 0;
            for file in fs::read_dir(&path)? {
                // What it takes on the disk: the memory is mostly holes.
                bytes += file?.metadata()?.blocks() * 512;
            }
            let used = match &facts {
                Ok(_) => fs::metadata(path.join(FACTS))?.modified()?,
                // Nobody will use it again, so it is the first to go.
                Err(_) => SystemTime::UNIX_EPOCH,
            };
            let used = used.duration_since(SystemTime::UNIX_EPOCH).map_or(0, |age| age.as_secs());
            let (image, release) = facts.ok().map(|facts| (facts.image, facts.hello.release)).unzip();
            entries.push(FrozenEntry { key: name.to_owned(), image, release, bytes, used });
        }
        entries.sort_by_key(|entry| entry.used);
        Ok(entries)
    }

    /// Removes the machines used longest ago until the rest takes at most `bytes`, but none that a run goes on from just now. Returns what was
    /// removed.
    ///
    /// # Errors
    /// When a folder cannot be read or removed.
    pub fn prune(&self, bytes: u64, keep: Option<&str>) -> io::Result<Vec<FrozenEntry>> {
        Scratch::sweep_up(&self.folder, MAKING);
        let entries = self.list()?;
        let mut total: u64 = entries.iter().map(|entry| entry.bytes).sum();
        let mut removed = Vec::new();
        for entry in entries {
            if total <= bytes {
                break;
            }
            if Some(entry.key.as_str()) == keep {
                continue;
            }
            let folder = self.folder.join(&entry.key);
            // Held until it is gone. One without this file is no machine, and nobody goes on from it.
            let facts = File::open(folder.join(FACTS));
            if facts.as_ref().is_ok_and(|facts| facts.try_lock().is_err()) {
                continue;
            }
            fs::remove_dir_all(folder)?;
            // The lock's file stays: another run may hold it.
            total -= entry.bytes;
            removed.push(entry);
        }
        Ok(removed)
    }
}

/// Whether a name in the store is that of a machine.
fn is_key(name: &str) -> bool {
    name.len() == 32 && name.bytes().all(|byte| byte.is_ascii_hexdigit())
}

impl Facts {
    fn read(folder: &Path) -> io::Result<Self> {
        Ok(serde_json::from_slice(&fs::read(folder.join(FACTS))?)?)
    }
}

impl Frozen {
    /// A machine from the store, checked. `None` if there is none, an error says what is damaged.
    fn load(folder: &Path, key: &str) -> Result<Option<Self>, String> {
        if !folder.exists() {
            return Ok(None);
        }
        let in_use = hold(folder).map_err(|error| format!("{FACTS}: {error}"))?;
        if !folder.exists() {
            // It was being pruned.
            return Ok(None);
        }
        let facts = Facts::read(folder).map_err(|error| format!("{FACTS}: {error}"))?;
        if facts.version != VERSION || facts.key != key {
            return Err(format!("{FACTS} is of another machine"));
        }
        for (file, saved) in [(STATE, &facts.state_sha256), (MEMORY, &facts.memory_sha256)] {
            if digest(&folder.join(file)).map_err(|error| format!("{file}: {error}"))? != *saved {
                return Err(format!("{file} is not what was saved"));
            }
        }
        // The time of its last use decides what is pruned first. A store that cannot be written still serves.
        let _ =
            File::options().append(true).open(folder.join(FACTS)).and_then(|file| file.set_modified(SystemTime::now()));
        Ok(Some(Self { folder: folder.to_owned(), facts, made: false, _in_use: in_use }))
    }

    /// What the agent said before it stopped.
    pub(super) const fn hello(&self) -> &Hello {
        &self.facts.hello
    }

    pub(super) fn state(&self) -> PathBuf {
        self.folder.join(STATE)
    }

    pub(super) fn memory(&self) -> PathBuf {
        self.folder.join(MEMORY)
    }

    pub(super) fn initrd(&self) -> PathBuf {
        self.folder.join(INITRD)
    }
}

/// Keeps a machine from being pruned until the file is closed (`flock(2)`), also by a process that is killed.
fn hold(folder: &Path) -> io::Result<Arc<File>> {
    let file = File::open(folder.join(FACTS))?;
    file.lock_shared()?;
    Ok(Arc::new(file))
}

/// Boots a guest up to the point where its agent stops it, and writes its state to `folder`.
fn freeze(
    bootable: &Bootable,
    qemu: &Qemu,
    folder: &Path,
    console: &Path,
    processor: Option<usize>,
    interrupted: &AtomicBool,
) -> Result<(Hello, Span), GuestFailure> {
    let launch = Launch {
        accelerator: Accelerator::TcgVirtual,
        kernel: &bootable.kernel,
        initrd: Some(&folder.join(INITRD)),
        assignment: b"{}",
        memory: Memory::KeptIn(&folder.join(MEMORY)),
        memory_mib: bootable.memory_mib,
        freeze: true,
        console,
    };
    let mut session = Session::start(qemu, &launch, interrupted)?;
    let ordered = processor.map(|processor| session.take_turns(processor)).transpose();
    ordered.map_err(|error| session.state("saved", &error))?;
    let hello = session.hello(BOOT_DEADLINE)?;
    let booted_in = session.age();
    let deadline = Instant::now() + SAVE_DEADLINE;
    let saved = save(&mut session, folder, deadline);
    saved.map_err(|error| session.state("saved", &error))?;
    Ok((hello, booted_in))
}

fn save(session: &mut Session<'_>, folder: &Path, deadline: Instant) -> Result<(), QmpError> {
    let state = folder.join(STATE);
    let qmp = session.qmp();
    qmp.wait_for("STOP", deadline)?;
    qmp.command("migrate-set-capabilities", memory_stays(), deadline)?;
    // Not slowed down for a network that is not there.
    qmp.command("migrate-set-parameters", json!({ "max-bandwidth": u64::MAX >> 1 }), deadline)?;
    let target = shell_word(&state);
    qmp.command("migrate", json!({ "uri": format!("exec:cat > {target}") }), deadline)?;
    qmp.poll("query-migrate", deadline, |progress| match progress["status"].as_str() {
        Some("completed") => Ok(true),
        Some("failed" | "cancelled") => Err(QmpError::Refused {
            command: "migrate".to_owned(),
            message: progress["error-desc"].as_str().unwrap_or("no reason given").to_owned(),
        }),
        _ => Ok(false),
    })
}

/// Tells QEMU that the memory is in its file already, so that only the devices' state is written or read.
pub(super) fn memory_stays() -> serde_json::Value {
    json!({ "capabilities": [{ "capability": "x-ignore-shared", "state": true }] })
}

/// A path as one word of a shell's command line.
fn shell_word(path: &Path) -> String {
    format!("'{}'", path.to_string_lossy().replace('\'', r"'\''"))
}

/// SHA-256 of a file's content, whatever its holes: blocks of zeros are passed over, the others are hashed with their place.
fn digest(path: &Path) -> io::Result<String> {
    const BLOCK: usize = 1 << 16;
    let file = File::open(path)?;
    let length = file.metadata()?.len();
    let mut hash = Sha256::new();
    hash.update(length.to_le_bytes());
    let mut block = vec![0; BLOCK];
    let mut at = 0;
    while let Some(data) = sys::file::next_data(&file, at)? {
        // Blocks begin at multiples of their size, however the file system lays the data out.
        at = data - data % BLOCK as u64;
        let wanted = usize::try_from(length - at).map_or(BLOCK, |left| left.min(BLOCK));
        file.read_exact_at(&mut block[..wanted], at)?;
        if block[..wanted].iter().any(|&byte| byte != 0) {
            hash.update(at.to_le_bytes());
            hash.update(&block[..wanted]);
        }
        at += BLOCK as u64;
    }
    Ok(hex(&hash.finalize()))
}

#[cfg(test)]
mod tests;
