//! Arguments of the text search under each of its names.

use super::file_filter::FileFilter;
use super::page::Page;
use super::pattern::{PatternOptions, expression};
use crate::protocol::ToolError;
use crate::tools::error::invalid;
use grep_regex::RegexMatcher;
use schemars::JsonSchema;
use serde::Deserialize;

/// Maximum number of matches or files per call.
pub(super) const MAX_RESULTS: u32 = 200;
/// Default number of results for `grep`.
const GREP_RESULTS: u32 = 100;
/// Maximum number of context lines before or after a match.
const MAX_CONTEXT: u32 = 20;

/// Form of the results.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(in crate::tools) enum GrepMode {
    #[default]
    #[serde(alias = "lines", alias = "matches")]
    Content,
    #[serde(alias = "files_with_matches", alias = "filesWithMatches", alias = "files_only", alias = "paths")]
    Files,
    #[serde(alias = "files_without_match", alias = "files_without_matches", alias = "filesWithoutMatches")]
    FilesWithoutMatch,
    #[serde(alias = "counts", alias = "count_matches")]
    Count,
}

#[derive(Default, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(in crate::tools) struct GrepArguments {
    pub pattern: String,
    pub path: Option<String>,
    /// For example `*.rs`; `!*.min.js` excludes.
    pub glob: Option<Vec<String>>,
    /// For example `rust`.
    #[serde(rename = "type")]
    pub types: Option<Vec<String>>,
    /// `content` by default.
    #[schemars(with = "Option<String>", extend("enum" = ["content", "files", "filesWithoutMatch", "count"]))]
    pub output: Option<GrepMode>,
    pub ignore_case: Option<bool>,
    /// `pattern` is plain text.
    pub literal: Option<bool>,
    pub word: Option<bool>,
    /// Matches may span lines.
    pub multiline: Option<bool>,
    /// `.` matches line breaks; with `multiline`.
    pub dot_all: Option<bool>,
    /// Lines around each match.
    #[schemars(range(max = 20))]
    pub context: Option<u32>,
    #[schemars(range(max = 20))]
    pub before: Option<u32>,
    #[schemars(range(max = 20))]
    pub after: Option<u32>,
    pub line_numbers: Option<bool>,
    pub hidden: Option<bool>,
    pub no_ignore: Option<bool>,
    #[schemars(range(min = 1, max = 200))]
    pub max_results: Option<u32>,
    #[schemars(range(min = 1, max = 10000))]
    pub offset: Option<u64>,
}

/// Arguments of the alias `grep`: fewer results by default.
#[derive(Deserialize, JsonSchema)]
pub(in crate::tools) struct GrepAliasArguments {
    pattern: String,
    path: Option<String>,
    /// For example `*.py`.
    include: Option<Vec<String>>,
    ignore_case: Option<bool>,
    /// 100 by default, at most 200.
    #[schemars(range(min = 1, max = 200))]
    max_results: Option<u32>,
    #[schemars(range(min = 1, max = 10000))]
    offset: Option<u64>,
    /// `pattern` is plain text.
    literal: Option<bool>,
    word: Option<bool>,
    /// Matches may span lines.
    multiline: Option<bool>,
    /// For example `py`.
    #[serde(rename = "type")]
    types: Option<Vec<String>>,
    /// `content` by default.
    #[schemars(with = "Option<String>", extend("enum" = ["content", "files", "filesWithoutMatch", "count"]))]
    output: Option<GrepMode>,
    /// Lines around each match.
    #[schemars(range(max = 20))]
    context: Option<u32>,
    #[schemars(range(max = 20))]
    before: Option<u32>,
    #[schemars(range(max = 20))]
    after: Option<u32>,
    line_numbers: Option<bool>,
}

impl From<GrepAliasArguments> for GrepArguments {
    fn from(grep: GrepAliasArguments) -> Self {
        Self {
            pattern: grep.pattern,
            path: grep.path,
            glob: grep.include,
            types: grep.types,
            output: grep.output,
            ignore_case: grep.ignore_case,
            literal: grep.literal,
            word: grep.word,
            multiline: grep.multiline,
            context: grep.context,
            before: grep.before,
            after: grep.after,
            line_numbers: grep.line_numbers,
            max_results: Some(grep.max_results.unwrap_or(GREP_RESULTS)),
            offset: grep.offset,
            ..Self::default()
        }
    }
}

/// A search request whose arguments have been checked.
pub(in crate::tools) struct GrepRequest {
    pub pattern: String,
    pub expression: RegexMatcher,
    pub meaning: PatternOptions,
    pub which: FileFilter,
    pub mode: GrepMode,
    pub before: usize,
    pub after: usize,
    pub numbers: bool,
    pub hidden: bool,
    pub ignored: bool,
    /// Part of the results that is requested.
    pub page: Page,
}

impl GrepRequest {
    pub(super) fn new(arguments: GrepArguments) -> Result<Self, ToolError> {
        let around = |name: &str, own: Option<u32>| {
            let (name, lines) = own.map_or(("context", arguments.context.unwrap_or(0)), |lines| (name, lines));
            if lines > MAX_CONTEXT {
                return Err(invalid(format!("`{name}` is {lines}; at most {MAX_CONTEXT} lines are shown around a match")));
            }
            Ok(lines as usize)
        };
        let meaning = PatternOptions {
            literal: arguments.literal.unwrap_or(false),
            ignore_case: arguments.ignore_case.unwrap_or(false),
            word: arguments.word.unwrap_or(false),
            multiline: arguments.multiline.unwrap_or(false),
            dot_all: arguments.dot_all.unwrap_or(false),
        };
        if meaning.dot_all && !meaning.multiline {
            return Err(invalid("`dotAll` is for matches that span lines; also set `multiline`"));
        }
        Ok(Self {
            expression: expression(&arguments.pattern, meaning)?,
            meaning,
            which: FileFilter::new(
                arguments.glob.as_deref().unwrap_or_default(),
                arguments.types.as_deref().unwrap_or_default(),
            )?,
            mode: arguments.output.unwrap_or_default(),
            before: around("before", arguments.before)?,
            after: around("after", arguments.after)?,
            numbers: arguments.line_numbers.unwrap_or(true),
            hidden: arguments.hidden.unwrap_or(true),
            ignored: arguments.no_ignore.unwrap_or(false),
            page: Page::new(arguments.offset, limit("maxResults", arguments.max_results, MAX_RESULTS)?)?,
            pattern: arguments.pattern,
        })
    }
}

impl GrepRequest {
    /// Returns whether every possible match consists of ASCII characters only, whatever surrounds it.
    pub(super) fn is_ascii(&self) -> bool {
        let PatternOptions { literal, word, .. } = self.meaning;
        let plain = |letter: u8| letter.is_ascii_alphanumeric() || b" _-\"'/:;,=<>@#%&!~`".contains(&letter);
        self.pattern.is_ascii() && !word && (literal || self.pattern.bytes().all(plain))
    }
}

/// Returns the number of results to show, or an error if it is 0 or exceeds `most`.
pub(super) fn limit(field: &str, asked: Option<u32>, most: u32) -> Result<usize, ToolError> {
    match asked {
        Some(asked) if asked == 0 || asked > most => {
            Err(invalid(format!("`{field}` is {asked}; it must be 1 to {most}, or omitted")))
        }
        asked => Ok(asked.unwrap_or(most) as usize),
    }
}
