//! ReadFile: the text of a file, or some lines of it, never more than a bound.

use crate::policy::redact::opens_or_closes;
use crate::ports::{BoxFuture, RunContext};
use crate::protocol::{Action, ErrorCode, Place, Target, ToolError, cut_before};
use crate::sys::path::open_file;
use crate::tools::alias::Alias;
use crate::tools::paths::{Meant, Paths, not_found, open_error, special};
use crate::tools::tool::{Draft, Effect, Output, Settings, Tool, blocking, invalid};
use crate::tools::write::document::{Form, NotText};
use encoding_rs::{Decoder, Encoding, UTF_16BE, UTF_16LE};
use schemars::JsonSchema;
use serde::Deserialize;
use std::io::{self, Cursor, Read};
use std::sync::Arc;

/// Most text one read gives.
const MAX_TEXT_BYTES: usize = 1024 * 1024;
/// What tells how a file too large to be held is encoded.
const SNIFFED_BYTES: u64 = 64 * 1024;
const CHUNK_BYTES: usize = 64 * 1024;

pub(in crate::tools) struct ReadFile;

#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(in crate::tools) struct Arguments {
    /// The file, relative to the workspace or absolute.
    path: String,
    /// The first line to read, from 1.
    #[schemars(range(min = 1))]
    offset: Option<u64>,
    /// How many lines to read.
    #[schemars(range(min = 1))]
    limit: Option<u64>,
    /// The encoding, where the detected one is wrong: `utf-8`, `latin1`, `shift_jis`.
    encoding: Option<String>,
}

pub(in crate::tools) struct Work {
    target: Target,
    lines: Option<Range>,
    encoding: Option<&'static Encoding>,
}

#[derive(Clone, Copy)]
struct Range {
    first: u64,
    count: u64,
}

const ALL: Range = Range { first: 1, count: u64::MAX };

impl Tool for ReadFile {
    const NAME: &'static str = "ReadFile";
    const ALIASES: &'static [Alias<Arguments>] = &[
        Alias::same("read_file"),
        Alias::same("read"),
        Alias::same("view"),
        Alias::same("cat"),
        Alias::same("open_file"),
        Alias::same("TextRead"),
    ];
    const CAPABILITY: &'static str = "File.Read";
    const DESCRIPTION: &'static str = include_str!("../../../assets/tools/ReadFile.md");
    type Arguments = Arguments;
    type Work = Work;

    fn actions(arguments: &Arguments, paths: &Paths<'_>) -> Result<Vec<Action>, ToolError> {
        Ok(vec![Action::Read { target: paths.target("path", &arguments.path, Meant::File)? }])
    }

    fn draft(arguments: Arguments, settings: &Settings) -> Result<Draft<Work>, ToolError> {
        let target = Paths::on_disk(settings).target("path", &arguments.path, Meant::File)?;
        if arguments.limit == Some(0) {
            return Err(invalid("`limit` is 0; give the number of lines, at least 1"));
        }
        let encoding = arguments.encoding.as_deref().map(known_encoding).transpose()?;
        let lines = (arguments.offset.is_some() || arguments.limit.is_some())
            .then(|| Range { first: arguments.offset.unwrap_or(1).max(1), count: arguments.limit.unwrap_or(u64::MAX) });
        Ok(Draft {
            summary: format!("Read {}", target.given),
            actions: vec![Action::Read { target: target.clone() }],
            proposal: None,
            effect: Effect::Reads,
            work: Work { target, lines, encoding },
        })
    }

    fn run(work: Work, settings: Arc<Settings>, _: RunContext) -> BoxFuture<'static, Output> {
        blocking(move || Ok(read(&work, &settings)?))
    }
}

fn known_encoding(label: &str) -> Result<&'static Encoding, ToolError> {
    let message =
        || invalid(format!("`encoding`: `{label}` is not known; for example `utf-8`, `utf-16le`, `latin1`, `shift_jis`, `gbk`"));
    Encoding::for_label(label.as_bytes()).ok_or_else(message)
}

fn read(work: &Work, settings: &Settings) -> Result<String, ToolError> {
    let target = &work.target;
    match target.place {
        Place::Missing => return Err(not_found(target, settings)),
        Place::Directory => return Err(invalid(format!("`{}` is a directory; list it with ListDirectory", target.given))),
        Place::Special => return Err(special(target)),
        Place::File { .. } => {}
    }
    let failed = |error: io::Error| open_error(target, &error);
    settings.seen.looks_at(&target.real);
    let mut file = open_file(&target.real).map_err(failed)?;
    let bytes = file.metadata().map_err(failed)?.len();
    let limit = settings.max_file_size_bytes;
    if bytes > limit && work.lines.is_none() {
        return Err(ToolError::new(
            ErrorCode::FileTooLarge,
            format!(
                "`{}` has {bytes} bytes; at most {limit} are read whole. read a part with `offset` (first line) and `limit` \
                 (lines), or search it with Grep",
                target.given
            ),
        ));
    }
    let held = if bytes > limit { SNIFFED_BYTES } else { limit };
    let mut start = Vec::new();
    file.by_ref().take(held).read_to_end(&mut start).map_err(failed)?;
    if start.is_empty() {
        return Ok(format!("(`{}` is empty)", target.given));
    }
    // The sample of a large file may end within a character.
    let sample = if bytes > limit { crate::sys::process::whole_start(&start) } else { &start };
    let encoding = match (work.encoding, Form::of(sample)) {
        (Some(encoding), _) => encoding,
        (None, Ok(form)) => form.encoding(),
        (None, Err(NotText::Binary | NotText::Malformed)) => return Ok(format!("Binary file, {bytes} bytes")),
    };
    let whole = Cursor::new(start).chain(file);
    let mut taken = take_lines(whole, encoding.new_decoder_with_bom_removal(), work.lines.unwrap_or(ALL)).map_err(failed)?;
    if hides_by_encoding(&taken.text, encoding, settings) {
        let message = "read so it would show what is hidden from you; read it without `encoding`, or ask the person";
        return Err(invalid(format!("`{}`: {message}", target.given)));
    }
    if taken.in_key {
        taken.text = settings.redactor.hide_rest_of_key(&taken.text);
    }
    answer(&taken, work)
}

/// Whether the text in a wrong encoding has a secret that is none in these letters: two of its letters in one, or NULs between.
fn hides_by_encoding(text: &str, encoding: &'static Encoding, settings: &Settings) -> bool {
    let is_secret = |text: &str| settings.redactor.holds_secret(text);
    if text.contains('\0') && is_secret(&text.replace('\0', "")) {
        return true;
    }
    let to_bytes = if encoding == UTF_16LE { u16::to_le_bytes } else { u16::to_be_bytes };
    if text.is_ascii() || (encoding != UTF_16LE && encoding != UTF_16BE) {
        return false;
    }
    let bytes: Vec<u8> = text.encode_utf16().flat_map(to_bytes).collect();
    is_secret(&String::from_utf8_lossy(&bytes))
}

/// Some lines, and what was left out.
struct Taken {
    text: String,
    /// Lines seen from the start of the file.
    seen: u64,
    rest: Rest,
    /// The first of them stands within a private key.
    in_key: bool,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Rest {
    Nothing,
    /// More lines follow those asked for.
    Lines,
    /// The bound was reached before the end of what was asked for.
    Bound,
    /// It was reached within a line.
    LongLine,
}

fn answer(taken: &Taken, work: &Work) -> Result<String, ToolError> {
    let (given, range) = (&work.target.given, work.lines.unwrap_or(ALL));
    if taken.text.is_empty() && taken.seen < range.first {
        return Err(invalid(format!("`offset` {} is past the end of `{given}`, which has {} lines", range.first, taken.seen)));
    }
    let (first, last) = (range.first, taken.seen);
    let note = match taken.rest {
        Rest::Nothing => return Ok(taken.text.clone()),
        Rest::Lines => format!("[lines {first} to {last}; more follow from `offset` {}]", last + 1),
        Rest::Bound => {
            format!("[lines {first} to {last}; cut at {MAX_TEXT_BYTES} bytes, go on with `offset` {}]", last + 1)
        }
        Rest::LongLine => format!("[cut at {MAX_TEXT_BYTES} bytes within line {last}, which is longer than one read gives]"),
    };
    let gap = if taken.text.ends_with('\n') { "" } else { "\n" };
    Ok(format!("{}{gap}{note}", taken.text))
}

/// Reads no further than it must and holds no more than it gives.
fn take_lines(mut from: impl Read, mut decoder: Decoder, range: Range) -> io::Result<Taken> {
    let mut lines = LineTaker { range, line: 1, at_start: true, text: String::new(), skipped: String::new(), in_key: false };
    let mut bytes = vec![0; CHUNK_BYTES];
    loop {
        let count = from.read(&mut bytes)?;
        let mut decoded = String::with_capacity(decoder.max_utf8_buffer_length(count).unwrap_or(CHUNK_BYTES * 3));
        let _ = decoder.decode_to_string(&bytes[..count], &mut decoded, count == 0);
        if let Some(rest) = lines.take(&decoded) {
            return Ok(lines.taken(rest));
        }
        if count == 0 {
            return Ok(lines.taken(Rest::Nothing));
        }
    }
}

struct LineTaker {
    range: Range,
    /// The line being read, from 1.
    line: u64,
    /// Nothing of that line was seen yet.
    at_start: bool,
    text: String,
    /// The line before those asked for that is being read, as far as it can say that a private key begins.
    skipped: String,
    in_key: bool,
}

impl LineTaker {
    /// Takes what belongs to the range; the reason to stop, if there is one.
    fn take(&mut self, piece: &str) -> Option<Rest> {
        for part in piece.split_inclusive('\n') {
            if self.line - self.range.first.min(self.line) >= self.range.count {
                return Some(Rest::Lines);
            }
            if self.line >= self.range.first {
                let room = MAX_TEXT_BYTES - self.text.len();
                if part.len() > room {
                    return Some(self.cut(part, room));
                }
                self.text.push_str(part);
                if self.text.ends_with("\r\n") {
                    // Edits match LF to whatever the file has.
                    self.text.truncate(self.text.len() - 2);
                    self.text.push('\n');
                }
            } else {
                self.skip(part);
            }
            self.at_start = part.ends_with('\n');
            self.line += u64::from(self.at_start);
        }
        None
    }

    /// Of a line that is not given only this is kept in mind: whether what follows is a key.
    fn skip(&mut self, part: &str) {
        self.skipped.push_str(part);
        if part.ends_with('\n') {
            self.in_key = opens_or_closes(&self.skipped).unwrap_or(self.in_key);
            self.skipped.clear();
        } else if self.skipped.len() > CHUNK_BYTES {
            self.skipped.clear();
        }
    }

    /// At the last whole line, or within a line that alone is too long.
    fn cut(&mut self, part: &str, room: usize) -> Rest {
        if let Some(end) = self.text.rfind('\n') {
            self.text.truncate(end + 1);
            self.at_start = true;
            return Rest::Bound;
        }
        let whole = cut_before(part, room);
        self.text.push_str(&part[..whole]);
        self.at_start = false;
        Rest::LongLine
    }

    fn taken(self, rest: Rest) -> Taken {
        let seen = if self.at_start { self.line - 1 } else { self.line };
        Taken { text: self.text, seen, rest, in_key: self.in_key }
    }
}
