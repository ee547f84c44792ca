//! List of pending dialogs. Several low- or medium-risk approvals can be decided together; other dialogs must be opened
//! individually.

use super::summary::{full_name, individual_reason, is_command, name, risk_token};
use super::{Dialog, DrawContext};
use crate::text;
use crate::tui::format::format_count;
use crate::tui::metrics::GUTTER;
use crate::tui::theme::Token;
use crate::tui::typeahead_guard::{ChoiceKey, ChoiceState, Confirm, Guard, GuardInput};
use ratatui::buffer::Buffer;
use ratatui::layout::{Position, Rect};
use ratatui::text::{Line, Span};

/// Index of the approval choice. The choices are in the same order as their keys.
pub(crate) const YES: usize = 0;
/// Number of rows that show the full name of the current dialog.
const DETAIL_ROWS: usize = 2;
/// Minimum list height, in rows, at which the full name is shown.
const ROOMY: u16 = 9;
/// Minimum width of a name, in cells.
const NAME: usize = 12;
/// Milliseconds per minute, the unit in which waiting times are shown.
const MINUTE_MS: u64 = 60_000;

/// List state: the selected dialogs and the current one. Dialogs are identified by number, so the cursor stays on the
/// same dialog as others are added or removed.
#[derive(Debug)]
pub(crate) struct Inbox {
    pub guard: Guard,
    marked: Vec<u64>,
    at: Option<u64>,
    /// Index of the dialog that was current in the last frame.
    place: usize,
    /// Number of the dialog that was current in the last frame, if any.
    drawn: Option<u64>,
    /// Reason why the last key had no effect, if any.
    said: Option<String>,
    top: usize,
    page: usize,
    /// Screen regions of the dialog rows and of the two choices in the last frame.
    list: Rect,
    choices: Rect,
    /// Numbers of the dialogs whose commands did not fit into the last frame.
    cut: Vec<u64>,
}

impl Inbox {
    pub(crate) fn new(guard: Guard, at: Option<u64>) -> Self {
        Self {
            guard,
            marked: Vec::new(),
            at,
            place: 0,
            drawn: None,
            said: None,
            top: 0,
            page: 1,
            list: Rect::ZERO,
            choices: Rect::ZERO,
            cut: Vec::new(),
        }
    }

    /// Returns the keys that approve or deny the selected dialogs.
    pub(crate) fn keys() -> Vec<ChoiceKey> {
        ['y', 'n'].map(|letter| ChoiceKey { letter, confirm: Confirm::LetterThenEnter }).to_vec()
    }

    pub(crate) fn move_by(&mut self, rows: isize, panels: &[Dialog]) {
        let at = self.position(panels).saturating_add_signed(rows).min(panels.len().saturating_sub(1));
        self.point(at, panels);
    }

    pub(crate) fn page(&self) -> isize {
        self.page.max(1).cast_signed()
    }

    /// Makes the dialog at index `place` the current one.
    pub(crate) fn point(&mut self, place: usize, panels: &[Dialog]) {
        self.said = None;
        if let Some(panel) = panels.get(place) {
            self.at = Some(panel.number);
        }
    }

    /// Handles a click by moving to a dialog or highlighting a choice. A click never approves or denies anything.
    pub(crate) fn click(&mut self, place: Position, panels: &[Dialog], now: u64) {
        if self.list.contains(place) && self.guard.is_armed(now) {
            self.guard.step(GuardInput::Other, now);
            self.point(self.top + usize::from(place.y - self.list.y), panels);
        } else if self.choices.contains(place) {
            self.guard.point(usize::from(place.y - self.choices.y), now);
        }
    }

    /// Returns the number of the current dialog, provided the last frame showed it as current.
    pub(crate) fn shown_dialog(&self) -> Option<u64> {
        self.at.filter(|at| Some(*at) == self.drawn)
    }

    /// Returns the index of the current dialog or, if it was removed, of the dialog that took its position.
    fn position(&self, panels: &[Dialog]) -> usize {
        let gone = || self.place.min(panels.len().saturating_sub(1));
        panels.iter().position(|panel| Some(panel.number) == self.at).unwrap_or_else(gone)
    }

    pub(crate) fn turn_mark(&mut self, panels: &[Dialog]) {
        self.said = None;
        let Some(panel) = panels.iter().find(|panel| Some(panel.number) == self.at) else { return };
        if let Some(why) = self.individual_reason(panel) {
            self.said = Some(why);
        } else if let Some(at) = self.marked.iter().position(|marked| *marked == panel.number) {
            self.marked.remove(at);
        } else {
            self.marked.push(panel.number);
        }
    }

    /// Returns the reason why a dialog must be reviewed individually, if any. One such reason is that the list
    /// truncates its command and the user has not opened the dialog.
    fn individual_reason(&self, panel: &Dialog) -> Option<String> {
        let is_hidden = self.cut.contains(&panel.number) && panel.unseen() > 0;
        let hidden = is_hidden.then(|| "this command is not fully shown here; enter opens it".to_owned());
        individual_reason(panel).or(hidden)
    }

    /// Returns the numbers of the selected dialogs that are still pending and can be decided together, in list order.
    /// If there are none, sets a message.
    pub(crate) fn selected_dialogs(&mut self, panels: &[Dialog]) -> Vec<u64> {
        let marked = |panel: &&Dialog| self.marked.contains(&panel.number) && self.individual_reason(panel).is_none();
        let marked: Vec<u64> = panels.iter().filter(marked).map(|panel| panel.number).collect();
        if marked.is_empty() {
            self.said = Some("nothing is selected: space selects, enter opens".to_owned());
        }
        marked
    }

    /// Returns the next time, in milliseconds, at which a pressed key takes effect or a displayed waiting time must be
    /// updated.
    pub(crate) fn deadline(&self, panels: &[Dialog], now: u64) -> Option<u64> {
        let minute = |came: u64| came + (now.saturating_sub(came) / MINUTE_MS + 1) * MINUTE_MS;
        let waits = panels.iter().filter_map(|panel| panel.came).map(minute).min();
        self.guard.deadline(now).into_iter().chain(waits).min()
    }

    /// Returns the key hints, most useful first.
    pub(crate) fn hints(&self, now: u64) -> Vec<&'static str> {
        match self.guard.choice_state(now) {
            ChoiceState::Arming => vec!["just opened: keys only highlight", "esc close"],
            ChoiceState::Highlighted(_) => vec!["enter confirm", "any other key cancel"],
            ChoiceState::Ready | ChoiceState::Waiting(..) => {
                vec!["space select", "enter open", "y n approve or deny selected", "esc close", "up down"]
            }
        }
    }

    /// Returns the number of rows needed to list `panels` dialogs, at most `limit`.
    pub(crate) fn height(panels: usize, limit: u16) -> u16 {
        let rows = panels.clamp(1, 40) as u16 + 4;
        let rows = if limit >= ROOMY { rows + DETAIL_ROWS as u16 } else { rows };
        rows.min(limit)
    }

    pub(crate) fn draw(
        &mut self,
        panels: &[Dialog],
        area: Rect,
        buffer: &mut Buffer,
        frame: DrawContext<'_>,
    ) -> Option<Position> {
        let DrawContext { theme, glyphs, .. } = frame;
        let place = self.position(panels);
        self.at = panels.get(place).map(|panel| panel.number);
        self.marked.retain(|marked| panels.iter().any(|panel| panel.number == *marked));
        let inner = area.width.saturating_sub(GUTTER);
        let set = |buffer: &mut Buffer, y: u16, words: &str, token: Token| {
            let words = text::truncate(words, inner.into());
            buffer.set_stringn(area.x + GUTTER, y, words, inner.into(), theme.style(token));
        };
        let is_roomy = area.height >= ROOMY;
        let row = usize::from(inner).max(1);
        let shows = |at: usize, panel: &Dialog| match name(panel) {
            // A very long name certainly does not fit. Wrapping it in each frame would be slow.
            name if name.len() > 16 * row => false,
            name if is_roomy => text::wrap(&name, row).len() <= DETAIL_ROWS,
            name => text::width(&name) <= cells(at, panel, inner, &format_wait(panel, frame.now)).0,
        };
        let cut = panels.iter().enumerate().filter(|(at, panel)| is_command(panel) && !shows(*at, panel));
        self.cut = cut.map(|(_, panel)| panel.number).collect();
        let draft = u16::from(!frame.draft.is_empty());
        let below = 1 + 2 + if is_roomy { DETAIL_ROWS as u16 } else { 0 };
        let room = area.height.saturating_sub(1 + below + draft).max(1);
        let marked =
            if self.marked.is_empty() { String::new() } else { format!(" {} {} selected", glyphs.dot, self.marked.len()) };
        buffer.set_stringn(area.x, area.y, glyphs.state.waits, GUTTER.into(), theme.style(Token::Warn));
        set(buffer, area.y, &format!("{}{marked}", waiting(panels.len())), Token::Heading);
        self.top =
            self.top.min(panels.len().saturating_sub(room.into())).clamp(place.saturating_sub(usize::from(room) - 1), place);
        let shown = panels.iter().enumerate().skip(self.top).take(room.into());
        for ((at, panel), y) in shown.zip(area.y + 1..area.bottom()) {
            if at == place {
                buffer.set_stringn(area.x, y, glyphs.user, GUTTER.into(), theme.symbol(Token::Accent));
            }
            let line = self.row(at, panel, inner, at == place, frame);
            buffer.set_line(area.x + GUTTER, y, &line, inner);
        }
        let mut y = area.y + 1 + room;
        if is_roomy {
            let words = self.said.clone().or_else(|| panels.get(place).map(full_name)).unwrap_or_default();
            let token = if self.said.is_some() { Token::Warn } else { Token::Muted };
            let parts = text::wrap(&words, usize::from(inner).max(1));
            for (at, part) in parts.iter().take(DETAIL_ROWS).enumerate() {
                let part = if at + 1 == DETAIL_ROWS { part.start..words.len() } else { part.clone() };
                set(buffer, y + at as u16, &words[part], token);
            }
            y += DETAIL_ROWS as u16;
        }
        let rule = glyphs.rule.repeat(area.width.into());
        buffer.set_stringn(area.x, y, rule, area.width.into(), theme.style(Token::Faint));
        self.list = Rect { y: area.y + 1, height: room, ..area };
        self.choices = Rect { y: y + 1, height: 2, ..area };
        let cursor = self.draw_choices(self.choices, buffer, is_roomy, frame);
        if draft > 0 {
            set(buffer, y + 3, &format!("draft: {}", frame.draft), Token::Muted);
        }
        (self.drawn, self.place) = (self.at, place);
        self.page = room.into();
        cursor
    }

    fn row(&self, at: usize, panel: &Dialog, width: u16, is_at: bool, frame: DrawContext<'_>) -> Line<'static> {
        let DrawContext { theme, .. } = frame;
        let mark = match (self.individual_reason(panel), self.marked.contains(&panel.number)) {
            (Some(_), _) => "   ",
            (None, true) => "[x]",
            (None, false) => "[ ]",
        };
        let lead = format!("{mark} {}  ", at + 1);
        let waits = format_wait(panel, frame.now);
        let risk = panel.risk_words.clone();
        let (room, right) = cells(at, panel, width, &waits);
        let name = text::truncate(&name(panel), room).into_owned();
        let gap = room.saturating_sub(text::width(&name));
        let name_token = if is_at { Token::Heading } else { Token::Text };
        let mut spans = vec![
            Span::styled(lead, theme.style(if self.marked.contains(&panel.number) { Token::Accent } else { Token::Muted })),
            Span::styled(name, theme.style(name_token)),
            Span::raw(" ".repeat(gap + 2)),
            Span::styled(risk, theme.style(risk_token(panel))),
        ];
        if right > 0 {
            spans.push(Span::styled(format!("  {waits}"), theme.style(Token::Faint)));
        }
        Line::from(spans)
    }

    fn draw_choices(&self, area: Rect, buffer: &mut Buffer, is_roomy: bool, frame: DrawContext<'_>) -> Option<Position> {
        let DrawContext { theme, glyphs, .. } = frame;
        let look = self.guard.choice_state(frame.now);
        let mut cursor = None;
        for (at, verb) in ["approve", "deny"].into_iter().enumerate() {
            let y = area.y + at as u16;
            let key = Self::keys()[at].letter;
            let what = match self.marked.len() {
                0 => "selected".to_owned(),
                1 => "the selected one".to_owned(),
                count => format!("the {count} selected"),
            };
            let (lead, token, tail) = match look {
                ChoiceState::Arming => (glyphs.arming, Token::Faint, ""),
                ChoiceState::Waiting(held, step) if held == at => (glyphs.progress_symbol(step), Token::Accent, glyphs.cursor),
                ChoiceState::Highlighted(held) if held == at && self.marked.is_empty() => {
                    (glyphs.user, Token::Faint, "   nothing is selected")
                }
                ChoiceState::Highlighted(held) if held == at => (glyphs.user, Token::Accent, "   enter confirm"),
                ChoiceState::Ready | ChoiceState::Waiting(..) | ChoiceState::Highlighted(_) if self.marked.is_empty() => {
                    ("", Token::Faint, "")
                }
                ChoiceState::Ready | ChoiceState::Waiting(..) | ChoiceState::Highlighted(_) => {
                    ("", Token::Text, "   (then enter)")
                }
            };
            let said = if !is_roomy && at == 1 { self.said.clone() } else { None };
            let choice = format!("{lead:<2}{key}  {verb} {what}");
            // The hint is omitted if it does not fit. It is shown again after the key is pressed.
            let tail = if text::width(&choice) + tail.len() > area.width.into() { "" } else { tail };
            let words = said.unwrap_or_else(|| choice + tail);
            let words = text::truncate(&words, area.width.into());
            buffer.set_stringn(area.x, y, &words, area.width.into(), theme.style(token));
            if matches!(look, ChoiceState::Waiting(held, _) | ChoiceState::Highlighted(held) if held == at) {
                cursor = Some(Position { x: area.x + (text::width(&words) as u16).min(area.width.saturating_sub(1)), y });
            }
        }
        cursor
    }
}

/// Formats the number of pending dialogs, such as `3 waiting for you`.
pub(crate) fn waiting(count: usize) -> String {
    format!("{count} waiting for you")
}

/// Returns the widths, in cells, of a row's name and waiting time.
fn cells(at: usize, panel: &Dialog, width: u16, waits: &str) -> (usize, usize) {
    let (width, risk) = (usize::from(width), text::width(&panel.risk_words));
    let right = if width < 2 * NAME + risk + waits.len() + 10 { 0 } else { waits.len() + 2 };
    let lead = "[x]   ".len() + (at + 1).to_string().len();
    (width.saturating_sub(lead + risk + 2 + right).max(NAME), right)
}

fn format_wait(panel: &Dialog, now: u64) -> String {
    let Some(came) = panel.came else { return String::new() };
    match now.saturating_sub(came) / MINUTE_MS {
        0 => "just now".to_owned(),
        minutes if minutes < 60 => format!("{minutes} min ago"),
        minutes => format!("{} h ago", minutes / 60),
    }
}

/// Describes the outcome of approving or denying several dialogs at once.
pub(crate) fn describe_decision(count: usize, yes: bool) -> String {
    format!("{} {}", format_count(count, "request"), if yes { "approved" } else { "denied" })
}
