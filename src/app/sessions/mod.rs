//! `aye sessions`: lists, shows, searches, exports and manages sessions.

mod archive;
mod checkpoint;
mod conversation;
mod delete;
mod export;
mod fork;
mod from_thread;
mod html;
mod import;
mod list;
mod markdown;
mod prune;
mod rename;
mod search;
mod show;
#[cfg(test)]
mod tests;
mod transcript;

pub use delete::forget;
pub use export::{to_new_file, to_read};
pub use fork::fork;
pub use list::{line, open};
pub use prune::quietly as prune_quietly;
pub use rename::rename;
pub use search::{first_hit, pattern};

use super::cli::SessionsAction;
use super::exit::Exit;
use super::place::Place;
use super::trouble::Trouble;
use crate::text::clean;

pub fn run(place: &Place, asked: SessionsAction) -> Result<Exit, Trouble> {
    match asked {
        SessionsAction::List { json, scope, archived } => list::run(place, json, scope, archived),
        SessionsAction::Show { id, json } => show::run(place, &id, json),
        SessionsAction::Search { text, json, scope } => search::run(place, &text, json, scope),
        SessionsAction::Export { id, form, output, artifacts } => export::run(place, &id, form, output.as_deref(), artifacts),
        SessionsAction::Import { file } => import::run(place, &file),
        SessionsAction::Archive { id, archived } => archive::run(place, &id, archived),
        SessionsAction::Delete { id } => delete::run(place, &id),
        SessionsAction::Fork { id } => fork::run(place, &id),
        SessionsAction::Rename { id, title } => rename::run(place, &id, &title),
        SessionsAction::Prune { run, older_than, scope, json } => prune::run(place, run, older_than, scope, json),
    }
}

/// Returns the text as a single line, so that it cannot imitate another line.
fn one_line(text: &str) -> String {
    clean(&text.split_whitespace().collect::<Vec<_>>().join(" ")).into_owned()
}

/// Returns a size such as `12.3 MB`, `812 KB` or `0 bytes`.
fn in_bytes(bytes: u64) -> String {
    const KB: u64 = 1 << 10;
    const MB: u64 = 1 << 20;
    match bytes {
        0..KB => format!("{bytes} bytes"),
        KB..MB => format!("{} KB", bytes.div_ceil(KB)),
        _ => format!("{:.1} MB", bytes as f64 / MB as f64),
    }
}

/// Returns a number with its noun: `1 prompt`, `2 prompts`.
fn counted(count: u64, word: &str) -> String {
    if count == 1 { format!("1 {word}") } else { format!("{count} {word}s") }
}

/// Returns an amount in US dollars, with more decimals for small amounts.
fn dollars(cost: f64, estimated: bool) -> String {
    let about = if estimated { "~" } else { "" };
    if cost > 0.0 && cost < 0.01 { format!("{about}${cost:.4}") } else { format!("{about}${cost:.2}") }
}
