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

pub(crate) fn run(app: &AppContext, asked: SessionsAction) -> Result<Exit, CliError> {
    match asked {
        SessionsAction::List { json, scope, archived } => list::run(app, json, scope, archived),
        SessionsAction::Show { id, json } => show::run(app, &id, json),
        SessionsAction::Search { text, json, scope } => search::run(app, &text, json, scope),
        SessionsAction::Export { id, form, output, artifacts } => export::run(app, &id, form, output.as_deref(), artifacts),
        SessionsAction::Import { file } => import::run(app, &file),
        SessionsAction::Push { id, take_over } => push::run(app, id.as_deref(), take_over),
        SessionsAction::Pull { id, take_over, fork } => pull::run(app, &id, take_over, fork),
        SessionsAction::ListStored { json } => pull::list_stored(app, json),
        SessionsAction::Archive { id, archived } => archive::run(app, &id, archived),
        SessionsAction::Delete { id } => delete::run(app, &id),
        SessionsAction::Fork { id } => fork::run(app, &id),
        SessionsAction::Rename { id, title } => rename::run(app, &id, &title),
        SessionsAction::Prune { run, older_than, scope, json } => prune::run(app, run, older_than, scope, json),
    }
}
