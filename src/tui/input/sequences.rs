//! Where one escape sequence, paste or character ends and the next begins.
//!
//! Cut before it is decoded, so that a sequence nobody knows costs itself only, and a paste can hold anything.

/// Strings of the terminal (OSC, DCS) and numbered sequences are never longer; what is longer is noise.
const SEQUENCE_BYTES: usize = 4096;
/// More than this is cut into several pastes.
const PASTE_BYTES: usize = 8 << 20;
const PASTE_START: &[u8] = b"\x1b[200~";
const PASTE_END: &[u8] = b"\x1b[201~";

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Piece {
    /// One whole key or report.
    Whole(Vec<u8>),
    Paste(Vec<u8>),
}

/// The bytes that have come and do not make a piece yet.
#[derive(Debug, Default)]
pub struct Sequences {
    held: Vec<u8>,
    pasting: bool,
}

/// What the first bytes are.
enum Cut {
    Needs,
    Piece(usize),
    /// These bytes mean nothing.
    Drop(usize),
}

impl Sequences {
    pub fn push(&mut self, bytes: &[u8], mut found: impl FnMut(Piece)) {
        let mut rest = bytes;
        while !rest.is_empty() {
            if self.pasting {
                rest = self.paste(rest, &mut found);
            } else {
                self.held.push(rest[0]);
                rest = &rest[1..];
                self.cut(&mut found);
            }
        }
    }

    /// Whether the bytes end in what may be an Escape key or the start of a sequence.
    pub fn is_ambiguous(&self) -> bool {
        !self.pasting && !self.held.is_empty()
    }

    /// Nothing followed: what is held stands for itself.
    pub fn flush(&mut self, mut found: impl FnMut(Piece)) {
        if self.is_ambiguous() {
            let held = std::mem::take(&mut self.held);
            // A cut-off report is noise; `ESC` and `ESC x` are keys.
            if held.len() <= 2 {
                found(Piece::Whole(held));
            }
        }
    }

    fn cut(&mut self, found: &mut impl FnMut(Piece)) {
        match cut(&self.held) {
            Cut::Needs => {}
            Cut::Drop(length) => {
                self.held.drain(..length);
            }
            Cut::Piece(length) => {
                let rest = self.held.split_off(length);
                let piece = std::mem::replace(&mut self.held, rest);
                if piece == PASTE_START {
                    self.pasting = true;
                } else {
                    found(Piece::Whole(piece));
                }
                if !self.held.is_empty() && !self.pasting {
                    self.cut(found);
                }
            }
        }
    }

    /// Takes bytes up to the end of the paste; only the tail is looked at again, so a long paste is linear.
    fn paste<'a>(&mut self, bytes: &'a [u8], found: &mut impl FnMut(Piece)) -> &'a [u8] {
        let from = self.held.len().saturating_sub(PASTE_END.len() - 1);
        self.held.extend_from_slice(bytes);
        let end = self.held[from..].windows(PASTE_END.len()).position(|window| window == PASTE_END).map(|at| from + at);
        if let Some(end) = end {
            let after = self.held.len() - end - PASTE_END.len();
            self.held.truncate(end);
            self.pasting = false;
            found(Piece::Paste(std::mem::take(&mut self.held)));
            return &bytes[bytes.len() - after..];
        }
        if self.held.len() > PASTE_BYTES {
            let tail = self.held.split_off(self.held.len() - (PASTE_END.len() - 1));
            found(Piece::Paste(std::mem::replace(&mut self.held, tail)));
        }
        &[]
    }
}

fn cut(held: &[u8]) -> Cut {
    match held {
        [] => Cut::Needs,
        [0x1b] => Cut::Needs,
        [0x1b, 0x1b] => Cut::Piece(1),
        [0x1b, b'O'] => Cut::Needs,
        [0x1b, b'O', ..] => Cut::Piece(3),
        [0x1b, b'[', rest @ ..] => cut_csi(rest),
        [0x1b, b']' | b'P' | b'_' | b'^' | b'X', rest @ ..] => cut_string(rest),
        [0x1b, rest @ ..] => cut_char(rest, 1),
        _ => cut_char(held, 0),
    }
}

fn cut_csi(rest: &[u8]) -> Cut {
    match rest {
        // The Linux console's function keys and the oldest mouse reports have a shape of their own.
        [b'['] => Cut::Needs,
        [b'[', _, ..] => Cut::Piece(4),
        [b'M', payload @ ..] if payload.len() < 3 => Cut::Needs,
        [b'M', ..] => Cut::Piece(6),
        _ => match rest.last() {
            Some(0x40..=0x7e) => Cut::Piece(rest.len() + 2),
            Some(0x20..=0x3f) if rest.len() < SEQUENCE_BYTES => Cut::Needs,
            // A new sequence begins inside this one: the old one was cut off.
            Some(0x1b) => Cut::Drop(rest.len() + 1),
            Some(_) => Cut::Drop(rest.len() + 2),
            None => Cut::Needs,
        },
    }
}

fn cut_string(rest: &[u8]) -> Cut {
    if rest.ends_with(b"\x07") || rest.ends_with(b"\x1b\\") {
        return Cut::Piece(rest.len() + 2);
    }
    if rest.len() > SEQUENCE_BYTES { Cut::Drop(rest.len() + 2) } else { Cut::Needs }
}

fn cut_char(bytes: &[u8], before: usize) -> Cut {
    let wanted = match bytes.first() {
        None => return Cut::Needs,
        Some(0xc2..=0xdf) => 2,
        Some(0xe0..=0xef) => 3,
        Some(0xf0..=0xf4) => 4,
        Some(0x80..=0xc1 | 0xf5..=0xff) => return Cut::Drop(before + 1),
        Some(_) => 1,
    };
    if let Some(at) = bytes.iter().skip(1).position(|byte| byte & 0xc0 != 0x80) {
        return Cut::Drop(before + at + 1);
    }
    if bytes.len() < wanted { Cut::Needs } else { Cut::Piece(before + wanted) }
}
