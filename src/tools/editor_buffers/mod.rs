//! Files that are open in an editor. The model reads the editor's text, unsaved edits are not overwritten, and the
//! editor is notified of writes. If the editor does not respond, only the files on disk are used.

mod buffer_states;
mod text;

use super::document::content::{Document, Form};
use crate::ports::{BUFFER_BYTES, Buffers, RunContext};
use crate::protocol::{CallId, ErrorCode, Place, Target, ToolError};
use buffer_states::{BufferState, BufferStates};
use futures_util::future::{BoxFuture, FutureExt as _, Shared};
use futures_util::stream::{self, StreamExt as _};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio_util::sync::CancellationToken;

/// Maximum number of files to request from the editor at once.
const MAX_CONCURRENT: usize = 16;
/// Maximum number of rewound files to report to the editor.
const MAX_REWOUND: usize = 256;

/// The files open in an editor. Clones share their state.
#[derive(Clone)]
pub(crate) struct EditorConnection {
    port: Arc<dyn Buffers>,
    state: Arc<Mutex<State>>,
}

#[derive(Default)]
struct State {
    known: BufferStates,
    /// Notification of the editor that is in progress. Because the editor writes the text that it receives to disk, no
    /// other write happens until the notification completes.
    telling: Option<Shared<BoxFuture<'static, ()>>>,
}

/// A file as it is on disk and in the editor.
struct BufferComparison {
    disk: Document,
    buffer: String,
    stands: BufferState,
}

impl EditorConnection {
    pub(crate) fn new(port: Arc<dyn Buffers>) -> Self {
        Self { port, state: Arc::default() }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits until the editor has received every update.
    async fn wait_for_updates(&self) {
        let telling = self.state().telling.clone();
        if let Some(telling) = telling {
            telling.await;
        }
    }

    /// Compares the text on disk with the text in the editor. Returns `None` if the file is not UTF-8 text or the
    /// editor does not respond.
    async fn compare(&self, real: &Path, max_bytes: u64) -> Option<BufferComparison> {
        let max_bytes = max_bytes.min(BUFFER_BYTES);
        text::on_disk(real, max_bytes).await?;
        let buffer = self.port.text(real).await?;
        if buffer.len() as u64 > max_bytes || buffer.contains('\0') {
            return None;
        }
        // Read the disk after the editor, so that a save between the two reads does not appear as a difference.
        let disk = text::on_disk(real, max_bytes).await?;
        let stands = self.state().known.compare(real, text::line_hash(&disk.text), text::line_hash(&buffer));
        Some(BufferComparison { disk, buffer, stands })
    }

    /// Returns the document that the editor would save, or `None` if there are no unsaved edits.
    async fn unsaved_document(&self, real: &Path, max_bytes: u64) -> Option<Document> {
        self.wait_for_updates().await;
        let BufferComparison { disk, buffer, stands } = self.compare(real, max_bytes).await?;
        (stands == BufferState::Unsaved).then(|| text::as_saved(&disk, &buffer))
    }

    /// Checks that none of the files has unsaved edits. Returns the hashes of those that are open in the editor.
    pub(super) async fn check_saved(
        &self,
        files: Vec<Target>,
        max_bytes: u64,
    ) -> Result<Vec<(PathBuf, blake3::Hash)>, ToolError> {
        self.wait_for_updates().await;
        let look = |target: Target| async move {
            let look = self.compare(&target.real, max_bytes).await;
            (target, look)
        };
        let looks: Vec<_> = stream::iter(files).map(look).buffered(MAX_CONCURRENT).collect().await;
        let mut saved = Vec::new();
        for (target, look) in looks {
            match look {
                Some(BufferComparison { stands: BufferState::Unsaved, .. }) => return Err(unsaved_error(&target)),
                Some(BufferComparison { disk, .. }) => saved.push((target.real, text::line_hash(&disk.text))),
                None => {}
            }
        }
        Ok(saved)
    }

    /// Checks that a call's files have no unsaved edits, and records that the call is about to write them.
    pub(super) async fn may_run(
        &self,
        call: &CallId,
        files: Vec<Target>,
        max_bytes: u64,
        kill: &CancellationToken,
    ) -> Result<(), ToolError> {
        let saved = tokio::select! {
            saved = self.check_saved(files, max_bytes) => saved?,
            () = kill.cancelled() => return Err(ToolError::new(ErrorCode::Cancelled, "stopped by the user; nothing was changed")),
        };
        self.state().known.begin_write(Some(call.clone()), saved);
        Ok(())
    }

    /// Prepares for rewinding files. The editor will be notified only of those that have no unsaved edits.
    pub(super) async fn begin_rewind(&self, files: Vec<PathBuf>) {
        self.wait_for_updates().await;
        let look = |real: PathBuf| async move {
            let look = self.compare(&real, BUFFER_BYTES).await?;
            (look.stands != BufferState::Unsaved).then(|| (real, text::line_hash(&look.disk.text)))
        };
        let looks: Vec<_> = stream::iter(files.into_iter().take(MAX_REWOUND)).map(look).buffered(MAX_CONCURRENT).collect().await;
        self.state().known.begin_write(None, looks.into_iter().flatten().collect());
    }

    /// Notifies the editor, in the background, of the writes that this call, or a rewind if `call` is `None`, has made.
    pub(super) fn notify_journaled(&self, call: Option<&CallId>) {
        let mut state = self.state();
        let files = state.known.take_written(call);
        if files.is_empty() {
            return;
        }
        let (own, before) = (self.clone(), state.telling.take());
        let told = tokio::spawn(async move {
            if let Some(before) = before {
                before.await;
            }
            for real in files {
                own.send_saved(&real).await;
            }
        });
        state.telling = Some(told.map(drop).boxed().shared());
    }

    /// Sends the saved text to the editor if the editor's buffer still has the old text. Otherwise, the buffer is
    /// either up to date or has unsaved edits.
    async fn send_saved(&self, real: &Path) {
        let Some(BufferComparison { disk, stands: BufferState::Behind, .. }) = self.compare(real, BUFFER_BYTES).await else {
            return;
        };
        // Send the exact text on disk, including a BOM, because an editor saves the text that it receives.
        let text = if disk.form == Form::Utf8Bom { format!("\u{FEFF}{}", disk.text) } else { disk.text };
        if self.port.send_text(real, text).await {
            self.state().known.mark_synced(real);
        } else {
            tracing::info!(path = %real.display(), "the editor did not accept the updated text");
        }
    }
}

/// Returns the unsaved text of a file, which the model receives in place of the content on disk.
pub(super) async fn unsaved_document(
    editor: Option<&EditorConnection>,
    target: &Target,
    max_bytes: u64,
    context: &RunContext,
) -> Option<Document> {
    let editor = editor.filter(|_| matches!(target.place, Place::File { .. }))?;
    tokio::select! {
        unsaved = editor.unsaved_document(&target.real, max_bytes) => unsaved,
        () = context.kill.cancelled() => None,
    }
}

/// Appends a note saying that the text is unsaved.
pub(super) fn with_unsaved_note(told: String, given: &str) -> String {
    let gap = if told.ends_with('\n') { "" } else { "\n" };
    format!(
        "{told}{gap}[This is `{given}` as open in the user's editor, with unsaved changes. The file on disk differs, and cannot be \
         changed until the user saves these changes.]"
    )
}

fn unsaved_error(target: &Target) -> ToolError {
    let message = format!(
        "the editor has unsaved changes in `{}`; nothing was changed. Ask the user to save or discard them, then try again",
        target.given
    );
    ToolError::new(ErrorCode::Conflict, message)
}
