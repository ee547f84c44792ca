use super::*;

#[test]
fn an_interrupted_call_matches_its_snapshots() {
    check("interrupted", |model| {
        tell(
            model,
            EventKind::ToolInterrupted {
                tool_call_id: call("9"),
                tool_name: "RunCommand".to_owned(),
                summary: "$ cargo publish".to_owned(),
                known: "it had been running for 12 s".to_owned(),
                last_output: None,
                ran_ms: None,
            },
            100,
        );
    });
}

/// Starts and completes two tasks.
fn two_tasks(model: &mut UiModel) {
    for (task, prompt, answer) in
        [("task_1", "Explain the parser", "It reads tokens."), ("task_2", "Make greet() reject empty names", "Rejected.")]
    {
        tell_of(model, task, started(prompt), 100);
        tell_of(model, task, text(answer), 110);
        let usage = Usage::default();
        tell_of(model, task, EventKind::TaskCompleted { text: answer.to_owned(), usage, cost_usd: None, step_count: 1 }, 120);
    }
}

#[test]
fn the_list_of_prompts_to_rewind_to_matches_its_snapshots() {
    check("rewind", |model| {
        two_tasks(model);
        type_line(model, "/rewind", 8000);
        tell(model, EventKind::RewindPointsListed { points: rewind_points(), can_redo: true }, 9000);
    });
}

#[test]
fn the_preview_of_a_rewind_plan_matches_its_snapshots() {
    check("rewind-plan", |model| {
        two_tasks(model);
        type_line(model, "/rewind", 8000);
        tell(model, EventKind::RewindPointsListed { points: rewind_points(), can_redo: false }, 9000);
        picture(model, 9001);
        feed(model, Msg::Input(UiInput::Key(KeyCode::Down.into())), 9500);
        picture(model, 9501);
        feed(model, Msg::Input(UiInput::Key(KeyCode::Enter.into())), 9600);
        tell(model, EventKind::RewindPlanned(rewind_plan()), 9700);
        picture(model, 9701);
        model.dialogs.take_fence(9702);
    });
}

#[test]
fn undone_entries_are_marked() {
    check("rewound", |model| {
        two_tasks(model);
        let target = RewindTarget::Before { task_id: TaskId::new("task_2"), step_id: None };
        tell(model, rewound(target, RewindScope::Both, vec![rewind_plan().files[0].clone()]), 13_000);
    });
}

#[test]
fn a_session_open_in_another_process_matches_its_snapshots() {
    for (width, height) in SIZES {
        let mut model = UiModel::new(options(), None, Size::new(width, height));
        let (held, _answered) = held(None, None);
        feed(&mut model, Msg::Ahead(Box::new(crate::tui::interface::StartupQuestion::Held(held))), 1000);
        picture(&mut model, 1001);
        model.dialogs.take_fence(1002);
        snapshot::check(&format!("ui-held-{width}x{height}"), &picture(&mut model, 20_000));
    }
}

#[test]
fn work_in_progress_at_the_last_exit_matches_its_snapshots() {
    for (width, height) in SIZES {
        let mut model = UiModel::new(options(), None, Size::new(width, height));
        let runs = EventKind::ToolStarted {
            tool_call_id: call("2"),
            rule: "user:1".to_owned(),
            summary: None,
            effects: None,
            note: None,
        };
        let history = vec![
            started("Make greet() reject empty names"),
            requested("1", "EditFile", "Edit src/main.rs"),
            requested("2", "RunCommand", "$ cargo test --workspace"),
            runs,
        ];
        let history = history.into_iter().map(event).collect();
        feed(&mut model, Msg::Start(Box::new(Start { history, ..start() })), 1000);
        tell(&mut model, EventKind::ApprovalRequested(Approval { tool_call_id: call("1"), ..edit_approval("a") }), 1200);
        tell(&mut model, interrupted("2", "$ cargo test --workspace"), 1200);
        tell(&mut model, EventKind::DraftRestored { text: "and the README".to_owned() }, 1200);
        model.dialogs.dismiss();
        snapshot::check(&format!("ui-recovered-{width}x{height}"), &picture(&mut model, 20_000));
    }
}

#[test]
fn a_session_that_cannot_be_saved_matches_its_snapshots() {
    check("unsaved", |model| {
        tell(model, started("Make greet() reject empty names"), 100);
        tell(model, not_saved(), 200);
    });
}
