//! What a program writes: read as it comes, so that it never waits, and kept up to a bound.

use std::collections::VecDeque;
use std::io::{self, ErrorKind, Read};

use crate::measurement::Output;

use super::{KEPT, MAX_DRAIN, stored};

/// Most bytes that are read before other things are looked at.
const BATCH: usize = 64 << 10;

/// One output of a program.
#[derive(Debug, Default)]
pub(super) struct Capture {
    /// The first bytes.
    head: Vec<u8>,
    /// The last bytes after these.
    tail: VecDeque<u8>,
    /// All bytes that came.
    bytes: u64,
    /// Whether nobody can write any more.
    over: bool,
}

impl Capture {
    /// Whether nobody can write any more.
    pub(super) const fn is_over(&self) -> bool {
        self.over
    }

    /// Reads what is there, up to a bound.
    pub(super) fn read(&mut self, from: &mut impl Read) -> io::Result<()> {
        self.read_up_to(from, BATCH).map(drop)
    }

    /// Reads what is left, up to a larger bound: somebody may be writing still.
    pub(super) fn drain(&mut self, from: &mut impl Read) {
        let mut left = MAX_DRAIN;
        while !self.over && left > 0 {
            match self.read_up_to(from, BATCH.min(left)) {
                Ok(0) | Err(_) => return,
                Ok(read) => left -= read,
            }
        }
    }

    fn read_up_to(&mut self, from: &mut impl Read, most: usize) -> io::Result<usize> {
        let mut buffer = [0; 16 << 10];
        let mut read = 0;
        while read < most {
            match from.read(&mut buffer) {
                Ok(0) => {
                    self.over = true;
                    break;
                }
                Ok(len) => {
                    self.add(&buffer[..len]);
                    read += len;
                }
                Err(error) if error.kind() == ErrorKind::WouldBlock => break,
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(read)
    }

    fn add(&mut self, bytes: &[u8]) {
        self.bytes += bytes.len() as u64;
        let (first, rest) = bytes.split_at(bytes.len().min(KEPT - self.head.len()));
        self.head.extend_from_slice(first);
        self.tail.extend(rest);
        let beyond = self.tail.len().saturating_sub(KEPT);
        self.tail.drain(..beyond);
    }

    /// All that is kept, and whether that is all that came. What is no UTF-8 is replaced.
    pub(super) fn text(&self) -> (String, bool) {
        let whole = self.bytes == (self.head.len() + self.tail.len()) as u64;
        let mut all = self.head.clone();
        if !whole {
            // What was left out divides lines.
            all.push(b'\n');
        }
        all.extend(&self.tail);
        (String::from_utf8_lossy(&all).into_owned(), whole)
    }

    /// How many bytes came.
    pub(super) const fn bytes(&self) -> u64 {
        self.bytes
    }

    /// The lines of the begin from a byte on, the last one perhaps not whole yet, and the byte at which that begins.
    pub(super) fn lines_from(&self, from: usize) -> (Vec<String>, usize) {
        let new = &self.head[from.min(self.head.len())..];
        let lines = new
            .split(|&byte| byte == b'\n')
            .map(|line| String::from_utf8_lossy(line.strip_suffix(b"\r").unwrap_or(line)).into_owned());
        let last = new.iter().rposition(|&byte| byte == b'\n').map_or(0, |at| at + 1);
        (lines.collect(), from + last)
    }

    /// What is stored of it.
    pub(super) fn output(&self) -> Output {
        let tail: Vec<u8> = self.tail.iter().copied().collect();
        stored(&self.head, &tail, self.bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::Capture;
    use crate::measurement::Output;
    use crate::workload::exec::KEPT;

    #[test]
    fn a_short_output_is_kept_whole() {
        let mut capture = Capture::default();
        capture.read(&mut &b"one\r\ntwo\nthr"[..]).expect("reads");
        assert!(capture.is_over());
        assert_eq!(capture.text(), ("one\r\ntwo\nthr".to_owned(), true));
        assert_eq!(capture.output(), Output { bytes: 12, head: "one\r\ntwo\nthr".into(), ..Output::default() });
        assert_eq!(capture.lines_from(0), (vec!["one".into(), "two".into(), "thr".into()], 9));
        assert_eq!(capture.lines_from(9), (vec!["thr".into()], 9));
    }

    #[test]
    fn a_flood_is_kept_at_both_ends() {
        let mut capture = Capture::default();
        let flood: Vec<u8> =
            (0..5 * KEPT).map(|at| if at % 64 == 63 { b'\n' } else { b'a' + (at / KEPT) as u8 }).collect();
        let mut rest = flood.as_slice();
        while !capture.is_over() {
            capture.read(&mut rest).expect("reads");
        }
        let (text, whole) = capture.text();
        assert!(!whole && text.len() == 2 * KEPT + 1 && text.starts_with("aaa") && text.ends_with("eee\n"));
        let output = capture.output();
        assert_eq!((output.head.len(), output.tail.len()), (Output::HEAD, Output::TAIL));
        assert_eq!(output.bytes, 5 * KEPT as u64);
        assert_eq!(output.left_out_bytes + (Output::HEAD + Output::TAIL) as u64, output.bytes);
    }
}
