//! Pending dialogs: their row above the composer, and their names in the list.

use super::inbox;
use super::{Dialog, DialogStack, Question};
use crate::protocol::Risk;
use crate::text;
use crate::tui::glyphs::Glyphs;
use crate::tui::metrics::GUTTER;
use crate::tui::theme::Token;

/// Minimum number of cells of the name next to the hints.
const NAME: usize = 12;
/// Minimum number of cells of each of several items; items without room are only counted.
const ITEM: usize = 16;
/// Minimum number of cells of a useful name.
const SHORT: usize = 6;
const NEXT: &[&str] = &["tab next"];
const REVIEW: &[&str] = &["tab to review"];

/// Returns the text of the row and its hints, or `None` if the only dialog is visible anyway.
pub fn strip_words(panels: &DialogStack, width: u16, glyphs: &Glyphs, now: u64) -> Option<(String, &'static [&'static str])> {
    let first = panels.current().filter(|_| panels.inbox().is_none())?;
    let right = if panels.is_open() { NEXT } else { REVIEW };
    if panels.len() > 1 {
        let room = usize::from(width.saturating_sub(GUTTER)).saturating_sub(right[0].len() + 2);
        return Some((several(panels, room), right));
    }
    if panels.is_open() {
        return None;
    }
    if panels.staying().is_some() {
        // The title of the dialog is visible already.
        let words = ["waiting for you", "tab to review", "typing stays in your draft"].join(&format!(" {} ", glyphs.dot));
        let short = ["waiting for you", "tab to review"].join(&format!(" {} ", glyphs.dot));
        let fits = text::width(&words) <= usize::from(width.saturating_sub(GUTTER));
        return Some((if fits { words } else { short }, &[]));
    }
    let name = first.name();
    // The hint stays; the name is shortened first, then the reassurance is dropped.
    let left = first.left(now).map(|(words, _)| format!(" {} {words}", glyphs.dot)).unwrap_or_default();
    let tail = format!(" {} waiting for you{left} {} tab to review", glyphs.dash, glyphs.dot);
    let whole = format!("{name}{tail} (typing stays in your draft)");
    let room = usize::from(width.saturating_sub(GUTTER));
    if text::width(&whole) <= room {
        return Some((whole, &[]));
    }
    let short = format!("{left} {} tab to review", glyphs.dot);
    let tail = if text::width(&tail) + NAME > room { short } else { tail };
    Some((format!("{}{tail}", text::truncate_middle(&name, room.saturating_sub(text::width(&tail)))), &[]))
}

/// Returns the row of several dialogs: `3 waiting for you   1 $ touch one.txt  low   2 $ touch two.txt  low`.
fn several(panels: &DialogStack, room: usize) -> String {
    let head = inbox::waiting(panels.len());
    let room = room.saturating_sub(text::width(&head));
    let shown = (room / (ITEM + 3)).clamp(1, panels.len());
    let mut left = room;
    let mut words = head;
    // The open dialog is among the shown ones.
    let from = (panels.place()).saturating_sub(shown).min(panels.len() - shown);
    for (nth, (at, panel)) in panels.iter().enumerate().skip(from).take(shown).enumerate() {
        let each = (left / (shown - nth)).saturating_sub(3);
        let risk = panel.risk.map_or("", |risk| if panel.critical { "CRITICAL" } else { risk.as_str() });
        let risk = if risk.is_empty() { String::new() } else { format!("  {risk}") };
        let name = format!("{} {}", at + 1, panel.name());
        let (name_room, risk) = match each.saturating_sub(risk.len()) {
            room if room >= SHORT => (room, risk),
            // The risk is kept, unless there is room for nothing else.
            _ if nth == 0 => (each, String::new()),
            _ => break,
        };
        if name_room < SHORT {
            break;
        }
        let item = format!("{}{risk}", text::truncate(&name, name_room));
        left = left.saturating_sub(text::width(&item) + 3);
        words = format!("{words}   {item}");
    }
    words
}

impl Dialog {
    /// Returns a short name of the dialog.
    pub fn name(&self) -> String {
        match &self.question {
            Question::Approval(approval) => match (&approval.command, self.body.counts()) {
                (Some(command), _) => format!("$ {}", text::reveal_name(&command.line)),
                (None, Some(counts)) => format!("{} {counts}", self.title),
                (None, None) => self.title.clone(),
            },
            Question::Keep(_)
            | Question::Reading(_)
            | Question::Interrupted { .. }
            | Question::Trust(_)
            | Question::Mode(_)
            | Question::Held(_)
            | Question::Setup(_)
            | Question::Asking(_)
            | Question::Forget(_)
            | Question::Rewind(_) => self.title.clone(),
        }
    }

    pub fn is_command(&self) -> bool {
        matches!(&self.question, Question::Approval(approval) if approval.command.is_some())
    }

    /// Returns the name with what the user must know before deciding it together with others.
    pub fn whole(&self) -> String {
        match &self.question {
            Question::Approval(_) if !self.is_command() && self.unseen() > 0 => {
                format!("{}: not read yet; enter opens it", self.name())
            }
            _ => self.name(),
        }
    }

    /// Returns why the dialog must be decided individually, if it must.
    pub fn alone(&self) -> Option<String> {
        let Question::Approval(_) = &self.question else {
            return Some("this one is decided individually; enter opens it".to_owned());
        };
        if self.changed_on_disk || !matches!(self.disk, super::Staleness::AsShown) {
            return Some("changed on disk, and the updated diff was not shown; enter opens it".to_owned());
        }
        match (self.critical, self.risk) {
            (true, _) => Some("critical risk is always decided individually; enter opens it".to_owned()),
            (false, Some(Risk::High)) => Some("high risk is always decided individually; enter opens it".to_owned()),
            (false, Some(Risk::Low | Risk::Medium) | None) => None,
        }
    }

    pub fn risk_token(&self) -> Token {
        match (self.critical, self.risk) {
            (true, _) => Token::Critical,
            (false, Some(Risk::High)) => Token::Danger,
            (false, Some(Risk::Medium)) => Token::Warn,
            (false, Some(Risk::Low) | None) => Token::Muted,
        }
    }
}
