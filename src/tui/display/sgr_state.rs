//! Escape sequences that change the colours and text attributes of the terminal.

use ratatui::buffer::Cell;
use ratatui::style::{Color, Modifier};
use std::io::Write;

/// Colours and text attributes that are currently set in the terminal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct SgrState {
    foreground: Color,
    background: Color,
    stress: Modifier,
}

/// State in which all colours are the defaults and no attributes are set.
pub(crate) const PLAIN: SgrState = SgrState { foreground: Color::Reset, background: Color::Reset, stress: Modifier::empty() };

/// Text attributes, each with its SGR parameter.
const STRESSES: [(Modifier, u8); 9] = [
    (Modifier::BOLD, 1),
    (Modifier::DIM, 2),
    (Modifier::ITALIC, 3),
    (Modifier::UNDERLINED, 4),
    (Modifier::SLOW_BLINK, 5),
    (Modifier::RAPID_BLINK, 6),
    (Modifier::REVERSED, 7),
    (Modifier::HIDDEN, 8),
    (Modifier::CROSSED_OUT, 9),
];

/// Text attributes that are visible even on a space.
const SEEN_ON_BLANK: Modifier = Modifier::UNDERLINED.union(Modifier::REVERSED).union(Modifier::CROSSED_OUT);

impl SgrState {
    pub(crate) fn from_cell(cell: &Cell) -> Self {
        Self { foreground: cell.fg, background: cell.bg, stress: cell.modifier }
    }

    /// Returns whether a space written in this state looks the same as an erased cell.
    pub(crate) fn draws_blank(self) -> bool {
        self.background == Color::Reset && !self.stress.intersects(SEEN_ON_BLANK)
    }

    /// Returns whether spaces written in either state look the same.
    pub(crate) fn has_ground_of(self, other: Self) -> bool {
        self.background == other.background && !self.stress.union(other.stress).intersects(SEEN_ON_BLANK)
    }

    /// Appends the sequence that changes the terminal's state to `next`.
    pub(crate) fn change(&mut self, next: Self, out: &mut Vec<u8>) {
        if *self == next {
            return;
        }
        let from = out.len();
        out.extend(b"\x1b[");
        if !next.stress.contains(self.stress) {
            // Only a reset turns off bold on every terminal.
            out.extend(b"0;");
            *self = PLAIN;
        }
        for (stress, parameter) in STRESSES {
            if next.stress.contains(stress) && !self.stress.contains(stress) {
                let _ = write!(out, "{parameter};");
            }
        }
        if next.foreground != self.foreground {
            colour(next.foreground, 30, out);
        }
        if next.background != self.background {
            colour(next.background, 40, out);
        }
        // Replaces the last separator with the terminator.
        let is_empty = out.len() == from + 2;
        match out.last_mut() {
            Some(last) if !is_empty => *last = b'm',
            _ => out.truncate(from),
        }
        *self = next;
    }
}

/// Appends the parameter for a colour, followed by a separator. `base` is 30 for the text colour and 40 for the
/// background. For the sixteen basic colours, parameters that all terminals support are used.
fn colour(colour: Color, base: u8, out: &mut Vec<u8>) {
    let plain = |number: u8| base + number;
    let bright = |number: u8| base + 60 + number;
    let number = match colour {
        Color::Reset => plain(9),
        Color::Black => plain(0),
        Color::Red => plain(1),
        Color::Green => plain(2),
        Color::Yellow => plain(3),
        Color::Blue => plain(4),
        Color::Magenta => plain(5),
        Color::Cyan => plain(6),
        Color::Gray => plain(7),
        Color::DarkGray => bright(0),
        Color::LightRed => bright(1),
        Color::LightGreen => bright(2),
        Color::LightYellow => bright(3),
        Color::LightBlue => bright(4),
        Color::LightMagenta => bright(5),
        Color::LightCyan => bright(6),
        Color::White => bright(7),
        Color::Indexed(index) => {
            let _ = write!(out, "{};5;{index};", plain(8));
            return;
        }
        Color::Rgb(red, green, blue) => {
            let _ = write!(out, "{};2;{red};{green};{blue};", plain(8));
            return;
        }
    };
    let _ = write!(out, "{number};");
}
