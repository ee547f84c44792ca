//! What is on the terminal now, and the fewest bytes that make it what it should be.

#[cfg(test)]
mod tests;

use ratatui::backend::{Backend, CrosstermBackend};
use ratatui::buffer::{Buffer, Cell};
use ratatui::layout::{Position, Rect, Size};
use std::io::{self, Write};

/// A jump to another cell of the row costs about as much as this many cells.
const BRIDGE: u16 = 7;

/// Rows of the screen that move together when text scrolls.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Scroll {
    pub area: Rect,
    /// Rows of text above the first shown one, counted from a fixed point.
    pub position: u64,
}

/// What a view leaves behind besides the cells.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Drawn {
    pub cursor: Option<Position>,
    pub scroll: Option<Scroll>,
}

#[derive(Debug)]
pub struct Display<W: Write> {
    backend: CrosstermBackend<W>,
    shown: Buffer,
    next: Buffer,
    last: Drawn,
    fresh: bool,
}

impl<W: Write> Display<W> {
    pub fn new(output: W, size: Size) -> Self {
        let area = Rect::from(size);
        Self {
            backend: CrosstermBackend::new(output),
            shown: Buffer::empty(area),
            next: Buffer::empty(area),
            last: Drawn::default(),
            fresh: true,
        }
    }

    pub fn resize(&mut self, size: Size) {
        let area = Rect::from(size);
        self.shown = Buffer::empty(area);
        self.next = Buffer::empty(area);
        self.fresh = true;
    }

    /// Bytes that are no cells: questions to the terminal.
    pub fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.backend.write_all(bytes)?;
        io::Write::flush(&mut self.backend)
    }

    pub fn draw(&mut self, view: impl FnOnce(&mut Buffer) -> Drawn) -> io::Result<()> {
        self.next.reset();
        let drawn = view(&mut self.next);
        // The terminal shows the frame when it is whole.
        self.backend.write_all(b"\x1b[?2026h\x1b[?25l")?;
        if std::mem::take(&mut self.fresh) {
            self.backend.write_all(b"\x1b[0m\x1b[2J")?;
        } else {
            self.scroll(drawn)?;
        }
        let changes = bridged(self.shown.diff(&self.next), &self.next);
        self.backend.draw(changes.into_iter())?;
        if let Some(Position { x, y }) = drawn.cursor {
            write!(self.backend, "\x1b[{};{}H\x1b[?25h", y + 1, x + 1)?;
        }
        self.backend.write_all(b"\x1b[?2026l")?;
        io::Write::flush(&mut self.backend)?;
        std::mem::swap(&mut self.shown, &mut self.next);
        self.last = drawn;
        Ok(())
    }

    /// Moves rows that only changed their place, here and on the terminal; a wrong guess costs bytes and nothing else.
    fn scroll(&mut self, drawn: Drawn) -> io::Result<()> {
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
        write!(self.backend, "\x1b[0m\x1b[{};{}r\x1b[{rows}S\x1b[r", area.top() + 1, area.bottom())?;
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

/// Unchanged cells between two changes are fewer bytes than a jump over them.
fn bridged<'a>(changes: Vec<(u16, u16, &'a Cell)>, next: &'a Buffer) -> Vec<(u16, u16, &'a Cell)> {
    let mut out: Vec<(u16, u16, &Cell)> = Vec::with_capacity(changes.len() * 2);
    for (x, y, cell) in changes {
        if let Some((last_x, last_y, last)) = out.last().copied()
            && last_y == y
            && x - last_x <= BRIDGE
            && is_narrow(last)
            && (last_x + 1..x).all(|x| is_narrow(&next[(x, y)]))
        {
            out.extend((last_x + 1..x).map(|x| (x, y, &next[(x, y)])));
        }
        out.push((x, y, cell));
    }
    out
}

fn is_narrow(cell: &Cell) -> bool {
    crate::text::width(cell.symbol()) == 1
}
