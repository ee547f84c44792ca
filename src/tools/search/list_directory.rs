//! ListDirectory: what is in a directory, and below it when asked.

use super::unread::Unread;
use super::walk::{Depth, First, below, walk};
use crate::ports::{BoxFuture, RunContext};
use crate::protocol::{Action, Place, Target, ToolError};
use crate::sys::path::{entries, is_without_links, read_link};
use crate::tools::alias::Alias;
use crate::tools::paths::{Meant, Paths, not_found, open_error, shown, special};
use crate::tools::tool::{Draft, Effect, Output, Settings, Tool, blocking, invalid};
use schemars::JsonSchema;
use serde::Deserialize;
use std::fs::FileType;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use tokio_util::sync::CancellationToken;

/// Most entries one listing gives.
const MAX_ENTRIES: usize = 1_000;

pub(in crate::tools) struct ListDirectory;

#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(in crate::tools) struct Arguments {
    /// The directory; the workspace when absent.
    path: Option<String>,
    /// Whether all below it is listed too, without what is ignored.
    recursive: Option<bool>,
}

pub(in crate::tools) struct Work {
    target: Target,
    extent: Extent,
}

#[derive(Clone, Copy)]
enum Extent {
    Entries,
    Tree,
}

impl Tool for ListDirectory {
    const NAME: &'static str = "ListDirectory";
    const ALIASES: &'static [Alias<Arguments>] = &[
        Alias::same("list_directory"),
        Alias::same("list_files"),
        Alias::same("list_dir"),
        Alias::same("ls"),
        Alias::same("dir"),
        Alias::same("list"),
    ];
    const CAPABILITY: &'static str = "File.Read";
    const DESCRIPTION: &'static str = include_str!("../../../assets/tools/ListDirectory.md");
    type Arguments = Arguments;
    type Work = Work;

    fn actions(arguments: &Arguments, paths: &Paths<'_>) -> Result<Vec<Action>, ToolError> {
        let path = arguments.path.as_deref().unwrap_or(".");
        Ok(vec![Action::Read { target: paths.target("path", path, Meant::Directory)? }])
    }

    fn draft(arguments: Arguments, settings: &Settings) -> Result<Draft<Work>, ToolError> {
        let target = Paths::on_disk(settings).target("path", arguments.path.as_deref().unwrap_or("."), Meant::Directory)?;
        Ok(Draft {
            summary: format!("List {}", target.given),
            actions: vec![Action::Read { target: target.clone() }],
            proposal: None,
            effect: Effect::Reads,
            work: Work { target, extent: if arguments.recursive == Some(true) { Extent::Tree } else { Extent::Entries } },
        })
    }

    fn run(work: Work, settings: Arc<Settings>, context: RunContext) -> BoxFuture<'static, Output> {
        blocking(move || Ok(list(&work, &settings, &context.kill)?))
    }
}

fn list(work: &Work, settings: &Settings, kill: &CancellationToken) -> Result<String, ToolError> {
    match work.target.place {
        Place::Directory => {}
        Place::Missing => return Err(not_found(&work.target, settings)),
        Place::File { .. } => {
            return Err(invalid(format!("`{}` is a file, not a directory; read it with ReadFile", work.target.given)));
        }
        Place::Special => return Err(special(&work.target)),
    }
    let unread = Unread::new();
    let found = match work.extent {
        Extent::Entries => one(&work.target, settings)?,
        Extent::Tree => all(&work.target, settings, &unread, kill)?,
    };
    let (seen, mut lines) = found;
    if lines.is_empty() {
        let nothing = match work.extent {
            Extent::Entries => "is empty",
            Extent::Tree => "is empty but for what is ignored",
        };
        return Ok(format!("(`{}` {nothing}){}", shown(&work.target.real, settings), unread.note(settings)));
    }
    if seen > MAX_ENTRIES as u64 {
        lines.push(format!("[{MAX_ENTRIES} of {seen} entries shown; list a directory below, or search with Glob]"));
    }
    Ok(lines.join("\n") + &unread.note(settings))
}

/// How many entries there are, and the first of them.
type Found = (u64, Vec<String>);

fn one(target: &Target, settings: &Settings) -> Result<Found, ToolError> {
    let mut found = First::new(MAX_ENTRIES);
    let failed = |error: std::io::Error| open_error(target, &error);
    for entry in entries(&target.real).map_err(failed)? {
        let entry = entry.map_err(failed)?;
        let path = target.real.join(entry.file_name());
        if (settings.may_read)(&path) {
            found.push(line(&path, Path::new(&entry.file_name()), entry.file_type().ok()));
        }
    }
    Ok((found.seen, found.into_sorted()))
}

fn all(target: &Target, settings: &Settings, unread: &Unread, kill: &CancellationToken) -> Result<Found, ToolError> {
    let found = Mutex::new(First::new(MAX_ENTRIES));
    walk(target, settings, Depth::All, unread, kill, || {
        |entry| {
            let line = line(entry.path(), below(entry.path(), &target.real), entry.file_type());
            found.lock().unwrap_or_else(PoisonError::into_inner).push((line, entry.path().to_owned()));
        }
    })?;
    let found = found.into_inner().unwrap_or_else(PoisonError::into_inner);
    let seen = found.seen;
    // A link put in the place of a directory during the walk would have shown what is behind it.
    let lines = found.into_sorted().into_iter().filter(|(_, path)| is_without_links(path)).map(|(line, _)| line);
    Ok((seen, lines.collect()))
}

/// `name`, `directory/`, `link -> where it says`.
fn line(path: &Path, name: &Path, kind: Option<FileType>) -> String {
    let name = name.display();
    match kind {
        Some(kind) if kind.is_dir() => format!("{name}/"),
        Some(kind) if kind.is_symlink() => {
            let target = read_link(path).map_or_else(|_| "?".to_owned(), |target| target.display().to_string());
            format!("{name} -> {target}")
        }
        Some(_) | None => name.to_string(),
    }
}
