//! Notes on git for the approval prompt.

use crate::policy::{GitWrites, SandboxSetting, git_changes_settings, git_writes, planned_commit, programs};
use crate::protocol::ToolError;
use crate::tools::error::invalid;
use crate::tools::sandbox::RepositoryTrust;
use crate::tools::settings::ToolSettings;
use std::path::Path;

/// Returns an error for a line whose git commands would write to a read-only repository.
pub(in crate::tools) fn check_read_only_git(line: &str, settings: &ToolSettings) -> Result<(), ToolError> {
    if settings.command.git_is_read_only && git_writes(line) != GitWrites::Nothing {
        return Err(invalid(
            "`.git` is read-only in this copy of the workspace; leave the changes uncommitted: the user applies them as files",
        ));
    }
    Ok(())
}

const FAILS: &str = "git  the sandbox does not let it write `.git/config`, so it will fail: `o` runs it outside";

/// Maximum number of characters of a commit message in a summary.
const MESSAGE_CHARS: usize = 60;

/// Returns the summary of a line that only commits, such as `Commit 3 files to main: "message"`.
pub(in crate::tools) fn commit_summary(line: &str, directory: &Path, settings: &ToolSettings) -> Option<String> {
    let commit = planned_commit(line)?;
    let target = settings.command.commit_target.map(|find| find(directory, commit.all)).unwrap_or_default();
    let files = match target.files.filter(|_| !commit.adds) {
        None => String::new(),
        Some(1) => " 1 file".to_owned(),
        Some(files) => format!(" {files} files"),
    };
    let branch = target.branch.map(|branch| format!(" to {branch}")).unwrap_or_default();
    let message = commit.message.map(|message| {
        let first = message.lines().next().unwrap_or_default();
        let mut shown: String = first.chars().take(MESSAGE_CHARS).collect();
        if shown.len() < message.trim_end().len() {
            shown.push('…');
        }
        format!(": \"{shown}\"")
    });
    Some(format!("Commit{files}{branch}{}", message.unwrap_or_default()))
}

/// Returns a note on a command that certainly fails in the sandbox, because it changes the settings of a repository.
pub(in crate::tools) fn git_settings_note(line: &str, settings: &ToolSettings) -> Option<String> {
    let fails = settings.command.sandbox.tier.is_enforcing() && git_changes_settings(line);
    fails.then(|| FAILS.to_owned())
}

/// Removes the note of [`git_settings_note`] for a run outside the sandbox.
pub(in crate::tools) fn remove_settings_note(notes: &mut Vec<String>) {
    notes.retain(|note| note != FAILS);
}

/// Returns notes on the sandbox of git commands. They are the same for every line that uses git in the same way.
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
