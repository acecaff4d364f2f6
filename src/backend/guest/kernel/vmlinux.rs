//! The uncompressed ELF kernel out of a bzImage.
//!
//! Booted through PVH it spares an emulated machine the decompression, which is about a second of a boot. Debian's 5.10
//! and 6.1 are compressed with LZ4, 6.12 and later with Zstandard.

use object::Endianness;
use object::elf::{FileHeader64, PT_NOTE};
use object::read::elf::{FileHeader, ProgramHeader};

use super::decompress::{Compression, DecompressError, decompress};

/// Type of the note that gives the 32-bit entry point for PVH.
const XEN_ELFNOTE_PHYS32_ENTRY: u32 = 18;

/// Why there is no uncompressed image to boot. The compressed one can still be booted.
#[derive(Debug, thiserror::Error)]
pub enum VmlinuxError {
    /// It is no bzImage: another architecture's image, for example.
    #[error("it is no bzImage with a payload (boot protocol 2.08 or later)")]
    NotABzImage,
    /// The header points outside the file.
    #[error("its header says the payload is at {offset}, {length} bytes, which is beyond the end of the file")]
    Truncated {
        /// Offset of the payload in the file.
        offset: usize,
        /// Its length.
        length: usize,
    },
    /// The payload could not be decompressed.
    #[error("its payload: {0}")]
    Payload(#[from] DecompressError),
    /// The payload is compressed with something unknown, or is no ELF file.
    #[error("its payload is no ELF file for 64 bits")]
    NotElf,
    /// The kernel cannot be entered through PVH.
    #[error("it has no PVH entry point (CONFIG_PVH is not set)")]
    NoPvh,
}

/// The ELF kernel in a bzImage; an ELF kernel is given back as it is. Checked to have a PVH entry point.
///
/// # Errors
/// If it is no bzImage, is compressed with something unsupported, is damaged, or has no PVH entry point.
pub fn extract(image: Vec<u8>) -> Result<Vec<u8>, VmlinuxError> {
    let elf = if image.starts_with(b"\x7fELF") { image } else { unpack(&image)? };
    if has_pvh_entry(&elf).ok_or(VmlinuxError::NotElf)? { Ok(elf) } else { Err(VmlinuxError::NoPvh) }
}

/// What the payload of a bzImage is compressed with.
///
/// # Errors
/// If it is no bzImage.
pub fn compression(image: &[u8]) -> Result<Compression, VmlinuxError> {
    payload(image).map(Compression::of)
}

fn unpack(image: &[u8]) -> Result<Vec<u8>, VmlinuxError> {
    let payload = payload(image)?;
    if Compression::of(payload) == Compression::None && !payload.starts_with(b"\x7fELF") {
        return Err(VmlinuxError::NotElf);
    }
    Ok(decompress(payload.to_vec())?)
}

fn payload(image: &[u8]) -> Result<&[u8], VmlinuxError> {
    let word =
        |at: usize| -> Option<usize> { usize::try_from(u32::from_le_bytes(*image.get(at..)?.first_chunk()?)).ok() };
    let version = image.get(0x206..).and_then(|rest| rest.first_chunk()).map(|v| u16::from_le_bytes(*v));
    let (Some(b"HdrS"), Some(0x208..), Some(offset), Some(length)) =
        (image.get(0x202..0x206), version, word(0x248), word(0x24c))
    else {
        return Err(VmlinuxError::NotABzImage);
    };
    // Zero sectors of setup code mean four, as they always have.
    let sectors = match image[0x1f1] {
        0 => 4,
        sectors => usize::from(sectors),
    };
    let offset = (sectors + 1) * 512 + offset;
    image
        .get(offset..offset.saturating_add(length))
        .filter(|payload| !payload.is_empty())
        .ok_or(VmlinuxError::Truncated { offset, length })
}

/// Whether an ELF file has Xen's `PHYS32_ENTRY` note; `None` if it is no ELF file.
fn has_pvh_entry(elf: &[u8]) -> Option<bool> {
    let header = FileHeader64::<Endianness>::parse(elf).ok()?;
    let endian = header.endian().ok()?;
    for segment in header.program_headers(endian, elf).ok()? {
        if segment.p_type(endian) != PT_NOTE {
            continue;
        }
        let Ok(Some(mut notes)) = segment.notes(endian, elf) else {
            continue;
        };
        while let Ok(Some(note)) = notes.next() {
            if note.name() == b"Xen" && note.n_type(endian).0 == XEN_ELFNOTE_PHYS32_ENTRY {
                return Some(true);
            }
        }
    }
    Some(false)
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "a test fails by panicking")]
mod tests {
    use super::{Compression, VmlinuxError, XEN_ELFNOTE_PHYS32_ENTRY, compression, extract};
    use std::io::Write;

    /// An ELF file with one segment of notes.
    fn elf(note_type: u32) -> Vec<u8> {
        let mut elf = b"\x7fELF\x02\x01\x01".to_vec();
        elf.resize(16, 0);
        elf.extend(2u16.to_le_bytes()); // ET_EXEC
        elf.extend(62u16.to_le_bytes()); // EM_X86_64
        elf.extend(1u32.to_le_bytes());
        elf.extend(0u64.to_le_bytes());
        elf.extend(64u64.to_le_bytes()); // program headers
        elf.extend(0u64.to_le_bytes());
        elf.extend(0u32.to_le_bytes());
        for half in [64u16, 56, 1, 0, 0, 0] {
            elf.extend(half.to_le_bytes());
        }
        elf.extend(4u32.to_le_bytes()); // PT_NOTE
        elf.extend(4u32.to_le_bytes());
        for word in [120u64, 0, 0, 20, 20, 4] {
            elf.extend(word.to_le_bytes());
        }
        for word in [4u32, 4, note_type] {
            elf.extend(word.to_le_bytes());
        }
        elf.extend(b"Xen\0");
        elf.extend(0x100_0000_u32.to_le_bytes());
        elf
    }

    fn bzimage(payload: &[u8]) -> Vec<u8> {
        let mut image = crate::backend::guest::kernel::local::tests::bzimage("1.2.3");
        image[0x1f1] = 1;
        let offset = u32::try_from(image.len() - 1024).unwrap();
        image[0x248..0x24c].copy_from_slice(&offset.to_le_bytes());
        image[0x24c..0x250].copy_from_slice(&u32::try_from(payload.len()).unwrap().to_le_bytes());
        image.extend(payload);
        image
    }

    fn gzip(bytes: &[u8]) -> Vec<u8> {
        let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        encoder.write_all(bytes).unwrap();
        encoder.finish().unwrap()
    }

    #[test]
    fn the_payload_comes_out_and_its_compression_is_known() {
        let kernel = elf(XEN_ELFNOTE_PHYS32_ENTRY);
        let image = bzimage(&gzip(&kernel));
        assert_eq!(compression(&image).unwrap(), Compression::Gzip);
        assert!(extract(image).unwrap() == kernel);
        assert!(extract(kernel.clone()).unwrap() == kernel, "an ELF kernel stays as it is");
    }

    #[test]
    fn what_cannot_be_extracted_says_why() {
        assert!(matches!(extract(bzimage(&gzip(&elf(1)))), Err(VmlinuxError::NoPvh)));
        assert!(matches!(extract(bzimage(&gzip(b"text"))), Err(VmlinuxError::NotElf)));
        assert!(matches!(extract(bzimage(b"plain text")), Err(VmlinuxError::NotElf)));
        assert!(matches!(extract(b"plain".to_vec()), Err(VmlinuxError::NotABzImage)));
        let error = extract(bzimage(b"BZh91AY")).unwrap_err().to_string();
        assert!(error.contains("bzip2"), "{error}");
        let mut cut = bzimage(&gzip(&elf(18)));
        cut.truncate(cut.len() - 1);
        assert!(matches!(extract(cut), Err(VmlinuxError::Truncated { .. })));
    }
}
