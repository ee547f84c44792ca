//! Body of a command's approval prompt: its effects, the command line, and the settings that differ from the defaults.

use super::title::{DialogTitle, sort_by_risk};
use crate::protocol::{CommandPart, Risk, VerdictKind};
use crate::text;
use crate::tui::format::format_count;
use crate::tui::glyphs::Glyphs;
use crate::tui::theme::{Theme, Token};
use ratatui::style::Style;
use ratatui::text::{Line, Span};
use std::ops::Range;

/// Marker shown before the selected command part.
const MARK: &str = "▸";

#[derive(Debug)]
pub(crate) struct CommandBody {
    /// Title, which the body repeats if the head has no room for it.
    pub title: DialogTitle,
    /// Index of the command part whose effect is shown as the title.
    pub titled: Option<usize>,
    pub line: String,
    /// Notes specific to this command, such as a different working directory, a time limit, or required servers.
    pub notes: Vec<String>,
    /// Description of the sandbox, if it is missing, allows network access or differs from the session's usual sandbox.
    pub sandbox: Option<String>,
    pub is_unheld: bool,
    pub parts: Vec<CommandPart>,
    /// Access that approving the command grants for this run.
    pub opens: Option<String>,
    /// Index of the command part that the user selected.
    pub marked: Option<usize>,
}

/// Row of styled text, and the index of the command part that it describes, if any.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Row(Vec<(String, Tone)>, Option<usize>);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Tone {
    Plain,
    Faint,
    Code,
    Warn,
    Danger,
    Marked,
}

impl CommandBody {
    pub(crate) fn rows(&self, width: u16) -> Vec<Row> {
        let tone = self.titled.and_then(|at| self.parts.get(at)).map_or(Tone::Plain, part_tone);
        let title = self.title.rows(width).into_iter().map(|row| Row(vec![(row, tone)], None));
        let mut rows: Vec<Row> = title.collect();
        if let Some(opens) = &self.opens {
            rows.extend(wrapped(opens, width, Tone::Warn));
        }
        rows.extend(self.effects(width));
        rows.extend(self.lines(width));
        rows.extend(self.notes.iter().flat_map(|note| wrapped(note, width, Tone::Plain)));
        if let Some(sandbox) = &self.sandbox {
            rows.extend(wrapped(sandbox, width, if self.is_unheld { Tone::Danger } else { Tone::Warn }));
        }
        if let Some(at) = self.marked {
            rows.extend(self.detail_rows(at, width));
        }
        rows
    }

    /// Returns one or more rows for each distinct effect of a risky part that the title does not show, riskiest first,
    /// followed by the number of harmless parts.
    fn effects(&self, width: u16) -> Vec<Row> {
        let (mut told, mut rows) = (vec![self.titled.map_or_else(String::new, |at| part_effect(&self.parts[at]))], Vec::new());
        let harmless = self.parts.iter().filter(|part| is_harmless(part)).count();
        for at in self.order().into_iter().filter(|at| !is_harmless(&self.parts[*at])) {
            let (part, effect) = (&self.parts[at], part_effect(&self.parts[at]));
            if told.contains(&effect) || self.parts.len() < 2 {
                continue;
            }
            rows.extend(wrapped(&format!("also {effect} · {} risk", part.risk_name()), width, part_tone(part)));
            told.push(effect);
        }
        if harmless > 0 && harmless < self.parts.len() {
            rows.push(Row(vec![(format_count(harmless, "harmless part"), Tone::Faint)], None));
        }
        rows
    }

    /// Returns the complete command line as rows, with risky parts in the colour of their risk.
    fn lines(&self, width: u16) -> Vec<Row> {
        let risky = self.risky_ranges();
        let inner = usize::from(width.saturating_sub(2)).max(1);
        let (mut rows, mut start) = (Vec::new(), 0);
        for line in self.line.split('\n') {
            for part in text::wrap_exact(line, inner) {
                let mut cells = vec![("  ".to_owned(), Tone::Plain)];
                cells.extend(self.tone_ranges(start + part.start..start + part.end, &risky));
                rows.push(Row(cells, None));
            }
            start += line.len() + 1;
        }
        rows
    }

    /// Returns the byte ranges of the risky or selected parts in the command line, with their tones.
    fn risky_ranges(&self) -> Vec<(Range<usize>, Tone)> {
        let (mut found, mut from) = (Vec::new(), 0);
        for (at, part) in self.parts.iter().enumerate() {
            let words = text::reveal_rows(&part.text);
            let Some(start) = self.line[from..].find(&*words).filter(|_| !words.is_empty()).map(|place| from + place) else {
                continue;
            };
            from = start + words.len();
            let tone = if self.marked == Some(at) { Tone::Marked } else { part_tone(part) };
            if tone != Tone::Plain {
                found.push((start..from, tone));
            }
        }
        found
    }

    fn tone_ranges(&self, range: Range<usize>, risky: &[(Range<usize>, Tone)]) -> Vec<(String, Tone)> {
        let (mut cells, mut at) = (Vec::new(), range.start);
        for (part, tone) in risky {
            let (start, end) = (part.start.max(at), part.end.min(range.end));
            if start >= end {
                continue;
            }
            if at < start {
                cells.push((self.line[at..start].to_owned(), Tone::Code));
            }
            cells.push((self.line[start..end].to_owned(), *tone));
            at = end;
        }
        if at < range.end {
            cells.push((self.line[at..range.end].to_owned(), Tone::Code));
        }
        cells
    }

    /// Returns the rows that describe the selected part: its position, verdict and risk, and the rule and reason behind
    /// the verdict.
    fn detail_rows(&self, at: usize, width: u16) -> Vec<Row> {
        let Some(part) = self.parts.get(at) else { return Vec::new() };
        let name = text::reveal_rows(&part.text).replace('\n', " ");
        let input = part.input_from.map(|from| format!(" · reads from part {}", from + 1)).unwrap_or_default();
        let why = text::reveal_rows(&format!("{}: {}", part.rule, part.reason)).replace('\n', " ");
        let risk = part.risk_name();
        let words = format!(
            "{MARK} part {} of {} · {name}{input} · {} · {risk} risk · {why}",
            at + 1,
            self.parts.len(),
            part.verdict.as_str()
        );
        let rows = wrap_exact(&words, width.into()).into_iter();
        rows.map(|piece| Row(vec![(piece, Tone::Marked)], Some(at))).collect()
    }

    /// Returns the indexes of the command parts, riskiest first.
    pub(crate) fn order(&self) -> Vec<usize> {
        sort_by_risk(&self.parts)
    }
}

/// Returns whether a part need not be listed, because it has low risk, is not critical and is not denied.
pub(crate) fn is_harmless(part: &CommandPart) -> bool {
    part.risk == Risk::Low && !part.critical && part.verdict != VerdictKind::Deny
}

/// Returns a description of a command part's effect, such as `deletes \`~/old\`, outside the workspace`. If the effect
/// is unknown, the description names the program that the part runs.
fn part_effect(part: &CommandPart) -> String {
    match &part.effect {
        Some(effect) => text::reveal_line(effect),
        None => format!("runs {}", text::reveal_line(part.text.split_whitespace().next().unwrap_or("a command"))),
    }
}

fn part_tone(part: &CommandPart) -> Tone {
    match part.risk {
        Risk::High => Tone::Danger,
        Risk::Low | Risk::Medium if part.critical => Tone::Danger,
        Risk::Medium => Tone::Warn,
        Risk::Low => Tone::Plain,
    }
}

impl Row {
    pub(crate) fn part(&self) -> Option<usize> {
        self.1
    }

    pub(crate) fn line(&self, theme: &Theme, glyphs: &Glyphs) -> Line<'static> {
        let style = |tone| -> Style {
            match tone {
                Tone::Plain => theme.style(Token::Text),
                Tone::Faint => theme.style(Token::Faint),
                Tone::Code => theme.style(Token::Code),
                Tone::Warn => theme.style(Token::Warn),
                Tone::Danger => theme.style(Token::Danger),
                Tone::Marked => theme.style(Token::Accent),
            }
        };
        let rule = |text: &str, tone| match tone {
            Tone::Marked => text.replace(MARK, glyphs.fold.folded),
            _ => text.to_owned(),
        };
        Line::from(self.0.iter().map(|(text, tone)| Span::styled(rule(text, *tone), style(*tone))).collect::<Vec<_>>())
    }
}

fn wrapped(words: &str, width: u16, tone: Tone) -> Vec<Row> {
    pieces(words, width.into()).into_iter().map(|piece| Row(vec![(piece, tone)], None)).collect()
}

pub(crate) fn pieces(words: &str, cells: usize) -> Vec<String> {
    text::wrap(words, cells.max(1)).into_iter().map(|range| words[range].to_owned()).collect()
}

/// Wraps a command line to `cells` columns without dropping any characters, not even spaces.
pub(crate) fn wrap_exact(words: &str, cells: usize) -> Vec<String> {
    text::wrap_exact(words, cells.max(1)).into_iter().map(|range| words[range].to_owned()).collect()
}
