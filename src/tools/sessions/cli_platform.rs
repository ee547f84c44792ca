//! The `CliGetPlatform` tool, which describes the system, the shell, and the sandbox in which commands run.

use crate::ports::{BoxFuture, RunContext};
use crate::protocol::{Action, SandboxTier, ToolError};
use crate::sys::process::Shell;
use crate::sys::sandbox::NetworkAccess;
use crate::tools::alias::Alias;
use crate::tools::call_result::CallResult;
use crate::tools::draft::{CallDraft, CallEffect};
use crate::tools::paths::Paths;
use crate::tools::sandbox::Writes;
use crate::tools::settings::ToolSettings;
use crate::tools::tool::Tool;
use futures_util::FutureExt;
use schemars::JsonSchema;
use serde::Deserialize;
use std::sync::Arc;

pub(in crate::tools) struct CliGetPlatform;

#[derive(Deserialize, JsonSchema)]
pub(in crate::tools) struct Arguments {}

impl Tool for CliGetPlatform {
    const NAME: &'static str = "CliGetPlatform";
    const ALIASES: &'static [Alias<Arguments>] = &[
        Alias::with_same_arguments("cli_get_platform"),
        Alias::with_same_arguments("get_platform"),
        Alias::with_same_arguments("platform"),
    ];
    const CAPABILITY: &'static str = "Shell.Exec";
    const DESCRIPTION: &'static str = include_str!("../../../assets/tools/CliGetPlatform.md");
    type Arguments = Arguments;
    type Work = ();

    fn actions(_: &Arguments, _: &Paths<'_>) -> Result<Vec<Action>, ToolError> {
        Ok(Vec::new())
    }

    fn draft(_: Arguments, _: &ToolSettings) -> Result<CallDraft<()>, ToolError> {
        let summary = "Describe the platform".to_owned();
        Ok(CallDraft { summary, actions: Vec::new(), proposal: None, effect: CallEffect::Reads, work: () })
    }

    fn run((): (), settings: Arc<ToolSettings>, _: RunContext) -> BoxFuture<'static, CallResult> {
        async move {
            let sandbox = &settings.command.sandbox;
            let network = match sandbox.network {
                NetworkAccess::Open => "same as the user",
                NetworkAccess::Proxied => "none, except what is allowed for one command",
            };
            let writes = match sandbox.writes_in_workspace() {
                Writes::All => "the workspace",
                Writes::Part => "part of the workspace, as set in the policy",
                Writes::Nothing => "nothing: the workspace is read-only",
            };
            let held = match sandbox.tier {
                SandboxTier::Bare => "sandbox: none; commands have all of the user's permissions".to_owned(),
                tier => format!("sandbox: {}\ncommands can write: {writes}\nnetwork: {network}", tier.as_str()),
            };
            let (system, machine) = (std::env::consts::OS, std::env::consts::ARCH);
            let shell = match settings.command.shell {
                Shell::Bash => "bash (CliSession also accepts sh)".to_owned(),
                other => format!("{other} (CliSession accepts bash or sh)"),
            };
            let workspace = settings.workspace.display();
            Ok(format!("system: {system}\nmachine: {machine}\nshell: {shell}\nworkspace: {workspace}\n{held}").into())
        }
        .boxed()
    }
}
