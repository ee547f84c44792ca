//! Messages that are no longer sent, kept small: a session may run for thousands of steps.

use crate::protocol::Message;
use flate2::Compression;
use flate2::read::ZlibDecoder;
use flate2::write::ZlibEncoder;
use std::io::Write;
use std::sync::Arc;

#[derive(Debug)]
pub enum Packed {
    Small(Vec<u8>),
    /// What could not be packed.
    Plain(Vec<Arc<Message>>),
}

impl Packed {
    pub fn new(messages: Vec<Arc<Message>>) -> Self {
        match small(&messages) {
            Some(bytes) => Self::Small(bytes),
            None => Self::Plain(messages),
        }
    }

    /// The messages again; `None` where they cannot be unpacked.
    pub fn open(&self) -> Option<Vec<Arc<Message>>> {
        match self {
            Self::Small(bytes) => serde_json::from_reader(ZlibDecoder::new(bytes.as_slice())).ok(),
            Self::Plain(messages) => Some(messages.clone()),
        }
    }
}

fn small(messages: &[Arc<Message>]) -> Option<Vec<u8>> {
    let mut encoder = ZlibEncoder::new(Vec::new(), Compression::fast());
    for (index, message) in messages.iter().enumerate() {
        encoder.write_all(if index == 0 { b"[" } else { b"," }).ok()?;
        // Written as a whole first: a serializer hands over a few bytes at a time.
        encoder.write_all(&serde_json::to_vec(message).ok()?).ok()?;
    }
    encoder.write_all(if messages.is_empty() { b"[]" } else { b"]" }).ok()?;
    let mut bytes = encoder.finish().ok()?;
    bytes.shrink_to_fit();
    Some(bytes)
}
