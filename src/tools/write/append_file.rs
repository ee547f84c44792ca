//! The `AppendFile` tool, which appends text to a file of any size without changing the bytes that it already contains.

use super::file_change::{CurrentFile, noting_nul, proposal, unencodable_text, write_error};
use super::file_tail::Tail;
use super::git_guard::{guard, with_guard};
use super::large::HELD_BYTES;
use crate::policy::redact::has_marker;
use crate::ports::{BoxFuture, ProposedText, RunContext};
use crate::protocol::{Action, DiffHunk, ErrorCode, FileDiff, Place, PlaceChange, Proposal, Target, ToolError};
use crate::sys::file::append::{ContentHasher, append, read_through};
use crate::sys::file::{Parents, PreImage};
use crate::tools::alias::Alias;
use crate::tools::call_result::{CallResult, blocking};
use crate::tools::crash_outcome;
use crate::tools::diff::{LineDiff, compare, prepare_text};
use crate::tools::document::content::{Document, Form, NotText};
use crate::tools::draft::CallDraft;
use crate::tools::error::invalid;
use crate::tools::paths::{ExpectedKind, Paths, display_path_one_line, open_error};
use crate::tools::read_state::ReadState;
use crate::tools::redaction::{refuse_exposure, restore_secrets, restorer};
use crate::tools::settings::ToolSettings;
use crate::tools::tool::Tool;
use crate::tools::write::file_change::not_text;
use schemars::JsonSchema;
use serde::Deserialize;
use std::sync::Arc;
use tokio_util::sync::CancellationToken;

/// Maximum file size in bytes. Copying a larger file would take too long.
const MAX_FILE_BYTES: u64 = 4 * 1024 * 1024 * 1024;

pub(in crate::tools) struct AppendFile;

#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(in crate::tools) struct AppendArguments {
    pub path: String,
    pub content: String,
    pub create_directories: Option<bool>,
}

pub(in crate::tools) struct PlannedAppend {
    target: Target,
    more: Vec<u8>,
    before: PreImage,
    after: PreImage,
    parents: Parents,
    /// Text of the file before and after the change, if a language server handles the file.
    text: Option<ProposedText>,
    done: String,
}

impl PlannedAppend {
    pub(in crate::tools) fn run(self, kill: &CancellationToken, seen: &ReadState) -> Result<String, ToolError> {
        let Self { target, more, before, parents, done, .. } = self;
        with_guard(&[(&target.real, &target.given)], || {
            seen.write_unread(&[&target.real], || append(&target.real, &more, &before, parents, &|| kill.is_cancelled()))
                .map_err(|error| write_error(&target.given, before, error))
        })?;
        Ok(done)
    }
}

impl Tool for AppendFile {
    const NAME: &'static str = "AppendFile";
    const ALIASES: &'static [Alias<AppendArguments>] =
        &[Alias::with_same_arguments("append_file"), Alias::with_same_arguments("append")];
    const CAPABILITY: &'static str = "File.Write";
    const DESCRIPTION: &'static str = include_str!("../../../assets/tools/AppendFile.md");
    const RESTORES: bool = true;
    type Arguments = AppendArguments;
    type Work = PlannedAppend;

    fn actions(arguments: &AppendArguments, paths: &Paths<'_>) -> Result<Vec<Action>, ToolError> {
        Ok(vec![Action::Write { target: paths.target("path", &arguments.path, ExpectedKind::File)? }])
    }

    fn draft(arguments: AppendArguments, settings: &ToolSettings) -> Result<CallDraft<PlannedAppend>, ToolError> {
        let target = Paths::on_disk(settings).target("path", &arguments.path, ExpectedKind::File)?;
        let parents = if arguments.create_directories.unwrap_or(true) { Parents::Create } else { Parents::MustExist };
        let appended = match target.place {
            Place::File { bytes } if is_large(bytes, &arguments, settings) => append_large(&target, bytes, &arguments, settings)?,
            Place::File { .. } | Place::Directory | Place::Missing | Place::Special => {
                append_small(&target, &arguments, settings)?
            }
        };
        let AppendedText { proposal, more, before, after, joins, nul, text } = appended;
        let mut done = format!("Appended {} bytes to {}", more.len(), target.given);
        if joins {
            done = format!("{done}; the file had no trailing newline, so the text continues its last line");
        }
        if !arguments.content.is_empty() && !arguments.content.ends_with('\n') {
            done = format!("{done}; the file now has no trailing newline");
        }
        let done = noting_nul(done, nul);
        Ok(CallDraft::changes(
            vec![Action::Write { target: target.clone() }],
            proposal,
            PlannedAppend { target, more, before, after, parents, text, done },
        ))
    }

    fn planned_changes(work: &PlannedAppend) -> Vec<PlaceChange> {
        vec![crash_outcome::planned_write(&work.target.real, &work.before, &work.after)]
    }

    fn proposed_texts(work: &PlannedAppend) -> Vec<ProposedText> {
        work.text.iter().cloned().collect()
    }

    fn run(work: PlannedAppend, settings: Arc<ToolSettings>, context: RunContext) -> BoxFuture<'static, CallResult> {
        blocking(move || Ok(work.run(&context.kill, &settings.session.seen)?))
    }
}

struct AppendedText {
    proposal: Proposal,
    more: Vec<u8>,
    before: PreImage,
    after: PreImage,
    /// Whether the appended text continues the last line, because the file had no final newline.
    joins: bool,
    nul: bool,
    /// Text of the file before and after the change, if a language server handles the file.
    text: Option<ProposedText>,
}

/// Returns whether a file is too large for memory, or so large that it is loaded only if a secret has to be restored.
fn is_large(bytes: u64, arguments: &AppendArguments, settings: &ToolSettings) -> bool {
    bytes > settings.max_file_size_bytes || (bytes > HELD_BYTES && has_marker(&arguments.content).is_none())
}

/// Appends to a new file, or to one that fits into memory.
fn append_small(target: &Target, arguments: &AppendArguments, settings: &ToolSettings) -> Result<AppendedText, ToolError> {
    let before = CurrentFile::read(target, settings)?;
    let (old, form) = match &before {
        CurrentFile::Absent => (String::new(), Form::Utf8),
        CurrentFile::Text { document: Document { text, form }, .. } => (text.clone(), *form),
        CurrentFile::NotText { why, .. } => return Err(not_text(target, *why)),
    };
    let restorer = restorer(before.document(), settings);
    let given = restore_secrets(&restorer, &arguments.content, "`content`", target)?;
    let crlf = old.rfind('\n').is_some_and(|lf| old[..lf].ends_with('\r'));
    let added = convert_endings(&given, form, crlf, old.is_empty());
    let new = format!("{old}{added}");
    refuse_exposure(&restorer, before.document(), &new, &[&arguments.content], settings, target)?;
    let more = match &before {
        CurrentFile::Absent => Some(added.clone().into_bytes()),
        _ => encode_text(form, &added),
    };
    let more = more.ok_or_else(|| unencodable_text(&target.given, form, "`content`"))?;
    let joins = joins(&old, &added);
    let verb = if matches!(before, CurrentFile::Absent) { "Create" } else { "Append to" };
    let mut proposal = proposal(verb, target, &before, &new, more.len() as u64, settings);
    proposal.notes.extend(joins.then(|| JOINS.to_owned()));
    let is_covered = settings.session.diagnostics.as_ref().is_some_and(|servers| servers.covers(&target.real));
    let text = is_covered.then(|| ProposedText {
        path: target.real.clone(),
        before: before.document().map(|document| document.text.clone()),
        after: Some(new.clone()),
    });
    let old = match &before {
        CurrentFile::Absent => ContentHasher::hash(&[]),
        CurrentFile::Text { bytes, .. } | CurrentFile::NotText { bytes, .. } => ContentHasher::hash(bytes),
    };
    let after = old.with_appended(&more);
    Ok(AppendedText { proposal, more, before: before.image(), after, joins, nul: added.contains('\0'), text })
}

/// Appends to a large file, of which only the encoding, the last line ending and the number of lines are known.
fn append_large(
    target: &Target,
    bytes: u64,
    arguments: &AppendArguments,
    settings: &ToolSettings,
) -> Result<AppendedText, ToolError> {
    guard(target)?;
    if bytes > MAX_FILE_BYTES {
        let message =
            format!("`{}` is {bytes} bytes; the limit for appending is {MAX_FILE_BYTES}. Use RunCommand instead", target.given);
        return Err(ToolError::new(ErrorCode::FileTooLarge, message));
    }
    if let Some(marker) = has_marker(&arguments.content) {
        return Err(invalid(format!(
            "`content`: `{marker}` replaces a secret, and `{}` is too large to restore it; nothing was written",
            target.given
        )));
    }
    let mut tail = Tail::default();
    let old = read_through(&target.real, &mut |chunk| tail.feed(chunk)).map_err(|error| open_error(target, &error))?;
    let form = tail.form().map_err(|why| not_text(target, why))?;
    if tail.ends_in_half_unit() {
        return Err(not_text(target, NotText::Malformed));
    }
    let added = convert_endings(&arguments.content, form, tail.crlf(), false);
    let more = encode_text(form, &added).ok_or_else(|| unencodable_text(&target.given, form, "`content`"))?;
    let joins = !tail.ends_with_break() && !added.is_empty();
    let name = display_path_one_line(&target.real, settings);
    let (hunks, lines) = added_lines(tail.lines(), &prepare_text(&added, settings));
    let diff = FileDiff::new(&format!("a/{name}"), &format!("b/{name}"), hunks).into();
    let mut notes = vec![format!("the existing {bytes} bytes stay and are not shown")];
    notes.extend(joins.then(|| JOINS.to_owned()));
    let summary = format!("Append to {name} +{lines}");
    let proposal =
        Proposal { summary, diff, paths: vec![target.real.clone()], bytes: more.len() as u64, notes, ..Proposal::default() };
    let (before, after) = (old.image(), old.with_appended(&more));
    Ok(AppendedText { proposal, more, before, after, joins, nul: added.contains('\0'), text: None })
}

const JOINS: &str = "the file has no trailing newline: the text continues its last line";

fn joins(old: &str, added: &str) -> bool {
    !old.is_empty() && !old.ends_with('\n') && !added.is_empty()
}

/// Converts the content to the file's line endings unless it contains CRLF itself, and removes a BOM that would not be
/// at the start of the file.
fn convert_endings(content: &str, form: Form, crlf: bool, first: bool) -> String {
    let keeps_bom = form == Form::Utf8 && first;
    let content = if keeps_bom { content } else { content.strip_prefix('\u{FEFF}').unwrap_or(content) };
    // A lone CR is an ordinary character.
    if crlf && !content.contains("\r\n") { content.replace('\n', "\r\n") } else { content.to_owned() }
}

/// Encodes text that is to be appended to a file with this encoding.
fn encode_text(form: Form, text: &str) -> Option<Vec<u8>> {
    let bom = form.encode("")?.len();
    form.encode(text).map(|bytes| bytes[bom..].to_vec())
}

/// Returns the hunks for lines that are added after the first `before` lines, and the number of lines added.
fn added_lines(before: u64, added: &str) -> (Vec<DiffHunk>, usize) {
    let LineDiff { mut hunks, added, .. } = compare("", added);
    for hunk in &mut hunks {
        hunk.move_down(before, before);
    }
    (hunks, added)
}
