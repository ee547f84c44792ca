//! Type-ahead guard: decides whether a key answers a prompt or belongs to typed text.
//!
//! The guard is pure: it turns inputs with their times into results. Times are milliseconds since the start of the
//! screen. It protects against keys of text that the user was already typing, not against hasty answers.
//!
//! **Armed.** A prompt is armed when the terminal has answered the status request for its first frame, or 500 ms
//! (`arming_ms`) after that frame, but not in the first second after the user sent a message. It is disarmed for 300 ms
//! after a change of focus or size, and after a resume.
//!
//! **Alone.** A letter is alone if no other printable key was pressed in the 350 ms before it.
//!
//! | state | input | next state or result |
//! |---|---|---|
//! | any | a letter that is not alone and differs from the previous one | *text*: everything typed goes to the draft |
//! | none, marked | a letter of a choice, alone, before the prompt is armed | marked |
//! | none, marked | the same, armed | filling; marked if the choice needs Enter |
//! | none | the letter that answered the previous prompt, less than 450 ms after it | marked |
//! | none, marked | the digit of a row, alone | marked |
//! | none, marked | a letter or digit that is not a choice, alone | none; the valid keys are shown |
//! | any | a letter that only shows something (pages, explains, wraps), alone or repeated | performed at once, armed or not |
//! | marked | the same letter again, 40 ms or more after it, armed | filling; still marked if the choice needs Enter |
//! | filling | the same letter again | filling; decided at least 60 ms after it |
//! | filling | 350 ms passed | *decided* |
//! | filling, marked | Enter, armed, 40 ms or more after the letter | *decided*, within the times below |
//! | filling | the same letter less than 40 ms after it (a held key, or a paste) | marked |
//! | marked | the same, a second time; a reported repeat; three presses less than 120 ms apart | none |
//! | filling | a scroll key, focus, size, resume | marked |
//! | any | an arrow or a click, armed | marked |
//! | none, with a preset choice | Enter, 700 ms after the first frame, 350 ms after any text or other Enter | *decided* |
//! | any | Backspace or another key that types no text | none |
//!
//! Choices that need Enter (high and critical risk, and everything that is saved) are decided by Enter from 80 ms to 5
//! s after their letter, but not in the first 250 ms after the prompt was armed, because nobody can have read it by
//! then. Other marks last 30 s. With `guard = "strict"` every choice needs Enter, and no time limit applies except that
//! the prompt must be armed.

mod fence;
#[cfg(test)]
pub(crate) mod key_streams;
#[cfg(test)]
mod tests;

pub(crate) use fence::Fence;

/// Minimum pause before a letter that counts as alone, and the delay that confirms a choice.
pub(crate) const ALONE_MS: u64 = 350;
/// Default time after the first frame at which a prompt is armed if the terminal does not respond.
pub(crate) const ARMING_MS: u64 = 500;
/// Default arming time in strict mode.
const UNANSWERED_MS: u64 = 1500;
/// Time during which input has no effect after a change of focus or size, or a resume.
pub(crate) const UNSETTLED_MS: u64 = 300;
/// Time after the letter of a choice within which Enter is accepted.
pub(crate) const ENTER_MS: std::ops::RangeInclusive<u64> = 80..=5000;
/// Minimum time between arming a choice and the Enter that confirms it, in milliseconds.
const REACTION_MS: u64 = 250;
/// Minimum time on the screen before Enter confirms a preset choice, in milliseconds. A held key repeats earlier.
const PRESET_MS: u64 = 700;
/// Lifetime of any other highlight.
const MARK_MS: u64 = 30_000;
/// Period in which letters without effect can still become the start of text, in milliseconds.
const TYPED_MS: u64 = 5000;
/// Maximum interval between two key presses that come from a held key or a machine, in milliseconds.
pub(crate) const MACHINE_MS: u64 = 40;
/// Maximum interval between three presses that come from a held key, in milliseconds.
const TRAIN_MS: u64 = 120;
/// Minimum time between the last press of a letter and its confirmation, in milliseconds. A held key repeats earlier.
const SECOND_MS: u64 = 60;
/// Time during which the letter of the last answer only highlights a choice of the next prompt.
const ECHO_MS: u64 = 450;
/// Time during which the letter of the last answer is ignored in an empty draft, unless more text
/// follows.
const DRAFT_ECHO_MS: u64 = 700;
/// Minimum time without a key before a prompt takes the focus, in milliseconds.
pub(crate) const IDLE_MS: u64 = 1000;
/// Maximum delay of a timer, in milliseconds. If a timer fires later, an unread key may have been pressed before it.
const LATE_MS: u64 = 150;
/// Number of animation steps of a choice that is being confirmed.
pub(crate) const STEPS: u64 = 4;
/// Maximum number of stored letters of a held key.
const MAX_TYPED: usize = 1000;

/// Timing of the guard.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct GuardTiming {
    /// Whether every choice needs its key and Enter, with no other time limits.
    pub strict: bool,
    /// Time in milliseconds from the first frame until the prompt is armed, if the terminal does not respond.
    pub arming_ms: u64,
    /// Time in milliseconds after which a letter decides, unless Enter confirms it earlier.
    pub lone_ms: u64,
}

impl Default for GuardTiming {
    fn default() -> Self {
        Self { strict: false, arming_ms: ARMING_MS, lone_ms: ALONE_MS }
    }
}

/// Confirmation that a choice needs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Confirm {
    /// None: the choice only changes the view.
    Immediate,
    /// The letter alone, after a short delay.
    Letter,
    /// The letter (or an arrow), then Enter.
    LetterThenEnter,
}

/// Key of a choice and its confirmation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ChoiceKey {
    pub letter: char,
    pub confirm: Confirm,
}

/// Input while the panel has keyboard focus.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum GuardInput {
    /// A printable character without ctrl or alt.
    Letter(char),
    /// The same character from a held key, if the terminal reports repeats.
    Repeat(char),
    Enter,
    Up,
    Down,
    /// A scroll key, which does not change the highlight.
    Scroll,
    /// Any other key that does not type text. It cancels a waiting letter.
    Other,
    /// The first frame with the panel was sent to the terminal.
    Shown,
    /// The terminal responded: later input was typed with the panel on the screen.
    Fence,
    /// The focus returned, the window was resized, or the process was resumed.
    Unsettled,
    /// A timer has elapsed; no key was pressed.
    Time,
}

/// Result of an input.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum GuardResult {
    Nothing,
    /// The choice with this index is decided.
    Decided(usize),
    /// These characters belong to the draft, in this order. The prompt gives up keyboard focus.
    Draft(String),
    /// This key is not a choice. The valid keys must be shown.
    NoChoice(char),
}

/// State of the choices, for drawing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ChoiceState {
    /// Not armed yet; no choice is possible.
    Arming,
    Ready,
    /// A letter is being confirmed: the choice index, and the number of `STEPS` that have passed.
    Waiting(usize, u64),
    /// A choice is highlighted; Enter confirms it.
    Highlighted(usize),
}

/// Pressed choice and the time of the press.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum PendingChoice {
    None,
    /// Decided once its delay has passed.
    Filling {
        choice: usize,
        at: u64,
    },
    /// Waits for Enter, or for the same letter again.
    Marked {
        choice: usize,
        at: u64,
    },
}

/// State of one prompt while it has keyboard focus.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Guard {
    keys: Vec<ChoiceKey>,
    /// Number of leading choices with a row, which a digit highlights.
    rows: usize,
    pace: GuardTiming,
    shown: Option<u64>,
    answered: Option<u64>,
    unsettled: Option<u64>,
    last_text: Option<u64>,
    held: PendingChoice,
    /// Index of the choice that Enter alone confirms, until another key is pressed.
    preset: Option<usize>,
    /// Time of the last Enter while there was such a choice.
    last_enter: Option<u64>,
    /// Text keys without effect so far. They become the start of text if more follows.
    typed: String,
    /// Whether the last text keys only highlighted choices, and no other text was typed.
    only_marks: bool,
    /// Whether the typed text already had an effect, or was typed elsewhere. It then becomes the start of text only if
    /// more text follows immediately.
    acted: bool,
    /// Numbers of presses at machine speed, and at the repeat rate of a held key.
    machine: u8,
    train: u8,
    echo: Option<Echo>,
    /// Time at which the user sent the draft, after which more text may follow.
    sent: Option<u64>,
}

/// Letter of the last answer and its time. A press soon afterwards belongs to that answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Echo {
    pub letter: char,
    pub at: u64,
}

impl Echo {
    fn matches(self, letter: char, now: u64) -> bool {
        self.letter == letter && now.saturating_sub(self.at) < ECHO_MS
    }

    /// Returns whether a letter in an empty draft repeats the key of the last answer. The time limit is longer than in
    /// a prompt, because the letter has no effect.
    pub(crate) fn is_in_draft(self, letter: char, now: u64) -> bool {
        self.letter == letter && now.saturating_sub(self.at) < DRAFT_ECHO_MS
    }
}

/// Returns whether a new panel may take keyboard focus without a request from the user.
pub(crate) fn may_take_focus(draft_is_empty: bool, last_key: Option<u64>, now: u64) -> bool {
    draft_is_empty && last_key.is_none_or(|at| now.saturating_sub(at) >= IDLE_MS)
}

impl Guard {
    /// Creates a guard; `last_text` is the time at which the user last typed.
    pub(crate) fn new(keys: Vec<ChoiceKey>, last_text: Option<u64>) -> Self {
        Self {
            keys,
            rows: 0,
            pace: GuardTiming::default(),
            shown: None,
            answered: None,
            unsettled: None,
            last_text,
            held: PendingChoice::None,
            preset: None,
            last_enter: None,
            typed: String::new(),
            only_marks: false,
            acted: false,
            machine: 0,
            train: 0,
            echo: None,
            sent: None,
        }
    }

    /// Returns the guard with other keys.
    #[must_use]
    pub(crate) fn with_keys(self, keys: Vec<ChoiceKey>) -> Self {
        Self { keys, ..self }
    }

    #[must_use]
    pub(crate) fn with_timing(self, pace: GuardTiming) -> Self {
        Self { pace, ..self }
    }

    /// Sets the time of the last change of the window or its focus.
    #[must_use]
    pub(crate) fn with_unsettled_since(self, at: Option<u64>) -> Self {
        Self { unsettled: at, ..self }
    }

    /// Adds text that was typed into a closed panel.
    #[must_use]
    pub(crate) fn with_typed(self, typed: String) -> Self {
        Self { acted: !self.pace.strict && !typed.is_empty(), typed, ..self }
    }

    /// Disarms the prompt when it loses keyboard focus. The highlight is removed, and the next frame arms the prompt.
    pub(crate) fn disarm(&mut self) {
        (self.shown, self.answered) = (None, None);
        self.take_back();
    }

    /// Sets the letter of the last answer.
    #[must_use]
    pub(crate) fn with_echo(self, echo: Option<Echo>) -> Self {
        Self { echo, ..self }
    }

    /// Sets the time at which the user sent the draft.
    #[must_use]
    pub(crate) fn with_sent(self, sent: Option<u64>) -> Self {
        Self { sent, ..self }
    }

    /// Sets the choice that Enter alone confirms. The key that opened the prompt was its letter.
    pub(crate) fn set_preset(&mut self, choice: Option<usize>) {
        self.preset = choice.filter(|choice| *choice < self.keys.len() && !self.pace.strict);
    }

    /// Returns whether the first frame was sent to the terminal.
    pub(crate) fn is_shown(&self) -> bool {
        self.shown.is_some()
    }

    pub(crate) fn is_strict(&self) -> bool {
        self.pace.strict
    }

    /// Sets the confirmation of each choice, in the order of the keys.
    pub(crate) fn set_confirms(&mut self, confirms: &[Confirm]) {
        for (key, confirm) in self.keys.iter_mut().zip(confirms) {
            key.confirm = *confirm;
        }
    }

    /// Sets the number of leading choices with their own row.
    pub(crate) fn set_rows(&mut self, rows: usize) {
        self.rows = rows;
    }

    fn confirm(&self, choice: usize) -> Confirm {
        let key = self.keys[choice];
        // A typed digit is more likely part of a number than a key.
        if self.pace.strict || key.letter.is_ascii_digit() { Confirm::LetterThenEnter } else { key.confirm }
    }

    /// Returns the time from which choices take effect, if known.
    fn armed_at(&self) -> Option<u64> {
        let base = match (self.shown, self.answered) {
            (None, _) => return None,
            (Some(_), Some(answered)) => answered,
            (Some(shown), None) if self.pace.strict => shown + UNANSWERED_MS,
            (Some(shown), None) => shown + self.pace.arming_ms,
        };
        // A key pressed soon after a message may be the start of another one.
        let base = self.sent.map_or(base, |at| base.max(at + IDLE_MS));
        Some(self.unsettled.map_or(base, |at| base.max(at + UNSETTLED_MS)))
    }

    pub(crate) fn is_armed(&self, now: u64) -> bool {
        self.armed_at().is_some_and(|at| now >= at)
    }

    /// Returns whether the window has been unchanged long enough.
    pub(crate) fn is_settled(&self, now: u64) -> bool {
        self.unsettled.is_none_or(|at| now >= at + UNSETTLED_MS)
    }

    /// Returns whether text was typed just before.
    fn is_close(&self, now: u64) -> bool {
        self.last_text.is_some_and(|at| now.saturating_sub(at) < ALONE_MS)
    }

    /// Returns whether a text key without effect belongs to the panel: no text was typed just before it, except other
    /// such keys. If text follows immediately, the key becomes part of that text.
    pub(crate) fn mark(&mut self, letter: char, now: u64) -> bool {
        // A letter and a space are the start of text, even if the letter only changed the view.
        let ends_word = letter == ' ' && self.is_close(now) && self.typed.ends_with(char::is_alphabetic);
        let among_marks = (self.only_marks || self.acted) && !ends_word;
        let alone = among_marks || (!self.is_close(now) && (!self.pace.strict || self.typed.is_empty()));
        if !self.is_armed(now) || !alone || matches!(self.held, PendingChoice::Filling { .. }) {
            return false;
        }
        // Earlier letters without effect are kept, because they are the start of text that follows.
        if self.acted && !self.is_close(now) {
            self.typed.clear();
        }
        self.held = PendingChoice::None;
        self.last_text = Some(now);
        self.only_marks = among_marks || self.typed.is_empty();
        self.acted = false;
        self.typed.push(letter);
        true
    }

    /// Returns whether a choice waits for its delay or for Enter.
    pub(crate) fn is_choice_pending(&self) -> bool {
        self.held != PendingChoice::None
    }

    pub(crate) fn choice_state(&self, now: u64) -> ChoiceState {
        match self.held {
            PendingChoice::None if self.is_armed(now) => self.preset.map_or(ChoiceState::Ready, ChoiceState::Highlighted),
            PendingChoice::None => ChoiceState::Arming,
            PendingChoice::Filling { choice, at } => {
                let passed = now.saturating_sub(at) * STEPS / self.pace.lone_ms.max(1);
                ChoiceState::Waiting(choice, passed.min(STEPS))
            }
            PendingChoice::Marked { choice, .. } => ChoiceState::Highlighted(choice),
        }
    }

    /// Returns the time at which a timer changes the state.
    pub(crate) fn deadline(&self, now: u64) -> Option<u64> {
        let held = match self.held {
            PendingChoice::None => None,
            PendingChoice::Filling { at, .. } => {
                let mut steps = (1..=STEPS).map(|step| at + (self.pace.lone_ms * step).div_ceil(STEPS));
                steps.find(|step| *step > now).or(Some(at + self.pace.lone_ms))
            }
            PendingChoice::Marked { .. } if self.pace.strict => None,
            PendingChoice::Marked { choice, at } => Some(at + self.highlight_lifetime(choice) + 1),
        };
        held.into_iter().chain(self.armed_at().filter(|at| *at > now)).min()
    }

    /// Returns the lifetime of a highlight.
    fn highlight_lifetime(&self, choice: usize) -> u64 {
        if self.confirm(choice) == Confirm::LetterThenEnter { *ENTER_MS.end() } else { MARK_MS }
    }

    pub(crate) fn step(&mut self, input: GuardInput, now: u64) -> GuardResult {
        self.expire_letters(now);
        match input {
            GuardInput::Letter(letter) => return self.on_char(letter, now, false),
            GuardInput::Repeat(letter) => return self.on_char(letter, now, true),
            GuardInput::Enter => return self.on_enter(now),
            GuardInput::Time => return self.tick(now),
            GuardInput::Up => self.arrow(now, |at, len| at.map_or(len - 1, |at| (at + len - 1) % len)),
            GuardInput::Down => self.arrow(now, |at, len| at.map_or(0, |at| (at + 1) % len)),
            GuardInput::Other => self.take_back(),
            GuardInput::Scroll => self.stop_filling(),
            GuardInput::Shown => {
                self.shown.get_or_insert(now);
            }
            GuardInput::Fence => {
                // A response that arrives after arming by timeout must not disarm the prompt while the user presses a
                // key.
                if !self.is_armed(now) {
                    self.answered.get_or_insert(now);
                }
            }
            GuardInput::Unsettled => {
                self.unsettled = Some(now);
                self.stop_filling();
                // A choice that needs Enter must be pressed again. In strict mode the highlight stays.
                if let PendingChoice::Marked { choice, .. } = self.held
                    && !self.pace.strict
                    && self.confirm(choice) == Confirm::LetterThenEnter
                {
                    self.held = PendingChoice::None;
                }
            }
        }
        GuardResult::Nothing
    }

    /// Returns and removes the text that belongs to the draft, when an input other than a key, such as a paste, ends
    /// the wait.
    pub(crate) fn take_draft_text(&mut self) -> String {
        self.held = PendingChoice::None;
        std::mem::take(&mut self.typed)
    }

    /// Drops the pressed choice and the typed text.
    fn take_back(&mut self) {
        self.held = PendingChoice::None;
        self.typed.clear();
    }

    /// Turns a choice that is being confirmed into a highlight.
    fn stop_filling(&mut self) {
        if let PendingChoice::Filling { choice, at } = self.held {
            self.held = PendingChoice::Marked { choice, at };
        }
    }

    /// Drops letters that are too old to be confirmed or to be the start of text.
    fn expire_letters(&mut self, now: u64) {
        let is_old = self.last_text.is_none_or(|at| now > at + TYPED_MS);
        if self.pace.strict {
            if is_old && (self.only_marks || self.held == PendingChoice::None) {
                self.typed.clear();
            }
            return;
        }
        if let PendingChoice::Marked { choice, at } = self.held
            && now > at + self.highlight_lifetime(choice)
        {
            self.held = PendingChoice::None;
        }
        let is_over = is_old || self.acted && !self.is_close(now);
        if is_over && !matches!(self.held, PendingChoice::Filling { .. }) {
            self.typed.clear();
        }
    }

    /// Confirms that a letter was alone. Only a timer can confirm it, not a later key.
    fn tick(&mut self, now: u64) -> GuardResult {
        let PendingChoice::Filling { choice, at } = self.held else { return GuardResult::Nothing };
        let full = at + self.pace.lone_ms;
        if now < full {
            return GuardResult::Nothing;
        }
        if now > full + LATE_MS {
            self.held = PendingChoice::Filling { choice, at: now };
            return GuardResult::Nothing;
        }
        if self.confirm(choice) == Confirm::LetterThenEnter {
            // The choice changed its meaning during the confirmation.
            self.held = PendingChoice::Marked { choice, at };
            return GuardResult::Nothing;
        }
        self.take_back();
        GuardResult::Decided(choice)
    }

    fn on_char(&mut self, letter: char, now: u64, is_repeat: bool) -> GuardResult {
        let since = self.last_text.replace(now).map(|at| now.saturating_sub(at));
        self.preset = None;
        let is_same = self.typed.ends_with(letter);
        if is_repeat && (is_same || self.typed.is_empty()) || is_same && since.is_some_and(|since| since < MACHINE_MS) {
            self.hold_press(letter, is_repeat);
            return GuardResult::Nothing;
        }
        let goes_on = self.pace.strict && !self.typed.is_empty() && !self.only_marks;
        let follows = goes_on || since.is_some_and(|since| since < ALONE_MS);
        if !follows && self.acted {
            self.typed.clear();
        }
        (self.only_marks, self.acted) = (false, false);
        self.remember(letter);
        match (follows, is_same) {
            (true, false) => GuardResult::Draft(self.take_draft_text()),
            (true, true) => self.on_repeated_letter(letter, since.unwrap_or(ALONE_MS), now),
            (false, _) => self.begin(letter, now),
        }
    }

    fn remember(&mut self, letter: char) {
        if self.typed.len() < MAX_TYPED {
            self.typed.push(letter);
        }
    }

    /// Handles a press at machine speed, which has no effect. A single such press may have been delayed by a slow
    /// connection; several are a held key or a paste.
    fn hold_press(&mut self, letter: char, is_repeat: bool) {
        self.remember(letter);
        self.machine = self.machine.saturating_add(1);
        if is_repeat || self.machine > 1 {
            self.held = PendingChoice::None;
        }
        self.stop_filling();
    }

    /// Handles another press of the last letter.
    fn on_repeated_letter(&mut self, letter: char, since: u64, now: u64) -> GuardResult {
        let Some(choice) = self.choice(letter) else {
            return if self.is_choice_pending() { GuardResult::Nothing } else { GuardResult::NoChoice(letter) };
        };
        if self.confirm(choice) == Confirm::Immediate {
            return self.perform(choice);
        }
        self.train = if since < TRAIN_MS { self.train.saturating_add(1) } else { 0 };
        if self.train > 1 {
            self.held = PendingChoice::None;
            return GuardResult::Nothing;
        }
        match self.held {
            PendingChoice::Filling { choice: pressed, at } if pressed == choice => {
                let at = at.max((now + SECOND_MS).saturating_sub(self.pace.lone_ms));
                self.held = PendingChoice::Filling { choice, at };
            }
            PendingChoice::Marked { choice: pressed, .. } if pressed == choice => self.press(choice, now),
            PendingChoice::None | PendingChoice::Filling { .. } | PendingChoice::Marked { .. } => {}
        }
        GuardResult::Nothing
    }

    /// Handles a letter without other text keys around it.
    fn begin(&mut self, letter: char, now: u64) -> GuardResult {
        (self.machine, self.train) = (0, 0);
        let choice = self.choice(letter);
        match (self.held, choice) {
            // The delay has passed, but no timer event has arrived yet.
            (PendingChoice::Filling { choice: pressed, .. }, choice) => {
                return if Some(pressed) == choice { GuardResult::Nothing } else { GuardResult::Draft(self.take_draft_text()) };
            }
            (_, Some(choice)) if self.confirm(choice) == Confirm::Immediate => return self.perform(choice),
            (_, Some(choice)) => self.press(choice, now),
            (_, None) => match letter.to_digit(10).map(|digit| digit as usize) {
                Some(row @ 1..) if row <= self.rows => self.held = PendingChoice::Marked { choice: row - 1, at: now },
                Some(_) | None => {
                    self.held = PendingChoice::None;
                    return GuardResult::NoChoice(letter);
                }
            },
        }
        GuardResult::Nothing
    }

    fn choice(&self, letter: char) -> Option<usize> {
        self.keys.iter().position(|key| key.letter == letter)
    }

    fn press(&mut self, choice: usize, now: u64) {
        // A second press of the answer to the previous prompt.
        let is_echo =
            self.held == PendingChoice::None && self.echo.is_some_and(|echo| echo.matches(self.keys[choice].letter, now));
        let fills = self.confirm(choice) == Confirm::Letter && self.is_armed(now) && !is_echo;
        self.held = if fills { PendingChoice::Filling { choice, at: now } } else { PendingChoice::Marked { choice, at: now } };
    }

    /// Performs a choice that only changes the view. Within text, the letter remains text.
    fn perform(&mut self, choice: usize) -> GuardResult {
        self.held = PendingChoice::None;
        self.acted = true;
        GuardResult::Decided(choice)
    }

    fn on_enter(&mut self, now: u64) -> GuardResult {
        let (PendingChoice::Filling { choice, at } | PendingChoice::Marked { choice, at }) = self.held else {
            return self.enter_preset(now);
        };
        let waited = now.saturating_sub(at.max(self.last_text.unwrap_or_default()));
        // Two keys in one burst are not typed by hand.
        if waited < MACHINE_MS {
            let typed = self.take_draft_text();
            return if typed.is_empty() { GuardResult::Nothing } else { GuardResult::Draft(typed) };
        }
        let Some(armed) = self.armed_at().filter(|armed| now >= *armed) else { return GuardResult::Nothing };
        let needs_enter = !self.pace.strict && self.confirm(choice) == Confirm::LetterThenEnter;
        if needs_enter && !(ENTER_MS.contains(&waited) && now >= armed + REACTION_MS) {
            return GuardResult::Nothing;
        }
        self.take_back();
        GuardResult::Decided(choice)
    }

    /// Confirms the preset choice, unless text or another Enter came just before, because the key that opened the
    /// prompt may still be held down.
    fn enter_preset(&mut self, now: u64) -> GuardResult {
        let before = self.last_enter.replace(now);
        let is_alone = before.is_none_or(|at| now.saturating_sub(at) >= ALONE_MS) && !self.is_close(now);
        let is_readable = self.is_armed(now) && self.shown.is_some_and(|shown| now >= shown + PRESET_MS);
        match self.preset.filter(|_| is_readable && is_alone) {
            Some(choice) => {
                self.take_back();
                self.preset = None;
                GuardResult::Decided(choice)
            }
            None => GuardResult::Nothing,
        }
    }

    fn arrow(&mut self, now: u64, to: impl Fn(Option<usize>, usize) -> usize) {
        if !self.is_armed(now) || self.keys.is_empty() {
            return;
        }
        let from = match self.held {
            PendingChoice::Marked { choice, .. } => Some(choice),
            PendingChoice::None => self.preset,
            PendingChoice::Filling { .. } => None,
        };
        self.take_back();
        self.preset = None;
        self.held = PendingChoice::Marked { choice: to(from, self.keys.len()), at: now };
    }

    /// Highlights the choice under the pointer, as an arrow key does.
    pub(crate) fn point(&mut self, choice: usize, now: u64) {
        if self.is_armed(now) && choice < self.keys.len() {
            self.take_back();
            self.preset = None;
            self.held = PendingChoice::Marked { choice, at: now };
        }
    }
}
