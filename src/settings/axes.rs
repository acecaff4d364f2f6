//! Where a cell lies on the axes of its sweep.

use std::fmt;

use serde::de::{MapAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::{Value, find};

/// The value of each axis, in the order of the sweep file. A map in records.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Axes(pub Vec<(String, Value)>);

impl Axes {
    /// Whether there are none.
    pub const fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The value on the axis of that name.
    pub fn get(&self, name: &str) -> Option<&Value> {
        self.0.iter().find(|(axis, _)| axis == name).map(|(_, value)| value)
    }
}

impl fmt::Display for Axes {
    /// As a person reads it: `rcvbuf=1 KiB nodelay=on`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, (name, value)) in self.0.iter().enumerate() {
            let shown = find(name).map_or_else(|| value.to_string(), |key| key.kind.show(value));
            write!(f, "{}{name}={shown}", if index == 0 { "" } else { " " })?;
        }
        Ok(())
    }
}

impl Serialize for Axes {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.0.iter().map(|(name, value)| (name, value)))
    }
}

impl<'de> Deserialize<'de> for Axes {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct InOrder;
        impl<'de> Visitor<'de> for InOrder {
            type Value = Axes;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a map from axis to value")
            }

            fn visit_map<M: MapAccess<'de>>(self, mut map: M) -> Result<Axes, M::Error> {
                let mut axes = Vec::new();
                while let Some(entry) = map.next_entry()? {
                    axes.push(entry);
                }
                Ok(Axes(axes))
            }
        }
        deserializer.deserialize_map(InOrder)
    }
}

#[cfg(test)]
mod tests {
    use super::{Axes, Value};

    #[test]
    fn order_survives_json() {
        let axes = Axes(vec![("rcvbuf".into(), Value::Int(1024)), ("nodelay".into(), Value::Bool(true))]);
        let json = serde_json::to_string(&axes).expect("serialises");
        assert_eq!(json, r#"{"rcvbuf":1024,"nodelay":true}"#);
        assert_eq!(serde_json::from_str::<Axes>(&json).expect("parses"), axes);
        assert_eq!(axes.to_string(), "rcvbuf=1 KiB nodelay=on");
    }
}
