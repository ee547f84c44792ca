//! Dialogs: their content and choices, and a record of which rows the user has been shown.

mod amend_field;
mod body;
mod call_dialog;
mod choices;
mod command;
mod command_dialog;
mod countdown;
mod dialog_kind;
mod dialog_stack;
mod diff_layout;
mod disk_state;
mod edit_dialog;
mod effect_list;
mod effect_order;
mod effects;
mod effects_dialog;
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
mod plan_dialog;
mod price_dialog;
mod prompt;
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
mod tool_dialog;
mod view;

pub(crate) use amend_field::{AmendField, AmendTarget};
pub(crate) use body::Body;
pub(crate) use choices::{Choice, ChoiceAction, GoalChoice, YesNo, choice};
pub(crate) use command::is_harmless;
pub(crate) use dialog_kind::DialogKind;
pub(crate) use dialog_stack::DialogStack;
pub(crate) use disk_state::{is_awaited, is_change_visible};
pub(crate) use effects::lines_below;
pub(crate) use elicitation_dialog::refresh_form;
pub(crate) use goal_dialog::{GoalDialog, goal_dialog};
pub(crate) use hit_regions::choice_at;
pub(crate) use hunks::{HunkMark, Hunks};
pub(crate) use inbox::{Inbox, YES, describe_decision};
pub(crate) use interrupted::{InterruptedCall, interrupted_dialog};
pub(crate) use lock_dialog::{LockDialog, lock_dialog};
pub(crate) use note::{CHANGED, Note, Verb};
pub(crate) use onboarding_dialog::refresh_setup;
pub(crate) use pager::Pager;
pub(crate) use parts::mark_part;
pub(crate) use pending_bar::{BarContext, bar_text};
pub(crate) use price_dialog::{PriceForm, refresh_price};
pub(crate) use rewind_dialog::{Mark, RewindChoice, mark_conflict, rewind_dialog};
pub(crate) use rule_choice::RuleChoice;
pub(crate) use scroll::{Height, ScrollState};
pub(crate) use session_dialogs::{DeletionDialog, ModeDialog, deletion_dialog, mode_description, mode_dialog, trust_dialog};
pub(crate) use staleness::approval_dialog;
#[cfg(test)]
pub(crate) use summary::name;
pub(crate) use title::sort_by_risk;
pub(crate) use view::{DrawContext, draw, height, hints};

use super::composer::TextField;
use super::elicitation;
use super::interface::{LockAnswer, LockQuestion, TrustAnswer, TrustQuestion};
use super::typeahead_guard::{ChoiceKey, Confirm, Guard, GuardInput, GuardResult};
use crate::protocol::{
    Approval, ApprovalId, CALLS_SERVER_TOOL, CallId, Decision, Goal, GrantScope, Mode, Resolution, RewindScope, RewindTarget,
    Risk, RuleInfo, SessionId, TaskId, VerdictKind,
};
use crate::text;
use call_dialog::CallDialog as _;
use command_dialog::CommandDialog;
use edit_dialog::EditDialog;
use effects_dialog::EffectsDialog;
pub(crate) use plan_dialog::PlanDialog;
use ratatui::layout::Rect;
use std::path::PathBuf;
use tool_dialog::ToolDialog;

/// Denial reasons that the digit keys insert into an empty field.
pub(crate) const REASONS: [&str; 4] = ["wrong file", "too broad", "explain first", "run without network"];
/// Shorter versions of [`REASONS`] for narrow screens, longest first.
const FEWER_WORDS: [[&str; 4]; 2] =
    [["wrong file", "too broad", "explain first", "no network"], ["file", "broad", "explain", "offline"]];

/// User's answer to a dialog, to be carried out by the dialog's owner.
#[derive(Debug)]
pub(crate) enum DialogAnswer {
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

/// Dialog, made up of the state common to all dialogs and the state specific to its kind.
pub(crate) struct Dialog {
    /// Number that identifies the dialog on this screen, and its arrival time in milliseconds. Both are set after the
    /// dialog is added to the stack.
    pub number: u64,
    pub came: Option<u64>,
    pub kind: Box<dyn DialogKind>,
    /// Title, such as `Edit src/main.rs`.
    pub title: String,
    /// Facts shown on the right of the head, such as `1 hunk · +6 −5`.
    pub facts: String,
    /// Risk as text, such as `low risk`.
    pub risk_words: String,
    pub risk: Option<Risk>,
    pub critical: bool,
    /// Reason why the dialog is shown, such as `ask: built-in, writes ask`.
    pub reason: String,
    pub choices: Vec<Choice>,
    pub body: Body,
    /// Guard that decides which key presses count as answers, reset each time the dialog opens.
    pub guard: Guard,
    /// Line field, for example for a denial reason, if it is open.
    pub words: Option<TextField>,
    /// Scroll position of the body, and a record of the rows that have been shown.
    pub view: ScrollState,
    /// Rule dialog or pager that is open in front of this dialog.
    front: Option<Box<Dialog>>,
    /// Screen region and index of each choice in the last frame.
    spots: Vec<(Rect, usize)>,
    /// Whether some required rows were still unseen when the last choice key was pressed.
    pressed_unseen: bool,
}

impl Dialog {
    /// Creates the approval prompt for a call.
    pub(crate) fn approval(approval: Approval) -> Self {
        if approval.effects.is_some() {
            EffectsDialog::new(approval).dialog()
        } else if approval.command.is_some() {
            CommandDialog::new(approval).dialog()
        } else if approval.plan.is_some() {
            PlanDialog::new(approval).dialog()
        } else if !approval.proposal.diff.is_empty() {
            EditDialog::new(approval).dialog()
        } else {
            ToolDialog::new(approval).dialog()
        }
    }

    pub(crate) fn new(kind: Box<dyn DialogKind>, title: String, reason: String, choices: Vec<Choice>, body: Body) -> Self {
        let guard = Guard::new(choices.iter().map(|choice| choice.key).collect(), None);
        Self {
            number: 0,
            came: None,
            kind,
            title,
            facts: String::new(),
            risk_words: String::new(),
            risk: None,
            critical: false,
            reason,
            choices,
            body,
            guard,
            words: None,
            view: ScrollState::default(),
            front: None,
            spots: Vec::new(),
            pressed_unseen: false,
        }
    }

    /// Returns the dialog with its height set to the full screen.
    fn in_full_height(mut self) -> Self {
        self.view.height = Height::Full;
        self
    }

    /// Replaces the choices. The new choices take effect only once they are on the screen.
    fn set_choices(&mut self, choices: Vec<Choice>) {
        self.guard = Guard::new(choices.iter().map(|choice| choice.key).collect(), None);
        self.choices = choices;
    }

    /// Returns the approval that the dialog requests, or `None` if the dialog is not an approval prompt.
    pub(crate) fn asked_approval(&self) -> Option<&Approval> {
        self.kind.prompt().map(|prompt| &prompt.approval)
    }

    /// Returns whether the dialog is the prompt for the approval with this ID.
    pub(crate) fn is_for(&self, id: &ApprovalId) -> bool {
        self.asked_approval().is_some_and(|approval| approval.approval_id == *id)
    }

    /// Returns the selectable hunks or effects, if the dialog has any.
    pub(crate) fn hunks(&self) -> Option<&Hunks> {
        self.kind.selection().map(|selection| &selection.hunks)
    }

    fn hunks_mut(&mut self) -> Option<&mut Hunks> {
        self.kind.selection_mut().map(|selection| &mut selection.hunks)
    }

    /// Returns the field in which a hunk, command or plan is being edited, if it is open.
    pub(crate) fn amend_field(&self) -> Option<&AmendField> {
        self.kind.amend_field()
    }

    /// Sets the field in which a hunk, command or plan is edited. `None` closes it.
    pub(crate) fn set_amend_field(&mut self, field: Option<AmendField>) {
        if let Some(place) = self.kind.amend_field_mut() {
            *place = field;
        }
    }

    /// Returns the time, in milliseconds, at which the call will be denied if it is not answered, or `None` if there is
    /// no limit.
    fn ends(&self) -> Option<u64> {
        self.kind.prompt().and_then(|prompt| prompt.ends)
    }

    /// Returns the answer that an action produces, or `None` if the dialog does not offer the action.
    pub(crate) fn answer(&mut self, act: ChoiceAction, reason: Option<String>) -> Option<DialogAnswer> {
        self.kind.answer(act, reason)
    }

    /// Returns the dialog that is visible: the one in front or, if there is none, this one.
    pub(crate) fn visible(&self) -> &Self {
        self.front.as_deref().unwrap_or(self)
    }

    pub(crate) fn visible_mut(&mut self) -> &mut Self {
        match self.front {
            Some(ref mut front) => front,
            None => self,
        }
    }

    /// Opens the rule dialog in front. Returns `false` if no rule is available.
    pub(crate) fn open_always(&mut self) -> bool {
        let Some(approval) = self.asked_approval() else { return false };
        if approval.always.offers.is_empty() {
            return false;
        }
        let (id, is_command) = (approval.approval_id.clone(), approval.command.is_some());
        self.front = Some(Box::new(RuleChoice::new(id, approval.always.clone(), is_command).panel()));
        true
    }

    /// Opens the pager in front. Returns `false` if there is nothing to show.
    pub(crate) fn open_reading(&mut self) -> bool {
        let rules = self.kind.prompt().and_then(|prompt| Pager::rules(&prompt.approval, &self.choices).panel());
        self.front = rules.or_else(|| self.kind.details()).map(Box::new);
        self.front.is_some()
    }

    /// Applies the policy's reply about a rule. Returns `false` if the rule dialog was not open.
    pub(crate) fn apply_rule_reply(&mut self, told: RuleInfo) -> bool {
        if let (Some(prompt), RuleInfo::Offered { offer, at }) = (self.kind.prompt_mut(), &told)
            && *at == prompt.approval.always.offers.len()
        {
            prompt.approval.always.offers.push(offer.clone());
        }
        let Some(front) = self.front.take_if(|front| front.kind.is::<RuleChoice>()) else { return false };
        let Self { kind, words, guard, view: ScrollState { height, .. }, .. } = *front;
        let Some(rule) = kind.take::<RuleChoice>() else { return false };
        let (rule, keeps_field) = rule.apply(told);
        let mut front = Self { words: words.filter(|_| keeps_field), guard, ..rule.panel() };
        front.view.height = height;
        self.front = Some(Box::new(front));
        true
    }

    /// Closes the rule dialog or pager in front. Returns whether one was open.
    pub(crate) fn close_always(&mut self) -> bool {
        self.front.take().is_some()
    }

    /// Passes an action that selects another rule, expiry, view or page to the dialog in front.
    pub(crate) fn turn_always(&mut self, act: ChoiceAction) {
        let Some(front) = self.front.take() else { return };
        let height = front.view.height;
        self.front = front.kind.turn(act).map(Box::new);
        if let Some(front) = &mut self.front {
            front.view.height = height;
        }
    }

    /// Prepares the dialog for keyboard focus with a new guard, closing open fields and clearing earlier highlights.
    pub(crate) fn arm(&mut self, guard: impl FnOnce(Vec<ChoiceKey>) -> Guard) {
        // Nothing can be typed into a form before the user chooses to fill it in.
        self.kind.leave_field();
        refresh_form(self);
        self.guard = guard(self.choices.iter().map(|choice| choice.key).collect());
        // `a` and Enter allow the call for this session. Wider scopes have their own keys.
        let is_session = |choice: &Choice| choice.enabled && choice.act == ChoiceAction::Keep(GrantScope::Session);
        self.guard.set_preset(self.choices.iter().position(is_session));
        if self.guard.is_strict() {
            self.choices.iter_mut().for_each(|choice| choice.key.confirm = Confirm::LetterThenEnter);
        }
        self.words = self.kind.field_when_armed(self.words.take());
        self.set_amend_field(None);
        if let Some(selection) = self.kind.selection_mut() {
            selection.forget_recent();
        }
    }

    /// Returns whether one of the dialog's fields is open and receives typed text.
    pub(crate) fn has_field(&self) -> bool {
        self.words.is_some() || self.amend_field().is_some()
    }

    /// Returns the number of visible choices, which precede the hidden ones.
    pub(crate) fn shown_choices(&self) -> usize {
        self.choices.iter().take_while(|choice| choice.is_shown).count()
    }

    /// Returns whether the reason is worth showing, because it adds information to the default policy and the visible
    /// text.
    fn shows_reason(&self) -> bool {
        let Some(approval) = self.asked_approval() else { return true };
        let is_told = approval.effects.is_some() || approval.plan.is_some() || !approval.opens.is_empty();
        // The title of a deletion says what the policy could say.
        let is_deletion = approval.tool_name == "Delete" && !approval.critical;
        let is_named = approval.risk_level == Risk::Low || is_deletion || title::titled_part(approval).is_some();
        let is_usual = approval.is_uncovered && is_named || approval.reason == CALLS_SERVER_TOOL;
        !is_told && (!is_usual || approval.description.is_some())
    }

    /// Returns whether the dialog is an approval prompt. Approval prompts are drawn as cards.
    pub(crate) fn is_card(&self) -> bool {
        self.kind.prompt().is_some()
    }

    pub(crate) fn call(&self) -> Option<&CallId> {
        self.kind.call()
    }

    /// Returns the number of body rows that have not been shown yet.
    pub(crate) fn unseen(&self) -> usize {
        self.body.rows(self.view.width).saturating_sub(self.view.seen)
    }

    /// Returns the number of rows that must still be shown before this action can be carried out.
    pub(crate) fn unseen_for(&self, act: ChoiceAction) -> usize {
        match act {
            ChoiceAction::Approve
            | ChoiceAction::Trust(TrustAnswer::Yes)
            | ChoiceAction::Rewind(_)
            | ChoiceAction::Asking(elicitation::FormAction::Send) => {
                self.body.required_rows(self.view.width).saturating_sub(self.view.seen)
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

    /// Returns the number of screens that must still be shown before this action can be carried out.
    pub(crate) fn screens_left(&self, act: ChoiceAction) -> usize {
        self.unseen_for(act).div_ceil(self.view.shown.max(1))
    }

    /// Returns how a choice must be confirmed at the moment. Scrolling to unseen rows needs no confirmation. An action
    /// that only needs some of the rows takes two keys until all rows have been shown.
    pub(crate) fn confirm(&self, choice: usize) -> Confirm {
        let choice = &self.choices[choice];
        match (choice.act.needs_all_seen(), self.unseen_for(choice.act), self.unseen()) {
            _ if self.guard.is_strict() => Confirm::LetterThenEnter,
            (true, 1.., _) => Confirm::Immediate,
            (true, 0, 1..) => Confirm::LetterThenEnter,
            // The rule dialog only shows what could be saved.
            (true, 0, 0) if choice.act == ChoiceAction::Always && choice.enabled => Confirm::Immediate,
            (true, 0, 0) | (false, _, _) => choice.key.confirm,
        }
    }

    /// Passes an input to the guard, after updating how each choice must be confirmed.
    pub(crate) fn step(&mut self, stimulus: GuardInput, now: u64) -> GuardResult {
        // Before the first frame, the number of rows that do not fit on the screen is unknown.
        let is_shown = self.guard.is_shown();
        let confirm = |(at, choice): (usize, &Choice)| if is_shown { self.confirm(at) } else { choice.key.confirm };
        let confirms: Vec<_> = self.choices.iter().enumerate().map(confirm).collect();
        if let GuardInput::Letter(_) | GuardInput::Repeat(_) | GuardInput::Up | GuardInput::Down = stimulus {
            self.guard.set_confirms(&confirms);
            self.guard.set_rows(self.shown_choices());
            self.pressed_unseen = is_shown && self.unseen_for(ChoiceAction::Approve) > 0;
        }
        let outcome = self.guard.step(stimulus, now);
        // Arrow keys move only among the visible choices.
        let listed = self.shown_choices();
        while matches!(stimulus, GuardInput::Up | GuardInput::Down)
            && matches!(self.guard.choice_state(now), super::typeahead_guard::ChoiceState::Highlighted(at) if at >= listed)
        {
            self.guard.step(stimulus, now);
        }
        outcome
    }

    /// Returns the keys of the available choices with their labels.
    pub(crate) fn valid_keys(&self) -> String {
        let enabled = self.choices.iter().filter(|choice| choice.enabled && choice.is_shown);
        let keys: Vec<String> = enabled.map(|choice| format!("{} {}", choice.key.letter, choice.short)).collect();
        keys.join(", ")
    }

    /// Returns the keys of the available choices without labels, for narrow screens.
    pub(crate) fn valid_letters(&self) -> String {
        let enabled = self.choices.iter().filter(|choice| choice.enabled && choice.is_shown);
        enabled.map(|choice| choice.key.letter.to_string()).collect::<Vec<_>>().join(" ")
    }

    /// Highlights the choice under the pointer, after updating how each choice must be confirmed.
    pub(crate) fn point(&mut self, choice: usize, now: u64) {
        let confirms: Vec<_> = (0..self.choices.len()).map(|at| self.confirm(at)).collect();
        self.guard.set_confirms(&confirms);
        self.pressed_unseen = self.unseen_for(ChoiceAction::Approve) > 0;
        self.guard.point(choice, now);
    }

    /// Returns whether triggering a choice would only scroll to unseen rows instead of carrying out its action.
    pub(crate) fn only_shows(&self, act: ChoiceAction) -> bool {
        act.needs_all_seen() && (self.pressed_unseen || self.unseen_for(act) > 0)
    }
}

/// Returns the reasons why approval is required. For a command, these are the numbered reasons of its riskiest parts.
/// Later parts come first, because they may run the output of earlier ones. The rule is named once for consecutive
/// parts that share it.
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
