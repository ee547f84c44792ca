//! Shows the effects of a preview as a unified diff with git headers.

use crate::protocol::{EffectKind, FileDiff, FileDiffs};
use crate::sys::file;
use crate::sys::overlay::{Change, Changes, Node, NodeKind};
use crate::tools::diff::cuts::{HunkLines, indivisible_reason};
use crate::tools::diff::{compare, prepare_text};
use crate::tools::document::content::{Document, Form};
use crate::tools::paths::display_path_one_line;
use crate::tools::settings::ToolSettings;
use std::io::Read;
use std::ops::Range;
use std::path::Path;

/// File size in bytes above which no content is shown.
const MAX_FILE_BYTES: u64 = 256 * 1024;
/// Size limit in bytes for all diffs together.
const MAX_BYTES: usize = 512 * 1024;
const MAX_FILES: usize = 500;
/// Number of bytes by which a large file is recognized as text.
const SNIFFED_BYTES: u64 = 8 * 1024;

pub(super) struct EffectsDiff<'a> {
    settings: &'a ToolSettings,
    files: FileDiffs,
    /// Number of hunks so far.
    hunks: usize,
    /// Hunks of the last file that can be omitted separately.
    cuts: Vec<HunkLines>,
    /// Total size in bytes of the diffs as text.
    bytes: usize,
    without: u64,
}

/// One side of a change.
enum Side {
    Nothing,
    /// The text in its original and its redacted form.
    Text(String, String),
    Link(String),
    Large,
    Binary,
}

impl Side {
    fn is_binary(&self) -> bool {
        matches!(self, Self::Binary)
    }

    fn lines(&self) -> Option<&str> {
        match self {
            Self::Nothing => Some(""),
            Self::Text(_, text) | Self::Link(text) => Some(text),
            Self::Large | Self::Binary => None,
        }
    }
}

impl<'a> EffectsDiff<'a> {
    pub(crate) fn new(settings: &'a ToolSettings) -> Self {
        Self { settings, files: FileDiffs::default(), hunks: 0, cuts: Vec::new(), bytes: 0, without: 0 }
    }

    /// Returns the diff along with the number of files that it omits.
    pub(crate) fn finish(self) -> (FileDiffs, u64) {
        (self.files, self.without)
    }

    pub(crate) fn add_move(&mut self, from: &str, to: &str, similarity: u32) {
        self.add(FileDiff::with_title(from, to).with_similarity(similarity).renamed(from, to));
    }

    /// Adds the change to one file. Returns its effect with details of the content, the position of its hunks, and the
    /// hunks that can be omitted separately.
    pub(crate) fn file(
        &mut self,
        change: &Change,
        changes: &Changes,
        kind: EffectKind,
    ) -> (EffectKind, Range<usize>, Vec<HunkLines>) {
        let first = self.hunks;
        self.cuts.clear();
        let kind = self.effect(change, changes, kind);
        (kind, first..self.hunks, std::mem::take(&mut self.cuts))
    }

    fn effect(&mut self, change: &Change, changes: &Changes, kind: EffectKind) -> EffectKind {
        let name = display_path_one_line(&changes.old(&change.path), self.settings);
        match kind {
            EffectKind::Renamed { from, changed } => {
                self.add_move(&from, &name, 100);
                EffectKind::Renamed { from, changed }
            }
            EffectKind::ModeChanged { from, to } => {
                if let Some(after) = change.after
                    && from != to
                {
                    let file = FileDiff::with_title(&name, &name);
                    self.add(file.with_modes(&git_mode(&after, from), &git_mode(&after, to)));
                }
                EffectKind::ModeChanged { from, to }
            }
            EffectKind::Created { bytes, .. } => {
                let binary = self.content(change, changes, &name);
                EffectKind::Created { bytes, binary }
            }
            EffectKind::Changed { bytes_before, bytes_after, .. } => {
                let binary = self.content(change, changes, &name);
                EffectKind::Changed { bytes_before, bytes_after, binary }
            }
            EffectKind::Deleted { bytes, .. } => {
                let binary = self.content(change, changes, &name);
                EffectKind::Deleted { bytes, binary }
            }
            EffectKind::Linked { to } => {
                self.content(change, changes, &name);
                EffectKind::Linked { to }
            }
            kind @ (EffectKind::DirectoryCreated | EffectKind::DirectoryDeleted { .. }) => kind,
        }
    }

    /// Adds the lines that changed. Returns whether either side is binary.
    fn content(&mut self, change: &Change, changes: &Changes, name: &str) -> bool {
        let plain = |node: Option<Node>| node.filter(|node| matches!(node.kind, NodeKind::File | NodeKind::Link));
        let (before, after) = (plain(change.before), plain(change.after));
        let room = self.has_room();
        let limit = if room { MAX_FILE_BYTES } else { 0 };
        let (old, new) =
            (self.side(&changes.old(&change.path), before, limit), self.side(&changes.new_content(&change.path), after, limit));
        let binary = old.is_binary() || new.is_binary();
        match (before, after) {
            // Entries of different kinds are not compared.
            (Some(was), Some(is)) if was.kind != is.kind => {
                self.add_part(name, Some(was), None, (&old, &Side::Nothing));
                self.add_part(name, None, Some(is), (&Side::Nothing, &new));
            }
            (before, after) => self.add_part(name, before, after, (&old, &new)),
        }
        binary
    }

    fn add_part(&mut self, name: &str, before: Option<Node>, after: Option<Node>, (old, new): (&Side, &Side)) {
        let binary = old.is_binary() || new.is_binary();
        let mode = |node: &Node| git_mode(node, node.mode);
        let file = FileDiff::with_title(name, name);
        let file = match (before, after) {
            (None, Some(after)) => file.created(&mode(&after)),
            (Some(before), None) => file.deleted(&mode(&before)),
            (Some(before), Some(after)) if before.mode != after.mode && after.kind == NodeKind::File => {
                file.with_modes(&mode(&before), &mode(&after))
            }
            _ => file,
        };
        let texts = (old, new);
        match (old.lines(), new.lines()) {
            (Some(old), Some(new)) => {
                let old_name = if before.is_some() { format!("a/{name}") } else { "/dev/null".to_owned() };
                let new_name = if after.is_some() { format!("b/{name}") } else { "/dev/null".to_owned() };
                let diff = compare(old, new);
                let added = self.add(file.with_hunks(&old_name, &new_name, diff.hunks));
                let is_split = added && before.is_some() && after.is_some() && diff.cuts.len() > 1;
                self.cuts = diff.cuts;
                if !(is_split && self.can_be_split(&texts)) {
                    self.cuts.clear();
                }
            }
            _ if binary => {
                self.add(file.binary(name));
            }
            _ => self.without += 1,
        }
    }

    /// Returns whether a file's hunks can be applied separately.
    fn can_be_split(&self, (old, new): &(&Side, &Side)) -> bool {
        match (old, new) {
            (Side::Text(old, _), Side::Text(new, _)) => indivisible_reason(old, new, self.settings).is_none(),
            _ => false,
        }
    }

    fn has_room(&self) -> bool {
        self.files.len() < MAX_FILES && self.bytes < MAX_BYTES
    }

    /// Adds a file's diff, or merely counts it if the limit has been reached. Returns whether it was added.
    fn add(&mut self, file: FileDiff) -> bool {
        let bytes = file.text_bytes();
        if !self.has_room() || self.bytes + bytes > MAX_BYTES {
            self.without += 1;
            return false;
        }
        self.bytes += bytes;
        self.hunks += file.hunks.len();
        self.files.push(file);
        true
    }

    fn side(&self, path: &Path, node: Option<Node>, limit: u64) -> Side {
        let Some(node) = node else { return Side::Nothing };
        let hidden = |text: &str| self.settings.redactor.redact(text).text.into_owned();
        if node.kind == NodeKind::Link {
            let says = crate::sys::path::read_link(path).map(|says| says.to_string_lossy().into_owned());
            return Side::Link(hidden(&says.unwrap_or_else(|_| "?".to_owned())));
        }
        if node.bytes > limit.min(self.settings.max_file_size_bytes) {
            return if is_binary(path) { Side::Binary } else { Side::Large };
        }
        match file::read(path, limit).map(|bytes| Document::decode(&bytes)) {
            Ok(Ok(document)) => {
                let shown = prepare_text(&document.text, self.settings);
                Side::Text(document.text, shown)
            }
            Ok(Err(_)) => Side::Binary,
            Err(_) => Side::Large,
        }
    }
}

/// Returns whether a file, judging by its first bytes, is not text.
fn is_binary(path: &Path) -> bool {
    let Ok(file) = crate::sys::path::open_file(path) else { return false };
    let mut start = Vec::new();
    let read = file.take(SNIFFED_BYTES).read_to_end(&mut start);
    let start = match std::str::from_utf8(&start) {
        // The last character may be incomplete.
        Err(error) if error.error_len().is_none() => &start[..error.valid_up_to()],
        _ => &start[..],
    };
    read.is_ok() && Form::detect(start).is_err()
}

/// Formats a mode as git does, but including the bits that git does not store.
fn git_mode(node: &Node, mode: u32) -> String {
    match node.kind {
        NodeKind::Link => "120000".to_owned(),
        NodeKind::Directory => format!("04{mode:04o}"),
        NodeKind::File | NodeKind::Special => format!("10{mode:04o}"),
    }
}
