//! Files as somebody has them open in an editor.

use super::BoxFuture;
use std::path::Path;

/// A longer text is neither asked for nor told.
pub const BUFFER_BYTES: u64 = 4 << 20;

/// What an editor has of files, by their real paths. Each answer comes within a bound of time, whatever the editor does.
pub trait Buffers: Send + Sync {
    /// The text as it has it, saved or not; none where it does not say.
    fn text(&self, real: &Path) -> BoxFuture<'static, Option<String>>;
    /// Tells it what stands in the file now; whether it took that.
    fn follow(&self, real: &Path, text: String) -> BoxFuture<'static, bool>;
}
