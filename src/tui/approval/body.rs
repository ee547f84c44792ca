//! What a question shows between its head and its choices.

use crate::protocol::{Approval, CommandPart, Effects, PreviewOffer, Risk};
use crate::text;
use crate::tui::diff::Diff;
use crate::tui::glyphs::Glyphs;
use crate::tui::status::counted;
use crate::tui::theme::{Theme, Token};
use ratatui::style::Style;
use ratatui::text::{Line, Span};
use std::cell::RefCell;
use std::ops::Range;

/// Cells of sign, blanks and count beside title and risk.
const HEAD_FACTS: usize = 13;
/// From this width on a part of a command is one row.
const TABLE_WIDTH: u16 = 100;

/// A change of more lines than this may be applied without all of it on the screen, by two keys.
const LARGE_LINES: usize = 2000;

pub enum Body {
    /// `name` and `above` stand before the diff, the name where the head has no room for it.
    Edit {
        name: Name,
        diff: Diff,
        above: Vec<Note>,
        extent: Extent,
        verb: Verb,
        /// What stands before the counts at the right of the head.
        facts: String,
    },
    Command {
        command: Box<Command>,
        laid: RefCell<Option<(u16, Vec<Row>)>>,
    },
    Words {
        text: String,
    },
}

/// Whether a person can be asked to look at all of a change.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Extent {
    Readable,
    /// Its files and their counts have to do.
    Large,
}

/// What is changed, and how many cells of the head are not for it.
#[derive(Debug)]
pub struct Name {
    words: String,
    beside: usize,
}

#[derive(Debug)]
pub struct Command {
    line: String,
    facts: String,
    sandbox: String,
    parts: Vec<CommandPart>,
    /// Why no rule of it can be kept, for where the choice has no room to say so.
    never: Option<String>,
    /// Why its effects cannot be shown first, for where the choice has no room to say so.
    no_preview: Option<String>,
    /// What a yes opens for this run.
    opens: Option<String>,
}

/// A paragraph above a diff.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Note {
    pub text: String,
    token: Token,
}

impl Note {
    pub fn new(text: String, token: Token) -> Self {
        Self { text, token }
    }
}

/// What a yes to a change does.
const APPLY: Verb = Verb { long: "apply it", short: "apply" };

/// A row before it has colours.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Row(Vec<(String, Tone)>);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Tone {
    Plain,
    Faint,
    Code,
    Warn,
    Danger,
}

/// How an approval is said on its choices.
#[derive(Debug, Clone, Copy)]
pub struct Verb {
    pub long: &'static str,
    pub short: &'static str,
}

impl Body {
    pub fn of(approval: &Approval) -> Self {
        if let Some(effects) = &approval.effects {
            return Self::effects(approval, effects);
        }
        if let Some(command) = &approval.command {
            let notes: Vec<_> = approval.proposal.notes.iter().map(|note| text::reveal(note)).collect();
            let notes = notes.iter().flat_map(|note| ["   ", note]).collect::<String>();
            let limit = match command.timeout_seconds {
                0 => "no time limit".to_owned(),
                seconds => format!("time limit {}", duration(seconds)),
            };
            let facts = format!("in {}   {limit}{notes}", text::reveal(&command.cwd));
            let command = Command {
                line: text::reveal(&command.line).into_owned(),
                facts,
                sandbox: format!("sandbox  {}", text::reveal(&command.sandbox)),
                parts: approval.parts.clone(),
                never: (!approval.always.never.is_empty() && approval.always.offers.is_empty())
                    .then(|| format!("never remembered: {}", super::choices::never_words(&approval.always.never))),
                no_preview: match &approval.preview {
                    PreviewOffer::Impossible { reason } if approval.opens.is_empty() => {
                        Some(format!("no preview: {}", super::line(reason)))
                    }
                    PreviewOffer::Impossible { .. } | PreviewOffer::Possible | PreviewOffer::None => None,
                },
                opens: (!approval.opens.is_empty()).then(|| {
                    let opens: Vec<String> = approval.opens.iter().map(|opened| super::line(&opened.to_string())).collect();
                    format!("it ran, and the sandbox kept it from {}; a yes runs it again with that open, once", opens.join(", "))
                }),
            };
            return Self::Command { command: Box::new(command), laid: RefCell::new(None) };
        }
        let proposal = &approval.proposal;
        let notes: Vec<Note> = proposal.notes.iter().map(|note| Note::new(text::clean(note).into_owned(), Token::Warn)).collect();
        if !proposal.diff.is_empty() {
            let risk_cells = if approval.critical { 13 } else { approval.risk_level.as_str().len() + 5 };
            let diff = Diff::parse(&proposal.diff, proposal.paths.first().map(std::path::PathBuf::as_path));
            return Self::edit(
                Name { words: super::line(&approval.action_summary), beside: HEAD_FACTS + risk_cells },
                diff,
                notes,
            );
        }
        let mut words = text::reveal(&proposal.summary).into_owned();
        for path in &proposal.paths {
            words.push_str("\n  ");
            words.push_str(&text::reveal(&path.to_string_lossy()));
        }
        for note in notes {
            words.push('\n');
            words.push_str(&note.text);
        }
        Self::Words { text: words }
    }

    /// What a command did: everything about it, and then the diff.
    fn effects(approval: &Approval, effects: &Effects) -> Self {
        let diff = Diff::parse(&approval.proposal.diff, None);
        let lines = diff.lines();
        let mut above = super::effects::notes(approval, effects);
        let extent = if lines > LARGE_LINES { Extent::Large } else { Extent::Readable };
        match diff.files().as_slice() {
            [] => {}
            [(Some(path), ..)] => {
                above.push(Note::new(format!("the text that changes in {}", super::line(&path.to_string_lossy())), Token::Text));
            }
            _ => above.push(Note::new("the text that changes".to_owned(), Token::Text)),
        }
        if extent == Extent::Large {
            above.push(Note::new(format!("{lines} lines of diff: more than one reads here"), Token::Warn));
        }
        let name = Name { words: String::new(), beside: 0 };
        Self::Edit { name, diff, above, extent, verb: super::effects::verb(effects), facts: super::effects::facts(effects) }
    }

    fn edit(name: Name, diff: Diff, notes: Vec<Note>) -> Self {
        let counts = format!("+{} −{}", diff.added(), diff.removed());
        let words = name.words.strip_suffix(&counts).map_or_else(|| name.words.clone(), |words| words.trim_end().to_owned());
        let name = Name { words, ..name };
        let (mut above, lines) = (notes, diff.lines());
        if lines <= LARGE_LINES {
            let facts = counted(diff.hunks(), "hunk");
            return Self::Edit { name, diff, above, extent: Extent::Readable, verb: APPLY, facts };
        }
        let files = diff.files();
        let all = format!("{lines} lines in {}: more than one reads here", counted(files.len(), "file"));
        above.push(Note::new(all, Token::Warn));
        above.extend(files.iter().map(|(path, added, removed)| {
            let name = path.map_or_else(|| "a file".into(), |path| text::reveal(&path.to_string_lossy()).into_owned());
            Note::new(format!("  {name}  +{added} −{removed}"), Token::Warn)
        }));
        let facts = counted(diff.hunks(), "hunk");
        Self::Edit { name, diff, above, extent: Extent::Large, verb: APPLY, facts }
    }

    /// Rows from the start that are to be on the screen before a yes.
    pub fn required(&self, width: u16) -> usize {
        match self {
            Self::Edit { name, above, extent: Extent::Large, .. } => name_rows(name, width).len() + wrapped_count(above, width),
            Self::Edit { .. } | Self::Command { .. } | Self::Words { .. } => self.rows(width),
        }
    }

    pub fn diff(name: String, diff: &str) -> Self {
        Self::edit(Name { words: name, beside: 0 }, Diff::parse(diff, None), Vec::new())
    }

    pub fn words(text: String) -> Self {
        Self::Words { text: text::reveal(&text).into_owned() }
    }

    pub fn verb(&self) -> Verb {
        match self {
            Self::Edit { verb, .. } => *verb,
            Self::Command { .. } => Verb { long: "run it", short: "run" },
            Self::Words { .. } => Verb { long: "allow it", short: "allow" },
        }
    }

    pub fn facts(&self) -> Option<String> {
        match self {
            Self::Edit { facts, diff, .. } if diff.lines() == 0 => Some(facts.clone()),
            Self::Edit { facts, .. } => Some(format!("{facts} · {}", self.counts().unwrap_or_default())),
            Self::Command { .. } | Self::Words { .. } => None,
        }
    }

    /// `+6 −5`
    pub fn counts(&self) -> Option<String> {
        match self {
            Self::Edit { diff, .. } => Some(format!("+{} −{}", diff.added(), diff.removed())),
            Self::Command { .. } | Self::Words { .. } => None,
        }
    }

    pub fn rows(&self, width: u16) -> usize {
        match self {
            Self::Edit { name, diff, above, .. } => {
                name_rows(name, width).len() + wrapped_count(above, width) + diff.height(width)
            }
            Self::Command { .. } => self.with_rows(width, <[Row]>::len),
            Self::Words { text } => text.split('\n').map(|line| hanging(line, width).1.len()).sum(),
        }
    }

    /// Removed lines among the rows of `range`, where there are such.
    pub fn removed_in(&self, width: u16, range: Range<usize>) -> usize {
        match self {
            Self::Edit { name, diff, above, .. } => {
                let above = name_rows(name, width).len() + wrapped_count(above, width);
                diff.removed_in(width, range.start.saturating_sub(above)..range.end.saturating_sub(above))
            }
            Self::Command { .. } | Self::Words { .. } => 0,
        }
    }

    pub fn lines(&self, width: u16, range: Range<usize>, theme: &Theme, glyphs: &Glyphs) -> Vec<Line<'static>> {
        match self {
            Self::Edit { name, diff, above: notes, .. } => {
                let names = name_rows(name, width);
                let above = names.len() + wrapped_count(notes, width);
                let notes = notes.iter().flat_map(|note| {
                    let style = theme.style(note.token);
                    let parts = text::wrap(&note.text, width.into()).into_iter();
                    parts.map(move |part| Line::styled(note.text[part].replace('−', glyphs.minus), style))
                });
                let names = names.into_iter().map(|name| Line::styled(name, theme.style(Token::Text)));
                let mut rows: Vec<_> = names.chain(notes).skip(range.start).take(range.len()).collect();
                let at = |row: usize| row.saturating_sub(above);
                rows.extend(diff.rows(width, at(range.start)..at(range.end), theme));
                rows
            }
            Self::Command { .. } => self.with_rows(width, |rows| {
                let end = range.end.min(rows.len());
                rows[range.start.min(end)..end].iter().map(|row| row.line(theme, glyphs)).collect()
            }),
            Self::Words { text } => text
                .split('\n')
                .flat_map(|line| {
                    let (indent, ranges) = hanging(line, width);
                    ranges
                        .into_iter()
                        .enumerate()
                        .map(move |(at, part)| format!("{}{}", if at == 0 { "" } else { indent }, &line[part]))
                })
                .skip(range.start)
                .take(range.len())
                .map(|line| Line::styled(line, theme.style(Token::Text)))
                .collect(),
        }
    }

    fn with_rows<T>(&self, width: u16, read: impl FnOnce(&[Row]) -> T) -> T {
        match self {
            Self::Command { command, laid } => {
                let mut laid = laid.borrow_mut();
                if laid.as_ref().is_none_or(|(at, _)| *at != width) {
                    *laid = Some((width, command.rows(width)));
                }
                read(laid.as_ref().map_or(&[], |(_, rows)| rows))
            }
            Self::Edit { .. } | Self::Words { .. } => read(&[]),
        }
    }
}

impl Command {
    fn rows(&self, width: u16) -> Vec<Row> {
        let mut rows = Vec::new();
        for line in self.line.split('\n') {
            let inner = usize::from(width.saturating_sub(2)).max(1);
            for part in text::wrap_exact(line, inner) {
                rows.push(Row(vec![("  ".to_owned(), Tone::Plain), (line[part].to_owned(), Tone::Code)]));
            }
        }
        rows.push(Row(Vec::new()));
        if let Some(opens) = &self.opens {
            rows.extend(wrapped(opens, width, Tone::Warn));
        }
        for facts in whole_facts(&self.facts, width) {
            rows.extend(wrapped(&facts, width, Tone::Plain));
        }
        let open = self.sandbox.contains("NONE") || self.sandbox.contains("OFF");
        rows.extend(wrapped(&self.sandbox, width, if open { Tone::Danger } else { Tone::Plain }));
        if !self.parts.is_empty() {
            rows.push(Row(vec![(parts_head(width), Tone::Faint)]));
        }
        let mut parts: Vec<_> = self.parts.iter().enumerate().collect();
        if width < TABLE_WIDTH {
            // Where not all of them are seen at once the worst is seen first.
            parts.sort_by_key(|(_, part)| std::cmp::Reverse((part.critical, part.risk)));
        }
        for (at, part) in parts {
            rows.extend(part_rows(at + 1, part, width));
        }
        for why in [&self.no_preview, &self.never].into_iter().flatten().filter(|_| width < TABLE_WIDTH) {
            rows.extend(wrapped(why, width, Tone::Plain));
        }
        rows
    }
}

/// Cells of the longest word of risk.
const RISK: usize = 8;

/// Cells of the names of parts and of what decided them, beside number, verdict and risk.
fn columns(width: u16) -> (usize, usize) {
    let room = usize::from(width) - 14 - RISK;
    (room * 2 / 5, room - room * 2 / 5)
}

/// A rule with the heads of the columns.
fn parts_head(width: u16) -> String {
    let rule = |words: &str, cells: usize| format!("{words}{}", "-".repeat(cells.saturating_sub(words.len())));
    if width < TABLE_WIDTH {
        return rule("-- parts ", width.into());
    }
    let (left, right) = columns(width);
    format!("{}{}{}", rule("-- parts ", left + 4 - 1), rule(" decided by ", right + 7), rule(" risk ", RISK + 4))
}

/// `1  cargo test    allow  built-in: reads only    low`, on one row where it fits.
fn part_rows(number: usize, part: &CommandPart, width: u16) -> Vec<Row> {
    let tone = match part.risk {
        Risk::Low => Tone::Plain,
        Risk::Medium => Tone::Warn,
        Risk::High => Tone::Danger,
    };
    let name = text::reveal(&part.text).replace('\n', " ");
    let why = text::reveal(&format!("{}: {}", part.rule, part.reason)).replace('\n', " ");
    let (tone, risk) = if part.critical { (Tone::Danger, "CRITICAL") } else { (tone, part.risk.as_str()) };
    let verdict = part.verdict.as_str();
    if width >= TABLE_WIDTH {
        let (left, right) = columns(width);
        let mut rows = Vec::new();
        let names = exact(&name, left - 1);
        let whys = pieces(&why, right - 2);
        for at in 0..names.len().max(whys.len()) {
            let head = if at == 0 { format!("{number:>2}  ") } else { "    ".to_owned() };
            let word = |text: &'static str, cells: usize| if at == 0 { format!("{text:<cells$}") } else { " ".repeat(cells) };
            rows.push(Row(vec![
                (head, Tone::Faint),
                (pad(names.get(at).map_or("", String::as_str), left), Tone::Code),
                (word(verdict, 7), Tone::Plain),
                (pad(whys.get(at).map_or("", String::as_str), right), Tone::Plain),
                (word(risk, RISK), tone),
            ]));
        }
        return rows;
    }
    let inner = usize::from(width.saturating_sub(4)).max(1);
    let mut rows: Vec<_> = exact(&name, inner)
        .into_iter()
        .enumerate()
        .map(|(at, piece)| {
            Row(vec![(if at == 0 { format!("{number:>2}  ") } else { "    ".to_owned() }, Tone::Faint), (piece, Tone::Code)])
        })
        .collect();
    rows.extend(
        pieces(&format!("{verdict} · {risk} risk · {why}"), inner)
            .into_iter()
            .map(|piece| Row(vec![("    ".to_owned(), Tone::Plain), (piece, tone)])),
    );
    rows
}

impl Row {
    fn line(&self, theme: &Theme, glyphs: &Glyphs) -> Line<'static> {
        let style = |tone| -> Style {
            match tone {
                Tone::Plain => theme.style(Token::Text),
                Tone::Faint => theme.style(Token::Faint),
                Tone::Code => theme.style(Token::Code),
                Tone::Warn => theme.style(Token::Warn),
                Tone::Danger => theme.style(Token::Danger),
            }
        };
        let rule = |text: &str, tone| {
            if tone == Tone::Faint && text.starts_with("--") { text.replace('-', glyphs.rule) } else { text.to_owned() }
        };
        Line::from(self.0.iter().map(|(text, tone)| Span::styled(rule(text, *tone), style(*tone))).collect::<Vec<_>>())
    }
}

fn wrapped(words: &str, width: u16, tone: Tone) -> Vec<Row> {
    pieces(words, width.into()).into_iter().map(|piece| Row(vec![(piece, tone)])).collect()
}

/// What is changed, in full, where the head cuts it.
fn name_rows(name: &Name, width: u16) -> Vec<String> {
    if text::width(&name.words) + name.beside <= width.into() { Vec::new() } else { exact(&name.words, width.into()) }
}

fn wrapped_count(notes: &[Note], width: u16) -> usize {
    notes.iter().map(|note| text::wrap(&note.text, width.into()).len()).sum()
}

/// The rows of a line; what goes on stands a little deeper than where the line began, if that began indented.
fn hanging(line: &str, width: u16) -> (&'static str, Vec<Range<usize>>) {
    const DEEPER: &str = "      ";
    let blanks = line.len() - line.trim_start_matches(' ').len();
    let indent = if blanks == 0 { "" } else { &DEEPER[..(blanks + 2).min(DEEPER.len())] };
    let width = usize::from(width);
    let Some(first) = text::wrap(line, width).into_iter().next() else { return (indent, Vec::new()) };
    let mut rows = vec![first.clone()];
    let rest = line[first.end..].trim_start_matches(' ');
    let start = line.len() - rest.len();
    if !rest.is_empty() {
        let room = width.saturating_sub(indent.len()).max(1);
        rows.extend(text::wrap(rest, room).into_iter().map(|part| start + part.start..start + part.end));
    }
    (indent, rows)
}

/// Facts that stand side by side, put into rows so that none is broken that fits one.
fn whole_facts(facts: &str, width: u16) -> Vec<String> {
    let mut rows: Vec<String> = Vec::new();
    for fact in facts.split("   ").filter(|fact| !fact.is_empty()) {
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

fn pieces(words: &str, cells: usize) -> Vec<String> {
    text::wrap(words, cells.max(1)).into_iter().map(|range| words[range].to_owned()).collect()
}

/// Every character of a command, blanks too.
fn exact(words: &str, cells: usize) -> Vec<String> {
    text::wrap_exact(words, cells.max(1)).into_iter().map(|range| words[range].to_owned()).collect()
}

fn pad(words: &str, cells: usize) -> String {
    format!("{words}{}", " ".repeat(cells.saturating_sub(text::width(words))))
}

fn duration(seconds: u64) -> String {
    if seconds >= 60 && seconds.is_multiple_of(60) { format!("{} min", seconds / 60) } else { format!("{seconds} s") }
}
