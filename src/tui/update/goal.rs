//! Goals: the `/goal` command, the row above the composer, and notes about their progress.

use super::draft::{on_draft_changed, take_draft};
use super::notes::{note, show_requested};
use super::readiness::is_ready;
use crate::protocol::{Command, GOAL_FORM, Goal, GoalState, GoalStatus, validate_check};
use crate::text;
use crate::tui::approval::{GoalChoice, GoalDialog, goal_dialog};
use crate::tui::model::{UiEffect, UiModel};
use crate::tui::transcript::{NoteTone, TranscriptEntryKind};

/// Commands suggested while a goal is paused.
const CHOICES: &str = "\n/goal continue resumes it, /goal check COMMAND replaces the check, /goal stop ends it";

/// Handles `/goal` in all its forms.
pub(crate) fn goal(model: &mut UiModel, words: &str, now: u64, effects: &mut Vec<UiEffect>) {
    let (first, rest) = words.split_once(char::is_whitespace).unwrap_or((words, ""));
    let sends = match (first, rest.trim()) {
        ("", _) => return show(model, now, effects),
        ("stop", "") => Command::StopGoal,
        ("continue", "") => Command::Continue,
        ("check", check) => match validate_check(unquoted(check)) {
            Ok(()) => Command::SetGoalCheck { check: unquoted(check).to_owned() },
            Err(why) => return model.show_toast(format!("{why}: `/goal check cargo test`"), now),
        },
        _ => match Goal::parse(words) {
            Ok(goal) => Command::SetGoal { goal },
            Err(why) => return model.show_toast(format!("{why}: {GOAL_FORM}"), now),
        },
    };
    if !is_ready(model, now) {
        return;
    }
    if matches!(sends, Command::SetGoal { .. }) && model.is_running() {
        return model.show_toast("a task is running: the goal stays in the draft until it ends or you stop it with esc", now);
    }
    take_draft(model, now, effects);
    model.transcript.follow_end();
    effects.push(UiEffect::Send(sends));
}

/// Returns the text without a pair of enclosing quotes.
fn unquoted(text: &str) -> &str {
    let inner = |quote: char| text.strip_prefix(quote).and_then(|text| text.strip_suffix(quote));
    inner('"').or_else(|| inner('\'')).unwrap_or(text)
}

/// Shows the goal and its state, or a notice if no goal is set.
fn show(model: &mut UiModel, now: u64, effects: &mut Vec<UiEffect>) {
    let Some(goal) = model.task.goal.clone() else {
        return model.show_toast(format!("no goal is set: {GOAL_FORM}"), now);
    };
    take_draft(model, now, effects);
    show_requested(model, TranscriptEntryKind::Note { text: to_text(&goal, model.screen.glyphs.dot), tone: NoteTone::Plain });
}

/// Returns the goal, its state and the available commands as lines of text.
pub(crate) fn to_text(goal: &GoalState, dot: &str) -> String {
    let mut lines = vec![goal.progress(dot), format!("check: {}", goal.goal.check), format!("goal: {}", goal.goal.text)];
    if !goal.changed_check_files.is_empty() {
        lines.push(format!("changed files that the check may read: {}", goal.changed_check_files.join(", ")));
    }
    lines.push("/goal stop ends it, /goal check COMMAND replaces the check, /goal continue resumes it".to_owned());
    text::clean(&lines.join("\n")).into_owned()
}

/// Applies a change in the goal's state.
pub(crate) fn on_changed(model: &mut UiModel, state: GoalState, now: u64) {
    // In line mode, a note names the commands instead.
    let dialog = goal_dialog(&state).filter(|_| !model.screen.in_lines && state.message.is_some());
    let asks = dialog.is_some();
    if let Some(message) = &state.message {
        let tone = match state.status {
            GoalStatus::Reached if state.changed_check_files.is_empty() => NoteTone::Plain,
            GoalStatus::Working | GoalStatus::Checking => NoteTone::Plain,
            GoalStatus::Reached | GoalStatus::Paused | GoalStatus::Ended => NoteTone::Warning,
        };
        let choices = if state.status == GoalStatus::Paused && !asks { CHOICES } else { "" };
        note(model, &format!("{message}{choices}"), tone);
    }
    model.dialogs.forget(|panel| panel.kind.is::<GoalDialog>(), model.keys.last_text);
    if let Some(dialog) = dialog {
        let focus = model.may_take_focus(now);
        model.dialogs.add(dialog, focus, model.keys.last_text);
    }
    (model.task.goal_at, model.task.goal_session_cost) = (now, model.info.tally.cost_usd);
    model.task.goal = Some(state).filter(GoalState::is_active);
}

/// Carries out the user's choice in the goal dialog.
pub(crate) fn on_choice(model: &mut UiModel, goal: &Goal, choice: GoalChoice, now: u64, effects: &mut Vec<UiEffect>) {
    match choice {
        GoalChoice::Continue => effects.push(UiEffect::Send(Command::Continue)),
        GoalChoice::Stop if model.task.goal.is_some() => effects.push(UiEffect::Send(Command::StopGoal)),
        GoalChoice::Stop => {}
        GoalChoice::Edit if !model.composer.is_empty() => {
            model.show_toast("the draft contains other text; use /goal to set a new goal", now);
        }
        GoalChoice::Edit => {
            model.composer.set(&goal.to_command());
            on_draft_changed(model, now);
        }
    }
}

/// Returns the text of the row above the composer that shows the goal's progress, or `None` if no goal is set.
pub(crate) fn status_row(model: &UiModel, now: u64) -> Option<String> {
    let mut goal = model.task.goal.clone()?;
    if goal.is_running() {
        goal.elapsed_ms = goal.elapsed_ms.saturating_add(now.saturating_sub(model.task.goal_at));
    }
    // The session reports the goal after each round, and its own cost after each request.
    if let Some(cost) = model.info.tally.cost_usd {
        let more = (cost - model.task.goal_session_cost.unwrap_or_default()).max(0.0);
        goal.cost_usd = Some(goal.cost_usd.unwrap_or_default() + more);
    }
    Some(goal.progress(model.screen.glyphs.dot))
}
