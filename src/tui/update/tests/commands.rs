use super::*;
use crate::tui::tests::fixtures::{completed, effects_approval};

fn running(id: &str) -> RunningCommand {
    RunningCommand {
        id: id.to_owned(),
        line: "npm run dev".to_owned(),
        tool_call_id: None,
        state: RunningState::Running,
        since: jiff::Timestamp::UNIX_EPOCH,
        last_line: "ready".to_owned(),
    }
}

#[test]
fn p_starts_a_preview_and_the_approval_of_its_effects_arms_again() {
    let mut model = model(100, 40);
    let offered = Approval { preview: PreviewOffer::Possible, ..command_approval("a") };
    tell(&mut model, requested("call-a", "RunCommand", "$ cargo test"), 0);
    tell(&mut model, EventKind::ApprovalRequested(offered), 10_000);
    draw(&mut model, 10_000);
    assert_eq!(play(&mut model, 12_000, "p"), [""; 0]);
    assert_eq!(wait(&mut model, 12_500), ["preview { approval_id: approvalid(\"a\") }"]);
    tell(&mut model, EventKind::PreviewStarted { approval_id: Some(ApprovalId::new("a")), tool_call_id: call("call-a") }, 12_600);
    assert!(model.dialogs.is_empty() && model.is_running());
    let drawn = draw(&mut model, 12_700);
    assert!(drawn.contains("Previewing cargo test") && drawn.contains("no changes applied yet"), "{drawn}");
    assert!(!drawn.contains("ctrl+b") && !drawn.contains("Running"), "{drawn}");
    assert_eq!(play(&mut model, 12_800, "<b>"), [""; 0], "a preview does not go on in the background");
    tell(&mut model, EventKind::ApprovalRequested(effects_approval("b")), 15_000);
    assert!(draw(&mut model, 15_000).contains("The command would change"));
    assert_eq!(play(&mut model, 15_100, "y"), [""; 0], "it is not armed yet");
}

#[test]
fn a_command_run_without_approval_is_shown_as_running_in_a_copy() {
    let mut model = model(100, 40);
    tell(&mut model, requested("call-a", "RunCommand", "$ cargo test"), 0);
    tell(&mut model, EventKind::PreviewStarted { approval_id: None, tool_call_id: call("call-a") }, 100);
    let drawn = draw(&mut model, 1_000);
    assert!(drawn.contains("Running") && drawn.contains("$ cargo test  in a copy"), "{drawn}");
    assert!(!drawn.to_lowercase().contains("preview"), "{drawn}");
    let drawn = draw(&mut model, 11_000);
    assert!(drawn.contains("ctrl+b  run in the background"), "{drawn}");
}

#[test]
fn the_card_of_a_command_shows_how_many_of_its_changes_are_applied() {
    let mut model = model(100, 40);
    let progress = |stage, done, total| EventKind::EffectsProgress {
        tool_call_id: call("call-a"),
        progress: EffectsProgress { stage, done, total, elapsed_ms: 1_000 },
    };
    tell(&mut model, requested("call-a", "RunCommand", "$ make"), 0);
    tell(&mut model, EventKind::PreviewStarted { approval_id: None, tool_call_id: call("call-a") }, 100);
    tell(&mut model, progress(EffectsStage::Listing, 45_000, None), 12_000);
    let drawn = draw(&mut model, 12_100);
    assert!(drawn.contains("$ make  Listing changes: 45,000 files") && !drawn.contains("run in the background"), "{drawn}");
    let started = EventKind::ToolStarted {
        tool_call_id: call("call-a"),
        rule: "approved by you".to_owned(),
        summary: None,
        effects: None,
        note: None,
    };
    tell(&mut model, started, 13_000);
    assert!(!draw(&mut model, 13_100).contains("Listing"));
    tell(&mut model, progress(EffectsStage::Applying, 12_400, Some(30_000)), 14_000);
    let drawn = draw(&mut model, 14_100);
    assert!(drawn.contains("$ make  Applying 12,400 of 30,000 files"), "{drawn}");
    tell(&mut model, completed("call-a", ToolStatus::Succeeded, "built", None), 15_000);
    let drawn = draw(&mut model, 15_100);
    assert!(drawn.contains("$ make  built") && !drawn.contains("Applying"), "{drawn}");
}

#[test]
fn the_reason_for_an_unavailable_preview_is_shown_at_every_size() {
    for (width, height) in [(120, 36), (80, 24), (60, 20), (40, 12)] {
        let mut model = model(width, height);
        let reason = "git writes its own files".to_owned();
        let never = GrantOptions { never: vec!["it uses the network".to_owned(); 9], ..GrantOptions::default() };
        let refused = Approval { preview: PreviewOffer::Impossible { reason }, always: never, ..command_approval("a") };
        tell(&mut model, EventKind::ApprovalRequested(refused), 10_000);
        assert!(!draw(&mut model, 12_000).contains("preview"), "{width}");
        play(&mut model, 14_000, "?");
        wait(&mut model, 14_400);
        let mut drawn = draw(&mut model, 14_500);
        for at in 15..40 {
            play(&mut model, at * 1000, "<pgdn>");
            drawn += &draw(&mut model, at * 1000 + 500);
        }
        let words: Vec<&str> = drawn.split_whitespace().collect();
        let drawn = words.join(" ");
        assert!(drawn.contains("preview unavailable: git writes its own files"), "{width}: {drawn}");
        assert!(drawn.contains("and 6 more"), "{width}: {drawn}");
    }
}

#[test]
fn effects_can_be_approved_only_after_all_were_shown() {
    let mut model = model(100, 24);
    tell(&mut model, EventKind::ApprovalRequested(effects_approval("b")), 10_000);
    draw(&mut model, 10_000);
    assert_eq!(play(&mut model, 12_000, "y"), [""; 0]);
    assert_eq!(wait(&mut model, 12_500), [""; 0], "it shows the rest first");
    play(&mut model, 13_000, "<end>");
    for at in (14_000..30_000).step_by(1000) {
        let said = [play(&mut model, at, "y"), wait(&mut model, at + 500)].concat();
        if !said.is_empty() {
            assert_eq!(said, ["b Approved"]);
            return;
        }
    }
    panic!("{}", draw(&mut model, 31_000));
}

#[test]
fn ctrl_b_moves_a_running_command_to_the_background_or_else_the_cursor_left() {
    let mut model = model(80, 24);
    assert_eq!(play(&mut model, 0, "ab<b>c"), [""; 0]);
    assert_eq!(model.composer.text(), "acb");
    tell(&mut model, requested("1", "RunCommand", "$ npm run dev"), 1000);
    tell(
        &mut model,
        EventKind::ToolStarted { tool_call_id: call("1"), rule: "user:1".to_owned(), summary: None, effects: None, note: None },
        1100,
    );
    assert_eq!(play(&mut model, 2000, "<b>"), ["background { tool_call_id: none }"]);
}

#[test]
fn background_commands_are_listed_and_stopped_by_id() {
    let mut model = model(80, 24);
    for asked in ["/ps<enter>", "/stop<enter>"] {
        assert_eq!(play(&mut model, 0, asked), [""; 0]);
        assert!(draw(&mut model, 900).contains("nothing is running in the background"));
        assert!(model.composer.is_empty(), "{asked} is done");
    }
    tell(&mut model, EventKind::CommandsRunning { commands: vec![running("s1"), running("s2")] }, 1000);
    play(&mut model, 2000, "/ps<enter>");
    let drawn = draw(&mut model, 3000);
    assert!(
        drawn.contains("Background commands") && drawn.contains("s1  running  npm run dev") && drawn.contains("ready"),
        "{drawn}"
    );
    assert_eq!(play(&mut model, 3500, "<down><^x>"), ["stop { id: \"s2\" }"]);
    play(&mut model, 3600, "<esc>");
    assert_eq!(play(&mut model, 4000, "/stop<enter>"), [""; 0]);
    assert!(draw(&mut model, 4900).contains("specify which one: s1, s2"));
    model.composer.set("");
    assert_eq!(play(&mut model, 5000, "/stop s2<enter>"), ["stop { id: \"s2\" }"]);
}

#[test]
fn the_status_row_shows_the_sandbox_and_reports_a_missing_sandbox() {
    let mut model = model(100, 24);
    let missing =
        "No sandbox on this kernel (user namespaces off). aye asks before every command. `aye doctor` says why".to_owned();
    let kind = EventKind::SandboxInForce { tier: SandboxTier::Bare, words: "sandbox NONE".to_owned(), missing: Some(missing) };
    tell(&mut model, kind, 100);
    let drawn = draw(&mut model, 200);
    assert!(drawn.contains("sandbox NONE") && drawn.contains("No sandbox on this kernel"), "{drawn}");
}

#[test]
fn stats_list_each_tool_with_its_calls_and_times() {
    let mut model = model(80, 24);
    play(&mut model, 0, "/stats<enter>");
    assert!(draw(&mut model, 900).contains("no tool calls in this session yet"));
    let ended = |name: &str, status, latency_ms| EventKind::ToolCompleted {
        tool_call_id: call("1"),
        tool_name: name.to_owned(),
        status,
        latency_ms,
        output_text: String::new(),
        error: None,
        proposal: None,
        redactions: Vec::new(),
        artifact_uris: Vec::new(),
        ended: None,
    };
    for (name, status, latency_ms) in
        [("Grep", ToolStatus::Succeeded, 7), ("RunCommand", ToolStatus::Denied, 0), ("Grep", ToolStatus::Failed, 1_950)]
    {
        tell(&mut model, ended(name, status, latency_ms), 1_000);
    }
    play(&mut model, 2_000, "/stats<enter>");
    let drawn = draw(&mut model, 3_000);
    for row in [
        "tool        calls  failed  denied    mean  longest",
        "Grep            2       1       0  978 ms    1.9 s",
        "RunCommand      1       0       1    0 ms     0 ms",
    ] {
        assert!(drawn.contains(row), "{drawn}");
    }
}

#[test]
fn the_exit_of_a_background_command_is_reported_once() {
    let mut model = model(100, 24);
    tell(&mut model, EventKind::CommandsRunning { commands: vec![running("s1"), running("s2")] }, 1000);
    let ended = |how: &str| RunningCommand { state: RunningState::Ended { how: how.to_owned() }, ..running("s1") };
    for _ in 0..2 {
        tell(&mut model, EventKind::CommandsRunning { commands: vec![ended("exit 4"), running("s2")] }, 2000);
    }
    let screen = draw(&mut model, 2100);
    assert_eq!(screen.matches("s1 ended, exit 4: npm run dev").count(), 1, "{screen}");
}
