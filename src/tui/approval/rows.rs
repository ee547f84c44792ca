//! How the rows of a panel are shared out, from its width and the rows there are.

use super::{Confirm, Height, Panel};
use crate::text;
use crate::tui::view::GUTTER;

/// Rows of the body from which on every choice has a row of its own, and the first one has.
const ROOMY: u16 = 8;
const ENOUGH: u16 = 4;

/// Rows of the reason, at most.
const REASON_ROWS: usize = 3;
/// Rows of one choice, at most.
const CHOICE_ROWS: usize = 3;
/// What stands before the words of a choice.
pub const CHOICE_LEAD: u16 = 5;
pub const THEN_ENTER: &str = "   (then enter)";

/// How the choices stand.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Choices {
    /// One on each row.
    Rows,
    /// The first on a row, the others on the next.
    FirstRow,
    OneRow,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Rows {
    /// Whether the reason and the rules around the body are shown.
    pub rules: bool,
    pub body: u16,
    pub choices: Choices,
    /// Rows of the choices, or of the field and the ready words in their place.
    pub answers: u16,
    /// Rows of the reason.
    pub reason: u16,
    draft: u16,
}

pub fn body_width(width: u16) -> u16 {
    width.saturating_sub(GUTTER).max(1)
}

impl Rows {
    /// The best way that fits into `limit` rows. With the total it comes to as the limit it comes to the same.
    pub fn of(panel: &Panel, width: u16, limit: u16, has_draft: bool) -> Self {
        let wanted = panel.body.rows(body_width(width)).clamp(1, usize::from(u16::MAX / 2)) as u16;
        let all = [(true, Choices::Rows, ROOMY), (true, Choices::FirstRow, ENOUGH), (true, Choices::OneRow, ENOUGH)];
        // With all of the screen every row is for what is asked about.
        let ways = match panel.height {
            Height::Full if Self::new(panel, width, true, Choices::Rows, has_draft).total() + wanted > limit => &all[1..],
            Height::Full | Height::Part => &all[..],
        };
        ways.iter()
            .map(|(rules, choices, least)| (Self::new(panel, width, *rules, *choices, has_draft), *least))
            .find(|(rows, least)| rows.total() + wanted.min(*least) <= limit)
            .map_or_else(|| Self::new(panel, width, false, Choices::OneRow, has_draft), |(rows, _)| rows)
            .with_body(wanted, limit)
    }

    fn new(panel: &Panel, width: u16, rules: bool, choices: Choices, has_draft: bool) -> Self {
        let answers = match (choices, panel.words.is_some()) {
            (Choices::Rows, true) => 2,
            (Choices::FirstRow | Choices::OneRow, true) | (Choices::OneRow, false) => 1,
            (Choices::FirstRow, false) => 2.min(panel.choices.len() as u16),
            (Choices::Rows, false) => (0..panel.choices.len()).map(|at| choice_height(panel, at, width)).sum(),
        };
        let reason = if rules { reason_lines(panel, width).len() as u16 } else { 0 };
        Self { rules, body: 0, choices, answers, reason, draft: u16::from(has_draft) }
    }

    fn with_body(self, wanted: u16, limit: u16) -> Self {
        Self { body: wanted.min(limit.saturating_sub(self.total())).max(1), ..self }
    }

    /// Rows above the body.
    pub fn head(self) -> u16 {
        if self.rules { 2 + self.reason } else { 1 }
    }

    pub fn total(self) -> u16 {
        self.head() + self.body + u16::from(self.rules) + self.answers + self.draft
    }
}

/// Rows of a choice, whatever stands there now in place of its words.
pub fn choice_height(panel: &Panel, at: usize, width: u16) -> u16 {
    let choice = &panel.choices[at];
    let tail = if choice.enabled && choice.key.confirm == Confirm::LetterThenEnter { THEN_ENTER } else { "" };
    let room = usize::from(width.saturating_sub(CHOICE_LEAD)).max(1);
    text::wrap(&format!("{}{tail}", choice.words), room).len().clamp(1, CHOICE_ROWS) as u16
}

/// Why it asks, wrapped; the last row says that there was more.
pub fn reason_lines(panel: &Panel, width: u16) -> Vec<String> {
    let room = usize::from(body_width(width));
    let ranges = text::wrap(&panel.reason, room);
    let shown = ranges.iter().take(REASON_ROWS).enumerate();
    let row = |(at, range): (usize, &std::ops::Range<usize>)| match at + 1 {
        REASON_ROWS if ranges.len() > REASON_ROWS => text::truncate(&panel.reason[range.start..], room).into_owned(),
        _ => panel.reason[range.clone()].to_owned(),
    };
    shown.map(row).collect()
}
