//! Whether a sweep that is stored with a run says what its file says: asked before programs run, as somebody else may have made the run.

use crate::settings::{Key, Kind, Value, find};

use super::sweep::Sweep;

impl Sweep {
    /// Why this sweep, which was stored with a run, does not run the programs of `file`, if it does not. Numbers, switches and words of a
    /// fixed set may be other ones, as `--set` makes them. A text that is not in the file could be any part of a command.
    pub fn strays_from(&self, file: &Self) -> Option<String> {
        if self.exec != file.exec {
            let named = self.exec.iter().zip(&file.exec).flat_map(|(was, is)| was.differences(is));
            let named: Vec<&str> = named.map(|(name, ..)| name).collect();
            let which = if named.is_empty() { String::new() } else { format!(" ({})", named.join(", ")) };
            return Some(format!("the programs in the manifest are not those of the file{which}"));
        }
        let exec = file.exec.as_deref()?;
        let named = exec.keys();
        // A key for both ends is what the one for an end stands for where only that is set.
        let is_named = |path: &str| named.iter().any(|key| key.path == path || both_ends(key).as_deref() == Some(path));
        let (stored, own) = (self.values(), file.values());
        for &(path, value) in stored.iter().filter(|pair| !own.contains(pair)) {
            let known = find(path).filter(|key| key.kind.check(value).as_ref() == Ok(value));
            let Some(key) = known else { return Some(format!("`{value}` in the manifest is no value of `{path}`")) };
            let is_open = matches!(key.kind, Kind::Text | Kind::Free | Kind::Sysctl) && value.text().is_some();
            if is_open && !value.is_default() && is_named(path) {
                return Some(format!("`{path}` was `{value}`, which is not in the file, and stands in a command"));
            }
        }
        let gone = own.iter().find(|(path, _)| is_named(path) && !stored.iter().any(|(other, _)| other == path));
        if let Some((path, _)) = gone {
            return Some(format!("`{path}` is set in the file and stands in a command, and was not set in the run"));
        }
        let combined = self.zip == file.zip && file.exclude.iter().all(|left_out| self.exclude.contains(left_out));
        (!combined).then(|| "the manifest combines values that the file does not ([[zip]], [[exclude]])".to_owned())
    }

    /// Each path and value of any cell.
    fn values(&self) -> Vec<(&str, &Value)> {
        let fixed = self.fixed.iter().map(|(path, value)| (path.as_str(), value));
        let axes = self.axes.iter().flat_map(|axis| axis.values.iter().map(|value| (axis.path.as_str(), value)));
        let included = self.include.iter().flat_map(|included| {
            self.axes.iter().filter_map(|axis| Some((axis.path.as_str(), included.get(&axis.name)?)))
        });
        fixed.chain(axes).chain(included).collect()
    }
}

/// The path of the key for both ends, of one that is for an end.
fn both_ends(key: &Key) -> Option<String> {
    [".client.", ".server."].iter().find(|end| key.path.contains(*end)).map(|end| key.path.replacen(end, ".", 1))
}

#[cfg(test)]
mod tests {
    use super::Sweep;
    use crate::settings::Value;
    use crate::spec::Overrides;

    const FILE: &str = r#"
name = "own"
[workload]
kind = "exec"
[workload.server]
command = ["server", "-w", "{rcvbuf}"]
[workload.client]
command = ["sh", "-c", "{script}", ["-C", "{socket.tcp.congestion}"]]
env = { MODE = "{mode}" }
[var]
script = "true"
[axes]
rcvbuf = ["64KiB", "128KiB"]
"var.mode" = ["a", "b"]
[[exclude]]
rcvbuf = "64KiB"
"var.mode" = "b"
"#;

    fn with(set: &[(&str, &[&str])], filter: &[(&str, &[&str])]) -> Sweep {
        let owned = |pairs: &[(&str, &[&str])]| {
            let texts = |texts: &[&str]| texts.iter().map(|&text| text.to_owned()).collect();
            pairs.iter().map(|(name, values)| ((*name).to_owned(), texts(values))).collect()
        };
        let overrides = Overrides { set: owned(set), filter: owned(filter), ..Overrides::default() };
        Sweep::parse("/somewhere/own.toml", FILE, &overrides).expect("a sweep")
    }

    fn strays(stored: &Sweep) -> Option<String> {
        stored.strays_from(&with(&[], &[]))
    }

    #[test]
    fn what_the_command_line_chose_is_the_files_own_but_for_texts_in_commands() {
        assert_eq!(strays(&with(&[], &[])), None);
        assert_eq!(strays(&with(&[], &[("var.mode", &["a"])])), None);
        assert_eq!(strays(&with(&[], &[("rcvbuf", &["128KiB"])])), None);
        assert_eq!(strays(&with(&[("rcvbuf", &["1KiB"]), ("run.repeat", &["9"])], &[])), None);
        assert_eq!(strays(&with(&[("kernel.image", &["debian:6.12"])], &[])), None, "stands in no command");
        for (key, value) in [("var.script", "rm -rf /"), ("var.mode", "c"), ("socket.tcp.congestion", "x; reboot")] {
            let told = strays(&with(&[(key, &[value])], &[])).expect("not the file's");
            assert!(told.contains(key) && told.contains(value) && told.contains("stands in a command"), "{told}");
        }
    }

    #[test]
    fn what_was_written_into_a_manifest_is_told_from_what_the_file_says() {
        let file = with(&[], &[]);
        let mut forged = file.clone();
        let exec = forged.exec.as_mut().expect("programs");
        exec.client.command = vec![crate::spec::Argument::One("reboot".to_owned())];
        let told = strays(&forged).expect("other programs");
        assert_eq!(told, "the programs in the manifest are not those of the file (workload.client)");

        let mut forged = file.clone();
        forged.exec.as_mut().expect("programs").dir = "/elsewhere".to_owned();
        assert!(strays(&forged).is_some(), "their paths count from there");

        let mut forged = file.clone();
        forged.axes[0].values[0] = Value::Text("1; reboot".to_owned());
        assert!(strays(&forged).expect("no size").contains("is no value of `socket.rcvbuf`"));

        let mut forged = file.clone();
        forged.include.push(crate::settings::Axes(vec![("var.mode".to_owned(), Value::Text("reboot".to_owned()))]));
        assert!(strays(&forged).is_some(), "an included cell counts");

        let mut forged = file.clone();
        forged.fixed.retain(|(path, _)| path != "var.script");
        assert!(strays(&forged).expect("gone").contains("`var.script` is set in the file"));

        let mut forged = file;
        forged.exclude.clear();
        assert!(strays(&forged).expect("left out by the file").contains("[[exclude]]"));
    }
}
