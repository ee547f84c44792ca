//! Terminal emulator as identified by the environment, and the sequences that it supports.

use super::terminfo;
use crate::tui::theme::ColourDepth;

/// Names by which the environment identifies the terminal. They may be wrong, so the terminal's own replies take
/// precedence.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Emulator {
    /// Value of the environment variable `TERM`.
    term: String,
    /// Other names found in the environment, in lower case.
    program: String,
    multiplexer: Option<Multiplexer>,
    /// Whether aye is running inside GNU screen itself, rather than in a terminal that merely uses its name.
    is_gnu_screen: bool,
}

/// Terminal multiplexer inside which aye is running.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Multiplexer {
    Tmux,
    Screen,
}

/// Kind of escape sequence that shows a desktop notification.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Notice {
    /// `OSC 9 ; TEXT`.
    Nine,
    /// `OSC 777 ; notify ; TITLE ; TEXT`.
    Notify,
}

/// Terminals with a progress indicator (`OSC 9 ; 4`). Other terminals would show the sequence as a notification.
const PROGRESS: [&str; 7] = ["ghostty", "wezterm", "windows-terminal", "conemu", "mintty", "kitty", "termshot"];
/// Terminals that support true colour but may not report that they do.
const TRUE_COLOUR: [&str; 8] = ["kitty", "ghostty", "alacritty", "foot", "wezterm", "contour", "iterm", "konsole"];

impl Emulator {
    /// Detects the emulator from environment variables. An empty variable is treated as unset.
    pub(crate) fn detect<'v>(variable: impl Fn(&str) -> &'v str) -> Self {
        let term = variable("TERM").to_owned();
        let is_set = |name: &str| !variable(name).is_empty();
        let multiplexer = if is_set("TMUX") || term.starts_with("tmux") {
            Some(Multiplexer::Tmux)
        } else if is_set("STY") || term.starts_with("screen") {
            Some(Multiplexer::Screen)
        } else {
            None
        };
        let is_gnu_screen = multiplexer == Some(Multiplexer::Screen) && is_set("STY");
        let known = [
            ("WT_SESSION", "windows-terminal"),
            ("ConEmuANSI", "conemu"),
            ("VTE_VERSION", "vte"),
            ("KONSOLE_VERSION", "konsole"),
            ("KITTY_WINDOW_ID", "kitty"),
            ("GHOSTTY_RESOURCES_DIR", "ghostty"),
            ("ITERM_SESSION_ID", "iterm"),
        ];
        let by_variable = known.iter().filter(|(name, _)| is_set(name)).map(|(_, program)| *program);
        let names = by_variable.chain([variable("LC_TERMINAL"), variable("TERM_PROGRAM")]);
        Self { program: names.collect::<Vec<_>>().join(" ").to_lowercase(), term, multiplexer, is_gnu_screen }
    }

    /// Returns whether this is the Linux console or a similar terminal, which has no title, supports no string
    /// sequences and has only one small font.
    pub(crate) fn is_console(&self) -> bool {
        ["linux", "vt100", "vt102", "vt220", "ansi", "cons25"].contains(&self.term.as_str())
    }

    /// Returns whether the terminal, while mouse reports are on, withholds Escape until the next key is pressed.
    pub(crate) fn delays_escape(&self) -> bool {
        self.is_gnu_screen
    }

    /// Returns whether the terminal displays italics as reversed text.
    pub(crate) fn reverses_italics(&self) -> bool {
        self.is_gnu_screen
    }

    fn is_apple(&self) -> bool {
        self.program.contains("apple_terminal") && self.multiplexer.is_none()
    }

    fn has_name(&self, name: &str) -> bool {
        self.term.contains(name) || self.program.contains(name)
    }

    /// Returns the colour support indicated by the environment and the terminal description.
    pub(crate) fn colours<'v>(&self, variable: impl Fn(&str) -> &'v str) -> ColourDepth {
        let says_so = !variable("COLORTERM").is_empty();
        let described = if says_so { None } else { terminfo::colours(&self.term, &variable) };
        self.colours_from(variable("COLORTERM"), described)
    }

    fn colours_from(&self, color_term: &str, described: Option<u32>) -> ColourDepth {
        let says_so = matches!(color_term, "truecolor" | "24bit") || self.term.ends_with("-direct");
        let is_known = self.multiplexer.is_none() && TRUE_COLOUR.iter().any(|name| self.has_name(name));
        match described {
            _ if self.is_console() => ColourDepth::Sixteen,
            // GNU screen passes on the variables of the outer terminal, but supports fewer colours.
            _ if self.multiplexer == Some(Multiplexer::Screen) && self.term.contains("256color") => ColourDepth::Indexed256,
            _ if self.multiplexer == Some(Multiplexer::Screen) => ColourDepth::Sixteen,
            _ if says_so || is_known => ColourDepth::True,
            Some(0x100_0000..) => ColourDepth::True,
            _ if self.term.contains("256color") => ColourDepth::Indexed256,
            Some(256..) => ColourDepth::Indexed256,
            _ => ColourDepth::Sixteen,
        }
    }

    /// Returns the queries to send once, before the first frame, without waiting for replies. Every terminal replies to
    /// the last query. Once that reply has arrived, no more replies to earlier queries are expected. If a terminal
    /// prints a query that it does not know, the first frame overwrites it.
    pub(crate) fn questions(&self, colours: ColourDepth) -> Vec<u8> {
        if self.is_console() {
            return Vec::new();
        }
        let mut out = Vec::new();
        out.extend(b"\x1b[?u\x1b]11;?\x1b\\");
        // Apple's terminal would print `p` and the rest of an unknown query.
        if !self.is_apple() {
            out.extend(b"\x1b[?4m\x1b[m\x1b[?2026$p\x1b[?2027$p\x1b[?2031$p\x1b[?2048$p");
        }
        // GNU screen passes unknown strings on to the outer terminal.
        if self.multiplexer.is_none() && !self.is_apple() {
            out.extend(b"\x1b[>0q");
            if matches!(colours, ColourDepth::Indexed256 | ColourDepth::Sixteen) {
                out.extend(b"\x1bP+q524742;5463\x1b\\");
            }
        }
        out.extend(b"\x1b[c");
        out
    }

    /// Returns whether to enable xterm's modified key reports even if the terminal has not confirmed that it supports
    /// them.
    pub(crate) fn may_modify_keys(&self) -> bool {
        let is_xterm = ["xterm", "tmux", "mintty", "rxvt"].iter().any(|name| self.term.starts_with(name));
        (is_xterm || self.multiplexer == Some(Multiplexer::Tmux)) && !self.is_apple() && !self.is_console()
    }

    /// Returns the kind of sequence to use for notifications, or `None` if the terminal supports none. `name` is the
    /// name that the terminal has reported.
    pub(crate) fn notice(&self, name: &str) -> Option<Notice> {
        let is = |part: &str| self.has_name(part) || name.to_lowercase().contains(part);
        match () {
            () if self.is_console() || self.is_apple() => None,
            () if is("rxvt") || is("vte") || is("foot") || is("konsole") => Some(Notice::Notify),
            () => Some(Notice::Nine),
        }
    }

    /// Returns whether the terminal has a progress indicator. `name` is the name that the terminal has reported.
    pub(crate) fn shows_progress(&self, name: &str) -> bool {
        let name = name.to_lowercase();
        self.multiplexer.is_none() && PROGRESS.iter().any(|known| self.has_name(known) || name.contains(known))
    }

    /// Wraps a sequence so that a multiplexer, if there is one, passes it on to the outer terminal.
    pub(crate) fn wrap_for_outer(&self, sequence: &str) -> Vec<u8> {
        match self.multiplexer {
            None => sequence.as_bytes().to_vec(),
            Some(Multiplexer::Tmux) => format!("\x1bPtmux;{}\x1b\\", sequence.replace('\x1b', "\x1b\x1b")).into_bytes(),
            // The outer string ends at the first terminator, so the inner one ends with BEL.
            Some(Multiplexer::Screen) => format!("\x1bP{}\x1b\\", sequence.replace("\x1b\\", "\x07")).into_bytes(),
        }
    }

    /// Returns whether the terminal has a window title that can be set.
    pub(crate) fn has_title(&self) -> bool {
        !self.is_console()
    }
}
