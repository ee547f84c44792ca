//! Stack of pending dialogs. At most one of them has keyboard focus.

use super::countdown::{self, begin_wait};
use super::inbox::Inbox;
use super::parts::open_rule;
use super::rule_choice::RuleChoice;
use super::{ChoiceAction, Dialog, Pager};
use crate::protocol::{ApprovalId, CallId, RuleInfo};
use crate::tui::composer::TextField;
use crate::tui::onboarding::Onboarding;
use crate::tui::typeahead_guard::{ChoiceKey, Echo, Fence, Guard, GuardInput, GuardTiming, Opener};

#[derive(Default)]
pub(crate) struct DialogStack {
    pub(super) list: Vec<Dialog>,
    pub(super) current: usize,
    pub(super) open: bool,
    /// Whether the user closed a dialog, so dialogs no longer open automatically.
    put_off: bool,
    /// Whether the user typed while the dialog was open, so it stays on the screen without keyboard focus.
    stays: bool,
    fence: Fence,
    /// List of all pending dialogs, while it is shown instead of a single dialog.
    inbox: Option<Inbox>,
    /// Number of dialogs that have been numbered so far.
    came: u64,
    pace: GuardTiming,
    /// Time, in milliseconds, at which the terminal window was last resized or last gained or lost focus.
    unsettled: Option<u64>,
    /// Time, in milliseconds, at which the user last sent the draft.
    sent: Option<u64>,
    /// Key of the last answer, and the time at which it was pressed.
    echo: Option<Echo>,
    /// Text typed into a dialog that has since been removed. The next input field receives it.
    orphaned: String,
}

impl DialogStack {
    pub(crate) fn with_timing(pace: GuardTiming) -> Self {
        Self { pace, ..Self::default() }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.list.is_empty()
    }

    pub(crate) fn len(&self) -> usize {
        self.list.len()
    }

    /// Returns all dialogs in the order in which they were added.
    pub(crate) fn iter_mut(&mut self) -> impl Iterator<Item = &mut Dialog> {
        self.list.iter_mut()
    }

    /// Returns the number of pending approval prompts.
    pub(crate) fn approvals(&self) -> usize {
        self.list.iter().filter(|panel| panel.is_card()).count()
    }

    /// Returns whether a dialog or the list of dialogs has keyboard focus.
    pub(crate) fn is_open(&self) -> bool {
        self.open || self.inbox.is_some()
    }

    pub(crate) fn inbox(&self) -> Option<&Inbox> {
        self.inbox.as_ref()
    }

    /// Returns the list view, if it is open, together with all dialogs.
    pub(crate) fn inbox_mut(&mut self) -> Option<(&mut Inbox, &[Dialog])> {
        self.inbox.as_mut().map(|inbox| (inbox, self.list.as_slice()))
    }

    /// Opens the list of all pending dialogs.
    pub(crate) fn open_inbox(&mut self, last_text: Option<u64>) {
        self.close();
        let guard = self.guard(Inbox::keys(), last_text);
        self.inbox = Some(Inbox::new(guard, self.current().map(|panel| panel.number)));
        self.fence.want();
    }

    /// Rearms the list after its content has changed, if it is open.
    pub(crate) fn arm_inbox(&mut self, last_text: Option<u64>) {
        let guard = self.guard(Inbox::keys(), last_text);
        if let Some(inbox) = &mut self.inbox {
            inbox.guard = guard;
            self.fence.want();
        }
    }

    /// Creates a guard for the given keys, including any text typed into a removed dialog.
    fn guard(&mut self, keys: Vec<ChoiceKey>, last_text: Option<u64>) -> Guard {
        let typed = std::mem::take(&mut self.orphaned);
        Guard::new(keys, last_text)
            .with_timing(self.pace)
            .with_unsettled_since(self.unsettled)
            .with_echo(self.echo)
            .with_sent(self.sent)
            .with_typed(typed)
    }

    /// Records the time, in milliseconds, at which the user sent the draft.
    pub(crate) fn record_sent(&mut self, at: u64) {
        self.sent = Some(at);
    }

    /// Records the key that answered a dialog, and when it was pressed.
    pub(crate) fn record_answer(&mut self, letter: char, at: u64) {
        self.echo = Some(Echo { letter, at });
    }

    /// Returns whether `letter` is an accidental second press of the key that answered the previous dialog.
    pub(crate) fn is_echo(&self, letter: char, now: u64) -> bool {
        self.echo.is_some_and(|echo| echo.is_in_draft(letter, now))
    }

    /// Records that the window was resized or that its focus changed.
    pub(crate) fn record_window_change(&mut self, now: u64) {
        self.unsettled = Some(now);
    }

    /// Numbers newly added dialogs and starts their time limits. If no dialog has keyboard focus, returns the text that
    /// was typed into a removed dialog.
    pub(crate) fn flush_guard(&mut self, now: u64) -> String {
        for panel in self.list.iter_mut().filter(|panel| panel.came.is_none()) {
            self.came += 1;
            panel.number = self.came;
            begin_wait(panel, now);
        }
        self.fit_disk(now);
        if self.is_open() { String::new() } else { std::mem::take(&mut self.orphaned) }
    }

    /// Returns the next time, in milliseconds, at which a pressed key takes effect or a displayed time must be updated.
    pub(crate) fn deadline(&self, now: u64) -> Option<u64> {
        let of_inbox = self.inbox.as_ref().and_then(|inbox| inbox.deadline(&self.list, now));
        let of_key = || self.open().and_then(|panel| panel.guard.deadline(now).filter(|_| !panel.has_field()));
        of_inbox.or_else(of_key).into_iter().chain(self.next_count(now)).min()
    }

    /// Returns the next time, in milliseconds, at which the visible countdown changes. A countdown is visible in the
    /// open dialog, or in the bar if only one dialog is pending.
    fn next_count(&self, now: u64) -> Option<u64> {
        let shown = self.current().filter(|_| self.inbox().is_none() && (self.is_open() || self.len() == 1))?;
        countdown::next(shown.ends()?, now)
    }

    /// Saves the unfinished input of the dialog or list that has keyboard focus, to pass it to whatever receives focus
    /// next.
    pub(super) fn take_unfinished_input(&mut self) {
        let typed = match (&mut self.inbox, self.open) {
            (Some(inbox), _) => inbox.guard.take_draft_text(),
            (None, true) => self.open_mut().map(|panel| panel.guard.take_draft_text()).unwrap_or_default(),
            (None, false) => String::new(),
        };
        self.orphaned.push_str(&typed);
    }

    /// Returns the 1-based position of the current dialog.
    pub(crate) fn position_number(&self) -> usize {
        self.current + 1
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &Dialog> {
        self.list.iter()
    }

    pub(crate) fn open(&self) -> Option<&Dialog> {
        self.list.get(self.current).filter(|_| self.open).map(Dialog::visible)
    }

    /// Returns the dialog that stays on the screen without keyboard focus, if any.
    pub(crate) fn staying(&self) -> Option<&Dialog> {
        self.list.get(self.current).filter(|_| self.stays && !self.is_open()).map(Dialog::visible)
    }

    pub(crate) fn staying_mut(&mut self) -> Option<&mut Dialog> {
        let stays = self.stays && !self.is_open();
        self.list.get_mut(self.current).filter(|_| stays).map(Dialog::visible_mut)
    }

    /// Returns the ID of the call whose approval prompt is on the screen, if any.
    pub(crate) fn call_in_question(&self) -> Option<&CallId> {
        self.list.get(self.current).filter(|panel| (self.open || self.stays) && panel.is_card()).and_then(Dialog::call)
    }

    pub(crate) fn open_mut(&mut self) -> Option<&mut Dialog> {
        let open = self.open;
        self.list.get_mut(self.current).filter(|_| open).map(Dialog::visible_mut)
    }

    /// Opens the rule dialog in front of the current prompt. Returns `false` if no rule is available for its call.
    pub(crate) fn open_always(&mut self, last_text: Option<u64>) -> bool {
        let Some(panel) = self.list.get_mut(self.current) else { return false };
        // The key that opens the rule dialog is still typed text if more text follows.
        let typed = panel.visible_mut().guard.take_draft_text();
        let opened = panel.open_always();
        self.orphaned.push_str(&typed);
        if opened {
            self.rearm(last_text);
        }
        opened
    }

    /// Records the letter with which the user opened the visible dialog, if a letter did.
    pub(crate) fn set_opener(&mut self, opener: Option<Opener>) {
        if let (Some(panel), Some(opener)) = (self.open_mut(), opener) {
            panel.guard.set_opener(opener);
        }
    }

    /// Closes the page in front of the current dialog if the letter is the key of one of the dialog's own choices.
    /// Returns whether the letter is used up, because it was the key that opens the page. Otherwise, the dialog receives
    /// the letter. A choice that approves something is only highlighted, because the page may have hidden what it
    /// approves.
    pub(crate) fn leave_page(&mut self, letter: char, now: u64) -> bool {
        let Some(panel) = self.list.get(self.current).filter(|_| self.is_open() && self.inbox.is_none()) else { return false };
        let Some(page) = panel.front.as_deref().filter(|page| page.kind.is::<Pager>()) else { return false };
        let is_own = page.choices.iter().any(|choice| choice.key.letter == letter);
        let behind = panel.choices.iter().find(|choice| choice.enabled && choice.key.letter == letter);
        let Some(act) = behind.map(|choice| choice.act).filter(|_| !is_own && !page.guard.is_close(now)) else { return false };
        let opener = page.guard.opener_of_next(letter, now, None);
        self.close_always(None);
        if !act.needs_all_seen() || act == ChoiceAction::Always {
            self.set_opener(opener);
            if let Some(panel) = self.open_mut() {
                panel.guard.step(GuardInput::Shown, now);
            }
        }
        act == ChoiceAction::Look
    }

    /// Opens the current dialog's pager or, if it is already open, turns to the next page.
    pub(crate) fn open_pager(&mut self, last_text: Option<u64>) {
        let Some(panel) = self.list.get_mut(self.current) else { return };
        // The key that opens the pager is still typed text if more text follows.
        let typed = panel.visible_mut().guard.take_draft_text();
        if panel.front.is_some() {
            panel.turn_always(ChoiceAction::Look);
        } else if !panel.open_reading() {
            return;
        }
        self.orphaned.push_str(&typed);
        self.rearm(last_text);
    }

    /// Closes whatever is in front of the current dialog. Returns `false` if nothing was.
    pub(crate) fn close_always(&mut self, last_text: Option<u64>) -> bool {
        let closed = self.list.get_mut(self.current).is_some_and(Dialog::close_always);
        if closed {
            self.rearm(last_text);
        }
        closed
    }

    /// Opens the page about the rule that decided the selected command part. Returns whether the page was opened.
    pub(crate) fn open_rule(&mut self, last_text: Option<u64>) -> bool {
        let opened = self.list.get_mut(self.current).is_some_and(open_rule);
        if opened {
            self.rearm(last_text);
        }
        opened
    }

    pub(crate) fn turn_always(&mut self, act: ChoiceAction, last_text: Option<u64>) {
        if let Some(panel) = self.list.get_mut(self.current) {
            panel.turn_always(act);
            self.rearm(last_text);
        }
    }

    /// Opens the field in which the user writes a rule, prefilled with the selected rule.
    pub(crate) fn write_rule(&mut self) {
        if let Some(panel) = self.open_mut()
            && let Some(rule) = panel.kind.find_mut::<RuleChoice>()
        {
            let mut field = TextField::new();
            field.insert(&rule.to_line());
            panel.body = rule.begin_writing();
            panel.words = Some(field);
        }
    }

    /// Passes the policy's reply about a rule to the prompt for this approval.
    pub(crate) fn apply_rule_reply(&mut self, id: &ApprovalId, told: RuleInfo, last_text: Option<u64>) {
        let Some(at) = self.list.iter().position(|panel| panel.is_for(id)) else { return };
        let is_new = matches!(told, RuleInfo::Offered { .. });
        if self.list[at].apply_rule_reply(told) && is_new && at == self.current {
            self.rearm(last_text);
        }
    }

    /// Returns the approval and the index of the offer for which the list of matching commands still has to be
    /// requested, if any.
    pub(crate) fn wants_reach(&self) -> Option<(ApprovalId, usize)> {
        self.open()?.kind.find::<RuleChoice>()?.wants_reach()
    }

    /// Rearms the dialog after its content has changed, so keys take effect only once the new content is on the screen.
    /// Does nothing while the list is open, because the list receives the keys and each dialog is armed when it opens.
    pub(super) fn rearm(&mut self, last_text: Option<u64>) {
        if self.inbox.is_some() {
            return;
        }
        self.take_unfinished_input();
        self.arm(last_text);
    }

    /// Rearms the open dialog or list after something else was drawn over it. A dialog with an open field is left
    /// unchanged, so the text in the field is preserved.
    pub(crate) fn arm_again(&mut self, last_text: Option<u64>) {
        if self.inbox.is_some() {
            self.arm_inbox(last_text);
        } else if self.open().is_some_and(|panel| !panel.has_field()) {
            self.rearm(last_text);
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

    pub(crate) fn current(&self) -> Option<&Dialog> {
        self.list.get(self.current)
    }

    /// Adds a dialog. It receives keyboard focus only if `focus` is set, no dialog has focus, and the user has not
    /// closed one.
    pub(crate) fn add(&mut self, panel: Dialog, focus: bool, last_text: Option<u64>) {
        self.list.push(panel);
        if !self.is_open() && !self.put_off && focus {
            self.focus(self.current, last_text);
        }
    }

    pub(crate) fn focus(&mut self, at: usize, last_text: Option<u64>) {
        if at < self.list.len() {
            self.take_unfinished_input();
            self.list[at].close_always();
            self.inbox = None;
            self.current = at;
            self.open = true;
            (self.put_off, self.stays) = (false, false);
            self.arm(last_text);
        }
    }

    /// Moves keyboard focus to the next or previous dialog, wrapping around at the ends.
    pub(crate) fn cycle(&mut self, forward: bool, last_text: Option<u64>) {
        let count = self.list.len().max(1);
        let step = if forward { 1 } else { count - 1 };
        self.focus((self.current + step) % count, last_text);
    }

    /// Returns whether a dialog will open as soon as the user stops typing.
    pub(crate) fn waits_for_idle(&self) -> bool {
        !self.is_open() && !self.put_off && !self.list.is_empty()
    }

    /// Opens the current dialog, giving it keyboard focus.
    pub(crate) fn open_current(&mut self, last_text: Option<u64>) {
        self.focus(self.current, last_text);
    }

    /// Closes the open dialog, after which only the user can reopen it. If no task is waiting for its answer, the
    /// dialog is removed.
    pub(crate) fn dismiss(&mut self) {
        let is_called_for = self.open().is_some_and(|panel| panel.kind.is_called_for());
        self.close();
        if is_called_for {
            self.remove(self.current, None);
        }
        (self.put_off, self.stays) = (!self.list.is_empty(), false);
    }

    /// Returns keyboard focus to the draft while the dialog remains on the screen.
    pub(crate) fn stay(&mut self) {
        let stays = self.open && self.inbox.is_none() || self.stays;
        self.close();
        self.stays = stays;
        if let Some(panel) = self.staying_mut() {
            panel.guard.disarm();
        }
    }

    pub(crate) fn close(&mut self) {
        self.take_unfinished_input();
        self.open = false;
        self.inbox = None;
        self.fence.forget();
    }

    /// Removes the current dialog once it has been answered, and arms the next one.
    pub(crate) fn finish_current(&mut self, last_text: Option<u64>) {
        if self.current < self.list.len() {
            self.remove(self.current, last_text);
        }
    }

    /// Returns the setup dialog, if it is anywhere in the stack.
    pub(crate) fn setup(&mut self) -> Option<&mut Dialog> {
        self.list.iter_mut().find(|panel| panel.kind.is::<Onboarding>())
    }

    /// Gives keyboard focus to the setup dialog, if there is one.
    pub(crate) fn focus_setup(&mut self, last_text: Option<u64>) {
        let at = self.list.iter().position(|panel| panel.kind.is::<Onboarding>());
        if let Some(at) = at {
            self.focus(at, last_text);
        }
    }

    /// Rebuilds the setup dialog to show its current page.
    pub(crate) fn show_setup(&mut self, last_text: Option<u64>) {
        let Some(at) = self.list.iter().position(|panel| panel.kind.is::<Onboarding>()) else { return };
        let is_open = self.open && at == self.current;
        if is_open {
            self.take_unfinished_input();
        }
        let Dialog { number, came, kind, .. } = self.list.remove(at);
        let Some(setup) = kind.take::<Onboarding>() else { return };
        self.list.insert(at, Dialog { number, came, ..setup.panel() });
        if is_open {
            self.arm(last_text);
        }
    }

    /// Returns the index of the dialog with this number, if it is still pending.
    pub(crate) fn position(&self, number: u64) -> Option<usize> {
        self.list.iter().position(|panel| panel.number == number)
    }

    /// Answers the dialog with this number and removes it. Returns `None`, leaving the dialog pending, if it does not
    /// offer this action.
    pub(crate) fn answer(&mut self, number: u64, act: ChoiceAction) -> Option<super::DialogAnswer> {
        let at = self.position(number)?;
        let answer = self.list[at].answer(act, None)?;
        self.remove(at, None);
        Some(answer)
    }

    /// Removes the first dialog that `gone` matches, because it was answered elsewhere or is no longer needed.
    pub(crate) fn forget(&mut self, gone: impl Fn(&Dialog) -> bool, last_text: Option<u64>) {
        let Some(at) = self.list.iter().position(gone) else { return };
        let is_form = self.list[at].kind.is_form();
        let words = self.list[at].words.take().map(|field| field.text()).filter(|words| !words.is_empty() && !is_form);
        self.remove(at, last_text);
        // There is no call left to deny with the typed reason.
        if let Some(words) = words {
            self.close();
            self.orphaned.push_str(&words);
        }
    }

    fn remove(&mut self, at: usize, last_text: Option<u64>) {
        if at == self.current && self.open {
            self.take_unfinished_input();
        }
        self.list.remove(at);
        if at < self.current {
            self.current -= 1;
        } else if at == self.current {
            self.after_removal(last_text);
        }
    }

    pub(crate) fn forget_approval(&mut self, id: &ApprovalId, last_text: Option<u64>) {
        self.forget(|panel| panel.is_for(id), last_text);
    }

    pub(crate) fn forget_call(&mut self, id: &CallId, last_text: Option<u64>) {
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

    /// Returns whether the frame just drawn is the first one that shows the dialog or list. If so, the caller must send
    /// a query to the terminal.
    pub(crate) fn take_fence(&mut self, now: u64) -> bool {
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

    /// Handles the terminal's response to the oldest outstanding query. Returns whether the open dialog or list was
    /// waiting for it.
    pub(crate) fn on_fence_answered(&mut self) -> bool {
        self.fence.on_response() && self.is_open()
    }
}
