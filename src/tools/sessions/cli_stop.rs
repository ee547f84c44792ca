//! The `CliStop` tool, which ends a session or background command along with all its processes.

use crate::ports::{BoxFuture, RunContext};
use crate::protocol::{Action, ToolError};
use crate::tools::alias::Alias;
use crate::tools::background::{BackgroundCommand, new_output};
use crate::tools::call_result::CallResult;
use crate::tools::draft::{CallDraft, CallEffect};
use crate::tools::paths::Paths;
use crate::tools::settings::ToolSettings;
use crate::tools::tool::Tool;
use futures_util::FutureExt;
use schemars::JsonSchema;
use serde::Deserialize;
use std::sync::Arc;
use std::time::Duration;

/// Maximum time to wait for the command to end.
const END_LIMIT: Duration = Duration::from_secs(8);

pub(in crate::tools) struct CliStop;

#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(in crate::tools) struct Arguments {
    /// ID returned by CliSession or RunCommand, for example `s1`.
    id: String,
}

impl Tool for CliStop {
    const NAME: &'static str = "CliStop";
    const ALIASES: &'static [Alias<Arguments>] = &[
        Alias::with_same_arguments("cli_stop"),
        Alias::with_same_arguments("stop_session"),
        Alias::with_same_arguments("kill_session"),
        Alias::with_same_arguments("kill_shell"),
        Alias::with_same_arguments("KillShell"),
        Alias::with_same_arguments("KillBash"),
        Alias::with_same_arguments("job_kill"),
        Alias::with_same_arguments("kill_process"),
    ];
    const CAPABILITY: &'static str = "Shell.Exec";
    const DESCRIPTION: &'static str = include_str!("../../../assets/tools/CliStop.md");
    type Arguments = Arguments;
    type Work = Arc<BackgroundCommand>;

    /// Returns no actions, because the tool ends only processes that aye itself started.
    fn actions(_: &Arguments, _: &Paths<'_>) -> Result<Vec<Action>, ToolError> {
        Ok(Vec::new())
    }

    fn draft(arguments: Arguments, settings: &ToolSettings) -> Result<CallDraft<Arc<BackgroundCommand>>, ToolError> {
        let entry = settings.session.commands.find(&arguments.id)?;
        Ok(CallDraft {
            summary: format!("Stop {}", entry.id()),
            actions: Vec::new(),
            proposal: None,
            effect: CallEffect::Changes,
            work: entry,
        })
    }

    fn run(entry: Arc<BackgroundCommand>, settings: Arc<ToolSettings>, _: RunContext) -> BoxFuture<'static, CallResult> {
        async move {
            entry.kill.cancel();
            let _ = tokio::time::timeout(END_LIMIT, entry.over()).await;
            Ok(new_output(&entry, settings.max_output_bytes))
        }
        .boxed()
    }
}
