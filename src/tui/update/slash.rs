//! Commands that begin with `/`.

use super::keys::take;
use super::{changes, commands, draft_changed, policy, quit, stats};
use crate::protocol::Command;
use crate::text;
use crate::tui::front::ThemeChoice;
use crate::tui::model::{Effect, Model};
use crate::tui::theme::Theme;

/// What there is, for the help and the menu.
pub const COMMANDS: &[(&str, &str)] = &[
    ("/help", "keys and commands"),
    ("/continue", "go on with a paused or interrupted task"),
    ("/mode", "plan, ask, auto-edit or auto; a laxer one asks first"),
    ("/policy", "what is in force, from which files"),
    ("/policy reload", "read the files again now"),
    ("/policy grants", "which rules are kept"),
    ("/policy undo", "take back the rule that was kept last"),
    ("/diff", "what changed since the session began"),
    ("/ps", "sessions and commands in the background"),
    ("/stop", "end one of them: /stop s1"),
    ("/stats", "how often each tool was used, and how long it took"),
    ("/theme", "other colours: a name, or auto"),
    ("/quit", "save and leave"),
];

const THEME: &str = "/theme ";

/// What the draft could become while a command is typed.
pub fn candidates(draft: &str) -> Vec<(String, &'static str)> {
    if let Some(start) = draft.strip_prefix(THEME) {
        let names = std::iter::once("auto").chain(Theme::names());
        return names.filter(|name| name.starts_with(start)).map(|name| (format!("{THEME}{name}"), "")).collect();
    }
    if !draft.starts_with('/') {
        return Vec::new();
    }
    COMMANDS.iter().filter(|(name, _)| name.starts_with(draft)).map(|(name, words)| ((*name).to_owned(), *words)).collect()
}

/// As far as it is clear what is meant; whether there is a menu at all.
pub fn complete(model: &mut Model, now: u64) -> bool {
    let draft = model.composer.text();
    let found = candidates(&draft);
    let Some((first, _)) = found.first() else { return false };
    let mut end = first.len();
    for (other, _) in &found {
        end = end.min(first.bytes().zip(other.bytes()).take_while(|(one, two)| one == two).count());
    }
    let mut whole = first[..end].to_owned();
    if found.len() == 1 && whole == THEME.trim_end() {
        whole.push(' ');
    }
    if whole.len() > draft.len() {
        model.composer.set(&whole);
        draft_changed(model, now);
    }
    true
}

/// Runs exactly the word that was typed; an unknown one keeps the draft.
pub fn run(model: &mut Model, typed: &str, now: u64, effects: &mut Vec<Effect>) {
    let (word, argument) = typed.trim().split_once(' ').unwrap_or((typed.trim(), ""));
    match (word, argument.trim()) {
        ("help", "") => {
            take(model, now, effects);
            model.help = Some(0);
        }
        ("quit" | "exit", "") => {
            take(model, now, effects);
            quit(model, effects);
        }
        ("continue", "") => {
            take(model, now, effects);
            effects.push(Effect::Send(Command::Continue));
        }
        ("mode", name) => policy::mode(model, name, now, effects),
        ("policy", "grants") => {
            take(model, now, effects);
            effects.push(Effect::Send(Command::ListGrants));
        }
        ("policy", "undo") => {
            take(model, now, effects);
            effects.push(Effect::Send(Command::UndoGrant));
        }
        ("policy", what) => policy::policy(model, what, now, effects),
        ("diff" | "changes", "") => changes::ask(model, now, effects),
        ("ps" | "bashes" | "tasks", "") => commands::list(model, now, effects),
        ("stop", id) => commands::stop(model, id, now, effects),
        ("stats", "") => stats::show(model, now, effects),
        ("theme", name) => theme(model, name, now, effects),
        _ => {
            let names: Vec<_> = COMMANDS.iter().map(|(name, _)| *name).collect();
            model.say(format!("there is no `/{}`, there are {}", text::truncate(typed.trim(), 24), names.join(" ")), now);
        }
    }
}

fn theme(model: &mut Model, name: &str, now: u64, effects: &mut Vec<Effect>) {
    let choice = match (name, Theme::by_name(name)) {
        ("auto", _) => ThemeChoice::Auto,
        (_, Some(_)) => ThemeChoice::Named(name.to_owned()),
        (_, None) => {
            let name = text::truncate(name, 24);
            return model.say(format!("there is no theme `{name}`; `/theme ` with nothing behind it lists them"), now);
        }
    };
    take(model, now, effects);
    model.options.theme = choice;
    model.choose_theme();
}
