//! Rendering of the dialog panel.

use super::amend_field::{AmendField, AmendTarget};
use super::countdown::time_left;
use super::dialog_kind::HintState;
use super::diff_layout::MIN_BESIDE;
use super::disk_state::is_change_visible;
use super::hit_regions::spots;
use super::note::{CHANGED_SHORT, CHANGED_SHORTEST};
use super::rows::{
    CHOICE_LEAD, Choices, PLUS_ENTER, PanelRows, THEN_ENTER, TIGHT, body_width, choice_height, has_prepared_reasons,
    is_more_short, pack_choices, packed_gap, packed_label, packed_lead, packed_suffix, reason_lines, split_choices,
};
use super::summary::risk_token;
use super::{ChoiceAction, Dialog, FEWER_WORDS, Height, REASONS};
use crate::protocol::{Risk, group_digits};
use crate::text;
use crate::tui::diff::BETWEEN_SIGN;
use crate::tui::format::format_count;
use crate::tui::glyphs::Glyphs;
use crate::tui::metrics::GUTTER;
use crate::tui::theme::{Theme, Token};
use crate::tui::typeahead_guard::{self, Confirm};
use ratatui::buffer::Buffer;
use ratatui::layout::{Position, Rect};
use ratatui::text::{Line, Span};
use std::ops::Range;

/// Minimum width of the title in the head, in cells.
const SHORT_TITLE: usize = 8;

/// Context in which a panel is drawn.
#[derive(Debug, Clone, Copy)]
pub(crate) struct DrawContext<'a> {
    pub theme: &'a Theme,
    pub glyphs: &'a Glyphs,
    pub now: u64,
    /// 1-based position of the dialog and the number of dialogs, shown as `1 of 3`.
    pub place: (usize, usize),
    /// First line of the unsent draft.
    pub draft: &'a str,
    /// Whether the dialog has keyboard focus.
    pub is_focused: bool,
}

/// Returns the number of rows that the panel needs, up to `limit`.
pub(crate) fn height(panel: &Dialog, width: u16, limit: u16, has_draft: bool) -> u16 {
    PanelRows::fit(panel, width, limit, has_draft).total()
}

pub(crate) fn draw(panel: &mut Dialog, area: Rect, buffer: &mut Buffer, frame: DrawContext<'_>) -> Option<Position> {
    let rows = PanelRows::fit(panel, area.width, area.height, !frame.draft.is_empty());
    draw_head(panel, rows, area, buffer, frame);
    let (y, field) = match panel.amend_field() {
        Some(writing) => draw_writing(writing, panel, rows, area, buffer, frame),
        None => (draw_body(panel, rows, area, buffer, frame), None),
    };
    let top = area.y + rows.head();
    let mut area = Rect { y, height: area.bottom().saturating_sub(y), ..area };
    if rows.ends_with_rule {
        draw_rule(area, buffer, frame);
        draw_joints(panel, top..y, rows.has_top_rule(), area, buffer);
        area = Rect { y: y + 1, height: area.height.saturating_sub(1), ..area };
    }
    panel.spots = spots(panel, rows, area);
    let cursor = if field.is_some() {
        let line = Line::styled(typed_text_hint(panel), frame.theme.style(Token::Muted));
        buffer.set_line(area.x + GUTTER, area.y, &line, area.width.saturating_sub(GUTTER));
        field
    } else if panel.words.is_some() {
        draw_text_field(panel, rows, area, buffer, frame)
    } else {
        draw_choices(panel, rows, area, buffer, frame)
    };
    draw_draft(area, area.y + rows.answers, buffer, frame);
    cursor
}

fn draw_head(panel: &Dialog, rows: PanelRows, area: Rect, buffer: &mut Buffer, frame: DrawContext<'_>) {
    let title = panel.body.head_rows(body_width(area.width));
    let first = title.first().unwrap_or(&panel.title);
    buffer.set_line(area.x, area.y, &head_line(panel, first, rows, area.width, frame), area.width);
    for (y, part) in (area.y + 1..).zip(title.iter().skip(1)) {
        let line = Line::styled(part.replace('−', frame.glyphs.minus), frame.theme.style(Token::Heading));
        buffer.set_line(area.x + GUTTER, y, &line, area.width - GUTTER);
    }
    if rows.rules {
        let token = match (is_change_visible(panel), panel.critical) {
            (true, _) => Token::Warn,
            (false, true) => Token::Danger,
            (false, false) => Token::Muted,
        };
        for (y, reason) in (area.y + rows.title..).zip(reason_lines(panel, area.width)) {
            buffer.set_line(area.x + GUTTER, y, &Line::styled(reason, frame.theme.style(token)), area.width - GUTTER);
        }
    }
    if rows.hunks > 0 {
        draw_hunks(panel, Rect { y: area.y + rows.title + rows.reason, ..area }, buffer, frame);
    }
    if rows.has_top_rule() {
        draw_rule(Rect { y: area.y + rows.head() - 1, ..area }, buffer, frame);
    }
}

fn draw_rule(area: Rect, buffer: &mut Buffer, frame: DrawContext<'_>) {
    let rule = frame.glyphs.rule.repeat(area.width.into());
    buffer.set_stringn(area.x, area.y, rule, area.width.into(), frame.theme.style(Token::Faint));
}

/// Draws the junctions where a side-by-side diff's separator meets the horizontal lines above and below it.
fn draw_joints(panel: &Dialog, rows: Range<u16>, has_top: bool, area: Rect, buffer: &mut Buffer) {
    let Some(seam) = panel.body.changes().and_then(|diff| diff.separator_column(body_width(area.width))) else { return };
    let x = area.x + GUTTER + seam;
    for (row, rule, joint) in
        [(rows.start, rows.start.checked_sub(1).filter(|_| has_top), "┬"), (rows.end.saturating_sub(1), Some(rows.end), "┴")]
    {
        if let Some(rule) = rule
            && buffer.cell((x, row)).is_some_and(|cell| cell.symbol() == BETWEEN_SIGN)
            && let Some(cell) = buffer.cell_mut((x, rule))
        {
            cell.set_symbol(joint);
        }
    }
}

/// Draws the visible part of the body, starting at its scroll position. Returns the first row below it.
fn draw_body(panel: &mut Dialog, rows: PanelRows, area: Rect, buffer: &mut Buffer, frame: DrawContext<'_>) -> u16 {
    let DrawContext { theme, glyphs, .. } = frame;
    let inner = body_width(area.width);
    let room = usize::from(rows.body);
    let total = panel.body.rows(inner);
    panel.view.top = panel.view.top.min(total.saturating_sub(room));
    // The counter of hidden lines uses the last row.
    let counts = total.saturating_sub(panel.view.top) > room && room > 1;
    let shown = (room - usize::from(counts)).min(total.saturating_sub(panel.view.top));
    panel.note_shown(inner, shown);
    let top = area.y + rows.head();
    let lines = panel.body.lines(inner, panel.view.top..panel.view.top + shown, theme, glyphs);
    for (y, line) in (top..).zip(&lines) {
        buffer.set_line(area.x + GUTTER, y, line, area.width - GUTTER);
    }
    draw_hunk_marks(panel, Rect { y: top, height: shown as u16, ..area }, buffer, frame);
    if counts {
        let left = total - panel.view.top - shown;
        // A sample diff removes no lines.
        let is_change = !panel.kind.shows_sample();
        let removed = if is_change { panel.body.count_removed(inner, panel.view.top + shown..total) } else { 0 };
        let removed = if removed > 0 { format!(", {} removed", group_digits(removed as u64)) } else { String::new() };
        let words = format!("{} {} below{removed} {} pgdn", glyphs.down, format_count(left, "line"), glyphs.dot);
        let line = Line::styled(words, theme.style(Token::Warn));
        buffer.set_line(area.x, top + shown as u16, &line, area.width);
    }
    top + rows.body
}

/// Draws the field in which a hunk, command or plan is edited.
fn draw_writing(
    writing: &AmendField,
    panel: &Dialog,
    rows: PanelRows,
    area: Rect,
    buffer: &mut Buffer,
    frame: DrawContext<'_>,
) -> (u16, Option<Position>) {
    let top = area.y + rows.head();
    let head = match (writing.what, panel.hunks()) {
        (AmendTarget::Hunk, Some(hunks)) => hunks.field_head(),
        (AmendTarget::Plan, _) => "the plan; aye shows what the edited plan allows, and asks you again".to_owned(),
        (AmendTarget::Hunk, None) | (AmendTarget::Command, _) => "the command; aye checks it and asks you again".to_owned(),
    };
    let line = Line::styled(text::truncate(&head, body_width(area.width).into()).into_owned(), frame.theme.style(Token::Heading));
    buffer.set_line(area.x + GUTTER, top, &line, area.width - GUTTER);
    let height = rows.body.saturating_sub(1).max(1);
    let inner = Rect { x: area.x + GUTTER, y: top + 1, width: body_width(area.width), height };
    let cursor = writing.lines.draw(inner.intersection(area), buffer, frame.theme);
    (top + rows.body.max(2), Some(cursor))
}

fn typed_text_hint(panel: &Dialog) -> &'static str {
    match panel.amend_field().map(|writing| writing.what) {
        Some(AmendTarget::Command) => "enter submit · ctrl+j new line · esc cancel",
        Some(AmendTarget::Hunk | AmendTarget::Plan) | None => "ctrl+s (or alt+enter) save · esc cancel",
    }
}

/// Draws each hunk's selection symbol in the gutter, next to the hunk's first row.
fn draw_hunk_marks(panel: &Dialog, area: Rect, buffer: &mut Buffer, frame: DrawContext<'_>) {
    let inner = body_width(area.width);
    let rows = panel.view.top..panel.view.top + usize::from(area.height);
    for (row, sign, is_marked) in panel.hunk_marks(inner, rows) {
        let y = area.y + (row - panel.view.top) as u16;
        let lead = if is_marked { frame.glyphs.fold.folded } else { " " };
        let token = if is_marked { Token::Accent } else { Token::Text };
        buffer.set_stringn(area.x, y, format!("{lead}{sign}"), GUTTER.into(), frame.theme.style(token));
    }
}

/// Draws the files or hunks as tabs that show which ones are selected.
fn draw_hunks(panel: &Dialog, area: Rect, buffer: &mut Buffer, frame: DrawContext<'_>) {
    let Some(hunks) = panel.hunks() else { return };
    let width = usize::from(area.width.saturating_sub(GUTTER));
    let row = hunks.row(width, frame.glyphs);
    let mut x = area.x + GUTTER - 1;
    for (words, is_marked) in row {
        let token = if is_marked { Token::Accent } else { Token::Text };
        buffer.set_stringn(x, area.y, &words, area.right().saturating_sub(x).into(), frame.theme.style(token));
        x += text::width(&words) as u16 + 2;
    }
}

/// Draws the one-line field for a denial reason or other text. Returns the cursor position if the field is open.
fn draw_text_field(panel: &Dialog, rows: PanelRows, area: Rect, buffer: &mut Buffer, frame: DrawContext<'_>) -> Option<Position> {
    let field = panel.words.as_ref()?;
    let label = panel.kind.field_label();
    if rows.answers > 1
        && let Some(hint) = panel.kind.field_hint()
    {
        let words = text::truncate(&hint, body_width(area.width).into()).into_owned();
        let line = Line::styled(words, frame.theme.style(Token::Faint));
        buffer.set_line(area.x + GUTTER, area.y + 1, &line, area.width.saturating_sub(GUTTER));
    }
    if rows.answers > 1 && has_prepared_reasons(panel) {
        let line = Line::styled(prepared_reasons(body_width(area.width)), frame.theme.style(Token::Faint));
        buffer.set_line(area.x + GUTTER, area.y + 1, &line, area.width.saturating_sub(GUTTER));
    }
    let left = GUTTER + text::width(&label) as u16;
    buffer.set_stringn(area.x + GUTTER, area.y, &label, area.width.into(), frame.theme.style(Token::Warn));
    let width = area.width.saturating_sub(left).max(1);
    Some(field.draw(Rect { x: area.x + left, y: area.y, width, height: 1 }, buffer, frame.theme))
}

/// Returns the prepared denial reasons in the longest form that fits into `width` cells. If none fits, returns the
/// shortest.
fn prepared_reasons(width: u16) -> String {
    let row = |reasons: &[&str], lead, gap| {
        let numbered = reasons.iter().enumerate().map(|(at, words)| format!("{}{lead}{words}", at + 1));
        numbered.collect::<Vec<_>>().join(gap)
    };
    let [fewer, fewest] = FEWER_WORDS;
    let rows = [row(&REASONS, "  ", "   "), row(&fewer, " ", "  ")];
    rows.into_iter().find(|row| text::width(row) <= width.into()).unwrap_or_else(|| row(&fewest, " ", "  "))
}

/// Draws the choices. Returns the cursor position if one of them is highlighted.
fn draw_choices(panel: &Dialog, rows: PanelRows, area: Rect, buffer: &mut Buffer, frame: DrawContext<'_>) -> Option<Position> {
    let choices = rows.choices;
    let look = panel.guard.choice_state(frame.now);
    let (own, others) = split_choices(panel, choices);
    // The highlighted choice replaces the others and is shown in full before Enter confirms it.
    if let Some(at) = pressed_choice(look).filter(|at| others.contains(at)) {
        return draw_choice(panel, at, Rect { height: rows.answers, ..area }, buffer, frame);
    }
    let mut cursor = None;
    let mut y = area.y;
    for at in own {
        let height = if choices == Choices::Rows { choice_height(panel, at, area.width) } else { 1 };
        cursor = draw_choice(panel, at, Rect { y, height, ..area }, buffer, frame).or(cursor);
        y += height;
    }
    let is_short = is_more_short(panel, others.clone(), area.width);
    for (at, row) in pack_choices(panel, others, area.width).into_iter().enumerate() {
        buffer.set_line(area.x, y + at as u16, &packed_line(panel, area.width, row, is_short, frame), area.width);
    }
    cursor
}

/// Returns the first row of the head: the title or, if it takes several rows, its first part, and the facts beside it.
fn head_line(panel: &Dialog, title: &str, rows: PanelRows, width: u16, frame: DrawContext<'_>) -> Line<'static> {
    let DrawContext { theme, glyphs, place: (place, count), .. } = frame;
    let separator = format!(" {} ", glyphs.dot);
    let title = title.replace('−', glyphs.minus);
    let facts = panel.facts.replace('−', glyphs.minus).replace('·', glyphs.dot);
    let count = if count > 1 { format!("{place} of {count}") } else { String::new() };
    let room = usize::from(width.saturating_sub(GUTTER));
    let left = time_left(panel, frame.now).map(|(words, short)| (words, if short { Token::Warn } else { Token::Muted }));
    let facts = match is_change_visible(panel) {
        true if rows.rules => (String::new(), Token::Muted),
        true => (CHANGED_SHORT.to_owned(), Token::Warn),
        false => (facts, Token::Muted),
    };
    // Low risk is not shown, so that higher risks stand out.
    let risk = match panel.risk {
        Some(Risk::Low) if panel.is_card() => "",
        // A narrow head shows only `high` instead of `high risk`.
        _ if width < TIGHT => panel.risk_words.trim_end_matches(" risk"),
        _ => panel.risk_words.as_str(),
    };
    let (risk, count) = (risk.to_owned(), if width < TIGHT { String::new() } else { count });
    let mut right = [facts, (risk, risk_token(panel))].to_vec();
    right.extend(left);
    right.push((count, Token::Muted));
    right.retain(|(words, _)| !words.is_empty());
    let wide = |right: &[(String, Token)]| right.iter().map(|(words, _)| text::width(words) + 3).sum::<usize>();
    // The title is more important than the line counts. The risk is always shown.
    if wide(&right) + text::width(&panel.title) > room && !panel.facts.is_empty() && !is_change_visible(panel) {
        right.remove(0);
    }
    // The staleness warning is shortened before the risk or the beginning of the title.
    if is_change_visible(panel)
        && wide(&right) + SHORT_TITLE > room + 1
        && let Some((mark, _)) = right.iter_mut().find(|(words, _)| words == CHANGED_SHORT)
    {
        CHANGED_SHORTEST.clone_into(mark);
    }
    let right_width = wide(&right).saturating_sub(3);
    // Without anything at the right, the title gets the whole row.
    let gap = if right.is_empty() { 0 } else { 2 };
    let title = text::truncate(&title, room.saturating_sub(right_width + gap).max(SHORT_TITLE)).into_owned();
    let gap = room.saturating_sub(text::width(&title) + right_width).max(1);
    let mut spans = vec![
        Span::styled(format!("{} ", glyphs.state.waits), theme.style(Token::Warn)),
        Span::styled(title, theme.style(Token::Heading)),
        Span::raw(" ".repeat(gap)),
    ];
    for (at, (words, token)) in right.into_iter().enumerate() {
        if at > 0 {
            spans.push(Span::styled(separator.clone(), theme.style(Token::Muted)));
        }
        spans.push(Span::styled(words, theme.style(token)));
    }
    Line::from(spans)
}

/// Returns the label that a choice has until all rows have been shown, or `None` if its normal label applies.
fn unseen_label(panel: &Dialog, at: usize) -> Option<String> {
    let choice = &panel.choices[at];
    if !choice.enabled || !choice.act.shows_the_rest() || panel.unseen() == 0 {
        return None;
    }
    match (panel.unseen_for(choice.act), panel.screens_left(choice.act)) {
        (0, _) => Some(format!("{}: not fully shown yet", panel.body.verb().long)),
        (left, 1) => Some(format!("show the last {}", format_count(left, "line"))),
        (_, screens) => Some(format!("show the next screen ({screens} left)")),
    }
}

/// Returns the index of the choice whose key was pressed but not confirmed yet, if any.
fn pressed_choice(look: typeahead_guard::ChoiceState) -> Option<usize> {
    match look {
        typeahead_guard::ChoiceState::Waiting(at, _) | typeahead_guard::ChoiceState::Highlighted(at) => Some(at),
        typeahead_guard::ChoiceState::Arming | typeahead_guard::ChoiceState::Ready => None,
    }
}

/// Draws a choice. Returns the cursor position if the choice is highlighted.
fn draw_choice(panel: &Dialog, at: usize, area: Rect, buffer: &mut Buffer, frame: DrawContext<'_>) -> Option<Position> {
    let DrawContext { theme, glyphs, .. } = frame;
    let look = panel.guard.choice_state(frame.now);
    let choice = &panel.choices[at];
    let hidden = choice.act.is_about_saved_rule() && choice.enabled && panel.unseen() > 0;
    let is_held = pressed_choice(look) == Some(at);
    let words = match unseen_label(panel, at) {
        Some(words) => words,
        None if hidden => format!("{}: available once everything was shown", choice.short.trim_end_matches(" …")),
        None => choice.words.clone(),
    };
    let (lead, token) = match look {
        typeahead_guard::ChoiceState::Arming => (if frame.is_focused { glyphs.arming } else { "" }, Token::Faint),
        typeahead_guard::ChoiceState::Ready
        | typeahead_guard::ChoiceState::Waiting(..)
        | typeahead_guard::ChoiceState::Highlighted(_)
            if !choice.enabled =>
        {
            ("", Token::Faint)
        }
        typeahead_guard::ChoiceState::Waiting(_, step) if is_held => (glyphs.progress_symbol(step), Token::Accent),
        typeahead_guard::ChoiceState::Highlighted(_) if is_held => (glyphs.user, Token::Accent),
        typeahead_guard::ChoiceState::Ready
        | typeahead_guard::ChoiceState::Waiting(..)
        | typeahead_guard::ChoiceState::Highlighted(_)
            if hidden =>
        {
            ("", Token::Faint)
        }
        typeahead_guard::ChoiceState::Ready
        | typeahead_guard::ChoiceState::Waiting(..)
        | typeahead_guard::ChoiceState::Highlighted(_) => ("", Token::Text),
    };
    let tails: &[&str] = match (panel.confirm(at), look) {
        _ if !choice.enabled => &[""],
        (_, typeahead_guard::ChoiceState::Highlighted(_)) if is_held => {
            &["   enter confirm, any other key cancel", "   enter confirm"]
        }
        (_, typeahead_guard::ChoiceState::Waiting(..)) if is_held => &[glyphs.cursor],
        // The head of a rule dialog says that enter saves.
        (Confirm::LetterThenEnter, _) if !hidden && !panel.kind.lists_scopes() => &[THEN_ENTER],
        (Confirm::LetterThenEnter | Confirm::Letter | Confirm::Immediate, _) => &[""],
    };
    let room = usize::from(area.width.saturating_sub(CHOICE_LEAD)).max(1);
    let words = fit_label(&words, tails, room, area.height.into());
    let mut end = None;
    for ((at, part), y) in text::wrap(&words, room).into_iter().enumerate().zip(area.y..area.bottom()) {
        let head = if at == 0 { format!("{lead:<2}{}  ", choice.key.letter) } else { " ".repeat(CHOICE_LEAD.into()) };
        let line = Line::styled(format!("{head}{}", words[part].replace('\u{a0}', " ")), theme.style(token));
        buffer.set_line(area.x, y, &line, area.width);
        end = Some(Position { x: area.x + (line.width() as u16).min(area.width.saturating_sub(1)), y });
    }
    end.filter(|_| is_held)
}

/// Returns the label with the longest suffix that fits into `rows` rows. If none fits, shortens the label: first drops
/// its trailing ` · ` segments, except for a rule's location, and finally truncates it in the middle.
fn fit_label(words: &str, tails: &[&str], room: usize, rows: usize) -> String {
    let fits = |text: &str| text::wrap(text, room).len() <= rows;
    if let Some(whole) = tails.iter().map(|tail| format!("{words}{tail}")).find(|whole| fits(whole)) {
        return whole;
    }
    let tail = tails.last().copied().unwrap_or_default();
    let said: Vec<&str> = words.split(" · ").collect();
    let shorter = (2..said.len()).rev().map(|count| format!("{} · …{tail}", said[..count].join(" · ")));
    if let Some(whole) = shorter.into_iter().find(|whole| fits(whole)) {
        return whole;
    }
    let words = said.get(..2).map_or_else(|| words.to_owned(), |said| said.join(" · "));
    let words = words.as_str();
    let most = (room * rows).saturating_sub(text::width(tail));
    let cut = (8..=most).rev().map(|cells| format!("{}{tail}", text::truncate_middle(words, cells)));
    cut.into_iter().find(|whole| fits(whole)).unwrap_or_else(|| tail.to_owned())
}

/// Returns the row that shows several choices with their short labels.
fn packed_line(panel: &Dialog, width: u16, choices: Range<usize>, is_more_short: bool, frame: DrawContext<'_>) -> Line<'static> {
    let DrawContext { theme, glyphs, .. } = frame;
    let look = panel.guard.choice_state(frame.now);
    let lead = if look == typeahead_guard::ChoiceState::Arming && frame.is_focused { glyphs.arming } else { "" };
    let mut spans = vec![Span::styled(format!("{lead:<2}"), theme.style(Token::Faint))];
    for at in choices.clone() {
        let choice = &panel.choices[at];
        let token = if look == typeahead_guard::ChoiceState::Arming || !choice.enabled { Token::Faint } else { Token::Text };
        let words = packed_label(panel, at);
        let then = match panel.confirm(at) {
            Confirm::LetterThenEnter if choice.enabled && choice.key.confirm == Confirm::Letter => PLUS_ENTER,
            Confirm::LetterThenEnter => packed_suffix(panel, at, width),
            Confirm::Letter | Confirm::Immediate => "",
        };
        if at > choices.start {
            spans.push(Span::raw(packed_gap(width)));
        }
        let key = if token == Token::Text { Token::Accent } else { token };
        spans.push(Span::styled(choice.key.letter.to_string(), theme.style(key)));
        if is_more_short && choice.act == ChoiceAction::Look {
            continue;
        }
        // Without colours, keys are underlined. The spaces after them must not be.
        spans.push(Span::raw(" ".repeat(packed_lead(width).saturating_sub(1))));
        spans.push(Span::styled(format!("{words}{then}"), theme.style(token)));
    }
    Line::from(spans)
}

/// Returns the panel's key hints, most useful first.
pub(crate) fn hints(panel: &Dialog, look: typeahead_guard::ChoiceState, count: usize) -> Vec<&'static str> {
    let is_arming = look == typeahead_guard::ChoiceState::Arming;
    let scrolls = panel.body.rows(panel.view.width) > panel.view.shown;
    let state = HintState { is_arming, has_field: panel.words.is_some(), scrolls };
    if let Some(hints) = panel.kind.key_hints(state) {
        return hints;
    }
    if panel.words.is_some() {
        return vec!["enter deny with this reason", "esc back", "1-4 insert a reason"];
    }
    if let Some(field) = panel.amend_field() {
        return match field.what {
            AmendTarget::Hunk | AmendTarget::Plan => vec!["ctrl+s save", "esc cancel", "enter new line"],
            AmendTarget::Command => vec!["enter submit", "esc cancel", "ctrl+j new line"],
        };
    }
    let esc = match (panel.kind.is_in_front(), panel.is_card()) {
        (true, _) => "esc back",
        (false, true) => "esc decide later",
        (false, false) => "esc close",
    };
    if is_arming {
        return vec!["just opened: keys only highlight", esc];
    }
    let mut hints = vec![esc];
    if scrolls {
        hints.insert(0, "pgup pgdn scroll");
    }
    match panel.view.height {
        Height::Full => hints.insert(0, "ctrl+f smaller"),
        Height::Part if panel.unseen() > 0 || scrolls => {
            hints.insert(0, "ctrl+f full screen");
        }
        Height::Part => {}
    }
    content_hints(panel, &mut hints);
    if panel.kind.lists_scopes() {
        hints.push("enter save and continue");
    } else if count > 1 {
        hints.push("tab next");
    }
    hints.push("up down enter choose");
    hints
}

/// Adds the key hints that depend on the content: its hunks, command parts and diff layout.
fn content_hints(panel: &Dialog, hints: &mut Vec<&'static str>) {
    let has = |act: ChoiceAction| panel.choices.iter().any(|choice| choice.act == act && !choice.is_shown);
    if let Some(hunks) = panel.hunks().filter(|hunks| hunks.can_be_split() && !is_change_visible(panel)) {
        hints.splice(0..0, hunks.hints().iter().copied()).for_each(drop);
    }
    match (panel.body.marked_part(), panel.body.has_parts()) {
        (Some(_), _) => hints.splice(0..0, ["enter open rule", "[ ] part"]).for_each(drop),
        (None, true) => hints.push("[ ] part"),
        (None, false) => {}
    }
    if has(ChoiceAction::EditWhole) {
        hints.push("E edit in $EDITOR");
    }
    if has(ChoiceAction::View) && panel.view.width >= MIN_BESIDE {
        hints.push(if panel.shape(panel.view.width + GUTTER).beside { "v unified" } else { "v side by side" });
    }
    if has(ChoiceAction::Wrap) {
        hints.push(if panel.kind.layout().wraps { "w truncate" } else { "w wrap" });
    }
}

fn draw_draft(area: Rect, y: u16, buffer: &mut Buffer, frame: DrawContext<'_>) {
    if !frame.draft.is_empty() && y < area.bottom() {
        let words = format!("draft: {}", frame.draft);
        let words = text::truncate(&words, body_width(area.width).into());
        buffer.set_stringn(area.x + GUTTER, y, words, area.width.into(), frame.theme.style(Token::Muted));
    }
}
