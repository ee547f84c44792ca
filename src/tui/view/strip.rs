//! Rows between the transcript and the composer, which show pending dialogs, queued prompts and the current activity.

use crate::protocol::QueuedMessage;
use crate::text;
use crate::tui::approval::BarContext;
use crate::tui::keymap::Focus;
use crate::tui::layers::ModelPicker;
use crate::tui::metrics::GUTTER;
use crate::tui::model::{Activity, UiModel};
use crate::tui::pointer::Click;
use crate::tui::status;
use crate::tui::task::PauseNotice;
use crate::tui::theme::Token;
use crate::tui::update::{commands, goal, planned_steps, retry, review, save_errors};
use crate::tui::{approval, format};
use ratatui::buffer::Buffer;
use ratatui::layout::{Position, Rect};
use ratatui::text::{Line, Span};
use std::borrow::Cow;

/// Minimum width of the text, in cells. Key hints are shortened before the text is.
const WORDS: usize = 24;
/// Maximum number of rows that a notice above the composer takes up.
const MAX_TEXT_ROWS: usize = 3;

pub(crate) struct Row {
    sign: &'static str,
    words: String,
    /// Key hints, longest first. The first one that fits is shown.
    right: &'static [&'static str],
    token: Token,
    /// Whether the row concerns pending dialogs.
    asks: bool,
    click: Option<Click>,
    /// Offset of the cursor in cells, if the row is an input field.
    typed: Option<usize>,
    /// Whether parts separated by dots are dropped from the end before any text is truncated.
    gives: bool,
}

impl Row {
    fn new(sign: &'static str, words: String, token: Token) -> Self {
        Self { sign, words, right: &[], token, asks: false, click: None, typed: None, gives: false }
    }
}

/// Returns what the row about pending dialogs need not repeat or offer.
fn bar_context(model: &mut UiModel, transcript_height: u16, now: u64) -> BarContext {
    let has_layer = model.layers.top().is_some();
    let call = model.dialogs.current().and_then(approval::Dialog::call).filter(|_| !has_layer).cloned();
    let is_tab_taken = model.draft.search.is_some() || (model.menu.is_open() && !has_layer);
    let (transcript, look) = model.transcript_look(now);
    let shows_card = call.is_some_and(|call| transcript.shows_card(&call, transcript_height, look));
    BarContext { is_tab_taken, shows_card }
}

/// Returns the rows at the bottom of `area`, which they share with the transcript.
pub(crate) fn rows(model: &mut UiModel, area: Rect, now: u64) -> Vec<Row> {
    let width = area.width;
    let limit = (area.height / 3).clamp(2, 4).min(area.height);
    let context = bar_context(model, area.height - limit, now);
    let is_retrying = matches!(model.task.activity, Activity::Retrying(_));
    // The message of the provider gets an extra row.
    let limit = usize::from(limit) + usize::from(is_retrying);
    let mut rows = Vec::new();
    let glyphs = model.screen.glyphs;
    rows.extend(unread_row(model, now));
    if let Some((words, right)) = approval::bar_text(&model.dialogs, width, &glyphs, now, context) {
        rows.push(Row { right, asks: true, click: Some(Click::Review), ..Row::new(glyphs.state.waits, words, Token::Warn) });
    }
    rows.extend(prompts(model, width));
    if let Some(words) = save_errors::status_text(model, usize::from(width.saturating_sub(GUTTER))) {
        rows.push(Row::new(glyphs.state.failed, words, Token::Danger));
    }
    // Pending dialogs take precedence over a pause, and the rows of queued prompts already show how to continue.
    let asks = !model.dialogs.is_empty() || !model.task.waiting.is_empty() || model.layers.is_open::<ModelPicker>();
    if let Some(paused) = model.task.paused.as_ref().filter(|_| !asks && !model.is_running()) {
        let (words, right) = pause_text(paused, usize::from(width.saturating_sub(GUTTER)), glyphs.dot);
        rows.push(Row { right, ..Row::new(glyphs.state.note, words, Token::Warn) });
    }
    rows.extend(steps_row(model));
    if let Some(words) = goal::status_row(model, now) {
        rows.push(Row { gives: true, ..Row::new(glyphs.state.note, words, Token::Muted) });
    }
    if let Some(words) = commands::status_row(model) {
        rows.push(Row { right: &["/ps to list"], ..Row::new(glyphs.state.running, words, Token::Muted) });
    }
    if let Some(words) = review::status_row(model, now) {
        rows.push(Row { right: review::stop_hint(model), gives: true, ..Row::new(glyphs.state.running, words, Token::Muted) });
    }
    // The rows about pending dialogs, queued prompts and the retry countdown are not displaced.
    let most = limit.saturating_sub(1 + rows.len()).max(1);
    rows.extend(activity(model, width, most, now));
    if let Some((words, _)) = &model.toast {
        let most = limit.saturating_sub(rows.len()).clamp(1, MAX_TEXT_ROWS);
        let said = wrap_capped(words, usize::from(width.saturating_sub(GUTTER)), most);
        rows.extend(said.into_iter().map(|words| Row::new("", words, Token::Accent)));
    }
    if let (Some(browse), Some(query)) = (&model.browse, search_text(model)) {
        let count = if query.is_empty() { String::new() } else { format!("  {}", browse.count()) };
        let found = query.is_empty() || browse.found.count() > 0;
        let typed = browse.typing.is_some().then(|| 1 + text::width(&query));
        let words = format!("/{query}{count}");
        rows.push(Row { typed, ..Row::new("", words, if found { Token::Accent } else { Token::Warn }) });
    }
    if let Some(search) = &model.draft.search {
        let none = if search.found { String::new() } else { format!(" {} no more matches", glyphs.dash) };
        let words = format!("search history: {}", search.query);
        let typed = Some(text::width(&words));
        rows.push(Row {
            typed,
            ..Row::new("", format!("{words}{none}"), if search.found { Token::Accent } else { Token::Warn })
        });
    }
    // The last rows are the most important ones. Rows about pending dialogs are always shown.
    while rows.len() > limit {
        let first = rows.iter().position(|row| !row.asks).unwrap_or(0);
        rows.remove(first);
    }
    rows
}

/// Returns the row with the number of lines below the view, if the user scrolled up.
fn unread_row(model: &mut UiModel, now: u64) -> Option<Row> {
    let glyphs = model.screen.glyphs;
    let (transcript, look) = model.transcript_look(now);
    let (new, below) = transcript.unread_rows(look)?;
    let words =
        if new > 0 { format::format_count(new, "new line") } else { format!("{} below", format::format_count(below, "line")) };
    let words = format!("{words} {} end jump to bottom", glyphs.dot);
    Some(Row { click: Some(Click::End), ..Row::new(glyphs.down, words, Token::Accent) })
}

/// Returns the row that shows the progress of the planned steps, if there are any.
fn steps_row(model: &UiModel) -> Option<Row> {
    let words = planned_steps::status_row(model)?;
    let row = Row::new(model.screen.glyphs.state.note, words, Token::Muted);
    Some(Row { right: &["/steps to list", "/steps"], click: Some(Click::Steps), ..row })
}

/// Returns the rows that show the current activity, preceded by up to `most` rows of the provider's message.
fn activity(model: &UiModel, width: u16, most: usize, now: u64) -> Vec<Row> {
    let Some((sign, words, right)) = status::activity(model, now) else { return Vec::new() };
    let glyphs = &model.screen.glyphs;
    // An open dialog has keyboard focus and handles Escape itself.
    let right = if model.dialogs.is_open() { &[] } else { right };
    let retrying = match &model.task.activity {
        Activity::Retrying(retry) => Some(retry),
        _ => None,
    };
    let mut rows = Vec::new();
    if let Some(words) = retrying.and_then(|retry| retry::details(retry, glyphs.dot)) {
        let sign = |at| if at == 0 { glyphs.state.note } else { "" };
        let said = wrap_capped(&words, usize::from(width.saturating_sub(GUTTER)), most).into_iter().enumerate();
        rows.extend(said.map(|(at, words)| Row::new(sign(at), words, Token::Muted)));
    }
    // The countdown text is already shortened.
    rows.push(Row { right, gives: retrying.is_none(), ..Row::new(sign, words, Token::Muted) });
    rows
}

/// Wraps text into at most `most` rows. If the text is longer, the last row is truncated.
fn wrap_capped(words: &str, room: usize, most: usize) -> Vec<String> {
    let mut rows: Vec<String> = Vec::new();
    for range in text::wrap(words, room) {
        if rows.len() == most {
            if let Some(last) = rows.last_mut() {
                let rest = format!("{last} {}", &words[range.start..]);
                *last = text::truncate(&rest, room).into_owned();
            }
            break;
        }
        rows.push(words[range].trim_end().to_owned());
    }
    rows
}

/// Returns the reason for a pause, in the longest form that fits, and key hints. The hint on how to continue is never
/// truncated.
fn pause_text(paused: &PauseNotice, room: usize, dot: &str) -> (String, &'static [&'static str]) {
    if let [words] = paused.ways.as_slice() {
        let whole = if words.contains('/') { words.clone() } else { format!("{words} {dot} /continue to resume") };
        return match whole.split_once(" /") {
            Some((words, way)) if text::width(&whole) > room && way.starts_with("continue") => {
                (words.trim_end_matches(dot).trim_end().to_owned(), &["/continue to resume", "/continue"])
            }
            _ => (whole, &[]),
        };
    }
    let fits = paused.ways.iter().find(|words| text::width(words) <= room).or_else(|| paused.ways.last());
    (fits.cloned().unwrap_or_default(), &[])
}

/// Returns the search text in browse mode, if there is any.
fn search_text(model: &UiModel) -> Option<String> {
    let typed = model.browse.as_ref()?.typing.clone();
    typed
        .or_else(|| model.transcript.marks.query.as_ref().map(|query| query.words.clone()))
        .map(|words| text::clean(&words).into_owned())
}

/// Returns the rows that list prompts not yet received by the model, with hints on how to send them.
fn prompts(model: &UiModel, width: u16) -> Vec<Row> {
    let line = |prompt: &str| text::clean_line(prompt);
    let list = |lead: &str, prompts: &[&str]| {
        let between = format!(" {} ", model.screen.glyphs.separator);
        let taken = usize::from(GUTTER) + text::width(lead) + 1 + between.len() * prompts.len().saturating_sub(1);
        let room = (usize::from(width).saturating_sub(taken) / prompts.len().max(1)).max(12);
        let names: Vec<_> = prompts.iter().map(|prompt| text::truncate(&line(prompt), room).into_owned()).collect();
        format!("{lead} {}", names.join(&between))
    };
    let row = |words, token| Row::new(model.screen.glyphs.state.note, words, token);
    let mut rows = Vec::new();
    if !model.is_running() && !model.dialogs.is_empty() && !model.task.sent.is_empty() {
        let sent: Vec<&str> = model.task.sent.iter().map(String::as_str).collect();
        rows.push(row(list("will be sent after you answer:", &sent), Token::Muted));
    }
    let of = |steer: bool| -> Vec<&str> {
        let those = model.task.waiting.iter().filter(|waiting| waiting.steer == steer);
        those.map(|QueuedMessage { text, .. }| text.as_str()).collect()
    };
    let (steering, queued) = (of(true), of(false));
    if !steering.is_empty() {
        rows.push(row(list(&format!("{} for the next step:", steering.len()), &steering), Token::Accent));
    }
    if !queued.is_empty() {
        let how = if model.is_running() { String::new() } else { format!(" {} /continue sends them", model.screen.glyphs.dot) };
        rows.push(row(list(&format!("{} queued{how}:", queued.len()), &queued), Token::Muted));
    }
    rows
}

/// Returns the screen rows that react to clicks, each with the effect of a click.
pub(crate) fn clicks(rows: &[Row], area: Rect) -> Vec<(u16, Click)> {
    (area.y..area.bottom()).zip(rows).filter_map(|(y, row)| Some((y, row.click?))).collect()
}

/// Returns the position of the cursor if one of the rows is an input field.
pub(crate) fn cursor(rows: &[Row], area: Rect) -> Option<Position> {
    let (y, typed) = (area.y..area.bottom()).zip(rows).find_map(|(y, row)| Some((y, row.typed?)))?;
    let x = area.x + GUTTER + u16::try_from(typed).unwrap_or(u16::MAX / 2);
    Some(Position { x: x.min(area.right().saturating_sub(1)), y })
}

pub(crate) fn draw(model: &UiModel, rows: &[Row], area: Rect, buffer: &mut Buffer) {
    let room = usize::from(area.width.saturating_sub(GUTTER));
    for (y, row) in (area.y..area.bottom()).zip(rows) {
        let style = model.screen.theme.style(row.token);
        let shortest = row.right.last().map_or(0, |right| right.len() + 2);
        let words = if row.gives {
            drop_trailing_parts(&row.words, model.screen.glyphs.dot, room.saturating_sub(shortest))
        } else {
            row.words.clone()
        };
        let wide = text::width(&words);
        // The longest hints that leave the text whole are used, or else the shortest ones if enough text remains.
        let fits = |right: &&&str| room >= right.len() + 2 + wide;
        let least = |right: &&str| room >= right.len() + 2 + WORDS.min(wide);
        let right = row.right.iter().find(fits).copied().or_else(|| row.right.last().copied().filter(least)).unwrap_or("");
        let right = match model.keymap.hint(Focus::Composer, right) {
            Some(Cow::Borrowed(right)) => model.keymap.translate_keys(Focus::Composer, right),
            named => named.unwrap_or_default(),
        };
        let room = if right.is_empty() { room } else { room - right.len() - 2 };
        buffer.set_stringn(area.x, y, row.sign, GUTTER.into(), style);
        let line = Line::from(Span::styled(text::truncate(&words, room), style));
        buffer.set_line(area.x + GUTTER, y, &line, room as u16);
        let x = area.right().saturating_sub(right.len() as u16);
        buffer.set_stringn(x, y, &right, right.len(), model.screen.theme.style(Token::Faint));
    }
}

/// Drops parts from the end, as separated by dots, until the text fits. As a last resort, truncates the activity rather
/// than its duration.
fn drop_trailing_parts(words: &str, dot: &str, room: usize) -> String {
    let dot = format!(" {dot} ");
    let mut left: Vec<&str> = words.split(&dot).collect();
    while left.len() > 2 && text::width(&left.join(&dot)) > room {
        left.pop();
    }
    match left[..] {
        [what, since] if text::width(what) + text::width(since) + text::width(&dot) > room => {
            let cells = room.saturating_sub(text::width(since) + text::width(&dot));
            format!("{}{dot}{since}", text::truncate(what, cells))
        }
        _ => left.join(&dot),
    }
}

#[cfg(test)]
mod tests {
    use super::drop_trailing_parts;

    #[test]
    fn activity_parts_are_dropped_one_by_one_and_the_elapsed_time_is_kept_longest() {
        let words = "Running cargo test --workspace · 1 more · 12 s · ↑ 31k ↓ 640 tokens";
        for (room, expected) in
            [(80, words), (60, "Running cargo test --workspace · 1 more · 12 s"), (40, "Running cargo test --workspace · 1 more")]
        {
            assert_eq!(drop_trailing_parts(words, "·", room), expected);
        }
        assert_eq!(drop_trailing_parts("Running cargo test --workspace · 12 s", "·", 27), "Running cargo test … · 12 s");
        assert_eq!(drop_trailing_parts("Responding", "·", 4), "Responding");
    }
}
