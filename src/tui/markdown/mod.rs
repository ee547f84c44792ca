//! An answer as it streams in: closed blocks are laid out once, only the open one is looked at again.

mod code;
mod line;
mod paint;
mod split;
mod table;

use std::collections::HashMap;
use std::ops::Range;
use std::rc::Rc;

use super::highlight::Track;
use super::styled_text::{Row, StyledText};
use super::theme::Theme;
use crate::text::Filter;
use code::{Colours, Tracks};
use split::{Block, Splitter};

pub use table::BAR;

/// Laid-out blocks kept for the next frame.
const KEPT: usize = 96;

/// One answer, from its first chunk to its last.
#[derive(Default)]
pub struct Document {
    filter: Filter,
    text: String,
    splitter: Splitter,
    blocks: Vec<Block>,
    /// Row after each closed block, at `width`.
    ends: Vec<usize>,
    width: usize,
    open: Open,
    /// Rows of blocks, and how many lines of code had their colours when they were made.
    kept: HashMap<usize, (Rc<Vec<StyledText>>, usize)>,
    tracks: Tracks,
    /// Code among words stands in its backticks: without colours nothing else tells it from them.
    keeps_ticks: bool,
}

/// Rows of the block that is still being written, and the length of the text they were counted at.
#[derive(Default)]
struct Open {
    text_len: usize,
    rows: usize,
}

impl Document {
    pub fn new() -> Self {
        Self::default()
    }

    /// On a screen without colours.
    pub fn colourless() -> Self {
        Self { keeps_ticks: true, ..Self::default() }
    }

    /// Takes the next piece of the answer as the model sent it.
    pub fn push(&mut self, chunk: &str) {
        self.filter.push(chunk, &mut self.text);
        self.splitter.scan(&self.text, &mut self.blocks);
    }

    /// The answer is complete.
    pub fn finish(&mut self) {
        self.filter.finish(&mut self.text);
        self.splitter.scan(&self.text, &mut self.blocks);
        self.splitter.finish(&self.text, &mut self.blocks);
        self.open = Open { text_len: self.text.len(), rows: 0 };
    }

    /// The source as markdown, without what could not be shown.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Rows of the whole answer.
    pub fn height(&mut self, width: u16) -> usize {
        self.lay_out(usize::from(width));
        self.closed_end() + self.open.rows
    }

    /// Some of the rows, as they are drawn.
    pub fn rows(&mut self, width: u16, range: Range<usize>, theme: &Theme) -> Vec<Row> {
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
            lines.extend(rows[visible].iter().map(|row| row.fitted_row(self.width, theme)));
        }
        lines
    }

    /// Which block a row belongs to as it was laid out last, and how far down in it the row is, of how many.
    pub fn place_of(&self, row: usize) -> (usize, usize, usize) {
        let block = self.ends.partition_point(|end| *end <= row);
        let begin = block.checked_sub(1).map_or(0, |before| self.ends[before]);
        let rows = self.ends.get(block).map_or(self.open.rows, |end| end - begin);
        (block, row - begin, rows)
    }

    /// The row at this width where such a place is.
    pub fn row_of(&mut self, width: u16, (block, row, rows): (usize, usize, usize)) -> usize {
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
            self.open = Open::default();
        }
        for index in self.ends.len()..self.blocks.len() {
            let rows = self.paint(&self.blocks[index], &mut Colours::Plain).len();
            self.ends.push(self.closed_end() + rows);
        }
        if self.open.text_len != self.text.len() {
            let block = self.splitter.open_block(&self.text, self.blocks.len());
            let rows = block.map_or(0, |block| self.paint(&block, &mut Colours::Plain).len());
            self.open = Open { text_len: self.text.len(), rows };
        }
    }

    /// The rows of a closed block, or of the open one after them. Code is laid out anew when more of its colours have come.
    fn block_rows(&mut self, index: usize) -> Option<Rc<Vec<StyledText>>> {
        if let Some((rows, coloured)) = self.kept.get(&index)
            && *coloured == self.coloured(index)
        {
            return Some(Rc::clone(rows));
        }
        let open = self.splitter.open_block(&self.text, self.blocks.len());
        let block = self.blocks.get(index).or(open.as_ref())?;
        // Counted before: what comes while the rows are made is seen with the next frame.
        let coloured = self.coloured(index);
        let rows =
            Rc::new(paint::block(&self.text, block, self.width, self.keeps_ticks, &mut Colours::of(&mut self.tracks, index)));
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

    /// Lines of the code in a block that have their colours.
    fn coloured(&self, index: usize) -> usize {
        match self.blocks.get(index).map(|block| &block.kind) {
            Some(split::Kind::Code(part)) => {
                self.tracks.get(&(part.block, 0)).map_or(0, |track| track.coloured().min(part.line + split::CODE_LINES))
            }
            Some(split::Kind::Prose { .. }) => {
                let inner = (0..).map_while(|nth| self.tracks.get(&(index, nth)));
                inner.map(Track::coloured).sum()
            }
            None => 0,
        }
    }

    /// Gives back what is made anew when the answer is looked at again; how high it is stays known.
    pub fn cool(&mut self) {
        self.kept = HashMap::new();
        self.tracks = Tracks::new();
    }
}

#[cfg(test)]
mod tests;
