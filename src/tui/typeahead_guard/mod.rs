//! Type-ahead guard: decides whether a key answers a prompt or belongs to typed text.
//!
//! The guard is pure: it maps inputs, each with its time, to results. All times are in milliseconds since the screen
//! was opened. The guard protects against keys that belong to text the user was already typing, not against hasty
//! answers.
//!
//! **Armed.** A prompt is armed once the terminal has responded to the status request for its first frame, or 500 ms
//! (`arming_ms`) after that frame, but never within a second of the user sending a message. It is disarmed for 300 ms
//! after a change in window size or focus, and after a resume.
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
//! | any | a letter that only shows something (page, explain, wrap), alone or repeated | acts at once, armed or not |
//! | marked | the same letter again, 40 ms or more after it, armed | filling; still marked if the choice needs Enter |
//! | filling | the same letter again | filling; decided at least 60 ms after it |
//! | filling | 350 ms passed | *decided* |
//! | filling, marked | Enter, armed, 40 ms or more after the letter | *decided*, within the times below |
//! | filling | the same letter less than 40 ms after it (a held key, or a paste) | marked |
//! | marked | the same, a second time; a reported repeat; three presses less than 120 ms apart | none |
//! | filling | a scroll key, focus, size, resume | marked |
//! | any | an arrow or a click, armed | marked |
//! | none, with a preset choice | Enter, 700 ms after the first frame, 350 ms after text or another Enter | *decided* |
//! | none, opened with a letter | Enter, 80 ms or more after that letter, or a letter of a choice | as if it were alone |
//! | any | Backspace or another key that types no text | none |
//!
//! Choices that need Enter (those with high or critical risk, and everything that is saved) are decided by an Enter
//! that follows their letter by 80 ms to 5 s. Such an Enter has no effect in the first 250 ms after the prompt was
//! armed, because nobody can read a prompt in that time. Other choices stay marked for 30 s. With `guard = "strict"`,
//! every choice needs Enter, and the only time limit is that the prompt must be armed.

mod fence;
#[cfg(test)]
pub(crate) mod key_streams;
#[cfg(test)]
mod tests;

pub(crate) use fence::Fence;

/// Minimum pause, in milliseconds, before a letter that counts as alone, and default delay after which such a letter
/// decides.
pub(crate) const ALONE_MS: u64 = 350;
/// Default time, in milliseconds after the first frame, at which a prompt is armed if the terminal does not respond.
pub(crate) const ARMING_MS: u64 = 500;
/// Time, in milliseconds after the first frame, at which a prompt is armed in strict mode if the terminal does not
/// respond.
const UNANSWERED_MS: u64 = 1500;
/// Time, in milliseconds, for which a prompt stays disarmed after a change in window size or focus, or after a resume.
pub(crate) const UNSETTLED_MS: u64 = 300;
/// Range of times, in milliseconds after the letter of a choice, within which Enter confirms the choice.
pub(crate) const ENTER_MS: std::ops::RangeInclusive<u64> = 80..=5000;
/// Minimum time, in milliseconds, between arming a prompt and an Enter that confirms a choice.
const REACTION_MS: u64 = 250;
/// Minimum time, in milliseconds, for which a prompt must be on the screen before Enter confirms a preset choice. A
/// held key repeats sooner.
const PRESET_MS: u64 = 700;
/// Time, in milliseconds, for which a choice that does not require Enter stays highlighted.
const MARK_MS: u64 = 30_000;
/// Time, in milliseconds, for which letters without effect can still turn out to be the start of text.
const TYPED_MS: u64 = 5000;
/// Time, in milliseconds between two key presses, below which they are attributed to a held key or a machine.
pub(crate) const MACHINE_MS: u64 = 40;
/// Time, in milliseconds between successive presses, below which three of them are attributed to a held key.
const TRAIN_MS: u64 = 120;
/// Minimum time, in milliseconds, between a letter's last press and its confirmation. A held key repeats sooner.
const SECOND_MS: u64 = 60;
/// Time, in milliseconds, for which the letter of the last answer only highlights a choice in the next prompt.
const ECHO_MS: u64 = 450;
/// Time, in milliseconds, for which the letter of the last answer is ignored in an empty draft, unless more text
/// follows.
const DRAFT_ECHO_MS: u64 = 700;
/// Minimum time, in milliseconds, without any key before a prompt may take keyboard focus.
pub(crate) const IDLE_MS: u64 = 1000;
/// Maximum delay of a timer, in milliseconds. If the timer fires later than that, a key pressed before it may not have
/// been read yet.
const LATE_MS: u64 = 150;
/// Number of steps in the animation that is shown while a choice is being confirmed.
pub(crate) const STEPS: u64 = 4;
/// Maximum size, in bytes, of the typed text that the guard stores.
const MAX_TYPED: usize = 1000;

/// Timing and strictness of the guard.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct GuardTiming {
    /// Whether every choice requires both its key and Enter. No other time limits then apply.
    pub strict: bool,
    /// Time, in milliseconds after the first frame, at which the prompt is armed if the terminal does not respond.
    pub arming_ms: u64,
    /// Delay, in milliseconds, after which a letter decides, unless Enter confirms it earlier.
    pub lone_ms: u64,
}

impl Default for GuardTiming {
    fn default() -> Self {
        Self { strict: false, arming_ms: ARMING_MS, lone_ms: ALONE_MS }
    }
}

/// Confirmation required to carry out a choice.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Confirm {
    /// No confirmation, because the choice only changes the view.
    Immediate,
    /// The choice's letter alone, after a short delay.
    Letter,
    /// The choice's letter or an arrow key, followed by Enter.
    LetterThenEnter,
}

/// Key of a choice, and how the choice must be confirmed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ChoiceKey {
    pub letter: char,
    pub confirm: Confirm,
}

/// Input that the guard receives while the panel has keyboard focus.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum GuardInput {
    /// Printable character typed without ctrl or alt.
    Letter(char),
    /// Same character again, from a held key whose repetition the terminal reports.
    Repeat(char),
    Enter,
    Up,
    Down,
    /// Scroll key, which leaves the highlight unchanged.
    Scroll,
    /// Any other key that does not type text. It cancels a pending letter.
    Other,
    /// The first frame that shows the panel has been sent to the terminal.
    Shown,
    /// The terminal has responded, so any later input is typed while the panel is on the screen.
    Fence,
    /// The window gained focus or was resized, or the process was resumed.
    Unsettled,
    /// A timer has fired without any key having been pressed.
    Time,
}

/// Result of passing an input to the guard.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum GuardResult {
    Nothing,
    /// The user has decided on the choice with this index.
    Decided(usize),
    /// The text belongs to the draft, and the prompt loses keyboard focus.
    Draft(String),
    /// The key does not belong to any choice, so the valid keys must be shown.
    NoChoice(char),
}

/// State of the choices, used to draw them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ChoiceState {
    /// The prompt is not armed yet.
    Arming,
    Ready,
    /// A letter is being confirmed. Contains the index of its choice and the number of [`STEPS`] that have passed.
    Waiting(usize, u64),
    /// The choice with this index is highlighted and can be confirmed with Enter.
    Highlighted(usize),
}

/// Choice whose key was pressed, and when it was pressed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum PendingChoice {
    None,
    /// The choice will be decided once the delay has passed.
    Filling {
        choice: usize,
        at: u64,
    },
    /// The choice is highlighted and can be confirmed with Enter or the same letter.
    Marked {
        choice: usize,
        at: u64,
    },
}

/// State of a prompt while it has keyboard focus.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Guard {
    keys: Vec<ChoiceKey>,
    /// Number of leading choices that have their own row, which a digit highlights.
    rows: usize,
    pace: GuardTiming,
    shown: Option<u64>,
    answered: Option<u64>,
    unsettled: Option<u64>,
    last_text: Option<u64>,
    held: PendingChoice,
    /// Index of a choice that Enter alone confirms, unless the user has pressed another key.
    preset: Option<usize>,
    /// Time at which Enter was last pressed without a pending choice.
    last_enter: Option<u64>,
    /// Typed characters that have not been added to the draft. If more text follows, they become its start.
    typed: String,
    /// Whether the last text keys only highlighted choices or hunks, with no other text typed in between.
    only_marks: bool,
    /// Whether the typed characters have already had an effect or were typed elsewhere. They then become the start of
    /// text only if more text follows immediately.
    acted: bool,
    /// Number of consecutive presses at machine speed. `train` is the number of presses at the rate at which a held key
    /// repeats.
    machine: u8,
    train: u8,
    echo: Option<Echo>,
    /// Time at which the user last sent the draft. The user may go on to type more text.
    sent: Option<u64>,
    /// Key with which the user opened this dialog from another one.
    opener: Option<Opener>,
}

/// Letter of the last answer, and when it was pressed. Another press soon afterwards is attributed to the same answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Echo {
    pub letter: char,
    pub at: u64,
}

/// Letter with which the user opened a dialog from another one. Another key that follows it is meant for the dialog.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Opener {
    pub letter: char,
    /// Time at which the letter was pressed.
    pub at: u64,
    /// Time from which keys take effect in the dialog behind.
    pub armed: u64,
    /// Time from which Enter may confirm the preset choice, because the user can have read what it confirms.
    pub readable: u64,
}

impl Echo {
    fn matches(self, letter: char, now: u64) -> bool {
        self.letter == letter && now.saturating_sub(self.at) < ECHO_MS
    }

    /// Returns whether a letter in an empty draft is a repeated press of the key that gave the last answer. The time
    /// limit is longer than in a prompt, because ignoring a letter here is harmless.
    pub(crate) fn is_in_draft(self, letter: char, now: u64) -> bool {
        self.letter == letter && now.saturating_sub(self.at) < DRAFT_ECHO_MS
    }
}

/// Returns whether a new panel may take keyboard focus although the user did not request the panel.
pub(crate) fn may_take_focus(draft_is_empty: bool, last_key: Option<u64>, now: u64) -> bool {
    draft_is_empty && last_key.is_none_or(|at| now.saturating_sub(at) >= IDLE_MS)
}

impl Guard {
    /// Creates a guard. `last_text` is the time at which the user last typed text.
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
            opener: None,
        }
    }

    /// Returns the guard with its keys replaced.
    #[must_use]
    pub(crate) fn with_keys(self, keys: Vec<ChoiceKey>) -> Self {
        Self { keys, ..self }
    }

    #[must_use]
    pub(crate) fn with_timing(self, pace: GuardTiming) -> Self {
        Self { pace, ..self }
    }

    /// Returns the guard with the time at which the window or its focus last changed.
    #[must_use]
    pub(crate) fn with_unsettled_since(self, at: Option<u64>) -> Self {
        Self { unsettled: at, ..self }
    }

    /// Returns the guard with text that was typed into a panel that has since been removed.
    #[must_use]
    pub(crate) fn with_typed(self, typed: String) -> Self {
        Self { acted: !self.pace.strict && !typed.is_empty(), typed, ..self }
    }

    /// Disarms the prompt when it loses keyboard focus, and clears the highlight. The next frame can arm the prompt
    /// again.
    pub(crate) fn disarm(&mut self) {
        (self.shown, self.answered) = (None, None);
        self.take_back();
    }

    /// Returns the guard with the letter and time of the last answer.
    #[must_use]
    pub(crate) fn with_echo(self, echo: Option<Echo>) -> Self {
        Self { echo, ..self }
    }

    /// Returns the guard with the time at which the user last sent the draft.
    #[must_use]
    pub(crate) fn with_sent(self, sent: Option<u64>) -> Self {
        Self { sent, ..self }
    }

    /// Records the letter with which the user opened this dialog. Has no effect if the guard is strict.
    pub(crate) fn set_opener(&mut self, opener: Opener) {
        self.opener = Some(opener).filter(|_| !self.pace.strict);
    }

    /// Returns the opener of a dialog that this letter opens. `replaced_at` is the time at which the dialog takes the
    /// place of this one, so that the user has to read it first, or `None` if it does not. Returns `None` if this dialog
    /// is not on the screen yet.
    pub(crate) fn opener_of_next(&self, letter: char, at: u64, replaced_at: Option<u64>) -> Option<Opener> {
        let armed = self.armed_at()?;
        let readable = replaced_at.map_or(armed, |now| armed.max(now)) + REACTION_MS;
        Some(Opener { letter, at, armed, readable })
    }

    /// Returns whether the last text key was the one that opened this dialog.
    fn is_just_opened(&self) -> bool {
        self.opener.is_some_and(|opener| self.last_text == Some(opener.at))
    }

    /// Sets the choice that Enter alone confirms. Has no effect if the guard is strict.
    pub(crate) fn set_preset(&mut self, choice: Option<usize>) {
        self.preset = choice.filter(|choice| *choice < self.keys.len() && !self.pace.strict);
    }

    /// Returns whether the first frame that shows the prompt has been sent to the terminal.
    pub(crate) fn is_shown(&self) -> bool {
        self.shown.is_some()
    }

    pub(crate) fn is_strict(&self) -> bool {
        self.pace.strict
    }

    /// Sets how each choice must be confirmed, in the order of the keys.
    pub(crate) fn set_confirms(&mut self, confirms: &[Confirm]) {
        for (key, confirm) in self.keys.iter_mut().zip(confirms) {
            key.confirm = *confirm;
        }
    }

    /// Sets the number of leading choices that have their own row.
    pub(crate) fn set_rows(&mut self, rows: usize) {
        self.rows = rows;
    }

    fn confirm(&self, choice: usize) -> Confirm {
        let key = self.keys[choice];
        // A typed digit is more likely part of a number than the key of a choice.
        if self.pace.strict || key.letter.is_ascii_digit() { Confirm::LetterThenEnter } else { key.confirm }
    }

    /// Returns the time from which choices take effect, or `None` if the prompt is not on the screen yet.
    fn armed_at(&self) -> Option<u64> {
        let base = match (self.shown, self.answered, self.opener) {
            (None, ..) => return None,
            // The user asked for this dialog, so nothing has to prove that it is on the screen.
            (Some(shown), _, Some(opener)) => shown.max(opener.armed),
            (Some(_), Some(answered), None) => answered,
            (Some(shown), None, None) if self.pace.strict => shown + UNANSWERED_MS,
            (Some(shown), None, None) => shown + self.pace.arming_ms,
        };
        // A key pressed soon after a message may be the start of another message.
        let base = self.sent.map_or(base, |at| base.max(at + IDLE_MS));
        Some(self.unsettled.map_or(base, |at| base.max(at + UNSETTLED_MS)))
    }

    pub(crate) fn is_armed(&self, now: u64) -> bool {
        self.armed_at().is_some_and(|at| now >= at)
    }

    /// Returns whether enough time has passed since the window or its focus last changed.
    pub(crate) fn is_settled(&self, now: u64) -> bool {
        self.unsettled.is_none_or(|at| now >= at + UNSETTLED_MS)
    }

    /// Returns whether the user has typed text within the last [`ALONE_MS`].
    pub(crate) fn is_close(&self, now: u64) -> bool {
        self.last_text.is_some_and(|at| now.saturating_sub(at) < ALONE_MS)
    }

    /// Handles a text key that has an effect on the panel but does not decide. Returns `false` if the key belongs to
    /// typed text instead, because the user typed other text just before. If text follows immediately, the key becomes
    /// part of that text.
    pub(crate) fn mark(&mut self, letter: char, now: u64) -> bool {
        // A letter and a space are the start of text, even if the letter only changed the view.
        let ends_word = letter == ' ' && self.is_close(now) && self.typed.ends_with(char::is_alphabetic);
        let among_marks = (self.only_marks || self.acted) && !ends_word;
        let alone = among_marks || (!self.is_close(now) && (!self.pace.strict || self.typed.is_empty()));
        if !self.is_armed(now) || !alone || matches!(self.held, PendingChoice::Filling { .. }) {
            return false;
        }
        // Earlier letters without effect are kept, because they may be the start of text.
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

    /// Returns whether a choice whose key was pressed is waiting for its delay to pass or for Enter.
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

    /// Returns the next time at which a timer changes the guard's state, if any.
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
        // Letters that only changed the view are text only if more text follows at once.
        let typed = self.last_text.filter(|_| self.acted && !self.typed.is_empty()).map(|at| at + ALONE_MS);
        held.into_iter().chain(self.armed_at().into_iter().chain(typed).filter(|at| *at > now)).min()
    }

    /// Returns the time, in milliseconds, for which a choice stays highlighted.
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
                // If the prompt was already armed by timeout, a late response must not disarm it while the user presses
                // a key.
                if !self.is_armed(now) {
                    self.answered.get_or_insert(now);
                }
            }
            GuardInput::Unsettled => {
                self.unsettled = Some(now);
                self.stop_filling();
                // The key of a choice that needs Enter must be pressed again. In strict mode, the highlight remains.
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

    /// Removes and returns the typed text, which belongs to the draft because input other than a key, such as a paste,
    /// has arrived.
    pub(crate) fn take_draft_text(&mut self) -> String {
        self.held = PendingChoice::None;
        std::mem::take(&mut self.typed)
    }

    /// Discards the pending choice and the typed text.
    fn take_back(&mut self) {
        self.held = PendingChoice::None;
        self.typed.clear();
    }

    /// Stops confirming the pending choice, leaving it highlighted.
    fn stop_filling(&mut self) {
        if let PendingChoice::Filling { choice, at } = self.held {
            self.held = PendingChoice::Marked { choice, at };
        }
    }

    /// Discards letters that are too old to be confirmed or to be the start of text.
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

    /// Decides on the pending choice if no other key has followed its letter for long enough. Only a timer can decide,
    /// never a later key.
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
            // The choice needs Enter since its letter was pressed.
            self.held = PendingChoice::Marked { choice, at };
            return GuardResult::Nothing;
        }
        self.take_back();
        GuardResult::Decided(choice)
    }

    fn on_char(&mut self, letter: char, now: u64, is_repeat: bool) -> GuardResult {
        let is_for_opened = self.is_just_opened() && self.choice(letter).is_some();
        let since = self.last_text.replace(now).map(|at| now.saturating_sub(at));
        let is_same = self.typed.ends_with(letter);
        let is_held = is_repeat && (is_same || self.typed.is_empty()) || is_same && since.is_some_and(|since| since < MACHINE_MS);
        if !is_held && is_same && self.opens_again(letter, now) {
            self.remember(letter);
            return GuardResult::Nothing;
        }
        self.preset = None;
        if is_held {
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
            // The typed letters are kept: if more text follows, all of them go to the draft.
            (true, false) if is_for_opened && since.is_none_or(|since| since >= MACHINE_MS) => self.begin(letter, now),
            (true, false) => GuardResult::Draft(self.take_draft_text()),
            (true, true) => self.on_repeated_letter(letter, since.unwrap_or(ALONE_MS), now),
            (false, _) => self.begin(letter, now),
        }
    }

    /// Returns whether the letter is a second press of the key that opened this dialog, which changes nothing.
    fn opens_again(&mut self, letter: char, now: u64) -> bool {
        let is_choice = self.choice(letter).is_some();
        match &mut self.opener {
            Some(opener) if !is_choice && opener.letter == letter && now.saturating_sub(opener.at) < ECHO_MS => {
                opener.at = now;
                true
            }
            Some(_) | None => false,
        }
    }

    fn remember(&mut self, letter: char) {
        if self.typed.len() < MAX_TYPED {
            self.typed.push(letter);
        }
    }

    /// Handles a press that follows the previous one at machine speed and therefore has no effect. A single such press
    /// may have been delayed by a slow connection, but several in a row come from a held key or a paste.
    fn hold_press(&mut self, letter: char, is_repeat: bool) {
        self.remember(letter);
        self.machine = self.machine.saturating_add(1);
        if is_repeat || self.machine > 1 {
            self.held = PendingChoice::None;
        }
        self.stop_filling();
    }

    /// Handles another press of the same letter.
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

    /// Handles a letter that was not typed immediately after other text.
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
        // This may be a second press of the key that answered the previous prompt.
        let is_echo =
            self.held == PendingChoice::None && self.echo.is_some_and(|echo| echo.matches(self.keys[choice].letter, now));
        let fills = self.confirm(choice) == Confirm::Letter && self.is_armed(now) && !is_echo;
        self.held = if fills { PendingChoice::Filling { choice, at: now } } else { PendingChoice::Marked { choice, at: now } };
    }

    /// Carries out a choice that only changes the view. If text follows, the letter still becomes part of it.
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
        // A user cannot type two keys so quickly.
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

    /// Confirms the preset choice, unless the user typed text or pressed Enter just before, because the key that opened
    /// the prompt may still be held down. If a letter opened it, Enter is another key.
    fn enter_preset(&mut self, now: u64) -> GuardResult {
        let before = self.last_enter.replace(now);
        let opener = self.opener.filter(|_| self.is_just_opened());
        let is_close = opener.map_or(self.is_close(now), |opener| now < opener.at + ENTER_MS.start());
        let is_alone = before.is_none_or(|at| now.saturating_sub(at) >= ALONE_MS) && !is_close;
        let readable = opener.map(|opener| opener.readable).or(self.shown.map(|shown| shown + PRESET_MS));
        let is_readable = self.is_armed(now) && readable.is_some_and(|at| now >= at);
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

    /// Highlights the choice under the pointer, as an arrow key would.
    pub(crate) fn point(&mut self, choice: usize, now: u64) {
        if self.is_armed(now) && choice < self.keys.len() {
            self.take_back();
            self.preset = None;
            self.held = PendingChoice::Marked { choice, at: now };
        }
    }
}
