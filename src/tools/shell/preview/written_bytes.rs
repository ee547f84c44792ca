//! Size of a change: the number of bytes that it writes.

use crate::sys::overlay::{Change, NodeKind};

/// Returns the number of bytes written.
pub(super) fn written_bytes(change: &Change) -> u64 {
    match change.after {
        Some(after) if after.kind == NodeKind::File && !change.same_content && change.moved_from.is_none() => after.bytes,
        _ => 0,
    }
}
