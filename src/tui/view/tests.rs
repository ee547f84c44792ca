use crate::protocol::*;
use crate::tui::approval::{HunkMark, Writing, Written};
use crate::tui::front::{Header, ModelAccess, Options, Start};
use crate::tui::help::Help;
use crate::tui::input::Input;
use crate::tui::keymap::Focus;
use crate::tui::model::Model;
use crate::tui::samples::*;
use crate::tui::screen;
use crate::tui::theme::Token;
use crate::tui::update::Msg;
use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use ratatui::buffer::Buffer;
use ratatui::layout::{Rect, Size};

const SIZES: [(u16, u16); 4] = [(120, 36), (80, 24), (60, 20), (40, 12)];

fn picture(model: &mut Model, now: u64) -> String {
    let mut buffer = Buffer::empty(Rect::from(model.size));
    super::draw(model, &mut buffer, now);
    let rows = (0..model.size.height).map(|y| {
        let mut x = 0;
        let mut row = String::new();
        while x < model.size.width {
            let symbol = buffer[(x, y)].symbol();
            row.push_str(symbol);
            x += (crate::text::width(symbol) as u16).max(1);
        }
        row.trim_end().to_owned() + "\n"
    });
    rows.collect()
}

#[track_caller]
fn check(name: &str, scene: impl Fn(&mut Model)) {
    for (width, height) in SIZES {
        let mut model = model(width, height);
        scene(&mut model);
        // The second frame: the first one only tells how much is seen.
        picture(&mut model, 20_000);
        screen::check(&format!("ui-{name}-{width}x{height}"), &picture(&mut model, 20_000));
    }
}

fn cards(model: &mut Model) {
    tell(model, started("Make greet() reject empty names and update the callers"), 0);
    tell(model, text("I'll look at the callers first.\n"), 100);
    tell(model, requested("1", "ReadFile", "Read src/main.rs"), 200);
    tell(model, completed("1", ToolStatus::Succeeded, "fn main() {}\nfn greet() {}\n", None), 300);
    tell(model, requested("2", "RunCommand", "$ cargo check"), 400);
    let output = (1..=40).map(|n| format!("line {n}")).collect::<Vec<_>>().join("\n");
    let error = ToolError::new(ErrorCode::ToolExecutionFailed, "the command ended with exit code 101");
    tell(model, completed("2", ToolStatus::Failed, &output, Some(error)), 2800);
    tell(model, requested("3", "RunCommand", "$ cargo test --workspace"), 2900);
    tell(model, EventKind::ToolStarted { tool_call_id: call("3"), rule: "user:12".to_owned(), summary: None }, 7_200);
    tell(
        model,
        EventKind::ToolOutputChunk { tool_call_id: call("3"), text: "running 12 tests\ntest lexer::empty ... ok\n".to_owned() },
        8000,
    );
}

fn begins(model: &mut Model, start: Start) {
    let size = model.size;
    *model = Model::new(options(), None, size);
    let _ = super::super::update::update(model, Msg::Start(Box::new(start)), 0);
}

#[test]
fn the_first_lines_tear_no_command() {
    let last = "Last here: \"Validate the name\" · 2 h ago · 3 files changed, not committed · aye --resume=7f3a0c12 continues";
    let attempt = "look into the TODO in src/main.rs:2";
    check("greeting", |model| {
        begins(model, Start { last_here: Some(last.to_owned()), attempt: Some(attempt.to_owned()), ..start() });
    });
}

#[test]
fn the_first_lines_say_whether_the_project_is_trusted_and_when_the_policy_ends() {
    for (width, expected) in [
        (100, "  Trusted project · policy \"ask\" (user + project, expires in 6 d) · sandbox on · net off\n"),
        (40, "  Trusted project · policy \"ask\" (user +\n  project, expires in 6 d) ·\n  sandbox on · net off\n"),
    ] {
        let mut model = model(width, 24);
        let header = Header { policy: "user + project".to_owned(), ..header() };
        let ends = Some("expires in 6 d".to_owned());
        begins(&mut model, Start { header, is_trusted: true, policy_ends: ends, ..start() });
        let drawn = picture(&mut model, 20_000);
        assert!(drawn.contains(expected), "{drawn}");
    }
}

#[test]
fn the_bar_of_the_context_is_as_full_as_the_figure_beside_it() {
    let mut model = model(120, 24);
    for (used, expected) in [
        (0, "░░░░░░░░ 0% 0/200k"),
        (986, "░░░░░░░░ 0% 986/200k"),
        (76_000, "▓▓▓░░░░░ 38% 76k/200k"),
        (199_000, "▓▓▓▓▓▓▓▓ 99% 199k/200k"),
    ] {
        model.tally.context_tokens = used;
        let drawn = picture(&mut model, 20_000);
        assert!(drawn.contains(expected), "{drawn}");
    }
}

#[test]
fn the_status_row_leaves_out_whose_the_model_is_before_what_changes() {
    for (width, expected) in [
        (120, "  mine/large │ ctx ░░░░░░░░ 4% 8k/200k │ ask │ sandbox on: preview · net off │ main │ ~/src/greeter\n"),
        (96, "  mine/large │ ctx ░░░░░░░░ 4% 8k/200k │ ask │ sandbox on · net off │ main │ ~/src/greeter\n"),
        (86, "  large │ ctx ░░░░░░░░ 4% 8k/200k │ ask │ sandbox on · net off │ main │ ~/src/greeter\n"),
        (80, "  large │ ctx 4% 8k/200k │ ask │ sandbox on · net off │ main │ ~/src/greeter\n"),
        (60, "  large │ ctx 4% 8k/200k │ ask │ sandbox on · net off │ main\n"),
        (50, "  large │ 4% │ ask │ sandbox on · net off\n"),
    ] {
        let mut model = model(width, 24);
        model.header.model = "mine/large".to_owned();
        model.header.sandbox = "sandbox on: preview · net off".to_owned();
        model.tally.context_tokens = 8_000;
        let drawn = picture(&mut model, 20_000);
        assert!(drawn.contains(expected), "{drawn}");
    }
}

#[test]
fn a_command_is_asked_about_with_its_directory_as_people_write_it() {
    let mut model = model(120, 36);
    cards(&mut model);
    let mut approval = command_approval("a");
    if let Some(command) = &mut approval.command {
        command.cwd = "/home/me/src/greeter".to_owned();
    }
    tell(&mut model, EventKind::ApprovalRequested(approval), 9500);
    let drawn = picture(&mut model, 20_000);
    assert!(drawn.contains("  in ~/src/greeter  "), "{drawn}");
}

#[test]
fn a_menu_with_more_below_says_so_beside_its_words() {
    let mut model = model(40, 12);
    typed(&mut model, "/");
    let drawn = picture(&mut model, 20_000);
    assert!(drawn.lines().any(|row| row.ends_with("… ▼")), "{drawn}");
}

#[test]
fn without_a_key_the_way_to_one_is_in_sight() {
    check("no-key", |model| {
        let message = "no key was found: `aye auth login PROVIDER` keeps one".to_owned();
        let header = Header { model: String::new(), ..header() };
        begins(model, Start { header, model_access: ModelAccess::NoKey { message, model: None }, ..start() });
        typed(model, "explain this");
        key(model, KeyCode::Enter);
    });
}

#[test]
fn an_idle_screen() {
    check("idle", |_| {});
}

#[test]
fn streaming_with_cards() {
    check("streaming", |model| {
        cards(model);
        tell(model, text("\n## Plan\nThe tokenizer re-allocates on **every** token, so\n\n- reuse the buffer\n"), 9000);
        tell(
            model,
            EventKind::QueueChanged {
                waiting: vec![crate::protocol::Waiting { id: 1, text: "and then the README".to_owned(), steer: false }],
            },
            9000,
        );
    });
}

#[test]
fn browsing_with_words_looked_for() {
    check("browse", |model| {
        cards(model);
        tell(model, text("\n## Plan\nThe line that matters is line 17, see\n\n```rust\nlet line = 17;\n```\n"), 9000);
        for key in [
            KeyCode::Char('t'),
            KeyCode::Char('/'),
            KeyCode::Char('l'),
            KeyCode::Char('i'),
            KeyCode::Char('n'),
            KeyCode::Char('e'),
        ] {
            let modifiers = if key == KeyCode::Char('t') { KeyModifiers::CONTROL } else { KeyModifiers::NONE };
            feed(model, Msg::Input(Input::Key(KeyEvent::new(key, modifiers))), 9100);
        }
    });
}

#[test]
fn an_edit_to_approve() {
    check("edit", |model| {
        cards(model);
        tell(model, requested("call-a", "EditFile", "Edit src/main.rs"), 9000);
        tell(model, EventKind::ApprovalRequested(edit_approval("a")), 9500);
    });
}

#[test]
fn hunks_to_approve() {
    check("hunks", |model| {
        cards(model);
        tell(model, requested("call-a", "EditFile", "Edit src/main.rs"), 9000);
        tell(model, EventKind::ApprovalRequested(hunks_approval("a")), 9500);
        let panel = model.panels.open_mut().unwrap();
        panel.mark_hunk(HunkMark::Next).unwrap();
        panel.mark_hunk(HunkMark::Turn).unwrap();
    });
}

#[test]
fn a_hunk_that_is_edited() {
    check("hunk-edited", |model| {
        cards(model);
        tell(model, requested("call-a", "EditFile", "Edit src/main.rs"), 9000);
        tell(model, EventKind::ApprovalRequested(hunks_approval("a")), 9500);
        let panel = model.panels.open_mut().unwrap();
        panel.mark_hunk(HunkMark::Next).unwrap();
        let lines = crate::tui::composer::Lines::new(panel.hunks.as_ref().unwrap().text().unwrap().trim_end());
        panel.writing = Some(Writing { lines, what: Written::Hunk });
    });
}

#[test]
fn a_command_of_which_a_part_can_run() {
    check("parts", |model| {
        cards(model);
        let line = "cargo test --workspace 2>&1 | tail -20 && rm -rf target/tmp".to_owned();
        let amendable =
            Amendable { command: Some(line.clone()), first: Some(FirstParts { count: 2, line }), ..Amendable::default() };
        tell(model, EventKind::ApprovalRequested(Approval { amendable, ..command_approval("a") }), 9500);
    });
}

#[test]
fn a_change_whose_file_is_another_one_by_now() {
    check("outdated", |model| {
        cards(model);
        let approval = hunks_approval("a");
        let (approval_id, tool_call_id) = (approval.approval_id.clone(), approval.tool_call_id.clone());
        tell(model, EventKind::ApprovalRequested(approval), 9500);
        tell(model, EventKind::ApprovalOutdated { approval_id, tool_call_id, outdated: true }, 9500);
        model.panels.settle(9500);
    });
}

#[test]
fn a_change_that_was_made_anew() {
    check("renewed", |model| {
        cards(model);
        let amendable = Amendable { renewed: true, ..hunks_approval("a").amendable };
        tell(model, EventKind::ApprovalRequested(Approval { amendable, ..hunks_approval("a") }), 9500);
    });
}

#[test]
fn a_change_that_was_made_anew_and_is_looked_at() {
    check("renewed-shown", |model| {
        cards(model);
        let amendable = Amendable { renewed: true, ..hunks_approval("a").amendable };
        tell(model, EventKind::ApprovalRequested(Approval { amendable, ..hunks_approval("a") }), 9500);
        model.panels.show_new(None);
    });
}

#[test]
fn a_question_whose_time_ends() {
    check("countdown", |model| {
        cards(model);
        tell(model, EventKind::ApprovalRequested(Approval { timeout_ms: Some(42_000), ..edit_approval("a") }), 9500);
    });
}

#[test]
fn a_rule_to_choose() {
    check("always", |model| {
        cards(model);
        let rule =
            |words: &[&str], exact| GrantRule::Command { words: words.iter().map(|word| (*word).to_owned()).collect(), exact };
        let mut wide = always(vec![rule(&["cargo", "clippy"], false)]);
        let mut kept = always(vec![rule(&["cargo", "clippy", "--all-targets"], true)]);
        kept.offers.append(&mut wide.offers);
        kept.offers[0].places[1].note = Some("a new file: a copy of the built-in policy and this rule".to_owned());
        kept.offers[0].asks_still = vec![GrantScope::Everywhere];
        let mut approval = Approval { always: kept, risk_level: Risk::Medium, critical: false, ..command_approval("a") };
        approval.parts.clear();
        approval.command.as_mut().unwrap().line = "cargo clippy --all-targets".to_owned();
        tell(model, EventKind::ApprovalRequested(approval), 9500);
        assert!(model.panels.open_always(None));
    });
}

#[test]
fn which_rules_have_a_say() {
    check("explain", |model| {
        cards(model);
        tell(model, EventKind::ApprovalRequested(command_approval("a")), 9500);
        model.panels.look(None);
    });
}

#[test]
fn what_a_project_brings_can_be_read_before_the_answer() {
    for (width, height) in SIZES {
        let mut model = Model::new(options(), None, Size::new(width, height));
        let (trust, _answered) = trust(&["AGENTS.md (instructions for the model, 19 bytes)"]);
        feed(&mut model, Msg::Start(Box::new(Start { trust: Some(trust), ..start() })), 0);
        model.panels.focus(0, None);
        picture(&mut model, 20_000);
        assert!(picture(&mut model, 20_000).contains("https://example.com/acme/greeter.git"));
        model.panels.look(None);
        let drawn = picture(&mut model, 20_000);
        assert!(drawn.contains("Use tabs.") && drawn.contains("back"), "{drawn}");
        assert!(model.panels.close_always(None));
        assert!(picture(&mut model, 20_000).contains("read-only"));
    }
}

#[test]
fn a_policy_that_ends_soon_says_so_in_the_status_row() {
    let layer = |seconds: i64| PolicyLayer {
        expires_at: jiff::Timestamp::from_second(seconds).ok(),
        ..PolicyLayer { scope: "user".to_owned(), bundle_version: None, expires_at: None, max_input_tokens: None, file: None }
    };
    for (end, words) in [(3 * 3600, None), (1800, Some("policy ends 00:30 UTC")), (-1, Some("policy expired"))] {
        let mut model = model(60, 20);
        let kind = EventKind::PolicyInForce { layers: vec![layer(end)], name: "user".to_owned(), message: None };
        tell(&mut model, kind, 100);
        let drawn = picture(&mut model, 20_000);
        assert_eq!(words.is_some(), drawn.contains("policy e"), "{drawn}");
        assert!(drawn.contains(words.unwrap_or_default()), "{drawn}");
    }
}

/// What stands in the status row, and its colours.
fn status_row(model: &mut Model) -> (String, Vec<(String, Token)>) {
    let mut buffer = Buffer::empty(Rect::new(0, 0, model.size.width, model.size.height));
    super::draw(model, &mut buffer, 20_000);
    let y = model.size.height - 2;
    let row: String = (0..model.size.width).map(|x| buffer[(x, y)].symbol()).collect();
    let colours = [Token::Warn, Token::Danger].into_iter().filter_map(|token| {
        let colour = model.theme.style(token).fg?;
        let words: String =
            (0..model.size.width).filter(|x| buffer[(*x, y)].fg == colour).map(|x| buffer[(x, y)].symbol()).collect();
        Some((words, token))
    });
    (row.trim().to_owned(), colours.filter(|(words, _)| !words.is_empty()).collect())
}

#[test]
fn what_never_goes_from_the_status_row_has_room_at_every_width() {
    for width in 40..=160 {
        let mut model = model(width, 20);
        model.theme = crate::tui::theme::Theme::choose(None, crate::tui::theme::Colours::True);
        model.header.mode = Mode::AutoEdit;
        model.header.sandbox = "sandbox off".to_owned();
        let layer =
            PolicyLayer { scope: "user".to_owned(), bundle_version: None, expires_at: None, max_input_tokens: None, file: None };
        let layers = vec![PolicyLayer { expires_at: jiff::Timestamp::from_second(400).ok(), ..layer }];
        tell(&mut model, EventKind::PolicyInForce { layers, name: "user".to_owned(), message: None }, 100);
        let (row, colours) = status_row(&mut model);
        for words in ["auto-edit", "ends 00:06", "sandbox off"] {
            assert!(row.contains(words), "{width}: {row}");
        }
        assert!(colours.contains(&("sandbox off".to_owned(), Token::Danger)), "{colours:?}");
    }
}

#[test]
fn the_end_of_a_policy_warns_in_its_last_ten_minutes_and_wakes_the_screen_for_that() {
    let mut model = model(120, 20);
    let layer =
        PolicyLayer { scope: "user".to_owned(), bundle_version: None, expires_at: None, max_input_tokens: None, file: None };
    let layers = vec![PolicyLayer { expires_at: jiff::Timestamp::from_second(3 * 3600).ok(), ..layer }];
    tell(&mut model, EventKind::PolicyInForce { layers, name: "user".to_owned(), message: None }, 100);
    let mut at = 200;
    let mut said = Vec::new();
    while let Some(next) = model.deadline(at) {
        at = next;
        said.push((at / 1000, model.policy.end(at).map(|(_, ending)| ending)));
    }
    use crate::tui::model::Ending;
    let ends = [(7200, Ending::Near), (10_200, Ending::Soon), (10_800, Ending::Over)];
    assert_eq!(said, ends.map(|(second, ending)| (second, Some(ending))));
}

#[test]
fn the_hints_of_the_composer_are_five_at_most() {
    for (width, height) in [(160, 40), (200, 20)] {
        let drawn = picture(&mut model(width, height), 20_000);
        let hints = drawn.lines().rev().find(|row| row.contains("enter send")).unwrap_or_default().to_owned();
        assert_eq!(hints.matches(" · ").count(), 4, "{hints}");
    }
}

#[test]
fn the_way_back_is_the_last_hint_to_go() {
    type Scene = fn(&mut Model);
    let scenes: [(&str, Scene); 6] = [
        ("a question about a command", |model| {
            tell(model, EventKind::ApprovalRequested(crate::tui::samples::command_approval("a")), 100);
        }),
        ("a question about an edit", |model| tell(model, EventKind::ApprovalRequested(edit_approval("a")), 100)),
        ("browse mode", |model| {
            cards(model);
            feed(model, Msg::Input(crate::tui::input::Input::Key(ctrl('t'))), 19_000);
        }),
        ("the list of sessions", |model| slash(model, "/resume")),
        ("the list of models", |model| slash(model, "/model")),
        ("the key map", |model| slash(model, "/keys")),
    ];
    for (name, scene) in scenes {
        for (width, height) in [(120, 36), (80, 24), (60, 20), (40, 12)] {
            let mut model = model(width, height);
            scene(&mut model);
            picture(&mut model, 20_000);
            // The choices of a question work by then.
            if model.panels.take_fence(20_000) {
                feed(&mut model, Msg::Input(crate::tui::input::Input::Fence), 20_001);
            }
            let drawn = picture(&mut model, 25_000);
            let hints = drawn.trim_end().lines().last().unwrap_or_default();
            assert!(hints.contains("esc"), "{name} at {width}: {hints:?}\n{drawn}");
            let hints: Vec<_> = hints.trim().split(" · ").collect();
            assert!(hints.len() > 1, "and what is most likely: {hints:?} of {name} at {width}");
        }
    }
}

fn slash(model: &mut Model, command: &str) {
    for letter in command.chars() {
        key(model, KeyCode::Char(letter));
    }
    picture(model, 19_000);
    key(model, KeyCode::Enter);
}

fn ctrl(letter: char) -> crossterm::event::KeyEvent {
    crossterm::event::KeyEvent::new(KeyCode::Char(letter), crossterm::event::KeyModifiers::CONTROL)
}

#[test]
fn a_policy_that_ends_while_nothing_happens_says_so_by_itself_and_in_the_narrowest_row() {
    let mut model = model(40, 12);
    let layer = PolicyLayer {
        scope: "user".to_owned(),
        bundle_version: Some("acme-dev".to_owned()),
        expires_at: jiff::Timestamp::from_second(1800).ok(),
        max_input_tokens: None,
        file: Some("/c/policy.toml".to_owned()),
    };
    tell(&mut model, EventKind::PolicyInForce { layers: vec![layer], name: "user".to_owned(), message: None }, 100);
    let drawn = picture(&mut model, 20_000);
    assert!(drawn.contains("ask │ policy ends 00:30 UTC\n") || drawn.contains("policy ends 00:30 UTC "), "{drawn}");
    // After the ten minutes before it.
    let end = model.deadline(1_300_000).unwrap();
    assert!((1_800_000..1_801_000).contains(&end), "{end}");
    feed(&mut model, Msg::Time, end);
    feed(&mut model, Msg::Time, end + 1);
    let drawn = picture(&mut model, end + 2);
    assert!(drawn.contains("policy expired") && drawn.contains("nothing runs until"), "{drawn}");
    assert_eq!(drawn.matches("`acme-dev`").count(), 1, "{drawn}");
    assert_eq!(model.deadline(end + 2), None);
}

#[test]
fn a_window_that_is_too_small_says_all_of_what_it_needs() {
    let mut model = model(12, 4);
    let drawn = picture(&mut model, 100);
    let words = drawn.split_whitespace().collect::<Vec<_>>().join(" ");
    assert_eq!(words, "aye needs 40x12, this is 12x4");
}

#[test]
fn no_choice_is_cut_at_the_edge() {
    for (width, height) in SIZES {
        let mut model = model(width, height);
        tell(&mut model, EventKind::ApprovalRequested(edit_approval("a")), 9500);
        for _ in 0..2 {
            let panel = model.panels.current().unwrap().shown();
            let letters: Vec<char> = panel.choices[..panel.listed()].iter().map(|choice| choice.key.letter).collect();
            picture(&mut model, 20_000);
            let drawn = picture(&mut model, 20_000);
            let words: Vec<&str> = drawn.split_whitespace().collect();
            for letter in letters {
                assert!(words.contains(&letter.to_string().as_str()), "{letter}\n{drawn}");
            }
            model.panels.open_always(None);
        }
    }
}

#[test]
fn a_command_to_approve() {
    check("command", |model| {
        cards(model);
        tell(model, requested("call-a", "RunCommand", "$ cargo test …"), 9000);
        tell(model, EventKind::ApprovalRequested(command_approval("a")), 9500);
        tell(model, EventKind::ApprovalRequested(edit_approval("b")), 9600);
    });
}

#[test]
fn what_a_command_did_in_its_copy() {
    check("effects", |model| {
        cards(model);
        tell(model, requested("call-a", "RunCommand", "$ cargo test …"), 9000);
        tell(model, EventKind::ApprovalRequested(effects_approval("a")), 9500);
    });
}

#[test]
fn a_command_that_may_run_again_with_more_open() {
    check("opened", |model| {
        cards(model);
        let opens = vec![Outside::Host { host: "index.crates.io".to_owned(), port: 443 }];
        let mut approval = Approval { opens, risk_level: Risk::Medium, critical: false, ..command_approval("a") };
        approval.parts.clear();
        approval.command.as_mut().unwrap().line = "cargo build".to_owned();
        tell(model, EventKind::ApprovalRequested(approval), 9500);
    });
}

#[test]
fn a_command_whose_effects_can_be_shown_and_one_whose_cannot() {
    for (offer, words) in [
        (PreviewOffer::Possible, "p  preview"),
        (PreviewOffer::Impossible { reason: "it writes to `.git`".to_owned() }, "no preview: it writes to `.git`"),
    ] {
        let mut model = model(120, 36);
        tell(&mut model, EventKind::ApprovalRequested(Approval { preview: offer, ..command_approval("a") }), 9500);
        picture(&mut model, 20_000);
        let drawn = picture(&mut model, 20_000);
        assert!(drawn.contains(words), "{drawn}");
    }
}

#[test]
fn what_runs_in_the_background_has_a_row() {
    let mut model = model(80, 24);
    let running = RunningCommand {
        id: "s1".to_owned(),
        line: "npm run dev".to_owned(),
        tool_call_id: None,
        state: RunningState::Running,
        since: jiff::Timestamp::UNIX_EPOCH,
        last_line: "ready on :3000".to_owned(),
    };
    let ended =
        RunningCommand { id: "s2".to_owned(), state: RunningState::Ended { how: "exit 0".to_owned() }, ..running.clone() };
    tell(&mut model, EventKind::CommandsRunning { commands: vec![running, ended] }, 100);
    assert!(picture(&mut model, 200).contains("1 in the background: s1 npm run dev"));
    tell(&mut model, EventKind::CommandsRunning { commands: Vec::new() }, 300);
    assert!(!picture(&mut model, 400).contains("background"));
}

#[test]
fn an_approval_that_opened_while_typing() {
    check("unfocused", |model| {
        cards(model);
        feed(model, Msg::Input(crate::tui::input::Input::Paste("also fix the".to_owned())), 9400);
        tell(model, EventKind::ApprovalRequested(edit_approval("b")), 9600);
    });
}

#[test]
fn no_key() {
    for (width, height) in SIZES {
        let mut model = Model::new(options(), Some("Explain the parser".to_owned()), Size::new(width, height));
        let message = "No key for Anthropic. Set ANTHROPIC_API_KEY, or try `aye demo`, which needs none.".to_owned();
        feed(&mut model, Msg::Start(Box::new(Start { model_access: ModelAccess::NoKey { message, model: None }, ..start() })), 0);
        let enter = crossterm::event::KeyEvent::new(crossterm::event::KeyCode::Enter, crossterm::event::KeyModifiers::NONE);
        assert!(feed(&mut model, Msg::Input(crate::tui::input::Input::Key(enter)), 19_000).is_empty(), "nothing is sent");
        let drawn = picture(&mut model, 20_000);
        assert!(drawn.contains("nothing was sent") && drawn.contains("Explain the parser"), "{drawn}");
    }
}

#[test]
fn an_interrupted_call() {
    check("interrupted", |model| {
        tell(
            model,
            EventKind::ToolInterrupted {
                tool_call_id: call("9"),
                tool_name: "RunCommand".to_owned(),
                summary: "$ cargo publish".to_owned(),
                known: "it had been running for 12 s".to_owned(),
                last_output: None,
                ran_ms: None,
            },
            100,
        );
    });
}

#[test]
fn the_help() {
    check("help", |model| model.help = Some(Help::new(Focus::Composer, "")));
}

#[test]
fn a_window_that_is_too_small_says_so() {
    let mut model = model(32, 9);
    assert!(picture(&mut model, 0).starts_with("aye needs 40x12, this is 32x9\n"));
}

#[test]
fn without_unicode_every_sign_of_ours_is_ascii() {
    let mut model = Model::new(Options { ascii: true, ..options() }, None, Size::new(60, 20));
    feed(&mut model, Msg::Start(Box::new(start())), 0);
    cards(&mut model);
    tell(&mut model, EventKind::ApprovalRequested(command_approval("a")), 9000);
    let mut diff = edit_approval("b");
    diff.proposal.diff = diff.proposal.diff.replace("你好 👋", "you");
    tell(&mut model, EventKind::ApprovalRequested(diff), 9500);
    for (width, turn) in [(60, false), (120, true), (40, false)] {
        feed(&mut model, Msg::Resize(Size::new(width, 20)), 10_000);
        if turn {
            model.panels.turn(true, None);
        }
        let drawn = picture(&mut model, 20_000);
        assert!(drawn.is_ascii(), "{drawn}");
    }
}

#[test]
fn a_long_path_is_shown_whole_and_what_is_granted_is_said_to_its_end() {
    let path = format!("{}/main_of_it.rs", ["crates", "a_long_name_of_a_crate", "src", "deep", "deeper", "deepest"].join("/"));
    for (width, height) in [(80, 24), (60, 30), (50, 40)] {
        let mut model = model(width, height);
        let mut approval = edit_approval("a");
        approval.action_summary = format!("Edit {path}");
        approval.proposal.diff = "--- a/f\n+++ b/f\n@@ -1,1 +1,1 @@\n-a\n+b\n".to_owned();
        approval.always = always(vec![GrantRule::Write { paths: vec![path.clone()] }]);
        tell(&mut model, EventKind::ApprovalRequested(approval), 10_000);
        picture(&mut model, 10_000);
        let drawn = picture(&mut model, 20_000);
        let flat: String = drawn.split_whitespace().collect();
        assert!(flat.contains(&path), "{drawn}");
        assert!(model.panels.open_always(None));
        picture(&mut model, 20_000);
        let drawn = picture(&mut model, 20_000);
        let flat: String = drawn.split_whitespace().collect();
        assert!(flat.contains(&format!("paths=[\"{path}\"]")) && flat.contains("inthisproject"), "{drawn}");
    }
}

#[test]
fn a_choice_in_few_words_says_all_before_it_is_confirmed() {
    let mut model = model(60, 16);
    feed(&mut model, Msg::Event(Box::new(event(EventKind::ApprovalRequested(edit_approval("a"))))), 1000);
    for at in [1000, 5000, 6000, 7000] {
        picture(&mut model, at);
        model.panels.take_fence(at);
        feed(&mut model, Msg::Input(crate::tui::input::Input::Key(crossterm::event::KeyCode::PageDown.into())), at);
    }
    picture(&mut model, 9000);
    assert!(picture(&mut model, 9000).contains("a  always …"));
    feed(&mut model, Msg::Input(crate::tui::input::Input::Key(crossterm::event::KeyCode::Char('a').into())), 10_000);
    assert!(picture(&mut model, 10_100).contains("a  always allow this …"));
    feed(&mut model, Msg::Time, 10_400);
    let drawn = picture(&mut model, 10_400);
    assert!(drawn.contains("Always allow this …") && drawn.contains("paths = [\"${workspace}/src/main.rs\"]"), "{drawn}");
}

fn changed_file(path: &str, status: ChangeStatus, diff: &str, by: &[ChangedBy]) -> ChangedFile {
    let count =
        |sign| diff.lines().filter(|line| line.starts_with(sign) && !line.starts_with("+++") && !line.starts_with("---")).count();
    ChangedFile {
        path: path.to_owned(),
        status,
        diff: diff.to_owned(),
        added: count('+') as u64,
        removed: count('-') as u64,
        by: by.to_vec(),
        note: diff.is_empty().then(|| "not text: 12 bytes before, 40 now".to_owned()),
    }
}

fn changes() -> ChangedFiles {
    let edit = "diff --git a/src/main.rs b/src/main.rs\n--- a/src/main.rs\n+++ b/src/main.rs\n@@ -1,3 +1,4 @@\n fn main() {\n\
                -    greet(\"\");\n+    let name = name();\n+    greet(&name);\n }\n";
    let new = "diff --git a/notes.md b/notes.md\n--- /dev/null\n+++ b/notes.md\n@@ -0,0 +1,1 @@\n+a note\u{1b}[31m\n";
    let files = vec![
        changed_file("assets/logo.png", ChangeStatus::Modified, "", &[ChangedBy::Outside]),
        changed_file("notes.md", ChangeStatus::Added, new, &[ChangedBy::Command]),
        changed_file("src/main.rs", ChangeStatus::Modified, edit, &[ChangedBy::Tool, ChangedBy::Command]),
    ];
    let (added, removed) = files.iter().fold((0, 0), |(a, r), file| (a + file.added, r + file.removed));
    ChangedFiles { files, added, removed, ..ChangedFiles::default() }
}

fn asked(model: &mut Model, changed: ChangedFiles) {
    for letter in "/diff".chars() {
        key(model, KeyCode::Char(letter));
    }
    assert_eq!(key(model, KeyCode::Enter), 2, "the draft is saved, the list is asked for");
    tell(model, EventKind::ChangedFiles(changed), 19_100);
}

fn key(model: &mut Model, code: KeyCode) -> usize {
    let key = crossterm::event::KeyEvent::new(code, crossterm::event::KeyModifiers::NONE);
    feed(model, Msg::Input(crate::tui::input::Input::Key(key)), 19_000).len()
}

#[test]
fn what_changed() {
    check("changes", |model| {
        cards(model);
        asked(model, changes());
        key(model, KeyCode::Char('p'));
    });
}

#[test]
fn what_changed_is_shown_only_to_who_asked_and_keeps_the_keys() {
    let mut model = model(80, 24);
    tell(&mut model, EventKind::ChangedFiles(changes()), 100);
    assert!(!picture(&mut model, 200).contains("Changed in this session"), "nobody asked");
    asked(&mut model, changes());
    let drawn = picture(&mut model, 19_200);
    assert!(drawn.contains("not text: 12 bytes before") && drawn.contains("3 files (+3 −1)"), "{drawn}");
    key(&mut model, KeyCode::Char('n'));
    let drawn = picture(&mut model, 19_300);
    assert!(drawn.contains("a note") && !drawn.contains('\u{1b}'), "{drawn}");
    key(&mut model, KeyCode::Char('r'));
    let mut fewer = changes();
    fewer.files.remove(0);
    tell(&mut model, EventKind::ChangedFiles(fewer), 19_400);
    let drawn = picture(&mut model, 19_500);
    assert!(drawn.contains("a note") && !drawn.contains("logo.png"), "the file that was open is open: {drawn}");
    tell(&mut model, EventKind::ApprovalRequested(edit_approval("b")), 19_600);
    let drawn = picture(&mut model, 40_000);
    assert!(drawn.contains("tab to review") && drawn.contains("Changed in this session"), "no question takes the keys: {drawn}");
    key(&mut model, KeyCode::Tab);
    assert!(model.panels.is_open());
    key(&mut model, KeyCode::Esc);
    key(&mut model, KeyCode::Esc);
    assert!(model.changes.is_none());
}

#[test]
fn nothing_changed() {
    check("changes-none", |model| {
        let notes = vec!["changes by other programs are not looked for: the workspace has more than 200000 files".to_owned()];
        asked(model, ChangedFiles { notes, ..ChangedFiles::default() });
    });
}

#[test]
fn a_list_of_changes_that_is_cut_says_which_file_is_open() {
    let mut model = model(40, 12);
    let mut many = changes();
    many.files.extend(std::iter::repeat_n(many.files[1].clone(), 5));
    asked(&mut model, many);
    key(&mut model, KeyCode::Char('n'));
    let drawn = picture(&mut model, 19_200);
    assert!(drawn.contains("2 of 8") && drawn.contains("n p other file"), "{drawn}");
}

#[test]
fn a_narrow_status_keeps_the_network_in_whole_words() {
    let mut narrow = model(40, 12);
    narrow.header.sandbox = "sandbox on: preview · net off".to_owned();
    narrow.header.mode = crate::protocol::Mode::AutoEdit;
    let drawn = picture(&mut narrow, 100);
    assert!(drawn.contains("sandbox on · net off") && !drawn.contains("preview"), "{drawn}");
    let mut wide = model(100, 24);
    wide.header.sandbox = "sandbox on: preview · net off".to_owned();
    assert!(picture(&mut wide, 100).contains("sandbox on: preview · net off"));
}

#[test]
fn messages_that_wait_and_a_request_that_is_sent_again() {
    check("retrying", |model| {
        cards(model);
        let waiting = |id, text: &str, steer| Waiting { id, text: text.to_owned(), steer };
        let waiting = vec![waiting(1, "use tabs, not blanks", true), waiting(2, "and then the README", false)];
        tell(model, EventKind::QueueChanged { waiting }, 9000);
        let words = "This request would exceed your organization's rate limit of 40,000 input tokens per minute";
        let kind = retry(FailureKind::RateLimited, 89_000, words, None, Some(0.0312));
        tell(model, kind, 10_000);
    });
}

#[test]
fn the_models_to_choose_from() {
    check("models", |model| {
        cards(model);
        let ctrl_l = crossterm::event::KeyEvent::new(KeyCode::Char('l'), crossterm::event::KeyModifiers::CONTROL);
        feed(model, Msg::Input(crate::tui::input::Input::Key(ctrl_l)), 9000);
        tell(model, EventKind::ModelsListed { models: listed_models(), notices: Vec::new() }, 9100);
        key(model, KeyCode::Up);
        tell(model, EventKind::ModelsListed { models: Vec::new(), notices: vec!["`acme` could not be asked".to_owned()] }, 9200);
    });
}

#[test]
fn what_fills_the_window() {
    check("context", |model| tell(model, EventKind::ContextShown(context_use()), 9000));
}

#[test]
fn a_summary_and_a_window_that_is_nearly_full() {
    check("compacted", |model| {
        let facts = ModelFacts::of_test("sonnet-5", 24_000, None);
        tell(model, EventKind::ModelChanged { facts, effort: Some(Effort::High), message: String::new() }, 8000);
        tell(model, EventKind::ContextCompacted(compaction()), 9000);
        model.transcript.fold_all();
        let budget = Budget {
            scope: BudgetScope::Session,
            unit: BudgetUnit::CostUsd,
            limit: 5.0,
            used: 4.1,
            set_by: "policy.toml:12".to_owned(),
            most: Some(50.0),
        };
        tell(model, EventKind::BudgetApproaching { budget }, 9100);
        model.tally.cost_usd = Some(4.1);
        tell(model, EventKind::CompactionStarted { trigger: CompactionTrigger::Threshold, messages: 61, tokens: 21_000 }, 9200);
    });
}

/// Two tasks were done.
fn two_tasks(model: &mut Model) {
    for (task, prompt, answer) in
        [("task_1", "Explain the parser", "It reads tokens."), ("task_2", "Make greet() reject empty names", "Rejected.")]
    {
        tell_of(model, task, started(prompt), 100);
        tell_of(model, task, text(answer), 110);
        let usage = Usage::default();
        tell_of(model, task, EventKind::TaskCompleted { text: answer.to_owned(), usage, cost_usd: None, step_count: 1 }, 120);
    }
}

fn type_line(model: &mut Model, line: &str, now: u64) {
    for key in line.chars().map(KeyCode::Char).chain([KeyCode::Enter]) {
        feed(model, Msg::Input(Input::Key(key.into())), now);
    }
}

#[test]
fn the_prompts_to_go_back_to() {
    check("rewind", |model| {
        two_tasks(model);
        type_line(model, "/rewind", 8000);
        tell(model, EventKind::RewindPointsListed { points: rewind_points(), can_redo: true }, 9000);
    });
}

#[test]
fn what_a_rewind_would_do() {
    check("rewind-plan", |model| {
        two_tasks(model);
        type_line(model, "/rewind", 8000);
        tell(model, EventKind::RewindPointsListed { points: rewind_points(), can_redo: false }, 9000);
        picture(model, 9001);
        feed(model, Msg::Input(Input::Key(KeyCode::Down.into())), 9500);
        picture(model, 9501);
        feed(model, Msg::Input(Input::Key(KeyCode::Enter.into())), 9600);
        tell(model, EventKind::RewindPlanned(rewind_plan()), 9700);
        picture(model, 9701);
        model.panels.take_fence(9702);
    });
}

#[test]
fn what_was_undone_is_marked() {
    check("rewound", |model| {
        two_tasks(model);
        let target = RewindTarget::Before { task_id: TaskId::new("task_2"), step_id: None };
        tell(model, rewound(target, RewindScope::Both, vec![rewind_plan().files[0].clone()]), 13_000);
    });
}

#[test]
fn a_session_that_another_process_has() {
    for (width, height) in SIZES {
        let mut model = Model::new(options(), None, Size::new(width, height));
        let (held, _answered) = held(None, None);
        feed(&mut model, Msg::Ahead(Box::new(crate::tui::front::Ahead::Held(held))), 1000);
        picture(&mut model, 1001);
        model.panels.take_fence(1002);
        screen::check(&format!("ui-held-{width}x{height}"), &picture(&mut model, 20_000));
    }
}

#[test]
fn what_was_in_flight() {
    for (width, height) in SIZES {
        let mut model = Model::new(options(), None, Size::new(width, height));
        let runs = EventKind::ToolStarted { tool_call_id: call("2"), rule: "user:1".to_owned(), summary: None };
        let history = vec![
            started("Make greet() reject empty names"),
            requested("1", "EditFile", "Edit src/main.rs"),
            requested("2", "RunCommand", "$ cargo test --workspace"),
            runs,
        ];
        let history = history.into_iter().map(event).collect();
        feed(&mut model, Msg::Start(Box::new(Start { history, ..start() })), 1000);
        tell(&mut model, EventKind::ApprovalRequested(Approval { tool_call_id: call("1"), ..edit_approval("a") }), 1200);
        tell(&mut model, interrupted("2", "$ cargo test --workspace"), 1200);
        tell(&mut model, EventKind::DraftRestored { text: "and the README".to_owned() }, 1200);
        model.panels.put_off();
        screen::check(&format!("ui-recovered-{width}x{height}"), &picture(&mut model, 20_000));
    }
}

#[test]
fn a_session_that_cannot_be_saved() {
    check("unsaved", |model| {
        tell(model, started("Make greet() reject empty names"), 100);
        tell(model, not_saved(), 200);
    });
}

fn typed(model: &mut Model, words: &str) {
    for letter in words.chars() {
        key(model, KeyCode::Char(letter));
    }
}

#[test]
fn commands_behind_a_slash() {
    check("slash", |model| {
        cards(model);
        let fix = own_command("fix", "---\ndescription: Fix an issue\nargument-hint: <number>\n---\nFix $1");
        tell(model, EventKind::LookedUp(LookedUp::Commands { commands: vec![fix], notices: Vec::new() }), 9000);
        typed(model, "/f");
        key(model, KeyCode::Down);
    });
}

#[test]
fn files_behind_an_at_sign() {
    check("files", |model| {
        typed(model, "compare @gr");
        let file = |path: &str, tokens| FoundFile { path: path.to_owned(), tokens };
        let files = vec![
            file("src/greeter.rs", Some(840)),
            file("docs/größe.md", Some(12_400)),
            file("gr/", None),
            file("a/very/long/path/that/does/not/fit/on/a/narrow/screen/with/all/its/folders/greeting.rs", Some(3)),
            file("my notes/\u{202e}green.md", Some(12)),
        ];
        tell(model, EventKind::LookedUp(LookedUp::Files { words: "gr".to_owned(), files }), 9000);
    });
}

fn control(model: &mut Model, letter: char) {
    let key = crossterm::event::KeyEvent::new(KeyCode::Char(letter), crossterm::event::KeyModifiers::CONTROL);
    feed(model, Msg::Input(crate::tui::input::Input::Key(key)), 9000);
}

#[test]
fn the_palette() {
    check("palette", |model| {
        cards(model);
        control(model, 'p');
        typed(model, "mo");
    });
}

fn sessions(model: &mut Model) {
    typed(model, "/resume");
    key(model, KeyCode::Enter);
    let sessions = listed_sessions();
    let told = LookedUp::Sessions {
        words: String::new(),
        all: false,
        archived: false,
        sessions,
        here: 3,
        everywhere: 57,
        looks_on: false,
    };
    feed(model, Msg::Event(Box::new(event(EventKind::LookedUp(told)))), 9000);
    tell(model, EventKind::LookedUp(LookedUp::Session(looked_at("a1b2c3d4"))), 9000);
}

#[test]
fn the_sessions_to_go_on_with() {
    check("sessions", sessions);
}

#[test]
fn the_branches_of_a_session() {
    check("tree", |model| {
        tell(model, started("Validate the name"), 8000);
        tell(
            model,
            EventKind::TaskCompleted { text: "done".to_owned(), usage: Usage::default(), cost_usd: None, step_count: 1 },
            8100,
        );
        typed(model, "/tree");
        key(model, KeyCode::Enter);
        let branch = |id: &str, records, depth, title: &str, after| Branch {
            session_id: SessionId::new(id),
            records,
            depth,
            title: Some(title.to_owned()),
            prompts: 2,
            after,
            age: "2 h".to_owned(),
            archived: depth == 2,
        };
        let here = model.session.as_ref().map(ToString::to_string).unwrap_or_default();
        let branches = vec![
            branch(&here, None, 0, "Validate the name", None),
            branch("b1b2c3d4", None, 1, "Validate the name (fork)", Some(1)),
            branch("c1b2c3d4", None, 2, "A third \u{1b}way", Some(2)),
            branch(&here, Some(40), 1, "Without a library", Some(0)),
        ];
        tell(model, EventKind::LookedUp(LookedUp::Branches { branches }), 9000);
        key(model, KeyCode::End);
    });
}

#[test]
fn the_servers_and_what_they_ask() {
    let list = |model: &mut Model| {
        tell(model, EventKind::ServersChanged { servers: servers() }, 8000);
        typed(model, "/mcp");
        key(model, KeyCode::Enter);
    };
    check("mcp", list);
    check("mcp-server", |model| {
        list(model);
        key(model, KeyCode::Down);
        picture(model, 20_000);
        key(model, KeyCode::Down);
        picture(model, 20_000);
        key(model, KeyCode::Enter);
    });
    check("form", |model| tell(model, EventKind::ElicitationRequested(form("e")), 9000));
    let filling = |model: &mut Model, steps: usize| {
        tell(model, EventKind::ElicitationRequested(form("e")), 9000);
        picture(model, 9000);
        model.panels.open_current(None);
        crate::tui::update::pick_asking(model, crate::tui::asking::Pick::Fill, 9000, &mut Vec::new());
        picture(model, 9100);
        for _ in 0..steps {
            key(model, KeyCode::Tab);
        }
    };
    check("form-filling", |model| {
        filling(model, 0);
        typed(model, "nobody");
    });
    check("form-choices", |model| filling(model, 4));
    check("form-secret", |model| filling(model, 5));
    check("visit", |model| {
        let url = "https://github.com@login.example.org/oauth/authorize?client_id=1234567890&scope=repo,user&state=abcdefghijklmnopqrstuvwxyz0123456789";
        tell(model, EventKind::ElicitationRequested(visit("e", url)), 9000);
    });
}

#[test]
fn a_session_looked_at_on_a_narrow_screen() {
    check("sessions-look", |model| {
        sessions(model);
        key(model, KeyCode::Char(' '));
    });
}

#[test]
fn a_session_to_delete() {
    check("sessions-delete", |model| {
        sessions(model);
        control(model, 'x');
    });
}

#[test]
fn what_runs_where() {
    check("status", |model| {
        let rows = vec![("settings".to_owned(), "~/.config/aye/config.toml".to_owned())];
        tell(model, EventKind::LookedUp(LookedUp::Places { rows }), 9000);
    });
}

/// The first questions, with nothing chosen; then as this page.
fn setup(model: &mut Model, inputs: &[crate::tui::onboarding::Input<'static>]) {
    tell(model, EventKind::LookedUp(LookedUp::Setup(SetupTold::Found(setup_found()))), 9000);
    for input in inputs {
        let Some(panel) = model.panels.setup() else { panic!() };
        let crate::tui::approval::Question::Setup(setup) = &mut panel.question else { panic!() };
        setup.step(input.clone());
    }
    model.panels.show_setup(None);
    model.panels.focus_setup(None);
}

#[test]
fn the_first_questions() {
    use crate::tui::onboarding::{Input, Pick};
    let key = Input::Pasted("sk-ant-api03-abcdefghijklmnopqrstuvwxyz");
    check("setup-model", |model| setup(model, &[]));
    check("setup-key", |model| setup(model, std::slice::from_ref(&key)));
    check("setup-address", |model| {
        setup(model, &[Input::Pick(Pick::Address), Input::Pasted("http://localhost:8000/v1 my-model")]);
    });
    check("setup-chosen", |model| setup(model, &[key.clone(), Input::Enter]));
    let failed =
        TestOutcome::Failed { message: "the key was refused (401): invalid x-api-key\nlook at ANTHROPIC_API_KEY".to_owned() };
    check("setup-tested", |model| {
        let told = Input::Told(SetupTold::Tested { number: 3, outcome: failed.clone() });
        setup(model, &[key.clone(), Input::Enter, Input::Pick(Pick::Test), told]);
    });
    check("setup-policy", |model| setup(model, &[Input::Escape]));
    let mut model = model(60, 20);
    model.options.ascii = true;
    model.glyphs = crate::tui::glyphs::ASCII;
    setup(&mut model, &[Input::Escape]);
    let drawn = picture(&mut model, 20_000);
    assert!(drawn.is_ascii(), "{drawn}");
}

#[test]
fn the_window_is_what_the_policy_leaves_of_that_of_the_model() {
    let mut model = model(100, 24);
    model.tally.context_tokens = 40_000;
    let row = |model: &mut Model| picture(model, 100);
    assert!(row(&mut model).contains("20% 40k/200k"));
    let layer = |most| PolicyLayer {
        scope: "user".to_owned(),
        bundle_version: None,
        expires_at: None,
        max_input_tokens: most,
        file: None,
    };
    let layers = vec![layer(None), layer(Some(50_000)), layer(Some(90_000))];
    tell(&mut model, EventKind::PolicyInForce { layers, name: "user".to_owned(), message: None }, 100);
    let drawn = row(&mut model);
    assert!(drawn.contains("80% 40k/50k"), "{drawn}");
}
