//! Exports sessions as JSON, Markdown or HTML.

use super::checkpoint::{
    ArtifactContent, AyeData, CheckpointMessage, CheckpointRecord, CheckpointTask, OWN_FORMAT, SessionCheckpoint, VERSION,
};
use super::conversation::Conversation;
use super::error::TransferError;
use super::format::format_size;
use super::transcript::SessionTranscript;
use super::{html, markdown};
use crate::ports::{ARTIFACT_BYTES, Artifacts, Record};
use crate::protocol::{ExportForm, Problem, SessionId, SessionStatus, cut_position_before};
use crate::session::{SessionState, without_authority};
use crate::store::{ArtifactStore, SessionSummary, Store, StoreError};
use crate::sys::file::{Existing, write_whole};
use crate::text::rewrite_strings;
use base64::Engine as _;
use jiff::Timestamp;
use serde::ser::SerializeSeq;
use serde::{Serialize, Serializer};
use std::cell::RefCell;
use std::io::Write;
use std::ops::ControlFlow;
use std::path::Path;

/// Exports a session to a new file. Returns a message with the file's path and size.
pub(crate) fn to_new_file(store: &Store, id: &str, form: ExportForm, path: &Path) -> Result<String, TransferError> {
    let summary = store.find(id).map_err(|error| match error {
        // A session is stored only once it has a message.
        StoreError::NoSession { .. } => TransferError::Failed("nothing to export: this session has no messages yet".into()),
        error => error.into(),
    })?;
    let text = page(store, &summary, form, None)?;
    let failed = |error: &dyn std::fmt::Display| Problem::new(format!("cannot write `{}`", path.display())).because(error);
    match write_whole(path, text.as_bytes(), Existing::Keep) {
        Ok(()) => Ok(format!("exported to {}, {}", path.display(), format_size(text.len() as u64))),
        Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => {
            let hint = format!("choose another name: FILE.{}", form.ending());
            Err(TransferError::Failed(failed(&"the file already exists").hint(hint)))
        }
        Err(error) => Err(TransferError::Failed(failed(&error))),
    }
}

/// Maximum size of a transcript shown on the screen, in bytes. If a transcript is longer, only its end is shown.
const READ_BYTES: usize = 1 << 20;

/// Returns a session's title and its transcript as Markdown.
pub(crate) fn to_read(store: &Store, id: &SessionId) -> Result<(String, String), TransferError> {
    let summary = store.find(id.as_str())?;
    let mut text = page(store, &summary, ExportForm::Markdown, None)?;
    if text.len() > READ_BYTES {
        let from = cut_position_before(&text, text.len() - READ_BYTES);
        let left = format_size(from as u64);
        let short: String = id.as_str().chars().take(8).collect();
        text = format!(
            "[the first {left} are not shown; run `aye sessions export {short}` for the whole session]\n{}",
            &text[from..]
        );
    }
    Ok((summary.title.unwrap_or_else(|| "(no prompt)".to_owned()), text))
}

/// Renders a session in the given format. Only JSON includes artifacts.
pub(crate) fn page(
    store: &Store,
    summary: &SessionSummary,
    form: ExportForm,
    artifacts: Option<Vec<ArtifactContent>>,
) -> Result<String, TransferError> {
    Ok(match form {
        ExportForm::Json => as_json(&checkpoint(store, summary, artifacts)?)?,
        ExportForm::Markdown => markdown::page(&transcript(store, summary)?),
        ExportForm::Html => html::page(&transcript(store, summary)?),
    })
}

/// Returns JSON without characters that a terminal would interpret. Escaping them does not change the meaning of the
/// JSON.
pub(crate) fn as_json(checkpoint: &SessionCheckpoint) -> Result<String, TransferError> {
    let text = serde_json::to_string_pretty(checkpoint).map_err(|error| not_json(&error))?;
    Ok(crate::headless::lines::escape_controls(&text) + "\n")
}

fn not_json(error: &dyn std::fmt::Display) -> TransferError {
    TransferError::Failed(Problem::new("cannot write the session as JSON").because(error))
}

/// Writes the same JSON as [`as_json`] with all texts redacted, one record at a time to avoid loading all records into
/// memory. Calls `visit` for each exported record. Returns the time of the last record.
pub(crate) fn write_json(
    store: &Store,
    summary: &SessionSummary,
    redact: &dyn Fn(&str) -> String,
    mut to: impl Write,
    visit: &mut dyn FnMut(Timestamp, &Record),
) -> Result<Timestamp, TransferError> {
    let scanned = scan(store, summary, None, Some(redact), |_| {})?;
    let (last, count) = (scanned.last, scanned.count);
    let records = RecordStream { store, id: &summary.session_id, count, redact, visit: RefCell::new(visit) };
    let mut checkpoint = assemble(store, summary, None, scanned, records)?;
    let aye = &mut checkpoint.aye;
    aye.title = aye.title.as_deref().map(redact);
    aye.draft = redact(&aye.draft);
    serde_json::to_writer_pretty(ControlEscaper(&mut to), &checkpoint).map_err(|error| not_json(&error))?;
    to.write_all(b"\n").and_then(|()| to.flush()).map_err(|error| not_json(&error))?;
    Ok(last)
}

/// Callback that receives each record and its time.
type RecordVisitor<'a> = dyn FnMut(Timestamp, &Record) + 'a;

/// The first `count` records of a session, read from the store while they are being serialized.
struct RecordStream<'a> {
    store: &'a Store,
    id: &'a SessionId,
    count: u64,
    redact: &'a dyn Fn(&str) -> String,
    visit: RefCell<&'a mut RecordVisitor<'a>>,
}

impl Serialize for RecordStream<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut list = serializer.serialize_seq(None)?;
        let (mut visit, mut left, mut failure) = (self.visit.borrow_mut(), self.count, None);
        let read = self.store.for_each_record(self.id, |written| {
            if left == 0 {
                return ControlFlow::Break(());
            }
            left -= 1;
            let Some(entry) = without_authority(written.record) else { return ControlFlow::Continue(()) };
            let entry = redacted(entry, self.redact);
            (*visit)(written.time, &entry);
            match list.serialize_element(&CheckpointRecord { time: written.time, entry }) {
                Ok(()) => ControlFlow::Continue(()),
                Err(error) => {
                    failure = Some(error);
                    ControlFlow::Break(())
                }
            }
        });
        if let Some(error) = failure {
            return Err(error);
        }
        read.map_err(serde::ser::Error::custom)?;
        list.end()
    }
}

/// Redacts every text in a record. A record that cannot be read without the redacted texts becomes unreadable.
fn redacted(record: Record, redact: &dyn Fn(&str) -> String) -> Record {
    let Ok(mut value) = serde_json::to_value(&record) else { return Record::Unreadable };
    if !rewrite_strings(&mut value, redact) {
        return record;
    }
    serde_json::from_value(value).unwrap_or(Record::Unreadable)
}

/// Writer that escapes characters in JSON that a terminal would interpret. Each write must be complete UTF-8 text,
/// which is the case for `serde_json`.
struct ControlEscaper<W>(W);

impl<W: Write> Write for ControlEscaper<W> {
    fn write(&mut self, text: &[u8]) -> std::io::Result<usize> {
        let json = std::str::from_utf8(text).map_err(|error| std::io::Error::new(std::io::ErrorKind::InvalidData, error))?;
        if json.is_ascii() && !text.contains(&0x7f) {
            self.0.write_all(text)?;
        } else {
            self.0.write_all(crate::headless::lines::escape_controls(json).as_bytes())?;
        }
        Ok(text.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        self.0.flush()
    }
}

pub(crate) fn checkpoint(
    store: &Store,
    summary: &SessionSummary,
    artifacts: Option<Vec<ArtifactContent>>,
) -> Result<SessionCheckpoint, TransferError> {
    build_checkpoint(store, summary, artifacts, None).map(|(checkpoint, _)| checkpoint)
}

/// Builds a checkpoint from a session's first `most` records, or from all of them. Also returns the number of records
/// used.
pub(crate) fn build_checkpoint(
    store: &Store,
    summary: &SessionSummary,
    artifacts: Option<Vec<ArtifactContent>>,
    most: Option<u64>,
) -> Result<(SessionCheckpoint, u64), TransferError> {
    let mut records = Vec::new();
    let scanned = scan(store, summary, most, None, |record| records.push(record))?;
    let count = scanned.count;
    Ok((assemble(store, summary, artifacts, scanned, records)?, count))
}

/// State of a session after its first `count` records.
struct ScannedSession {
    state: SessionState,
    conversation: Conversation,
    /// Number of scanned records. `last` is the time of the last exported record.
    count: u64,
    last: Timestamp,
}

/// Reads a session's first `most` records, or all of them, and redacts them if `redact` is given. Calls `add` for each
/// exported record.
fn scan(
    store: &Store,
    summary: &SessionSummary,
    most: Option<u64>,
    redact: Option<&dyn Fn(&str) -> String>,
    mut add: impl FnMut(CheckpointRecord),
) -> Result<ScannedSession, TransferError> {
    let (mut state, mut conversation) = (SessionState::default(), Conversation::default());
    let (mut count, mut last) = (0, summary.created);
    store.for_each_record(&summary.session_id, |written| {
        if most == Some(count) {
            return ControlFlow::Break(());
        }
        count += 1;
        let record = match redact {
            Some(redact) => redacted(written.record, redact),
            None => written.record,
        };
        conversation.add(&state.apply(&record).change);
        if let Some(entry) = without_authority(record) {
            last = written.time;
            add(CheckpointRecord { time: last, entry });
        }
        ControlFlow::Continue(())
    })?;
    Ok(ScannedSession { state, conversation, count, last })
}

fn assemble<R>(
    store: &Store,
    summary: &SessionSummary,
    artifacts: Option<Vec<ArtifactContent>>,
    scanned: ScannedSession,
    records: R,
) -> Result<SessionCheckpoint<R>, TransferError> {
    let ScannedSession { state, conversation, last, .. } = scanned;
    let is_open = state.task().is_some_and(|task| task.stage.is_open());
    let is_paused = state.pause.is_some() || (is_open && summary.held_by.is_none());
    let totals = state.totals();
    Ok(SessionCheckpoint {
        checkpoint_version: VERSION,
        session_id: summary.session_id.clone(),
        workspace_id: summary.workspace_id.clone(),
        session_status: if is_paused { SessionStatus::Paused } else { SessionStatus::Running },
        task: state.task().map(CheckpointTask::from),
        step_cursor: state.step_cursor().cloned(),
        thread: conversation.messages.into_iter().map(CheckpointMessage::from).collect(),
        session_tokens_used: totals.tokens(),
        tenant_id: state.tenant_id,
        user_id: state.user_id,
        policy_bundle_version: state.policy_bundle_version,
        checkpointed_at: last,
        aye: AyeData {
            format: OWN_FORMAT,
            version: env!("CARGO_PKG_VERSION"),
            title: summary.title.clone(),
            parent: summary.parent.clone(),
            workspace: summary.workspace.clone(),
            created: summary.created,
            model: summary.model.clone(),
            draft: store.draft(&summary.session_id)?,
            queue: state.queue,
            cost_usd: totals.cost_usd,
            estimated: totals.estimated,
            records,
            artifacts,
        },
    })
}

/// Returns a session's existing artifacts, and a notice for each artifact that cannot be read.
pub(crate) fn contents(artifacts: &ArtifactStore) -> (Vec<ArtifactContent>, Vec<String>) {
    let (mut contents, mut notices) = (Vec::new(), Vec::new());
    for artifact in artifacts.list().unwrap_or_default() {
        match artifacts.content(&artifact.uri, ARTIFACT_BYTES) {
            Ok(content) => {
                contents.push(ArtifactContent { base64: base64::engine::general_purpose::STANDARD.encode(content), artifact });
            }
            Err(error) => notices.push(format!("skipped an artifact: {error}")),
        }
    }
    (contents, notices)
}

fn transcript(store: &Store, summary: &SessionSummary) -> Result<SessionTranscript, TransferError> {
    let mut transcript = SessionTranscript::new(summary);
    store.for_each_record(&summary.session_id, |written| {
        transcript.add(&written.record);
        ControlFlow::Continue(())
    })?;
    transcript.end(&store.draft(&summary.session_id)?);
    Ok(transcript)
}
