//! Tests of deliberate answers with realistic typing: no answer is lost, and a wrong key does no harm.

use super::typeahead::{Desk, Dice};
use super::*;
use crate::tui::tests::fixtures::{effects_approval, plan_approval};
use crate::tui::typeahead_guard::{ChoiceState, GuardTiming};

const ANSWERS: u64 = 1000;

fn letter(desk: &mut Desk, at: u64, letter: char) {
    desk.at(at, press(KeyCode::Char(letter), KeyModifiers::NONE));
}

fn enter(desk: &mut Desk, at: u64) {
    desk.at(at, press(KeyCode::Enter, KeyModifiers::NONE));
}

/// Returns whether the choice `y` is highlighted or being confirmed.
fn holds_yes(desk: &Desk) -> bool {
    let look = desk.model.dialogs.open().map(|panel| panel.guard.choice_state(desk.now));
    matches!(look, Some(ChoiceState::Waiting(0, _) | ChoiceState::Highlighted(0)))
}

/// Gives an answer in one of four ways. Returns the number of keys pressed, and the time in milliseconds from the first
/// key to the decision.
fn answer(seed: u64) -> (u64, u64) {
    let mut dice = Dice(seed);
    // The terminal responds immediately, after a delay, or never.
    let line_ms = line_ms(&mut dice);
    let mut desk = Desk::roomy(GuardTiming::default(), line_ms);
    desk.asks(2000, edit_approval("a"));
    let first = 2004 + dice.roll(501);
    let mut keys = 1;
    let mut last = first;
    match seed % 4 {
        0 => letter(&mut desk, first, 'y'),
        1 => {
            letter(&mut desk, first, 'y');
            last = first + 60 + dice.roll(600);
            letter(&mut desk, last, 'y');
        }
        2 => {
            letter(&mut desk, first, 'y');
            last = first + 80 + dice.roll(400);
            enter(&mut desk, last);
        }
        _ => {
            letter(&mut desk, first, ['j', ' ', 'Y', '9', 'k'][dice.roll(5) as usize]);
            last = first + 400 + dice.roll(900);
            letter(&mut desk, last, 'y');
        }
    }
    keys += u64::from(last > first);
    desk.run(last);
    assert!(holds_yes(&desk) || desk.sent == ["a Approved"], "seed {seed}: the answer is lost");
    keys += confirm_if_highlighted(&mut desk, &mut dice, last, &format!("seed {seed}"));
    assert_eq!(desk.sent, ["a Approved"], "seed {seed}");
    assert_eq!(desk.model.composer.text(), "", "seed {seed}");
    assert!(desk.model.dialogs.is_empty(), "seed {seed}");
    (keys, last - first)
}

/// Returns the time that a terminal takes to respond, in milliseconds, or `None` if it never responds.
fn line_ms(dice: &mut Dice) -> Option<u64> {
    match dice.roll(10) {
        0 => None,
        1 => Some(100 + dice.roll(200)),
        _ => Some(dice.roll(30)),
    }
}

/// Waits after the last key of an answer. If the key came early, its choice is highlighted and takes one more key.
/// Returns the number of additional keys.
fn confirm_if_highlighted(desk: &mut Desk, dice: &mut Dice, last: u64, case: &str) -> u64 {
    desk.run(last + 700);
    if !desk.sent.is_empty() {
        return 0;
    }
    assert!(holds_yes(desk), "{case}: the answer is lost");
    if dice.roll(2) == 0 {
        enter(desk, last + 800);
    } else {
        letter(desk, last + 800, 'y');
    }
    desk.run(last + 1200);
    1
}

#[test]
fn a_thousand_intended_answers_are_all_accepted() {
    let counts: Vec<u64> = (0..ANSWERS * 4).filter(|seed| seed % 4 == 0).map(|seed| answer(seed).0).collect();
    let keys: u64 = counts.iter().sum();
    assert_eq!(counts.len() as u64, ANSWERS);
    assert!(keys * 10 <= ANSWERS * 12, "{keys} keys for {ANSWERS} answers");
    for seed in 0..ANSWERS {
        let (keys, _) = answer(seed);
        assert!(keys <= 3, "seed {seed}: {keys} keys");
    }
}

/// How an answer is typed, and whether it follows the previous answer or a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Typing {
    /// Up to 500 ms after the prompt appeared.
    Early,
    /// Early or late, and pressed twice.
    Doubled,
    /// After reading the prompt.
    Late,
}

/// Prompts of low and medium risk, for which one key is enough.
fn one_key_prompts() -> [(&'static str, Approval); 4] {
    let mut command = Approval { risk_level: Risk::Medium, critical: false, ..command_approval("a") };
    command.parts.clear();
    [("edit", edit_approval("a")), ("command", command), ("effects", effects_approval("a")), ("plan", plan_approval("a"))]
}

/// Answers one prompt as people do, and a highlighted choice with one more key. Returns the number of keys that the
/// answer needed: the second press of a doubled key is no extra key.
fn keys_for(typing: Typing, approval: Approval, seed: u64) -> u64 {
    let mut dice = Dice(seed);
    let line_ms = line_ms(&mut dice);
    let mut desk = Desk::roomy(GuardTiming::default(), line_ms);
    desk.model.screen.size.height = 60;
    let opens = 3000 + dice.roll(500);
    desk.asks(opens, approval);
    let delay = match (typing, dice.roll(2)) {
        (Typing::Early, _) | (Typing::Doubled, 0) => dice.roll(501),
        (Typing::Late | Typing::Doubled, _) => 500 + dice.roll(20_000),
    };
    let first = opens + 4 + delay;
    letter(&mut desk, first, 'y');
    let last = if typing == Typing::Doubled { first + 60 + dice.roll(540) } else { first };
    if last > first {
        letter(&mut desk, last, 'y');
    }
    let keys = 1 + confirm_if_highlighted(&mut desk, &mut dice, last, &format!("{typing:?} {seed}"));
    assert_eq!(desk.sent, ["a Approved"], "{typing:?} {seed}");
    assert_eq!(desk.model.composer.text(), "", "{typing:?} {seed}: a letter went to the draft");
    keys
}

#[test]
#[ignore = "measures 12,000 answers; run it with --nocapture to see the figures"]
fn a_thousand_answers_of_each_kind_are_all_accepted_with_few_keys() {
    for typing in [Typing::Early, Typing::Doubled, Typing::Late] {
        for (name, approval) in one_key_prompts() {
            let keys: u64 = (0..ANSWERS).map(|seed| keys_for(typing, approval.clone(), seed)).sum();
            println!("{typing:?}, {name}: {ANSWERS} answers, 0 lost, {:.3} keys each", keys as f64 / ANSWERS as f64);
            assert!(keys * 10 <= ANSWERS * 12, "{typing:?}, {name}: {keys} keys for {ANSWERS} answers");
        }
    }
}

#[test]
fn six_approvals_in_a_row_take_six_keys_and_eight_seconds() {
    for seed in 0..50 {
        let mut dice = Dice(seed);
        let mut desk = Desk::roomy(GuardTiming::default(), Some(dice.roll(30)));
        let mut now = 2000;
        for nth in 0..6 {
            desk.asks(now, edit_approval(&format!("a{nth}")));
            let pressed = now + 4 + 300 + dice.roll(301);
            letter(&mut desk, pressed, 'y');
            now = (pressed..pressed + 400)
                .find(|now| {
                    desk.run(*now);
                    desk.sent.len() == nth + 1
                })
                .unwrap_or_else(|| panic!("seed {seed}: answer {nth} is lost"));
            assert_eq!(now - pressed, 350, "seed {seed}");
            // The tool runs, and the next call follows.
            now += 20 + dice.roll(200);
        }
        assert!(now - 2000 <= 8000, "seed {seed}: {} ms", now - 2000);
        assert_eq!(desk.model.composer.text(), "");
    }
}

#[test]
fn simultaneously_pending_approvals_take_one_key_each() {
    let mut desk = Desk::roomy(GuardTiming::default(), Some(5));
    for name in ["a", "b", "c"] {
        desk.asks(10, edit_approval(name));
    }
    for at in [2000, 2700, 3400] {
        letter(&mut desk, at, 'y');
    }
    desk.run(5000);
    assert_eq!(desk.sent, ["a Approved", "b Approved", "c Approved"]);
}

/// Tests the case that the model responds within a second. The first letter then only highlights, because it may be the
/// start of another message.
#[test]
fn an_answer_to_an_approval_right_after_a_sent_prompt_is_not_lost() {
    for wait in [40, 300, 900] {
        let mut desk = Desk::roomy(GuardTiming::default(), Some(5));
        desk.types(1000, &[(0, Some('g')), (90, Some('o')), (200, None)]);
        desk.asks(1200 + wait, edit_approval("a"));
        letter(&mut desk, 1200 + wait + 400, 'y');
        desk.run(1200 + wait + 800);
        let is_late = wait + 400 >= 1000;
        assert_eq!(desk.sent.len(), if is_late { 2 } else { 1 }, "{wait}");
        assert_eq!(holds_yes(&desk), !is_late, "{wait}");
        if !is_late {
            enter(&mut desk, 1200 + wait + 1100);
        }
        desk.run(1200 + wait + 2000);
        assert_eq!(desk.sent, ["prompt \"go\"", "a Approved"], "{wait}");
    }
}

#[test]
fn a_message_that_follows_a_sent_prompt_answers_nothing() {
    for keys in [&[(500, Some('y')), (900, Some('e')), (1300, Some('s'))][..], &[(300, Some('y')), (420, None)], &[(60, None)]] {
        let mut desk = Desk::roomy(GuardTiming::default(), Some(5));
        desk.types(1000, &[(0, Some('g')), (90, Some('o')), (200, None)]);
        desk.asks(1250, edit_approval("a"));
        desk.types(1200, keys);
        desk.run(9000);
        assert_eq!(desk.sent, ["prompt \"go\""], "{keys:?}");
    }
}

/// Tests a slow double press, in which the second press comes after the first one has been confirmed.
#[test]
fn a_key_pressed_twice_answers_one_approval_and_leaves_no_letter() {
    for gap in [80, 200, 340, 360, 400, 440] {
        let mut desk = Desk::roomy(GuardTiming::default(), Some(5));
        for name in ["a", "b"] {
            desk.asks(10, edit_approval(name));
        }
        for at in [2000, 2000 + gap] {
            letter(&mut desk, at, 'y');
        }
        desk.run(6000);
        assert_eq!(desk.sent, ["a Approved"], "{gap}");
        // A highlighted choice of the next prompt can be confirmed as usual.
        letter(&mut desk, 6100, 'y');
        desk.run(6500);
        assert_eq!(desk.sent, ["a Approved", "b Approved"], "{gap}");
    }
    // Without a next prompt, the letter does not go to the draft unless more text follows.
    for (typed, draft) in [("y", ""), ("yes", "yes"), ("no", "no")] {
        let mut desk = Desk::roomy(GuardTiming::default(), Some(5));
        desk.asks(10, edit_approval("a"));
        letter(&mut desk, 2000, 'y');
        (2400..).step_by(100).zip(typed.chars()).for_each(|(at, one)| letter(&mut desk, at, one));
        desk.run(6000);
        assert_eq!((desk.sent.len(), desk.model.composer.text().as_str()), (1, draft), "{typed}");
    }
}

#[test]
fn a_key_without_a_choice_keeps_the_approval_open_and_lists_valid_keys() {
    for (wrong, named) in [("j", "`j`"), (" ", "space"), ("k", "`k`"), ("Y", "`Y`"), ("9", "`9`")] {
        let mut model = asked(vec![edit_approval("a")]);
        assert_eq!(play(&mut model, 6000, wrong), [""; 0]);
        let screen = draw(&mut model, 6100);
        assert!(screen.contains(&format!("{named} is not a choice here: y yes, n no, a always")), "{screen}");
        assert!(model.dialogs.is_open() && model.composer.is_empty());
        play(&mut model, 7000, "y");
        assert!(!draw(&mut model, 7100).contains("is not a choice"));
        assert_eq!(wait(&mut model, 7350), ["a Approved"]);
    }
    let mut model = asked(vec![edit_approval("a")]);
    assert_eq!(play(&mut model, 6000, "1"), [""; 0]);
    assert!(draw(&mut model, 6400).contains("enter confirm"));
    assert_eq!(play(&mut model, 6500, "<enter>"), ["a Approved"]);
}

#[test]
fn the_indicator_of_a_choice_fills_during_confirmation() {
    let mut model = asked(vec![edit_approval("a")]);
    play(&mut model, 6000, "y");
    for (at, mark) in [(6010, '▁'), (6090, '▃'), (6180, '▅'), (6270, '▇')] {
        let screen = draw(&mut model, at);
        assert!(screen.lines().any(|row| row.starts_with(mark) && row.contains("y  apply")), "{at}: {screen}");
    }
}

#[test]
fn a_critical_approval_needs_enter_and_repeating_the_letter_does_nothing() {
    let mut desk = Desk::roomy(GuardTiming::default(), Some(5));
    desk.asks(1000, command_approval("a"));
    for at in [3000, 3200, 4000] {
        letter(&mut desk, at, 'y');
    }
    desk.run(8000);
    assert_eq!(desk.sent, [""; 0]);
    enter(&mut desk, 8100);
    desk.run(8200);
    assert_eq!(desk.sent, ["a Approved"]);
    // The key is pressed before the user can have read the prompt.
    let mut desk = Desk::roomy(GuardTiming::default(), Some(5));
    desk.asks(1000, command_approval("a"));
    letter(&mut desk, 1020, 'y');
    enter(&mut desk, 1150);
    desk.run(3000);
    assert_eq!(desk.sent, [""; 0]);
}

/// Returns a screen on which a task is running and the user has typed over a prompt.
fn typed_over(words: &str) -> UiModel {
    let mut model = model(100, 40);
    tell(&mut model, started("x"), 1000);
    tell(&mut model, requested("call-a", "EditFile", "Edit src/main.rs"), 1100);
    tell(&mut model, EventKind::ApprovalRequested(edit_approval("a")), 5000);
    draw(&mut model, 5000);
    assert_eq!(play(&mut model, 6000, words), [""; 0]);
    assert_eq!(model.composer.text(), words);
    model
}

#[test]
fn typing_over_an_approval_keeps_the_approval_on_screen() {
    let mut model = typed_over("use tabs");
    let screen = draw(&mut model, 7000);
    for shown in ["1 hunk", "y  yes", "waiting for you · tab to review · typing stays in your draft", "❯ use tabs"] {
        assert_eq!(screen.matches(shown).count(), 1, "{shown}: {screen}");
    }
    assert!(!model.dialogs.is_open());
    play(&mut model, 8000, "<tab>");
    play(&mut model, 9000, "y");
    assert!(wait(&mut model, 9350).contains(&"a Approved".to_owned()));
    assert_eq!(model.composer.text(), "use tabs");
}

#[test]
fn an_approval_typed_over_leaves_space_for_the_draft_on_small_screens() {
    for (width, height) in [(80, 24), (60, 20), (40, 12)] {
        let mut model = model(width, height);
        tell(&mut model, EventKind::ApprovalRequested(edit_approval("a")), 5000);
        draw(&mut model, 5000);
        play(&mut model, 6000, "use tabs");
        let screen = draw(&mut model, 7000);
        assert!(screen.contains("❯ use tabs") && screen.contains("tab to review"), "{screen}");
        assert!(screen.contains("src/main.rs"), "{screen}");
    }
}

#[test]
fn enter_does_not_send_a_single_word_while_an_approval_is_pending_and_highlights_a_letter() {
    let mut model = typed_over("yes");
    assert_eq!(play(&mut model, 7000, "<enter>"), [""; 0]);
    assert!(model.dialogs.is_open());
    assert_eq!(model.composer.text(), "yes");
    assert!(draw(&mut model, 7100).contains("not sent"));
    // More than one word is a message.
    let mut model = typed_over("use tabs");
    assert_eq!(play(&mut model, 7000, "<enter>"), ["prompt \"use tabs\""]);
    let mut model = typed_over("使用制表符");
    assert_eq!(play(&mut model, 7000, "<enter>"), ["prompt \"使用制表符\""]);
    // The letter was meant for the prompt.
    let mut model = super::model(100, 40);
    play(&mut model, 4000, "y");
    tell(&mut model, EventKind::ApprovalRequested(edit_approval("a")), 4100);
    assert!(!model.dialogs.is_open());
    assert_eq!(play(&mut model, 5000, "<enter>"), [""; 0]);
    assert!(model.dialogs.is_open() && model.composer.is_empty());
    assert_eq!(play(&mut model, 5500, "<enter>"), ["a Approved"]);
}

#[test]
fn escape_returns_to_an_approval_typed_over_within_three_seconds() {
    for (at, returns) in [(6800, true), (9100, true), (9101, false)] {
        // The second letter, at 6100, moved keyboard focus to the draft.
        let mut model = typed_over("yes");
        let sent = play(&mut model, at, "<esc>");
        assert_eq!(model.dialogs.is_open(), returns, "{at}");
        assert_eq!(sent.contains(&"cancel".to_owned()), !returns, "{at}: {sent:?}");
        assert_eq!(model.composer.text(), "yes");
    }
    // A closed prompt opens again.
    let mut model = typed_over("");
    play(&mut model, 7000, "<esc>");
    assert!(!model.dialogs.is_open());
    assert_eq!(play(&mut model, 8000, "<esc>"), [""; 0]);
    assert!(model.dialogs.is_open());
}

#[test]
fn paging_is_not_guarded() {
    let mut model = model(80, 24);
    tell(&mut model, EventKind::ApprovalRequested(long_edit(60)), 5000);
    draw(&mut model, 5000);
    let seen = |model: &UiModel| model.dialogs.open().unwrap().unseen();
    let first = seen(&model);
    update(&mut model, keys("y").remove(0), 5002);
    draw(&mut model, 5003);
    assert!(seen(&model) < first, "a page at once");
    let second = seen(&model);
    update(&mut model, keys("y").remove(0), 5100);
    draw(&mut model, 5101);
    assert!(seen(&model) < second, "and the next");
    for at in [5200, 5300, 5400, 5500, 5600, 5700] {
        assert_eq!(update(&mut model, keys("y").remove(0), at).len(), 0);
        draw(&mut model, at);
    }
    assert_eq!(seen(&model), 0);
    assert_eq!(wait(&mut model, 7000), [""; 0], "turning the last page is no answer");
}

#[test]
fn an_unavailable_choice_shows_its_reason_instead_of_doing_nothing() {
    let never = vec!["the command publishes commits to `origin`".to_owned()];
    let always = GrantOptions { never, ..GrantOptions::default() };
    let mut model = asked(vec![Approval { always, ..edit_approval("a") }]);
    assert_eq!(play(&mut model, 6000, "a"), [""; 0]);
    assert_eq!(wait(&mut model, 6500), [""; 0]);
    let screen = draw(&mut model, 6600);
    assert!(screen.contains("no rule can be saved: the command publishes commits to `origin`"), "{screen}");
    assert!(model.dialogs.is_open(), "the approval is still open");
}

#[test]
fn always_and_enter_save_the_rule_at_any_pace() {
    for line_ms in [Some(0), Some(40), None] {
        for wait in (80..1500).step_by(60) {
            let mut desk = Desk::roomy(GuardTiming::default(), line_ms);
            desk.asks(1000, edit_approval("a"));
            letter(&mut desk, 5000, 'a');
            enter(&mut desk, 5000 + wait);
            desk.run(8000);
            let session = "a ApprovedAlways { remember: GrantChoice { scope: Session, offer: 0, until: None } }";
            assert_eq!(desk.sent, [session], "{line_ms:?}, {wait}");
        }
    }
    // The letter may be pressed twice. A paste and a held key save nothing.
    for (keys, is_saved) in [
        (&[(0, Some('a')), (150, Some('a')), (300, None)][..], true),
        (&[(0, Some('a')), (5, None)][..], false),
        (&[(0, Some('a')), (30, Some('a')), (60, Some('a')), (90, None)][..], false),
    ] {
        let mut desk = Desk::roomy(GuardTiming::default(), Some(5));
        desk.asks(1000, edit_approval("a"));
        desk.types(5000, keys);
        desk.run(8000);
        assert_eq!(desk.sent.len(), usize::from(is_saved), "{keys:?}");
    }
}

#[test]
fn a_rule_that_outlives_the_session_is_not_saved_before_it_can_be_read() {
    let mut desk = Desk::roomy(GuardTiming::default(), Some(5));
    desk.asks(1000, edit_approval("a"));
    desk.types(5000, &[(0, Some('a')), (60, Some('2')), (150, None)]);
    desk.run(5200);
    assert_eq!(desk.sent, [""; 0]);
    enter(&mut desk, 5600);
    desk.run(8000);
    let project = "a ApprovedAlways { remember: GrantChoice { scope: Project, offer: 0, until: None } }";
    assert_eq!(desk.sent, [project], "the choice stays highlighted");
}

#[test]
fn a_key_right_after_always_is_for_the_rule_unless_text_follows() {
    let mut desk = Desk::roomy(GuardTiming::default(), Some(5));
    desk.asks(1000, edit_approval("a"));
    desk.types(5000, &[(0, Some('a')), (100, Some('e'))]);
    desk.run(5500);
    assert!(desk.model.dialogs.open().unwrap().words.is_some(), "the rule can be edited");
    assert_eq!(desk.model.composer.text(), "");
    let mut desk = Desk::roomy(GuardTiming::default(), Some(5));
    desk.asks(1000, edit_approval("a"));
    desk.types(5000, &[(0, Some('a')), (100, Some('d')), (200, Some('d'))]);
    desk.run(5210);
    desk.types(5000, &[(300, Some('s'))]);
    desk.run(9000);
    assert_eq!((desk.sent.len(), desk.model.composer.text().as_str()), (0, "adds"));
}

#[test]
fn the_details_page_takes_the_keys_of_its_approval() {
    let mut model = asked(vec![edit_approval("a")]);
    play(&mut model, 6000, "?");
    assert!(draw(&mut model, 6050).contains("Details and rules"));
    play(&mut model, 6100, "?");
    assert!(!draw(&mut model, 6150).contains("Details and rules"), "the same key closes the page");
    for (letter, sent) in [("y", ""), ("n", "a Denied { reason: None }")] {
        let mut model = asked(vec![edit_approval("a")]);
        play(&mut model, 6000, "?");
        assert_eq!(play(&mut model, 6300, letter), [""; 0]);
        assert_eq!(wait(&mut model, 6650).join(""), sent, "{letter}");
        assert_eq!(model.composer.text(), "");
        if letter == "y" {
            assert_eq!(play(&mut model, 6800, "<enter>"), ["a Approved"]);
        }
    }
    let mut model = asked(vec![edit_approval("a")]);
    play(&mut model, 6000, "?");
    play(&mut model, 6300, "N");
    wait(&mut model, 6650);
    assert!(model.dialogs.open().unwrap().words.is_some(), "the reason can be typed");
}

#[test]
fn always_says_that_the_approval_must_be_read_first() {
    let mut model = model(80, 24);
    tell(&mut model, EventKind::ApprovalRequested(long_edit(60)), 5000);
    draw(&mut model, 5000);
    play(&mut model, 6000, "a");
    let screen = draw(&mut model, 6100);
    assert!(screen.contains("read to the end first, then press `a` again"), "{screen}");
}

#[test]
fn the_key_of_a_rule_whose_approval_ends_does_not_go_to_the_draft() {
    let mut desk = Desk::roomy(GuardTiming::default(), Some(5));
    desk.asks(1000, edit_approval("a"));
    letter(&mut desk, 5000, 'a');
    desk.run(6000);
    tell(&mut desk.model, EventKind::ApprovalTimeout { approval_id: ApprovalId::new("a"), tool_call_id: call("call-a") }, 6000);
    desk.run(7000);
    assert!(desk.model.dialogs.is_empty());
    assert_eq!(desk.model.composer.text(), "");
}
