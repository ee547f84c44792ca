//! What a person or the terminal itself sent, in the order of the byte stream.

mod keys;
mod reader;
mod reports;
mod sequences;
#[cfg(test)]
mod tests;

pub use keys::decode;
pub use reader::Reader;
pub use reports::{ModeState, TerminalReply};
pub use sequences::{Piece, Sequences};

use crossterm::event::{KeyEvent, MouseEvent};

/// One thing that came in through the terminal.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Input {
    Key(KeyEvent),
    Paste(String),
    /// A button, a drag with one held, or the wheel; the upper left cell is 0, 0.
    Mouse(MouseEvent),
    FocusIn,
    FocusOut,
    /// The answer to `CSI 5 n`: everything before it was typed before the terminal saw the question.
    Fence,
    /// Its size now, in cells.
    Size(u16, u16),
    /// The terminal's background colour.
    Background(u8, u8, u8),
    /// Something else the terminal said of itself.
    Answer(TerminalReply),
    /// Nothing more will come.
    Closed,
}

/// What a terminal's bytes mean that come in these pieces, for `fuzz/`.
#[cfg(feature = "fuzzing")]
pub fn inputs_in(pieces: &[&[u8]]) -> Vec<String> {
    let mut sequences = Sequences::default();
    let mut inputs = Vec::new();
    for piece in pieces {
        sequences.push(piece, |piece| inputs.extend(decode(piece).map(|input| format!("{input:?}"))));
    }
    sequences.flush(|piece| inputs.extend(decode(piece).map(|input| format!("{input:?}"))));
    inputs
}
