//! Converts HTML pages to readable text. Tags are processed one at a time without building a tree, so the cost depends
//! only on a page's length, even if the page is deeply nested or broken.

use html5ever::tendril::StrTendril;
use html5ever::tokenizer::states::RawKind;
use html5ever::tokenizer::{
    BufferQueue, CharacterTokens, EndTag, StartTag, Tag, TagToken, Token, TokenSink, TokenSinkResult, Tokenizer, TokenizerOpts,
};
use std::cell::RefCell;
use std::fmt::Write;
use std::time::{Duration, Instant};
use url::Url;

/// Maximum size of the converted text in bytes.
const MAX_BYTES: usize = 10 * 1024 * 1024;
/// Time limit for converting a page. Once it is exceeded, the rest of the page is omitted.
const MAX_DURATION: Duration = Duration::from_secs(5);
/// Number of bytes to process between two checks of the time limit.
const CHUNK_BYTES: usize = 4 * 1024;
/// Maximum nesting depth of lists and quotes that is displayed.
const DEEPEST: usize = 8;
/// Maximum length of a link address in bytes.
const ADDRESS_BYTES: usize = 2000;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::tools) enum Form {
    Text,
    Markdown,
}

/// Converts a page to the given format, resolving links against `base`.
pub(in crate::tools) fn readable(html: &str, base: &str, form: Form) -> String {
    let page = HtmlPage { base: Url::parse(base).ok(), form, ..HtmlPage::new() };
    let tokenizer = Tokenizer::new(Sink(RefCell::new(page)), TokenizerOpts::default());
    let (queue, begun) = (BufferQueue::default(), Instant::now());
    let mut rest = html;
    while !rest.is_empty() {
        let (piece, after) = rest.split_at(crate::protocol::cut_position_after(rest, CHUNK_BYTES.min(rest.len())));
        rest = after;
        queue.push_back(StrTendril::from_slice(piece));
        // No script runs, so the tokenizer never pauses for one.
        let _ = tokenizer.feed(&queue);
        if tokenizer.sink.0.borrow().out.len() > MAX_BYTES || begun.elapsed() > MAX_DURATION {
            break;
        }
    }
    if rest.is_empty() {
        tokenizer.end();
    }
    let mut page = tokenizer.sink.0.into_inner();
    page.end_all();
    let mut text = page.out.trim().to_owned();
    if !rest.is_empty() {
        let _ = write!(text, "\n[{} more bytes of the page were not converted; request it with `format` raw]", rest.len());
    }
    text
}

struct Sink(RefCell<HtmlPage>);

impl TokenSink for Sink {
    type Handle = ();

    fn process_token(&self, token: Token, _: u64) -> TokenSinkResult<()> {
        let mut page = self.0.borrow_mut();
        match token {
            CharacterTokens(text) => page.text(&text),
            TagToken(tag) if tag.kind == StartTag => return page.start(&tag),
            TagToken(tag) if tag.kind == EndTag => page.end(&tag.name),
            _ => {}
        }
        TokenSinkResult::Continue
    }
}

struct HtmlPage {
    base: Option<Url>,
    form: Form,
    out: String,
    /// Number of line breaks that precede the next word.
    breaks: usize,
    /// Whether a space precedes the next word.
    space: bool,
    /// Name of the element that is being skipped, and the number of open elements with that name.
    skipped: Option<(String, usize)>,
    /// Number of open `pre` elements, and the position at which their text starts.
    verbatim: Option<(usize, usize)>,
    /// Next number for each open list, or `None` if the list is unordered.
    lists: Vec<Option<u64>>,
    quotes: usize,
    /// Quote depth at the time of the last output.
    quoted: usize,
    /// Position at which the link text starts, and the link address.
    link: Option<(usize, String)>,
    /// For each open table, the number of cells so far in the current row, and whether it is the first row.
    tables: Vec<(usize, bool)>,
}

impl HtmlPage {
    fn new() -> Self {
        Self {
            base: None,
            form: Form::Text,
            out: String::new(),
            breaks: 0,
            space: false,
            skipped: None,
            verbatim: None,
            lists: Vec::new(),
            quotes: 0,
            quoted: 0,
            link: None,
            tables: Vec::new(),
        }
    }

    fn is_markdown(&self) -> bool {
        self.form == Form::Markdown
    }

    fn start(&mut self, tag: &Tag) -> TokenSinkResult<()> {
        let name = &*tag.name;
        match name {
            "script" => return self.raw(name, RawKind::ScriptData),
            "style" | "iframe" | "noembed" | "noframes" | "xmp" => return self.raw(name, RawKind::Rawtext),
            "textarea" => return self.raw(name, RawKind::Rcdata),
            _ => {}
        }
        if let Some((open, depth)) = &mut self.skipped {
            *depth += usize::from(open == name && !tag.self_closing);
            return TokenSinkResult::Continue;
        }
        match name {
            "svg" | "math" | "template" | "object" | "select" if !tag.self_closing => self.skipped = Some((name.to_owned(), 1)),
            "title" => {
                self.block(2);
                self.mark("# ");
                return TokenSinkResult::RawData(RawKind::Rcdata);
            }
            "h1" | "h2" | "h3" | "h4" | "h5" | "h6" => {
                self.block(2);
                let level = usize::from(name.as_bytes()[1] - b'0');
                self.mark(&format!("{} ", "#".repeat(level)));
            }
            "br" => self.breaks += 1,
            "hr" => {
                self.block(2);
                self.push_word("---");
                self.block(2);
            }
            "ul" | "ol" => self.begin_list(tag),
            "li" => self.item(),
            "pre" => self.begin_verbatim(),
            "code" | "kbd" | "samp" if self.is_markdown() && self.verbatim.is_none() => self.mark("`"),
            "blockquote" => {
                self.block(2);
                self.quotes += 1;
            }
            "a" => self.begin_link(tag),
            "img" => {
                let alt = attribute(tag, "alt").map(str::trim).filter(|alt| !alt.is_empty());
                if let Some(alt) = alt {
                    self.text(&format!("[image: {alt}]"));
                }
            }
            "table" => {
                self.block(2);
                if self.tables.len() < 1000 {
                    self.tables.push((0, true));
                }
            }
            "tr" => {
                self.block(1);
                if let Some((cells, _)) = self.tables.last_mut() {
                    *cells = 0;
                }
            }
            "td" | "th" => self.cell(),
            _ => self.block(breaks_around(name)),
        }
        TokenSinkResult::Continue
    }

    fn begin_list(&mut self, tag: &Tag) {
        self.block(if self.lists.is_empty() { 2 } else { 1 });
        if self.lists.len() < 1000 {
            let first = attribute(tag, "start").and_then(|start| start.parse().ok()).unwrap_or(1);
            self.lists.push((&*tag.name == "ol").then_some(first));
        }
    }

    fn begin_verbatim(&mut self) {
        if let Some((depth, _)) = &mut self.verbatim {
            *depth += 1;
        } else {
            self.block(2);
            self.flush();
            self.verbatim = Some((1, self.out.len()));
        }
    }

    fn raw(&mut self, name: &str, kind: RawKind) -> TokenSinkResult<()> {
        match &mut self.skipped {
            Some((open, depth)) => *depth += usize::from(open == name),
            None => self.skipped = Some((name.to_owned(), 1)),
        }
        TokenSinkResult::RawData(kind)
    }

    fn end(&mut self, name: &str) {
        if let Some((open, depth)) = &mut self.skipped {
            *depth -= usize::from(open == name);
            if *depth == 0 {
                self.skipped = None;
            }
            return;
        }
        match name {
            "ul" | "ol" => {
                self.lists.pop();
                self.block(if self.lists.is_empty() { 2 } else { 1 });
            }
            "pre" => self.end_verbatim(),
            "code" | "kbd" | "samp" if self.is_markdown() && self.verbatim.is_none() => self.out.push('`'),
            "blockquote" => {
                self.block(2);
                self.quotes = self.quotes.saturating_sub(1);
            }
            "a" => self.end_link(),
            "tr" => self.end_row(),
            "table" => {
                self.tables.pop();
                self.block(2);
            }
            "title" | "h1" | "h2" | "h3" | "h4" | "h5" | "h6" => self.block(2),
            "br" => self.breaks += 1,
            _ => self.block(breaks_around(name)),
        }
    }

    /// Closes all open elements.
    fn end_all(&mut self) {
        self.end_link();
        if let Some((depth, _)) = &mut self.verbatim {
            *depth = 1;
            self.end_verbatim();
        }
    }

    fn text(&mut self, text: &str) {
        if self.skipped.is_some() {
            return;
        }
        if self.verbatim.is_some() {
            self.out.push_str(text);
            return;
        }
        for (index, word) in text.split([' ', '\t', '\n', '\r', '\u{c}']).enumerate() {
            self.space |= index > 0;
            if !word.is_empty() {
                self.push_word(word);
            }
        }
    }

    /// Requires at least this many line breaks before the next output. Two of them result in an empty line.
    fn block(&mut self, breaks: usize) {
        if self.verbatim.is_none() {
            self.breaks = self.breaks.max(breaks);
        }
    }

    /// Writes the pending line breaks, followed by the prefixes of the new line.
    fn flush(&mut self) {
        if self.breaks > 0 && !self.out.is_empty() {
            let quote = "> ".repeat(self.quotes.min(DEEPEST));
            let between = "> ".repeat(self.quotes.min(self.quoted).min(DEEPEST));
            for left in (0..self.breaks.min(2)).rev() {
                while self.out.ends_with(' ') {
                    self.out.pop();
                }
                self.out.push('\n');
                self.out.push_str(if left == 0 { &quote } else { &between });
            }
            let indent = self.lists.len().saturating_sub(1).min(DEEPEST);
            self.out.push_str(&"  ".repeat(indent));
            self.space = false;
        }
        self.breaks = 0;
        self.quoted = self.quotes;
    }

    fn push_word(&mut self, word: &str) {
        self.flush();
        if std::mem::take(&mut self.space) && !self.out.is_empty() && !self.out.ends_with([' ', '\n']) {
            self.out.push(' ');
        }
        self.out.push_str(word);
    }

    /// Writes a marker, in Markdown only. The text that follows is not separated from it by a space.
    fn mark(&mut self, sign: &str) {
        if self.is_markdown() {
            self.push_word(sign);
        }
    }

    fn item(&mut self) {
        self.block(1);
        let sign = match self.lists.last_mut() {
            Some(Some(number)) => {
                let sign = format!("{number}. ");
                *number = number.saturating_add(1);
                sign
            }
            Some(None) | None => "- ".to_owned(),
        };
        self.push_word(&sign);
    }

    fn cell(&mut self) {
        let Some((cells, _)) = self.tables.last_mut() else { return self.block(1) };
        *cells += 1;
        let first = *cells == 1;
        if self.is_markdown() {
            self.space = !first;
            self.push_word("| ");
        } else if !first {
            self.space = true;
            self.push_word("| ");
        }
    }

    fn end_row(&mut self) {
        let nested = self.tables.len() > 1;
        let Some((cells, is_first)) = self.tables.last_mut() else { return self.block(1) };
        let (count, first) = (std::mem::take(cells), std::mem::take(is_first));
        if self.is_markdown() && count > 0 {
            self.space = true;
            self.push_word("|");
            if first && !nested {
                self.block(1);
                self.push_word(&format!("|{}", " --- |".repeat(count.min(100))));
            }
        }
        self.block(1);
    }

    fn end_verbatim(&mut self) {
        let Some((depth, start)) = &mut self.verbatim else { return };
        *depth -= 1;
        if *depth > 0 {
            return;
        }
        let start = *start;
        self.verbatim = None;
        let text = self.out.split_off(start);
        let text = text.strip_prefix('\n').unwrap_or(&text).trim_end();
        if self.form == Form::Markdown && !text.is_empty() {
            let mut fence = "```".to_owned();
            while text.contains(&fence) && fence.len() < 16 {
                fence.push('`');
            }
            let _ = write!(self.out, "{fence}\n{text}\n{fence}");
        } else {
            self.out.push_str(text);
        }
        self.block(2);
    }

    fn begin_link(&mut self, tag: &Tag) {
        self.end_link();
        let Some(address) = attribute(tag, "href").filter(|_| self.is_markdown() && self.verbatim.is_none()) else { return };
        let address = address.trim();
        if address.len() > ADDRESS_BYTES || address.starts_with('#') {
            return;
        }
        let leads = self.base.as_ref().map_or_else(|| Url::parse(address), |base| base.join(address));
        if let Ok(leads) = leads
            && matches!(leads.scheme(), "http" | "https" | "mailto")
        {
            self.flush();
            if std::mem::take(&mut self.space) && !self.out.is_empty() && !self.out.ends_with([' ', '\n']) {
                self.out.push(' ');
            }
            self.link = Some((self.out.len(), leads.to_string()));
        }
    }

    fn end_link(&mut self) {
        let Some((start, address)) = self.link.take() else { return };
        if start > self.out.len() || !self.out.is_char_boundary(start) {
            return;
        }
        let text = self.out[start..].trim().to_owned();
        if text.is_empty() {
            return;
        }
        if text.contains('\n') {
            let _ = write!(self.out, " ({address})");
            return;
        }
        let lead = self.out[start..].len() - self.out[start..].trim_start().len();
        self.out.truncate(start + lead);
        let _ = write!(self.out, "[{text}]({address})");
    }
}

fn attribute<'a>(tag: &'a Tag, name: &str) -> Option<&'a str> {
    tag.attrs.iter().find(|attribute| &*attribute.name.local == name).map(|attribute| &*attribute.value)
}

/// Returns the number of line breaks before and after an element.
fn breaks_around(name: &str) -> usize {
    match name {
        "p" | "dl" | "figure" | "details" | "article" | "section" | "header" | "footer" | "main" | "nav" | "aside" | "form"
        | "fieldset" | "address" => 2,
        "div" | "dt" | "dd" | "li" | "summary" | "figcaption" | "caption" | "thead" | "tbody" | "tfoot" | "option" | "body"
        | "head" | "html" | "legend" | "center" => 1,
        _ => 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const BASE: &str = "https://a.example/docs/page";

    #[test]
    fn pages_are_converted_to_markdown_and_text() {
        let page = r#"<!DOCTYPE html><html><head><title>The &amp; page</title><style>p { color: red }</style>
            <script>if (a < b) { document.write("<p>no</p>") }</script></head>
            <body><h2>One</h2><p>Some <b>bold</b>
            text, <a href="../up?x=1&y=2">a link</a> and <code>let x</code>.</p>
            <ul><li>first<li>second <ol start=3><li>inner</li></ol></li></ul>
            <blockquote><p>said</p></blockquote>
            <pre><code>fn main() {
    one();
}</code></pre>
            <table><tr><th>A</th><th>B</th></tr><tr><td>1</td><td>2</td></tr></table>
            <img src="x.png" alt="a tree"><svg><text>no</text></svg><p>end</body></html>"#;
        let markdown = "# The & page\n\n## One\n\nSome bold text, [a link](https://a.example/up?x=1&y=2) and `let x`.\n\n- first\n- second\n  \
            3. inner\n\n> said\n\n```\nfn main() {\n    one();\n}\n```\n\n| A | B |\n| --- | --- |\n| 1 | 2 |\n\n[image: a tree]\n\nend";
        assert_eq!(readable(page, BASE, Form::Markdown), markdown);
        let text = "The & page\n\nOne\n\nSome bold text, a link and let x.\n\n- first\n- second\n  3. inner\n\n> said\n\n\
            fn main() {\n    one();\n}\n\nA | B\n1 | 2\n\n[image: a tree]\n\nend";
        assert_eq!(readable(page, BASE, Form::Text), text);
    }

    #[test]
    fn only_web_urls_become_links() {
        for (href, told) in [
            ("x", "[t](https://a.example/docs/x)"),
            ("//b.example/", "[t](https://b.example/)"),
            ("javascript:alert(1)", "t"),
            ("data:text/html,x", "t"),
            ("#part", "t"),
            ("http://[", "t"),
        ] {
            assert_eq!(readable(&format!("<a href='{href}'>t</a>"), BASE, Form::Markdown), told, "{href}");
        }
        assert_eq!(readable("<a href=x></a>a<a href=y>b", BASE, Form::Markdown), "a[b](https://a.example/docs/y)");
    }

    #[test]
    fn malformed_and_hostile_pages_are_converted() {
        for page in
            ["", "<", "<a", "</", "<!--", "<pre>", "</pre></ul></table></td>", "<svg><p>x", "&#0;&#xFFFFFF;&bogus;", "<td>a<td>b"]
        {
            readable(page, BASE, Form::Markdown);
        }
        let many = 60_000;
        for tag in ["<div>", "<b>", "<ul><li>", "<blockquote>", "<table><tr><td>", "<a href=x>", "<pre>", "<svg>", "<p>"] {
            let told = readable(&(tag.repeat(many) + "the end"), BASE, Form::Markdown);
            assert!(told.len() < 20 * 1024 * 1024, "{tag}: {}", told.len());
        }
        let long = format!("<p {}>end", "a=b ".repeat(1000));
        assert_eq!(readable(&long, BASE, Form::Text), "end");
        let far = readable(&"<blockquote>x".repeat(1_000_000), BASE, Form::Text);
        assert!(far.ends_with("were not converted; request it with `format` raw]"), "{}", &far[far.len() - 100..]);
    }
}
