//! The session's MCP servers: notices about changes, resources, prompts, and the `/mcp` list.

use super::draft::{on_draft_changed, take_draft};
use super::menu;
use super::notes::{note, note_problem, show_requested};
use super::readiness::is_ready;
use crate::protocol::{CustomCommand, HostCommand, Problem, Query, ServerPrompt, ServerResource, ServerStatus, SessionQuery};
use crate::text;
use crate::tui::layers::{ServerList, ShownList, TextViewer, server_details, server_rows};
use crate::tui::model::{UiEffect, UiModel};
use crate::tui::transcript::{NoteTone, TranscriptEntryKind};
use crate::tui::typeahead_guard;
use std::collections::BTreeMap;

/// Maximum number of files named in the warning about text supplied by a server.
const MAX_NAMED: usize = 8;

pub(crate) fn on_changed(model: &mut UiModel, servers: Vec<ServerStatus>) {
    for words in ServerStatus::changes(&model.servers.statuses, &servers) {
        note(model, &words, NoteTone::Warning);
    }
    model.servers.statuses = servers;
    model.layers.set_rows(ShownList::Servers, || server_rows(&model.servers.statuses));
}

/// Arguments of `/mcp` in other agents, each with what to use in aye instead. The words may be followed by a name.
const MCP_ELSEWHERE: &[(&[&str], &str)] = &[
    (&["auth", "login", "authenticate"], "run `aye mcp login NAME` in a shell to sign in to a server"),
    (&["logout"], "run `aye mcp logout NAME` in a shell to delete a server's tokens"),
    (&["add", "remove"], "run `aye mcp add` or `aye mcp remove NAME` in a shell"),
    (&["enable", "disable"], "set `enabled` of the server in config.toml"),
    (&["refresh", "reload", "restart"], "use /mcp reconnect NAME"),
    (&["get"], "use /mcp NAME, which shows the details of a server"),
];

/// Returns whether the words after `/mcp` ask for the list of servers, as in other agents.
pub(crate) fn asks_for_list(model: &UiModel, words: &str) -> bool {
    ["", "list", "ls", "status", "desc", "schema", "show"].contains(&words) && model.servers.find_by_name(words).is_none()
}

/// Returns what to use instead of `/mcp WORD` of another agent.
fn find_elsewhere(words: &str) -> Option<&'static str> {
    let word = words.split_whitespace().next()?;
    MCP_ELSEWHERE.iter().find(|(names, _)| names.contains(&word)).map(|(_, here)| *here)
}

/// Handles `/mcp`, `/mcp NAME` and `/mcp reconnect NAME`.
pub(crate) fn mcp(model: &mut UiModel, words: &str, now: u64, effects: &mut Vec<UiEffect>) {
    if model.servers.statuses.is_empty() {
        take_draft(model, now, effects);
        return model.show_toast("no MCP servers; add one with `aye mcp add` or in [mcp.servers] in config.toml", now);
    }
    if asks_for_list(model, words) {
        take_draft(model, now, effects);
        return open(model, None);
    }
    let (name, reconnects) = match words.strip_prefix("reconnect").filter(|rest| rest.starts_with(' ')) {
        Some(rest) => (rest.trim(), true),
        None => (words, false),
    };
    let Some(status) = model.servers.find_by_name(name).cloned() else {
        if let Some(here) = find_elsewhere(words) {
            return model.show_toast(here, now);
        }
        let names: Vec<&str> = model.servers.statuses.iter().map(|status| status.name.as_str()).collect();
        let words = format!("unknown MCP server `{}`; available: {}", text::reveal(name), names.join(", "));
        return model.show_toast(text::clean(&words).into_owned(), now);
    };
    take_draft(model, now, effects);
    if reconnects {
        return reconnect(model, status.name, now, effects);
    }
    if model.screen.in_lines {
        return print_details(model, &status);
    }
    open(model, Some(&status.name));
}

/// Opens the server list with the server called `name` highlighted.
fn open(model: &mut UiModel, name: Option<&str>) {
    let list = ServerList::new(&model.servers.statuses, name);
    model.layers.open(list);
}

/// Shows a server's details in front of the list.
pub(super) fn show_details(model: &mut UiModel, name: &str) {
    if let Some(status) = model.servers.find_by_name(name) {
        let viewer = TextViewer::with_title(name, &server_details(status).join("\n"));
        model.layers.push(viewer);
    }
}

/// Prints a server's details in line mode.
fn print_details(model: &mut UiModel, status: &ServerStatus) {
    show_requested(model, TranscriptEntryKind::Note { text: server_details(status).join("\n"), tone: NoteTone::Plain });
}

pub(super) fn reconnect(model: &mut UiModel, name: String, now: u64, effects: &mut Vec<UiEffect>) {
    model.show_toast(format!("reconnecting to {}", text::clean(&name)), now);
    effects.push(UiEffect::SendToHost(HostCommand::ReconnectServer { name }));
}

/// Stores the resources found for the text `words`, unless the user has since typed something else.
pub(crate) fn on_resources(model: &mut UiModel, words: String, resources: Vec<ServerResource>) {
    // Each typed character starts a search, and the results arrive in any order. Only results for the current text are
    // used.
    if !menu::is_typed(model, &words) {
        return;
    }
    model.servers.resources = Some((words, resources));
    menu::show_files(model);
}

/// Sets the prompts that the servers offer as commands. Commands defined in files take precedence.
pub(crate) fn set_prompts(model: &mut UiModel, prompts: Vec<ServerPrompt>) {
    let old = model.servers.commands();
    model.menu.own.retain(|command| !old.contains(command));
    model.servers.prompts = prompts;
    add_commands(model);
    menu::commands(model);
}

pub(crate) fn add_commands(model: &mut UiModel) {
    for command in model.servers.commands() {
        if model.menu.own.iter().all(|own| own.name != command.name) {
            model.menu.own.push(command);
        }
    }
}

/// Requests the text of a server prompt. Returns `false` if the command is not a server prompt.
pub(crate) fn run_prompt(
    model: &mut UiModel,
    command: &CustomCommand,
    arguments: &str,
    now: u64,
    effects: &mut Vec<UiEffect>,
) -> bool {
    let Some(prompt) = model.servers.prompt(&command.name).filter(|_| command.source.starts_with("MCP server ")).cloned() else {
        return false;
    };
    let given = parse_arguments(&prompt, arguments);
    let missing = prompt.arguments.iter().find(|(name, needed)| *needed && !given.contains_key(name));
    if let Some((name, _)) = missing {
        let words =
            format!("missing argument `{name}`: `/{} {}`", command.name, command.argument_hint.as_deref().unwrap_or_default());
        model.show_toast(text::reveal(&words).into_owned(), now);
        return true;
    }
    if is_ready(model, now) {
        take_draft(model, now, effects);
        let ServerPrompt { server, name, .. } = prompt;
        model.show_toast(format!("loading the prompt from {}", text::clean(&server)), now);
        model.servers.asked = Some((server.clone(), name.clone()));
        let prompt = SessionQuery::ServerPrompt { server, name, arguments: given };
        effects.push(UiEffect::Ask(Query::Session(prompt)));
    }
    true
}

/// Parses a prompt's arguments. Words of the form `name=value` set the argument with that name; other words are
/// assigned by position. The last position receives all remaining words.
fn parse_arguments(prompt: &ServerPrompt, arguments: &str) -> BTreeMap<String, String> {
    let mut given = BTreeMap::new();
    let mut places = Vec::new();
    for word in CustomCommand::split_arguments(arguments) {
        match word.split_once('=').filter(|(name, _)| prompt.arguments.iter().any(|(own, _)| own == name)) {
            Some((name, value)) => drop(given.insert(name.to_owned(), value.to_owned())),
            None => places.push(word),
        }
    }
    let names: Vec<String> =
        prompt.arguments.iter().map(|(name, _)| name.clone()).filter(|name| !given.contains_key(name)).collect();
    let count = names.len();
    for (at, name) in names.into_iter().enumerate() {
        let value = match places.get(at) {
            None => break,
            Some(_) if at + 1 == count => places[at..].join(" "),
            Some(word) => word.clone(),
        };
        given.insert(name, value);
    }
    given
}

/// Inserts the text of a server prompt into the draft and adds a note about its source, so the user can read the text
/// before sending it.
pub(crate) fn insert_prompt_text(model: &mut UiModel, server: &str, name: &str, words: Result<String, String>, now: u64) {
    if model.servers.asked.take_if(|asked| asked.0 == server && asked.1 == name).is_none() {
        return;
    }
    let command = text::reveal(&format!("/{server}:{name}")).into_owned();
    let words = match words {
        Ok(words) if !words.trim().is_empty() => words,
        Ok(_) => return note(model, &format!("{command} returned no text"), NoteTone::Warning),
        Err(why) => {
            let problem = Problem::new(format!("{command} failed")).because(why);
            return note_problem(model, &problem, NoteTone::Failure);
        }
    };
    // The text of the prompt must not mix with text that the user is typing.
    if !typeahead_guard::may_take_focus(model.composer.is_empty(), model.keys.last_key, now) {
        return note(
            model,
            &format!("the text of {command} arrived while you were typing; run it again to insert the text"),
            NoteTone::Plain,
        );
    }
    let words = words.lines().map(|line| text::reveal(&line.replace('\t', "    ")).into_owned()).collect::<Vec<_>>().join("\n");
    let words = words.trim_end();
    model.composer.set(words);
    model.servers.put_at = Some(now);
    on_draft_changed(model, now);
    let mut told = format!("this text comes from {server} (MCP): read it before you send it");
    let files = path_references(words);
    if !files.is_empty() {
        told = format!("{told}; sending attaches {}", files.join(" "));
    }
    note(model, &told, NoteTone::Warning);
}

/// Returns references in the text that would attach files, up to a limit.
fn path_references(words: &str) -> Vec<String> {
    let begins = |word: &&str| word.trim_start_matches(|one| "([{<\"'`,;".contains(one)).starts_with('@') && word.len() > 1;
    words.split_whitespace().filter(begins).take(MAX_NAMED).map(str::to_owned).collect()
}
