//! Fingerprints of file content.

use crate::sys::path::open_file;
use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::path::Path;

/// Size in bytes above which a file's fingerprint is computed only from its size and samples of its content.
const WHOLE_BYTES: u64 = 64 << 20;
const SAMPLES: u64 = 64;
const SAMPLE_BYTES: u64 = 64 << 10;
const CHUNK_BYTES: usize = 256 << 10;

/// Hash of a file's content or, if the file is very large, of its size, its start, its end and samples in between.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Fingerprint(blake3::Hash);

impl Fingerprint {
    pub(crate) fn hash(content: &[u8]) -> Self {
        let bytes = content.len() as u64;
        if bytes <= WHOLE_BYTES {
            return Self(blake3::hash(content));
        }
        let mut hasher = sampling(bytes);
        for start in samples(bytes) {
            let start = usize::try_from(start).unwrap_or(content.len());
            let end = start.saturating_add(SAMPLE_BYTES as usize).min(content.len());
            hasher.update(&content[start..end]);
        }
        Self(hasher.finalize())
    }

    /// Computes the fingerprint of the file at a resolved path.
    pub(crate) fn from_file(real: &Path) -> io::Result<Self> {
        let mut file = open_file(real)?;
        let bytes = file.metadata()?.len();
        if bytes <= WHOLE_BYTES {
            // If the file grew during the read, its fingerprint differs.
            return Ok(Self(hash(&mut file, blake3::Hasher::new(), WHOLE_BYTES + 1)?));
        }
        let mut hasher = sampling(bytes);
        for start in samples(bytes) {
            file.seek(SeekFrom::Start(start))?;
            let mut sample = Vec::with_capacity(SAMPLE_BYTES as usize);
            file.by_ref().take(SAMPLE_BYTES).read_to_end(&mut sample)?;
            hasher.update(&sample);
        }
        Ok(Self(hasher.finalize()))
    }
}

fn sampling(bytes: u64) -> blake3::Hasher {
    let mut hasher = blake3::Hasher::new();
    hasher.update(&bytes.to_le_bytes());
    hasher
}

/// Returns the sample offsets. The first sample is at the start of the file, and the last one ends at its end.
fn samples(bytes: u64) -> impl Iterator<Item = u64> {
    let last = bytes - SAMPLE_BYTES;
    (0..SAMPLES).map(move |index| (u128::from(last) * u128::from(index) / u128::from(SAMPLES - 1)) as u64)
}

fn hash(file: &mut File, mut hasher: blake3::Hasher, most: u64) -> io::Result<blake3::Hash> {
    let mut buffer = vec![0; CHUNK_BYTES];
    let mut from = file.take(most);
    loop {
        match from.read(&mut buffer)? {
            0 => return Ok(hasher.finalize()),
            count => hasher.update(&buffer[..count]),
        };
    }
}
