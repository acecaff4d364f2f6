//! Kernels that lie on the host already: its own, and images given by path.

use crate::units::hex;
use std::fs::{self, File};
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use sha2::{Digest, Sha256};

use super::tree::has_modules;
use super::{Error, ImageName, Kernel, Result};

/// The kernel that this host runs.
///
/// # Errors
/// If its image or its modules are not there or cannot be read.
pub fn host() -> Result<Kernel> {
    let osrelease = Path::new("/proc/sys/kernel/osrelease");
    let release = fs::read_to_string(osrelease).map_err(Error::io("read", osrelease))?;
    host_in(Path::new("/"), release.trim())
}

fn host_in(root: &Path, release: &str) -> Result<Kernel> {
    let modules = root.join("lib/modules").join(release);
    let boot = root.join("boot").join(format!("vmlinuz-{release}"));
    let inside = modules.join("vmlinuz");
    let vmlinuz = if !boot.exists() && inside.exists() { inside } else { boot };
    for path in [&vmlinuz, &modules] {
        match File::open(path) {
            Ok(_) => {}
            Err(e) if e.kind() == ErrorKind::PermissionDenied => {
                return Err(Error::HostUnreadable { path: path.clone() });
            }
            Err(_) => return Err(Error::HostMissing { path: path.clone() }),
        }
    }
    let mut kernel = from_paths(&vmlinuz, &modules)?;
    kernel.image = ImageName::Host;
    release.clone_into(&mut kernel.release);
    Ok(kernel)
}

/// The kernel image at a path, with the modules that lie near it.
///
/// # Errors
/// If it is no kernel image, or if there are no modules of its release near it.
pub fn from_vmlinuz(vmlinuz: &Path) -> Result<Kernel> {
    let release = release_of(vmlinuz)?;
    let path = fs::canonicalize(vmlinuz).map_err(Error::io("read", vmlinuz))?;
    let dir = path.parent().unwrap_or(Path::new("/"));
    let mut places = vec![
        dir.join("modules"),
        dir.join("modules").join(&release),
        dir.join("lib/modules").join(&release),
        dir.join("../lib/modules").join(&release),
        dir.join("../usr/lib/modules").join(&release),
        Path::new("/lib/modules").join(&release),
    ];
    if dir.file_name().is_some_and(|name| *name == *release) {
        places.insert(0, dir.to_path_buf());
    }
    let Some(modules) = places.iter().find(|place| has_modules(place)) else {
        let looked: Vec<String> = places.iter().map(|place| format!("`{}`", place.display())).collect();
        return Err(Error::NoModules { vmlinuz: vmlinuz.to_path_buf(), release, looked: looked.join(", ") });
    };
    let modules = fs::canonicalize(modules).map_err(Error::io("read", modules))?;
    from_paths(vmlinuz, &modules)
}

/// The kernel image at a path, with its modules given.
///
/// # Errors
/// If it is no kernel image.
pub fn from_paths(vmlinuz: &Path, modules: &Path) -> Result<Kernel> {
    Ok(Kernel {
        image: ImageName::Path(vmlinuz.to_path_buf()),
        release: release_of(vmlinuz)?,
        package_version: None,
        package: None,
        sha256: sha256_file(vmlinuz)?,
        vmlinuz: vmlinuz.to_path_buf(),
        modules: modules.to_path_buf(),
    })
}

/// The release that an image will report: from the header of a bzImage, from the banner of an ELF or plain image, else
/// from the name `vmlinuz-…`.
pub(crate) fn release_of(vmlinuz: &Path) -> Result<String> {
    let bytes = fs::read(vmlinuz).map_err(Error::io("read", vmlinuz))?;
    let from_name = || {
        let name = vmlinuz.file_name()?.to_str()?;
        Some(name.split_once('-')?.1.to_owned())
    };
    let looks_like_one = bytes.starts_with(b"\x7fELF") || bytes.get(0x38..0x3c) == Some(b"ARM\x64");
    header_release(&bytes).or_else(|| looks_like_one.then(|| banner_release(&bytes).or_else(from_name))?).ok_or_else(
        || Error::NotAKernel {
            path: vmlinuz.to_path_buf(),
            reason: "it has neither the header of a bzImage nor the version of an uncompressed image".to_owned(),
        },
    )
}

fn header_release(bytes: &[u8]) -> Option<String> {
    if bytes.get(0x202..0x206)? != b"HdrS" {
        return None;
    }
    let offset = usize::from(u16::from_le_bytes(*bytes.get(0x20e..)?.first_chunk()?)) + 0x200;
    first_word(bytes.get(offset..)?)
}

fn banner_release(bytes: &[u8]) -> Option<String> {
    const BANNER: &[u8] = b"Linux version ";
    let at = bytes
        .windows(BANNER.len() + 1)
        .position(|window| window.starts_with(BANNER) && window[BANNER.len()].is_ascii_digit())?;
    first_word(&bytes[at + BANNER.len()..])
}

fn first_word(bytes: &[u8]) -> Option<String> {
    let word: Vec<u8> = bytes.iter().copied().take(128).take_while(u8::is_ascii_graphic).collect();
    String::from_utf8(word).ok().filter(|word| word.starts_with(|c: char| c.is_ascii_digit()))
}

/// SHA-256 of a file, in hexadecimal.
pub(crate) fn sha256_file(path: &Path) -> Result<String> {
    let mut hasher = Sha256::new();
    let mut file = File::open(path).map_err(Error::io("read", path))?;
    std::io::copy(&mut file, &mut HashWriter(&mut hasher)).map_err(Error::io("read", path))?;
    Ok(hex(&hasher.finalize()))
}

/// SHA-256 of several files together, in hexadecimal.
pub(crate) fn sha256_files(paths: &[PathBuf]) -> Result<String> {
    let mut hasher = Sha256::new();
    for path in paths {
        hasher.update(sha256_file(path)?);
    }
    Ok(hex(&hasher.finalize()))
}

struct HashWriter<'a>(&'a mut Sha256);

impl std::io::Write for HashWriter<'_> {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.update(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "a test fails by panicking")]
pub(crate) mod tests {
    use super::{Error, ImageName, from_vmlinuz, fs, host_in, sha256_file};

    /// The least that passes for a bzImage of a release.
    pub(crate) fn bzimage(release: &str) -> Vec<u8> {
        let mut bytes = vec![0u8; 0x400];
        bytes[0x202..0x206].copy_from_slice(b"HdrS");
        bytes[0x206..0x208].copy_from_slice(&0x20f_u16.to_le_bytes());
        bytes[0x20e..0x210].copy_from_slice(&0x100_u16.to_le_bytes());
        let text = format!("{release} (builder@example) #1 SMP");
        bytes[0x300..0x300 + text.len()].copy_from_slice(text.as_bytes());
        bytes
    }

    #[test]
    fn an_image_finds_the_modules_near_it_and_says_where_it_looked() {
        let dir = tempfile::tempdir().unwrap();
        let boot = dir.path().join("boot");
        fs::create_dir_all(&boot).unwrap();
        let vmlinuz = boot.join("vmlinuz-1.2.3-x");
        fs::write(&vmlinuz, bzimage("1.2.3-x")).unwrap();
        let error = from_vmlinuz(&vmlinuz).unwrap_err().to_string();
        assert!(error.contains("`1.2.3-x`") && error.contains("lib/modules/1.2.3-x"), "{error}");
        let modules = dir.path().join("lib/modules/1.2.3-x");
        fs::create_dir_all(modules.join("kernel")).unwrap();
        let kernel = from_vmlinuz(&vmlinuz).unwrap();
        assert_eq!(kernel.release, "1.2.3-x");
        assert_eq!(kernel.modules, fs::canonicalize(&modules).unwrap());
        assert_eq!(kernel.sha256.len(), 64);
    }

    #[test]
    fn a_text_is_no_kernel() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("vmlinuz-6.1");
        fs::write(&path, "not a kernel").unwrap();
        assert!(matches!(from_vmlinuz(&path), Err(Error::NotAKernel { .. })));
    }

    #[test]
    fn what_the_hosts_kernel_lacks_is_told() {
        let dir = tempfile::tempdir().unwrap();
        let missing = |part: &str| match host_in(dir.path(), "1.2.3") {
            Err(Error::HostMissing { path }) => assert!(path.ends_with(part), "{}", path.display()),
            other => panic!("{other:?}"),
        };
        missing("boot/vmlinuz-1.2.3");
        fs::create_dir_all(dir.path().join("boot")).unwrap();
        fs::write(dir.path().join("boot/vmlinuz-1.2.3"), bzimage("1.2.3")).unwrap();
        missing("lib/modules/1.2.3");
        fs::create_dir_all(dir.path().join("lib/modules/1.2.3")).unwrap();
        assert_eq!(host_in(dir.path(), "1.2.3").unwrap().image, ImageName::Host);
    }

    #[test]
    fn the_digest_is_sha256() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("x");
        fs::write(&path, "abc").unwrap();
        assert_eq!(sha256_file(&path).unwrap(), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
    }
}
