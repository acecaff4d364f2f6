//! The first line of a script: which program runs it.

/// What the line after `#!` asks for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Interpreter {
    /// The program, as it is written.
    pub(super) program: String,
    /// What `env` looks up on the `PATH`, where the program is `env`.
    pub(super) looked_up: Option<String>,
}

/// How much of the line the kernel reads (`BINPRM_BUF_SIZE`, `include/uapi/linux/binfmts.h`).
const LINE: usize = 256;

/// The interpreter of a file that begins with these bytes, if it is a script.
pub(super) fn interpreter(bytes: &[u8]) -> Option<Interpreter> {
    let line = bytes.strip_prefix(b"#!")?;
    let line = &line[..line.len().min(LINE - 2)];
    let line = String::from_utf8_lossy(line.split(|&byte| byte == b'\n').next().unwrap_or_default()).into_owned();
    let mut words = line.split_whitespace();
    let program = words.next()?.to_owned();
    let is_env = program.rsplit('/').next() == Some("env");
    // Options and variables of `env` come before the program: `env -S X=1 erl`.
    let looked_up = words.find(|word| !word.starts_with('-') && !word.contains('=')).filter(|_| is_env);
    Some(Interpreter { looked_up: looked_up.map(str::to_owned), program })
}

#[cfg(test)]
mod tests {
    use super::{Interpreter, interpreter};

    #[test]
    fn the_program_and_what_env_looks_up_are_found() {
        let of = |program: &str, looked_up: Option<&str>| {
            Some(Interpreter { program: program.to_owned(), looked_up: looked_up.map(str::to_owned) })
        };
        assert_eq!(interpreter(b"#!/bin/sh\necho"), of("/bin/sh", None));
        assert_eq!(interpreter(b"#! /bin/sh -e x\n"), of("/bin/sh", None));
        assert_eq!(interpreter(b"#!/usr/bin/env python3\n"), of("/usr/bin/env", Some("python3")));
        assert_eq!(interpreter(b"#!/usr/bin/env -S -i A=b erl +S 1\n"), of("/usr/bin/env", Some("erl")));
        assert_eq!(interpreter(b"#!/usr/bin/env\n"), of("/usr/bin/env", None));
        for no in [&b"#!\n"[..], b"#!  \nx", b"\x7fELF", b"", b"#", b"echo #!/bin/sh"] {
            assert_eq!(interpreter(no), None, "{no:?}");
        }
    }

    #[test]
    fn a_line_without_an_end_is_read_as_far_as_the_kernel_does() {
        let long = [b"#!/bin/".to_vec(), vec![b'x'; 5000]].concat();
        assert_eq!(interpreter(&long).map(|found| found.program.len()), Some(254));
    }
}
