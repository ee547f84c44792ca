//! Keys in browse mode, for moving between entries, folding, searching and copying.

use super::{copy_export, help, history_page, pointer};
use crate::tui::browse::{Browse, leave_browse};
use crate::tui::clipboard::Clip;
use crate::tui::input::is_text;
use crate::tui::model::{UiEffect, UiModel};
use crate::tui::transcript::{
    EntryCell, FindQuery, RenderContext, SearchMatches, Selection, SelectionShape, Transcript, TranscriptEntry, find_all,
};
use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};

/// Enters browse mode. Focuses the newest entry or, if the user has scrolled up, the entry at the top of the view.
pub(crate) fn enter(model: &mut UiModel, now: u64) {
    let Some(last) = model.transcript.len().checked_sub(1) else {
        return model.show_toast("nothing to browse yet", now);
    };
    let at = if model.transcript.is_following() { last } else { model.transcript.first_shown() };
    model.toast = None;
    model.browse = Some(Browse::default());
    // Rows name the key that unfolds them, and this key has changed.
    model.transcript.forget_layout();
    choose(model, at, now);
}

/// Handles a key in browse mode. Returns `false` if browse mode is off.
pub(crate) fn key(model: &mut UiModel, key: KeyEvent, now: u64, effects: &mut Vec<UiEffect>) -> bool {
    if model.browse.is_none() {
        return false;
    }
    model.keys.last_key = Some(now);
    if on_search_key(model, key, now) {
        return true;
    }
    model.toast = None;
    if key.modifiers.contains(KeyModifiers::CONTROL) {
        with_control(model, key, now, effects);
        return true;
    }
    let waits = !model.dialogs.is_empty() && !model.is_too_small();
    match key.code {
        KeyCode::Esc if model.transcript.marks.selection.is_some() => end_selection(model),
        KeyCode::Esc if model.transcript.marks.query.is_some() => forget_search(model),
        KeyCode::Esc | KeyCode::Char('q') => leave_browse(&mut model.browse, &mut model.transcript),
        KeyCode::Tab if waits => {
            model.dialogs.open_current(model.keys.last_text);
        }
        KeyCode::Char('?') => help::open(model, "", now, effects),
        KeyCode::PageUp | KeyCode::PageDown if !selects(model) => {
            page(model, key.code == KeyCode::PageDown, 1, now, effects);
        }
        _ if selects(model) => select_key(model, key.code, now, effects),
        _ => on_plain_key(model, key, now, effects),
    }
    true
}

fn with_control(model: &mut UiModel, key: KeyEvent, now: u64, effects: &mut Vec<UiEffect>) {
    match key.code {
        KeyCode::Char('c' | 't') => leave_browse(&mut model.browse, &mut model.transcript),
        KeyCode::Char('z') => effects.push(UiEffect::Suspend),
        KeyCode::Char('u') => page(model, false, 2, now, effects),
        KeyCode::Char('d') => page(model, true, 2, now, effects),
        KeyCode::Char('f') => page(model, true, 1, now, effects),
        KeyCode::Char('b') => page(model, false, 1, now, effects),
        KeyCode::Char('o') => fold_all(model, now, |transcript| transcript.fold_all()),
        KeyCode::Char('s') => pointer::toggle_mouse_capture(model, now, effects),
        KeyCode::Char('v') => select(model, SelectionShape::Columns, now),
        _ => {}
    }
}

fn on_plain_key(model: &mut UiModel, key: KeyEvent, now: u64, effects: &mut Vec<UiEffect>) {
    let at = selected_index(model);
    let last = model.transcript.len().saturating_sub(1);
    match key.code {
        KeyCode::Char('j') | KeyCode::Down => step(model, at, true, now),
        KeyCode::Char('k') | KeyCode::Up => step(model, at, false, now),
        KeyCode::Char('g') | KeyCode::Home => choose(model, 0, now),
        KeyCode::Char('G') | KeyCode::End => {
            choose(model, last, now);
            model.transcript.follow_end();
        }
        KeyCode::Char('}') => to_prompt(model, (at + 1..=last).find(|at| is_prompt(model, *at)), now),
        KeyCode::Char('{') => to_prompt(model, (0..at).rev().find(|at| is_prompt(model, *at)), now),
        KeyCode::Enter => fold(model, at, now),
        KeyCode::Char('o') => fold_all(model, now, |transcript| transcript.fold_tools()),
        KeyCode::Char('O') => fold_all(model, now, |transcript| transcript.fold_everything()),
        KeyCode::Char('/') => {
            if let Some(browse) = &mut model.browse {
                browse.typing = Some(String::new());
                browse.found = SearchMatches::default();
            }
        }
        KeyCode::Char('n') => next(model, true, now),
        KeyCode::Char('N') => next(model, false, now),
        KeyCode::Char('v') => select(model, SelectionShape::Lines, now),
        KeyCode::Char('y') => copy_export::entry(model, at, now, effects),
        KeyCode::Char('c') => copy_export::code_of_entry(model, at, now, effects),
        KeyCode::Char('p') => copy_export::copy_path(model, at, now, effects),
        KeyCode::Char('u') => diff(model, at, now),
        KeyCode::Char('e') => copy_export::edit(model, at, now, effects),
        _ => on_unbound_key(model, key, now),
    }
    history_page::request_older(model, effects);
}

/// Handles a letter that has no binding by showing how to return to the draft.
fn on_unbound_key(model: &mut UiModel, key: KeyEvent, now: u64) {
    if let Some(letter) = is_text(&key) {
        model.show_toast(format!("`{letter}` does nothing while you browse; esc goes back to typing"), now);
    }
}

fn selected_index(model: &UiModel) -> usize {
    model.transcript.marks.chosen.unwrap_or(0).min(model.transcript.len().saturating_sub(1))
}

fn is_prompt(model: &UiModel, at: usize) -> bool {
    model.transcript.entry(at).is_some_and(TranscriptEntry::is_prompt)
}

/// Focuses an entry and scrolls to it.
fn choose(model: &mut UiModel, at: usize, now: u64) {
    let (transcript, look) = model.transcript_look(now);
    transcript.marks.chosen = Some(at);
    transcript.show_entry(at, look);
}

/// Focuses the next or previous entry that has visible rows.
fn step(model: &mut UiModel, at: usize, down: bool, now: u64) {
    let (transcript, look) = model.transcript_look(now);
    let mut to = at;
    loop {
        let next = if down { to + 1 } else { to.wrapping_sub(1) };
        if next >= transcript.len() {
            return choose(model, at, now);
        }
        to = next;
        if !transcript.rows_of(to, look).is_empty() {
            return choose(model, to, now);
        }
    }
}

fn to_prompt(model: &mut UiModel, at: Option<usize>, now: u64) {
    match at {
        Some(at) => choose(model, at, now),
        None => model.show_toast("no more prompts in that direction", now),
    }
}

fn fold(model: &mut UiModel, at: usize, now: u64) {
    if model.transcript.fold_one(at) {
        let (transcript, look) = model.transcript_look(now);
        transcript.show_entry(at, look);
    } else {
        model.show_toast("this entry is fully shown", now);
    }
}

fn fold_all(model: &mut UiModel, now: u64, fold: impl FnOnce(&mut Transcript)) {
    fold(&mut model.transcript);
    let at = selected_index(model);
    choose(model, at, now);
}

/// Scrolls by `1/part` of a page and focuses a visible entry.
fn page(model: &mut UiModel, down: bool, part: usize, now: u64, effects: &mut Vec<UiEffect>) {
    let (transcript, look) = model.transcript_look(now);
    let rows = transcript.page() / part;
    if down {
        transcript.scroll_down(rows, look);
    } else {
        transcript.scroll_up(rows, look);
    }
    if transcript.marks.selection.is_none() {
        let shown = transcript.shown_entries(look);
        let at = transcript.marks.chosen.unwrap_or(0);
        transcript.marks.chosen = Some(at.clamp(shown.start, shown.end.saturating_sub(1).max(shown.start)));
    }
    history_page::request_older(model, effects);
}

/// Unfolds a card that changed files and scrolls to its diff.
fn diff(model: &mut UiModel, at: usize, now: u64) {
    let has_diff = model.transcript.entry(at).and_then(|entry| entry.card()).is_some_and(|card| !card.changes_text().is_empty());
    if !has_diff {
        return model.show_toast("this entry changed no files; /diff shows all changes", now);
    }
    model.transcript.unfold(at);
    choose(model, at, now);
}

/// Handles a key while the user is typing the search text. Returns `false` only if no search text is being typed; keys
/// that mean nothing in a search are ignored.
fn on_search_key(model: &mut UiModel, key: KeyEvent, now: u64) -> bool {
    let Some(browse) = model.browse.as_mut() else { return false };
    let Some(words) = browse.typing.as_mut() else { return false };
    match key.code {
        KeyCode::Enter => {
            browse.typing = None;
            return true;
        }
        KeyCode::Esc => {
            forget_search(model);
            return true;
        }
        KeyCode::Char('c') if key.modifiers.contains(KeyModifiers::CONTROL) => {
            forget_search(model);
            return true;
        }
        KeyCode::Backspace => {
            words.pop();
            // A shorter search text can match more entries.
            browse.found = SearchMatches::default();
        }
        _ => match is_text(&key) {
            Some(letter) => words.push(letter),
            None => return true,
        },
    }
    update_search(model, now);
    true
}

/// Adds pasted text to the search text. Returns `false` if the user is not typing a search text.
pub(crate) fn paste(model: &mut UiModel, pasted: &str, now: u64) -> bool {
    let Some(words) = model.browse.as_mut().and_then(|browse| browse.typing.as_mut()) else { return false };
    words.push_str(&pasted.split_whitespace().collect::<Vec<_>>().join(" "));
    update_search(model, now);
    true
}

fn update_search(model: &mut UiModel, now: u64) {
    let from = selected_index(model);
    let Some(browse) = model.browse.as_mut() else { return };
    let words = browse.typing.clone().unwrap_or_default();
    let query = FindQuery::new(&words);
    browse.found = query.as_ref().map(|query| find_all(&model.transcript, query, &browse.found, from)).unwrap_or_default();
    model.transcript.marks.query = query;
    go_to_found(model, now);
}

fn forget_search(model: &mut UiModel) {
    if let Some(browse) = model.browse.as_mut() {
        browse.typing = None;
        browse.found = SearchMatches::default();
    }
    model.transcript.marks.query = None;
}

fn next(model: &mut UiModel, forward: bool, now: u64) {
    let Some(query) = model.transcript.marks.query.clone() else {
        return model.show_toast("no search yet; start one with /", now);
    };
    let from = selected_index(model);
    let Some(browse) = model.browse.as_mut() else { return };
    // New entries are searched too.
    let at = browse.found.at;
    browse.found = find_all(&model.transcript, &query, &SearchMatches::default(), from);
    browse.found.at = at.min(browse.found.count().saturating_sub(1));
    browse.found.step(forward);
    go_to_found(model, now);
}

/// Focuses the entry that contains the current match, unfolds it if necessary, and scrolls to the match.
fn go_to_found(model: &mut UiModel, now: u64) {
    let Some((entry, nth)) = model.browse.as_ref().and_then(|browse| browse.found.position()) else { return };
    let Some(query) = model.transcript.marks.query.clone() else { return };
    let (transcript, look) = model.transcript_look(now);
    transcript.marks.chosen = Some(entry);
    let shown = transcript.count_shown(entry, &query, look);
    if shown <= nth {
        transcript.unfold(entry);
    }
    match transcript.match_row(entry, nth, &query, look) {
        Some(row) => transcript.show(entry, row..row + 1, look),
        None => transcript.show_entry(entry, look),
    }
}

fn selects(model: &UiModel) -> bool {
    model.browse.as_ref().is_some_and(|browse| browse.selects)
}

/// Starts a selection at the topmost visible line of the focused entry.
fn select(model: &mut UiModel, shape: SelectionShape, now: u64) {
    let at = selected_index(model);
    let (transcript, look) = model.transcript_look(now);
    let first = transcript.first_row_shown(at, look);
    let line = transcript.line_at(at, first, look);
    let cell = if shape == SelectionShape::Columns { 2 } else { 0 };
    let (from, to) =
        (EntryCell { row: line.start, cell: 0 }, EntryCell { row: line.end.saturating_sub(1).max(line.start), cell });
    transcript.marks.selection = Some(Selection {
        entry: at,
        from,
        to: if shape == SelectionShape::Columns { EntryCell { row: line.start, ..to } } else { to },
        shape,
    });
    if let Some(browse) = model.browse.as_mut() {
        browse.selects = true;
    }
}

fn end_selection(model: &mut UiModel) {
    model.transcript.marks.selection = None;
    if let Some(browse) = model.browse.as_mut() {
        browse.selects = false;
    }
}

fn select_key(model: &mut UiModel, code: KeyCode, now: u64, effects: &mut Vec<UiEffect>) {
    let (transcript, look) = model.transcript_look(now);
    let Some(mut selection) = transcript.marks.selection else { return end_selection(model) };
    let last = transcript.last_row(selection.entry, look);
    let lines = selection.shape == SelectionShape::Lines;
    let head = selection.to.row;
    let down = head >= selection.from.row;
    match code {
        KeyCode::Char('j') | KeyCode::Down => selection.to.row = (head + 1).min(last),
        KeyCode::Char('k') | KeyCode::Up => {
            let line = transcript.line_at(selection.entry, head, look);
            selection.to.row =
                if lines && down { line.start } else { head }.saturating_sub(1).max(transcript.gap_rows(selection.entry));
        }
        KeyCode::PageDown => selection.to.row = (head + transcript.page()).min(last),
        KeyCode::PageUp => selection.to.row = head.saturating_sub(transcript.page()).max(transcript.gap_rows(selection.entry)),
        KeyCode::Char('g') | KeyCode::Home => selection.to.row = transcript.gap_rows(selection.entry),
        KeyCode::Char('G') | KeyCode::End => selection.to.row = last,
        KeyCode::Char('h') | KeyCode::Left => selection.to.cell = selection.to.cell.saturating_sub(1),
        KeyCode::Char('l') | KeyCode::Right => selection.to.cell = (selection.to.cell + 1).min(look.width),
        KeyCode::Char('v' | 'q') => return end_selection(model),
        KeyCode::Char('y') | KeyCode::Enter => {
            let text = transcript.selected_text(look);
            end_selection(model);
            return match text {
                Some(text) => effects.push(UiEffect::Copy(Clip::from_text(text))),
                None => model.show_toast("the selection contains no text", now),
            };
        }
        _ => return,
    }
    if lines {
        whole_lines(transcript, &mut selection, look);
    }
    let row = selection.to.row;
    transcript.marks.selection = Some(selection);
    transcript.show(selection.entry, row..row + 1, look);
}

/// Extends a selection to cover whole lines.
fn whole_lines(transcript: &mut Transcript, selection: &mut Selection, look: RenderContext<'_>) {
    let (from, to) = (selection.from.row, selection.to.row);
    let (first, last) = (transcript.line_at(selection.entry, from, look), transcript.line_at(selection.entry, to, look));
    if to < first.start {
        (selection.from.row, selection.to.row) = (first.end.saturating_sub(1), last.start);
    } else {
        (selection.from.row, selection.to.row) = (first.start, last.end.saturating_sub(1));
    }
}
