//! Commands that change the text without a motion.

use super::motion::{Lines, Motion, Place};
use super::{Extent, KeyOutcome, MAX_AGAIN, Mode, Operator, RecordedKey, Register, Vim, cut, go, here, line_end, put_rows};
use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use tui_textarea::TextArea;

/// Maximum size of text inserted by one count, in bytes, so that a mistyped count does not hang.
const MAX_PUT: usize = 1 << 20;
/// One step of indentation.
const STEP: &str = "    ";

impl Vim {
    pub(super) fn put(&mut self, area: &mut TextArea<'_>, behind: bool) -> KeyOutcome {
        let Register { text, by_lines } = &self.register;
        if text.is_empty() && !by_lines {
            return self.done(KeyOutcome::Moved);
        }
        let (times, at) = (self.times().min(MAX_PUT / text.len().max(1)).max(1), here(area));
        let lines = Lines::new(area.lines());
        if *by_lines {
            let rows = vec![text.as_str(); times].join("\n");
            let (place, words) = if behind {
                (line_end(&lines, at), format!("\n{rows}"))
            } else {
                (Place { column: 0, ..at }, format!("{rows}\n"))
            };
            go(area, place);
            area.insert_str(words);
            go(area, Place { row: at.row + usize::from(behind), column: 0 });
        } else {
            let words = text.repeat(times);
            go(area, if behind { Place { column: lines.behind(at), ..at } } else { at });
            area.insert_str(words);
            let end = here(area);
            go(area, Place { column: Lines::new(area.lines()).before(end), ..end });
        }
        self.done(KeyOutcome::Changed)
    }

    /// Replaces the selection with the register, which then holds the replaced text.
    pub(super) fn put_over(&mut self, area: &mut TextArea<'_>) -> KeyOutcome {
        let kept = self.register.clone();
        let ends_line = self.selection(area).is_some_and(|(_, (row, column))| column >= Lines::new(area.lines()).length(row));
        self.on_selection(area, 'd');
        let taken = std::mem::replace(&mut self.register, kept);
        self.put(area, ends_line);
        self.register = taken;
        self.done(KeyOutcome::Changed)
    }

    pub(super) fn replace(&mut self, area: &mut TextArea<'_>, letter: char) -> KeyOutcome {
        let at = here(area);
        let lines = Lines::new(area.lines());
        let times = self.times();
        let mut end = at;
        for _ in 0..times {
            if end.column >= lines.length(at.row) {
                return self.done(KeyOutcome::Moved);
            }
            end.column = lines.behind(end);
        }
        cut(area, at, end);
        area.insert_str(letter.to_string().repeat(times));
        go(area, Place { column: at.column + times - 1, ..at });
        self.done(KeyOutcome::Changed)
    }

    pub(super) fn turn_case(&mut self, area: &mut TextArea<'_>) -> KeyOutcome {
        let from = here(area);
        let lines = Lines::new(area.lines());
        let Some(to) = lines.to(from, Motion::Right, self.times()) else { return self.done(KeyOutcome::Moved) };
        self.write_over(area, &Extent::Letters(from, to), &in_case(Operator::TurnCase));
        let lines = Lines::new(area.lines());
        go(area, Place { column: to.column.min(lines.last(to.row)), ..to });
        self.done(KeyOutcome::Changed)
    }

    /// Replaces every character in a range.
    pub(super) fn write_over(&mut self, area: &mut TextArea<'_>, extent: &Extent, made: &dyn Fn(char) -> String) -> KeyOutcome {
        let lines = Lines::new(area.lines());
        let at = here(area);
        let (from, to, back) = match *extent {
            Extent::Letters(from, to) => (from, to, from),
            Extent::Rows(first, last) => {
                let from = Place { row: first, column: 0 };
                (from, line_end(&lines, Place { row: last, column: 0 }), Place { row: first.min(at.row), ..at })
            }
        };
        let words: String = lines
            .between(from, to)
            .chars()
            .map(|letter| if letter == '\n' { letter.to_string() } else { made(letter) })
            .collect();
        cut(area, from, to);
        go(area, from);
        area.insert_str(words);
        go(area, back);
        rest(area);
        self.done(KeyOutcome::Changed)
    }

    /// Indents whole rows by one step, or outdents by at most one step.
    pub(super) fn shift(&mut self, area: &mut TextArea<'_>, right: bool, extent: &Extent) -> KeyOutcome {
        let (first, last) = match *extent {
            Extent::Letters(from, to) => (from.row, to.row),
            Extent::Rows(first, last) => (first, last),
        };
        let shifted = |line: &String| {
            let blanks = line.bytes().take(STEP.len()).take_while(|byte| *byte == b' ').count();
            match line.strip_prefix('\t') {
                _ if right && line.is_empty() => String::new(),
                _ if right => format!("{STEP}{line}"),
                Some(rest) => rest.to_owned(),
                None => line[blanks..].to_owned(),
            }
        };
        let rows: Vec<String> = area.lines()[first..=last].iter().map(shifted).collect();
        put_rows(area, first..=last, &rows.join("\n"));
        go(area, Place { row: first, column: Lines::new(area.lines()).first_letter(first) });
        self.done(KeyOutcome::Changed)
    }

    /// Joins rows, separated by one space.
    pub(super) fn join(&mut self, area: &mut TextArea<'_>) -> KeyOutcome {
        let first = here(area).row;
        let last = (first + self.times().max(2) - 1).min(area.lines().len() - 1);
        if last == first {
            return self.done(KeyOutcome::Moved);
        }
        let mut row = area.lines()[first].clone();
        let mut joint = 0;
        for next in &area.lines()[first + 1..=last] {
            joint = row.chars().count();
            let next = next.trim_start_matches([' ', '\t']);
            if joint > 0 && !next.is_empty() {
                row.push(' ');
            }
            row.push_str(next);
        }
        put_rows(area, first..=last, &row);
        go(area, Place { row: first, column: joint });
        rest(area);
        self.done(KeyOutcome::Changed)
    }

    pub(super) fn begin_insert(&mut self, area: &mut TextArea<'_>, letter: char) -> KeyOutcome {
        let (at, lines) = (here(area), Lines::new(area.lines()));
        let times = self.times();
        let mut did = KeyOutcome::Moved;
        match letter {
            'I' => go(area, lines.to(at, Motion::FirstLetter, 1).unwrap_or(at)),
            'a' => go(area, Place { column: lines.behind(at), ..at }),
            'A' => go(area, line_end(&lines, at)),
            'o' => {
                go(area, line_end(&lines, at));
                area.insert_newline();
                did = KeyOutcome::Changed;
            }
            'O' => {
                go(area, Place { column: 0, ..at });
                area.insert_newline();
                go(area, Place { column: 0, ..at });
                did = KeyOutcome::Changed;
            }
            _ => {}
        }
        self.inserts(times, matches!(letter, 'o' | 'O'));
        self.overtypes = letter == 'R';
        self.done(did)
    }

    /// Handles a key in insert mode; the caller types everything except Escape.
    pub(super) fn insert(&mut self, area: &mut TextArea<'_>, key: KeyEvent) -> KeyOutcome {
        if key.code != KeyCode::Esc {
            let is_letter =
                matches!(key.code, KeyCode::Char(_)) && !key.modifiers.intersects(KeyModifiers::CONTROL | KeyModifiers::ALT);
            let (at, lines) = (here(area), Lines::new(area.lines()));
            if self.overtypes && is_letter && at.column < lines.length(at.row) {
                cut(area, at, Place { column: lines.behind(at), ..at });
            }
            return KeyOutcome::Nothing;
        }
        if area.is_empty() {
            // An empty draft has no use for commands, so Escape stops the task as elsewhere.
            return KeyOutcome::Nothing;
        }
        self.mode = Mode::Normal;
        let again = (self.insert_times - 1).min(MAX_AGAIN / self.inserted.len().max(1));
        for _ in 0..again {
            if self.inserts_rows {
                go(area, line_end(&Lines::new(area.lines()), here(area)));
                area.insert_newline();
            }
            for key in &self.inserted {
                area.input(*key);
            }
        }
        let lines = Lines::new(area.lines());
        let at = here(area);
        go(area, Place { column: if at.column > 0 { lines.before(at) } else { 0 }, ..at });
        if again > 0 { KeyOutcome::Changed } else { KeyOutcome::Moved }
    }

    /// Repeats the last change, with a new count if one is given.
    pub(super) fn repeat(&mut self, area: &mut TextArea<'_>) -> KeyOutcome {
        let count = self.count;
        self.done(KeyOutcome::Moved);
        // A draft typed from the start begins with an insertion.
        if self.last_change.first().is_some_and(|(_, mode)| *mode == Mode::Insert) {
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
            // A mismatch of modes ends the repetition: text is not a command, and vice versa.
            if self.mode != mode {
                break;
            }
            match (self.key(area, key), mode) {
                (KeyOutcome::Nothing, Mode::Insert) => {
                    area.input(key);
                    self.inserted.push(key);
                }
                (KeyOutcome::Nothing, _) => break,
                (KeyOutcome::Moved | KeyOutcome::Changed, _) => {}
            }
        }
        self.repeats = false;
        self.mode = Mode::Normal;
        self.typed.clear();
        rest(area);
        self.done(KeyOutcome::Changed)
    }

    /// Records a key that insert mode left to the draft's editing, for `.` and counts.
    pub(crate) fn was_typed(&mut self, key: KeyEvent) {
        self.typed.push((key, Mode::Insert));
        self.inserted.push(key);
    }
}

fn command(letter: char) -> RecordedKey {
    (KeyEvent::new(KeyCode::Char(letter), KeyModifiers::NONE), Mode::Normal)
}

/// Returns a function that changes the case of a character.
pub(super) fn in_case(operator: Operator) -> impl Fn(char) -> String {
    move |letter| {
        let to_upper = match operator {
            Operator::Upper => true,
            Operator::Lower => false,
            _ => !letter.is_uppercase(),
        };
        if to_upper { letter.to_uppercase().collect() } else { letter.to_lowercase().collect() }
    }
}

/// Moves the cursor back onto a character, if the line has one.
pub(super) fn rest(area: &mut TextArea<'_>) {
    let at = here(area);
    go(area, Place { column: at.column.min(Lines::new(area.lines()).last(at.row)), ..at });
}
