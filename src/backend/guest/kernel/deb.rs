//! Unpacking `.deb` files without installing them: with `dpkg-deb`, or where there is none with `tar`.

use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use super::{Error, Result};

/// What a package says of itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Deb {
    pub(crate) package: String,
    pub(crate) version: String,
}

/// The `.deb` files of a folder, sorted.
pub(crate) fn debs_in(dir: &Path) -> Result<Vec<PathBuf>> {
    let mut debs = Vec::new();
    for entry in fs::read_dir(dir).map_err(Error::io("read", dir))? {
        let path = entry.map_err(Error::io("read", dir))?.path();
        if path.extension().is_some_and(|extension| extension == "deb") {
            debs.push(path);
        }
    }
    debs.sort();
    Ok(debs)
}

/// Name and version of a package.
pub(crate) fn describe(deb: &Path) -> Result<Deb> {
    let mut command = Command::new("dpkg-deb");
    command.arg("-f").arg(deb).args(["Package", "Version"]);
    let control = match output(&mut command, deb)? {
        Some(text) => text,
        None => control_by_hand(deb)?,
    };
    let field = |name: &str| {
        control.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':')).map(|value| value.trim().to_owned())
    };
    match (field("Package"), field("Version")) {
        (Some(package), Some(version)) => Ok(Deb { package, version }),
        _ => Err(Error::NotADeb { path: deb.to_path_buf(), reason: "it names no package and version".to_owned() }),
    }
}

/// Unpacks a package's files into a folder.
pub(crate) fn unpack(deb: &Path, into: &Path) -> Result<()> {
    let mut command = Command::new("dpkg-deb");
    command.arg("-x").arg(deb).arg(into);
    if output(&mut command, deb)?.is_some() {
        return Ok(());
    }
    let (name, data) = member(deb, "data.tar")?;
    let archive = into.join(format!(".{name}"));
    fs::write(&archive, data).map_err(Error::io("write", &archive))?;
    let mut tar = Command::new("tar");
    tar.arg("-xf").arg(&archive).arg("-C").arg(into);
    run_tar(&mut tar, deb)?;
    fs::remove_file(&archive).map_err(Error::io("remove", &archive))
}

/// The package that holds the image: the metapackage of a split kernel, or the only one.
pub(crate) fn describe_image(debs: &[PathBuf]) -> Result<Deb> {
    let described: Vec<Deb> = debs.iter().map(|path| describe(path)).collect::<Result<_>>()?;
    let image = |prefix: &str| described.iter().find(|deb| deb.package.starts_with(prefix));
    image("linux-image-")
        .or_else(|| image("linux-binary-"))
        .or_else(|| described.first())
        .cloned()
        .ok_or_else(|| Error::NotADeb { path: PathBuf::new(), reason: "no package was given".to_owned() })
}

/// The packages that a path means: itself and its siblings of the same release, or all of a folder. `None` if the path
/// is no package and no folder.
pub(crate) fn debs_at(path: &Path) -> Result<Option<Vec<PathBuf>>> {
    let data = fs::metadata(path).map_err(Error::io("read", path))?;
    if data.is_dir() {
        let debs: Vec<PathBuf> = debs_in(path)?.into_iter().filter(|deb| release_in_name(deb).is_some()).collect();
        if debs.is_empty() {
            return Err(Error::NotAKernel {
                path: path.to_path_buf(),
                reason: "the folder has no linux-image or linux-modules .deb in it; give the path of a vmlinuz"
                    .to_owned(),
            });
        }
        return Ok(Some(debs));
    }
    if path.extension().is_none_or(|extension| extension != "deb") {
        return Ok(None);
    }
    let mut debs = vec![path.to_path_buf()];
    if let (Some(release), Some(dir)) = (release_in_name(path), path.parent()) {
        let dir = if dir.as_os_str().is_empty() { Path::new(".") } else { dir };
        let sibling = |other: &PathBuf| {
            other.file_name() != path.file_name() && release_in_name(other).as_ref() == Some(&release)
        };
        debs.extend(debs_in(dir)?.into_iter().filter(sibling));
    }
    debs.sort();
    Ok(Some(debs))
}

/// The release in the file name of a kernel's package.
fn release_in_name(deb: &Path) -> Option<String> {
    let package = deb.file_name()?.to_str()?.split('_').next()?;
    let rest = ["linux-image-", "linux-binary-", "linux-modules-", "linux-base-"]
        .iter()
        .find_map(|prefix| package.strip_prefix(prefix))?;
    let rest = rest.strip_prefix("unsigned-").or(rest.strip_prefix("extra-")).unwrap_or(rest);
    let rest = rest.strip_suffix("-unsigned").unwrap_or(rest);
    (!rest.ends_with("-dbg")).then(|| rest.to_owned())
}

/// What a command printed; `None` if there is no such command.
fn output(command: &mut Command, deb: &Path) -> Result<Option<String>> {
    let output = match command.env("LC_ALL", "C").stdin(Stdio::null()).output() {
        Ok(output) => output,
        Err(e) if e.kind() == ErrorKind::NotFound => return Ok(None),
        Err(source) => {
            return Err(Error::Program {
                program: command.get_program().to_string_lossy().into_owned(),
                source,
                remedy: "it is needed to unpack a kernel's package",
            });
        }
    };
    if output.status.success() {
        return Ok(Some(String::from_utf8_lossy(&output.stdout).into_owned()));
    }
    Err(Error::NotADeb {
        path: deb.to_path_buf(),
        reason: String::from_utf8_lossy(&output.stderr).trim().replace('\n', "; "),
    })
}

fn run_tar(tar: &mut Command, deb: &Path) -> Result<String> {
    output(tar, deb)?.ok_or_else(|| Error::Program {
        program: "tar".to_owned(),
        source: ErrorKind::NotFound.into(),
        remedy: "install dpkg or tar to unpack a kernel's package",
    })
}

fn control_by_hand(deb: &Path) -> Result<String> {
    let (name, data) = member(deb, "control.tar")?;
    let dir = tempfile::tempdir().map_err(Error::io("create a folder in", &std::env::temp_dir()))?;
    let archive = dir.path().join(name);
    fs::write(&archive, data).map_err(Error::io("write", &archive))?;
    let mut tar = Command::new("tar");
    tar.arg("-xf").arg(&archive).arg("-O").arg("./control");
    run_tar(&mut tar, deb)
}

/// A member of the `ar` archive that a `.deb` is: the first whose name begins so.
fn member(deb: &Path, prefix: &str) -> Result<(String, Vec<u8>)> {
    let not_a_deb = |reason: &str| Error::NotADeb { path: deb.to_path_buf(), reason: reason.to_owned() };
    let bytes = fs::read(deb).map_err(Error::io("read", deb))?;
    let mut rest = bytes.strip_prefix(b"!<arch>\n").ok_or_else(|| not_a_deb("it is no ar archive"))?;
    while let Some((header, after)) = rest.split_at_checked(60) {
        let text = |range: std::ops::Range<usize>| String::from_utf8_lossy(&header[range]).trim().to_owned();
        let size: usize = text(48..58).parse().map_err(|_| not_a_deb("a member has no size"))?;
        let data = after.get(..size).ok_or_else(|| not_a_deb("it is cut short"))?;
        let name = text(0..16).trim_end_matches('/').to_owned();
        if name.starts_with(prefix) && !name.contains('/') {
            return Ok((name, data.to_vec()));
        }
        rest = after.get(size + size % 2..).unwrap_or_default();
    }
    Err(not_a_deb(&format!("it has no {prefix}")))
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "a test fails by panicking")]
mod tests {
    use super::{Error, describe, fs, member};

    #[test]
    fn a_file_that_is_no_package_is_told() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("x.deb");
        fs::write(&path, "no package").unwrap();
        assert!(matches!(describe(&path), Err(Error::NotADeb { .. })));
        assert!(matches!(member(&path, "data.tar"), Err(Error::NotADeb { .. })));
    }

    #[test]
    fn members_of_an_archive_are_found() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("x.deb");
        let mut bytes = b"!<arch>\n".to_vec();
        for (name, data) in [("debian-binary", "2.0"), ("data.tar.xz", "DATA")] {
            bytes.extend(format!("{name:<16}{:<12}{:<6}{:<6}{:<8}{:<10}`\n{data}", 0, 0, 0, 644, data.len()).bytes());
            if data.len() % 2 == 1 {
                bytes.push(b'\n');
            }
        }
        fs::write(&path, bytes).unwrap();
        assert_eq!(member(&path, "data.tar").unwrap(), ("data.tar.xz".to_owned(), b"DATA".to_vec()));
        assert!(member(&path, "control.tar").is_err());
    }
}
