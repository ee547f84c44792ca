mod approval;
mod changes;
mod lists;
mod recovery;
mod status;

use super::draw;
use crate::protocol::*;
use crate::tui::approval::{AmendField, AmendTarget, HunkMark};
use crate::tui::input::UiInput;
use crate::tui::interface::{ModelAccess, SessionHeader, Start};
use crate::tui::keymap::Focus;
use crate::tui::layers::Help;
use crate::tui::model::UiModel;
use crate::tui::tests::fixtures::*;
use crate::tui::tests::snapshot;
use crate::tui::theme::Token;
use crate::tui::update::Msg;
use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use ratatui::buffer::Buffer;
use ratatui::layout::{Rect, Size};

const SIZES: [(u16, u16); 4] = [(120, 36), (80, 24), (60, 20), (40, 12)];

fn picture(model: &mut UiModel, now: u64) -> String {
    let mut buffer = Buffer::empty(Rect::from(model.screen.size));
    draw(model, &mut buffer, now);
    let rows = (0..model.screen.size.height).map(|y| {
        let mut x = 0;
        let mut row = String::new();
        while x < model.screen.size.width {
            let symbol = buffer[(x, y)].symbol();
            row.push_str(symbol);
            x += (crate::text::width(symbol) as u16).max(1);
        }
        row.trim_end().to_owned() + "\n"
    });
    rows.collect()
}

#[track_caller]
fn check(name: &str, scene: impl Fn(&mut UiModel)) {
    for (width, height) in SIZES {
        let mut model = model(width, height);
        scene(&mut model);
        // The second frame is used, because the first one determines how much is visible.
        picture(&mut model, 20_000);
        snapshot::check(&format!("ui-{name}-{width}x{height}"), &picture(&mut model, 20_000));
    }
}

fn cards(model: &mut UiModel) {
    tell(model, started("Make greet() reject empty names and update the callers"), 0);
    tell(model, text("I'll look at the callers first.\n"), 100);
    tell(model, requested("1", "ReadFile", "Read src/main.rs"), 200);
    tell(model, completed("1", ToolStatus::Succeeded, "fn main() {}\nfn greet() {}\n", None), 300);
    tell(model, requested("2", "RunCommand", "$ cargo check"), 400);
    let output = (1..=40).map(|n| format!("line {n}")).collect::<Vec<_>>().join("\n");
    let error = ToolError::new(ErrorCode::ToolExecutionFailed, "the command ended with exit code 101");
    tell(model, completed("2", ToolStatus::Failed, &output, Some(error)), 2800);
    tell(model, requested("3", "RunCommand", "$ cargo test --workspace"), 2900);
    tell(
        model,
        EventKind::ToolStarted { tool_call_id: call("3"), rule: "user:12".to_owned(), summary: None, effects: None, note: None },
        7_200,
    );
    tell(
        model,
        EventKind::ToolOutputChunk { tool_call_id: call("3"), text: "running 12 tests\ntest lexer::empty ... ok\n".to_owned() },
        8000,
    );
}

fn begins(model: &mut UiModel, start: Start) {
    let size = model.screen.size;
    *model = UiModel::new(options(), None, size);
    let _ = super::super::update::update(model, Msg::Start(Box::new(start)), 0);
}

#[test]
fn the_greeting_never_splits_a_command() {
    let last = "Last session: \"Validate the name\" · 2 h ago; run `aye --resume=7f3a0c12` to continue · 3 uncommitted changes";
    let attempt = "look into the TODO in src/main.rs:2";
    check("greeting", |model| {
        begins(model, Start { last_here: Some(last.to_owned()), attempt: Some(attempt.to_owned()), ..start() });
    });
}

#[test]
fn the_greeting_shows_project_trust_and_the_expiry_of_the_policy() {
    for (width, expected) in [
        (100, "  Trusted project · mode ask · user + project policy (expires in 6 d) · sandbox on · net off\n"),
        (40, "  Trusted project · mode ask · user +\n  project policy (expires in 6 d) ·\n  sandbox on · net off\n"),
    ] {
        let mut model = model(width, 24);
        let header = SessionHeader { policy: "user + project".to_owned(), ..header() };
        let ends = Some("expires in 6 d".to_owned());
        begins(&mut model, Start { header, is_trusted: true, policy_ends: ends, ..start() });
        let drawn = picture(&mut model, 20_000);
        assert!(drawn.contains(expected), "{drawn}");
    }
}

#[test]
fn without_an_api_key_the_screen_shows_how_to_add_one() {
    check("no-key", |model| {
        let message = "no API key found".to_owned();
        let header = SessionHeader { model: String::new(), ..header() };
        begins(model, Start { header, model_access: ModelAccess::NoKey { message, model: None }, ..start() });
        typed(model, "explain this");
        key(model, KeyCode::Enter);
    });
}

#[test]
fn an_idle_screen_matches_its_snapshots() {
    check("idle", |_| {});
}

#[test]
fn a_streamed_response_with_cards_matches_its_snapshots() {
    check("streaming", |model| {
        cards(model);
        tell(model, text("\n## Plan\nThe tokenizer re-allocates on **every** token, so\n\n- reuse the buffer\n"), 9000);
        tell(
            model,
            EventKind::QueueChanged {
                waiting: vec![crate::protocol::QueuedMessage { id: 1, text: "and then the README".to_owned(), steer: false }],
            },
            9000,
        );
    });
}

#[test]
fn browsing_with_a_search_matches_its_snapshots() {
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
            feed(model, Msg::Input(UiInput::Key(KeyEvent::new(key, modifiers))), 9100);
        }
    });
}

fn slash(model: &mut UiModel, command: &str) {
    for letter in command.chars() {
        key(model, KeyCode::Char(letter));
    }
    picture(model, 19_000);
    key(model, KeyCode::Enter);
}

#[test]
fn the_window_size_message_is_complete_even_in_a_tiny_window() {
    let mut model = model(12, 4);
    let drawn = picture(&mut model, 100);
    let words = drawn.split_whitespace().collect::<Vec<_>>().join(" ");
    assert_eq!(words, "aye needs 40x12, this terminal is 12x4");
}

#[test]
fn background_commands_are_shown_in_a_row() {
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
fn a_screen_without_an_api_key_matches_its_snapshots() {
    for (width, height) in SIZES {
        let mut model = UiModel::new(options(), Some("Explain the parser".to_owned()), Size::new(width, height));
        let message = "No key for Anthropic. Set ANTHROPIC_API_KEY, or try `aye demo`, which needs none.".to_owned();
        feed(&mut model, Msg::Start(Box::new(Start { model_access: ModelAccess::NoKey { message, model: None }, ..start() })), 0);
        assert_eq!(key(&mut model, KeyCode::Enter), 0, "nothing is sent");
        let drawn = picture(&mut model, 20_000);
        assert!(drawn.contains("not sent") && drawn.contains("Explain the parser"), "{drawn}");
    }
}

#[test]
fn the_help_overview_matches_its_snapshots() {
    check("help", |model| model.layers.push(Help::new(Focus::Composer, "")));
}

#[test]
fn a_window_too_small_shows_the_required_size() {
    let mut model = model(32, 9);
    assert!(picture(&mut model, 0).starts_with("aye needs 40x12, this terminal\nis 32x9\n"));
}

#[test]
fn ascii_mode_draws_only_ascii_characters() {
    let mut options = options();
    options.terminal.ascii = true;
    let mut model = UiModel::new(options, None, Size::new(60, 20));
    feed(&mut model, Msg::Start(Box::new(start())), 0);
    cards(&mut model);
    tell(&mut model, EventKind::ApprovalRequested(command_approval("a")), 9000);
    let mut diff = edit_approval("b");
    diff.proposal.diff = FileDiffs::read(&diff.proposal.diff.to_string().replace("你好 👋", "you"));
    tell(&mut model, EventKind::ApprovalRequested(diff), 9500);
    for (width, turn) in [(60, false), (120, true), (40, false)] {
        feed(&mut model, Msg::Resize(Size::new(width, 20)), 10_000);
        if turn {
            model.dialogs.cycle(true, None);
        }
        let drawn = picture(&mut model, 20_000);
        assert!(drawn.is_ascii(), "{drawn}");
    }
}

fn key(model: &mut UiModel, code: KeyCode) -> usize {
    feed(model, Msg::Input(UiInput::Key(code.into())), 19_000).len()
}

#[test]
fn queued_messages_and_a_retried_request_match_their_snapshots() {
    check("retrying", |model| {
        cards(model);
        let waiting = |id, text: &str, steer| QueuedMessage { id, text: text.to_owned(), steer };
        let waiting = vec![waiting(1, "use tabs, not blanks", true), waiting(2, "and then the README", false)];
        tell(model, EventKind::QueueChanged { waiting }, 9000);
        let words = "This request would exceed your organization's rate limit of 40,000 input tokens per minute";
        let kind = retry(FailureKind::RateLimited, 89_000, words, None, Some(0.0312));
        tell(model, kind, 10_000);
    });
}

#[test]
fn the_overview_of_context_use_matches_its_snapshots() {
    check("context", |model| tell(model, EventKind::ContextShown(context_use()), 9000));
}

#[test]
fn a_summary_and_a_nearly_full_context_window_match_their_snapshots() {
    check("compacted", |model| {
        let facts = ModelFacts::for_test("sonnet-5", 24_000, None);
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
        model.info.tally.cost_usd = Some(4.1);
        tell(model, EventKind::CompactionStarted { trigger: CompactionTrigger::Threshold, messages: 61, tokens: 21_000 }, 9200);
    });
}

fn type_line(model: &mut UiModel, line: &str, now: u64) {
    for key in line.chars().map(KeyCode::Char).chain([KeyCode::Enter]) {
        feed(model, Msg::Input(UiInput::Key(key.into())), now);
    }
}

fn typed(model: &mut UiModel, words: &str) {
    for letter in words.chars() {
        key(model, KeyCode::Char(letter));
    }
}

fn control(model: &mut UiModel, letter: char) {
    let key = KeyEvent::new(KeyCode::Char(letter), KeyModifiers::CONTROL);
    feed(model, Msg::Input(UiInput::Key(key)), 9000);
}

#[test]
fn mcp_servers_and_their_elicitations_match_their_snapshots() {
    let list = |model: &mut UiModel| {
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
    check("price", |model| {
        let price = Price { input: 3.0, output: 15.0, cache_read: 0.0, cache_write: 0.0 };
        let elsewhere = PriceElsewhere { model: "anthropic/claude-sonnet-5".to_owned(), price };
        let facts =
            ModelFacts { price_elsewhere: Some(elsewhere), ..ModelFacts::for_test("mine/claude-sonnet-5", 200_000, None) };
        tell(model, EventKind::ModelChanged { facts, effort: None, message: String::new() }, 8000);
        let failure = Failure::new(FailureKind::BudgetExceeded, "the price of `mine/claude-sonnet-5` is unknown", "");
        tell(model, EventKind::SessionPaused { failure: failure.with_remedy(Remedy::AssumePrice) }, 9000);
    });
    check("form", |model| tell(model, EventKind::ElicitationRequested(form("e")), 9000));
    let filling = |model: &mut UiModel, steps: usize| {
        tell(model, EventKind::ElicitationRequested(form("e")), 9000);
        picture(model, 9000);
        model.dialogs.open_current(None);
        crate::tui::update::pick_asking(model, crate::tui::elicitation::FormAction::Fill, 9000, &mut Vec::new());
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
fn the_status_overview_matches_its_snapshots() {
    check("status", |model| {
        let rows = vec![("settings".to_owned(), "~/.config/aye/config.toml".to_owned())];
        tell(model, EventKind::LookedUp(HostResponse::Places { rows }), 9000);
    });
}

/// Shows the first-run setup after the given inputs.
fn setup(model: &mut UiModel, inputs: &[crate::tui::onboarding::SetupInput<'static>]) {
    model.startup.wants_setup = true;
    tell(model, EventKind::LookedUp(HostResponse::Setup(SetupEvent::Found(setup_found()))), 9000);
    for input in inputs {
        let Some(panel) = model.dialogs.setup() else { panic!() };
        let setup = panel.kind.find_mut::<crate::tui::onboarding::Onboarding>().unwrap();
        setup.step(input.clone());
    }
    model.dialogs.show_setup(None);
    model.dialogs.focus_setup(None);
}

#[test]
fn setup_dialogs_at_the_first_start_match_their_snapshots() {
    use crate::tui::onboarding::{SetupChoice, SetupInput};
    let key = SetupInput::Pasted("sk-ant-api03-abcdefghijklmnopqrstuvwxyz");
    check("setup-card", |model| setup(model, &[]));
    check("setup-model-list", |model| {
        setup(model, &[]);
        let Some(panel) = model.dialogs.setup() else { panic!() };
        let setup = panel.kind.find_mut::<crate::tui::onboarding::Onboarding>().unwrap();
        setup.found.public_list = Some("https://models.dev/api.json".to_owned());
        setup.step(SetupInput::Move(2));
        model.dialogs.show_setup(None);
        model.dialogs.focus_setup(None);
    });
    check("setup-key", |model| setup(model, std::slice::from_ref(&key)));
    check("setup-address", |model| {
        setup(model, &[SetupInput::Pick(SetupChoice::Address), SetupInput::Pasted("http://localhost:8000/v1 my-model")]);
    });
    check("setup-chosen", |model| setup(model, &[key.clone(), SetupInput::Enter]));
    let failed =
        TestOutcome::Failed { message: "the key was refused (401): invalid x-api-key\nlook at ANTHROPIC_API_KEY".to_owned() };
    check("setup-tested", |model| {
        let told = SetupInput::Told(SetupEvent::Tested { number: 3, outcome: failed.clone() });
        setup(model, &[key.clone(), SetupInput::Enter, SetupInput::Pick(SetupChoice::Test), told]);
    });
    check("setup-approvals", |model| setup(model, &[SetupInput::Move(1)]));
    check("setup-theme", |model| setup(model, &[SetupInput::Move(-1)]));
    let mut model = model(60, 20);
    model.options.terminal.ascii = true;
    model.screen.glyphs = crate::tui::glyphs::ASCII;
    setup(&mut model, &[SetupInput::Move(-1)]);
    let drawn = picture(&mut model, 20_000);
    assert!(drawn.is_ascii(), "{drawn}");
}
