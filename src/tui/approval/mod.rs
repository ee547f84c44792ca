//! A question to the person: what is shown, what may be chosen, how much of it has been seen.

mod answer;
mod body;
mod choices;
mod command;
mod countdown;
mod dialog_stack;
mod effects;
mod hit_regions;
mod hunk;
mod hunks;
mod interrupted;
mod lock_dialog;
mod pager;
mod parts;
mod pending_bar;
mod rewind_dialog;
mod rows;
mod rule_choice;
mod scroll;
mod session_dialogs;
mod staleness;
#[cfg(test)]
mod tests;
mod title;
mod view;

pub use body::{Body, Note, Verb};
pub use choices::{Choice, ChoiceAction, YesNo, choice};
pub use dialog_stack::DialogStack;
pub use hunks::{HunkMark, Hunks};
pub use interrupted::InterruptedCall;
pub use pager::Pager;
pub use pending_bar::strip_words;
pub use rewind_dialog::{Mark, RewindChoice};
pub use rule_choice::RuleChoice;
pub use staleness::{CHANGED, Staleness};
pub use view::{Frame, draw, height, hints};

use super::composer::{Field, Lines};
use super::elicitation::{self, ElicitationForm};
use super::interface::{LockAnswer, LockQuestion, TrustAnswer, TrustQuestion};
use super::onboarding::Onboarding;
use super::typeahead_guard::{Confirm, Guard, GuardInput, GuardResult, Key};
use crate::protocol::{
    Approval, ApprovalId, CallId, Decision, Mode, Resolution, RewindScope, RewindTarget, Risk, RuleTold, SessionId, TaskId,
    VerdictKind,
};
use crate::text;
use ratatui::layout::Rect;
use std::path::PathBuf;

/// For an empty field of words: a digit writes one of them.
pub const REASONS: [&str; 4] = ["wrong file", "too broad", "explain first", "do it without the network"];
/// The same where there is less room for them.
const FEWER_WORDS: [[&str; 4]; 2] =
    [["wrong file", "too broad", "explain first", "no network"], ["file", "broad", "explain", "offline"]];

/// What the question is about.
#[derive(Debug)]
pub enum Question {
    Approval(Box<Approval>),
    /// Which rule is to be kept; stands in front of its approval.
    Keep(Box<RuleChoice>),
    /// Something to read; stands in front of its question and decides nothing.
    Reading(Pager),
    /// A call without an outcome.
    Interrupted {
        id: CallId,
    },
    /// Whether what the project brings takes effect; taken when it is answered.
    Trust(Option<TrustQuestion>),
    /// Whether less is asked from now on.
    Mode(Mode),
    /// What to do about a session that another process has; taken when it is answered.
    Held(Option<LockQuestion>),
    /// Whether to go back, and what with.
    Rewind(Box<RewindChoice>),
    /// Whether a session is forgotten.
    Forget(SessionId),
    /// One of the first questions.
    Setup(Box<Onboarding>),
    /// What an MCP server asks.
    Asking(Box<ElicitationForm>),
}

/// What was decided, for the one who asked.
#[derive(Debug)]
pub enum Answer {
    Decide(ApprovalId, Decision),
    Preview(ApprovalId),
    Resolve(CallId, Resolution),
    Trust(TrustQuestion, TrustAnswer),
    Mode(Mode),
    ModeStays,
    Held(LockQuestion, LockAnswer),
    Rewind { target: RewindTarget, scope: RewindScope, overwrite: Vec<PathBuf> },
    Fork { before: TaskId },
    Forget(SessionId),
    ForgetNot,
}

pub struct Dialog {
    /// Tells it from all others of this screen, and when it came; both once it waits.
    pub number: u64,
    pub came: Option<u64>,
    /// When no answer counts as a no, where that is so.
    ends: Option<u64>,
    pub question: Question,
    /// `Edit src/main.rs`
    pub title: String,
    /// `1 hunk · +6 −5`
    pub facts: String,
    /// `low risk`
    pub risk_words: String,
    pub risk: Option<Risk>,
    pub critical: bool,
    /// `ask: built-in, writes ask`
    pub reason: String,
    pub choices: Vec<Choice>,
    pub body: Body,
    /// Keyboard state since the panel was opened.
    pub guard: Guard,
    /// The choice of a rule, in front of the question.
    front: Option<Box<Dialog>>,
    /// Words for a denial, while they are typed.
    pub words: Option<Field>,
    /// The hunks of a change that can be had otherwise.
    pub hunks: Option<Box<Hunks>>,
    /// What is written in the place of what was proposed, while it is.
    pub writing: Option<AmendField>,
    /// Marks that may yet turn out to be the beginning of a sentence.
    pub marked: Option<RecentMarks>,
    /// Whether before and after stand side by side, where the person chose.
    beside: Option<bool>,
    wraps: bool,
    /// How what is shown stands to what is on disk, and what was told of that last.
    disk: Staleness,
    changed_on_disk: bool,
    /// All of it was on the screen, in whatever shape.
    saw_all: bool,
    pub height: Height,
    /// First row shown, how many rows from the start have been on the screen, and at which width.
    pub scroll: usize,
    pub seen: usize,
    pub seen_width: u16,
    /// Rows of the body in the last frame.
    pub shown: usize,
    /// Where each choice stood in it.
    spots: Vec<(Rect, usize)>,
    /// Whether something that has to be seen was not when the last choice was pressed.
    pressed_unseen: bool,
}

/// A field for what stands in the place of what was proposed.
#[derive(Debug)]
pub struct AmendField {
    pub lines: Lines,
    pub what: AmendTarget,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AmendTarget {
    Hunk,
    Command,
}

/// Marks that were set one right after the other, and what was there before them.
#[derive(Debug)]
pub struct RecentMarks {
    pub at: u64,
    pub before: Hunks,
}

/// How much of the screen a question takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Height {
    Part,
    Full,
}

impl Dialog {
    pub fn approval(approval: Approval) -> Self {
        let strict = approval.critical || approval.risk_level == Risk::High;
        let body = Body::of(&approval);
        let verb = body.verb();
        let confirm = if strict { Confirm::LetterThenEnter } else { Confirm::Letter };
        let choices = choices::of(&approval, &verb, confirm);
        let risk = if approval.critical { "critical risk".to_owned() } else { format!("{} risk", approval.risk_level.as_str()) };
        let reason = format!("ask: {}", reasons(&approval).join("; "));
        let title = title::title(&approval);
        let facts = body.facts().unwrap_or_default();
        // The counts stand on the right.
        let title = match body.counts() {
            Some(counts) => title.strip_suffix(&counts).map(|title| title.trim_end().to_owned()).unwrap_or(title),
            None => title,
        };
        let title = if approval.amendable.edited { format!("{title}, edited by you") } else { title };
        let (risk_level, critical) = (approval.risk_level, approval.critical);
        let hunks = Hunks::of(&approval).map(Box::new);
        let panel = Self::new(Question::Approval(Box::new(approval)), title, text::reveal_line(&reason), choices, body);
        let mut panel = Self { facts, risk_words: risk, risk: Some(risk_level), critical, hunks, ..panel };
        panel.show_hunks();
        panel
    }

    pub fn new(question: Question, title: String, reason: String, choices: Vec<Choice>, body: Body) -> Self {
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

    /// The panel that is shown: the choice of a rule, where it is open.
    pub fn shown(&self) -> &Self {
        self.front.as_deref().unwrap_or(self)
    }

    pub fn shown_mut(&mut self) -> &mut Self {
        match self.front {
            Some(ref mut front) => front,
            None => self,
        }
    }

    /// Opens the choice of a rule; whether there is one.
    pub fn open_always(&mut self) -> bool {
        let Question::Approval(approval) = &self.question else { return false };
        if approval.always.offers.is_empty() {
            return false;
        }
        let about = approval.command.as_ref().map_or(&approval.action_summary, |command| &command.line);
        let (id, verb, is_command) = (approval.approval_id.clone(), self.body.verb().long, approval.command.is_some());
        self.front =
            Some(Box::new(RuleChoice::new(id, approval.always.clone(), verb, text::reveal_name(about), is_command).panel()));
        true
    }

    /// Opens what there is to read; whether there is something.
    pub fn open_reading(&mut self) -> bool {
        let reading = match &self.question {
            Question::Approval(approval) => Pager::rules(approval, &self.choices),
            Question::Trust(Some(trust)) => Pager::files(&trust.files),
            Question::Rewind(rewinding) => Pager::diff(&rewinding.plan.diff),
            Question::Trust(None)
            | Question::Keep(_)
            | Question::Reading(_)
            | Question::Interrupted { .. }
            | Question::Mode(_)
            | Question::Held(_)
            | Question::Setup(_)
            | Question::Asking(_)
            | Question::Forget(_) => return false,
        };
        self.front = reading.panel().map(Box::new);
        self.front.is_some()
    }

    /// What the policy said of a rule, where it is still being chosen; whether something else is shown now.
    pub fn rule_told(&mut self, told: RuleTold) -> bool {
        if let (Question::Approval(approval), RuleTold::Offered { offer, at }) = (&mut self.question, &told)
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
        let (keeping, keeps_field) = keeping.told(told);
        let words = field.filter(|_| keeps_field);
        self.front = Some(Box::new(Self { height, words, guard: front.guard, ..keeping.panel() }));
        true
    }

    /// Back to the question itself; whether there was something in front of it.
    pub fn close_always(&mut self) -> bool {
        self.front.take().is_some()
    }

    /// Another rule, another end or another view of it.
    pub fn turn_always(&mut self, act: ChoiceAction) {
        let Some(front) = self.front.take() else { return };
        let height = front.height;
        let turned = match front.question {
            Question::Keep(keeping) => Some(keeping.turned(act)),
            Question::Reading(reading) => reading.turned(),
            Question::Approval(_)
            | Question::Interrupted { .. }
            | Question::Trust(_)
            | Question::Mode(_)
            | Question::Held(_)
            | Question::Rewind(_)
            | Question::Setup(_)
            | Question::Asking(_)
            | Question::Forget(_) => None,
        };
        self.front = turned.map(|panel| Box::new(Self { height, ..panel }));
    }

    /// The keyboard is given to the panel: nothing of what was held before counts.
    pub fn arm(&mut self, guard: impl FnOnce(Vec<Key>) -> Guard) {
        if let Question::Asking(asking) = &mut self.question {
            // Nothing is typed into it before it was chosen.
            asking.leave();
            self.refresh_asking();
        }
        self.guard = guard(self.choices.iter().map(|choice| choice.key).collect());
        if self.guard.is_strict() {
            self.choices.iter_mut().for_each(|choice| choice.key.confirm = Confirm::LetterThenEnter);
        }
        self.words = match &self.question {
            Question::Setup(setup) => setup.field(),
            _ => None,
        };
        self.writing = None;
        self.marked = None;
    }

    /// Whether a field in it has the keyboard.
    pub fn has_field(&self) -> bool {
        self.words.is_some() || self.writing.is_some()
    }

    /// Choices that are shown with the question; they come first.
    pub fn shown_choices(&self) -> usize {
        self.choices.iter().take_while(|choice| choice.is_shown).count()
    }

    /// Whether its reason says more than that nothing allows it, and than what is shown anyway.
    fn shows_reason(&self) -> bool {
        let Question::Approval(approval) = &self.question else { return true };
        let is_told = approval.effects.is_some() || !approval.opens.is_empty();
        let is_named = approval.risk_level == Risk::Low || title::titled_part(approval).is_some();
        !is_told && (!(approval.is_uncovered && is_named) || approval.description.is_some())
    }

    /// Whether it is about a call, which it shows as its card.
    pub fn is_card(&self) -> bool {
        matches!(self.question, Question::Approval(_))
    }

    pub fn call(&self) -> Option<&CallId> {
        match &self.question {
            Question::Approval(approval) => Some(&approval.tool_call_id),
            Question::Interrupted { id } => Some(id),
            Question::Keep(_)
            | Question::Reading(_)
            | Question::Trust(_)
            | Question::Mode(_)
            | Question::Held(_)
            | Question::Rewind(_)
            | Question::Setup(_)
            | Question::Asking(_)
            | Question::Forget(_) => None,
        }
    }

    /// Rows that have not been on the screen.
    pub fn unseen(&self) -> usize {
        self.body.rows(self.seen_width).saturating_sub(self.seen)
    }

    /// Rows that are to be on the screen before this is done.
    pub fn unseen_for(&self, act: ChoiceAction) -> usize {
        match act {
            ChoiceAction::Approve
            | ChoiceAction::Trust(TrustAnswer::Yes)
            | ChoiceAction::Rewind(_)
            | ChoiceAction::Asking(elicitation::FormAction::Send) => {
                self.body.required(self.seen_width).saturating_sub(self.seen)
            }
            ChoiceAction::First | ChoiceAction::Offline => self.unseen_for(ChoiceAction::Approve),
            ChoiceAction::Edit | ChoiceAction::EditWhole | ChoiceAction::View | ChoiceAction::Wrap => 0,
            ChoiceAction::Always | ChoiceAction::Keep(_) => self.unseen(),
            ChoiceAction::Preview
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
            | ChoiceAction::Held(_)
            | ChoiceAction::Fork
            | ChoiceAction::Forget(_)
            | ChoiceAction::Asking(_)
            | ChoiceAction::Setup(_) => 0,
        }
    }

    /// Screens until all was seen that has to be.
    pub fn screens_left(&self, act: ChoiceAction) -> usize {
        self.unseen_for(act).div_ceil(self.shown.max(1))
    }

    /// How a choice is confirmed now: to see more of it takes no confirmation, not to have seen all of it takes two keys.
    pub fn confirm(&self, choice: usize) -> Confirm {
        let choice = &self.choices[choice];
        match (choice.act.needs_all_seen(), self.unseen_for(choice.act), self.unseen()) {
            _ if self.guard.is_strict() => Confirm::LetterThenEnter,
            (true, 1.., _) => Confirm::Immediate,
            (true, 0, 1..) => Confirm::LetterThenEnter,
            (true, 0, 0) | (false, _, _) => choice.key.confirm,
        }
    }

    /// Feeds the guard with what the choices mean as they are shown.
    pub fn step(&mut self, stimulus: GuardInput, now: u64) -> GuardResult {
        // Before its first frame nobody knows whether a page has to be turned.
        let is_shown = self.guard.is_shown();
        let confirm = |(at, choice): (usize, &Choice)| if is_shown { self.confirm(at) } else { choice.key.confirm };
        let confirms: Vec<_> = self.choices.iter().enumerate().map(confirm).collect();
        if let GuardInput::Letter(_) | GuardInput::Repeat(_) | GuardInput::Up | GuardInput::Down = stimulus {
            self.guard.set_confirms(&confirms);
            self.guard.set_rows(self.shown_choices());
            self.pressed_unseen = is_shown && self.unseen_for(ChoiceAction::Approve) > 0;
        }
        let outcome = self.guard.step(stimulus, now);
        // Arrows go through what has a row.
        let listed = self.shown_choices();
        while matches!(stimulus, GuardInput::Up | GuardInput::Down)
            && matches!(self.guard.look(now), super::typeahead_guard::ChoiceState::Highlighted(at) if at >= listed)
        {
            self.guard.step(stimulus, now);
        }
        outcome
    }

    /// The keys that do something now, with what they do.
    pub fn valid_keys(&self) -> String {
        let enabled = self.choices.iter().filter(|choice| choice.enabled && choice.is_shown);
        let keys: Vec<String> = enabled.map(|choice| format!("{} {}", choice.key.letter, choice.short)).collect();
        keys.join(", ")
    }

    /// Highlights a choice that was pointed at, with what it means as it is shown.
    pub fn point(&mut self, choice: usize, now: u64) {
        let confirms: Vec<_> = (0..self.choices.len()).map(|at| self.confirm(at)).collect();
        self.guard.set_confirms(&confirms);
        self.pressed_unseen = self.unseen_for(ChoiceAction::Approve) > 0;
        self.guard.point(choice, now);
    }

    /// Whether a choice only shows what has not been seen.
    pub fn only_shows(&self, act: ChoiceAction) -> bool {
        act.needs_all_seen() && (self.pressed_unseen || self.unseen_for(act) > 0)
    }
}

/// Why it asks: of a command the reasons of its riskiest parts, the last one first, for it runs what the others bring.
/// Each with the number of its part, and who decides once for all that follow.
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
