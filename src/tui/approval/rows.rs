//! Allocation of a panel's rows to body, reason and choices.

use super::choices::WHY;
use super::disk_state::is_change_visible;
use super::note::{CHANGED, CHANGED_SHORT};
use super::{Choice, ChoiceAction, Confirm, Dialog, Height};
use crate::text;
use crate::tui::metrics::GUTTER;
use std::borrow::Cow;
use std::ops::Range;

/// Minimum number of body rows for a layout in which every choice has its own row.
const ROOMY: u16 = 8;
const ENOUGH: u16 = 4;

/// Maximum number of rows that show the reason.
const REASON_ROWS: usize = 3;
/// Maximum number of rows per choice.
const CHOICE_ROWS: usize = 3;
/// Width, in cells, of the space before a choice's label.
pub(crate) const CHOICE_LEAD: u16 = 5;
/// Suffix of a choice that requires two keys. Its no-break space is drawn as a space.
pub(crate) const THEN_ENTER: &str = "   (then\u{a0}enter)";

/// Panel width, in cells, below which choices that share a row are packed more tightly and heads are shortened.
pub(crate) const TIGHT: u16 = 50;
/// Suffix of choices that require two keys, shown if there is room.
pub(crate) const PLUS_ENTER: &str = " +enter";
/// Width, in cells, reserved for `12 more`, which gives the number of screens to show before the choice becomes
/// available.
const MORE_CELLS: usize = 7;

/// Arrangement of the choices in rows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Choices {
    /// Every choice has its own row. In a rule dialog, only the scopes do.
    Rows,
    /// The first choice has its own row; the others share the following rows.
    FirstRow,
    OneRow,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct PanelRows {
    /// Whether there is room for the reason and for horizontal lines.
    pub rules: bool,
    /// Whether a horizontal line is drawn below the body.
    pub ends_with_rule: bool,
    pub body: u16,
    pub choices: Choices,
    /// Number of rows for the choices, or for the line field and the prepared reasons that replace them.
    pub answers: u16,
    /// Number of rows that show the title, and the risk beside its first row.
    pub title: u16,
    /// Number of rows that show the reason.
    pub reason: u16,
    /// Number of rows that show the hunk tabs.
    pub hunks: u16,
    top_rule: u16,
    draft: u16,
}

pub(crate) fn body_width(width: u16) -> u16 {
    width.saturating_sub(GUTTER).max(1)
}

impl PanelRows {
    /// Returns the most spacious layout that fits into `limit` rows.
    pub(crate) fn fit(panel: &Dialog, width: u16, limit: u16, has_draft: bool) -> Self {
        panel.body.set_shape(panel.shape(width));
        let written = panel.amend_field().map_or(0, |writing| writing.lines.rows() + 2);
        let wanted = panel.body.rows(body_width(width)).max(written).clamp(1, usize::from(u16::MAX / 2)) as u16;
        if panel.is_card() {
            return Self::for_card(panel, width, limit, has_draft, wanted);
        }
        let all = [(true, Choices::Rows, ROOMY), (true, Choices::FirstRow, ENOUGH), (true, Choices::OneRow, ENOUGH)];
        // At full-screen height, a long body gets the rows of the choices.
        let ways = match panel.view.height {
            Height::Full if Self::new(panel, width, true, Choices::Rows, has_draft).total() + wanted > limit => &all[1..],
            Height::Full | Height::Part => &all[..],
        };
        ways.iter()
            .map(|(rules, choices, least)| (Self::new(panel, width, *rules, *choices, has_draft), *least))
            .find(|(rows, least)| rows.total() + wanted.min(*least) <= limit)
            .map_or_else(|| Self::new(panel, width, false, Choices::OneRow, has_draft), |(rows, _)| rows)
            .with_body(wanted, limit)
    }

    /// Returns the layout of an approval prompt, in which the body receives all rows that are not needed elsewhere. The
    /// line below the body is drawn only if the whole body fits.
    fn for_card(panel: &Dialog, width: u16, limit: u16, has_draft: bool, wanted: u16) -> Self {
        let with_reason = Self::new(panel, width, true, Choices::OneRow, has_draft);
        let with_rule = Self { ends_with_rule: true, ..with_reason };
        let without = Self::new(panel, width, false, Choices::OneRow, has_draft);
        let fits = |rows: &Self, least: u16| rows.total() + least <= limit;
        let best = [(with_rule, wanted), (with_reason, wanted.min(ENOUGH))].into_iter().find(|(rows, least)| fits(rows, *least));
        best.map_or(without, |(rows, _)| rows).with_body(wanted, limit)
    }

    fn new(panel: &Dialog, width: u16, rules: bool, choices: Choices, has_draft: bool) -> Self {
        let hunks = panel.hunks().is_some_and(|hunks| hunks.can_be_split());
        let shown = panel.shown_choices();
        let answers = match (choices, panel.words.is_some()) {
            _ if panel.amend_field().is_some() => 1,
            (Choices::FirstRow | Choices::OneRow, true) if !has_prepared_reasons(panel) => 1,
            (_, true) => 2,
            (Choices::OneRow, false) => packed_height(panel, 0..shown, width),
            (Choices::FirstRow, false) => 1 + packed_height(panel, 1..shown, width),
            (Choices::Rows, false) => {
                let (own, others) = split_choices(panel, choices);
                own.map(|at| choice_height(panel, at, width)).sum::<u16>() + pack_choices(panel, others, width).len() as u16
            }
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
            title: panel.body.head_rows(body_width(width)).len().max(1) as u16,
            reason,
            hunks: u16::from(hunks),
            draft: u16::from(has_draft),
        }
    }

    fn with_body(self, wanted: u16, limit: u16) -> Self {
        Self { body: wanted.min(limit.saturating_sub(self.total())).max(1), ..self }
    }

    /// Returns the number of rows above the body.
    pub(crate) fn head(self) -> u16 {
        self.title + self.hunks + self.reason + self.top_rule
    }

    /// Returns whether a horizontal line is drawn above the body.
    pub(crate) fn has_top_rule(self) -> bool {
        self.top_rule > 0
    }

    pub(crate) fn total(self) -> u16 {
        self.head() + self.body + u16::from(self.ends_with_rule) + self.answers + self.draft
    }
}

/// Splits the choices into those with their own row and those that share rows, as index ranges. In a rule dialog, every
/// scope has its own row.
pub(crate) fn split_choices(panel: &Dialog, choices: Choices) -> (Range<usize>, Range<usize>) {
    let all = panel.shown_choices();
    let is_scope = |choice: &&Choice| matches!(choice.act, ChoiceAction::Keep(_));
    let own = match (choices, panel.kind.lists_scopes()) {
        (Choices::Rows, true) => panel.choices.iter().take_while(is_scope).count().min(all),
        (Choices::Rows, false) => all,
        (Choices::FirstRow, _) => all.min(1),
        (Choices::OneRow, _) => 0,
    };
    (0..own, own..all)
}

/// Returns whether the user is typing a denial reason. Digit keys then insert the prepared reasons.
pub(crate) fn has_prepared_reasons(panel: &Dialog) -> bool {
    panel.words.is_some() && panel.is_card()
}

/// Returns the height of a choice in rows, ignoring any text that temporarily replaces its label.
pub(crate) fn choice_height(panel: &Dialog, at: usize, width: u16) -> u16 {
    let choice = &panel.choices[at];
    let two = choice.enabled && choice.key.confirm == Confirm::LetterThenEnter && !panel.kind.lists_scopes();
    let tail = if two { THEN_ENTER } else { "" };
    let room = usize::from(width.saturating_sub(CHOICE_LEAD)).max(1);
    text::wrap(&format!("{}{tail}", choice.words), room).len().clamp(1, CHOICE_ROWS) as u16
}

/// Distributes choices with short labels over rows, fitting as many as possible into each row. The choice that denies
/// with a reason is left out if it would take a row of its own.
pub(crate) fn pack_choices(panel: &Dialog, choices: Range<usize>, width: u16) -> Vec<Range<usize>> {
    let is_more_short = is_more_short(panel, choices.clone(), width);
    let rows = pack(panel, choices, width, is_more_short);
    match rows.split_last() {
        Some((last, rest)) if !rest.is_empty() && last.len() == 1 && panel.choices[last.start].key.letter == WHY => rest.to_vec(),
        Some(_) | None => rows,
    }
}

/// Returns whether `?` loses its label, because it would otherwise take a row of its own.
pub(crate) fn is_more_short(panel: &Dialog, choices: Range<usize>, width: u16) -> bool {
    let is_more = |choice: &Choice| choice.act == ChoiceAction::Look;
    let Some(at) = choices.clone().find(|at| is_more(&panel.choices[*at])) else { return false };
    let up_to_more = choices.start..at + 1;
    pack(panel, up_to_more.clone(), width, false).len() > pack(panel, up_to_more, width, true).len()
}

fn pack(panel: &Dialog, choices: Range<usize>, width: u16, is_more_short: bool) -> Vec<Range<usize>> {
    let mut rows: Vec<Range<usize>> = Vec::new();
    let mut used = 0;
    for at in choices {
        let wide = packed_width(panel, at, width, is_more_short);
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

/// Returns the number of rows for choices with short labels. Rule dialogs need room for a highlighted choice, which
/// also names the rule's file and line and takes up all these rows.
fn packed_height(panel: &Dialog, choices: Range<usize>, width: u16) -> u16 {
    let least = if panel.kind.lists_scopes() { CHOICE_ROWS } else { 0 };
    pack_choices(panel, choices, width).len().max(least) as u16
}

/// Returns the width, in cells, of a choice with its short label, including its key and suffix.
pub(crate) fn packed_width(panel: &Dialog, at: usize, width: u16, is_more_short: bool) -> usize {
    if is_more_short && panel.choices[at].act == ChoiceAction::Look {
        return 1;
    }
    let words =
        screens_left_prefix(panel, at).map_or_else(|| text::width(&panel.choices[at].short), |lead| lead.len() + MORE_CELLS);
    words + packed_lead(width) + packed_suffix(panel, at, width).len()
}

/// Returns a choice's short label. While some required rows are unseen, the first affected choice shows the number of
/// remaining screens instead.
pub(crate) fn packed_label(panel: &Dialog, at: usize) -> Cow<'_, str> {
    let choice = &panel.choices[at];
    match screens_left_prefix(panel, at) {
        Some(lead) => format!("{lead}{} more", panel.screens_left(choice.act)).into(),
        None => choice.short.as_ref().into(),
    }
}

/// Returns the text to put before the number of remaining screens, or `None` if the choice does not show the number.
/// Only the first choice that scrolls to unseen rows shows it. If its key is a digit, the prefix is a word that
/// separates the key from the number.
fn screens_left_prefix(panel: &Dialog, at: usize) -> Option<&'static str> {
    let says_it = |choice: &Choice| choice.enabled && choice.act.shows_the_rest() && panel.screens_left(choice.act) > 0;
    let lead = if panel.choices[at].key.letter.is_ascii_digit() { "see " } else { "" };
    (panel.choices.iter().position(says_it) == Some(at)).then_some(lead)
}

/// Returns the gap between choices that share a row.
pub(crate) fn packed_gap(width: u16) -> &'static str {
    if width < TIGHT { "  " } else { "   " }
}

/// Returns the width, in cells, of a choice's key and the spaces after it.
pub(crate) fn packed_lead(width: u16) -> usize {
    if width < TIGHT { 2 } else { 3 }
}

/// Returns the suffix of a choice if it requires two keys, or else an empty string. On narrow screens, rule dialogs
/// omit the suffix.
pub(crate) fn packed_suffix(panel: &Dialog, at: usize, width: u16) -> &'static str {
    let choice = &panel.choices[at];
    let two = choice.enabled && choice.key.confirm == Confirm::LetterThenEnter;
    if two && (width >= TIGHT || !panel.kind.lists_scopes()) { PLUS_ENTER } else { "" }
}

/// Wraps the reason to at most three rows. If it does not fit, the last row ends with an ellipsis.
pub(crate) fn reason_lines(panel: &Dialog, width: u16) -> Vec<String> {
    let room = usize::from(body_width(width));
    let reason = panel.reason.as_str();
    let ranges = if panel.shows_reason() && !reason.is_empty() { text::wrap(reason, room) } else { Vec::new() };
    let shown = ranges.iter().take(REASON_ROWS).enumerate();
    let row = |(at, range): (usize, &std::ops::Range<usize>)| match at + 1 {
        REASON_ROWS if ranges.len() > REASON_ROWS => text::truncate(&reason[range.start..], room).into_owned(),
        _ => reason[range.clone()].to_owned(),
    };
    let mut lines: Vec<String> = shown.map(row).collect();
    if is_change_visible(panel) {
        // Replaces an existing row, so that nothing moves when the warning appears or disappears.
        let words = if text::width(CHANGED) <= room { CHANGED } else { CHANGED_SHORT };
        match lines.first_mut() {
            Some(first) => words.clone_into(first),
            None => lines.push(words.to_owned()),
        }
    }
    lines
}
