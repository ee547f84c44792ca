//! Compares the content of two files.

use std::fs::File;
use std::io::{self, Read};

const CHUNK_BYTES: usize = 128 * 1024;

/// Returns whether two files have the same content. `expected` is the size in bytes that they should have.
pub(super) fn same_bytes(left: &mut File, right: &mut File, expected: u64) -> io::Result<bool> {
    let chunk = chunk_bytes(expected);
    let (mut one, mut other) = (vec![0; chunk], vec![0; chunk]);
    loop {
        let count = fill(left, &mut one)?;
        if fill(right, &mut other)? != count || one[..count] != other[..count] {
            return Ok(false);
        }
        if count == 0 {
            return Ok(true);
        }
    }
}

/// Returns the buffer size to use for reading a file of this size. Most files are small, and allocating a large buffer
/// takes longer than reading them. One extra byte allows the end of the file to be detected.
pub(super) fn chunk_bytes(file_bytes: u64) -> usize {
    usize::try_from(file_bytes.saturating_add(1)).unwrap_or(CHUNK_BYTES).min(CHUNK_BYTES)
}

fn fill(file: &mut File, buffer: &mut [u8]) -> io::Result<usize> {
    let mut filled = 0;
    while filled < buffer.len() {
        match file.read(&mut buffer[filled..]) {
            Ok(0) => break,
            Ok(count) => filled += count,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(filled)
}
