//! The `ReadFile` tool, which returns the text of a file, or some of its lines, up to a limit. Notebooks are returned
//! as cells, and images are shown to models that accept them.

mod alias;
mod answer;
pub(in crate::tools) mod image;
mod lines;
mod notebook;
mod skip;

use crate::ports::{BoxFuture, RunContext};
use crate::protocol::{Action, ErrorCode, Place, Target, ToolError};
use crate::sys::locale;
use crate::sys::path::open_file;
use crate::tools::alias::Alias;
use crate::tools::call_result::{CallResult, ToolOutput, blocking};
use crate::tools::document::charset;
use crate::tools::document::charset::{HELD_BYTES, ReadAs, SNIFFED_BYTES};
use crate::tools::document::content::Document;
use crate::tools::draft::CallDraft;
use crate::tools::editor_buffers;
use crate::tools::error::invalid;
use crate::tools::output::image_type;
use crate::tools::paths::{ExpectedKind, Paths, not_found_error, open_error, special_file_error};
use crate::tools::settings::ToolSettings;
use crate::tools::tool::Tool;
use encoding_rs::{Encoding, ISO_2022_JP, UTF_8};
use futures_util::FutureExt as _;
use lines::Range;
use schemars::JsonSchema;
use serde::Deserialize;
use std::fs::File;
use std::io::{self, Cursor, Read};
use std::sync::Arc;

/// Maximum size in bytes of the text returned by one call.
const MAX_TEXT_BYTES: usize = 1024 * 1024;
/// Minimum number of bytes to return even if no space remains, so that each call makes progress.
const MIN_BYTES: usize = 16;

pub(in crate::tools) struct ReadFile;

#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(in crate::tools) struct ReadFileArguments {
    path: String,
    /// First line, from 1.
    #[schemars(range(min = 1))]
    offset: Option<u64>,
    /// Number of lines.
    #[schemars(range(min = 1))]
    limit: Option<u64>,
    /// Last line, instead of `limit`.
    #[schemars(range(min = 1))]
    end_line: Option<u64>,
    /// First column to return from a very long line, counted from 1.
    #[schemars(range(min = 1))]
    column: Option<u64>,
    /// For example `latin1`; detected by default.
    encoding: Option<String>,
    /// Return a notebook as JSON.
    raw: Option<bool>,
    #[serde(skip)]
    manner: ReadVariant,
}

/// Differences between the names under which the tool can be called.
#[derive(Debug, Clone, Copy)]
struct ReadVariant {
    /// Names of the arguments for the first and the last line.
    first_line: &'static str,
    last_line: &'static str,
    max_bytes: usize,
    read_as: ReadAs,
}

impl Default for ReadVariant {
    fn default() -> Self {
        Self { first_line: "offset", last_line: "endLine", max_bytes: MAX_TEXT_BYTES, read_as: ReadAs::Detected }
    }
}

pub(in crate::tools) struct PlannedRead {
    target: Target,
    asked: ReadRequest,
    /// Whether only a part of the file was requested.
    part: bool,
    raw: bool,
    encoding: Option<&'static Encoding>,
}

#[derive(Clone, Copy)]
struct ReadRequest {
    range: Range,
    manner: ReadVariant,
}

impl Tool for ReadFile {
    const NAME: &'static str = "ReadFile";
    const ALIASES: &'static [Alias<ReadFileArguments>] = &[
        Alias::new::<alias::ReadLines>("read_file"),
        Alias::with_same_arguments("read"),
        Alias::with_same_arguments("view"),
        Alias::with_same_arguments("cat"),
        Alias::with_same_arguments("open_file"),
        Alias::with_same_arguments("view_image"),
        Alias::new::<alias::TextRead>("TextRead"),
    ];
    const CAPABILITY: &'static str = "File.Read";
    const DESCRIPTION: &'static str = include_str!("../../../assets/tools/ReadFile.md");
    type Arguments = ReadFileArguments;
    type Work = PlannedRead;

    fn actions(arguments: &ReadFileArguments, paths: &Paths<'_>) -> Result<Vec<Action>, ToolError> {
        Ok(vec![Action::Read { target: paths.source("path", &arguments.path, ExpectedKind::File)? }])
    }

    fn draft(arguments: ReadFileArguments, settings: &ToolSettings) -> Result<CallDraft<PlannedRead>, ToolError> {
        let target = Paths::on_disk(settings).source("path", &arguments.path, ExpectedKind::File)?;
        let encoding = arguments.encoding.as_deref().map(charset::encoding_from_label).transpose()?;
        let part = arguments.offset.or(arguments.limit).or(arguments.end_line).or(arguments.column).is_some();
        let asked = ReadRequest { range: range(&arguments)?, manner: arguments.manner };
        Ok(CallDraft::reads(
            format!("Read {}", target.given),
            target.clone(),
            PlannedRead { target, asked, part, raw: arguments.raw.unwrap_or(false), encoding },
        ))
    }

    fn run(work: PlannedRead, settings: Arc<ToolSettings>, context: RunContext) -> BoxFuture<'static, CallResult> {
        async move {
            // An explicit encoding refers to the bytes on disk.
            let unsaved = match work.encoding {
                None => {
                    editor_buffers::unsaved_document(
                        settings.session.editor.as_ref(),
                        &work.target,
                        settings.max_file_size_bytes,
                        &context,
                    )
                    .await
                }
                Some(_) => None,
            };
            let most = work.asked.manner.max_bytes.min(context.max_bytes).max(MIN_BYTES);
            let asked = ReadRequest { manner: ReadVariant { max_bytes: most, ..work.asked.manner }, ..work.asked };
            let work = PlannedRead { asked, ..work };
            let read = move || match unsaved {
                Some(document) => read_unsaved(&work, &document, &settings),
                None => read(&work, &settings),
            };
            blocking(move || Ok(read()?)).await
        }
        .boxed()
    }
}

/// Returns the range of lines that was requested.
fn range(arguments: &ReadFileArguments) -> Result<Range, ToolError> {
    let ReadVariant { first_line, last_line, .. } = arguments.manner;
    let zero = |name: &str| Err(invalid(format!("`{name}` is 0; lines and columns are counted from 1")));
    let first = match arguments.offset {
        Some(0) => return zero(first_line),
        first => first.unwrap_or(1),
    };
    let count = match (arguments.limit, arguments.end_line) {
        (Some(_), Some(_)) => return Err(invalid(format!("`limit` and `{last_line}` are both set; remove one"))),
        (Some(0), None) => return Err(invalid("`limit` is 0; it must be at least 1 line")),
        (None, Some(0)) => return zero(last_line),
        (None, Some(last)) if last < first => {
            return Err(invalid(format!("`{last_line}` {last} is before `{first_line}` {first}; both lines are included")));
        }
        (None, Some(last)) => last - first + 1,
        (limit, None) => limit.unwrap_or(u64::MAX),
    };
    match arguments.column {
        Some(0) => zero("column"),
        column => Ok(Range { first, count, column: column.unwrap_or(1) }),
    }
}

fn read(work: &PlannedRead, settings: &ToolSettings) -> Result<ToolOutput, ToolError> {
    let target = &work.target;
    match target.place {
        Place::Missing => return Err(not_found_error(target, settings)),
        Place::Directory => return Err(invalid(format!("`{}` is a directory; list it with ListDirectory", target.given))),
        Place::Special => return Err(special_file_error(target)),
        Place::File { .. } => {}
    }
    let failed = |error: io::Error| open_error(target, &error);
    settings.session.seen.begin_read(&target.real);
    let mut file = open_file(&target.real).map_err(failed)?;
    let bytes = file.metadata().map_err(failed)?.len();
    let limit = settings.max_file_size_bytes;
    if bytes > limit && !work.part {
        return Err(too_large_error(work, bytes, limit));
    }
    let whole = bytes <= limit.min(HELD_BYTES);
    let mut start = Vec::new();
    file.by_ref().take(if whole { limit.min(HELD_BYTES) } else { SNIFFED_BYTES }).read_to_end(&mut start).map_err(failed)?;
    if start.is_empty() {
        return Ok(format!("(`{}` is empty)", target.given).into());
    }
    let as_it_is = work.raw || work.encoding.is_some();
    if let Some(media_type) = image_type(&start).filter(|_| whole && !as_it_is)
        && let Some(told) = image::describe(media_type, &start, &target.given, settings.session.artifacts.as_deref())
    {
        return Ok(told);
    }
    if whole && !as_it_is && is_notebook(target) {
        return read_notebook(work, &start, settings);
    }
    read_text(work, start, Some(file), bytes, settings)
}

/// Reads text from the user's editor that is unsaved and differs from the file on disk.
fn read_unsaved(work: &PlannedRead, document: &Document, settings: &ToolSettings) -> Result<ToolOutput, ToolError> {
    let target = &work.target;
    settings.session.seen.record_read(&target.real, document.fingerprint());
    let text = document.text.as_bytes();
    let told = if text.is_empty() {
        format!("(`{}` is empty)", target.given).into()
    } else if !work.raw && is_notebook(target) {
        read_notebook(work, text, settings)?
    } else {
        let as_text = PlannedRead { encoding: Some(UTF_8), target: target.clone(), asked: work.asked, ..*work };
        read_text(&as_text, text.to_vec(), None, text.len() as u64, settings)?
    };
    Ok(ToolOutput { text: editor_buffers::with_unsaved_note(told.text, &target.given), ..told })
}

fn is_notebook(target: &Target) -> bool {
    target.real.extension().is_some_and(|extension| extension.eq_ignore_ascii_case("ipynb"))
}

fn too_large_error(work: &PlannedRead, bytes: u64, limit: u64) -> ToolError {
    let ReadRequest { manner, .. } = &work.asked;
    let message = format!(
        "`{}` is {bytes} bytes; at most {limit} can be read at once. Read a part with `{}` (first line) and `limit` (lines), \
         or search it with Grep",
        work.target.given, manner.first_line
    );
    ToolError::new(ErrorCode::FileTooLarge, message)
}

/// Reads a notebook as cells, or as plain text if it is not a valid notebook.
fn read_notebook(work: &PlannedRead, json: &[u8], settings: &ToolSettings) -> Result<ToolOutput, ToolError> {
    match notebook::text(json) {
        Ok(text) => {
            let work_on_text = PlannedRead { encoding: Some(UTF_8), target: work.target.clone(), asked: work.asked, ..*work };
            let bytes = text.len() as u64;
            read_text(&work_on_text, text.into_bytes(), None, bytes, settings)
        }
        Err(reason) => {
            let text = read_text(work, json.to_vec(), None, json.len() as u64, settings)?;
            let gap = if text.text.ends_with('\n') { "" } else { "\n" };
            let note = format!("[cannot be parsed as a notebook ({reason}); this is the raw text]");
            Ok(text.with_note(&format!("{gap}{note}")))
        }
    }
}

/// Returns the requested lines of a text that begins with `start` and continues in `file`.
fn read_text(
    work: &PlannedRead,
    start: Vec<u8>,
    file: Option<File>,
    bytes: u64,
    settings: &ToolSettings,
) -> Result<ToolOutput, ToolError> {
    let PlannedRead { target, asked: ReadRequest { range, manner }, .. } = work;
    // The sample of a large file may end in the middle of a character.
    let sample = if bytes > start.len() as u64 { crate::sys::process::whole_start(&start) } else { &start };
    let encoding = match work.encoding {
        Some(encoding) => encoding,
        None => match charset::detect(sample, locale::charset().as_deref(), manner.read_as) {
            Ok(encoding) => encoding,
            Err(_) => return Ok(binary(&start, bytes).into()),
        },
    };
    let redactor = &settings.redactor;
    // An escape sequence far before the text can change the meaning of all later bytes.
    let changes_all = encoding == ISO_2022_JP && redactor.holds_secret(&String::from_utf8_lossy(&start));
    let start = Cursor::new(start);
    let taken = match file {
        Some(file) => lines::read_range(start.chain(file), encoding, *range, manner.max_bytes, redactor),
        None => lines::read_range(start, encoding, *range, manner.max_bytes, redactor),
    };
    let mut taken = taken.map_err(|error| open_error(target, &error))?;
    if changes_all || charset::exposes_secret(&taken.text, encoding, redactor) {
        let message = "in this encoding the text would show a redacted secret; read it without `encoding`, or ask the user";
        return Err(invalid(format!("`{}`: {message}", target.given)));
    }
    if taken.in_key {
        taken.hide(redactor.hide_rest_of_key(&taken.text));
    }
    answer::answer(&taken, work)
}

/// Describes a binary file by its type, and suggests a command to inspect it.
fn binary(start: &[u8], bytes: u64) -> String {
    let told = format!("Binary file, {bytes} bytes");
    let Some(kind) = infer::get(start) else { return told };
    let (name, media_type) = (kind.extension(), kind.mime_type());
    let next = match name {
        "pdf" => "pdftotext FILE - prints its text",
        "zip" | "docx" | "xlsx" | "pptx" | "epub" | "jar" | "odt" | "ods" => {
            "unzip -l FILE lists it, unzip -p FILE NAME prints one of its files"
        }
        "gz" => "zcat FILE prints its content, tar -tzf FILE lists it if it is an archive",
        "bz2" | "xz" | "zst" | "tar" => "tar -tf FILE lists it if it is an archive",
        "sqlite" => "sqlite3 FILE .schema shows its tables",
        "elf" | "exe" | "mach" | "wasm" => "file FILE identifies the file, strings FILE prints its text",
        _ => "file FILE identifies it",
    };
    format!("{told}\n[{name}, {media_type}; with RunCommand: {next}]")
}
