//! Tests of the store, on packages made up here.

use super::{Error, ImageName, Kernel, KernelStore, Path, PathBuf, Result, fs, sha256_file};
use crate::backend::guest::kernel::local::tests::bzimage;
use std::process::Command;
use std::thread;

/// Builds a package; `None` where there is no dpkg-deb.
fn build_deb(dir: &Path, package: &str, version: &str, files: &[(&str, &[u8])]) -> Option<PathBuf> {
    let root = dir.join(format!("{package}-root"));
    fs::create_dir_all(root.join("DEBIAN")).unwrap();
    let control =
        format!("Package: {package}\nVersion: {version}\nArchitecture: all\nMaintainer: x <x@x>\nDescription: x\n");
    fs::write(root.join("DEBIAN/control"), control).unwrap();
    for (path, bytes) in files {
        let path = root.join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, bytes).unwrap();
    }
    let debs = dir.join("debs");
    fs::create_dir_all(&debs).unwrap();
    let deb = debs.join(format!("{package}_{version}_all.deb"));
    let output = Command::new("dpkg-deb").arg("-b").arg(&root).arg(&deb).output().ok()?;
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    Some(deb)
}

fn simple_deb(dir: &Path, release: &str, version: &str) -> Option<PathBuf> {
    build_deb(
        dir,
        &format!("linux-image-{release}"),
        version,
        &[
            (&format!("boot/vmlinuz-{release}"), &bzimage(release)),
            (&format!("boot/config-{release}"), b"CONFIG_X=y\n"),
            (&format!("lib/modules/{release}/kernel/net/x.ko"), b"module"),
        ],
    )
}

fn add(store: &KernelStore, path: &Path) -> Result<Kernel> {
    store.add(&ImageName::Path(path.to_path_buf()), &mut |_| {})
}

#[test]
fn a_package_is_added_found_measured_and_removed() {
    let dir = tempfile::tempdir().unwrap();
    let store = KernelStore::open(&dir.path().join("cache")).unwrap();
    let Some(deb) = simple_deb(dir.path(), "6.1.0-9-x", "6.1.9-1") else {
        return;
    };
    let kernel = add(&store, &deb).unwrap();
    assert_eq!(kernel.release, "6.1.0-9-x");
    assert_eq!(kernel.package_version.as_deref(), Some("6.1.9-1"));
    assert_eq!(kernel.package.as_deref(), Some("linux-image-6.1.0-9-x"));
    assert_eq!(fs::read(&kernel.vmlinuz).unwrap(), bzimage("6.1.0-9-x"));
    assert!(kernel.modules.join("kernel/net/x.ko").is_file());
    assert_eq!(kernel.sha256, sha256_file(&kernel.vmlinuz).unwrap());
    assert_eq!(store.find(&ImageName::Path(deb)).unwrap().as_ref(), Some(&kernel));
    assert_eq!(store.newest().unwrap().as_ref(), Some(&kernel));
    let debian: ImageName = "debian:6.1".parse().unwrap();
    assert_eq!(store.find(&debian).unwrap(), None, "a package given by path is not Debian's");
    let usage = store.usage().unwrap();
    assert!(usage[0].1 > 1024, "{usage:?}");
    assert!(matches!(store.remove("6.1.0-8-x"), Err(Error::NotInStore { .. })));
    store.remove("6.1.0-9-x").unwrap();
    assert!(store.list().unwrap().kernels.is_empty());
    let left: Vec<_> = fs::read_dir(store.path()).unwrap().flatten().map(|e| e.file_name()).collect();
    assert_eq!(left, [".lock"]);
}

#[test]
fn the_store_is_sorted_by_version_and_ambiguity_is_told() {
    let dir = tempfile::tempdir().unwrap();
    let store = KernelStore::open(&dir.path().join("cache")).unwrap();
    for (release, version) in [("6.12.3-x", "6.12.3-1"), ("6.1.0-9-x", "6.1.9-1"), ("6.1.0-10-x", "6.1.10-1")] {
        let Some(deb) = simple_deb(dir.path(), release, version) else {
            return;
        };
        add(&store, &deb).unwrap();
    }
    let listing = store.list().unwrap();
    let versions: Vec<_> = listing.kernels.iter().filter_map(|k| k.package_version.as_deref()).collect();
    assert_eq!(versions, ["6.1.9-1", "6.1.10-1", "6.12.3-1"]);
    assert!(matches!(store.remove("debian:6.1"), Err(Error::Ambiguous { .. })));
    store.remove("debian:6.12").unwrap();
    assert_eq!(store.list().unwrap().kernels.len(), 2);
}

#[test]
fn the_packages_of_a_split_kernel_are_found_beside_each_other() {
    let dir = tempfile::tempdir().unwrap();
    let store = KernelStore::open(&dir.path().join("cache")).unwrap();
    let release = "7.2.1-cloud-x";
    let base = format!("usr/lib/modules/{release}");
    let image = build_deb(
        dir.path(),
        &format!("linux-binary-{release}"),
        "7.2.1-1",
        &[(&format!("{base}/vmlinuz"), &bzimage(release))],
    );
    let Some(image) = image else { return };
    match add(&store, &image) {
        Err(Error::Incomplete { missing, .. }) => assert_eq!(missing, "modules"),
        other => panic!("{other:?}"),
    }
    let modules = [(&*format!("{base}/kernel/x.ko.xz"), &b"module"[..])];
    let modules = build_deb(dir.path(), &format!("linux-modules-{release}"), "7.2.1-1", &modules).unwrap();
    for path in [&image, &modules, &dir.path().join("debs")] {
        let kernel = add(&store, path).unwrap();
        assert_eq!(kernel.release, release);
        assert!(kernel.modules.join("kernel/x.ko.xz").is_file());
        assert!(!kernel.modules.join("vmlinuz").exists(), "moved, not copied");
    }
    assert_eq!(store.list().unwrap().kernels.len(), 1, "three names for the same packages");
}

#[test]
fn two_at_once_add_one_kernel() {
    let dir = tempfile::tempdir().unwrap();
    let cache = dir.path().join("cache");
    let Some(deb) = simple_deb(dir.path(), "6.1.0-9-x", "6.1.9-1") else {
        return;
    };
    let kernels: Vec<Kernel> = thread::scope(|scope| {
        let handles: Vec<_> =
            (0..2).map(|_| scope.spawn(|| add(&KernelStore::open(&cache).unwrap(), &deb).unwrap())).collect();
        handles.into_iter().map(|handle| handle.join().unwrap()).collect()
    });
    assert_eq!(kernels[0], kernels[1]);
    assert_eq!(KernelStore::open(&cache).unwrap().list().unwrap().kernels.len(), 1);
}

#[test]
fn damaged_entries_and_leftovers_do_no_harm() {
    let dir = tempfile::tempdir().unwrap();
    let store = KernelStore::open(&dir.path().join("cache")).unwrap();
    let Some(deb) = simple_deb(dir.path(), "6.1.0-9-x", "6.1.9-1") else {
        return;
    };
    let kernel = add(&store, &deb).unwrap();
    fs::create_dir_all(store.path().join("no-json")).unwrap();
    fs::create_dir_all(store.path().join(".making-dead/x")).unwrap();
    fs::remove_file(&kernel.vmlinuz).unwrap();
    let listing = store.list().unwrap();
    assert!(listing.kernels.is_empty());
    assert_eq!(listing.broken.len(), 2);
    assert!(listing.broken.iter().any(|b| b.reason == "vmlinuz is missing"), "{listing:?}");
    let again = add(&store, &deb).unwrap();
    assert_eq!(again, kernel, "a damaged entry is replaced");
    assert!(again.vmlinuz.is_file());
    assert!(!store.path().join(".making-dead").exists());
}

#[test]
fn a_cache_that_cannot_be_written_is_told() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("file");
    fs::write(&file, "").unwrap();
    let good = dir.path().join("good");
    let store = KernelStore::open_first(&[("A", Some(file.clone())), ("B", Some(good.clone()))]).unwrap();
    assert_eq!(store.path(), good.join("sweep/kernels"));
    let error = KernelStore::open_first(&[("A", Some(file)), ("B", None)]).unwrap_err().to_string();
    assert!(error.contains("XDG_CACHE_HOME") && error.contains("B is not set"), "{error}");
}
