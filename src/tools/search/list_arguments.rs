//! Arguments of the directory listing under each of its names.

use super::file_filter::FileFilter;
use super::grep_arguments::limit;
use super::page::Page;
use super::walk::{Depth, WalkScope};
use crate::protocol::ToolError;
use crate::tools::error::invalid;
use schemars::JsonSchema;
use serde::Deserialize;

/// Maximum number of entries per call.
pub(super) const MAX_ENTRIES: u32 = 1_000;
/// Default number of entries for `list_files`.
const FILES_ENTRIES: u32 = 200;

#[derive(Default, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(in crate::tools) struct ListArguments {
    pub path: Option<String>,
    pub recursive: Option<bool>,
    /// Levels to list; 1 lists only direct entries.
    #[schemars(range(min = 1))]
    pub depth: Option<u32>,
    /// For example `*.py`; `!*.min.js` excludes.
    pub glob: Option<Vec<String>>,
    pub hidden: Option<bool>,
    pub no_ignore: Option<bool>,
    /// Include sizes and kinds.
    pub details: Option<bool>,
    #[schemars(range(min = 1, max = 1000))]
    pub max_results: Option<u32>,
    #[schemars(range(min = 1, max = 10000))]
    pub offset: Option<u64>,
}

/// Arguments of the alias `list_files`: fewer entries, and no hidden ones by default.
#[derive(Deserialize, JsonSchema)]
pub(in crate::tools) struct ListFiles {
    /// A directory or a pattern, for example `src/*.py`.
    path: Option<String>,
    recursive: Option<bool>,
    /// False by default.
    include_hidden: Option<bool>,
    /// 200 by default, at most 1,000.
    #[schemars(range(min = 1, max = 1000))]
    max_results: Option<u32>,
    #[schemars(range(min = 1, max = 10000))]
    offset: Option<u64>,
    /// For example `*.py` or `**/*.ts`.
    pattern: Option<Vec<String>>,
    /// Levels to list; 1 lists only direct entries.
    #[schemars(range(min = 1))]
    depth: Option<u32>,
    /// Include sizes and kinds.
    details: Option<bool>,
}

impl From<ListFiles> for ListArguments {
    fn from(list: ListFiles) -> Self {
        let (path, glob) = match (list.path, list.pattern) {
            (Some(path), None) => split(path),
            given => given,
        };
        Self {
            path,
            recursive: list.recursive,
            depth: list.depth,
            glob,
            hidden: Some(list.include_hidden.unwrap_or(false)),
            no_ignore: None,
            details: list.details,
            max_results: Some(list.max_results.unwrap_or(FILES_ENTRIES)),
            offset: list.offset,
        }
    }
}

/// Splits a path with wildcards into a directory and a pattern, for example `src/*.py` into `src` and `*.py`.
fn split(path: String) -> (Option<String>, Option<Vec<String>>) {
    let Some(sign) = path.find(['*', '?']) else { return (Some(path), None) };
    let (directory, glob) = match path[..sign].rfind('/') {
        Some(0) => ("/", &path[1..]),
        Some(slash) => (&path[..slash], &path[slash + 1..]),
        None => (".", path.as_str()),
    };
    let glob = if glob == "**" { "**/*" } else { glob };
    (Some(directory.to_owned()), Some(vec![glob.to_owned()]))
}

/// A listing request whose arguments have been checked.
pub(in crate::tools) struct ListRequest {
    /// Scope of the listing, or `None` to list only the direct entries, including ignored ones.
    pub tree: Option<WalkScope>,
    pub hidden: bool,
    pub which: FileFilter,
    pub details: bool,
    pub page: Page,
}

impl ListRequest {
    pub(super) fn new(arguments: &ListArguments) -> Result<Self, ToolError> {
        let globs = arguments.glob.as_deref().unwrap_or_default();
        let deep =
            globs.iter().any(|glob| glob.trim_start_matches('!').trim_start_matches("./").trim_end_matches('/').contains('/'));
        let depth = match (arguments.depth, arguments.recursive) {
            (Some(0), _) => {
                return Err(invalid("`depth` is 0; use 1 for the directory itself, or omit it for all levels"));
            }
            (Some(1), _) | (None, Some(false) | None) if !deep => None,
            (Some(levels), _) => Some(Depth::Levels(levels as usize)),
            (None, _) => Some(Depth::All),
        };
        let hidden = arguments.hidden.unwrap_or(true);
        Ok(Self {
            tree: depth.map(|depth| WalkScope { depth, hidden, ignored: arguments.no_ignore.unwrap_or(false) }),
            hidden,
            which: FileFilter::new(globs, &[])?,
            details: arguments.details.unwrap_or(false),
            page: Page::new(arguments.offset, limit("maxResults", arguments.max_results, MAX_ENTRIES)?)?,
        })
    }
}
