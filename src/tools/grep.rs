//! Grep: the lines that match an expression, in a file or a tree.

use super::paths::{Meant, Paths, not_found, open_error, shown, special};
use super::tool::{Draft, Effect, Output, Settings, Tool, blocking, invalid};
use super::unread::Unread;
use super::walk::{Depth, First, below, matcher, walk};
use crate::ports::{BoxFuture, RunContext};
use crate::protocol::{Action, Place, Target, ToolError};
use crate::sys::path::open_file;
use globset::GlobMatcher;
use grep_regex::{RegexMatcher, RegexMatcherBuilder};
use grep_searcher::{BinaryDetection, Searcher, SearcherBuilder, Sink, SinkContext, SinkContextKind, SinkFinish, SinkMatch};
use ignore::DirEntry;
use schemars::JsonSchema;
use serde::Deserialize;
use std::fmt::Write;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use tokio_util::sync::CancellationToken;

/// Most matches one search gives.
const MAX_MATCHES: usize = 200;
/// Most of one line.
const MAX_LINE_BYTES: usize = 1024;
/// Most lines around a match.
const MAX_CONTEXT: u32 = 20;
/// A file with a longer line is not text that anyone searches.
const MAX_BUFFER_BYTES: usize = 16 * 1024 * 1024;

pub(super) struct Grep;

#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct Arguments {
    /// A regular expression.
    pattern: String,
    /// The file or directory to search; the workspace when absent.
    path: Option<String>,
    /// Only files whose path matches, for example `*.rs` or `src/**/*.ts`.
    glob: Option<String>,
    /// Whether upper and lower case are the same.
    ignore_case: Option<bool>,
    /// Whether `pattern` is plain text instead of an expression.
    literal: Option<bool>,
    /// Lines shown before and after each match.
    #[schemars(range(max = 20))]
    context: Option<u32>,
}

pub(super) struct Work {
    target: Target,
    expression: RegexMatcher,
    pattern: String,
    files: Option<GlobMatcher>,
    context: usize,
}

impl Tool for Grep {
    const NAME: &'static str = "Grep";
    const ALIASES: &'static [&'static str] = &["search", "grep_search", "search_files", "ripgrep", "rg", "TextSearch"];
    const CAPABILITY: &'static str = "File.Read";
    const DESCRIPTION: &'static str = include_str!("../../assets/tools/Grep.md");
    type Arguments = Arguments;
    type Work = Work;

    fn actions(arguments: &Arguments, paths: &Paths<'_>) -> Result<Vec<Action>, ToolError> {
        let path = arguments.path.as_deref().unwrap_or(".");
        Ok(vec![Action::Read { target: paths.target("path", path, Meant::Directory)? }])
    }

    fn draft(arguments: Arguments, settings: &Settings) -> Result<Draft<Work>, ToolError> {
        let target = Paths::on_disk(settings).target("path", arguments.path.as_deref().unwrap_or("."), Meant::Directory)?;
        let context = arguments.context.unwrap_or(0);
        if context > MAX_CONTEXT {
            return Err(invalid(format!("`context` is {context}; at most {MAX_CONTEXT} lines are shown around a match")));
        }
        Ok(Draft {
            summary: format!("Grep {} in {}", arguments.pattern, target.given),
            actions: vec![Action::Read { target: target.clone() }],
            proposal: None,
            effect: Effect::Reads,
            work: Work {
                expression: expression(&arguments)?,
                files: arguments.glob.as_deref().map(file_matcher).transpose()?,
                pattern: arguments.pattern,
                context: context as usize,
                target,
            },
        })
    }

    fn run(work: Work, settings: Arc<Settings>, context: RunContext) -> BoxFuture<'static, Output> {
        blocking(move || Ok(search(&work, &settings, &context.kill)?))
    }
}

fn expression(arguments: &Arguments) -> Result<RegexMatcher, ToolError> {
    if arguments.pattern.is_empty() {
        return Err(invalid("`pattern` is empty; give the text or expression to look for"));
    }
    RegexMatcherBuilder::new()
        .case_insensitive(arguments.ignore_case.unwrap_or(false))
        .fixed_strings(arguments.literal.unwrap_or(false))
        .line_terminator(Some(b'\n'))
        .build(&arguments.pattern)
        .map_err(|error| invalid(format!("`pattern`: {}", why_not(&error))))
}

fn why_not(error: &grep_regex::Error) -> String {
    match error.kind() {
        grep_regex::ErrorKind::NotAllowed(_) | grep_regex::ErrorKind::Banned(_) => {
            "it has a line break, and lines are searched one by one; look for a part that stands in one line".to_owned()
        }
        _ => format!("{error}; set `literal` to look for the text as it is"),
    }
}

/// A pattern without a slash is for the name, wherever the file is.
fn file_matcher(pattern: &str) -> Result<GlobMatcher, ToolError> {
    let whole = if pattern.contains('/') { pattern.trim_start_matches("./").to_owned() } else { format!("**/{pattern}") };
    matcher("glob", &whole)
}

/// One match, ordered by where it is.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Hit {
    path: PathBuf,
    line: u64,
    /// The lines around it, and itself.
    lines: Vec<(u64, char, String)>,
}

fn search(work: &Work, settings: &Settings, kill: &CancellationToken) -> Result<String, ToolError> {
    let hits = Mutex::new(First::new(MAX_MATCHES));
    let unread = Unread::new();
    match work.target.place {
        Place::Missing => return Err(not_found(&work.target, settings)),
        Place::Special => return Err(special(&work.target)),
        Place::File { .. } => {
            let found = FileSearch::new(work).search(&work.target.real, &hits, kill);
            let content = found.map_err(|skip| skip.error(&work.target))?;
            if content == Content::Binary {
                let found = hits.into_inner().unwrap_or_else(PoisonError::into_inner);
                return binary(found, work, settings);
            }
        }
        Place::Directory => walk(&work.target, settings, Depth::All, &unread, kill, || {
            let mut files = FileSearch::new(work);
            let (hits, unread) = (&hits, &unread);
            move |entry: &DirEntry| {
                let path = entry.path();
                let is_file = entry.file_type().is_some_and(|kind| kind.is_file());
                let wanted = || work.files.as_ref().is_none_or(|files| files.is_match(below(path, &work.target.real)));
                if is_file
                    && wanted()
                    && let Err(skip) = files.search(path, hits, kill)
                {
                    match skip {
                        Skip::LongLine => unread.add(path, long_line()),
                        Skip::Io(error) => unread.add_io(path, &error),
                    }
                }
            }
        })?,
    }
    let hits = hits.into_inner().unwrap_or_else(PoisonError::into_inner);
    Ok(answer(hits, work, settings) + &unread.note(settings))
}

/// What was found before the first NUL byte, if anything.
fn binary(hits: First<Hit>, work: &Work, settings: &Settings) -> Result<String, ToolError> {
    let how = "RunCommand can, for example with `grep -a`";
    if hits.seen > 0 {
        return Ok(format!("{}\n[not searched after the first NUL byte: a binary file; {how}]", answer(hits, work, settings)));
    }
    Err(invalid(format!("`{}` is a binary file, which Grep does not search; {how}", work.target.given)))
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Content {
    Text,
    Binary,
}

/// Why a file was not searched to its end.
enum Skip {
    LongLine,
    Io(io::Error),
}

impl Skip {
    fn error(&self, target: &Target) -> ToolError {
        match self {
            Self::LongLine => invalid(format!(
                "`{}` has {}, which Grep does not search; RunCommand can, for example with `grep -o`",
                target.given,
                long_line()
            )),
            Self::Io(error) => open_error(target, error),
        }
    }
}

fn long_line() -> String {
    format!("a line of more than {} MB", MAX_BUFFER_BYTES / 1024 / 1024)
}

/// What one thread searches one file after the other with.
struct FileSearch {
    searcher: Searcher,
    expression: RegexMatcher,
}

impl FileSearch {
    fn new(work: &Work) -> Self {
        let searcher = SearcherBuilder::new()
            .binary_detection(BinaryDetection::quit(0))
            .heap_limit(Some(MAX_BUFFER_BYTES))
            .before_context(work.context)
            .after_context(work.context)
            .build();
        Self { searcher, expression: work.expression.clone() }
    }

    fn search(&mut self, path: &Path, hits: &Mutex<First<Hit>>, kill: &CancellationToken) -> Result<Content, Skip> {
        let file = open_file(path).map_err(Skip::Io)?;
        let mut sink = Collector { path, hits, kill, before: Vec::new(), current: None, content: Content::Text, late: None };
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
    before: Vec<(u64, char, String)>,
    current: Option<Hit>,
    content: Content,
    /// Matches after one that came too late to be shown: those come later still, and are only counted.
    late: Option<u64>,
}

impl Collector<'_> {
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
        if let Some(late) = &mut self.late {
            *late += 1;
            return Ok(!self.kill.is_cancelled());
        }
        let line = found.line_number().unwrap_or(0);
        let mut lines = std::mem::take(&mut self.before);
        lines.push((line, ':', bounded(found.bytes())));
        self.current = Some(Hit { path: self.path.to_owned(), line, lines });
        Ok(!self.kill.is_cancelled())
    }

    fn context(&mut self, _: &Searcher, around: &SinkContext<'_>) -> io::Result<bool> {
        if self.late.is_some() {
            return Ok(true);
        }
        let line = (around.line_number().unwrap_or(0), '-', bounded(around.bytes()));
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
fn bounded(line: &[u8]) -> String {
    let line = line.strip_suffix(b"\n").unwrap_or(line);
    let line = line.strip_suffix(b"\r").unwrap_or(line);
    if line.len() <= MAX_LINE_BYTES {
        return String::from_utf8_lossy(line).into_owned();
    }
    let start = crate::sys::process::whole_start(&line[..MAX_LINE_BYTES]);
    format!("{} [... line of {} bytes]", String::from_utf8_lossy(start), line.len())
}

fn answer(hits: First<Hit>, work: &Work, settings: &Settings) -> String {
    let seen = hits.seen;
    if seen == 0 {
        let left_out = match work.target.place {
            Place::Directory => " (ignored and binary files are not searched)",
            Place::File { .. } | Place::Missing | Place::Special => "",
        };
        return format!("no line matches `{}` in `{}`{left_out}", work.pattern, work.target.given);
    }
    let mut text = String::new();
    for (index, hit) in hits.into_sorted().into_iter().enumerate() {
        if index > 0 && work.context > 0 {
            text.push_str("--\n");
        }
        let name = shown(&hit.path, settings);
        for (number, mark, line) in hit.lines {
            let _ = writeln!(text, "{name}{mark}{number}{mark}{line}");
        }
    }
    if seen > MAX_MATCHES as u64 {
        let _ = write!(text, "[{MAX_MATCHES} of {seen} matches shown; narrow `pattern`, `path` or `glob`]");
    }
    text.truncate(text.trim_end_matches('\n').len());
    text
}
