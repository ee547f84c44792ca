//! Terminal content of a command as text: the screen, a limited scrollback, and the new rows in both.

use super::ring_buffer::NewOutput;
use crate::sys::process::TerminalSize;
use std::collections::VecDeque;
use std::num::NonZeroU16;
use unicode_width::UnicodeWidthStr;
use vt100::capture::{BasicFormattedCaptureState, RowContents, basic_formatted_to_plain};
use vt100::{Callbacks, Parser};

/// Memory in bytes that a row uses in addition to its text.
const ROW_BYTES: usize = 32;
/// Maximum size in bytes of pending terminal responses. Any more are dropped, in case the program never reads them.
const MAX_ANSWER_BYTES: usize = 1024;

pub(crate) struct CommandScreen {
    parser: Parser<Scrollback>,
    /// The screen's rows at the time of the last read.
    seen: Vec<String>,
    /// Number of the first row in `seen`, counting from the start of the output.
    seen_from: u64,
    total: u64,
}

/// Rows that have scrolled off the screen, and the terminal's pending responses.
struct Scrollback {
    rows: VecDeque<Row>,
    limit: usize,
    bytes: usize,
    /// Number of rows that have been dropped from the scrollback.
    dropped: u64,
    captured: BasicFormattedCaptureState,
    /// Pending responses from the terminal.
    answers: Vec<u8>,
}

struct Row {
    text: String,
    /// Whether the row is the continuation of a wrapped line.
    goes_on: bool,
}

impl CommandScreen {
    pub(crate) fn new(size: TerminalSize, limit: usize) -> Self {
        let scrolled = Scrollback {
            rows: VecDeque::new(),
            limit,
            bytes: 0,
            dropped: 0,
            captured: BasicFormattedCaptureState::default(),
            answers: Vec::new(),
        };
        let (rows, columns) = cells(size);
        Self { parser: Parser::new_with_callbacks(rows, columns, 0, scrolled), seen: Vec::new(), seen_from: 0, total: 0 }
    }

    /// Adds output from the program, and returns the responses that the terminal sends to it.
    pub(crate) fn push(&mut self, bytes: &[u8]) -> Vec<u8> {
        self.total += bytes.len() as u64;
        self.parser.process(bytes);
        std::mem::take(&mut self.parser.callbacks_mut().answers)
    }

    pub(crate) fn total(&self) -> u64 {
        self.total
    }

    pub(crate) fn resize(&mut self, size: TerminalSize) {
        let (rows, columns) = cells(size);
        self.parser.set_size(rows, columns);
    }

    pub(crate) fn size(&self) -> TerminalSize {
        let (rows, columns) = self.parser.screen().size();
        TerminalSize { rows: rows.get(), columns: columns.get() }
    }

    /// Returns whether a full-screen program is running.
    pub(crate) fn is_taken(&self) -> bool {
        self.parser.screen().alternate_screen()
    }

    /// Returns the text on the screen.
    pub(crate) fn text(&self) -> String {
        join(self.rows())
    }

    /// Returns the text of the last non-empty row.
    pub(crate) fn last_line(&self) -> String {
        self.rows().pop().map(|row| row.text.trim().to_owned()).unwrap_or_default()
    }

    /// Returns the output since the last call: all new rows, preceded by all rows from the first one that has changed.
    pub(crate) fn take_new(&mut self) -> NewOutput {
        let rows = self.rows();
        let texts: Vec<String> = rows.iter().map(|row| row.text.clone()).collect();
        let scrolled = self.parser.callbacks();
        let first_on_screen = scrolled.dropped + scrolled.rows.len() as u64;
        let off_screen = |number: u64| {
            let index = usize::try_from(number.checked_sub(scrolled.dropped)?).ok()?;
            scrolled.rows.get(index).map(|row| row.text.as_str())
        };
        let on_screen = |number: u64| {
            let index = usize::try_from(number.checked_sub(first_on_screen)?).ok()?;
            texts.get(index).map(String::as_str)
        };
        let same = |(number, seen): &(u64, &String)| off_screen(*number).or_else(|| on_screen(*number)) == Some(seen.as_str());
        let known = (self.seen_from..).zip(&self.seen).take_while(same).count();
        let from = self.seen_from + known as u64;
        let missed = scrolled.dropped.saturating_sub(from);
        let from = from.max(scrolled.dropped);
        let skip = |number: u64| usize::try_from(number).unwrap_or(usize::MAX);
        let off = scrolled.rows.iter().skip(skip(from - scrolled.dropped)).map(|row| Row { text: row.text.clone(), ..*row });
        let on = rows.into_iter().skip(skip(from.saturating_sub(first_on_screen)));
        let text = join(off.chain(on).collect());
        self.seen = texts;
        self.seen_from = first_on_screen;
        NewOutput { text, missed: (missed > 0).then(|| format!("{missed} lines")) }
    }

    /// Returns the screen's rows up to the last non-empty one.
    fn rows(&self) -> Vec<Row> {
        let screen = self.parser.screen();
        let (_, columns) = screen.size();
        let mut rows: Vec<Row> =
            screen.rows(0, columns.get()).map(|text| Row { text: text.trim_end().to_owned(), goes_on: false }).collect();
        // The scrollback does not record whether its last row wraps. A row of full width is assumed to.
        let full = |row: &Row| row.text.width() == usize::from(columns.get());
        if let Some(first) = rows.first_mut() {
            first.goes_on = self.parser.callbacks().rows.back().is_some_and(full);
        }
        for (before, row) in (0..).zip(rows.iter_mut().skip(1)) {
            row.goes_on = screen.row_wrapped(before);
        }
        let filled = rows.iter().rposition(|row| !row.text.is_empty()).map_or(0, |last| last + 1);
        rows.truncate(filled);
        rows
    }
}

fn join(rows: Vec<Row>) -> String {
    let mut text = String::new();
    for (number, row) in rows.iter().enumerate() {
        if number > 0 && !row.goes_on {
            text.push('\n');
        }
        text.push_str(&row.text);
    }
    text
}

fn cells(size: TerminalSize) -> (NonZeroU16, NonZeroU16) {
    let cells = |count| NonZeroU16::new(count).unwrap_or(NonZeroU16::MIN);
    (cells(size.rows), cells(size.columns))
}

impl Callbacks for Scrollback {
    fn on_scroll(&mut self, contents: RowContents<'_>, alternate_screen: bool) {
        if alternate_screen {
            return;
        }
        let mut text = String::new();
        // Writing to a string does not fail.
        let _ = contents.write_formatted_basic(&mut text, &mut self.captured);
        let begins = text.starts_with('\n');
        let plain: String = basic_formatted_to_plain(text.trim_start_matches('\n')).collect();
        let row = Row { text: plain.trim_end().to_owned(), goes_on: !begins && self.dropped + self.rows.len() as u64 > 0 };
        self.bytes += row.text.len() + ROW_BYTES;
        self.rows.push_back(row);
        while self.bytes > self.limit {
            let Some(row) = self.rows.pop_front() else { return };
            self.bytes -= row.text.len() + ROW_BYTES;
            self.dropped += 1;
        }
    }

    fn unhandled_csi(
        &mut self,
        screen: &mut vt100::Screen,
        first: Option<u8>,
        _second: Option<u8>,
        parameters: &[&[u16]],
        letter: char,
    ) {
        let parameter = parameters.first().and_then(|values| values.first()).copied().unwrap_or(0);
        let answer = match (first, letter, parameter) {
            (None, 'n', 5) => "\x1b[0n".to_owned(),
            (None, 'n', 6) => {
                let (row, column) = screen.cursor_position();
                format!("\x1b[{};{}R", row + 1, column + 1)
            }
            (None, 'c', 0) => "\x1b[?62;c".to_owned(),
            _ => return,
        };
        if self.answers.len() + answer.len() <= MAX_ANSWER_BYTES {
            self.answers.extend(answer.bytes());
        }
    }
}

/// Returns the last line of output as a terminal would display it.
pub(crate) fn last_screen_line(bytes: &[u8]) -> String {
    let size = TerminalSize { rows: 4, columns: 500 };
    let mut screen = CommandScreen::new(size, 0);
    for line in bytes.split_inclusive(|byte| *byte == b'\n') {
        screen.push(line.strip_suffix(b"\n").unwrap_or(line));
        if line.ends_with(b"\n") {
            screen.push(b"\r\n");
        }
    }
    screen.last_line()
}

#[cfg(test)]
mod tests {
    use super::*;

    const SIZE: TerminalSize = TerminalSize { rows: 4, columns: 20 };

    #[test]
    fn reads_return_new_lines_and_repeat_a_continued_line() {
        let mut screen = CommandScreen::new(SIZE, 10_000);
        screen.push(b"hello\r\n>>> ");
        assert_eq!(screen.take_new().text, "hello\n>>>");
        assert_eq!(screen.take_new().text, "");
        screen.push(b"1+1\r\n2\r\n>>> ");
        assert_eq!(screen.take_new().text, ">>> 1+1\n2\n>>>");
        for number in 0..10 {
            screen.push(format!("{number}\r\n").as_bytes());
        }
        assert_eq!(screen.take_new().text, ">>> 0\n1\n2\n3\n4\n5\n6\n7\n8\n9");
        assert_eq!(screen.last_line(), "9");
    }

    #[test]
    fn wrapped_lines_are_joined() {
        let mut screen = CommandScreen::new(SIZE, 10_000);
        let long = "0123456789".repeat(11);
        screen.push(format!("{long}\r\nnext\r\n").as_bytes());
        assert_eq!(screen.take_new().text, format!("{long}\nnext"));
    }

    #[test]
    fn large_output_keeps_its_end_and_reports_lost_lines() {
        let mut screen = CommandScreen::new(SIZE, 1000);
        for number in 0..10_000 {
            screen.push(format!("{number}\r\n").as_bytes());
        }
        let fresh = screen.take_new();
        assert!(fresh.text.ends_with("9998\n9999") && fresh.text.len() < 1000, "{fresh:?}");
        assert!(fresh.missed.is_some_and(|missed| missed.ends_with("lines")));
        assert!(screen.parser.callbacks().bytes <= 1000);
    }

    #[test]
    fn a_cleared_screen_is_read_from_the_start() {
        let mut screen = CommandScreen::new(SIZE, 10_000);
        screen.push(b"one\r\ntwo\r\nthree");
        screen.take_new();
        screen.push(b"\x1b[2J\x1b[Hother");
        assert_eq!(screen.take_new().text, "other");
        screen.push(b"\x1b[?1049hfull screen");
        assert!(screen.is_taken());
        assert_eq!(screen.text(), "full screen");
        screen.push(b"\x1b[?1049l");
        assert_eq!((screen.is_taken(), screen.text().as_str()), (false, "other"));
    }

    #[test]
    fn terminal_queries_are_answered() {
        let mut screen = CommandScreen::new(SIZE, 10_000);
        assert_eq!(screen.push(b"ab\x1b[6n"), b"\x1b[1;3R");
        assert_eq!(screen.push(b"\x1b[c\x1b[5n"), b"\x1b[?62;c\x1b[0n");
        assert!(screen.push("\x1b[6n".repeat(10_000).as_bytes()).len() <= MAX_ANSWER_BYTES);
        assert!(screen.push(b"plain").is_empty());
    }

    #[test]
    fn the_last_line_contains_no_colour_codes() {
        assert_eq!(last_screen_line(b"a\n\x1b[31mred\x1b[0m line\n\n"), "red line");
        assert_eq!(last_screen_line(b"10 %\r 20 %\r 30 %"), "30 %");
        assert_eq!(last_screen_line(b""), "");
    }
}
