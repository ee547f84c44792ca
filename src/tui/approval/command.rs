//! A command as it is asked about: its line, where it runs, what holds it, and each of its parts.

use crate::protocol::{CommandPart, Risk};
use crate::text;
use crate::tui::glyphs::Glyphs;
use crate::tui::theme::{Theme, Token};
use ratatui::style::Style;
use ratatui::text::{Line, Span};

/// From this width on a part of a command is one row.
const TABLE_WIDTH: u16 = 100;

const CRITICAL: &str = "CRITICAL";

#[derive(Debug)]
pub struct Command {
    pub line: String,
    pub facts: String,
    pub sandbox: String,
    pub parts: Vec<CommandPart>,
    /// Why no rule of it can be kept, for where the choice has no room to say so.
    pub never: Option<String>,
    /// Why its effects cannot be shown first, for where the choice has no room to say so.
    pub no_preview: Option<String>,
    /// What a yes opens for this run.
    pub opens: Option<String>,
    /// The part that the person looks at.
    pub marked: Option<usize>,
}

/// A row before it has colours, and the part it is of.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Row(Vec<(String, Tone)>, Option<usize>);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Tone {
    Plain,
    Faint,
    Code,
    Warn,
    Danger,
    Critical,
    Marked,
}

impl Command {
    pub fn rows(&self, width: u16) -> Vec<Row> {
        let mut rows = Vec::new();
        for line in self.line.split('\n') {
            let inner = usize::from(width.saturating_sub(2)).max(1);
            for part in text::wrap_exact(line, inner) {
                rows.push(Row(vec![("  ".to_owned(), Tone::Plain), (line[part].to_owned(), Tone::Code)], None));
            }
        }
        rows.push(Row(Vec::new(), None));
        if let Some(opens) = &self.opens {
            rows.extend(wrapped(opens, width, Tone::Warn));
        }
        for facts in whole_facts(&self.facts, width) {
            rows.extend(wrapped(&facts, width, Tone::Plain));
        }
        let open = self.sandbox.contains("NONE") || self.sandbox.contains("OFF");
        rows.extend(wrapped(&self.sandbox, width, if open { Tone::Danger } else { Tone::Plain }));
        let columns = (width >= TABLE_WIDTH).then(|| columns(width, &self.parts));
        if !self.parts.is_empty() {
            rows.push(Row(vec![(parts_head(width, columns), Tone::Faint)], None));
        }
        for at in self.order(width) {
            rows.extend(part_rows(at, self.marked == Some(at), &self.parts[at], width, columns));
        }
        for why in [&self.no_preview, &self.never].into_iter().flatten().filter(|_| width < TABLE_WIDTH) {
            rows.extend(wrapped(why, width, Tone::Plain));
        }
        rows
    }

    /// The places of the parts, as they stand below each other.
    pub fn order(&self, width: u16) -> Vec<usize> {
        let mut parts: Vec<usize> = (0..self.parts.len()).collect();
        if width < TABLE_WIDTH {
            // Where not all of them are seen at once the worst is seen first.
            parts.sort_by_key(|at| std::cmp::Reverse((self.parts[*at].critical, self.parts[*at].risk)));
        }
        parts
    }
}

/// Every command has this one where nothing else is set: said where it takes no row of its own.
const USUAL_SHELL: &str = "shell bash -c";

/// Stands before the number of the part that is looked at.
const MARK: &str = "▸";
/// Stands between a part and the number of the one that it reads from.
const INPUT: &str = "←";

/// Cells of the longest word of risk.
const RISK: usize = 8;

/// Cells of the names of parts and of what decided them, beside number, verdict and risk. A name has what the others leave.
fn columns(width: u16, parts: &[CommandPart]) -> (usize, usize) {
    let room = usize::from(width) - 14 - RISK;
    let widest = |words: fn(&CommandPart) -> String| parts.iter().map(|part| text::width(&words(part)) + 2).max().unwrap_or(0);
    let left = widest(name_of).min(room.saturating_sub(widest(why_of))).max(room * 2 / 5);
    (left, room - left)
}

/// `sh  ← input from 4`
fn name_of(part: &CommandPart) -> String {
    let name = text::reveal_rows(&part.text).replace('\n', " ");
    match part.input_from {
        Some(at) => format!("{name}  {INPUT} input from {}", at + 1),
        None => name,
    }
}

fn why_of(part: &CommandPart) -> String {
    text::reveal_rows(&format!("{}: {}", part.rule, part.reason)).replace('\n', " ")
}

/// A rule with the heads of the columns.
fn parts_head(width: u16, columns: Option<(usize, usize)>) -> String {
    let rule = |words: &str, cells: usize| format!("{words}{}", "-".repeat(cells.saturating_sub(words.len())));
    let Some((left, right)) = columns else { return rule("-- parts ", width.into()) };
    format!("{}{}{}", rule("-- parts ", left + 4 - 1), rule(" decided by ", right + 7), rule(" risk ", RISK + 4))
}

/// `1  cargo test    allow  built-in: reads only    low`, on one row where it fits.
fn part_rows(at: usize, is_marked: bool, part: &CommandPart, width: u16, columns: Option<(usize, usize)>) -> Vec<Row> {
    let number = at + 1;
    let head = if is_marked { (format!("{MARK}{number:<3}"), Tone::Marked) } else { (format!("{number:>2}  "), Tone::Faint) };
    let below = || ("    ".to_owned(), Tone::Plain);
    let tone = match part.risk {
        Risk::Low => Tone::Plain,
        Risk::Medium => Tone::Warn,
        Risk::High => Tone::Danger,
    };
    let reason = if part.critical { Tone::Danger } else { tone };
    let (name, why) = (name_of(part), why_of(part));
    let (tone, risk) = if part.critical { (Tone::Critical, CRITICAL) } else { (tone, part.risk.as_str()) };
    let verdict = part.verdict.as_str();
    if let Some((left, right)) = columns {
        let mut rows = Vec::new();
        let names = exact(&name, left - 1);
        let whys = pieces(&why, right - 2);
        for nth in 0..names.len().max(whys.len()) {
            let head = if nth == 0 { head.clone() } else { below() };
            let word = |text: &'static str, cells: usize| if nth == 0 { format!("{text:<cells$}") } else { " ".repeat(cells) };
            let cells = vec![
                head,
                (pad(names.get(nth).map_or("", String::as_str), left), Tone::Code),
                (word(verdict, 7), Tone::Plain),
                (pad(whys.get(nth).map_or("", String::as_str), right), Tone::Plain),
                // What stands reversed has no blanks below it that would be, too.
                (word(risk, RISK), if nth == 0 { tone } else { Tone::Plain }),
            ];
            rows.push(Row(cells, Some(at)));
        }
        return rows;
    }
    let inner = usize::from(width.saturating_sub(4)).max(1);
    let names = exact(&name, inner).into_iter().enumerate();
    let names = names.map(|(nth, piece)| vec![if nth == 0 { head.clone() } else { below() }, (piece, Tone::Code)]);
    let whys = pieces(&format!("{verdict} · {risk} risk · {why}"), inner).into_iter();
    // The risk stands before the reason, which may have its word too.
    let whys =
        whys.enumerate().map(|(nth, piece)| [vec![below()], risk_marked(piece, if nth == 0 { tone } else { reason })].concat());
    names.chain(whys).map(|cells| Row(cells, Some(at))).collect()
}

/// The reason in the colour of its risk; of the highest only the word is reversed, not the sentence.
fn risk_marked(piece: String, tone: Tone) -> Vec<(String, Tone)> {
    match piece.split_once(CRITICAL) {
        Some((before, after)) if tone == Tone::Critical => {
            vec![(before.to_owned(), Tone::Danger), (CRITICAL.to_owned(), tone), (after.to_owned(), Tone::Danger)]
        }
        Some(_) | None => vec![(piece, tone)],
    }
}

impl Row {
    pub fn part(&self) -> Option<usize> {
        self.1
    }

    pub fn line(&self, theme: &Theme, glyphs: &Glyphs) -> Line<'static> {
        let style = |tone| -> Style {
            match tone {
                Tone::Plain => theme.style(Token::Text),
                Tone::Faint => theme.style(Token::Faint),
                Tone::Code => theme.style(Token::Code),
                Tone::Warn => theme.style(Token::Warn),
                Tone::Danger => theme.style(Token::Danger),
                Tone::Critical => theme.style(Token::Critical),
                Tone::Marked => theme.style(Token::Accent),
            }
        };
        let rule = |text: &str, tone| match tone {
            Tone::Faint if text.starts_with("--") => text.replace('-', glyphs.rule),
            Tone::Marked => text.replace(MARK, glyphs.folded),
            _ => text.to_owned(),
        };
        Line::from(self.0.iter().map(|(text, tone)| Span::styled(rule(text, *tone), style(*tone))).collect::<Vec<_>>())
    }
}

fn wrapped(words: &str, width: u16, tone: Tone) -> Vec<Row> {
    pieces(words, width.into()).into_iter().map(|piece| Row(vec![(piece, tone)], None)).collect()
}

/// Facts that stand side by side, put into rows so that none is broken that fits one.
fn whole_facts(facts: &str, width: u16) -> Vec<String> {
    let mut rows: Vec<String> = Vec::new();
    let is_worth_a_row = |fact: &&str| !fact.is_empty() && (width >= TABLE_WIDTH || *fact != USUAL_SHELL);
    for fact in facts.split("   ").filter(is_worth_a_row) {
        match rows.last_mut() {
            Some(row) if text::width(row) + 3 + text::width(fact) <= width.into() => {
                row.push_str("   ");
                row.push_str(fact);
            }
            Some(_) | None => rows.push(fact.to_owned()),
        }
    }
    rows
}

pub fn pieces(words: &str, cells: usize) -> Vec<String> {
    text::wrap(words, cells.max(1)).into_iter().map(|range| words[range].to_owned()).collect()
}

/// Every character of a command, blanks too.
pub fn exact(words: &str, cells: usize) -> Vec<String> {
    text::wrap_exact(words, cells.max(1)).into_iter().map(|range| words[range].to_owned()).collect()
}

fn pad(words: &str, cells: usize) -> String {
    format!("{words}{}", " ".repeat(cells.saturating_sub(text::width(words))))
}

pub fn duration(seconds: u64) -> String {
    if seconds >= 60 && seconds.is_multiple_of(60) { format!("{} min", seconds / 60) } else { format!("{seconds} s") }
}
