//! The type-ahead guard: whether a key decides a question or belongs to what the person was typing.
//!
//! Pure: stimuli with their times go in, outcomes come out. Times are milliseconds since the start of the screen.

mod fence;
#[cfg(test)]
pub mod key_streams;
#[cfg(test)]
mod tests;

pub use fence::Fence;

/// Keys of one thought come closer together than this; a letter that decides stands alone on both sides.
pub const ALONE_MS: u64 = 350;
/// A key that is held is repeated after less than this: until then nobody knows whether it is. Keyboards wait 250 to 660 ms.
pub const KEY_REPEAT_MS: u64 = 700;
/// From the terminal's answer until the choices work, where nothing else is set.
pub const ARMING_MS: u64 = 500;
/// So long an answer is waited for; then the time of the frame counts.
const ANSWER_MS: u64 = 1000;
/// In strict mode, without an answer, the choices work this long after the frame.
const UNANSWERED_MS: u64 = 1500;
/// After the window got focus, was resized, or the process was resumed.
pub const UNSETTLED_MS: u64 = 300;
/// The second key of a two-key choice: not sooner, not later.
pub const CONFIRM_MS: std::ops::RangeInclusive<u64> = 250..=5000;
/// Two keys closer together than this come from a held key or a machine.
pub const MACHINE_MS: u64 = 40;
/// A panel takes the keyboard by itself only after this long without a key.
pub const IDLE_MS: u64 = 1000;
/// A wait that was looked at so much too late says nothing: a key may have come in between and lie unread.
const LATE_MS: u64 = 150;

/// How fast hands are taken to be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct GuardTiming {
    /// Every choice takes its key and Enter, and no time counts: neither too soon nor too late.
    pub strict: bool,
    pub arming_ms: u64,
    /// A letter decides once it stood alone for so long, if Enter does not confirm it before.
    pub lone_ms: u64,
}

impl Default for GuardTiming {
    fn default() -> Self {
        Self { strict: false, arming_ms: ARMING_MS, lone_ms: ALONE_MS }
    }
}

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
pub enum GuardInput {
    /// A printable character without ctrl or alt.
    Letter(char),
    /// The same from a key that is held, where the terminal tells.
    Repeat(char),
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
pub enum GuardResult {
    Nothing,
    /// The choice with this index is decided.
    Decided(usize),
    /// These characters belong to the draft, in this order; the panel gives the keyboard back.
    Draft(String),
}

/// What the rows of the choices show.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ChoiceState {
    /// Not armed yet: nothing decides.
    Arming,
    Ready,
    /// A letter was pressed and waits to see whether it stands alone.
    Waiting(usize),
    /// A choice is highlighted; Enter takes it.
    Highlighted(usize),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum PendingChoice {
    None,
    /// A choice's letter, at its time.
    Letter {
        choice: usize,
        at: u64,
    },
    /// Letter or arrow, waiting for Enter.
    Highlight {
        choice: usize,
        at: u64,
    },
}

/// The state for one panel, from the moment it gets the keyboard until it gives it back.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Guard {
    keys: Vec<Key>,
    pace: GuardTiming,
    shown: Option<u64>,
    answered: Option<u64>,
    unsettled: Option<u64>,
    last_text: Option<u64>,
    held: PendingChoice,
    /// Text keys that decided nothing so far. Where more text follows, they were its beginning.
    typed: String,
    /// The last text keys were marks, and nothing else is among what was typed.
    only_marks: bool,
}

/// Whether a new panel may take the keyboard by itself.
pub fn may_take_focus(draft_is_empty: bool, last_key: Option<u64>, now: u64) -> bool {
    draft_is_empty && last_key.is_none_or(|at| now.saturating_sub(at) >= IDLE_MS)
}

impl Guard {
    /// `last_text`: when the person last typed anything anywhere.
    pub fn new(keys: Vec<Key>, last_text: Option<u64>) -> Self {
        Self {
            keys,
            pace: GuardTiming::default(),
            shown: None,
            answered: None,
            unsettled: None,
            last_text,
            held: PendingChoice::None,
            typed: String::new(),
            only_marks: false,
        }
    }

    /// The same for these keys.
    #[must_use]
    pub fn with_keys(self, keys: Vec<Key>) -> Self {
        Self { keys, ..self }
    }

    #[must_use]
    pub fn paced(self, pace: GuardTiming) -> Self {
        Self { pace, ..self }
    }

    /// Focus came back, or the window changed, at this time.
    #[must_use]
    pub fn unsettled(self, at: Option<u64>) -> Self {
        Self { unsettled: at, ..self }
    }

    /// What was typed while the keyboard was with another panel that is no more.
    #[must_use]
    pub fn carrying(self, typed: String) -> Self {
        Self { typed, ..self }
    }

    pub fn is_strict(&self) -> bool {
        self.pace.strict
    }

    /// What confirms each choice from now on, in the order of the keys.
    pub fn set_confirms(&mut self, confirms: &[Confirm]) {
        for (key, confirm) in self.keys.iter_mut().zip(confirms) {
            key.confirm = *confirm;
        }
    }

    fn confirm(&self, choice: usize) -> Confirm {
        let key = self.keys[choice];
        // A digit is a number of something at least as often as it is a key.
        if self.pace.strict || key.letter.is_ascii_digit() { Confirm::LetterThenEnter } else { key.confirm }
    }

    /// From when the choices work, as far as is known.
    fn armed_at(&self) -> Option<u64> {
        let base = match (self.shown, self.answered) {
            (None, _) => return None,
            (Some(_), Some(answered)) if self.pace.strict => answered,
            (Some(shown), None) if self.pace.strict => shown + UNANSWERED_MS,
            (Some(_), Some(answered)) => answered + self.pace.arming_ms,
            (Some(shown), None) => shown + ANSWER_MS + self.pace.arming_ms,
        };
        Some(self.unsettled.map_or(base, |at| base.max(at + UNSETTLED_MS)))
    }

    pub fn is_armed(&self, now: u64) -> bool {
        self.armed_at().is_some_and(|at| now >= at)
    }

    /// Whether the window is as it was for long enough.
    pub fn is_settled(&self, now: u64) -> bool {
        self.unsettled.is_none_or(|at| now >= at + UNSETTLED_MS)
    }

    /// Whether something was typed right before.
    fn is_close(&self, now: u64) -> bool {
        self.last_text.is_some_and(|at| now.saturating_sub(at) < ALONE_MS)
    }

    /// Whether a text key that decides nothing is for the panel: nothing was typed right before it, except others of its kind.
    /// Where text follows at once it was the beginning of that, and goes with it.
    pub fn mark(&mut self, letter: char, now: u64) -> bool {
        let among_marks = self.only_marks;
        let alone = among_marks || (!self.is_close(now) && (!self.pace.strict || self.typed.is_empty()));
        if !self.is_armed(now) || !alone || matches!(self.held, PendingChoice::Letter { .. }) {
            return false;
        }
        if !among_marks && self.held == PendingChoice::None {
            self.typed.clear();
        }
        self.held = PendingChoice::None;
        self.last_text = Some(now);
        self.only_marks = self.only_marks || self.typed.is_empty();
        self.typed.push(letter);
        true
    }

    /// Whether a choice waits for its time, or for Enter.
    pub fn is_held(&self) -> bool {
        self.held != PendingChoice::None
    }

    pub fn look(&self, now: u64) -> ChoiceState {
        match self.held {
            PendingChoice::None if self.is_armed(now) => ChoiceState::Ready,
            PendingChoice::None => ChoiceState::Arming,
            PendingChoice::Letter { choice, .. } => ChoiceState::Waiting(choice),
            PendingChoice::Highlight { choice, .. } => ChoiceState::Highlighted(choice),
        }
    }

    /// When time alone changes something.
    pub fn deadline(&self, now: u64) -> Option<u64> {
        let held = match self.held {
            PendingChoice::None => None,
            PendingChoice::Letter { at, .. } => Some(at + self.pace.lone_ms),
            PendingChoice::Highlight { .. } if self.pace.strict => None,
            PendingChoice::Highlight { at, .. } => Some(at + CONFIRM_MS.end() + 1),
        };
        held.or_else(|| self.armed_at().filter(|at| *at > now))
    }

    pub fn step(&mut self, stimulus: GuardInput, now: u64) -> GuardResult {
        self.lapse(now);
        match stimulus {
            GuardInput::Letter(letter) => self.letter(letter, now, false),
            GuardInput::Repeat(letter) => self.repeat(letter, now),
            GuardInput::Enter => self.enter(now),
            GuardInput::Up => self.arrow(now, |at, len| at.map_or(len - 1, |at| (at + len - 1) % len)),
            GuardInput::Down => self.arrow(now, |at, len| at.map_or(0, |at| (at + 1) % len)),
            GuardInput::Other => {
                self.take_back();
                GuardResult::Nothing
            }
            GuardInput::Shown => {
                self.shown.get_or_insert(now);
                GuardResult::Nothing
            }
            GuardInput::Fence => {
                // An answer that comes after the panel was armed by time must not disarm it under a finger.
                if !self.is_armed(now) {
                    self.answered.get_or_insert(now);
                }
                GuardResult::Nothing
            }
            GuardInput::Unsettled => {
                self.unsettled = Some(now);
                // What was typed decides nothing any more; where more follows, it is its beginning. Where no time counts, what is
                // highlighted stays so.
                if !self.pace.strict {
                    self.held = PendingChoice::None;
                }
                GuardResult::Nothing
            }
            GuardInput::Time => self.tick(now),
        }
    }

    /// What text belongs to the draft when something other than a key ends the wait: a paste, for one.
    pub fn give_back(&mut self) -> String {
        self.held = PendingChoice::None;
        std::mem::take(&mut self.typed)
    }

    /// What was held, and what was typed before, is nothing any more.
    fn take_back(&mut self) {
        self.held = PendingChoice::None;
        self.typed.clear();
    }

    /// What is too old to be confirmed, or to be the beginning of anything.
    fn lapse(&mut self, now: u64) {
        let old = |at: u64| now > at + CONFIRM_MS.end();
        if self.pace.strict {
            if self.only_marks && self.last_text.is_none_or(old) {
                self.typed.clear();
            }
            return;
        }
        let is_over = match self.held {
            PendingChoice::None => self.last_text.is_none_or(old),
            PendingChoice::Letter { .. } => false,
            PendingChoice::Highlight { at, .. } => old(at),
        };
        if is_over {
            self.take_back();
        }
    }

    /// A letter stood alone: only the passing of time says so, not a key that comes after it.
    fn tick(&mut self, now: u64) -> GuardResult {
        let PendingChoice::Letter { choice, at } = self.held else { return GuardResult::Nothing };
        let alone = at + self.pace.lone_ms;
        if now < alone {
            return GuardResult::Nothing;
        }
        if now > alone + LATE_MS {
            self.held = PendingChoice::Letter { choice, at: now };
            return GuardResult::Nothing;
        }
        if self.confirm(choice) == Confirm::Letter {
            self.take_back();
            return GuardResult::Decided(choice);
        }
        self.held = PendingChoice::Highlight { choice, at };
        GuardResult::Nothing
    }

    fn letter(&mut self, letter: char, now: u64, repeats: bool) -> GuardResult {
        let close = self.is_close(now);
        let waits = matches!(self.held, PendingChoice::Letter { .. });
        let follows = self.pace.strict && !self.typed.is_empty() && !self.only_marks;
        self.last_text = Some(now);
        self.only_marks = false;
        self.typed.push(letter);
        let choice = self.keys.iter().position(|key| key.letter == letter);
        match choice.filter(|_| !close && !waits && !follows && !repeats && self.is_armed(now)) {
            None => GuardResult::Draft(self.give_back()),
            Some(choice) => {
                self.held = if self.pace.strict {
                    PendingChoice::Highlight { choice, at: now }
                } else {
                    PendingChoice::Letter { choice, at: now }
                };
                GuardResult::Nothing
            }
        }
    }

    /// A key that is held decides nothing, and is no text: what was pressed is taken back. Of another key it is the text it was.
    fn repeat(&mut self, letter: char, now: u64) -> GuardResult {
        let is_own = match self.held {
            PendingChoice::Letter { choice, .. } | PendingChoice::Highlight { choice, .. } => self.keys[choice].letter == letter,
            PendingChoice::None => self.typed.is_empty() && self.is_armed(now),
        };
        if !is_own {
            return self.letter(letter, now, true);
        }
        self.take_back();
        GuardResult::Nothing
    }

    fn enter(&mut self, now: u64) -> GuardResult {
        let (choice, at) = match self.held {
            PendingChoice::None => return GuardResult::Nothing,
            PendingChoice::Letter { choice, at } | PendingChoice::Highlight { choice, at } => (choice, at),
        };
        let waited = now.saturating_sub(at);
        // Two keys in one burst: no hand does that.
        if waited < MACHINE_MS {
            let typed = self.give_back();
            return if typed.is_empty() { GuardResult::Nothing } else { GuardResult::Draft(typed) };
        }
        let in_time = match self.confirm(choice) {
            _ if self.pace.strict => true,
            Confirm::Letter => true,
            Confirm::LetterThenEnter => CONFIRM_MS.contains(&waited),
        };
        if !in_time || !self.is_armed(now) {
            return GuardResult::Nothing;
        }
        self.take_back();
        GuardResult::Decided(choice)
    }

    fn arrow(&mut self, now: u64, to: impl Fn(Option<usize>, usize) -> usize) -> GuardResult {
        if !self.is_armed(now) || self.keys.is_empty() {
            return GuardResult::Nothing;
        }
        let from = match self.held {
            PendingChoice::Highlight { choice, .. } => Some(choice),
            PendingChoice::None | PendingChoice::Letter { .. } => None,
        };
        self.take_back();
        self.held = PendingChoice::Highlight { choice: to(from, self.keys.len()), at: now };
        GuardResult::Nothing
    }

    /// A choice that was pointed at: highlighted, as an arrow does it.
    pub fn point(&mut self, choice: usize, now: u64) {
        if self.is_armed(now) && choice < self.keys.len() {
            self.take_back();
            self.held = PendingChoice::Highlight { choice, at: now };
        }
    }
}
