//! `aye sessions`: lists, shows, searches, exports, pushes, pulls and manages sessions.

mod archive;
pub(crate) mod args;
mod delete;
mod export;
mod fork;
mod import;
pub(crate) mod list;
mod prune;
mod pull;
mod push;
mod rename;
mod search;
mod show;

use crate::host::context::AppContext;
use crate::host::error::CliError;
use crate::host::exit::Exit;
use args::SessionsAction;

pub(crate) fn run(place: &AppContext, asked: SessionsAction) -> Result<Exit, CliError> {
    match asked {
        SessionsAction::List { json, scope, archived } => list::run(place, json, scope, archived),
        SessionsAction::Show { id, json } => show::run(place, &id, json),
        SessionsAction::Search { text, json, scope } => search::run(place, &text, json, scope),
        SessionsAction::Export { id, form, output, artifacts } => export::run(place, &id, form, output.as_deref(), artifacts),
        SessionsAction::Import { file } => import::run(place, &file),
        SessionsAction::Push { id, take_over } => push::run(place, id.as_deref(), take_over),
        SessionsAction::Pull { id, take_over, fork } => pull::run(place, &id, take_over, fork),
        SessionsAction::ListStored { json } => pull::list_stored(place, json),
        SessionsAction::Archive { id, archived } => archive::run(place, &id, archived),
        SessionsAction::Delete { id } => delete::run(place, &id),
        SessionsAction::Fork { id } => fork::run(place, &id),
        SessionsAction::Rename { id, title } => rename::run(place, &id, &title),
        SessionsAction::Prune { run, older_than, scope, json } => prune::run(place, run, older_than, scope, json),
    }
}
