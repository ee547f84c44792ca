use super::*;
use crate::protocol::Proposal;
use crate::tui::glyphs::UNICODE;
use crate::tui::samples::{DIFF, call};
use crate::tui::theme::Colours;

fn theme() -> Theme {
    Theme::choose(None, Colours::None)
}

fn look(theme: &Theme, width: u16, fold: Fold) -> Look<'_> {
    Look { width, fold, theme, glyphs: &UNICODE, now: 9000 }
}

fn rows(transcript: &mut Transcript, fold: Fold) -> Vec<String> {
    let theme = theme();
    let area = Rect::new(0, 0, 44, 24);
    let mut buffer = Buffer::empty(area);
    transcript.draw(area, &mut buffer, look(&theme, 44, fold));
    let rows = (0..24).map(|y| (0..44).map(|x| buffer[(x, y)].symbol()).collect::<String>().trim_end().to_owned());
    let mut rows: Vec<_> = rows.collect();
    rows.truncate(rows.iter().rposition(|row| !row.is_empty()).map_or(0, |last| last + 1));
    rows
}

fn card(state: CardState, output: &str, proposal: Option<Proposal>) -> Transcript {
    let mut transcript = Transcript::default();
    let mut card = Card::new(call("1"), "$ cargo\ntest");
    card.started("user:3", 1000);
    card.ended(state, output, proposal.as_ref());
    transcript.push(Kind::Card(card));
    transcript
}

#[test]
fn a_card_that_went_well_is_one_line_until_it_is_opened() {
    let output: String = (1..=12).map(|n| n.to_string()).collect::<Vec<_>>().join("\n");
    let mut transcript = card(CardState::Done { latency_ms: 2450 }, &output, None);
    assert_eq!(rows(&mut transcript, Fold::Quiet), ["✓ $ cargo test  12 lines           ▸   2.4 s"]);
    transcript.forget_layout();
    let excerpt = ["  │ 1", "  │ 2", "  │ 3", "  │ ⋯ 4 lines · ctrl+o unfolds", "  │ 8"];
    assert_eq!(rows(&mut transcript, Fold::Excerpt)[1..6], excerpt);
    transcript.forget_layout();
    assert_eq!(rows(&mut transcript, Fold::Full).len(), 14, "the title, every line, the rule");
}

#[test]
fn a_command_whose_effects_were_kept_still_says_its_line_its_end_and_what_it_printed() {
    let proposal = Proposal { summary: "Run: cargo test".to_owned(), diff: DIFF.to_owned(), ..Proposal::default() };
    let output = "Exit code: 3\n--- stdout ---\n--- stderr ---\noh";
    let rows = rows(&mut card(CardState::Done { latency_ms: 100 }, output, Some(proposal)), Fold::Quiet);
    assert_eq!(rows[..3], ["✗ $ cargo test  exit 3 · 2 lines   ▾   0.1 s", "  │ --- stderr ---", "  │ oh"]);
    assert!(rows.len() > 5, "and the diff: {rows:?}");
}

#[test]
fn a_command_says_what_it_ended_with_and_its_output_is_what_it_printed() {
    let rows_of = |output: &str, fold| rows(&mut card(CardState::Done { latency_ms: 100 }, output, None), fold);
    let well = "Exit code: 0\n--- stdout ---\none\ntwo\n--- stderr ---";
    assert_eq!(rows_of(well, Fold::Quiet), ["✓ $ cargo test  2 lines            ▸   0.1 s"]);
    assert_eq!(rows_of(well, Fold::Full)[1..3], ["  │ one", "  │ two"]);
    let badly = "Exit code: 3\n--- stdout ---\n--- stderr ---\noh";
    let shown = ["✗ $ cargo test  exit 3 · 2 lines   ▾   0.1 s", "  │ --- stderr ---", "  │ oh"];
    assert_eq!(rows_of(badly, Fold::Quiet), shown);
    let nothing = "Exit code: 0\n--- stdout ---\n--- stderr ---";
    assert_eq!(rows_of(nothing, Fold::Quiet), ["✓ $ cargo test  no output              0.1 s"]);
}

#[test]
fn what_a_command_printed_stands_there_while_it_is_asked_whether_it_may_run_again() {
    let waiting = |is_preview: bool| {
        let mut transcript = Transcript::default();
        let mut card = Card::new(call("1"), "$ curl x");
        card.started("you", 0);
        card.is_preview = is_preview;
        card.printed("refused\n");
        card.state = CardState::Waiting;
        transcript.push(Kind::Card(card));
        rows(&mut transcript, Fold::Quiet)
    };
    assert_eq!(waiting(false)[1..], ["  │ refused"]);
    assert_eq!(waiting(true).len(), 1, "the question about a preview says it");
}

#[test]
fn a_failed_card_is_open() {
    let state = CardState::Failed { latency_ms: 100, message: "it broke".to_owned() };
    let mut transcript = card(state, "why", None);
    assert_eq!(rows(&mut transcript, Fold::Quiet), ["✗ $ cargo test  failed             ▾   0.1 s", "  │ it broke", "  │ why"]);
}

#[test]
fn an_applied_edit_shows_its_diff_when_opened() {
    let proposal = Proposal { summary: "Edit src/main.rs +6 −5".to_owned(), diff: DIFF.to_owned(), ..Proposal::default() };
    let mut edit = Card::new(call("1"), "EditFile");
    edit.ended(CardState::Done { latency_ms: 100 }, "done", Some(&proposal));
    let mut transcript = Transcript::default();
    transcript.push(Kind::Card(edit));
    assert_eq!(rows(&mut transcript, Fold::Quiet), ["✓ Edit src/main.rs +6 −5           ▸   0.1 s"]);
    transcript.forget_layout();
    assert!(rows(&mut transcript, Fold::Excerpt).iter().any(|row| row.contains("−fn greet(name: &str)")));
}

#[test]
fn a_running_command_shows_its_last_lines_however_the_output_is_cut() {
    let mut transcript = Transcript::default();
    let mut card = Card::new(call("1"), "$ make");
    card.started("built-in", 0);
    for chunk in ["one\ntwo\nthree\nfo", "ur\nfive\nsix\n\x1b[3", "1msev", "en"] {
        card.printed(chunk);
    }
    transcript.push(Kind::Card(card));
    let expected = ["◌ $ make                           ▾     9 s", "  │ three", "  │ four", "  │ five", "  │ six", "  │ seven"];
    assert_eq!(rows(&mut transcript, Fold::Quiet), expected);
}

#[test]
fn only_what_is_looked_at_is_laid_out() {
    let mut transcript = Transcript::default();
    for n in 0..10_000 {
        transcript.push(Kind::Card(Card::new(call(&n.to_string()), "Read a file")));
    }
    rows(&mut transcript, Fold::Quiet);
    let laid = transcript.entries.iter().filter(|entry| entry.laid.is_some()).count();
    assert!(laid < 100, "{laid} entries were laid out for 24 rows");
}
