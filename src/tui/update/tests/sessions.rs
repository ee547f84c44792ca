use super::*;
use crate::tui::layers::{SessionList, TextViewer};
use crate::tui::tests::fixtures::{listed_sessions, looked_at};

fn told(model: &mut UiModel, told: HostResponse, at: u64) -> Vec<String> {
    let effects = update(model, Msg::Event(Box::new(event(EventKind::LookedUp(told)))), at);
    draw(model, at);
    effects.iter().filter_map(words).collect()
}

fn listed(words: &str, all: bool) -> HostResponse {
    let sessions = listed_sessions();
    HostResponse::Sessions { words: words.to_owned(), all, archived: false, sessions, here: 3, everywhere: 57, looks_on: false }
}

fn opened() -> UiModel {
    let mut model = model(120, 30);
    let sent = play(&mut model, 1000, "/resume<enter>");
    assert_eq!(sent, ["lookup(sessions { words: \"\", all: false, archived: false })"]);
    assert_eq!(told(&mut model, listed("", false), 2000), ["lookup(session { session_id: sessionid(\"a1b2c3d4\") })"]);
    told(&mut model, HostResponse::Session(looked_at("a1b2c3d4")), 2100);
    model
}

#[test]
fn a_session_is_previewed_and_resumed() {
    let mut model = opened();
    let screen = draw(&mut model, 2200);
    for words in ["Validate the name", "waiting for you", "interrupted", "reject empty names", "14 steps", "[here 3]", "all 57"] {
        assert!(screen.contains(words), "{words}\n{screen}");
    }
    assert!(!screen.contains(['\u{1b}', '\u{202e}']), "{screen}");
    let sent = play(&mut model, 3000, "<down><enter>");
    assert_eq!(sent.last().unwrap(), "exit Open(Session(SessionId(\"b1b2c3d4\")))");
    assert!(sent.contains(&"quit".to_owned()));
}

#[test]
fn typing_searches_sessions_and_results_for_other_words_are_ignored() {
    let mut model = opened();
    assert_eq!(
        play(&mut model, 3000, "ab"),
        ["a", "ab"].map(|words| format!("lookup(sessions {{ words: {words:?}, all: false, archived: false }})"))
    );
    told(
        &mut model,
        HostResponse::Sessions {
            words: "a".to_owned(),
            all: false,
            archived: false,
            sessions: Vec::new(),
            here: 3,
            everywhere: 57,
            looks_on: false,
        },
        4000,
    );
    assert!(draw(&mut model, 4000).contains("Port the lexer"));
    assert_eq!(play(&mut model, 5000, "<tab>"), ["lookup(sessions { words: \"ab\", all: true, archived: false })"]);
    told(&mut model, listed("ab", true), 5200);
    assert!(draw(&mut model, 5200).contains("[all 57]"));
    assert_eq!(play(&mut model, 6000, "<esc>"), [""; 0]);
    assert!(!model.layers.is_open::<SessionList>());
}

#[test]
fn letters_search_and_control_keys_run_actions() {
    let mut model = opened();
    let sent = play(&mut model, 3000, "<ctrl+r><ctrl+u>New name<enter>");
    assert_eq!(sent, ["lookup(rename { session_id: sessionid(\"a1b2c3d4\"), title: \"new name\" })"]);
    let renamed = HostResponse::Renamed { session_id: SessionId::new("a1b2c3d4"), title: "New name".to_owned() };
    told(&mut model, renamed, 5000);
    assert!(draw(&mut model, 5000).contains("New name"));
    assert_eq!(play(&mut model, 6000, "<ctrl+f>"), ["lookup(fork { session_id: sessionid(\"a1b2c3d4\"), until: end })"]);
    let sent = told(&mut model, HostResponse::Forked { session_id: SessionId::new("f1") }, 7000);
    assert_eq!(sent.last().unwrap(), "exit Open(Session(SessionId(\"f1\")))");
}

#[test]
fn ctrl_t_shows_the_full_transcript_and_escape_returns_to_the_list() {
    let mut model = opened();
    assert_eq!(play(&mut model, 3000, "<ctrl+t>"), ["lookup(transcript { session_id: sessionid(\"a1b2c3d4\") })"]);
    let transcript = |id: &str| HostResponse::Transcript {
        session_id: SessionId::new(id),
        title: "Validate the name".to_owned(),
        text: (1..=90).map(|n| format!("said {n} \u{1b}[2J\n")).collect::<Vec<_>>().concat(),
    };
    told(&mut model, transcript("somebody"), 3100);
    assert!(!model.layers.is_open::<TextViewer>(), "another one is marked by now");
    told(&mut model, transcript("a1b2c3d4"), 3200);
    let screen = draw(&mut model, 3300);
    assert!(screen.contains("said 1 ") && !screen.contains("Port the lexer") && !screen.contains('\u{1b}'), "{screen}");
    play(&mut model, 3400, "<end>");
    assert!(draw(&mut model, 3500).contains("said 90"));
    assert_eq!(play(&mut model, 3600, "<esc>"), [""; 0]);
    assert!(draw(&mut model, 3700).contains("Port the lexer") && model.layers.is_open::<SessionList>());
}

#[test]
fn deleting_a_session_takes_two_deliberate_keys() {
    let mut model = opened();
    assert_eq!(play(&mut model, 3000, "<ctrl+x>"), [""; 0]);
    assert!(draw(&mut model, 3010).contains("Delete the session"));
    let sent = play(&mut model, 3050, "y<enter>");
    assert!(
        !sent.iter().any(|one| one.starts_with("lookup(delete") || one.starts_with("exit")),
        "nothing counts so soon: {sent:?}"
    );
    let mut model = opened();
    play(&mut model, 3000, "<ctrl+x>");
    wait(&mut model, 5000);
    assert_eq!(play(&mut model, 6000, "y"), [""; 0]);
    wait(&mut model, 6500);
    assert_eq!(play(&mut model, 7000, "<enter>"), ["lookup(delete { session_id: sessionid(\"a1b2c3d4\") })"]);
    told(&mut model, HostResponse::Deleted { session_id: SessionId::new("a1b2c3d4") }, 8000);
    let screen = draw(&mut model, 8000);
    assert!(!screen.contains("Validate the name") && screen.contains("[here 2]"), "{screen}");
}

#[test]
fn leaving_the_delete_dialog_keeps_the_session_and_enter_opens_the_row_again() {
    for key in ["<esc>", "<ctrl+c>"] {
        let mut model = opened();
        play(&mut model, 3000, "<ctrl+x>");
        assert_eq!(play(&mut model, 4000, key), [""; 0]);
        assert!(model.dialogs.is_empty() && !draw(&mut model, 4100).contains("Delete"), "{key}");
        assert_eq!(play(&mut model, 5000, "<down><enter>").last().unwrap(), "exit Open(Session(SessionId(\"b1b2c3d4\")))");
    }
    // After the user typed over a dialog, only its own row opens it again.
    let mut model = opened();
    play(&mut model, 3000, "<ctrl+x>xa");
    told(&mut model, listed("xa", false), 3500);
    assert!(!model.dialogs.is_open() && model.dialogs.len() == 1);
    assert_eq!(play(&mut model, 4000, "<enter>"), [""; 0]);
    assert!(model.dialogs.is_open());
    let mut model = opened();
    play(&mut model, 3000, "<ctrl+x>xa");
    told(&mut model, listed("xa", false), 3500);
    assert_eq!(play(&mut model, 4000, "<down><enter>").last().unwrap(), "exit Open(Session(SessionId(\"b1b2c3d4\")))");
}

#[test]
fn text_typed_at_the_delete_dialog_goes_to_the_visible_list() {
    let mut model = opened();
    play(&mut model, 3000, "<ctrl+x>");
    let sent = play(&mut model, 3100, "yes no");
    assert_eq!(sent.last().unwrap(), "lookup(sessions { words: \"yes no\", all: false, archived: false })");
    assert!(model.composer.is_empty() && !model.dialogs.is_open() && model.dialogs.len() == 1);
    // The dialog is visible and opens like any other dialog.
    assert!(draw(&mut model, 4000).contains("tab to review"));
    play(&mut model, 5000, "<tab>");
    assert!(model.dialogs.is_open());
    wait(&mut model, 6500);
    assert_eq!(play(&mut model, 7000, "n"), [""; 0]);
    wait(&mut model, 7350);
    assert!(model.dialogs.is_empty() && model.layers.is_open::<SessionList>());
}

#[test]
fn sessions_cannot_be_switched_while_a_task_or_command_is_running() {
    for typed in ["/new<enter>", "/fork<enter>", "/resume a1b2c3d4<enter>"] {
        let mut model = model(80, 24);
        tell(&mut model, started("x"), 500);
        let sent = play(&mut model, 1000, typed);
        assert!(!sent.iter().any(|one| one.starts_with("exit") || one.starts_with("lookup")), "{typed}: {sent:?}");
        assert!(draw(&mut model, 4000).contains("a task is running: stop it with esc"), "{typed}");
    }
    let mut model = model(80, 24);
    let command = RunningCommand {
        id: "s1".to_owned(),
        line: "npm run dev".to_owned(),
        tool_call_id: None,
        state: RunningState::Running,
        since: jiff::Timestamp::UNIX_EPOCH,
        last_line: String::new(),
    };
    tell(&mut model, EventKind::CommandsRunning { commands: vec![command] }, 500);
    assert_eq!(play(&mut model, 1000, "/new<enter>"), [""; 0]);
    assert!(draw(&mut model, 2000).contains("/stop s1"));
}

#[test]
fn new_ends_the_current_session_and_rename_normalizes_the_title() {
    let mut model = model(80, 24);
    tell(&mut model, started("x"), 500);
    tell(
        &mut model,
        EventKind::TaskCompleted { text: "done".to_owned(), usage: Usage::default(), cost_usd: None, step_count: 1 },
        600,
    );
    assert_eq!(play(&mut model, 1000, "/new<enter>"), ["quit", "exit Open(New)"]);
    assert_eq!(
        play(&mut model, 5000, "/rename  Another   name <enter>")[0],
        format!("lookup(rename {{ session_id: {:?}, title: \"Another name\" }})", model.info.session.clone().unwrap())
            .to_lowercase()
    );
}

#[test]
fn escape_quits_the_session_chooser_at_startup() {
    let mut model = UiModel::new(crate::tui::tests::fixtures::options(), None, ratatui::layout::Size::new(80, 24));
    let effects = update(&mut model, Msg::Ahead(Box::new(crate::tui::interface::StartupQuestion::Choose)), 400);
    let effects: Vec<String> = effects.iter().filter_map(words).collect();
    assert_eq!(effects, ["lookup(sessions { words: \"\", all: false, archived: false })"]);
    told(&mut model, listed("", false), 500);
    assert!(draw(&mut model, 600).contains("Port the lexer"));
    assert_eq!(play(&mut model, 1000, " ")[..], [""; 0]);
    told(&mut model, HostResponse::Session(looked_at("a1b2c3d4")), 1500);
    assert!(draw(&mut model, 1600).contains("reject empty names"), "a blank shows what was said");
    assert_eq!(play(&mut model, 2000, "<esc><esc>"), ["exit Quit"]);
}
