//! The lines of one file that match, gathered in order and within bounds.

use super::walk::First;
use crate::policy::redact::Redactor;
use crate::protocol::cut_before;
use crate::sys::path::open_file;
use grep_matcher::Matcher;
use grep_regex::RegexMatcher;
use grep_searcher::{BinaryDetection, Searcher, SearcherBuilder, Sink, SinkContext, SinkContextKind, SinkFinish, SinkMatch};
use std::borrow::Cow;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use tokio_util::sync::CancellationToken;

/// Most of one line.
const MAX_LINE_BYTES: usize = 1024;
/// A file with a longer line is not text that anyone searches.
const MAX_BUFFER_BYTES: usize = 16 * 1024 * 1024;

/// One match, ordered by where it is.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(in crate::tools) struct Hit {
    pub path: PathBuf,
    line: u64,
    /// The lines around it, and itself.
    pub lines: Vec<(u64, char, String)>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::tools) enum Content {
    Text,
    Binary,
}

/// Why a file was not searched to its end.
pub(in crate::tools) enum Skip {
    LongLine,
    Io(io::Error),
}

pub(in crate::tools) fn long_line() -> String {
    format!("a line of more than {} MB", MAX_BUFFER_BYTES / 1024 / 1024)
}

/// What one thread searches one file after the other with.
pub(in crate::tools) struct FileSearch {
    searcher: Searcher,
    expression: RegexMatcher,
    redactor: Arc<Redactor>,
}

impl FileSearch {
    /// `context`: lines shown before and after a match.
    pub(in crate::tools) fn new(expression: &RegexMatcher, context: usize, redactor: &Arc<Redactor>) -> Self {
        let searcher = SearcherBuilder::new()
            .binary_detection(BinaryDetection::quit(0))
            .heap_limit(Some(MAX_BUFFER_BYTES))
            .before_context(context)
            .after_context(context)
            .build();
        Self { searcher, expression: expression.clone(), redactor: redactor.clone() }
    }

    pub(in crate::tools) fn search(
        &mut self,
        path: &Path,
        hits: &Mutex<First<Hit>>,
        kill: &CancellationToken,
    ) -> Result<Content, Skip> {
        let file = open_file(path).map_err(Skip::Io)?;
        let (redactor, expression) = (&*self.redactor, &self.expression.clone());
        let mut sink = Collector {
            path,
            hits,
            kill,
            redactor,
            expression,
            before: Vec::new(),
            current: None,
            content: Content::Text,
            late: None,
        };
        let searched = self.searcher.search_file(&self.expression, &file, &mut sink);
        sink.close();
        match searched {
            Ok(()) => Ok(sink.content),
            // The only error here that is not the system's: the buffer would have to grow over its limit.
            Err(error) if error.raw_os_error().is_none() && error.kind() == io::ErrorKind::Other => Err(Skip::LongLine),
            Err(error) => Err(Skip::Io(error)),
        }
    }
}

/// Gathers the matches of one file.
struct Collector<'a> {
    path: &'a Path,
    hits: &'a Mutex<First<Hit>>,
    kill: &'a CancellationToken,
    redactor: &'a Redactor,
    expression: &'a RegexMatcher,
    before: Vec<(u64, char, String)>,
    current: Option<Hit>,
    content: Content,
    /// Matches after one that came too late to be shown: those come later still, and are only counted.
    late: Option<u64>,
}

impl Collector<'_> {
    /// Whether the line matches as it is shown too: else a search would tell letter by letter what it hides.
    fn shows(&self, line: &[u8]) -> bool {
        let line = String::from_utf8_lossy(line);
        match self.redactor.hide(&line) {
            Cow::Borrowed(_) => true,
            Cow::Owned(shown) => self.expression.is_match(shown.as_bytes()).unwrap_or(false),
        }
    }

    fn flush(&mut self) {
        if let Some(hit) = self.current.take()
            && !self.hits.lock().unwrap_or_else(PoisonError::into_inner).push(hit)
        {
            self.late = Some(0);
        }
    }

    /// To be called however the search ended: what was found before an error was found.
    fn close(&mut self) {
        self.flush();
        if let Some(late) = self.late.take() {
            self.hits.lock().unwrap_or_else(PoisonError::into_inner).seen += late;
        }
    }
}

impl Sink for Collector<'_> {
    type Error = io::Error;

    fn matched(&mut self, _: &Searcher, found: &SinkMatch<'_>) -> io::Result<bool> {
        self.flush();
        if !self.shows(found.bytes()) {
            self.before.clear();
            return Ok(!self.kill.is_cancelled());
        }
        if let Some(late) = &mut self.late {
            *late += 1;
            return Ok(!self.kill.is_cancelled());
        }
        let line = found.line_number().unwrap_or(0);
        let mut lines = std::mem::take(&mut self.before);
        lines.push((line, ':', bounded(found.bytes(), self.redactor)));
        self.current = Some(Hit { path: self.path.to_owned(), line, lines });
        Ok(!self.kill.is_cancelled())
    }

    fn context(&mut self, _: &Searcher, around: &SinkContext<'_>) -> io::Result<bool> {
        if self.late.is_some() {
            return Ok(true);
        }
        let line = (around.line_number().unwrap_or(0), '-', bounded(around.bytes(), self.redactor));
        match (around.kind(), &mut self.current) {
            (SinkContextKind::After, Some(hit)) => hit.lines.push(line),
            (SinkContextKind::Before | SinkContextKind::Other, _) | (SinkContextKind::After, None) => self.before.push(line),
        }
        Ok(true)
    }

    fn finish(&mut self, _: &Searcher, end: &SinkFinish) -> io::Result<()> {
        if end.binary_byte_offset().is_some() {
            self.content = Content::Binary;
        }
        Ok(())
    }
}

/// The line without its end, and no more of it than is shown.
fn bounded(line: &[u8], redactor: &Redactor) -> String {
    let line = line.strip_suffix(b"\n").unwrap_or(line);
    let line = line.strip_suffix(b"\r").unwrap_or(line);
    if line.len() <= MAX_LINE_BYTES {
        return String::from_utf8_lossy(line).into_owned();
    }
    // Hidden before it is cut: half a secret is not known for one.
    let whole = String::from_utf8_lossy(line);
    let hidden = redactor.redact(&whole).text;
    let start = cut_before(&hidden, MAX_LINE_BYTES);
    format!("{} [... line of {} bytes]", &hidden[..start], line.len())
}
