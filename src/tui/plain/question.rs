//! Printing of dialogs as lines of text, and parsing of the user's answers.

use crate::protocol::{Approval, GrantScope, Resolution, RewindScope, Risk};
use crate::text;
use crate::tui::approval::{
    Body, CHANGED, Choice, ChoiceAction, Dialog, GoalChoice, Pager, YesNo, is_change_visible, is_harmless, lines_below,
    sort_by_risk,
};
use crate::tui::elicitation::FormAction;
use crate::tui::format::format_count;
use crate::tui::interface::{LockAnswer, TrustAnswer};

/// Word that leaves a dialog unanswered for the moment.
pub(crate) const LATER: &str = "later";
/// Word that returns from the rule dialog or an explanation to the dialog behind it.
const BACK: &str = "back";

/// Meaning of a line that was typed in answer to a dialog.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum TypedAnswer {
    /// Choice with this index and, if given, the reason for a denial.
    Choice(usize, Option<String>),
    /// Choice that is unavailable, with its label.
    Off(String),
    /// Denial that lacks the required reason.
    NoReason,
    Later,
    /// Request to return to the dialog behind.
    Back,
    /// Line that is not a valid answer.
    Other,
}

/// Returns a key that identifies a dialog and changes whenever the dialog's content does.
pub(crate) fn key(panel: &Dialog) -> String {
    let id = panel.kind.identity();
    let words: Vec<&str> = panel.choices.iter().map(|choice| choice.words.as_str()).collect();
    format!("{id}\n{}\n{}\n{}", panel.title, panel.reason, words.join("\n"))
}

/// Returns the full text of a dialog, from its head to its choices. `place` contains the dialog's position and the
/// number of dialogs.
pub(crate) fn sentences(panel: &Dialog, place: (usize, usize)) -> Vec<String> {
    if let Some(question) = panel.kind.field_question() {
        return question;
    }
    let (nth, count) = place;
    let head = match (panel.is_card(), panel.kind.is_in_front()) {
        (true, _) => format!("Approval {nth} of {count}: "),
        (false, true) => String::new(),
        (false, false) if count > 1 => format!("Question {nth} of {count}: "),
        (false, false) => "Question: ".to_owned(),
    };
    let mut lines = vec![format!("{head}{}", panel.title)];
    if is_change_visible(panel) {
        // Content that no longer exists is not repeated.
        lines.push(CHANGED.to_owned());
        lines.extend(choices(panel));
        return lines;
    }
    let facts = [panel.risk_words.as_str(), panel.facts.as_str()];
    let facts: Vec<&str> = facts.into_iter().filter(|words| !words.is_empty()).collect();
    if !facts.is_empty() {
        lines.push(facts.join(", "));
    }
    if !panel.reason.is_empty() {
        lines.push(panel.reason.clone());
    }
    match &panel.body {
        Body::Command { .. } => lines.extend(panel.asked_approval().map(command).unwrap_or_default()),
        Body::Edit { above, diff, .. } => {
            lines.extend(above.iter().map(|note| note.text.clone()));
            lines.extend(diff.to_sentences());
            lines.extend(lines_below(panel));
        }
        Body::Words { text } => {
            let pager = panel.kind.find::<Pager>();
            let rows = text.trim_end().split('\n').enumerate();
            let shown = rows.filter(|(at, _)| !pager.is_some_and(|pager| pager.is_key_row(*at)));
            lines.extend(shown.map(|(_, row)| row.to_owned()));
        }
    }
    lines.extend(choices(panel));
    lines
}

/// Returns the lines that list the choices, each with the word that selects it.
fn choices(panel: &Dialog) -> Vec<String> {
    let mut lines = vec!["Type one of these words, then Enter:".to_owned()];
    for choice in plain_choices(panel) {
        let word = choice_word(choice);
        let off = if choice.enabled { "" } else { " (not available)" };
        lines.push(match choice.act {
            ChoiceAction::DenyWithWords => format!("{word} REASON: deny and tell the model why"),
            _ if choice.words == word => format!("{word}{off}"),
            _ => format!("{word}{off}: {}", without_word(&choice.words, &word)),
        });
    }
    if covers_question(panel) {
        lines.push(format!("{BACK}: return to the previous choices"));
    }
    lines.push(format!("{LATER}: {}", panel.kind.later_words()));
    lines
}

/// Returns a label without the word of its choice at its start: `files only: …`.
fn without_word<'a>(label: &'a str, word: &str) -> &'a str {
    let rest = label.strip_prefix(word).map(|rest| rest.strip_prefix(" only").unwrap_or(rest));
    rest.and_then(|rest| rest.strip_prefix(": ")).unwrap_or(label)
}

/// Returns the choices that are usable without a screen. The others change the view or open an editor.
fn plain_choices(panel: &Dialog) -> impl Iterator<Item = &Choice> {
    panel.choices.iter().filter(|choice| choice.listed)
}

/// Returns whether the dialog is in front of another one but offers no choice that returns to it.
fn covers_question(panel: &Dialog) -> bool {
    panel.kind.is_in_front() && panel.choices.iter().all(|choice| choice.act != ChoiceAction::Back)
}

/// Returns the input prompt to show after a dialog.
pub(crate) fn prompt(panel: &Dialog) -> String {
    if panel.kind.field_question().is_some() {
        return panel.kind.field_label().trim_end().to_owned();
    }
    format!("Answer ({}):", expected_answers(panel))
}

/// Returns the accepted answers, separated by commas.
pub(crate) fn expected_answers(panel: &Dialog) -> String {
    let mut words: Vec<String> = plain_choices(panel).filter(|choice| choice.enabled).map(choice_word).collect();
    if covers_question(panel) {
        words.push(BACK.to_owned());
    }
    words.push(LATER.to_owned());
    words.join(", ")
}

/// Returns the word that the user types to select a choice.
fn choice_word(choice: &Choice) -> String {
    let own = match choice.act {
        ChoiceAction::Approve => "allow",
        ChoiceAction::Preview => "preview",
        ChoiceAction::Look if choice.key.letter == '?' => "explain",
        ChoiceAction::Always => "always",
        ChoiceAction::Keep(GrantScope::Session) => "session",
        ChoiceAction::Keep(GrantScope::Project) => "project",
        ChoiceAction::Keep(GrantScope::Everywhere) => "everywhere",
        ChoiceAction::Back => BACK,
        ChoiceAction::Asking(FormAction::Send) => "send",
        ChoiceAction::Asking(FormAction::Fill) => "fill",
        ChoiceAction::Asking(FormAction::Pick(_)) => return slug(&choice.short),
        ChoiceAction::Asking(FormAction::Copy) => "copy",
        ChoiceAction::Asking(FormAction::Decline) => "decline",
        ChoiceAction::Asking(FormAction::Dismiss) => "dismiss",
        ChoiceAction::Unsandboxed => "unsandboxed",
        ChoiceAction::Deny => "deny",
        ChoiceAction::DenyWithWords => "deny because",
        ChoiceAction::Resolve(Resolution::Rerun) => "again",
        ChoiceAction::Resolve(Resolution::Skip) => "skip",
        ChoiceAction::Resolve(Resolution::TellModel) => "tell",
        ChoiceAction::Trust(TrustAnswer::Yes) => "trust",
        ChoiceAction::Trust(TrustAnswer::ReadOnly) | ChoiceAction::Held(LockAnswer::ReadOnly) => "read-only",
        ChoiceAction::Trust(TrustAnswer::Decline) => "decline",
        ChoiceAction::Trust(TrustAnswer::Quit) | ChoiceAction::Held(LockAnswer::Quit) => "quit",
        ChoiceAction::Mode(YesNo::Yes) => "change",
        ChoiceAction::Mode(YesNo::No) => "stay",
        ChoiceAction::Goal(GoalChoice::Continue) => "continue",
        ChoiceAction::Goal(GoalChoice::Edit) => "edit",
        ChoiceAction::Goal(GoalChoice::Stop) => "stop",
        ChoiceAction::Held(LockAnswer::TakeOver) => "take-over",
        ChoiceAction::Held(LockAnswer::Another) => "another",
        ChoiceAction::Rewind(RewindScope::Both) => "both",
        ChoiceAction::Rewind(RewindScope::Conversation) => "conversation",
        ChoiceAction::Rewind(RewindScope::Files) => "files",
        _ => return slug(&choice.short),
    };
    own.to_owned()
}

/// Converts a label to a single word: `answer 1` becomes `answer-1`.
fn slug(short: &str) -> String {
    let words = short.split(|letter: char| !letter.is_alphanumeric()).filter(|word| !word.is_empty());
    words.collect::<Vec<_>>().join("-").to_lowercase()
}

/// Returns the action that `y`, `yes`, `n` or `no` stands for. Approvals of high or critical risk, and all others if the
/// guard is strict, take only the word of a choice.
fn short_answer(panel: &Dialog, said: &str) -> Option<ChoiceAction> {
    let is_small = matches!(panel.risk, Some(Risk::Low | Risk::Medium)) && !panel.critical;
    if !panel.is_card() || !is_small || panel.guard.is_strict() {
        return None;
    }
    match said {
        "y" | "yes" => Some(ChoiceAction::Approve),
        "n" | "no" => Some(ChoiceAction::Deny),
        _ => None,
    }
}

/// Parses a line as an answer. Only complete words and, for approvals of low or medium risk, `y` and `n` are accepted,
/// so any other letter, a digit or an empty line is not an answer.
pub(crate) fn reply(panel: &Dialog, line: &str) -> TypedAnswer {
    let line = line.trim();
    let said = line.to_lowercase();
    if said == LATER {
        return TypedAnswer::Later;
    }
    if said == BACK && covers_question(panel) {
        return TypedAnswer::Back;
    }
    let short = short_answer(panel, &said);
    for (at, choice) in panel.choices.iter().enumerate().filter(|(_, choice)| choice.listed) {
        if short == Some(choice.act) && choice.enabled {
            return TypedAnswer::Choice(at, None);
        }
        let word = choice_word(choice);
        let because = choice.act == ChoiceAction::DenyWithWords;
        if because && let Some(rest) = said.strip_prefix(&word).filter(|rest| rest.is_empty() || rest.starts_with([' ', ':'])) {
            let reason = line[line.len() - rest.len()..].trim_start_matches(':').trim();
            if reason.is_empty() {
                return TypedAnswer::NoReason;
            }
            return TypedAnswer::Choice(at, Some(reason.to_owned()));
        }
        // A single letter is likely a slip, even if a choice has that word.
        if !because && said == word && word.chars().count() > 1 {
            return if choice.enabled { TypedAnswer::Choice(at, None) } else { TypedAnswer::Off(choice.words.clone()) };
        }
    }
    TypedAnswer::Other
}

/// Describes a command: its risky parts, the command line, its notes and its sandbox.
fn command(approval: &Approval) -> Vec<String> {
    let Some(command) = &approval.command else { return Vec::new() };
    let mut lines = parts(approval);
    for line in text::reveal(&command.line).split('\n') {
        lines.push(format!("command: {line}"));
    }
    lines.extend(approval.proposal.own_notes().iter().map(|note| text::reveal_line(note)));
    if command.has_own_sandbox || command.is_unheld() {
        lines.push(format!("sandbox {}", text::reveal(&command.sandbox)));
    }
    if let Some(next) = approval.next_run() {
        let opens: Vec<String> = approval.opens.iter().map(|opened| text::reveal_line(&opened.to_string())).collect();
        lines.push(format!("The sandbox blocked {}. If you answer allow: {next}", opens.join(", ")));
    }
    lines
}

/// Describes the risky parts of a command, riskiest first, with the verdict and rule of each. Harmless parts are only
/// counted.
fn parts(approval: &Approval) -> Vec<String> {
    let (mut lines, count) = (Vec::new(), approval.parts.len());
    for at in sort_by_risk(&approval.parts).into_iter().filter(|at| !is_harmless(&approval.parts[*at])) {
        let part = &approval.parts[at];
        let risk = part.risk_name();
        let name = text::reveal_line(&part.text);
        let (rule, why) = (text::reveal_line(&part.rule), text::reveal_line(&part.reason));
        lines.push(format!("part {} of {count}: {name}", at + 1));
        lines.extend(part.input_from.map(|from| format!("  reads the output of part {}", from + 1)));
        lines.push(format!("  {} by {rule}: {why}; risk {risk}", part.verdict.as_str()));
    }
    let harmless = approval.parts.iter().filter(|part| is_harmless(part)).count();
    if harmless > 0 && count > 1 {
        lines.push(format_count(harmless, "harmless part"));
    }
    lines
}
