//! Which terminal this is, as far as its environment says, and what may be sent to it.

use super::terminfo;
use crate::tui::theme::Colours;

/// The names a terminal goes by. Nothing of this is certain: what it answers counts more.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Emulator {
    /// `TERM`.
    term: String,
    /// What else tells its name, in lower case.
    program: String,
    multiplexer: Option<Multiplexer>,
    /// It is GNU screen, and not only called so.
    is_gnu_screen: bool,
}

/// A terminal within the terminal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Multiplexer {
    Tmux,
    Screen,
}

/// How a terminal is told that something has happened.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Notice {
    /// `OSC 9 ; TEXT`.
    Nine,
    /// `OSC 777 ; notify ; TITLE ; TEXT`.
    Notify,
}

/// Terminals that show how far something is (`OSC 9 ; 4`); others take it for a notice.
const PROGRESS: [&str; 7] = ["ghostty", "wezterm", "windows-terminal", "conemu", "mintty", "kitty", "termshot"];
/// Terminals with true colours that may not say so.
const TRUE_COLOUR: [&str; 8] = ["kitty", "ghostty", "alacritty", "foot", "wezterm", "contour", "iterm", "konsole"];

impl Emulator {
    /// By the variables of the environment; an empty one is not set.
    pub fn of<'v>(variable: impl Fn(&str) -> &'v str) -> Self {
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

    /// The Linux console, and others like it: no titles, no strings, signs of one small font.
    pub fn is_console(&self) -> bool {
        ["linux", "vt100", "vt102", "vt220", "ansi", "cons25"].contains(&self.term.as_str())
    }

    /// Whether Escape comes only with the key after it while the mouse is told of.
    pub fn holds_escape(&self) -> bool {
        self.is_gnu_screen
    }

    /// Whether what is to be slanted would be reversed.
    pub fn reverses_italics(&self) -> bool {
        self.is_gnu_screen
    }

    fn is_apple(&self) -> bool {
        self.program.contains("apple_terminal") && self.multiplexer.is_none()
    }

    fn is(&self, name: &str) -> bool {
        self.term.contains(name) || self.program.contains(name)
    }

    /// How many colours it has, by its names and by what the system knows of it.
    pub fn colours<'v>(&self, variable: impl Fn(&str) -> &'v str) -> Colours {
        let says_so = !variable("COLORTERM").is_empty();
        let described = if says_so { None } else { terminfo::colours(&self.term, &variable) };
        self.colours_by(variable("COLORTERM"), described)
    }

    fn colours_by(&self, color_term: &str, described: Option<u32>) -> Colours {
        let says_so = matches!(color_term, "truecolor" | "24bit") || self.term.ends_with("-direct");
        let is_known = self.multiplexer.is_none() && TRUE_COLOUR.iter().any(|name| self.is(name));
        match described {
            _ if self.is_console() => Colours::Sixteen,
            // It hands down what the terminal around it said of itself, and has fewer.
            _ if self.multiplexer == Some(Multiplexer::Screen) && self.term.contains("256color") => Colours::Indexed256,
            _ if self.multiplexer == Some(Multiplexer::Screen) => Colours::Sixteen,
            _ if says_so || is_known => Colours::True,
            Some(0x100_0000..) => Colours::True,
            _ if self.term.contains("256color") => Colours::Indexed256,
            Some(256..) => Colours::Indexed256,
            _ => Colours::Sixteen,
        }
    }

    /// What is asked once, before the first frame; nothing waits for the answers. The last question is one that every terminal
    /// answers: what has no answer by then has none. Asked before the first frame, so that a terminal that prints what it
    /// does not know has it painted over.
    pub fn questions(&self, colours: Colours) -> Vec<u8> {
        if self.is_console() {
            return Vec::new();
        }
        let mut out = Vec::new();
        out.extend(b"\x1b[?u\x1b]11;?\x1b\\");
        // `p` and the rest of them would be printed by some that know neither.
        if !self.is_apple() {
            out.extend(b"\x1b[?4m\x1b[m\x1b[?2026$p\x1b[?2027$p\x1b[?2031$p\x1b[?2048$p");
        }
        // A string that GNU screen does not know goes to the terminal around it.
        if self.multiplexer.is_none() && !self.is_apple() {
            out.extend(b"\x1b[>0q");
            if matches!(colours, Colours::Indexed256 | Colours::Sixteen) {
                out.extend(b"\x1bP+q524742;5463\x1b\\");
            }
        }
        out.extend(b"\x1b[c");
        out
    }

    /// Whether xterm's reports of keys with modifiers are asked for though nothing was said of them.
    pub fn may_modify_keys(&self) -> bool {
        let is_xterm = ["xterm", "tmux", "mintty", "rxvt"].iter().any(|name| self.term.starts_with(name));
        (is_xterm || self.multiplexer == Some(Multiplexer::Tmux)) && !self.is_apple() && !self.is_console()
    }

    /// How it is told that something has happened; `name` is what it answered.
    pub fn notice(&self, name: &str) -> Option<Notice> {
        let is = |part: &str| self.is(part) || name.to_lowercase().contains(part);
        match () {
            () if self.is_console() || self.is_apple() => None,
            () if is("rxvt") || is("vte") || is("foot") || is("konsole") => Some(Notice::Notify),
            () => Some(Notice::Nine),
        }
    }

    /// Whether it shows how far something is.
    pub fn shows_progress(&self, name: &str) -> bool {
        let name = name.to_lowercase();
        self.multiplexer.is_none() && PROGRESS.iter().any(|known| self.is(known) || name.contains(known))
    }

    /// A sequence for the terminal around a multiplexer.
    pub fn through(&self, sequence: &str) -> Vec<u8> {
        match self.multiplexer {
            None => sequence.as_bytes().to_vec(),
            Some(Multiplexer::Tmux) => format!("\x1bPtmux;{}\x1b\\", sequence.replace('\x1b', "\x1b\x1b")).into_bytes(),
            // Its own string ends at the first end: what goes through ends with a bell.
            Some(Multiplexer::Screen) => format!("\x1bP{}\x1b\\", sequence.replace("\x1b\\", "\x07")).into_bytes(),
        }
    }

    /// Whether it has a title.
    pub fn has_title(&self) -> bool {
        !self.is_console()
    }
}
