//! What a person or the terminal itself sent, in the order of the byte stream.

mod keys;
mod reader;
mod sequences;
#[cfg(test)]
mod tests;

pub use keys::decode;
pub use reader::Reader;
pub use sequences::{Piece, Sequences};

use crossterm::event::KeyEvent;

/// One thing that came in through the terminal.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Input {
    Key(KeyEvent),
    Paste(String),
    Wheel {
        up: bool,
    },
    FocusIn,
    FocusOut,
    /// The answer to `CSI 5 n`: everything before it was typed before the terminal saw the question.
    Fence,
    /// The terminal's background colour.
    Background(u8, u8, u8),
    /// The terminal speaks the kitty keyboard protocol.
    KittyKeyboard,
    /// Nothing more will come.
    Closed,
}
