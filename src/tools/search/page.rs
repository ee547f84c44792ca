//! Result pages: what is shown of a requested page within the size limit, and how to continue.

use crate::protocol::{Items, LeftOut, Run, ToolError};
use crate::tools::call_result::ToolOutput;
use crate::tools::error::invalid;

/// Maximum offset, limited because all preceding items are in memory.
const MAX_OFFSET: u64 = 10_000;

/// Part of the items that is requested.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::tools) struct Page {
    /// Number of the first item (1-based).
    pub first: u64,
    /// Maximum number of items.
    pub limit: usize,
}

impl Page {
    pub(super) fn new(offset: Option<u64>, limit: usize) -> Result<Self, ToolError> {
        match offset {
            Some(offset) if offset > MAX_OFFSET => {
                Err(invalid(format!("`offset` is {offset}; it must be at most {MAX_OFFSET}. Narrow the search")))
            }
            Some(0) => Err(invalid("`offset` is 0; results are numbered from 1")),
            offset => Ok(Self { first: offset.unwrap_or(1), limit }),
        }
    }

    /// Returns the number of items to skip.
    pub(super) fn skipped_items(self) -> usize {
        usize::try_from(self.first - 1).unwrap_or(usize::MAX)
    }

    /// Returns the number of items that must be collected for this page.
    pub(super) fn required_items(self) -> usize {
        self.skipped_items().saturating_add(self.limit)
    }

    /// Returns whether there are further items after this page.
    pub(super) fn has_more_after(self, total: u64) -> bool {
        total > self.required_items() as u64
    }

    /// Builds the error for an offset that is past the end.
    pub(super) fn past_the_end(self, total: u64, what: &str) -> ToolError {
        invalid(format!("`offset` {} is past the end: there are {total} {what}", self.first))
    }
}

/// Formatted items of a page.
pub(super) struct PageText {
    page: Page,
    max_bytes: usize,
    text: String,
    starts: Vec<u64>,
    lines: u64,
    full: bool,
}

impl PageText {
    pub(super) fn new(page: Page, max_bytes: usize) -> Self {
        Self { page, max_bytes, text: String::new(), starts: Vec::new(), lines: 0, full: false }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.starts.is_empty()
    }

    /// Adds an item that consists of whole lines. Returns whether it fits. The first item is always shown.
    pub(super) fn push(&mut self, item: &str) -> bool {
        self.full |= !self.is_empty() && self.text.len() + item.len() > self.max_bytes;
        if self.full {
            return false;
        }
        self.starts.push(self.lines);
        self.lines += item.bytes().filter(|byte| *byte == b'\n').count() as u64;
        self.text.push_str(item);
        true
    }

    /// Returns the items. If they are incomplete, adds a note that includes `of` (for example `5000 matches shown`) and
    /// the advice.
    pub(super) fn into_output(mut self, total: u64, of: &str, advice: &str) -> ToolOutput {
        let first = self.page.first;
        let from = if first > 1 { format!("{first} to ") } else { String::new() };
        let last = first - 1 + self.starts.len() as u64;
        let note = |missing: &str, last: &str, next: &str| {
            format!("[{from}{last} of {of}{missing}; {advice}, or continue with `offset` {next}]")
        };
        let after_a_cut = note(", {missing} bytes left out", "{last}", "{next}");
        let own = match (self.full || self.page.has_more_after(total), last) {
            (false, _) => String::new(),
            // Further items cannot be reached by offset.
            (true, MAX_OFFSET..) => format!("[{from}{last} of {of}; {advice}]"),
            (true, _) => note("", &last.to_string(), &(last + 1).to_string()),
        };
        if own.is_empty() {
            self.text.truncate(self.text.trim_end_matches('\n').len());
        }
        let run = Run {
            body_bytes: self.text.len(),
            note_bytes: own.len(),
            first,
            items: Items::Starts { lines: self.starts },
            note: after_a_cut,
            within: None,
            missing: 0,
        };
        ToolOutput { text: self.text + &own, left_out: LeftOut::from_gaps(Vec::new(), Some(run)), ..ToolOutput::default() }
    }
}
