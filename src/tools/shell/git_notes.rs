//! Notes on git for the approval prompt.

use crate::policy::{GitWrites, SandboxSetting, git_writes, programs};
use crate::protocol::ToolError;
use crate::tools::error::invalid;
use crate::tools::sandbox::RepositoryTrust;
use crate::tools::settings::ToolSettings;

/// Returns an error for a line whose git commands would write to a read-only repository.
pub(in crate::tools) fn check_read_only_git(line: &str, settings: &ToolSettings) -> Result<(), ToolError> {
    if settings.command.git_is_read_only && git_writes(line) != GitWrites::Nothing {
        return Err(invalid(
            "`.git` is read-only in this copy of the workspace; leave the changes uncommitted: the user applies them as files",
        ));
    }
    Ok(())
}

/// Returns notes on this line's sandbox, in addition to the general ones.
pub(in crate::tools) fn git_notes(line: &str, settings: &ToolSettings) -> Vec<String> {
    let holds =
        settings.command.sandbox.tier.is_enforcing() && settings.command.sandbox.setting == SandboxSetting::WorkspaceWrite;
    let writes = match git_writes(line) {
        GitWrites::Writes | GitWrites::Makes if !holds => None,
        GitWrites::Nothing => None,
        GitWrites::Writes => Some(
            "git  any command on this line can write to `.git`, but not to `hooks`, `config` or `info` of the repository \
             or its submodules",
        ),
        GitWrites::Makes => Some("git  any command on this line can write to `.git`, and create one where none exists"),
    };
    let untrusted =
        settings.command.sandbox.trust == RepositoryTrust::Untrusted && programs(line).iter().any(|name| name == "git");
    let apart =
        untrusted.then_some("git  the project is not trusted: filters, hooks and other programs of the repository are disabled");
    writes.into_iter().chain(apart).map(str::to_owned).collect()
}
