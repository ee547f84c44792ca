//! The `TextInspect` tool, which returns the outline of a document, one of its sections, or the lines that contain a
//! string.

use super::format;
use super::outline::{Outline, line_count};
use super::{redacted_lines, section};
use crate::ports::{BoxFuture, RunContext};
use crate::protocol::{Action, ErrorCode, Items, LeftOut, Place, Run, Target, ToolError, cut_position_before};
use crate::sys::file::{self, ReadError};
use crate::tools::alias::Alias;
use crate::tools::call_result::{CallResult, ToolOutput, blocking};
use crate::tools::document::content::Document;
use crate::tools::document::replacement::with_lf;
use crate::tools::draft::CallDraft;
use crate::tools::editor_buffers;
use crate::tools::error::invalid;
use crate::tools::paths::{ExpectedKind, Paths, display_path, not_found_error, open_error, special_file_error};
use crate::tools::settings::ToolSettings;
use crate::tools::tool::Tool;
use futures_util::FutureExt as _;
use regex::{Regex, RegexBuilder};
use schemars::JsonSchema;
use serde::Deserialize;
use std::collections::BTreeMap;
use std::ops::RangeInclusive;
use std::sync::Arc;

/// Limits of a result: numbers of parts and matches, and numbers of bytes in total and per line.
const MAX_PARTS: usize = 1_000;
const MAX_MATCHES: usize = 200;
const MAX_CONTEXT: u64 = 20;
const MAX_LINE_BYTES: usize = 1024;
const MAX_TEXT_BYTES: usize = 1024 * 1024;
/// Size limit in bytes for a compiled expression.
const MAX_EXPRESSION_BYTES: usize = 1 << 20;

pub(in crate::tools) struct TextInspect;

#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(in crate::tools) struct Arguments {
    path: String,
    /// Inferred from the other arguments by default.
    #[schemars(extend("enum" = ["structure", "section", "search"]))]
    mode: Option<String>,
    /// A heading, such as `Usage` or `Usage > Install`.
    section: Option<String>,
    query: Option<String>,
    /// `query` is a regular expression.
    regex: Option<bool>,
    ignore_case: Option<bool>,
    /// Lines around each match.
    #[schemars(range(max = 20))]
    context: Option<u64>,
}

pub(in crate::tools) struct Work {
    target: Target,
    mode: InspectMode,
    section: Option<String>,
}

enum InspectMode {
    Structure,
    Section,
    Search { query: Regex, words: String, context: usize },
}

impl Tool for TextInspect {
    const NAME: &'static str = "TextInspect";
    const ALIASES: &'static [Alias<Arguments>] = &[
        Alias::with_same_arguments("text_inspect"),
        Alias::with_same_arguments("inspect_text"),
        Alias::with_same_arguments("outline"),
        Alias::with_same_arguments("file_outline"),
    ];
    const CAPABILITY: &'static str = "File.Read";
    const DESCRIPTION: &'static str = include_str!("../../../assets/tools/TextInspect.md");
    type Arguments = Arguments;
    type Work = Work;

    fn actions(arguments: &Arguments, paths: &Paths<'_>) -> Result<Vec<Action>, ToolError> {
        Ok(vec![Action::Read { target: paths.target("path", &arguments.path, ExpectedKind::File)? }])
    }

    fn draft(arguments: Arguments, settings: &ToolSettings) -> Result<CallDraft<Work>, ToolError> {
        let target = Paths::on_disk(settings).target("path", &arguments.path, ExpectedKind::File)?;
        let mode = mode(&arguments)?;
        Ok(CallDraft::reads(
            format!("Inspect {}", target.given),
            target.clone(),
            Work { target, mode, section: arguments.section },
        ))
    }

    fn run(work: Work, settings: Arc<ToolSettings>, context: RunContext) -> BoxFuture<'static, CallResult> {
        async move {
            let unsaved = editor_buffers::unsaved_document(
                settings.session.editor.as_ref(),
                &work.target,
                settings.max_file_size_bytes,
                &context,
            )
            .await;
            blocking(move || Ok(inspect(&work, unsaved, &settings, context.max_bytes)?)).await
        }
        .boxed()
    }
}

fn mode(arguments: &Arguments) -> Result<InspectMode, ToolError> {
    let given = arguments.mode.as_deref().map(str::to_ascii_lowercase);
    let absent = if arguments.query.is_some() {
        "search"
    } else if arguments.section.is_some() {
        "section"
    } else {
        "structure"
    };
    let mode = given.as_deref().unwrap_or(absent);
    if mode != "search" && arguments.query.is_some() {
        return Err(invalid(format!("`query` is for `mode` `search`, but `mode` is `{mode}`; remove one of them")));
    }
    match mode {
        "structure" if arguments.section.is_some() => {
            Err(invalid("`section` is for `mode` `section` or `search`; remove `mode` or `section`"))
        }
        "structure" => Ok(InspectMode::Structure),
        "section" if arguments.section.is_none() => {
            Err(invalid("`section` is missing: specify the heading, such as `Usage > Install`; `structure` lists them"))
        }
        "section" => Ok(InspectMode::Section),
        "search" => search_mode(arguments),
        _ => Err(invalid(format!("`mode` is `{mode}`; it must be `structure`, `section` or `search`"))),
    }
}

fn search_mode(arguments: &Arguments) -> Result<InspectMode, ToolError> {
    let words = arguments.query.clone().unwrap_or_default();
    if words.is_empty() {
        return Err(invalid("`query` is missing or empty; specify the text to search for"));
    }
    let context = arguments.context.unwrap_or(0);
    if context > MAX_CONTEXT {
        return Err(invalid(format!("`context` is {context}; at most {MAX_CONTEXT} lines are shown around a match")));
    }
    let pattern = if arguments.regex == Some(true) { words.clone() } else { regex::escape(&words) };
    let query = RegexBuilder::new(&pattern)
        .case_insensitive(arguments.ignore_case.unwrap_or(false))
        .size_limit(MAX_EXPRESSION_BYTES)
        .build()
        .map_err(|error| {
            invalid(format!("invalid regular expression in `query`: {error}; omit `regex` to search for plain text"))
        })?;
    Ok(InspectMode::Search { query, words, context: context as usize })
}

/// A document whose lines are redacted.
struct RedactedDocument {
    name: String,
    bytes: usize,
    form: &'static str,
    text: String,
    lines: Vec<String>,
    outline: Outline,
}

fn inspect(work: &Work, unsaved: Option<Document>, settings: &ToolSettings, max_bytes: usize) -> Result<ToolOutput, ToolError> {
    let target = &work.target;
    // If the file has changed since the model saw it, seeing a part does not make the whole file known again.
    if settings.session.seen.is_current(&target.real) {
        match &unsaved {
            Some(document) => settings.session.seen.record_read(&target.real, document.fingerprint()),
            None => settings.session.seen.begin_read(&target.real),
        }
    }
    let is_unsaved = unsaved.is_some();
    let (bytes, document) = match unsaved {
        Some(document) => (document.text.len(), document),
        None => read(target, settings)?,
    };
    let text = with_lf(&document.text);
    let lines = redacted_lines::lines(&text, &settings.redactor).ok_or_else(|| {
        invalid(format!("`{}` has redacted lines that TextInspect cannot separate; read it with ReadFile", target.given))
    })?;
    // The outline uses the redacted lines, so that titles contain no secrets and redacted text cannot be found.
    let outline = format::outline(&target.real, &redacted_lines::join_lines(&lines));
    let name = display_path(&target.real, settings);
    let seen = RedactedDocument { name, bytes, form: document.form.name(), text, lines, outline };
    let within = match &work.section {
        Some(wanted) => Some(section::find(&seen.outline, wanted, "section")?),
        None => None,
    };
    let told = match (&work.mode, within) {
        (InspectMode::Section, Some(index)) => one_section(&seen, index, max_bytes),
        (InspectMode::Structure | InspectMode::Section, _) => structure(&seen),
        (InspectMode::Search { query, words, context }, within) => search(&seen, query, words, *context, within),
    };
    Ok(if is_unsaved { ToolOutput { text: editor_buffers::with_unsaved_note(told.text, &target.given), ..told } } else { told })
}

/// Reads a file as text.
///
/// # Errors
///
/// Returns an error if the file does not exist, is too large, or is not text.
fn read(target: &Target, settings: &ToolSettings) -> Result<(usize, Document), ToolError> {
    match target.place {
        Place::Missing => return Err(not_found_error(target, settings)),
        Place::Directory => return Err(invalid(format!("`{}` is a directory; list it with ListDirectory", target.given))),
        Place::Special => return Err(special_file_error(target)),
        Place::File { .. } => {}
    }
    let bytes = file::read(&target.real, settings.max_file_size_bytes).map_err(|error| match error {
        ReadError::TooLarge { bytes, limit } => {
            let message = format!(
                "`{}` is {bytes} bytes; the limit is {limit}. Search it with Grep, or read a part with ReadFile",
                target.given
            );
            ToolError::new(ErrorCode::FileTooLarge, message)
        }
        ReadError::Io(error) => open_error(target, &error),
    })?;
    let document = Document::decode(&bytes)
        .map_err(|_| invalid(format!("`{}` is not text; use Stat, HashFile or RunCommand", target.given)))?;
    Ok((bytes.len(), document))
}

fn structure(seen: &RedactedDocument) -> ToolOutput {
    let RedactedDocument { name, bytes, form, outline, .. } = seen;
    let mut lines = vec![format!("{name}: {}, {form}, {} lines, {bytes} bytes", outline.kind, line_count(&seen.text))];
    lines.extend(outline.facts.iter().cloned());
    let mark =
        |level: usize| if outline.word == "section" && outline.kind != "INI" { "#".repeat(level) + " " } else { String::new() };
    for part in outline.parts.iter().take(MAX_PARTS) {
        let range = if part.first == part.last { part.first.to_string() } else { format!("{}-{}", part.first, part.last) };
        let indent = "  ".repeat(part.level - 1);
        lines.push(shorten_line(&format!("{range}: {indent}{}{}", mark(part.level), part.title)));
    }
    let count = outline.parts.len();
    if count > MAX_PARTS {
        lines.push(format!("[the first {MAX_PARTS} of {count} shown; find others with `query`]"));
    }
    if count == 0 && outline.facts.len() == usize::from(outline.kind == "text") {
        lines.push("[no headings or keys; read it with ReadFile, or set `query`]".to_owned());
    }
    list(&lines, "find others with `query`")
}

fn one_section(seen: &RedactedDocument, index: usize, max_bytes: usize) -> ToolOutput {
    let max_bytes = MAX_TEXT_BYTES.min(max_bytes);
    let part = &seen.outline.parts[index];
    let mut text = format!("[`{}` in {}, lines {}-{}]\n", seen.outline.title_path(index), seen.name, part.first, part.last);
    let shown = &seen.lines[part.first - 1..part.last.min(seen.lines.len())];
    let (mut starts, mut note) = (Vec::new(), String::new());
    for (number, line) in (part.first..).zip(shown) {
        // The first line is always shown, so that the next call makes progress.
        if text.len() + line.len() >= max_bytes && !starts.is_empty() {
            note = format!("[cut at {max_bytes} bytes; continue with ReadFile and `offset` {number}]");
            break;
        }
        starts.push(starts.len() as u64 + u64::from(!starts.is_empty()));
        text.push_str(line);
        text.push('\n');
    }
    if note.is_empty() {
        text.truncate(text.trim_end_matches('\n').len());
    }
    let run = Run {
        body_bytes: text.len(),
        note_bytes: note.len(),
        first: part.first as u64,
        items: Items::Starts { lines: starts },
        note: "[lines to {last}; {missing} more bytes are left out, continue with ReadFile and `offset` {next}]".to_owned(),
        within: None,
        missing: 0,
    };
    ToolOutput { text: text + &note, left_out: LeftOut::from_gaps(Vec::new(), Some(run)), ..ToolOutput::default() }
}

/// Joins lines. If the output is shortened later, it is the last lines that are dropped.
fn list(lines: &[String], advice: &str) -> ToolOutput {
    let text = lines.join("\n");
    let run = Run {
        body_bytes: text.len(),
        note_bytes: 0,
        first: 1,
        items: Items::Starts { lines: (0..lines.len() as u64).collect() },
        note: format!("[the last {{missing}} bytes are left out; {advice}]"),
        within: None,
        missing: 0,
    };
    ToolOutput { text, left_out: LeftOut::from_gaps(Vec::new(), Some(run)), ..ToolOutput::default() }
}

fn search(seen: &RedactedDocument, query: &Regex, words: &str, context: usize, within: Option<usize>) -> ToolOutput {
    let range: RangeInclusive<usize> = within.map_or(1..=seen.lines.len(), |index| {
        let part = &seen.outline.parts[index];
        part.first..=part.last
    });
    let matches: Vec<usize> =
        range.clone().filter(|number| seen.lines.get(number - 1).is_some_and(|line| query.is_match(line))).collect();
    let place =
        within.map_or_else(|| seen.name.clone(), |index| format!("`{}` of {}", seen.outline.title_path(index), seen.name));
    if matches.is_empty() {
        return format!("no line of {place} contains `{words}`; try `regex` or `ignoreCase`, or search other files with Grep")
            .into();
    }
    // A matching line is marked as such, even if it is in the context of another.
    let mut told: BTreeMap<usize, bool> = BTreeMap::new();
    for number in matches.iter().take(MAX_MATCHES) {
        for near in number.saturating_sub(context).max(*range.start())..=(number + context).min(*range.end()) {
            told.entry(near).or_insert(false);
        }
        told.insert(*number, true);
    }
    let mut lines = vec![format!(
        "{} in {place}",
        if matches.len() == 1 { "1 match".to_owned() } else { format!("{} matches", matches.len()) }
    )];
    let (mut last_part, mut last_number) = (None, 0);
    for (number, is_match) in told {
        let part = seen.outline.part_at(number);
        if part != last_part || last_number == 0 {
            if let Some(index) = part {
                let found = &seen.outline.parts[index];
                lines.push(format!("[{}, lines {}-{}]", seen.outline.title_path(index), found.first, found.last));
            }
        } else if context > 0 && number > last_number + 1 {
            lines.push("--".to_owned());
        }
        (last_part, last_number) = (part, number);
        let Some(line) = seen.lines.get(number - 1) else { continue };
        lines.push(shorten_line(&format!("{number}{}{line}", if is_match { ':' } else { '-' })));
    }
    if matches.len() > MAX_MATCHES {
        lines.push(format!("[the first {MAX_MATCHES} of {} matches shown; narrow it with `section` or `query`]", matches.len()));
    }
    list(&lines, "narrow it with `section` or `query`")
}

/// Shortens a long line, as is done in search results.
fn shorten_line(line: &str) -> String {
    if line.len() <= MAX_LINE_BYTES {
        return line.to_owned();
    }
    let end = cut_position_before(line, MAX_LINE_BYTES);
    format!("{} [{} more bytes]", &line[..end], line.len() - end)
}
