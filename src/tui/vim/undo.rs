//! Changes as Vim counts them: all that was typed in one go is one, however many letters it has.

use super::{Place, go};
use tui_textarea::TextArea;

/// Changes that are kept, and the bytes of all of them together: what was changed first goes first.
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
    /// The draft before the change that is under way.
    before: Option<String>,
}

impl Undo {
    /// A change may begin with the next key.
    pub fn begins(&mut self, area: &TextArea<'_>) {
        if self.before.is_none() {
            self.before = Some(text_of(area));
        }
    }

    /// It is over, if there was one.
    pub fn ends(&mut self, area: &TextArea<'_>) {
        let Some(before) = self.before.take() else { return };
        let after = text_of(area);
        if before != after {
            self.undone.clear();
            self.done.push(Change { before, after });
            let bytes = |changes: &[Change]| changes.iter().map(|change| change.before.len() + change.after.len()).sum::<usize>();
            while self.done.len() > CHANGES || (self.done.len() > 1 && bytes(&self.done) > BYTES) {
                self.done.remove(0);
            }
        }
    }

    /// Takes the last one back; whether the draft is still what it made of it.
    pub fn back(&mut self, area: &mut TextArea<'_>) -> bool {
        self.before = None;
        let text = text_of(area);
        let Some(change) = self.done.pop_if(|change| change.after == text) else { return false };
        put(area, &change.after, &change.before);
        self.undone.push(change);
        true
    }

    /// Makes the one that was taken back last again.
    pub fn again(&mut self, area: &mut TextArea<'_>) -> bool {
        self.before = None;
        let text = text_of(area);
        let Some(change) = self.undone.pop_if(|change| change.before == text) else { return false };
        put(area, &change.before, &change.after);
        self.done.push(change);
        true
    }
}

fn text_of(area: &TextArea<'_>) -> String {
    area.lines().join("\n")
}

/// Another text, with the cursor where the two begin to differ.
fn put(area: &mut TextArea<'_>, from: &str, to: &str) {
    let same = from.chars().zip(to.chars()).take_while(|(one, other)| one == other).map(|(one, _)| one.len_utf8()).sum();
    let yanked = area.yank_text();
    area.select_all();
    area.cut();
    area.insert_str(to);
    area.set_yank_text(yanked);
    let start = to[..same].rfind('\n').map_or(0, |end| end + 1);
    go(area, Place { row: to[..same].matches('\n').count(), column: to[start..same].chars().count() });
}
