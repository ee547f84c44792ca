use super::*;

/// Returns a resumed session of which only the last part is loaded. `before` is the position in the journal at which
/// that part starts.
fn resumed(before: Option<i64>) -> UiModel {
    let mut model = UiModel::new(crate::tui::tests::fixtures::options(), None, Size::new(80, 24));
    let history = part("late", 60);
    update(&mut model, Msg::Start(Box::new(Start { history, older: before, ..crate::tui::tests::fixtures::start() })), 0);
    draw(&mut model, 10);
    model
}

fn part(name: &str, count: usize) -> Vec<Event> {
    let step = |n| {
        let id = format!("{name}{n}");
        [requested(&id, "ReadFile", &format!("Read {name} {n}")), text(&format!("{name} {n}.\n"))]
    };
    (0..count).flat_map(step).map(event).collect()
}

fn loaded(model: &mut UiModel, name: &str, before: Option<i64>) {
    tell(model, EventKind::HistoryLoaded { events: part(name, 40), before }, 900);
}

#[test]
fn earlier_history_is_requested_once_near_the_top_and_inserted_without_a_jump() {
    let mut model = resumed(Some(700));
    assert_eq!(play(&mut model, 100, "<pgup>"), Vec::<String>::new(), "not before one is near the top");
    assert_eq!(play(&mut model, 300, "<home>"), ["loadhistory { before: 700 }"]);
    assert_eq!(play(&mut model, 500, "<pgup><home>"), Vec::<String>::new(), "it is asked for already");
    let before = draw(&mut model, 800);
    let first = before.lines().position(|line| line.contains("late 0.")).unwrap();
    loaded(&mut model, "middle", Some(300));
    let after = draw(&mut model, 1000);
    assert_eq!(after.lines().position(|line| line.contains("late 0.")), Some(first), "it stays where it was\n{after}");
    assert!(after.contains("middle 39."), "above it is what came before it\n{after}");
    assert_eq!(play(&mut model, 1100, "<home>"), ["loadhistory { before: 300 }"]);
    loaded(&mut model, "early", None);
    assert_eq!(play(&mut model, 1200, "<home><home>"), Vec::<String>::new(), "there is no more");
    let top = draw(&mut model, 1300);
    assert!(top.contains("Read early 0"), "{top}");
    play(&mut model, 1400, "<end>");
    assert!(draw(&mut model, 1500).contains("late 59."));
}

#[test]
fn loading_earlier_history_changes_only_the_transcript() {
    let mut model = resumed(Some(9));
    let sum = HistorySum {
        usage: Usage { input_tokens: 5_000, output_tokens: 70, ..Usage::default() },
        cost_usd: Some(4.5),
        task_cost_usd: Some(0.5),
        tools: vec![ToolUse { tool_name: "Grep".to_owned(), calls: 8, ..ToolUse::default() }],
        ..HistorySum::default()
    };
    tell(&mut model, EventKind::HistorySummed(sum), 100);
    tell(&mut model, EventKind::ApprovalRequested(edit_approval("a")), 200);
    assert_eq!(model.info.last_answer, None, "a response of an earlier process is not printed at exit");
    let answer = Some("just now".to_owned());
    model.info.last_answer.clone_from(&answer);
    play(&mut model, 300, "<home>");
    loaded(&mut model, "early", None);
    assert_eq!(
        (model.info.tally.cost_usd, model.task.cost_usd, model.info.tally.usage.input_tokens),
        (Some(4.5), Some(0.5), 5_000)
    );
    assert_eq!((model.info.tool_uses.list()[0].calls, model.info.last_answer.clone()), (8, answer));
    assert!(!model.dialogs.is_empty() && !model.is_running());
}
