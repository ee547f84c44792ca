mod always;
mod artifacts;
mod asking;
mod attach;
mod browse;
mod commands;
mod disk;
mod held;
mod help;
mod hunks;
mod inbox;
mod keymap;
mod menu;
mod models;
mod older;
mod onboarding;
mod palette;
mod parts;
mod recovery;
mod resize;
mod retry;
mod rewind;
mod saving;
mod servers;
mod sessions;
mod spending;
mod terminal;
mod typeahead;
mod vim;
mod waiting;
mod window;
mod worktree;

use super::*;
use crate::protocol::*;
use crate::tui::model::Activity;
use crate::tui::samples::{call, command_approval, edit_approval, event, model, requested, started, tell, text};
use crate::tui::view;
use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use ratatui::buffer::Buffer;
use ratatui::layout::Rect;

fn press(code: KeyCode, modifiers: KeyModifiers) -> Msg {
    Msg::Input(Input::Key(KeyEvent::new(code, modifiers)))
}

/// `change it<enter>`: names of keys stand in angle brackets.
fn keys(script: &str) -> Vec<Msg> {
    let mut out = Vec::new();
    let mut rest = script;
    while let Some(c) = rest.chars().next() {
        if let Some((name, after)) = rest.strip_prefix('<').and_then(|rest| rest.split_once('>')) {
            rest = after;
            out.push(match name {
                "enter" => press(KeyCode::Enter, KeyModifiers::NONE),
                "alt+enter" => press(KeyCode::Enter, KeyModifiers::ALT),
                "ctrl+enter" => press(KeyCode::Enter, KeyModifiers::CONTROL),
                "alt+up" => press(KeyCode::Up, KeyModifiers::ALT),
                "left" => press(KeyCode::Left, KeyModifiers::NONE),
                "right" => press(KeyCode::Right, KeyModifiers::NONE),
                "backspace" => press(KeyCode::Backspace, KeyModifiers::NONE),
                "esc" => press(KeyCode::Esc, KeyModifiers::NONE),
                "tab" => press(KeyCode::Tab, KeyModifiers::NONE),
                "shift+tab" => press(KeyCode::BackTab, KeyModifiers::SHIFT),
                "up" => press(KeyCode::Up, KeyModifiers::NONE),
                "down" => press(KeyCode::Down, KeyModifiers::NONE),
                "pgup" => press(KeyCode::PageUp, KeyModifiers::NONE),
                "pgdn" => press(KeyCode::PageDown, KeyModifiers::NONE),
                "home" => press(KeyCode::Home, KeyModifiers::NONE),
                "end" => press(KeyCode::End, KeyModifiers::NONE),
                ctrl => press(KeyCode::Char(ctrl.chars().last().unwrap()), KeyModifiers::CONTROL),
            });
        } else {
            rest = &rest[c.len_utf8()..];
            out.push(press(KeyCode::Char(c), KeyModifiers::NONE));
        }
    }
    out
}

/// Presses the keys 100 ms apart and says what was sent.
fn play(model: &mut Model, from: u64, script: &str) -> Vec<String> {
    let mut said = Vec::new();
    for (at, msg) in (from..).step_by(100).zip(keys(script)) {
        said.extend(update(model, msg, at).iter().filter_map(words));
        draw(model, at);
    }
    said
}

fn wait(model: &mut Model, at: u64) -> Vec<String> {
    let said = update(model, Msg::Time, at).iter().filter_map(words).collect();
    draw(model, at);
    said
}

/// A frame, and what the loop does after it. The terminal answers at once.
fn draw(model: &mut Model, at: u64) -> String {
    let mut buffer = Buffer::empty(Rect::from(model.size));
    view::draw(model, &mut buffer, at);
    if model.panels.take_fence(at) {
        update(model, Msg::Input(Input::Fence), at + 1);
    }
    let rows = (0..model.size.height).map(|y| (0..model.size.width).map(|x| buffer[(x, y)].symbol()).collect::<String>());
    rows.collect::<Vec<_>>().join("\n")
}

fn words(effect: &Effect) -> Option<String> {
    match effect {
        Effect::Send(Command::Prompt { text }) => Some(format!("prompt {text:?}")),
        Effect::Send(Command::Decide { approval_id, decision }) => Some(format!("{approval_id} {decision:?}")),
        Effect::Send(Command::Resolve { tool_call_id, resolution }) => Some(format!("{tool_call_id} {resolution:?}")),
        Effect::Send(Command::SaveDraft { text }) => (!text.is_empty()).then(|| format!("draft {text:?}")),
        // Looked up beside what is typed.
        Effect::Send(Command::LookUp(
            LookUp::Commands | LookUp::Prompts | LookUp::Files { .. } | LookUp::Symbols { .. } | LookUp::Worktree,
        )) => None,
        Effect::Send(command) => Some(format!("{command:?}").to_lowercase()),
        Effect::Trust(_, answer) => Some(format!("trust {answer:?}")),
        Effect::Held(_, answer) => Some(format!("held {answer:?}")),
        Effect::Copy(clip) => Some(format!("copy {:?} ({})", clip.text, clip.what)),
        Effect::Show(shown) => Some(format!("show {shown:?}")),
        Effect::Mouse(on) => Some(format!("mouse {on}")),
        Effect::Push(what) => Some(format!("{what:?}").to_lowercase()),
        Effect::Synchronise(_) | Effect::Write(_) => None,
        Effect::Suspend => Some("suspend".to_owned()),
        Effect::EditFile(edit) => Some(format!("edit {} {:?}", edit.name, edit.text)),
        Effect::Exit(ended) => Some(format!("exit {ended:?}")),
    }
}

#[track_caller]
fn check(script: &str, sent: &[&str], draft: &str) {
    let mut model = model(80, 24);
    assert_eq!(play(&mut model, 5000, script), sent, "{script}");
    assert_eq!(model.composer.text(), draft, "{script}");
}

#[test]
fn what_is_typed_is_sent_by_enter_and_broken_by_the_other_enters() {
    check("fix it<enter>", &["prompt \"fix it\""], "");
    check("a<ctrl+j>b<alt+enter>c\\<enter>d", &[], "a\nb\nc\nd");
    check("  <enter>", &[], "  ");
    check("one<enter>two<up><up>", &["prompt \"one\""], "one");
    check("one<enter>two<up><down>", &["prompt \"one\""], "two");
}

#[test]
fn slash_words_run_exactly_as_typed() {
    check("/continue<enter>", &["continue"], "");
    check("/quit<enter>", &["quit", "exit Quit"], "");
    check("/nonsense<enter>", &[], "/nonsense");
    check("/etc/hosts is empty<enter>", &["prompt \"/etc/hosts is empty\""], "");
}

#[test]
fn an_unknown_word_says_which_is_near_and_stays_in_the_draft() {
    for (typed, said) in [
        ("/modle x", "there is no `/modle x`; did you mean `/model`? /help lists all"),
        ("/exportt", "did you mean `/export`?"),
        ("/compres", "did you mean `/compress`?"),
        ("/foo", "there is no `/foo`; /help lists what there is"),
        ("/logout", "`aye auth logout PROVIDER` forgets a key"),
        ("/fork now", "`/fork` has nothing behind it: there is no `/fork now`"),
    ] {
        let mut model = model(100, 24);
        assert_eq!(play(&mut model, 5000, &format!("{typed}<esc><enter>")), [""; 0], "{typed}");
        assert!(draw(&mut model, 5500).contains(said), "{typed}\n{}", draw(&mut model, 5500));
        assert_eq!(model.composer.text(), typed);
    }
}

#[test]
fn no_mode_is_stricter_than_one_that_is_not_known_yet() {
    let mut model = Model::new(crate::tui::samples::options(), None, Size::new(80, 24));
    assert_eq!(play(&mut model, 1000, "<shift+tab>"), [""; 0]);
    assert!(draw(&mut model, 1100).contains("starting: try again in a moment"));
}

#[test]
fn ctrl_c_clears_the_draft_and_quits_when_pressed_twice() {
    check("abc<ctrl+c>", &[], "");
    check("<ctrl+c><ctrl+c>", &["quit", "exit Quit"], "");
    check("<ctrl+d>", &["quit", "exit Quit"], "");
    check("ab<ctrl+d>", &[], "ab");
}

#[test]
fn escape_stops_the_task_and_kills_at_the_second_press() {
    let mut model = model(80, 24);
    assert_eq!(play(&mut model, 1000, "<esc>"), Vec::<String>::new());
    tell(&mut model, started("x"), 2000);
    assert_eq!(play(&mut model, 3000, "<esc>"), ["cancel"]);
    assert!(draw(&mut model, 3100).contains("esc kills it"));
    assert_eq!(play(&mut model, 5000, "<esc>"), ["kill"]);
    tell(&mut model, EventKind::TaskCancelled { step_count: 1 }, 6000);
    assert_eq!(model.task.activity, Activity::Idle);
}

#[test]
fn a_late_second_escape_asks_for_a_stop_again() {
    let mut model = model(80, 24);
    tell(&mut model, started("x"), 2000);
    assert_eq!(play(&mut model, 3000, "<esc>"), ["cancel"]);
    assert_eq!(play(&mut model, 6001, "<esc>"), ["cancel"]);
}

#[test]
fn the_draft_is_saved_once_after_a_pause() {
    let mut model = model(80, 24);
    assert_eq!(play(&mut model, 1000, "hi"), Vec::<String>::new());
    assert_eq!(model.deadline(1100), Some(1400));
    assert_eq!(wait(&mut model, 1400), ["draft \"hi\""]);
    assert_eq!(model.deadline(1400), None, "nothing wakes an idle screen");
}

fn asked(approvals: Vec<Approval>) -> Model {
    let mut model = model(100, 40);
    for approval in approvals {
        tell(&mut model, EventKind::ApprovalRequested(approval), 5000);
    }
    draw(&mut model, 5000);
    draw(&mut model, 5600);
    model
}

#[test]
fn a_letter_decides_after_its_pause() {
    for (letter, expected) in [("y", "a Approved"), ("n", "a Denied { reason: None }")] {
        let mut model = asked(vec![edit_approval("a")]);
        assert_eq!(play(&mut model, 6000, letter), Vec::<String>::new());
        assert_eq!(model.deadline(6000), Some(6350));
        assert_eq!(wait(&mut model, 6350), [expected]);
        assert!(!model.panels.is_open());
    }
}

#[test]
fn always_takes_two_keys() {
    let mut model = asked(vec![edit_approval("a")]);
    play(&mut model, 6000, "a");
    assert_eq!(wait(&mut model, 6400), Vec::<String>::new());
    assert!(draw(&mut model, 6400).contains("nothing is saved before enter"));
    assert_eq!(play(&mut model, 6500, "<enter>"), Vec::<String>::new(), "nothing is preselected");
    for (letter, scope, until) in [('1', "Session", "None"), ('2', "Project", "None"), ('3', "Everywhere", "None")] {
        let mut model = asked(vec![edit_approval("a")]);
        play(&mut model, 6000, "a");
        wait(&mut model, 6400);
        assert_eq!(play(&mut model, 7500, &letter.to_string()), Vec::<String>::new());
        assert_eq!(wait(&mut model, 7900), Vec::<String>::new(), "a digit only moves the highlight");
        let sent = format!("a ApprovedAlways {{ remember: Remember {{ scope: {scope}, offer: 0, until: {until} }} }}");
        assert_eq!(play(&mut model, 8000, "<enter>"), [sent]);
        assert!(!model.panels.is_open());
    }
}

#[test]
fn an_end_and_a_look_at_the_file_change_what_is_shown_and_decide_nothing() {
    let mut model = asked(vec![edit_approval("a")]);
    play(&mut model, 6000, "a");
    wait(&mut model, 6400);
    for (at, letter, shown) in [
        (7500, "x", "until 2026-11-21"),
        (9500, "x", "for 7 days"),
        (11_500, "d", "+expires_at = 2026-11-27T"),
        (13_500, "d", "expires_at = 2026-11-27T"),
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
fn escape_goes_back_to_the_question_and_typing_to_the_draft() {
    let mut model = asked(vec![edit_approval("a")]);
    play(&mut model, 6000, "a");
    wait(&mut model, 6400);
    play(&mut model, 7500, "<esc>");
    assert!(draw(&mut model, 7600).contains("apply it, once"));
    wait(&mut model, 9000);
    play(&mut model, 9100, "a");
    wait(&mut model, 9500);
    assert_eq!(play(&mut model, 11_000, "2 of them"), Vec::<String>::new());
    assert_eq!(model.composer.text(), "2 of them");
    assert!(!model.panels.is_open());
}

#[test]
fn a_critical_command_takes_two_keys() {
    let mut model = asked(vec![command_approval("a")]);
    play(&mut model, 6000, "y");
    assert_eq!(wait(&mut model, 6400), Vec::<String>::new());
    assert_eq!(play(&mut model, 6500, "<enter>"), ["a Approved"]);
}

#[test]
fn a_denial_with_words_carries_them() {
    let mut model = asked(vec![edit_approval("a")]);
    play(&mut model, 6000, "N");
    wait(&mut model, 6350);
    assert_eq!(play(&mut model, 6400, "wrong file, y<enter>"), ["a Denied { reason: Some(\"wrong file, y\") }"]);
    for (typed, reason) in [("2", "too broad"), ("2 1", "too broad 1"), ("9", "9"), ("4!", "do it without the network!")] {
        let mut model = asked(vec![edit_approval("a")]);
        play(&mut model, 6000, "N");
        wait(&mut model, 6350);
        assert!(draw(&mut model, 6390).contains("1  wrong file   2  too broad"));
        let sent = format!("a Denied {{ reason: Some({reason:?}) }}");
        assert_eq!(play(&mut model, 6400, &format!("{typed}<enter>")), [sent]);
    }
}

#[test]
fn typing_over_a_panel_goes_to_the_draft_in_order() {
    let mut model = asked(vec![edit_approval("a")]);
    assert_eq!(play(&mut model, 6000, "yes please"), Vec::<String>::new());
    assert_eq!(model.composer.text(), "yes please");
    assert!(!model.panels.is_open());
    assert_eq!(wait(&mut model, 9000), ["draft \"yes please\""]);
    assert!(!model.panels.is_open(), "a draft keeps the keyboard");
}

#[test]
fn a_paste_never_decides() {
    let mut model = asked(vec![edit_approval("a")]);
    update(&mut model, Msg::Input(Input::Paste("y".to_owned())), 6000);
    assert!(wait(&mut model, 7000).iter().all(|sent| sent == "draft \"y\""));
    assert_eq!(model.composer.text(), "y");
}

#[test]
fn a_panel_that_came_while_typing_waits_for_tab() {
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
fn a_panel_opens_by_itself_once_the_hands_are_idle() {
    let mut model = model(100, 40);
    play(&mut model, 4000, "go<enter>");
    tell(&mut model, EventKind::ApprovalRequested(edit_approval("a")), 4300);
    assert!(!model.panels.is_open());
    let at = model.deadline(4300).unwrap();
    assert_eq!(at, 5200);
    wait(&mut model, at);
    assert!(model.panels.is_open());
    play(&mut model, 6000, "<esc>");
    wait(&mut model, 60_000);
    assert!(!model.panels.is_open(), "put off is put off");
}

#[test]
fn each_decision_touches_its_own_question_only() {
    let mut model = asked(vec![edit_approval("a"), edit_approval("b"), edit_approval("c")]);
    play(&mut model, 6000, "<tab>");
    draw(&mut model, 6800);
    play(&mut model, 7000, "n");
    assert_eq!(wait(&mut model, 7350), ["b Denied { reason: None }"]);
    assert_eq!(model.panels.len(), 2);
    // The next one is armed anew: a key that comes at once is text.
    assert_eq!(play(&mut model, 7400, "y"), Vec::<String>::new());
    assert_eq!(model.composer.text(), "y");
}

#[test]
fn nothing_is_approved_before_all_of_it_was_shown() {
    let mut long = edit_approval("a");
    let added = (1..=100).map(|n| format!("+line {n}")).collect::<Vec<_>>().join("\n");
    long.proposal.diff = format!("--- a/f\n+++ b/f\n@@ -0,0 +1,100 @@\n{added}\n");
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
fn the_end_of_a_diff_does_not_count_for_its_middle() {
    let mut long = edit_approval("a");
    let added = (1..=100).map(|n| format!("+line {n}")).collect::<Vec<_>>().join("\n");
    long.proposal.diff = format!("--- a/f\n+++ b/f\n@@ -0,0 +1,100 @@\n{added}\n");
    let mut model = asked(vec![long]);
    play(&mut model, 6000, "<end>");
    assert!(draw(&mut model, 6100).contains("line 100"));
    play(&mut model, 7000, "y");
    assert_eq!(wait(&mut model, 7350), Vec::<String>::new());
}

fn long_edit(lines: usize) -> Approval {
    let mut long = edit_approval("a");
    let added = (1..=lines).map(|n| format!("+line {n}.")).collect::<Vec<_>>().join("\n");
    long.proposal.diff = format!("--- a/f\n+++ b/f\n@@ -0,0 +1,{lines} @@\n{added}\n");
    long
}

#[test]
fn ctrl_f_gives_the_question_all_of_the_screen_and_takes_it_back() {
    let mut model = asked(vec![long_edit(500)]);
    update(&mut model, Msg::Resize(Size::new(80, 24)), 6000);
    let lines = |screen: &str| screen.lines().filter(|row| row.contains("+line ")).count();
    draw(&mut model, 6000);
    let part = draw(&mut model, 6700);
    assert!(part.contains("ctrl+f full screen") && part.contains("show the next of 55 screens"), "{part}");
    play(&mut model, 7000, "<ctrl+f>");
    let full = draw(&mut model, 7100);
    assert!(lines(&full) >= 14 && full.contains("ctrl+f smaller"), "{full}");
    let mut presses = 0;
    let mut at = 8000;
    while model.panels.is_open() {
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
fn a_page_is_as_high_as_what_is_shown() {
    let mut model = asked(vec![long_edit(500)]);
    let shown = model.panels.open().unwrap().shown;
    play(&mut model, 6000, "<pgdn>");
    assert!(draw(&mut model, 6100).lines().any(|row| row.ends_with(' ') && row.contains(&format!("+line {}.", shown + 1))));
    assert_eq!(model.panels.open().unwrap().scroll, shown);
}

#[test]
fn a_change_too_large_to_read_takes_two_keys_that_say_so() {
    let mut model = asked(vec![long_edit(10_000)]);
    let screen = draw(&mut model, 5700);
    assert!(screen.contains("10000 lines in 1 file") && screen.contains("src/main.rs  +10000 −0"), "{screen}");
    assert!(screen.contains("y  apply it: not all of it was shown   (then enter)"), "{screen}");
    play(&mut model, 6000, "y");
    assert_eq!(wait(&mut model, 6400), Vec::<String>::new());
    assert_eq!(play(&mut model, 6500, "<enter>"), ["a Approved"]);
    let mut model = asked(vec![long_edit(10_000)]);
    play(&mut model, 6000, "a");
    wait(&mut model, 6400);
    assert_eq!(play(&mut model, 6700, "<enter>"), Vec::<String>::new(), "what was not read is not allowed for good");
    assert!(model.panels.is_open());
}

#[test]
fn a_call_that_ends_takes_its_question_along() {
    let mut model = asked(vec![edit_approval("a")]);
    let error = ToolError::new(ErrorCode::Cancelled, "stopped");
    tell(&mut model, crate::tui::samples::completed("call-a", ToolStatus::Failed, "", Some(error)), 6000);
    assert!(model.panels.is_empty());
}

#[test]
fn an_interrupted_call_is_resolved_by_a_choice() {
    for (script, expected) in [("s", "9 Skip"), ("t", "9 TellModel")] {
        let mut model = model(100, 40);
        let known = "it ran".to_owned();
        let kind = EventKind::ToolInterrupted {
            tool_call_id: call("9"),
            tool_name: "RunCommand".to_owned(),
            summary: "$ x".to_owned(),
            known,
            last_output: None,
            ran_ms: None,
        };
        tell(&mut model, kind, 5000);
        draw(&mut model, 5000);
        play(&mut model, 6000, script);
        assert_eq!(wait(&mut model, 6350), [expected]);
    }
}

#[test]
fn scrolled_up_new_text_does_not_move_the_view() {
    let mut model = model(80, 24);
    tell(&mut model, started("x"), 0);
    for n in 0..100 {
        tell(&mut model, text(&format!("line {n}\n\n")), 10);
    }
    draw(&mut model, 20);
    play(&mut model, 100, "<pgup>");
    let top = |screen: &str| screen.lines().next().unwrap().to_owned();
    let before = draw(&mut model, 300);
    tell(&mut model, text("one more\n\nand one\n\n"), 400);
    let after = draw(&mut model, 500);
    assert_eq!(top(&before), top(&after));
    assert!(after.contains("4 new lines · end"), "{after}");
    play(&mut model, 600, "<end>");
    assert!(draw(&mut model, 700).contains("and one"));
}

#[test]
fn a_resize_keeps_the_entry_at_the_top_of_the_view() {
    let mut model = model(120, 30);
    for n in 0..60 {
        tell(&mut model, requested(&n.to_string(), "ReadFile", &format!("Read file-{n}")), 10);
    }
    draw(&mut model, 20);
    play(&mut model, 100, "<pgup>");
    let top = |screen: String| screen.lines().next().unwrap().split_whitespace().nth(2).unwrap().to_owned();
    let before = top(draw(&mut model, 300));
    for width in [60, 160, 80] {
        update(&mut model, Msg::Resize(Size::new(width, 30)), 400);
        assert_eq!(top(draw(&mut model, 500)), before);
    }
}

#[test]
fn an_earlier_run_is_shown_and_nothing_of_it_is_asked_or_done() {
    let mut model = Model::new(crate::tui::samples::options(), None, Size::new(80, 24));
    let history = [
        started("fix it"),
        text("I look.\n"),
        requested("1", "RunCommand", "$ cargo publish"),
        EventKind::ToolStarted { tool_call_id: call("1"), rule: "built-in".to_owned(), summary: None },
        EventKind::ApprovalRequested(edit_approval("a")),
    ];
    let start = Start { history: history.into_iter().map(event).collect(), ..crate::tui::samples::start() };
    let sent: Vec<_> = update(&mut model, Msg::Start(Box::new(start)), 0).iter().filter_map(words).collect();
    assert_eq!(sent, ["showbudget"]);
    let screen = draw(&mut model, 100);
    assert!(screen.contains("fix it") && screen.contains("outcome unknown") && screen.contains("/continue goes on"), "{screen}");
    assert!(model.panels.is_empty() && !model.is_running());
}

#[test]
fn a_prompt_sent_before_the_start_is_over_is_sent_after_it() {
    let mut model = Model::new(crate::tui::samples::options(), None, Size::new(80, 24));
    assert_eq!(play(&mut model, 10, "early<enter>"), Vec::<String>::new());
    let sent: Vec<_> =
        update(&mut model, Msg::Start(Box::new(crate::tui::samples::start())), 900).iter().filter_map(words).collect();
    assert_eq!(sent, ["showbudget", "prompt \"early\""]);
}

#[test]
fn trust_is_asked_under_guard_and_takes_two_keys() {
    let mut model = Model::new(crate::tui::samples::options(), None, Size::new(80, 24));
    let (trust, _answered) = crate::tui::samples::trust(&["AGENTS.md (instructions for the model, 8 bytes)"]);
    let trust = Some(trust);
    update(&mut model, Msg::Start(Box::new(Start { trust, ..crate::tui::samples::start() })), 0);
    assert!(draw(&mut model, 0).contains("Trust what ~/src/greeter brings with it?"));
    play(&mut model, 2000, "y");
    assert_eq!(wait(&mut model, 2400), Vec::<String>::new());
    assert_eq!(play(&mut model, 2500, "<enter>"), ["trust Yes"]);
}

#[test]
fn a_prompt_typed_over_an_open_question_is_a_prompt() {
    for sentence in ["also fix the README", "a yes please also 1 2 p", "1 yes", "no, the other one"] {
        let mut model = asked(vec![edit_approval("a")]);
        let sent = play(&mut model, 6000, &format!("{sentence}<enter>"));
        assert_eq!(sent, [format!("prompt {sentence:?}")]);
        assert_eq!(model.panels.len(), 1, "undecided");
    }
}

#[test]
fn a_question_that_opens_in_the_middle_of_typing_gets_none_of_it() {
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
fn a_window_too_small_to_read_a_question_answers_none() {
    let mut model = asked(vec![edit_approval("a")]);
    update(&mut model, Msg::Resize(Size::new(30, 8)), 7000);
    play(&mut model, 8000, "<tab>");
    play(&mut model, 9000, "y");
    assert!(wait(&mut model, 9400).iter().all(|sent| sent == "draft \"y\""));
    assert_eq!(model.panels.len(), 1);
}

#[test]
fn prompts_sent_before_are_found_by_their_words() {
    check(
        "Alpha one<enter>beta<enter>alpha two<enter>x<ctrl+r>ALPHA<enter>",
        &["prompt \"Alpha one\"", "prompt \"beta\"", "prompt \"alpha two\""],
        "alpha two",
    );
    let sent = ["prompt \"Alpha one\"", "prompt \"beta\"", "prompt \"alpha two\""];
    check("Alpha one<enter>beta<enter>alpha two<enter>x<ctrl+r>alpha<ctrl+r><enter>", &sent, "Alpha one");
    check("Alpha one<enter>beta<enter>alpha two<enter>x<ctrl+r>alpha<ctrl+r><ctrl+r><tab>", &sent, "Alpha one");
    check("Alpha one<enter>beta<enter>alpha two<enter>x<ctrl+r>bet<esc>", &sent, "x");
    check("Alpha one<enter>beta<enter>alpha two<enter>x<ctrl+r>none such<ctrl+c>", &sent, "x");
}

#[test]
fn no_question_takes_the_keyboard_from_a_search() {
    let mut model = model(80, 24);
    play(&mut model, 1000, "<ctrl+r>");
    tell(&mut model, started("x"), 9000);
    tell(&mut model, EventKind::ApprovalRequested(edit_approval("a")), 9500);
    wait(&mut model, 12_000);
    assert!(!model.panels.is_open());
    play(&mut model, 13_000, "<esc>");
    wait(&mut model, 15_000);
    assert!(model.panels.is_open());
}

#[test]
fn tab_completes_a_command_as_far_as_it_is_clear() {
    check("/he<tab>", &[], "/help");
    check("/<tab>", &[], "/help");
    check("/th<tab>li<tab>", &[], "/theme light");
    check("/theme colour<tab>", &[], "/theme colour-blind-");
}

#[test]
fn the_menu_shows_what_a_command_could_become() {
    let mut model = model(80, 24);
    play(&mut model, 1000, "/");
    assert!(draw(&mut model, 2000).contains("/continue        go on with"));
    play(&mut model, 3000, "q");
    let screen = draw(&mut model, 4000);
    assert!(screen.contains("/quit") && !screen.contains("/continue"), "{screen}");
}

#[test]
fn a_theme_is_chosen_by_name_and_auto_follows_the_terminal() {
    let mut model = model(80, 24);
    update(&mut model, Msg::Input(Input::Background(255, 255, 255)), 10);
    assert_eq!(model.theme.name, "light");
    play(&mut model, 1000, "/theme high-contrast<enter>");
    assert_eq!(model.theme.name, "high-contrast");
    play(&mut model, 3000, "/theme auto<enter>");
    assert_eq!(model.theme.name, "light");
    play(&mut model, 6000, "/theme none<enter>");
    assert_eq!(model.composer.text(), "/theme none");
    assert!(draw(&mut model, 7500).contains("no theme `none`"));
    assert_eq!(play(&mut model, 7600, "<ctrl+c>/theme dark<enter>"), ["lookup(keeptheme { name: \"dark\" })"]);
    let told = |kept| EventKind::LookedUp(LookedUp::ThemeKept { name: "dark".to_owned(), kept });
    tell(&mut model, told(Ok("~/.config/aye/config.toml".to_owned())), 8000);
    assert!(draw(&mut model, 8100).contains("theme dark, kept in ~/.config/aye/config.toml"));
    tell(&mut model, told(Err("`config.toml` cannot be written: read-only".to_owned())), 8200);
    assert!(draw(&mut model, 8300).contains("theme dark holds for this session only: `config.toml` cannot be written"));
    play(&mut model, 9000, "<ctrl+c>/theme ");
    assert!(draw(&mut model, 10_900).contains("/theme colour-blind-dark"));
    let own = tempfile::TempDir::new().unwrap();
    std::fs::write(own.path().join("mauve.toml"), "").unwrap();
    model.options.themes = Some(own.path().to_owned());
    play(&mut model, 11_000, "<ctrl+c>/theme mau<tab>");
    assert_eq!(model.composer.text(), "/theme mauve");
}

#[test]
fn while_only_the_person_is_waited_for_nothing_ticks() {
    let mut model = model(120, 36);
    tell(&mut model, started("x"), 1000);
    tell(&mut model, EventKind::ToolCallProgress { tool_name: "EditFile".to_owned(), bytes: 84 }, 1500);
    assert!(draw(&mut model, 2000).contains("Writing an edit · 84 bytes · 0 s"));
    assert!(model.deadline(2000).is_some());
    tell(&mut model, requested("call-a", "EditFile", "Edit src/main.rs"), 3000);
    tell(&mut model, EventKind::ApprovalRequested(edit_approval("a")), 3000);
    let screen = draw(&mut model, 4000);
    assert!(screen.contains("waits for you") && !screen.contains("Writing"), "{screen}");
    wait(&mut model, 6000);
    assert_eq!(model.deadline(6000), None);
    assert_eq!(play(&mut model, 60_000, "y"), Vec::<String>::new());
    assert_eq!(wait(&mut model, 60_400), ["a Approved"]);
    assert!(draw(&mut model, 60_500).contains("Waiting for the model · 0 s"));
    assert!(model.deadline(60_500).is_some());
}

#[test]
fn calls_at_the_same_time_are_counted() {
    let mut model = model(80, 24);
    tell(&mut model, started("x"), 1000);
    for id in ["1", "2"] {
        tell(&mut model, requested(id, "RunCommand", "$ make"), 1000);
        tell(&mut model, EventKind::ToolStarted { tool_call_id: call(id), rule: String::new(), summary: None }, 1000);
    }
    assert!(draw(&mut model, 2000).contains("Running make · 1 more · 1 s"));
    for id in ["2", "1"] {
        tell(&mut model, crate::tui::samples::completed(id, ToolStatus::Succeeded, "", None), 3000);
    }
    assert!(draw(&mut model, 3000).contains("Waiting for the model · 0 s"));
}

#[test]
fn ctrl_d_scrolls_while_the_view_is_scrolled_up_and_quits_at_the_end() {
    let mut model = model(80, 24);
    for n in 0..60 {
        tell(&mut model, requested(&n.to_string(), "ReadFile", &format!("Read file-{n}")), 10);
    }
    draw(&mut model, 20);
    assert_eq!(play(&mut model, 100, "<ctrl+u><ctrl+u><ctrl+d>"), Vec::<String>::new());
    assert!(!model.transcript.is_following());
    assert_eq!(play(&mut model, 1000, "<ctrl+d><ctrl+d>"), Vec::<String>::new());
    draw(&mut model, 1500);
    assert!(model.transcript.is_following());
    assert_eq!(play(&mut model, 2000, "<ctrl+d>"), ["quit", "exit Quit"]);
}

#[test]
fn ctrl_d_asks_once_more_where_something_goes_on_or_waits() {
    let running = |model: &mut Model| tell(model, started("x"), 500);
    let asked = |model: &mut Model| {
        tell(model, started("x"), 500);
        tell(model, EventKind::ApprovalRequested(edit_approval("a")), 600);
        play(model, 900, "<esc>");
    };
    let waits = |model: &mut Model| tell(model, queued(&["one", "two"]), 500);
    type Begin<'a> = &'a dyn Fn(&mut Model);
    let cases: [(Begin<'_>, &str); 3] = [
        (&running, "a task runs: ctrl+d again"),
        (&asked, "1 question waits: ctrl+d again"),
        (&waits, "2 messages wait: ctrl+d"),
    ];
    for (begin, words) in cases {
        let mut model = model(100, 24);
        begin(&mut model);
        assert_eq!(play(&mut model, 1000, "<ctrl+d>"), Vec::<String>::new(), "{words}");
        let screen = draw(&mut model, 1100);
        assert!(screen.contains(words), "{words}\n{screen}");
        assert_eq!(play(&mut model, 2000, "<ctrl+d>"), ["quit", "exit Quit"], "{words}");
        let mut model = super::tests::model(100, 24);
        begin(&mut model);
        play(&mut model, 1000, "<ctrl+d>");
        assert_eq!(play(&mut model, 9000, "<ctrl+d>"), Vec::<String>::new(), "that was long ago: {words}");
    }
}

#[test]
fn a_laxer_mode_that_is_not_answered_is_not_asked_about_any_more() {
    let mut model = model(80, 24);
    play(&mut model, 1000, "/mode auto<enter>");
    assert!(model.panels.is_open());
    assert_eq!(play(&mut model, 3000, "<esc>"), Vec::<String>::new());
    assert!(model.panels.is_empty());
    // What a task waits for stays.
    tell(&mut model, EventKind::ApprovalRequested(edit_approval("a")), 4000);
    play(&mut model, 5000, "<esc>");
    play(&mut model, 6000, "/mode auto<enter>");
    assert_eq!(model.panels.len(), 2);
    play(&mut model, 8000, "<esc>");
    assert!(model.panels.len() == 1 && !model.panels.is_open());
}

#[test]
fn what_was_said_goes_with_the_next_key_and_with_the_next_task() {
    let said = |script: &str, words: &str| {
        let mut model = model(80, 24);
        play(&mut model, 1000, script);
        assert!(draw(&mut model, 3000).contains(words), "{script}");
        model
    };
    let cases = [("x<ctrl+c>", "draft cleared"), ("/foo<enter>", "there is no `/foo`"), ("<ctrl+c>", "ctrl+c again to quit")];
    for (script, words) in cases {
        for next in ["b", "<up>", "<pgup>"] {
            let mut model = said(script, words);
            play(&mut model, 3100, next);
            assert!(!draw(&mut model, 3200).contains(words), "{script} {next}");
        }
        let mut model = said(script, words);
        tell(&mut model, started("x"), 3100);
        assert!(!draw(&mut model, 3200).contains(words), "{script}");
        let mut model = said(script, words);
        update(&mut model, Msg::Input(Input::Paste("z".to_owned())), 3100);
        assert!(!draw(&mut model, 3200).contains(words), "{script}");
    }
}

#[test]
fn a_prompt_sent_while_a_question_holds_the_start_is_shown_until_it_begins() {
    let mut model = Model::new(crate::tui::samples::options(), None, Size::new(80, 24));
    let (trust, _answered) = crate::tui::samples::trust(&["AGENTS.md (instructions for the model, 8 bytes)"]);
    let trust = Some(trust);
    update(&mut model, Msg::Start(Box::new(Start { trust, ..crate::tui::samples::start() })), 0);
    draw(&mut model, 0);
    assert_eq!(play(&mut model, 2000, "explain it<enter>"), ["prompt \"explain it\""]);
    let screen = draw(&mut model, 5000);
    assert!(screen.contains("sent after your answer: explain it"), "{screen}");
    tell(&mut model, started("explain it"), 6000);
    assert!(!draw(&mut model, 6000).contains("sent after"));
}

fn queued(texts: &[&str]) -> EventKind {
    let waiting =
        |(at, text): (usize, &&str)| crate::protocol::Waiting { id: at as u64 + 1, text: (*text).to_owned(), steer: false };
    EventKind::QueueChanged { waiting: texts.iter().enumerate().map(waiting).collect() }
}

#[test]
fn all_queued_prompts_are_shown_and_come_back_into_the_draft() {
    let mut model = model(80, 24);
    tell(&mut model, started("x"), 1000);
    tell(&mut model, queued(&["second thing", "third thing"]), 1000);
    assert!(draw(&mut model, 1100).contains("2 queued: second thing │ third thing"));
    play(&mut model, 2000, "typed");
    wait(&mut model, 3000);
    tell(&mut model, EventKind::DraftRestored { text: "second thing\n\nthird thing".to_owned() }, 4000);
    tell(&mut model, EventKind::TaskCancelled { step_count: 1 }, 4000);
    assert_eq!(model.composer.text(), "typed\n\nsecond thing\n\nthird thing");
    assert!(!draw(&mut model, 4000).contains("queued:"));
    assert_eq!(wait(&mut model, 5000), ["draft \"typed\\n\\nsecond thing\\n\\nthird thing\""]);
}

#[test]
fn a_queue_that_a_failure_left_says_what_sends_it() {
    let mut model = model(80, 24);
    tell(&mut model, started("x"), 1000);
    tell(&mut model, queued(&["second thing", "third thing"]), 1000);
    let failure = Failure::new(FailureKind::Network, "offline", "try later");
    tell(&mut model, EventKind::TaskFailed { failure, step_count: 1 }, 2000);
    assert!(draw(&mut model, 2000).contains("2 queued · /continue sends them: second thing"));
}

#[test]
fn while_the_choices_do_not_work_yet_the_hints_say_so() {
    let mut model = model(80, 24);
    tell(&mut model, EventKind::ApprovalRequested(edit_approval("a")), 5000);
    draw(&mut model, 5000);
    assert!(draw(&mut model, 5100).contains("a moment …"));
    assert!(!draw(&mut model, 5600).contains("a moment …"));
}

#[test]
fn the_frame_after_which_the_choices_work_is_due_to_the_millisecond() {
    let mut model = model(80, 24);
    tell(&mut model, EventKind::ApprovalRequested(edit_approval("a")), 5000);
    draw(&mut model, 5000);
    let due = model.deadline(5000).unwrap();
    // Seen from a frame right before it too, however long that frame took.
    assert!(draw(&mut model, due - 1).contains("a moment …"));
    assert_eq!(model.deadline(due - 1), Some(due));
    assert!(!draw(&mut model, due).contains("a moment …"));
}

#[test]
fn a_call_that_was_stopped_is_not_said_to_have_failed() {
    let mut model = model(80, 24);
    tell(&mut model, started("x"), 1000);
    tell(&mut model, requested("1", "RunCommand", "$ make"), 1000);
    let error = ToolError::new(ErrorCode::Cancelled, "the task was stopped before this call ran");
    tell(&mut model, crate::tui::samples::completed("1", ToolStatus::Failed, "", Some(error)), 2000);
    let screen = draw(&mut model, 2000);
    assert!(screen.contains("⊘ $ make  stopped") && !screen.contains("failed"), "{screen}");
}

#[test]
fn a_long_prompt_is_folded_and_a_long_draft_says_how_much_stands_above() {
    let mut model = model(80, 24);
    let long = (1..=200).map(|n| format!("row {n}.")).collect::<Vec<_>>().join("\n");
    update(&mut model, Msg::Input(Input::Paste(long.clone())), 1000);
    draw(&mut model, 1000);
    let screen = draw(&mut model, 1100);
    assert!(screen.contains("⋯ 190 lines above") && screen.contains("row 200."), "{screen}");
    tell(&mut model, started(&long), 2000);
    play(&mut model, 2000, "<ctrl+c>");
    let screen = draw(&mut model, 2500);
    assert!(
        screen.contains("row 6.") && screen.contains("⋯ 194 lines · ctrl+o unfolds") && !screen.contains("row 7."),
        "{screen}"
    );
    play(&mut model, 3000, "<ctrl+o><ctrl+o>");
    assert!(draw(&mut model, 3500).contains("row 200."));
    let ten: Vec<_> = (1..=10).map(|n| format!("ten {n}.")).collect();
    tell(&mut model, started(&ten.join("\n")), 4000);
    assert!(draw(&mut model, 4500).contains("ten 10."));
}

#[test]
fn how_to_go_on_is_said_once_and_never_beside_a_question() {
    let resumed = || {
        let mut model = Model::new(crate::tui::samples::options(), None, Size::new(80, 24));
        let history = vec![event(started("fix it")), event(requested("9", "RunCommand", "$ x"))];
        update(&mut model, Msg::Start(Box::new(Start { history, ..crate::tui::samples::start() })), 0);
        model
    };
    let said = |screen: &str| screen.matches("/continue").count();
    let mut model = resumed();
    assert_eq!(said(&draw(&mut model, 100)), 1);
    let failure =
        Failure::new(FailureKind::Internal, "aye ended in the middle of this task", "/continue goes on, or say something else");
    tell(&mut model, EventKind::SessionPaused { failure }, 200);
    assert_eq!(said(&draw(&mut model, 300)), 1);
    let mut model = resumed();
    let kind = EventKind::ToolInterrupted {
        tool_call_id: call("9"),
        tool_name: "RunCommand".to_owned(),
        summary: "$ x".to_owned(),
        known: "it ran".to_owned(),
        last_output: None,
        ran_ms: None,
    };
    tell(&mut model, kind, 5000);
    assert_eq!(said(&draw(&mut model, 5000)), 0);
    tell(&mut model, EventKind::StepStarted { step_count: 2 }, 6000);
    update(&mut model, Msg::Resize(Size::new(80, 24)), 6000);
    assert_eq!(said(&draw(&mut model, 7000)), 0);
}

#[test]
fn the_environment_tells_the_background_until_the_terminal_does() {
    use crate::tui::front::Ground;
    for (value, ground) in [
        ("0;15", Ground::Light),
        ("0;7", Ground::Light),
        ("0;default;11", Ground::Light),
        ("15;0", Ground::Dark),
        ("15;8", Ground::Dark),
        ("15;default", Ground::Dark),
        ("", Ground::Dark),
    ] {
        assert_eq!(Ground::of_variable(value), ground, "{value}");
    }
    let options = crate::tui::front::Options { ground: Ground::Light, ..crate::tui::samples::options() };
    let mut model = Model::new(options, None, Size::new(80, 24));
    assert_eq!(model.theme.name, "light");
    update(&mut model, Msg::Input(Input::Background(0, 0, 0)), 10);
    assert_eq!(model.theme.name, "dark");
}

#[test]
fn what_waits_is_said_beside_what_runs() {
    let mut model = model(100, 24);
    tell(&mut model, started("x"), 1000);
    tell(&mut model, requested("1", "RunCommand", "$ make"), 1000);
    tell(&mut model, EventKind::ToolStarted { tool_call_id: call("1"), rule: String::new(), summary: None }, 1000);
    tell(&mut model, EventKind::ApprovalRequested(edit_approval("a")), 1000);
    assert!(draw(&mut model, 2000).contains("Running make · 1 s · 1 waits for you"));
    tell(&mut model, crate::tui::samples::completed("1", ToolStatus::Succeeded, "", None), 2000);
    let screen = draw(&mut model, 3000);
    assert!(screen.contains("▲ Edit src/main.rs") && !screen.contains("Running make"), "{screen}");
}
