//! Input from the user or the terminal, in the order of the byte stream.

mod keys;
mod reader;
mod reports;
mod sequences;
#[cfg(test)]
mod tests;
mod text_key;

pub(crate) use keys::decode;
pub(crate) use reader::InputReader;
pub(crate) use reports::{ModeState, TerminalReply};
pub(crate) use sequences::{InputSequence, Sequences};
pub(crate) use text_key::is_text;

use crossterm::event::{KeyEvent, MouseEvent};

/// One input event.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum UiInput {
    Key(KeyEvent),
    Paste(String),
    /// Button, drag or wheel; the upper left cell is 0, 0.
    Mouse(MouseEvent),
    FocusIn,
    FocusOut,
    /// Reply to `CSI 5 n`: earlier input was typed before the terminal saw the query.
    Fence,
    /// Current size of the terminal, in cells.
    Size(u16, u16),
    /// Background colour of the terminal.
    Background(u8, u8, u8),
    /// Any other reply from the terminal.
    Answer(TerminalReply),
    /// End of the terminal input.
    Closed,
}

/// Decodes terminal bytes that arrive in these pieces, for `fuzz/`.
#[cfg(feature = "fuzzing")]
pub fn decode_inputs(pieces: &[&[u8]]) -> Vec<String> {
    let mut sequences = Sequences::default();
    let mut inputs = Vec::new();
    for piece in pieces {
        sequences.push(piece, |piece| inputs.extend(decode(piece).map(|input| format!("{input:?}"))));
    }
    sequences.flush(|piece| inputs.extend(decode(piece).map(|input| format!("{input:?}"))));
    inputs
}
