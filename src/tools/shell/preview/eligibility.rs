//! Determines whether a command is eligible for a preview, and the reason if it is not.

use crate::policy::{Attendance, GitWrites, attendance, git_writes};
use crate::ports::LayerRun;
use crate::protocol::{PreviewOffer, SandboxTier};
use crate::sys::sandbox::NetworkAccess;
use crate::tools::sandbox::RepositoryTrust;
use crate::tools::sandbox::Writes;
use crate::tools::settings::ToolSettings;
use crate::tools::shell::command_run::PlannedCommand;

const UNTRUSTED: &str = "this project is not trusted";

/// Returns whether a planned line can be previewed, with the reason if it cannot.
pub(in crate::tools) fn offer(work: &PlannedCommand, settings: &ToolSettings) -> PreviewOffer {
    match obstacle(work, settings) {
        Some(reason) => PreviewOffer::Impossible { reason },
        None => PreviewOffer::Possible,
    }
}

fn obstacle(work: &PlannedCommand, settings: &ToolSettings) -> Option<String> {
    if !work.opens.is_empty() {
        return Some("the command has network access or access outside the workspace, and previews support neither".to_owned());
    }
    layer_obstacle(work, settings)
}

/// Returns the reason why a command cannot run in a layer, whatever its access.
fn layer_obstacle(work: &PlannedCommand, settings: &ToolSettings) -> Option<String> {
    let sandbox = &settings.command.sandbox;
    if work.background {
        return Some("the command keeps running in the background, but a preview ends with its command".to_owned());
    }
    if work.narrow.read_only || sandbox.writes_in_workspace() == Writes::Nothing {
        return Some("commands can only read the workspace, so there is nothing to preview".to_owned());
    }
    if let Some(reason) = system_obstacle(settings) {
        return Some(reason);
    }
    if git_writes(&work.line) != GitWrites::Nothing {
        return Some("git commands that write cannot be previewed: previews do not include `.git`".to_owned());
    }
    let stays = attendance(&work.line) == Some(Attendance::Endless);
    stays.then(|| "the command keeps running in the background, but a preview ends with its command".to_owned())
}

/// Returns the reason why no command can run in a layer on this system or under this policy.
fn system_obstacle(settings: &ToolSettings) -> Option<String> {
    let sandbox = &settings.command.sandbox;
    if sandbox.tier < SandboxTier::Preview {
        let why = sandbox.previews.as_ref().err().cloned();
        return Some(
            why.unwrap_or_else(|| format!("this system's sandbox (`{}`) does not support previews", sandbox.tier.as_str())),
        );
    }
    if let Err(why) = &sandbox.previews {
        return Some(why.clone());
    }
    let is_open = sandbox.network == NetworkAccess::Open;
    is_open.then(|| "the policy gives the command network access, which previews do not support".to_owned())
}

/// Returns the reason why no command can run in a layer before its approval in this project.
pub(in crate::tools) fn copy_obstacle(settings: &ToolSettings) -> Option<String> {
    let is_trusted = settings.command.sandbox.trust == RepositoryTrust::Trusted;
    system_obstacle(settings).or_else(|| (!is_trusted).then(|| UNTRUSTED.to_owned()))
}

/// Returns whether a planned line can run in a layer and have its effects approved afterwards. Performs blocking I/O.
pub(in crate::tools) fn layer(work: &PlannedCommand, settings: &ToolSettings) -> LayerRun {
    let impossible = |reason: String| LayerRun::Impossible { reason };
    // The author of the policy determined what named commands and custom tools run.
    if work.pinned.is_none() || work.answer.is_some() {
        return LayerRun::None;
    }
    if let Some(reason) = layer_obstacle(work, settings) {
        return impossible(reason);
    }
    if settings.command.sandbox.trust != RepositoryTrust::Trusted {
        return impossible(UNTRUSTED.to_owned());
    }
    LayerRun::Possible
}
