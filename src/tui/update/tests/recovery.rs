use super::*;
use crate::tui::interface::Start;
use crate::tui::tests::fixtures::{completed, feed, options, start};

/// Returns a session with the given history that was resumed in the middle of a task.
fn resumed(history: Vec<EventKind>) -> UiModel {
    let mut model = UiModel::new(options(), None, Size::new(100, 30));
    let history = history.into_iter().map(event).collect();
    feed(&mut model, Msg::Start(Box::new(Start { history, ..start() })), 1000);
    model
}

fn runs(id: &str) -> EventKind {
    EventKind::ToolStarted { tool_call_id: call(id), rule: "user:1".to_owned(), summary: None, effects: None, note: None }
}

#[test]
fn unfinished_work_is_reported_in_at_most_five_rows_that_are_kept_up_to_date() {
    let mut model = resumed(vec![
        started("do it"),
        requested("1", "EditFile", "Edit src/main.rs"),
        requested("2", "RunCommand", "$ cargo test"),
        runs("2"),
        requested("3", "EditFile", "Edit README.md"),
        runs("3"),
        requested("4", "ReadFile", "Read a.rs"),
        completed("4", ToolStatus::Succeeded, "x", None),
    ]);
    let screen = draw(&mut model, 1100);
    assert!(screen.contains("Unfinished when aye exited; nothing is restarted:"), "{screen}");
    assert!(screen.contains("Edit src/main.rs: had not started") && screen.contains("$ cargo test: was running"), "{screen}");
    assert!(!screen.contains("Read a.rs: "), "what was done was not in flight\n{screen}");
    tell(&mut model, completed("3", ToolStatus::Succeeded, "", None), 1200);
    tell(&mut model, EventKind::ApprovalRequested(Approval { tool_call_id: call("1"), ..edit_approval("a") }), 1200);
    let interrupted = crate::tui::tests::fixtures::interrupted("2", "$ cargo test");
    tell(&mut model, interrupted, 1200);
    let waiting = vec![QueuedMessage { id: 1, text: "and\nthen".to_owned(), steer: false }];
    tell(&mut model, EventKind::QueueChanged { waiting }, 1200);
    tell(&mut model, EventKind::DraftRestored { text: "half a thought".to_owned() }, 1200);
    model.dialogs.close();
    let screen = draw(&mut model, 1300);
    let rows: Vec<&str> = screen.lines().skip_while(|row| !row.contains("Unfinished when aye exited")).take(6).collect();
    for (row, words) in rows.iter().zip([
        "Unfinished when aye exited",
        "Edit src/main.rs: waiting for your answer again",
        "and 2 more calls",
        "1 queued prompt: and then",
        "draft restored: half a thought",
    ]) {
        assert!(row.contains(words), "{words}\n{screen}");
    }
    tell(&mut model, EventKind::QueueChanged { waiting: Vec::new() }, 1400);
    assert!(!draw(&mut model, 1450).contains("queued prompt"), "a line disappears when it is no longer true");
    tell(&mut model, completed("2", ToolStatus::Failed, "", None), 1500);
    assert!(draw(&mut model, 1550).contains("$ cargo test: answered by you"), "{}", draw(&mut model, 1550));
}

#[test]
fn a_call_without_effect_is_told_once_and_the_report_says_that_the_task_continues() {
    let mut model = resumed(vec![started("do it"), requested("1", "RunCommand", "$ make-it"), runs("1")]);
    let error = ToolError::new(ErrorCode::Cancelled, "aye exited while the command ran in a copy; nothing was applied");
    tell(&mut model, completed("1", ToolStatus::Failed, "", Some(error)), 1200);
    let screen = draw(&mut model, 1300);
    assert!(screen.contains("Unfinished when aye exited; nothing is restarted"), "{screen}");
    tell(&mut model, EventKind::StepStarted { step_count: 2 }, 1400);
    tell(&mut model, EventKind::LlmRequestStarted { model: "m".to_owned(), estimated_input_tokens: 10 }, 1400);
    let screen = draw(&mut model, 1500);
    assert!(screen.contains("no command is rerun, and the task continues"), "{screen}");
    for words in ["$ make-it", "nothing was applied", "Unfinished when aye exited"] {
        assert_eq!(screen.matches(words).count(), 1, "{words}\n{screen}");
    }
    assert!(!screen.contains('▲'), "nothing waits for the user\n{screen}");
}

#[test]
fn a_response_cut_off_is_reported_with_its_word_count() {
    let discarded = EventKind::AnswerDiscarded { reason: "aye exited here".to_owned() };
    let mut model = resumed(vec![started("do it"), text("I will look at"), discarded]);
    let screen = draw(&mut model, 1100);
    assert!(screen.contains("the response was cut off after 4 words;"), "{screen}");
}

#[test]
fn a_completed_session_reports_no_recovery_and_a_restored_draft_takes_one_line() {
    let usage = Usage::default();
    let done = || EventKind::TaskCompleted { text: "x".to_owned(), usage, cost_usd: None, step_count: 1 };
    let mut model = resumed(vec![started("do it"), text("done"), done()]);
    assert!(!draw(&mut model, 1100).contains("Unfinished"));
    tell(&mut model, EventKind::DraftRestored { text: "half".to_owned() }, 1200);
    let screen = draw(&mut model, 1300);
    assert!(screen.contains("Restored:") && screen.contains("draft restored: half"), "{screen}");
}

#[test]
fn new_work_is_not_reported_as_recovery() {
    let mut model = resumed(vec![started("do it"), text("done")]);
    tell(&mut model, started("more"), 1200);
    let waiting = vec![QueuedMessage { id: 1, text: "later".to_owned(), steer: false }];
    tell(&mut model, EventKind::QueueChanged { waiting }, 1300);
    assert!(!draw(&mut model, 1400).contains("1 queued prompt: later"));
}
