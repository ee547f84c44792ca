use super::*;
use proptest::prelude::*;
use ratatui::layout::Rect;
use ratatui::style::{Color, Style};
use unicode_segmentation::UnicodeSegmentation;

/// Character widths that a terminal assumes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Belief {
    /// The terminal assumes the same widths as aye.
    Ours,
    /// Emoji have a width of one cell.
    NarrowPictures,
    /// Emoji have a width of two cells.
    WidePictures,
    /// Letters and symbols of uncertain width are wide, as in East Asian fonts.
    WideSigns,
}

const BELIEFS: [Belief; 4] = [Belief::Ours, Belief::NarrowPictures, Belief::WidePictures, Belief::WideSigns];

/// Terminal that renders its input, assuming the given character widths.
struct Terminal {
    cells: Vec<Vec<String>>,
    row: usize,
    column: usize,
    belief: Belief,
}

impl Terminal {
    fn new(width: usize, height: usize, belief: Belief) -> Self {
        Self { cells: vec![vec![" ".to_owned(); width]; height], row: 0, column: 0, belief }
    }

    fn cells_of(&self, grapheme: &str) -> usize {
        match (self.belief, text::width_doubt(grapheme)) {
            (Belief::NarrowPictures, WidthDoubt::Picture) => 1,
            (Belief::WidePictures, WidthDoubt::Picture) | (Belief::WideSigns, WidthDoubt::Letter | WidthDoubt::Sign) => 2,
            _ => text::width(grapheme).max(1),
        }
    }

    fn show(&mut self, bytes: &[u8]) {
        let text = std::str::from_utf8(bytes).expect("text");
        let mut rest = text;
        while !rest.is_empty() {
            if let Some(after) = rest.strip_prefix("\x1b[") {
                let end = after.find(|letter: char| letter.is_ascii_alphabetic()).expect("an end");
                self.control(&after[..end], after.as_bytes()[end]);
                rest = &after[end + 1..];
            } else {
                let end = rest.find('\x1b').unwrap_or(rest.len());
                rest[..end].graphemes(true).for_each(|grapheme| self.print(grapheme));
                rest = &rest[end..];
            }
        }
    }

    fn control(&mut self, parameters: &str, last: u8) {
        let mut numbers = parameters.split(';').map(|number| number.parse::<usize>().unwrap_or(1));
        match last {
            b'H' => {
                self.row = numbers.next().expect("a row") - 1;
                self.column = numbers.next().expect("a column") - 1;
            }
            b'G' => self.column = numbers.next().expect("a column") - 1,
            b'K' => self.cells[self.row][self.column..].fill(" ".to_owned()),
            b'm' => {}
            other => panic!("unexpected {}", char::from(other)),
        }
    }

    fn print(&mut self, grapheme: &str) {
        let width = self.cells[0].len();
        let cells = self.cells_of(grapheme);
        if self.column + cells > width {
            // A grapheme that does not fit stays in the last column.
            return;
        }
        self.clear(self.column);
        self.clear(self.column + cells - 1);
        let row = &mut self.cells[self.row];
        row[self.column] = grapheme.to_owned();
        row[self.column + 1..self.column + cells].fill(String::new());
        self.column += cells;
    }

    /// Erases an entire wide character because part of it was overwritten.
    fn clear(&mut self, column: usize) {
        let row = &mut self.cells[self.row];
        let Some(start) = (0..=column).rev().find(|at| !row[*at].is_empty()) else { return };
        let end = (start + 1..row.len()).find(|at| !row[*at].is_empty()).unwrap_or(row.len());
        row[start..end].fill(" ".to_owned());
    }
}

fn buffer(rows: &[String], width: u16) -> Buffer {
    let mut buffer = Buffer::empty(Rect::new(0, 0, width, rows.len() as u16));
    for (y, row) in (0..).zip(rows) {
        buffer.set_stringn(0, y, row, width.into(), Style::new());
    }
    buffer
}

/// Returns the cells that are wrong although they must be right on every terminal. These are the cells of unambiguous
/// width outside of words that may be wide.
fn faults(next: &Buffer, terminal: &Terminal) -> Vec<String> {
    let mut faults = Vec::new();
    for y in 0..next.area.height {
        let mut x = 0;
        let mut before = WidthDoubt::None;
        while x < next.area.width {
            let symbol = next[(x, y)].symbol();
            let shown = &terminal.cells[usize::from(y)][usize::from(x)];
            let doubt = text::width_doubt(symbol);
            let is_covered = symbol == " " && before != WidthDoubt::None;
            if doubt == WidthDoubt::None && !is_covered && shown != symbol {
                faults.push(format!("{:?} row {y} cell {x}: `{symbol}` is shown as `{shown}`", terminal.belief));
            }
            if doubt == WidthDoubt::Picture && terminal.belief != Belief::WidePictures && shown != symbol {
                faults.push(format!("{:?} row {y} cell {x}: the picture `{symbol}` is shown as `{shown}`", terminal.belief));
            }
            // A grapheme that is wider than expected may cover the blank cells after it.
            before = if symbol == " " { before } else { doubt };
            x += cells_of(&next[(x, y)]);
        }
    }
    faults
}

fn rows() -> impl Strategy<Value = Vec<String>> {
    let piece = prop_oneof![
        4 => Just("a"),
        3 => Just("word"),
        4 => Just(" "),
        1 => Just("   "),
        1 => Just("     "),
        2 => Just("❤\u{fe0f}"),
        1 => Just("❤"),
        1 => Just("⚠"),
        1 => Just("👋"),
        1 => Just("👋🏽"),
        1 => Just("👨\u{200d}👩\u{200d}👧"),
        1 => Just("🇩🇪"),
        1 => Just("🇩"),
        1 => Just("1\u{fe0f}\u{20e3}"),
        1 => Just("क\u{94d}ष"),
        1 => Just("你好"),
        1 => Just("한"),
        1 => Just("│"),
        1 => Just("───"),
        1 => Just("дом"),
        1 => Just("é"),
        1 => Just("e\u{301}"),
        1 => Just("…"),
        1 => Just("✓"),
    ];
    let row = prop::collection::vec(piece, 0..14).prop_map(|pieces| pieces.concat());
    prop::collection::vec(row, 3)
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn a_wrong_width_guess_displaces_one_cell_but_not_the_row(frames in prop::collection::vec(rows(), 1..4)) {
        for belief in BELIEFS {
            let mut terminal = Terminal::new(30, 3, belief);
            let mut shown = buffer(&[String::new(), String::new(), String::new()], 30);
            for frame in &frames {
                let next = buffer(frame, 30);
                let mut bytes = Vec::new();
                changes(&shown, &next, &mut bytes);
                terminal.show(&bytes);
                let found = faults(&next, &terminal);
                // If all characters of a long word are twice as wide as expected, no cell next to it can be correct.
                prop_assert!(belief == Belief::WideSigns || found.is_empty(), "{found:?}\n{frame:?}\n{}", bytes.escape_ascii());
                shown = next;
            }
        }
    }
}

#[test]
fn only_changed_cells_are_written() {
    let mut bytes = Vec::new();
    let before = buffer(&["one two three".to_owned()], 40);
    changes(&before, &before.clone(), &mut bytes);
    assert_eq!(bytes, b"");
    changes(&before, &buffer(&["one twо three".to_owned().replace('о', "o")], 40), &mut bytes);
    assert_eq!(bytes, b"");
    changes(&before, &buffer(&["one TwO three".to_owned()], 40), &mut bytes);
    assert_eq!(bytes.escape_ascii().to_string(), "\\x1b[1;5HTwO");
    bytes.clear();
    changes(&before, &buffer(&["one".to_owned()], 40), &mut bytes);
    assert_eq!(bytes.escape_ascii().to_string(), "\\x1b[1;5H\\x1b[K");
}

#[test]
fn the_cursor_is_repositioned_after_an_emoji() {
    let mut bytes = Vec::new();
    changes(&buffer(&[String::new()], 40), &buffer(&["a❤\u{fe0f}|❤ b".to_owned()], 40), &mut bytes);
    let text = String::from_utf8(bytes).expect("text");
    assert_eq!(text.replace('\u{1b}', "^"), "^[1;1Ha  ^[1;2H❤\u{fe0f}^[4G|  ^[1;5H❤^[7Gb");
}

#[test]
fn colour_sequences_are_written_only_at_changes() {
    let mut next = buffer(&["plain red red".to_owned()], 20);
    next.set_style(Rect::new(6, 0, 7, 1), Style::new().fg(Color::LightRed));
    let mut bytes = Vec::new();
    changes(&buffer(&[String::new()], 20), &next, &mut bytes);
    assert_eq!(bytes.escape_ascii().to_string(), "\\x1b[1;1Hplain \\x1b[91mred red\\x1b[39m");
}
