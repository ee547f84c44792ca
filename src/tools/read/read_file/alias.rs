//! Aliases of `ReadFile` that take different arguments.

use super::{ReadFileArguments, ReadVariant};
use crate::tools::document::charset::ReadAs;
use schemars::JsonSchema;
use serde::Deserialize;

/// Maximum size in bytes of the text that `read_file` returns.
const SHORT_BYTES: usize = 100 * 1024;

/// Arguments of `read_file`: UTF-8, first and last line, at most 100 KB.
#[derive(Deserialize, JsonSchema)]
pub(super) struct ReadLines {
    path: String,
    /// First line, from 1.
    #[schemars(range(min = 1))]
    start_line: Option<u64>,
    /// Last line.
    #[schemars(range(min = 1))]
    end_line: Option<u64>,
    /// Number of lines, instead of `end_line`.
    #[schemars(range(min = 1))]
    limit: Option<u64>,
    /// First column to return from a very long line, counted from 1.
    #[schemars(range(min = 1))]
    column: Option<u64>,
    /// For example `latin1`; UTF-8 by default.
    encoding: Option<String>,
    /// Return a notebook as JSON.
    raw: Option<bool>,
}

impl From<ReadLines> for ReadFileArguments {
    fn from(given: ReadLines) -> Self {
        let ReadLines { path, start_line, end_line, limit, column, encoding, raw } = given;
        let manner =
            ReadVariant { first_line: "start_line", last_line: "end_line", max_bytes: SHORT_BYTES, read_as: ReadAs::Utf8 };
        Self { path, offset: start_line, limit, end_line, column, encoding, raw, manner }
    }
}

/// Arguments of `TextRead`, which calls the file `filePath`.
#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct TextRead {
    file_path: String,
    /// First line, from 1.
    #[schemars(range(min = 1))]
    start_line: Option<u64>,
    /// Last line.
    #[schemars(range(min = 1))]
    end_line: Option<u64>,
    /// Number of lines, instead of `endLine`.
    #[schemars(range(min = 1))]
    limit: Option<u64>,
    /// First column to return from a very long line, counted from 1.
    #[schemars(range(min = 1))]
    column: Option<u64>,
    /// For example `latin1`; detected by default.
    encoding: Option<String>,
    /// Return a notebook as JSON.
    raw: Option<bool>,
}

impl From<TextRead> for ReadFileArguments {
    fn from(given: TextRead) -> Self {
        let TextRead { file_path: path, start_line, end_line, limit, column, encoding, raw } = given;
        let manner = ReadVariant { first_line: "startLine", last_line: "endLine", ..ReadVariant::default() };
        Self { path, offset: start_line, limit, end_line, column, encoding, raw, manner }
    }
}
