//! Screen of a session or of first-time setup: options, channels, and text printed after it has closed.

pub(crate) mod current_workspace;
pub(crate) mod desktop;
pub(crate) mod editor;
pub(crate) mod exit_summary;
mod task_programs;
pub(crate) mod tui_options;

use crate::agent;
use crate::host::context::AppContext;
use crate::host::options::Common;
use crate::protocol::{Event, Query, SessionCommand};
use crate::sys::{allocator, fatal_signals};
use crate::tui::{self, Start, StartupQuestion, TuiHandles};
use std::io::{self, IsTerminal};
use std::sync::Arc;
use tokio::sync::{mpsc, oneshot};

/// Channels between the session and the screen.
pub(crate) struct TuiChannels {
    pub start: oneshot::Sender<Start>,
    pub ahead: mpsc::UnboundedSender<StartupQuestion>,
    pub commands: mpsc::Receiver<SessionCommand>,
    pub queries: mpsc::Receiver<Query>,
    pub events: mpsc::UnboundedSender<Event>,
}

/// Creates the handles for a screen, together with the session's ends of its channels.
pub(crate) fn connect(options: tui::UiOptions, prompt: Option<String>, typed: String) -> (TuiHandles, TuiChannels) {
    tui::on_grammars_freed(|| {
        allocator::release_code_pages();
        allocator::release_free_memory();
    });
    fatal_signals::install(tui::restore_from_signal);
    let (commands, receive_commands) = mpsc::channel(agent::CHANNEL_DEPTH);
    let (queries, receive_queries) = mpsc::channel(agent::CHANNEL_DEPTH);
    let (events, receive_events) = mpsc::unbounded_channel();
    let (start, receive_start) = oneshot::channel();
    let (ahead, receive_ahead) = mpsc::unbounded_channel();
    let front = TuiHandles {
        commands,
        queries,
        events: receive_events,
        options,
        prompt,
        typed,
        start: receive_start,
        ahead: receive_ahead,
        editor: tui::Editor(Arc::new(crate::cli::screen::editor::edit)),
    };
    (front, TuiChannels { start, ahead, commands: receive_commands, queries: receive_queries, events })
}

/// Returns whether to use line mode, either because it is configured or because a full-screen UI cannot be drawn.
pub(crate) fn is_plain(common: &Common, app: &AppContext) -> bool {
    let is_dumb = matches!(app.environment.get("TERM"), Some("dumb" | "emacs"));
    common.plain || is_dumb || app.settings.is_line_based() || !io::stdout().is_terminal()
}
