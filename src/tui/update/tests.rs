mod always;
mod answers;
mod approval;
mod artifacts;
mod attachments;
mod browse;
mod commands;
mod compaction;
mod disk;
mod elicitation;
mod help;
mod history_page;
mod hunks;
mod inbox;
mod keymap;
mod lock;
mod memory;
mod menu;
mod models;
mod onboarding;
mod palette;
mod parts;
mod price;
mod queue;
mod recovery;
mod requested_list;
mod resize;
mod retry;
mod review;
mod rewind;
mod save_errors;
mod scrolling;
mod servers;
mod sessions;
mod spending;
mod tasks;
mod terminal;
mod terminal_capabilities;
mod typeahead;
mod vim;
mod waiting;
mod worktree;

use super::*;
use crate::protocol::*;
use crate::tui::model::Activity;
use crate::tui::tests::fixtures::{call, command_approval, edit_approval, event, model, requested, started, tell, text};
use crate::tui::view;
use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use ratatui::buffer::Buffer;
use ratatui::layout::Rect;

fn press(code: KeyCode, modifiers: KeyModifiers) -> Msg {
    Msg::Input(UiInput::Key(KeyEvent::new(code, modifiers)))
}

/// Returns the messages for a script such as `change it<enter>`, in which names of keys are in angle brackets.
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

/// Presses the keys of a script at intervals of 100 ms, and returns the commands that were sent.
fn play(model: &mut UiModel, from: u64, script: &str) -> Vec<String> {
    let mut said = Vec::new();
    for (at, msg) in (from..).step_by(100).zip(keys(script)) {
        said.extend(update(model, msg, at).iter().filter_map(words));
        draw(model, at);
    }
    said
}

fn wait(model: &mut UiModel, at: u64) -> Vec<String> {
    let said = update(model, Msg::Time, at).iter().filter_map(words).collect();
    draw(model, at);
    said
}

/// Draws a frame and does what the main loop does after each frame, as if the terminal responded immediately. Returns
/// the screen as text.
fn draw(model: &mut UiModel, at: u64) -> String {
    let mut buffer = Buffer::empty(Rect::from(model.screen.size));
    view::draw(model, &mut buffer, at);
    if model.dialogs.take_fence(at) {
        update(model, Msg::Input(UiInput::Fence), at + 1);
    }
    let rows =
        (0..model.screen.size.height).map(|y| (0..model.screen.size.width).map(|x| buffer[(x, y)].symbol()).collect::<String>());
    rows.collect::<Vec<_>>().join("\n")
}

fn words(effect: &UiEffect) -> Option<String> {
    match effect {
        UiEffect::Send(Command::Prompt { text }) => Some(format!("prompt {text:?}")),
        UiEffect::Send(Command::Decide { approval_id, decision }) => Some(format!("{approval_id} {}", decision.test_text())),
        UiEffect::Send(Command::Resolve { tool_call_id, resolution }) => Some(format!("{tool_call_id} {resolution:?}")),
        UiEffect::Send(Command::SaveDraft { text }) => (!text.is_empty()).then(|| format!("draft {text:?}")),
        // Queries that accompany typing are ignored.
        UiEffect::Ask(
            Query::LookUp(
                HostRequest::Commands | HostRequest::Files { .. } | HostRequest::Symbols { .. } | HostRequest::Worktree,
            )
            | Query::Session(SessionQuery::ServerPrompts),
        ) => None,
        UiEffect::Ask(Query::Session(query)) => Some(format!("{query:?}").to_lowercase()),
        UiEffect::Ask(query) => Some(format!("{query:?}").to_lowercase()),
        UiEffect::Send(command) => Some(format!("{command:?}").to_lowercase()),
        UiEffect::SendToHost(command) => Some(format!("{command:?}").to_lowercase()),
        UiEffect::Trust(_, answer) => Some(format!("trust {answer:?}")),
        UiEffect::Held(_, answer) => Some(format!("held {answer:?}")),
        UiEffect::Copy(clip) => Some(format!("copy {:?} ({})", clip.text, clip.what)),
        UiEffect::Show(shown) => Some(format!("show {shown:?}")),
        UiEffect::Mouse(on) => Some(format!("mouse {on}")),
        UiEffect::Push(what) => Some(format!("{what:?}").to_lowercase()),
        UiEffect::Synchronise(_) | UiEffect::Write(_) => None,
        UiEffect::Suspend => Some("suspend".to_owned()),
        UiEffect::RunTask(id, program) => Some(format!("task {id} {program:?}").to_lowercase()),
        UiEffect::EditFile(edit) => Some(format!("edit {} {:?}", edit.name, edit.text)),
        UiEffect::Exit(ended) => Some(format!("exit {ended:?}")),
    }
}

#[track_caller]
fn check(script: &str, sent: &[&str], draft: &str) {
    let mut model = model(80, 24);
    assert_eq!(play(&mut model, 5000, script), sent, "{script}");
    assert_eq!(model.composer.text(), draft, "{script}");
}

fn asked(approvals: Vec<Approval>) -> UiModel {
    let mut model = model(100, 40);
    for approval in approvals {
        tell(&mut model, EventKind::ApprovalRequested(approval), 5000);
    }
    draw(&mut model, 5000);
    draw(&mut model, 5600);
    model
}

fn long_edit(lines: usize) -> Approval {
    let mut long = edit_approval("a");
    let added = (1..=lines).map(|n| format!("+line {n}.")).collect::<Vec<_>>().join("\n");
    long.proposal.diff = FileDiffs::read(&format!("--- a/f\n+++ b/f\n@@ -0,0 +1,{lines} @@\n{added}\n"));
    long
}

fn queued(texts: &[&str]) -> EventKind {
    let waiting =
        |(at, text): (usize, &&str)| crate::protocol::QueuedMessage { id: at as u64 + 1, text: (*text).to_owned(), steer: false };
    EventKind::QueueChanged { waiting: texts.iter().enumerate().map(waiting).collect() }
}

#[test]
fn enter_sends_the_draft_and_modified_enter_inserts_a_line_break() {
    check("fix it<enter>", &["prompt \"fix it\""], "");
    check("a<ctrl+j>b<alt+enter>c\\<enter>d", &[], "a\nb\nc\nd");
    check("  <enter>", &[], "  ");
    check("one<enter>two<up><up>", &["prompt \"one\""], "one");
    check("one<enter>two<up><down>", &["prompt \"one\""], "two");
}

#[test]
fn slash_commands_run_exactly_as_typed() {
    check("/continue<enter>", &["continue"], "");
    check("/quit<enter>", &["quit", "exit Quit"], "");
    check("/nonsense<enter>", &[], "/nonsense");
    check("/etc/hosts is empty<enter>", &["prompt \"/etc/hosts is empty\""], "");
}

#[test]
fn an_unknown_command_suggests_a_similar_one_and_stays_in_the_draft() {
    for (typed, said) in [
        ("/modle x", "unknown command `/modle x`; did you mean `/model`? /help lists all"),
        ("/exportt", "did you mean `/export`?"),
        ("/compres", "did you mean `/compress`?"),
        ("/foo", "unknown command `/foo`; /help lists all"),
        ("/logout", "use `aye auth logout PROVIDER` to delete a key"),
        ("/fork now", "`/fork` takes no arguments, and `/fork now` is not a command"),
    ] {
        let mut model = model(100, 24);
        assert_eq!(play(&mut model, 5000, &format!("{typed}<esc><enter>")), [""; 0], "{typed}");
        assert!(draw(&mut model, 5500).contains(said), "{typed}\n{}", draw(&mut model, 5500));
        assert_eq!(model.composer.text(), typed);
    }
}

#[test]
fn shift_tab_reverses_at_both_ends_and_when_the_user_declines_a_mode() {
    let mut model = model(100, 30);
    let mut at = 1000;
    let mut press = |model: &mut UiModel, expected: &str| {
        at += 5_000;
        let sent = play(model, at, "<shift+tab>").join(" ");
        draw(model, at + 100);
        if !sent.is_empty() {
            assert_eq!(sent, format!("setmode {{ mode: {} }}", expected.replace('-', "")));
            return;
        }
        assert!(draw(model, at + 200).contains(&format!("Change the mode to {expected}?")), "{sent}");
    };
    let set = |model: &mut UiModel, mode: Mode| {
        model.dialogs.forget(|_| true, None);
        model.info.header.mode = mode;
    };
    set(&mut model, Mode::AutoEdit);
    press(&mut model, "ask");
    set(&mut model, Mode::Ask);
    press(&mut model, "plan");
    for (now, next) in [(Mode::Plan, "ask"), (Mode::Ask, "auto-edit"), (Mode::AutoEdit, "auto"), (Mode::Auto, "auto-edit")] {
        set(&mut model, now);
        press(&mut model, next);
    }
    set(&mut model, Mode::Plan);
    press(&mut model, "ask");
    set(&mut model, Mode::Plan);
    press(&mut model, "ask");
    set(&mut model, Mode::Ask);
    press(&mut model, "auto-edit");
    set(&mut model, Mode::Ask);
    press(&mut model, "plan");
}

#[test]
fn shift_tab_does_not_change_the_mode_before_the_session_starts() {
    let mut model = UiModel::new(crate::tui::tests::fixtures::options(), None, Size::new(80, 24));
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
fn escape_interrupts_the_task_on_the_first_press_and_keeps_the_draft() {
    let mut model = model(80, 24);
    assert_eq!(play(&mut model, 1000, "<esc>"), Vec::<String>::new());
    tell(&mut model, started("x"), 2000);
    assert_eq!(play(&mut model, 3000, "<esc>"), ["cancel"]);
    assert!(!draw(&mut model, 3100).contains("esc "), "one press is enough");
    assert_eq!(play(&mut model, 4000, "<esc>"), [""; 0]);
    tell(&mut model, EventKind::TaskCancelled { step_count: 1 }, 6000);
    assert_eq!(model.task.activity, Activity::Idle);
}

#[test]
fn a_late_second_escape_kills_a_task_that_ignores_the_interrupt() {
    let mut model = model(80, 24);
    tell(&mut model, started("x"), 2000);
    assert_eq!(play(&mut model, 3000, "<esc>"), ["cancel"]);
    assert!(draw(&mut model, 6000).contains("esc kill"));
    assert_eq!(play(&mut model, 6001, "<esc>"), ["kill"]);
}

#[test]
fn an_interrupted_response_stays_and_is_marked() {
    let mut model = model(80, 24);
    tell(&mut model, started("x"), 2000);
    tell(&mut model, EventKind::TextChunk { text: "half an ans".to_owned() }, 2500);
    assert!(draw(&mut model, 2600).contains("esc stop"));
    assert_eq!(play(&mut model, 3000, "next words<esc>").last().map(String::as_str), Some("cancel"));
    let completed = EventKind::LlmRequestCompleted {
        model: "m".to_owned(),
        usage: Usage::default(),
        latency_ms: 1,
        stop_reason: crate::protocol::StopReason::Cancelled,
        cost_usd: None,
        session_cost_usd: None,
        estimated: true,
    };
    for kind in [completed, EventKind::StepCompleted { step_count: 1 }, EventKind::TaskCancelled { step_count: 1 }] {
        tell(&mut model, kind, 3100);
    }
    let screen = draw(&mut model, 3200);
    assert!(screen.contains("half an ans") && screen.contains("interrupted") && !screen.contains("discarded"), "{screen}");
    assert_eq!(model.composer.text(), "next words");
}

#[test]
fn the_draft_is_saved_once_after_a_pause() {
    let mut model = model(80, 24);
    assert_eq!(play(&mut model, 1000, "hi"), Vec::<String>::new());
    assert_eq!(model.deadline(1100), Some(1400));
    assert_eq!(wait(&mut model, 1400), ["draft \"hi\""]);
    assert_eq!(model.deadline(1400), None, "nothing wakes an idle screen");
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
fn replayed_history_is_shown_without_opening_approvals_or_running_calls() {
    let mut model = UiModel::new(crate::tui::tests::fixtures::options(), None, Size::new(80, 24));
    let history = [
        started("fix it"),
        text("I look.\n"),
        requested("1", "RunCommand", "$ cargo publish"),
        EventKind::ToolStarted { tool_call_id: call("1"), rule: "built-in".to_owned(), summary: None, effects: None, note: None },
        EventKind::ApprovalRequested(edit_approval("a")),
    ];
    let start = Start { history: history.into_iter().map(event).collect(), ..crate::tui::tests::fixtures::start() };
    let sent: Vec<_> = update(&mut model, Msg::Start(Box::new(start)), 0).iter().filter_map(words).collect();
    assert_eq!(sent, ["showbudget"]);
    let screen = draw(&mut model, 100);
    assert!(
        screen.contains("fix it") && screen.contains("outcome unknown") && screen.contains("/continue to resume"),
        "{screen}"
    );
    assert!(model.dialogs.is_empty() && !model.is_running());
}

#[test]
fn the_trust_dialog_is_guarded_and_takes_two_keys() {
    let mut model = UiModel::new(crate::tui::tests::fixtures::options(), None, Size::new(80, 24));
    let (trust, _answered) = crate::tui::tests::fixtures::trust(&["AGENTS.md (instructions for the model, 8 bytes)"]);
    let trust = Some(trust);
    update(&mut model, Msg::Start(Box::new(Start { trust, ..crate::tui::tests::fixtures::start() })), 0);
    assert!(draw(&mut model, 0).contains("Trust the project ~/src/greeter?"));
    play(&mut model, 2000, "y");
    assert_eq!(wait(&mut model, 2400), Vec::<String>::new());
    assert_eq!(play(&mut model, 2500, "<enter>"), ["trust Yes"]);
}

#[test]
fn earlier_prompts_are_found_by_reverse_search() {
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
fn tab_completes_a_command_as_far_as_unambiguous() {
    check("/he<tab>", &[], "/help");
    check("/<tab>", &[], "/help");
    check("/th<tab>li<tab>", &[], "/theme light");
    check("/theme colour<tab>", &[], "/theme colour-blind-");
}

#[test]
fn the_menu_lists_matching_commands() {
    let mut model = model(80, 24);
    play(&mut model, 1000, "/");
    let screen = draw(&mut model, 2000);
    assert!(screen.lines().any(|row| row.contains("/continue") && row.contains("resume a paused")), "{screen}");
    play(&mut model, 3000, "q");
    let screen = draw(&mut model, 4000);
    assert!(screen.contains("/quit") && !screen.contains("/continue"), "{screen}");
}

#[test]
fn a_theme_is_chosen_by_name_and_auto_follows_the_terminal() {
    let mut model = model(80, 24);
    update(&mut model, Msg::Input(UiInput::Background(255, 255, 255)), 10);
    assert_eq!(model.screen.theme.name, "light");
    play(&mut model, 1000, "/theme high-contrast<enter>");
    assert_eq!(model.screen.theme.name, "high-contrast");
    play(&mut model, 3000, "/theme auto<enter>");
    assert_eq!(model.screen.theme.name, "light");
    play(&mut model, 6000, "/theme none<enter>");
    assert_eq!(model.composer.text(), "/theme none");
    assert!(draw(&mut model, 7500).contains("unknown theme `none`"));
    assert_eq!(play(&mut model, 7600, "<ctrl+c>/theme dark<enter>"), ["lookup(keeptheme { name: \"dark\" })"]);
    let told = |kept| EventKind::LookedUp(HostResponse::ThemeKept { name: "dark".to_owned(), kept });
    tell(&mut model, told(Ok("~/.config/aye/config.toml".to_owned())), 8000);
    assert!(draw(&mut model, 8100).contains("theme dark, saved in ~/.config/aye/config.toml"));
    tell(&mut model, told(Err("`config.toml` cannot be written: read-only".to_owned())), 8200);
    assert!(draw(&mut model, 8300).contains("theme dark applies to this session only: `config.toml` cannot be written"));
    play(&mut model, 9000, "<ctrl+c>/theme ");
    assert!(draw(&mut model, 10_900).contains("/theme colour-blind-dark"));
    let own = tempfile::TempDir::new().unwrap();
    std::fs::write(own.path().join("mauve.toml"), "").unwrap();
    model.options.themes = Some(own.path().to_owned());
    play(&mut model, 11_000, "<ctrl+c>/theme mau<tab>");
    assert_eq!(model.composer.text(), "/theme mauve");
}

#[test]
fn no_timer_runs_while_an_approval_is_pending() {
    let mut model = model(120, 36);
    tell(&mut model, started("x"), 1000);
    tell(&mut model, EventKind::ToolCallProgress { tool_name: "EditFile".to_owned(), bytes: 84 }, 1500);
    assert!(draw(&mut model, 2000).contains("Writing an edit · 84 bytes · 0 s"));
    assert!(model.deadline(2000).is_some());
    tell(&mut model, requested("call-a", "EditFile", "Edit src/main.rs"), 3000);
    tell(&mut model, EventKind::ApprovalRequested(edit_approval("a")), 3000);
    let screen = draw(&mut model, 4000);
    assert!(screen.contains("y  yes") && !screen.contains("Writing"), "{screen}");
    wait(&mut model, 6000);
    assert_eq!(model.deadline(6000), None);
    assert_eq!(play(&mut model, 60_000, "y"), Vec::<String>::new());
    assert_eq!(wait(&mut model, 60_400), ["a Approved"]);
    assert!(draw(&mut model, 60_500).contains("Waiting for the model · 0 s"));
    assert!(model.deadline(60_500).is_some());
}

#[test]
fn ctrl_d_must_be_pressed_twice_while_work_is_running_or_pending() {
    let running = |model: &mut UiModel| tell(model, started("x"), 500);
    let asked = |model: &mut UiModel| {
        tell(model, started("x"), 500);
        tell(model, EventKind::ApprovalRequested(edit_approval("a")), 600);
        play(model, 900, "<esc>");
    };
    let waits = |model: &mut UiModel| tell(model, queued(&["one", "two"]), 500);
    type Begin<'a> = &'a dyn Fn(&mut UiModel);
    let cases: [(Begin<'_>, &str); 3] = [
        (&running, "a task is running: ctrl+d again"),
        (&asked, "1 approval pending: ctrl+d again"),
        (&waits, "2 messages queued: ctrl+d"),
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
    let mut model = model(100, 24);
    waits(&mut model);
    play(&mut model, 1000, "<ctrl+c>");
    assert!(draw(&mut model, 1100).contains("2 messages queued: ctrl+c again to quit"), "the other key says it too");
}

#[test]
fn a_key_between_two_quit_keys_ends_the_confirmation() {
    for between in ["x<backspace>", "<pgup>", "x<ctrl+c>"] {
        let mut model = model(100, 24);
        play(&mut model, 1000, "<ctrl+c>");
        play(&mut model, 1400, between);
        assert_eq!(play(&mut model, 1800, "<ctrl+c>"), Vec::<String>::new(), "{between}");
        assert_eq!(play(&mut model, 2200, "<ctrl+c>"), ["quit", "exit Quit"], "{between}");
    }
    let mut model = model(100, 24);
    play(&mut model, 1000, "<ctrl+c>");
    update(&mut model, Msg::Input(UiInput::Paste("z".to_owned())), 1400);
    play(&mut model, 1800, "<backspace>");
    assert_eq!(play(&mut model, 2200, "<ctrl+c>"), Vec::<String>::new());
}

#[test]
fn a_key_right_before_the_task_ends_is_still_acknowledged() {
    let completed = || EventKind::TaskCompleted { text: String::new(), usage: Usage::default(), cost_usd: None, step_count: 1 };
    // The first ctrl+c stops the task.
    for (first, key) in [("<ctrl+d>", "ctrl+d"), ("<ctrl+c><ctrl+c>", "ctrl+c")] {
        let words = format!("{key} again to quit");
        let mut model = model(100, 24);
        tell(&mut model, started("x"), 500);
        play(&mut model, 1000, first);
        tell(&mut model, completed(), 1010);
        let screen = draw(&mut model, 1020);
        assert!(screen.contains(&words) && !screen.contains("a task is running"), "{key}\n{screen}");
        tell(&mut model, started("y"), 1030);
        let screen = draw(&mut model, 1040);
        assert!(screen.contains(&format!("a task is running: {words}")), "{key}\n{screen}");
        tell(&mut model, completed(), 1050);
        assert_eq!(play(&mut model, 1500, &format!("<{key}>")), ["quit", "exit Quit"], "{key}");
    }
    let mut model = model(100, 24);
    tell(&mut model, started("x"), 500);
    play(&mut model, 1000, "/foo<enter>");
    tell(&mut model, completed(), 1010);
    assert!(draw(&mut model, 2900).contains("unknown command `/foo`"), "it can be read");
    update(&mut model, Msg::Time, 4000);
    assert!(!draw(&mut model, 4000).contains("unknown command `/foo`"), "it is about a task that has ended");
    let mut model = self::model(100, 24);
    tell(&mut model, started("x"), 500);
    play(&mut model, 1000, "/foo<enter>");
    tell(&mut model, completed(), 5000);
    assert!(!draw(&mut model, 5010).contains("unknown command `/foo`"), "it was there long enough");
}

#[test]
fn text_typed_before_the_terminal_was_handed_over_joins_the_draft() {
    let mut model = model(80, 24);
    assert!(update(&mut model, Msg::TypedBefore(String::new()), 1000).is_empty() && model.draft.save_at.is_none());
    update(&mut model, Msg::TypedBefore("and then".to_owned()), 1000);
    assert_eq!((model.composer.text().as_str(), model.draft.save_at.is_some()), ("and then", true));
}

#[test]
fn escape_discards_the_dialog_about_a_more_permissive_mode() {
    let mut model = model(80, 24);
    play(&mut model, 1000, "/mode auto<enter>");
    assert!(model.dialogs.is_open());
    assert_eq!(play(&mut model, 3000, "<esc>"), Vec::<String>::new());
    assert!(model.dialogs.is_empty());
    // Pending dialogs remain.
    tell(&mut model, EventKind::ApprovalRequested(edit_approval("a")), 4000);
    play(&mut model, 5000, "<esc>");
    play(&mut model, 6000, "/mode auto<enter>");
    assert_eq!(model.dialogs.len(), 2);
    play(&mut model, 8000, "<esc>");
    assert!(model.dialogs.len() == 1 && !model.dialogs.is_open());
}

#[test]
fn the_environment_determines_the_background_until_the_terminal_reports_one() {
    use crate::tui::interface::Background;
    for (value, ground) in [
        ("0;15", Background::Light),
        ("0;7", Background::Light),
        ("0;default;11", Background::Light),
        ("15;0", Background::Dark),
        ("15;8", Background::Dark),
        ("15;default", Background::Dark),
        ("", Background::Dark),
    ] {
        assert_eq!(Background::from_colorfgbg(value), ground, "{value}");
    }
    let mut options = crate::tui::tests::fixtures::options();
    options.terminal.ground = Background::Light;
    let mut model = UiModel::new(options, None, Size::new(80, 24));
    assert_eq!(model.screen.theme.name, "light");
    update(&mut model, Msg::Input(UiInput::Background(0, 0, 0)), 10);
    assert_eq!(model.screen.theme.name, "dark");
}
