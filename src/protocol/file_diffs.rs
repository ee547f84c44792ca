//! Diffs of several files as one value, which is stored and sent as a unified diff.

use super::file_diff::{DiffHunk, DiffSide, FileDiff, read};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::fmt;
use std::ops::Deref;
use std::sync::Arc;

/// Non-empty file diffs, in order. Clones share memory, because a proposal has several owners.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct FileDiffs(Arc<Vec<FileDiff>>);

impl FileDiffs {
    /// Parses a unified diff. Lines that belong to no hunk or header are preserved as remarks.
    pub fn read(unified: &str) -> Self {
        Self(Arc::new(read(unified)))
    }

    /// Appends a file diff, unless it is empty.
    pub fn push(&mut self, file: FileDiff) {
        if !file.is_empty() {
            Arc::make_mut(&mut self.0).push(file);
        }
    }

    /// Returns the hunks of all files.
    pub fn hunks(&self) -> impl Iterator<Item = &DiffHunk> {
        self.0.iter().flat_map(|file| &file.hunks)
    }

    /// Returns mutable references to the hunks of all files. Clones of this value are not affected.
    pub fn hunks_mut(&mut self) -> impl Iterator<Item = &mut DiffHunk> {
        Arc::make_mut(&mut self.0).iter_mut().flat_map(|file| &mut file.hunks)
    }

    /// Returns the number of added lines in all files.
    pub fn added_lines(&self) -> usize {
        self.count(DiffSide::Added)
    }

    /// Returns the number of removed lines in all files.
    pub fn removed_lines(&self) -> usize {
        self.count(DiffSide::Removed)
    }

    fn count(&self, side: DiffSide) -> usize {
        self.hunks().flat_map(|hunk| &hunk.lines).filter(|line| line.side == side).count()
    }

    /// Returns the length of the unified diff in bytes.
    pub fn text_bytes(&self) -> usize {
        self.0.iter().map(FileDiff::text_bytes).sum()
    }
}

impl Deref for FileDiffs {
    type Target = [FileDiff];

    fn deref(&self) -> &[FileDiff] {
        &self.0
    }
}

impl From<FileDiff> for FileDiffs {
    fn from(file: FileDiff) -> Self {
        std::iter::once(file).collect()
    }
}

impl FromIterator<FileDiff> for FileDiffs {
    fn from_iter<I: IntoIterator<Item = FileDiff>>(files: I) -> Self {
        let mut diffs = Self::default();
        diffs.extend(files);
        diffs
    }
}

impl Extend<FileDiff> for FileDiffs {
    fn extend<I: IntoIterator<Item = FileDiff>>(&mut self, files: I) {
        files.into_iter().for_each(|file| self.push(file));
    }
}

impl IntoIterator for FileDiffs {
    type Item = FileDiff;
    type IntoIter = std::vec::IntoIter<FileDiff>;

    fn into_iter(self) -> Self::IntoIter {
        Arc::unwrap_or_clone(self.0).into_iter()
    }
}

impl fmt::Display for FileDiffs {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|file| file.fmt(f))
    }
}

impl Serialize for FileDiffs {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for FileDiffs {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer).map(|unified| Self::read(&unified))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::protocol::Proposal;

    #[test]
    fn stored_proposals_contain_their_diff_as_text() {
        let stored = r#"{"summary":"Edit x","diff":"--- a/x\n+++ b/x\n@@ -1,2 +1 @@\n a\n-b\n","paths":["/w/x"],"bytes":2}"#;
        let proposal: Proposal = serde_json::from_str(stored).unwrap();
        assert_eq!((proposal.diff.added_lines(), proposal.diff.removed_lines()), (0, 1));
        assert_eq!(serde_json::to_string(&proposal).unwrap(), stored);
        let none = serde_json::to_string(&Proposal::default()).unwrap();
        assert_eq!(none, r#"{"summary":"","diff":"","paths":[],"bytes":0}"#);
    }

    #[test]
    fn empty_diffs_are_omitted() {
        let mut diffs = FileDiffs::from(FileDiff::new("a/x", "b/x", Vec::new()));
        diffs.push(FileDiff::with_title("y", "y"));
        assert_eq!((diffs.len(), diffs.text_bytes()), (1, "diff --git a/y b/y\n".len()));
    }
}
