//! How the rows of a panel are shared out, from its width and the rows there are.

use super::staleness::{CHANGED, CHANGED_SHORT};
use super::{Choice, Confirm, Dialog, Height, Question};
use crate::text;
use crate::tui::view::GUTTER;
use std::borrow::Cow;
use std::ops::Range;

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

/// Below this width choices that share a row stand closer.
pub const TIGHT: u16 = 50;
/// Behind a choice that takes two keys, where there is room.
pub const PLUS_ENTER: &str = " +enter";
/// `12 more`: screens to be seen before the choice is one.
const MORE_CELLS: usize = 7;

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
    /// Whether the reason is shown, and a rule above the body.
    pub rules: bool,
    /// Whether a rule stands below the body.
    pub ends_with_rule: bool,
    pub body: u16,
    pub choices: Choices,
    /// Rows of the choices, or of the field and the ready words in their place.
    pub answers: u16,
    /// Rows of the reason.
    pub reason: u16,
    /// The row of the hunks.
    pub hunks: u16,
    top_rule: u16,
    draft: u16,
}

pub fn body_width(width: u16) -> u16 {
    width.saturating_sub(GUTTER).max(1)
}

impl Rows {
    /// The best way that fits into `limit` rows. With the total it comes to as the limit it comes to the same.
    pub fn of(panel: &Dialog, width: u16, limit: u16, has_draft: bool) -> Self {
        panel.body.set_shape(panel.shape(width));
        let written = panel.writing.as_ref().map_or(0, |writing| writing.lines.rows() + 2);
        let wanted = panel.body.rows(body_width(width)).max(written).clamp(1, usize::from(u16::MAX / 2)) as u16;
        if panel.is_card() {
            return Self::of_card(panel, width, limit, has_draft, wanted);
        }
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

    /// The card of a call: every row is for what is asked about; a rule below it only where all of it fits.
    fn of_card(panel: &Dialog, width: u16, limit: u16, has_draft: bool, wanted: u16) -> Self {
        let with_reason = Self::new(panel, width, true, Choices::OneRow, has_draft);
        let with_rule = Self { ends_with_rule: true, ..with_reason };
        let without = Self::new(panel, width, false, Choices::OneRow, has_draft);
        let fits = |rows: &Self, least: u16| rows.total() + least <= limit;
        let best = [(with_rule, wanted), (with_reason, wanted.min(ENOUGH))].into_iter().find(|(rows, least)| fits(rows, *least));
        best.map_or(without, |(rows, _)| rows).with_body(wanted, limit)
    }

    fn new(panel: &Dialog, width: u16, rules: bool, choices: Choices, has_draft: bool) -> Self {
        let hunks = panel.hunks.as_ref().is_some_and(|hunks| hunks.can_be_split());
        let shown = panel.shown_choices();
        let answers = match (choices, panel.words.is_some()) {
            _ if panel.writing.is_some() => 1,
            (Choices::FirstRow | Choices::OneRow, true) if !has_ready_words(panel) => 1,
            (_, true) => 2,
            (Choices::OneRow, false) => packed_height(panel, 0..shown, width),
            (Choices::FirstRow, false) => 1 + packed_height(panel, 1..shown, width),
            (Choices::Rows, false) => (0..shown).map(|at| choice_height(panel, at, width)).sum(),
        };
        let reason = if rules { reason_lines(panel, width).len() as u16 } else { 0 };
        let (top_rule, ends_with_rule) = (u16::from(rules && !panel.is_card()), rules && !panel.is_card());
        Self {
            rules,
            top_rule,
            ends_with_rule,
            body: 0,
            choices,
            answers,
            reason,
            hunks: u16::from(hunks),
            draft: u16::from(has_draft),
        }
    }

    fn with_body(self, wanted: u16, limit: u16) -> Self {
        Self { body: wanted.min(limit.saturating_sub(self.total())).max(1), ..self }
    }

    /// Rows above the body.
    pub fn head(self) -> u16 {
        1 + self.reason + self.top_rule
    }

    /// Whether a rule stands above the body.
    pub fn begins_with_rule(self) -> bool {
        self.top_rule > 0
    }

    pub fn total(self) -> u16 {
        self.head() + self.body + u16::from(self.ends_with_rule) + self.hunks + self.answers + self.draft
    }
}

/// Whether a reason is typed, which a digit can fill in.
pub fn has_ready_words(panel: &Dialog) -> bool {
    panel.words.is_some() && !matches!(panel.question, Question::Keep(_) | Question::Setup(_) | Question::Asking(_))
}

/// Rows of a choice, whatever stands there now in place of its words.
pub fn choice_height(panel: &Dialog, at: usize, width: u16) -> u16 {
    let choice = &panel.choices[at];
    let tail = if choice.enabled && choice.key.confirm == Confirm::LetterThenEnter { THEN_ENTER } else { "" };
    let room = usize::from(width.saturating_sub(CHOICE_LEAD)).max(1);
    text::wrap(&format!("{}{tail}", choice.words), room).len().clamp(1, CHOICE_ROWS) as u16
}

/// Choices in few words, as many on a row as there is room for.
pub fn packed(panel: &Dialog, choices: Range<usize>, width: u16) -> Vec<Range<usize>> {
    let mut rows: Vec<Range<usize>> = Vec::new();
    let mut used = 0;
    for at in choices {
        let wide = packed_wide(panel, at, width);
        match rows.last_mut() {
            Some(row) if used + packed_gap(width).len() + wide <= usize::from(width) => {
                row.end = at + 1;
                used += packed_gap(width).len() + wide;
            }
            Some(_) | None => {
                rows.push(at..at + 1);
                used = usize::from(GUTTER) + wide;
            }
        }
    }
    rows
}

/// Where a rule is kept, its file and line are read on the row of the choice: then that has all rows of them.
fn packed_height(panel: &Dialog, choices: Range<usize>, width: u16) -> u16 {
    let least = if matches!(panel.question, Question::Keep(_)) { CHOICE_ROWS } else { 0 };
    packed(panel, choices, width).len().max(least) as u16
}

/// Cells of a choice in few words, with its letter and what stands behind it.
pub fn packed_wide(panel: &Dialog, at: usize, width: u16) -> usize {
    let words = packed_more(panel, at).map_or_else(|| text::width(&panel.choices[at].short), |lead| lead.len() + MORE_CELLS);
    words + packed_lead(width) + packed_tail(panel, at, width).len()
}

/// A choice in few words. While something was not on the screen the first one says how much of it.
pub fn packed_words(panel: &Dialog, at: usize) -> Cow<'_, str> {
    let choice = &panel.choices[at];
    match packed_more(panel, at) {
        Some(lead) => format!("{lead}{} more", panel.screens_left(choice.act)).into(),
        None => choice.short.as_ref().into(),
    }
}

/// What stands before the count of what was not seen, which the first choice says for all; nothing where it has its own words. Behind a
/// digit the count needs a word.
fn packed_more(panel: &Dialog, at: usize) -> Option<&'static str> {
    let says_it = |choice: &Choice| choice.act.shows_the_rest() && panel.screens_left(choice.act) > 0;
    let lead = if panel.choices[at].key.letter.is_ascii_digit() { "see " } else { "" };
    (panel.choices.iter().position(says_it) == Some(at)).then_some(lead)
}

/// Between choices on one row.
pub fn packed_gap(width: u16) -> &'static str {
    if width < TIGHT { "  " } else { "   " }
}

/// Cells of the letter and the blanks behind it.
pub fn packed_lead(width: u16) -> usize {
    if width < TIGHT { 2 } else { 3 }
}

/// What stands behind a choice that takes two keys; a narrow screen says it on the row of the choice.
pub fn packed_tail(panel: &Dialog, at: usize, width: u16) -> &'static str {
    let choice = &panel.choices[at];
    let two = choice.enabled && choice.key.confirm == Confirm::LetterThenEnter;
    if two && (width >= TIGHT || !matches!(panel.question, Question::Keep(_))) { PLUS_ENTER } else { "" }
}

/// Why it asks, wrapped; the last row says that there was more.
pub fn reason_lines(panel: &Dialog, width: u16) -> Vec<String> {
    let room = usize::from(body_width(width));
    let reason = panel.reason.as_str();
    let ranges = if panel.shows_reason() && !reason.is_empty() { text::wrap(reason, room) } else { Vec::new() };
    let shown = ranges.iter().take(REASON_ROWS).enumerate();
    let row = |(at, range): (usize, &std::ops::Range<usize>)| match at + 1 {
        REASON_ROWS if ranges.len() > REASON_ROWS => text::truncate(&reason[range.start..], room).into_owned(),
        _ => reason[range.clone()].to_owned(),
    };
    let mut lines: Vec<String> = shown.map(row).collect();
    if panel.says_changed() {
        // In the place of a row that was there: nothing moves when it comes and goes.
        let words = if text::width(CHANGED) <= room { CHANGED } else { CHANGED_SHORT };
        match lines.first_mut() {
            Some(first) => words.clone_into(first),
            None => lines.push(words.to_owned()),
        }
    }
    lines
}
