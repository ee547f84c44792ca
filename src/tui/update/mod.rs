//! State transitions of the UI: a message updates the model and produces effects.

mod activity;
mod agents;
mod amend;
mod artifacts;
mod attachments;
mod browse;
mod call_events;
mod changes;
pub(crate) mod commands;
pub(crate) mod compaction;
mod copy_export;
mod dialog;
mod dialog_text;
mod draft;
mod editor;
mod elicitation;
mod events;
mod failures;
mod findings;
pub(crate) mod focus;
pub(crate) mod goal;
mod greeting;
pub(crate) mod help;
mod history_page;
mod inbox;
mod keys;
mod layers;
mod live_events;
mod lock;
mod memory;
mod menu;
mod menu_keys;
mod models;
pub(crate) mod mouse;
mod notes;
mod notifications;
mod onboarding;
mod overview;
mod palette;
pub(crate) mod planned_steps;
mod pointer;
mod policy;
mod price;
mod query_results;
pub(crate) mod queue;
mod quit;
mod readiness;
mod recovery;
mod replay;
mod requested_list;
mod response_events;
pub(crate) mod retry;
pub(crate) mod review;
mod rewind;
pub(crate) mod save_errors;
mod search;
mod servers;
mod sessions;
mod slash;
mod spending;
mod stats;
mod status_command;
mod streaming;
mod task_events;
mod tasks;
mod terminal;
mod theme_command;
mod tree;
mod user_commands;
pub(crate) mod user_shell;
pub(crate) mod worktree;

#[cfg(test)]
mod tests;

pub(crate) use dialog::{answer, show_new};
pub(crate) use elicitation::{fill_line, is_filling, on_picked as pick_asking};
pub(crate) use keys::on_enter as submit;
pub(crate) use rewind::{close_dialog as leave_rewind, plan as plan_rewind};
pub(crate) use servers::asks_for_list;
pub(crate) use tree::open_branch as go_to_branch;

use self::draft::{on_draft_changed, save_draft};
use self::focus::InputTarget;
use self::layers::LayerOutcome;
use super::approval::trust_dialog;
use super::input::{UiInput, is_text};
use super::interface::{ExitReason, ModelAccess, Start, StartupQuestion};
use super::keymap::Focus;
use super::model::{Activity, Editable, EditorText, UiEffect, UiModel};
use super::transcript::{NoteTone, TranscriptEntryKind};
use super::typeahead_guard::GuardInput;
use crate::protocol::{Command, Event, EventKind, Problem};
use crate::text;
use crossterm::event::{KeyCode, KeyEvent};
use ratatui::layout::Size;

/// Message that updates the UI model.
#[derive(Debug)]
pub(crate) enum Msg {
    Input(UiInput),
    Event(Box<Event>),
    Start(Box<Start>),
    /// Dialog shown before a session is opened, or instead of opening one.
    Ahead(Box<StartupQuestion>),
    Resize(Size),
    /// Text that was edited, and the outcome: the new text, or the editor's error.
    Edited(Box<EditorText>, Result<String, String>),
    Resumed,
    /// Text that was typed before the terminal was handed over to another program but had not been read yet.
    TypedBefore(String),
    /// One of the model's deadlines has passed.
    Time,
    /// The process received this signal and must exit.
    Signal(i32),
    /// Startup failed. The loader reports the reason.
    NoStart,
    /// An effect is complete. The text is shown to the user.
    Done(String),
    /// The session has ended and will send no more events.
    SessionGone,
}

/// Applies a message to the model and returns the effects to carry out. `now` is the number of milliseconds since
/// startup.
pub(crate) fn update(model: &mut UiModel, msg: Msg, now: u64) -> Vec<UiEffect> {
    let mut effects = Vec::new();
    let had_focus = model.dialogs.is_open();
    // Events and the passing of time do not affect text that is being typed.
    let typed = !matches!(msg, Msg::Event(_) | Msg::Time);
    match msg {
        Msg::Input(input) => on_input(model, input, now, &mut effects),
        Msg::Event(event) => on_event(model, *event, now, &mut effects),
        Msg::Start(start) => on_start(model, *start, now, &mut effects),
        Msg::Ahead(ahead) => {
            model.screen.dirty = true;
            match *ahead {
                StartupQuestion::Held(held) => lock::ask(model, held, now),
                StartupQuestion::Choose => sessions::choose(model, &mut effects),
            }
        }
        Msg::Resize(size) => {
            model.screen.size = size;
            model.screen.dirty = true;
            // A dialog that cannot be read must not be answered.
            if model.is_too_small() {
                model.dialogs.close();
            }
            on_unsettled(model, now, &mut effects);
        }
        Msg::Edited(edit, outcome) => {
            model.screen.dirty = true;
            match edit.what {
                Editable::Draft => editor::on_editor_closed(model, outcome, now),
                Editable::Proposed { .. } => amend::on_edited(model, *edit, outcome, now, &mut effects),
                Editable::Memory { .. } => memory::on_edited(model, &edit, outcome, now, &mut effects),
            }
        }
        Msg::Resumed => {
            model.screen.dirty = true;
            worktree::request_if_changed(model, &mut effects);
            on_unsettled(model, now, &mut effects);
        }
        Msg::TypedBefore(words) => {
            if !words.is_empty() {
                model.composer.insert(&words);
                model.screen.dirty = true;
                on_draft_changed(model, now);
            }
        }
        Msg::Time => on_time(model, now, &mut effects),
        Msg::Signal(number) => {
            save_draft(model, &mut effects);
            effects.push(UiEffect::Send(Command::Quit));
            effects.push(UiEffect::Exit(ExitReason::Signal(number)));
        }
        Msg::Done(words) => copy_export::report_done(model, &words, now),
        Msg::NoStart => effects.push(UiEffect::Exit(ExitReason::Closed)),
        Msg::SessionGone => on_session_gone(model, now, &mut effects),
    }
    let orphaned = model.dialogs.flush_guard(now);
    if !orphaned.is_empty() {
        // The text was typed into a dialog that no longer exists.
        dialog_text::to_draft(model, &orphaned, now);
    }
    if had_focus && !model.dialogs.is_open() {
        model.keys.left_prompt = Some(now);
    }
    sessions::refresh_if_filter_changed(model, &mut effects);
    if typed {
        menu::refresh(model, &mut effects);
    }
    notifications::send_new(model, &mut effects);
    effects
}

fn on_event(model: &mut UiModel, event: Event, now: u64, effects: &mut Vec<UiEffect>) {
    model.screen.dirty = true;
    memory::request_after(model, &event.kind, effects);
    match event.kind {
        EventKind::LookedUp(told) => query_results::apply_response(model, told, now, effects),
        EventKind::ServersChanged { .. } => {
            live_events::apply(model, event, now);
            menu::on_servers_changed(model, effects);
        }
        _ => live_events::apply(model, event, now),
    }
    overview::refresh(model);
    effects.extend(model.draft.to_edit.take().map(UiEffect::EditFile));
    worktree::request_update(model, effects);
}

fn on_session_gone(model: &mut UiModel, now: u64, effects: &mut Vec<UiEffect>) {
    if model.options.closes_with_session {
        return effects.push(UiEffect::Exit(ExitReason::Quit));
    }
    model.screen.dirty = true;
    let hint = model.keymap.translate_keys(Focus::Composer, "press ctrl+d to quit").into_owned();
    let problem = Problem::new("the session has ended; the conversation is saved").hint(hint);
    model.transcript.push(TranscriptEntryKind::Problem { problem, tone: NoteTone::Failure });
    model.reviews.running = None;
    model.set_activity(Activity::Idle, now);
}

/// Returns the effects to carry out at startup, before the first message arrives.
pub(crate) fn initial_effects(model: &mut UiModel) -> Vec<UiEffect> {
    let mut effects = Vec::new();
    if model.options.sets_up {
        model.startup.wants_setup = true;
        onboarding::request_setup(&mut effects);
    }
    effects
}

fn on_input(model: &mut UiModel, input: UiInput, now: u64, effects: &mut Vec<UiEffect>) {
    match input {
        UiInput::Key(key) => {
            model.screen.dirty = true;
            // The selection with the mouse was only needed for copying.
            if model.browse.is_none() {
                model.transcript.marks.selection = None;
            }
            let quit_pending = model.keys.quit_pending;
            on_key(model, key, now, effects);
            // Only two presses in a row quit.
            if model.keys.quit_pending == quit_pending {
                model.keys.quit_pending = None;
            }
            // Any key shows that the user is active.
            model.keys.last_key = Some(now);
            if is_text(&key).is_some() {
                model.keys.last_text = Some(now);
            }
        }
        UiInput::Paste(pasted) => {
            model.screen.dirty = true;
            model.keys.quit_pending = None;
            let asks = model.dialogs.is_open();
            let pasted = text::clean(&pasted);
            let target = focus::target(model);
            let to_layer = !matches!(target, InputTarget::Inbox | InputTarget::Dialog);
            if !asks && attachments::on_paste(model, &pasted, now, effects) {
                return;
            }
            let is_taken = to_layer && layers::paste(model, &pasted, now, effects);
            if !is_taken && !asks && !model.has_layer() && browse::paste(model, &pasted, now) {
                return;
            }
            // A layer above the dialogs hides the dialog that would receive the text.
            if !is_taken && target != InputTarget::LayerAboveDialogs {
                dialog::on_paste(model, &pasted, now);
            }
            model.keys.last_key = Some(now);
        }
        UiInput::Mouse(event) => mouse::mouse(model, event, now, effects),
        UiInput::FocusIn => {
            model.screen.pointer.focused = Some(now);
            notifications::focus(model, true, effects);
            // The user may have changed files in another window.
            worktree::request_if_changed(model, effects);
            terminal::ask_again(model, effects);
            on_unsettled(model, now, effects);
        }
        UiInput::FocusOut => notifications::focus(model, false, effects),
        UiInput::Fence => {
            model.screen.dirty = true;
            if model.dialogs.on_fence_answered() {
                dialog::stimulus(model, GuardInput::Fence, now, effects);
            }
        }
        // The main loop handles changes of the size.
        UiInput::Size(..) => {}
        UiInput::Background(red, green, blue) => terminal::background(model, (red, green, blue)),
        UiInput::Answer(answer) => terminal::on_reply(model, answer, effects),
        UiInput::Closed => effects.push(UiEffect::Exit(ExitReason::Closed)),
    }
}

/// Translates a key and passes it to whatever has keyboard focus.
fn on_key(model: &mut UiModel, pressed: KeyEvent, now: u64, effects: &mut Vec<UiEffect>) {
    let key = focus::translate_key(model, pressed);
    let is_above = focus::target(model) == InputTarget::LayerAboveDialogs;
    if is_above && layers::key(model, key, now, effects) == LayerOutcome::Handled {
        return;
    }
    let key = focus::translate_key(model, pressed);
    if is_text(&pressed).is_some() && is_text(&key).is_none() {
        // A text key means that the user is typing. A dialog that this key opens must know the time.
        model.keys.last_text = Some(now);
    }
    if key.code == KeyCode::F(1) {
        return help::open(model, "", now, effects);
    }
    match focus::target(model) {
        InputTarget::Inbox => inbox::key(model, key, now, effects),
        InputTarget::Dialog => dialog::key(model, key, now, effects),
        InputTarget::LayerAboveDialogs | InputTarget::Layer | InputTarget::Conversation => {
            dispatch_key(model, pressed, key, now, effects);
        }
    }
}

/// Passes a key to the topmost layer or, if no layer is open, to the transcript or composer.
fn dispatch_key(model: &mut UiModel, pressed: KeyEvent, key: KeyEvent, now: u64, effects: &mut Vec<UiEffect>) {
    match layers::key(model, key, now, effects) {
        LayerOutcome::Handled => {}
        // The view below has its own key bindings.
        LayerOutcome::Closed => on_key(model, pressed, now, effects),
        LayerOutcome::NoLayer => {
            if !browse::key(model, key, now, effects) {
                keys::key(model, key, now, effects);
            }
        }
    }
}

fn on_start(model: &mut UiModel, start: Start, now: u64, effects: &mut Vec<UiEffect>) {
    model.screen.dirty = true;
    lock::forget(model);
    model.info.header = start.header.clone();
    model.info.task_check.clone_from(&start.task_check);
    if let Some(cwd) = &start.cwd {
        model.options.cwd.clone_from(cwd);
    }
    let resumed = !start.history.is_empty();
    model.info.older.before = start.older;
    model.transcript.push(TranscriptEntryKind::Greeting(greeting::lines(model, &start, resumed)));
    theme_command::check(model);
    help::check_keys(model);
    worktree::begin(model, effects);
    for event in start.history {
        replay::replay(model, event, now);
    }
    if resumed {
        recovery::report_unfinished(model);
        replay::after_replay(model);
    }
    if let Some(lacks) = model.options.terminal.lacks.as_ref().filter(|_| !resumed && !model.screen.in_lines) {
        let text = text::clean(lacks).into_owned();
        model.transcript.push(TranscriptEntryKind::Note { text, tone: NoteTone::Plain });
    }
    if let ModelAccess::NoKey { message, .. } = &start.model_access {
        let way = if model.screen.in_lines {
            "Type /setup to add an API key.".to_owned()
        } else {
            let key = model.keymap.current_name(Focus::Composer, "ctrl+l");
            format!("Press {key} to choose a model and enter its API key.")
        };
        let words = format!("{}\n{way}", text::clean(message).trim_end());
        model.startup.no_key_note = Some(words.clone());
        model.transcript.push(TranscriptEntryKind::Note { text: words, tone: NoteTone::Warning });
    }
    if let ModelAccess::ReadOnly { holder } = &start.model_access {
        let words = format!("read-only: {}. You can read the conversation; nothing is sent or saved", text::clean(holder));
        model.transcript.push(TranscriptEntryKind::Note { text: words, tone: NoteTone::Warning });
    }
    let ready = start.model_access == ModelAccess::Ready;
    model.info.model_access = Some(start.model_access);
    if ready {
        // The status row shows the remaining budget.
        effects.push(UiEffect::Send(Command::ShowBudget));
    }
    if let Some(trust) = start.trust {
        let focus = model.may_take_focus(now);
        model.dialogs.add(trust_dialog(trust), focus, model.keys.last_text);
    }
    // A prompt from the command line takes precedence over the setup, if there is a model for the prompt.
    if start.is_first && !(ready && model.startup.waiting_prompt.is_some()) {
        onboarding::request_setup(effects);
    }
    if std::mem::take(&mut model.startup.wants_picker) {
        models::open(model, now, effects);
    }
    if let Some(prompt) = model.startup.waiting_prompt.take() {
        if ready {
            queue::send(model, prompt, false, effects);
        } else if model.composer.is_empty() {
            model.composer.set(&prompt);
            readiness::refuse(model, now);
        }
    }
}

fn on_unsettled(model: &mut UiModel, now: u64, effects: &mut Vec<UiEffect>) {
    model.dialogs.record_window_change(now);
    if model.dialogs.is_open() {
        dialog::stimulus(model, GuardInput::Unsettled, now, effects);
    }
}

fn on_time(model: &mut UiModel, now: u64, effects: &mut Vec<UiEffect>) {
    model.screen.dirty = true;
    if model.toast.as_ref().is_some_and(|(_, until)| now >= *until) {
        model.toast = None;
    }
    if model.dialogs.inbox().is_some() || model.dialogs.open().is_some_and(|panel| !panel.has_field()) {
        dialog::stimulus(model, GuardInput::Time, now, effects);
    }
    if model.dialogs.waits_for_idle() && model.may_take_focus(now) {
        model.dialogs.open_current(model.keys.last_text);
    }
    mouse::scroll_at_edge(model, now);
    policy::report_expiry(model, now);
    retry::perform_due_key(model, now, effects);
    save_errors::perform_due_key(model, now, effects);
    if model.draft.save_at.is_some_and(|at| now >= at) {
        save_draft(model, effects);
    }
}
