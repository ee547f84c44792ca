//! Decompresses HTTP bodies according to `Content-Encoding`, in chunks or as a whole, and only up to a limit.

use brotli_decompressor::DecompressorWriter;
use flate2::write::{DeflateDecoder, MultiGzDecoder, ZlibDecoder};
use std::fmt;
use std::io::{self, ErrorKind, Write};

/// Maximum decompressed size of a stream chunk in bytes. Model responses are smaller.
const MAX_CHUNK_BYTES: usize = 32 << 20;
/// Maximum number of encodings that may be applied to a whole body.
const MAX_ENCODINGS: usize = 3;
const BUFFER_BYTES: usize = 64 << 10;

/// Decompressed data that has not been taken yet.
#[derive(Debug)]
struct Output {
    bytes: Vec<u8>,
    max_bytes: usize,
}

impl Output {
    fn new(max_bytes: usize) -> Self {
        Self { bytes: Vec::new(), max_bytes }
    }
}

impl Write for Output {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if self.bytes.len() + bytes.len() > self.max_bytes {
            let message = format!("larger than {} MiB when decompressed", self.max_bytes >> 20);
            return Err(io::Error::new(ErrorKind::FileTooLarge, message));
        }
        self.bytes.extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

enum Decoder {
    Gzip(Box<MultiGzDecoder<Output>>),
    Zlib(Box<ZlibDecoder<Output>>),
    /// `deflate` without the zlib header, which some servers omit.
    Deflate(Box<DeflateDecoder<Output>>),
    /// `deflate` data that is still too short to tell which of the two variants it is.
    Undecided {
        head: Vec<u8>,
        max_bytes: usize,
    },
    Brotli(Box<DecompressorWriter<Output>>),
}

/// Decoders for one body, outermost first.
pub(crate) struct Unpacker(Vec<Decoder>);

impl fmt::Debug for Unpacker {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Unpacker({} decoders)", self.0.len())
    }
}

/// Why a whole body was not decompressed.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum UnpackError {
    TooLarge,
    /// The body is encoded in a way that is not supported or is corrupt; contains the reason, such as `unsupported
    /// encoding x`.
    Packed(String),
}

/// Decompresses a whole body. `encoding` is the value of `Content-Encoding`, which lists the innermost encoding first.
pub(crate) fn unpack_body(body: Vec<u8>, encoding: &str, max_bytes: usize) -> Result<Vec<u8>, UnpackError> {
    let count = encoding.split(',').count();
    if count > MAX_ENCODINGS {
        return Err(UnpackError::Packed(format!("encoded {count} times")));
    }
    let unpacker = Unpacker::with_limit(encoding, max_bytes)
        .map_err(|unknown| UnpackError::Packed(format!("unsupported encoding {unknown}")))?;
    let Some(unpacker) = unpacker else { return Ok(body) };
    unpacker.unpack_all(body).map_err(|error| match error.kind() {
        ErrorKind::FileTooLarge => UnpackError::TooLarge,
        _ => UnpackError::Packed(format!("the data is corrupt: {error}")),
    })
}

impl Unpacker {
    /// Returns the decompressor for a stream with this `Content-Encoding`, or `None` if the stream is not compressed.
    ///
    /// # Errors
    ///
    /// Returns the name of the encoding if it is not supported.
    pub(crate) fn for_encoding(encoding: &str) -> Result<Option<Self>, String> {
        Self::with_limit(encoding, MAX_CHUNK_BYTES)
    }

    fn with_limit(encoding: &str, max_bytes: usize) -> Result<Option<Self>, String> {
        let mut decoders = Vec::new();
        for name in encoding.split(',').rev().map(|name| name.trim().to_ascii_lowercase()) {
            decoders.push(match name.as_str() {
                "" | "identity" => continue,
                "gzip" | "x-gzip" => Decoder::Gzip(Box::new(MultiGzDecoder::new(Output::new(max_bytes)))),
                "deflate" => Decoder::Undecided { head: Vec::new(), max_bytes },
                "br" => Decoder::Brotli(Box::new(DecompressorWriter::new(Output::new(max_bytes), BUFFER_BYTES))),
                _ => return Err(name),
            });
        }
        Ok((!decoders.is_empty()).then_some(Self(decoders)))
    }

    /// Feeds compressed bytes to the decoders and returns the bytes that could be decompressed so far, possibly none.
    pub(crate) fn push(&mut self, bytes: &[u8]) -> io::Result<Vec<u8>> {
        let mut bytes = bytes.to_vec();
        for decoder in &mut self.0 {
            decoder.write(&bytes)?;
            decoder.flush()?;
            bytes = decoder.take();
        }
        Ok(bytes)
    }

    /// Decompresses a complete body. A truncated gzip or brotli body is an error.
    fn unpack_all(mut self, body: Vec<u8>) -> io::Result<Vec<u8>> {
        let mut bytes = body;
        for decoder in &mut self.0 {
            decoder.write(&bytes)?;
            decoder.finish()?;
            bytes = decoder.take();
        }
        Ok(bytes)
    }
}

impl Decoder {
    fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        match self {
            Self::Gzip(decoder) => decoder.write_all(bytes),
            Self::Zlib(decoder) => write_to_end(decoder, bytes),
            Self::Deflate(decoder) => write_to_end(decoder, bytes),
            Self::Brotli(decoder) => decoder.write_all(bytes),
            Self::Undecided { head, max_bytes } => {
                head.extend_from_slice(bytes);
                let &[first, second, ..] = head.as_slice() else { return Ok(()) };
                let is_zlib = first & 0x0f == 8 && (u16::from(first) << 8 | u16::from(second)).is_multiple_of(31);
                let (head, output) = (std::mem::take(head), Output::new(*max_bytes));
                *self = if is_zlib {
                    Self::Zlib(Box::new(ZlibDecoder::new(output)))
                } else {
                    Self::Deflate(Box::new(DeflateDecoder::new(output)))
                };
                self.write(&head)
            }
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        match self {
            Self::Gzip(decoder) => decoder.flush(),
            Self::Zlib(decoder) => decoder.flush(),
            Self::Deflate(decoder) => decoder.flush(),
            Self::Brotli(decoder) => decoder.flush(),
            Self::Undecided { .. } => Ok(()),
        }
    }

    fn finish(&mut self) -> io::Result<()> {
        match self {
            Self::Gzip(decoder) => decoder.try_finish(),
            Self::Zlib(decoder) => decoder.try_finish(),
            Self::Deflate(decoder) => decoder.try_finish(),
            Self::Brotli(decoder) => decoder.close(),
            Self::Undecided { .. } => Ok(()),
        }
    }

    fn take(&mut self) -> Vec<u8> {
        let output = match self {
            Self::Gzip(decoder) => decoder.get_mut(),
            Self::Zlib(decoder) => decoder.get_mut(),
            Self::Deflate(decoder) => decoder.get_mut(),
            Self::Brotli(decoder) => decoder.get_mut(),
            Self::Undecided { .. } => return Vec::new(),
        };
        std::mem::take(&mut output.bytes)
    }
}

/// Writes to the decoder until the compressed stream ends. Any bytes after the end are ignored.
fn write_to_end(decoder: &mut impl Write, mut bytes: &[u8]) -> io::Result<()> {
    while !bytes.is_empty() {
        match decoder.write(bytes)? {
            0 => break,
            written => bytes = &bytes[written..],
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use flate2::Compression;
    use flate2::write::{DeflateEncoder, GzEncoder, ZlibEncoder};

    fn unpack(encoding: &str, packed: &[u8], step: usize) -> io::Result<Vec<u8>> {
        let mut unpacker = Unpacker::for_encoding(encoding).unwrap().unwrap();
        let mut whole = Vec::new();
        for piece in packed.chunks(step) {
            whole.extend(unpacker.push(piece)?);
        }
        Ok(whole)
    }

    fn gzip(bytes: &[u8]) -> Vec<u8> {
        let mut encoder = GzEncoder::new(Vec::new(), Compression::best());
        encoder.write_all(bytes).unwrap();
        encoder.finish().unwrap()
    }

    #[test]
    fn compressed_streams_are_decoded_across_any_chunk_boundaries() {
        let text = "data: 1\n\n".repeat(500).into_bytes();
        let mut zlib = ZlibEncoder::new(Vec::new(), Compression::default());
        zlib.write_all(&text).unwrap();
        let mut raw = DeflateEncoder::new(Vec::new(), Compression::default());
        raw.write_all(&text).unwrap();
        for (encoding, packed) in [
            ("gzip", gzip(&text)),
            ("deflate", zlib.finish().unwrap()),
            ("deflate", raw.finish().unwrap()),
            ("gzip, identity, GZIP", gzip(&gzip(&text))),
        ] {
            for step in [1, 7, 100_000] {
                assert_eq!(unpack(encoding, &packed, step).unwrap(), text, "{encoding} {step}");
            }
        }
        let brotli = [0x8b, 0x01, 0x80, b't', b'e', b'x', b't', 0x03];
        for step in [1, 100] {
            assert_eq!(unpack("br", &brotli, step).unwrap(), b"text");
        }
    }

    #[test]
    fn flushed_data_is_available_before_the_end_of_the_stream() {
        let mut encoder = GzEncoder::new(Vec::new(), Compression::default());
        encoder.write_all(b"data: 1\n\n").unwrap();
        encoder.flush().unwrap();
        assert_eq!(unpack("gzip", encoder.get_ref(), 100).unwrap(), b"data: 1\n\n");
    }

    #[test]
    fn decompression_bombs_are_limited_and_garbage_is_an_error() {
        let mut encoder = GzEncoder::new(Vec::new(), Compression::best());
        for _ in 0..64 {
            encoder.write_all(&vec![0; 1 << 20]).unwrap();
        }
        let bomb = encoder.finish().unwrap();
        assert!(unpack("gzip", &bomb, bomb.len()).unwrap_err().to_string().contains("larger than 32 MiB"));
        assert!(unpack("gzip", b"no gzip at all", 100).is_err());
        assert_eq!(Unpacker::for_encoding("zstd").unwrap_err(), "zstd");
        assert!(Unpacker::for_encoding("identity").unwrap().is_none());
    }

    #[test]
    fn multiple_encodings_are_decoded_in_reverse_order() {
        let mut zlib = ZlibEncoder::new(Vec::new(), Compression::fast());
        zlib.write_all(b"text").unwrap();
        let mut raw = DeflateEncoder::new(Vec::new(), Compression::fast());
        raw.write_all(b"text").unwrap();
        let brotli = [0x8b, 0x01, 0x80, b't', b'e', b'x', b't', 0x03].to_vec();
        let zlib = zlib.finish().unwrap();
        let trailing = [zlib.as_slice(), b"trailing bytes"].concat();
        for (coding, packed) in [
            ("gzip", gzip(b"text")),
            ("GZIP ", gzip(b"text")),
            ("identity", b"text".to_vec()),
            ("deflate", zlib),
            ("deflate", trailing),
            ("deflate", raw.finish().unwrap()),
            ("br", brotli),
            ("gzip, x-gzip", gzip(&gzip(b"text"))),
        ] {
            assert_eq!(unpack_body(packed, coding, 100), Ok(b"text".to_vec()), "{coding}");
        }
    }

    #[test]
    fn bodies_that_exceed_the_limit_when_decoded_are_errors() {
        for (length, fits) in [(999, true), (1000, true), (1001, false), (50_000_000, false)] {
            let unpacked = unpack_body(gzip(&vec![0; length]), "gzip", 1000);
            assert_eq!(unpacked.is_ok(), fits, "{length}");
            assert_eq!(unpacked == Err(UnpackError::TooLarge), !fits, "{length}");
        }
    }

    #[test]
    fn undecodable_bodies_stay_compressed_with_a_reason() {
        let cut = gzip(&[7; 5000]);
        for (coding, packed, why) in [
            ("gzip", b"no gzip".to_vec(), "corrupt"),
            ("gzip", cut[..cut.len() / 2].to_vec(), "corrupt"),
            ("br", vec![0xff; 40], "corrupt"),
            ("br", vec![0x8b, 0x01, 0x80, b't', b'e'], "corrupt"),
            ("zstd", vec![1, 2], "unsupported encoding zstd"),
            ("gzip,gzip,gzip,gzip", vec![1], "encoded 4 times"),
        ] {
            let Err(UnpackError::Packed(reason)) = unpack_body(packed, coding, 10_000) else { panic!("{coding}") };
            assert!(reason.contains(why), "{reason}");
        }
    }
}
