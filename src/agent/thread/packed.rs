//! Messages that are no longer sent, kept small: a session may run for thousands of steps.

use crate::protocol::Message;
use flate2::{Compress, Compression, Decompress, FlushCompress, FlushDecompress, Status};
use std::sync::Arc;

/// How much more room is made where what is packed does not fit, in bytes.
const MORE: usize = 64 << 10;

#[derive(Debug, Clone)]
pub enum Packed {
    Small {
        bytes: Vec<u8>,
        /// Of what was packed.
        length: usize,
    },
    /// What could not be packed.
    Plain(Vec<Arc<Message>>),
}

impl Packed {
    pub fn new(messages: Vec<Arc<Message>>) -> Self {
        small(&messages).unwrap_or(Self::Plain(messages))
    }

    /// The messages again; `None` where they cannot be unpacked.
    pub fn open(&self) -> Option<Vec<Arc<Message>>> {
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

fn small(messages: &[Arc<Message>]) -> Option<Packed> {
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
    Some(Packed::Small { bytes, length: json.len() })
}
