//! Layout of Markdown blocks in rows of styled text.

use std::ops::Range;

use pulldown_cmark::{CodeBlockKind, Event, HeadingLevel, Options, Parser, Tag, TagEnd};
use ratatui::style::Modifier;

use super::code::{self, Colours};
use super::split::{Block, BlockKind};
use super::table::Table;
use crate::text;
use crate::tui::metrics::MEASURE;
use crate::tui::styled_text::{Frame, SpanStyle, StyledText};
use crate::tui::theme::Token;

/// Returns the rows of a block, including the empty row that precedes it. If `ticks` is set, inline code is shown with
/// its backticks.
pub(super) fn block(source: &str, block: &Block, width: usize, ticks: bool, colours: &mut Colours<'_>) -> Vec<StyledText> {
    let look = BlockLayout { width, ticks };
    let mut rows = match &block.kind {
        BlockKind::Code(part) => code::part_rows(source, part, block.range.end, block.range.start, width, colours),
        BlockKind::Prose { number, head: None } => prose(&source[block.range.clone()], *number, false, look, colours),
        BlockKind::Prose { number, head: Some(head) } => {
            let whole = format!("{}{}", &source[head.clone()], &source[block.range.clone()]);
            prose(&whole, *number, true, look, colours)
        }
    };
    if block.gap && !rows.is_empty() {
        rows.insert(0, StyledText::default());
    }
    rows
}

/// Options for laying out a block.
#[derive(Clone, Copy)]
struct BlockLayout {
    width: usize,
    /// Whether inline code is shown with its backticks.
    ticks: bool,
}

fn prose(source: &str, number: Option<u64>, goes_on: bool, look: BlockLayout, colours: &mut Colours<'_>) -> Vec<StyledText> {
    let options = Options::ENABLE_TABLES | Options::ENABLE_STRIKETHROUGH | Options::ENABLE_TASKLISTS;
    let mut painter = Painter::new(source, number, goes_on, look, colours);
    for (event, range) in Parser::new_ext(source, options).into_offset_iter() {
        painter.event(event, range);
    }
    painter.flush();
    if painter.rows.is_empty() && !source.trim().is_empty() && text_without_fences(source) {
        // Link definitions and similar blocks have no visible content, so their source is shown.
        return StyledText::new(&source.trim_end().replace('\t', " "), SpanStyle::from_token(Token::Muted)).wrap(look.width);
    }
    painter.rows
}

/// Returns whether the source contains anything other than empty code fences, which take up no rows.
fn text_without_fences(source: &str) -> bool {
    source.lines().any(|line| super::line::opening_fence(line).is_none() && !line.trim().is_empty())
}

/// Prefix of the rows in a list item or quote, which may differ between the first row and the others.
struct RowPrefix {
    first: Option<StyledText>,
    rest: StyledText,
}

struct Painter<'s, 't, 'c> {
    source: &'s str,
    width: usize,
    ticks: bool,
    goes_on: bool,
    colours: &'c mut Colours<'t>,
    rows: Vec<StyledText>,
    levels: Vec<RowPrefix>,
    /// Number of the next item in each open list, or `None` for a bullet list.
    lists: Vec<Option<u64>>,
    /// Number of the outermost list's first item, if it is a numbered list.
    number: Option<u64>,
    inline: StyledText,
    inks: Vec<SpanStyle>,
    /// Open links, each with the byte offset of its text in `inline` and its target.
    links: Vec<(usize, String)>,
    table: Option<Table>,
    code: Option<(String, String)>,
    codes: usize,
    /// Byte offset up to which the source has been laid out, used to detect blank lines that follow.
    end: usize,
}

impl<'s, 't, 'c> Painter<'s, 't, 'c> {
    fn new(source: &'s str, number: Option<u64>, goes_on: bool, look: BlockLayout, colours: &'c mut Colours<'t>) -> Self {
        Self {
            source,
            width: look.width,
            ticks: look.ticks,
            goes_on,
            colours,
            rows: Vec::new(),
            levels: Vec::new(),
            lists: Vec::new(),
            number,
            inline: StyledText::default(),
            inks: vec![SpanStyle::from_token(Token::Text)],
            links: Vec::new(),
            table: None,
            code: None,
            codes: 0,
            end: 0,
        }
    }

    fn event(&mut self, event: Event<'_>, range: Range<usize>) {
        match event {
            Event::Start(tag) => self.start(tag, range),
            Event::End(tag) => self.finish(tag, range),
            Event::Text(text) => self.text(&text, range),
            Event::Code(code) => self.code_span(&code.replace('\n', " "), range),
            Event::Html(html) | Event::InlineHtml(html) => self.text(&html, range),
            Event::InlineMath(math) | Event::DisplayMath(math) => self.text(&math, range),
            Event::FootnoteReference(name) => self.text(&format!("[^{name}]"), range),
            Event::SoftBreak | Event::HardBreak => self.inline.push("\n", SpanStyle::from_token(Token::Text)),
            Event::Rule => self.rule(range),
            Event::TaskListMarker(done) => self.task(done),
        }
    }

    fn start(&mut self, tag: Tag<'_>, range: Range<usize>) {
        match tag {
            Tag::Paragraph | Tag::HtmlBlock | Tag::FootnoteDefinition(_) => self.begin_block(range.start),
            Tag::Heading { level, .. } => {
                self.begin_block(range.start);
                let top = if level == HeadingLevel::H1 { Modifier::UNDERLINED } else { Modifier::empty() };
                self.inks.push(SpanStyle { stress: top, ..SpanStyle::from_token(Token::Heading) });
            }
            Tag::BlockQuote(_) => {
                self.begin_block(range.start);
                let bar = StyledText::new("│ ", SpanStyle::from_token(Token::Faint));
                self.levels.push(RowPrefix { first: None, rest: bar });
                self.inks.push(SpanStyle { token: Token::Quote, ..self.ink() });
            }
            Tag::CodeBlock(kind) => {
                self.begin_block(range.start);
                let info = match kind {
                    CodeBlockKind::Fenced(info) => info.into_string(),
                    CodeBlockKind::Indented => String::new(),
                };
                self.code = Some((info, String::new()));
            }
            Tag::List(first) => self.list(first, range.start),
            Tag::Item => self.item(range.start),
            Tag::Table(alignments) => {
                self.begin_block(range.start);
                self.table = Some(Table { alignments, rows: Vec::new() });
            }
            Tag::TableHead | Tag::TableRow => {
                if let Some(table) = &mut self.table {
                    table.rows.push(Vec::new());
                }
            }
            Tag::Emphasis => self.set_emphasis(Modifier::ITALIC),
            Tag::Strong => self.set_emphasis(Modifier::BOLD),
            Tag::Strikethrough => self.set_emphasis(Modifier::CROSSED_OUT),
            Tag::Link { dest_url, .. } => self.link(dest_url.into_string()),
            Tag::Image { dest_url, .. } => {
                self.inline.push("image: ", SpanStyle::from_token(Token::Muted));
                self.link(dest_url.into_string());
            }
            Tag::TableCell
            | Tag::DefinitionList
            | Tag::DefinitionListTitle
            | Tag::DefinitionListDefinition
            | Tag::Superscript
            | Tag::Subscript
            | Tag::MetadataBlock(_) => {}
        }
    }

    fn finish(&mut self, tag: TagEnd, range: Range<usize>) {
        match tag {
            TagEnd::Paragraph | TagEnd::HtmlBlock | TagEnd::FootnoteDefinition => self.flush(),
            TagEnd::Heading(_) => {
                self.flush();
                self.inks.pop();
            }
            TagEnd::BlockQuote(_) => {
                self.flush();
                self.levels.pop();
                self.inks.pop();
            }
            TagEnd::CodeBlock => self.end_code(range),
            TagEnd::List(_) => {
                self.lists.pop();
            }
            TagEnd::Item => {
                if self.levels.last().is_some_and(|level| level.first.is_some()) && self.inline.is_empty() {
                    self.emit(&StyledText::default());
                }
                self.flush();
                self.levels.pop();
            }
            TagEnd::Table => self.end_table(range),
            TagEnd::TableCell => {
                let cell = std::mem::take(&mut self.inline);
                if let Some(row) = self.table.as_mut().and_then(|table| table.rows.last_mut()) {
                    row.push(cell);
                }
            }
            TagEnd::Emphasis | TagEnd::Strong | TagEnd::Strikethrough => {
                self.inks.pop();
            }
            TagEnd::Link | TagEnd::Image => self.end_link(),
            TagEnd::TableHead
            | TagEnd::TableRow
            | TagEnd::DefinitionList
            | TagEnd::DefinitionListTitle
            | TagEnd::DefinitionListDefinition
            | TagEnd::Superscript
            | TagEnd::Subscript
            | TagEnd::MetadataBlock(_) => {}
        }
    }

    fn ink(&self) -> SpanStyle {
        self.inks.last().copied().unwrap_or(SpanStyle::from_token(Token::Text))
    }

    fn set_emphasis(&mut self, stress: Modifier) {
        let ink = self.ink();
        self.inks.push(SpanStyle { stress: ink.stress | stress, ..ink });
    }

    fn text(&mut self, text: &str, range: Range<usize>) {
        if let Some((_, code)) = &mut self.code {
            code.push_str(text);
            self.end = range.end;
            return;
        }
        self.write(text, self.ink(), range);
    }

    /// Appends text to the current paragraph. The text is cleaned again, because Markdown entities can encode any
    /// character.
    fn write(&mut self, text: &str, ink: SpanStyle, range: Range<usize>) {
        self.end = self.end.max(range.end);
        let text = text::clean(text);
        if self.table.is_some() {
            self.inline.push(&text.replace(['\n', '\t'], " "), ink);
        } else {
            self.inline.push(&text.replace('\t', " "), ink);
        }
    }

    fn code_span(&mut self, code: &str, range: Range<usize>) {
        let ink = SpanStyle { token: Token::Code, ..self.ink() };
        if !self.ticks {
            return self.write(code, ink, range);
        }
        // The delimiter is longer than every run of backticks inside.
        let longest = code.split(|one| one != '`').map(str::len).max().unwrap_or(0);
        let ticks = "`".repeat(longest + 1);
        let blank = if code.starts_with('`') || code.ends_with('`') { " " } else { "" };
        self.write(&format!("{ticks}{blank}{code}{blank}{ticks}"), ink, range);
    }

    fn link(&mut self, target: String) {
        self.links.push((self.inline.text.len(), target));
        self.inks.push(SpanStyle { token: Token::Link, ..self.ink() });
    }

    fn end_link(&mut self) {
        self.inks.pop();
        let Some((start, target)) = self.links.pop() else { return };
        let target = text::clean(&target).replace(['\n', '\t'], " ");
        let words = &self.inline.text[start..];
        let says_it = words == target || target.strip_prefix("mailto:") == Some(words);
        if !says_it && !target.is_empty() {
            let lead = if words.is_empty() { "" } else { " " };
            self.inline.push(&format!("{lead}({target})"), SpanStyle::from_token(Token::Muted));
        }
    }

    fn list(&mut self, first: Option<u64>, start: usize) {
        self.flush();
        let first = if self.lists.is_empty() { first.and(self.number).or(first) } else { first };
        if self.levels.is_empty() {
            self.begin_block(start);
        }
        self.lists.push(first);
    }

    fn item(&mut self, start: usize) {
        self.begin_block(start);
        let depth = self.lists.len();
        let sign = match self.lists.last_mut() {
            Some(Some(number)) => {
                let sign = format!("{number}. ");
                *number += 1;
                sign
            }
            Some(None) | None => ["• ", "◦ ", "▪ "][(depth.max(1) - 1) % 3].to_owned(),
        };
        let rest = StyledText::new(&" ".repeat(text::width(&sign)), SpanStyle::from_token(Token::Text));
        // Without colours, the bullet is plain, because the accent style would underline it.
        let token = if self.ticks { Token::Text } else { Token::Accent };
        self.levels.push(RowPrefix { first: Some(StyledText::new(&sign, SpanStyle::from_token(token))), rest });
    }

    fn task(&mut self, done: bool) {
        let (sign, token) = if done { ("☑ ", Token::Ok) } else { ("☐ ", Token::Muted) };
        if let Some(first) = self.levels.last_mut().and_then(|level| level.first.as_mut()) {
            *first = StyledText::new(sign, SpanStyle::from_token(token));
        }
        if let Some(level) = self.levels.last_mut() {
            level.rest = StyledText::new("  ", SpanStyle::from_token(Token::Text));
        }
    }

    fn rule(&mut self, range: Range<usize>) {
        self.begin_block(range.start);
        self.end = range.end;
        let row = StyledText::new(&"─".repeat(self.content_width()), SpanStyle::from_token(Token::Faint)).with_frame(Frame::Rule);
        self.emit(&row);
    }

    fn end_code(&mut self, range: Range<usize>) {
        self.end = range.end;
        let Some((info, code)) = self.code.take() else { return };
        let code = text::clean(&code).into_owned();
        let rows = code::inner_rows(&code, &info, self.codes, self.content_width(), self.colours);
        self.codes += 1;
        for row in &rows {
            self.emit(row);
        }
    }

    fn end_table(&mut self, range: Range<usize>) {
        self.end = range.end;
        let Some(table) = self.table.take() else { return };
        let rows = table.paint(self.content_width(), !self.goes_on);
        for row in &rows {
            self.emit(row);
        }
    }

    /// Starts a new block after ending the previous one. Adds an empty row if a blank line separates them in the
    /// source.
    fn begin_block(&mut self, start: usize) {
        self.flush();
        let between = self.source.get(self.trimmed_end()..start).unwrap_or_default();
        let is_new_item = self.levels.last().is_some_and(|level| level.first.is_some());
        if !self.rows.is_empty() && !is_new_item && between.matches('\n').count() > 1 {
            self.emit(&StyledText::default());
            self.end = start;
        }
    }

    fn trimmed_end(&self) -> usize {
        self.source.get(..self.end).map_or(0, |painted| painted.trim_end().len())
    }

    fn flush(&mut self) {
        if self.inline.is_empty() || self.table.is_some() {
            return;
        }
        let inline = std::mem::take(&mut self.inline);
        let end = inline.text.trim_end().len();
        for row in inline.slice(0..end).wrap(self.content_width().min(MEASURE.into())) {
            self.emit(&row);
        }
    }

    /// Returns the width, in cells, that is left for content next to list and quote markers. If the markers would take
    /// up more than half of the row, they are omitted.
    fn content_width(&self) -> usize {
        let marks = self.marks_width();
        if marks * 2 > self.width { self.width } else { self.width - marks }
    }

    fn marks_width(&self) -> usize {
        self.levels.iter().map(|level| level.rest.width()).sum()
    }

    fn emit(&mut self, row: &StyledText) {
        let mut line = StyledText::default().joined(row.join);
        // The bullet of an item counts as text. Bars and indents do not.
        let mut has_sign = false;
        if self.marks_width() * 2 <= self.width {
            for level in &mut self.levels {
                has_sign |= level.first.is_some();
                line.append(&level.first.take().unwrap_or_else(|| level.rest.clone()));
                if !has_sign {
                    line.skip = line.text.len();
                }
            }
        }
        if !has_sign {
            line.skip += row.skip;
        }
        let begin = line.text.len();
        line.append(row);
        self.rows.push(line.with_frame_of(row, begin));
    }
}
