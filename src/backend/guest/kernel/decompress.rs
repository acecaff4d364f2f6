//! Decompression in process of what kernels and modules are compressed with.

use std::io::Read;

use super::lz4;

/// How a file is compressed, as its first bytes tell.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Compression {
    /// It is not, or not with anything known.
    None,
    /// gzip.
    Gzip,
    /// xz.
    Xz,
    /// Zstandard.
    Zstd,
    /// LZ4's legacy frame.
    Lz4,
    /// bzip2, which is not supported.
    Bzip2,
    /// The older LZMA, which is not supported.
    Lzma,
    /// LZO, which is not supported.
    Lzo,
}

impl Compression {
    /// Looks at the first bytes.
    pub fn of(bytes: &[u8]) -> Self {
        const MAGICS: [(&[u8], Compression); 7] = [
            (&[0x1f, 0x8b], Compression::Gzip),
            (&[0xfd, b'7', b'z', b'X', b'Z', 0], Compression::Xz),
            (&[0x28, 0xb5, 0x2f, 0xfd], Compression::Zstd),
            (&lz4::MAGIC, Compression::Lz4),
            (b"BZh", Compression::Bzip2),
            (&[0x5d, 0, 0], Compression::Lzma),
            (&[0x89, b'L', b'Z', b'O'], Compression::Lzo),
        ];
        MAGICS.iter().find(|(magic, _)| bytes.starts_with(magic)).map_or(Self::None, |(_, compression)| *compression)
    }

    /// Its name, for messages.
    pub fn name(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Gzip => "gzip",
            Self::Xz => "xz",
            Self::Zstd => "zstd",
            Self::Lz4 => "lz4",
            Self::Bzip2 => "bzip2",
            Self::Lzma => "lzma",
            Self::Lzo => "lzo",
        }
    }
}

/// Why something could not be decompressed.
#[derive(Debug, thiserror::Error)]
pub enum DecompressError {
    /// It is compressed with something that is not supported.
    #[error("it is compressed with {0}, which is not supported (gzip, xz, zstd and lz4 are)")]
    Unsupported(&'static str),
    /// It is damaged.
    #[error("damaged {algorithm} data: {reason}")]
    Damaged {
        /// What it is compressed with.
        algorithm: &'static str,
        /// What is wrong.
        reason: String,
    },
}

/// Decompresses; bytes that are not compressed come back as they are.
///
/// # Errors
/// If the algorithm is not supported or the data is damaged.
pub fn decompress(bytes: Vec<u8>) -> Result<Vec<u8>, DecompressError> {
    let compression = Compression::of(&bytes);
    let damaged = |reason: String| DecompressError::Damaged { algorithm: compression.name(), reason };
    let mut out = Vec::new();
    match compression {
        Compression::None => return Ok(bytes),
        Compression::Gzip => {
            flate2::read::GzDecoder::new(bytes.as_slice()).read_to_end(&mut out).map_err(|e| damaged(e.to_string()))?;
        }
        Compression::Xz => {
            lzma_rs::xz_decompress(&mut bytes.as_slice(), &mut out).map_err(|e| damaged(format!("{e:?}")))?;
        }
        Compression::Zstd => {
            let mut decoder =
                ruzstd::decoding::StreamingDecoder::new(bytes.as_slice()).map_err(|e| damaged(e.to_string()))?;
            decoder.read_to_end(&mut out).map_err(|e| damaged(e.to_string()))?;
        }
        Compression::Lz4 => out = lz4::decompress(&bytes).map_err(|e| damaged(e.to_owned()))?,
        Compression::Bzip2 | Compression::Lzma | Compression::Lzo => {
            return Err(DecompressError::Unsupported(compression.name()));
        }
    }
    Ok(out)
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "a test fails by panicking")]
mod tests {
    use super::{Compression, decompress};
    use std::io::Write;

    #[test]
    fn each_supported_algorithm_gives_the_bytes_back() {
        let plain: Vec<u8> = (0..50_000u32).flat_map(|n| (n / 7).to_le_bytes()).collect();
        let mut gz = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
        gz.write_all(&plain).unwrap();
        let mut xz = Vec::new();
        lzma_rs::xz_compress(&mut plain.as_slice(), &mut xz).unwrap();
        let zst = ruzstd::encoding::compress_to_vec(plain.as_slice(), ruzstd::encoding::CompressionLevel::Fastest);
        for (bytes, expected) in [
            (plain.clone(), Compression::None),
            (gz.finish().unwrap(), Compression::Gzip),
            (xz, Compression::Xz),
            (zst, Compression::Zstd),
        ] {
            assert_eq!(Compression::of(&bytes), expected);
            assert!(decompress(bytes).unwrap() == plain, "{}", expected.name());
        }
    }

    #[test]
    fn damage_and_the_unsupported_are_told_with_the_algorithm() {
        let error = decompress(b"BZh9 and so on".to_vec()).unwrap_err().to_string();
        assert!(error.contains("bzip2"), "{error}");
        let error = decompress(vec![0x28, 0xb5, 0x2f, 0xfd, 4, 0]).unwrap_err().to_string();
        assert!(error.contains("zstd"), "{error}");
    }
}
