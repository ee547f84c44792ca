//! `aye sessions push`: uploads sessions to the object store.

use crate::host::console::{print_text, warn, warn_all};
use crate::host::context::AppContext;
use crate::host::error::CliError;
use crate::host::exit::Exit;
use crate::host::session_uploads::SessionUploads;
use crate::host::startup::{open_store, runtime};
use crate::protocol::SessionId;
use crate::services::workspace::{PushOptions, push};
use crate::transfer::format::format_count;

pub(crate) fn run(app: &AppContext, id: Option<&str>, take_over: bool) -> Result<Exit, CliError> {
    let store = open_store(app)?;
    let uploads = SessionUploads::for_command(app, &store)?;
    let sessions: Vec<SessionId> = if let Some(id) = id {
        vec![store.find(id)?.session_id]
    } else {
        let all = store.sessions(Some(&app.workspace_id()))?;
        all.into_iter().filter(|session| session.title.is_some() && !session.of_agent).map(|session| session.session_id).collect()
    };
    if sessions.is_empty() {
        print_text("no sessions yet\n");
    }
    let options = PushOptions { take_over };
    let runtime = runtime()?;
    let mut failed = 0_u64;
    for id in &sessions {
        let SessionUploads { bucket, local, machine } = &uploads;
        match runtime.block_on(push(bucket, local, id, machine, options)) {
            Ok(pushed) => {
                warn_all(&pushed.notices);
                let records = format_count(pushed.records, "record");
                let done = if pushed.changed { "pushed" } else { "up to date:" };
                print_text(&format!("{done} session {id}, {records}\n"));
            }
            Err(error) if sessions.len() == 1 => return Err(CliError::failed(error.problem)),
            Err(error) => {
                failed += 1;
                warn(error.problem);
            }
        }
    }
    match failed {
        0 => Ok(Exit::Completed),
        count => Err(CliError::failed(format!("{} not pushed", format_count(count, "session")))),
    }
}
