//! Editor buffers for open files.

use super::BoxFuture;
use std::path::Path;

/// Maximum size of a buffer that aye reads or sends, in bytes.
pub(crate) const BUFFER_BYTES: u64 = 4 << 20;

/// Access to an editor's open buffers by resolved path. Every call returns within a time limit, even if the editor
/// does not respond.
pub(crate) trait Buffers: Send + Sync {
    /// Returns the buffer's text, including unsaved changes, or `None` if the editor does not provide it.
    fn text(&self, real: &Path) -> BoxFuture<'static, Option<String>>;
    /// Sends the file's new content to the editor. Returns whether the editor accepted it.
    fn send_text(&self, real: &Path, text: String) -> BoxFuture<'static, bool>;
}
