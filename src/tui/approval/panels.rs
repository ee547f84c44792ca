//! The questions that wait, and which of them has the keyboard.

use super::{Act, Panel, Question};
use crate::protocol::{ApprovalId, CallId};
use crate::tui::guard::Stimulus;

#[derive(Default)]
pub struct Panels {
    list: Vec<Panel>,
    current: usize,
    open: bool,
    /// The person put it off: it does not open by itself any more.
    put_off: bool,
    fence: Fence,
}

/// The question to the terminal whose answer says that the panel is on the screen.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
struct Fence {
    wanted: bool,
    sent: u64,
    answered: u64,
    /// The one that belongs to the open panel.
    panel: Option<u64>,
}

impl Panels {
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

    pub fn is_open(&self) -> bool {
        self.open
    }

    /// The place of the current one, counted from one.
    pub fn place(&self) -> usize {
        self.current + 1
    }

    pub fn iter(&self) -> impl Iterator<Item = &Panel> {
        self.list.iter()
    }

    pub fn open(&self) -> Option<&Panel> {
        self.list.get(self.current).filter(|_| self.open).map(Panel::shown)
    }

    pub fn open_mut(&mut self) -> Option<&mut Panel> {
        let open = self.open;
        self.list.get_mut(self.current).filter(|_| open).map(Panel::shown_mut)
    }

    /// Opens the choice of a rule for the open question; whether there is one.
    pub fn open_always(&mut self, last_text: Option<u64>) -> bool {
        let opened = self.list.get_mut(self.current).is_some_and(Panel::open_always);
        if opened {
            self.arm_anew(last_text);
        }
        opened
    }

    /// Opens what there is to read about the open question, or its next page.
    pub fn look(&mut self, last_text: Option<u64>) {
        let Some(panel) = self.list.get_mut(self.current) else { return };
        if panel.front.is_some() {
            panel.turn_always(Act::Look);
        } else if !panel.open_reading() {
            return;
        }
        self.arm_anew(last_text);
    }

    /// Back from the choice of a rule to its question; whether it was open.
    pub fn close_always(&mut self, last_text: Option<u64>) -> bool {
        let closed = self.list.get_mut(self.current).is_some_and(Panel::close_always);
        if closed {
            self.arm_anew(last_text);
        }
        closed
    }

    pub fn turn_always(&mut self, act: Act, last_text: Option<u64>) {
        if let Some(panel) = self.list.get_mut(self.current) {
            panel.turn_always(act);
            self.arm_anew(last_text);
        }
    }

    /// What is shown now is something else: keys count only once it is on the screen.
    fn arm_anew(&mut self, last_text: Option<u64>) {
        if let Some(panel) = self.open_mut() {
            panel.arm(last_text);
            self.fence.wanted = true;
            self.fence.panel = None;
        }
    }

    pub fn current(&self) -> Option<&Panel> {
        self.list.get(self.current)
    }

    /// A new question; it takes the keyboard only if nobody has it and `focus` says so.
    pub fn add(&mut self, panel: Panel, focus: bool, last_text: Option<u64>) {
        self.list.push(panel);
        if !self.open && !self.put_off && focus {
            self.focus(self.current, last_text);
        }
    }

    pub fn focus(&mut self, at: usize, last_text: Option<u64>) {
        if let Some(panel) = self.list.get_mut(at) {
            panel.close_always();
            panel.arm(last_text);
            self.current = at;
            self.open = true;
            self.put_off = false;
            self.fence.wanted = true;
            self.fence.panel = None;
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
        !self.open && !self.put_off && !self.list.is_empty()
    }

    /// Opens the current one.
    pub fn open_current(&mut self, last_text: Option<u64>) {
        self.focus(self.current, last_text);
    }

    /// Closed by the person, to be opened by the person.
    pub fn put_off(&mut self) {
        self.close();
        self.put_off = true;
    }

    pub fn close(&mut self) {
        self.open = false;
        self.fence.wanted = false;
        self.fence.panel = None;
    }

    /// The current one is answered; the next takes its place and arms anew.
    pub fn done(&mut self, last_text: Option<u64>) {
        if self.current < self.list.len() {
            self.list.remove(self.current);
        }
        self.after_removal(last_text);
    }

    /// Questions that were answered elsewhere or have nothing to ask about any more.
    pub fn forget(&mut self, gone: impl Fn(&Panel) -> bool, last_text: Option<u64>) {
        let Some(at) = self.list.iter().position(gone) else { return };
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
        if !std::mem::take(&mut self.fence.wanted) {
            return false;
        }
        self.fence.sent += 1;
        self.fence.panel = Some(self.fence.sent);
        if let Some(panel) = self.open_mut() {
            panel.guard.step(Stimulus::Shown, now);
        }
        true
    }

    /// The terminal answered one question, the oldest; whether that is the open panel's.
    pub fn fence_answered(&mut self) -> bool {
        self.fence.answered = (self.fence.answered + 1).min(self.fence.sent);
        self.open && self.fence.panel == Some(self.fence.answered)
    }
}
