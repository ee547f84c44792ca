//! Escape sequences of a terminal: where they begin and end, across any chunks.

/// Longest string sequence that is shown again when it turns out never to end.
const KEPT: usize = 4096;

/// The recogniser: fed one character at a time.
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
    /// Inside an OSC, DCS, APC, PM or SOS string: its beginning, and how many letters came after that.
    Body { kept: String, more: usize },
    /// After an `ESC` inside such a string.
    Ending,
}

/// What becomes of the character just fed.
pub(super) enum Step {
    /// It is text.
    Text,
    /// It belongs to a sequence.
    Taken,
    /// It is text, and so was the escape character before it: no sequence has this form.
    AfterStray,
    /// It is text, and so is this, which looked like a string sequence but had no end on its line.
    AfterUnended(String),
}

impl Escape {
    pub fn is_ground(&self) -> bool {
        matches!(self, Self::Ground)
    }

    pub fn step(&mut self, letter: char) -> Step {
        match std::mem::take(self) {
            Self::Ground => self.ground(letter),
            Self::Begun => self.begun(letter),
            Self::Intermediate => self.intermediate(letter),
            Self::Control => self.control(letter),
            Self::Body { kept, more } => self.text(kept, more, letter),
            Self::Ending if letter == '\\' => Step::Taken,
            Self::Ending => self.begun(letter),
        }
    }

    /// What was held back when the text ends here.
    pub fn finish(&mut self) -> Option<String> {
        match std::mem::take(self) {
            Self::Body { kept, more } => Some(unended(kept, more)),
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

    fn begun(&mut self, letter: char) -> Step {
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
            '\n' => return Step::AfterUnended(unended(kept, more)),
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

/// What is shown of a string that had no end; what is not says so.
fn unended(mut kept: String, more: usize) -> String {
    if more > 0 {
        kept = format!("{kept}<+{more} letters>");
    }
    kept
}
