//! Formats the output of `aye policy`: colours on a terminal, wrapped rows, and no control characters.

use crate::host::options::Color;
use crate::protocol::{Risk, VerdictKind};
use crate::text;
use std::io::IsTerminal;

/// Width, in terminal cells, used if no limit is known, as for a pipe. Rows are not wrapped in this case.
const ENDLESS: usize = 100_000;
const NARROWEST: usize = 40;
const WIDEST: usize = 140;
/// Maximum number of rows of code shown; any further rows are only counted.
const MAX_ROWS: usize = 40;

#[derive(Debug, Clone, Copy)]
pub(crate) struct OutputStyle {
    pub width: usize,
    colors: bool,
}

#[derive(Debug, Clone, Copy)]
pub(crate) enum OutputTone {
    Good,
    Careful,
    Bad,
    Strong,
    Quiet,
}

impl OutputStyle {
    /// Returns the format to use for stdout.
    pub(crate) fn for_stdout(color: Color) -> Self {
        let seen = std::io::stdout().is_terminal();
        let refused = color == Color::Never || std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
        let width = terminal_size::terminal_size().filter(|_| seen).map(|(width, _)| usize::from(width.0));
        Self { width: width.map_or(ENDLESS, |width| width.clamp(NARROWEST, WIDEST)), colors: seen && !refused }
    }

    #[cfg(test)]
    pub(crate) fn plain(width: usize) -> Self {
        Self { width, colors: false }
    }

    #[cfg(test)]
    pub(crate) fn colored(width: usize) -> Self {
        Self { width, colors: true }
    }

    pub(crate) fn tone(&self, tone: OutputTone, text: &str) -> String {
        let code = match tone {
            OutputTone::Good => 32,
            OutputTone::Careful => 33,
            OutputTone::Bad => 31,
            OutputTone::Strong => 1,
            OutputTone::Quiet => 2,
        };
        if self.colors { format!("\u{1b}[{code}m{text}\u{1b}[0m") } else { text.to_owned() }
    }

    /// Formats a verdict as `allow`, `ask` or `deny`, padded to the given number of terminal cells.
    pub(crate) fn verdict(&self, verdict: VerdictKind, cells: usize) -> String {
        let tone = match verdict {
            VerdictKind::Allow => OutputTone::Good,
            VerdictKind::Ask => OutputTone::Careful,
            VerdictKind::Deny => OutputTone::Bad,
        };
        self.tone(tone, &format!("{:cells$}", verdict.as_str()))
    }

    /// Formats a risk, padded to the given number of terminal cells. Critical risk is marked.
    pub(crate) fn risk(&self, risk: Risk, critical: bool, cells: usize) -> String {
        let text = format!("{:cells$}", if critical { "CRITICAL" } else { risk.as_str() });
        match risk {
            Risk::Low => self.tone(OutputTone::Quiet, &text),
            Risk::Medium => text,
            Risk::High => self.tone(OutputTone::Bad, &text),
        }
    }

    /// Wraps a sentence into rows, leaving room for an indent of the given number of terminal cells.
    pub(crate) fn wrap_sentence(&self, text: &str, indent: usize) -> Vec<String> {
        let text = text::reveal(text).replace('\n', " ");
        let rows = text::wrap(&text, self.width.saturating_sub(indent).max(NARROWEST / 2));
        rows.into_iter().map(|row| text[row].to_owned()).collect()
    }

    /// Wraps code into rows, preserving spaces. Rows beyond `MAX_ROWS` are only counted.
    pub(crate) fn code(&self, text: &str, indent: usize) -> Vec<String> {
        let text = text::expand_tabs(&text::reveal(text)).into_owned();
        let width = self.width.saturating_sub(indent).max(NARROWEST / 2);
        let mut rows: Vec<String> = Vec::new();
        for line in text.lines() {
            rows.extend(text::wrap_exact(line, width).into_iter().map(|row| line[row].to_owned()));
        }
        if rows.len() > MAX_ROWS {
            let rest = rows.len() - MAX_ROWS;
            rows.truncate(MAX_ROWS);
            rows.push(format!("… {rest} more lines"));
        }
        if rows.is_empty() {
            rows.push(String::new());
        }
        rows
    }

    /// Truncates or pads a string to the given number of terminal cells.
    pub(crate) fn cell(text: &str, cells: usize) -> String {
        let shown = text::truncate(text, cells);
        let blanks = cells.saturating_sub(text::width(&shown));
        format!("{shown}{}", " ".repeat(blanks))
    }
}
