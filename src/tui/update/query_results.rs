//! Results of look-ups, each passed to the part of the screen that asked.

use super::{
    attachments, help, menu, onboarding, servers, sessions, status_command, theme_command, tree, user_commands, worktree,
};
use crate::protocol::LookedUp;
use crate::text;
use crate::tui::interface::{KeyFile, SessionTarget};
use crate::tui::model::{Effect, Model};
use crate::tui::sessions::Sessions;
use crate::tui::text_viewer::TextViewer;
use crate::tui::transcript::{Kind, Tone};

/// Applies the result of a lookup.
pub fn told(model: &mut Model, told: LookedUp, now: u64, effects: &mut Vec<Effect>) {
    model.screen.dirty = true;
    match told {
        LookedUp::Files { words, files } => menu::found(model, words, files, now, effects),
        LookedUp::Symbols { words, symbols } => menu::declared(model, words, symbols, now, effects),
        LookedUp::Dropped { pasted, files } => attachments::dropped(model, &pasted, &files, now),
        LookedUp::Clipboard(clipped) => attachments::clipped(model, clipped, now, effects),
        LookedUp::Commands { commands, notices } => user_commands::told(model, commands, notices),
        LookedUp::Resources { words, resources } => servers::offered(model, words, resources),
        LookedUp::Prompts { prompts } => servers::said(model, prompts),
        LookedUp::Prompt { server, name, text } => servers::worded(model, &server, &name, text, now),
        LookedUp::Sessions { words, all, archived, sessions, here, everywhere, looks_on } => {
            if let Some(list) = &mut model.overlays.sessions {
                list.listed(&words, (all, archived), sessions, (here, everywhere), looks_on);
            }
            sessions::look(model, effects);
        }
        LookedUp::Session(looked) => {
            if let Some(sessions) = &mut model.overlays.sessions {
                sessions.look = Some(looked);
            }
        }
        LookedUp::Transcript { session_id, title, text } => {
            // If another session is highlighted by now, the transcript is not shown.
            let is_meant = model.overlays.sessions.as_ref().and_then(Sessions::at).is_some_and(|at| at.session_id == session_id);
            if is_meant {
                model.toast = None;
                model.overlays.reading = Some(TextViewer::session(&title, &text));
            }
        }
        LookedUp::Renamed { session_id, title } => {
            if let Some(sessions) = &mut model.overlays.sessions {
                sessions.renamed(&session_id, &title);
            }
            model.show_toast(format!("session renamed to \"{}\"", text::clean(&title)), now);
        }
        LookedUp::Deleted { session_id } => {
            if let Some(sessions) = &mut model.overlays.sessions {
                sessions.gone(&session_id);
            }
            sessions::look(model, effects);
            model.show_toast("session and its data deleted", now);
        }
        LookedUp::Archived { session_id, archived } => {
            if let Some(sessions) = &mut model.overlays.sessions {
                sessions.gone(&session_id);
            }
            sessions::look(model, effects);
            model.show_toast(if archived { "session archived; tab shows archived sessions" } else { "session unarchived" }, now);
        }
        LookedUp::Branches { branches } => tree::told(model, branches),
        LookedUp::Forked { session_id } => sessions::leave(model, SessionTarget::Session(session_id), effects),
        LookedUp::Worktree { branch, changed, more, line } => worktree::told(model, branch, (changed, more), line),
        LookedUp::Keys { path, text } => help::keys_read(model, KeyFile { path, text }, now),
        LookedUp::ThemeKept { name, kept } => theme_command::kept(model, &name, kept, now),
        LookedUp::Setup(told) => onboarding::told(model, told, now, effects),
        LookedUp::Places { rows } => status_command::told(model, &rows),
        LookedUp::Failed { message } => {
            let text = text::clean(&message).trim_end().to_owned();
            if model.has_list() {
                model.show_toast(text, now);
            } else {
                model.transcript.push(Kind::Note { text, tone: Tone::Failure });
            }
        }
    }
}
