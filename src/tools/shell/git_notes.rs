//! Notes about git in an approval prompt.

use crate::policy::{GitWrites, SandboxSetting, git_writes, programs};
use crate::tools::sandbox::RepositoryTrust;
use crate::tools::settings::Settings;

/// Returns notes about the sandbox of this line in addition to the general ones.
pub(in crate::tools) fn git_notes(line: &str, settings: &Settings) -> Vec<String> {
    let holds =
        settings.command.sandbox.tier.is_enforcing() && settings.command.sandbox.setting == SandboxSetting::WorkspaceWrite;
    let writes = match git_writes(line) {
        GitWrites::Writes | GitWrites::Makes if !holds => None,
        GitWrites::Nothing => None,
        GitWrites::Writes => {
            Some("git  this whole line can write `.git`, except its hooks, config and info and those of its modules")
        }
        GitWrites::Makes => Some("git  this whole line can write `.git`, and create one where none exists"),
    };
    let untrusted =
        settings.command.sandbox.trust == RepositoryTrust::Untrusted && programs(line).iter().any(|name| name == "git");
    let apart =
        untrusted.then_some("git  the project is not trusted: filters, hooks and other programs of the repository are disabled");
    writes.into_iter().chain(apart).map(str::to_owned).collect()
}
