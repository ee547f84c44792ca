//! What may be chosen in a question, and what each choice does.

use super::body::Verb;
use super::line;
use crate::protocol::{Approval, GrantScope, PreviewOffer, Resolution};
use crate::tui::front::TrustAnswer;
use crate::tui::guard::{Confirm, Key};

/// Reasons why nothing can be remembered that a question has room for.
const NEVER: usize = 3;

/// What a choice does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Act {
    Approve,
    /// Runs it in a copy, and asks about what it did there.
    Preview,
    /// Opens the choice of a rule.
    Always,
    /// Approves and keeps the rule.
    Keep(GrantScope),
    /// The next rule, the next end, another view.
    Widen,
    End,
    Diff,
    /// Opens what there is to read, or its next page.
    Look,
    /// Back to the question.
    Back,
    Deny,
    DenyWithWords,
    Resolve(Resolution),
    Trust(TrustAnswer),
    Mode(Answered),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Answered {
    Yes,
    No,
}

impl Act {
    /// Whether it lets something happen that cannot be taken back: all of it must have been seen.
    pub fn needs_all_seen(self) -> bool {
        match self {
            Self::Approve | Self::Always | Self::Keep(_) | Self::Trust(TrustAnswer::Yes) => true,
            Self::Preview | Self::Widen | Self::End | Self::Diff | Self::Look | Self::Back => false,
            Self::Deny | Self::DenyWithWords | Self::Resolve(_) | Self::Trust(_) | Self::Mode(_) => false,
        }
    }

    /// Whether it is about a rule that stays: it waits until all was seen.
    pub fn keeps(self) -> bool {
        matches!(self, Self::Always | Self::Keep(_))
    }

    /// Whether it shows the rest of what is asked about, for as long as that was not on the screen.
    pub fn shows_the_rest(self) -> bool {
        self.needs_all_seen() && !self.keeps()
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Choice {
    pub key: Key,
    pub act: Act,
    /// `apply it, once`
    pub words: String,
    /// For one line of all choices: `apply`.
    pub short: &'static str,
    /// Grey where it cannot be chosen; the words say why.
    pub enabled: bool,
}

/// Of a question about a call.
pub(super) fn of(approval: &Approval, verb: &Verb, confirm: Confirm) -> Vec<Choice> {
    let again = !approval.opens.is_empty();
    let yes = match (&approval.effects, again) {
        (Some(_), _) => verb.long.to_owned(),
        (None, true) => "run it again with that open, once".to_owned(),
        (None, false) => format!("{}, once", verb.long),
    };
    let mut choices = vec![choice('y', confirm, Act::Approve, yes, if again { "run again" } else { verb.short })];
    choices.extend(preview(approval));
    // What was done already, or is opened for once, is no ground for a rule.
    if approval.effects.is_none() && !again {
        choices.push(always(approval));
    }
    let deny = match (&approval.effects, again) {
        (Some(effects), _) if effects.is_empty() => "drop it: the model is told no, and sees nothing of it",
        (Some(_), _) => "drop them: nothing happens, the model is told no",
        (None, true) => "leave it: the model gets what came of the first run",
        (None, false) => "deny",
    };
    choices.push(choice('n', Confirm::Letter, Act::Deny, deny.to_owned(), "deny"));
    choices.push(choice('N', Confirm::Letter, Act::DenyWithWords, "deny and say why".to_owned(), "why"));
    let explain = match &approval.effects {
        Some(effects) if !effects.output.trim().is_empty() => "all it printed, and which rules have a say",
        Some(_) | None => "explain: which rules have a say, and where",
    };
    choices.push(choice('x', Confirm::Letter, Act::Look, explain.to_owned(), "explain"));
    choices
}

/// The way to see what a command would do, or why there is none; of what is no command nothing.
fn preview(approval: &Approval) -> Option<Choice> {
    let words = "preview: it runs in a copy, and you see what changes before anything does";
    match &approval.preview {
        _ if approval.effects.is_some() || !approval.opens.is_empty() => None,
        PreviewOffer::None => None,
        PreviewOffer::Possible => Some(choice('p', Confirm::Letter, Act::Preview, words.to_owned(), "preview")),
        PreviewOffer::Impossible { reason } => {
            let off = choice('p', Confirm::Letter, Act::Preview, format!("no preview: {}", line(reason)), "no preview");
            Some(Choice { enabled: false, ..off })
        }
    }
}

/// The way to a rule, or why there is none.
fn always(approval: &Approval) -> Choice {
    let always = &approval.always;
    let off = |words: String| Choice { enabled: false, ..choice('a', Confirm::Letter, Act::Always, words, "always …") };
    if !always.offers.is_empty() {
        return choice('a', Confirm::Letter, Act::Always, "always allow this …".to_owned(), "always …");
    }
    if always.never.is_empty() {
        return off("always …  nothing here can be remembered".to_owned());
    }
    off(format!("always …  nothing here can be remembered: {}", never_words(&always.never)))
}

/// Why no rule can be kept: of many reasons the first ones.
pub(super) fn never_words(never: &[String]) -> String {
    let shown: Vec<String> = never.iter().take(NEVER).map(|why| line(why)).collect();
    let more = never.len().saturating_sub(NEVER);
    let more = if more > 0 { format!(", and {more} more") } else { String::new() };
    format!("{}{more}", shown.join(", "))
}

pub(super) fn choice(letter: char, confirm: Confirm, act: Act, words: String, short: &'static str) -> Choice {
    Choice { key: Key { letter, confirm }, act, words, short, enabled: true }
}
