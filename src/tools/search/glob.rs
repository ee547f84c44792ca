//! The `Glob` tool, which finds files whose paths match a pattern.

use super::grep_arguments::limit;
use super::page::{Page, PageText};
use super::skipped::SkippedPlaces;
use super::top_k::{MergedResults, TopItems};
use super::walk::{Depth, InOrder, WalkScope, glob, relative_to, walk};
use crate::ports::{BoxFuture, RunContext};
use crate::protocol::{Action, Place, Target, ToolError};
use crate::sys::path::{WithoutLinks, identity};
use crate::tools::alias::Alias;
use crate::tools::call_result::{CallResult, ToolOutput, blocking};
use crate::tools::draft::CallDraft;
use crate::tools::error::invalid;
use crate::tools::paths::{ExpectedKind, Paths, display_path};
use crate::tools::settings::ToolSettings;
use crate::tools::tool::Tool;
use globset::{GlobSet, GlobSetBuilder};
use ignore::DirEntry;
use schemars::JsonSchema;
use serde::Deserialize;
use std::cmp::Reverse;
use std::sync::Arc;
use std::time::SystemTime;

/// Maximum number of paths per call.
const MAX_ENTRIES: u32 = 1_000;

pub(in crate::tools) struct Glob;

#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(in crate::tools) struct Arguments {
    pattern: String,
    path: Option<String>,
    /// Include directories.
    directories: Option<bool>,
    ignore_case: Option<bool>,
    hidden: Option<bool>,
    no_ignore: Option<bool>,
    /// `modified`: newest first.
    #[schemars(with = "Option<String>", extend("enum" = ["path", "modified"]))]
    sort: Option<Sort>,
    #[schemars(range(min = 1, max = 1000))]
    max_results: Option<u32>,
    #[schemars(range(min = 1, max = 10000))]
    offset: Option<u64>,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
enum Sort {
    #[default]
    #[serde(alias = "name")]
    Path,
    #[serde(alias = "mtime", alias = "time", alias = "newest")]
    Modified,
}

pub(in crate::tools) struct Work {
    base: Target,
    /// Pattern to match below `base`.
    rest: String,
    matcher: GlobSet,
    reach: WalkScope,
    directories: bool,
    sort: Sort,
    page: Page,
    pattern: String,
}

impl Work {
    fn names_directory(&self) -> bool {
        self.reach.depth == Depth::Levels(1) && identity(&self.base.real.join(&self.rest)).is_ok()
    }
}

/// Returns the maximum depth at which a pattern can match.
fn depth_of(pattern: &str) -> Depth {
    // An alternative may contain a slash.
    if pattern.contains("**") || pattern.contains('{') { Depth::All } else { Depth::Levels(pattern.split('/').count()) }
}

impl Tool for Glob {
    const NAME: &'static str = "Glob";
    const ALIASES: &'static [Alias<Arguments>] = &[
        Alias::with_same_arguments("find_files"),
        Alias::with_same_arguments("find"),
        Alias::with_same_arguments("file_search"),
        Alias::with_same_arguments("glob_search"),
    ];
    const CAPABILITY: &'static str = "File.Read";
    const DESCRIPTION: &'static str = include_str!("../../../assets/tools/Glob.md");
    type Arguments = Arguments;
    type Work = Work;

    fn actions(arguments: &Arguments, paths: &Paths<'_>) -> Result<Vec<Action>, ToolError> {
        let (base, _) = split(arguments)?;
        Ok(vec![Action::Read { target: paths.target("pattern", &base, ExpectedKind::Directory)? }])
    }

    fn draft(arguments: Arguments, settings: &ToolSettings) -> Result<CallDraft<Work>, ToolError> {
        let (base, rest) = split(&arguments)?;
        let base = Paths::on_disk(settings).target("pattern", &base, ExpectedKind::Directory)?;
        Ok(CallDraft::reads(
            format!("Glob {}", arguments.pattern),
            base.clone(),
            Work {
                base,
                matcher: matcher(&rest, arguments.ignore_case.unwrap_or(false))?,
                reach: WalkScope {
                    depth: depth_of(&rest),
                    hidden: arguments.hidden.unwrap_or(true),
                    ignored: arguments.no_ignore.unwrap_or(false),
                },
                directories: arguments.directories.unwrap_or(false),
                sort: arguments.sort.unwrap_or_default(),
                page: Page::new(arguments.offset, limit("maxResults", arguments.max_results, MAX_ENTRIES)?)?,
                rest,
                pattern: arguments.pattern,
            },
        ))
    }

    fn run(work: Work, settings: Arc<ToolSettings>, context: RunContext) -> BoxFuture<'static, CallResult> {
        blocking(move || Ok(search(&work, &settings, &context)?))
    }
}

/// Splits a pattern at its first wildcard into a directory, which the policy checks, and the rest.
fn split(arguments: &Arguments) -> Result<(String, String), ToolError> {
    let pattern = &arguments.pattern;
    if pattern.trim().is_empty() {
        return Err(invalid("`pattern` is empty; specify one, such as `src/**/*.rs`"));
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
        return Err(invalid("`pattern` contains a NUL character, which no file name has; remove it"));
    }
    // Also inside an alternative: `{..,src}/*`.
    if names[first..].iter().any(|name| name.split(['{', '}', ',']).any(|part| part == "..")) {
        return Err(invalid("`pattern` has `..` after a wildcard; start from the intended directory"));
    }
    let base = match (base.is_empty(), whole.starts_with('/')) {
        (false, _) => base,
        (true, true) => "/".to_owned(),
        (true, false) => ".".to_owned(),
    };
    let rest = if rest.is_empty() { "*".to_owned() } else { rest };
    Ok((base, rest))
}

/// Compiles the pattern as a set, which can match common patterns without a regex.
fn matcher(rest: &str, ignore_case: bool) -> Result<GlobSet, ToolError> {
    let mut set = GlobSetBuilder::new();
    set.add(glob("pattern", rest, ignore_case)?);
    set.build().map_err(|error| invalid(format!("`pattern`: {error}; use a shorter one")))
}

/// Key by which a result is sorted.
type Found = (Reverse<Option<SystemTime>>, InOrder, bool);

fn search(work: &Work, settings: &ToolSettings, context: &RunContext) -> Result<ToolOutput, ToolError> {
    match work.base.place {
        Place::Directory => {}
        Place::Missing => return Ok(format!("no file matches `{}`: `{}` does not exist", work.pattern, work.base.given).into()),
        Place::File { .. } | Place::Special => {
            return Err(invalid(format!("`{}` is not a directory; start the pattern with a directory", work.base.given)));
        }
    }
    let unread = SkippedPlaces::new();
    let found = MergedResults::new(TopItems::new(work.page.required_items()));
    walk(&work.base, settings, work.reach, &unread, &context.kill, || {
        let mut part = found.thread_results(TopItems::new(work.page.required_items()));
        move |entry| {
            let is_directory = entry.file_type().is_some_and(|kind| kind.is_dir());
            if (work.directories || !is_directory) && work.matcher.is_match(relative_to(entry.path(), &work.base.real)) {
                add(&mut part.own, entry, is_directory, work.sort);
            }
        }
    })?;
    let found = found.into_inner();
    let seen = found.seen;
    // A directory replaced by a symlink during the walk would expose the target of the symlink.
    let mut without_links = WithoutLinks::default();
    let there = found.into_sorted().into_iter().skip(work.page.skipped_items()).filter(|(_, path, _)| without_links.has(&path.0));
    let mut list = PageText::new(work.page, context.max_bytes);
    for (_, path, is_directory) in there {
        if !list.push(&(display_path(&path.0, settings) + if is_directory { "/\n" } else { "\n" })) {
            break;
        }
    }
    let what = if work.directories { "entries" } else { "files" };
    if !list.is_empty() {
        let more = if work.page.limit < MAX_ENTRIES as usize { ", raise `maxResults` (at most 1000)" } else { "" };
        let told = list.into_output(seen, &format!("{seen} {what} shown"), &format!("use a narrower pattern{more}"));
        return Ok(told.with_note(&unread.note(settings)));
    }
    if seen > 0 && work.page.skipped_items() as u64 >= seen {
        return Err(work.page.past_the_end(seen, what));
    }
    if work.names_directory() {
        let message = format!("`{}` is a directory; list it with ListDirectory, or search below it with `/**`", work.pattern);
        return Ok(message.into());
    }
    let ignored = if work.reach.ignored { "" } else { " (ignored files are not searched)" };
    let deeper = match work.reach.depth {
        Depth::Levels(_) => "; `**/` before a name matches at any depth",
        Depth::All => "",
    };
    Ok(format!("no file matches `{}`{ignored}{deeper}{}", work.pattern, unread.note(settings)).into())
}

fn add(found: &mut TopItems<Found>, entry: &DirEntry, is_directory: bool, sort: Sort) {
    let modified = || entry.metadata().ok().and_then(|metadata| metadata.modified().ok());
    let time = Reverse(if sort == Sort::Modified { modified() } else { None });
    found.push_if(|last| {
        let before = |last: &Found| time.cmp(&last.0).then_with(|| InOrder::compare(entry.path(), &last.1.0)).is_lt();
        last.is_none_or(before).then(|| (time, InOrder(entry.path().to_owned()), is_directory))
    });
}
