//! Commands that begin with `/`.

use super::keys::take;
use super::{artifacts, changes, commands, draft_changed, models, policy, queue, quit, spending, stats, window};
use crate::protocol::{Command, Effort};
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
    ("/steer", "say it to the model with the step that runs: /steer TEXT"),
    ("/queue", "what waits; /queue edit 2, /queue drop 2"),
    ("/model", "another model: choose it, or name it"),
    ("/effort", "how hard it thinks: off, low, medium, high, auto"),
    ("/context", "what fills the window of the model"),
    ("/compact", "a summary in place of what was said; /compact FOCUS"),
    ("/compact undo", "take the last summary back"),
    ("/budget", "what may be used; /budget 10, /budget 2M tokens"),
    ("/cost", "tokens and money, of the session and the task"),
    ("/diff", "what changed since the session began"),
    ("/ps", "sessions and commands in the background"),
    ("/stop", "end one of them: /stop s1"),
    ("/stats", "how often each tool was used, and how long it took"),
    ("/artifacts", "what was kept whole; /artifacts 2 opens one"),
    ("/theme", "other colours: a name, or auto"),
    ("/quit", "save and leave"),
];

const THEME: &str = "/theme ";
const EFFORT: &str = "/effort ";
/// Other names of commands, as people know them from elsewhere.
const ALIASES: &[(&str, &str)] = &[
    ("exit", "quit"),
    ("q", "quit"),
    ("changes", "diff"),
    ("bashes", "ps"),
    ("tasks", "ps"),
    ("models", "model"),
    ("summarize", "compact"),
    ("compress", "compact"),
    ("usage", "cost"),
];
/// Those that may have several lines of words behind them.
const TAKE_TEXT: [&str; 4] = ["steer", "compact", "summarize", "compress"];

/// The command in a draft, without its slash; a path, or several lines of something else, is none.
pub fn typed(draft: &str) -> Option<&str> {
    let typed = draft.trim().strip_prefix('/')?;
    let word = typed.split_whitespace().next().unwrap_or_default();
    let is_text = typed.contains('\n') && !TAKE_TEXT.contains(&word);
    (!word.contains('/') && !is_text).then_some(typed)
}

/// What the draft could become while a command is typed.
pub fn candidates(draft: &str) -> Vec<(String, &'static str)> {
    if let Some(start) = draft.strip_prefix(THEME) {
        let names = std::iter::once("auto").chain(Theme::names());
        return names.filter(|name| name.starts_with(start)).map(|name| (format!("{THEME}{name}"), "")).collect();
    }
    if let Some(start) = draft.strip_prefix(EFFORT) {
        let names = Effort::ALL.into_iter().map(Effort::as_str).chain(["auto"]);
        return names.filter(|name| name.starts_with(start)).map(|name| (format!("{EFFORT}{name}"), "")).collect();
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
    if found.len() == 1 && [THEME, EFFORT].iter().any(|command| whole == command.trim_end()) {
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
    let (word, argument) = typed.trim().split_once(char::is_whitespace).unwrap_or((typed.trim(), ""));
    let word = ALIASES.iter().find(|(alias, _)| *alias == word).map_or(word, |(_, name)| name);
    match (word, argument.trim()) {
        ("help", "") => {
            take(model, now, effects);
            model.help = Some(0);
        }
        ("quit", "") => {
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
        ("steer", words) => queue::steer(model, words, now, effects),
        ("queue", words) => queue::queue(model, words, now, effects),
        ("model", name) => models::model(model, name, now, effects),
        ("effort", name) => models::effort(model, name, now, effects),
        ("context", "") => window::ask(model, now, effects),
        ("compact", words) => window::compact(model, words, now, effects),
        ("budget", words) => spending::budget(model, words, now, effects),
        ("cost", "") => spending::cost(model, now, effects),
        ("diff", "") => changes::ask(model, now, effects),
        ("ps", "") => commands::list(model, now, effects),
        ("stop", id) => commands::stop(model, id, now, effects),
        ("stats", "") => stats::show(model, now, effects),
        ("artifacts", which) => artifacts::artifacts(model, which, now, effects),
        ("theme", name) => theme(model, name, now, effects),
        _ => {
            let typed = queue::line(typed);
            model.say(format!("there is no `/{}`; /help lists what there is", text::truncate(&typed, 24)), now);
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
