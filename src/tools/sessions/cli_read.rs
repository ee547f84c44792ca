//! The `CliRead` tool, which returns the output that a session or background command has produced since the last call.

use crate::ports::{BoxFuture, RunContext};
use crate::protocol::{Action, ErrorCode, ToolError};
use crate::sys::process::TerminalSize;
use crate::tools::alias::Alias;
use crate::tools::background::{BackgroundCommand, BackgroundKind, new_output, screen_text};
use crate::tools::call_result::CallResult;
use crate::tools::draft::{CallDraft, CallEffect};
use crate::tools::error::invalid;
use crate::tools::paths::Paths;
use crate::tools::settings::ToolSettings;
use crate::tools::tool::Tool;
use futures_util::FutureExt;
use schemars::JsonSchema;
use serde::Deserialize;
use std::sync::Arc;
use std::time::Duration;

/// Maximum waiting time in seconds. A call that does nothing but read times out slightly later.
pub(in crate::tools) const MAX_WAIT_SECONDS: u64 = 25;
/// Minimum and maximum terminal size, in rows and columns.
const ROWS: (u16, u16) = (2, 200);
const COLUMNS: (u16, u16) = (20, 400);

pub(in crate::tools) struct CliRead;

#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(in crate::tools) struct Arguments {
    /// ID returned by CliSession or RunCommand, for example `s1`.
    id: String,
    /// Seconds to wait for new output or the end: 0 by default, at most 25.
    #[schemars(range(min = 0, max = 25))]
    wait_seconds: Option<u64>,
    /// Return the whole screen instead of new output.
    screen: Option<bool>,
    /// Resize the terminal first.
    #[schemars(range(min = 2, max = 200))]
    rows: Option<u16>,
    /// Resize the terminal first.
    #[schemars(range(min = 20, max = 400))]
    columns: Option<u16>,
}

pub(in crate::tools) struct Work {
    entry: Arc<BackgroundCommand>,
    wait: Duration,
    screen: bool,
    size: Option<TerminalSize>,
}

impl Tool for CliRead {
    const NAME: &'static str = "CliRead";
    const ALIASES: &'static [Alias<Arguments>] = &[
        Alias::with_same_arguments("cli_read"),
        Alias::with_same_arguments("read_session"),
        Alias::with_same_arguments("bash_output"),
        Alias::with_same_arguments("BashOutput"),
        Alias::with_same_arguments("job_output"),
        Alias::with_same_arguments("read_terminal"),
        Alias::with_same_arguments("get_terminal_output"),
    ];
    const CAPABILITY: &'static str = "Shell.Exec";
    const DESCRIPTION: &'static str = include_str!("../../../assets/tools/CliRead.md");
    type Arguments = Arguments;
    type Work = Work;

    fn actions(_: &Arguments, _: &Paths<'_>) -> Result<Vec<Action>, ToolError> {
        Ok(Vec::new())
    }

    fn draft(arguments: Arguments, settings: &ToolSettings) -> Result<CallDraft<Work>, ToolError> {
        let entry = settings.session.commands.find(&arguments.id)?;
        let wait = wait_duration(arguments.wait_seconds, 0)?;
        let screen = arguments.screen.unwrap_or(false);
        let size = match (entry.kind, arguments.rows, arguments.columns) {
            (_, None, None) => None,
            (BackgroundKind::Session { size: first, .. }, rows, columns) => {
                let now = entry.size().unwrap_or(first);
                Some(size(rows, columns, now)?)
            }
            (BackgroundKind::Background, ..) => return Err(no_terminal(&entry)),
        };
        if screen && entry.kind == BackgroundKind::Background {
            return Err(no_terminal(&entry));
        }
        Ok(CallDraft {
            summary: format!("Read {}", entry.id()),
            actions: Vec::new(),
            proposal: None,
            effect: CallEffect::Reads,
            work: Work { entry, wait, screen, size },
        })
    }

    fn run(work: Work, settings: Arc<ToolSettings>, context: RunContext) -> BoxFuture<'static, CallResult> {
        async move {
            let Work { entry, wait, screen, size } = work;
            let before = entry.total();
            if let Some(size) = size {
                entry.resize(size).map_err(|error| {
                    ToolError::new(ErrorCode::ToolExecutionFailed, format!("cannot resize the terminal: {error}"))
                })?;
            }
            // Unread output is returned at once.
            let since = if size.is_none() && entry.has_unread() { before.saturating_sub(1) } else { before };
            tokio::select! {
                () = entry.wait_until_quiet(since, wait) => {}
                () = context.interrupt.cancelled() => {}
                () = context.background.cancelled() => {}
            }
            Ok(if screen { screen_text(&entry).into() } else { new_output(&entry, settings.max_output_bytes) })
        }
        .boxed()
    }
}

/// Returns how long a call waits. Fails if the given number of seconds exceeds the maximum.
pub(in crate::tools) fn wait_duration(given: Option<u64>, otherwise: u64) -> Result<Duration, ToolError> {
    let seconds = given.unwrap_or(otherwise);
    if seconds > MAX_WAIT_SECONDS {
        let message =
            format!("`waitSeconds` is {seconds}; it must be at most {MAX_WAIT_SECONDS}. Call CliRead again to wait longer");
        return Err(invalid(message));
    }
    Ok(Duration::from_secs(seconds))
}

pub(in crate::tools) fn size(
    rows: Option<u16>,
    columns: Option<u16>,
    otherwise: TerminalSize,
) -> Result<TerminalSize, ToolError> {
    let within = |name: &str, given: Option<u16>, (least, most): (u16, u16), otherwise: u16| match given {
        None => Ok(otherwise),
        Some(count) if (least..=most).contains(&count) => Ok(count),
        Some(count) => Err(invalid(format!("`{name}` is {count}; it must be {least} to {most}"))),
    };
    Ok(TerminalSize {
        rows: within("rows", rows, ROWS, otherwise.rows)?,
        columns: within("columns", columns, COLUMNS, otherwise.columns)?,
    })
}

fn no_terminal(entry: &BackgroundCommand) -> ToolError {
    invalid(format!("{} has no terminal: it was started by RunCommand; use CliSession for a command with a terminal", entry.id()))
}
