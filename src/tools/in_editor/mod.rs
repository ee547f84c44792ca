//! Files that are open in an editor: the model reads what stands there, what is unsaved there is not written over, and the editor is
//! told what was written. The disk stays what counts: where the editor does not answer, it alone is looked at.

mod known;
mod text;

use super::paths::Paths;
use super::registry::resolve;
use super::tool::{AnyTool, Settings, object};
use crate::ports::{BUFFER_BYTES, Buffers, RunContext};
use crate::protocol::{Action, CallId, ErrorCode, Place, Target, ToolCall, ToolError};
use crate::tools::write::document::{Document, Form};
use futures_util::future::{BoxFuture, FutureExt as _, Shared};
use futures_util::stream::{self, StreamExt as _};
use known::{Known, Stands};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio_util::sync::CancellationToken;

/// Files that an editor is asked for at once.
const AT_ONCE: usize = 16;
/// Of a rewind no more than so many are told.
const MAX_REWOUND: usize = 256;

/// What an editor has open. All clones are the same.
#[derive(Clone)]
pub struct InEditor {
    port: Arc<dyn Buffers>,
    state: Arc<Mutex<State>>,
}

#[derive(Default)]
struct State {
    known: Known,
    /// What the editor is being told. An editor writes what it is told to the disk, so that nothing else is written meanwhile.
    telling: Option<Shared<BoxFuture<'static, ()>>>,
}

/// A file as it stands on the disk and in the editor.
struct Look {
    disk: Document,
    buffer: String,
    stands: Stands,
}

impl InEditor {
    pub fn new(port: Arc<dyn Buffers>) -> Self {
        Self { port, state: Arc::default() }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Comes when the editor was told all that it is to be told.
    async fn settled(&self) {
        let telling = self.state().telling.clone();
        if let Some(telling) = telling {
            telling.await;
        }
    }

    /// None where the file is no text, or the editor does not say.
    async fn look(&self, real: &Path, most_bytes: u64) -> Option<Look> {
        let most_bytes = most_bytes.min(BUFFER_BYTES);
        text::on_disk(real, most_bytes).await?;
        let buffer = self.port.text(real).await?;
        if buffer.len() as u64 > most_bytes || buffer.contains('\0') {
            return None;
        }
        // Read after the editor's: what was saved in between is no difference.
        let disk = text::on_disk(real, most_bytes).await?;
        let stands = self.state().known.compare(real, text::named(&disk.text), text::named(&buffer));
        Some(Look { disk, buffer, stands })
    }

    /// The text that the editor has and the disk does not, as it would be saved.
    async fn unsaved(&self, real: &Path, most_bytes: u64) -> Option<Document> {
        self.settled().await;
        let Look { disk, buffer, stands } = self.look(real, most_bytes).await?;
        (stands == Stands::Unsaved).then(|| text::as_saved(&disk, &buffer))
    }

    /// Refuses a change of files of which the editor has something unsaved; else what stands on the disk of those it answers for.
    async fn all_saved(&self, files: Vec<Target>, most_bytes: u64) -> Result<Vec<(PathBuf, blake3::Hash)>, ToolError> {
        self.settled().await;
        let look = |target: Target| async move {
            let look = self.look(&target.real, most_bytes).await;
            (target, look)
        };
        let looks: Vec<_> = stream::iter(files).map(look).buffered(AT_ONCE).collect().await;
        let mut saved = Vec::new();
        for (target, look) in looks {
            match look {
                Some(Look { stands: Stands::Unsaved, .. }) => return Err(refused(&target)),
                Some(Look { disk, .. }) => saved.push((target.real, text::named(&disk.text))),
                None => {}
            }
        }
        Ok(saved)
    }

    /// Before a call is planned: only files that the policy does not keep from it are asked for.
    pub(super) async fn may_plan(&self, call: &ToolCall, settings: &Arc<Settings>) -> Result<(), ToolError> {
        let (call, own) = (call.clone(), Arc::clone(settings));
        let files = tokio::task::spawn_blocking(move || {
            let tool = resolve(&call.tool_name, &own).ok().filter(|tool| writes_files(*tool))?;
            (own.may_use)(tool.name()).ok()?;
            let actions = tool.actions(&call.tool_name, object(&call.arguments).ok()?, &Paths::on_disk(&own)).ok()?;
            let allowed = |action: &&Action| match action {
                Action::Write { target } => (own.may_read)(&target.real) && (own.may_write)(&target.real),
                Action::Delete { target } => (own.may_read)(&target.real) && (own.may_delete)(&target.real),
                _ => true,
            };
            actions.iter().all(|action| allowed(&action)).then(|| changed(&actions))
        });
        // What cannot be looked at so is told by the plan itself.
        let Ok(Some(files)) = files.await else { return Ok(()) };
        self.all_saved(files, settings.max_file_size_bytes).await.map(drop)
    }

    /// Just before a call changes something.
    pub(super) async fn may_run(
        &self,
        (tool, id): (&dyn AnyTool, &CallId),
        actions: &[Action],
        settings: &Settings,
        kill: &CancellationToken,
    ) -> Result<(), ToolError> {
        let files = if writes_files(tool) { changed(actions) } else { Vec::new() };
        let saved = tokio::select! {
            saved = self.all_saved(files, settings.max_file_size_bytes) => saved?,
            () = kill.cancelled() => return Err(ToolError::new(ErrorCode::Cancelled, "stopped by the user; nothing was changed")),
        };
        self.state().known.begins(Some(id.clone()), saved);
        Ok(())
    }

    /// Before files are put back, which an editor may have unsaved: it is told only of others.
    pub(super) async fn goes_back(&self, files: Vec<PathBuf>) {
        self.settled().await;
        let look = |real: PathBuf| async move {
            let look = self.look(&real, BUFFER_BYTES).await?;
            (look.stands != Stands::Unsaved).then(|| (real, text::named(&look.disk.text)))
        };
        let looks: Vec<_> = stream::iter(files.into_iter().take(MAX_REWOUND)).map(look).buffered(AT_ONCE).collect().await;
        self.state().known.begins(None, looks.into_iter().flatten().collect());
    }

    /// Tells the editor, beside all else, what this call wrote, or a rewind.
    pub(super) fn journaled(&self, call: Option<&CallId>) {
        let mut state = self.state();
        let files = state.known.written(call);
        if files.is_empty() {
            return;
        }
        let (own, before) = (self.clone(), state.telling.take());
        let told = tokio::spawn(async move {
            if let Some(before) = before {
                before.await;
            }
            for real in files {
                own.tell(&real).await;
            }
        });
        state.telling = Some(told.map(drop).boxed().shared());
    }

    /// Only an editor that has what stood there before is told: others know it already, or have something of the person's.
    async fn tell(&self, real: &Path) {
        let Some(Look { disk, stands: Stands::Behind, .. }) = self.look(real, BUFFER_BYTES).await else { return };
        // To the byte what stands on the disk: an editor saves what it is told.
        let text = if disk.form == Form::Utf8Bom { format!("\u{FEFF}{}", disk.text) } else { disk.text };
        if self.port.follow(real, text).await {
            self.state().known.follows(real);
        } else {
            tracing::info!(path = %real.display(), "the editor did not take over the written text");
        }
    }
}

/// What the model is to be shown of this file in the place of what stands on the disk.
pub(super) async fn unsaved(target: &Target, settings: &Settings, context: &RunContext) -> Option<Document> {
    let editor = settings.editor.as_ref().filter(|_| matches!(target.place, Place::File { .. }))?;
    tokio::select! {
        unsaved = editor.unsaved(&target.real, settings.max_file_size_bytes) => unsaved,
        () = context.kill.cancelled() => None,
    }
}

/// What is said behind a text of the editor.
pub(super) fn noted(told: String, given: &str) -> String {
    let gap = if told.ends_with('\n') { "" } else { "\n" };
    format!(
        "{told}{gap}[`{given}` as open in the user's editor, with unsaved changes; the file on disk differs, and cannot be \
         changed until it is saved]"
    )
}

fn writes_files(tool: &dyn AnyTool) -> bool {
    matches!(tool.capability(), "File.Write" | "File.Delete")
}

/// The files that there are and that these would change.
fn changed(actions: &[Action]) -> Vec<Target> {
    let file = |action: &Action| match action {
        Action::Write { target } | Action::Delete { target } if matches!(target.place, Place::File { .. }) => {
            Some(target.clone())
        }
        _ => None,
    };
    let mut files: Vec<Target> = actions.iter().filter_map(file).collect();
    files.sort_by(|one, other| one.real.cmp(&other.real));
    files.dedup_by(|one, other| one.real == other.real);
    files
}

fn refused(target: &Target) -> ToolError {
    let message = format!(
        "the editor has unsaved changes in `{}`; nothing was changed. Ask the user to save or discard them, then try again",
        target.given
    );
    ToolError::new(ErrorCode::Conflict, message)
}
