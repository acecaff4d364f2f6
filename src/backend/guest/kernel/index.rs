//! Which cloud kernels a mirror has: read out of its package lists, kept as a small file beside them.

use std::cmp::Ordering;
use std::collections::{BTreeMap, HashMap};

use serde::{Deserialize, Serialize};

use super::name::DebianVersion;
use super::version::{compare, series};

/// Every package of a mirror that is part of a cloud kernel.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Index {
    /// Version of this file's form.
    pub(crate) format: u32,
    /// When the lists were fetched, in seconds since 1970.
    pub(crate) fetched: u64,
    /// The packages, of all suites.
    pub(crate) packages: Vec<Package>,
}

/// A package of one suite.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Package {
    pub(crate) name: String,
    pub(crate) version: String,
    pub(crate) suite: String,
    pub(crate) size: u64,
    pub(crate) depends: String,
}

/// A kernel that can be fetched whole.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Offer {
    /// What `uname -r` will say.
    pub(crate) release: String,
    /// Version of its packages.
    pub(crate) version: String,
    /// The packages to fetch.
    pub(crate) packages: Vec<Package>,
}

impl Offer {
    /// Bytes to download.
    pub(crate) fn size(&self) -> u64 {
        self.packages.iter().map(|package| package.size).sum()
    }
}

/// The version of the index file that this program writes and reads.
pub(crate) const FORMAT: u32 = 1;

impl Index {
    /// Adds what a `Packages` list of a suite holds.
    pub(crate) fn read_list(&mut self, list: &str, suite: &str, arch: &str) {
        for stanza in list.split("\n\n") {
            let field =
                |name: &str| stanza.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':').map(str::trim));
            let Some(name) = field("Package").filter(|name| is_part_of_cloud_kernel(name, arch)) else {
                continue;
            };
            let Some(version) = field("Version") else {
                continue;
            };
            self.packages.push(Package {
                name: name.to_owned(),
                version: version.to_owned(),
                suite: suite.to_owned(),
                size: field("Size").and_then(|size| size.parse().ok()).unwrap_or(0),
                depends: field("Depends").unwrap_or_default().to_owned(),
            });
        }
    }

    /// The kernels that can be fetched whole, oldest first. Of a signed and an unsigned build of one version, the signed.
    pub(crate) fn offers(&self, arch: &str) -> Vec<Offer> {
        let by_name: HashMap<(&str, &str), &Package> =
            self.packages.iter().map(|p| ((p.name.as_str(), p.version.as_str()), p)).collect();
        let mut offers: BTreeMap<(String, String), (bool, Offer)> = BTreeMap::new();
        for package in &self.packages {
            let Some((release, signed)) = image_release(&package.name, arch) else {
                continue;
            };
            let key = (release.clone(), package.version.clone());
            if offers.get(&key).is_some_and(|(better, _)| *better || !signed) {
                continue;
            }
            let Some(packages) = whole(package, &release, &by_name) else {
                continue;
            };
            let offer = Offer { release, version: package.version.clone(), packages };
            offers.insert(key, (signed, offer));
        }
        let mut offers: Vec<Offer> = offers.into_values().map(|(_, offer)| offer).collect();
        offers.sort_by(newest_last);
        offers
    }

    /// The newest kernel that `wanted` can mean.
    pub(crate) fn select(&self, wanted: &DebianVersion, arch: &str) -> Option<Offer> {
        let offers = self.offers(arch);
        offers.into_iter().rfind(|offer| wanted.matches(&offer.version))
    }

    /// What there is, for the message that `wanted` is not.
    pub(crate) fn describe_offers(&self, wanted: &DebianVersion, arch: &str) -> String {
        let offers = self.offers(arch);
        if let DebianVersion::Exact(exact) = wanted {
            let series = series(exact);
            let mut same: Vec<&str> = offers
                .iter()
                .filter(|offer| super::version::series(&offer.version) == series)
                .map(|offer| offer.version.as_str())
                .collect();
            same.dedup();
            if !same.is_empty() {
                return format!(
                    "of series {series} it has {} (a mirror keeps only the newest few: prefer `debian:{series}`)",
                    same.join(", ")
                );
            }
        }
        let mut newest: Vec<(String, &str)> = Vec::new();
        for offer in &offers {
            let series = series(&offer.version);
            match newest.iter_mut().find(|(known, _)| *known == series) {
                Some(entry) => entry.1 = &offer.version,
                None => newest.push((series, &offer.version)),
            }
        }
        if newest.is_empty() {
            return "it has none at all".to_owned();
        }
        let list: Vec<String> = newest.iter().map(|(series, version)| format!("debian:{series} ({version})")).collect();
        format!("it has {}", list.join(", "))
    }

    /// The version of the distribution's own cloud kernel in a release, backports and other kernels left aside.
    pub(crate) fn default_version(&self, codename: &str, arch: &str) -> Option<&str> {
        let meta = format!("linux-image-cloud-{arch}");
        let suites = [codename.to_owned(), format!("{codename}-security"), format!("{codename}-updates")];
        self.packages
            .iter()
            .filter(|package| package.name == meta && suites.contains(&package.suite))
            .map(|package| package.version.as_str())
            .max_by(|a, b| compare(a, b))
    }
}

fn newest_last(a: &Offer, b: &Offer) -> Ordering {
    compare(&a.version, &b.version).then_with(|| compare(&a.release, &b.release))
}

/// The packages of a kernel: the image, and of what it depends on whatever is of the same release. `None` if the
/// mirror lacks one of them (some keep the image longer than its modules).
fn whole(image: &Package, release: &str, by_name: &HashMap<(&str, &str), &Package>) -> Option<Vec<Package>> {
    let mut packages = vec![image.clone()];
    let mut next = 0;
    while let Some(package) = packages.get(next).cloned() {
        next += 1;
        for dependency in package.depends.split(',') {
            let name = dependency.split(['(', '|', ':']).next().unwrap_or_default().trim();
            if !name.contains(release) || packages.iter().any(|p| p.name == name) {
                continue;
            }
            let version = dependency
                .split_once("(=")
                .and_then(|(_, rest)| rest.split(')').next())
                .map_or(package.version.as_str(), str::trim);
            packages.push((*by_name.get(&(name, version))?).clone());
        }
    }
    Some(packages)
}

const PARTS: [&str; 4] = ["linux-image-", "linux-binary-", "linux-modules-", "linux-base-"];

fn is_part_of_cloud_kernel(name: &str, arch: &str) -> bool {
    let stem = name.strip_suffix("-unsigned").unwrap_or(name);
    PARTS.iter().any(|part| name.starts_with(part)) && stem.ends_with(&format!("cloud-{arch}"))
}

/// The release of an image package and whether it is signed; `None` for metapackages and other packages.
fn image_release(name: &str, arch: &str) -> Option<(String, bool)> {
    let rest = name.strip_prefix("linux-image-")?;
    let (release, signed) = match rest.strip_suffix("-unsigned") {
        Some(release) => (release, false),
        None => (rest, true),
    };
    let version = release.strip_suffix(&format!("-cloud-{arch}"))?;
    let is_release = version.starts_with(|c: char| c.is_ascii_digit()) && version.matches('.').count() >= 2;
    is_release.then(|| (release.to_owned(), signed))
}

#[cfg(test)]
mod tests {
    use super::{DebianVersion, Index, Offer};

    const LIST: &str = "Package: linux-image-6.1.0-56-cloud-amd64\nVersion: 6.1.190-1\nSize: 10\nDepends: kmod\n\n\
        Package: linux-image-6.1.0-57-cloud-amd64\nVersion: 6.1.192-3\nSize: 20\nDepends: kmod, linux-base (>= 4.3~)\n\n\
        Package: linux-image-6.1.0-57-cloud-amd64-unsigned\nVersion: 6.1.192-3\nSize: 21\nDepends: kmod\n\n\
        Package: linux-image-6.1.0-57-cloud-amd64-dbg\nVersion: 6.1.192-3\nSize: 900\n\n\
        Package: linux-image-6.1.0-58-cloud-amd64-unsigned\nVersion: 6.1.193-1\nSize: 22\n\n\
        Package: linux-image-6.12-cloud-amd64\nVersion: 6.12.117-1~deb12u1\nSize: 1\n\n\
        Package: linux-image-cloud-amd64\nVersion: 6.1.192-3\nSize: 1\n\n\
        Package: linux-image-7.2.13+deb14-cloud-amd64\nVersion: 7.2.13-1\nSize: 1\nDepends: dracut | initramfs-tools (>= 0.1), linux-base-7.2.13+deb14-cloud-amd64 (= 7.2.13-1), linux-binary-7.2.13+deb14-cloud-amd64 (= 7.2.13-1)\n\n\
        Package: linux-binary-7.2.13+deb14-cloud-amd64\nVersion: 7.2.13-1\nSize: 100\nDepends: linux-base-7.2.13+deb14-cloud-amd64 (= 7.2.13-1)\n\n\
        Package: linux-base-7.2.13+deb14-cloud-amd64\nVersion: 7.2.13-1\nSize: 5\n\n\
        Package: linux-image-7.2.14+deb14-cloud-amd64\nVersion: 7.2.14-1\nDepends: linux-binary-7.2.14+deb14-cloud-amd64 (= 7.2.14-1)\n\n\
        Package: bash\nVersion: 1-1\n";

    fn index() -> Index {
        let mut index = Index::default();
        index.read_list(LIST, "bookworm", "amd64");
        index
    }

    fn pick(wanted: &str) -> Option<Offer> {
        let wanted = if wanted.contains('-') {
            DebianVersion::Exact(wanted.into())
        } else {
            DebianVersion::Series(wanted.into())
        };
        index().select(&wanted, "amd64")
    }

    #[test]
    fn a_series_is_its_newest_version_and_signed_where_possible() {
        let offer = pick("6.1.192").expect("an offer");
        assert_eq!(offer.release, "6.1.0-57-cloud-amd64");
        assert_eq!(offer.size(), 20);
        let newest = pick("6.1").expect("an offer");
        assert_eq!(newest.version, "6.1.193-1");
        assert_eq!(newest.packages[0].name, "linux-image-6.1.0-58-cloud-amd64-unsigned");
        assert_eq!(pick("6.1.190-1").expect("an offer").release, "6.1.0-56-cloud-amd64");
        assert_eq!(pick("6.12"), None, "a metapackage is no kernel");
    }

    #[test]
    fn the_packages_of_a_split_kernel_come_together_or_not_at_all() {
        let offer = pick("7.2").expect("an offer");
        assert_eq!(offer.version, "7.2.13-1", "7.2.14 lacks a package");
        assert_eq!(offer.size(), 106);
        assert_eq!(offer.packages.len(), 3);
    }

    #[test]
    fn what_is_missing_is_told_with_what_there_is() {
        let index = index();
        let text = index.describe_offers(&DebianVersion::Exact("6.1.1-1".into()), "amd64");
        assert!(text.contains("6.1.190-1, 6.1.192-3, 6.1.193-1"), "{text}");
        let text = index.describe_offers(&DebianVersion::Series("4.4".into()), "amd64");
        assert!(text.contains("debian:6.1 (6.1.193-1), debian:7.2 (7.2.13-1)"), "{text}");
    }

    #[test]
    fn the_default_is_what_the_metapackage_says() {
        let mut index = index();
        index.read_list(
            "Package: linux-image-cloud-amd64\nVersion: 6.12.95-1~bpo12+1\n",
            "bookworm-backports",
            "amd64",
        );
        assert_eq!(index.default_version("bookworm", "amd64"), Some("6.1.192-3"));
        assert_eq!(index.default_version("trixie", "amd64"), None);
    }
}
