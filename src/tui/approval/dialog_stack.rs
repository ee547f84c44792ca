//! The questions that wait, and which of them has the keyboard.

use super::{ChoiceAction, Dialog, Question};
use crate::protocol::{ApprovalId, CallId, RuleTold};
use crate::tui::composer::Field;
use crate::tui::inbox::Inbox;
use crate::tui::typeahead_guard::{Echo, Fence, Guard, GuardInput, GuardTiming, Key};

#[derive(Default)]
pub struct DialogStack {
    pub(super) list: Vec<Dialog>,
    pub(super) current: usize,
    pub(super) open: bool,
    /// The person put it off: it does not open by itself any more.
    put_off: bool,
    /// The user typed over it: it stays on the screen without the keyboard.
    stays: bool,
    fence: Fence,
    /// The list of all of them, in the place of one.
    inbox: Option<Inbox>,
    /// So many came so far.
    came: u64,
    pace: GuardTiming,
    /// When the window got focus or was changed last.
    unsettled: Option<u64>,
    /// The letter of the last answer.
    echo: Option<Echo>,
    /// Typed at a question that is no more; it belongs to what comes next.
    orphaned: String,
}

impl DialogStack {
    pub fn paced(pace: GuardTiming) -> Self {
        Self { pace, ..Self::default() }
    }

    pub fn is_empty(&self) -> bool {
        self.list.is_empty()
    }

    pub fn len(&self) -> usize {
        self.list.len()
    }

    /// How many of them a running task waits for.
    pub fn approvals(&self) -> usize {
        self.list.iter().filter(|panel| matches!(panel.question, Question::Approval(_))).count()
    }

    /// Whether a question, or the list of them, has the keyboard.
    pub fn is_open(&self) -> bool {
        self.open || self.inbox.is_some()
    }

    pub fn inbox(&self) -> Option<&Inbox> {
        self.inbox.as_ref()
    }

    /// The list, and what it is a list of.
    pub fn inbox_mut(&mut self) -> Option<(&mut Inbox, &[Dialog])> {
        self.inbox.as_mut().map(|inbox| (inbox, self.list.as_slice()))
    }

    /// Opens the list of all that waits.
    pub fn open_inbox(&mut self, last_text: Option<u64>) {
        self.close();
        let guard = self.guard(Inbox::keys(), last_text);
        self.inbox = Some(Inbox::new(guard, self.current().map(|panel| panel.number)));
        self.fence.want();
    }

    /// The list is armed anew: something else stands in it.
    pub fn arm_inbox(&mut self, last_text: Option<u64>) {
        let guard = self.guard(Inbox::keys(), last_text);
        if let Some(inbox) = &mut self.inbox {
            inbox.guard = guard;
            self.fence.want();
        }
    }

    /// How keys are taken from now on.
    fn guard(&mut self, keys: Vec<Key>, last_text: Option<u64>) -> Guard {
        let typed = std::mem::take(&mut self.orphaned);
        Guard::new(keys, last_text).paced(self.pace).unsettled(self.unsettled).after(self.echo).carrying(typed)
    }

    /// An answer was given by this letter, pressed at this time.
    pub fn answered_by(&mut self, letter: char, at: u64) {
        self.echo = Some(Echo { letter, at });
    }

    /// Whether this letter is the last answer, pressed twice.
    pub fn is_echo(&self, letter: char, now: u64) -> bool {
        self.echo.is_some_and(|echo| echo.is_in_draft(letter, now))
    }

    /// The window got focus, or was changed.
    pub fn unsettle(&mut self, now: u64) {
        self.unsettled = Some(now);
    }

    /// What is new has a number and a time from here on; where nothing has the keyboard, what was typed at what is gone.
    pub fn settle(&mut self, now: u64) -> String {
        for panel in self.list.iter_mut().filter(|panel| panel.came.is_none()) {
            self.came += 1;
            panel.number = self.came;
            panel.begin_wait(now);
        }
        self.fit_disk(now);
        if self.is_open() { String::new() } else { std::mem::take(&mut self.orphaned) }
    }

    /// When a key counts, or time alone decides something.
    pub fn deadline(&self, now: u64) -> Option<u64> {
        let of_inbox = self.inbox.as_ref().and_then(|inbox| inbox.deadline(&self.list, now));
        let of_key = || self.open().and_then(|panel| panel.guard.deadline(now).filter(|_| !panel.has_field()));
        of_inbox.or_else(of_key).into_iter().chain(self.next_count(now)).min()
    }

    /// What is typed at the place that has the keyboard is kept for the place that gets it.
    pub(super) fn leave(&mut self) {
        let typed = match (&mut self.inbox, self.open) {
            (Some(inbox), _) => inbox.guard.give_back(),
            (None, true) => self.open_mut().map(|panel| panel.guard.give_back()).unwrap_or_default(),
            (None, false) => String::new(),
        };
        self.orphaned.push_str(&typed);
    }

    /// The place of the current one, counted from one.
    pub fn place(&self) -> usize {
        self.current + 1
    }

    pub fn iter(&self) -> impl Iterator<Item = &Dialog> {
        self.list.iter()
    }

    pub fn open(&self) -> Option<&Dialog> {
        self.list.get(self.current).filter(|_| self.open).map(Dialog::shown)
    }

    /// The one that stays on the screen without the keyboard.
    pub fn staying(&self) -> Option<&Dialog> {
        self.list.get(self.current).filter(|_| self.stays && !self.is_open()).map(Dialog::shown)
    }

    pub fn staying_mut(&mut self) -> Option<&mut Dialog> {
        let stays = self.stays && !self.is_open();
        self.list.get_mut(self.current).filter(|_| stays).map(Dialog::shown_mut)
    }

    /// The call whose question is shown.
    pub fn asked_call(&self) -> Option<&CallId> {
        self.list.get(self.current).filter(|panel| (self.open || self.stays) && panel.is_card()).and_then(Dialog::call)
    }

    pub fn open_mut(&mut self) -> Option<&mut Dialog> {
        let open = self.open;
        self.list.get_mut(self.current).filter(|_| open).map(Dialog::shown_mut)
    }

    /// Opens the choice of a rule for the open question; whether there is one.
    pub fn open_always(&mut self, last_text: Option<u64>) -> bool {
        let opened = self.list.get_mut(self.current).is_some_and(Dialog::open_always);
        if opened {
            self.arm_anew(last_text);
        }
        opened
    }

    /// Opens what there is to read about the open question, or its next page.
    pub fn look(&mut self, last_text: Option<u64>) {
        let Some(panel) = self.list.get_mut(self.current) else { return };
        // The letter that opens it is a letter all the same where text follows.
        let typed = panel.shown_mut().guard.give_back();
        if panel.front.is_some() {
            panel.turn_always(ChoiceAction::Look);
        } else if !panel.open_reading() {
            return;
        }
        self.orphaned.push_str(&typed);
        self.arm_anew(last_text);
    }

    /// Back from the choice of a rule to its question; whether it was open.
    pub fn close_always(&mut self, last_text: Option<u64>) -> bool {
        let closed = self.list.get_mut(self.current).is_some_and(Dialog::close_always);
        if closed {
            self.arm_anew(last_text);
        }
        closed
    }

    /// Opens the rule of the part that is marked; whether there is one.
    pub fn open_rule(&mut self, last_text: Option<u64>) -> bool {
        let opened = self.list.get_mut(self.current).is_some_and(Dialog::open_rule);
        if opened {
            self.arm_anew(last_text);
        }
        opened
    }

    pub fn turn_always(&mut self, act: ChoiceAction, last_text: Option<u64>) {
        if let Some(panel) = self.list.get_mut(self.current) {
            panel.turn_always(act);
            self.arm_anew(last_text);
        }
    }

    /// Opens the field for a rule in the person's own words.
    pub fn write_rule(&mut self) {
        if let Some(panel) = self.open_mut()
            && let Question::Keep(keeping) = &panel.question
        {
            let mut field = Field::new();
            field.insert(&keeping.written());
            panel.words = Some(field);
        }
    }

    /// The policy said something of a rule.
    pub fn rule_told(&mut self, id: &ApprovalId, told: RuleTold, last_text: Option<u64>) {
        let own = |panel: &Dialog| matches!(&panel.question, Question::Approval(approval) if approval.approval_id == *id);
        let Some(at) = self.list.iter().position(own) else { return };
        let is_new = matches!(told, RuleTold::Offered { .. });
        if self.list[at].rule_told(told) && is_new && at == self.current {
            self.arm_anew(last_text);
        }
    }

    /// Which question and offer it is to be asked for what the rule reaches.
    pub fn wants_reach(&self) -> Option<(ApprovalId, usize)> {
        match &self.open()?.question {
            Question::Keep(keeping) => keeping.wants_reach(),
            _ => None,
        }
    }

    /// What is shown now is something else: keys count only once it is on the screen. While the list of all stands there they are for
    /// that, and it arms when it is opened.
    pub(super) fn arm_anew(&mut self, last_text: Option<u64>) {
        if self.inbox.is_some() {
            return;
        }
        self.leave();
        self.arm(last_text);
    }

    /// Something else was in front of it: keys count once it is on the screen again. What is written in it stays.
    pub fn arm_again(&mut self, last_text: Option<u64>) {
        if self.inbox.is_some() {
            self.arm_inbox(last_text);
        } else if self.open().is_some_and(|panel| !panel.has_field()) {
            self.arm_anew(last_text);
        }
    }

    pub(super) fn arm(&mut self, last_text: Option<u64>) {
        if !self.open || self.list.get(self.current).is_none() {
            return;
        }
        let guard = self.guard(Vec::new(), last_text);
        if let Some(panel) = self.open_mut() {
            panel.arm(|keys| guard.with_keys(keys));
            self.fence.want();
        }
    }

    pub fn current(&self) -> Option<&Dialog> {
        self.list.get(self.current)
    }

    /// A new question; it takes the keyboard only if nobody has it and `focus` says so.
    pub fn add(&mut self, panel: Dialog, focus: bool, last_text: Option<u64>) {
        self.list.push(panel);
        if !self.is_open() && !self.put_off && focus {
            self.focus(self.current, last_text);
        }
    }

    pub fn focus(&mut self, at: usize, last_text: Option<u64>) {
        if at < self.list.len() {
            self.leave();
            self.list[at].close_always();
            self.inbox = None;
            self.current = at;
            self.open = true;
            (self.put_off, self.stays) = (false, false);
            self.arm(last_text);
        }
    }

    /// The neighbour, around the end.
    pub fn turn(&mut self, forward: bool, last_text: Option<u64>) {
        let count = self.list.len().max(1);
        let step = if forward { 1 } else { count - 1 };
        self.focus((self.current + step) % count, last_text);
    }

    /// Whether one is to open as soon as the hands are idle.
    pub fn waits_for_idle(&self) -> bool {
        !self.is_open() && !self.put_off && !self.list.is_empty()
    }

    /// Opens the current one.
    pub fn open_current(&mut self, last_text: Option<u64>) {
        self.focus(self.current, last_text);
    }

    /// Closed by the person, to be opened by the person. One that the person called for, and that nothing waits for, is
    /// gone with that.
    pub fn put_off(&mut self) {
        let is_called_for = self.open().is_some_and(Dialog::is_called_for);
        self.close();
        if is_called_for {
            self.remove(self.current, None);
        }
        (self.put_off, self.stays) = (!self.list.is_empty(), false);
    }

    /// The keyboard goes back to the draft, and the prompt stays on the screen.
    pub fn stay(&mut self) {
        let stays = self.open && self.inbox.is_none() || self.stays;
        self.close();
        self.stays = stays;
        if let Some(panel) = self.staying_mut() {
            panel.guard.disarm();
        }
    }

    pub fn close(&mut self) {
        self.leave();
        self.open = false;
        self.inbox = None;
        self.fence.forget();
    }

    /// The current one is answered; the next takes its place and arms anew.
    pub fn done(&mut self, last_text: Option<u64>) {
        if self.current < self.list.len() {
            self.remove(self.current, last_text);
        }
    }

    /// The first questions, wherever they stand.
    pub fn setup(&mut self) -> Option<&mut Dialog> {
        self.list.iter_mut().find(|panel| matches!(panel.question, Question::Setup(_)))
    }

    /// Gives them the keyboard.
    pub fn focus_setup(&mut self, last_text: Option<u64>) {
        let at = self.list.iter().position(|panel| matches!(panel.question, Question::Setup(_)));
        if let Some(at) = at {
            self.focus(at, last_text);
        }
    }

    /// Another page of them in the place of the one before.
    pub fn show_setup(&mut self, last_text: Option<u64>) {
        let Some(at) = self.list.iter().position(|panel| matches!(panel.question, Question::Setup(_))) else { return };
        let is_open = self.open && at == self.current;
        if is_open {
            self.leave();
        }
        let Dialog { number, came, question, .. } = self.list.remove(at);
        let Question::Setup(setup) = question else { return };
        self.list.insert(at, Dialog { number, came, ..setup.panel() });
        if is_open {
            self.arm(last_text);
        }
    }

    /// Where it stands among the others.
    pub fn position(&self, number: u64) -> Option<usize> {
        self.list.iter().position(|panel| panel.number == number)
    }

    /// The answer of one in the list.
    pub fn answer(&mut self, number: u64, act: ChoiceAction) -> Option<super::Answer> {
        let at = self.position(number)?;
        let answer = self.list[at].answer(act, None)?;
        self.remove(at, None);
        Some(answer)
    }

    /// Questions that were answered elsewhere or have nothing to ask about any more.
    pub fn forget(&mut self, gone: impl Fn(&Dialog) -> bool, last_text: Option<u64>) {
        let Some(at) = self.list.iter().position(gone) else { return };
        let is_form = matches!(self.list[at].question, Question::Asking(_));
        let words = self.list[at].words.take().map(|field| field.text()).filter(|words| !words.is_empty() && !is_form);
        self.remove(at, last_text);
        // A reason that was being typed has nothing to be said to any more.
        if let Some(words) = words {
            self.close();
            self.orphaned.push_str(&words);
        }
    }

    fn remove(&mut self, at: usize, last_text: Option<u64>) {
        if at == self.current && self.open {
            self.leave();
        }
        self.list.remove(at);
        if at < self.current {
            self.current -= 1;
        } else if at == self.current {
            self.after_removal(last_text);
        }
    }

    pub fn forget_approval(&mut self, id: &ApprovalId, last_text: Option<u64>) {
        self.forget(|panel| matches!(&panel.question, Question::Approval(approval) if approval.approval_id == *id), last_text);
    }

    pub fn forget_call(&mut self, id: &CallId, last_text: Option<u64>) {
        self.forget(|panel| panel.call() == Some(id), last_text);
    }

    fn after_removal(&mut self, last_text: Option<u64>) {
        self.stays = false;
        if self.current >= self.list.len() {
            self.current = 0;
        }
        if self.list.is_empty() {
            self.close();
            self.put_off = false;
        } else if self.open {
            self.focus(self.current, last_text);
        }
    }

    /// Whether the frame just drawn is the first with the panel: then the terminal is asked.
    pub fn take_fence(&mut self, now: u64) -> bool {
        if !self.fence.take() {
            return false;
        }
        if let Some(inbox) = &mut self.inbox {
            inbox.guard.step(GuardInput::Shown, now);
        } else if let Some(panel) = self.open_mut() {
            panel.guard.step(GuardInput::Shown, now);
        }
        true
    }

    /// The terminal answered one question, the oldest; whether that is about what has the keyboard.
    pub fn fence_answered(&mut self) -> bool {
        self.fence.answered() && self.is_open()
    }
}
