//! Commands that take no motion, and commands that take a text object.

use super::motion::{Lines, Motion, Place};
use super::{Extent, KeyOutcome, MAX_AGAIN, RecordedKey, Register, Vim, VimMode, cursor_place, cut, line_end, move_cursor};
use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use tui_textarea::TextArea;

/// Maximum size, in bytes, of the text inserted by a command with a count. It prevents a mistyped count from blocking
/// the UI.
const MAX_PUT: usize = 1 << 20;

impl Vim {
    pub(super) fn paste(&mut self, area: &mut TextArea<'_>, behind: bool) -> KeyOutcome {
        let Register { text, by_lines } = &self.register;
        if text.is_empty() && !by_lines {
            return self.finish_command(KeyOutcome::Moved);
        }
        let (times, at) = (self.times().min(MAX_PUT / text.len().max(1)).max(1), cursor_place(area));
        let lines = Lines::new(area.lines());
        if *by_lines {
            let rows = vec![text.as_str(); times].join("\n");
            let (place, words) = if behind {
                (line_end(&lines, at), format!("\n{rows}"))
            } else {
                (Place { column: 0, ..at }, format!("{rows}\n"))
            };
            move_cursor(area, place);
            area.insert_str(words);
            move_cursor(area, Place { row: at.row + usize::from(behind), column: 0 });
        } else {
            let words = text.repeat(times);
            move_cursor(area, if behind { Place { column: lines.next_column(at), ..at } } else { at });
            area.insert_str(words);
            let end = cursor_place(area);
            move_cursor(area, Place { column: Lines::new(area.lines()).previous_column(end), ..end });
        }
        self.finish_command(KeyOutcome::Changed)
    }

    pub(super) fn replace(&mut self, area: &mut TextArea<'_>, letter: char) -> KeyOutcome {
        let at = cursor_place(area);
        let lines = Lines::new(area.lines());
        let times = self.times();
        let mut end = at;
        for _ in 0..times {
            if end.column >= lines.length(at.row) {
                return self.finish_command(KeyOutcome::Moved);
            }
            end.column = lines.next_column(end);
        }
        cut(area, at, end);
        area.insert_str(letter.to_string().repeat(times));
        move_cursor(area, Place { column: at.column + times - 1, ..at });
        self.finish_command(KeyOutcome::Changed)
    }

    /// Applies the pending operator to the text object named by `letter`.
    pub(super) fn object(&mut self, area: &mut TextArea<'_>, letter: char, around: bool) -> KeyOutcome {
        let at = cursor_place(area);
        let lines = Lines::new(area.lines());
        let in_row = |found: std::ops::Range<usize>| {
            Extent::Letters(Place { column: found.start, ..at }, Place { column: found.end, ..at })
        };
        let found = match letter {
            'w' | 'W' => Some(in_row(lines.word(at, letter == 'W', around))),
            '"' | '\'' | '`' => lines.quoted(at, letter, around).map(in_row),
            '(' | ')' | 'b' => lines.bracket_range(at, ('(', ')'), around).map(|(from, to)| Extent::Letters(from, to)),
            '{' | '}' | 'B' => lines.bracket_range(at, ('{', '}'), around).map(|(from, to)| Extent::Letters(from, to)),
            '[' | ']' => lines.bracket_range(at, ('[', ']'), around).map(|(from, to)| Extent::Letters(from, to)),
            '<' | '>' => lines.bracket_range(at, ('<', '>'), around).map(|(from, to)| Extent::Letters(from, to)),
            _ => None,
        };
        match (found, self.operator) {
            (Some(found), Some((operator, _))) => self.apply(area, operator, &found),
            (_, _) => self.finish_command(KeyOutcome::Moved),
        }
    }

    pub(super) fn begin_insert(&mut self, area: &mut TextArea<'_>, letter: char) -> KeyOutcome {
        let (at, lines) = (cursor_place(area), Lines::new(area.lines()));
        let times = self.times();
        let mut did = KeyOutcome::Moved;
        match letter {
            'I' => move_cursor(area, lines.motion_target(at, Motion::FirstLetter, 1).unwrap_or(at)),
            'a' => move_cursor(area, Place { column: lines.next_column(at), ..at }),
            'A' => move_cursor(area, line_end(&lines, at)),
            'o' => {
                move_cursor(area, line_end(&lines, at));
                area.insert_newline();
                did = KeyOutcome::Changed;
            }
            'O' => {
                move_cursor(area, Place { column: 0, ..at });
                area.insert_newline();
                move_cursor(area, Place { column: 0, ..at });
                did = KeyOutcome::Changed;
            }
            _ => {}
        }
        self.inserts(times, matches!(letter, 'o' | 'O'));
        self.finish_command(did)
    }

    /// Handles a key in insert mode. Every key other than Escape is left to the caller to insert.
    pub(super) fn insert(&mut self, area: &mut TextArea<'_>, key: KeyEvent) -> KeyOutcome {
        if key.code != KeyCode::Esc {
            return KeyOutcome::Nothing;
        }
        if area.is_empty() {
            // Normal mode is useless in an empty draft, so Escape stops the task as it does without Vim keys.
            return KeyOutcome::Nothing;
        }
        self.mode = VimMode::Normal;
        let again = (self.insert_times - 1).min(MAX_AGAIN / self.inserted.len().max(1));
        for _ in 0..again {
            if self.inserts_rows {
                move_cursor(area, line_end(&Lines::new(area.lines()), cursor_place(area)));
                area.insert_newline();
            }
            for key in &self.inserted {
                area.input(*key);
            }
        }
        let lines = Lines::new(area.lines());
        let at = cursor_place(area);
        move_cursor(area, Place { column: if at.column > 0 { lines.previous_column(at) } else { 0 }, ..at });
        if again > 0 { KeyOutcome::Changed } else { KeyOutcome::Moved }
    }

    /// Repeats the last change. A count, if one was typed, replaces the change's own count.
    pub(super) fn repeat(&mut self, area: &mut TextArea<'_>) -> KeyOutcome {
        let count = self.count;
        self.finish_command(KeyOutcome::Moved);
        // The recorded keys of a draft that was typed from the start begin in insert mode.
        if self.last_change.first().is_some_and(|(_, mode)| *mode == VimMode::Insert) {
            self.last_change.insert(0, command('i'));
        }
        let mut keys = self.last_change.clone();
        if let Some(count) = count {
            keys.retain({
                let mut in_count = true;
                move |(key, _)| {
                    in_count &= matches!(key.code, KeyCode::Char('0'..='9'));
                    !in_count
                }
            });
            keys.splice(0..0, count.to_string().chars().map(command));
            self.last_change.clone_from(&keys);
        }
        self.repeats = true;
        for (key, mode) in keys {
            // If the modes differ, text would be run as commands, or commands inserted as text.
            if self.mode != mode {
                break;
            }
            match (self.key(area, key), mode) {
                (KeyOutcome::Nothing, VimMode::Insert) => {
                    area.input(key);
                    self.inserted.push(key);
                }
                (KeyOutcome::Nothing, _) => break,
                (KeyOutcome::Moved | KeyOutcome::Changed, _) => {}
            }
        }
        self.repeats = false;
        self.mode = VimMode::Normal;
        self.typed.clear();
        settle_cursor(area);
        self.finish_command(KeyOutcome::Changed)
    }

    /// Records a key that was inserted into the draft in insert mode, so that `.` and counts can repeat it.
    pub(crate) fn record_typed(&mut self, key: KeyEvent) {
        self.typed.push((key, VimMode::Insert));
        self.inserted.push(key);
    }
}

fn command(letter: char) -> RecordedKey {
    (KeyEvent::new(KeyCode::Char(letter), KeyModifiers::NONE), VimMode::Normal)
}

/// Moves the cursor from the end of the line back onto the last character, if the line has one.
pub(super) fn settle_cursor(area: &mut TextArea<'_>) {
    let at = cursor_place(area);
    move_cursor(area, Place { column: at.column.min(Lines::new(area.lines()).last(at.row)), ..at });
}
