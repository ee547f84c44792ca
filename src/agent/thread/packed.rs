//! Compressed storage for messages that are no longer sent, because a session may have thousands of steps.

use crate::protocol::Message;
use flate2::{Compress, Compression, Decompress, FlushCompress, FlushDecompress, Status};
use std::sync::Arc;

/// Number of bytes by which the buffer grows when the compressed data does not fit.
const MORE: usize = 64 << 10;

#[derive(Debug, Clone)]
pub(crate) enum PackedMessage {
    Small {
        bytes: Vec<u8>,
        /// Uncompressed length.
        length: usize,
    },
    /// Messages that could not be compressed.
    Plain(Vec<Arc<Message>>),
}

impl PackedMessage {
    pub(crate) fn new(messages: Vec<Arc<Message>>) -> Self {
        small(&messages).unwrap_or(Self::Plain(messages))
    }

    /// Decompresses the messages. Returns `None` if this fails.
    pub(crate) fn open(&self) -> Option<Vec<Arc<Message>>> {
        match self {
            Self::Small { bytes, length } => {
                let mut json = Vec::with_capacity(length + 1);
                Decompress::new(true).decompress_vec(bytes, &mut json, FlushDecompress::Finish).ok()?;
                serde_json::from_slice(&json).ok()
            }
            Self::Plain(messages) => Some(messages.clone()),
        }
    }
}

fn small(messages: &[Arc<Message>]) -> Option<PackedMessage> {
    let json = serde_json::to_vec(messages).ok()?;
    let mut bytes = Vec::with_capacity(json.len() / 4 + MORE);
    let mut compress = Compress::new(Compression::fast(), true);
    loop {
        let taken = usize::try_from(compress.total_in()).ok()?;
        match compress.compress_vec(json.get(taken..)?, &mut bytes, FlushCompress::Finish).ok()? {
            Status::StreamEnd => break,
            Status::Ok | Status::BufError => bytes.reserve(MORE),
        }
    }
    bytes.shrink_to_fit();
    Some(PackedMessage::Small { bytes, length: json.len() })
}
