//! The name of a kernel image as a sweep file gives it.

use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// Which kernel to boot. Parsed from `kernel.image`; what is displayed parses to the same name again.
///
/// `auto` is not among them: the caller turns it into one of these.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub enum ImageName {
    /// `host`: the kernel that the host runs.
    Host,
    /// `debian:…`: a cloud kernel of Debian.
    Debian(DebianVersion),
    /// A `vmlinuz`, a `.deb`, or a folder of `.deb` files.
    Path(PathBuf),
}

/// Which of Debian's cloud kernels.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum DebianVersion {
    /// `6.1` or `6.1.192`: the newest package of that series.
    Series(String),
    /// `6.1.192-3`: that package version and no other.
    Exact(String),
}

impl DebianVersion {
    /// Whether a package version is the one meant, or of the series meant.
    pub fn matches(&self, package_version: &str) -> bool {
        match self {
            Self::Exact(exact) => exact == package_version,
            Self::Series(series) => package_version
                .strip_prefix(series.as_str())
                .is_some_and(|rest| !rest.starts_with(|c: char| c.is_ascii_digit())),
        }
    }

    fn parse(text: &str) -> Option<Self> {
        let allowed = |c: char| c.is_ascii_alphanumeric() || ".+~-:".contains(c);
        let (upstream, revision) = match text.rsplit_once('-') {
            Some((upstream, revision)) => (upstream, Some(revision)),
            None => (text, None),
        };
        match revision {
            Some(revision) => (upstream.starts_with(|c: char| c.is_ascii_digit())
                && upstream.contains('.')
                && !revision.is_empty()
                && text.chars().all(allowed))
            .then(|| Self::Exact(text.to_owned())),
            None => is_series(text).then(|| Self::Series(text.to_owned())),
        }
    }
}

impl fmt::Display for DebianVersion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Series(text) | Self::Exact(text) => f.write_str(text),
        }
    }
}

/// `6.1` or `6.1.192`.
fn is_series(text: &str) -> bool {
    let parts: Vec<&str> = text.split('.').collect();
    (2..=3).contains(&parts.len())
        && parts.iter().all(|part| !part.is_empty() && part.bytes().all(|b| b.is_ascii_digit()))
}

/// The forms an image name can have, for messages.
const FORMS: &str = "`auto`, `host`, `debian:SERIES` (debian:6.1), `debian:VERSION` (debian:6.1.192-3), or a path with a `/` in it to \
                     a vmlinuz, a .deb or a folder of .debs";

/// Why a text is not the name of an image.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ParseImageError {
    /// Nothing was given.
    #[error("the kernel image is empty; it is one of {FORMS}")]
    Empty,
    /// `auto` where it has to be decided already.
    #[error("`auto` is to be resolved before a kernel is looked for; name one of {FORMS}")]
    Auto,
    /// What follows `debian:` is no version.
    #[error("`{0}` is neither a kernel series such as `debian:6.1` nor a package version such as `debian:6.1.192-3`")]
    Version(String),
    /// It has none of the forms.
    #[error("`{text}` is not a kernel image{}; it is one of {FORMS}", hint.as_ref().map(|h| format!(" (did you mean `{h}`?)")).unwrap_or_default())]
    Form {
        /// What was given.
        text: String,
        /// What may have been meant.
        hint: Option<String>,
    },
}

impl FromStr for ImageName {
    type Err = ParseImageError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        match text {
            "" => return Err(ParseImageError::Empty),
            "auto" => return Err(ParseImageError::Auto),
            "host" => return Ok(Self::Host),
            _ => {}
        }
        if let Some(version) = text.strip_prefix("debian:") {
            return DebianVersion::parse(version)
                .map(Self::Debian)
                .ok_or_else(|| ParseImageError::Version(text.to_owned()));
        }
        let is_deb = std::path::Path::new(text).extension().is_some_and(|extension| extension == "deb");
        if text.contains('/') || is_deb {
            return Ok(Self::Path(PathBuf::from(text)));
        }
        Err(ParseImageError::Form { text: text.to_owned(), hint: hint(text) })
    }
}

/// What someone who wrote `text` may have meant.
fn hint(text: &str) -> Option<String> {
    let lower = text.to_ascii_lowercase();
    let version =
        lower.strip_prefix("debian").map_or(lower.as_str(), |rest| rest.trim_start_matches([':', '-', ' ', '=']));
    if DebianVersion::parse(version).is_some() {
        return Some(format!("debian:{version}"));
    }
    if lower.starts_with("vmlinu") {
        return Some(format!("./{text}"));
    }
    ["auto", "host"].into_iter().find(|word| strsim::damerau_levenshtein(word, &lower) <= 1).map(str::to_owned)
}

impl fmt::Display for ImageName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Host => f.write_str("host"),
            Self::Debian(version) => write!(f, "debian:{version}"),
            Self::Path(path) => write!(f, "{}", path.display()),
        }
    }
}

impl TryFrom<String> for ImageName {
    type Error = ParseImageError;

    fn try_from(text: String) -> Result<Self, Self::Error> {
        text.parse()
    }
}

impl From<ImageName> for String {
    fn from(name: ImageName) -> Self {
        name.to_string()
    }
}

#[cfg(test)]
mod tests {
    use super::{DebianVersion, ImageName};

    #[test]
    fn every_form_parses_and_displays_as_it_was_written() {
        for text in [
            "host",
            "debian:6.1",
            "debian:5.10",
            "debian:6.12.117",
            "debian:6.1.192-3",
            "debian:6.12.95-1~bpo12+1",
            "/boot/vmlinuz-6.1",
            "./vmlinuz",
            "linux-image-6.1.deb",
            "debs/",
        ] {
            let name: ImageName = text.parse().unwrap_or_else(|e| panic!("{text}: {e}"));
            assert_eq!(name.to_string(), text);
            assert_eq!(name.to_string().parse(), Ok(name));
        }
        assert_eq!("debian:6.1".parse(), Ok(ImageName::Debian(DebianVersion::Series("6.1".into()))));
        assert_eq!("debian:6.1.192-3".parse(), Ok(ImageName::Debian(DebianVersion::Exact("6.1.192-3".into()))));
    }

    #[test]
    fn what_is_no_name_is_refused_with_the_forms_and_a_hint() {
        let message =
            |text: &str| text.parse::<ImageName>().err().unwrap_or_else(|| panic!("`{text}` parsed")).to_string();
        assert!(message("").contains("debian:SERIES"));
        assert!(message("auto").contains("resolved"));
        assert!(message("6.1").contains("did you mean `debian:6.1`"));
        assert!(message("debian-6.12").contains("did you mean `debian:6.12`"));
        assert!(message("hots").contains("did you mean `host`"));
        assert!(message("vmlinuz-6.1").contains("did you mean `./vmlinuz-6.1`"));
        for bad in ["debian:", "debian:6", "debian:6.", "debian:bookworm", "debian:-1", "debian:6.1.1-"] {
            assert!(message(bad).contains(&format!("`{bad}`")), "{bad}");
        }
    }

    #[test]
    fn a_series_is_not_a_prefix_of_digits() {
        let series = DebianVersion::Series("6.1".into());
        assert!(series.matches("6.1.192-3"));
        assert!(series.matches("6.1-1"));
        assert!(!series.matches("6.12.117-1"));
        assert!(!DebianVersion::Series("6.1.19".into()).matches("6.1.192-3"));
        assert!(!DebianVersion::Exact("6.1.192-3".into()).matches("6.1.192-30"));
    }
}
