//! Comparison of the contents of two files.

use std::fs::File;
use std::io::{self, Read};

const CHUNK_BYTES: usize = 128 * 1024;

pub(super) fn same_bytes(left: &mut File, right: &mut File) -> io::Result<bool> {
    let (mut one, mut other) = (vec![0; CHUNK_BYTES], vec![0; CHUNK_BYTES]);
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
