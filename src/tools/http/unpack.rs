//! A body as it was before the server packed it, up to a bound: a small answer can unpack to anything.

use flate2::read::{DeflateDecoder, MultiGzDecoder, ZlibDecoder};
use std::io::Read;

/// Codings of one answer, one around the other.
const MOST_CODINGS: usize = 3;
const BUFFER_BYTES: usize = 64 * 1024;

#[derive(Debug, PartialEq, Eq)]
pub(super) enum Unpacked {
    Body(Vec<u8>),
    TooLarge,
    /// Why it stays packed.
    Packed(String),
}

/// `codings` as `Content-Encoding` names them, the innermost first.
pub(super) fn unpack(body: Vec<u8>, codings: &str, most_bytes: usize) -> Unpacked {
    let codings: Vec<String> = codings.split(',').map(|coding| coding.trim().to_ascii_lowercase()).collect();
    if codings.len() > MOST_CODINGS {
        return Unpacked::Packed(format!("it is packed {} times", codings.len()));
    }
    let mut body = body;
    for coding in codings.iter().rev() {
        let packed = body.as_slice();
        let read = match coding.as_str() {
            "" | "identity" => continue,
            "gzip" | "x-gzip" => bounded(MultiGzDecoder::new(packed), most_bytes),
            // Both are sent under this name.
            "deflate" => {
                bounded(ZlibDecoder::new(packed), most_bytes).or_else(|_| bounded(DeflateDecoder::new(packed), most_bytes))
            }
            "br" => bounded(brotli_decompressor::Decompressor::new(packed, BUFFER_BYTES), most_bytes),
            other => return Unpacked::Packed(format!("aye does not know {other}")),
        };
        match read {
            Ok(Some(unpacked)) => body = unpacked,
            Ok(None) => return Unpacked::TooLarge,
            Err(error) => return Unpacked::Packed(format!("it is damaged: {error}")),
        }
    }
    Unpacked::Body(body)
}

/// Nothing where it is longer.
fn bounded(from: impl Read, most_bytes: usize) -> std::io::Result<Option<Vec<u8>>> {
    let mut unpacked = Vec::new();
    from.take(most_bytes as u64 + 1).read_to_end(&mut unpacked)?;
    Ok((unpacked.len() <= most_bytes).then_some(unpacked))
}

#[cfg(test)]
mod tests {
    use super::*;
    use flate2::Compression;
    use flate2::write::{DeflateEncoder, GzEncoder, ZlibEncoder};
    use std::io::Write;

    fn gzip(bytes: &[u8]) -> Vec<u8> {
        let mut to = GzEncoder::new(Vec::new(), Compression::best());
        to.write_all(bytes).unwrap();
        to.finish().unwrap()
    }

    #[test]
    fn what_servers_pack_is_unpacked_in_the_right_order() {
        let mut zlib = ZlibEncoder::new(Vec::new(), Compression::fast());
        zlib.write_all(b"text").unwrap();
        let mut raw = DeflateEncoder::new(Vec::new(), Compression::fast());
        raw.write_all(b"text").unwrap();
        let brotli = [0x8b, 0x01, 0x80, b't', b'e', b'x', b't', 0x03].to_vec();
        for (coding, packed) in [
            ("gzip", gzip(b"text")),
            ("GZIP ", gzip(b"text")),
            ("identity", b"text".to_vec()),
            ("deflate", zlib.finish().unwrap()),
            ("deflate", raw.finish().unwrap()),
            ("br", brotli),
            ("gzip, x-gzip", gzip(&gzip(b"text"))),
        ] {
            assert_eq!(unpack(packed, coding, 100), Unpacked::Body(b"text".to_vec()), "{coding}");
        }
    }

    #[test]
    fn what_grows_beyond_the_bound_is_given_up() {
        for (length, fits) in [(999, true), (1000, true), (1001, false), (50_000_000, false)] {
            let unpacked = unpack(gzip(&vec![0; length]), "gzip", 1000);
            assert_eq!(matches!(unpacked, Unpacked::Body(_)), fits, "{length}");
            assert_eq!(unpacked == Unpacked::TooLarge, !fits, "{length}");
        }
    }

    #[test]
    fn what_cannot_be_unpacked_stays_packed_and_says_why() {
        let cut = gzip(&[7; 5000]);
        for (coding, packed, why) in [
            ("gzip", b"no gzip".to_vec(), "damaged"),
            ("gzip", cut[..cut.len() / 2].to_vec(), "damaged"),
            ("br", vec![0xff; 40], "damaged"),
            ("zstd", vec![1, 2], "does not know zstd"),
            ("gzip,gzip,gzip,gzip", vec![1], "packed 4 times"),
        ] {
            let Unpacked::Packed(reason) = unpack(packed, coding, 10_000) else { panic!("{coding}") };
            assert!(reason.contains(why), "{reason}");
        }
    }
}
