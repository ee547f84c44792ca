//! `aye setup` on a terminal: shows first-time setup in panels, without a session.

use crate::cli::screen::connect;
use crate::cli::screen::current_workspace::CurrentWorkspace;
use crate::cli::screen::exit_summary::farewell;
use crate::cli::screen::tui_options;
use crate::host::console::print_text;
use crate::host::context::AppContext;
use crate::host::error::CliError;
use crate::host::exit::Exit;
use crate::host::options::Common;
use crate::host::policy_layers::Policy;
use crate::host::setup::handler::answer;
use crate::host::startup;
use crate::host::startup::start_log;
use crate::protocol::{ChangedFiles, Event, EventKind, HostResponse, Query, SessionId, SetupEvent, SetupRequest};
use crate::tui;
use std::time::Duration;
use tokio::sync::mpsc;

/// Maximum time to wait for pending writes after the screen has closed.
const SHUTDOWN_TIMEOUT: Duration = Duration::from_secs(65);

pub(crate) fn run(common: &Common, app: &AppContext) -> Result<Exit, CliError> {
    let _log = start_log(app, common.verbosity);
    // The user may run the setup to fix an invalid policy.
    let policy = app.policy(None, None).unwrap_or_else(|_| Policy::from_layers(Vec::new(), String::new()));
    let runtime = startup::runtime()?;
    runtime.block_on(async {
        let here = CurrentWorkspace::new(app, &policy);
        let options = tui::UiOptions { sets_up: true, ..tui_options::options(app, &here, common.color) };
        let (front, wires) = connect(options, None, String::new());
        let answers = tokio::spawn(answer_queries(app.clone(), wires.queries, wires.events));
        let outcome = tui::run(front).await.map_err(|error| CliError::failed(format!("terminal error: {error}")))?;
        // Dropping these senders earlier would close the screen.
        drop((wires.start, wires.ahead));
        let lines = tokio::time::timeout(SHUTDOWN_TIMEOUT, answers).await.ok().and_then(Result::ok).unwrap_or_default();
        for line in lines {
            print_text(&format!("{}\n", crate::text::reveal(&line)));
        }
        print_text(super::NEXT);
        Ok(farewell(&outcome, &ChangedFiles::default()))
    })
}

/// Handles setup queries until the screen closes. Returns lines that describe the files that were written.
async fn answer_queries(
    app: AppContext,
    mut queries: mpsc::Receiver<Query>,
    events: mpsc::UnboundedSender<Event>,
) -> Vec<String> {
    let mut all = Vec::new();
    while let Some(query) = queries.recv().await {
        let Query::Setup(asked) = query else { continue };
        let (app, events) = (app.clone(), events.clone());
        if matches!(asked, SetupRequest::Test { .. }) {
            // The test uses the network, so other queries do not wait for it.
            tokio::spawn(async move { send_answer(&app, &events, Box::pin(answer(&app, asked)).await) });
            continue;
        }
        let told = Box::pin(answer(&app, asked)).await;
        match &told {
            SetupEvent::Taken { lines, .. } | SetupEvent::Ended { lines, .. } => all.extend(lines.iter().cloned()),
            SetupEvent::Failed { problem } if events.is_closed() => all.push(problem.text()),
            SetupEvent::Found(_) | SetupEvent::Tested { .. } | SetupEvent::Failed { .. } => {}
        }
        send_answer(&app, &events, told);
    }
    all
}

fn send_answer(app: &AppContext, events: &mpsc::UnboundedSender<Event>, told: SetupEvent) {
    // Fails only if the screen has closed.
    let _ = events.send(Event {
        workspace_id: app.workspace_id(),
        session_id: SessionId::new(String::new()),
        task_id: None,
        step_id: None,
        timestamp: jiff::Timestamp::now(),
        kind: EventKind::LookedUp(HostResponse::Setup(told)),
    });
}
