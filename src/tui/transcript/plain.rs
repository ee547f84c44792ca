//! Entries as Markdown to be copied, without symbols, line numbers or wrapping.

use super::{Card, TranscriptEntryKind};
use crate::tui::markdown::BAR;
use crate::tui::styled_text::{Join, Row};
use pulldown_cmark::{CodeBlockKind, Event, Options, Parser, Tag, TagEnd};
use std::ops::Range;
use unicode_segmentation::UnicodeSegmentation;

impl super::TranscriptEntry {
    /// Returns the whole entry as Markdown, including any folded parts.
    pub(crate) fn markdown(&self) -> String {
        match &self.kind {
            TranscriptEntryKind::User(text)
            | TranscriptEntryKind::Reasoning { text, .. }
            | TranscriptEntryKind::Note { text, .. } => text.trim_end().to_owned(),
            TranscriptEntryKind::Answer { document, .. } => document.text().trim_end().to_owned(),
            TranscriptEntryKind::Card(card) => card_text(card),
            TranscriptEntryKind::Summary { head, text } => format!("{head}\n\n{text}"),
            TranscriptEntryKind::Greeting(lines) => lines.iter().map(|line| line.text.as_str()).collect::<Vec<_>>().join("\n"),
            TranscriptEntryKind::Problem { problem, .. } => problem.text(),
            TranscriptEntryKind::Recovery(recovery) => recovery.lines().join("\n"),
        }
    }

    /// Returns the code blocks in an entry. For a card, these are its changes and its output.
    pub(crate) fn code(&self) -> Vec<String> {
        match &self.kind {
            TranscriptEntryKind::Card(card) => {
                [card.changes_text(), card.output()].into_iter().filter(|part| !part.is_empty()).map(str::to_owned).collect()
            }
            TranscriptEntryKind::User(text)
            | TranscriptEntryKind::Summary { text, .. }
            | TranscriptEntryKind::Reasoning { text, .. } => code_blocks(text),
            TranscriptEntryKind::Answer { document, .. } => code_blocks(document.text()),
            TranscriptEntryKind::Note { .. }
            | TranscriptEntryKind::Problem { .. }
            | TranscriptEntryKind::Greeting(_)
            | TranscriptEntryKind::Recovery(_) => Vec::new(),
        }
    }

    pub(crate) fn card(&self) -> Option<&Card> {
        match &self.kind {
            TranscriptEntryKind::Card(card) => Some(card),
            _ => None,
        }
    }

    pub(crate) fn is_prompt(&self) -> bool {
        matches!(self.kind, TranscriptEntryKind::User(_))
    }
}

fn card_text(card: &Card) -> String {
    let exit = card.exit().map(|exit| format!(", exit {exit}")).unwrap_or_default();
    let head = match card.summary().strip_prefix("$ ") {
        Some(line) => format!("{}{exit}", inline_code(line)),
        None => format!("**{}**", card.summary()),
    };
    let blocks = [("", card.message()), ("diff", card.changes_text()), ("text", card.output())];
    let blocks = blocks.into_iter().filter(|(_, text)| !text.is_empty());
    let blocks = blocks.map(|(kind, text)| if kind.is_empty() { text.to_owned() } else { code_block(kind, text) });
    std::iter::once(head).chain(blocks).collect::<Vec<_>>().join("\n\n")
}

/// Returns a fence of at least `least` backticks that is longer than any run of backticks in the text.
fn fence(text: &str, least: usize) -> String {
    let longest = text.split(|letter| letter != '`').map(str::len).max().unwrap_or(0);
    "`".repeat(least.max(longest + 1))
}

fn code_block(kind: &str, text: &str) -> String {
    let fence = fence(text, 3);
    format!("{fence}{kind}\n{}\n{fence}", text.trim_end_matches('\n'))
}

fn inline_code(text: &str) -> String {
    let fence = fence(text, 1);
    if fence.len() > 1 { format!("{fence} {text} {fence}") } else { format!("{fence}{text}{fence}") }
}

/// Returns the code blocks in a Markdown text, in order.
pub(crate) fn code_blocks(source: &str) -> Vec<String> {
    let mut blocks = Vec::new();
    let mut open: Option<String> = None;
    for event in Parser::new_ext(source, Options::ENABLE_TABLES) {
        match event {
            Event::Start(Tag::CodeBlock(CodeBlockKind::Fenced(_) | CodeBlockKind::Indented)) => open = Some(String::new()),
            Event::Text(text) => {
                if let Some(code) = &mut open {
                    code.push_str(&text);
                }
            }
            Event::End(TagEnd::CodeBlock) => blocks.extend(open.take()),
            _ => {}
        }
    }
    // Cleans the code, because entities can encode control characters.
    blocks.iter().map(|code| crate::text::clean(code).into_owned()).collect()
}

/// Joins pieces of consecutive rows, adding line breaks only where the original text has them.
pub(crate) fn join(pieces: impl Iterator<Item = (String, Join)>) -> String {
    let mut out = String::new();
    for (nth, (piece, join)) in pieces.enumerate() {
        match join {
            _ if nth == 0 => {}
            Join::Line => {
                out.truncate(out.trim_end_matches(' ').len());
                out.push('\n');
            }
            Join::Space => out.push(' '),
            Join::Nothing => {}
        }
        out.push_str(&piece);
    }
    out.truncate(out.trim_end_matches(' ').len());
    out
}

/// Returns the text in a range of cells of a table row, with each bar replaced by `between`.
pub(crate) fn without_bars(row: &Row, bars: &[usize], cells: &Range<u16>, between: &str) -> String {
    let starts = || bars.iter().map(|bar| *bar as u16);
    // A partially selected bar is ignored.
    let cut = starts().find(|bar| (*bar..bar + BAR).contains(&cells.start));
    let begin = cut.map_or(cells.start, |bar| bar + BAR);
    let (mut from, mut pieces) = (begin, Vec::new());
    for bar in starts().filter(|bar| (begin..cells.end).contains(bar)) {
        pieces.push(cells_between(row, from, bar));
        from = bar + BAR;
    }
    pieces.push(cells_between(row, from, cells.end.max(from)));
    if between == "\t" {
        return pieces.iter().map(|piece| piece.trim()).collect::<Vec<_>>().join(between);
    }
    pieces.join(between)
}

/// Returns the text in a range of cells of a row, excluding decoration. A wide character belongs to its first cell.
pub(crate) fn cells_between(row: &Row, from: u16, to: u16) -> String {
    let from = from.max(row.skip);
    let mut at = 0_usize;
    let mut out = String::new();
    for grapheme in row.cells().graphemes(true) {
        if at >= to.into() {
            break;
        }
        if at >= from.into() {
            out.push_str(grapheme);
        }
        at += crate::text::width(grapheme);
    }
    out
}
