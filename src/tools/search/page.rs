//! A part of a list of findings: as much of it as is asked for and has room, and how another call goes on.

use crate::protocol::{Items, LeftOut, Run, ToolError};
use crate::tools::tool::{Told, invalid};

/// The last item that a list can begin with: all before it are held in memory.
const MAX_OFFSET: u64 = 10_000;

/// Which of all items are asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::tools) struct Page {
    /// The number of the first, from 1.
    pub first: u64,
    /// How many at most.
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

    /// How many items are passed over.
    pub(super) fn before(self) -> usize {
        usize::try_from(self.first - 1).unwrap_or(usize::MAX)
    }

    /// How many items have to be known.
    pub(super) fn needed(self) -> usize {
        self.before().saturating_add(self.limit)
    }

    /// Whether there are more than those asked for.
    pub(super) fn leaves(self, total: u64) -> bool {
        total > self.needed() as u64
    }

    /// Why nothing is shown, where fewer items are there than are passed over.
    pub(super) fn past_the_end(self, total: u64, what: &str) -> ToolError {
        invalid(format!("`offset` {} is past the end: there are {total} {what}", self.first))
    }
}

/// The items of a page, as they are told.
pub(super) struct List {
    page: Page,
    most_bytes: usize,
    text: String,
    starts: Vec<u64>,
    lines: u64,
    full: bool,
}

impl List {
    pub(super) fn new(page: Page, most_bytes: usize) -> Self {
        Self { page, most_bytes, text: String::new(), starts: Vec::new(), lines: 0, full: false }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.starts.is_empty()
    }

    /// Adds an item of whole lines. Whether there was room for it; the first is shown whatever it takes.
    pub(super) fn push(&mut self, item: &str) -> bool {
        self.full |= !self.is_empty() && self.text.len() + item.len() > self.most_bytes;
        if self.full {
            return false;
        }
        self.starts.push(self.lines);
        self.lines += item.bytes().filter(|byte| *byte == b'\n').count() as u64;
        self.text.push_str(item);
        true
    }

    /// The items, and where these are not all: `of` (`5000 matches shown`) and what to do about it.
    pub(super) fn told(mut self, total: u64, of: &str, advice: &str) -> Told {
        let first = self.page.first;
        let from = if first > 1 { format!("{first} to ") } else { String::new() };
        let last = first - 1 + self.starts.len() as u64;
        let note = |missing: &str, last: &str, next: &str| {
            format!("[{from}{last} of {of}{missing}; {advice}, or continue with `offset` {next}]")
        };
        let after_a_cut = note(", {missing} bytes left out", "{last}", "{next}");
        let own = match (self.full || self.page.leaves(total), last) {
            (false, _) => String::new(),
            // What comes next cannot be reached so.
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
        Told { text: self.text + &own, left_out: LeftOut::of(Vec::new(), Some(run)), ..Told::default() }
    }
}
