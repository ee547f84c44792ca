//! Starts a session behind the screen.

use super::session_open::{OpenOutcome, SessionOpener};
use super::session_runner::{SessionOutcome, wait_for_exit};
use crate::cli::screen::TuiChannels;
use crate::host::error::CliError;
use crate::host::query_service::QueryService;
use crate::store::Store;
use crate::tui::StartupQuestion;

/// Opens the store and the session behind the screen, and runs the session until it ends.
pub(crate) async fn open(opening: SessionOpener, wires: TuiChannels) -> SessionOutcome {
    let opened = tokio::task::spawn_blocking(move || {
        let store = match Store::open(&opening.app.directories.data) {
            Ok(store) => store,
            Err(error) => return (Vec::new(), Err(error.into())),
        };
        (store.notices().to_vec(), opening.open(store))
    });
    let (notices, opened) = opened.await.unwrap_or_else(|error| {
        let trouble = CliError::failed(format!("cannot open the session: {error}"));
        (Vec::new(), Err(trouble))
    });
    match opened {
        Ok(opened) => SessionOutcome { notices, ..Box::pin(run(opened, wires)).await },
        // Dropping the channels closes the screen.
        Err(trouble) => SessionOutcome { notices, trouble: Some(trouble), ..SessionOutcome::default() },
    }
}

pub(crate) async fn run(opened: OpenOutcome, wires: TuiChannels) -> SessionOutcome {
    match opened {
        OpenOutcome::Several(desk) => {
            desk.follow_keys();
            let TuiChannels { start, ahead, commands, queries, .. } = wires;
            let serving = QueryService::new(desk).serve(queries);
            let _ = ahead.send(StartupQuestion::Choose);
            wait_for_exit(commands).await;
            serving.end().await;
            // Dropping this sender earlier would close the screen.
            drop(start);
            SessionOutcome::default()
        }
        OpenOutcome::One(backstage) => {
            let mut remains = SessionOutcome::default();
            remains.changed = Box::pin(backstage.run(wires, &mut remains.session)).await;
            remains
        }
    }
}
