use super::*;
use crate::protocol::{CommandEnd, FileDiffs, Proposal};
use crate::tui::glyphs::UNICODE;
use crate::tui::tests::fixtures::{DIFF, call};
use crate::tui::theme::ColourDepth;
use ratatui::buffer::Buffer;
use ratatui::layout::Rect;

fn theme() -> Theme {
    Theme::choose(None, ColourDepth::None)
}

fn look(theme: &Theme, width: u16, fold: Fold) -> RenderContext<'_> {
    RenderContext {
        width,
        fold,
        rest: fold,
        is_own: false,
        browses: false,
        round: 0,
        version: fold as u32,
        theme,
        glyphs: &UNICODE,
        unfolds: "ctrl+o",
        whole_rows: false,
        now: 9000,
    }
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
    card.on_started("user:3", 1000);
    card.on_ended(state, output, proposal.as_ref());
    transcript.push(TranscriptEntryKind::Card(card));
    transcript
}

#[test]
fn a_successful_card_is_one_row_until_unfolded() {
    let output: String = (1..=12).map(|n| n.to_string()).collect::<Vec<_>>().join("\n");
    let mut transcript = card(CardState::Done { latency_ms: 2450 }, &output, None);
    assert_eq!(rows(&mut transcript, Fold::Quiet), ["✓ $ cargo test  12 lines           ▸   2.4 s"]);
    transcript.forget_layout();
    let excerpt = ["  │ 1", "  │ 2", "  │ 3", "  │ ⋯ 4 lines · ctrl+o unfold", "  │ 8"];
    assert_eq!(rows(&mut transcript, Fold::Excerpt)[1..6], excerpt);
    transcript.forget_layout();
    assert_eq!(rows(&mut transcript, Fold::Full).len(), 14, "the title, every line, the rule");
}

#[test]
fn a_command_with_applied_effects_still_shows_its_exit_code_and_output() {
    let proposal = Proposal { summary: "Run: cargo test".to_owned(), diff: FileDiffs::read(DIFF), ..Proposal::default() };
    let output = "Exit code: 3\n--- stdout ---\n--- stderr ---\noh";
    let rows = rows(&mut card(CardState::Done { latency_ms: 100 }, output, Some(proposal)), Fold::Quiet);
    assert_eq!(rows[..3], ["✗ $ cargo test  exit 3 · 2 lines   ▾   0.1 s", "  │ --- stderr ---", "  │ oh"]);
    assert!(rows.len() > 5, "and the diff: {rows:?}");
}

#[test]
fn a_command_whose_effects_were_kept_shows_the_changed_files_and_its_first_and_last_changes() {
    let summary = "Run: cargo test".to_owned();
    let proposal = Proposal { summary: summary.clone(), diff: FileDiffs::read(DIFF), ..Proposal::default() };
    let output = "Exit code: 0\n--- stdout ---\n--- stderr ---";
    let shown = rows(&mut card(CardState::Done { latency_ms: 1 }, output, Some(proposal)), Fold::Quiet);
    assert_eq!((shown[1].as_str(), shown.len()), ("  │ src/main.rs +6 −5", 7), "{shown:?}");
    assert!(shown[2].contains("−fn greet(name: &str)") && shown[4].contains("⋯") && shown[6].contains('+'), "{shown:?}");
    let file = |name: &str| format!("--- a/{name}\n+++ b/{name}\n@@ -1 +1 @@\n-x\n+y\n");
    let diff = FileDiffs::read(&["a", "b", "c", "d", "e"].map(file).concat());
    let proposal = Proposal { summary, diff, ..Proposal::default() };
    let shown = rows(&mut card(CardState::Done { latency_ms: 1 }, output, Some(proposal)), Fold::Quiet);
    assert_eq!(shown[1], "  │ a +1 −1 · b +1 −1 · c +1 −1 · 2 more");
}

#[test]
fn a_command_edited_by_the_user_is_labelled_and_shows_its_exit_code() {
    let mut edited = Card::new(call("1"), "$ a");
    edited.set_edited(Some("$ b"));
    edited.set_edited(Some("$ c"));
    assert_eq!(edited.summary(), "$ c");
    edited.set_edited(None);
    assert_eq!(edited.summary(), "$ a", "as it was asked for");
    edited.set_edited(Some("$ c"));
    edited.on_started("approved by you", 1000);
    let output = "[The user edited this command before it ran: \"c\\nd\"]\nExit code: 3\n--- stdout ---\nno";
    edited.on_ended(CardState::Done { latency_ms: 100 }, output, None);
    let mut transcript = Transcript::default();
    transcript.push(TranscriptEntryKind::Card(edited));
    let rows = rows(&mut transcript, Fold::Quiet);
    assert!(rows[0].starts_with("✗ $ c  edited by you  exit 3 · no"), "what it printed, and not what was changed: {rows:?}");
    assert!(rows.contains(&"  │ no".to_owned()), "{rows:?}");
}

#[test]
fn an_edited_command_cannot_hide_its_label() {
    let label = |line: &str, is_unsandboxed: bool| {
        let mut edited = Card::new(call("1"), "$ a");
        edited.set_edited(Some(line));
        edited.is_unsandboxed = is_unsandboxed;
        edited.on_started("approved by you", 1000);
        let mut transcript = Transcript::default();
        transcript.push(TranscriptEntryKind::Card(edited));
        rows(&mut transcript, Fold::Quiet)[0].contains("edited by you")
    };
    assert!(label("$ b, outside the sandbox", false), "this text is part of the command");
    assert!(!label("$ b, outside the sandbox", true), "the summary already says what the user changed");
}

#[test]
fn command_cards_show_the_exit_code_and_only_printed_output() {
    let rows_of = |output: &str, fold| rows(&mut card(CardState::Done { latency_ms: 100 }, output, None), fold);
    let well = "Exit code: 0\n--- stdout ---\none\ntwo\n--- stderr ---";
    assert_eq!(rows_of(well, Fold::Quiet), ["✓ $ cargo test  2 lines            ▸   0.1 s"]);
    assert_eq!(rows_of(well, Fold::Full)[1..3], ["  │ one", "  │ two"]);
    let in_copy = "Exit code: 0\n--- stdout ---\n\none\n--- stderr ---\n[no file changed]";
    assert_eq!(rows_of(in_copy, Fold::Quiet), ["✓ $ cargo test  2 lines            ▸   0.1 s"], "the card says the rest");
    let noted = "Exit code: 0\n--- stdout ---\none\n--- stderr ---\n[files: 1 created]";
    assert_eq!(rows_of(noted, Fold::Full)[1..3], ["  │ one", "  │ [files: 1 created]"]);
    let silent = "Exit code: 0\n--- stdout ---\n--- stderr ---\n[no file changed]";
    assert_eq!(rows_of(silent, Fold::Quiet), ["✓ $ cargo test  no output              0.1 s"]);
    let warned = "Exit code: 0\n--- stdout ---\none\n--- stderr ---\noh\n[no file changed]";
    assert_eq!(rows_of(warned, Fold::Full)[1..4], ["  │ one", "  │ --- stderr ---", "  │ oh"]);
    let badly = "Exit code: 3\n--- stdout ---\n--- stderr ---\noh";
    let shown = ["✗ $ cargo test  exit 3 · 2 lines   ▾   0.1 s", "  │ --- stderr ---", "  │ oh"];
    assert_eq!(rows_of(badly, Fold::Quiet)[..3], shown);
    assert_eq!(rows_of(badly, Fold::Quiet)[3], "  │ exit 3 · allowed by rule: user:3");
    let told = "[The person edited this command before it ran. What ran is: \"a]\\nExit code: 0\"]\nExit code: 7\n";
    assert_eq!(crate::protocol::exit_code_in(told), Some("7"), "a line that was written says nothing of how it ended");
    let nothing = "Exit code: 0\n--- stdout ---\n--- stderr ---";
    assert_eq!(rows_of(nothing, Fold::Quiet), ["✓ $ cargo test  no output              0.1 s"]);
}

#[test]
fn the_output_stays_visible_while_a_rerun_needs_approval() {
    let waiting = |is_preview: bool| {
        let mut transcript = Transcript::default();
        let mut card = Card::new(call("1"), "$ curl x");
        card.on_started("you", 0);
        card.is_preview = is_preview;
        card.push_output("refused\n");
        card.state = CardState::Waiting;
        transcript.push(TranscriptEntryKind::Card(card));
        rows(&mut transcript, Fold::Quiet)
    };
    assert_eq!(waiting(false)[1..], ["  │ refused"]);
    assert_eq!(waiting(true).len(), 1, "the question about a preview says it");
}

#[test]
fn a_call_approved_by_the_user_names_no_rule() {
    let mut transcript = Transcript::default();
    let mut card = Card::new(call("1"), "Edit a.rs");
    card.on_started("approved by you", 1000);
    card.on_ended(CardState::Failed { latency_ms: 100, message: "it broke".to_owned() }, "", None);
    transcript.push(TranscriptEntryKind::Card(card));
    assert_eq!(rows(&mut transcript, Fold::Quiet).last().unwrap(), "  │ approved by you");
}

#[test]
fn failed_cards_start_unfolded_and_can_be_folded() {
    let state = CardState::Failed { latency_ms: 100, message: "it broke".to_owned() };
    let mut transcript = card(state, "why", None);
    let shown = ["✗ $ cargo test  failed             ▾   0.1 s", "  │ it broke", "  │ why", "  │ allowed by rule: user:3"];
    assert_eq!(rows(&mut transcript, Fold::Quiet), shown);
    transcript.fold_one(0);
    assert_eq!(
        rows(&mut transcript, Fold::Quiet),
        ["✗ $ cargo test  failed             ▸   0.1 s"],
        "until the person closes it"
    );
}

#[test]
fn a_timed_out_command_is_labelled_and_shows_no_empty_sections() {
    let ended_card = |ended: Option<CommandEnd>| {
        let mut card = Card::new(call("1"), "$ cargo test");
        card.ended = ended;
        let message = "killed after 2 s with all its processes".to_owned();
        card.on_ended(CardState::Failed { latency_ms: 2000, message }, "--- stdout ---\n1\n--- stderr ---", None);
        let mut transcript = Transcript::default();
        transcript.push(TranscriptEntryKind::Card(card));
        rows(&mut transcript, Fold::Quiet)
    };
    assert!(ended_card(None)[0].contains("✗ $ cargo test  failed"), "the message alone is not a fact");
    let shown = ended_card(Some(CommandEnd::TimedOut { seconds: 2 }));
    assert!(shown[0].contains("✗ $ cargo test  killed after 2 s"), "{shown:?}");
    assert!(shown.iter().any(|row| row.ends_with("│ 1")) && !shown.iter().any(|row| row.contains("---")), "{shown:?}");
}

#[test]
fn an_applied_edit_shows_its_first_and_last_changes_and_its_diff_when_unfolded() {
    let proposal =
        Proposal { summary: "Edit src/main.rs +6 −5".to_owned(), diff: FileDiffs::read(DIFF), ..Proposal::default() };
    let mut edit = Card::new(call("1"), "EditFile");
    edit.on_ended(CardState::Done { latency_ms: 100 }, "done", Some(&proposal));
    let mut transcript = Transcript::default();
    transcript.push(TranscriptEntryKind::Card(edit));
    let shown = rows(&mut transcript, Fold::Quiet);
    assert_eq!((shown[0].as_str(), shown.len()), ("✓ Edit src/main.rs +6 −5           ▸   0.1 s", 6), "{shown:?}");
    assert!(shown[1].contains("−fn greet(name: &str)") && shown[3].contains("⋯") && shown[5].contains('+'), "{shown:?}");
    transcript.forget_layout();
    assert!(rows(&mut transcript, Fold::Excerpt).iter().any(|row| row.contains("−fn greet(name: &str)")));
}

#[test]
fn a_running_command_shows_its_last_lines_regardless_of_chunk_boundaries() {
    let mut transcript = Transcript::default();
    let mut card = Card::new(call("1"), "$ make");
    card.on_started("built-in", 0);
    for chunk in ["one\ntwo\nthree\nfo", "ur\nfive\nsix\n\x1b[3", "1msev", "en"] {
        card.push_output(chunk);
    }
    transcript.push(TranscriptEntryKind::Card(card));
    let expected = ["◌ $ make                           ▾     9 s", "  │ three", "  │ four", "  │ five", "  │ six", "  │ seven"];
    assert_eq!(rows(&mut transcript, Fold::Quiet), expected);
}

#[test]
fn only_visible_entries_are_laid_out() {
    let mut transcript = Transcript::default();
    for n in 0..10_000 {
        transcript.push(TranscriptEntryKind::Card(Card::new(call(&n.to_string()), "Read a file")));
    }
    rows(&mut transcript, Fold::Quiet);
    let laid = transcript.warm.len();
    assert!(laid < 100, "{laid} entries were laid out for 24 rows");
}

#[test]
fn output_colours_follow_the_theme_and_progress_lines_show_the_last_state() {
    let theme = Theme::dark();
    let output = "\x1b[1;32mok\x1b[0m plain \x1b[38;5;196mred\x1b[0m\n\x1b[33mhalf\rwhole\x1b[0m\x1b]0;title\x07\x1b[2J\nget 10%\rget 50%\rget 100%\n";
    let mut card = Card::new(call("1"), "Tool");
    card.on_ended(CardState::Done { latency_ms: 1 }, output, None);
    let rows = card.rows(60, RenderContext { fold: Fold::Full, ..look(&theme, 60, Fold::Full) });
    let span = |row: usize, words: &str| rows[row].line.spans.iter().find(|span| span.content == words).unwrap().style;
    assert_eq!(span(1, "ok").fg, theme.style(crate::tui::theme::Token::Ok).fg);
    assert!(span(1, "ok").add_modifier.contains(ratatui::style::Modifier::BOLD));
    assert_eq!(span(1, "red").fg, theme.style(crate::tui::theme::Token::Danger).fg);
    assert!(rows[3].cells().contains("get 100%") && !rows[3].cells().contains("50%"), "{}", rows[3].cells());
    assert!(rows.iter().all(|row| !row.cells().contains(['\x1b', '\r', '\u{10f000}'])));
}

#[test]
fn internal_colour_characters_in_output_are_replaced() {
    let theme = theme();
    let mut card = Card::new(call("1"), "Tool");
    card.on_ended(CardState::Done { latency_ms: 1 }, "a\u{10f041}b", None);
    let rows = card.rows(60, look(&theme, 60, Fold::Full));
    assert_eq!(rows[1].cells(), "│ a\u{fffd}b");
}

#[test]
fn a_wrapped_output_line_is_marked_and_copied_as_one_line() {
    let theme = theme();
    let mut transcript = Transcript::default();
    let mut card = Card::new(call("1"), "Tool");
    card.on_ended(CardState::Done { latency_ms: 1 }, &"word ".repeat(20), None);
    transcript.push(TranscriptEntryKind::Card(card));
    transcript.unfold(0);
    let look = transcript.render_context(44, &theme, &UNICODE, 0);
    let rows = transcript.rows_of(0, look);
    assert!(rows[2].cells().starts_with("│↪ word"), "{}", rows[2].cells());
    transcript.marks.selection = Some(Selection {
        entry: 0,
        from: EntryCell { row: 1, cell: 0 },
        to: EntryCell { row: 3, cell: 0 },
        shape: SelectionShape::Lines,
    });
    assert_eq!(transcript.selected_text(look).unwrap(), "word ".repeat(20).trim_end());
}

mod random {
    use super::*;
    use crate::tui::markdown::MarkdownDocument;
    use crate::tui::transcript::viewport::Anchor;
    use proptest::prelude::*;

    #[derive(Debug, Clone)]
    enum Act {
        Card(usize),
        Answer(usize),
        More(usize),
        Print(usize),
        FoldOne(usize),
        FoldAll,
        Up(usize),
        Down(usize),
        Start,
        End,
        Width(u16),
        Colours,
        Older(usize),
    }

    fn act() -> impl Strategy<Value = Act> {
        prop_oneof![
            (0..30_usize).prop_map(Act::Card),
            (1..12_usize).prop_map(Act::Answer),
            (1..12_usize).prop_map(Act::More),
            any::<usize>().prop_map(Act::Print),
            any::<usize>().prop_map(Act::FoldOne),
            Just(Act::FoldAll),
            (1..40_usize).prop_map(Act::Up),
            (1..40_usize).prop_map(Act::Down),
            Just(Act::Start),
            Just(Act::End),
            (20..90_u16).prop_map(Act::Width),
            Just(Act::Colours),
            (1..5_usize).prop_map(Act::Older),
        ]
    }

    fn answer(paragraphs: usize) -> TranscriptEntryKind {
        let mut document = MarkdownDocument::new();
        document.push(&"some words of a paragraph that is broken on a narrow screen\n\n".repeat(paragraphs));
        TranscriptEntryKind::Answer { document, state: AnswerState::Streaming }
    }

    fn done(id: usize, lines: usize) -> TranscriptEntryKind {
        let mut card = Card::new(call(&id.to_string()), "$ make");
        card.on_ended(CardState::Done { latency_ms: 1 }, &"a line of output\n".repeat(lines), None);
        TranscriptEntryKind::Card(card)
    }

    /// Returns all rows, each as the index of its entry and its index within the entry.
    fn naive(transcript: &mut Transcript, known: &[bool], look: RenderContext<'_>) -> Vec<(usize, usize)> {
        let mut all = Vec::new();
        for (at, entry) in transcript.entries.iter_mut().enumerate() {
            entry.forget_layout();
            let height = entry.height(look);
            assert_eq!(entry.rows(0..height, look).len(), height - entry.gap_rows());
            all.extend((0..height).map(|row| (at, row)));
            if !known[at] {
                entry.forget_layout();
            }
        }
        all
    }

    proptest! {
        #[test]
        fn the_viewport_equals_a_naive_walk_over_all_rows(acts in prop::collection::vec(act(), 1..40)) {
            let (theme, height) = (theme(), 12_u16);
            let mut width = 44_u16;
            let mut transcript = Transcript::default();
            for (nth, act) in acts.into_iter().enumerate() {
                let look = transcript.render_context(width, &theme, &UNICODE, 0);
                let count = transcript.len();
                let before = (!transcript.is_following()).then_some(transcript.top);
                let keeps = matches!(act, Act::Card(_) | Act::Answer(_) | Act::More(_));
                match act {
                    Act::Card(lines) => transcript.push(done(nth, lines)),
                    Act::Answer(paragraphs) => transcript.push(answer(paragraphs)),
                    Act::More(paragraphs) => {
                        if let Some(document) = transcript.streaming_mut() {
                            document.push(&"more of it\n\n".repeat(paragraphs));
                        }
                    }
                    Act::Print(which) => {
                        let ids: Vec<_> = transcript.calls.keys().cloned().collect();
                        if let Some(id) = ids.get(which % ids.len().max(1)) {
                            transcript.card_mut(id).unwrap().on_ended(CardState::Failed { latency_ms: 1, message: "no".to_owned() }, "x\ny", None);
                        }
                    }
                    Act::FoldOne(which) if count > 0 => { transcript.fold_one(which % count); }
                    Act::FoldOne(_) => {}
                    Act::FoldAll => transcript.fold_all(),
                    Act::Up(rows) => transcript.scroll_up(rows, look),
                    Act::Down(rows) => transcript.scroll_down(rows, look),
                    Act::Start => transcript.scroll_to_start(),
                    Act::End => transcript.follow_end(),
                    Act::Width(new) => width = new,
                    Act::Colours => transcript.forget_layout(),
                    Act::Older(cards) => {
                        let mut older = Transcript::default();
                        for card in 0..cards {
                            older.push(done(1000 + nth * 10 + card, card * 3));
                        }
                        transcript.prepend(older, look);
                    }
                }
                let look = transcript.render_context(width, &theme, &UNICODE, 0);
                transcript.unread_rows(look);
                let area = Rect::new(0, 0, width, height);
                transcript.draw(area, &mut Buffer::empty(area), look);
                let top = transcript.top;
                let measured: Vec<usize> = (0..transcript.len()).map(|at| transcript.heights.get(at)).collect();
                let known: Vec<bool> = transcript.entries.iter().map(|entry| entry.is_measured(look)).collect();
                let all = naive(&mut transcript, &known, look);
                let at = all.iter().position(|spot| *spot == (top.entry, top.row));
                if all.is_empty() {
                    continue;
                }
                let at = at.expect("the row at the top exists");
                match transcript.anchor {
                    Anchor::End => prop_assert_eq!(at, all.len().saturating_sub(height.into())),
                    Anchor::At(_) => prop_assert!(all.len() - at > usize::from(height)),
                }
                // Known heights must be correct.
                for (entry, rows) in measured.into_iter().enumerate().filter(|(entry, _)| known[*entry]) {
                    prop_assert_eq!(rows, all.iter().filter(|(of, _)| *of == entry).count());
                }
                if let Some(before) = before.filter(|_| keeps && !transcript.is_following()) {
                    prop_assert_eq!(before, top, "what is added moves nothing");
                }
            }
        }
    }
}
