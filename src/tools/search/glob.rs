//! Glob: the files whose paths match a pattern.

use super::unread::Unread;
use super::walk::{Depth, First, below, matcher, walk};
use crate::ports::{BoxFuture, RunContext};
use crate::protocol::{Action, Place, Target, ToolError};
use crate::sys::path::{identity, is_without_links};
use crate::tools::alias::Alias;
use crate::tools::paths::{Meant, Paths, shown};
use crate::tools::tool::{Draft, Effect, Output, Settings, Tool, blocking, invalid};
use globset::GlobMatcher;
use schemars::JsonSchema;
use serde::Deserialize;
use std::sync::{Arc, Mutex, PoisonError};
use tokio_util::sync::CancellationToken;

/// Most paths one search gives.
const MAX_ENTRIES: usize = 1_000;

pub(in crate::tools) struct Glob;

#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(in crate::tools) struct Arguments {
    /// For example `src/**/*.rs` or `**/Cargo.toml`; relative to the workspace, absolute, or from `~`.
    pattern: String,
    /// The directory a relative pattern starts from; the workspace when absent.
    path: Option<String>,
}

pub(in crate::tools) struct Work {
    base: Target,
    /// What is to match below `base`.
    rest: String,
    matcher: GlobMatcher,
    depth: Depth,
    pattern: String,
}

impl Work {
    fn names_directory(&self) -> bool {
        self.depth == Depth::Levels(1) && identity(&self.base.real.join(&self.rest)).is_ok()
    }
}

/// How far below a place a pattern can match.
fn depth_of(pattern: &str) -> Depth {
    // An alternative may hold a slash.
    if pattern.contains("**") || pattern.contains('{') { Depth::All } else { Depth::Levels(pattern.split('/').count()) }
}

impl Tool for Glob {
    const NAME: &'static str = "Glob";
    const ALIASES: &'static [Alias<Arguments>] =
        &[Alias::same("find_files"), Alias::same("file_search"), Alias::same("glob_search")];
    const CAPABILITY: &'static str = "File.Read";
    const DESCRIPTION: &'static str = include_str!("../../../assets/tools/Glob.md");
    type Arguments = Arguments;
    type Work = Work;

    fn actions(arguments: &Arguments, paths: &Paths<'_>) -> Result<Vec<Action>, ToolError> {
        let (base, _) = split(arguments)?;
        Ok(vec![Action::Read { target: paths.target("pattern", &base, Meant::Directory)? }])
    }

    fn draft(arguments: Arguments, settings: &Settings) -> Result<Draft<Work>, ToolError> {
        let (base, rest) = split(&arguments)?;
        let base = Paths::on_disk(settings).target("pattern", &base, Meant::Directory)?;
        Ok(Draft {
            summary: format!("Glob {}", arguments.pattern),
            actions: vec![Action::Read { target: base.clone() }],
            proposal: None,
            effect: Effect::Reads,
            work: Work { base, matcher: matcher("pattern", &rest)?, depth: depth_of(&rest), rest, pattern: arguments.pattern },
        })
    }

    fn run(work: Work, settings: Arc<Settings>, context: RunContext) -> BoxFuture<'static, Output> {
        blocking(move || Ok(search(&work, &settings, &context.kill)?))
    }
}

/// The directory before the first wildcard, and the pattern from there: what is searched is what is judged.
fn split(arguments: &Arguments) -> Result<(String, String), ToolError> {
    let pattern = &arguments.pattern;
    if pattern.trim().is_empty() {
        return Err(invalid("`pattern` is empty; give one like `src/**/*.rs`"));
    }
    let whole = match &arguments.path {
        Some(path) if !pattern.starts_with(['/', '~']) => format!("{}/{pattern}", path.trim_end_matches('/')),
        Some(_) | None => pattern.clone(),
    };
    let names: Vec<&str> = whole.split('/').collect();
    let wild = |name: &&str| name.contains(['*', '?', '[', '{', '\\']);
    let first = names.iter().position(wild).unwrap_or(names.len() - 1);
    let (base, rest) = (names[..first].join("/"), names[first..].join("/"));
    if whole.contains('\0') {
        return Err(invalid("`pattern` holds a NUL character, which no name does"));
    }
    // Also as an alternative: `{..,src}/*`.
    if names[first..].iter().any(|name| name.split(['{', '}', ',']).any(|part| part == "..")) {
        return Err(invalid("`pattern` has `..` after a wildcard; start from the directory that is meant"));
    }
    let base = match (base.is_empty(), whole.starts_with('/')) {
        (false, _) => base,
        (true, true) => "/".to_owned(),
        (true, false) => ".".to_owned(),
    };
    let rest = if rest.is_empty() { "*".to_owned() } else { rest };
    Ok((base, rest))
}

fn search(work: &Work, settings: &Settings, kill: &CancellationToken) -> Result<String, ToolError> {
    match work.base.place {
        Place::Directory => {}
        Place::Missing => return Ok(format!("no file matches `{}`: `{}` does not exist", work.pattern, work.base.given)),
        Place::File { .. } | Place::Special => {
            return Err(invalid(format!("`{}` is not a directory; start the pattern from one", work.base.given)));
        }
    }
    let unread = Unread::new();
    let found = Mutex::new(First::new(MAX_ENTRIES));
    walk(&work.base, settings, work.depth, &unread, kill, || {
        |entry| {
            let is_directory = entry.file_type().is_some_and(|kind| kind.is_dir());
            if !is_directory && work.matcher.is_match(below(entry.path(), &work.base.real)) {
                found.lock().unwrap_or_else(PoisonError::into_inner).push(entry.path().to_owned());
            }
        }
    })?;
    let found = found.into_inner().unwrap_or_else(PoisonError::into_inner);
    let seen = found.seen;
    // A link put in the place of a directory during the walk would have shown what is behind it.
    let there = found.into_sorted().into_iter().filter(|path| is_without_links(path));
    let mut lines: Vec<String> = there.map(|path| shown(&path, settings)).collect();
    if lines.is_empty() && work.names_directory() {
        return Ok(format!("`{}` is a directory; list it with ListDirectory, or search below it with `/**`", work.pattern));
    }
    if lines.is_empty() {
        return Ok(format!("no file matches `{}` (ignored files are not searched){}", work.pattern, unread.note(settings)));
    }
    if seen > MAX_ENTRIES as u64 {
        lines.push(format!("[{MAX_ENTRIES} of {seen} files shown; use a narrower pattern]"));
    }
    Ok(lines.join("\n") + &unread.note(settings))
}
