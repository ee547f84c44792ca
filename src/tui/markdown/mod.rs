//! Streamed responses in Markdown. Complete blocks are laid out only once; the block still being streamed is laid out
//! each time.

mod code;
mod line;
mod paint;
mod split;
mod table;

use std::collections::HashMap;
use std::ops::Range;
use std::rc::Rc;

use super::highlight::HighlightedBlock;
use super::styled_text::{Row, StyledText};
use super::theme::Theme;
use crate::text::Filter;
use code::{Colours, Tracks};
use split::{Block, Splitter};

pub(crate) use table::BAR;

/// Maximum number of blocks whose rows are cached.
const KEPT: usize = 96;

/// Single response, from its first chunk to its last.
#[derive(Default)]
pub(crate) struct MarkdownDocument {
    filter: Filter,
    text: String,
    splitter: Splitter,
    blocks: Vec<Block>,
    /// Row at which each complete block ends in the current layout.
    ends: Vec<usize>,
    width: usize,
    open: OpenBlock,
    /// Cached rows of blocks, keyed by block index, each with the number of code lines that were highlighted at the
    /// time.
    kept: HashMap<usize, (Rc<Vec<StyledText>>, usize)>,
    tracks: Tracks,
    /// Whether inline code is shown with its backticks, because there are no colours to distinguish it.
    keeps_ticks: bool,
}

/// Row count of the open block, and the length of the text at the time of counting.
#[derive(Default)]
struct OpenBlock {
    text_len: usize,
    rows: usize,
}

impl MarkdownDocument {
    pub(crate) fn new() -> Self {
        Self::default()
    }

    /// Creates a document to be shown on a screen without colours.
    pub(crate) fn colourless() -> Self {
        Self { keeps_ticks: true, ..Self::default() }
    }

    /// Appends the next chunk of the response.
    pub(crate) fn push(&mut self, chunk: &str) {
        self.filter.push(chunk, &mut self.text);
        self.splitter.scan(&self.text, &mut self.blocks);
    }

    /// Marks the response as complete, closing the open block.
    pub(crate) fn finish(&mut self) {
        self.filter.finish(&mut self.text);
        self.splitter.scan(&self.text, &mut self.blocks);
        self.splitter.finish(&self.text, &mut self.blocks);
        self.open = OpenBlock { text_len: self.text.len(), rows: 0 };
    }

    /// Returns the Markdown source, excluding characters that cannot be displayed.
    pub(crate) fn text(&self) -> &str {
        &self.text
    }

    /// Returns the number of rows of the response at this width.
    pub(crate) fn height(&mut self, width: u16) -> usize {
        self.lay_out(usize::from(width));
        self.closed_end() + self.open.rows
    }

    /// Returns the rows in `range`, laid out at this width and styled with the theme.
    pub(crate) fn rows(&mut self, width: u16, range: Range<usize>, theme: &Theme) -> Vec<Row> {
        self.lay_out(usize::from(width));
        let mut lines = Vec::new();
        let first = self.ends.partition_point(|end| *end <= range.start);
        for index in first..=self.blocks.len() {
            let begin = index.checked_sub(1).map_or(0, |before| self.ends[before]);
            if begin >= range.end {
                break;
            }
            let Some(rows) = self.block_rows(index) else { break };
            let visible = range.start.saturating_sub(begin).min(rows.len())..(range.end - begin).min(rows.len());
            lines.extend(rows[visible].iter().map(|row| row.fit_row(self.width, theme)));
        }
        lines
    }

    /// Returns the position of a row in the last layout: the index of its block, the row's index within the block, and
    /// the number of rows in the block.
    pub(crate) fn block_at(&self, row: usize) -> (usize, usize, usize) {
        let block = self.ends.partition_point(|end| *end <= row);
        let begin = block.checked_sub(1).map_or(0, |before| self.ends[before]);
        let rows = self.ends.get(block).map_or(self.open.rows, |end| end - begin);
        (block, row - begin, rows)
    }

    /// Returns the row at this width that corresponds to a position returned by [`Self::block_at`].
    pub(crate) fn row_of(&mut self, width: u16, (block, row, rows): (usize, usize, usize)) -> usize {
        self.lay_out(usize::from(width));
        let begin = block.checked_sub(1).and_then(|before| self.ends.get(before)).copied().unwrap_or(0);
        let now = self.ends.get(block).map_or(self.open.rows, |end| end - begin);
        begin + (row * now).checked_div(rows).unwrap_or(0)
    }

    fn closed_end(&self) -> usize {
        self.ends.last().copied().unwrap_or(0)
    }

    fn lay_out(&mut self, width: usize) {
        if self.width != width {
            self.width = width;
            self.ends.clear();
            self.kept.clear();
            self.open = OpenBlock::default();
        }
        for index in self.ends.len()..self.blocks.len() {
            let rows = self.paint(&self.blocks[index], &mut Colours::Plain).len();
            self.ends.push(self.closed_end() + rows);
        }
        if self.open.text_len != self.text.len() {
            let block = self.splitter.open_block(&self.text, self.blocks.len());
            let rows = block.map_or(0, |block| self.paint(&block, &mut Colours::Plain).len());
            self.open = OpenBlock { text_len: self.text.len(), rows };
        }
    }

    /// Returns the rows of the complete block at an index or, for the index after the last one, of the open block. A
    /// cached block that contains code is laid out again once more of its lines have been highlighted.
    fn block_rows(&mut self, index: usize) -> Option<Rc<Vec<StyledText>>> {
        if let Some((rows, coloured)) = self.kept.get(&index)
            && *coloured == self.highlighted_lines(index)
        {
            return Some(Rc::clone(rows));
        }
        let open = self.splitter.open_block(&self.text, self.blocks.len());
        let block = self.blocks.get(index).or(open.as_ref())?;
        // Counting first ensures that colours that arrive during layout appear in the next frame.
        let coloured = self.highlighted_lines(index);
        let rows = Rc::new(paint::block(
            &self.text,
            block,
            self.width,
            self.keeps_ticks,
            &mut Colours::for_block(&mut self.tracks, index),
        ));
        if index < self.blocks.len() {
            if self.kept.len() >= KEPT {
                self.kept.clear();
            }
            self.kept.insert(index, (Rc::clone(&rows), coloured));
        }
        Some(rows)
    }

    fn paint(&self, block: &Block, colours: &mut Colours<'_>) -> Vec<StyledText> {
        paint::block(&self.text, block, self.width, self.keeps_ticks, colours)
    }

    /// Returns the number of code lines in a block that have been highlighted.
    fn highlighted_lines(&self, index: usize) -> usize {
        match self.blocks.get(index).map(|block| &block.kind) {
            Some(split::BlockKind::Code(part)) => {
                self.tracks.get(&(part.block, 0)).map_or(0, |track| track.highlighted_lines().min(part.line + split::CODE_LINES))
            }
            Some(split::BlockKind::Prose { .. }) => {
                let inner = (0..).map_while(|nth| self.tracks.get(&(index, nth)));
                inner.map(HighlightedBlock::highlighted_lines).sum()
            }
            None => 0,
        }
    }

    /// Drops cached rows, but not the measured height.
    pub(crate) fn cool(&mut self) {
        self.kept = HashMap::new();
        self.tracks = Tracks::new();
    }
}

#[cfg(test)]
mod tests;
