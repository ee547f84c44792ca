//! The number of bytes that a change writes.

use crate::sys::overlay::{Change, NodeKind};

/// Returns the number of bytes that a change writes, which is 0 if no new content is written.
pub(super) fn written_bytes(change: &Change) -> u64 {
    match change.after {
        Some(after) if after.kind == NodeKind::File && !change.same_content && change.moved_from.is_none() => after.bytes,
        _ => 0,
    }
}
