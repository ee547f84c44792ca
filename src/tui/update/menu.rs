//! Content of the composer's completion menu.

use super::draft::on_draft_changed;
use super::{models, theme_command};
use crate::protocol::{FoundFile, FoundSymbol, HostRequest, Query, ServerResource, SessionQuery};
use crate::text;
use crate::tui::format::tokens;
use crate::tui::menu::{self, EnterAction, Item, Typing};
use crate::tui::model::{UiEffect, UiModel};
use crate::tui::slash;

/// Maximum number of resources listed before any part of a file name is typed. After that, [`MAX_RESOURCES`] applies.
const FEW_RESOURCES: usize = 5;
const MAX_RESOURCES: usize = 50;
/// Number of recent history entries that are searched for recently used commands.
const USED: usize = 30;

/// Updates the menu to match the draft. Must be called after anything that may have changed the draft.
pub(crate) fn refresh(model: &mut UiModel, effects: &mut Vec<UiEffect>) {
    let typing = if is_elsewhere(model) {
        None
    } else {
        let line = model.composer.before_cursor();
        if line.is_empty() {
            None
        } else {
            menu::typing(&line, &model.composer.text(), &|words: &str| model.servers.is_named_in(words))
        }
    };
    if typing.as_ref() == model.menu.typing() {
        return;
    }
    let begins = model.menu.typing().is_none();
    model.menu.set_typing(typing.clone());
    match typing {
        None => model.menu.set(Vec::new()),
        Some(Typing::Command(draft)) => {
            if begins {
                model.menu.used = recent_commands(model);
                // The files of custom commands may have changed.
                effects.push(UiEffect::Ask(Query::LookUp(HostRequest::Commands)));
                if model.servers.any_answers() {
                    effects.push(UiEffect::Ask(Query::Session(SessionQuery::ServerPrompts)));
                }
            }
            let items = command_items(model, &draft);
            model.menu.set(items);
        }
        Some(Typing::File { words, quoted, .. }) => {
            let of_server = model.servers.is_named_in(&words);
            let is_symbol = menu::is_symbol(&words, quoted) && !of_server;
            if model.menu.asked.as_ref() != Some(&words) {
                if model.servers.may_offer(&words) && !is_symbol {
                    effects.push(UiEffect::Ask(Query::Session(SessionQuery::ServerResources { words: words.clone() })));
                }
                let words = words.clone();
                let what = if is_symbol { HostRequest::Symbols { words } } else { HostRequest::Files { words } };
                if !of_server {
                    effects.push(UiEffect::Ask(Query::LookUp(what)));
                }
            }
            model.menu.asked = Some(words);
            if is_symbol { show_symbols(model) } else { show_files(model) }
        }
    }
}

/// Returns the names of recently used commands, most recent first.
pub(crate) fn recent_commands(model: &mut UiModel) -> Vec<String> {
    let sent = model.composer.prompts_starting_with("/");
    sent.iter().take(USED).map(|typed| slash::whole_name(typed, &model.menu.own)).collect()
}

/// Requests the resources for the current word again after a server has connected or disconnected.
pub(crate) fn on_servers_changed(model: &UiModel, effects: &mut Vec<UiEffect>) {
    let Some(Typing::File { words, quoted, .. }) = model.menu.typing() else { return };
    let is_symbol = menu::is_symbol(words, *quoted) && !model.servers.is_named_in(words);
    if model.servers.any_answers() && !is_symbol {
        effects.push(UiEffect::Ask(Query::Session(SessionQuery::ServerResources { words: words.clone() })));
    }
}

/// Returns whether the word at the cursor is `@` followed by `words`.
pub(crate) fn is_typed(model: &UiModel, words: &str) -> bool {
    matches!(model.menu.typing(), Some(Typing::File { words: typed, .. }) if typed == words)
}

/// Returns whether something other than the draft has keyboard focus, in which case the menu is not shown.
fn is_elsewhere(model: &UiModel) -> bool {
    model.dialogs.is_open() || model.layers.top().is_some() || model.draft.search.is_some() || model.composer.is_browsing()
}

/// Stores the results of a file search, and shows them if the word at the cursor is still the one searched for.
pub(crate) fn on_files_found(model: &mut UiModel, words: String, files: Vec<FoundFile>, now: u64, effects: &mut Vec<UiEffect>) {
    model.menu.files = Some((words, files));
    show_files(model);
    complete_pending_tab(model, now, effects);
}

/// Stores the results of a symbol search, and shows them if the word at the cursor is still the one searched for.
pub(crate) fn on_symbols_found(
    model: &mut UiModel,
    words: String,
    symbols: Vec<FoundSymbol>,
    now: u64,
    effects: &mut Vec<UiEffect>,
) {
    model.menu.symbols = Some((words, symbols));
    show_symbols(model);
    complete_pending_tab(model, now, effects);
}

/// Returns whether requested files or symbols have yet to arrive. Outstanding requests for server resources do not
/// count.
pub(crate) fn is_searching(model: &UiModel) -> bool {
    let of_server = matches!(model.menu.typing(), Some(Typing::File { words, .. }) if model.servers.is_named_in(words));
    !of_server && model.menu.is_searching()
}

/// Completes the word if Tab was pressed before the search results arrived. Results for a different word are ignored.
fn complete_pending_tab(model: &mut UiModel, now: u64, effects: &mut Vec<UiEffect>) {
    if !model.menu.is_searching() && model.menu.take_pending_completion() && !is_elsewhere(model) {
        complete(model, now);
        // The menu was about the earlier text, and would handle the next Enter.
        refresh(model, effects);
    }
}

fn show_symbols(model: &mut UiModel) {
    let Some(Typing::File { words, quoted, .. }) = model.menu.typing() else { return };
    if !menu::is_symbol(words, *quoted) || model.servers.is_named_in(words) {
        return;
    }
    let symbols = model.menu.symbols.as_ref().filter(|(asked, _)| asked == words);
    let symbols = symbols.map(|(_, symbols)| symbols.as_slice()).unwrap_or_default();
    let items: Vec<Item> = symbols.iter().filter_map(symbol).collect();
    model.menu.set(items);
}

/// Returns the menu row for a symbol. Choosing it inserts a reference to the symbol's lines.
fn symbol(symbol: &FoundSymbol) -> Option<Item> {
    let text = menu::lines(&symbol.path, symbol.first, symbol.last)?;
    let name = display_line(&format!("{} {}", symbol.kind, symbol.name));
    let words = format!("{}:{} ~{} tokens", display_line(&symbol.path), symbol.first, tokens(symbol.tokens));
    Some(Item { text, name, words, tokens: Some(symbol.tokens), then: EnterAction::Complete })
}

/// Returns the text on one line, with control characters made visible.
fn display_line(words: &str) -> String {
    text::reveal(words).replace(['\n', '\r', '\t'], " ")
}

/// Updates the menu after the set of available commands has changed.
pub(crate) fn commands(model: &mut UiModel) {
    if let Some(Typing::Command(draft)) = model.menu.typing() {
        let items = command_items(model, draft);
        model.menu.set(items);
    }
}

/// Returns the completions for the command in a draft.
fn command_items(model: &UiModel, draft: &str) -> Vec<Item> {
    let themes = || theme_command::names(model);
    slash::candidates(draft, &model.menu.own, &model.menu.used, &themes, models::efforts(model))
}

pub(crate) fn show_files(model: &mut UiModel) {
    let Some(Typing::File { words, quoted, .. }) = model.menu.typing() else { return };
    if menu::is_symbol(words, *quoted) && !model.servers.is_named_in(words) {
        return;
    }
    let files = model.menu.files.as_ref().filter(|(asked, _)| asked == words);
    // A complete path needs no completion.
    let is_whole = |file: &FoundFile| file.path == *words && !file.path.ends_with('/');
    let whole = files.and_then(|(_, files)| files.iter().find(|file| is_whole(file)));
    if let Some((named, count)) = whole.and_then(|file| Some((menu::path_reference(&file.path)?, file.tokens?))) {
        model.draft.attached.set_tokens(named, count);
    }
    let items: Vec<Item> = match files {
        Some((_, files)) if !files.iter().any(is_whole) => files.iter().filter_map(item).collect(),
        Some(_) | None => Vec::new(),
    };
    let offered = model.servers.resources.as_ref().filter(|(asked, _)| asked == words);
    let offered = offered.map(|(_, offered)| offered.as_slice()).unwrap_or_default();
    let is_there = |one: &&ServerResource| format!("{}:{}", one.server, one.uri) != *words;
    let most = if words.is_empty() { FEW_RESOURCES } else { MAX_RESOURCES };
    let offered = offered.iter().filter(is_there).filter_map(resource).take(most);
    let items = items.into_iter().chain(offered).collect();
    model.menu.set(items);
}

/// Returns the menu row for a resource, or `None` if a prompt cannot reference the resource.
fn resource(resource: &ServerResource) -> Option<Item> {
    let text = menu::path_reference(&format!("{}:{}", resource.server, resource.uri))?;
    let is_odd = |one: char| one.is_control();
    let about = if resource.is_template { "fill in the parts in { }" } else { resource.description.as_deref().unwrap_or("") };
    let words = [resource.name.as_str(), about].map(display_line);
    let words = words.into_iter().filter(|words| !words.is_empty()).collect::<Vec<_>>().join(" · ");
    (!text.contains(is_odd)).then(|| Item { name: display_line(&text), text, words, tokens: None, then: EnterAction::Complete })
}

fn item(file: &FoundFile) -> Option<Item> {
    let words = match file.tokens {
        _ if file.path.ends_with('/') => "folder".to_owned(),
        Some(count) => format!("~{} tokens", tokens(count)),
        None => String::new(),
    };
    let (text, name) = (menu::path_reference(&file.path)?, display_line(&file.path));
    Some(Item { text, name, words, tokens: file.tokens, then: EnterAction::Complete })
}

/// Completes the longest common prefix of all rows. If that would add nothing, completes the highlighted row.
pub(crate) fn complete(model: &mut UiModel, now: u64) {
    if let Some(Typing::Command(draft)) = model.menu.typing().filter(|_| !model.menu.is_moved()) {
        let whole = common_prefix(model.menu.items(), draft);
        if whole.len() > draft.len() && model.menu.items().len() > 1 {
            model.composer.set(&whole);
            return on_draft_changed(model, now);
        }
    }
    let Some(item) = model.menu.highlighted().cloned() else { return };
    insert_item(model, &item, now);
}

/// Returns the longest common prefix of the items that start with the draft.
fn common_prefix(items: &[Item], draft: &str) -> String {
    let mut begin = items.iter().map(|item| item.text.as_str()).filter(|text| text.starts_with(draft));
    let Some(first) = begin.next() else { return draft.to_owned() };
    let end = begin.fold(first.len(), |end, other| {
        let same = first.char_indices().zip(other.chars()).find(|((_, one), two)| one != two);
        end.min(same.map_or(first.len().min(other.len()), |((at, _), _)| at))
    });
    first.get(..end).unwrap_or(draft).to_owned()
}

/// Inserts the chosen completion into the draft.
pub(crate) fn insert_item(model: &mut UiModel, item: &Item, now: u64) {
    match model.menu.typing() {
        Some(Typing::Command(_)) => {
            let blank = if item.then == EnterAction::Complete { " " } else { "" };
            model.composer.set(&format!("{}{blank}", item.text));
        }
        Some(Typing::File { start, .. }) => {
            let start = *start;
            if let Some(count) = item.tokens {
                model.draft.attached.set_tokens(item.text.clone(), count);
            }
            let in_quotes = item.text.ends_with("/\"");
            if in_quotes {
                // The files in the folder are completed next.
                model.composer.complete(start, &item.text, 1);
            } else if item.text.ends_with('/') {
                model.composer.complete(start, &item.text, 0);
            } else {
                model.composer.complete(start, &format!("{} ", item.text), 0);
            }
        }
        None => return,
    }
    on_draft_changed(model, now);
}
