//! `aye sessions import`: creates a session in this project from a checkpoint.

use crate::host::console::{print_text, warn};
use crate::host::context::AppContext;
use crate::host::error::CliError;
use crate::host::exit::Exit;
use crate::host::startup::open_store;
use crate::transfer::format::{format_count, one_line};
use crate::transfer::import::{PreparedImport, is_an_id, is_there, keep, new_id, prepare};
use std::io::Read;
use std::path::Path;

/// Maximum size of the imported file in bytes.
const FILE_BYTES: u64 = 1 << 30;

pub(crate) fn run(app: &AppContext, file: &Path) -> Result<Exit, CliError> {
    let name = if file == Path::new("-") { "stdin".to_owned() } else { file.display().to_string() };
    let text = read(file).map_err(|reason| CliError::usage(format!("cannot read `{name}`: {reason}")))?;
    let store = open_store(app)?;
    let PreparedImport { mut foreign, artifacts, mut notices } =
        prepare(&app.workspace, &text).map_err(|problem| CliError::usage(problem.with_location(format!("`{name}`"))))?;
    let given = foreign.session.id.clone();
    if !is_an_id(given.as_str()) || is_there(&store, &given) {
        foreign.session.id = new_id();
        notices.push(if given.as_str().is_empty() {
            "the file has no session ID; assigned a new one".to_owned()
        } else if is_an_id(given.as_str()) {
            format!("session `{given}` already exists; assigned a new ID")
        } else {
            format!("`{}` is not an aye session ID; assigned a new one", one_line(given.as_str()))
        });
    }
    // Artifacts are stored before the session, so that the references in the session resolve. If the session is not
    // saved, the artifacts expire.
    notices.extend(keep(&app.artifacts(Some(&foreign.session.id)), artifacts));
    let records = foreign.records.len() as u64;
    while !store.import(foreign.clone())? {
        foreign.session.id = new_id();
    }
    let id = &foreign.session.id;
    print_text(&format!("imported session {id}: {}\n", format_count(records, "record")));
    for line in &notices {
        warn(line);
    }
    warn(format!("to continue: `aye --resume={}`", id.as_str().get(..8).unwrap_or(id.as_str())));
    Ok(Exit::Completed)
}

fn read(file: &Path) -> Result<String, String> {
    let mut text = String::new();
    let read = if file == Path::new("-") {
        std::io::stdin().lock().take(FILE_BYTES + 1).read_to_string(&mut text)
    } else {
        std::fs::File::open(file).and_then(|file| file.take(FILE_BYTES + 1).read_to_string(&mut text))
    };
    match read {
        Ok(bytes) if bytes as u64 > FILE_BYTES => Err(format!("larger than {FILE_BYTES} bytes, the limit for a session")),
        Ok(_) => Ok(text),
        Err(error) if error.kind() == std::io::ErrorKind::InvalidData => Err("not UTF-8 text; expected JSON".to_owned()),
        Err(error) => Err(error.to_string()),
    }
}
