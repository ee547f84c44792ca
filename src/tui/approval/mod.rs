//! A question to the person: what is shown, what may be chosen, how much of it has been seen.

mod always;
mod body;
mod choices;
mod effects;
mod panels;
mod questions;
mod reading;
mod rows;
#[cfg(test)]
mod tests;
mod view;

pub use always::Keeping;
pub use body::Body;
use choices::choice;
pub use choices::{Act, Answered, Choice};
pub use panels::Panels;
pub use reading::Reading;
pub use view::{Frame, draw, height, hints, strip_words};

use super::composer::Field;
use super::front::{Trust, TrustAnswer};
use super::guard::{Confirm, Guard, Outcome, Stimulus};
use crate::protocol::{Approval, ApprovalId, CallId, Decision, Mode, Resolution, Risk, VerdictKind};
use crate::text;

/// For an empty field of words: a digit writes one of them.
pub const REASONS: [&str; 4] = ["wrong file", "too broad", "explain first", "do it without the network"];

/// What the question is about.
#[derive(Debug)]
pub enum Question {
    Approval(Box<Approval>),
    /// Which rule is to be kept; stands in front of its approval.
    Keep(Box<Keeping>),
    /// Something to read; stands in front of its question and decides nothing.
    Reading(Reading),
    /// A call without an outcome.
    Interrupted {
        id: CallId,
    },
    /// Whether what the project brings takes effect; taken when it is answered.
    Trust(Option<Trust>),
    /// Whether less is asked from now on.
    Mode(Mode),
}

/// What was decided, for the one who asked.
#[derive(Debug)]
pub enum Answer {
    Decide(ApprovalId, Decision),
    Preview(ApprovalId),
    Resolve(CallId, Resolution),
    Trust(Trust, TrustAnswer),
    Mode(Mode),
    ModeStays,
}

pub struct Panel {
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
    front: Option<Box<Panel>>,
    /// Words for a denial, while they are typed.
    pub words: Option<Field>,
    pub height: Height,
    /// First row shown, how many rows from the start have been on the screen, and at which width.
    pub scroll: usize,
    pub seen: usize,
    pub seen_width: u16,
    /// Rows of the body in the last frame.
    pub shown: usize,
    /// Whether something that has to be seen was not when the last choice was pressed.
    pressed_unseen: bool,
}

/// How much of the screen a question takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Height {
    Part,
    Full,
}

impl Panel {
    pub fn approval(approval: Approval) -> Self {
        let strict = approval.critical || approval.risk_level == Risk::High;
        let body = Body::of(&approval);
        let verb = body.verb();
        let confirm = if strict { Confirm::LetterThenEnter } else { Confirm::Letter };
        let again = !approval.opens.is_empty();
        let choices = choices::of(&approval, &verb, confirm);
        let risk = if approval.critical { "CRITICAL RISK".to_owned() } else { format!("{} risk", approval.risk_level.as_str()) };
        let reason = format!("ask: {}", reasons(&approval).join("; "));
        // A tool of a manifest or of a policy has its own name.
        let what = match approval.tool_name.as_str() {
            "RunCommand" | "CliSession" | "CliWrite" => "a command".to_owned(),
            own => format!("the tool {}", line(own)),
        };
        let title = match (&approval.command, approval.tool_name.as_str()) {
            (Some(_), _) if approval.effects.is_some() => format!("Keep what {what} did"),
            (Some(_), _) if again => format!("Run {what} again"),
            (Some(_), "CliSession") => "Start a session".to_owned(),
            (Some(_), "CliWrite") => "Type into a session".to_owned(),
            (Some(_), _) => format!("Run {what}"),
            (None, _) if approval.action_summary.is_empty() => line(&approval.title),
            (None, _) => line(&approval.action_summary),
        };
        let facts = body.facts().unwrap_or_default();
        // The counts stand on the right.
        let title = match body.counts() {
            Some(counts) => title.strip_suffix(&counts).map(|title| title.trim_end().to_owned()).unwrap_or(title),
            None => title,
        };
        let (risk_level, critical) = (approval.risk_level, approval.critical);
        let panel = Self::new(Question::Approval(Box::new(approval)), title, line(&reason), choices, body);
        Self { facts, risk_words: risk, risk: Some(risk_level), critical, ..panel }
    }

    pub fn interrupted(id: CallId, tool: &str, summary: &str, known: &str) -> Self {
        let choices = vec![
            choice(
                'r',
                Confirm::LetterThenEnter,
                Act::Resolve(Resolution::Rerun),
                "run it again (it asks first)".to_owned(),
                "run again",
            ),
            choice('s', Confirm::Letter, Act::Resolve(Resolution::Skip), "skip it".to_owned(), "skip"),
            choice(
                't',
                Confirm::Letter,
                Act::Resolve(Resolution::TellModel),
                "tell the model that the outcome is unknown".to_owned(),
                "tell the model",
            ),
        ];
        let body = Body::words(format!("{}\n\n{known}", text::reveal(summary)));
        let reason = "aye ended while this was running; nothing runs again by itself".to_owned();
        let what = if tool == "RunCommand" { "A command".to_owned() } else { format!("A call of {}", line(tool)) };
        Self::new(Question::Interrupted { id }, format!("{what} was interrupted: outcome unknown"), reason, choices, body)
    }

    fn new(question: Question, title: String, reason: String, choices: Vec<Choice>, body: Body) -> Self {
        let guard = Guard::new(choices.iter().map(|choice| choice.key).collect(), None);
        Self {
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
            scroll: 0,
            seen: 0,
            seen_width: 0,
            shown: 0,
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
        self.front = Some(Box::new(Keeping::new(id, approval.always.clone(), verb, line(about), is_command).panel()));
        true
    }

    /// Opens what there is to read; whether there is something.
    pub fn open_reading(&mut self) -> bool {
        let reading = match &self.question {
            Question::Approval(approval) => Reading::rules(approval),
            Question::Trust(Some(trust)) => Reading::files(&trust.files),
            Question::Trust(None)
            | Question::Keep(_)
            | Question::Reading(_)
            | Question::Interrupted { .. }
            | Question::Mode(_) => return false,
        };
        self.front = reading.panel().map(Box::new);
        self.front.is_some()
    }

    /// Back to the question itself; whether there was something in front of it.
    pub fn close_always(&mut self) -> bool {
        self.front.take().is_some()
    }

    /// Another rule, another end or another view of it.
    pub fn turn_always(&mut self, act: Act) {
        let Some(front) = self.front.take() else { return };
        let height = front.height;
        let turned = match front.question {
            Question::Keep(keeping) => Some(keeping.turned(act)),
            Question::Reading(reading) => reading.turned(),
            Question::Approval(_) | Question::Interrupted { .. } | Question::Trust(_) | Question::Mode(_) => None,
        };
        self.front = turned.map(|panel| Box::new(Self { height, ..panel }));
    }

    /// The keyboard is given to the panel: nothing of what was held before counts.
    pub fn arm(&mut self, last_text: Option<u64>) {
        self.guard = Guard::new(self.choices.iter().map(|choice| choice.key).collect(), last_text);
        self.words = None;
    }

    pub fn call(&self) -> Option<&CallId> {
        match &self.question {
            Question::Approval(approval) => Some(&approval.tool_call_id),
            Question::Interrupted { id } => Some(id),
            Question::Keep(_) | Question::Reading(_) | Question::Trust(_) | Question::Mode(_) => None,
        }
    }

    /// Rows that have not been on the screen.
    pub fn unseen(&self) -> usize {
        self.body.rows(self.seen_width).saturating_sub(self.seen)
    }

    /// Rows that are to be on the screen before this is done.
    pub fn unseen_for(&self, act: Act) -> usize {
        match act {
            Act::Approve | Act::Trust(TrustAnswer::Yes) => self.body.required(self.seen_width).saturating_sub(self.seen),
            Act::Always | Act::Keep(_) => self.unseen(),
            Act::Preview | Act::Widen | Act::End | Act::Diff | Act::Look | Act::Back => 0,
            Act::Deny | Act::DenyWithWords | Act::Resolve(_) | Act::Trust(_) | Act::Mode(_) => 0,
        }
    }

    /// Screens until all was seen that has to be.
    pub fn screens_left(&self, act: Act) -> usize {
        self.unseen_for(act).div_ceil(self.shown.max(1))
    }

    /// How a choice is confirmed now: to see more of it the letter is enough, not to have seen all of it takes two keys.
    pub fn confirm(&self, choice: usize) -> Confirm {
        let choice = &self.choices[choice];
        match (choice.act.needs_all_seen(), self.unseen_for(choice.act), self.unseen()) {
            (true, 1.., _) => Confirm::Letter,
            (true, 0, 1..) => Confirm::LetterThenEnter,
            (true, 0, 0) | (false, _, _) => choice.key.confirm,
        }
    }

    /// Feeds the guard with what the choices mean as they are shown.
    pub fn step(&mut self, stimulus: Stimulus, now: u64) -> Outcome {
        let confirms: Vec<_> = (0..self.choices.len()).map(|at| self.confirm(at)).collect();
        if let Stimulus::Letter(_) | Stimulus::Up | Stimulus::Down = stimulus {
            // Time may have decided before this key: then it was about what was shown then.
            let outcome = self.guard.step(Stimulus::Time, now);
            if outcome != Outcome::Nothing {
                return outcome;
            }
            self.guard.set_confirms(&confirms);
            self.pressed_unseen = self.unseen_for(Act::Approve) > 0;
        }
        self.guard.step(stimulus, now)
    }

    /// Whether a choice only shows what has not been seen.
    pub fn only_shows(&self, act: Act) -> bool {
        act.needs_all_seen() && (self.pressed_unseen || self.unseen_for(act) > 0)
    }

    /// The first screen that has not been shown whole.
    pub fn show_unseen(&mut self) {
        self.scroll = self.seen;
    }

    /// All of the screen, or the part of it again.
    pub fn turn_height(&mut self) {
        self.height = match self.height {
            Height::Part => Height::Full,
            Height::Full => Height::Part,
        };
    }

    pub fn scroll_by(&mut self, rows: isize) {
        let last = self.body.rows(self.seen_width).saturating_sub(self.shown);
        self.scroll = self.scroll.saturating_add_signed(rows).min(last);
    }

    /// These rows are on the screen now, at this width.
    pub fn note_shown(&mut self, width: u16, rows: usize) {
        if width != self.seen_width {
            let all = self.seen_width != 0 && self.unseen() == 0;
            self.seen_width = width;
            // Rows of another width are other rows: what was seen in part is to be seen again.
            self.seen = if all { self.body.rows(width) } else { 0 };
        }
        self.shown = rows;
        if self.scroll <= self.seen {
            self.seen = self.seen.max(self.scroll + rows);
        }
    }

    pub fn answer(&mut self, act: Act, reason: Option<String>) -> Option<Answer> {
        let decide = |approval: &Approval, decision| Some(Answer::Decide(approval.approval_id.clone(), decision));
        match (&mut self.question, act) {
            (Question::Approval(approval), Act::Preview) => Some(Answer::Preview(approval.approval_id.clone())),
            (Question::Approval(approval), Act::Approve) => decide(approval, Decision::Approved),
            (Question::Keep(keeping), Act::Keep(scope)) => {
                let (approval_id, remember) = keeping.remember(scope);
                Some(Answer::Decide(approval_id, Decision::ApprovedAlways { remember }))
            }
            (Question::Approval(approval), Act::Deny | Act::DenyWithWords) => decide(approval, Decision::Denied { reason }),
            (Question::Interrupted { id }, Act::Resolve(resolution)) => Some(Answer::Resolve(id.clone(), resolution)),
            (Question::Trust(trust), Act::Trust(yes)) => trust.take().map(|trust| Answer::Trust(trust, yes)),
            (Question::Mode(mode), Act::Mode(Answered::Yes)) => Some(Answer::Mode(*mode)),
            (Question::Mode(_), Act::Mode(Answered::No)) => Some(Answer::ModeStays),
            (
                Question::Approval(_)
                | Question::Keep(_)
                | Question::Reading(_)
                | Question::Interrupted { .. }
                | Question::Trust(_)
                | Question::Mode(_),
                _,
            ) => None,
        }
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
    reasons.extend(approval.description.iter().map(|description| line(description)));
    reasons
}

fn line(text: &str) -> String {
    text::reveal(text).split_whitespace().collect::<Vec<_>>().join(" ")
}
