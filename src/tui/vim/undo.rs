//! Undo history with the same granularity as in Vim: all text typed in one insertion is a single change.

use super::{Place, move_cursor};
use tui_textarea::TextArea;

/// Maximum number of changes that are stored. The oldest changes are dropped first, as they are when the total size
/// exceeds [`BYTES`].
const CHANGES: usize = 200;
const BYTES: usize = 4 << 20;

#[derive(Debug)]
struct Change {
    before: String,
    after: String,
}

#[derive(Debug, Default)]
pub(super) struct Undo {
    done: Vec<Change>,
    undone: Vec<Change>,
    /// Draft as it was before the current change, if one may be in progress.
    before: Option<String>,
}

impl Undo {
    /// Saves the draft because the next key may begin a change.
    pub(crate) fn begin_change(&mut self, area: &TextArea<'_>) {
        if self.before.is_none() {
            self.before = Some(area_text(area));
        }
    }

    /// Ends the current change and, if the draft differs from before, stores the change.
    pub(crate) fn end_change(&mut self, area: &TextArea<'_>) {
        let Some(before) = self.before.take() else { return };
        let after = area_text(area);
        if before != after {
            self.undone.clear();
            self.done.push(Change { before, after });
            let bytes = |changes: &[Change]| changes.iter().map(|change| change.before.len() + change.after.len()).sum::<usize>();
            while self.done.len() > CHANGES || (self.done.len() > 1 && bytes(&self.done) > BYTES) {
                self.done.remove(0);
            }
        }
    }

    /// Corrects the stored result of the last change because the draft's text was corrected afterwards.
    pub(crate) fn correct(&mut self, text: &str, area: &TextArea<'_>) {
        if let Some(change) = self.done.last_mut().filter(|change| change.after == text) {
            change.after = area_text(area);
        }
    }

    /// Undoes the last change. Returns `false` if there is none, or if the draft has been changed in another way since.
    pub(crate) fn undo(&mut self, area: &mut TextArea<'_>) -> bool {
        self.before = None;
        let text = area_text(area);
        let Some(change) = self.done.pop_if(|change| change.after == text) else { return false };
        replace_text(area, &change.after, &change.before);
        self.undone.push(change);
        true
    }

    /// Redoes the change that was last undone. Returns `false` if there is none, or if the draft has been changed
    /// since.
    pub(crate) fn redo(&mut self, area: &mut TextArea<'_>) -> bool {
        self.before = None;
        let text = area_text(area);
        let Some(change) = self.undone.pop_if(|change| change.before == text) else { return false };
        replace_text(area, &change.before, &change.after);
        self.done.push(change);
        true
    }
}

fn area_text(area: &TextArea<'_>) -> String {
    area.lines().join("\n")
}

/// Replaces the whole text and moves the cursor to the first difference.
fn replace_text(area: &mut TextArea<'_>, from: &str, to: &str) {
    let same = from.chars().zip(to.chars()).take_while(|(one, other)| one == other).map(|(one, _)| one.len_utf8()).sum();
    let yanked = area.yank_text();
    area.select_all();
    area.cut();
    area.insert_str(to);
    area.set_yank_text(yanked);
    let start = to[..same].rfind('\n').map_or(0, |end| end + 1);
    move_cursor(area, Place { row: to[..same].matches('\n').count(), column: to[start..same].chars().count() });
}
