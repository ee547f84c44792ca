use super::*;

#[test]
fn a_letter_decides_after_a_delay() {
    for (letter, expected) in [("y", "a Approved"), ("n", "a Denied { reason: None }")] {
        let mut model = asked(vec![edit_approval("a")]);
        assert_eq!(play(&mut model, 6000, letter), Vec::<String>::new());
        assert_eq!(model.deadline(6000), Some(6088));
        assert_eq!(wait(&mut model, 6350), [expected]);
        assert!(!model.dialogs.is_open());
    }
}

#[test]
fn always_takes_two_keys() {
    let mut model = asked(vec![edit_approval("a")]);
    play(&mut model, 6000, "a");
    assert_eq!(wait(&mut model, 6400), Vec::<String>::new());
    let screen = draw(&mut model, 6400);
    assert!(screen.contains("Nothing is saved until you press enter."), "{screen}");
    assert!(screen.contains("changes to `src/main.rs`") && !screen.contains("paths ="), "one line, no TOML\n{screen}");
    let session = "a ApprovedAlways { remember: GrantChoice { scope: Session, offer: 0, until: None } }";
    assert_eq!(play(&mut model, 8000, "<enter>"), [session]);
    for (letter, scope, until) in [('1', "Session", "None"), ('2', "Project", "None"), ('3', "Everywhere", "None")] {
        let mut model = asked(vec![edit_approval("a")]);
        play(&mut model, 6000, "a");
        wait(&mut model, 6400);
        assert_eq!(play(&mut model, 7500, &letter.to_string()), Vec::<String>::new());
        assert_eq!(wait(&mut model, 7900), Vec::<String>::new(), "a digit only moves the highlight");
        let sent = format!("a ApprovedAlways {{ remember: GrantChoice {{ scope: {scope}, offer: 0, until: {until} }} }}");
        assert_eq!(play(&mut model, 8000, "<enter>"), [sent]);
        assert!(!model.dialogs.is_open());
    }
}

#[test]
fn toggling_expiry_and_rule_diff_changes_the_view_and_decides_nothing() {
    let mut model = asked(vec![edit_approval("a")]);
    play(&mut model, 6000, "a");
    wait(&mut model, 6400);
    for (at, letter, shown) in [
        (7500, "x", "a saved rule expires on 2026-11-21"),
        (9500, "x", "a saved rule expires on 2026-11-27"),
        (11_500, "d", "+expires_at = 2026-11-27T"),
        (13_500, "d", "changes to `src/main.rs`"),
    ] {
        assert_eq!(play(&mut model, at, letter), Vec::<String>::new());
        wait(&mut model, at + 400);
        let drawn = draw(&mut model, at + 1500);
        assert!(drawn.contains(shown), "{letter}: {drawn}");
    }
    play(&mut model, 15_500, "2");
    wait(&mut model, 15_900);
    let sent = play(&mut model, 16_000, "<enter>");
    assert!(sent[0].contains("scope: Project") && sent[0].contains("until: Some(2026-11-27T"), "{sent:?}");
}

#[test]
fn in_the_rule_choice_escape_returns_to_the_approval_and_text_goes_to_the_draft() {
    let mut model = asked(vec![edit_approval("a")]);
    play(&mut model, 6000, "a");
    wait(&mut model, 6400);
    play(&mut model, 7500, "<esc>");
    assert!(draw(&mut model, 7600).contains("y  yes"));
    wait(&mut model, 9000);
    play(&mut model, 9100, "a");
    wait(&mut model, 9500);
    assert_eq!(play(&mut model, 11_000, "2 of them"), Vec::<String>::new());
    assert_eq!(model.composer.text(), "2 of them");
    assert!(!model.dialogs.is_open());
}

#[test]
fn a_critical_command_takes_two_keys() {
    let mut model = asked(vec![command_approval("a")]);
    play(&mut model, 6000, "y");
    assert_eq!(wait(&mut model, 6400), Vec::<String>::new());
    assert_eq!(play(&mut model, 6500, "<enter>"), ["a Approved"]);
}

#[test]
fn a_denial_with_a_reason_sends_the_reason() {
    let mut model = asked(vec![edit_approval("a")]);
    play(&mut model, 6000, "N");
    wait(&mut model, 6350);
    assert_eq!(play(&mut model, 6400, "wrong file, y<enter>"), ["a Denied { reason: Some(\"wrong file, y\") }"]);
    for (typed, reason) in [("2", "too broad"), ("2 1", "too broad 1"), ("9", "9"), ("4!", "run without network!")] {
        let mut model = asked(vec![edit_approval("a")]);
        play(&mut model, 6000, "N");
        wait(&mut model, 6350);
        assert!(draw(&mut model, 6390).contains("1  wrong file   2  too broad"));
        let sent = format!("a Denied {{ reason: Some({reason:?}) }}");
        assert_eq!(play(&mut model, 6400, &format!("{typed}<enter>")), [sent]);
    }
}

#[test]
fn text_typed_over_an_approval_goes_to_the_draft_in_order() {
    let mut model = asked(vec![edit_approval("a")]);
    assert_eq!(play(&mut model, 6000, "yes please"), Vec::<String>::new());
    assert_eq!(model.composer.text(), "yes please");
    assert!(!model.dialogs.is_open());
    assert_eq!(wait(&mut model, 9000), ["draft \"yes please\""]);
    assert!(!model.dialogs.is_open(), "a draft keeps the keyboard");
}

#[test]
fn a_paste_never_decides() {
    let mut model = asked(vec![edit_approval("a")]);
    update(&mut model, Msg::Input(UiInput::Paste("y".to_owned())), 6000);
    assert!(wait(&mut model, 7000).iter().all(|sent| sent == "draft \"y\""));
    assert_eq!(model.composer.text(), "y");
}

#[test]
fn an_approval_that_arrives_during_typing_needs_tab_to_get_focus() {
    let mut model = model(100, 40);
    play(&mut model, 4000, "also fix the");
    tell(&mut model, EventKind::ApprovalRequested(edit_approval("a")), 5500);
    assert!(draw(&mut model, 7400).contains("tab to review"));
    assert_eq!(play(&mut model, 7500, " bug in case 1 y"), Vec::<String>::new());
    assert_eq!(model.composer.text(), "also fix the bug in case 1 y");
    play(&mut model, 12_000, "<tab>");
    assert!(draw(&mut model, 12_100).contains("draft: also fix the bug in case 1 y"));
    play(&mut model, 13_000, "y");
    assert_eq!(wait(&mut model, 13_350)[0], "a Approved");
    assert_eq!(model.composer.text(), "also fix the bug in case 1 y");
}

#[test]
fn an_approval_opens_automatically_after_a_pause_in_typing() {
    let mut model = model(100, 40);
    play(&mut model, 4000, "g<backspace>");
    tell(&mut model, EventKind::ApprovalRequested(edit_approval("a")), 4300);
    assert!(!model.dialogs.is_open());
    wait(&mut model, 4900);
    assert!(!model.dialogs.is_open());
    wait(&mut model, 5300);
    assert!(model.dialogs.is_open());
    play(&mut model, 6000, "<esc>");
    wait(&mut model, 60_000);
    assert!(!model.dialogs.is_open(), "put off is put off");
}

#[test]
fn an_overview_opened_by_the_user_is_not_covered_by_a_pending_approval() {
    let mut model = model(100, 40);
    tell(&mut model, started("go"), 1000);
    tell(&mut model, queued(&["and then the README"]), 1000);
    play(&mut model, 4000, "/queue");
    tell(&mut model, EventKind::ApprovalRequested(edit_approval("a")), 4300);
    play(&mut model, 4400, "<enter>");
    wait(&mut model, 60_000);
    assert!(!model.dialogs.is_open());
    let screen = draw(&mut model, 60_000);
    assert!(screen.contains("waiting for you") && screen.contains("after the task  and then the README"), "{screen}");
    play(&mut model, 61_000, "<tab>");
    assert!(model.dialogs.is_open(), "the person goes there");
}

#[test]
fn each_decision_applies_to_its_own_approval_only() {
    let mut model = asked(vec![edit_approval("a"), edit_approval("b"), edit_approval("c")]);
    play(&mut model, 6000, "<tab>");
    draw(&mut model, 6800);
    play(&mut model, 7000, "n");
    assert_eq!(wait(&mut model, 7350), ["b Denied { reason: None }"]);
    assert_eq!(model.dialogs.len(), 2);
    // The next dialog gets focus immediately, because the last key was an answer.
    assert_eq!(play(&mut model, 7400, "y"), Vec::<String>::new());
    assert_eq!(wait(&mut model, 7750), ["c Approved"]);
}

#[test]
fn nothing_is_approved_before_the_whole_diff_was_shown() {
    let mut long = edit_approval("a");
    let added = (1..=100).map(|n| format!("+line {n}")).collect::<Vec<_>>().join("\n");
    long.proposal.diff = FileDiffs::read(&format!("--- a/f\n+++ b/f\n@@ -0,0 +1,100 @@\n{added}\n"));
    let mut model = asked(vec![long]);
    let (mut at, mut screens) = (6000, String::new());
    for _ in 0..20 {
        screens.push_str(&draw(&mut model, at));
        play(&mut model, at, "y");
        if !wait(&mut model, at + 350).is_empty() {
            assert!((1..=100).all(|n| screens.contains(&format!("line {n}"))), "something was never on the screen");
            return;
        }
        at += 1000;
    }
    panic!("never approved");
}

#[test]
fn seeing_the_end_of_a_diff_does_not_count_as_seeing_the_middle() {
    let mut long = edit_approval("a");
    let added = (1..=100).map(|n| format!("+line {n}")).collect::<Vec<_>>().join("\n");
    long.proposal.diff = FileDiffs::read(&format!("--- a/f\n+++ b/f\n@@ -0,0 +1,100 @@\n{added}\n"));
    let mut model = asked(vec![long]);
    play(&mut model, 6000, "<end>");
    assert!(draw(&mut model, 6100).contains("line 100"));
    play(&mut model, 7000, "y");
    assert_eq!(wait(&mut model, 7350), Vec::<String>::new());
}

#[test]
fn ctrl_f_toggles_full_screen_for_the_approval() {
    let mut model = asked(vec![long_edit(500)]);
    update(&mut model, Msg::Resize(Size::new(80, 24)), 6000);
    let lines = |screen: &str| screen.lines().filter(|row| row.contains("+line ")).count();
    draw(&mut model, 6000);
    let part = draw(&mut model, 6700);
    assert!(part.contains("ctrl+f full screen") && part.contains("y  27 more"), "{part}");
    play(&mut model, 7000, "<ctrl+f>");
    let full = draw(&mut model, 7100);
    assert!(lines(&full) >= 14 && full.contains("ctrl+f smaller"), "{full}");
    let mut presses = 0;
    let mut at = 8000;
    while model.dialogs.is_open() {
        play(&mut model, at, "y");
        wait(&mut model, at + 350);
        (at, presses) = (at + 1000, presses + 1);
    }
    assert!(presses < 38, "{presses}");
    let mut model = asked(vec![long_edit(500)]);
    update(&mut model, Msg::Resize(Size::new(80, 24)), 6000);
    play(&mut model, 7000, "<ctrl+f><ctrl+f>");
    assert_eq!(lines(&draw(&mut model, 8000)), lines(&part));
}

#[test]
fn page_down_scrolls_by_the_visible_height() {
    let mut model = asked(vec![long_edit(500)]);
    let shown = model.dialogs.open().unwrap().view.shown;
    play(&mut model, 6000, "<pgdn>");
    assert!(draw(&mut model, 6100).lines().any(|row| row.ends_with(' ') && row.contains(&format!("+line {}.", shown + 1))));
    assert_eq!(model.dialogs.open().unwrap().view.top, shown);
}

#[test]
fn a_change_too_large_to_review_takes_two_keys_and_offers_no_rule() {
    let mut model = asked(vec![long_edit(10_000)]);
    let screen = draw(&mut model, 5700);
    assert!(screen.contains("10,000 lines in 1 file") && screen.contains("src/main.rs  +10,000"), "{screen}");
    assert!(screen.contains("y  yes +enter"), "{screen}");
    play(&mut model, 6000, "y");
    assert_eq!(wait(&mut model, 6400), Vec::<String>::new());
    assert_eq!(play(&mut model, 6500, "<enter>"), ["a Approved"]);
    let mut model = asked(vec![long_edit(10_000)]);
    play(&mut model, 6000, "a");
    wait(&mut model, 6400);
    assert_eq!(play(&mut model, 6700, "<enter>"), Vec::<String>::new(), "what was not read is not allowed for good");
    assert!(model.dialogs.is_open());
}

#[test]
fn a_call_that_ends_closes_its_approval() {
    let mut model = asked(vec![edit_approval("a")]);
    let error = ToolError::new(ErrorCode::Cancelled, "stopped");
    tell(&mut model, crate::tui::tests::fixtures::completed("call-a", ToolStatus::Failed, "", Some(error)), 6000);
    assert!(model.dialogs.is_empty());
}

#[test]
fn a_sentence_typed_over_an_open_approval_is_sent_as_a_prompt() {
    for sentence in ["also fix the README", "a yes please also 1 2 p", "1 yes", "no, the other one"] {
        let mut model = asked(vec![edit_approval("a")]);
        let sent = play(&mut model, 6000, &format!("{sentence}<enter>"));
        assert_eq!(sent, [format!("prompt {sentence:?}")]);
        assert_eq!(model.dialogs.len(), 1, "undecided");
    }
}

#[test]
fn an_approval_that_arrives_during_typing_receives_no_keys() {
    let sentence = "a yes please also 1 2 p";
    for at in 0..sentence.len() {
        let mut model = model(100, 40);
        let mut sent = play(&mut model, 3000, &sentence[..at]);
        tell(&mut model, EventKind::ApprovalRequested(edit_approval("a")), 3000 + at as u64 * 100);
        sent.extend(play(&mut model, 3050 + at as u64 * 100, &sentence[at..]));
        assert!(sent.is_empty(), "{sent:?}");
        assert_eq!(model.composer.text(), sentence);
    }
}

#[test]
fn a_window_too_small_to_show_an_approval_accepts_no_decision() {
    let mut model = asked(vec![edit_approval("a")]);
    update(&mut model, Msg::Resize(Size::new(30, 8)), 7000);
    play(&mut model, 8000, "<tab>");
    play(&mut model, 9000, "y");
    assert!(wait(&mut model, 9400).iter().all(|sent| sent == "draft \"y\""));
    assert_eq!(model.dialogs.len(), 1);
}

#[test]
fn an_approval_does_not_take_focus_from_a_history_search() {
    let mut model = model(80, 24);
    play(&mut model, 1000, "<ctrl+r>");
    tell(&mut model, started("x"), 9000);
    tell(&mut model, EventKind::ApprovalRequested(edit_approval("a")), 9500);
    wait(&mut model, 12_000);
    assert!(!model.dialogs.is_open());
    play(&mut model, 13_000, "<esc>");
    wait(&mut model, 15_000);
    assert!(model.dialogs.is_open());
}

#[test]
fn the_hints_show_that_choices_are_not_active_yet() {
    let mut model = model(80, 24);
    tell(&mut model, EventKind::ApprovalRequested(edit_approval("a")), 5000);
    assert!(draw(&mut model, 5000).contains("just opened:"));
    assert!(!draw(&mut model, 5002).contains("just opened:"), "the terminal has answered");
}

#[test]
fn the_redraw_for_active_choices_is_scheduled_exactly() {
    let mut model = model(80, 24);
    tell(&mut model, EventKind::ApprovalRequested(edit_approval("a")), 5000);
    draw(&mut model, 5000);
    let due = model.deadline(5000).unwrap();
    // A frame just before draws no change, even if drawing takes long.
    assert!(draw(&mut model, due - 1).contains("just opened:"));
    assert_eq!(model.deadline(due - 1), Some(due));
    assert!(!draw(&mut model, due).contains("just opened:"));
}

#[test]
fn pending_approvals_are_shown_next_to_the_running_call() {
    let mut model = model(100, 24);
    tell(&mut model, started("x"), 1000);
    tell(&mut model, requested("1", "RunCommand", "$ make"), 1000);
    tell(
        &mut model,
        EventKind::ToolStarted { tool_call_id: call("1"), rule: String::new(), summary: None, effects: None, note: None },
        1000,
    );
    tell(&mut model, EventKind::ApprovalRequested(edit_approval("a")), 1000);
    assert!(draw(&mut model, 2000).contains("Running make · 1 s · 1 waiting for you"));
    tell(&mut model, crate::tui::tests::fixtures::completed("1", ToolStatus::Succeeded, "", None), 2000);
    let screen = draw(&mut model, 3000);
    assert!(screen.contains("▲ Edit src/main.rs") && !screen.contains("Running make"), "{screen}");
}

#[test]
fn a_prompt_fills_a_low_screen_while_the_user_pages_through_it() {
    let mut model = model(40, 12);
    tell(&mut model, started("x"), 500);
    tell(&mut model, EventKind::ApprovalRequested(edit_approval("a")), 1000);
    wait(&mut model, 3000);
    let rows = |model: &UiModel| model.dialogs.open().unwrap().view.shown;
    let before = rows(&model);
    play(&mut model, 5000, "<pgdn>");
    let screen = draw(&mut model, 5200);
    assert!(rows(&model) >= before + 2, "{before} {}: {screen}", rows(&model));
    assert!(screen.contains("sandbox") && !screen.contains("pgup pgdn scroll"), "{screen}");
}
