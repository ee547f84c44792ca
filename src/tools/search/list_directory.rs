//! The `ListDirectory` tool, which lists a directory and optionally its subdirectories.

use super::list_arguments::{ListFiles, ListRequest, MAX_ENTRIES};
use super::page::PageText;
use super::skipped::SkippedPlaces;
use super::top_k::{MergedResults, TopItems};
use super::walk::{InOrder, WalkScope, relative_to, walk};
use crate::ports::{BoxFuture, RunContext};
use crate::protocol::{Action, Place, Target, ToolError};
use crate::sys::path::{WithoutLinks, entries, read_link};
use crate::tools::alias::Alias;
use crate::tools::call_result::{CallResult, ToolOutput, blocking};
use crate::tools::draft::CallDraft;
use crate::tools::error::invalid;
use crate::tools::paths::{ExpectedKind, Paths, display_path, not_found_error, open_error, special_file_error};
use crate::tools::settings::ToolSettings;
use crate::tools::tool::Tool;
use std::fs::{FileType, Metadata};
use std::os::unix::fs::FileTypeExt;
use std::path::Path;
use std::sync::Arc;
use tokio_util::sync::CancellationToken;

pub(in crate::tools) use super::list_arguments::ListArguments;

pub(in crate::tools) struct ListDirectory;

pub(in crate::tools) struct Work {
    target: Target,
    request: ListRequest,
}

impl Tool for ListDirectory {
    const NAME: &'static str = "ListDirectory";
    const ALIASES: &'static [Alias<ListArguments>] = &[
        Alias::with_same_arguments("list_directory"),
        Alias::new::<ListFiles>("list_files"),
        Alias::with_same_arguments("list_dir"),
        Alias::with_same_arguments("ls"),
        Alias::with_same_arguments("dir"),
        Alias::with_same_arguments("list"),
    ];
    const CAPABILITY: &'static str = "File.Read";
    const DESCRIPTION: &'static str = include_str!("../../../assets/tools/ListDirectory.md");
    type Arguments = ListArguments;
    type Work = Work;

    fn actions(arguments: &ListArguments, paths: &Paths<'_>) -> Result<Vec<Action>, ToolError> {
        let path = arguments.path.as_deref().unwrap_or(".");
        Ok(vec![Action::Read { target: paths.target("path", path, ExpectedKind::Directory)? }])
    }

    fn draft(arguments: ListArguments, settings: &ToolSettings) -> Result<CallDraft<Work>, ToolError> {
        let target =
            Paths::on_disk(settings).target("path", arguments.path.as_deref().unwrap_or("."), ExpectedKind::Directory)?;
        Ok(CallDraft::reads(
            format!("List {}", target.given),
            target.clone(),
            Work { target, request: ListRequest::new(&arguments)? },
        ))
    }

    fn run(work: Work, settings: Arc<ToolSettings>, context: RunContext) -> BoxFuture<'static, CallResult> {
        blocking(move || Ok(list(&work, &settings, &context)?))
    }
}

fn list(work: &Work, settings: &ToolSettings, context: &RunContext) -> Result<ToolOutput, ToolError> {
    match work.target.place {
        Place::Directory => {}
        Place::Missing => return Err(not_found_error(&work.target, settings)),
        Place::File { .. } => {
            return Err(invalid(format!("`{}` is a file, not a directory; read it with ReadFile", work.target.given)));
        }
        Place::Special => return Err(special_file_error(&work.target)),
    }
    let Work { target, request } = work;
    let unread = SkippedPlaces::new();
    let found = match request.tree {
        None => list_file(target, request, settings)?,
        Some(reach) => list_entries(target, request, reach, settings, &unread, &context.kill)?,
    };
    let seen = found.seen;
    // A directory replaced by a symlink during the walk would expose the target of the symlink.
    let mut without_links = WithoutLinks::default();
    let there = found.into_sorted().into_iter().skip(request.page.skipped_items());
    let there = there.filter(|(path, _)| request.tree.is_none() || without_links.has(&path.0));
    let mut list = PageText::new(request.page, context.max_bytes);
    for (path, kind) in there {
        if !list.push(&(line(&path.0, relative_to(&path.0, &target.real), kind, request.details) + "\n")) {
            break;
        }
    }
    if !list.is_empty() {
        let more = if request.page.limit < MAX_ENTRIES as usize { ", raise `maxResults` (at most 1000)" } else { "" };
        let advice = format!("list a subdirectory{more}, search with Glob");
        return Ok(list.into_output(seen, &format!("{seen} entries shown"), &advice).with_note(&unread.note(settings)));
    }
    if seen > 0 && request.page.skipped_items() as u64 >= seen {
        return Err(request.page.past_the_end(seen, "entries"));
    }
    let nothing = match (request.which.is_all() && request.hidden, request.tree) {
        (false, _) => "has no matching entry",
        (true, None) => "is empty",
        (true, Some(_)) => "has no entries, except ignored ones",
    };
    Ok(format!("(`{}` {nothing}){}", display_path(&target.real, settings), unread.note(settings)).into())
}

type Found = TopItems<(InOrder, Kind)>;

fn list_file(target: &Target, request: &ListRequest, settings: &ToolSettings) -> Result<Found, ToolError> {
    let mut found = TopItems::new(request.page.required_items());
    let failed = |error: std::io::Error| open_error(target, &error);
    let may_read = settings.paths.may_read_in(&target.real);
    for entry in entries(&target.real).map_err(failed)? {
        let entry = entry.map_err(failed)?;
        let name = entry.file_name();
        let hidden = name.as_encoded_bytes().starts_with(b".");
        let path = target.real.join(&name);
        if (request.hidden || !hidden) && (request.which.is_all() || request.which.matches(Path::new(&name))) && may_read(&path) {
            found.push((InOrder(path), Kind::from_file_type(entry.file_type().ok())));
        }
    }
    Ok(found)
}

fn list_entries(
    target: &Target,
    request: &ListRequest,
    reach: WalkScope,
    settings: &ToolSettings,
    unread: &SkippedPlaces,
    kill: &CancellationToken,
) -> Result<Found, ToolError> {
    let found = MergedResults::new(TopItems::new(request.page.required_items()));
    walk(target, settings, reach, unread, kill, || {
        let mut part = found.thread_results(TopItems::new(request.page.required_items()));
        move |entry| {
            let path = entry.path();
            if request.which.is_all() || request.which.matches(relative_to(path, &target.real)) {
                part.own.push_if(|last: Option<&(InOrder, Kind)>| {
                    let before = |last: &(InOrder, Kind)| InOrder::compare(path, &last.0.0).is_lt();
                    last.is_none_or(before).then(|| (InOrder(path.to_owned()), Kind::from_file_type(entry.file_type())))
                });
            }
        }
    })?;
    Ok(found.into_inner())
}

/// Kind of entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Kind {
    File,
    Directory,
    Link,
    Other(&'static str),
}

impl Kind {
    fn from_file_type(kind: Option<FileType>) -> Self {
        match kind {
            Some(kind) if kind.is_dir() => Self::Directory,
            Some(kind) if kind.is_symlink() => Self::Link,
            Some(kind) if kind.is_fifo() => Self::Other("pipe"),
            Some(kind) if kind.is_socket() => Self::Other("socket"),
            Some(kind) if kind.is_block_device() || kind.is_char_device() => Self::Other("device"),
            Some(_) | None => Self::File,
        }
    }
}

/// Formats an entry as `name`, `directory/` or `link -> target`. With details, the size of a file is added: `name (12
/// bytes)`.
fn line(path: &Path, name: &Path, kind: Kind, details: bool) -> String {
    let name = name.display();
    let bytes = || path.symlink_metadata().ok().as_ref().map(Metadata::len);
    match kind {
        Kind::Directory => format!("{name}/"),
        Kind::Link => {
            let target = read_link(path).map_or_else(|_| "?".to_owned(), |target| target.display().to_string());
            format!("{name} -> {target}")
        }
        Kind::Other(kind) if details => format!("{name} ({kind})"),
        Kind::File if details => bytes().map_or_else(|| name.to_string(), |bytes| format!("{name} ({bytes} bytes)")),
        Kind::File | Kind::Other(_) => name.to_string(),
    }
}
