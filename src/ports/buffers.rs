//! File buffers of an editor.

use super::BoxFuture;
use std::path::Path;

/// Maximum size in bytes of a buffer that is read or sent.
pub(crate) const BUFFER_BYTES: u64 = 4 << 20;

/// Access to the open buffers of an editor, by resolved path. Every call returns within a time limit, even if the
/// editor does not respond.
pub(crate) trait Buffers: Send + Sync {
    /// Returns the text in the editor, including unsaved changes; `None` if the editor does not
    /// provide it.
    fn text(&self, real: &Path) -> BoxFuture<'static, Option<String>>;
    /// Sends the new content of the file to the editor. Returns whether the editor accepted it.
    fn send_text(&self, real: &Path, text: String) -> BoxFuture<'static, bool>;
}
