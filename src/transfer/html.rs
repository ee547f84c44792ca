//! Renders a session as a self-contained HTML page with all content escaped.

use super::transcript::{SessionTranscript, TranscriptCall, TranscriptItem, truncate};
use crate::text::clean;
use crate::transfer::format::one_line;
use jiff::Timestamp;
use pulldown_cmark::{CowStr, Event, HeadingLevel, Options, Parser, Tag, TagEnd};
use std::fmt::Write as _;

/// Beginning of the page. Its content security policy forbids loading content and running code.
const HEAD: &str = r#"<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'; form-action 'none'; base-uri 'none'">
<meta name="referrer" content="no-referrer">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
"#;

const STYLE: &str = "<style>
:root { color-scheme: light dark; --line: #8884; --soft: #8882; --add: #2da44e33; --del: #cf222e33; }
body { font: 15px/1.5 system-ui, sans-serif; max-width: 60rem; margin: 2rem auto; padding: 0 1rem; overflow-wrap: anywhere; }
h1 { font-size: 1.4rem; } h2, h3 { font-size: 1rem; margin: 1.5rem 0 .3rem; } h4, h5, h6 { font-size: 1rem; }
.said { border-left: 3px solid #0969da; padding: .2rem .8rem; background: var(--soft); white-space: pre-wrap; }
.call, .thinking, .summary { border: 1px solid var(--line); border-radius: 6px; padding: .3rem .8rem; margin: .6rem 0; }
.note, .says, .meta { opacity: .7; font-size: .85rem; }
pre { overflow-x: auto; background: var(--soft); padding: .5rem; border-radius: 6px; font: 13px/1.4 ui-monospace, monospace; }
pre.plain { white-space: pre-wrap; } .add { background: var(--add); } .del { background: var(--del); } .hunk { opacity: .6; }
table { border-collapse: collapse; } td, th { border: 1px solid var(--line); padding: .2rem .5rem; }
</style>
";

pub(crate) fn page(transcript: &SessionTranscript) -> String {
    let title = line(&transcript.title);
    let mut page = format!("{HEAD}<title>{title}</title>\n{STYLE}</head>\n<body>\n<h1>{title}</h1>\n");
    let parent =
        transcript.parent.as_ref().map(|parent| format!("<br>Forked from session {}.", line(parent))).unwrap_or_default();
    let _ = writeln!(
        page,
        "<p class=\"meta\">Session {} in <code>{}</code>, started {}.{parent}<br>Model <code>{}</code>. {}.</p>",
        line(&transcript.session_id),
        line(&transcript.workspace),
        time(transcript.created),
        line(&transcript.model),
        line(&transcript.totals_line())
    );
    for piece in &transcript.pieces {
        match piece {
            TranscriptItem::Said { words, text: said, at } => {
                let _ = writeln!(page, "<h2>{}, {}</h2>\n<div class=\"said\">{}</div>", line(words), time(*at), text(said));
            }
            TranscriptItem::Answer { text, thinking, says, at } => {
                let _ = writeln!(page, "<h3>aye, {}</h3>", time(*at));
                if !thinking.trim().is_empty() {
                    write_details(&mut page, "thinking", "Thinking", thinking.trim());
                }
                let _ = writeln!(page, "{}<p class=\"says\">{}</p>", markdown(text.trim()), line(says));
            }
            TranscriptItem::Broken { text, reason } => {
                let _ = writeln!(page, "<h3>aye, cut off: {}</h3>\n{}", line(reason), markdown(text.trim()));
            }
            TranscriptItem::Call(at) => {
                if let Some(card) = transcript.calls.get(*at) {
                    call(&mut page, card);
                }
            }
            TranscriptItem::Summary { text } => write_details(&mut page, "summary", "Summary of the conversation so far", text),
            TranscriptItem::Note(note) => {
                let _ = writeln!(page, "<p class=\"note\">{}</p>", line(note));
            }
        }
    }
    page.push_str("</body>\n</html>\n");
    page
}

fn call(page: &mut String, card: &TranscriptCall) {
    let _ = writeln!(page, "<div class=\"call\"><h3>{}</h3>\n<ul>", line(card.heading()));
    for decided in &card.decided {
        let _ = writeln!(page, "<li>{}</li>", line(decided));
    }
    let _ = writeln!(page, "<li><code>{}</code>: {}</li>", line(&card.tool), line(&card.end));
    for uri in &card.artifacts {
        let _ = writeln!(page, "<li>full output: <code>{}</code></li>", line(uri));
    }
    page.push_str("</ul>\n");
    // A diff is more useful than the call's arguments.
    if card.diff.is_empty() {
        block(page, &card.arguments, text);
    }
    block(page, &card.diff, diff);
    block(page, &card.output, text);
    page.push_str("</div>\n");
}

fn block(page: &mut String, content: &str, shape: fn(&str) -> String) {
    let (shown, note) = truncate(content.trim_end());
    if !shown.is_empty() {
        let _ = writeln!(page, "<pre>{}</pre>", shape(shown));
    }
    if let Some(note) = note {
        let _ = writeln!(page, "<p class=\"note\">{}</p>", line(&note));
    }
}

fn write_details(page: &mut String, class: &str, head: &str, content: &str) {
    let _ = writeln!(
        page,
        "<details class=\"{class}\"><summary>{}</summary><pre class=\"plain\">{}</pre></details>",
        line(head),
        text(content)
    );
}

fn diff(content: &str) -> String {
    let lines = content.lines().map(|one| {
        let class = match one.as_bytes().first() {
            Some(b'+') => "add",
            Some(b'-') => "del",
            Some(b'@') => "hunk",
            _ => return text(one),
        };
        format!("<span class=\"{class}\">{}</span>", text(one))
    });
    lines.collect::<Vec<_>>().join("\n")
}

fn time(at: Timestamp) -> String {
    at.strftime("%Y-%m-%d %H:%M:%S UTC").to_string()
}

/// Escapes text and returns it as a single line.
fn line(words: &str) -> String {
    escape(&one_line(words))
}

fn text(content: &str) -> String {
    escape(&clean(content))
}

fn escape(content: &str) -> String {
    let mut escaped = String::with_capacity(content.len());
    for letter in content.chars() {
        match letter {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '"' => escaped.push_str("&quot;"),
            '\'' => escaped.push_str("&#39;"),
            other => escaped.push(other),
        }
    }
    escaped
}

/// Renders a response as HTML. Tags are escaped, images are replaced with their alternative text, and only web and
/// email links are preserved.
fn markdown(content: &str) -> String {
    let content = clean(content);
    let options = Options::ENABLE_TABLES | Options::ENABLE_STRIKETHROUGH;
    // One entry per open link: whether the link is allowed.
    let mut links = Vec::new();
    let events = Parser::new_ext(&content, options).filter_map(|event| match event {
        Event::Html(tag) | Event::InlineHtml(tag) => Some(Event::Text(tag)),
        Event::Start(Tag::HtmlBlock) | Event::End(TagEnd::HtmlBlock) => None,
        Event::Start(Tag::Image { .. }) => Some(Event::Text(CowStr::Borrowed("[image: "))),
        Event::End(TagEnd::Image) => Some(Event::Text(CowStr::Borrowed("]"))),
        Event::Start(Tag::Link { link_type, dest_url, title, id }) => {
            let leads = is_web_link(&dest_url);
            links.push(leads);
            leads.then_some(Event::Start(Tag::Link { link_type, dest_url, title, id }))
        }
        Event::End(TagEnd::Link) => links.pop().unwrap_or(false).then_some(Event::End(TagEnd::Link)),
        Event::Start(Tag::Heading { level, .. }) => {
            Some(Event::Start(Tag::Heading { level: demote_heading(level), id: None, classes: Vec::new(), attrs: Vec::new() }))
        }
        Event::End(TagEnd::Heading(level)) => Some(Event::End(TagEnd::Heading(demote_heading(level)))),
        other => Some(other),
    });
    let mut page = String::new();
    pulldown_cmark::html::push_html(&mut page, events);
    page
}

/// Returns whether an address is a web page or email address that a user can open.
pub(crate) fn is_web_link(address: &str) -> bool {
    let address = address.to_ascii_lowercase();
    ["https://", "http://", "mailto:"].iter().any(|scheme| address.starts_with(scheme))
}

/// Demotes a heading in a response so that it ranks below the page's own headings.
fn demote_heading(level: HeadingLevel) -> HeadingLevel {
    match level {
        HeadingLevel::H1 => HeadingLevel::H4,
        HeadingLevel::H2 => HeadingLevel::H5,
        _ => HeadingLevel::H6,
    }
}
