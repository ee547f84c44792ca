//! Output of a call, shown in the theme's colours.

use super::RenderContext;
use crate::protocol::{UNCHANGED_NOTE, exit_line};
use crate::text;
use crate::tui::styled_text::{Row, SpanStyle, StyledText};
use crate::tui::theme::{Syntax, Token};
use ratatui::style::Modifier;
use std::ops::Range;

/// Output text, and the colours of its byte ranges.
#[derive(Default)]
pub(crate) struct Output {
    pub text: String,
    paints: Vec<(usize, text::Paint)>,
}

impl Output {
    /// Creates an output from printed text, removing control sequences. If it is a command's output, also returns the
    /// exit code.
    pub(crate) fn clean(printed: &str, is_command: bool) -> (Self, Option<String>) {
        let mut cleaner = text::Cleaner::new();
        let mut clean = String::new();
        cleaner.push(&text::Ansi::default().push(printed), &mut clean);
        cleaner.finish(&mut clean);
        clean.truncate(clean.trim_end_matches('\n').len());
        let exit = if is_command { take_exit(&mut clean) } else { None };
        let (text, paints) = text::parse_paints(&clean);
        (Self { text, paints }, exit)
    }

    /// Returns up to `count` coloured lines, starting at line index `from`.
    pub(crate) fn lines(&self, from: usize, count: usize) -> Vec<StyledText> {
        let (mut lines, mut start) = (Vec::new(), 0);
        for (at, line) in self.text.split_inclusive('\n').enumerate() {
            let end = start + line.len();
            if at >= from && lines.len() < count {
                let range = start..end - usize::from(line.ends_with('\n'));
                let begin = range.start;
                let paints = text::paints_within(&self.paints, range.clone());
                let paints: Vec<_> =
                    paints.into_iter().map(|(part, paint)| (part.start - begin..part.end - begin, paint)).collect();
                lines.push(apply_paints(&self.text[range], &paints));
            }
            start = end;
        }
        lines
    }
}

/// Parses a line that may contain colour sequences.
pub(crate) fn parse_line(line: &str) -> StyledText {
    let (text, paints) = text::parse_paints(line);
    apply_paints(&text, &text::paints_within(&paints, 0..text.len()))
}

/// Applies colours to an output line, expanding its tabs.
fn apply_paints(line: &str, paints: &[(Range<usize>, text::Paint)]) -> StyledText {
    if !line.contains('\t') {
        let mut out = StyledText::default();
        for (range, paint) in paints {
            out.push(&line[range.clone()], ink(*paint));
        }
        return out;
    }
    let mut out = StyledText::default();
    let whole = text::expand_tabs(line);
    let (mut at, mut rest) = (0, whole.as_ref());
    for (range, paint) in paints {
        // End of the piece after tab expansion. The spaces of a tab have the colour of the tab.
        let end = text::expand_tabs(&line[..range.end]).len();
        let (piece, after) = rest.split_at(end.saturating_sub(at).min(rest.len()));
        out.push(piece, ink(*paint));
        (at, rest) = (end, after);
    }
    out
}

fn ink(paint: text::Paint) -> SpanStyle {
    let ink = match paint.hue {
        None => SpanStyle::from_token(Token::Muted),
        Some(text::Hue::Red) => SpanStyle::from_token(Token::Danger),
        Some(text::Hue::Green) => SpanStyle::from_token(Token::Ok),
        Some(text::Hue::Yellow) => SpanStyle::from_token(Token::Warn),
        Some(text::Hue::Blue) => SpanStyle::from_token(Token::Accent),
        Some(text::Hue::Magenta) => SpanStyle::code(Some(Syntax::Keyword), Token::Text),
        Some(text::Hue::Cyan) => SpanStyle::code(Some(Syntax::Type), Token::Text),
        Some(text::Hue::White) => SpanStyle::from_token(Token::Text),
        Some(text::Hue::Grey) => SpanStyle::from_token(Token::Faint),
    };
    let stresses = [
        (paint.bold, Modifier::BOLD),
        (paint.italic, Modifier::ITALIC),
        (paint.underlined, Modifier::UNDERLINED),
        (paint.reversed, Modifier::REVERSED),
        (paint.struck, Modifier::CROSSED_OUT),
    ];
    let stress = stresses.into_iter().filter(|(on, _)| *on).fold(Modifier::empty(), |all, (_, one)| all | one);
    SpanStyle { stress, ..ink }
}

/// Truncates a line to the given width, marking the end with an ellipsis.
pub(crate) fn truncate_line(line: &StyledText, width: u16, look: RenderContext<'_>) -> Row {
    if line.width() <= width.into() {
        return line.fit_row(width.into(), look.theme);
    }
    let shown = text::truncate(&line.text, width.into());
    let mut row = line.slice(0..shown.trim_end_matches('…').len().min(line.text.len()));
    row.push("…", SpanStyle::from_token(Token::Faint));
    row.fit_row(width.into(), look.theme)
}

/// Removes the line that gives the exit code from an output and returns the code. Also removes what the card shows
/// elsewhere: the stream heading, if there is only one stream, and the note that the command made no changes.
pub(crate) fn take_exit(output: &mut String) -> Option<String> {
    let found = exit_line(output).map(|(at, exit)| (at, exit.to_owned()));
    let at = found.as_ref().map_or(0, |(at, _)| *at);
    let changed = output[..at].to_owned();
    let (_, rest) = output[at..].split_once('\n').unwrap_or((&output[at..], ""));
    let exit = found.map(|(_, exit)| exit);
    // A killed command has output but no exit code.
    let rest = if exit.is_some() { rest } else { output.as_str() };
    let (alone, rest) = rest.strip_prefix("--- stdout ---\n").map_or((exit.is_some(), rest), |rest| (true, rest));
    if alone {
        let rest = rest.strip_suffix(UNCHANGED_NOTE).map_or(rest, |rest| rest.trim_end_matches('\n'));
        let (printed, notes) = split_notes(rest);
        (changed + printed.trim_end_matches('\n') + "\n" + notes).trim_end_matches('\n').clone_into(output);
    }
    exit
}

/// Splits an output whose stderr section is empty into stdout and the notes that follow that section. Returns any other
/// output whole, without notes.
fn split_notes(output: &str) -> (&str, &str) {
    let Some((printed, notes)) = output.rsplit_once("--- stderr ---") else { return (output, "") };
    let is_heading = printed.is_empty() || printed.ends_with('\n');
    let is_note = |line: &str| line.is_empty() || line.starts_with('[') && line.ends_with(']');
    if is_heading && notes.lines().all(is_note) { (printed, notes.trim_start_matches('\n')) } else { (output, "") }
}
