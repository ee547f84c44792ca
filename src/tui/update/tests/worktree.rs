//! Tests of the git state in the status row, and of when it is requested.

use super::*;
use crate::tui::tests::fixtures::completed;

/// Returns the number of updates that the given events request.
fn asked(model: &mut UiModel, events: Vec<EventKind>) -> usize {
    let effects = events.into_iter().flat_map(|kind| update(model, Msg::Event(Box::new(event(kind))), 1000));
    let is_one = |effect: &UiEffect| matches!(effect, UiEffect::Ask(Query::LookUp(HostRequest::Worktree)));
    effects.collect::<Vec<_>>().iter().filter(|effect| is_one(effect)).count()
}

fn told(model: &mut UiModel, changed: u64, line: &str) {
    let (branch, line) = (Some("main".to_owned()), Some(line.to_owned()));
    tell(model, EventKind::LookedUp(HostResponse::Worktree { branch, changed: Some(changed), more: false, line }), 1000);
}

fn end() -> EventKind {
    EventKind::StepStarted { step_count: 2 }
}

#[test]
fn the_worktree_state_is_requested_after_steps_with_changes_and_never_periodically() {
    let mut model = model(120, 36);
    let ran = |id: &str, tool: &str| {
        let mut ended = completed(id, ToolStatus::Succeeded, "", None);
        if let EventKind::ToolCompleted { tool_name, .. } = &mut ended {
            tool.clone_into(tool_name);
        }
        vec![requested(id, tool, "$ make"), ended]
    };
    assert_eq!(asked(&mut model, vec![started("x"), end()]), 0);
    assert_eq!(asked(&mut model, [ran("1", "ReadFile"), vec![end()]].concat()), 0);
    assert_eq!(asked(&mut model, [ran("2", "EditFile"), ran("3", "RunCommand"), vec![end(), end()]].concat()), 1);
    assert_eq!(asked(&mut model, [ran("4", "deploy"), vec![EventKind::TaskCancelled { step_count: 2 }]].concat()), 1);
    for at in [2000, 60_000, 3_600_000] {
        assert!(update(&mut model, Msg::Time, at).is_empty());
    }
    let notice = || vec![EventKind::notice("exported to /w/aye-7f3a01.md, 2 KB")];
    assert_eq!(asked(&mut model, notice()), 0);
    play(&mut model, 5000, "/export md<enter>");
    assert_eq!(asked(&mut model, [notice(), notice()].concat()), 1, "the file that was exported is new");
    model.options.status = vec!["model".to_owned()];
    assert_eq!(asked(&mut model, [ran("5", "EditFile"), vec![end()]].concat()), 0, "nobody would see it");
}

#[test]
fn the_status_row_shows_the_worktree_state_and_sanitized_command_output() {
    let mut model = model(140, 36);
    told(&mut model, 3, "3 jobs \x1b[31m\x1b]52;c;aGk=\x07red\u{202e}");
    let row = draw(&mut model, 1000).lines().rev().nth(1).unwrap().to_owned();
    assert!(row.contains("main ±3") && row.contains("3 jobs red") && !row.contains("aGk"), "{row}");
    told(&mut model, 0, &"long ".repeat(40));
    let row = draw(&mut model, 1000).lines().rev().nth(1).unwrap().to_owned();
    assert!(row.contains("│ main │") && row.contains("long long") && row.contains('…'), "{row}");
}

#[test]
fn configured_status_items_keep_their_order() {
    let mut model = model(120, 36);
    model.options.status = ["branch", "nonsense", "cost", "model"].map(str::to_owned).to_vec();
    told(&mut model, 1, "no item");
    let row = |model: &mut UiModel| draw(model, 1000).lines().rev().nth(1).unwrap().trim().to_owned();
    assert_eq!(row(&mut model), "main ±1 │ sonnet-5 │ ask");
    // The warning about the sandbox is always shown, even if it is not a configured item.
    model.info.header.sandbox = "sandbox OFF".to_owned();
    model.info.header.mode = Mode::Auto;
    assert_eq!(row(&mut model), "main ±1 │ sonnet-5 │ auto │ sandbox OFF");
}
