//! Keys in the prompt history search.

use super::draft::on_draft_changed;
use crate::tui::history_search::HistorySearch;
use crate::tui::input::is_text;
use crate::tui::model::UiModel;
use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};

pub(crate) fn start(model: &mut UiModel) {
    model.draft.search = Some(HistorySearch { query: String::new(), nth: 0, found: true, draft: model.composer.text() });
}

/// Handles a key during the search. Returns whether the key was handled. Any other key ends the search and then has its
/// usual effect.
pub(crate) fn key(model: &mut UiModel, key: KeyEvent, now: u64) -> bool {
    let Some(mut search) = model.draft.search.take() else { return false };
    let ctrl = key.modifiers.contains(KeyModifiers::CONTROL);
    match key.code {
        KeyCode::Char('r') if ctrl => search.nth += usize::from(search.found && !search.query.is_empty()),
        KeyCode::Backspace => {
            search.query.pop();
            search.nth = 0;
        }
        KeyCode::Esc => {
            model.composer.set(&search.draft);
            return true;
        }
        KeyCode::Char('c') if ctrl => {
            model.composer.set(&search.draft);
            return true;
        }
        KeyCode::Enter | KeyCode::Tab => {
            on_draft_changed(model, now);
            return true;
        }
        _ => {
            let Some(letter) = is_text(&key) else {
                on_draft_changed(model, now);
                return false;
            };
            search.query.push(letter);
            search.nth = 0;
        }
    }
    find(model, search);
    true
}

/// Shows the prompt that matches the query at the search's index. If there is none that old, stays at the oldest match.
fn find(model: &mut UiModel, mut search: HistorySearch) {
    let found =
        if search.query.is_empty() { Some(search.draft.clone()) } else { model.composer.find_prompt(&search.query, search.nth) };
    search.found = found.is_some();
    match found {
        Some(text) => model.composer.set(&text),
        None => search.nth = search.nth.saturating_sub(1),
    }
    model.draft.search = Some(search);
}
