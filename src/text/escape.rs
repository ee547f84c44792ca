//! Recognizer for terminal escape sequences, including sequences split across chunks.

/// Number of bytes of an unterminated string sequence that are displayed as text.
const KEPT: usize = 4096;

/// Recognizer state. The recognizer processes one character at a time.
#[derive(Default)]
pub(super) enum Escape {
    #[default]
    Ground,
    /// After `ESC`.
    Begun,
    /// After `ESC` and an intermediate byte.
    Intermediate,
    /// Inside a control sequence, after `ESC [`.
    Control,
    /// Inside an OSC, DCS, APC, PM or SOS string. `kept` is the start of the string, and `more` is the number of
    /// further characters.
    Body { kept: String, more: usize },
    /// After an `ESC` inside such a string.
    Ending,
}

/// Classification of the most recent character.
pub(super) enum Step {
    /// The character is text.
    Text,
    /// The character is part of an escape sequence.
    Taken,
    /// Both the character and the preceding escape character are text, because no escape sequence has this form.
    AfterStray,
    /// Both the given string and the character are text. The string looked like a string sequence but was not
    /// terminated on the same line.
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

    /// Returns any buffered text at the end of the input.
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

/// Returns an unterminated string for display, followed by the number of omitted characters.
fn show_unterminated(mut kept: String, more: usize) -> String {
    if more > 0 {
        kept = format!("{kept}<+{more} characters>");
    }
    kept
}
