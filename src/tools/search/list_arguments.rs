//! What a listing is asked for, by each of its names.

use super::grep_arguments::limit;
use super::walk::{Depth, Reach};
use super::which::Which;
use crate::protocol::ToolError;
use crate::tools::tool::invalid;
use schemars::JsonSchema;
use serde::Deserialize;

/// Most entries one listing gives.
pub(super) const MAX_ENTRIES: u32 = 1_000;
/// The same where `list_files` is not told how many.
const FILES_ENTRIES: u32 = 200;

#[derive(Default, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(in crate::tools) struct Arguments {
    /// The directory; the workspace when absent.
    pub path: Option<String>,
    /// Whether all below it is listed too, without what is ignored.
    pub recursive: Option<bool>,
    /// How many levels down; 1 is the directory itself. Goes with `recursive`, or stands for it.
    #[schemars(range(min = 1))]
    pub depth: Option<u32>,
    /// Only entries whose name or path matches, for example `*.py` or `**/*.ts`; `!*.min.js` leaves out.
    pub glob: Option<Vec<String>>,
    /// Whether hidden entries are listed; true when absent.
    pub hidden: Option<bool>,
    /// With `recursive`: whether what .gitignore names is listed, too.
    pub no_ignore: Option<bool>,
    /// Whether sizes and kinds are told.
    pub details: Option<bool>,
    /// Most entries shown; 1,000 when absent.
    #[schemars(range(min = 1, max = 1000))]
    pub max_results: Option<u32>,
}

/// `list_files` as a small runner has it: fewer entries, and hidden ones only on request.
#[derive(Deserialize, JsonSchema)]
pub(in crate::tools) struct ListFiles {
    /// The directory; `.` when absent.
    path: Option<String>,
    /// Whether all below it is listed too; false when absent.
    recursive: Option<bool>,
    /// Whether hidden entries are listed; false when absent.
    include_hidden: Option<bool>,
    /// Most entries shown, at most 1,000; 200 when absent.
    #[schemars(range(min = 1, max = 1000))]
    max_results: Option<u32>,
    /// Only entries whose name or path matches, for example `*.py` or `**/*.ts`.
    pattern: Option<Vec<String>>,
    /// How many levels down.
    #[schemars(range(min = 1))]
    depth: Option<u32>,
    /// Whether sizes and kinds are told.
    details: Option<bool>,
}

impl From<ListFiles> for Arguments {
    fn from(list: ListFiles) -> Self {
        Self {
            path: list.path,
            recursive: list.recursive,
            depth: list.depth,
            glob: list.pattern,
            hidden: Some(list.include_hidden.unwrap_or(false)),
            no_ignore: None,
            details: list.details,
            max_results: Some(list.max_results.unwrap_or(FILES_ENTRIES)),
        }
    }
}

/// A listing, checked.
pub(in crate::tools) struct Request {
    /// `None`: the entries of the directory itself, those that are ignored too.
    pub tree: Option<Reach>,
    pub hidden: bool,
    pub which: Which,
    pub details: bool,
    pub limit: usize,
}

impl Request {
    pub(super) fn new(arguments: &Arguments) -> Result<Self, ToolError> {
        let globs = arguments.glob.as_deref().unwrap_or_default();
        let deep =
            globs.iter().any(|glob| glob.trim_start_matches('!').trim_start_matches("./").trim_end_matches('/').contains('/'));
        let depth = match (arguments.depth, arguments.recursive) {
            (Some(0), _) => return Err(invalid("`depth` is 0; 1 is the directory itself, leave it out for all levels")),
            (Some(1), _) | (None, Some(false) | None) if !deep => None,
            (Some(levels), _) => Some(Depth::Levels(levels as usize)),
            (None, _) => Some(Depth::All),
        };
        let hidden = arguments.hidden.unwrap_or(true);
        Ok(Self {
            tree: depth.map(|depth| Reach { depth, hidden, ignored: arguments.no_ignore.unwrap_or(false) }),
            hidden,
            which: Which::new(globs, &[])?,
            details: arguments.details.unwrap_or(false),
            limit: limit("maxResults", arguments.max_results, MAX_ENTRIES)?,
        })
    }
}
