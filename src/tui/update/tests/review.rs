use super::*;
use crate::protocol::review::Confidence;
use crate::tui::layers::{FindingView, Overview, Topic};

fn told(model: &mut UiModel, told: ReviewUpdate, at: u64) {
    update(model, Msg::Event(Box::new(event(EventKind::LookedUp(HostResponse::Review(told))))), at);
}

fn ended(count: usize) -> ReviewUpdate {
    let diff =
        "diff --git a/src/a.rs b/src/a.rs\n--- a/src/a.rs\n+++ b/src/a.rs\n@@ -1,2 +1,3 @@\n one\n+two\u{1b}[31m\n three\n";
    let finding = |line: usize| Finding {
        file: "src/a.rs".to_owned(),
        line,
        severity: Severity::High,
        confidence: Confidence::Low,
        title: format!("wrong\u{1b}[2J in line {line}"),
        explanation: "Because\u{202e} of it.".to_owned(),
    };
    let changes = ReviewedChanges {
        title: "uncommitted changes".to_owned(),
        diffs: FileDiffs::read(diff),
        left_out: vec!["logo.png".to_owned()],
    };
    let findings = (1..=count).map(finding).collect();
    ReviewUpdate::Ended(Box::new(Review { changes, summary: "A change.".to_owned(), findings, dropped: 1 }))
}

/// Returns a model with a review that was started at 1000 ms.
fn reviewing(script: &str) -> UiModel {
    let mut model = model(100, 24);
    play(&mut model, 1000, script);
    assert!(model.reviews.running.is_some());
    model
}

/// Returns a model in which the first of two findings is open.
pub(super) fn finding() -> UiModel {
    let mut model = reviewing("/review<enter>");
    told(&mut model, ended(2), 2000);
    draw(&mut model, 2100);
    play(&mut model, 4000, "<enter>");
    assert!(model.layers.is_open::<FindingView>());
    model
}

#[test]
fn a_second_review_is_rejected_while_one_runs() {
    let mut model = model(100, 24);
    let sent = play(&mut model, 1000, "/review<enter>");
    assert!(sent.iter().any(|sent| sent.starts_with("review(start { subject: default, model: some(")), "{sent:?}");
    assert!(draw(&mut model, 3800).contains("Reading the changes to review · 2 s"));
    assert_eq!(play(&mut model, 4000, "/review --staged<enter>"), [""; 0]);
    assert!(draw(&mut model, 4500).contains("a review is running"));
    assert_eq!(model.composer.text(), "/review --staged");
}

#[test]
fn invalid_arguments_do_not_start_a_review_and_stay_in_the_draft() {
    let mut model = model(120, 24);
    assert_eq!(play(&mut model, 1000, "/review the parser<enter>"), [""; 0]);
    let drawn = draw(&mut model, 2000);
    assert!(drawn.contains("unexpected argument 'the' found") && drawn.contains("--base BRANCH"), "{drawn}");
    assert_eq!(model.composer.text(), "/review the parser");
}

#[test]
fn escape_and_the_command_stop_a_review() {
    for script in ["<esc>", "/review stop<enter>"] {
        let mut model = reviewing("/review<enter>");
        let sent = play(&mut model, 5000, script);
        assert_eq!(sent.iter().filter(|sent| *sent == "review(stop)").count(), 1, "{script}: {sent:?}");
        assert!(draw(&mut model, 6000).contains("Stopping the review"), "{script}");
        told(&mut model, ReviewUpdate::Stopped, 7000);
        let drawn = draw(&mut model, 7100);
        assert!(drawn.contains("review stopped") && !drawn.contains("Stopping"), "{drawn}");
    }
}

#[test]
fn findings_are_listed_opened_and_drafted_without_control_characters() {
    let mut model = reviewing("/review<enter>");
    told(&mut model, ReviewUpdate::Started("uncommitted changes: 1 file (+1 −0)".to_owned()), 2000);
    told(&mut model, ReviewUpdate::Step("Read src/\u{1b}[31mb.rs".to_owned()), 2500);
    let drawn = draw(&mut model, 3000);
    assert!(drawn.contains("Reviewing uncommitted changes: 1 file") && drawn.contains("Read src/"), "{drawn}");
    told(&mut model, ended(2), 4000);
    let drawn = draw(&mut model, 4100);
    assert!(drawn.contains("Findings · 2 · uncommitted changes") && drawn.contains("A change."), "{drawn}");
    assert!(drawn.contains("not in the diff: logo.png") && drawn.contains("dropped: 1 finding"), "{drawn}");
    play(&mut model, 5000, "<down><enter>");
    let drawn = draw(&mut model, 6000);
    assert!(drawn.contains("high · finding 2 of 2 · confidence low") && drawn.contains("src/a.rs:2"), "{drawn}");
    assert!(drawn.contains("❯  2 +two"), "{drawn}");
    assert!(!drawn.contains('\u{1b}') && !drawn.contains('\u{202e}'), "{drawn}");
    play(&mut model, 7000, "p<esc>");
    assert!(draw(&mut model, 8000).contains("Findings · 2"), "the list is below the finding");
    play(&mut model, 9000, "<enter>f");
    let draft = model.composer.text();
    assert!(draft.starts_with("Fix this high finding of a review in src/a.rs:1: wrong in line 1\nBecause"), "{draft}");
    assert!(!draft.contains('\u{1b}') && !draft.contains('\u{202e}'), "{draft}");
    assert!(!model.layers.is_open::<Overview>() && !model.layers.is_open::<FindingView>());
}

#[test]
fn findings_do_not_cover_typed_text_and_remain_available() {
    let mut model = reviewing("/review<enter>");
    play(&mut model, 2000, "hello");
    told(&mut model, ended(1), 3000);
    let drawn = draw(&mut model, 3100);
    assert!(
        !model.layers.is_open::<Overview>() && drawn.contains("1 finding (1 high)") && drawn.contains("/findings"),
        "{drawn}"
    );
    play(&mut model, 4000, "<ctrl+c>/findings<enter>");
    assert!(model.layers.find::<Overview>().is_some_and(|overview| overview.topic == Topic::Findings));
    play(&mut model, 6000, "<esc>/findings 2<enter>");
    assert!(draw(&mut model, 6500).contains("enter a number from 1 to 1"));
    play(&mut model, 7000, "<ctrl+c>/findings fix 1<enter>");
    assert!(model.composer.text().starts_with("Fix this high finding"), "{}", model.composer.text());
}

#[test]
fn a_review_without_findings_or_changes_is_reported_in_one_sentence() {
    let mut model = reviewing("/review<enter>");
    told(&mut model, ended(0), 2000);
    assert!(draw(&mut model, 2100).contains("review of uncommitted changes: no findings"));
    play(&mut model, 3000, "/findings<enter>");
    assert!(draw(&mut model, 3500).contains("no review yet; /review starts one"));
    play(&mut model, 9000, "/review<enter>");
    let changes = ReviewedChanges { title: "staged changes".to_owned(), ..ReviewedChanges::default() };
    told(&mut model, ReviewUpdate::Ended(Box::new(Review { changes, ..Review::default() })), 9500);
    assert!(draw(&mut model, 9600).contains("nothing to review: there are no staged changes"));
}

#[test]
fn a_failed_review_shows_a_hint_and_another_may_start() {
    let mut model = reviewing("/review<enter>");
    let problem = Problem::new("cannot read the changes").because("not a git repository").hint("run `git init`");
    told(&mut model, ReviewUpdate::Failed(problem), 2000);
    let drawn = draw(&mut model, 2100);
    assert!(drawn.contains("cannot read the changes: not a git repository") && drawn.contains("run `git init`"), "{drawn}");
    play(&mut model, 3000, "/review<enter>");
    assert!(model.reviews.running.is_some());
}

#[test]
fn review_usage_counts_for_the_session_but_not_for_the_task() {
    let mut model = reviewing("/review<enter>");
    let usage = Usage { input_tokens: 12_000, output_tokens: 300, ..Usage::default() };
    let before = model.info.tally.context_tokens;
    let spent = EventKind::ReviewSpent { usage, cost_usd: Some(0.25), session_cost_usd: Some(0.75), estimated: false };
    tell(&mut model, spent, 2000);
    assert!(draw(&mut model, 2100).contains("↑ 12k ↓ 300 tokens, $0.25"), "{}", draw(&mut model, 2100));
    assert_eq!((model.info.tally.usage, model.info.tally.cost_usd), (usage, Some(0.75)));
    assert_eq!((model.task.usage, model.info.tally.context_tokens), (Usage::default(), before));
    told(&mut model, ended(1), 3000);
    play(&mut model, 4000, "<esc>");
    assert!(draw(&mut model, 4100).contains("1 finding (1 high) · ↑ 12k ↓ 300 tokens, $0.25"), "{}", draw(&mut model, 4100));
}

#[test]
fn quitting_warns_about_a_running_review() {
    let mut model = reviewing("/review<enter>");
    play(&mut model, 9000, "<ctrl+d>");
    assert!(draw(&mut model, 9100).contains("a review is running"));
}
