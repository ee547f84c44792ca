//! File buffers of an editor.

use super::BoxFuture;
use std::path::Path;

/// Maximum bytes of a buffer that is read or sent.
pub(crate) const BUFFER_BYTES: u64 = 4 << 20;

/// Buffers that an editor has open, by resolved path. Every call returns within a time limit, regardless of the editor.
pub(crate) trait Buffers: Send + Sync {
    /// Returns the text in the editor, saved or not; `None` if the editor does not provide it.
    fn text(&self, real: &Path) -> BoxFuture<'static, Option<String>>;
    /// Sends the new content of the file to the editor. Returns whether the editor accepted it.
    fn send_text(&self, real: &Path, text: String) -> BoxFuture<'static, bool>;
}
