//! The folder in which kernels lie unpacked.
//!
//! Each kernel is a folder of its own (`vmlinuz`, `config`, `lib/modules/<release>`, `kernel.json`), made under another
//! name and renamed when whole. Changes are made under a lock between processes; reading needs none.

use std::fs::{self, File, TryLockError};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::apt::{self, Apt};
use super::local::{self, sha256_file, sha256_files};
use super::name::DebianVersion;
use super::{Error, ImageName, Kernel, Progress, Result, deb, tree, version, vmlinux};

/// The version of `kernel.json` that this program writes and reads.
const FORMAT: u32 = 1;
/// Folders whose names begin so are not kernels.
const HIDDEN: char = '.';
/// Folders in the making; what a killed process left is removed by the next.
const MAKING: &str = ".making-";

/// A store of kernels.
#[derive(Debug, Clone)]
pub struct KernelStore {
    cache: PathBuf,
    kernels: PathBuf,
}

/// What a store holds.
#[derive(Debug, Default)]
pub struct Listing {
    /// The kernels, by version, newest last.
    pub kernels: Vec<Kernel>,
    /// Entries that are damaged and were left out.
    pub broken: Vec<Broken>,
}

/// A damaged entry of a store.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Broken {
    /// Its folder.
    pub path: PathBuf,
    /// What is wrong with it.
    pub reason: String,
}

/// What `kernel.json` says of a stored kernel.
#[derive(Debug, Serialize, Deserialize)]
struct Stored {
    format: u32,
    image: ImageName,
    release: String,
    package: Option<String>,
    package_version: Option<String>,
    /// SHA-256 of `vmlinuz`.
    sha256: String,
    /// SHA-256 over the `.deb` files that it was added from by path.
    debs_sha256: Option<String>,
}

impl KernelStore {
    /// Opens the store in a cache folder, which is made if need be.
    ///
    /// # Errors
    /// If the folder cannot be made.
    pub fn open(cache: &Path) -> Result<Self> {
        let cache = std::path::absolute(cache).map_err(Error::io("find", cache))?;
        let kernels = cache.join("kernels");
        fs::create_dir_all(&kernels).map_err(Error::io("create", &kernels))?;
        Ok(Self { cache, kernels })
    }

    /// Opens the user's own store: in `$XDG_CACHE_HOME/sweep`, else in `$HOME/.cache/sweep`.
    ///
    /// # Errors
    /// If neither is set to a folder that can be written.
    pub fn open_default() -> Result<Self> {
        let xdg = std::env::var_os("XDG_CACHE_HOME").map(PathBuf::from).filter(|path| path.is_absolute());
        let home = std::env::var_os("HOME").map(|home| Path::new(&home).join(".cache"));
        Self::open_first(&[("XDG_CACHE_HOME", xdg), ("HOME", home.filter(|path| path.is_absolute()))])
    }

    fn open_first(candidates: &[(&str, Option<PathBuf>)]) -> Result<Self> {
        let mut tried = Vec::new();
        for (variable, cache) in candidates {
            let Some(cache) = cache else {
                tried.push(format!("{variable} is not set to an absolute path"));
                continue;
            };
            let writable = Self::open(&cache.join("sweep")).and_then(|store| {
                tempfile::tempfile_in(&store.kernels).map_err(Error::io("write to", &store.kernels))?;
                Ok(store)
            });
            match writable {
                Ok(store) => return Ok(store),
                Err(error) => tried.push(error.to_string()),
            }
        }
        Err(Error::NoCache { tried: tried.join("; ") })
    }

    /// The folder of the store.
    pub fn path(&self) -> &Path {
        &self.kernels
    }

    /// The kernels in the store.
    ///
    /// # Errors
    /// If the store's folder cannot be read. Damaged entries are no error: they are returned apart.
    pub fn list(&self) -> Result<Listing> {
        let mut listing = Listing::default();
        for entry in fs::read_dir(&self.kernels).map_err(Error::io("read", &self.kernels))? {
            let entry = entry.map_err(Error::io("read", &self.kernels))?;
            if entry.file_name().to_string_lossy().starts_with(HIDDEN) || !entry.path().is_dir() {
                continue;
            }
            match Self::read(&entry.path()) {
                Ok((kernel, _)) => listing.kernels.push(kernel),
                Err(reason) => listing.broken.push(Broken { path: entry.path(), reason }),
            }
        }
        listing.kernels.sort_by(|a, b| {
            version::compare(a.sort_key(), b.sort_key()).then_with(|| version::compare(&a.release, &b.release))
        });
        listing.broken.sort_by(|a, b| a.path.cmp(&b.path));
        Ok(listing)
    }

    /// The newest kernel in the store.
    ///
    /// # Errors
    /// If the store's folder cannot be read.
    pub fn newest(&self) -> Result<Option<Kernel>> {
        Ok(self.list()?.kernels.pop())
    }

    /// The kernel of that name, if it can be had without fetching or unpacking anything: from the store, from the host,
    /// or from the path named. Of a series, the newest in the store.
    ///
    /// # Errors
    /// If the store or the path named cannot be read, or the host's own kernel cannot be used.
    pub fn find(&self, image: &ImageName) -> Result<Option<Kernel>> {
        match image {
            ImageName::Host => local::host().map(Some),
            ImageName::Debian(wanted) => {
                let matches = |kernel: &Kernel| {
                    matches!(kernel.image, ImageName::Debian(_))
                        && kernel.package_version.as_deref().is_some_and(|version| wanted.matches(version))
                };
                Ok(self.list()?.kernels.into_iter().rfind(matches))
            }
            ImageName::Path(path) => match deb::debs_at(path)? {
                None => local::from_vmlinuz(path).map(Some),
                Some(debs) => self.find_debs(&sha256_files(&debs)?),
            },
        }
    }

    /// The kernel of that name: from the store if it is there, else added.
    ///
    /// # Errors
    /// Those of [`find`](Self::find) and [`add`](Self::add).
    pub fn get_or_add(&self, image: &ImageName, progress: Progress<'_>) -> Result<Kernel> {
        match self.find(image)? {
            Some(kernel) => Ok(kernel),
            None => self.add(image, progress),
        }
    }

    /// Adds a kernel. For a series this looks for the newest that Debian has, also if the store has an older one. A
    /// kernel that is in the store already, and one that needs no store (`host`, a `vmlinuz`), is returned as it is.
    ///
    /// # Errors
    /// If there is no such kernel, or it cannot be fetched, unpacked or stored.
    pub fn add(&self, image: &ImageName, progress: Progress<'_>) -> Result<Kernel> {
        match image {
            ImageName::Host => local::host(),
            ImageName::Debian(wanted) => self.add_debian(image, wanted, progress),
            ImageName::Path(path) => match deb::debs_at(path)? {
                None => local::from_vmlinuz(path),
                Some(debs) => {
                    let _lock = self.lock(progress)?;
                    let digest = sha256_files(&debs)?;
                    match self.find_debs(&digest)? {
                        Some(kernel) => Ok(kernel),
                        None => self.unpack(&debs, image, Some(digest), progress),
                    }
                }
            },
        }
    }

    /// Removes a kernel, named by its image, its release or its package version.
    ///
    /// # Errors
    /// If none or more than one goes by that name, or it cannot be removed.
    pub fn remove(&self, name: &str) -> Result<Kernel> {
        let _lock = self.lock(&mut |_| {})?;
        let kernels = self.list()?.kernels;
        let wanted: Option<ImageName> = name.parse().ok();
        let goes_by_it = |kernel: &&Kernel| {
            kernel.release == name
                || kernel.package_version.as_deref() == Some(name)
                || kernel.image.to_string() == name
                || match (&wanted, &kernel.package_version) {
                    (Some(ImageName::Debian(wanted)), Some(version)) => wanted.matches(version),
                    _ => false,
                }
        };
        let names = |kernels: &[&Kernel]| {
            let names: Vec<String> = kernels.iter().map(|kernel| format!("`{}`", kernel.image)).collect();
            if names.is_empty() { "none".to_owned() } else { names.join(", ") }
        };
        let matches: Vec<&Kernel> = kernels.iter().filter(goes_by_it).collect();
        let kernel = match matches.as_slice() {
            [] => {
                return Err(Error::NotInStore {
                    name: name.to_owned(),
                    have: names(&kernels.iter().collect::<Vec<_>>()),
                });
            }
            [kernel] => (*kernel).clone(),
            several => {
                return Err(Error::Ambiguous { name: name.to_owned(), matches: names(several) });
            }
        };
        let dir = self.dir_of(&kernel).ok_or_else(|| Error::NotInStore {
            name: name.to_owned(),
            have: names(&kernels.iter().collect::<Vec<_>>()),
        })?;
        // Renamed first: a process that lists the store meanwhile sees it whole or not at all.
        let gone = tempfile::Builder::new()
            .prefix(MAKING)
            .tempdir_in(&self.kernels)
            .map_err(Error::io("create a folder in", &self.kernels))?;
        fs::rename(&dir, gone.path().join("kernel")).map_err(Error::io("remove", &dir))?;
        gone.close().map_err(Error::io("remove", &dir))?;
        let vmlinux = self.vmlinux_path(&kernel);
        if vmlinux.exists() && !self.list()?.kernels.iter().any(|other| other.sha256 == kernel.sha256) {
            fs::remove_file(&vmlinux).map_err(Error::io("remove", &vmlinux))?;
        }
        Ok(kernel)
    }

    /// Bytes on disk of each kernel in the store, in the order of [`list`](Self::list), extracted images included.
    ///
    /// # Errors
    /// If the store cannot be read.
    pub fn usage(&self) -> Result<Vec<(Kernel, u64)>> {
        let mut usage = Vec::new();
        for kernel in self.list()?.kernels {
            let dir = self.dir_of(&kernel).unwrap_or_else(|| kernel.modules.clone());
            let vmlinux = fs::metadata(self.vmlinux_path(&kernel)).map_or(0, |data| data.len());
            let bytes = tree::bytes(&dir)? + vmlinux;
            usage.push((kernel, bytes));
        }
        Ok(usage)
    }

    /// The name of the distribution's own cloud kernel: on Debian the series of the host's own release. Fetches the
    /// package lists if they are missing or a day old.
    ///
    /// # Errors
    /// On other distributions, which have none that could be fetched by name, and where the lists cannot be fetched.
    pub fn distribution_default(&self, progress: Progress<'_>) -> Result<ImageName> {
        let codename = apt::codename();
        if codename.is_empty() {
            return Err(Error::NoDefault { reason: "it is not Debian".to_owned() });
        }
        let arch = debian_arch()?;
        let _lock = self.lock(progress)?;
        let index = self.apt(arch, format!("the cloud kernel of {codename}")).index(progress)?;
        let version = index.default_version(&codename, arch).ok_or_else(|| Error::NoDefault {
            reason: format!("the mirror has no linux-image-cloud-{arch} for {codename}"),
        })?;
        Ok(ImageName::Debian(DebianVersion::Series(version::series(version))))
    }

    fn apt(&self, arch: &'static str, image: String) -> Apt {
        Apt::new(self.cache.join("apt"), arch, image)
    }

    fn add_debian(&self, image: &ImageName, wanted: &DebianVersion, progress: Progress<'_>) -> Result<Kernel> {
        let arch = debian_arch()?;
        let _lock = self.lock(progress)?;
        if matches!(wanted, DebianVersion::Exact(_))
            && let Some(kernel) = self.find(image)?
        {
            return Ok(kernel);
        }
        let apt = self.apt(arch, image.to_string());
        let mut index = apt.index(progress)?;
        let mut offer = index.select(wanted, arch);
        if offer.is_none() && !apt::is_recent(&index) {
            index = apt.refresh(progress)?;
            offer = index.select(wanted, arch);
        }
        let offer = offer.ok_or_else(|| Error::NoSuchKernel {
            image: image.to_string(),
            offers: index.describe_offers(wanted, arch),
        })?;
        let exact = ImageName::Debian(DebianVersion::Exact(offer.version.clone()));
        if let Some(kernel) = self.find(&exact)? {
            return Ok(kernel);
        }
        let downloads = self.making()?;
        let debs = match apt.download(&offer, downloads.path(), progress) {
            // The lists may be of yesterday and name what is gone today.
            Err(Error::ProgramFailed { .. }) => {
                index = apt.refresh(progress)?;
                let offer = index.select(wanted, arch).ok_or_else(|| Error::NoSuchKernel {
                    image: image.to_string(),
                    offers: index.describe_offers(wanted, arch),
                })?;
                apt.download(&offer, downloads.path(), progress)?
            }
            other => other?,
        };
        self.unpack(&debs, image, None, progress)
    }

    /// Unpacks packages into a new entry. The lock is held.
    fn unpack(
        &self,
        debs: &[PathBuf],
        image: &ImageName,
        digest: Option<String>,
        progress: Progress<'_>,
    ) -> Result<Kernel> {
        progress("unpacking the kernel");
        let making = self.making()?;
        let root = making.path().join("root");
        fs::create_dir(&root).map_err(Error::io("create", &root))?;
        for deb in debs {
            deb::unpack(deb, &root)?;
        }
        let found = tree::find(&root).map_err(|missing| Error::Incomplete {
            packages: debs.iter().map(|deb| format!("`{}`", deb.display())).collect::<Vec<_>>().join(", "),
            missing,
        })?;
        let described = deb::describe_image(debs)?;
        let entry = making.path().join("entry");
        let modules = entry.join("lib/modules").join(&found.release);
        let parent = entry.join("lib/modules");
        fs::create_dir_all(&parent).map_err(Error::io("create", &parent))?;
        let rename = |from: &Path, to: &Path| fs::rename(from, to).map_err(Error::io("move", from));
        rename(&found.vmlinuz, &entry.join("vmlinuz"))?;
        rename(&found.modules, &modules)?;
        let config = root.join("boot").join(format!("config-{}", found.release));
        if config.exists() {
            rename(&config, &entry.join("config"))?;
        }
        let stored = Stored {
            format: FORMAT,
            image: match image {
                ImageName::Debian(_) => ImageName::Debian(DebianVersion::Exact(described.version.clone())),
                other => other.clone(),
            },
            sha256: sha256_file(&entry.join("vmlinuz"))?,
            release: found.release,
            package: Some(described.package),
            package_version: Some(described.version),
            debs_sha256: digest,
        };
        let json_path = entry.join("kernel.json");
        let json = serde_json::to_vec_pretty(&stored).map_err(|e| Error::io("write", &json_path)(e.into()))?;
        fs::write(&json_path, json).map_err(Error::io("write", &json_path))?;
        let place = self.kernels.join(stored.id());
        if place.exists() {
            // Only a damaged entry can be in the way: a whole one was found before.
            let old = making.path().join("old");
            rename(&place, &old)?;
        }
        rename(&entry, &place)?;
        Self::read(&place).map(|(kernel, _)| kernel).map_err(|reason| Error::BrokenEntry { path: place, reason })
    }

    /// Reads an entry; what is wrong with it as text.
    fn read(dir: &Path) -> std::result::Result<(Kernel, Option<String>), String> {
        let json = fs::read(dir.join("kernel.json")).map_err(|e| format!("kernel.json: {e}"))?;
        let stored: Stored = serde_json::from_slice(&json).map_err(|e| format!("kernel.json: {e}"))?;
        if stored.format != FORMAT {
            return Err(format!("kernel.json: format {} is not known to this version of sweep", stored.format));
        }
        let vmlinuz = dir.join("vmlinuz");
        let modules = dir.join("lib/modules").join(&stored.release);
        if !vmlinuz.is_file() {
            return Err("vmlinuz is missing".to_owned());
        }
        if !tree::has_modules(&modules) {
            return Err(format!("lib/modules/{} is missing", stored.release));
        }
        let kernel = Kernel {
            image: stored.image,
            release: stored.release,
            package_version: stored.package_version,
            package: stored.package,
            vmlinuz,
            modules,
            sha256: stored.sha256,
        };
        Ok((kernel, stored.debs_sha256))
    }

    fn find_debs(&self, digest: &str) -> Result<Option<Kernel>> {
        for kernel in self.list()?.kernels {
            if let Some(dir) = self.dir_of(&kernel)
                && let Ok((kernel, Some(known))) = Self::read(&dir)
                && known == digest
            {
                return Ok(Some(kernel));
            }
        }
        Ok(None)
    }

    /// The folder of a kernel of this store.
    fn dir_of(&self, kernel: &Kernel) -> Option<PathBuf> {
        let dir = kernel.vmlinuz.parent()?;
        (dir.parent()? == self.kernels).then(|| dir.to_path_buf())
    }

    fn vmlinux_path(&self, kernel: &Kernel) -> PathBuf {
        self.kernels.join(".vmlinux").join(&kernel.sha256)
    }

    pub(super) fn vmlinux(&self, kernel: &Kernel) -> Result<PathBuf> {
        let path = self.vmlinux_path(kernel);
        if path.exists() {
            return Ok(path);
        }
        let image = fs::read(&kernel.vmlinuz).map_err(Error::io("read", &kernel.vmlinuz))?;
        let elf = vmlinux::extract(image).map_err(|source| Error::Vmlinux { path: kernel.vmlinuz.clone(), source })?;
        let dir = self.kernels.join(".vmlinux");
        fs::create_dir_all(&dir).map_err(Error::io("create", &dir))?;
        let file = tempfile::NamedTempFile::new_in(&dir).map_err(Error::io("write to", &dir))?;
        // On the disk before it has its name: nothing looks into it again, and half of one would never boot.
        fs::write(file.path(), elf)
            .and_then(|()| file.as_file().sync_all())
            .map_err(Error::io("write", file.path()))?;
        file.persist(&path).map_err(|e| Error::io("write", &path)(e.error))?;
        Ok(path)
    }

    /// A folder in the making, on the store's own file system.
    fn making(&self) -> Result<tempfile::TempDir> {
        tempfile::Builder::new()
            .prefix(MAKING)
            .tempdir_in(&self.kernels)
            .map_err(Error::io("create a folder in", &self.kernels))
    }

    /// Takes the lock between processes, and removes what a killed process left.
    fn lock(&self, progress: Progress<'_>) -> Result<File> {
        let path = self.kernels.join(".lock");
        let mut options = File::options();
        let file = options.create(true).append(true).open(&path).map_err(Error::io("open", &path))?;
        match file.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => {
                progress("waiting for another sweep that changes the kernel store");
                file.lock().map_err(Error::io("lock", &path))?;
            }
            Err(TryLockError::Error(source)) => return Err(Error::io("lock", &path)(source)),
        }
        for entry in fs::read_dir(&self.kernels).map_err(Error::io("read", &self.kernels))?.flatten() {
            if entry.file_name().to_string_lossy().starts_with(MAKING) {
                fs::remove_dir_all(entry.path()).map_err(Error::io("remove", &entry.path()))?;
            }
        }
        Ok(file)
    }
}

impl Stored {
    /// The name of its folder.
    fn id(&self) -> String {
        let version = self.package_version.as_deref().unwrap_or("unknown").replace('/', "_");
        let source = self.debs_sha256.as_deref().map(|digest| format!("_{}", &digest[..8]));
        format!("{}_{version}{}", self.release, source.unwrap_or_default())
    }
}

/// Debian's name for this machine's architecture.
fn debian_arch() -> Result<&'static str> {
    match std::env::consts::ARCH {
        "x86_64" => Ok("amd64"),
        "aarch64" => Ok("arm64"),
        arch => Err(Error::Architecture { arch: arch.to_owned() }),
    }
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "a test fails by panicking")]
#[path = "store_tests.rs"]
mod tests;
