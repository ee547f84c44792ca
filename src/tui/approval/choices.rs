//! What may be chosen in a question, and what each choice does.

use super::body::Verb;
use crate::protocol::{Approval, GrantScope, PreviewOffer, Resolution, RewindScope};
use crate::text;
use crate::tui::elicitation;
use crate::tui::interface::{LockAnswer, TrustAnswer};
use crate::tui::onboarding::Pick;
use crate::tui::typeahead_guard::{Confirm, Key};
use std::borrow::Cow;

/// Reasons why nothing can be remembered that a question has room for.
const NEVER: usize = 3;

/// What a choice does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ChoiceAction {
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
    /// Opens the field for a rule in the person's own words.
    Write,
    /// What the rule would have let through.
    Reach,
    /// Opens what there is to read, or its next page.
    Look,
    /// Back to the question.
    Back,
    /// What was made anew in the place of what cannot be done any more.
    ShowNew,
    /// The file that is read, in the person's editor.
    OpenFile,
    Deny,
    DenyWithWords,
    /// Opens a field with the lines of the marked hunk, or with the command.
    Edit,
    /// Opens the file as it would be in an editor.
    EditWhole,
    /// Side by side, or below each other; long lines cut, or not.
    View,
    Wrap,
    /// Only the first commands of a line.
    First,
    /// Without the network.
    Offline,
    Resolve(Resolution),
    Trust(TrustAnswer),
    Mode(YesNo),
    Held(LockAnswer),
    /// Goes back with this much.
    Rewind(RewindScope),
    /// Goes on in a copy that begins before the prompt, in the place of going back.
    Fork,
    /// Forgets a session.
    Forget(YesNo),
    /// Of the first questions.
    Setup(Pick),
    /// Of what an MCP server asks.
    Asking(elicitation::FormAction),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum YesNo {
    Yes,
    No,
}

impl ChoiceAction {
    /// Whether it lets something happen that cannot be taken back: all of it must have been seen.
    pub fn needs_all_seen(self) -> bool {
        match self {
            Self::Approve | Self::Always | Self::Keep(_) | Self::Trust(TrustAnswer::Yes) | Self::Rewind(_) => true,
            Self::First | Self::Offline | Self::Asking(elicitation::FormAction::Send) => true,
            Self::Edit | Self::EditWhole | Self::View | Self::Wrap => false,
            Self::Preview | Self::Widen | Self::End | Self::Diff | Self::Write | Self::Reach | Self::Look | Self::Back => false,
            Self::ShowNew
            | Self::OpenFile
            | Self::Deny
            | Self::DenyWithWords
            | Self::Resolve(_)
            | Self::Trust(_)
            | Self::Mode(_)
            | Self::Held(_)
            | Self::Fork
            | Self::Setup(_)
            | Self::Asking(_)
            | Self::Forget(_) => false,
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
    pub act: ChoiceAction,
    /// `apply it, once`
    pub words: String,
    /// For one line of all choices: `apply`.
    pub short: Cow<'static, str>,
    /// Grey where it cannot be chosen; the words say why.
    pub enabled: bool,
    /// It can be chosen by its words, where questions are answered with those.
    pub listed: bool,
    /// It is shown with the question; else `?` names its key.
    pub is_shown: bool,
}

/// Of a question about a call.
pub(super) fn of(approval: &Approval, verb: &Verb, confirm: Confirm) -> Vec<Choice> {
    let again = !approval.opens.is_empty();
    let yes = match (&approval.effects, again) {
        (Some(_), _) => verb.long.to_owned(),
        (None, true) => "run again with this access, once".to_owned(),
        (None, false) => format!("{}, once", verb.long),
    };
    let short = match (&approval.effects, again) {
        (Some(_), _) => verb.short,
        (None, true) => "run again",
        (None, false) => "yes",
    };
    let approve = choice('y', confirm, ChoiceAction::Approve, yes, short);
    let approve = match approval.effects.as_ref().and_then(|effects| effects.unlisted()) {
        Some(_) => {
            let words = "cannot be applied: the list is incomplete".to_owned();
            Choice { enabled: false, words, short: "cannot be applied".into(), ..approve }
        }
        None => approve,
    };
    let deny = match (&approval.effects, again) {
        (Some(effects), _) if effects.is_empty() => "discard; the model sees a denial and none of the output",
        (Some(_), _) => "discard the changes; the model sees a denial",
        (None, true) => "don't rerun; give the model the first result",
        (None, false) => "deny",
    };
    let no = if approval.effects.is_some() { "discard" } else { "no" };
    let mut choices = vec![approve, choice('n', Confirm::Letter, ChoiceAction::Deny, deny.to_owned(), no)];
    choices.extend(preview(approval));
    // What was done already, or is opened for once, is no ground for a rule.
    if approval.effects.is_none() && !again {
        choices.push(always(approval));
    }
    choices.extend(edit(approval));
    let explain = match &approval.effects {
        Some(effects) if !effects.groups.is_empty() => "full output, new files by folder, and rules that apply",
        Some(effects) if !effects.output.trim().is_empty() => "full output, and rules that apply",
        Some(_) | None => "explain: which rules apply, and where they are defined",
    };
    choices.push(choice('?', Confirm::Immediate, ChoiceAction::Look, explain.to_owned(), "more"));
    let mut rest = parts(approval, confirm);
    rest.push(choice('N', Confirm::Letter, ChoiceAction::DenyWithWords, "deny and say why".to_owned(), "why"));
    // The key of before.
    rest.push(Choice { listed: false, ..choice('x', Confirm::Immediate, ChoiceAction::Look, String::new(), "explain") });
    rest.extend(keys(approval));
    choices.extend(rest.into_iter().map(|choice| Choice { is_shown: false, ..choice }));
    // What cannot be chosen takes no room from what can.
    for choice in choices.iter_mut().filter(|choice| choice.act != ChoiceAction::Approve) {
        choice.is_shown &= choice.enabled;
    }
    choices.sort_by_key(|choice| !choice.is_shown);
    choices
}

/// Of a question about what is not there any more: nothing of it can be done.
pub(super) fn of_outdated(confirm: Confirm) -> Vec<Choice> {
    let deny = "deny: nothing is written; the model sees a denial";
    vec![
        choice('y', confirm, ChoiceAction::ShowNew, "show the updated diff".to_owned(), "updated diff"),
        choice('n', confirm, ChoiceAction::Deny, deny.to_owned(), "deny"),
        choice('N', confirm, ChoiceAction::DenyWithWords, "deny and say why".to_owned(), "why"),
    ]
}

/// While what is to be shown is made.
pub(super) fn of_awaited() -> Vec<Choice> {
    let words = "preparing the updated diff…".to_owned();
    vec![Choice { enabled: false, ..choice('y', Confirm::Letter, ChoiceAction::ShowNew, words, "preparing…") }]
}

/// What is less than all of it.
fn parts(approval: &Approval, confirm: Confirm) -> Vec<Choice> {
    let mut choices = Vec::new();
    if let Some(first) = &approval.amendable.first {
        let parts = if first.count == 1 { "part 1".to_owned() } else { format!("parts 1–{}", first.count) };
        choices.push(choice('r', confirm, ChoiceAction::First, format!("run {parts} only"), "first parts"));
    }
    if approval.amendable.offline {
        choices.push(choice('s', confirm, ChoiceAction::Offline, "run it without the network".to_owned(), "no network"));
    }
    choices
}

fn key(letter: char, act: ChoiceAction, short: &'static str) -> Choice {
    let confirm = if matches!(act, ChoiceAction::View | ChoiceAction::Wrap) { Confirm::Immediate } else { Confirm::Letter };
    Choice { listed: false, ..choice(letter, confirm, act, String::new(), short) }
}

/// The way to change what was proposed, where it can be changed.
fn edit(approval: &Approval) -> Option<Choice> {
    let offer = &approval.amendable;
    let can = approval.effects.is_none() && (offer.command.is_some() || !offer.hunks.is_empty());
    can.then(|| key('e', ChoiceAction::Edit, "edit"))
}

/// Keys that change what is shown, and the file as a whole.
fn keys(approval: &Approval) -> Vec<Choice> {
    let mut keys = Vec::new();
    if approval.effects.is_some() {
        return keys;
    }
    if !approval.amendable.files.is_empty() {
        keys.push(key('E', ChoiceAction::EditWhole, "edit the whole file in $EDITOR"));
    }
    if !approval.proposal.diff.is_empty() {
        keys.push(key('v', ChoiceAction::View, "switch between side-by-side and unified diff"));
        keys.push(key('w', ChoiceAction::Wrap, "truncate or wrap long lines"));
    }
    keys
}

/// The way to see what a command would do, or why there is none; of what is no command nothing.
fn preview(approval: &Approval) -> Option<Choice> {
    let words = "preview: run in a copy and review the changes before they are applied";
    match &approval.preview {
        _ if approval.effects.is_some() || !approval.opens.is_empty() => None,
        PreviewOffer::None => None,
        PreviewOffer::Possible => Some(choice('p', Confirm::Letter, ChoiceAction::Preview, words.to_owned(), "preview")),
        PreviewOffer::Impossible { reason } => {
            let off = choice(
                'p',
                Confirm::Letter,
                ChoiceAction::Preview,
                format!("preview unavailable: {}", text::reveal_line(reason)),
                "no preview",
            );
            Some(Choice { enabled: false, ..off })
        }
    }
}

/// The way to a rule, or why there is none.
pub(super) fn always(approval: &Approval) -> Choice {
    let always = &approval.always;
    let off =
        |words: String| Choice { enabled: false, ..choice('a', Confirm::Letter, ChoiceAction::Always, words, "unavailable") };
    if !always.offers.is_empty() {
        return choice('a', Confirm::Letter, ChoiceAction::Always, "always allow this…".to_owned(), "always");
    }
    if always.never.is_empty() {
        return off("always allow… unavailable".to_owned());
    }
    off(format!("always allow… unavailable: {}", never_words(&always.never)))
}

/// Why no rule can be kept: of many reasons the first ones.
pub(super) fn never_words(never: &[String]) -> String {
    let shown: Vec<String> = never.iter().take(NEVER).map(|why| text::reveal_line(why)).collect();
    let more = never.len().saturating_sub(NEVER);
    let more = if more > 0 { format!(", and {more} more") } else { String::new() };
    format!("{}{more}", shown.join(", "))
}

pub fn choice(letter: char, confirm: Confirm, act: ChoiceAction, words: String, short: &'static str) -> Choice {
    Choice { key: Key { letter, confirm }, act, words, short: short.into(), enabled: true, listed: true, is_shown: true }
}
