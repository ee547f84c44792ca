//! Incremental splitting of a response into blocks, one line at a time and without backtracking.

use std::ops::Range;

use super::line::{CodeFence, Marker, indent, is_blank, is_outermost, is_rule, is_table_rule, marker, opening_fence};
use crate::protocol::cut_position_before;

/// Size, in bytes, above which a text block is split at the next line, so laying out a long response does not slow down
/// frames.
const PROSE: usize = 16 * 1024;
/// Maximum number of lines in one part of a code block. [`CODE`] is the maximum size of a part in bytes.
pub(super) const CODE_LINES: usize = 64;
const CODE: usize = 8 * 1024;

/// Part of a response that is laid out on its own.
#[derive(Clone, Debug)]
pub(super) struct Block {
    pub range: Range<usize>,
    /// Whether the block is preceded by an empty row.
    pub gap: bool,
    pub kind: BlockKind,
}

#[derive(Clone, Debug)]
pub(super) enum BlockKind {
    /// Anything other than top-level fenced code. `number` is the number of the list item that starts the block, if
    /// any. `head` is the head of the table that the block continues, if it continues one.
    Prose {
        number: Option<u64>,
        head: Option<Range<usize>>,
    },
    Code(CodePart),
}

/// Part of a fenced code block.
#[derive(Clone, Debug)]
pub(super) struct CodePart {
    /// Index of the block that starts the fenced code.
    pub block: usize,
    pub info: Range<usize>,
    /// Byte offset at which the code within the fence starts.
    pub begin: usize,
    /// Number of code lines that precede this part within the fence.
    pub line: usize,
    /// Whether the part starts in the middle of a line.
    pub inside_line: bool,
}

#[derive(Default)]
pub(super) struct Splitter {
    /// Byte offset of the first line that is not yet complete.
    at: usize,
    state: State,
    /// Whether the last block was followed by a blank line.
    blank: bool,
    list: Option<Marker>,
}

#[derive(Default)]
enum State {
    #[default]
    Between,
    Prose(Prose),
    Code(OpenCode),
}

struct Prose {
    start: usize,
    gap: bool,
    is_list: bool,
    number: Option<u64>,
    /// Whether the list item contains a blank line. If so, further text belongs to the item only if it is indented.
    blank: bool,
    inner: Option<CodeFence>,
    head: Option<Range<usize>>,
    /// Byte range of the table's head, if the block contains a table.
    table: Option<Range<usize>>,
    last_line: usize,
}

struct OpenCode {
    fence: CodeFence,
    start: usize,
    gap: bool,
    lines: usize,
    part: CodePart,
}

impl Splitter {
    /// Processes the lines that have been completed since the last call.
    pub(crate) fn scan(&mut self, text: &str, blocks: &mut Vec<Block>) {
        loop {
            let end = text[self.at..].find('\n').map(|len| self.at + len + 1);
            if self.cut_long_line(text, end.unwrap_or(text.len()), blocks) {
                continue;
            }
            let Some(end) = end else { break };
            self.line(text, self.at..end, blocks);
            self.at = end;
        }
    }

    /// Closes the open block at the end of the response.
    pub(crate) fn finish(&mut self, text: &str, blocks: &mut Vec<Block>) {
        if self.at < text.len() {
            self.line(text, self.at..text.len(), blocks);
            self.at = text.len();
        }
        self.close(text.len(), blocks);
    }

    /// Returns the block that is not complete yet, including its incomplete line. `index` is the number of complete
    /// blocks.
    pub(crate) fn open_block(&self, text: &str, index: usize) -> Option<Block> {
        let last = &text[self.at..];
        match &self.state {
            State::Between if is_blank(last) || opening_fence(last).is_some() => None,
            State::Between => Some(Block {
                range: self.at..text.len(),
                gap: self.blank && index > 0,
                kind: BlockKind::Prose { number: None, head: None },
            }),
            State::Prose(prose) => Some(prose.block(text.len())),
            State::Code(code) if code.fence.may_be_closed_by(last) => Some(code.block(self.at)),
            State::Code(code) => Some(code.block(text.len())),
        }
    }

    fn line(&mut self, text: &str, range: Range<usize>, blocks: &mut Vec<Block>) {
        let line = &text[range.clone()];
        match &mut self.state {
            State::Code(code) if is_outermost(line) && code.fence.is_closed_by(line) => self.close(range.start, blocks),
            State::Code(code) => {
                code.lines += 1;
                if code.lines >= CODE_LINES || range.end - code.start >= CODE {
                    code.next_part(range.end, blocks);
                }
            }
            State::Prose(Prose { inner: Some(fence), .. }) if !fence.is_closed_by(line) => {
                self.continue_text(text, range, blocks);
            }
            State::Prose(prose) if prose.inner.is_some() => {
                prose.inner = None;
                self.continue_text(text, range, blocks);
            }
            State::Prose(_) | State::Between if is_blank(line) => self.blank_line(range.start, blocks),
            State::Prose(_) | State::Between => self.text_line(text, range, blocks),
        }
    }

    fn blank_line(&mut self, at: usize, blocks: &mut Vec<Block>) {
        match &mut self.state {
            State::Prose(prose) if prose.is_list => prose.blank = true,
            State::Prose(_) | State::Between | State::Code(_) => {
                self.close(at, blocks);
                self.blank = true;
            }
        }
    }

    fn text_line(&mut self, text: &str, range: Range<usize>, blocks: &mut Vec<Block>) {
        let line = &text[range.clone()];
        let (open, in_list, after_blank) = match &self.state {
            State::Prose(prose) => (true, prose.is_list, prose.is_list && prose.blank),
            State::Between | State::Code(_) => (false, false, false),
        };
        if let Some((fence, info)) = opening_fence(line) {
            if in_list && indent(line) >= 2 {
                if let State::Prose(prose) = &mut self.state {
                    prose.inner = Some(fence);
                }
                return self.continue_text(text, range, blocks);
            }
            if is_outermost(line) {
                let info = subrange(text, info);
                return self.open_code(fence, info, range, blocks);
            }
        }
        let item = marker(line).filter(|item| in_list || !open || (!item.empty && item.number.is_none_or(|number| number == 1)));
        if let Some(item) = item {
            return self.open_item(item, range.start, blocks);
        }
        if (after_blank && indent(line) < 2) || (in_list && is_rule(line) && indent(line) < 2) {
            self.close(range.start, blocks);
        }
        if matches!(self.state, State::Between) {
            self.list = None;
            self.open_prose(range.start, None, blocks);
        }
        self.continue_text(text, range, blocks);
    }

    /// Adds a line to the open text block. If the block becomes too long, splits it.
    fn continue_text(&mut self, text: &str, range: Range<usize>, blocks: &mut Vec<Block>) {
        let State::Prose(prose) = &mut self.state else { return };
        if prose.inner.is_none() && is_table_rule(&text[range.clone()]) && text[prose.last_line..range.start].contains('|') {
            prose.table = Some(prose.last_line..range.end);
        }
        prose.last_line = range.start;
        if range.end - prose.start > PROSE {
            prose.next_part(range.end, blocks);
        }
    }

    fn open_prose(&mut self, start: usize, item: Option<Marker>, blocks: &[Block]) {
        let gap = self.take_gap(blocks);
        self.state = State::Prose(Prose {
            start,
            gap,
            is_list: item.is_some(),
            number: item.and_then(|item| item.number),
            blank: false,
            inner: None,
            head: None,
            table: None,
            last_line: start,
        });
    }

    fn open_item(&mut self, mut item: Marker, start: usize, blocks: &mut Vec<Block>) {
        self.close(start, blocks);
        if let Some(before) = self.list.filter(|before| before.sign == item.sign) {
            item.number = item.number.and(before.number).map(|number| number + 1);
        }
        self.list = Some(item);
        self.open_prose(start, Some(item), blocks);
    }

    fn open_code(&mut self, fence: CodeFence, info: Range<usize>, line: Range<usize>, blocks: &mut Vec<Block>) {
        self.close(line.start, blocks);
        self.list = None;
        let part = CodePart { block: blocks.len(), info, begin: line.end, line: 0, inside_line: false };
        self.state = State::Code(OpenCode { fence, start: line.end, gap: self.take_gap(blocks), lines: 0, part });
    }

    fn take_gap(&mut self, blocks: &[Block]) -> bool {
        std::mem::take(&mut self.blank) && !blocks.is_empty()
    }

    fn close(&mut self, end: usize, blocks: &mut Vec<Block>) {
        match std::mem::take(&mut self.state) {
            State::Between => {}
            State::Prose(prose) => {
                self.blank = prose.is_list && prose.blank;
                blocks.push(prose.block(end));
            }
            State::Code(code) => {
                self.blank = false;
                blocks.push(code.block(end));
            }
        }
    }

    /// Splits an overlong line. Where it is split depends only on the text, not on the chunks in which the text
    /// arrived. Returns whether the line was split.
    fn cut_long_line(&mut self, text: &str, end: usize, blocks: &mut Vec<Block>) -> bool {
        if matches!(self.state, State::Between) && end - self.at > 2 * PROSE {
            self.open_prose(self.at, None, blocks);
        }
        let (start, most) = match &self.state {
            State::Between => return false,
            State::Prose(prose) => (prose.start, PROSE),
            State::Code(code) => (code.start, CODE),
        };
        if end - start <= 2 * most {
            return false;
        }
        let cut = cut_position_before(text, start + most).max(self.at);
        let from = cut_position_before(text, cut - most / 2).max(self.at);
        let cut = text[from..cut].rfind(' ').map_or(cut, |space| from + space + 1);
        match &mut self.state {
            State::Between => {}
            State::Prose(prose) => prose.next_part(cut, blocks),
            State::Code(code) => {
                code.next_part(cut, blocks);
                code.part.inside_line = true;
            }
        }
        self.at = cut;
        true
    }
}

impl Prose {
    fn block(&self, end: usize) -> Block {
        Block { range: self.start..end, gap: self.gap, kind: BlockKind::Prose { number: self.number, head: self.head.clone() } }
    }

    fn next_part(&mut self, end: usize, blocks: &mut Vec<Block>) {
        blocks.push(self.block(end));
        (self.start, self.last_line, self.gap) = (end, end, false);
        self.head = self.table.clone();
    }
}

impl OpenCode {
    fn block(&self, end: usize) -> Block {
        Block { range: self.start..end.max(self.start), gap: self.gap, kind: BlockKind::Code(self.part.clone()) }
    }

    fn next_part(&mut self, end: usize, blocks: &mut Vec<Block>) {
        blocks.push(self.block(end));
        self.part.line += self.lines;
        (self.start, self.lines, self.gap, self.part.inside_line) = (end, 0, false, false);
    }
}

/// Returns the byte range of `part` within `text`, of which it must be a slice.
fn subrange(text: &str, part: &str) -> Range<usize> {
    let start = part.as_ptr() as usize - text.as_ptr() as usize;
    start..start + part.len()
}
