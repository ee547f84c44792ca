//! Digests of the records in a history, which show whether one history is the start of another.

use crate::ports::Record;
use jiff::Timestamp;

/// Digest of all records added so far.
#[derive(Clone, Default)]
pub(super) struct RecordChain {
    hasher: blake3::Hasher,
    count: u64,
}

impl RecordChain {
    pub(super) fn add(&mut self, time: Timestamp, record: &Record) {
        // Stores have a time resolution of milliseconds.
        self.hasher.update(&time.as_millisecond().to_le_bytes());
        // Writing to a hasher cannot fail, and every record can be encoded.
        let _ = serde_json::to_writer(&mut self.hasher, record);
        self.hasher.update(b"\n");
        self.count += 1;
    }

    pub(super) fn count(&self) -> u64 {
        self.count
    }

    pub(super) fn digest(&self) -> String {
        self.hasher.finalize().to_hex().to_string()
    }
}

/// Digests of a complete history and of its start.
pub(super) struct ChainScan {
    chain: RecordChain,
    /// Number of records that make up the start of the history.
    at: u64,
    start: Option<String>,
}

impl ChainScan {
    /// Creates a scan that, in addition to the whole history, computes the digest of its first `at` records.
    pub(super) fn new(at: u64) -> Self {
        let chain = RecordChain::default();
        let start = (at == 0).then(|| chain.digest());
        Self { chain, at, start }
    }

    pub(super) fn add(&mut self, time: Timestamp, record: &Record) {
        self.chain.add(time, record);
        if self.chain.count() == self.at {
            self.start = Some(self.chain.digest());
        }
    }

    pub(super) fn count(&self) -> u64 {
        self.chain.count()
    }

    pub(super) fn digest(&self) -> String {
        self.chain.digest()
    }

    /// Returns the digest of the first `at` records, or `None` if the history has fewer records.
    pub(super) fn start(&self) -> Option<&str> {
        self.start.as_deref()
    }
}
