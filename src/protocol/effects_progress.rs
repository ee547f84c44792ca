//! Progress of reading or applying the effects of a command.

use super::group_digits;
use serde::{Deserialize, Serialize};

/// Progress of aye's work on the changes of a command in its copy-on-write layer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct EffectsProgress {
    pub stage: EffectsStage,
    /// Number of files so far in this stage. In `listing` and `comparing`, it counts changed paths, including
    /// directories.
    pub done: u64,
    /// Number of files or paths in this stage, if it is known. In `comparing`, it grows with each directory of the
    /// workspace.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub total: Option<u64>,
    /// Time since the first stage began, in milliseconds. It starts again when the effects are applied.
    pub elapsed_ms: u64,
}

/// Stage of the work on the changes of a command, in order. Stages can repeat: `listing` and `comparing` for each
/// directory of the workspace, and `preparing` if aye discards build output that has changed in the meantime.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum EffectsStage {
    /// The changed files are being listed after the command has ended.
    Listing,
    /// The changed files are being compared with the previous ones.
    Comparing,
    /// The changed files are being copied or written to disk before the first one is applied.
    Preparing,
    /// The changes are being applied.
    Applying,
}

impl EffectsProgress {
    /// Returns the progress on one line: `Applying 12,400 of 30,000 files`.
    pub fn summary(&self) -> String {
        let verb = match self.stage {
            EffectsStage::Listing => "Listing",
            EffectsStage::Comparing => "Comparing",
            EffectsStage::Preparing => "Preparing",
            EffectsStage::Applying => "Applying",
        };
        match self.total {
            Some(total) => format!("{verb} {} of {} {}", group_digits(self.done), group_digits(total), noun(total)),
            None => format!("{verb} changes: {} {}", group_digits(self.done), noun(self.done)),
        }
    }
}

fn noun(files: u64) -> &'static str {
    if files == 1 { "file" } else { "files" }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_summary_names_the_stage_and_the_counts() {
        let cases = [
            (EffectsStage::Applying, 12_400, Some(30_000), "Applying 12,400 of 30,000 files"),
            (EffectsStage::Preparing, 0, Some(1_234_567), "Preparing 0 of 1,234,567 files"),
            (EffectsStage::Comparing, 999, Some(1_000), "Comparing 999 of 1,000 files"),
            (EffectsStage::Applying, 0, Some(1), "Applying 0 of 1 file"),
            (EffectsStage::Listing, 1, None, "Listing changes: 1 file"),
            (EffectsStage::Listing, 999, None, "Listing changes: 999 files"),
            (EffectsStage::Listing, 45_000, None, "Listing changes: 45,000 files"),
        ];
        for (stage, done, total, expected) in cases {
            assert_eq!(EffectsProgress { stage, done, total, elapsed_ms: 0 }.summary(), expected);
        }
    }
}
