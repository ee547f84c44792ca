//! Vim's keys for the draft: normal, insert and visual mode, operators with motions, counts, and `.`.

mod area;
mod edit;
mod motion;
mod objects;
mod operator;
mod select;
#[cfg(test)]
mod tests;
mod undo;

use area::{cut, here, line_end, put_rows};
pub use area::{go, is_too_large};
use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use edit::rest;
pub use motion::Place;
use motion::{Find, Lines, Motion};
use operator::Operator;
use tui_textarea::TextArea;
use undo::Undo;

/// Larger counts mean nothing in a draft.
const MAX: usize = 9_999;
/// What works on text alone.
const FOR_TEXT: &str = ":/?!=<>|{}%\"'`[]@mqzZ";
/// Keys that a count types again, all together: who meant another number is not to wait.
const MAX_AGAIN: usize = 20_000;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mode {
    Insert,
    Normal,
    Visual { by_lines: bool },
}

/// What a key did.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum KeyOutcome {
    /// It is not for the draft.
    Nothing,
    /// The text is as it was.
    Moved,
    Changed,
}

/// What the next key belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum PendingKeys {
    Nothing,
    /// After `g`.
    Go,
    Find {
        forward: bool,
        till: bool,
    },
    Replace,
    /// After `i` or `a` behind an operator.
    Object {
        around: bool,
    },
    /// The name of something that a draft does not have: a register, a mark.
    Name,
    /// A line for Vim itself, which a draft has not, up to its end.
    Line,
}

/// A key, and the mode that it was for.
type RecordedKey = (KeyEvent, Mode);

/// What was taken last.
#[derive(Debug, Clone, Default)]
struct Register {
    text: String,
    by_lines: bool,
}

/// What an operator works on.
enum Extent {
    /// Up to the second place, without it.
    Letters(Place, Place),
    /// These rows, both of them.
    Rows(usize, usize),
}

#[derive(Debug)]
pub struct Vim {
    mode: Mode,
    count: Option<usize>,
    operator: Option<(Operator, usize)>,
    waits: PendingKeys,
    register: Register,
    last_find: Option<Find>,
    /// Where the selection began.
    anchor: Place,
    /// The keys of the change under way, and of the one before, for `.`.
    typed: Vec<RecordedKey>,
    last_change: Vec<RecordedKey>,
    /// Whether the keys under way are a change by now.
    is_change: bool,
    repeats: bool,
    /// What insert mode was left to type since it began, how often it is wanted, and whether each time in a row of its own.
    inserted: Vec<KeyEvent>,
    insert_times: usize,
    inserts_rows: bool,
    /// Each letter that is typed takes the place of one.
    overtypes: bool,
    undo: Undo,
}

impl Default for Vim {
    fn default() -> Self {
        Self {
            mode: Mode::Insert,
            count: None,
            operator: None,
            waits: PendingKeys::Nothing,
            register: Register::default(),
            last_find: None,
            anchor: Place::default(),
            typed: Vec::new(),
            last_change: Vec::new(),
            is_change: false,
            repeats: false,
            inserted: Vec::new(),
            insert_times: 1,
            inserts_rows: false,
            overtypes: false,
            undo: Undo::default(),
        }
    }
}

impl Vim {
    pub fn mode(&self) -> Mode {
        self.mode
    }

    /// Whether a line for Vim itself is under way, which goes nowhere.
    pub fn is_in_line(&self) -> bool {
        self.waits == PendingKeys::Line
    }

    /// A new draft is typed.
    pub fn begin_anew(&mut self) {
        (self.mode, self.count, self.operator, self.waits) = (Mode::Insert, None, None, PendingKeys::Nothing);
        (self.typed, self.is_change) = (Vec::new(), false);
        self.inserts(1, false);
        self.undo = Undo::default();
    }

    /// Another text stands there now: what was begun or selected was in the one before.
    pub fn begins_elsewhere(&mut self) {
        if self.mode != Mode::Insert {
            self.mode = Mode::Normal;
        }
        (self.typed, self.is_change) = (Vec::new(), false);
        self.done(KeyOutcome::Moved);
    }

    /// Insert mode begins.
    fn inserts(&mut self, times: usize, in_rows: bool) {
        (self.mode, self.insert_times, self.inserts_rows, self.overtypes) = (Mode::Insert, times, in_rows, false);
        self.inserted.clear();
    }

    /// One key, while the draft has the keyboard.
    pub fn key(&mut self, area: &mut TextArea<'_>, key: KeyEvent) -> KeyOutcome {
        if !self.repeats {
            self.typed.push((key, self.mode));
            self.undo.begins(area);
        }
        let did = match self.mode {
            Mode::Insert => self.insert(area, key),
            Mode::Normal | Mode::Visual { .. } => self.command(area, key),
        };
        if did == KeyOutcome::Nothing {
            self.typed.pop();
        }
        let is_idle =
            self.mode == Mode::Normal && self.operator.is_none() && self.count.is_none() && self.waits == PendingKeys::Nothing;
        self.is_change |= did == KeyOutcome::Changed || self.mode == Mode::Insert;
        if is_idle && !self.repeats {
            self.undo.ends(area);
            let typed = std::mem::take(&mut self.typed);
            // What only repeats, or takes back, is no change of its own.
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
                KeyCode::Enter => self.done(KeyOutcome::Moved),
                KeyCode::Char(_) | KeyCode::Backspace if is_typed => KeyOutcome::Moved,
                // What stops a task or answers a question does so from everywhere.
                _ => self.done(KeyOutcome::Nothing),
            };
        }
        if key.code == KeyCode::Enter && (self.waits != PendingKeys::Nothing || self.operator.is_some()) {
            // What was begun is given up: nobody means to send a draft with it.
            return self.done(KeyOutcome::Moved);
        }
        let KeyCode::Char(letter) = key.code else { return KeyOutcome::Nothing };
        if control {
            return if letter == 'r' && self.waits == PendingKeys::Nothing && self.undo.again(area) {
                rest(area);
                self.typed.clear();
                self.done(KeyOutcome::Changed)
            } else {
                KeyOutcome::Nothing
            };
        }
        if key.modifiers.contains(KeyModifiers::ALT) {
            return KeyOutcome::Nothing;
        }
        match std::mem::replace(&mut self.waits, PendingKeys::Nothing) {
            PendingKeys::Nothing => self.letter(area, letter),
            PendingKeys::Go if letter == 'g' => {
                let number = self.count;
                self.moved(area, Motion::Line(number))
            }
            PendingKeys::Go => self.behind_go(area, letter),
            PendingKeys::Name | PendingKeys::Line => self.done(KeyOutcome::Moved),
            PendingKeys::Find { forward, till } => {
                let find = Find { letter, forward, till, again: false };
                self.last_find = Some(find);
                self.moved(area, Motion::Find(find))
            }
            PendingKeys::Replace if self.mode != Mode::Normal => self.fill(area, letter),
            PendingKeys::Replace => self.replace(area, letter),
            PendingKeys::Object { around } => self.object(area, letter, around),
        }
    }

    /// What was begun is given up, or the selection; there is nothing of it left to give up: the key is not for the draft.
    fn escape(&mut self) -> KeyOutcome {
        let is_open =
            self.operator.is_some() || self.count.is_some() || self.waits != PendingKeys::Nothing || self.mode != Mode::Normal;
        self.mode = Mode::Normal;
        self.done(if is_open { KeyOutcome::Moved } else { KeyOutcome::Nothing })
    }

    fn done(&mut self, did: KeyOutcome) -> KeyOutcome {
        (self.count, self.operator, self.waits) = (None, None, PendingKeys::Nothing);
        did
    }

    fn times(&self) -> usize {
        (self.count.unwrap_or(1) * self.operator.map_or(1, |(_, count)| count)).clamp(1, MAX)
    }

    fn letter(&mut self, area: &mut TextArea<'_>, letter: char) -> KeyOutcome {
        if let Some(digit) = letter.to_digit(10).filter(|digit| *digit > 0 || self.count.is_some()) {
            self.count = Some((self.count.unwrap_or(0) * 10 + digit as usize).min(MAX));
            return KeyOutcome::Moved;
        }
        // In an empty draft it may begin what is typed, or be a key of the screen.
        if area.is_empty() && self.operator.is_none() && FOR_TEXT.contains(letter) {
            return self.done(KeyOutcome::Nothing);
        }
        if let Some(motion) = self.motion(letter) {
            return self.moved(area, motion);
        }
        let in_visual = self.mode != Mode::Normal;
        match letter {
            'g' => self.waits = PendingKeys::Go,
            'f' | 't' | 'F' | 'T' => {
                self.waits = PendingKeys::Find { forward: letter.is_lowercase(), till: letter.eq_ignore_ascii_case(&'t') };
            }
            'i' | 'a' if self.operator.is_some() || in_visual => self.waits = PendingKeys::Object { around: letter == 'a' },
            'd' | 'c' | 'y' | 'x' | 's' | 'X' | 'S' | 'D' | 'C' | 'Y' if in_visual => return self.on_selection(area, letter),
            '~' | 'u' | 'U' | '>' | '<' if in_visual => return self.on_selection(area, letter),
            'p' | 'P' if in_visual => return self.put_over(area),
            'J' if in_visual => return self.join_selection(area),
            'o' | 'O' if in_visual => self.swap_ends(area),
            'r' if in_visual => self.waits = PendingKeys::Replace,
            'v' | 'V' => self.select(area, letter == 'V'),
            '"' | '\'' | '`' | 'm' | 'q' | '@' | 'z' | 'Z' | '[' | ']' => self.waits = PendingKeys::Name,
            // What is selected is not to be changed by what is meant for something else.
            _ if in_visual => return self.done(KeyOutcome::Moved),
            'U' | 'u' | '~' if self.operator.is_some_and(|(operator, _)| Operator::behind_go(letter) == Some(operator)) => {
                return self.begin_operator(area, Operator::behind_go(letter));
            }
            _ if Operator::of(letter).is_some() => return self.begin_operator(area, Operator::of(letter)),
            _ if self.operator.is_some() => return self.done(KeyOutcome::Moved),
            ':' | '/' | '?' => self.waits = PendingKeys::Line,
            'x' => return self.with(area, Operator::Delete, Motion::Right),
            'X' => return self.with(area, Operator::Delete, Motion::Left),
            's' => return self.with(area, Operator::Change, Motion::Right),
            'D' => return self.with(area, Operator::Delete, Motion::LineEnd),
            'C' => return self.with(area, Operator::Change, Motion::LineEnd),
            'S' => return self.rows(area, Operator::Change),
            'Y' => return self.rows(area, Operator::Yank),
            'p' | 'P' => return self.put(area, letter == 'p'),
            'u' => {
                let changed = (0..self.times()).filter(|_| self.undo.back(area)).count() > 0;
                rest(area);
                self.typed.clear();
                return self.done(if changed { KeyOutcome::Changed } else { KeyOutcome::Moved });
            }
            'r' => self.waits = PendingKeys::Replace,
            '~' => return self.turn_case(area),
            'J' => return self.join(area),
            '.' => return self.repeat(area),
            'i' | 'I' | 'a' | 'A' | 'o' | 'O' | 'R' => return self.begin_insert(area, letter),
            // Nothing of Vim's is meant.
            _ => {
                let did = if area.is_empty() { KeyOutcome::Nothing } else { KeyOutcome::Moved };
                return self.done(did);
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
            '|' => Motion::Column,
            '}' => Motion::Paragraph { forward: true },
            '{' => Motion::Paragraph { forward: false },
            '%' => Motion::Pair,
            'G' => self.count.map_or(Motion::LastLine, |number| Motion::Line(Some(number))),
            ';' => Motion::Find(Find { again: true, ..self.last_find? }),
            ',' => {
                let find = self.last_find?;
                Motion::Find(Find { forward: !find.forward, again: true, ..find })
            }
            _ => return None,
        })
    }

    fn behind_go(&mut self, area: &mut TextArea<'_>, letter: char) -> KeyOutcome {
        match letter {
            'e' | 'E' => self.moved(area, Motion::WordEndBack { big: letter == 'E' }),
            _ if self.mode != Mode::Normal && matches!(letter, 'u' | 'U' | '~') => self.on_selection(area, letter),
            _ if self.mode != Mode::Normal => self.done(KeyOutcome::Moved),
            _ => self.begin_operator(area, Operator::behind_go(letter)),
        }
    }

    /// The cursor goes there, or the operator that waits takes all on the way.
    fn moved(&mut self, area: &mut TextArea<'_>, motion: Motion) -> KeyOutcome {
        if let Some((operator, _)) = self.operator {
            return self.with(area, operator, motion);
        }
        let lines = Lines::new(area.lines());
        let at = here(area);
        let Some(to) = lines.to(at, motion, self.times()) else {
            // At its first or last line a draft may give way to another one.
            let leaves = matches!(motion, Motion::Up | Motion::Down) && self.mode == Mode::Normal;
            return self.done(if leaves { KeyOutcome::Nothing } else { KeyOutcome::Moved });
        };
        go(area, Place { column: to.column.min(lines.last(to.row)), ..to });
        self.done(KeyOutcome::Moved)
    }

    fn with(&mut self, area: &mut TextArea<'_>, operator: Operator, motion: Motion) -> KeyOutcome {
        let lines = Lines::new(area.lines());
        let from = here(area);
        // On the last letter of a word that letter is all that is left of it.
        let behind = Place { column: lines.behind(from), ..from };
        if let (Operator::Change, Motion::WordForward { big }, 1) = (operator, motion, self.times())
            && lines.word(from, big, false).end == behind.column
        {
            return self.apply(area, operator, &Extent::Letters(from, behind));
        }
        // A changed word leaves the blanks behind it.
        let motion = match (operator, motion) {
            (Operator::Change, Motion::WordForward { big })
                if !lines.between(from, line_end(&lines, from)).starts_with([' ', '\t']) =>
            {
                Motion::WordEnd { big }
            }
            (_, motion) => motion,
        };
        let times = self.times();
        let Some(mut to) = lines.to(from, motion, times).or_else(|| (motion == Motion::LineEnd).then_some(from)) else {
            return self.done(KeyOutcome::Moved);
        };
        if motion.is_by_lines() {
            return self.apply(area, operator, &Extent::Rows(from.row.min(to.row), from.row.max(to.row)));
        }
        let (start, end) = (from.min(to), from.max(to));
        // The last word of a line does not take the end of the line along.
        if matches!(motion, Motion::WordForward { .. }) && to.row > from.row && to.column <= lines.first_letter(to.row) {
            to = line_end(&lines, Place { row: to.row - 1, column: 0 });
        }
        // From the start of a row up to that of another one it is whole rows.
        if matches!(motion, Motion::Paragraph { .. }) && end.column == 0 && end.row > start.row {
            let before = line_end(&lines, Place { row: end.row - 1, column: 0 });
            return if start.column <= lines.first_letter(start.row) {
                self.apply(area, operator, &Extent::Rows(start.row, before.row))
            } else {
                self.apply(area, operator, &Extent::Letters(start, before))
            };
        }
        let (from, mut to) = (from.min(to), from.max(to));
        if motion.is_inclusive() {
            to.column = lines.behind(to);
        }
        self.apply(area, operator, &Extent::Letters(from, to))
    }

    /// It waits for what it is to work on; twice it is the row.
    fn begin_operator(&mut self, area: &mut TextArea<'_>, operator: Option<Operator>) -> KeyOutcome {
        match (self.operator, operator) {
            (Some((before, _)), Some(operator)) if before == operator => self.rows(area, operator),
            (None, Some(operator)) => {
                self.operator = Some((operator, self.count.take().unwrap_or(1)));
                KeyOutcome::Moved
            }
            _ => self.done(KeyOutcome::Moved),
        }
    }

    /// This row, and as many below it as the count says.
    fn rows(&mut self, area: &mut TextArea<'_>, operator: Operator) -> KeyOutcome {
        let row = here(area).row;
        let last = (row + self.times() - 1).min(area.lines().len() - 1);
        self.apply(area, operator, &Extent::Rows(row, last))
    }

    fn apply(&mut self, area: &mut TextArea<'_>, operator: Operator, extent: &Extent) -> KeyOutcome {
        let lines = Lines::new(area.lines());
        match operator {
            Operator::Delete | Operator::Change | Operator::Yank => {}
            Operator::Nothing => return self.done(KeyOutcome::Moved),
            Operator::Indent | Operator::Outdent => return self.shift(area, operator == Operator::Indent, extent),
            Operator::Upper | Operator::Lower | Operator::TurnCase => {
                return self.write_over(area, extent, &edit::in_case(operator));
            }
        }
        let (from, to, by_lines) = match *extent {
            Extent::Letters(from, to) => (from, to, false),
            Extent::Rows(first, last) => {
                (Place { row: first, column: 0 }, line_end(&lines, Place { row: last, column: 0 }), true)
            }
        };
        self.register = Register { text: lines.between(from, to), by_lines };
        area.set_yank_text(self.register.text.clone());
        if operator == Operator::Yank {
            go(area, if by_lines { here(area) } else { from });
            return self.done(KeyOutcome::Moved);
        }
        // A row that goes takes one end of a line along.
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
            go(area, Place { row, column });
        }
        self.done(KeyOutcome::Changed)
    }
}
