//! Dialog about a goal that cannot continue automatically because it is blocked, its check did not run, or it reached a
//! limit.

use super::dialog_kind::DialogKind;
use super::{Body, ChoiceAction, Confirm, Dialog, DialogAnswer, GoalChoice, choice};
use crate::protocol::{Goal, GoalReason, GoalState};
use crate::text;

/// Goal that cannot continue automatically, about which the dialog asks.
pub(crate) struct GoalDialog {
    goal: Goal,
}

impl DialogKind for GoalDialog {
    fn answer(&mut self, act: ChoiceAction, _reason: Option<String>) -> Option<DialogAnswer> {
        let ChoiceAction::Goal(choice) = act else { return None };
        Some(DialogAnswer::Goal(self.goal.clone(), choice))
    }

    fn is_called_for(&self) -> bool {
        true
    }
}

/// Creates the dialog. Returns `None` if the goal's state requires no decision from the user.
pub(crate) fn goal_dialog(state: &GoalState) -> Option<Dialog> {
    let is_paused = match state.reason? {
        GoalReason::Blocked | GoalReason::CheckDidNotRun if state.is_active() => true,
        GoalReason::BudgetUsedUp | GoalReason::TimeUsedUp | GoalReason::RoundsUsedUp => false,
        _ => return None,
    };
    let option =
        |letter, act, words: &str, short| choice(letter, Confirm::Letter, ChoiceAction::Goal(act), words.to_owned(), short);
    let mut choices = Vec::new();
    if is_paused {
        choices.push(option('c', GoalChoice::Continue, "continue with the next round", "continue"));
        choices.push(option('e', GoalChoice::Edit, "edit the goal in the draft: check, budget, time, rounds", "edit"));
    } else {
        choices.push(option('e', GoalChoice::Edit, "edit the goal and its limits in the draft", "edit"));
    }
    choices.push(option('s', GoalChoice::Stop, if is_paused { "end the goal" } else { "leave the goal ended" }, "stop"));
    let title = if is_paused { "The goal is paused" } else { "The goal was not reached" };
    let reason = text::clean_line(state.message.as_deref().unwrap_or("a limit was reached"));
    let body = format!("goal: {}\ncheck: {}", text::reveal_line(&state.goal.text), text::reveal_line(&state.goal.check));
    let kind = GoalDialog { goal: state.goal.clone() };
    Some(Dialog::new(Box::new(kind), title.to_owned(), reason, choices, Body::from_text(body)))
}
