//! Grep: the lines that match an expression, in a file or a tree.

use super::file_search::{Content, FileSearch, Hit, Skip, long_line};
use super::unread::Unread;
use super::walk::{Depth, First, below, matcher, walk};
use crate::policy::redact::Redactor;
use crate::ports::{BoxFuture, RunContext};
use crate::protocol::{Action, Place, Target, ToolError};
use crate::tools::alias::Alias;
use crate::tools::paths::{Meant, Paths, not_found, open_error, shown, special};
use crate::tools::tool::{Draft, Effect, Output, Settings, Tool, blocking, invalid};
use globset::GlobMatcher;
use grep_regex::{RegexMatcher, RegexMatcherBuilder};
use ignore::DirEntry;
use schemars::JsonSchema;
use serde::Deserialize;
use std::fmt::Write;
use std::ops::RangeInclusive;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use tokio_util::sync::CancellationToken;

/// Most matches one search gives.
const MAX_MATCHES: usize = 200;
/// Most lines around a match.
const MAX_CONTEXT: u32 = 20;

pub(in crate::tools) struct Grep;

#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(in crate::tools) struct Arguments {
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

pub(in crate::tools) struct Work {
    target: Target,
    expression: RegexMatcher,
    pattern: String,
    files: Option<GlobMatcher>,
    context: usize,
}

impl Tool for Grep {
    const NAME: &'static str = "Grep";
    const ALIASES: &'static [Alias<Arguments>] = &[
        Alias::same("search"),
        Alias::same("grep_search"),
        Alias::same("search_files"),
        Alias::same("ripgrep"),
        Alias::same("rg"),
        Alias::same("TextSearch"),
    ];
    const CAPABILITY: &'static str = "File.Read";
    const DESCRIPTION: &'static str = include_str!("../../../assets/tools/Grep.md");
    type Arguments = Arguments;
    type Work = Work;

    fn actions(arguments: &Arguments, paths: &Paths<'_>) -> Result<Vec<Action>, ToolError> {
        let path = arguments.path.as_deref().unwrap_or(".");
        Ok(vec![Action::Read { target: paths.source("path", path, Meant::Directory)? }])
    }

    fn draft(arguments: Arguments, settings: &Settings) -> Result<Draft<Work>, ToolError> {
        let target = Paths::on_disk(settings).source("path", arguments.path.as_deref().unwrap_or("."), Meant::Directory)?;
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

fn search(work: &Work, settings: &Settings, kill: &CancellationToken) -> Result<String, ToolError> {
    let hits = Mutex::new(First::new(MAX_MATCHES));
    let unread = Unread::new();
    match work.target.place {
        Place::Missing => return Err(not_found(&work.target, settings)),
        Place::Special => return Err(special(&work.target)),
        Place::File { .. } => {
            let found =
                FileSearch::new(&work.expression, work.context, &settings.redactor).search(&work.target.real, &hits, kill);
            let content = found.map_err(|skip| unsearched(&skip, &work.target))?;
            if content == Content::Binary {
                let found = hits.into_inner().unwrap_or_else(PoisonError::into_inner);
                return binary(found, work, settings);
            }
        }
        Place::Directory => walk(&work.target, settings, Depth::All, &unread, kill, || {
            let mut files = FileSearch::new(&work.expression, work.context, &settings.redactor);
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

fn unsearched(skip: &Skip, target: &Target) -> ToolError {
    match skip {
        Skip::LongLine => invalid(format!(
            "`{}` has {}, which Grep does not search; RunCommand can, for example with `grep -o`",
            target.given,
            long_line()
        )),
        Skip::Io(error) => open_error(target, error),
    }
}

/// What was found before the first NUL byte, if anything.
fn binary(hits: First<Hit>, work: &Work, settings: &Settings) -> Result<String, ToolError> {
    let how = "RunCommand can, for example with `grep -a`";
    if hits.seen > 0 {
        return Ok(format!("{}\n[not searched after the first NUL byte: a binary file; {how}]", answer(hits, work, settings)));
    }
    Err(invalid(format!("`{}` is a binary file, which Grep does not search; {how}", work.target.given)))
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
    let mut keys = Keys::default();
    for (index, hit) in hits.into_sorted().into_iter().enumerate() {
        if index > 0 && work.context > 0 {
            text.push_str("--\n");
        }
        let name = shown(&hit.path, settings);
        for (number, mark, line) in hit.lines {
            let line = if keys.has(&hit.path, number, &line, settings) { "[a line of a private key]".to_owned() } else { line };
            let _ = writeln!(text, "{name}{mark}{number}{mark}{line}");
        }
    }
    if seen > MAX_MATCHES as u64 {
        let _ = write!(text, "[{MAX_MATCHES} of {seen} matches shown; narrow `pattern`, `path` or `glob`]");
    }
    text.truncate(text.trim_end_matches('\n').len());
    text
}

/// The private keys of the files that were searched: one line of a key alone looks like any other text.
#[derive(Default)]
struct Keys {
    path: PathBuf,
    lines: Vec<RangeInclusive<u64>>,
}

impl Keys {
    fn has(&mut self, path: &Path, number: u64, line: &str, settings: &Settings) -> bool {
        if line.contains(char::is_whitespace) || line.len() < 8 {
            return false;
        }
        if self.path != path {
            let text = crate::sys::file::read(path, settings.max_file_size_bytes).unwrap_or_default();
            self.lines = Redactor::lines_of_keys(&String::from_utf8_lossy(&text));
            path.clone_into(&mut self.path);
        }
        self.lines.iter().any(|lines| lines.contains(&number))
    }
}
