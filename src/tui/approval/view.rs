//! The panel on the screen.

use super::{Act, Panel, Panels};
use crate::protocol::Risk;
use crate::text;
use crate::tui::glyphs::Glyphs;
use crate::tui::guard::{self, Confirm};
use crate::tui::theme::{Theme, Token};
use ratatui::buffer::Buffer;
use ratatui::layout::{Position, Rect};
use ratatui::text::{Line, Span};

/// From this height on every choice has a row.
const ROOMY: u16 = 13;

/// What a frame knows besides the panel.
#[derive(Debug, Clone, Copy)]
pub struct Frame<'a> {
    pub theme: &'a Theme,
    pub glyphs: &'a Glyphs,
    pub now: u64,
    /// `1 of 3`
    pub place: (usize, usize),
    /// The first line of the draft that waits.
    pub draft: &'a str,
}

/// How many rows the panel wants, at most `limit`.
pub fn height(panel: &Panel, width: u16, limit: u16, has_draft: bool) -> u16 {
    let chrome = 4 + choice_rows(panel, limit) + u16::from(has_draft);
    let body = panel.body.rows(width.saturating_sub(2)).min(usize::from(u16::MAX / 2)) as u16;
    (chrome + body).min(limit)
}

fn choice_rows(panel: &Panel, height: u16) -> u16 {
    if panel.words.is_some() {
        1
    } else if height >= ROOMY {
        panel.choices.len() as u16
    } else {
        1
    }
}

pub fn draw(panel: &mut Panel, area: Rect, buffer: &mut Buffer, frame: Frame<'_>) -> Option<Position> {
    let Frame { theme, glyphs, .. } = frame;
    let inner = area.width.saturating_sub(2);
    // As high as it wants to be, or high enough.
    let whole =
        usize::from(area.height) >= 4 + panel.choices.len() + panel.body.rows(inner) + usize::from(!frame.draft.is_empty());
    let choices = choice_rows(panel, if whole { ROOMY } else { area.height });
    let draft = u16::from(!frame.draft.is_empty());
    let tight = area.height < 9;
    let head = if tight { 1 } else { 2 };
    let rules = if tight { 0 } else { 2 };
    let body_rows = area.height.saturating_sub(head + rules + choices + draft).max(1);
    let total = panel.body.rows(inner);
    panel.scroll = panel.scroll.min(total.saturating_sub(usize::from(body_rows)));
    // The counter takes the last row when something is below.
    let below = total.saturating_sub(panel.scroll) > usize::from(body_rows);
    let shown = usize::from(body_rows - u16::from(below && body_rows > 1)).min(total.saturating_sub(panel.scroll));
    panel.note_shown(inner, shown);

    let mut y = area.y;
    let mut row = |line: &Line<'_>, x: u16| {
        buffer.set_line(area.x + x, y, line, area.width.saturating_sub(x));
        y += 1;
    };
    row(&head_line(panel, area.width, frame), 0);
    if !tight {
        row(&Line::styled(format!("  {}", text::truncate(&panel.reason, inner.into())), theme.style(Token::Muted)), 0);
        row(&Line::styled(glyphs.rule.repeat(area.width.into()), theme.style(Token::Faint)), 0);
    }
    for line in panel.body.lines(inner, panel.scroll..panel.scroll + shown, theme, glyphs) {
        row(&line, 1);
    }
    if below && body_rows > 1 {
        let left = total - panel.scroll - shown;
        let words = format!("{} {left} {} below, pgdn", glyphs.down, if left == 1 { "line" } else { "lines" });
        row(&Line::styled(words, theme.style(Token::Warn)), 1);
    }
    if !tight {
        row(&Line::styled(glyphs.rule.repeat(area.width.into()), theme.style(Token::Faint)), 0);
    }
    if let Some(field) = &panel.words {
        let label = " deny because: ";
        buffer.set_stringn(area.x, y, label, area.width.into(), theme.style(Token::Warn));
        let x = area.x + label.len() as u16;
        let place = Rect { x, y, width: area.width.saturating_sub(label.len() as u16).max(1), height: 1 };
        let cursor = field.draw(place, buffer, theme);
        draft_line(buffer, area, y + 1, frame);
        return Some(cursor);
    }
    let look = panel.guard.look(frame.now);
    let mut cursor = None;
    if choices == 1 {
        let line = choices_in_one(panel, look, frame);
        buffer.set_line(area.x, y, &line, area.width);
        y += 1;
    } else {
        for at in 0..panel.choices.len() {
            let (line, held) = choice_line(panel, at, look, frame);
            if held {
                cursor = Some(Position { x: area.x + (line.width() as u16).min(area.width.saturating_sub(1)), y });
            }
            buffer.set_line(area.x, y, &line, area.width);
            y += 1;
        }
    }
    draft_line(buffer, area, y, frame);
    cursor
}

fn head_line(panel: &Panel, width: u16, frame: Frame<'_>) -> Line<'static> {
    let Frame { theme, glyphs, place: (place, count), .. } = frame;
    let count = (count > 1).then(|| format!("{place} of {count}"));
    let separator = format!(" {} ", glyphs.dot);
    let facts = panel.facts.replace('−', glyphs.minus).replace('·', glyphs.dot);
    let words = [Some(facts), Some(panel.risk_words.clone()), count];
    let words: Vec<_> = words.into_iter().flatten().filter(|words| !words.is_empty()).collect();
    let mut right = words.join(&separator);
    // What is asked matters more than how long it is; the risk always stays.
    if text::width(&right) + text::width(&panel.title) + 5 > usize::from(width) && !panel.facts.is_empty() {
        right = words[1..].join(&separator);
    }
    let right_width = text::width(&right);
    let room = usize::from(width).saturating_sub(right_width + 5);
    let title = text::truncate(&panel.title, room.max(8)).into_owned();
    let gap = usize::from(width).saturating_sub(text::width(&title) + right_width + 3).max(1);
    let token = match (panel.critical, panel.risk) {
        (true, _) => Token::Critical,
        (false, Some(Risk::High)) => Token::Danger,
        (false, Some(Risk::Medium)) => Token::Warn,
        (false, Some(Risk::Low) | None) => Token::Muted,
    };
    Line::from(vec![
        Span::styled(format!("{} ", glyphs.waits), theme.style(Token::Warn)),
        Span::styled(title, theme.style(Token::Heading)),
        Span::raw(" ".repeat(gap)),
        Span::styled(right, theme.style(token)),
    ])
}

/// What the first choice does while something has not been on the screen.
fn unseen_words(panel: &Panel, at: usize) -> Option<String> {
    let left = panel.unseen();
    let lines = if left == 1 { "line" } else { "lines" };
    (panel.choices[at].act == Act::Approve && left > 0).then(|| format!("show the next of {left} {lines} not seen yet"))
}

fn choice_line(panel: &Panel, at: usize, look: guard::Look, frame: Frame<'_>) -> (Line<'static>, bool) {
    let Frame { theme, glyphs, .. } = frame;
    let choice = &panel.choices[at];
    let words = unseen_words(panel, at).unwrap_or_else(|| choice.words.clone());
    let hidden = choice.act == Act::ApproveForSession && panel.unseen() > 0;
    let (lead, token, tail) = match look {
        guard::Look::Arming => (glyphs.arming, Token::Faint, String::new()),
        guard::Look::Waiting(held) if held == at => ("", Token::Accent, format!(" {}", glyphs.cursor)),
        guard::Look::Highlighted(held) if held == at => {
            (glyphs.user, Token::Accent, "   enter confirms, any other key takes it back".to_owned())
        }
        guard::Look::Ready | guard::Look::Waiting(_) | guard::Look::Highlighted(_) if hidden => {
            ("", Token::Faint, ", once all of it was shown".to_owned())
        }
        guard::Look::Ready | guard::Look::Waiting(_) | guard::Look::Highlighted(_) => ("", Token::Text, String::new()),
    };
    let held = matches!(look, guard::Look::Waiting(held) | guard::Look::Highlighted(held) if held == at);
    let then = match (panel.confirm(at), held) {
        (Confirm::LetterThenEnter, false) => "   (then enter)",
        (Confirm::LetterThenEnter, true) | (Confirm::Letter, _) => "",
    };
    let letter = choice.key.letter;
    (Line::styled(format!(" {lead:<2}{letter}  {words}{then}{tail}"), theme.style(token)), held)
}

fn choices_in_one(panel: &Panel, look: guard::Look, frame: Frame<'_>) -> Line<'static> {
    let Frame { theme, glyphs, .. } = frame;
    let mut spans = vec![Span::raw(" ")];
    if look == guard::Look::Arming {
        spans.push(Span::styled(format!("{} ", glyphs.arming), theme.style(Token::Faint)));
    }
    for (at, choice) in panel.choices.iter().enumerate() {
        let held = matches!(look, guard::Look::Waiting(held) | guard::Look::Highlighted(held) if held == at);
        let token = match (look, held) {
            (guard::Look::Arming, _) => Token::Faint,
            (_, true) => Token::Accent,
            (_, false) => Token::Text,
        };
        let words = if unseen_words(panel, at).is_some() { "next" } else { choice.short };
        let then = match (panel.confirm(at), look) {
            (_, guard::Look::Highlighted(highlighted)) if highlighted == at => " (enter)",
            (Confirm::LetterThenEnter, _) => "+enter",
            (Confirm::Letter, _) => "",
        };
        let lead = if held { glyphs.user } else { "" };
        spans.push(Span::styled(format!("{lead}{} {words}{then}", choice.key.letter), theme.style(token)));
        spans.push(Span::raw("  "));
    }
    Line::from(spans)
}

/// What the keys do while the panel has the keyboard, most likely first.
pub fn hints(panel: &Panel, count: usize) -> Vec<&'static str> {
    if panel.words.is_some() {
        return vec!["enter deny with these words", "esc back"];
    }
    let mut hints = vec!["esc later"];
    if panel.body.rows(panel.seen_width) > panel.shown {
        hints.insert(0, "pgup pgdn scroll");
    }
    if count > 1 {
        hints.push("tab next");
    }
    hints.push("up down enter choose");
    hints
}

fn draft_line(buffer: &mut Buffer, area: Rect, y: u16, frame: Frame<'_>) {
    if !frame.draft.is_empty() && y < area.bottom() {
        let words = format!(" draft: {}", frame.draft);
        buffer.set_stringn(
            area.x,
            y,
            text::truncate(&words, area.width.into()),
            area.width.into(),
            frame.theme.style(Token::Muted),
        );
    }
}

/// What waits, for the row above the composer.
pub fn strip_words(panels: &Panels, glyphs: &Glyphs) -> Option<String> {
    let first = panels.current()?;
    if panels.is_open() {
        if panels.len() < 2 {
            return None;
        }
        let names: Vec<_> = panels.iter().enumerate().map(|(at, panel)| format!("{} {}", at + 1, panel.name())).collect();
        return Some(format!("{} {} wait for you   {}", glyphs.waits, panels.len(), names.join("   ")));
    }
    let others = if panels.len() > 1 { format!(" and {} more", panels.len() - 1) } else { String::new() };
    let name = first.name();
    Some(format!(
        "{} {name}{others} {} waits for you {} tab to review (typing stays in your draft)",
        glyphs.waits, glyphs.dash, glyphs.dot
    ))
}

impl Panel {
    /// What it is about, in a few words.
    fn name(&self) -> String {
        match &self.question {
            super::Question::Approval(approval) => match &approval.command {
                Some(command) => format!("$ {}", super::line(&command.line)),
                None => self.title.clone(),
            },
            super::Question::Interrupted { .. } | super::Question::Trust(_) => self.title.clone(),
        }
    }
}
