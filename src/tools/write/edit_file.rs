//! EditFile: passages of a file replaced, the rest kept to the byte.

use super::document::{Document, Form, NotText};
use super::file_change::{Before, Change, HAS_NUL, commit, proposal};
use super::replacement::{Mismatch, Which, replace, with_lf};
use crate::ports::{BoxFuture, RunContext};
use crate::protocol::{Action, Target, ToolError};
use crate::sys::file::Parents;
use crate::tools::alias::Alias;
use crate::tools::markers::{keep_hidden, restored, restorer};
use crate::tools::paths::{Meant, Paths, not_found};
use crate::tools::tool::{Draft, Effect, Output, Settings, Tool, blocking, invalid};
use schemars::JsonSchema;
use serde::Deserialize;
use std::ops::Range;
use std::sync::Arc;

pub(in crate::tools) struct EditFile;

#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(in crate::tools) struct Arguments {
    /// The file, relative to the workspace or absolute.
    path: String,
    /// Replacements, made one after the other; when one does not fit, none is made.
    edits: Vec<Edit>,
}

#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct Edit {
    /// The text to replace, exactly as it stands in the file; it must stand there once. Empty to create a file.
    old_text: String,
    /// What stands there afterwards.
    new_text: String,
    /// Replace every place instead of requiring a single one.
    replace_all: Option<bool>,
}

pub(in crate::tools) enum Work {
    Apply(Change),
    /// The edit does not fit. Saying why tells what is in the file, so that it waits for leave to read.
    Explain(ToolError),
}

impl Tool for EditFile {
    const NAME: &'static str = "EditFile";
    const ALIASES: &'static [Alias<Arguments>] = &[
        Alias::same("edit_file"),
        Alias::same("edit"),
        Alias::same("str_replace"),
        Alias::same("str_replace_editor"),
        Alias::same("replace_in_file"),
        Alias::same("search_replace"),
        Alias::same("MultiEdit"),
    ];
    const CAPABILITY: &'static str = "File.Write";
    const DESCRIPTION: &'static str = include_str!("../../../assets/tools/EditFile.md");
    const RESTORES: bool = true;
    type Arguments = Arguments;
    type Work = Work;

    fn actions(arguments: &Arguments, paths: &Paths<'_>) -> Result<Vec<Action>, ToolError> {
        Ok(vec![Action::Write { target: paths.target("path", &arguments.path, Meant::File)? }])
    }

    fn draft(arguments: Arguments, settings: &Settings) -> Result<Draft<Work>, ToolError> {
        if arguments.edits.is_empty() {
            return Err(invalid("`edits` is empty; give at least one `{oldText, newText}`"));
        }
        let target = Paths::on_disk(settings).target("path", &arguments.path, Meant::File)?;
        let before = Before::of(&target, settings)?;
        let document = match edited(&arguments, &target, &before, settings) {
            Ok(document) => document,
            // What stands in a file that may not be read is not told by why an edit does not fit.
            Err(_) if !(settings.may_read)(&target.real) => {
                let message = format!("the edits do not fit `{}`, which you may not read; nothing was changed", target.given);
                return Err(invalid(message));
            }
            Err(error) => return Ok(explanation(target, error)),
        };
        let Some(content) = document.form.encode(&document.text) else {
            let name = document.form.name();
            return Err(invalid(format!(
                "`{}` is {name}, which lacks a character of `newText`; nothing was changed. use only characters that {name} has, or write \
                 the whole file with WriteFile, which makes it UTF-8",
                target.given
            )));
        };
        let verb = if matches!(before, Before::Absent) { "Create" } else { "Edit" };
        let proposal = proposal(verb, &target, &before, &document.text, content.len() as u64, settings);
        let mut done = proposal.summary.replacen("Edit", "Edited", 1).replacen("Create", "Created", 1);
        if document.text.contains('\0') {
            done = format!("{done}; it {HAS_NUL}");
        }
        let change = Change { target: target.clone(), content, before: before.image(), parents: Parents::Create, done };
        Ok(Draft {
            summary: proposal.summary.clone(),
            actions: vec![Action::Write { target }],
            proposal: Some(proposal),
            effect: Effect::Changes,
            work: Work::Apply(change),
        })
    }

    fn run(work: Work, settings: Arc<Settings>, _: RunContext) -> BoxFuture<'static, Output> {
        blocking(move || match work {
            Work::Apply(change) => commit(&change, &settings.seen),
            Work::Explain(error) => Err(error.into()),
        })
    }
}

fn explanation(target: Target, error: ToolError) -> Draft<Work> {
    Draft {
        summary: format!("Edit {}", target.given),
        actions: vec![Action::Read { target }],
        proposal: None,
        effect: Effect::Reads,
        work: Work::Explain(error),
    }
}

/// The document after all edits.
fn edited(arguments: &Arguments, target: &Target, before: &Before, settings: &Settings) -> Result<Document, ToolError> {
    let mut document = match before {
        Before::Absent if arguments.edits[0].old_text.is_empty() => Document { text: String::new(), form: Form::Utf8 },
        Before::Absent => return Err(not_found(target, settings)),
        Before::Text { document, .. } => document.clone(),
        Before::NotText { why, .. } => return Err(not_text(target, *why)),
    };
    let restorer = restorer(before, settings);
    for (index, edit) in arguments.edits.iter().enumerate() {
        let whole = Edit {
            old_text: restored(&restorer, &edit.old_text, &format!("`edits[{index}].oldText`"), target)?,
            new_text: restored(&restorer, &edit.new_text, &format!("`edits[{index}].newText`"), target)?,
            replace_all: edit.replace_all,
        };
        // What is told of a text that does not fit is told of it as it was shown.
        let closest = |text: &str| closest(&settings.redactor.redact(text).text, edit);
        let hidden = settings.redactor.hidden(&with_lf(&document.text));
        document.text = apply(&document.text, &whole, &hidden, (index, target), closest)?;
    }
    let written: Vec<&str> = arguments.edits.iter().map(|edit| edit.new_text.as_str()).collect();
    keep_hidden(&restorer, before, &document.text, &written, settings, target)?;
    Ok(document)
}

fn not_text(target: &Target, why: NotText) -> ToolError {
    match why {
        NotText::Binary => invalid(format!(
            "`{}` is a binary file and cannot be edited as text; change it with a program, through RunCommand",
            target.given
        )),
        NotText::Malformed => invalid(format!(
            "`{}` is not well-formed in its own encoding; an edit could damage it. change it with a program, through RunCommand",
            target.given
        )),
    }
}

fn apply(
    text: &str,
    edit: &Edit,
    hidden: &[Range<usize>],
    (index, target): (usize, &Target),
    closest: impl Fn(&str) -> String,
) -> Result<String, ToolError> {
    let at = format!("`edits[{index}].oldText`");
    if edit.old_text.is_empty() {
        if text.is_empty() {
            return Ok(edit.new_text.clone());
        }
        return Err(invalid(format!("{at} is empty, and `{}` is not; give the text to replace", target.given)));
    }
    if edit.old_text == edit.new_text {
        return Err(invalid(format!("`edits[{index}]` changes nothing: `oldText` and `newText` are the same")));
    }
    let which = if edit.replace_all == Some(true) { Which::All } else { Which::TheOnly };
    replace(text, &edit.old_text, &edit.new_text, which, hidden).map_err(|mismatch| match mismatch {
        Mismatch::NotFound => invalid(format!("{at} is not in `{}`; nothing was changed. {}", target.given, closest(text))),
        Mismatch::Ambiguous { count, lines } => {
            let named: Vec<_> = lines.iter().map(usize::to_string).collect();
            let rest = if count > lines.len() { " and more" } else { "" };
            invalid(format!(
                "{at} stands in `{}` {count} times, at lines {}{rest}; nothing was changed. add lines around it until it is \
                 the only one, or set `replaceAll`",
                target.given,
                named.join(", ")
            ))
        }
    })
}

/// Where the text that was not found most likely is.
fn closest(text: &str, edit: &Edit) -> String {
    /// Most lines shown.
    const SHOWN: usize = 8;
    if text.is_empty() {
        return "the file is empty; fill it with an empty `oldText`".to_owned();
    }
    let (plain, wanted) = (with_lf(text), with_lf(&edit.old_text));
    let Some(first) = wanted.lines().map(str::trim).find(|line| !line.is_empty()) else {
        return "it is only white space; give a line of text with it".to_owned();
    };
    let (index, why) = match plain.lines().position(|line| line.trim() == first) {
        Some(index) => (index, "the white space or a later line differs"),
        None => match most_alike(&plain, first) {
            Some(index) => (index, "it differs from what stands there"),
            None => return "nothing in it looks like it; read the file again".to_owned(),
        },
    };
    let height = wanted.lines().count().clamp(1, SHOWN);
    let there: Vec<_> = plain.lines().skip(index).take(height).collect();
    format!("closest, from line {} ({why}):\n{}", index + 1, there.join("\n"))
}

/// The line most like `wanted`, counted from 0, if one is like it.
fn most_alike(text: &str, wanted: &str) -> Option<usize> {
    /// How far the search goes, how much of a line it looks at, and how alike two lines must be.
    const COMPARED_LINES: usize = 5_000;
    const COMPARED_CHARACTERS: usize = 120;
    const ALIKE: f64 = 0.6;
    let short = |line: &str| line.trim().chars().take(COMPARED_CHARACTERS).collect::<String>();
    let wanted = short(wanted);
    text.lines()
        .take(COMPARED_LINES)
        .enumerate()
        .map(|(index, line)| (strsim::normalized_levenshtein(&short(line), &wanted), index))
        .filter(|(score, _)| *score >= ALIKE)
        .max_by(|left, right| left.0.total_cmp(&right.0).then(right.1.cmp(&left.1)))
        .map(|(_, index)| index)
}
