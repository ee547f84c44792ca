//! Paths that a search could not read. They are reported, because the result would otherwise appear to be complete.

use super::top_k::TopItems;
use crate::sys::path::is_without_links;
use crate::tools::paths::display_path;
use crate::tools::settings::ToolSettings;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

/// Maximum number of paths to list.
const MAX_NAMED: usize = 3;

pub(in crate::tools) struct SkippedPlaces(Mutex<TopItems<(PathBuf, String)>>);

impl SkippedPlaces {
    pub(in crate::tools) fn new() -> Self {
        Self(Mutex::new(TopItems::new(MAX_NAMED)))
    }

    pub(in crate::tools) fn add(&self, path: &Path, reason: String) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).push((path.to_owned(), reason));
    }

    /// Records an error that occurred during the walk.
    pub(in crate::tools) fn add_error(&self, error: &ignore::Error) {
        match error {
            ignore::Error::WithPath { path, err } => {
                if let Some(error) = err.io_error() {
                    self.add_io(path, error);
                }
            }
            ignore::Error::WithDepth { err, .. } | ignore::Error::WithLineNumber { err, .. } => self.add_error(err),
            _ => {}
        }
    }

    /// Records an I/O error, unless the reason is that the path no longer exists.
    pub(in crate::tools) fn add_io(&self, path: &Path, error: &io::Error) {
        match error.kind() {
            io::ErrorKind::NotFound => {}
            io::ErrorKind::PermissionDenied => self.add(path, "permission denied".to_owned()),
            _ => self.add(path, error.to_string()),
        }
    }

    /// Returns the note to append to the result, which is empty if every file could be read.
    pub(in crate::tools) fn note(self, settings: &ToolSettings) -> String {
        let unread = self.0.into_inner().unwrap_or_else(PoisonError::into_inner);
        let seen = unread.seen;
        if seen == 0 {
            return String::new();
        }
        let there = unread.into_sorted().into_iter().filter(|(path, _)| is_without_links(path));
        let named: Vec<_> = there.map(|(path, reason)| format!("`{}`: {reason}", display_path(&path, settings))).collect();
        let more = if seen > MAX_NAMED as u64 { "; …" } else { "" };
        format!("\n[{seen} not read completely: {}{more}]", named.join("; "))
    }
}
