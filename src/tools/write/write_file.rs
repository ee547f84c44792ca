//! WriteFile: the whole content of a file, new or replaced.

use super::document::{Document, Form};
use super::file_change::{Before, Change, HAS_NUL, commit, proposal};
use super::replacement::replace_all;
use crate::ports::{BoxFuture, RunContext};
use crate::protocol::{Action, ToolError};
use crate::sys::file::Parents;
use crate::tools::alias::Alias;
use crate::tools::markers::{keep_hidden, restored, restorer};
use crate::tools::paths::{Meant, Paths};
use crate::tools::tool::{Draft, Effect, Output, Settings, Tool, blocking};
use schemars::JsonSchema;
use serde::Deserialize;
use std::sync::Arc;

pub(in crate::tools) struct WriteFile;

#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(in crate::tools) struct Arguments {
    /// The file, relative to the workspace or absolute.
    path: String,
    /// All of its new content.
    content: String,
    /// Whether missing parent directories are made; true when absent.
    create_directories: Option<bool>,
}

impl Tool for WriteFile {
    const NAME: &'static str = "WriteFile";
    const ALIASES: &'static [Alias<Arguments>] =
        &[Alias::same("write_file"), Alias::same("write"), Alias::same("create_file"), Alias::same("TextCreate")];
    const CAPABILITY: &'static str = "File.Write";
    const DESCRIPTION: &'static str = include_str!("../../../assets/tools/WriteFile.md");
    const RESTORES: bool = true;
    type Arguments = Arguments;
    type Work = Change;

    fn actions(arguments: &Arguments, paths: &Paths<'_>) -> Result<Vec<Action>, ToolError> {
        Ok(vec![Action::Write { target: paths.target("path", &arguments.path, Meant::File)? }])
    }

    fn draft(arguments: Arguments, settings: &Settings) -> Result<Draft<Change>, ToolError> {
        let target = Paths::on_disk(settings).target("path", &arguments.path, Meant::File)?;
        let before = Before::of(&target, settings)?;
        settings.seen.check(&target)?;
        let restorer = restorer(&before, settings);
        let given = restored(&restorer, &arguments.content, "`content`", &target)?;
        let (text, form, note) = fitted(&before, &given);
        keep_hidden(&restorer, &before, &text, &[&arguments.content], settings, &target)?;
        let content = form.encode(&text).unwrap_or_else(|| text.clone().into_bytes());
        let bytes = content.len() as u64;
        let verb = if matches!(before, Before::Absent) { "Create" } else { "Write" };
        let mut proposal = proposal(verb, &target, &before, &text, bytes, settings);
        proposal.notes.extend(note);
        let parents = if arguments.create_directories.unwrap_or(true) { Parents::Create } else { Parents::MustExist };
        let mut done = format!("Wrote {bytes} bytes to {}", target.given);
        if text.contains('\0') {
            done = format!("{done}; it {HAS_NUL}");
        }
        let change = Change { target: target.clone(), content, before: before.image(), parents, done };
        Ok(Draft {
            summary: proposal.summary.clone(),
            actions: vec![Action::Write { target }],
            proposal: Some(proposal),
            effect: Effect::Changes,
            work: change,
        })
    }

    fn run(work: Change, settings: Arc<Settings>, _: RunContext) -> BoxFuture<'static, Output> {
        blocking(move || commit(&work, &settings.seen))
    }
}

/// The content in the form of the file it replaces: its encoding, its line endings.
fn fitted(before: &Before, content: &str) -> (String, Form, Option<String>) {
    let Before::Text { document: Document { text: old, form }, .. } = before else {
        return (content.to_owned(), Form::Utf8, None);
    };
    // A BOM that the content brings is the one the file has.
    let content = if *form == Form::Utf8 { content } else { content.strip_prefix('\u{FEFF}').unwrap_or(content) };
    let text = replace_all(old, content);
    if form.encode(&text).is_some() {
        return (text, *form, None);
    }
    (text, Form::Utf8, Some(format!("becomes UTF-8: {} lacks some of its characters", form.name())))
}
