//! The legacy LZ4 frame, in which Debian's kernels up to 6.1 are compressed: a magic number, then blocks of at most
//! 8 MiB of plain bytes, each after its compressed length.

/// First bytes of a legacy LZ4 frame.
pub(crate) const MAGIC: [u8; 4] = [0x02, 0x21, 0x4c, 0x18];

/// The most that one block holds when decompressed.
const BLOCK: usize = 8 << 20;

/// Decompresses a legacy frame. Fewer than four bytes left over, or a length that is no block's, end it: the kernel's
/// build appends the plain size.
///
/// # Errors
/// A word on what is wrong with the frame.
pub(crate) fn decompress(frame: &[u8]) -> Result<Vec<u8>, &'static str> {
    let mut rest = frame.strip_prefix(&MAGIC).ok_or("not a legacy LZ4 frame")?;
    let mut out = Vec::new();
    while let Some((length, after)) = rest.split_first_chunk::<4>() {
        let length = usize::try_from(u32::from_le_bytes(*length)).map_err(|_| "block too long")?;
        if length > after.len() && after.is_empty() && !out.is_empty() {
            break;
        }
        let block = after.get(..length).ok_or("a block is cut short")?;
        decompress_block(block, &mut out)?;
        rest = &after[length..];
    }
    Ok(out)
}

fn decompress_block(block: &[u8], out: &mut Vec<u8>) -> Result<(), &'static str> {
    let start = out.len();
    let mut input = block;
    while let Some((&token, rest)) = input.split_first() {
        input = rest;
        let literals = length(usize::from(token >> 4), &mut input)?;
        out.extend_from_slice(input.get(..literals).ok_or("literals are cut short")?);
        input = &input[literals..];
        let Some((offset, rest)) = input.split_first_chunk::<2>() else {
            // The last sequence has literals only.
            return if input.is_empty() { Ok(()) } else { Err("an offset is cut short") };
        };
        input = rest;
        let offset = usize::from(u16::from_le_bytes(*offset));
        let matched = length(usize::from(token & 15), &mut input)? + 4;
        if offset == 0 || offset > out.len() - start {
            return Err("an offset points before its block");
        }
        if out.len() - start + matched > BLOCK {
            return Err("a block is longer than 8 MiB");
        }
        let from = out.len() - offset;
        if offset >= matched {
            out.extend_from_within(from..from + matched);
        } else {
            for at in from..from + matched {
                out.push(out[at]);
            }
        }
    }
    Ok(())
}

/// A length of four bits, continued in further bytes while these are 255.
fn length(nibble: usize, input: &mut &[u8]) -> Result<usize, &'static str> {
    let mut length = nibble;
    if nibble == 15 {
        loop {
            let (&more, rest) = input.split_first().ok_or("a length is cut short")?;
            *input = rest;
            length += usize::from(more);
            if more != 255 {
                break;
            }
        }
    }
    Ok(length)
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "a test fails by panicking")]
mod tests {
    use super::{MAGIC, decompress};

    fn frame(blocks: &[&[u8]]) -> Vec<u8> {
        let mut frame = MAGIC.to_vec();
        for block in blocks {
            frame.extend(u32::try_from(block.len()).unwrap().to_le_bytes());
            frame.extend(*block);
        }
        frame
    }

    #[test]
    fn literals_matches_and_overlaps_come_out_right() {
        // "abc", then 3 back for 9 (overlapping), then the literals "xy" to end the block.
        let block = [0x35, b'a', b'b', b'c', 3, 0, 0x20, b'x', b'y'];
        let mut framed = frame(&[&block, &[0x10, b'!']]);
        assert_eq!(decompress(&framed).unwrap(), b"abcabcabcabcxy!");
        framed.extend(15u32.to_le_bytes()); // The plain size that the kernel's build appends.
        assert_eq!(decompress(&framed).unwrap(), b"abcabcabcabcxy!");
    }

    #[test]
    fn long_lengths_are_continued() {
        let mut block = vec![0xf0, 255, 3];
        block.extend([b'z'; 273]);
        assert_eq!(decompress(&frame(&[&block])).unwrap(), [b'z'; 273]);
    }

    #[test]
    fn damage_is_told() {
        assert!(decompress(b"nothing").is_err());
        assert!(decompress(&frame(&[&[0x10]])).is_err());
        assert!(decompress(&frame(&[&[0x14, b'a', 9, 0]])).is_err());
        let cut = frame(&[&[0x10, b'a']]);
        assert!(decompress(&cut[..cut.len() - 1]).is_err());
    }
}
