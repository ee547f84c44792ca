//! Commands that change the text without a motion.

use super::motion::{Lines, Motion, Place};
use super::{Did, Mode, Register, Vim, cut, go, here, line_end};
use tui_textarea::TextArea;

impl Vim {
    pub(super) fn put(&mut self, area: &mut TextArea<'_>, behind: bool) -> Did {
        let Register { text, by_lines } = &self.register;
        if text.is_empty() && !by_lines {
            return self.done(Did::Moved);
        }
        let (times, at) = (self.times(), here(area));
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
        self.done(Did::Changed)
    }

    /// What is kept in the place of what is selected, which is kept from then on.
    pub(super) fn put_over(&mut self, area: &mut TextArea<'_>) -> Did {
        let kept = self.register.clone();
        let ends_line = self.selection(area).is_some_and(|(_, (row, column))| column >= Lines::new(area.lines()).length(row));
        self.on_selection(area, 'd');
        let taken = std::mem::replace(&mut self.register, kept);
        self.put(area, ends_line);
        self.register = taken;
        self.done(Did::Changed)
    }

    pub(super) fn replace(&mut self, area: &mut TextArea<'_>, letter: char) -> Did {
        let at = here(area);
        let lines = Lines::new(area.lines());
        let times = self.times();
        let mut end = at;
        for _ in 0..times {
            if end.column >= lines.length(at.row) {
                return self.done(Did::Moved);
            }
            end.column = lines.behind(end);
        }
        cut(area, at, end);
        area.insert_str(letter.to_string().repeat(times));
        go(area, Place { column: at.column + times - 1, ..at });
        self.done(Did::Changed)
    }

    pub(super) fn turn_case(&mut self, area: &mut TextArea<'_>) -> Did {
        let from = here(area);
        let lines = Lines::new(area.lines());
        let Some(to) = lines.to(from, Motion::Right, self.times()) else { return self.done(Did::Moved) };
        let turn = |letter: char| -> String {
            if letter.is_uppercase() { letter.to_lowercase().collect() } else { letter.to_uppercase().collect() }
        };
        let turned: String = lines.between(from, to).chars().map(turn).collect();
        cut(area, from, to);
        area.insert_str(turned);
        let (at, lines) = (here(area), Lines::new(area.lines()));
        go(area, Place { column: at.column.min(lines.last(at.row)), ..at });
        self.done(Did::Changed)
    }

    /// The next row comes to the end of this one, with one blank between them.
    pub(super) fn join(&mut self, area: &mut TextArea<'_>) -> Did {
        let mut did = Did::Moved;
        for _ in 0..self.times().max(2) - 1 {
            let lines = Lines::new(area.lines());
            let end = line_end(&lines, here(area));
            if end.row + 1 >= lines.count() {
                break;
            }
            let next = Place { row: end.row + 1, column: 0 };
            let start = lines.to(next, Motion::FirstLetter, 1).unwrap_or(next);
            cut(area, end, start);
            if end.column > 0 && lines.length(next.row) > start.column {
                area.insert_char(' ');
                go(area, end);
            }
            did = Did::Changed;
        }
        self.done(did)
    }

    pub(super) fn begin_insert(&mut self, area: &mut TextArea<'_>, letter: char) -> Did {
        let (at, lines) = (here(area), Lines::new(area.lines()));
        let mut did = Did::Moved;
        match letter {
            'I' => go(area, lines.to(at, Motion::FirstLetter, 1).unwrap_or(at)),
            'a' => go(area, Place { column: lines.behind(at), ..at }),
            'A' => go(area, line_end(&lines, at)),
            'o' => {
                go(area, line_end(&lines, at));
                area.insert_newline();
                did = Did::Changed;
            }
            'O' => {
                go(area, Place { column: 0, ..at });
                area.insert_newline();
                go(area, Place { column: 0, ..at });
                did = Did::Changed;
            }
            _ => {}
        }
        self.mode = Mode::Insert;
        self.done(did)
    }
}

/// On a letter, as far as the line has one.
pub(super) fn rest(area: &mut TextArea<'_>) {
    let at = here(area);
    go(area, Place { column: at.column.min(Lines::new(area.lines()).last(at.row)), ..at });
}
