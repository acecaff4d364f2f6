//! What a kernel module says of itself: the `.modinfo` section, a list of `key=value`.

use object::{Object, ObjectSection};

/// What matters here of a module's `.modinfo`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct ModInfo {
    /// Modules whose symbols it uses.
    pub(crate) depends: Vec<String>,
    /// Modules to load before it, if there are any such.
    pub(crate) before: Vec<String>,
    /// Modules to load after it, if there are any such.
    pub(crate) after: Vec<String>,
    /// Other names it answers to.
    pub(crate) aliases: Vec<String>,
}

impl ModInfo {
    /// Reads it out of a module, decompressed.
    ///
    /// # Errors
    /// What is wrong with the module.
    pub(crate) fn of(module: &[u8]) -> Result<Self, String> {
        let file = object::File::parse(module).map_err(|e| e.to_string())?;
        let section = file.section_by_name(".modinfo").ok_or("it has no .modinfo section")?;
        Ok(Self::parse(section.data().map_err(|e| e.to_string())?))
    }

    fn parse(section: &[u8]) -> Self {
        let mut info = Self::default();
        for entry in section.split(|byte| *byte == 0) {
            let entry = String::from_utf8_lossy(entry);
            match entry.split_once('=') {
                Some(("depends", names)) => {
                    info.depends.extend(names.split(',').filter(|name| !name.is_empty()).map(normal));
                }
                Some(("softdep", text)) => {
                    let (before, after) = soft(text);
                    info.before.extend(before);
                    info.after.extend(after);
                }
                Some(("alias", alias)) => info.aliases.push(normal(alias)),
                _ => {}
            }
        }
        info
    }
}

/// `pre: a b post: c` to what comes before and what comes after.
fn soft(text: &str) -> (Vec<String>, Vec<String>) {
    let (mut before, mut after) = (Vec::new(), Vec::new());
    let mut into_after = false;
    for word in text.split_whitespace() {
        match word {
            "pre:" => into_after = false,
            "post:" => into_after = true,
            name if into_after => after.push(normal(name)),
            name => before.push(normal(name)),
        }
    }
    (before, after)
}

/// The kernel's own spelling of a module's name: `-` is `_`.
pub(crate) fn normal(name: &str) -> String {
    name.trim().replace('-', "_")
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "a test fails by panicking")]
pub(crate) mod tests {
    use super::ModInfo;

    /// The least that is an ELF object with that `.modinfo`.
    pub(crate) fn module(modinfo: &str) -> Vec<u8> {
        let info: Vec<u8> =
            modinfo.split(' ').flat_map(|entry| [entry.replace('|', " ").as_bytes(), b"\0"].concat()).collect();
        let names = b"\0.modinfo\0.shstrtab\0";
        let mut elf = b"\x7fELF\x02\x01\x01".to_vec();
        elf.resize(16, 0);
        elf.extend(1u16.to_le_bytes()); // ET_REL
        elf.extend(62u16.to_le_bytes()); // EM_X86_64
        elf.extend(1u32.to_le_bytes());
        elf.extend(0u64.to_le_bytes());
        elf.extend(0u64.to_le_bytes());
        let sections = 64 + info.len() + names.len();
        elf.extend((sections as u64).to_le_bytes());
        elf.extend(0u32.to_le_bytes());
        for half in [64u16, 0, 0, 64, 3, 2] {
            elf.extend(half.to_le_bytes());
        }
        elf.extend(&info);
        elf.extend(names);
        let mut section = |name: u32, kind: u32, offset: usize, size: usize| {
            elf.extend(name.to_le_bytes());
            elf.extend(kind.to_le_bytes());
            for word in [0, 0, offset as u64, size as u64, 0, 0, 0] {
                elf.extend(word.to_le_bytes());
            }
        };
        section(0, 0, 0, 0);
        section(1, 1, 64, info.len());
        section(10, 3, 64 + info.len(), names.len());
        elf.truncate(sections + 3 * 64);
        elf
    }

    #[test]
    fn needs_and_names_are_read() {
        let bytes =
            module("name=x depends=udp_tunnel,lib-crc softdep=pre:|crc32c|post:|z alias=net-pf-2 vermagic=6.1|SMP");
        let info = ModInfo::of(&bytes).unwrap();
        assert_eq!(info.depends, ["udp_tunnel", "lib_crc"]);
        assert_eq!(info.before, ["crc32c"]);
        assert_eq!(info.after, ["z"]);
        assert_eq!(info.aliases, ["net_pf_2"]);
        assert_eq!(ModInfo::of(&module("depends=")).unwrap(), ModInfo::default());
        assert!(ModInfo::of(b"text").is_err());
    }
}
