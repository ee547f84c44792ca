//! Answers that come packed though nobody asked for it, unpacked as they stream and only so far.

use brotli_decompressor::DecompressorWriter;
use flate2::write::{DeflateDecoder, MultiGzDecoder, ZlibDecoder};
use std::fmt;
use std::io::{self, Write};

/// More than this out of one chunk is no answer of a model.
const MOST_BYTES: usize = 32 << 20;
const BUFFER_BYTES: usize = 16 << 10;

/// What is unpacked and was not yet taken.
#[derive(Debug, Default)]
struct Ready(Vec<u8>);

impl Write for Ready {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if self.0.len() + bytes.len() > MOST_BYTES {
            return Err(io::Error::other(format!("it is larger than {} MiB unpacked", MOST_BYTES >> 20)));
        }
        self.0.extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

enum Layer {
    Gzip(Box<MultiGzDecoder<Ready>>),
    Zlib(Box<ZlibDecoder<Ready>>),
    /// Without the head that the name promises, as some servers send it.
    Deflate(Box<DeflateDecoder<Ready>>),
    /// `deflate` of which too little came to tell the two apart.
    Undecided(Vec<u8>),
    Brotli(Box<DecompressorWriter<Ready>>),
}

/// The layers of one body, the outermost first.
pub struct Unpacker(Vec<Layer>);

impl fmt::Debug for Unpacker {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Unpacker({} layers)", self.0.len())
    }
}

impl Unpacker {
    /// For a `content-encoding`; `None` where nothing is packed, the name where it is not known here.
    pub fn of(encoding: &str) -> Result<Option<Self>, String> {
        let mut layers = Vec::new();
        for name in encoding.split(',').rev().map(|name| name.trim().to_ascii_lowercase()) {
            layers.push(match name.as_str() {
                "" | "identity" => continue,
                "gzip" | "x-gzip" => Layer::Gzip(Box::new(MultiGzDecoder::new(Ready::default()))),
                "deflate" => Layer::Undecided(Vec::new()),
                "br" => Layer::Brotli(Box::new(DecompressorWriter::new(Ready::default(), BUFFER_BYTES))),
                _ => return Err(name),
            });
        }
        Ok((!layers.is_empty()).then_some(Self(layers)))
    }

    /// What these bytes come to; often nothing yet.
    pub fn push(&mut self, bytes: &[u8]) -> io::Result<Vec<u8>> {
        let mut bytes = bytes.to_vec();
        for layer in &mut self.0 {
            bytes = layer.push(&bytes)?;
        }
        Ok(bytes)
    }
}

impl Layer {
    fn push(&mut self, bytes: &[u8]) -> io::Result<Vec<u8>> {
        if let Self::Undecided(head) = self {
            head.extend_from_slice(bytes);
            let &[first, second, ..] = head.as_slice() else { return Ok(Vec::new()) };
            let is_zlib = first & 0x0f == 8 && (u16::from(first) << 8 | u16::from(second)).is_multiple_of(31);
            let head = std::mem::take(head);
            *self = if is_zlib {
                Self::Zlib(Box::new(ZlibDecoder::new(Ready::default())))
            } else {
                Self::Deflate(Box::new(DeflateDecoder::new(Ready::default())))
            };
            return self.push(&head);
        }
        let ready = match self {
            Self::Gzip(decoder) => {
                decoder.write_all(bytes)?;
                decoder.flush()?;
                decoder.get_mut()
            }
            Self::Zlib(decoder) => {
                decoder.write_all(bytes)?;
                decoder.flush()?;
                decoder.get_mut()
            }
            Self::Deflate(decoder) => {
                decoder.write_all(bytes)?;
                decoder.flush()?;
                decoder.get_mut()
            }
            Self::Brotli(decoder) => {
                decoder.write_all(bytes)?;
                decoder.flush()?;
                decoder.get_mut()
            }
            Self::Undecided(_) => return Ok(Vec::new()),
        };
        Ok(std::mem::take(&mut ready.0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use flate2::Compression;
    use flate2::write::{DeflateEncoder, GzEncoder, ZlibEncoder};

    fn unpack(encoding: &str, packed: &[u8], step: usize) -> io::Result<Vec<u8>> {
        let mut unpacker = Unpacker::of(encoding).unwrap().unwrap();
        let mut whole = Vec::new();
        for piece in packed.chunks(step) {
            whole.extend(unpacker.push(piece)?);
        }
        Ok(whole)
    }

    #[test]
    fn what_is_packed_comes_out_whole_however_it_is_cut() {
        let text = "data: 1\n\n".repeat(500).into_bytes();
        let gzip = |text: &[u8]| {
            let mut encoder = GzEncoder::new(Vec::new(), Compression::default());
            encoder.write_all(text).unwrap();
            encoder.finish().unwrap()
        };
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
    fn what_was_said_until_now_is_there_before_the_end() {
        let mut encoder = GzEncoder::new(Vec::new(), Compression::default());
        encoder.write_all(b"data: 1\n\n").unwrap();
        encoder.flush().unwrap();
        assert_eq!(unpack("gzip", encoder.get_ref(), 100).unwrap(), b"data: 1\n\n");
    }

    #[test]
    fn a_bomb_does_not_go_off_and_garbage_is_an_error() {
        let mut encoder = GzEncoder::new(Vec::new(), Compression::best());
        for _ in 0..64 {
            encoder.write_all(&vec![0; 1 << 20]).unwrap();
        }
        let bomb = encoder.finish().unwrap();
        assert!(unpack("gzip", &bomb, bomb.len()).unwrap_err().to_string().contains("larger than 32 MiB"));
        assert!(unpack("gzip", b"no gzip at all", 100).is_err());
        assert_eq!(Unpacker::of("zstd").unwrap_err(), "zstd");
        assert!(Unpacker::of("identity").unwrap().is_none());
    }
}
