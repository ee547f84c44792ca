//! The keys, in place of the transcript.

use super::GUTTER;
use crate::text;
use crate::tui::model::Model;
use crate::tui::theme::Token;
use crate::tui::update::COMMANDS;
use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::text::{Line, Span};

const KEYS: &[(&str, &str)] = &[
    ("enter", "send; queue while a task runs"),
    ("ctrl+enter", "say it with the running step, where the terminal tells it from enter; /steer everywhere"),
    ("alt+up", "take the last message that waits back into the draft"),
    ("ctrl+j", "new line (also alt+enter, shift+enter, \\ then enter)"),
    ("up down", "line, then prompts sent before"),
    ("ctrl+r", "search the prompts sent before"),
    ("esc", "stop the task; again within 3 s: kill what it runs"),
    ("ctrl+c", "clear the draft; empty: stop, then quit"),
    ("ctrl+d", "quit (empty draft, not scrolled up)"),
    ("r", "while a request waits to be sent again: send it now (empty draft)"),
    ("ctrl+l", "another model"),
    ("ctrl+b", "let the agent go on without the command that runs"),
    ("tab", "review what waits for you; complete a command"),
    ("shift+tab", "a stricter mode: auto, auto-edit, ask, plan"),
    ("ctrl+o", "outputs: folded, head and tail, all"),
    ("pgup pgdn", "scroll; home end"),
    ("ctrl+u", "half a page up, ctrl+d down again (empty draft)"),
    ("ctrl+z", "suspend"),
];
/// In a question, where letters decide.
const QUESTION: &[(&str, &str)] = &[
    ("y", "apply or run it, once; first it shows what was not seen yet"),
    ("p", "preview a command: it runs in a copy, you see what changes"),
    ("a", "always allow this: choose a rule; enter keeps it"),
    ("n", "deny"),
    ("N", "deny and say why"),
    ("x", "explain: which rules have a say, and where they stand"),
    ("esc", "later; it stays undecided, tab comes back to it"),
    ("tab", "the next question"),
    ("ctrl+f", "all of the screen for it, and back"),
    ("pgup pgdn", "scroll what is asked about; home end"),
    ("up down", "mark a choice, enter confirms it"),
    ("a letter", "counts alone; inside a word it goes to your draft"),
];
/// Cells of the column of keys; a longer name has a wider column, or on a narrow screen a row of its own.
const NAMES: usize = 11;
/// Below this width words under a long name start where those under a short one do.
const WIDE: u16 = 60;

pub fn draw(model: &mut Model, area: Rect, buffer: &mut Buffer) {
    let rows = rows(model, area.width.saturating_sub(GUTTER));
    let room = usize::from(area.height);
    let top = model.help.unwrap_or(0).min(rows.len().saturating_sub(room));
    model.help = Some(top);
    for (y, line) in (area.y..area.bottom()).zip(rows.iter().skip(top)) {
        buffer.set_line(area.x + GUTTER, y, line, area.width.saturating_sub(GUTTER));
    }
    if top + room < rows.len() {
        buffer.set_stringn(area.x, area.bottom() - 1, model.glyphs.down, 1, model.theme.style(Token::Accent));
    }
}

fn rows(model: &Model, width: u16) -> Vec<Line<'static>> {
    let head = |words: &'static str| Line::styled(words, model.theme.style(Token::Heading));
    let mut rows = vec![head("When aye asks you")];
    let names = if width < WIDE { NAMES } else { names(COMMANDS) };
    rows.extend(QUESTION.iter().flat_map(|entry| entry_rows(model, *entry, names, width)));
    rows.push(head("Keys"));
    rows.extend(KEYS.iter().flat_map(|entry| entry_rows(model, *entry, names, width)));
    rows.push(head("Commands"));
    rows.extend(COMMANDS.iter().flat_map(|entry| entry_rows(model, *entry, names, width)));
    rows
}

/// Cells for the longest name and two blanks behind it.
fn names(entries: &[(&str, &str)]) -> usize {
    entries.iter().map(|(name, _)| text::width(name) + 2).fold(NAMES, usize::max)
}

fn entry_rows(model: &Model, (name, words): (&'static str, &'static str), names: usize, width: u16) -> Vec<Line<'static>> {
    let room = usize::from(width).saturating_sub(names).max(1);
    let alone = text::width(name) + 1 > names;
    let row = |name: &'static str, words: &'static str| {
        Line::from(vec![
            Span::styled(format!("{name:<names$}"), model.theme.style(Token::Accent)),
            Span::styled(words, model.theme.style(Token::Text)),
        ])
    };
    let mut rows = if alone { vec![row(name, "")] } else { Vec::new() };
    let pieces = text::wrap(words, room).into_iter().enumerate();
    rows.extend(pieces.map(|(at, range)| row(if at == 0 && !alone { name } else { "" }, &words[range])));
    rows
}
