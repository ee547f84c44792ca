//! List with a filter, from which the user chooses an item.

#[cfg(test)]
mod tests;

use super::glyphs::Glyphs;
use super::metrics::GUTTER;
use super::theme::{Theme, Token};
use crate::text;
use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use ratatui::buffer::Buffer;
use ratatui::layout::{Position, Rect};
use ratatui::text::{Line, Span};

/// Maximum number of notices shown below the rows.
const MAX_NOTICES: usize = 3;
/// Minimum width of the first column, in cells.
const NAME: usize = 12;
/// Minimum width of the last column if it is truncated, in cells.
const LAST: usize = 19;
/// Number of cells at the right edge that are reserved for the scroll indicator.
const MORE: usize = 3;
/// Height, in rows, below which only the rows and the input line are shown.
const ROOMY: u16 = 8;
/// Minimum screen width, in cells, for showing a preview to the right of a list.
pub(crate) const WIDE: u16 = 100;
/// Minimum number of rows for the details below a list, and maximum number of rows per notice.
const DETAIL_ROWS: usize = 2;

/// Row in the list. The caller must sanitize all fields except `key`, which is never displayed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Row {
    /// Identifier of the item. It is not displayed.
    pub key: String,
    /// Text in each column.
    pub cells: Vec<String>,
    /// Label shown after the cells, such as `in use`.
    pub mark: &'static str,
    /// Reason why the item cannot be chosen at the moment, if there is one.
    pub lacks: Option<String>,
    /// Details shown while the row is highlighted. They may span several lines.
    pub detail: String,
}

/// Properties of a column: its heading, alignment and priority.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Column {
    pub head: &'static str,
    pub is_number: bool,
    /// Priority for dropping the column if there is not enough room. The column with the highest rank is dropped first;
    /// one with rank 0 is never dropped.
    pub rank: u8,
}

/// Effect that a key had on the list.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum PickerResult {
    Nothing,
    Closed,
    Chosen(String),
    /// The user tried to choose an item that cannot be chosen, for this reason.
    Refused(String),
    /// The list has no use for the key.
    Other,
}

/// Effect that a click had on the list.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ClickResult {
    /// The click was not on a row.
    Nothing,
    Marked,
    /// The click was on the row that was already highlighted, which chooses it.
    Taken,
}

/// Method by which the filter text selects the rows to show.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Filtering {
    /// Selects the rows that contain all words of the filter, in any column.
    Words,
    /// Selects the rows whose first column contains the filter's characters in order, best matches first, and rows with
    /// a cell that contains the filter text.
    Fuzzy,
    /// Selects all rows, because the caller does the filtering.
    Elsewhere,
}

#[derive(Debug)]
pub(crate) struct Picker {
    pub title: String,
    /// Text shown after the title, such as `loading models`.
    pub aside: String,
    /// Text shown in place of the rows if there are none.
    pub empty_text: &'static str,
    columns: &'static [Column],
    rows: Vec<Row>,
    notices: Vec<String>,
    filter: String,
    filtering: Filtering,
    /// Whether the last column is truncated before any other column is dropped.
    cuts_last: bool,
    /// Label and text of an input line that is shown in place of the filter, if there is one.
    pub asked: Option<(String, String)>,
    /// Key of the highlighted row. `drawn` is the key of the row that was highlighted in the last frame.
    at: Option<String>,
    drawn: Option<String>,
    /// Screen row of the first visible list row, and the keys of all visible list rows.
    shown: (u16, Vec<String>),
    top: usize,
    page: usize,
}

impl Picker {
    pub(crate) fn new(title: &str, columns: &'static [Column]) -> Self {
        Self {
            title: title.to_owned(),
            aside: String::new(),
            empty_text: "no entries",
            columns,
            rows: Vec::new(),
            notices: Vec::new(),
            filter: String::new(),
            filtering: Filtering::Words,
            cuts_last: false,
            asked: None,
            at: None,
            drawn: None,
            shown: (0, Vec::new()),
            top: 0,
            page: 1,
        }
    }

    /// Returns the list with fuzzy matching enabled.
    pub(crate) fn fuzzy(self) -> Self {
        Self { filtering: Filtering::Fuzzy, ..self }
    }

    /// Returns the list with its last column truncated before any other column is dropped.
    pub(crate) fn with_last_truncated(self) -> Self {
        Self { cuts_last: true, ..self }
    }

    /// Returns the list with its own filtering disabled, because the caller filters the rows.
    pub(crate) fn with_external_filter(self) -> Self {
        Self { filtering: Filtering::Elsewhere, ..self }
    }

    /// Returns the list with a text that says that its rows have been requested.
    pub(crate) fn with_rows_requested(self) -> Self {
        Self { empty_text: "loading", ..self }
    }

    /// Returns the filter text exactly as typed.
    pub(crate) fn filter(&self) -> &str {
        &self.filter
    }

    /// Replaces the rows. The highlighted row stays highlighted if it still exists.
    pub(crate) fn set_rows(&mut self, rows: Vec<Row>) {
        self.rows = rows;
        self.keep_highlight_valid();
    }

    pub(crate) fn set_notices(&mut self, notices: Vec<String>) {
        self.notices = notices;
    }

    pub(crate) fn highlight(&mut self, key: &str) {
        self.at = Some(key.to_owned());
        self.keep_highlight_valid();
    }

    /// Returns the highlighted row, if there is one.
    pub(crate) fn highlighted(&self) -> Option<&Row> {
        self.rows.iter().find(|row| Some(&row.key) == self.at.as_ref())
    }

    /// Returns the highlighted row, provided it was highlighted in the last frame as well. A key press can only refer
    /// to such a row.
    pub(crate) fn highlighted_as_drawn(&self) -> Option<&Row> {
        self.highlighted().filter(|row| Some(&row.key) == self.drawn.as_ref())
    }

    /// Appends pasted text to the filter, omitting control characters.
    pub(crate) fn insert(&mut self, words: &str) {
        self.filter.extend(words.chars().filter(|letter| !letter.is_control()));
        self.highlight_first();
    }

    pub(crate) fn scroll_by(&mut self, rows: isize) {
        let found = self.matching_rows();
        let at = found.iter().position(|row| Some(&row.key) == self.at.as_ref()).unwrap_or(0);
        let to = at.saturating_add_signed(rows).min(found.len().saturating_sub(1));
        self.at = found.get(to).map(|row| row.key.clone());
    }

    /// Highlights the clicked row. If it is already highlighted, reports that it was chosen.
    pub(crate) fn click(&mut self, row: u16) -> ClickResult {
        let (first, keys) = &self.shown;
        let nth = row.checked_sub(*first).map(usize::from);
        match nth.and_then(|nth| keys.get(nth)) {
            // While the user types an API key or a title, no row can be chosen.
            Some(_) if self.asked.is_some() => ClickResult::Nothing,
            Some(key) if Some(key) == self.at.as_ref() => ClickResult::Taken,
            Some(key) => {
                self.at = Some(key.clone());
                ClickResult::Marked
            }
            None => ClickResult::Nothing,
        }
    }

    pub(crate) fn key(&mut self, key: KeyEvent) -> PickerResult {
        let ctrl = key.modifiers.contains(KeyModifiers::CONTROL);
        let alt = key.modifiers.contains(KeyModifiers::ALT);
        let page = self.page.max(1).cast_signed();
        match key.code {
            KeyCode::Esc => return PickerResult::Closed,
            KeyCode::Char('c') if ctrl => return PickerResult::Closed,
            KeyCode::Char('n') if ctrl => self.scroll_by(1),
            KeyCode::Char('p') if ctrl => self.scroll_by(-1),
            KeyCode::Char('u') if ctrl => {
                self.filter.clear();
                self.highlight_first();
            }
            KeyCode::Enter if key.modifiers.is_empty() => return self.choose(),
            KeyCode::Up => self.scroll_by(-1),
            KeyCode::Down => self.scroll_by(1),
            KeyCode::PageUp => self.scroll_by(-page),
            KeyCode::PageDown => self.scroll_by(page),
            KeyCode::Home => self.scroll_by(isize::MIN),
            KeyCode::End => self.scroll_by(isize::MAX),
            KeyCode::Backspace => {
                self.filter.pop();
                self.highlight_first();
            }
            KeyCode::Char(letter) if !ctrl && !alt => {
                self.filter.push(letter);
                self.highlight_first();
            }
            _ => return PickerResult::Other,
        }
        PickerResult::Nothing
    }

    /// Returns the result of choosing the row that was highlighted in the last frame.
    fn choose(&self) -> PickerResult {
        match self.highlighted_as_drawn() {
            None => PickerResult::Nothing,
            Some(Row { lacks: Some(why), .. }) => PickerResult::Refused(why.clone()),
            Some(row) => PickerResult::Chosen(row.key.clone()),
        }
    }

    /// Returns the rows that match the filter.
    fn matching_rows(&self) -> Vec<&Row> {
        match self.filtering {
            Filtering::Elsewhere => return self.rows.iter().collect(),
            Filtering::Fuzzy if !self.filter.trim().is_empty() => return self.nearest(),
            Filtering::Fuzzy | Filtering::Words => {}
        }
        let filter = self.filter.to_lowercase();
        let words: Vec<&str> = filter.split_whitespace().collect();
        let holds = |row: &&Row| {
            let all = format!("{} {}", row.key, row.cells.join(" ")).to_lowercase();
            words.iter().all(|word| all.contains(word))
        };
        self.rows.iter().filter(holds).collect()
    }

    /// Returns the rows whose first column fuzzily matches the filter, best matches first, followed by the rows that
    /// only have a cell containing the filter text.
    fn nearest(&self) -> Vec<&Row> {
        let (mut fuzzy, filter) = (text::Fuzzy::for_words(&self.filter), self.filter.trim().to_lowercase());
        let mut found: Vec<(u32, &Row)> = Vec::new();
        for row in &self.rows {
            let name = row.cells.first().map_or("", String::as_str);
            let said = || row.cells.iter().any(|cell| cell.to_lowercase().contains(&filter)).then_some(0);
            if let Some(score) = fuzzy.score(name).or_else(said) {
                found.push((score, row));
            }
        }
        found.sort_by_key(|(score, _)| std::cmp::Reverse(*score));
        found.into_iter().map(|(_, row)| row).collect()
    }

    fn keep_highlight_valid(&mut self) {
        let found = self.matching_rows();
        if found.iter().any(|row| Some(&row.key) == self.at.as_ref()) {
            return;
        }
        let first = found.iter().find(|row| row.lacks.is_none()).or(found.first());
        self.at = first.map(|row| row.key.clone());
    }

    /// Highlights the first matching row because the filter has changed.
    fn highlight_first(&mut self) {
        self.at = None;
        self.top = 0;
        self.keep_highlight_valid();
    }

    /// Draws the list with the details of the highlighted row. On a wide screen, multi-line details are shown to the
    /// right of the list; otherwise, details are shown below it. Returns the position of the cursor.
    pub(crate) fn draw(&mut self, area: Rect, buffer: &mut Buffer, theme: &Theme, glyphs: &Glyphs) -> Position {
        // Details of a single line are shown below the list, which needs the width.
        let has_preview = self.rows.iter().any(|row| row.detail.contains('\n'));
        match split(area).filter(|_| has_preview) {
            None => self.draw_list(area, buffer, theme, glyphs),
            Some([list, preview]) => {
                draw_separator(preview, buffer, theme, glyphs);
                for (line, y) in
                    self.details(preview.width.into(), list.width.into(), theme).into_iter().zip(preview.y..preview.bottom())
                {
                    buffer.set_line(preview.x, y, &line, preview.width);
                }
                let notices = self.notice_rows(list.width.saturating_sub(GUTTER).into(), theme);
                self.draw_rows(list, notices, buffer, theme, glyphs)
            }
        }
    }

    /// Draws the list with the details of the highlighted row below it. Returns the position of the cursor.
    pub(crate) fn draw_list(&mut self, area: Rect, buffer: &mut Buffer, theme: &Theme, glyphs: &Glyphs) -> Position {
        let width = usize::from(area.width.saturating_sub(GUTTER));
        let notices = self.notice_rows(width, theme);
        let room = usize::from(area.height / 3).max(DETAIL_ROWS);
        let mut below = self.details(width, width, theme);
        if below.len() > room {
            below.truncate(room);
            if let Some(last) = below.last_mut() {
                last.push_span(Span::styled(" …", theme.style(Token::Faint)));
            }
        }
        below.extend(notices);
        below.truncate(usize::from(area.height / 2).saturating_sub(1).max(DETAIL_ROWS));
        self.draw_rows(area, below, buffer, theme, glyphs)
    }

    /// Draws the title, the filter and the rows, with the lines in `below` under them. Returns the position of the
    /// cursor.
    fn draw_rows(
        &mut self,
        area: Rect,
        below: Vec<Line<'static>>,
        buffer: &mut Buffer,
        theme: &Theme,
        glyphs: &Glyphs,
    ) -> Position {
        let inner = Rect { x: area.x + GUTTER, width: area.width.saturating_sub(GUTTER), ..area };
        let width = usize::from(inner.width);
        let roomy = area.height >= ROOMY;
        let cursor = self.draw_head(inner, buffer, theme, glyphs);
        let mut y = area.y + 2;
        let found = self.matching_rows();
        let below = if roomy { below } else { Vec::new() };
        let has_heads = roomy && self.columns.iter().any(|column| !column.head.is_empty());
        let room = area.bottom().saturating_sub(y + u16::from(has_heads) + below.len() as u16).max(1);
        let at = found.iter().position(|row| Some(&row.key) == self.at.as_ref()).unwrap_or(0);
        let top = self.top.min(found.len().saturating_sub(room.into())).clamp(at.saturating_sub(usize::from(room) - 1), at);
        let has_more = found.len() > top + usize::from(room);
        let width = if found.len() > room.into() { width.saturating_sub(MORE) } else { width };
        let layout = ColumnWidths::compute(&found, self.columns, width, self.cuts_last || self.filtering == Filtering::Fuzzy);
        if has_heads {
            buffer.set_line(inner.x, y, &layout.heads(self.columns, theme), inner.width);
            y += 1;
        }
        for (row, y) in found.iter().skip(top).take(room.into()).zip(y..area.bottom()) {
            let is_at = Some(&row.key) == self.at.as_ref();
            if is_at {
                buffer.set_stringn(area.x, y, glyphs.user, GUTTER.into(), theme.symbol(Token::Accent));
            }
            // A reason that several rows share is shown only in the details.
            let is_shared = row.lacks.is_some() && found.iter().filter(|other| other.lacks == row.lacks).count() > 1;
            buffer.set_line(inner.x, y, &layout.row(row, (is_at, is_shared), width, theme), inner.width);
        }
        let shown = (y, found.iter().skip(top).take(room.into()).map(|row| row.key.clone()).collect());
        if found.is_empty() {
            let words = if self.rows.is_empty() && self.filter.is_empty() { self.empty_text } else { "no matches" };
            buffer.set_stringn(inner.x, y, words, width, theme.style(Token::Muted));
        }
        if has_more && y < area.bottom() {
            let y = (y + room).min(area.bottom()).saturating_sub(1);
            buffer.set_stringn(area.right().saturating_sub(2), y, glyphs.down, 2, theme.style(Token::Faint));
        }
        for (line, y) in below.iter().zip(area.bottom().saturating_sub(below.len() as u16)..area.bottom()) {
            buffer.set_line(inner.x, y, line, inner.width);
        }
        self.drawn = self.at.clone();
        self.shown = shown;
        self.page = room.into();
        self.top = top;
        cursor
    }

    /// Draws the title and the filter. Returns the position of the cursor.
    fn draw_head(&self, area: Rect, buffer: &mut Buffer, theme: &Theme, glyphs: &Glyphs) -> Position {
        let width = usize::from(area.width);
        let found = self.matching_rows().len();
        let count = if found == self.rows.len() { found.to_string() } else { format!("{found} of {}", self.rows.len()) };
        let aside = if self.aside.is_empty() { String::new() } else { format!(" {} {}", glyphs.dot, self.aside) };
        let title = format!("{} {} {count}{aside}", self.title, glyphs.dot);
        buffer.set_stringn(area.x, area.y, text::truncate(&title, width), width, theme.style(Token::Heading));
        let (lead, shown) = self.asked.as_ref().map_or(("filter: ", &self.filter), |(lead, shown)| (lead.as_str(), shown));
        let lead = text::truncate(lead, width.saturating_sub(NAME));
        let shown = tail(shown, width.saturating_sub(text::width(&lead) + 1));
        let y = area.y + 1;
        buffer.set_stringn(area.x, y, &lead, width, theme.style(Token::Faint));
        let column = area.x + text::width(&lead) as u16;
        buffer.set_stringn(column, y, shown, width.saturating_sub(text::width(&lead)), theme.style(Token::Text));
        Position { x: column + text::width(shown) as u16, y }
    }

    /// Returns the details of the highlighted row, omitting text that the last column of a list `list` cells wide
    /// already shows in full.
    fn details(&self, width: usize, list: usize, theme: &Theme) -> Vec<Line<'static>> {
        let Some(row) = self.highlighted() else { return Vec::new() };
        let used: usize = row.cells.iter().map(|cell| text::width(cell).max(NAME) + 2).sum();
        let is_shown = row.cells.last() == Some(&row.detail) && used <= list;
        let detail = row.detail.lines().filter(|_| !is_shown).map(|line| (line, Token::Muted));
        let lacks = row.lacks.iter().flat_map(|why| why.lines()).map(|line| (line, Token::Warn));
        // The reason comes first, because the end may be truncated.
        lacks.chain(detail).flat_map(|(line, token)| wrapped(line, width, theme, token)).collect()
    }

    /// Returns the leading rows of each notice.
    fn notice_rows(&self, width: usize, theme: &Theme) -> Vec<Line<'static>> {
        let notices = self.notices.iter().take(MAX_NOTICES);
        notices.flat_map(|notice| wrapped(notice, width, theme, Token::Faint).into_iter().take(DETAIL_ROWS)).collect()
    }
}

/// Returns the areas for a list and for a preview to its right, or `None` if the screen is too narrow for both.
pub(crate) fn split(area: Rect) -> Option<[Rect; 2]> {
    let left = area.width * 55 / 100;
    // The separator has a width of one cell, with a space on each side.
    let preview = Rect { x: area.x + left + 2, width: area.width.saturating_sub(left + 3), ..area };
    (area.width >= WIDE).then_some([Rect { width: left, ..area }, preview])
}

/// Draws the vertical line on the left of a preview.
pub(crate) fn draw_separator(preview: Rect, buffer: &mut Buffer, theme: &Theme, glyphs: &Glyphs) {
    for y in preview.y..preview.bottom() {
        buffer.set_stringn(preview.x.saturating_sub(2), y, glyphs.separator, 1, theme.style(Token::Faint));
    }
}

fn wrapped(words: &str, width: usize, theme: &Theme, token: Token) -> Vec<Line<'static>> {
    let parts = text::wrap(words, width.max(1)).into_iter();
    parts.map(|part| Line::styled(words[part].trim_end().to_owned(), theme.style(token))).collect()
}

/// Returns the longest suffix of `words` that fits into `cells` cells.
fn tail(words: &str, cells: usize) -> &str {
    let mut rest = words;
    while text::width(rest) > cells {
        let mut letters = rest.chars();
        letters.next();
        rest = letters.as_str();
    }
    rest
}

/// Column widths in cells. A dropped column has a width of 0.
struct ColumnWidths {
    widths: Vec<usize>,
    numbers: Vec<bool>,
}

impl ColumnWidths {
    /// Computes the column widths. `cuts` says whether the last column is truncated before any other column is dropped.
    fn compute(rows: &[&Row], columns: &[Column], width: usize, cuts: bool) -> Self {
        let mut widths: Vec<usize> = columns
            .iter()
            .enumerate()
            .map(|(at, column)| {
                let cells = rows.iter().filter_map(|row| row.cells.get(at)).map(|cell| text::width(cell));
                let widest = cells.fold(0, usize::max);
                // An empty column takes no space from the names.
                if widest == 0 && column.rank > 0 && !rows.is_empty() { 0 } else { widest.max(text::width(column.head)) }
            })
            .collect();
        let all =
            |widths: &[usize]| widths.iter().filter(|width| **width > 0).map(|width| width + 2).sum::<usize>().saturating_sub(2);
        if cuts && let [others @ .., last] = &mut widths[..] {
            let taken: usize = others.iter().map(|width| width + 2).sum();
            *last = (*last).min(width.saturating_sub(taken).max(LAST));
        }
        let mut leaving: Vec<usize> = (1..columns.len()).filter(|at| columns[*at].rank > 0).collect();
        leaving.sort_by_key(|at| columns[*at].rank);
        // A long name is truncated before a column is dropped, unless it would become unrecognizable.
        let name = widths.first().copied().unwrap_or(0);
        let least = name.min(NAME.max(width / 3));
        loop {
            let others = all(&widths) - widths.first().copied().unwrap_or(0);
            if others + least <= width {
                if let Some(first) = widths.first_mut() {
                    *first = name.min(width - others);
                }
                break;
            }
            if let Some(at) = leaving.pop() {
                widths[at] = 0;
            } else {
                if let Some(first) = widths.first_mut() {
                    *first = width.saturating_sub(others).max(1);
                }
                break;
            }
        }
        // A mark is shown in full if the names need to give up only little space.
        let mark = rows.iter().map(|row| text::width(row.mark)).max().unwrap_or(0);
        if mark > 0
            && let Some(lacking) = (all(&widths) + 2 + mark).checked_sub(width)
            && let Some(first) = widths.first_mut()
            && lacking <= mark.min(first.saturating_sub(least.max(LAST)))
        {
            *first -= lacking;
        }
        Self { widths, numbers: columns.iter().map(|column| column.is_number).collect() }
    }

    fn line(&self, cells: impl Iterator<Item = impl AsRef<str>>) -> String {
        let mut out = String::new();
        for ((cell, width), number) in cells.zip(&self.widths).zip(&self.numbers) {
            if *width == 0 {
                continue;
            }
            if !out.is_empty() {
                out.push_str("  ");
            }
            let cell = text::truncate(cell.as_ref(), *width);
            let gap = " ".repeat(width.saturating_sub(text::width(&cell)));
            if *number {
                out.push_str(&gap);
                out.push_str(&cell);
            } else {
                out.push_str(&cell);
                out.push_str(&gap);
            }
        }
        out
    }

    fn heads(&self, columns: &[Column], theme: &Theme) -> Line<'static> {
        Line::styled(self.line(columns.iter().map(|column| column.head)), theme.style(Token::Faint))
    }

    /// Returns a row of the list. `is_shared` says whether other rows have the same reason for being unavailable.
    fn row(&self, row: &Row, (is_at, is_shared): (bool, bool), width: usize, theme: &Theme) -> Line<'static> {
        let token = match (&row.lacks, is_at) {
            (Some(_), _) => Token::Faint,
            (None, true) => Token::Heading,
            (None, false) => Token::Text,
        };
        let cells = self.line(row.cells.iter());
        let mut behind: Vec<&str> = [row.mark].into_iter().filter(|mark| !mark.is_empty()).collect();
        behind.extend(row.lacks.as_deref());
        let room = width.saturating_sub(text::width(&cells) + 2);
        let whole = behind.join(", ");
        // The details show the reason in full, so it is omitted here if it does not fit.
        let is_long = is_shared || text::width(&whole) > room;
        let behind = if is_long && !row.mark.is_empty() { row.mark.to_owned() } else { whole };
        let mut spans = vec![Span::styled(cells, theme.style(token))];
        if !behind.is_empty() && room >= 6 {
            let token = if row.lacks.is_some() { Token::Faint } else { Token::Ok };
            spans.push(Span::styled(format!("  {}", text::truncate(&behind, room)), theme.style(token)));
        }
        Line::from(spans)
    }
}
