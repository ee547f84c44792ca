//! `aye sessions export`: writes a session to a file.

use super::args::{ExportForm, WithArtifacts};
use crate::host::console::{print_text, warn_all};
use crate::host::context::AppContext;
use crate::host::error::CliError;
use crate::host::exit::Exit;
use crate::host::startup::open_store;
use crate::sys::file::{Existing, write_whole};
use crate::transfer::export::{contents, page};
use std::path::Path;

pub(crate) fn run(
    app: &AppContext,
    id: &str,
    form: ExportForm,
    output: Option<&Path>,
    artifacts: WithArtifacts,
) -> Result<Exit, CliError> {
    let store = open_store(app)?;
    let summary = store.find(id)?;
    let with_artifacts = artifacts == WithArtifacts::Yes && form == ExportForm::Json;
    let artifacts = with_artifacts.then(|| {
        let (contents, notices) = contents(&app.artifacts(Some(&summary.session_id)));
        warn_all(&notices);
        contents
    });
    let text = page(&store, &summary, form, artifacts)?;
    match output {
        None => print_text(&text),
        Some(path) => {
            write_whole(path, text.as_bytes(), Existing::Replace)
                .map_err(|error| CliError::failed(format!("cannot write `{}`: {error}", path.display())))?;
        }
    }
    Ok(Exit::Completed)
}
