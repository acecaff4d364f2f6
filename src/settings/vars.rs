//! Values of the user's own, which stand in the commands of exec, and the keys that set them: one for each name below `var`, made when it is
//! asked for.

use super::keys::made;
use super::{Key, Kind, Settings, Value};

/// What the path of every such key begins with.
pub(super) const PREFIX: &str = "var.";

/// Whether a name can be that of such a value: it stands in braces in a command, and on the command line before a `=`.
fn is_name(name: &str) -> bool {
    name.starts_with(|c: char| c.is_ascii_alphabetic())
        && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-'))
}

/// Sets one, or takes it out.
pub(super) fn put(settings: &mut Settings, name: &str, value: &Value) {
    if value.is_default() {
        settings.vars.remove(name);
    } else {
        settings.vars.insert(name.to_owned(), value.clone());
    }
}

/// What one is set to, or `"default"`.
pub(super) fn value(settings: &Settings, name: &str) -> Value {
    settings.vars.get(name).cloned().unwrap_or_else(Value::kernel_default)
}

/// The key of that path, if it names such a value.
pub(super) fn find(path: &str) -> Option<&'static Key> {
    is_name(path.strip_prefix(PREFIX)?)
        .then(|| made(path, Kind::Free, "value of your own, which stands in commands as `{var.NAME}` or `{NAME}`"))
}

#[cfg(test)]
mod tests {
    use super::find;
    use crate::settings::{Settings, Value, canonical};

    #[test]
    fn a_value_of_ones_own_is_a_key_like_any_other() {
        let key = find("var.window").expect("a key");
        assert!(std::ptr::eq(key, find("var.window").expect("the same one")));
        let mut settings = Settings::default();
        for typed in [Value::Text("64K".into()), Value::Int(7), Value::Bool(false)] {
            let value = key.kind.check(&typed).expect("a value");
            assert_eq!(value, typed, "as it is written");
            key.put(&mut settings, &value);
            assert_eq!(key.read(&settings), Some(value));
        }
        assert_eq!(canonical(&settings), "var.window=false\n");
        key.put(&mut settings, &Value::kernel_default());
        assert_eq!(settings, Settings::default());
        for path in ["var", "var.", "var.a.b", "var.1a", "var.a b", "vars.a"] {
            assert!(find(path).is_none(), "{path}");
        }
    }
}
