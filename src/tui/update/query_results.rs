//! Results of queries, passed on to the part of the UI that requested them.

use super::notes::note_problem;
use super::{
    attachments, help, layers, memory, menu, onboarding, overview, review, servers, sessions, tasks, theme_command, tree,
    user_commands, worktree,
};
use crate::protocol::HostResponse;
use crate::text;
use crate::tui::interface::{KeymapFile, SessionTarget};
use crate::tui::layers::{SessionList, TextViewer, Topic};
use crate::tui::model::{UiEffect, UiModel};
use crate::tui::transcript::NoteTone;

/// Applies the host's response to a query.
pub(crate) fn apply_response(model: &mut UiModel, told: HostResponse, now: u64, effects: &mut Vec<UiEffect>) {
    model.screen.dirty = true;
    match told {
        HostResponse::Files { words, files } => menu::on_files_found(model, words, files, now, effects),
        HostResponse::Symbols { words, symbols } => menu::on_symbols_found(model, words, symbols, now, effects),
        HostResponse::Dropped { pasted, files } => attachments::on_dropped(model, &pasted, &files, now),
        HostResponse::Clipboard(clipped) => attachments::on_clipboard(model, clipped, now, effects),
        HostResponse::Commands { commands, notices } => user_commands::set_commands(model, commands, notices),
        HostResponse::Resources { words, resources } => servers::on_resources(model, words, resources),
        HostResponse::Tasks { tasks } => tasks::set(model, tasks, now),
        HostResponse::Memory { proposals, notice, failed } => memory::set(model, proposals, (notice, failed), now),
        HostResponse::Prompts { prompts } => servers::set_prompts(model, prompts),
        HostResponse::Prompt { server, name, text } => servers::insert_prompt_text(model, &server, &name, text, now),
        HostResponse::Sessions { words, all, archived, sessions, here, everywhere, looks_on } => {
            if let Some(list) = model.layers.find_mut::<SessionList>() {
                list.set_sessions(&words, (all, archived), sessions, (here, everywhere), looks_on);
            }
            layers::on_highlight_moved(model, now, effects);
        }
        HostResponse::Session(looked) => {
            if let Some(list) = model.layers.find_mut::<SessionList>() {
                list.set_preview(looked);
            }
        }
        HostResponse::Transcript { session_id, title, text } => {
            // The transcript of a session is shown only if the session is still highlighted.
            let highlighted = model.layers.find::<SessionList>().and_then(SessionList::highlighted);
            if highlighted.is_some_and(|at| at.session_id == session_id) {
                model.toast = None;
                model.layers.push(TextViewer::with_title(&title, &text).opened_by('t'));
            }
        }
        HostResponse::Renamed { session_id, title } => {
            if let Some(list) = model.layers.find_mut::<SessionList>() {
                list.rename(&session_id, &title);
            }
            model.show_toast(format!("session renamed to \"{}\"", text::clean(&title)), now);
        }
        HostResponse::Deleted { session_id } => {
            if let Some(list) = model.layers.find_mut::<SessionList>() {
                list.remove(&session_id);
            }
            layers::on_highlight_moved(model, now, effects);
            model.show_toast("session and its data deleted", now);
        }
        HostResponse::Archived { session_id, archived } => {
            if let Some(list) = model.layers.find_mut::<SessionList>() {
                list.remove(&session_id);
            }
            layers::on_highlight_moved(model, now, effects);
            model.show_toast(if archived { "session archived; tab shows archived sessions" } else { "session unarchived" }, now);
        }
        HostResponse::Branches { branches } => tree::set_branches(model, branches),
        HostResponse::Forked { session_id } => sessions::leave(model, SessionTarget::Session(session_id), effects),
        HostResponse::Worktree { branch, changed, more, line } => worktree::apply_update(model, branch, (changed, more), line),
        HostResponse::Keys { path, text } => help::keys_read(model, KeymapFile { path, text }, now),
        HostResponse::ThemeKept { name, kept } => theme_command::on_saved(model, &name, kept, now),
        HostResponse::Setup(told) => onboarding::apply_answer(model, told, now, effects),
        HostResponse::Review(told) => review::apply(model, told),
        HostResponse::Places { rows } => overview::open(model, Topic::Status(rows)),
        HostResponse::Failed { problem } => {
            if model.has_layer() {
                model.show_toast(text::clean(&problem.one_line()).into_owned(), now);
            } else {
                note_problem(model, &problem, NoteTone::Failure);
            }
        }
    }
}
