//! Digests of the records in a history, which show whether one history is the start of another.

use crate::ports::Record;
use jiff::Timestamp;
use serde_json::Value;

/// Member of a record that names its type.
const TYPE: &str = "record";

/// Digest of the times and the structure of all records added so far. The texts in the records are left out, because
/// they are redacted before an upload, and other secrets may be known on another machine or later.
#[derive(Clone, Default)]
pub(super) struct RecordChain {
    hasher: blake3::Hasher,
    count: u64,
}

impl RecordChain {
    pub(super) fn add(&mut self, time: Timestamp, record: &Record) {
        // Stores have a time resolution of milliseconds.
        self.hasher.update(&time.as_millisecond().to_le_bytes());
        // Every record can be encoded.
        add_structure(&mut self.hasher, &serde_json::to_value(record).unwrap_or_default());
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

/// Adds a value without its texts, except for the type of a record.
fn add_structure(hasher: &mut blake3::Hasher, value: &Value) {
    match value {
        Value::String(_) => {
            hasher.update(b"\"");
        }
        Value::Array(items) => {
            hasher.update(b"[");
            for item in items {
                add_structure(hasher, item);
            }
            hasher.update(b"]");
        }
        Value::Object(members) => {
            hasher.update(b"{");
            for (name, member) in members {
                hasher.update(name.as_bytes()).update(b":");
                match member {
                    Value::String(text) if name == TYPE => {
                        hasher.update(text.as_bytes());
                    }
                    member => add_structure(hasher, member),
                }
                hasher.update(b",");
            }
            hasher.update(b"}");
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => {
            hasher.update(value.to_string().as_bytes());
        }
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
