//! Splitting of the input byte stream into escape sequences, pastes and characters.
//!
//! The stream is split before it is decoded. Unknown sequences therefore cannot affect what follows, and pastes can
//! contain anything.

/// Maximum length of a sequence, in bytes. Longer sequences are discarded as noise.
const SEQUENCE_BYTES: usize = 4096;
/// Size, in bytes, above which a paste is delivered in several parts.
const PASTE_BYTES: usize = 8 << 20;
const PASTE_START: &[u8] = b"\x1b[200~";
const PASTE_END: &[u8] = b"\x1b[201~";

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum InputSequence {
    /// Bytes of one complete key or report.
    Whole(Vec<u8>),
    Paste(Vec<u8>),
}

/// Splitter state: received bytes that do not yet form a complete sequence or character.
#[derive(Debug, Default)]
pub(crate) struct Sequences {
    held: Vec<u8>,
    pasting: bool,
    /// Start of a sequence that was delivered as a key because a pause followed it.
    orphan: Vec<u8>,
}

/// Result of examining the buffered bytes.
enum Cut {
    Needs,
    Piece(usize),
    /// This number of bytes is invalid and must be discarded.
    Drop(usize),
}

/// Time limit for more input to arrive before the buffered bytes are flushed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Wait {
    /// No limit, because nothing is buffered or a paste is in progress.
    Forever,
    /// Short limit, because the buffered bytes may be a complete key.
    Key,
    /// Longer limit, because the buffered bytes start a report or a multi-byte character, which no user could type.
    Report,
}

impl Sequences {
    /// Processes the bytes from one read, calling `found` for each complete sequence or character.
    pub(crate) fn push(&mut self, bytes: &[u8], mut found: impl FnMut(InputSequence)) {
        let orphan = std::mem::take(&mut self.orphan);
        let joined = [&orphan, bytes].concat();
        let mut rest = if !orphan.is_empty() && begins_with_report(&joined) { &joined[..] } else { bytes };
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

    /// Returns how long to wait for more input before calling [`Self::flush`].
    pub(crate) fn wait(&self) -> Wait {
        match &self.held[..] {
            _ if self.pasting => Wait::Forever,
            [] => Wait::Forever,
            [0x1b, b'[' | b']' | b'P' | b'_' | b'^' | b'X' | b'O', _, ..] => Wait::Report,
            // First byte of a multi-byte character.
            [0x80..=0xff, ..] | [0x1b, 0x80..=0xff, ..] => Wait::Report,
            _ => Wait::Key,
        }
    }

    /// Delivers the buffered bytes as a key, or discards them as noise, because no more input arrived in time.
    pub(crate) fn flush(&mut self, mut found: impl FnMut(InputSequence)) {
        if self.wait() == Wait::Forever {
            return;
        }
        let held = std::mem::take(&mut self.held);
        // An incomplete report or character is noise; `ESC` and `ESC x` are keys.
        if held.len() <= 2 && held.is_ascii() {
            self.orphan.clone_from(&held);
            found(InputSequence::Whole(held));
        }
    }

    fn cut(&mut self, found: &mut impl FnMut(InputSequence)) {
        loop {
            match cut(&self.held) {
                Cut::Needs => return,
                Cut::Drop(length) => {
                    self.held.drain(..length);
                }
                Cut::Piece(length) => {
                    let rest = self.held.split_off(length);
                    let piece = std::mem::replace(&mut self.held, rest);
                    if piece == PASTE_START {
                        self.pasting = true;
                    } else {
                        found(InputSequence::Whole(piece));
                    }
                }
            }
            if self.held.is_empty() || self.pasting {
                return;
            }
        }
    }

    /// Buffers bytes up to the end of the paste and returns the bytes that follow it. Only the new bytes are searched
    /// for the end of the paste, so processing a long paste takes linear time.
    fn paste<'a>(&mut self, bytes: &'a [u8], found: &mut impl FnMut(InputSequence)) -> &'a [u8] {
        let from = self.held.len().saturating_sub(PASTE_END.len() - 1);
        self.held.extend_from_slice(bytes);
        let end = self.held[from..].windows(PASTE_END.len()).position(|window| window == PASTE_END).map(|at| from + at);
        if let Some(end) = end {
            let after = self.held.len() - end - PASTE_END.len();
            self.held.truncate(end);
            self.pasting = false;
            found(InputSequence::Paste(std::mem::take(&mut self.held)));
            return &bytes[bytes.len() - after..];
        }
        if self.held.len() > PASTE_BYTES {
            let tail = self.held.split_off(self.held.len() - (PASTE_END.len() - 1));
            found(InputSequence::Paste(std::mem::replace(&mut self.held, tail)));
        }
        &[]
    }
}

/// Returns whether bytes that arrived before and after a pause together start a report, which no user could have typed.
fn begins_with_report(bytes: &[u8]) -> bool {
    match bytes {
        [0x1b, b'[', b'?' | b'<' | b'>' | b'=', b'0'..=b'9', ..] => true,
        [0x1b, b']', b'0'..=b'9', ..] | [0x1b, b'P', b'0'..=b'9' | b'>', ..] => true,
        [0x1b, b'[', rest @ ..] => {
            let end = rest.iter().position(|byte| !matches!(byte, b'0'..=b'9' | b';' | b':'));
            end.is_some_and(|end| end > 0 && (0x40..=0x7e).contains(&rest[end]))
        }
        _ => false,
    }
}

fn cut(held: &[u8]) -> Cut {
    match held {
        [] => Cut::Needs,
        [0x1b] => Cut::Needs,
        [0x1b, 0x1b] => Cut::Piece(1),
        [0x1b, b'O', rest @ ..] => cut_application(rest),
        [0x1b, b'[', rest @ ..] => cut_csi(rest),
        [0x1b, b']' | b'P' | b'_' | b'^' | b'X', rest @ ..] => cut_string(rest),
        [0x1b, rest @ ..] => cut_char(rest, 1),
        _ => cut_char(held, 0),
    }
}

/// Finds the end of a sequence that starts with `ESC O`, in which digits are modifiers and a letter is the key.
fn cut_application(rest: &[u8]) -> Cut {
    match rest {
        [] => Cut::Needs,
        [b'0'..=b'9'] | [b'0'..=b'9', b'0'..=b'9'] => Cut::Needs,
        [.., 0x40..=0x7e] => Cut::Piece(rest.len() + 2),
        // `ESC O` was a key, and the next byte starts another one.
        [_] => Cut::Piece(2),
        [..] => Cut::Drop(rest.len() + 1),
    }
}

fn cut_csi(rest: &[u8]) -> Cut {
    match rest {
        [] => Cut::Needs,
        // Function keys of the Linux console and the oldest mouse reports have special formats.
        [b'['] => Cut::Needs,
        [b'[', b'A'..=b'Z', ..] => Cut::Piece(4),
        [b'[', ..] => Cut::Drop(3),
        [b'M', payload @ ..] if payload.len() < 3 => Cut::Needs,
        [b'M', ..] => Cut::Piece(6),
        [.., 0x40..=0x7e] => Cut::Piece(rest.len() + 2),
        [.., 0x20..=0x3f] if rest.len() < SEQUENCE_BYTES => Cut::Needs,
        [.., 0x20..=0x3f] => Cut::Drop(rest.len() + 2),
        // The sequence was truncated, and this byte starts something else.
        [..] => Cut::Drop(rest.len() + 1),
    }
}

fn cut_string(rest: &[u8]) -> Cut {
    match rest {
        [.., 0x07] | [.., 0x1b, b'\\'] => Cut::Piece(rest.len() + 2),
        [.., 0x1b] | [] => Cut::Needs,
        // A reply contains no control characters and no other sequences, so it was truncated.
        [.., 0x1b, _] => Cut::Drop(rest.len()),
        [.., 0x00..=0x1f] => Cut::Drop(rest.len() + 1),
        [..] if rest.len() > SEQUENCE_BYTES => Cut::Drop(rest.len() + 2),
        [..] => Cut::Needs,
    }
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
