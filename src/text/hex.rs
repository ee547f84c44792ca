//! Hexadecimal encoding.

const DIGITS: &[u8; 16] = b"0123456789abcdef";

/// Encodes bytes as lower-case hexadecimal digits.
pub(crate) fn hex(bytes: &[u8]) -> String {
    let digit = |byte: u8| char::from(DIGITS[usize::from(byte & 0xf)]);
    let mut digits = String::with_capacity(bytes.len() * 2);
    digits.extend(bytes.iter().flat_map(|byte| [digit(byte >> 4), digit(*byte)]));
    digits
}
