use super::*;
use proptest::prelude::*;

fn keys() -> Vec<ChoiceKey> {
    vec![
        ChoiceKey { letter: 'y', confirm: Confirm::Letter },
        ChoiceKey { letter: 'a', confirm: Confirm::LetterThenEnter },
        ChoiceKey { letter: 'n', confirm: Confirm::Letter },
        ChoiceKey { letter: 'N', confirm: Confirm::Letter },
        ChoiceKey { letter: 'x', confirm: Confirm::Immediate },
    ]
}

fn guard(last_text: Option<u64>, pace: GuardTiming) -> Guard {
    let mut guard = Guard::new(keys(), last_text).with_timing(pace);
    guard.set_rows(4);
    guard
}

/// Returns the guard of a prompt for which the terminal responded 10 ms after the first frame.
fn armed() -> Guard {
    let mut guard = guard(None, GuardTiming::default());
    guard.step(GuardInput::Shown, 0);
    guard.step(GuardInput::Fence, 10);
    guard
}

/// Returns the guard of a prompt for which the terminal does not respond.
fn unanswered(pace: GuardTiming) -> Guard {
    let mut guard = guard(None, pace);
    guard.step(GuardInput::Shown, 0);
    guard
}

fn input(word: &str) -> GuardInput {
    match word {
        "enter" => GuardInput::Enter,
        "tick" => GuardInput::Time,
        "fence" => GuardInput::Fence,
        "shown" => GuardInput::Shown,
        "unsettled" => GuardInput::Unsettled,
        "up" => GuardInput::Up,
        "down" => GuardInput::Down,
        "other" => GuardInput::Other,
        "scroll" => GuardInput::Scroll,
        "space" => GuardInput::Letter(' '),
        word => match word.strip_prefix('+') {
            Some(held) if !held.is_empty() => GuardInput::Repeat(held.chars().next().unwrap()),
            _ => GuardInput::Letter(word.chars().next().unwrap()),
        },
    }
}

/// Plays a script such as `1000 y 1350 tick` and returns the results. `y!` means that the choice was decided, `"text"`
/// that the text goes to the draft, and `?j` that the key was reported as not being a choice. At the end, `[y]` means
/// that the choice is highlighted, and `(y)` that it is being confirmed. Once text has gone to the draft, further input
/// belongs to the composer.
fn play(guard: &mut Guard, script: &str) -> String {
    let mut said = Vec::new();
    let words: Vec<&str> = script.split_whitespace().collect();
    let mut now = 0;
    for pair in words.chunks(2) {
        now = pair[0].parse().unwrap();
        match guard.step(input(pair[1]), now) {
            GuardResult::Nothing => {}
            GuardResult::Decided(choice) => said.push(format!("{}!", guard.keys[choice].letter)),
            GuardResult::NoChoice(letter) => said.push(format!("?{letter}")),
            GuardResult::Draft(text) => {
                said.push(format!("{text:?}"));
                return said.join(" ");
            }
        }
    }
    match guard.choice_state(now) {
        ChoiceState::Arming | ChoiceState::Ready => {}
        ChoiceState::Waiting(choice, _) => said.push(format!("({})", guard.keys[choice].letter)),
        ChoiceState::Highlighted(choice) => said.push(format!("[{}]", guard.keys[choice].letter)),
    }
    said.join(" ")
}

#[track_caller]
fn check(guard: &Guard, table: &[(&str, &str)]) {
    for (script, expected) in table {
        assert_eq!(play(&mut guard.clone(), script), *expected, "{script}");
    }
}

#[test]
fn a_single_letter_is_confirmed_after_its_delay_or_by_enter() {
    check(
        &armed(),
        &[
            ("1000 y 1349 tick", "(y)"),
            ("1000 y 1350 tick", "y!"),
            ("1000 n 1350 tick", "n!"),
            ("10 y 360 tick", "y!"),
            ("1000 y 1040 enter", "y!"),
            ("1000 y 1100 enter", "y!"),
            // A letter and Enter in one burst are text.
            ("1000 y 1001 enter", "\"y\""),
            // A delay that is checked too late starts again.
            ("1000 y 1600 tick", "(y)"),
            ("1000 y 1600 tick 1950 tick", "y!"),
        ],
    );
}

#[test]
fn an_early_letter_is_highlighted_and_confirmed_by_enter_or_a_second_press() {
    for pace in [GuardTiming::default(), GuardTiming { arming_ms: 300, ..GuardTiming::default() }] {
        check(
            &unanswered(pace),
            &[
                ("5 y", "[y]"),
                ("5 y 299 enter", "[y]"),
                ("5 y 200 fence 400 tick 900 tick 4000 tick", "[y]"),
                ("5 y 200 fence 210 enter", "y!"),
                ("5 y 4000 enter", "y!"),
                ("5 y 30005 enter", "y!"),
                ("5 y 30006 enter", ""),
                ("5 y 200 fence 300 y", "(y)"),
                ("5 y 200 fence 300 y 650 tick", "y!"),
                ("5 y 200 fence 3000 y 3350 tick", "y!"),
                ("5 y 150 y 200 fence 3000 tick", "[y]"),
                ("5 y 1000 n 1350 tick", "n!"),
                ("5 y 100 e", "\"ye\""),
                ("5 y 200 fence 300 y 400 e", "\"yye\""),
            ],
        );
    }
    check(&unanswered(GuardTiming::default()), &[("499 y", "[y]"), ("500 y", "(y)"), ("499 y 500 enter", "\"y\"")]);
}

#[test]
fn a_second_press_during_confirmation_changes_nothing() {
    check(
        &armed(),
        &[
            ("1000 y 1100 y", "(y)"),
            ("1000 y 1100 y 1350 tick", "y!"),
            ("1000 y 1100 y 1250 y 1350 tick", "y!"),
            ("1000 y 1290 y 1350 tick", "y!"),
            // A held key would have repeated by then.
            ("1000 y 1340 y 1350 tick", "(y)"),
            ("1000 y 1340 y 1400 tick", "y!"),
            ("1000 y 1150 y 1250 enter", "y!"),
        ],
    );
}

#[test]
fn different_letters_without_a_pause_are_text() {
    check(
        &armed(),
        &[
            ("1000 y 1200 e", "\"ye\""),
            ("1000 y 1349 n", "\"yn\""),
            ("1000 y 1100 y 1200 e", "\"yye\""),
            ("1000 j 1200 y", "?j \"jy\""),
            ("1000 1 1100 space", "\"1 \""),
            ("1000 x 1100 y", "x! \"xy\""),
            // The delay of the previous letter has passed, but no timer event has arrived.
            ("1000 y 1400 n", "\"yn\""),
        ],
    );
}

#[test]
fn a_key_without_a_choice_is_reported_and_keeps_the_prompt_open() {
    check(
        &armed(),
        &[
            ("1000 j", "?j"),
            ("1000 space", "?\u{20}"),
            ("1000 ? 1100 ?", "?? ??"),
            ("1000 9", "?9"),
            ("1000 0", "?0"),
            ("1000 Y", "?Y"),
            ("1000 j 1350 y 1700 tick", "?j y!"),
            ("5 j 600 y 950 tick", "?j y!"),
            // After another key, Enter does not confirm the earlier highlight.
            ("1000 down 2000 j 3000 enter", "?j"),
        ],
    );
}

#[test]
fn a_digit_highlights_its_row_and_enter_confirms() {
    check(
        &armed(),
        &[
            ("1000 1", "[y]"),
            ("1000 1 3000 tick", "[y]"),
            ("1000 1 1100 enter", "y!"),
            ("1000 1 1500 1 3000 tick", "[y]"),
            ("1000 2 1300 enter", "a!"),
            ("1000 4 1300 enter", "N!"),
            ("1000 5 1300 enter", "?5"),
            ("5 1 1000 enter", "y!"),
        ],
    );
}

#[test]
fn choices_that_only_show_something_are_never_delayed() {
    check(
        &armed(),
        &[("1 x", "x!"), ("1000 x 1200 x", "x! x!"), ("1000 x 1400 x", "x! x!"), ("1000 x 1400 y 1750 tick", "x! y!")],
    );
    check(&unanswered(GuardTiming::default()), &[("1 x", "x!"), ("1 x 2000 y 2100 e", "x! \"ye\"")]);
}

#[test]
fn choices_that_need_enter_accept_enter_only_within_the_time_window() {
    check(
        &armed(),
        &[
            ("1000 a 1400 tick", "[a]"),
            ("1000 a 1500 a 3000 tick", "[a]"),
            ("1000 a 1079 enter", "[a]"),
            ("1000 a 1080 enter", "a!"),
            ("1000 a 6000 enter", "a!"),
            ("1000 a 6001 enter", ""),
            // The user cannot have read the prompt by then.
            ("20 a 259 enter", "[a]"),
            ("20 a 260 enter", "a!"),
        ],
    );
}

#[test]
fn enter_alone_decides_nothing() {
    check(&armed(), &[("1000 enter 2000 enter", ""), ("1000 space 2000 enter", "?\u{20}")]);
}

/// Returns a script in which a key is held: it is pressed at `from` and, after `delay`, repeats `count` times at
/// intervals of `apart` milliseconds. A pause of two seconds follows.
fn train(from: u64, delay: u64, apart: u64, count: u64, repeat: &str) -> String {
    let mut script = format!("{from} y");
    for nth in 0..count {
        let at = from + delay + nth * apart;
        script = format!("{script} {} tick {at} {repeat}", at - 1);
    }
    let end = from + delay + count.saturating_sub(1) * apart;
    (1..20).fold(script, |script, nth| format!("{script} {} tick", end + nth * 100))
}

#[test]
fn a_space_right_after_a_letter_is_text_and_marks_nothing() {
    for (typed, at, marks) in [("x", 1100, false), ("x", 1400, true), ("]", 1100, true)] {
        let mut guard = armed();
        match typed {
            "]" => assert!(guard.mark(']', 1000)),
            _ => assert_eq!(play(&mut guard, "1000 x"), "x!"),
        }
        assert_eq!(guard.mark(' ', at), marks, "{typed} {at}");
        if !marks {
            assert_eq!(guard.step(GuardInput::Letter(' '), at), GuardResult::Draft(format!("{typed} ")));
        }
    }
}

#[test]
fn a_held_key_confirms_nothing_once_it_repeats() {
    for apart in [15, 25, 30, 33, 39] {
        for count in [3, 5, 40] {
            for repeat in ["y", "+y"] {
                // This holds the key before the prompt is armed, on a keyboard that repeats before a choice is
                // confirmed.
                let early = play(
                    &mut unanswered(GuardTiming { arming_ms: 3000, ..GuardTiming::default() }),
                    &train(5, 500, apart, count, repeat),
                );
                assert_eq!(early, "", "{apart} {count} {repeat}");
                for delay in [200, 225, 250, 300, 310, 330, 340] {
                    let script = train(1000, delay, apart, count, repeat);
                    assert_eq!(play(&mut armed(), &script), "", "{delay} {apart} {count} {repeat}");
                }
            }
        }
    }
    // A single press that a slow connection delayed remains highlighted.
    check(
        &armed(),
        &[("1000 y 1010 y 2000 tick", "[y]"), ("1000 y 1010 y 1500 enter", "y!"), ("1000 y 1010 y 1500 y 1850 tick", "y!")],
    );
    check(&armed(), &[("1000 y 1200 +y 2000 tick", "")]);
}

/// Tests a key that is held until the next prompt opens, for which the first repeat looks like a press.
#[test]
fn a_held_key_never_answers_a_second_prompt() {
    for apart in [15, 33, 39, 40, 50, 59, 92, 110] {
        for repeat in ["y", "+y"] {
            let script = train(1000, apart, apart, 60, repeat);
            assert_eq!(play(&mut armed(), &script), "", "{apart} {repeat}");
        }
    }
}

#[test]
fn an_arrow_or_a_click_highlights_and_enter_confirms() {
    check(
        &armed(),
        &[
            ("1000 down 1300 enter", "y!"),
            ("1000 up 1100 up 1300 enter", "N!"),
            ("1000 down 1010 down 1300 enter", "a!"),
            ("5 down 1300 enter", ""),
        ],
    );
    let mut guard = armed();
    guard.point(2, 1000);
    assert_eq!(play(&mut guard, "1300 enter"), "n!");
}

#[test]
fn another_key_cancels_a_letter_and_scrolling_keeps_the_highlight() {
    check(
        &armed(),
        &[
            ("1000 y 1100 other 2000 tick 2100 enter", ""),
            ("1000 y 1100 scroll 2000 tick", "[y]"),
            ("1000 y 1100 scroll 2000 enter", "y!"),
        ],
    );
}

#[test]
fn keys_right_after_focus_or_resize_confirm_nothing() {
    check(
        &armed(),
        &[
            ("1000 unsettled 1299 y 2000 tick", "[y]"),
            ("1000 unsettled 1300 y 1650 tick", "y!"),
            ("1000 y 1100 unsettled 1400 tick", "[y]"),
            ("1000 y 1100 unsettled 1399 enter", "[y]"),
            ("1000 a 1100 unsettled 1600 enter", ""),
        ],
    );
}

#[test]
fn a_letter_right_after_typing_elsewhere_is_text() {
    let mut guard = guard(Some(400), GuardTiming::default());
    guard.step(GuardInput::Shown, 0);
    guard.step(GuardInput::Fence, 10);
    check(&guard, &[("749 y", "\"y\""), ("750 y 1100 tick", "y!")]);
}

#[test]
fn in_strict_mode_every_choice_needs_enter_and_delays_confirm_nothing() {
    let strict = GuardTiming { strict: true, ..GuardTiming::default() };
    let mut guard = unanswered(strict);
    check(&guard, &[("5 y 1499 enter", "[y]"), ("5 y 1500 enter", "y!")]);
    guard.step(GuardInput::Fence, 10);
    check(
        &guard,
        &[
            ("1000 y 5000 tick 90000 tick", "[y]"),
            ("1000 y 3000 y 6000 tick", "[y]"),
            ("1000 y 90000 enter", "y!"),
            ("20 a 60 enter", "a!"),
            ("1000 y 3000 e", "\"ye\""),
            ("1000 j 9000 y 9100 enter", "?j y!"),
        ],
    );
}

#[test]
fn the_confirmation_indicator_fills_in_steps_with_one_wakeup_each() {
    let mut guard = armed();
    guard.step(GuardInput::Letter('y'), 1000);
    let (mut now, mut seen) = (1000, Vec::new());
    while let ChoiceState::Waiting(0, step) = guard.choice_state(now) {
        seen.push((now, step));
        now = guard.deadline(now).unwrap();
        if guard.step(GuardInput::Time, now) != GuardResult::Nothing {
            break;
        }
    }
    assert_eq!(seen, [(1000, 0), (1088, 1), (1175, 2), (1263, 3)]);
    assert_eq!(now, 1350);
}

#[test]
fn a_dialog_takes_focus_only_after_a_pause_in_typing() {
    assert!(may_take_focus(true, None, 5));
    assert!(may_take_focus(true, Some(1000), 2000));
    assert!(!may_take_focus(true, Some(1000), 1999));
    assert!(!may_take_focus(false, None, 5));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(10_000))]

    #[test]
    fn a_typed_sentence_never_decides_and_loses_no_letter(
        sentence in "[ynaN1 2pxe?.é]{2,40}",
        gaps in prop::collection::vec(45_u64..200, 40),
        begin in 0_u64..4000,
        answer in prop::option::of(1_u64..900),
    ) {
        // A single repeated key is not a sentence.
        let first = sentence.chars().next().unwrap();
        prop_assume!(sentence.chars().any(|letter| letter != first));
        let mut guard = guard(None, GuardTiming::default());
        guard.step(GuardInput::Shown, 0);
        let mut fence = answer;
        let (mut now, mut draft, mut open) = (begin, String::new(), true);
        for (nth, (letter, gap)) in sentence.chars().zip(&gaps).enumerate() {
            if let Some(at) = fence.take_if(|at| *at <= now) {
                prop_assert_eq!(guard.step(GuardInput::Fence, at), GuardResult::Nothing);
            }
            // A letter that is repeated at the start counts as typed fast.
            let starts = sentence.chars().take(nth + 1).all(|before| before == first);
            if open {
                // Timer events occur in between, as when frames are drawn.
                prop_assert_eq!(guard.step(GuardInput::Time, now), GuardResult::Nothing);
                match guard.step(GuardInput::Letter(letter), now) {
                    GuardResult::Nothing | GuardResult::NoChoice(_) => {}
                    GuardResult::Draft(text) => {
                        draft.push_str(&text);
                        open = false;
                    }
                    GuardResult::Decided(choice) => prop_assert_eq!(guard.keys[choice].confirm, Confirm::Immediate),
                }
            } else {
                draft.push(letter);
            }
            now += if starts { *gap / 5 + 40 } else { *gap };
        }
        prop_assert!(!open);
        prop_assert_eq!(draft, sentence);
    }
}

#[test]
fn a_preset_choice_is_confirmed_by_a_late_enter_and_never_by_a_held_key() {
    let preset = |pace, at: Option<u64>| {
        let mut guard = guard(at, pace);
        guard.set_preset(Some(1));
        guard.step(GuardInput::Shown, 0);
        guard.step(GuardInput::Fence, 10);
        guard
    };
    let strict = GuardTiming { strict: true, ..GuardTiming::default() };
    for (script, expected) in [
        ("1000 enter", "a!"),
        // The key that opened the prompt is still held and repeats.
        ("500 enter 530 enter 560 enter 700 enter 900 enter", "[a]"),
        ("699 enter", "[a]"),
        ("650 enter 1100 enter", "a!"),
    ] {
        assert_eq!(play(&mut preset(GuardTiming::default(), None), script), expected, "{script}");
    }
    assert_eq!(play(&mut preset(GuardTiming::default(), Some(800)), "1000 enter"), "[a]", "text was typed just before");
    assert_eq!(play(&mut preset(strict, None), "3000 enter"), "", "every choice needs its key");
    let mut other = preset(GuardTiming::default(), None);
    other.step(GuardInput::Letter('j'), 1000);
    assert_eq!(other.step(GuardInput::Enter, 9000), GuardResult::Nothing, "another key takes it back");
}
