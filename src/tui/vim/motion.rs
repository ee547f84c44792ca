//! Targets of motions, as pure functions of lines and columns. Columns count characters, but graphemes are never split.

use unicode_segmentation::UnicodeSegmentation;

/// Position in the text. `column` may be the end of the line, after its last character.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub(crate) struct Place {
    pub row: usize,
    pub column: usize,
}

/// Search for a character within the current line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Find {
    pub letter: char,
    pub forward: bool,
    /// Whether the motion stops one character short of the match.
    pub till: bool,
    /// Whether the search repeats an earlier one.
    pub again: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Motion {
    Left,
    Right,
    Up,
    Down,
    /// Start of the next word. If `big` is set, words are separated only by whitespace.
    WordForward {
        big: bool,
    },
    WordBack {
        big: bool,
    },
    WordEnd {
        big: bool,
    },
    LineStart,
    FirstLetter,
    LineEnd,
    /// Line with this 1-based number, or the first line if there is no number.
    Line(Option<usize>),
    LastLine,
    Find(Find),
}

impl Motion {
    /// Returns whether an operator applied with this motion affects whole lines.
    pub(crate) fn is_by_lines(self) -> bool {
        matches!(self, Self::Up | Self::Down | Self::Line(_) | Self::LastLine)
    }

    /// Returns whether an operator applied with this motion includes the character at the target.
    pub(crate) fn is_inclusive(self) -> bool {
        matches!(self, Self::WordEnd { .. } | Self::LineEnd | Self::Find(Find { forward: true, .. }))
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Class {
    Blank,
    Word,
    Sign,
}

pub(super) fn class(letter: char, big: bool) -> Class {
    match letter {
        _ if letter.is_whitespace() => Class::Blank,
        _ if big || letter.is_alphanumeric() || letter == '_' => Class::Word,
        _ => Class::Sign,
    }
}

/// Characters of each line, from which motions are computed.
pub(crate) struct Lines(pub(super) Vec<Vec<char>>);

impl Lines {
    pub(crate) fn new(lines: &[String]) -> Self {
        Self(lines.iter().map(|line| line.chars().collect()).collect())
    }

    pub(crate) fn count(&self) -> usize {
        self.0.len()
    }

    /// Returns the number of characters in a row.
    pub(crate) fn length(&self, row: usize) -> usize {
        self.0.get(row).map_or(0, Vec::len)
    }

    /// Returns the column of a row's last grapheme, or 0 if the row is empty.
    pub(crate) fn last(&self, row: usize) -> usize {
        self.previous_column(Place { row, column: self.length(row) })
    }

    /// Returns the text between two positions.
    pub(crate) fn text_between(&self, from: Place, to: Place) -> String {
        let mut out = String::new();
        for row in from.row..=to.row.min(self.count().saturating_sub(1)) {
            let start = if row == from.row { from.column } else { 0 };
            let end = if row == to.row { to.column } else { self.length(row) };
            out.extend(self.0[row].get(start..end.max(start).min(self.length(row))).unwrap_or_default());
            if row < to.row {
                out.push('\n');
            }
        }
        out
    }

    /// Returns the columns at which the graphemes in a row start.
    fn grapheme_starts(&self, row: usize) -> Vec<usize> {
        let line: String = self.0.get(row).into_iter().flatten().collect();
        let mut column = 0;
        let start = |letter: &str| {
            let start = column;
            column += letter.chars().count();
            start
        };
        line.graphemes(true).map(start).collect()
    }

    /// Returns the column of the grapheme before a position, or 0 if there is none.
    pub(crate) fn previous_column(&self, at: Place) -> usize {
        self.grapheme_starts(at.row).into_iter().take_while(|start| *start < at.column).last().unwrap_or(0)
    }

    /// Returns the column that follows the grapheme at a position.
    pub(crate) fn next_column(&self, at: Place) -> usize {
        self.grapheme_starts(at.row).into_iter().find(|start| *start > at.column).unwrap_or(self.length(at.row))
    }

    fn class(&self, at: Place, big: bool) -> Class {
        self.0[at.row].get(at.column).map_or(Class::Blank, |letter| class(*letter, big))
    }

    pub(crate) fn next(&self, at: Place) -> Option<Place> {
        match at {
            Place { row, column } if column < self.length(row) => Some(Place { row, column: column + 1 }),
            Place { row, .. } if row + 1 < self.count() => Some(Place { row: row + 1, column: 0 }),
            Place { .. } => None,
        }
    }

    pub(crate) fn previous(&self, at: Place) -> Option<Place> {
        match at {
            Place { row, column } if column > 0 => Some(Place { row, column: column - 1 }),
            Place { row, .. } if row > 0 => Some(Place { row: row - 1, column: self.length(row - 1) }),
            Place { .. } => None,
        }
    }

    pub(crate) fn first_letter(&self, row: usize) -> usize {
        self.0[row].iter().position(|letter| !letter.is_whitespace()).unwrap_or(0)
    }

    /// Returns the target of a motion, or `None` if the cursor cannot move that way.
    pub(crate) fn motion_target(&self, from: Place, motion: Motion, count: usize) -> Option<Place> {
        let Place { row, column } = from;
        let repeat = |step: &dyn Fn(Place) -> Option<Place>| {
            let mut at = from;
            for _ in 0..count {
                let Some(next) = step(at) else { break };
                at = next;
            }
            (at != from).then_some(at)
        };
        match motion {
            Motion::Left => repeat(&|at| (at.column > 0).then(|| Place { column: self.previous_column(at), ..at })),
            Motion::Right => repeat(&|at| (at.column < self.length(row)).then(|| Place { column: self.next_column(at), ..at })),
            Motion::Up => row.checked_sub(count).map(|row| Place { row, column }),
            Motion::Down => (row + count < self.count()).then_some(Place { row: row + count, column }),
            Motion::WordForward { big } => repeat(&|at| self.word_forward(at, big)),
            Motion::WordBack { big } => repeat(&|at| self.word_back(at, big)),
            Motion::WordEnd { big } => repeat(&|at| self.word_end(at, big)),
            Motion::LineStart => Some(Place { row, column: 0 }),
            Motion::FirstLetter => Some(Place { row, column: self.first_letter(row) }),
            Motion::LineEnd => {
                let row = (row + count - 1).min(self.count() - 1);
                Some(Place { row, column: self.last(row) })
            }
            Motion::Line(number) => {
                let row = number.unwrap_or(1).clamp(1, self.count()) - 1;
                Some(Place { row, column: self.first_letter(row) })
            }
            Motion::LastLine => {
                let row = self.count() - 1;
                Some(Place { row, column: self.first_letter(row) })
            }
            Motion::Find(find) => self.find(from, find, count),
        }
    }

    fn word_forward(&self, from: Place, big: bool) -> Option<Place> {
        let mut at = from;
        let began = self.class(at, big);
        while began != Class::Blank && at.row == from.row && self.class(at, big) == began {
            at = self.next(at)?;
        }
        while self.class(at, big) == Class::Blank && (at == from || self.length(at.row) > 0) {
            let Some(next) = self.next(at) else { return (at != from).then_some(at) };
            at = next;
        }
        Some(at)
    }

    fn word_back(&self, from: Place, big: bool) -> Option<Place> {
        let mut at = self.previous(from)?;
        while self.class(at, big) == Class::Blank && self.length(at.row) > 0 {
            let Some(previous) = self.previous(at) else { return Some(at) };
            at = previous;
        }
        let class = self.class(at, big);
        while let Some(previous) = self.previous(at) {
            if class == Class::Blank || previous.row != at.row || self.class(previous, big) != class {
                break;
            }
            at = previous;
        }
        Some(at)
    }

    fn word_end(&self, from: Place, big: bool) -> Option<Place> {
        let mut at = self.next(from)?;
        while self.class(at, big) == Class::Blank {
            at = self.next(at)?;
        }
        let class = self.class(at, big);
        while let Some(next) = self.next(at) {
            if next.row != at.row || self.class(next, big) != class {
                break;
            }
            at = next;
        }
        Some(at)
    }

    /// Returns the position of the bracket that matches the one at `at`, if there is one.
    pub(super) fn partner(&self, at: Place, (open, close): (char, char)) -> Option<Place> {
        let forward = self.0[at.row].get(at.column) == Some(&open);
        let (deeper, back) = if forward { (open, close) } else { (close, open) };
        let (mut place, mut depth) = (at, 0_usize);
        loop {
            let letter = self.0[place.row].get(place.column).copied();
            depth = depth + usize::from(letter == Some(deeper)) - usize::from(letter == Some(back));
            if depth == 0 {
                return Some(place);
            }
            place = if forward { self.next(place)? } else { self.previous(place)? };
        }
    }

    fn find(&self, from: Place, Find { letter, forward, till, again }: Find, count: usize) -> Option<Place> {
        let line = &self.0[from.row];
        // After a repeated `t`, the cursor is already next to a match, which must be skipped.
        let is_it = |at: &usize| line[*at] == letter;
        let column = if forward {
            let first = from.column + 1 + usize::from(till && again && line.get(from.column + 1) == Some(&letter));
            (first..line.len()).filter(is_it).nth(count - 1)? - usize::from(till)
        } else {
            let skipped = usize::from(till && again && from.column > 0 && line.get(from.column - 1) == Some(&letter));
            (0..from.column.saturating_sub(skipped)).rev().filter(is_it).nth(count - 1)? + usize::from(till)
        };
        Some(Place { column, ..from })
    }
}
