//! The `WriteFile` tool, which writes the whole content of a new or existing file.

use super::append_file;
use super::file_change::{Change, CurrentFile, HAS_NUL, commit, noting_nul};
use super::large::Large;
use crate::policy::redact::Restorer;
use crate::ports::{BoxFuture, ProposedText, RunContext};
use crate::protocol::{Action, Amendable, Amendment, FileDiff, PlaceChange, Proposal, Target, ToolError};
use crate::sys::file::Parents;
use crate::tools::alias::Alias;
use crate::tools::call_result::{CallResult, blocking};
use crate::tools::diff::{LineDiff, compare, prepare_text};
use crate::tools::document::content::{Document, Form};
use crate::tools::draft::CallDraft;
use crate::tools::error::amendment_error;
use crate::tools::paths::{ExpectedKind, Paths, display_path_one_line};
use crate::tools::redaction::{refuse_exposure, restore_secrets, restorer};
use crate::tools::settings::ToolSettings;
use crate::tools::tool::Tool;
use crate::tools::write::file_change::{ChangeParts, fit_encoding};
use schemars::JsonSchema;
use serde::Deserialize;
use std::sync::Arc;

pub(in crate::tools) struct WriteFile;

#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(in crate::tools) struct Arguments {
    path: String,
    content: String,
    create_directories: Option<bool>,
    #[serde(skip)]
    append: bool,
}

/// Arguments of `write_file`, which can also append.
#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct WriteOrAppend {
    path: String,
    /// The whole content, or with `append` the text to append.
    content: String,
    /// False by default.
    append: Option<bool>,
    create_directories: Option<bool>,
}

impl From<WriteOrAppend> for Arguments {
    fn from(given: WriteOrAppend) -> Self {
        let WriteOrAppend { path, content, append, create_directories } = given;
        Self { path, content, create_directories, append: append.unwrap_or(false) }
    }
}

pub(in crate::tools) enum Work {
    Write(Change),
    Append(append_file::PlannedAppend),
}

impl Tool for WriteFile {
    const NAME: &'static str = "WriteFile";
    const ALIASES: &'static [Alias<Arguments>] = &[
        Alias::new::<WriteOrAppend>("write_file"),
        Alias::with_same_arguments("write"),
        Alias::with_same_arguments("create_file"),
        Alias::with_same_arguments("TextCreate"),
    ];
    const CAPABILITY: &'static str = "File.Write";
    const DESCRIPTION: &'static str = include_str!("../../../assets/tools/WriteFile.md");
    const RESTORES: bool = true;
    type Arguments = Arguments;
    type Work = Work;

    fn actions(arguments: &Arguments, paths: &Paths<'_>) -> Result<Vec<Action>, ToolError> {
        Ok(vec![Action::Write { target: paths.target("path", &arguments.path, ExpectedKind::File)? }])
    }

    fn draft(arguments: Arguments, settings: &ToolSettings) -> Result<CallDraft<Work>, ToolError> {
        if arguments.append {
            let Arguments { path, content, create_directories, .. } = arguments;
            let appended =
                append_file::AppendFile::draft(append_file::AppendArguments { path, content, create_directories }, settings)?;
            let CallDraft { summary, actions, proposal, effect, work } = appended;
            return Ok(CallDraft { summary, actions, proposal, effect, work: Work::Append(work) });
        }
        let target = Paths::on_disk(settings).target("path", &arguments.path, ExpectedKind::File)?;
        if let Some(large) = Large::inspect(&target, settings)? {
            return draft_large(arguments, &large, target, settings);
        }
        let before = CurrentFile::read(&target, settings)?;
        settings.session.seen.check(&target)?;
        let restorer = restorer(before.document(), settings);
        let given = restore_secrets(&restorer, &arguments.content, "`content`", &target)?;
        let (text, form, note) = fit_encoding(&before, &given);
        refuse_exposure(&restorer, before.document(), &text, &[&arguments.content], settings, &target)?;
        let content = form.encode(&text).unwrap_or_else(|| text.clone().into_bytes());
        let bytes = content.len() as u64;
        let verb = if matches!(before, CurrentFile::Absent) { "Create" } else { "Write" };
        let has_nul = text.contains('\0');
        let after = Document { form: if form.encode(&text).is_some() { form } else { Form::Utf8 }, text };
        let (mut proposal, made) = ChangeParts::propose(verb, &target, before, after, bytes, settings);
        proposal.notes.extend(note);
        let parents = if arguments.create_directories.unwrap_or(true) { Parents::Create } else { Parents::MustExist };
        let done = noting_nul(format!("Wrote {bytes} bytes to {}", target.given), has_nul);
        let change = Change::new(target.clone(), content, parents, done, made);
        Ok(CallDraft::changes(vec![Action::Write { target }], proposal, Work::Write(change)))
    }

    fn planned_changes(work: &Work) -> Vec<PlaceChange> {
        match work {
            Work::Write(change) => change.planned_changes(),
            Work::Append(more) => append_file::AppendFile::planned_changes(more),
        }
    }

    fn proposed_texts(work: &Work) -> Vec<ProposedText> {
        match work {
            Work::Write(change) => change.proposed_texts(),
            Work::Append(more) => append_file::AppendFile::proposed_texts(more),
        }
    }

    fn amendable(work: &Work, settings: &ToolSettings) -> (Amendable, Vec<String>) {
        match work {
            Work::Write(change) => change.amendable(settings),
            Work::Append(_) => (Amendable::default(), Vec::new()),
        }
    }

    fn amend(work: Work, amendment: &Amendment, settings: &ToolSettings) -> Result<(CallDraft<Work>, String), ToolError> {
        match work {
            Work::Write(change) => {
                let (draft, told) = change.amend(amendment, settings)?;
                Ok((draft.map(Work::Write), told))
            }
            Work::Append(_) => Err(amendment_error()),
        }
    }

    fn run(work: Work, settings: Arc<ToolSettings>, context: RunContext) -> BoxFuture<'static, CallResult> {
        blocking(move || match work {
            Work::Write(change) => commit(&change, &settings.session.seen),
            Work::Append(more) => Ok(more.run(&context.kill, &settings.session.seen)?),
        })
    }
}

/// Drafts replacing a file that is too large to be loaded and compared.
fn draft_large(
    arguments: Arguments,
    large: &Large,
    target: Target,
    settings: &ToolSettings,
) -> Result<CallDraft<Work>, ToolError> {
    settings.session.seen.check(&target)?;
    let given = restore_secrets(&Restorer::default(), &arguments.content, "`content`", &target)?;
    let form = large.form.unwrap_or(Form::Utf8);
    let given = if form == Form::Utf8 { given.as_str() } else { given.strip_prefix('\u{FEFF}').unwrap_or(&given) };
    let crlf = large.form.is_ok() && large.crlf && !given.contains("\r\n");
    let text = if crlf { given.replace('\n', "\r\n") } else { given.to_owned() };
    let kept = form.encode(&text);
    let mut notes = vec![format!("replaces {} bytes, too many to compare or show", large.bytes)];
    match &kept {
        None => notes.push(format!("encoding changes to UTF-8: {} lacks some of its characters", form.name())),
        Some(_) if form != Form::Utf8 => notes.push(format!("encoding stays {}", form.name())),
        Some(_) => {}
    }
    let content = kept.unwrap_or_else(|| text.clone().into_bytes());
    let name = display_path_one_line(&target.real, settings);
    let LineDiff { hunks, added, .. } = compare("", &prepare_text(&text, settings));
    let diff = FileDiff::new(&format!("a/{name}"), &format!("b/{name}"), hunks).into();
    let bytes = content.len() as u64;
    let has_nul = text.contains('\0');
    notes.extend(has_nul.then(|| HAS_NUL.to_owned()));
    let done = noting_nul(format!("Wrote {bytes} bytes to {}", target.given), has_nul);
    let summary = format!("Write {name} +{added}, replacing all of its {} bytes", large.bytes);
    Ok(CallDraft::changes(
        vec![Action::Write { target: target.clone() }],
        Proposal { summary, diff, paths: vec![target.real.clone()], bytes, notes, ..Proposal::default() },
        Work::Write(Change { target, content, before: large.before, parents: Parents::MustExist, done, made: None }),
    ))
}
