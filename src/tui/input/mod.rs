//! Input from the user and replies from the terminal, in the order of the byte stream.

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

/// Single input event.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum UiInput {
    Key(KeyEvent),
    Paste(String),
    /// Mouse button, drag or wheel event. The cell in the upper left corner is 0, 0.
    Mouse(MouseEvent),
    FocusIn,
    FocusOut,
    /// Reply to `CSI 5 n`. All input before it was typed before the terminal received the query.
    Fence,
    /// Current size of the terminal, in columns and rows.
    Size(u16, u16),
    /// Background colour of the terminal, as red, green and blue components.
    Background(u8, u8, u8),
    /// Any other reply from the terminal.
    Answer(TerminalReply),
    /// End of the terminal input.
    Closed,
}

/// Decodes terminal input that arrives in several pieces. Returns the debug output of each event. Used by `fuzz/`.
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
