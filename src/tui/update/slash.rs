//! Execution of slash commands.

use super::draft::take_draft;
use super::quit::quit;
use super::{
    agents, artifacts, attachments, changes, commands, compaction, copy_export, editor, goal, help, memory, models, onboarding,
    overview, policy, queue, review, rewind, servers, sessions, spending, status_command, tasks, theme_command, tree,
    user_commands,
};
use crate::protocol::{Command, Query, RewindTarget, SessionQuery, Usage};
use crate::tui::layers::Topic;
use crate::tui::model::{UiEffect, UiModel};
use crate::tui::slash::{resolve_alias, unknown_command};

const NO_REQUESTS: &str = "no requests in this session yet; `aye usage` shows those of other sessions";
const NO_COMMANDS: &str = "nothing is running in the background; ctrl+b moves a running command there";
const NO_MESSAGES: &str = "no messages are queued; enter queues one while a task is running";

/// Runs a slash command exactly as typed. An unknown command stays in the draft.
pub(crate) fn run(model: &mut UiModel, typed: &str, now: u64, effects: &mut Vec<UiEffect>) {
    let (word, argument) = typed.trim().split_once(char::is_whitespace).unwrap_or((typed.trim(), ""));
    let word = resolve_alias(word);
    match (word, argument.trim()) {
        ("new", "") => sessions::new(model, now, effects),
        ("resume", id) => sessions::resume_by_id(model, id, now, effects),
        ("fork", "") => sessions::fork(model, now, effects),
        ("tree", "") => tree::open(model, now, effects),
        ("rename", title) => sessions::rename(model, title, now, effects),
        ("task", prompt) => tasks::start(model, prompt, now, effects),
        ("tasks", "") => tasks::open(model, now, effects),
        ("memory", words) => memory::memory(model, words, now, effects),
        ("mcp", words) => servers::mcp(model, words, now, effects),
        ("status", "") => status_command::request_places(model, now, effects),
        ("plan", goal) => policy::plan(model, goal, now, effects),
        ("editor", "") => open_editor(model, now, effects),
        ("help", words) => {
            take_draft(model, now, effects);
            help::open(model, words, now, effects);
        }
        ("quit", "") => quit_session(model, now, effects),
        ("setup", "") => {
            take_draft(model, now, effects);
            onboarding::on_setup_command(model, now, effects);
        }
        ("continue", "") => send(model, Command::Continue, now, effects),
        ("mode", name) => policy::mode(model, name, now, effects),
        ("approve", name) => policy::approve(model, name, now, effects),
        ("lsp", "") => list_language_servers(model, now, effects),
        ("ran", "") => send(model, Command::ListUnasked, now, effects),
        ("policy", "grants") => send(model, Command::ListGrants, now, effects),
        ("policy", "undo") => send(model, Command::UndoGrant, now, effects),
        ("policy", "") => show_overview(model, Topic::Policy, now, effects),
        ("policy", what) => policy::policy(model, what, now, effects),
        ("steer", words) => queue::steer(model, words, now, effects),
        ("steps", "") => show_overview(model, Topic::Steps, now, effects),
        ("queue", "") => show_overview(model, Topic::Queue, now, effects),
        ("queue", words) => queue::queue(model, words, now, effects),
        ("model", name) => models::model(model, name, now, effects),
        ("effort", name) => models::effort(model, name, now, effects),
        ("context", "") => compaction::request_context(model, now, effects),
        ("compact", words) => compaction::compact(model, words, now, effects),
        ("goal", words) => goal::goal(model, words, now, effects),
        ("budget", words) => spending::budget(model, words, now, effects),
        ("cost", "") => show_overview(model, Topic::Cost, now, effects),
        ("review", words) => review::review(model, words, now, effects),
        ("findings", words) => review::show_findings(model, words, now, effects),
        ("diff", "") => changes::request_changes(model, now, effects),
        ("rewind", "") => rewind::open(model, now, effects),
        ("undo", "") => rewind::step(model, RewindTarget::Last, now, effects),
        ("redo", "") => rewind::step(model, RewindTarget::Redo, now, effects),
        ("ps", "") => show_overview(model, Topic::Background, now, effects),
        ("stop", id) => commands::stop(model, id, now, effects),
        ("stats", "") => show_overview(model, Topic::Tools, now, effects),
        ("agents", words) => agents::agents(model, words, now, effects),
        ("artifacts", which) => artifacts::artifacts(model, which, now, effects),
        ("copy", which) => copy_export::copy(model, which, now, effects),
        ("paste", "") => paste(model, now, effects),
        ("export", words) => copy_export::export(model, words, now, effects),
        ("vim", "") => toggle_vim(model, now, effects),
        ("theme", name) => theme_command::theme(model, name, now, effects),
        _ if user_commands::run(model, word, argument, now, effects) => {}
        _ => {
            let words = unknown_command(&model.menu.own, word, typed);
            model.show_toast(words, now);
        }
    }
}

fn quit_session(model: &mut UiModel, now: u64, effects: &mut Vec<UiEffect>) {
    take_draft(model, now, effects);
    quit(model, effects);
}

fn list_language_servers(model: &mut UiModel, now: u64, effects: &mut Vec<UiEffect>) {
    take_draft(model, now, effects);
    effects.push(UiEffect::Ask(Query::Session(SessionQuery::ListLanguageServers)));
}

fn open_editor(model: &mut UiModel, now: u64, effects: &mut Vec<UiEffect>) {
    take_draft(model, now, effects);
    editor::open(model, effects);
}

fn paste(model: &mut UiModel, now: u64, effects: &mut Vec<UiEffect>) {
    take_draft(model, now, effects);
    attachments::request_clipboard(model, now, effects);
}

fn toggle_vim(model: &mut UiModel, now: u64, effects: &mut Vec<UiEffect>) {
    take_draft(model, now, effects);
    let words =
        if model.composer.turn_vim() { "Vim keys on; set `[ui] vim = true` to make this permanent" } else { "Vim keys off" };
    model.show_toast(words, now);
}

fn show_overview(model: &mut UiModel, topic: Topic, now: u64, effects: &mut Vec<UiEffect>) {
    take_draft(model, now, effects);
    match topic {
        Topic::Cost if model.info.tally.usage == Usage::default() => model.show_toast(NO_REQUESTS, now),
        Topic::Tools if model.info.tool_uses.list().is_empty() => model.show_toast("no tool calls in this session yet", now),
        Topic::Background if model.info.commands.is_empty() => model.show_toast(NO_COMMANDS, now),
        Topic::Steps if model.task.planned_steps.is_empty() => {
            model.show_toast("the model has planned no steps for this task", now);
        }
        Topic::Queue if model.task.waiting.is_empty() => model.show_toast(NO_MESSAGES, now),
        topic => overview::open(model, topic),
    }
}

/// Sends a command to the session and clears the draft.
fn send(model: &mut UiModel, command: Command, now: u64, effects: &mut Vec<UiEffect>) {
    take_draft(model, now, effects);
    effects.push(UiEffect::Send(command));
}
