//! Edits large files. Matches are found chunk by chunk, and unchanged ranges are copied.

use super::Large;
use super::pieces::{Part, SplicedFile};
use super::proposal::proposal;
use crate::policy::redact::has_marker;
use crate::protocol::{PlaceChange, Proposal, Target, ToolError};
use crate::sys::file::{Fingerprint, Parents, PreImage, WriteError, replace_with};
use crate::sys::path::open_file;
use crate::tools::call_result::ToolFailure;
use crate::tools::crash_outcome;
use crate::tools::document::content::Form;
use crate::tools::document::replacement::with_lf;
use crate::tools::error::invalid;
use crate::tools::paths::open_error;
use crate::tools::read_state::ReadState;
use crate::tools::redaction::refuse_partial_exposure;
use crate::tools::settings::ToolSettings;
use crate::tools::write::edit_arguments::{Edit, EditArguments};
use crate::tools::write::file_change::{unencodable_text, write_error};
use crate::tools::write::no_match;
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::ops::Range;
use tokio_util::sync::CancellationToken;

/// Maximum number of matches that a single edit can replace.
const MAX_PLACES: usize = 1_000;
/// Number of bytes to copy between two cancellation checks.
const STRETCH_BYTES: u64 = 64 << 20;
/// Number of bytes around a match that are searched for secrets.
const AROUND_BYTES: u64 = 32 << 10;

/// A change to a large file that is ready to be made.
pub(in crate::tools) struct Splice {
    pub target: Target,
    parts: Vec<Part>,
    before: PreImage,
    pub done: String,
}

impl Splice {
    /// Returns the state of the path before the change. The state afterwards is not known until all data has been
    /// written.
    pub(in crate::tools::write) fn planned_changes(&self) -> Vec<PlaceChange> {
        vec![PlaceChange { path: self.target.real.clone(), before: crash_outcome::content(&self.before), after: None }]
    }
}

/// Prepares the change along with its proposal.
pub(in crate::tools::write) fn plan_edits(
    large: &Large,
    arguments: &EditArguments,
    target: &Target,
    settings: &ToolSettings,
) -> Result<(Splice, Proposal), ToolError> {
    let form = match large.form {
        Ok(form @ (Form::Utf8 | Form::Utf8Bom | Form::Latin1)) => form,
        Ok(form) => {
            return Err(invalid(format!(
                "`{}` is {} and too large to be edited in that encoding; use RunCommand instead",
                target.given,
                form.name()
            )));
        }
        Err(why) => return Err(crate::tools::write::file_change::not_text(target, why)),
    };
    let failed = |error: io::Error| open_error(target, &error);
    let file = open_file(&target.real).map_err(failed)?;
    let mut edits = Edits { pieces: SplicedFile::new(file, large.bytes), form, crlf: large.crlf, target, settings };
    for (index, edit) in arguments.edits.iter().enumerate() {
        edits.make(index, edit)?;
    }
    let mut proposal = proposal(&mut edits.pieces, form, large, target, settings).map_err(failed)?;
    proposal.notes.push("the rest of the file is too large to compare; it is not changed".to_owned());
    let done = proposal.summary.replacen("Edit", "Edited", 1);
    let parts = edits.pieces.into_parts();
    Ok((Splice { target: target.clone(), parts, before: large.before, done }, proposal))
}

struct Edits<'a> {
    pieces: SplicedFile,
    form: Form,
    crlf: bool,
    target: &'a Target,
    settings: &'a ToolSettings,
}

impl Edits<'_> {
    fn make(&mut self, index: usize, edit: &Edit) -> Result<(), ToolError> {
        let (at, given) = (format!("`edits[{index}].oldText`"), &self.target.given);
        if edit.old_text.is_empty() {
            return Err(invalid(format!("{at} is empty, and `{given}` is not; specify the text to replace")));
        }
        if edit.old_text == edit.new_text {
            let message = format!("no change in `edits[{index}]`: `oldText` and `newText` are the same");
            return Err(invalid(message));
        }
        if let Some(marker) = has_marker(&edit.old_text).or_else(|| has_marker(&edit.new_text)) {
            return Err(invalid(format!(
                "`edits[{index}]`: `{marker}` replaces a secret, and `{given}` is too large to restore it; nothing was \
                 changed"
            )));
        }
        let places = self.find_places(edit)?;
        let all = edit.replace_all == Some(true);
        let message = match places.len() {
            0 => format!(
                "not found: {at} is not in `{given}`; nothing was changed. Files of this size are searched for exact matches \
                 only: copy the text from ReadFile, or find it with Grep"
            ),
            1 => return self.apply_edit(&places, edit),
            _ if all && places.len() <= MAX_PLACES => return self.apply_edit(&without_overlaps(places), edit),
            _ if all => format!(
                "{at} occurs in `{given}` more than {MAX_PLACES} times, the limit for one edit; nothing was changed. Use \
                 RunCommand instead"
            ),
            _ => {
                let (count, shown) = self.candidates(&places)?;
                format!(
                    "not unique: {at} occurs in `{given}` {count}; nothing was changed. Add lines around it until it is unique, or \
                     set `replaceAll`\n{shown}"
                )
            }
        };
        Err(invalid(message))
    }

    fn read_error(&self, error: &io::Error) -> ToolError {
        open_error(self.target, error)
    }

    /// Finds the matches of the text, with either line ending, that are visible to the model.
    fn find_places(&mut self, edit: &Edit) -> Result<Vec<Range<u64>>, ToolError> {
        let old = with_lf(&edit.old_text);
        let mut texts = vec![old.clone()];
        if old.contains('\n') {
            texts.push(old.replace('\n', "\r\n"));
        }
        let needles: Vec<Vec<u8>> = texts.iter().filter_map(|text| body(self.form, text)).collect();
        if needles.is_empty() {
            return Ok(Vec::new());
        }
        let found = self.pieces.find(&needles, MAX_PLACES).map_err(|error| self.read_error(&error))?;
        let mut seen = Vec::with_capacity(found.len());
        for range in found {
            let (text, place) = self.context_of(&range)?;
            let cuts = |hidden: &Range<usize>| hidden.start < place.end && place.start < hidden.end;
            if !self.settings.redactor.redacted_ranges(&text).iter().any(cuts) {
                seen.push(range);
            }
        }
        Ok(seen)
    }

    /// Returns the text around a match, and the position of the match within that text.
    fn context_of(&mut self, range: &Range<u64>) -> Result<(String, Range<usize>), ToolError> {
        let (from, upto) = (range.start.saturating_sub(AROUND_BYTES), range.end + AROUND_BYTES);
        let bytes = self.pieces.read(from..upto.min(self.pieces.len())).map_err(|error| self.read_error(&error))?;
        let (start, end) = ((range.start - from) as usize, (range.end - from) as usize);
        let text = |bytes: &[u8]| with_lf(&self.form.encoding().decode_without_bom_handling(bytes).0);
        let (head, there, tail) = (text(&bytes[..start]), text(&bytes[start..end]), text(&bytes[end..]));
        let place = head.len()..head.len() + there.len();
        Ok((head + &there + &tail, place))
    }

    fn apply_edit(&mut self, places: &[Range<u64>], edit: &Edit) -> Result<(), ToolError> {
        let new = with_lf(&edit.new_text);
        let mut replaced = Vec::with_capacity(places.len());
        for range in places {
            let (text, place) = self.context_of(range)?;
            let after = [&text[..place.start], &new, &text[place.end..]].concat();
            refuse_partial_exposure(&text, &after, &edit.new_text, self.settings, self.target)?;
            let ended = if self.ends_with_crlf(range)? { new.replace('\n', "\r\n") } else { new.clone() };
            let Some(bytes) = body(self.form, &ended) else {
                return Err(unencodable_text(&self.target.given, self.form, "`newText`"));
            };
            replaced.push((range.clone(), bytes));
        }
        self.pieces.replace(&replaced);
        Ok(())
    }

    /// Returns whether the line before the match ends with CRLF. If there is no such line, goes by the first line in or
    /// after the match.
    fn ends_with_crlf(&mut self, range: &Range<u64>) -> Result<bool, ToolError> {
        let from = range.start.saturating_sub(AROUND_BYTES);
        let upto = (range.end + AROUND_BYTES).min(self.pieces.len());
        let bytes = self.pieces.read(from..upto).map_err(|error| self.read_error(&error))?;
        let (before, after) = bytes.split_at((range.start - from) as usize);
        let crlf = |bytes: &[u8], lf: usize| bytes[..lf].ends_with(b"\r");
        let found = memchr::memrchr(b'\n', before).map(|lf| crlf(before, lf));
        Ok(found.or_else(|| memchr::memchr(b'\n', after).map(|lf| crlf(after, lf))).unwrap_or(self.crlf))
    }

    fn candidates(&mut self, places: &[Range<u64>]) -> Result<(String, String), ToolError> {
        const MAX_NAMED: usize = 10;
        const MAX_SHOWN: usize = 5;
        let starts: Vec<u64> = places.iter().take(MAX_NAMED).map(|range| range.start).collect();
        let lines = self.pieces.lines_before(&starts).map_err(|error| self.read_error(&error))?;
        let numbers: Vec<String> = lines.iter().map(|line| (line + 1).to_string()).collect();
        let mut shown = Vec::new();
        for (range, number) in places.iter().zip(&numbers).take(MAX_SHOWN) {
            let (text, place) = self.context_of(range)?;
            let hidden = self.settings.redactor.redacted_ranges(&text);
            shown.push(format!("line {number}:\n{}", no_match::lines_around(&text, &place, &hidden)));
        }
        let rest = if places.len() > MAX_NAMED { " and more" } else { "" };
        let count = if places.len() > MAX_PLACES { format!("more than {MAX_PLACES}") } else { places.len().to_string() };
        Ok((format!("{count} times, at lines {}{rest}", numbers.join(", ")), shown.join("\n")))
    }
}

/// Encodes text that is inserted in the middle of a file.
fn body(form: Form, text: &str) -> Option<Vec<u8>> {
    let form = if form == Form::Utf8Bom { Form::Utf8 } else { form };
    form.encode(text)
}

/// Returns the matches, except those that overlap an earlier one.
fn without_overlaps(places: Vec<Range<u64>>) -> Vec<Range<u64>> {
    let mut end = 0;
    places
        .into_iter()
        .filter(|range| {
            let apart = range.start >= end;
            end = if apart { range.end } else { end };
            apart
        })
        .collect()
}

impl Splice {
    /// Writes the change if the file has not changed since the change was shown. If stopped, the file is unchanged.
    pub(in crate::tools) fn commit(&self, seen: &ReadState, kill: &CancellationToken) -> Result<String, ToolFailure> {
        let real = &self.target.real;
        let stood = seen.is_current(real);
        let written = replace_with(
            real,
            |copy| {
                let file = open_file(real)?;
                for part in &self.parts {
                    match part {
                        Part::New(bytes) => copy.write_all(bytes)?,
                        Part::Old(range) => {
                            (&file).seek(SeekFrom::Start(range.start))?;
                            let length = range.end - range.start;
                            let mut left = length;
                            while left > 0 {
                                if kill.is_cancelled() {
                                    return Err(io::Error::new(io::ErrorKind::Interrupted, "stopped").into());
                                }
                                // Copies in the kernel, with shared blocks where supported.
                                let copied = io::copy(&mut (&file).take(left.min(STRETCH_BYTES)), copy)?;
                                if copied == 0 {
                                    return Err(WriteError::Changed);
                                }
                                left -= copied;
                            }
                        }
                    }
                }
                Ok(())
            },
            &self.before,
            Parents::MustExist,
        );
        if let Err(error) = written {
            return Err(write_error(&self.target.given, self.before, error).into());
        }
        if stood && let Ok(content) = Fingerprint::from_file(real) {
            seen.record_write(real, content);
        }
        Ok(self.done.clone())
    }
}
