use super::*;
use crate::protocol::{LanguageServerStatus, ListedGrant, ListedRun, PolicyLayer, RequestedList};

fn runs() -> RequestedList {
    let run = |command: &str, outcome: &str, reason: &str| ListedRun {
        command: command.to_owned(),
        outcome: outcome.to_owned(),
        reason: reason.to_owned(),
    };
    let runs = vec![run("$ ls", "exit 0", "allowed by built-in:40"), run("$ make\u{1b}[2J test", "running", "in a copy")];
    RequestedList::UnaskedRuns { runs, earlier: 3 }
}

fn grants() -> RequestedList {
    let grant = |name: &str, rule: &str, times: &str| ListedGrant {
        name: name.to_owned(),
        rule: rule.to_owned(),
        times: times.to_owned(),
    };
    RequestedList::Grants {
        grants: vec![grant("until aye quits", "cargo test", ""), grant("mine-here:14", "git add", "saved 2026-11-01")],
    }
}

#[test]
fn commands_and_rules_are_requested_from_the_session() {
    check("/ran<enter>", &["listunasked"], "");
    check("/policy grants<enter>", &["listgrants"], "");
}

#[test]
fn requested_lists_open_with_a_filter_and_a_preview_and_leave_the_conversation_alone() {
    for (width, height) in [(120, 36), (80, 24), (40, 12)] {
        let mut model = model(width, height);
        tell(&mut model, EventKind::ListShown(runs()), 100);
        let screen = draw(&mut model, 200);
        assert!(screen.contains("Commands run without approval") && screen.contains("$ ls"), "{screen}");
        assert!(!screen.contains('\u{1b}'), "{screen}");
        play(&mut model, 300, "ls");
        let screen = draw(&mut model, 400);
        assert!(screen.contains("exit 0") && !screen.contains("running"), "{screen}");
        play(&mut model, 500, "<esc>");
        tell(&mut model, EventKind::ListShown(grants()), 600);
        let screen = draw(&mut model, 700);
        assert!(screen.contains("Saved rules") && screen.contains("cargo test"), "{screen}");
        play(&mut model, 800, "<esc>");
        assert!(!draw(&mut model, 900).contains("cargo test"));
    }
}

#[test]
fn language_servers_are_a_list() {
    check("/lsp<enter>", &["listlanguageservers"], "");
    for (width, height) in [(120, 36), (80, 24), (40, 12)] {
        let mut model = model(width, height);
        let status = |language: &str, server: &str, state: &str| LanguageServerStatus {
            language: language.to_owned(),
            server: server.to_owned(),
            state: state.to_owned(),
        };
        let servers =
            vec![status("python", "pyright-langserver", "ready"), status("rust", "rust-analyzer", "off: not found in PATH")];
        tell(&mut model, EventKind::ListShown(RequestedList::LanguageServers { servers }), 100);
        let screen = draw(&mut model, 200);
        assert!(screen.contains("Language servers") && screen.contains("ready") && screen.contains("rust"), "{screen}");
        let row = screen.lines().find(|line| line.contains("rust-analyzer") || line.contains("rust ")).unwrap();
        assert!(!row.contains("not found"), "the reason is in the details: {row}");
        play(&mut model, 300, "<esc>");
        assert!(model.layers.top().is_none());
    }
}

#[test]
fn empty_requested_lists_open_nothing() {
    let mut model = model(80, 24);
    tell(&mut model, EventKind::ListShown(RequestedList::Grants { grants: Vec::new() }), 100);
    assert!(draw(&mut model, 200).contains("no rule is saved for this project") && model.layers.top().is_none());
}

#[test]
fn the_policy_list_counts_the_rules_of_a_layer_and_previews_them() {
    let mut model = model(120, 36);
    let layer = PolicyLayer {
        scope: "user".to_owned(),
        bundle_version: None,
        expires_at: None,
        max_input_tokens: None,
        file: Some("/c/policy.toml".to_owned()),
        rules: vec!["allow  git status|diff".to_owned(), "deny   commands: sudo".to_owned()],
    };
    let layers = vec![layer];
    tell(&mut model, EventKind::PolicyInForce { layers, name: "user".to_owned(), tools: Vec::new(), message: None }, 100);
    play(&mut model, 200, "/policy<enter>");
    let screen = draw(&mut model, 1000);
    for expected in ["/c/policy.toml", "allow git status|diff", "deny commands: sudo"] {
        assert!(screen.contains(expected), "{expected}: {screen}");
    }
    assert!(screen.lines().any(|line| line.contains("❯ user") && line.contains('2')), "{screen}");
}
