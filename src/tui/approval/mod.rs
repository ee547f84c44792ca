//! Dialogs for the user: their content, their choices, and a record of how much of the content was
//! shown.

mod answer;
mod body;
mod choices;
mod command;
mod countdown;
mod dialog_stack;
mod disk_state;
mod effects;
mod elicitation_dialog;
mod goal_dialog;
mod hit_regions;
mod hunk;
mod hunks;
mod inbox;
mod interrupted;
mod lock_dialog;
mod note;
mod onboarding_dialog;
mod pager;
mod parts;
mod pending_bar;
mod price_dialog;
mod rewind_dialog;
mod rows;
mod rule_choice;
mod scroll;
mod session_dialogs;
mod staleness;
mod summary;
#[cfg(test)]
mod tests;
mod title;
mod view;

pub(crate) use answer::answer;
pub(crate) use body::Body;
pub(crate) use choices::{Choice, ChoiceAction, GoalChoice, YesNo, choice};
pub(crate) use dialog_stack::DialogStack;
pub(crate) use disk_state::{Staleness, is_awaited, is_change_visible};
pub(crate) use elicitation_dialog::refresh_form;
pub(crate) use goal_dialog::goal_dialog;
pub(crate) use hit_regions::choice_at;
pub(crate) use hunks::{HunkMark, Hunks};
pub(crate) use inbox::{Inbox, YES, describe_decision};
pub(crate) use interrupted::{InterruptedCall, interrupted_dialog};
pub(crate) use lock_dialog::lock_dialog;
pub(crate) use note::{CHANGED, Note, Verb};
pub(crate) use onboarding_dialog::refresh_setup;
pub(crate) use pager::Pager;
pub(crate) use parts::mark_part;
pub(crate) use pending_bar::bar_text;
pub(crate) use price_dialog::{PriceForm, refresh_price};
pub(crate) use rewind_dialog::{Mark, RewindChoice, mark_conflict, rewind_dialog};
pub(crate) use rule_choice::RuleChoice;
pub(crate) use session_dialogs::{deletion_dialog, mode_description, mode_dialog, trust_dialog};
pub(crate) use staleness::approval_dialog;
#[cfg(test)]
pub(crate) use summary::name;
pub(crate) use view::{Frame, draw, height, hints};

use super::composer::{Field, Lines};
use super::elicitation::{self, ElicitationForm};
use super::interface::{LockAnswer, LockQuestion, TrustAnswer, TrustQuestion};
use super::onboarding::Onboarding;
use super::typeahead_guard::{Confirm, Guard, GuardInput, GuardResult, Key};
use crate::protocol::{
    Approval, ApprovalId, CallId, Decision, Goal, GoalState, GrantScope, Mode, Resolution, RewindScope, RewindTarget, Risk,
    RuleInfo, SessionId, TaskId, VerdictKind,
};
use crate::text;
use ratatui::layout::Rect;
use std::path::PathBuf;

/// Denial reasons that a digit inserts into an empty field.
pub(crate) const REASONS: [&str; 4] = ["wrong file", "too broad", "explain first", "run without network"];
/// Shorter forms of the reasons, for narrow screens.
const FEWER_WORDS: [[&str; 4]; 2] =
    [["wrong file", "too broad", "explain first", "no network"], ["file", "broad", "explain", "offline"]];

/// Subject of a dialog.
#[derive(Debug)]
pub(crate) enum Question {
    Approval(Box<Approval>),
    /// Choice of a rule to save, shown in front of its approval prompt.
    Keep(Box<RuleChoice>),
    /// Text to read, shown in front of its dialog. It requires no decision.
    Reading(Pager),
    /// Interrupted call without an outcome.
    Interrupted {
        id: CallId,
    },
    /// Trust in the project's settings. `None` once answered.
    Trust(Option<TrustQuestion>),
    /// Change to a less strict mode.
    Mode(Mode),
    /// Goal that cannot continue automatically.
    Goal(Box<GoalState>),
    /// Session that another process has open. `None` once answered.
    Held(Option<LockQuestion>),
    /// Rewind, with its scope.
    Rewind(Box<RewindChoice>),
    /// Deletion of a session.
    Forget(SessionId),
    /// Page of the setup.
    Setup(Box<Onboarding>),
    /// Input request of an MCP server.
    Asking(Box<ElicitationForm>),
    /// Price that a budget needs.
    Price(Box<PriceForm>),
}

/// The user's answer, for the owner of the dialog.
#[derive(Debug)]
pub(crate) enum Answer {
    Decide(ApprovalId, Decision),
    Preview(ApprovalId),
    Resolve(CallId, Resolution),
    Trust(TrustQuestion, TrustAnswer),
    Mode(Mode),
    ModeStays,
    Goal(Goal, GoalChoice),
    Held(LockQuestion, LockAnswer),
    Rewind { target: RewindTarget, scope: RewindScope, overwrite: Vec<PathBuf> },
    Fork { before: TaskId },
    Forget(SessionId),
    ForgetNot,
}

pub(crate) struct Dialog {
    /// Unique number on this screen, and time of arrival. Both are set when the dialog is added.
    pub number: u64,
    pub came: Option<u64>,
    /// Time at which a missing answer becomes a denial, if there is a time limit.
    ends: Option<u64>,
    pub question: Question,
    /// Title: `Edit src/main.rs`.
    pub title: String,
    /// Facts at the right of the head: `1 hunk · +6 −5`.
    pub facts: String,
    /// Risk: `low risk`.
    pub risk_words: String,
    pub risk: Option<Risk>,
    pub critical: bool,
    /// Reason: `ask: built-in, writes ask`.
    pub reason: String,
    pub choices: Vec<Choice>,
    pub body: Body,
    /// Keyboard state since the dialog was opened.
    pub guard: Guard,
    /// Rule dialog or pager in front of this dialog.
    front: Option<Box<Dialog>>,
    /// Field for a denial reason, while it is open.
    pub words: Option<Field>,
    /// Hunks of a change that can be selected or edited.
    pub hunks: Option<Box<Hunks>>,
    /// Field with the edited hunk or command, while it is open.
    pub writing: Option<AmendField>,
    /// Recent hunk keys, which may turn out to be the start of typed text.
    pub marked: Option<RecentMarks>,
    /// Side-by-side or unified layout, if the user chose one.
    beside: Option<bool>,
    wraps: bool,
    /// Whether the change matches the file on disk, and the last event about it.
    disk: Staleness,
    changed_on_disk: bool,
    /// Whether all of the content was shown, in any layout.
    saw_all: bool,
    pub height: Height,
    /// First visible row, number of leading rows that were shown, and the width for which they were
    /// counted.
    pub scroll: usize,
    pub seen: usize,
    pub seen_width: u16,
    /// Number of body rows in the last frame.
    pub shown: usize,
    /// Region of each choice in the last frame.
    spots: Vec<(Rect, usize)>,
    /// Whether required rows had not been shown yet when the last choice key was pressed.
    pressed_unseen: bool,
}

/// Field for text that replaces a part of the proposal.
#[derive(Debug)]
pub(crate) struct AmendField {
    pub lines: Lines,
    pub what: AmendTarget,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum AmendTarget {
    Hunk,
    Command,
}

/// Hunk keys pressed in quick succession, and the state before them.
#[derive(Debug)]
pub(crate) struct RecentMarks {
    pub at: u64,
    pub before: Hunks,
}

/// Share of the screen that a dialog occupies.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Height {
    Part,
    Full,
}

impl Dialog {
    pub(crate) fn approval(approval: Approval) -> Self {
        let strict = approval.critical || approval.risk_level == Risk::High;
        let body = Body::for_approval(&approval);
        let verb = body.verb();
        let confirm = if strict { Confirm::LetterThenEnter } else { Confirm::Letter };
        let choices = choices::choices_for(&approval, &verb, confirm);
        let risk = if approval.critical { "critical risk".to_owned() } else { format!("{} risk", approval.risk_level.as_str()) };
        let reason = format!("ask: {}", reasons(&approval).join("; "));
        let title = title::title(&approval);
        let facts = body.facts().unwrap_or_default();
        // The counts are shown at the right.
        let title = match body.line_counts() {
            Some(counts) => title.strip_suffix(&counts).map(|title| title.trim_end().to_owned()).unwrap_or(title),
            None => title,
        };
        let title = if approval.amendable.edited && !title::is_unsandboxed(&approval) {
            format!("{title}, edited by you")
        } else {
            title
        };
        let (risk_level, critical) = (approval.risk_level, approval.critical);
        let hunks = Hunks::for_approval(&approval).map(Box::new);
        let panel = Self::new(Question::Approval(Box::new(approval)), title, text::reveal_line(&reason), choices, body);
        let mut panel = Self { facts, risk_words: risk, risk: Some(risk_level), critical, hunks, ..panel };
        panel.show_hunks();
        panel
    }

    pub(crate) fn new(question: Question, title: String, reason: String, choices: Vec<Choice>, body: Body) -> Self {
        let guard = Guard::new(choices.iter().map(|choice| choice.key).collect(), None);
        Self {
            number: 0,
            came: None,
            ends: None,
            question,
            title,
            facts: String::new(),
            risk_words: String::new(),
            risk: None,
            critical: false,
            reason,
            choices,
            body,
            guard,
            front: None,
            words: None,
            hunks: None,
            writing: None,
            marked: None,
            beside: None,
            wraps: true,
            disk: Staleness::AsShown,
            changed_on_disk: false,
            saw_all: false,
            scroll: 0,
            seen: 0,
            seen_width: 0,
            shown: 0,
            spots: Vec::new(),
            height: Height::Part,
            pressed_unseen: false,
        }
    }

    /// Returns the visible dialog: the front one if there is one.
    pub(crate) fn visible(&self) -> &Self {
        self.front.as_deref().unwrap_or(self)
    }

    pub(crate) fn visible_mut(&mut self) -> &mut Self {
        match self.front {
            Some(ref mut front) => front,
            None => self,
        }
    }

    /// Opens the rule dialog. Returns whether a rule is available.
    pub(crate) fn open_always(&mut self) -> bool {
        let Question::Approval(approval) = &self.question else { return false };
        if approval.always.offers.is_empty() {
            return false;
        }
        let (id, verb, is_command) = (approval.approval_id.clone(), self.body.verb().long, approval.command.is_some());
        self.front = Some(Box::new(RuleChoice::new(id, approval.always.clone(), verb, is_command).panel()));
        true
    }

    /// Opens the pager. Returns whether it has content.
    pub(crate) fn open_reading(&mut self) -> bool {
        let reading = match &self.question {
            Question::Approval(approval) => Pager::rules(approval, &self.choices),
            Question::Trust(Some(trust)) => Pager::files(&trust.files),
            Question::Rewind(rewinding) => Pager::diff(rewinding.plan.diff.clone()),
            Question::Trust(None)
            | Question::Keep(_)
            | Question::Reading(_)
            | Question::Interrupted { .. }
            | Question::Mode(_)
            | Question::Goal(_)
            | Question::Held(_)
            | Question::Setup(_)
            | Question::Asking(_)
            | Question::Price(_)
            | Question::Forget(_) => return false,
        };
        self.front = reading.panel().map(Box::new);
        self.front.is_some()
    }

    /// Applies the policy's response about a rule that is being chosen. Returns whether the view changed.
    pub(crate) fn apply_rule_reply(&mut self, told: RuleInfo) -> bool {
        if let (Question::Approval(approval), RuleInfo::Offered { offer, at }) = (&mut self.question, &told)
            && *at == approval.always.offers.len()
        {
            approval.always.offers.push(offer.clone());
        }
        if !self.front.as_ref().is_some_and(|front| matches!(front.question, Question::Keep(_))) {
            return false;
        }
        let Some(front) = self.front.take() else { return false };
        let (height, field) = (front.height, front.words);
        let Question::Keep(keeping) = front.question else { return false };
        let (keeping, keeps_field) = keeping.apply(told);
        let words = field.filter(|_| keeps_field);
        self.front = Some(Box::new(Self { height, words, guard: front.guard, ..keeping.panel() }));
        true
    }

    /// Returns to the dialog itself. Returns whether another view covered it.
    pub(crate) fn close_always(&mut self) -> bool {
        self.front.take().is_some()
    }

    /// Selects another rule, expiry, view or page of the dialog in front.
    pub(crate) fn turn_always(&mut self, act: ChoiceAction) {
        let Some(front) = self.front.take() else { return };
        let height = front.height;
        let turned = match front.question {
            Question::Keep(keeping) => Some(keeping.with_selection(act)),
            Question::Reading(reading) => reading.next_page(),
            Question::Approval(_)
            | Question::Interrupted { .. }
            | Question::Trust(_)
            | Question::Mode(_)
            | Question::Goal(_)
            | Question::Held(_)
            | Question::Rewind(_)
            | Question::Setup(_)
            | Question::Asking(_)
            | Question::Price(_)
            | Question::Forget(_) => None,
        };
        self.front = turned.map(|panel| Box::new(Self { height, ..panel }));
    }

    /// Gives the keyboard to the dialog. Earlier highlights are removed.
    pub(crate) fn arm(&mut self, guard: impl FnOnce(Vec<Key>) -> Guard) {
        if let Question::Asking(asking) = &mut self.question {
            // Nothing can be typed into the form before it is chosen.
            asking.leave();
            refresh_form(self);
        }
        self.guard = guard(self.choices.iter().map(|choice| choice.key).collect());
        // One key and Enter allow it for this session; the wider scopes need their own keys.
        let is_session = |choice: &Choice| choice.enabled && choice.act == ChoiceAction::Keep(GrantScope::Session);
        self.guard.set_preset(self.choices.iter().position(is_session));
        if self.guard.is_strict() {
            self.choices.iter_mut().for_each(|choice| choice.key.confirm = Confirm::LetterThenEnter);
        }
        self.words = match &self.question {
            Question::Setup(setup) => setup.field(),
            // What was typed stays.
            Question::Price(form) => self.words.take().or_else(|| Some(form.field())),
            _ => None,
        };
        self.writing = None;
        self.marked = None;
    }

    /// Returns whether a field of the dialog has the keyboard.
    pub(crate) fn has_field(&self) -> bool {
        self.words.is_some() || self.writing.is_some()
    }

    /// Returns the number of choices that the dialog shows; they come first.
    pub(crate) fn shown_choices(&self) -> usize {
        self.choices.iter().take_while(|choice| choice.is_shown).count()
    }

    /// Returns whether the reason adds information to the default policy and the visible text.
    fn shows_reason(&self) -> bool {
        let Question::Approval(approval) = &self.question else { return true };
        let is_told = approval.effects.is_some() || !approval.opens.is_empty();
        let is_named = approval.risk_level == Risk::Low || title::titled_part(approval).is_some();
        !is_told && (!(approval.is_uncovered && is_named) || approval.description.is_some())
    }

    /// Returns whether the dialog is about a call, which is shown as a card.
    pub(crate) fn is_card(&self) -> bool {
        matches!(self.question, Question::Approval(_))
    }

    pub(crate) fn call(&self) -> Option<&CallId> {
        match &self.question {
            Question::Approval(approval) => Some(&approval.tool_call_id),
            Question::Interrupted { id } => Some(id),
            Question::Keep(_)
            | Question::Reading(_)
            | Question::Trust(_)
            | Question::Mode(_)
            | Question::Goal(_)
            | Question::Held(_)
            | Question::Rewind(_)
            | Question::Setup(_)
            | Question::Asking(_)
            | Question::Price(_)
            | Question::Forget(_) => None,
        }
    }

    /// Returns the number of rows that have not been shown.
    pub(crate) fn unseen(&self) -> usize {
        self.body.rows(self.seen_width).saturating_sub(self.seen)
    }

    /// Returns the number of rows that must still be shown before this action.
    pub(crate) fn unseen_for(&self, act: ChoiceAction) -> usize {
        match act {
            ChoiceAction::Approve
            | ChoiceAction::Trust(TrustAnswer::Yes)
            | ChoiceAction::Rewind(_)
            | ChoiceAction::Asking(elicitation::FormAction::Send) => {
                self.body.required_rows(self.seen_width).saturating_sub(self.seen)
            }
            ChoiceAction::ApproveClean | ChoiceAction::First | ChoiceAction::Offline => self.unseen_for(ChoiceAction::Approve),
            ChoiceAction::Edit
            | ChoiceAction::EditWhole
            | ChoiceAction::View
            | ChoiceAction::Wrap
            | ChoiceAction::Unsandboxed => 0,
            ChoiceAction::Always | ChoiceAction::Keep(_) => self.unseen(),
            ChoiceAction::Preview
            | ChoiceAction::RunAgain
            | ChoiceAction::Widen
            | ChoiceAction::End
            | ChoiceAction::Diff
            | ChoiceAction::Write
            | ChoiceAction::Reach
            | ChoiceAction::Look
            | ChoiceAction::Back => 0,
            ChoiceAction::ShowNew
            | ChoiceAction::OpenFile
            | ChoiceAction::Deny
            | ChoiceAction::DenyWithWords
            | ChoiceAction::Resolve(_)
            | ChoiceAction::Trust(_)
            | ChoiceAction::Mode(_)
            | ChoiceAction::Goal(_)
            | ChoiceAction::Held(_)
            | ChoiceAction::Fork
            | ChoiceAction::Forget(_)
            | ChoiceAction::Asking(_)
            | ChoiceAction::Setup(_) => 0,
        }
    }

    /// Returns the number of screens until all required rows were shown.
    pub(crate) fn screens_left(&self, act: ChoiceAction) -> usize {
        self.unseen_for(act).div_ceil(self.shown.max(1))
    }

    /// Returns how a choice is confirmed now. Showing more rows needs no confirmation; a choice needs two keys if some
    /// rows were not shown.
    pub(crate) fn confirm(&self, choice: usize) -> Confirm {
        let choice = &self.choices[choice];
        match (choice.act.needs_all_seen(), self.unseen_for(choice.act), self.unseen()) {
            _ if self.guard.is_strict() => Confirm::LetterThenEnter,
            (true, 1.., _) => Confirm::Immediate,
            (true, 0, 1..) => Confirm::LetterThenEnter,
            (true, 0, 0) | (false, _, _) => choice.key.confirm,
        }
    }

    /// Passes an input to the guard, with the current meaning of the choices.
    pub(crate) fn step(&mut self, stimulus: GuardInput, now: u64) -> GuardResult {
        // Before the first frame it is unknown whether there are more rows to show.
        let is_shown = self.guard.is_shown();
        let confirm = |(at, choice): (usize, &Choice)| if is_shown { self.confirm(at) } else { choice.key.confirm };
        let confirms: Vec<_> = self.choices.iter().enumerate().map(confirm).collect();
        if let GuardInput::Letter(_) | GuardInput::Repeat(_) | GuardInput::Up | GuardInput::Down = stimulus {
            self.guard.set_confirms(&confirms);
            self.guard.set_rows(self.shown_choices());
            self.pressed_unseen = is_shown && self.unseen_for(ChoiceAction::Approve) > 0;
        }
        let outcome = self.guard.step(stimulus, now);
        // Arrow keys move only among the choices that have a row.
        let listed = self.shown_choices();
        while matches!(stimulus, GuardInput::Up | GuardInput::Down)
            && matches!(self.guard.choice_state(now), super::typeahead_guard::ChoiceState::Highlighted(at) if at >= listed)
        {
            self.guard.step(stimulus, now);
        }
        outcome
    }

    /// Returns the currently valid keys and their labels.
    pub(crate) fn valid_keys(&self) -> String {
        let enabled = self.choices.iter().filter(|choice| choice.enabled && choice.is_shown);
        let keys: Vec<String> = enabled.map(|choice| format!("{} {}", choice.key.letter, choice.short)).collect();
        keys.join(", ")
    }

    /// Highlights the choice under the pointer, with its current meaning.
    pub(crate) fn point(&mut self, choice: usize, now: u64) {
        let confirms: Vec<_> = (0..self.choices.len()).map(|at| self.confirm(at)).collect();
        self.guard.set_confirms(&confirms);
        self.pressed_unseen = self.unseen_for(ChoiceAction::Approve) > 0;
        self.guard.point(choice, now);
    }

    /// Returns whether a choice only shows the remaining rows.
    pub(crate) fn only_shows(&self, act: ChoiceAction) -> bool {
        act.needs_all_seen() && (self.pressed_unseen || self.unseen_for(act) > 0)
    }
}

/// Returns the reasons for asking. For a command, these are the reasons of its riskiest parts with their numbers, last
/// part first, because it runs the output of the others. Consecutive parts with the same rule share one reason.
fn reasons(approval: &Approval) -> Vec<String> {
    let said = |rule: &str, reason: &str| match (rule, reason) {
        ("", words) | (words, "") => words.to_owned(),
        (rule, reason) => format!("{rule}, {reason}"),
    };
    let worst = approval.parts.iter().map(|part| part.risk).max();
    let mut reasons = Vec::new();
    let mut rule = "";
    let numbered = approval.parts.len() > 1;
    let parts = approval.parts.iter().enumerate().rev();
    for (at, part) in parts.filter(|(_, part)| Some(part.risk) == worst && part.verdict != VerdictKind::Allow) {
        reasons.push(match (numbered, part.rule == rule) {
            (true, false) if !part.rule.is_empty() => format!("{} {} ({})", at + 1, part.reason, part.rule),
            (true, _) => format!("{} {}", at + 1, part.reason),
            (false, true) => part.reason.clone(),
            (false, false) => said(&part.rule, &part.reason),
        });
        rule = &part.rule;
    }
    if reasons.is_empty() {
        reasons.push(said(&approval.rule, &approval.reason));
    }
    reasons.extend(approval.description.iter().map(|description| text::reveal_line(description)));
    reasons
}
