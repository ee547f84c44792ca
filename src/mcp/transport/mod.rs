//! Transports over which servers are accessed.

mod depth;
mod http;
mod lines;
mod program;
mod sse;

pub(super) use http::Http;
pub(super) use program::Program;
pub(super) use sse::{Sse, SseTransportError};

use depth::prune;
use lines::Lines;

/// Splits the output of a program, which arrives in these chunks, into lines.
#[cfg(feature = "fuzzing")]
pub(super) async fn split_output(pieces: &[&[u8]]) -> Vec<Vec<u8>> {
    use tokio::io::AsyncReadExt;
    let pieces: Vec<_> = pieces.iter().map(|piece| Ok::<_, std::io::Error>(bytes::Bytes::copy_from_slice(piece))).collect();
    let mut lines = Lines::new(tokio_util::io::StreamReader::new(futures_util::stream::iter(pieces)), |_| ());
    let mut all = Vec::new();
    // An invalid line ends the connection, but earlier lines are valid.
    let _ = lines.read_to_end(&mut all).await;
    all.split_inclusive(|byte| *byte == b'\n').map(<[u8]>::to_vec).collect()
}
