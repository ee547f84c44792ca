//! Steps that all file changes have in common: reading the current file, building the proposal, and writing.

use super::git_guard::{guard, with_guard};
use crate::ports::ProposedText;
use crate::protocol::{DiffHunk, ErrorCode, FileDiff, Place, PlaceChange, Proposal, Target, ToolError};
use crate::sys::file::{self, Fingerprint, Parents, PreImage, ReadError, WriteError};
use crate::tools::call_result::ToolFailure;
use crate::tools::crash_outcome;
use crate::tools::diff::cuts::HunkLines;
use crate::tools::diff::{LineDiff, compare, prepare_text};
use crate::tools::document::content::{Document, Form, NotText};
use crate::tools::document::replacement::{endings, replace_all, with_lf};
use crate::tools::draft::CallDraft;
use crate::tools::error::invalid;
use crate::tools::paths::{display_path_one_line, open_error, special_file_error};
use crate::tools::read_state::ReadState;
use crate::tools::settings::ToolSettings;

/// File size in bytes above which the content of a deleted file is not shown.
const MAX_REMOVAL_BYTES: u64 = 256 * 1024;

/// Note on content that contains a NUL byte, which is usually a mistake.
pub(in crate::tools) const HAS_NUL: &str = "has a NUL byte, so it is treated as binary and cannot be read or edited as text";

/// New content for a file, and the state that the file was in when the change was proposed.
pub(in crate::tools) struct Change {
    pub target: Target,
    pub content: Vec<u8>,
    pub before: PreImage,
    pub parents: Parents,
    /// Result that the model receives.
    pub done: String,
    /// Details that allow the change to be edited, or `None` if it can only be approved as a whole.
    pub made: Option<Box<ChangeParts>>,
}

impl Change {
    /// Returns the state of the path before and after the change.
    pub(in crate::tools) fn planned_changes(&self) -> Vec<PlaceChange> {
        vec![crash_outcome::planned_write(&self.target.real, &self.before, &PreImage::hash(&self.content))]
    }

    /// Returns the text of the file before and after the change, if the details of the change are known.
    pub(in crate::tools) fn proposed_texts(&self) -> Vec<ProposedText> {
        let text = |made: &ChangeParts| ProposedText {
            path: self.target.real.clone(),
            before: made.before.document().map(|document| document.text.clone()),
            after: Some(made.after.text.clone()),
        };
        self.made.as_deref().map(text).into_iter().collect()
    }
}

/// Adds a note to the result if the content contains a NUL byte.
pub(in crate::tools) fn noting_nul(done: String, has_nul: bool) -> String {
    if has_nul { format!("{done}; it {HAS_NUL}") } else { done }
}

/// Drafts a call whose change does not match the file (`what` is the part that does not match). The reason is revealed
/// only if the policy permits reading the file, so the content of an unreadable file cannot leak.
pub(in crate::tools) fn draft_mismatch<Work>(
    (verb, what): (&str, &str),
    target: Target,
    error: ToolError,
    settings: &ToolSettings,
    explain: impl FnOnce(ToolError) -> Work,
) -> Result<CallDraft<Work>, ToolError> {
    if !(settings.paths.may_read)(&target.real) {
        let message = format!("{what} `{}`, but you cannot read that file; nothing was changed", target.given);
        return Err(invalid(message));
    }
    Ok(CallDraft::reads(format!("{verb} {}", target.given), target, explain(error)))
}

/// State of a path before it is written to.
pub(in crate::tools) enum CurrentFile {
    Absent,
    Text { bytes: Vec<u8>, document: Document },
    NotText { bytes: Vec<u8>, why: NotText },
}

impl CurrentFile {
    pub(in crate::tools) fn read(target: &Target, settings: &ToolSettings) -> Result<Self, ToolError> {
        guard(target)?;
        match target.place {
            Place::Missing => return Ok(Self::Absent),
            Place::Directory => {
                return Err(invalid(format!("`{}` is a directory, not a file; specify the path of a file", target.given)));
            }
            Place::Special => return Err(special_file_error(target)),
            Place::File { .. } => {}
        }
        let bytes = file::read(&target.real, settings.max_file_size_bytes).map_err(|error| match error {
            ReadError::TooLarge { bytes, limit } => {
                let message = format!(
                    "`{}` is {bytes} bytes; files of more than {limit} bytes cannot be edited. Use RunCommand instead",
                    target.given
                );
                ToolError::new(ErrorCode::FileTooLarge, message)
            }
            ReadError::Io(error) => open_error(target, &error),
        })?;
        Ok(match Document::decode(&bytes) {
            Ok(document) => Self::Text { bytes, document },
            Err(why) => Self::NotText { bytes, why },
        })
    }

    /// Returns the text with its encoding, if the file is text.
    pub(in crate::tools) fn document(&self) -> Option<&Document> {
        match self {
            Self::Text { document, .. } => Some(document),
            Self::Absent | Self::NotText { .. } => None,
        }
    }

    /// Returns the text, which is empty if the file is not text.
    pub(in crate::tools) fn text(&self) -> &str {
        self.document().map_or("", |document| &document.text)
    }

    pub(in crate::tools) fn image(&self) -> PreImage {
        match self {
            Self::Absent => PreImage::Absent,
            Self::Text { bytes, .. } | Self::NotText { bytes, .. } => PreImage::hash(bytes),
        }
    }
}

/// Builds the proposal from `verb`, the path, the number of lines and the diff.
pub(in crate::tools) fn proposal(
    verb: &str,
    target: &Target,
    before: &CurrentFile,
    new: &str,
    bytes: u64,
    settings: &ToolSettings,
) -> Proposal {
    proposal_with_cuts(verb, target, before, new, bytes, settings).0
}

/// Like [`proposal`], but also returns the hunks.
pub(in crate::tools) fn proposal_with_cuts(
    verb: &str,
    target: &Target,
    before: &CurrentFile,
    new: &str,
    bytes: u64,
    settings: &ToolSettings,
) -> (Proposal, Vec<HunkLines>) {
    let name = display_path_one_line(&target.real, settings);
    let (old, mut notes) = match before {
        CurrentFile::Absent => (String::new(), vec!["creates the file".to_owned()]),
        CurrentFile::Text { document, .. } => (document.text.clone(), preservation_notes(document, new)),
        CurrentFile::NotText { bytes, .. } => {
            (String::new(), vec![format!("replaces {} bytes that are not text and not shown", bytes.len())])
        }
    };
    let same = with_lf(&old) == with_lf(new);
    // A changed secret gets another marker.
    let (old, new) = (prepare_text(&old, settings), prepare_text(new, settings));
    let old_name = if matches!(before, CurrentFile::Absent) { "/dev/null".to_owned() } else { format!("a/{name}") };
    let LineDiff { hunks, added, removed, cuts } = compare(&old, &new);
    let diff = FileDiff::new(&old_name, &format!("b/{name}"), hunks).into();
    if new.contains('\0') {
        notes.push(HAS_NUL.to_owned());
    }
    if same && matches!(before, CurrentFile::Text { .. }) {
        notes.push("the text does not change".to_owned());
    }
    let summary = format!("{verb} {name} +{added} −{removed}");
    (Proposal { summary, diff, paths: vec![target.real.clone()], bytes, notes, ..Proposal::default() }, cuts)
}

/// Returns the hunks by which a text file is removed, along with its number of lines. Returns `None` if the file is not
/// text or is too large.
pub(in crate::tools) fn removal(target: &Target, settings: &ToolSettings) -> Option<(Vec<DiffHunk>, usize)> {
    let limit = settings.max_file_size_bytes.min(MAX_REMOVAL_BYTES);
    let document = Document::decode(&file::read(&target.real, limit).ok()?).ok()?;
    let LineDiff { hunks, removed, .. } = compare(&prepare_text(&document.text, settings), "");
    Some((hunks, removed))
}

/// Returns notes on changes that are not visible in a line diff.
pub(in crate::tools) fn preservation_notes(document: &Document, new: &str) -> Vec<String> {
    let mut notes = Vec::new();
    if document.form != Form::Utf8 {
        notes.push(format!("encoding stays {}", document.form.name()));
    }
    match (endings(&document.text), endings(new)) {
        (Some(old), Some(new)) if old == new && old != "LF" => notes.push(format!("line endings stay {old}")),
        (Some(old), Some(new)) if old != new => notes.push(format!("line endings change from {old} to {new}")),
        _ => {}
    }
    notes
}

/// Returns the error for text that the file's encoding cannot represent.
pub(in crate::tools) fn unencodable_text(given: &str, form: Form, what: &str) -> ToolError {
    let name = form.name();
    invalid(format!(
        "`{given}` is {name}, which lacks a character of {what}; nothing was changed. Use only characters that {name} has, or write the \
         whole file with WriteFile, which makes it UTF-8"
    ))
}

/// Writes the change if the file has not changed since the change was shown.
pub(in crate::tools) fn commit(change: &Change, seen: &ReadState) -> Result<String, ToolFailure> {
    let real = &change.target.real;
    with_guard(&[(real, &change.target.given)], || {
        let stood = seen.is_current(real);
        match file::replace(real, &change.content, &change.before, change.parents) {
            Ok(()) => {
                if stood {
                    seen.record_write(real, Fingerprint::hash(&change.content));
                }
                Ok(change.done.clone())
            }
            Err(error) => Err(write_failure(change, error)),
        }
    })
}

fn write_failure(change: &Change, error: WriteError) -> ToolFailure {
    write_error(&change.target.given, change.before, error).into()
}

/// Explains why a file was not written, with a hint on what to do.
pub(in crate::tools) fn write_error(given: &str, before: PreImage, error: WriteError) -> ToolError {
    let (code, message) = match error {
        WriteError::Changed if before == PreImage::Absent => {
            (ErrorCode::Conflict, format!("`{given}` was created in the meantime, so nothing was written; read it first"))
        }
        WriteError::Changed => {
            (ErrorCode::Conflict, format!("`{given}` changed since this change was shown, so nothing was written; read it again"))
        }
        WriteError::NoParent(parent) => {
            let message = format!("the directory `{}` does not exist; set `createDirectories` to create it", parent.display());
            (ErrorCode::FileNotFound, message)
        }
        WriteError::ReadOnly => (
            ErrorCode::PermissionDenied,
            format!("`{given}` is read-only; nothing was written. Ask the user to make it writable"),
        ),
        WriteError::Io(error) if error.kind() == std::io::ErrorKind::PermissionDenied => {
            (ErrorCode::PermissionDenied, format!("`{given}`: permission denied; nothing was written. Ask the user for access"))
        }
        WriteError::Io(error) => (ErrorCode::ToolExecutionFailed, format!("`{given}`: {error}; nothing was written")),
    };
    ToolError::new(code, message)
}

pub(in crate::tools) fn not_text(target: &Target, why: NotText) -> ToolError {
    match why {
        NotText::Binary => {
            invalid(format!("`{}` is a binary file and cannot be edited as text; use RunCommand instead", target.given))
        }
        NotText::Malformed => invalid(format!(
            "`{}` is not valid in its own encoding; an edit could damage it. Use RunCommand instead",
            target.given
        )),
    }
}

/// Converts content to the encoding and line endings of the file that it replaces. Returns a note if the encoding
/// changes.
pub(in crate::tools) fn fit_encoding(before: &CurrentFile, content: &str) -> (String, Form, Option<String>) {
    let CurrentFile::Text { document: Document { text: old, form }, .. } = before else {
        return (content.to_owned(), Form::Utf8, None);
    };
    // A BOM in the content is the one that the file already has.
    let content = if *form == Form::Utf8 { content } else { content.strip_prefix('\u{FEFF}').unwrap_or(content) };
    let text = replace_all(old, content);
    if form.encode(&text).is_some() {
        return (text, *form, None);
    }
    (text, Form::Utf8, Some(format!("encoding changes to UTF-8: {} lacks some of its characters", form.name())))
}

/// Details of a change to one file.
pub(in crate::tools) struct ChangeParts {
    pub verb: &'static str,
    pub before: CurrentFile,
    /// The file as it is after the change.
    pub after: Document,
    pub cuts: Vec<HunkLines>,
}
