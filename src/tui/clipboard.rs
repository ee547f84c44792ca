//! Copying text through the terminal (OSC 52) or with clipboard programs.

use base64::Engine as _;
use std::fmt;
use std::sync::Arc;

/// Maximum size, in bytes, of text that all terminals with OSC 52 support accept. The limit is that of xterm, which is
/// the lowest.
pub(crate) const MAX: usize = 74_000;
/// Maximum size, in bytes, of a sequence that GNU screen passes on to the terminal.
const SCREEN_BYTES: usize = 240;

/// Terminal multiplexer that runs between aye and the terminal.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum OuterMultiplexer {
    #[default]
    Nothing,
    Tmux,
    Screen,
}

/// Function that copies text with a clipboard program. It returns the program's name or an error, or `None` if no such
/// program is available.
pub(crate) type Offer = Arc<dyn Fn(&str) -> Option<Result<String, String>> + Send + Sync>;
/// Function that saves text to a file. It returns the file's path in display form, or an error.
pub(crate) type SaveFn = Arc<dyn Fn(&str) -> Result<String, String> + Send + Sync>;

/// Available ways of copying text: through the terminal, with a clipboard program, or by saving it to a file.
#[derive(Clone)]
pub(crate) struct Clipboard {
    pub between: OuterMultiplexer,
    pub offer: Offer,
    pub keep: SaveFn,
}

impl fmt::Debug for Clipboard {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Clipboard({:?})", self.between)
    }
}

impl Default for Clipboard {
    fn default() -> Self {
        Self {
            between: OuterMultiplexer::Nothing,
            offer: Arc::new(|_| None),
            keep: Arc::new(|_| Err("no directory to save the text in".to_owned())),
        }
    }
}

/// Text to copy, and a description of its size, such as `12 lines`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Clip {
    pub text: String,
    pub what: String,
}

impl Clip {
    pub(crate) fn from_text(text: String) -> Self {
        let lines = text.lines().count();
        let what = match lines {
            0 | 1 => super::format::format_count(text.trim_end_matches('\n').chars().count(), "character"),
            lines => super::format::format_count(lines, "line"),
        };
        Self { text, what }
    }

    /// Creates a clip whose description starts with `name`.
    pub(crate) fn with_name(text: String, name: &str) -> Self {
        let Self { text, what } = Self::from_text(text);
        Self { text, what: format!("{name}, {what}") }
    }
}

/// Returns the escape sequence that makes the terminal copy the text, or `None` if the text is longer than [`MAX`].
pub(crate) fn sequence(text: &str, between: OuterMultiplexer) -> Option<Vec<u8>> {
    if text.len() > MAX {
        return None;
    }
    let plain = format!("\x1b]52;c;{}\x1b\\", base64::engine::general_purpose::STANDARD.encode(text));
    Some(match between {
        OuterMultiplexer::Nothing => plain.into_bytes(),
        // tmux copies the plain sequence if `set-clipboard` is on, and forwards the wrapped one if `allow-passthrough`
        // is on.
        OuterMultiplexer::Tmux => format!("{plain}\x1bPtmux;{}\x1b\\", plain.replace('\x1b', "\x1b\x1b")).into_bytes(),
        OuterMultiplexer::Screen => {
            let mut out = Vec::with_capacity(plain.len() + plain.len() / 32);
            // The inner string must not contain the outer terminator, so BEL ends it.
            let inner = plain.replace("\x1b\\", "\x07");
            for piece in inner.as_bytes().chunks(SCREEN_BYTES) {
                out.extend_from_slice(b"\x1bP");
                out.extend_from_slice(piece);
                out.extend_from_slice(b"\x1b\\");
            }
            out
        }
    })
}

/// Copies a clip with a clipboard program. If neither the program nor the terminal could copy it, saves it to a file.
/// Returns a message about the outcome. `sent_to_terminal` says whether the text has already been sent to the terminal.
pub(crate) fn copy_with_program(clip: &Clip, sent_to_terminal: bool, clipboard: &Clipboard) -> String {
    let Clip { text, what } = clip;
    let offered = (clipboard.offer)(text);
    let mut ways: Vec<String> = Vec::new();
    let mut wrong = None;
    match offered {
        Some(Ok(program)) => ways.push(program),
        Some(Err(error)) => wrong = Some(error),
        None => {}
    }
    if sent_to_terminal {
        ways.push("OSC 52".to_owned());
    }
    let reason = if text.len() > MAX {
        format!("larger than the {} KB that terminals accept", MAX / 1000)
    } else {
        "line mode does not use the terminal's clipboard".to_owned()
    };
    match (ways.is_empty(), sent_to_terminal) {
        (false, true) => format!("copied {what} · {}", ways.join(", ")),
        (false, false) => format!("copied {what} · {} ({reason})", ways.join(", ")),
        (true, _) => match (clipboard.keep)(text) {
            Ok(place) => format!("{what}: {reason}; saved to {place}"),
            Err(error) => {
                format!("not copied: {reason}{}; {error}", wrong.map(|wrong| format!(", {wrong}")).unwrap_or_default())
            }
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn payload(bytes: &[u8]) -> Vec<u8> {
        let text = String::from_utf8_lossy(bytes);
        let start = text.find("]52;c;").unwrap() + 6;
        let end = start + text[start..].find(['\x1b', '\x07']).unwrap();
        base64::engine::general_purpose::STANDARD.decode(&text[start..end]).unwrap()
    }

    #[test]
    fn osc_52_carries_the_exact_text() {
        assert_eq!(sequence("a\nb", OuterMultiplexer::Nothing).unwrap(), b"\x1b]52;c;YQpi\x1b\\");
        assert_eq!(payload(&sequence("你好", OuterMultiplexer::Tmux).unwrap()), "你好".as_bytes());
    }

    #[test]
    fn tmux_gets_the_plain_sequence_and_a_passthrough_with_doubled_escapes() {
        let bytes = sequence("a", OuterMultiplexer::Tmux).unwrap();
        assert_eq!(bytes, b"\x1b]52;c;YQ==\x1b\\\x1bPtmux;\x1b\x1b]52;c;YQ==\x1b\x1b\\\x1b\\");
    }

    #[test]
    fn gnu_screen_gets_the_sequence_in_short_passthrough_chunks() {
        let text = "x".repeat(2000);
        let bytes = sequence(&text, OuterMultiplexer::Screen).unwrap();
        let string = String::from_utf8(bytes).unwrap();
        let pieces: Vec<&str> = string.split("\x1b\\").filter(|piece| !piece.is_empty()).collect();
        assert!(pieces.len() > 8 && pieces.iter().all(|piece| piece.starts_with("\x1bP") && piece.len() < 256));
        let inner: String = pieces.iter().map(|piece| &piece[2..]).collect();
        assert_eq!(payload(inner.as_bytes()), text.as_bytes());
    }

    #[test]
    fn text_too_long_for_the_terminal_is_saved_to_a_file_that_is_reported() {
        let long = "line of text\n".repeat(10_000);
        assert!(sequence(&long, OuterMultiplexer::Nothing).is_none());
        let clip = Clip::from_text(long);
        let keep: SaveFn = Arc::new(|_| Ok("~/kept.txt".to_owned()));
        let clipboard = Clipboard { keep, ..Clipboard::default() };
        let words = copy_with_program(&clip, false, &clipboard);
        assert!(words.contains("10,000 lines") && words.contains("~/kept.txt") && words.contains("74 KB"), "{words}");
        // A short text can be left uncopied for another reason.
        let words = copy_with_program(&Clip::from_text("a".to_owned()), false, &clipboard);
        assert!(words.contains("~/kept.txt") && words.contains("line mode") && !words.contains("KB"), "{words}");
        let offer: Offer = Arc::new(|_| Some(Ok("wl-copy".to_owned())));
        let words = copy_with_program(&clip, false, &Clipboard { offer, ..clipboard });
        assert!(words.starts_with("copied 10,000 lines · wl-copy ("), "{words}");
    }

    #[test]
    fn the_copy_message_names_the_method_used() {
        let clip = Clip::from_text("one\ntwo".to_owned());
        assert_eq!(copy_with_program(&clip, true, &Clipboard::default()), "copied 2 lines · OSC 52");
        let offer: Offer = Arc::new(|_| Some(Ok("xclip".to_owned())));
        let clipboard = Clipboard { offer, ..Clipboard::default() };
        assert_eq!(copy_with_program(&clip, true, &clipboard), "copied 2 lines · xclip, OSC 52");
        assert_eq!(
            copy_with_program(&Clip::from_text("你好".to_owned()), true, &Clipboard::default()),
            "copied 2 characters · OSC 52"
        );
    }
}
