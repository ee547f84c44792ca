//! Recognizer for terminal escape sequences that may be split across chunks.

/// Length in bytes up to which an unterminated string sequence is shown as text.
const KEPT: usize = 4096;

/// State of the recognizer, which takes one character at a time.
#[derive(Default)]
pub(super) enum Escape {
    #[default]
    Ground,
    /// State after `ESC`.
    Begun,
    /// State after `ESC` and an intermediate byte.
    Intermediate,
    /// State inside a control sequence, after `ESC [`.
    Control,
    /// Inside an OSC, DCS, APC, PM or SOS string: its start, and the number of characters after it.
    Body { kept: String, more: usize },
    /// After an `ESC` in such a string.
    Ending,
}

/// Classification of the last character.
pub(super) enum Step {
    /// The character is text.
    Text,
    /// The character is part of an escape sequence.
    Taken,
    /// The character and the preceding escape character are text, because no sequence has this
    /// form.
    AfterStray,
    /// The character and this string are text. The string looked like a string sequence, but was not terminated on its
    /// line.
    AfterUnended(String),
}

impl Escape {
    pub(crate) fn is_ground(&self) -> bool {
        matches!(self, Self::Ground)
    }

    pub(crate) fn step(&mut self, letter: char) -> Step {
        match std::mem::take(self) {
            Self::Ground => self.ground(letter),
            Self::Begun => self.after_escape(letter),
            Self::Intermediate => self.intermediate(letter),
            Self::Control => self.control(letter),
            Self::Body { kept, more } => self.text(kept, more, letter),
            Self::Ending if letter == '\\' => Step::Taken,
            Self::Ending => self.after_escape(letter),
        }
    }

    /// Returns buffered text at the end of the input.
    pub(crate) fn finish(&mut self) -> Option<String> {
        match std::mem::take(self) {
            Self::Body { kept, more } => Some(show_unterminated(kept, more)),
            Self::Ground | Self::Begun | Self::Intermediate | Self::Control | Self::Ending => None,
        }
    }

    fn ground(&mut self, letter: char) -> Step {
        if letter != '\u{1b}' {
            return Step::Text;
        }
        *self = Self::Begun;
        Step::Taken
    }

    fn after_escape(&mut self, letter: char) -> Step {
        match letter {
            '[' => *self = Self::Control,
            ']' | 'P' | 'X' | '^' | '_' => *self = Self::Body { kept: String::new(), more: 0 },
            ' '..='/' => *self = Self::Intermediate,
            '\u{1b}' => *self = Self::Begun,
            '0'..='~' => {}
            _ => return Step::AfterStray,
        }
        Step::Taken
    }

    fn intermediate(&mut self, letter: char) -> Step {
        match letter {
            ' '..='/' => *self = Self::Intermediate,
            '0'..='~' => {}
            _ => return self.ground(letter),
        }
        Step::Taken
    }

    fn control(&mut self, letter: char) -> Step {
        match letter {
            ' '..='?' => *self = Self::Control,
            '@'..='~' => {}
            _ => return self.ground(letter),
        }
        Step::Taken
    }

    fn text(&mut self, mut kept: String, mut more: usize, letter: char) -> Step {
        match letter {
            '\u{7}' | '\u{18}' | '\u{1a}' | '\u{9c}' => {}
            '\u{1b}' => *self = Self::Ending,
            '\n' => return Step::AfterUnended(show_unterminated(kept, more)),
            _ => {
                if kept.len() < KEPT {
                    kept.push(letter);
                } else {
                    more += 1;
                }
                *self = Self::Body { kept, more };
            }
        }
        Step::Taken
    }
}

/// Returns an unterminated string for display, with the number of omitted characters.
fn show_unterminated(mut kept: String, more: usize) -> String {
    if more > 0 {
        kept = format!("{kept}<+{more} characters>");
    }
    kept
}
