//! Choices that dialogs offer, and the actions behind them.

use super::effects::has_output;
use super::note::Verb;
use crate::protocol::{Approval, GrantScope, PreviewOffer, Resolution, RewindScope};
use crate::text;
use crate::tui::elicitation;
use crate::tui::interface::{LockAnswer, TrustAnswer};
use crate::tui::onboarding::SetupChoice;
use crate::tui::typeahead_guard::{ChoiceKey, Confirm};
use std::borrow::Cow;

/// Maximum number of reasons shown to explain why no rule can be saved.
const NEVER: usize = 3;
/// Key of the choice that denies with a reason. It is the last one and is drawn only where it takes no row of its own.
pub(super) const WHY: char = 'N';
/// Label of the choice that opens the details page.
const EXPLAIN: &str = "explain: which rules apply, and where they are defined";

/// Choice in the dialog about a goal that cannot continue automatically.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum GoalChoice {
    Continue,
    /// Moves the goal into the draft, where the user can edit its check, budget, time limit and round limit.
    Edit,
    Stop,
}

/// Action that a choice triggers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ChoiceAction {
    Approve,
    /// Approves a plan and stops sending earlier messages to the model.
    ApproveClean,
    /// Runs the command in a copy of the workspace, then asks for approval of its effects.
    Preview,
    /// Runs the command again in a fresh copy, because the changes from the previous run could not be applied.
    RunAgain,
    /// Opens the rule dialog.
    Always,
    /// Approves the call and saves the rule with this scope.
    Keep(GrantScope),
    /// Selects the next rule. `End` selects the next expiry; `Diff` shows or hides the diff of the policy file.
    Widen,
    End,
    Diff,
    /// Opens the field in which the user writes a rule.
    Write,
    /// Lists the recent commands that the rule would have allowed.
    Reach,
    /// Opens the pager, or turns to its next page.
    Look,
    /// Closes the rule dialog or pager and returns to the dialog behind it.
    Back,
    /// Shows the updated proposal that replaces an outdated one.
    ShowNew,
    /// Opens the current page's file in the user's editor.
    OpenFile,
    Deny,
    DenyWithWords,
    /// Opens a field for editing the current hunk or the command.
    Edit,
    /// Opens the resulting file in the user's editor.
    EditWhole,
    /// Switches between side-by-side and unified diff. `Wrap` switches between wrapping and truncating long lines.
    View,
    Wrap,
    /// Runs only the leading parts of the command line that are offered separately.
    First,
    /// Runs the command without network access.
    Offline,
    /// Requests approval to run the command once outside the sandbox.
    Unsandboxed,
    Resolve(Resolution),
    Trust(TrustAnswer),
    Mode(YesNo),
    Goal(GoalChoice),
    Held(LockAnswer),
    /// Rewinds the session, the files or both, as selected by the scope.
    Rewind(RewindScope),
    /// Forks the session before the prompt, instead of rewinding the session.
    Fork,
    /// Confirms or cancels deleting a session.
    Forget(YesNo),
    /// Action in the setup dialog.
    Setup(SetupChoice),
    /// Action in the dialog for an MCP server's form or URL request, or for a question from the model.
    Asking(elicitation::FormAction),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum YesNo {
    Yes,
    No,
}

impl ChoiceAction {
    /// Returns whether all required rows must have been shown before the action is carried out.
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

    /// Returns whether the action opens the rule dialog or saves a rule. Such an action is available only once all rows
    /// have been shown.
    pub(crate) fn is_about_saved_rule(self) -> bool {
        matches!(self, Self::Always | Self::Keep(_))
    }

    /// Returns whether the choice scrolls to the next unseen rows, instead of acting, until all required rows have been
    /// shown.
    pub(crate) fn shows_the_rest(self) -> bool {
        self.needs_all_seen() && !self.is_about_saved_rule()
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Choice {
    pub key: ChoiceKey,
    pub act: ChoiceAction,
    /// Full label, such as `apply it, once`.
    pub words: String,
    /// Short label, used if all choices share one row, such as `apply`.
    pub short: Cow<'static, str>,
    /// Whether the choice is available. An unavailable choice is drawn in grey, and its label gives the reason.
    pub enabled: bool,
    /// Whether line mode lists the choice, so the user can select it by word.
    pub listed: bool,
    /// Whether the dialog shows the choice. The key of a hidden choice is listed on the `?` page.
    pub is_shown: bool,
}

/// Returns the choices offered if files changed since the command ran: its effects can no longer be applied, but it can
/// run again.
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

/// Returns the choices for the effects of a command that ran in a copy. "Always allow" is not among them, because rules
/// cannot be based on effects.
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
        "withhold the output; the model sees a denial"
    } else {
        "discard the changes; the model sees a denial"
    };
    let short = if effects.is_empty() { "no" } else { "discard" };
    let discard = choice('n', Confirm::Letter, ChoiceAction::Deny, deny.to_owned(), short);
    let explain = if !effects.groups.is_empty() {
        "full output, new files by folder, and rules that apply"
    } else if has_output(&effects.output) {
        "full output, and rules that apply"
    } else {
        EXPLAIN
    };
    with_common_choices(approval, confirm, vec![approve, discard], explain)
}

/// Returns the choices for a call that has not run yet, or that would run again with more access.
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
    // If no rule can grant the access for the second run, "always allow" is not offered.
    if !again || !approval.always.offers.is_empty() {
        choices.push(always(approval));
    }
    choices.extend(edit(approval));
    with_common_choices(approval, confirm, choices, EXPLAIN)
}

/// Appends the choices offered for every kind of call, hidden ones last.
fn with_common_choices(approval: &Approval, confirm: Confirm, mut choices: Vec<Choice>, explain: &str) -> Vec<Choice> {
    let mut outside = unsandboxed_choice(approval);
    choices.extend(outside.take_if(|_| !approval.opens.is_empty()));
    choices.push(choice('?', Confirm::Immediate, ChoiceAction::Look, explain.to_owned(), "more"));
    choices.push(choice(WHY, Confirm::Letter, ChoiceAction::DenyWithWords, "deny and say why".to_owned(), "why"));
    let mut rest = partial_choices(approval, confirm);
    rest.extend(outside);
    // `x` is the former key of `?`.
    rest.push(Choice { listed: false, ..choice('x', Confirm::Immediate, ChoiceAction::Look, String::new(), "explain") });
    rest.extend(keys(approval));
    choices.extend(rest.into_iter().map(|choice| Choice { is_shown: false, ..choice }));
    // Unavailable choices are hidden, except approval, to leave space for available ones.
    for choice in choices.iter_mut().filter(|choice| choice.act != ChoiceAction::Approve) {
        choice.is_shown &= choice.enabled;
    }
    choices.sort_by_key(|choice| !choice.is_shown);
    choices
}

/// Returns the choices for a plan proposed by the model.
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

/// Returns the choices for an outdated approval prompt, whose change can no longer be applied.
pub(super) fn choices_if_outdated(confirm: Confirm) -> Vec<Choice> {
    let deny = "deny: nothing is written; the model sees a denial";
    vec![
        choice('y', confirm, ChoiceAction::ShowNew, "show the updated diff".to_owned(), "updated diff"),
        choice('n', confirm, ChoiceAction::Deny, deny.to_owned(), "no"),
        choice('N', confirm, ChoiceAction::DenyWithWords, "deny and say why".to_owned(), "why"),
    ]
}

/// Returns the choices shown while the updated proposal is being prepared.
pub(super) fn choices_if_awaited() -> Vec<Choice> {
    let words = "preparing the updated diff…".to_owned();
    vec![Choice { enabled: false, ..choice('y', Confirm::Letter, ChoiceAction::ShowNew, words, "preparing…") }]
}

/// Returns the choices that run only the leading parts of a command, or run the command without network access.
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

/// Returns the choice that runs the command outside the sandbox, if it is offered. The choice is shown only if the
/// sandbox blocked an access.
fn unsandboxed_choice(approval: &Approval) -> Option<Choice> {
    let words = "run it once outside the sandbox; aye asks again first".to_owned();
    let offered = approval.amendable.unsandboxed;
    offered.then(|| choice('o', Confirm::Letter, ChoiceAction::Unsandboxed, words, "outside the sandbox"))
}

fn key(letter: char, act: ChoiceAction, short: &'static str) -> Choice {
    let confirm = if matches!(act, ChoiceAction::View | ChoiceAction::Wrap) { Confirm::Immediate } else { Confirm::Letter };
    Choice { listed: false, ..choice(letter, confirm, act, String::new(), short) }
}

/// Returns the choice that opens the proposal for editing, or `None` if the proposal cannot be edited.
fn edit(approval: &Approval) -> Option<Choice> {
    let offer = &approval.amendable;
    let can = approval.effects.is_none() && (offer.command.is_some() || !offer.hunks.is_empty());
    can.then(|| key('e', ChoiceAction::Edit, "edit"))
}

/// Returns the hidden choices that open the whole file in an editor or change the diff layout.
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

/// Returns the preview choice, which is disabled with a reason if the command cannot run in a copy. Returns `None` for
/// commands that have already run and for calls that are not commands.
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

/// Returns the choice that opens the rule dialog. It is disabled, with the reasons, if no rule can be saved.
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

/// Joins the first few reasons why no rule can be saved, and appends the number of omitted ones.
pub(super) fn join_reasons(never: &[String]) -> String {
    let shown: Vec<String> = never.iter().take(NEVER).map(|why| text::reveal_line(why)).collect();
    let more = never.len().saturating_sub(NEVER);
    let more = if more > 0 { format!(", and {more} more") } else { String::new() };
    format!("{}{more}", shown.join(", "))
}

pub(crate) fn choice(letter: char, confirm: Confirm, act: ChoiceAction, words: String, short: &'static str) -> Choice {
    Choice { key: ChoiceKey { letter, confirm }, act, words, short: short.into(), enabled: true, listed: true, is_shown: true }
}
