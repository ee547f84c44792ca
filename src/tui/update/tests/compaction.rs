use super::*;
use crate::tui::tests::fixtures::{compaction, context_use};

#[test]
fn compaction_runs_under_all_its_command_names_and_can_be_undone() {
    check("/compact<enter>", &["compact { focus: none }"], "");
    check("/summarize the a/b bug<enter>", &["compact { focus: some(\"the a/b bug\") }"], "");
    check("/compress<enter>", &["compact { focus: none }"], "");
    check("/compact undo<enter>", &["undocompaction"], "");
    check("/context<enter>", &["showcontext"], "");
}

fn begins() -> EventKind {
    EventKind::CompactionStarted { trigger: CompactionTrigger::Asked, messages: 61, tokens: 160_000 }
}

#[test]
fn compaction_progress_is_shown_and_the_summary_can_be_unfolded() {
    let mut model = model(100, 24);
    tell(&mut model, begins(), 1000);
    let request = EventKind::LlmRequestStarted { model: "m".to_owned(), estimated_input_tokens: 10 };
    tell(&mut model, crate::tui::tests::fixtures::retry(FailureKind::Network, 300, "", None, None), 1050);
    tell(&mut model, request, 1100);
    tell(&mut model, EventKind::notice("not compacted: this text alone ends nothing"), 1200);
    let screen = draw(&mut model, 3100);
    assert!(screen.contains("Context 80 %. Compacting 61 messages into a summary · 2 s"), "{screen}");
    model.screen.size = Size::new(40, 12);
    let screen = draw(&mut model, 3100);
    assert!(screen.contains("Compacting 61 messages") && screen.contains("esc stop") && !screen.contains('…'), "{screen}");
    model.screen.size = Size::new(100, 24);
    let screen = draw(&mut model, 3100);
    assert!(screen.contains("esc stop, keep all"), "{screen}");
    tell(&mut model, EventKind::ContextCompacted(compaction()), 4000);
    assert!(!model.is_running(), "no task waits for it");
    assert_eq!(model.deadline(4000), None);
    assert_eq!(model.info.tally.context_tokens, 21_000);
    let screen = draw(&mut model, 4100);
    assert!(screen.contains("Compacted 61 messages into a summary") && screen.contains("160k → 21k tokens"), "{screen}");
    assert!(screen.contains("12 messages kept in full") && !screen.contains("The parser"), "{screen}");
    play(&mut model, 5000, "<ctrl+o><ctrl+o>");
    let screen = draw(&mut model, 5500);
    assert!(screen.contains("│ The parser is in src/parse.rs") && !screen.contains('\u{1b}'), "{screen}");
    tell(&mut model, EventKind::CompactionUndone { tokens: 160_000 }, 6000);
    assert!(draw(&mut model, 6100).contains("messages restored: 160,000 tokens"));
    tell(&mut model, EventKind::ContextCompacted(Compaction { model: Some("a/small".to_owned()), ..compaction() }), 7000);
    assert!(draw(&mut model, 7100).contains("Compacted 61 messages into a summary by a/small"));
}

#[test]
fn a_task_continues_after_compaction() {
    let mut model = model(100, 24);
    tell(&mut model, started("x"), 500);
    tell(&mut model, EventKind::CompactionStarted { trigger: CompactionTrigger::TooLong, messages: 61, tokens: 1 }, 1000);
    assert_eq!(play(&mut model, 1500, "<esc>"), ["cancel"]);
    tell(&mut model, EventKind::ContextCompacted(compaction()), 2000);
    assert_eq!(model.task.activity, Activity::Stopping);
    let mut model = crate::tui::tests::fixtures::model(100, 24);
    tell(&mut model, started("x"), 500);
    tell(&mut model, begins(), 1000);
    tell(&mut model, EventKind::ContextCompacted(compaction()), 2000);
    assert_eq!(model.task.activity, Activity::Thinking);
}

#[test]
fn failed_or_paused_compaction_ends_the_progress_display() {
    let ends = [
        EventKind::Notice { message: "stopped by you".to_owned(), kind: Some(NoticeKind::NotCompacted) },
        EventKind::StateChanged { session_status: SessionStatus::Paused, task: None },
    ];
    for end in ends {
        for stop in [true, false] {
            let mut model = model(100, 24);
            tell(&mut model, begins(), 1000);
            if stop {
                assert_eq!(play(&mut model, 1500, "<esc>"), ["cancel"]);
            }
            tell(&mut model, end.clone(), 2000);
            assert_eq!((model.is_running(), model.deadline(30_000)), (false, model.toast.as_ref().map(|(_, at)| *at)), "{end:?}");
        }
    }
}

#[test]
fn omitted_messages_are_reported() {
    let mut model = model(100, 24);
    tell(&mut model, EventKind::ContextTruncated { removed: 1 }, 100);
    assert!(draw(&mut model, 200).contains("the oldest message is no longer sent to the model"));
}

#[test]
fn context_use_is_shown_at_every_width_without_control_characters() {
    for (width, height) in [(120, 36), (80, 24), (60, 30), (40, 30)] {
        let mut model = model(width, height);
        let mut filled = context_use();
        filled.shares[0].name = "system\u{1b}[31m\nprompt".to_owned();
        tell(&mut model, EventKind::ContextShown(filled), 100);
        let screen = draw(&mut model, 200);
        for words in ["38 %", "tool results", "reserved for output", "/compact would free about 41.3k"] {
            assert!(screen.contains(words), "{width} {words}\n{screen}");
        }
        assert!(!screen.contains('\u{1b}'), "{screen}");
    }
    let mut model = model(80, 24);
    let nothing = ContextUse { window: 0, shares: Vec::new(), ..context_use() };
    tell(&mut model, EventKind::ContextShown(nothing), 100);
    draw(&mut model, 200);
    let mut filled = context_use();
    filled.shares[0].tokens = u64::MAX / 200;
    tell(&mut model, EventKind::ContextShown(filled), 300);
    draw(&mut model, 400);
}

#[test]
fn notices_during_a_streamed_response_do_not_split_the_response() {
    let mut model = model(100, 24);
    tell(&mut model, started("x"), 0);
    tell(&mut model, EventKind::TextChunk { text: "```\nfn one() {}\n".to_owned() }, 100);
    tell(&mut model, EventKind::notice("effort high"), 200);
    tell(&mut model, EventKind::TextChunk { text: "fn two() {}\n```\n".to_owned() }, 400);
    let screen = draw(&mut model, 500);
    let row = |words: &str| screen.lines().position(|line| line.contains(words)).unwrap();
    assert_eq!(row("fn two"), row("fn one") + 1, "{screen}");
    assert!(row("effort high") > row("fn two") && screen.matches("```").count() == 0, "{screen}");
}
