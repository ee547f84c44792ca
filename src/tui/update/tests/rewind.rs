use super::*;
use crate::tui::tests::fixtures::{rewind_plan, rewind_points, rewound, tell_of};

fn before(task: &str) -> RewindTarget {
    RewindTarget::Before { task_id: TaskId::new(task), step_id: None }
}

/// Returns a session after two tasks, the second of which changed files.
fn after_two_tasks(width: u16, height: u16) -> Model {
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

/// Returns a screen with the rewind dialog of the second task, opened from the list at 12 s.
fn asked() -> Model {
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
fn the_list_has_the_newest_prompt_first_and_the_plan_names_all_that_happens() {
    let mut model = asked();
    let screen = draw(&mut model, 12_000);
    for words in [
        "Rewind to before #2 Make greet() reject empty names",
        "restored      src/main.rs  +5 −6",
        "deleted       tests/greet.rs",
        "> [ ] src/lib.rs  +3 −1  left as is: changed since aye wrote it",
        "cannot be undone:",
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
fn a_number_and_enter_go_back_and_a_number_alone_does_not() {
    for (key, scope) in [("1", "both"), ("2", "conversation"), ("3", "files")] {
        let mut model = asked();
        assert_eq!(play(&mut model, 12_000, key), [""; 0]);
        assert_eq!(wait(&mut model, 12_400), [""; 0], "the number only marks");
        let sent = play(&mut model, 12_600, "<enter>");
        let words = format!(
            "rewind {{ target: before {{ task_id: taskid(\"task_2\"), step_id: none }}, scope: {scope}, overwrite: [] }}"
        );
        assert_eq!(sent, [words]);
        assert!(model.dialogs.is_empty() && model.rewind.list.is_none());
    }
}

#[test]
fn f_and_enter_go_on_in_a_copy_and_this_session_stays_as_it_is() {
    let mut model = asked();
    let screen = draw(&mut model, 12_000);
    assert!(screen.contains("f  fork instead: copy the session up to before #2"), "{screen}");
    assert!(screen.contains("1 2 3 f, then enter"), "{screen}");
    assert_eq!(play(&mut model, 12_100, "f"), [""; 0]);
    assert_eq!(wait(&mut model, 12_500), [""; 0], "the letter only marks");
    model.info.session = Some(SessionId::new("a1b2c3d4"));
    let sent = play(&mut model, 12_700, "<enter>");
    let until = "until: prompt { task_id: taskid(\"task_2\") }";
    assert_eq!(sent, [format!("lookup(fork {{ session_id: sessionid(\"a1b2c3d4\"), {until} }})")]);
    assert!(model.dialogs.is_empty() && model.rewind.list.is_none());
}

#[test]
fn enter_and_space_alone_decide_nothing() {
    let mut model = asked();
    assert_eq!(play(&mut model, 12_000, "<enter><enter><enter>"), [""; 0]);
    assert_eq!(play(&mut model, 14_000, " "), [""; 0]);
    assert!(model.dialogs.is_open());
}

#[test]
fn what_was_changed_by_hand_goes_back_only_where_it_was_taken() {
    let mut model = asked();
    assert_eq!(play(&mut model, 12_000, " "), [""; 0]);
    let screen = draw(&mut model, 12_100);
    assert!(screen.contains("> [x] src/lib.rs  +3 −1  restored: changed since aye wrote it"), "{screen}");
    assert_eq!(play(&mut model, 13_000, "1"), [""; 0]);
    let sent = play(&mut model, 13_600, "<enter>");
    assert!(sent[0].ends_with("overwrite: [\"src/lib.rs\"] }"), "{sent:?}");
}

#[test]
fn a_sentence_typed_on_goes_to_the_draft_whole() {
    let mut model = asked();
    let sent = play(&mut model, 12_000, "1 more thing 2 do");
    assert!(sent.iter().all(|sent| sent.starts_with("draft")), "{sent:?}");
    assert_eq!(model.composer.text(), "1 more thing 2 do");
    assert!(model.rewind.list.is_none() && !model.dialogs.is_open(), "what is typed is seen");
}

#[test]
fn what_is_typed_while_the_plan_is_made_keeps_the_keyboard() {
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
fn a_plan_that_nobody_asked_for_is_not_shown() {
    let mut model = after_two_tasks(100, 30);
    tell(&mut model, EventKind::RewindPlanned(rewind_plan()), 8900);
    assert!(model.dialogs.is_empty());
}

#[test]
fn the_diff_stands_in_front_and_escape_goes_back_step_by_step() {
    let mut model = asked();
    play(&mut model, 12_000, "d");
    wait(&mut model, 12_400);
    let screen = draw(&mut model, 12_500);
    assert!(screen.contains("Proposed changes") && screen.contains("GreetError::Empty"), "{screen}");
    play(&mut model, 14_000, "<esc>");
    assert!(draw(&mut model, 14_100).contains("conversation only"));
    play(&mut model, 15_000, "<esc>");
    assert!(model.dialogs.is_empty() && model.rewind.list.is_some());
    play(&mut model, 16_000, "<esc>");
    assert!(model.rewind.list.is_none());
}

#[test]
fn nothing_is_decided_that_was_not_on_the_screen() {
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
fn escape_twice_after_a_rest_opens_the_list_and_not_while_a_task_runs() {
    let mut model = after_two_tasks(80, 24);
    assert_eq!(play(&mut model, 8000, "<esc><esc>"), ["listrewindpoints"]);
    assert!(model.rewind.list.is_some());

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
fn a_task_that_runs_is_stopped_first() {
    for typed in ["/rewind", "/checkpoint", "/undo", "/redo"] {
        let mut model = after_two_tasks(100, 24);
        tell_of(&mut model, "task_3", started("run"), 7000);
        assert_eq!(play(&mut model, 8000, &format!("{typed}<enter>")), [""; 0]);
        assert!(draw(&mut model, 9500).contains("a task is running: stop it with esc, then try /"), "{typed}");
    }
}

#[test]
fn the_undone_part_is_marked_and_its_prompt_comes_back() {
    let mut model = asked();
    play(&mut model, 12_000, "1");
    play(&mut model, 12_600, "<enter>");
    tell(&mut model, rewound(before("task_2"), RewindScope::Both, vec![rewind_plan().files[0].clone()]), 13_000);
    assert_eq!(model.composer.text(), "Make greet() reject empty names");
    assert_eq!(model.info.last_answer.as_deref(), Some("It reads tokens."));
    let screen = draw(&mut model, 13_100);
    assert!(screen.contains("❯│Make greet() reject empty names") && screen.contains(" │Rejected."), "{screen}");
    assert!(screen.contains("❯ Explain the parser"), "{screen}");
    assert!(
        screen.contains("rewound to before #2") && screen.contains("left as is  src/lib.rs: changed since aye wrote it"),
        "{screen}"
    );
    assert!(screen.contains("/redo reverts this"), "{screen}");
    tell(&mut model, rewound(RewindTarget::Redo, RewindScope::Both, Vec::new()), 14_000);
    let screen = draw(&mut model, 14_100);
    assert!(screen.contains("❯ Make greet() reject empty names") && !screen.contains("│Rejected."), "{screen}");
}

#[test]
fn files_alone_leave_the_conversation_and_a_draft_stays_what_it_is() {
    let mut model = after_two_tasks(100, 30);
    model.composer.set("my own words");
    tell(&mut model, rewound(before("task_2"), RewindScope::Files, Vec::new()), 13_000);
    assert_eq!(model.composer.text(), "my own words");
    assert!(!draw(&mut model, 13_100).contains("│Rejected."));
    tell(&mut model, rewound(before("task_2"), RewindScope::Conversation, Vec::new()), 14_000);
    let screen = draw(&mut model, 14_100);
    assert!(screen.contains("│Rejected.") && screen.contains("your draft is unchanged"), "{screen}");
}

#[test]
fn what_was_asked_about_in_an_undone_task_is_asked_no_more() {
    let mut model = after_two_tasks(100, 30);
    tell_of(&mut model, "task_2", EventKind::ApprovalRequested(edit_approval("a")), 5000);
    tell_of(&mut model, "task_2", EventKind::ApprovalRequested(edit_approval("b")), 5000);
    tell(&mut model, rewound(before("task_2"), RewindScope::Both, Vec::new()), 13_000);
    assert!(model.dialogs.is_empty());
}

#[test]
fn a_refusal_closes_the_list_so_that_it_is_read() {
    let mut model = after_two_tasks(100, 30);
    play(&mut model, 8000, "/rewind<enter>");
    tell(&mut model, EventKind::Notice { message: "nothing can be undone here".to_owned() }, 9000);
    assert!(model.rewind.list.is_none());
    assert!(draw(&mut model, 9100).contains("nothing can be undone here"));
    play(&mut model, 10_000, "/rewind<enter>");
    tell(&mut model, EventKind::RewindPointsListed { points: Vec::new(), can_redo: true }, 11_000);
    assert!(model.rewind.list.is_none());
    assert!(draw(&mut model, 11_100).contains("there is no prompt to rewind to; /redo undoes the last rewind"));
}
