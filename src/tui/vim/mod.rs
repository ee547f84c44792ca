//! Vim keys for the draft: normal and insert mode, operators, motions, text objects, counts, undo and `.`.

mod area;
mod edit;
mod motion;
mod objects;
mod operator;
#[cfg(test)]
mod tests;
mod undo;

use area::{cursor_place, cut, line_end};
pub(crate) use area::{is_too_large, move_cursor};
use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use edit::settle_cursor;
pub(crate) use motion::Place;
use motion::{Find, Lines, Motion};
use operator::Operator;
use tui_textarea::TextArea;
use undo::Undo;

/// Maximum value of a count.
const MAX: usize = 9_999;
/// Keys that Vim handles only if the draft is not empty.
const FOR_TEXT: &str = ":/?!=<>|{}%\"'`[]@mqzZ";
/// Maximum number of keys that a count may repeat. It prevents a mistyped count from blocking the UI.
const MAX_AGAIN: usize = 20_000;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum VimMode {
    Insert,
    Normal,
}

/// Effect that a key had on the draft.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum KeyOutcome {
    /// Vim does not handle the key.
    Nothing,
    /// The cursor may have moved, but the text has not changed.
    Moved,
    Changed,
}

/// Meaning of the next key, as determined by the keys before it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum PendingKeys {
    Nothing,
    /// Second key of a command that starts with `g`.
    Go,
    Find {
        forward: bool,
        till: bool,
    },
    Replace,
    /// Name of a text object, which follows an operator and `i` or `a`.
    Object {
        around: bool,
    },
    /// Name that follows a command not available in drafts, such as `m` (mark) or `"` (register). It is ignored.
    Name,
    /// Command line or search that follows `:`, `/` or `?`. It is ignored up to its end.
    Line,
}

/// Key and the mode in which it was typed.
type RecordedKey = (KeyEvent, VimMode);

/// Text that was deleted or yanked, and whether it consists of whole lines.
#[derive(Debug, Clone, Default)]
struct Register {
    text: String,
    by_lines: bool,
}

/// Range of text to which an operator applies.
enum Extent {
    /// Characters from the first position up to, but not including, the second.
    Letters(Place, Place),
    /// Rows from the first up to and including the second.
    Rows(usize, usize),
}

#[derive(Debug)]
pub(crate) struct Vim {
    mode: VimMode,
    count: Option<usize>,
    operator: Option<(Operator, usize)>,
    waits: PendingKeys,
    register: Register,
    last_find: Option<Find>,
    /// Keys of the current change. `last_change` contains those of the previous change, for `.`.
    typed: Vec<RecordedKey>,
    last_change: Vec<RecordedKey>,
    /// Whether the command being typed changes the draft.
    is_change: bool,
    repeats: bool,
    /// Keys typed in insert mode. They are inserted `insert_times` times, with each repetition on its own row if
    /// `inserts_rows` is set.
    inserted: Vec<KeyEvent>,
    insert_times: usize,
    inserts_rows: bool,
    undo: Undo,
}

impl Default for Vim {
    fn default() -> Self {
        Self {
            mode: VimMode::Insert,
            count: None,
            operator: None,
            waits: PendingKeys::Nothing,
            register: Register::default(),
            last_find: None,
            typed: Vec::new(),
            last_change: Vec::new(),
            is_change: false,
            repeats: false,
            inserted: Vec::new(),
            insert_times: 1,
            inserts_rows: false,
            undo: Undo::default(),
        }
    }
}

impl Vim {
    pub(crate) fn mode(&self) -> VimMode {
        self.mode
    }

    /// Returns whether the user is typing a Vim command line, which has no effect.
    pub(crate) fn is_in_command_line(&self) -> bool {
        self.waits == PendingKeys::Line
    }

    /// Resets the state for a new draft.
    pub(crate) fn reset(&mut self) {
        (self.mode, self.count, self.operator, self.waits) = (VimMode::Insert, None, None, PendingKeys::Nothing);
        (self.typed, self.is_change) = (Vec::new(), false);
        self.inserts(1, false);
        self.undo = Undo::default();
    }

    /// Discards pending keys because the text of the draft was replaced.
    pub(crate) fn reset_pending(&mut self) {
        if self.mode != VimMode::Insert {
            self.mode = VimMode::Normal;
        }
        (self.typed, self.is_change) = (Vec::new(), false);
        self.finish_command(KeyOutcome::Moved);
    }

    /// Enters insert mode. The inserted text will be repeated `times` times, with each repetition on its own row if
    /// `in_rows` is set.
    fn inserts(&mut self, times: usize, in_rows: bool) {
        (self.mode, self.insert_times, self.inserts_rows) = (VimMode::Insert, times, in_rows);
        self.inserted.clear();
    }

    /// Records that the draft's text was corrected after the last change, which had produced `text`.
    pub(crate) fn correct_change(&mut self, text: &str, area: &TextArea<'_>) {
        self.undo.correct(text, area);
    }

    /// Handles a key while the draft has keyboard focus.
    pub(crate) fn key(&mut self, area: &mut TextArea<'_>, key: KeyEvent) -> KeyOutcome {
        if !self.repeats {
            self.typed.push((key, self.mode));
            self.undo.begin_change(area);
        }
        let did = match self.mode {
            VimMode::Insert => self.insert(area, key),
            VimMode::Normal => self.command(area, key),
        };
        if did == KeyOutcome::Nothing {
            self.typed.pop();
        }
        let is_idle =
            self.mode == VimMode::Normal && self.operator.is_none() && self.count.is_none() && self.waits == PendingKeys::Nothing;
        self.is_change |= did == KeyOutcome::Changed || self.mode == VimMode::Insert;
        if is_idle && !self.repeats {
            self.undo.end_change(area);
            let typed = std::mem::take(&mut self.typed);
            // Repetition and undo are not changes that `.` repeats.
            if std::mem::take(&mut self.is_change) && !typed.is_empty() {
                self.last_change = typed;
            }
        }
        did
    }

    fn command(&mut self, area: &mut TextArea<'_>, key: KeyEvent) -> KeyOutcome {
        let control = key.modifiers.contains(KeyModifiers::CONTROL);
        if key.code == KeyCode::Esc {
            return self.escape();
        }
        if self.waits == PendingKeys::Line {
            let is_typed = !key.modifiers.intersects(KeyModifiers::CONTROL | KeyModifiers::ALT);
            return match key.code {
                KeyCode::Enter => self.finish_command(KeyOutcome::Moved),
                KeyCode::Char(_) | KeyCode::Backspace if is_typed => KeyOutcome::Moved,
                // Keys that stop a task or answer a dialog work in every mode.
                _ => self.finish_command(KeyOutcome::Nothing),
            };
        }
        if key.code == KeyCode::Enter && (self.waits != PendingKeys::Nothing || self.operator.is_some()) {
            // Enter cancels a pending command, because the user is unlikely to want to send the draft.
            return self.finish_command(KeyOutcome::Moved);
        }
        let KeyCode::Char(letter) = key.code else { return KeyOutcome::Nothing };
        if control {
            return if letter == 'r' && self.waits == PendingKeys::Nothing && self.undo.redo(area) {
                settle_cursor(area);
                self.typed.clear();
                self.finish_command(KeyOutcome::Changed)
            } else {
                KeyOutcome::Nothing
            };
        }
        if key.modifiers.contains(KeyModifiers::ALT) {
            return KeyOutcome::Nothing;
        }
        match std::mem::replace(&mut self.waits, PendingKeys::Nothing) {
            PendingKeys::Nothing => self.on_char(area, letter),
            PendingKeys::Go if letter == 'g' => {
                let number = self.count;
                self.apply_motion(area, Motion::Line(number))
            }
            PendingKeys::Go | PendingKeys::Name | PendingKeys::Line => self.finish_command(KeyOutcome::Moved),
            PendingKeys::Find { forward, till } => {
                let find = Find { letter, forward, till, again: false };
                self.last_find = Some(find);
                self.apply_motion(area, Motion::Find(find))
            }
            PendingKeys::Replace => self.replace(area, letter),
            PendingKeys::Object { around } => self.object(area, letter, around),
        }
    }

    /// Cancels a pending command. If there is none, Vim does not handle the key.
    fn escape(&mut self) -> KeyOutcome {
        let is_open = self.operator.is_some() || self.count.is_some() || self.waits != PendingKeys::Nothing;
        self.finish_command(if is_open { KeyOutcome::Moved } else { KeyOutcome::Nothing })
    }

    fn finish_command(&mut self, did: KeyOutcome) -> KeyOutcome {
        (self.count, self.operator, self.waits) = (None, None, PendingKeys::Nothing);
        did
    }

    fn times(&self) -> usize {
        (self.count.unwrap_or(1) * self.operator.map_or(1, |(_, count)| count)).clamp(1, MAX)
    }

    fn on_char(&mut self, area: &mut TextArea<'_>, letter: char) -> KeyOutcome {
        if let Some(digit) = letter.to_digit(10).filter(|digit| *digit > 0 || self.count.is_some()) {
            self.count = Some((self.count.unwrap_or(0) * 10 + digit as usize).min(MAX));
            return KeyOutcome::Moved;
        }
        // In an empty draft, the key may start text or be a key of the UI.
        if area.is_empty() && self.operator.is_none() && FOR_TEXT.contains(letter) {
            return self.finish_command(KeyOutcome::Nothing);
        }
        if let Some(motion) = self.motion(letter) {
            return self.apply_motion(area, motion);
        }
        match letter {
            'g' => self.waits = PendingKeys::Go,
            'f' | 't' | 'F' | 'T' => {
                self.waits = PendingKeys::Find { forward: letter.is_lowercase(), till: letter.eq_ignore_ascii_case(&'t') };
            }
            'i' | 'a' if self.operator.is_some() => self.waits = PendingKeys::Object { around: letter == 'a' },
            '"' | '\'' | '`' | 'm' | 'q' | '@' | 'z' | 'Z' | '[' | ']' => self.waits = PendingKeys::Name,
            _ if Operator::from_key(letter).is_some() => return self.begin_operator(area, Operator::from_key(letter)),
            _ if self.operator.is_some() => return self.finish_command(KeyOutcome::Moved),
            ':' | '/' | '?' => self.waits = PendingKeys::Line,
            'x' => return self.apply_operator(area, Operator::Delete, Motion::Right),
            'X' => return self.apply_operator(area, Operator::Delete, Motion::Left),
            's' => return self.apply_operator(area, Operator::Change, Motion::Right),
            'D' => return self.apply_operator(area, Operator::Delete, Motion::LineEnd),
            'C' => return self.apply_operator(area, Operator::Change, Motion::LineEnd),
            'S' => return self.rows(area, Operator::Change),
            'Y' => return self.rows(area, Operator::Yank),
            'p' | 'P' => return self.paste(area, letter == 'p'),
            'u' => {
                let changed = (0..self.times()).filter(|_| self.undo.undo(area)).count() > 0;
                settle_cursor(area);
                self.typed.clear();
                return self.finish_command(if changed { KeyOutcome::Changed } else { KeyOutcome::Moved });
            }
            'r' => self.waits = PendingKeys::Replace,
            '.' => return self.repeat(area),
            'i' | 'I' | 'a' | 'A' | 'o' | 'O' => return self.begin_insert(area, letter),
            // The key is not a Vim command.
            _ => {
                let did = if area.is_empty() { KeyOutcome::Nothing } else { KeyOutcome::Moved };
                return self.finish_command(did);
            }
        }
        KeyOutcome::Moved
    }

    fn motion(&self, letter: char) -> Option<Motion> {
        Some(match letter {
            'h' => Motion::Left,
            'l' | ' ' => Motion::Right,
            'j' => Motion::Down,
            'k' => Motion::Up,
            'w' | 'W' => Motion::WordForward { big: letter == 'W' },
            'b' | 'B' => Motion::WordBack { big: letter == 'B' },
            'e' | 'E' => Motion::WordEnd { big: letter == 'E' },
            '0' => Motion::LineStart,
            '^' => Motion::FirstLetter,
            '$' => Motion::LineEnd,
            'G' => self.count.map_or(Motion::LastLine, |number| Motion::Line(Some(number))),
            ';' => Motion::Find(Find { again: true, ..self.last_find? }),
            ',' => {
                let find = self.last_find?;
                Motion::Find(Find { forward: !find.forward, again: true, ..find })
            }
            _ => return None,
        })
    }

    /// Moves the cursor or, if an operator is pending, applies the operator to the range of the motion.
    fn apply_motion(&mut self, area: &mut TextArea<'_>, motion: Motion) -> KeyOutcome {
        if let Some((operator, _)) = self.operator {
            return self.apply_operator(area, operator, motion);
        }
        let lines = Lines::new(area.lines());
        let at = cursor_place(area);
        let Some(to) = lines.motion_target(at, motion, self.times()) else {
            // From its first or last line, the user may move to another prompt of the history.
            let leaves = matches!(motion, Motion::Up | Motion::Down);
            return self.finish_command(if leaves { KeyOutcome::Nothing } else { KeyOutcome::Moved });
        };
        move_cursor(area, Place { column: to.column.min(lines.last(to.row)), ..to });
        self.finish_command(KeyOutcome::Moved)
    }

    fn apply_operator(&mut self, area: &mut TextArea<'_>, operator: Operator, motion: Motion) -> KeyOutcome {
        let lines = Lines::new(area.lines());
        let from = cursor_place(area);
        // `cw` on the last character of a word changes only this character.
        let behind = Place { column: lines.next_column(from), ..from };
        if let (Operator::Change, Motion::WordForward { big }, 1) = (operator, motion, self.times())
            && lines.word(from, big, false).end == behind.column
        {
            return self.apply(area, operator, &Extent::Letters(from, behind));
        }
        // Changing a word keeps the spaces after the word.
        let motion = match (operator, motion) {
            (Operator::Change, Motion::WordForward { big })
                if !lines.text_between(from, line_end(&lines, from)).starts_with([' ', '\t']) =>
            {
                Motion::WordEnd { big }
            }
            (_, motion) => motion,
        };
        let times = self.times();
        let Some(mut to) = lines.motion_target(from, motion, times).or_else(|| (motion == Motion::LineEnd).then_some(from))
        else {
            return self.finish_command(KeyOutcome::Moved);
        };
        if motion.is_by_lines() {
            return self.apply(area, operator, &Extent::Rows(from.row.min(to.row), from.row.max(to.row)));
        }
        // Deleting the last word of a line keeps the line break.
        if matches!(motion, Motion::WordForward { .. }) && to.row > from.row && to.column <= lines.first_letter(to.row) {
            to = line_end(&lines, Place { row: to.row - 1, column: 0 });
        }
        let (from, mut to) = (from.min(to), from.max(to));
        if motion.is_inclusive() {
            to.column = lines.next_column(to);
        }
        self.apply(area, operator, &Extent::Letters(from, to))
    }

    /// Starts an operator, which then waits for its range. Typing the same operator twice applies it to the current
    /// row.
    fn begin_operator(&mut self, area: &mut TextArea<'_>, operator: Option<Operator>) -> KeyOutcome {
        match (self.operator, operator) {
            (Some((before, _)), Some(operator)) if before == operator => self.rows(area, operator),
            (None, Some(operator)) => {
                self.operator = Some((operator, self.count.take().unwrap_or(1)));
                KeyOutcome::Moved
            }
            _ => self.finish_command(KeyOutcome::Moved),
        }
    }

    /// Applies an operator to the current row and, if a count was typed, to the rows below it.
    fn rows(&mut self, area: &mut TextArea<'_>, operator: Operator) -> KeyOutcome {
        let row = cursor_place(area).row;
        let last = (row + self.times() - 1).min(area.lines().len() - 1);
        self.apply(area, operator, &Extent::Rows(row, last))
    }

    fn apply(&mut self, area: &mut TextArea<'_>, operator: Operator, extent: &Extent) -> KeyOutcome {
        let lines = Lines::new(area.lines());
        let (from, to, by_lines) = match *extent {
            Extent::Letters(from, to) => (from, to, false),
            Extent::Rows(first, last) => {
                (Place { row: first, column: 0 }, line_end(&lines, Place { row: last, column: 0 }), true)
            }
        };
        self.register = Register { text: lines.text_between(from, to), by_lines };
        area.set_yank_text(self.register.text.clone());
        if operator == Operator::Yank {
            move_cursor(area, if by_lines { cursor_place(area) } else { from });
            return self.finish_command(KeyOutcome::Moved);
        }
        // Deleting rows also removes one line break.
        let (start, end) = match (by_lines && operator == Operator::Delete, from.row > 0, to.row + 1 < lines.count()) {
            (true, _, true) => (from, Place { row: to.row + 1, column: 0 }),
            (true, true, false) => (line_end(&lines, Place { row: from.row - 1, column: 0 }), to),
            (_, _, _) => (from, to),
        };
        cut(area, start, end);
        if operator == Operator::Change {
            self.inserts(1, false);
        } else {
            let lines = Lines::new(area.lines());
            let row = from.row.min(lines.count() - 1);
            let column = if by_lines { lines.first_letter(row) } else { from.column.min(lines.last(row)) };
            move_cursor(area, Place { row, column });
        }
        self.finish_command(KeyOutcome::Changed)
    }
}
