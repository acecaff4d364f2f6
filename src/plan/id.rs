//! The stable id of a cell.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Deserializer, Serialize, Serializer, de};
use sha2::{Digest, Sha256};

use crate::settings::{Settings, canonical};

/// The id of a cell: the first 16 hexadecimal digits of the SHA-256 of the settings that differ from their defaults.
///
/// It depends on nothing else: not on the order of keys or axes, not on defaults that are written out.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct CellId(u64);

/// Why a text is not the id of a cell.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is not the id of a cell: it has 16 digits from 0 to 9 and a to f")]
pub struct ParseCellIdError(String);

impl CellId {
    /// The id of the cell that these settings decide.
    pub fn of(settings: &Settings) -> Self {
        let hash = Sha256::digest(canonical(settings).as_bytes());
        Self(hash.iter().take(8).fold(0, |id, &byte| id << 8 | u64::from(byte)))
    }
}

impl fmt::Display for CellId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&format!("{:016x}", self.0))
    }
}

impl FromStr for CellId {
    type Err = ParseCellIdError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let digits = text.len() == 16 && text.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'));
        u64::from_str_radix(text, 16).ok().filter(|_| digits).map(Self).ok_or_else(|| ParseCellIdError(text.to_owned()))
    }
}

impl Serialize for CellId {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for CellId {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(de::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::CellId;

    #[test]
    fn an_id_is_sixteen_digits() {
        let id = CellId(0x0f2c);
        assert_eq!(id.to_string(), "0000000000000f2c");
        assert_eq!("0000000000000f2c".parse(), Ok(id));
        assert_eq!(serde_json::to_string(&id).expect("serialises"), "\"0000000000000f2c\"");
        assert_eq!(serde_json::from_str::<CellId>("\"0000000000000f2c\"").expect("parses"), id);
        for wrong in ["f2c", "0000000000000F2C", "+000000000000f2c", ""] {
            assert!(wrong.parse::<CellId>().is_err(), "{wrong}");
        }
    }
}
