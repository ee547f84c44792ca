//! Terminal display that sends as few bytes per frame as possible.

mod diff_writer;
mod sgr_state;
#[cfg(test)]
mod tests;

use ratatui::buffer::Buffer;
use ratatui::layout::{Position, Rect, Size};
use std::io::{self, Write};

/// Screen area whose rows move when its text is scrolled.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Scroll {
    pub area: Rect,
    /// Number of text rows between a fixed origin and the first visible row.
    pub position: u64,
}

/// Cursor position and scroll position of a view that was drawn.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct DrawStats {
    pub cursor: Option<Position>,
    pub scroll: Option<Scroll>,
}

#[derive(Debug)]
pub(crate) struct Display<W: Write> {
    output: W,
    shown: Buffer,
    next: Buffer,
    last: DrawStats,
    /// Whether the content of the terminal is unknown, so the whole screen must be redrawn.
    fresh: bool,
    /// Whether each frame is sent as a synchronised update.
    synchronised: bool,
    /// Bytes of the current frame.
    frame: Vec<u8>,
}

const BEGIN: &[u8] = b"\x1b[?2026h";
const END: &[u8] = b"\x1b[?2026l";
const HIDE_CURSOR: &[u8] = b"\x1b[?25l";

impl<W: Write> Display<W> {
    pub(crate) fn new(output: W, size: Size) -> Self {
        let area = Rect::from(size);
        Self {
            output,
            shown: Buffer::empty(area),
            next: Buffer::empty(area),
            last: DrawStats::default(),
            fresh: true,
            synchronised: true,
            frame: Vec::new(),
        }
    }

    pub(crate) fn resize(&mut self, size: Size) {
        let area = Rect::from(size);
        self.shown = Buffer::empty(area);
        self.next = Buffer::empty(area);
        self.fresh = true;
    }

    /// Sets whether frames are sent as synchronised updates.
    pub(crate) fn synchronise(&mut self, synchronised: bool) {
        self.synchronised = synchronised;
    }

    /// Writes and flushes bytes that do not draw cells, such as queries to the terminal.
    pub(crate) fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.output.write_all(bytes)?;
        self.output.flush()
    }

    /// Draws the cells that have changed since the last frame. Returns whether there were any.
    pub(crate) fn draw(&mut self, view: impl FnOnce(&mut Buffer) -> DrawStats) -> io::Result<bool> {
        self.next.reset();
        let drawn = view(&mut self.next);
        self.frame.clear();
        let was_fresh = std::mem::take(&mut self.fresh);
        if was_fresh {
            self.frame.extend(b"\x1b[0m\x1b[2J");
        } else {
            self.scroll(drawn)?;
        }
        diff_writer::changes(&self.shown, &self.next, &mut self.frame);
        let has_cells = !self.frame.is_empty();
        let has_changed = has_cells || drawn.cursor != self.last.cursor;
        if has_changed {
            if self.synchronised {
                self.output.write_all(BEGIN)?;
            }
            // An already hidden cursor need not be hidden again.
            if drawn.cursor.is_none() || has_cells {
                self.output.write_all(HIDE_CURSOR)?;
            }
            self.output.write_all(&self.frame)?;
            if let Some(Position { x, y }) = drawn.cursor {
                write!(self.output, "\x1b[{};{}H\x1b[?25h", y + 1, x + 1)?;
            }
            if self.synchronised {
                self.output.write_all(END)?;
            }
            self.output.flush()?;
        }
        std::mem::swap(&mut self.shown, &mut self.next);
        self.last = drawn;
        Ok(has_changed)
    }

    /// Scrolls rows whose position is all that changed, both in the buffer and on the terminal. If this guess is wrong,
    /// it merely costs some bytes.
    fn scroll(&mut self, drawn: DrawStats) -> io::Result<()> {
        let (Some(before), Some(now)) = (self.last.scroll, drawn.scroll) else { return Ok(()) };
        let area = before.area;
        if area != now.area || area.x != 0 || area.width != self.shown.area.width {
            return Ok(());
        }
        let up = now.position.saturating_sub(before.position);
        if up == 0 || up >= u64::from(area.height) {
            return Ok(());
        }
        let rows = up as u16;
        write!(self.frame, "\x1b[{};{}r\x1b[{rows}S\x1b[r", area.top() + 1, area.bottom())?;
        let width = usize::from(area.width);
        let (top, bottom) = (usize::from(area.top()) * width, usize::from(area.bottom()) * width);
        let moved = usize::from(rows) * width;
        let cells = &mut self.shown.content[top..bottom];
        cells.rotate_left(moved);
        let blank = cells.len() - moved;
        cells[blank..].iter_mut().for_each(|cell| cell.reset());
        Ok(())
    }
}
