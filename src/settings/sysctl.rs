//! Sysctls of a cell, and the keys that set them. There are as many as the kernel has, so their keys are made when they are
//! asked for, and not listed in the table.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::keys::made;
use super::{Key, Kind, Value};

/// What the path of every sysctl's key begins with.
pub(super) const PREFIX: &str = "sysctl.";

/// Sysctls to set, by name (`net.ipv4.tcp_rmem`), each with its value as it is written below /proc/sys.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Sysctls(pub BTreeMap<String, String>);

impl Sysctls {
    /// Sets one, or leaves it to the kernel.
    pub(super) fn put(&mut self, name: &str, value: &Value) {
        if value.is_default() {
            self.0.remove(name);
        } else {
            self.0.insert(name.to_owned(), value.to_string());
        }
    }

    /// What one is set to, or `"default"`.
    pub(super) fn value(&self, name: &str) -> Value {
        self.0.get(name).map_or_else(Value::kernel_default, |value| {
            Kind::Sysctl.check(&Value::Text(value.clone())).unwrap_or_else(|_| Value::Text(value.clone()))
        })
    }

    /// Whether nothing is set.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

/// Whether a name can be that of a sysctl of the network: `net.`, then parts of letters, digits, `_` and `-`. Anything else
/// could lead out of /proc/sys/net.
fn is_name(name: &str) -> bool {
    let fits = |part: &str| {
        !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-'))
    };
    name.strip_prefix("net.").is_some_and(|rest| rest.split('.').all(fits))
}

/// The key of that path, if it names a sysctl of the network. Whether a kernel has it is for the kernel to say.
pub(super) fn find(path: &str) -> Option<&'static Key> {
    is_name(path.strip_prefix(PREFIX)?).then(|| {
        made(path, Kind::Sysctl, "kernel parameter of that name (/proc/sys/net), in the namespaces of both ends")
    })
}

#[cfg(test)]
mod tests {
    use super::find;
    use crate::settings::{Settings, Value, canonical};

    #[test]
    fn a_sysctl_is_a_key_like_any_other() {
        let key = find("sysctl.net.ipv4.tcp_rmem").expect("a key");
        assert!(std::ptr::eq(key, find("sysctl.net.ipv4.tcp_rmem").expect("the same one")));
        let mut settings = Settings::default();
        let value = key.kind.check(&Value::Text("4096\t131072 6291456".into())).expect("a value");
        key.put(&mut settings, &value);
        assert_eq!(key.read(&settings), Some(value));
        assert_eq!(canonical(&settings), "sysctl.net.ipv4.tcp_rmem=4096 131072 6291456\n");
        key.put(&mut settings, &Value::kernel_default());
        assert_eq!(settings, Settings::default());
    }

    #[test]
    fn nothing_leads_out_of_the_network() {
        for path in [
            "net.ipv4.tcp_rmem",
            "sysctl.kernel.panic",
            "sysctl.net",
            "sysctl.net.",
            "sysctl.net...kernel.panic",
            "sysctl.net.ipv4/../../kernel",
            "sysctl.net.ipv4.tcp rmem",
        ] {
            assert!(find(path).is_none(), "{path}");
        }
    }
}
