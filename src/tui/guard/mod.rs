//! The type-ahead guard: whether a key decides a question or belongs to what the person was typing.
//!
//! Pure: stimuli with their times go in, outcomes come out. Times are milliseconds since the start of the screen.

#[cfg(test)]
mod tests;

/// Keys of one thought come closer together than this; a letter that decides stands alone on both sides.
pub const ALONE_MS: u64 = 350;
/// From the terminal's answer until the choices work.
pub const ARMING_MS: u64 = 500;
/// Without an answer the choices work this long after the frame.
pub const UNANSWERED_MS: u64 = 1500;
/// After the window got focus, was resized, or the process was resumed.
pub const UNSETTLED_MS: u64 = 300;
/// The second key of a two-key choice: not sooner, not later.
pub const CONFIRM_MS: std::ops::RangeInclusive<u64> = 250..=5000;
/// Two keys closer together than this come from a held key or a machine.
pub const MACHINE_MS: u64 = 40;
/// A panel takes the keyboard by itself only after this long without a key.
pub const IDLE_MS: u64 = 1000;

/// How a choice is confirmed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Confirm {
    /// The letter, standing alone.
    Letter,
    /// The letter (or an arrow), then Enter.
    LetterThenEnter,
}

/// A choice, as far as the guard cares.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Key {
    pub letter: char,
    pub confirm: Confirm,
}

/// What came in while the panel has the keyboard.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stimulus {
    /// A printable character without ctrl or alt.
    Letter(char),
    Enter,
    Up,
    Down,
    /// Any other key that is no text: it takes a waiting letter back.
    Other,
    /// The first frame with the panel is on its way to the terminal.
    Shown,
    /// The terminal answered: what comes from now on was typed with the panel on the screen.
    Fence,
    /// Focus came back, the window was resized, the process was resumed.
    Unsettled,
    /// Nothing, only time.
    Time,
}

/// What is to be done.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Outcome {
    Nothing,
    /// The choice with this index is decided.
    Decided(usize),
    /// These characters belong to the draft, in this order; the panel gives the keyboard back.
    Draft(String),
}

/// What the rows of the choices show.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Look {
    /// Not armed yet: nothing decides.
    Arming,
    Ready,
    /// A letter was pressed and waits to see whether it stands alone.
    Waiting(usize),
    /// A choice is highlighted; Enter takes it.
    Highlighted(usize),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Held {
    None,
    /// A choice's letter, at its time.
    Letter {
        choice: usize,
        letter: char,
        at: u64,
    },
    /// Letter or arrow, waiting for Enter. `alone` once nothing printable can join the letter any more.
    Highlight {
        choice: usize,
        at: u64,
    },
}

/// The state for one panel, from the moment it gets the keyboard until it gives it back.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Guard {
    keys: Vec<Key>,
    shown: Option<u64>,
    answered: Option<u64>,
    unsettled: Option<u64>,
    last_text: Option<u64>,
    held: Held,
}

/// Whether a new panel may take the keyboard by itself.
pub fn may_take_focus(draft_is_empty: bool, last_key: Option<u64>, now: u64) -> bool {
    draft_is_empty && last_key.is_none_or(|at| now.saturating_sub(at) >= IDLE_MS)
}

impl Guard {
    /// `last_text`: when the person last typed anything anywhere.
    pub fn new(keys: Vec<Key>, last_text: Option<u64>) -> Self {
        Self { keys, shown: None, answered: None, unsettled: None, last_text, held: Held::None }
    }

    /// What confirms each choice from now on, in the order of the keys.
    pub fn set_confirms(&mut self, confirms: &[Confirm]) {
        for (key, confirm) in self.keys.iter_mut().zip(confirms) {
            key.confirm = *confirm;
        }
    }

    /// From when the choices work, as far as is known.
    fn armed_at(&self) -> Option<u64> {
        let base = match (self.shown, self.answered) {
            (None, _) => return None,
            (Some(_), Some(answered)) => answered + ARMING_MS,
            (Some(shown), None) => shown + UNANSWERED_MS,
        };
        Some(self.unsettled.map_or(base, |at| base.max(at + UNSETTLED_MS)))
    }

    pub fn is_armed(&self, now: u64) -> bool {
        self.armed_at().is_some_and(|at| now >= at)
    }

    pub fn look(&self, now: u64) -> Look {
        match self.held {
            Held::None if self.is_armed(now) => Look::Ready,
            Held::None => Look::Arming,
            Held::Letter { choice, .. } => Look::Waiting(choice),
            Held::Highlight { choice, .. } => Look::Highlighted(choice),
        }
    }

    /// When time alone changes something.
    pub fn deadline(&self, now: u64) -> Option<u64> {
        let held = match self.held {
            Held::None => None,
            Held::Letter { at, .. } => Some(at + ALONE_MS),
            Held::Highlight { at, .. } => Some(at + CONFIRM_MS.end() + 1),
        };
        held.or_else(|| self.armed_at().filter(|at| *at > now))
    }

    pub fn step(&mut self, stimulus: Stimulus, now: u64) -> Outcome {
        if let decided @ Outcome::Decided(_) = self.expire(now) {
            return decided;
        }
        match stimulus {
            Stimulus::Letter(letter) => self.letter(letter, now),
            Stimulus::Enter => self.enter(now),
            Stimulus::Up => self.arrow(now, |at, len| at.map_or(len - 1, |at| (at + len - 1) % len)),
            Stimulus::Down => self.arrow(now, |at, len| at.map_or(0, |at| (at + 1) % len)),
            Stimulus::Other => {
                self.held = Held::None;
                Outcome::Nothing
            }
            Stimulus::Shown => {
                self.shown.get_or_insert(now);
                Outcome::Nothing
            }
            Stimulus::Fence => {
                // An answer that comes after the panel was armed by time must not disarm it under a finger.
                if !self.is_armed(now) {
                    self.answered.get_or_insert(now);
                }
                Outcome::Nothing
            }
            Stimulus::Unsettled => {
                self.unsettled = Some(now);
                self.held = Held::None;
                Outcome::Nothing
            }
            Stimulus::Time => Outcome::Nothing,
        }
    }

    /// What text belongs to the draft when something other than a key ends the wait: a paste, for one.
    pub fn give_back(&mut self) -> String {
        match std::mem::replace(&mut self.held, Held::None) {
            Held::Letter { letter, .. } => letter.to_string(),
            Held::None | Held::Highlight { .. } => String::new(),
        }
    }

    /// What the passing of time decided before the next thing happened.
    fn expire(&mut self, now: u64) -> Outcome {
        match self.held {
            Held::Letter { choice, at, .. } if now >= at + ALONE_MS => match self.keys[choice].confirm {
                Confirm::Letter => {
                    self.held = Held::None;
                    Outcome::Decided(choice)
                }
                Confirm::LetterThenEnter => {
                    self.held = if now <= at + CONFIRM_MS.end() { Held::Highlight { choice, at } } else { Held::None };
                    Outcome::Nothing
                }
            },
            Held::Highlight { at, .. } if now > at + CONFIRM_MS.end() => {
                self.held = Held::None;
                Outcome::Nothing
            }
            Held::None | Held::Letter { .. } | Held::Highlight { .. } => Outcome::Nothing,
        }
    }

    fn letter(&mut self, letter: char, now: u64) -> Outcome {
        let close = self.last_text.is_some_and(|at| now.saturating_sub(at) < ALONE_MS);
        self.last_text = Some(now);
        let choice = self.keys.iter().position(|key| key.letter == letter);
        let Some(choice) = choice.filter(|_| !close && self.is_armed(now)) else {
            let mut text = self.give_back();
            text.push(letter);
            return Outcome::Draft(text);
        };
        self.held = Held::Letter { choice, letter, at: now };
        Outcome::Nothing
    }

    fn enter(&mut self, now: u64) -> Outcome {
        let (choice, at) = match self.held {
            Held::None => return Outcome::Nothing,
            Held::Letter { choice, at, .. } | Held::Highlight { choice, at } => (choice, at),
        };
        let waited = now.saturating_sub(at);
        // Letter and Enter in one burst: no hand does that.
        if waited < MACHINE_MS && matches!(self.held, Held::Letter { .. }) {
            return Outcome::Draft(self.give_back());
        }
        let long_enough = match self.keys[choice].confirm {
            Confirm::Letter => waited >= MACHINE_MS,
            Confirm::LetterThenEnter => CONFIRM_MS.contains(&waited),
        };
        if !long_enough || !self.is_armed(now) {
            return Outcome::Nothing;
        }
        self.held = Held::None;
        Outcome::Decided(choice)
    }

    fn arrow(&mut self, now: u64, to: impl Fn(Option<usize>, usize) -> usize) -> Outcome {
        if !self.is_armed(now) || self.keys.is_empty() {
            return Outcome::Nothing;
        }
        let from = match self.held {
            Held::Highlight { choice, .. } => Some(choice),
            Held::None | Held::Letter { .. } => None,
        };
        self.held = Held::Highlight { choice: to(from, self.keys.len()), at: now };
        Outcome::Nothing
    }
}
