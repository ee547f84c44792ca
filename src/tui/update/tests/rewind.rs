use super::*;
use crate::tui::layers::RewindList;
use crate::tui::tests::fixtures::{rewind_plan, rewind_points, rewound, tell_of};

fn before(task: &str) -> RewindTarget {
    RewindTarget::Before { task_id: TaskId::new(task), step_id: None }
}

/// Returns a session in which two tasks have ended, the second of which changed files.
fn after_two_tasks(width: u16, height: u16) -> UiModel {
    let mut model = model(width, height);
    for (task, prompt, answer) in
        [("task_1", "Explain the parser", "It reads tokens."), ("task_2", "Make greet() reject empty names", "Rejected.")]
    {
        tell_of(&mut model, task, started(prompt), 100);
        tell_of(&mut model, task, text(answer), 110);
        let usage = Usage::default();
        tell_of(
            &mut model,
            task,
            EventKind::TaskCompleted { text: answer.to_owned(), usage, cost_usd: None, step_count: 1 },
            120,
        );
    }
    model
}

/// Returns a screen with the rewind dialog for the second task, which was opened from the list and is armed by 12 s.
fn asked() -> UiModel {
    let mut model = after_two_tasks(100, 36);
    assert_eq!(play(&mut model, 8000, "/rewind<enter>"), ["listrewindpoints"]);
    tell(&mut model, EventKind::RewindPointsListed { points: rewind_points(), can_redo: false }, 9000);
    draw(&mut model, 9001);
    let sent = play(&mut model, 9500, "<down><enter>");
    assert_eq!(sent, ["planrewind { target: before { task_id: taskid(\"task_2\"), step_id: none }, scope: both }"]);
    tell(&mut model, EventKind::RewindPlanned(rewind_plan()), 9700);
    draw(&mut model, 9701);
    draw(&mut model, 9702);
    model
}

#[test]
fn the_list_shows_the_newest_prompt_first_and_the_plan_lists_all_effects() {
    let mut model = asked();
    let screen = draw(&mut model, 12_000);
    for words in [
        "Rewind to before prompt 2: Make greet() reject empty names",
        "restored      src/main.rs  +5 −6",
        "deleted       tests/greet.rs",
        "> [ ] src/lib.rs  +3 −1  left as is: changed since aye wrote it",
        "not undone:",
        "$ git push origin main: it used the network",
        "conversation only: undo 6 messages, keep the files",
    ] {
        assert!(screen.contains(words), "{words}\n{screen}");
    }
    let at = |words| screen.find(words).unwrap_or_else(|| panic!("{words}\n{screen}"));
    assert!(at("#3 Run the tests") < at("#1 Explain the parser"));
    assert!(!screen.contains('\u{1b}'));
}

#[test]
fn rewinding_takes_a_number_and_enter() {
    for (key, scope) in [("1", "both"), ("2", "conversation"), ("3", "files")] {
        let mut model = asked();
        assert_eq!(play(&mut model, 12_000, key), [""; 0]);
        assert_eq!(wait(&mut model, 12_400), [""; 0], "the number only marks");
        let sent = play(&mut model, 12_600, "<enter>");
        let words = format!(
            "rewind {{ target: before {{ task_id: taskid(\"task_2\"), step_id: none }}, scope: {scope}, overwrite: [] }}"
        );
        assert_eq!(sent, [words]);
        assert!(model.dialogs.is_empty() && !model.layers.is_open::<RewindList>());
    }
}

#[test]
fn f_and_enter_fork_the_session_instead_of_rewinding() {
    let mut model = asked();
    let screen = draw(&mut model, 12_000);
    assert!(screen.contains("f  fork instead: copy the session up to before prompt 2"), "{screen}");
    assert!(screen.contains("1 2 3 f, then enter"), "{screen}");
    assert_eq!(play(&mut model, 12_100, "f"), [""; 0]);
    assert_eq!(wait(&mut model, 12_500), [""; 0], "the letter only marks");
    model.info.session = Some(SessionId::new("a1b2c3d4"));
    let sent = play(&mut model, 12_700, "<enter>");
    let until = "until: prompt { task_id: taskid(\"task_2\") }";
    assert_eq!(sent, [format!("lookup(fork {{ session_id: sessionid(\"a1b2c3d4\"), {until} }})")]);
    assert!(model.dialogs.is_empty() && !model.layers.is_open::<RewindList>());
}

#[test]
fn enter_and_space_alone_decide_nothing() {
    let mut model = asked();
    assert_eq!(play(&mut model, 12_000, "<enter><enter><enter>"), [""; 0]);
    assert_eq!(play(&mut model, 14_000, " "), [""; 0]);
    assert!(model.dialogs.is_open());
}

#[test]
fn files_changed_by_the_user_are_restored_only_if_selected() {
    let mut model = asked();
    assert_eq!(play(&mut model, 12_000, " "), [""; 0]);
    let screen = draw(&mut model, 12_100);
    assert!(screen.contains("> [x] src/lib.rs  +3 −1  restored: changed since aye wrote it"), "{screen}");
    assert_eq!(play(&mut model, 13_000, "1"), [""; 0]);
    let sent = play(&mut model, 13_600, "<enter>");
    assert!(sent[0].ends_with("overwrite: [\"src/lib.rs\"] }"), "{sent:?}");
}

#[test]
fn a_sentence_typed_over_the_rewind_dialog_goes_to_the_draft_in_full() {
    let mut model = asked();
    let sent = play(&mut model, 12_000, "1 more thing 2 do");
    assert!(sent.iter().all(|sent| sent.starts_with("draft")), "{sent:?}");
    assert_eq!(model.composer.text(), "1 more thing 2 do");
    assert!(!model.layers.is_open::<RewindList>() && !model.dialogs.is_open(), "what is typed is seen");
}

#[test]
fn a_rewind_plan_that_arrives_during_typing_does_not_take_focus() {
    let mut model = after_two_tasks(100, 30);
    let sent = play(&mut model, 8000, "/undo<enter>");
    assert_eq!(sent, ["planrewind { target: last, scope: both }"]);
    play(&mut model, 8600, "and");
    tell(&mut model, EventKind::RewindPlanned(rewind_plan()), 8900);
    assert!(!model.dialogs.is_open());
    assert_eq!(model.dialogs.len(), 1);
    assert_eq!(model.composer.text(), "and");
}

#[test]
fn an_unrequested_rewind_plan_is_not_shown() {
    let mut model = after_two_tasks(100, 30);
    tell(&mut model, EventKind::RewindPlanned(rewind_plan()), 8900);
    assert!(model.dialogs.is_empty());
}

#[test]
fn the_diff_opens_on_top_and_escape_goes_back_step_by_step() {
    let mut model = asked();
    play(&mut model, 12_000, "d");
    wait(&mut model, 12_400);
    let screen = draw(&mut model, 12_500);
    assert!(screen.contains("Proposed changes") && screen.contains("GreetError::Empty"), "{screen}");
    play(&mut model, 14_000, "<esc>");
    assert!(draw(&mut model, 14_100).contains("conversation only"));
    play(&mut model, 15_000, "<esc>");
    assert!(model.dialogs.is_empty() && model.layers.is_open::<RewindList>());
    play(&mut model, 16_000, "<esc>");
    assert!(!model.layers.is_open::<RewindList>());
}

#[test]
fn a_rewind_needs_the_whole_plan_to_be_shown_first() {
    let mut model = after_two_tasks(60, 20);
    play(&mut model, 8000, "/undo<enter>");
    let mut plan = rewind_plan();
    plan.files = (0..40).map(|n| RewindFile { path: format!("src/f{n}.rs").into(), ..plan.files[1].clone() }).collect();
    tell(&mut model, EventKind::RewindPlanned(plan), 8700);
    draw(&mut model, 8701);
    draw(&mut model, 8702);
    let mut sent = Vec::new();
    let mut at = 12_000;
    let mut presses = 0;
    while sent.is_empty() && presses < 30 {
        play(&mut model, at, "1");
        wait(&mut model, at + 400);
        sent = play(&mut model, at + 700, "<enter>");
        (at, presses) = (at + 4000, presses + 1);
    }
    assert!((3..30).contains(&presses), "{presses}");
    assert!(sent[0].starts_with("rewind"), "{sent:?}");
}

#[test]
fn double_escape_opens_the_rewind_list_only_when_idle() {
    let mut model = after_two_tasks(80, 24);
    assert_eq!(play(&mut model, 8000, "<esc><esc>"), ["listrewindpoints"]);
    assert!(model.layers.is_open::<RewindList>());

    let mut model = after_two_tasks(80, 24);
    play(&mut model, 8000, "x<backspace>");
    assert_eq!(play(&mut model, 9000, "<esc><esc><esc>").iter().filter(|sent| *sent == "listrewindpoints").count(), 0);

    let mut model = after_two_tasks(80, 24);
    tell_of(&mut model, "task_3", started("run"), 7000);
    assert_eq!(play(&mut model, 12_000, "<esc>"), ["cancel"]);
    tell_of(&mut model, "task_3", EventKind::TaskCancelled { step_count: 1 }, 12_050);
    assert_eq!(play(&mut model, 12_100, "<esc><esc>"), [""; 0], "these were meant for the task");
    assert_eq!(play(&mut model, 20_000, "<esc>"), [""; 0]);
    assert_eq!(play(&mut model, 24_000, "<esc>"), [""; 0], "too late for the first one");
}

#[test]
fn rewinding_is_rejected_while_a_task_is_running() {
    for typed in ["/rewind", "/checkpoint", "/undo", "/redo"] {
        let mut model = after_two_tasks(100, 24);
        tell_of(&mut model, "task_3", started("run"), 7000);
        assert_eq!(play(&mut model, 8000, &format!("{typed}<enter>")), [""; 0]);
        assert!(draw(&mut model, 9500).contains("a task is running: stop it with esc, then try /"), "{typed}");
    }
}

#[test]
fn the_undone_part_is_marked_and_its_prompt_returns_to_the_draft() {
    let mut model = asked();
    play(&mut model, 12_000, "1");
    play(&mut model, 12_600, "<enter>");
    tell(&mut model, rewound(before("task_2"), RewindScope::Both, vec![rewind_plan().files[0].clone()]), 13_000);
    assert_eq!(model.composer.text(), "Make greet() reject empty names");
    assert_eq!(model.info.last_answer, None, "neither the undone response nor an older one is printed at exit");
    let screen = draw(&mut model, 13_100);
    assert!(screen.contains("│ Make greet() reject empty names") && screen.contains("│ Rejected."), "{screen}");
    assert!(screen.contains("❯ Explain the parser"), "{screen}");
    assert!(
        screen.contains("rewound to before prompt 2") && screen.contains("left as is  src/lib.rs: changed since aye wrote it"),
        "{screen}"
    );
    assert!(screen.contains("/redo reverts this"), "{screen}");
    tell(&mut model, rewound(RewindTarget::Redo, RewindScope::Both, Vec::new()), 14_000);
    let screen = draw(&mut model, 14_100);
    assert!(screen.contains("❯ Make greet() reject empty names") && !screen.contains("│ Rejected."), "{screen}");
    assert_eq!(model.info.last_answer.as_deref(), Some("Rejected."));
}

#[test]
fn rewinding_files_only_keeps_the_conversation_and_never_replaces_a_draft() {
    let mut model = after_two_tasks(100, 30);
    model.composer.set("my own words");
    tell(&mut model, rewound(before("task_2"), RewindScope::Files, Vec::new()), 13_000);
    assert_eq!(model.composer.text(), "my own words");
    assert!(!draw(&mut model, 13_100).contains("│ Rejected."));
    tell(&mut model, rewound(before("task_2"), RewindScope::Conversation, Vec::new()), 14_000);
    let screen = draw(&mut model, 14_100);
    assert!(screen.contains("│ Rejected.") && screen.contains("your draft is unchanged"), "{screen}");
}

#[test]
fn pending_approvals_of_an_undone_task_are_closed() {
    let mut model = after_two_tasks(100, 30);
    tell_of(&mut model, "task_2", EventKind::ApprovalRequested(edit_approval("a")), 5000);
    tell_of(&mut model, "task_2", EventKind::ApprovalRequested(edit_approval("b")), 5000);
    tell(&mut model, rewound(before("task_2"), RewindScope::Both, Vec::new()), 13_000);
    assert!(model.dialogs.is_empty());
}

#[test]
fn a_rejected_rewind_closes_the_list_so_that_the_notice_is_visible() {
    let mut model = after_two_tasks(100, 30);
    play(&mut model, 8000, "/rewind<enter>");
    tell(&mut model, EventKind::notice("nothing can be undone here"), 9000);
    assert!(!model.layers.is_open::<RewindList>());
    assert!(draw(&mut model, 9100).contains("nothing can be undone here"));
    play(&mut model, 10_000, "/rewind<enter>");
    tell(&mut model, EventKind::RewindPointsListed { points: Vec::new(), can_redo: true }, 11_000);
    assert!(!model.layers.is_open::<RewindList>());
    assert!(draw(&mut model, 11_100).contains("no prompt to rewind to; /redo undoes the last rewind"));
}
