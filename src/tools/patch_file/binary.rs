//! Binary content in the format of git's binary patches: compressed and encoded in base 85.

use flate2::Compression;
use flate2::read::{ZlibDecoder, ZlibEncoder};
use std::fmt::Write as _;
use std::io::Read;

/// Line that precedes the content.
pub(super) const START: &str = "GIT binary patch";
/// Digits that git uses for base 85.
const DIGITS: &[u8; 85] = b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz!#$%&()*+-;<=>?@^_`{|}~";
/// Maximum number of bytes that a line encodes.
const ROW_BYTES: usize = 52;

/// Encodes binary content as lines, the last of which is empty.
pub(super) fn encode(content: &[u8]) -> std::io::Result<String> {
    let mut packed = Vec::new();
    ZlibEncoder::new(content, Compression::default()).read_to_end(&mut packed)?;
    let mut rows = format!("{START}\nliteral {}\n", content.len());
    for row in packed.chunks(ROW_BYTES) {
        let length = row.len() as u8;
        rows.push(char::from(if length <= 26 { b'A' + length - 1 } else { b'a' + length - 27 }));
        for group in row.chunks(4) {
            let mut bytes = [0; 4];
            bytes[..group.len()].copy_from_slice(group);
            let mut number = u32::from_be_bytes(bytes);
            let mut digits = [0; 5];
            for digit in digits.iter_mut().rev() {
                *digit = DIGITS[(number % 85) as usize];
                number /= 85;
            }
            rows.extend(digits.iter().map(|digit| char::from(*digit)));
        }
        let _ = writeln!(rows);
    }
    rows.push('\n');
    Ok(rows)
}

/// Decodes the lines that follow the first one to at most `limit` bytes.
///
/// # Errors
/// Returns an error if a line is invalid, or if the content exceeds `limit`.
pub(super) fn decode<'a>(mut rows: impl Iterator<Item = &'a str>, limit: u64) -> Result<Vec<u8>, String> {
    let size = rows.next().and_then(|row| row.strip_prefix("literal ")).and_then(|size| size.parse::<u64>().ok());
    let size = size.ok_or("the binary content has no `literal` line with a size")?;
    if size > limit {
        return Err(format!("the content is {size} bytes, more than {limit}"));
    }
    let mut packed = Vec::new();
    for row in rows.by_ref().take_while(|row| !row.is_empty()) {
        decode_row(row, &mut packed).ok_or_else(|| format!("`{row}` is not a line of binary content"))?;
    }
    if rows.next().is_some() {
        return Err("there is extra data after the binary content".to_owned());
    }
    let mut content = Vec::new();
    let read = ZlibDecoder::new(packed.as_slice()).take(size + 1).read_to_end(&mut content);
    read.map_err(|error| format!("the binary content cannot be unpacked: {error}"))?;
    if content.len() as u64 != size {
        return Err("the binary content does not have the size given in its header".to_owned());
    }
    Ok(content)
}

fn decode_row(row: &str, packed: &mut Vec<u8>) -> Option<()> {
    let (first, digits) = row.as_bytes().split_first()?;
    let length = match first {
        b'A'..=b'Z' => first - b'A' + 1,
        b'a'..=b'z' => first - b'a' + 27,
        _ => return None,
    };
    let length = usize::from(length);
    if digits.len() != length.div_ceil(4) * 5 {
        return None;
    }
    let mut bytes = Vec::with_capacity(length + 3);
    for group in digits.chunks(5) {
        let mut number = 0_u64;
        for digit in group {
            number = number * 85 + DIGITS.iter().position(|known| known == digit)? as u64;
        }
        bytes.extend(u32::try_from(number).ok()?.to_be_bytes());
    }
    packed.extend(bytes.get(..length)?);
    Some(())
}
