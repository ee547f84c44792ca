//! Commands that begin with `/`.

use super::keys::take;
use super::quit;
use crate::protocol::Command;
use crate::tui::model::{Effect, Model};

/// What there is, for the help.
pub const COMMANDS: &[(&str, &str)] =
    &[("/help", "keys and commands"), ("/continue", "go on with a paused or interrupted task"), ("/quit", "save and leave")];

/// Runs exactly the word that was typed; an unknown one keeps the draft.
pub fn run(model: &mut Model, word: &str, now: u64, effects: &mut Vec<Effect>) {
    match word.trim() {
        "help" => {
            take(model, now, effects);
            model.help = true;
        }
        "quit" | "exit" => {
            take(model, now, effects);
            quit(model, effects);
        }
        "continue" => {
            take(model, now, effects);
            effects.push(Effect::Send(Command::Continue));
        }
        unknown => {
            let names: Vec<_> = COMMANDS.iter().map(|(name, _)| *name).collect();
            model.say(format!("there is no `/{}`, there are {}", crate::text::truncate(unknown, 24), names.join(" ")), now);
        }
    }
}
