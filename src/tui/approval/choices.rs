//! Choices of a dialog and their actions.

use super::effects::has_output;
use super::note::Verb;
use crate::protocol::{Approval, GrantScope, PreviewOffer, Resolution, RewindScope};
use crate::text;
use crate::tui::elicitation;
use crate::tui::interface::{LockAnswer, TrustAnswer};
use crate::tui::onboarding::SetupChoice;
use crate::tui::typeahead_guard::{ChoiceKey, Confirm};
use std::borrow::Cow;

/// Number of reasons shown for a rule that cannot be saved.
const NEVER: usize = 3;
/// Label of the choice that shows the details.
const EXPLAIN: &str = "explain: which rules apply, and where they are defined";

/// Choice about a goal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum GoalChoice {
    Continue,
    /// Edit the goal in the draft: its check, its budget, its time and its rounds.
    Edit,
    Stop,
}

/// Action of a choice.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ChoiceAction {
    Approve,
    /// Approves a plan; earlier messages are no longer sent to the model.
    ApproveClean,
    /// Runs the command in a copy and asks again with its effects.
    Preview,
    /// Runs the command in a fresh copy, because its changes could not be applied.
    RunAgain,
    /// Opens the rule dialog.
    Always,
    /// Approves the call and saves the rule.
    Keep(GrantScope),
    /// Selects the next rule, the next expiry or another view.
    Widen,
    End,
    Diff,
    /// Opens the field for a rule that the user writes.
    Write,
    /// Lists the recent commands that the rule would have allowed.
    Reach,
    /// Opens the pager, or its next page.
    Look,
    /// Goes back to the dialog.
    Back,
    /// Shows the updated proposal that replaces an outdated one.
    ShowNew,
    /// Opens the file of the current page in the user's editor.
    OpenFile,
    Deny,
    DenyWithWords,
    /// Opens a field with the lines of the current hunk, or with the command.
    Edit,
    /// Opens the resulting file in an editor.
    EditWhole,
    /// Switches between side-by-side and unified diff, or between truncated and wrapped lines.
    View,
    Wrap,
    /// Runs only the first commands of the line.
    First,
    /// Runs the command without network access.
    Offline,
    /// Asks to run the command once outside the sandbox.
    Unsandboxed,
    Resolve(Resolution),
    Trust(TrustAnswer),
    Mode(YesNo),
    Goal(GoalChoice),
    Held(LockAnswer),
    /// Rewinds with this scope.
    Rewind(RewindScope),
    /// Forks the session before the prompt instead of rewinding it.
    Fork,
    /// Deletes a session.
    Forget(YesNo),
    /// Action of the setup dialog.
    Setup(SetupChoice),
    /// Action of a form or URL request from an MCP server.
    Asking(elicitation::FormAction),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum YesNo {
    Yes,
    No,
}

impl ChoiceAction {
    /// Returns whether the action is irreversible, so that the whole approval must have been shown before.
    pub(crate) fn needs_all_seen(self) -> bool {
        match self {
            Self::Approve
            | Self::ApproveClean
            | Self::Always
            | Self::Keep(_)
            | Self::Trust(TrustAnswer::Yes)
            | Self::Rewind(_) => true,
            Self::First | Self::Offline | Self::Asking(elicitation::FormAction::Send) => true,
            Self::Edit | Self::EditWhole | Self::View | Self::Wrap | Self::Unsandboxed => false,
            Self::Preview | Self::RunAgain => false,
            Self::Widen | Self::End | Self::Diff | Self::Write | Self::Reach | Self::Look | Self::Back => false,
            Self::ShowNew
            | Self::OpenFile
            | Self::Deny
            | Self::DenyWithWords
            | Self::Resolve(_)
            | Self::Trust(_)
            | Self::Mode(_)
            | Self::Goal(_)
            | Self::Held(_)
            | Self::Fork
            | Self::Setup(_)
            | Self::Asking(_)
            | Self::Forget(_) => false,
        }
    }

    /// Returns whether the action concerns a saved rule, so that it requires that the whole approval was shown.
    pub(crate) fn is_about_saved_rule(self) -> bool {
        matches!(self, Self::Always | Self::Keep(_))
    }

    /// Returns whether the choice first shows the remaining rows if some were not shown.
    pub(crate) fn shows_the_rest(self) -> bool {
        self.needs_all_seen() && !self.is_about_saved_rule()
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Choice {
    pub key: ChoiceKey,
    pub act: ChoiceAction,
    /// Label: `apply it, once`.
    pub words: String,
    /// Label if all choices share one row: `apply`.
    pub short: Cow<'static, str>,
    /// Whether the choice is available; if not, it is grey and the label gives the reason.
    pub enabled: bool,
    /// Whether the choice can be selected by a word in line mode.
    pub listed: bool,
    /// Whether the dialog shows the choice; if not, its key is listed on the `?` page.
    pub is_shown: bool,
}

/// Returns the choices after a conflict: the effects are lost, but the command can run again.
fn choices_after_conflict() -> Vec<Choice> {
    let again = "run it again in a copy; aye asks about its new changes";
    vec![
        choice('r', Confirm::Letter, ChoiceAction::RunAgain, again.to_owned(), "run again"),
        choice('n', Confirm::Letter, ChoiceAction::Deny, "discard the changes; the model sees a denial".to_owned(), "discard"),
        choice('?', Confirm::Immediate, ChoiceAction::Look, "rules that apply".to_owned(), "more"),
        Choice {
            is_shown: false,
            ..choice('N', Confirm::Letter, ChoiceAction::DenyWithWords, "deny and say why".to_owned(), "why")
        },
    ]
}

/// Returns the choices about the effects of a command that ran in a copy. They cannot be the basis of a rule.
pub(super) fn choices_for_effects(approval: &Approval, verb: &Verb, confirm: Confirm) -> Vec<Choice> {
    let Some(effects) = &approval.effects else { return Vec::new() };
    if effects.conflict.is_some() {
        return choices_after_conflict();
    }
    let approve = choice('y', confirm, ChoiceAction::Approve, verb.long.to_owned(), verb.short);
    let approve = match effects.unlisted_reason() {
        Some(_) => {
            let words = "cannot be applied: the list is incomplete".to_owned();
            Choice { enabled: false, words, short: "cannot be applied".into(), ..approve }
        }
        None => approve,
    };
    let deny = if effects.is_empty() {
        "discard; the model sees a denial and none of the output"
    } else {
        "discard the changes; the model sees a denial"
    };
    let discard = choice('n', Confirm::Letter, ChoiceAction::Deny, deny.to_owned(), "discard");
    let explain = if !effects.groups.is_empty() {
        "full output, new files by folder, and rules that apply"
    } else if has_output(&effects.output) {
        "full output, and rules that apply"
    } else {
        EXPLAIN
    };
    with_common_choices(approval, confirm, vec![approve, discard], explain)
}

/// Returns the choices about a call that has not run yet, or that runs again with more access.
pub(super) fn choices_for_call(approval: &Approval, verb: &Verb, confirm: Confirm) -> Vec<Choice> {
    let again = !approval.opens.is_empty();
    let (yes, short, deny) = if again {
        ("run again with this access, once".to_owned(), "run again", "don't rerun; give the model the first result")
    } else {
        (format!("{}, once", verb.long), "yes", "deny")
    };
    let mut choices = vec![
        choice('y', confirm, ChoiceAction::Approve, yes, short),
        choice('n', Confirm::Letter, ChoiceAction::Deny, deny.to_owned(), "no"),
    ];
    choices.extend(preview(approval));
    // Access for one run that no rule can give is no basis for a rule.
    if !again || !approval.always.offers.is_empty() {
        choices.push(always(approval));
    }
    choices.extend(edit(approval));
    with_common_choices(approval, confirm, choices, EXPLAIN)
}

/// Adds the choices that every call has, and sorts those that are shown to the front.
fn with_common_choices(approval: &Approval, confirm: Confirm, mut choices: Vec<Choice>, explain: &str) -> Vec<Choice> {
    let mut outside = unsandboxed_choice(approval);
    choices.extend(outside.take_if(|_| !approval.opens.is_empty()));
    choices.push(choice('?', Confirm::Immediate, ChoiceAction::Look, explain.to_owned(), "more"));
    let mut rest = partial_choices(approval, confirm);
    rest.extend(outside);
    rest.push(choice('N', Confirm::Letter, ChoiceAction::DenyWithWords, "deny and say why".to_owned(), "why"));
    // Former key of `?`.
    rest.push(Choice { listed: false, ..choice('x', Confirm::Immediate, ChoiceAction::Look, String::new(), "explain") });
    rest.extend(keys(approval));
    choices.extend(rest.into_iter().map(|choice| Choice { is_shown: false, ..choice }));
    // Unavailable choices take no space from available ones.
    for choice in choices.iter_mut().filter(|choice| choice.act != ChoiceAction::Approve) {
        choice.is_shown &= choice.enabled;
    }
    choices.sort_by_key(|choice| !choice.is_shown);
    choices
}

/// Returns the choices for a plan from the model.
pub(super) fn choices_for_plan(approval: &Approval, confirm: Confirm) -> Vec<Choice> {
    let Some(plan) = &approval.plan else { return Vec::new() };
    let yes = match plan.allows().len() {
        0 => "carry it out; actions need approval as usual".to_owned(),
        _ => "carry it out; the listed actions stay allowed until the task ends".to_owned(),
    };
    let comment = "comment: say what to change; the model revises the plan".to_owned();
    let mut choices = vec![
        choice('y', confirm, ChoiceAction::Approve, yes, "yes"),
        choice('f', confirm, ChoiceAction::ApproveClean, "carry it out in a clean context".to_owned(), "clean context"),
        choice('c', Confirm::Letter, ChoiceAction::DenyWithWords, comment, "comment"),
        choice('n', Confirm::Letter, ChoiceAction::Deny, "keep planning".to_owned(), "no"),
    ];
    let more = choice('?', Confirm::Immediate, ChoiceAction::Look, "show details and more keys".to_owned(), "more");
    if approval.amendable.files.is_empty() {
        choices.push(Choice { listed: false, ..more });
        return choices;
    }
    let here = "edit the plan here; aye asks again about the result".to_owned();
    let words = "edit the plan in your editor; aye asks again about the result".to_owned();
    // Line mode opens no editor.
    choices.push(Choice { listed: false, ..choice('e', Confirm::Letter, ChoiceAction::Edit, here, "edit") });
    choices.push(Choice { listed: false, ..more });
    let whole = choice('E', Confirm::Letter, ChoiceAction::EditWhole, words, "editor");
    choices.push(Choice { listed: false, is_shown: false, ..whole });
    choices
}

/// Returns the choices of an outdated approval prompt, whose change can no longer be applied.
pub(super) fn choices_if_outdated(confirm: Confirm) -> Vec<Choice> {
    let deny = "deny: nothing is written; the model sees a denial";
    vec![
        choice('y', confirm, ChoiceAction::ShowNew, "show the updated diff".to_owned(), "updated diff"),
        choice('n', confirm, ChoiceAction::Deny, deny.to_owned(), "deny"),
        choice('N', confirm, ChoiceAction::DenyWithWords, "deny and say why".to_owned(), "why"),
    ]
}

/// Returns the choices shown while the updated proposal is being prepared.
pub(super) fn choices_if_awaited() -> Vec<Choice> {
    let words = "preparing the updated diff…".to_owned();
    vec![Choice { enabled: false, ..choice('y', Confirm::Letter, ChoiceAction::ShowNew, words, "preparing…") }]
}

/// Returns the choices that run only part of a command, or run it without network access.
fn partial_choices(approval: &Approval, confirm: Confirm) -> Vec<Choice> {
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

/// Returns the choice to run the command outside the sandbox. It is shown after the sandbox blocked access.
fn unsandboxed_choice(approval: &Approval) -> Option<Choice> {
    let words = "run it once outside the sandbox; aye asks again first".to_owned();
    let offered = approval.amendable.unsandboxed;
    offered.then(|| choice('o', Confirm::Letter, ChoiceAction::Unsandboxed, words, "outside the sandbox"))
}

fn key(letter: char, act: ChoiceAction, short: &'static str) -> Choice {
    let confirm = if matches!(act, ChoiceAction::View | ChoiceAction::Wrap) { Confirm::Immediate } else { Confirm::Letter };
    Choice { listed: false, ..choice(letter, confirm, act, String::new(), short) }
}

/// Returns the edit choice, if the proposal can be edited.
fn edit(approval: &Approval) -> Option<Choice> {
    let offer = &approval.amendable;
    let can = approval.effects.is_none() && (offer.command.is_some() || !offer.hunks.is_empty());
    can.then(|| key('e', ChoiceAction::Edit, "edit"))
}

/// Returns the view keys and the key that edits the whole file.
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

/// Returns the preview choice, disabled with a reason if a preview is impossible; no choice for tools other than
/// commands.
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

/// Returns the choice that opens the rule dialog, disabled with the reasons if no rule can be saved.
pub(super) fn always(approval: &Approval) -> Choice {
    let always = &approval.always;
    let off =
        |words: String| Choice { enabled: false, ..choice('a', Confirm::Letter, ChoiceAction::Always, words, "unavailable") };
    if !always.offers.is_empty() {
        return choice('a', Confirm::Letter, ChoiceAction::Always, "always allow this…".to_owned(), "always");
    }
    if always.never.is_empty() {
        return off("no rule can be saved for this call".to_owned());
    }
    off(format!("no rule can be saved: {}", join_reasons(&always.never)))
}

/// Joins the first reasons why no rule can be saved.
pub(super) fn join_reasons(never: &[String]) -> String {
    let shown: Vec<String> = never.iter().take(NEVER).map(|why| text::reveal_line(why)).collect();
    let more = never.len().saturating_sub(NEVER);
    let more = if more > 0 { format!(", and {more} more") } else { String::new() };
    format!("{}{more}", shown.join(", "))
}

pub(crate) fn choice(letter: char, confirm: Confirm, act: ChoiceAction, words: String, short: &'static str) -> Choice {
    Choice { key: ChoiceKey { letter, confirm }, act, words, short: short.into(), enabled: true, listed: true, is_shown: true }
}
