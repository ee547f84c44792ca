//! Searches a single file. Returns the matching lines, in order and within limits, or just their number.

use super::encoded::{Encodings, OnlyUtf8, is_not_utf8, is_utf_16, open_as_utf8};
use super::grep_answer::{FileHits, GrepLine, Hit, Hits, MAX_COUNTED, MatchCount};
use super::grep_arguments::{GrepMode, GrepRequest};
use super::line_redaction::{LineFilter, PrivateKeyLines, RedactedText};
use super::top_k::ThreadResults;
use crate::policy::redact::Redactor;
use crate::protocol::{cut_position_after, cut_position_before};
use crate::sys::path::open_file;
use crate::tools::document::charset::SNIFFED_BYTES;
use encoding_rs::Encoding;
use grep_matcher::{LineTerminator, Matcher};
use grep_searcher::{BinaryDetection, Searcher, SearcherBuilder, Sink, SinkContext, SinkContextKind, SinkFinish, SinkMatch};
use std::fs::File;
use std::io::{self, Read};
use std::path::Path;
use tokio_util::sync::CancellationToken;

/// Maximum number of bytes to show of a line.
const MAX_LINE_BYTES: usize = 1024;
/// Number of bytes to show before a match that starts beyond `MAX_LINE_BYTES`.
const BEFORE_MATCH_BYTES: usize = 256;
/// Maximum number of lines in a match.
const MAX_MATCH_LINES: usize = 100;
/// Line length in bytes above which the file is not searched.
const MAX_BUFFER_BYTES: usize = 16 * 1024 * 1024;
/// File size in bytes above which the file is not searched with `multiline`.
const MAX_MULTILINE_BYTES: usize = 64 * 1024 * 1024;
/// File size in bytes above which the file is read in chunks.
const WHOLE_BYTES: u64 = 1024 * 1024;
/// Number of bytes within which a NUL byte makes a file binary, as in `ReadFile`.
const NUL_SEARCH_BYTES: usize = 8 * 1024;

/// Kind of content of a searched file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ContentKind {
    Text,
    /// The file is binary and was not searched.
    Binary,
    /// The file was searched only up to the first NUL byte.
    TextThenBinary,
}

/// Why a file was not searched completely.
pub(super) enum Skip {
    LongLine,
    /// The file is too large for matches that span several lines.
    Large,
    Io(io::Error),
}

impl Skip {
    pub(super) fn reason(&self) -> String {
        match self {
            Self::LongLine => format!("a line of more than {} MB", MAX_BUFFER_BYTES / 1024 / 1024),
            Self::Large => format!("more than {} MB, too large for `multiline`", MAX_MULTILINE_BYTES / 1024 / 1024),
            Self::Io(error) => error.to_string(),
        }
    }
}

/// Searches one file after another on a single thread.
pub(super) struct FileSearch<'a> {
    request: &'a GrepRequest,
    redactor: &'a Redactor,
    kill: &'a CancellationToken,
    /// Searcher that provides line numbers and context.
    shows: Searcher,
    /// Searcher that merely counts matches.
    counts: Searcher,
    buffer: Vec<u8>,
    hits: ThreadResults<'a, Hits>,
    counted: &'a MatchCount,
    encodings: &'a Encodings,
}

/// State that all threads of a search share.
pub(super) struct SearchContext<'a> {
    pub request: &'a GrepRequest,
    pub redactor: &'a Redactor,
    pub kill: &'a CancellationToken,
    pub counted: &'a MatchCount,
    pub encodings: &'a Encodings,
}

impl<'a> FileSearch<'a> {
    pub(super) fn new(common: &SearchContext<'a>, hits: ThreadResults<'a, Hits>) -> Self {
        let SearchContext { request, redactor, kill, counted, encodings } = *common;
        let searcher = |lines: bool| {
            SearcherBuilder::new()
                .binary_detection(BinaryDetection::quit(0))
                .heap_limit(Some(if request.meaning.multiline { MAX_MULTILINE_BYTES } else { MAX_BUFFER_BYTES }))
                .line_terminator(LineTerminator::crlf())
                .multi_line(request.meaning.multiline)
                .line_number(lines)
                .before_context(if lines { request.before } else { 0 })
                .after_context(if lines { request.after } else { 0 })
                .build()
        };
        Self {
            request,
            redactor,
            kill,
            shows: searcher(true),
            counts: searcher(false),
            buffer: Vec::new(),
            hits,
            counted,
            encodings,
        }
    }

    pub(super) fn search(&mut self, path: &Path) -> Result<ContentKind, Skip> {
        let counts = matches!(self.request.mode, GrepMode::Content | GrepMode::Count);
        if counts && self.counted.is_full() && self.hits.own.remaining_capacity(path) == 0 {
            return Ok(ContentKind::Text);
        }
        let file = open_file(path).map_err(Skip::Io)?;
        let bytes = file.metadata().map_err(Skip::Io)?.len();
        if self.request.meaning.multiline && bytes > MAX_MULTILINE_BYTES as u64 {
            return Err(Skip::Large);
        }
        if bytes > WHOLE_BYTES {
            return self.search_in_chunks(path, file, bytes);
        }
        let mut buffer = std::mem::take(&mut self.buffer);
        buffer.clear();
        let read = (&file).take(WHOLE_BYTES + 1).read_to_end(&mut buffer);
        let found = match read {
            // The file has grown in the meantime.
            Ok(read) if read as u64 > WHOLE_BYTES => {
                open_file(path).map_err(Skip::Io).and_then(|file| self.search_in_chunks(path, file, WHOLE_BYTES + 1))
            }
            Ok(_) => self.search_decoded(path, &buffer),
            Err(error) => Err(Skip::Io(error)),
        };
        self.buffer = buffer;
        found
    }

    /// Decodes text from another encoding and then searches it.
    fn search_decoded(&mut self, path: &Path, bytes: &[u8]) -> Result<ContentKind, Skip> {
        if is_utf_16(bytes) {
            return self.slice(path, bytes, self.encodings.detect(bytes)).map(|()| ContentKind::Text);
        }
        let (text, content) = match memchr::memchr(0, bytes) {
            None => (bytes, ContentKind::Text),
            Some(at) if at < NUL_SEARCH_BYTES => return Ok(ContentKind::Binary),
            Some(at) => (&bytes[..at], ContentKind::TextThenBinary),
        };
        // ASCII characters have the same bytes in all encodings that a file without NUL bytes can have.
        if self.request.is_ascii() && !self.may_match(text) {
            self.hits.own.add(path, FileHits::default());
            return Ok(content);
        }
        let encoding = self.encodings.detect(bytes);
        self.slice(path, text, encoding)?;
        Ok(content)
    }

    fn slice(&mut self, path: &Path, bytes: &[u8], encoding: Option<&'static Encoding>) -> Result<(), Skip> {
        let decoded = encoding.map(|encoding| encoding.decode_with_bom_removal(bytes).0);
        let text = decoded.as_ref().map_or_else(|| bytes.strip_prefix(b"\xEF\xBB\xBF").unwrap_or(bytes), |text| text.as_bytes());
        if !self.may_match(text) {
            self.hits.own.add(path, FileHits::default());
            return Ok(());
        }
        let keys = PrivateKeyLines::find(text);
        let numbers = keys.has_keys();
        self.run(path, keys, (numbers, encoding), |searcher, expression, sink| searcher.search_slice(expression, text, sink))?;
        Ok(())
    }

    /// Returns whether the text might match, according to the searcher's first check. This avoids the setup for the
    /// many files that contain no match.
    fn may_match(&self, text: &[u8]) -> bool {
        self.request.meaning.multiline || !matches!(self.request.expression.find_candidate_line(text), Ok(None))
    }

    fn search_in_chunks(&mut self, path: &Path, file: File, bytes: u64) -> Result<ContentKind, Skip> {
        let mut start = Vec::new();
        (&file).take(SNIFFED_BYTES).read_to_end(&mut start).map_err(Skip::Io)?;
        let wide = is_utf_16(&start);
        if !wide && memchr::memchr(0, &start[..start.len().min(NUL_SEARCH_BYTES)]).is_some() {
            return Ok(ContentKind::Binary);
        }
        // ReadFile detects the encoding from the whole file, or from the start of a large one.
        let held = bytes <= self.encodings.most_held;
        let known = if wide || !held { self.encodings.detect_from_start(&start) } else { None };
        let mut ended = match known {
            Some(_) => self.search_chunks(path, open_as_utf8(path, known).map_err(Skip::Io)?, known, false)?,
            None => self.search_chunks(path, Box::new(io::Cursor::new(start).chain(file)), None, held)?,
        };
        if ended == SearchEnd::NotUtf8 {
            let encoding = self.encodings.detect_file(path).map_err(Skip::Io)?;
            ended = self.search_chunks(path, open_as_utf8(path, encoding).map_err(Skip::Io)?, encoding, false)?;
        }
        Ok(if ended == SearchEnd::AtNul { ContentKind::TextThenBinary } else { ContentKind::Text })
    }

    /// Searches `text`, the file's content as UTF-8, in chunks. With `watched`, the search ends at the first byte that
    /// is not UTF-8.
    fn search_chunks(
        &mut self,
        path: &Path,
        text: Box<dyn Read>,
        encoding: Option<&'static Encoding>,
        watched: bool,
    ) -> Result<SearchEnd, Skip> {
        let kill = self.kill;
        let reader = |text: Box<dyn Read>| -> CancellableReader<'_, Box<dyn Read>> {
            CancellableReader { inner: if watched { Box::new(OnlyUtf8::new(text)) } else { text }, kill }
        };
        // Numbering lines takes longer than searching most files. It is needed only if the file has a key.
        let numbers = self.request.mode == GrepMode::Content;
        let first = reader(text);
        let ended = self.run(path, PrivateKeyLines::deferred(encoding), (numbers, encoding), |searcher, expression, sink| {
            searcher.search_reader(expression, first, sink)
        })?;
        if ended != SearchEnd::AtKey {
            return Ok(ended);
        }
        let second = reader(open_as_utf8(path, encoding).map_err(Skip::Io)?);
        self.run(path, PrivateKeyLines::deferred(encoding), (true, encoding), |searcher, expression, sink| {
            searcher.search_reader(expression, second, sink)
        })
    }

    /// Runs a search. `numbers` says whether line numbers are needed even if no line is shown. `encoding` is the
    /// original encoding of the text.
    fn run(
        &mut self,
        path: &Path,
        keys: PrivateKeyLines,
        (numbers, encoding): (bool, Option<&'static Encoding>),
        search: impl FnOnce(&mut Searcher, &grep_regex::RegexMatcher, &mut Collector<'_>) -> io::Result<()>,
    ) -> Result<SearchEnd, Skip> {
        let room = if self.request.mode == GrepMode::Content { self.hits.own.remaining_capacity(path) } else { 0 };
        let expression = &self.request.expression;
        let searcher = if room > 0 || numbers { &mut self.shows } else { &mut self.counts };
        let mut sink = Collector {
            path,
            mode: self.request.mode,
            room,
            kill: self.kill,
            sight: LineFilter { redactor: self.redactor, expression, encoding },
            keys,
            around: self.request.before as u64,
            before: Vec::new(),
            follows: false,
            found: FileHits::default(),
            late: room == 0,
            counted: self.counted,
            told: 0,
            binary: false,
        };
        let searched = search(searcher, expression, &mut sink);
        let Collector { found, binary, told, keys, .. } = sink;
        if searched.as_ref().is_err_and(is_not_utf8) {
            return Ok(SearchEnd::NotUtf8);
        }
        if !(room > 0 || numbers) && keys.wait_for_numbers() {
            return Ok(SearchEnd::AtKey);
        }
        self.counted.add(found.matches - told);
        // A file that was not searched completely may still have a match.
        if searched.is_ok() || found.matches > 0 {
            self.hits.own.add(path, found);
        }
        match searched {
            Ok(()) => Ok(if binary { SearchEnd::AtNul } else { SearchEnd::Whole }),
            // The only error that is not from the system: the buffer would exceed its limit.
            Err(error) if error.raw_os_error().is_none() && error.kind() == io::ErrorKind::Other => {
                Err(if self.request.meaning.multiline { Skip::Large } else { Skip::LongLine })
            }
            Err(error) => Err(Skip::Io(error)),
        }
    }
}

/// How the search of a file ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum SearchEnd {
    Whole,
    AtNul,
    /// The results are invalid, because the file contains a private key and lines were not numbered.
    AtKey,
    /// The results are invalid, because the file has to be decoded first.
    NotUtf8,
}

/// Reader that ends once the search has been stopped.
struct CancellableReader<'a, R> {
    inner: R,
    kill: &'a CancellationToken,
}

impl<R: Read> Read for CancellableReader<'_, R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.kill.is_cancelled() { Ok(0) } else { self.inner.read(buffer) }
    }
}

/// Collects the matches in one file.
struct Collector<'a> {
    path: &'a Path,
    mode: GrepMode,
    /// Number of matches that can still be shown.
    room: usize,
    kill: &'a CancellationToken,
    sight: LineFilter<'a>,
    keys: PrivateKeyLines,
    /// Number of lines to show before a match.
    around: u64,
    before: Vec<GrepLine>,
    /// Whether the lines that follow belong to a match that is shown.
    follows: bool,
    found: FileHits,
    /// Whether any further matches are merely counted.
    late: bool,
    counted: &'a MatchCount,
    /// Number of matches that have been added to the shared count.
    told: u64,
    binary: bool,
}

/// Number of new matches after which the shared count is updated.
const REPORT_AFTER: u64 = 1024;

impl Sink for Collector<'_> {
    type Error = io::Error;

    fn matched(&mut self, _: &Searcher, found: &SinkMatch<'_>) -> io::Result<bool> {
        let first = found.line_number().unwrap_or(0);
        let shown = self.sight.redact_lines(found.bytes(), first, self.path, &mut self.keys);
        if found.line_number().is_none() && self.keys.wait_for_numbers() {
            return Ok(false);
        }
        if !self.sight.still_matches(&shown) {
            self.before.clear();
            self.follows = false;
            return Ok(!self.kill.is_cancelled());
        }
        self.found.matches += 1;
        if matches!(self.mode, GrepMode::Files | GrepMode::FilesWithoutMatch) {
            return Ok(false);
        }
        self.late |= self.found.hits.len() >= self.room;
        if self.mode == GrepMode::Count && self.found.matches > MAX_COUNTED {
            return Ok(false);
        }
        if self.late && self.mode == GrepMode::Content && self.found.matches - self.told >= REPORT_AFTER {
            let new = self.found.matches - std::mem::replace(&mut self.told, self.found.matches);
            if self.counted.add(new) {
                return Ok(false);
            }
        }
        if !self.late {
            let mut lines = std::mem::take(&mut self.before);
            lines.retain(|line| line.number + self.around >= first);
            self.follows = true;
            add_lines(&mut lines, &shown, first, self.sight.expression);
            self.found.hits.push(Hit { lines });
        }
        Ok(!self.kill.is_cancelled())
    }

    fn context(&mut self, _: &Searcher, around: &SinkContext<'_>) -> io::Result<bool> {
        if self.late {
            return Ok(true);
        }
        let number = around.line_number().unwrap_or(0);
        let shown = self.sight.redact_lines(around.bytes(), number, self.path, &mut self.keys);
        let line = GrepLine { number, mark: '-', text: shorten_line(&shown.text, None) };
        match (around.kind(), self.found.hits.last_mut()) {
            (SinkContextKind::After, Some(hit)) if self.follows => hit.lines.push(line),
            (SinkContextKind::Before | SinkContextKind::Other | SinkContextKind::After, _) => self.before.push(line),
        }
        Ok(true)
    }

    fn context_break(&mut self, _: &Searcher) -> io::Result<bool> {
        self.before.clear();
        Ok(true)
    }

    fn finish(&mut self, _: &Searcher, end: &SinkFinish) -> io::Result<()> {
        self.binary = end.binary_byte_offset().is_some();
        Ok(())
    }
}

fn add_lines(lines: &mut Vec<GrepLine>, shown: &RedactedText<'_>, first: u64, expression: &grep_regex::RegexMatcher) {
    let count = shown.text.split('\n').count();
    for (index, line) in shown.text.split('\n').enumerate().take(MAX_MATCH_LINES) {
        let number = first + index as u64;
        // In a match over several lines, each line is shown from its start.
        let at = || expression.find(line.as_bytes()).ok().flatten().map(|found| found.start());
        let at = if count == 1 && line.len() > MAX_LINE_BYTES { at() } else { None };
        lines.push(GrepLine { number, mark: ':', text: shorten_line(line.strip_suffix('\r').unwrap_or(line), at) });
    }
    if count > MAX_MATCH_LINES {
        let number = first + MAX_MATCH_LINES as u64;
        lines.push(GrepLine { number, mark: ':', text: format!("[... {} more lines of this match]", count - MAX_MATCH_LINES) });
    }
}

/// Shortens a line to its start, or to the text around the match if that starts far into the line, at `at`.
fn shorten_line(line: &str, at: Option<usize>) -> String {
    if line.len() <= MAX_LINE_BYTES {
        return line.to_owned();
    }
    let from = at.filter(|at| *at >= MAX_LINE_BYTES).map_or(0, |at| cut_position_after(line, at - BEFORE_MATCH_BYTES));
    let window = &line[from..];
    let window = &window[..cut_position_before(window, MAX_LINE_BYTES)];
    let before = if from > 0 { format!("[... from byte {from}] ") } else { String::new() };
    format!("{before}{window} [... line of {} bytes]", line.len())
}
