//! Applied and pending changes, listed by file.

use super::methods::{Patch, PatchPreview, PatchStatus};
use crate::protocol::{Approval, ChangeStatus, ChangedFiles, FileDiff};
use std::path::Path;

/// Returns the changes by file, with the pending ones first.
pub(crate) fn preview<'a>(pending: impl Iterator<Item = &'a Approval>, changed: ChangedFiles, workspace: &Path) -> PatchPreview {
    let mut files: Vec<Patch> = pending.flat_map(|approval| split_proposal(approval, workspace)).collect();
    files.extend(changed.files.into_iter().map(|file| Patch {
        path: file.path,
        status: match file.status {
            ChangeStatus::Added => PatchStatus::Added,
            ChangeStatus::Modified => PatchStatus::Modified,
            ChangeStatus::Deleted => PatchStatus::Deleted,
            ChangeStatus::ModeChanged => PatchStatus::ModeChanged,
            ChangeStatus::TypeChanged => PatchStatus::TypeChanged,
        },
        diff: file.diff.to_string(),
        approval_id: None,
        note: file.note,
    }));
    let mut notes = changed.notes;
    if changed.more_files > 0 {
        notes.push(format!("{} more files changed and are not listed", changed.more_files));
    }
    PatchPreview { files, notes }
}

/// Splits a proposal by file. Each file gets a diff of its own, if the diffs can be separated.
fn split_proposal(approval: &Approval, workspace: &Path) -> Vec<Patch> {
    let proposal = &approval.proposal;
    let patch = |path: String, diff: String| Patch {
        path,
        status: PatchStatus::Pending,
        note: diff.is_empty().then(|| proposal.summary.clone()),
        diff,
        approval_id: Some(approval.approval_id.to_string()),
    };
    let diffs: Vec<&FileDiff> = proposal.diff.iter().filter(|diff| !diff.hunks.is_empty()).collect();
    let name = |at: usize| proposal.paths.get(at).map(|path| path.strip_prefix(workspace).unwrap_or(path).display().to_string());
    if diffs.len() == proposal.paths.len() {
        return diffs.iter().enumerate().filter_map(|(at, diff)| Some(patch(name(at)?, diff.to_string()))).collect();
    }
    // If the number of diffs differs from the number of files (as for a move), the whole diff belongs to the first
    // path.
    let whole = |at: usize| if at == 0 { proposal.diff.to_string() } else { String::new() };
    (0..proposal.paths.len()).filter_map(|at| Some(patch(name(at)?, whole(at)))).collect()
}

#[cfg(test)]
mod tests {
    use crate::protocol::FileDiffs;

    #[test]
    fn a_diff_of_several_files_is_split_by_file() {
        let diff = "--- a/x\n+++ b/x\n@@ -1 +1 @@\n--- a/no head\n-a\n+b\n--- a/y\n+++ b/y\n@@ -0,0 +1 @@\n+c\n";
        let files: Vec<String> = FileDiffs::read(diff).iter().map(ToString::to_string).collect();
        assert_eq!(files.len(), 2);
        assert!(files[0].ends_with("+b\n") && files[1].starts_with("--- a/y\n"), "{files:?}");
        assert!(FileDiffs::read("").is_empty());
    }
}
