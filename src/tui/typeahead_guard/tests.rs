use super::*;
use proptest::prelude::*;

fn keys() -> Vec<Key> {
    vec![
        Key { letter: 'y', confirm: Confirm::Letter },
        Key { letter: 'a', confirm: Confirm::LetterThenEnter },
        Key { letter: 'n', confirm: Confirm::Letter },
        Key { letter: 'N', confirm: Confirm::Letter },
    ]
}

/// A panel whose terminal answered at 10, so that it works from 510 on.
fn armed() -> Guard {
    let mut guard = Guard::new(keys(), None);
    guard.step(GuardInput::Shown, 0);
    guard.step(GuardInput::Fence, 10);
    guard
}

/// Feeds a recorded stream and says what came of it: `y!` decided, `"text"` to the draft. What follows a draft is the composer's.
fn play(guard: &mut Guard, stream: &[(u64, GuardInput)]) -> String {
    let mut out = Vec::new();
    for (at, stimulus) in stream {
        match guard.step(*stimulus, *at) {
            GuardResult::Nothing => {}
            GuardResult::Decided(choice) => out.push(format!("{}!", guard.keys[choice].letter)),
            GuardResult::Draft(text) => {
                out.push(format!("{text:?}"));
                return out.join(" ");
            }
        }
    }
    out.join(" ")
}

use GuardInput::{Enter, Fence, Letter, Shown, Time, Unsettled};

#[track_caller]
fn check(guard: Guard, stream: &[(u64, GuardInput)], expected: &str) {
    assert_eq!(play(&mut guard.clone(), stream), expected, "{stream:?}");
}

#[test]
fn one_letter_alone_decides_after_it_stood_alone() {
    check(armed(), &[(1000, Letter('y')), (1349, Time)], "");
    check(armed(), &[(1000, Letter('y')), (1350, Time)], "y!");
    check(armed(), &[(1000, Letter('n')), (1350, Time)], "n!");
}

#[test]
fn enter_confirms_a_letter_at_once() {
    check(armed(), &[(1000, Letter('y')), (1100, Enter)], "y!");
}

#[test]
fn a_letter_and_enter_in_one_burst_are_text() {
    check(armed(), &[(1000, Letter('y')), (1001, Enter)], "\"y\"");
}

#[test]
fn two_letters_in_a_row_are_a_sentence() {
    check(armed(), &[(1000, Letter('y')), (1200, Letter('e'))], "\"ye\"");
    check(armed(), &[(1000, Letter('x'))], "\"x\"");
}

#[test]
fn a_held_key_decides_nothing() {
    check(armed(), &[(1000, Letter('y')), (1030, Letter('y'))], "\"yy\"");
}

/// A key that is held: pressed at 1000, repeated from `delay` on, so far apart and so often.
fn train(delay: u64, apart: u64, count: u64, repeat: fn(char) -> GuardInput) -> Vec<(u64, GuardInput)> {
    let mut stream = vec![(1000, Letter('y'))];
    for nth in 0..count {
        let at = 1000 + delay + nth * apart;
        stream.extend([(at - 1, Time), (at, repeat('y'))]);
    }
    let end = stream.last().map_or(0, |(at, _)| *at);
    stream.extend((1..20).map(|nth| (end + nth * 100, Time)));
    stream
}

#[test]
fn a_held_key_decides_nothing_whatever_the_keyboard_and_the_terminal() {
    let pace = GuardTiming { lone_ms: KEY_REPEAT_MS, ..GuardTiming::default() };
    for delay in [225, 250, 349, 350, 351, 400, 500, 600, 660] {
        for apart in [15, 25, 30, 33, 40, 59] {
            for count in [1, 2, 5, 40] {
                // Terminals that tell a repeat: it is nothing at all. Others: it is text, as two letters in a row always are.
                for (repeat, expected) in [(GuardInput::Repeat as fn(char) -> GuardInput, ""), (Letter, "\"yy\"")] {
                    let mut guard = armed().paced(pace);
                    let stream = train(delay, apart, count, repeat);
                    assert_eq!(play(&mut guard, &stream), expected, "{delay} {apart} {count}");
                }
            }
        }
    }
    // One that is let go decides, as soon as it cannot be held.
    check(armed().paced(pace), &[(1000, Letter('y')), (1699, Time)], "");
    check(armed().paced(pace), &[(1000, Letter('y')), (1700, Time)], "y!");
    check(armed().paced(pace), &[(1000, Letter('y')), (1100, Enter)], "y!");
}

#[test]
fn enter_space_and_digits_alone_decide_nothing() {
    check(armed(), &[(1000, Enter), (2000, Enter)], "");
    check(armed(), &[(1000, Letter(' '))], "\" \"");
    check(armed(), &[(1000, Letter('1'))], "\"1\"");
}

#[test]
fn keys_read_before_the_terminal_answered_go_to_the_draft() {
    let mut guard = Guard::new(keys(), None);
    guard.step(Shown, 0);
    check(guard.clone(), &[(900, Letter('y')), (901, Fence)], "\"y\"");
    // A slow line: the answer comes late, the keys before it were typed blind.
    check(guard, &[(1300, Letter('y'))], "\"y\"");
}

#[test]
fn a_terminal_that_never_answers_arms_by_time() {
    let mut guard = Guard::new(keys(), None);
    guard.step(Shown, 0);
    check(guard.clone(), &[(1499, Letter('y'))], "\"y\"");
    check(guard, &[(1500, Letter('y')), (1850, Time)], "y!");
}

#[test]
fn nothing_decides_while_it_arms() {
    check(armed(), &[(509, Letter('y'))], "\"y\"");
    check(armed(), &[(300, Enter), (400, GuardInput::Down), (450, Enter)], "");
}

#[test]
fn what_is_remembered_needs_a_second_key_in_its_time() {
    check(armed(), &[(1000, Letter('a')), (1350, Time), (1400, Enter)], "a!");
    check(armed(), &[(1000, Letter('a')), (1249, Enter), (3000, Time)], "");
    check(armed(), &[(1000, Letter('a')), (6000, Enter)], "a!");
    check(armed(), &[(1000, Letter('a')), (6001, Enter)], "");
}

#[test]
fn an_arrow_highlights_and_enter_takes_it() {
    check(armed(), &[(1000, GuardInput::Down), (1300, Enter)], "y!");
    check(armed(), &[(1000, GuardInput::Up), (1300, Enter)], "N!");
    check(armed(), &[(1000, GuardInput::Down), (1010, GuardInput::Down), (1300, Enter)], "a!");
}

#[test]
fn another_key_takes_a_letter_back() {
    check(armed(), &[(1000, Letter('y')), (1100, GuardInput::Other), (2000, Time), (2100, Enter)], "");
}

#[test]
fn keys_right_after_focus_or_resize_decide_nothing() {
    check(armed(), &[(1000, Unsettled), (1200, Letter('y'))], "\"y\"");
    check(armed(), &[(1000, Letter('y')), (1100, Unsettled), (1400, Time)], "");
    check(armed(), &[(1000, Unsettled), (1300, Letter('y')), (1650, Time)], "y!");
}

#[test]
fn a_letter_right_after_typing_elsewhere_is_text() {
    let mut guard = Guard::new(keys(), Some(400));
    guard.step(Shown, 0);
    guard.step(Fence, 10);
    check(guard.clone(), &[(700, Letter('y'))], "\"y\"");
    check(guard, &[(750, Letter('y')), (1100, Time)], "y!");
}

#[test]
fn a_panel_takes_the_keyboard_only_from_idle_hands() {
    assert!(may_take_focus(true, None, 5));
    assert!(may_take_focus(true, Some(1000), 2000));
    assert!(!may_take_focus(true, Some(1000), 1999));
    assert!(!may_take_focus(false, None, 5));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(10_000))]

    #[test]
    fn a_sentence_never_decides_and_loses_no_letter(
        sentence in "[ynaN1 2pxe?.é]{2,40}",
        gaps in prop::collection::vec(20_u64..200, 40),
        begin in 0_u64..4000,
        answer in prop::option::of(1_u64..900),
    ) {
        let mut guard = Guard::new(keys(), None);
        guard.step(Shown, 0);
        let mut fence = answer;
        let (mut now, mut draft, mut open) = (begin, String::new(), true);
        for (letter, gap) in sentence.chars().zip(&gaps) {
            if let Some(at) = fence.take_if(|at| *at <= now) {
                prop_assert_eq!(guard.step(Fence, at), GuardResult::Nothing);
            }
            // Time passes in between, as it does when frames are drawn.
            prop_assert_eq!(guard.step(Time, now), GuardResult::Nothing);
            if open {
                match guard.step(Letter(letter), now) {
                    GuardResult::Nothing => {}
                    GuardResult::Draft(text) => {
                        draft.push_str(&text);
                        open = false;
                    }
                    GuardResult::Decided(_) => prop_assert!(false, "{sentence:?} decided"),
                }
            } else {
                draft.push(letter);
            }
            now += gap;
        }
        prop_assert!(!open);
        prop_assert_eq!(draft, sentence);
    }
}
