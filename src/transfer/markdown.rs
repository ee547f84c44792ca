//! Renders a session as Markdown. Text from the model and from tools cannot imitate other parts of the page or add
//! markup.

use super::html::is_web_link;
use super::transcript::{SessionTranscript, TranscriptCall, TranscriptItem, truncate};
use crate::text::clean;
use crate::transfer::format::one_line;
use jiff::Timestamp;
use pulldown_cmark::{Event, HeadingLevel, Options, Parser, Tag};
use std::fmt::Write as _;
use std::ops::Range;

/// Maximum number of sanitization passes over a response. If the last pass still changes the response, the response
/// is quoted instead.
const PASSES: usize = 6;

pub(crate) fn page(transcript: &SessionTranscript) -> String {
    let mut page = format!("# {}\n\n", inline(&transcript.title));
    let _ = writeln!(
        page,
        "Session {} in {}, started {}.  ",
        inline(&transcript.session_id),
        code(&transcript.workspace),
        time(transcript.created)
    );
    if let Some(parent) = &transcript.parent {
        let _ = writeln!(page, "Forked from session {}.  ", inline(parent));
    }
    let _ = writeln!(page, "Model {}. {}.", code(&transcript.model), transcript.totals_line());
    for piece in &transcript.pieces {
        match piece {
            TranscriptItem::Said { words, text, at } => {
                let _ = write!(page, "\n## {words}, {}\n\n{}\n", time(*at), quoted(text));
            }
            TranscriptItem::Answer { text, thinking, says, at } => {
                let _ = write!(page, "\n### aye, {}\n\n", time(*at));
                if !thinking.trim().is_empty() {
                    let _ = write!(page, "{}\n\n", quoted(&format!("Thinking: {}", thinking.trim())));
                }
                if !text.trim().is_empty() {
                    let _ = write!(page, "{}\n\n", sanitize(text.trim()));
                }
                let _ = writeln!(page, "_{}_", inline(says));
            }
            TranscriptItem::Broken { text, reason } => {
                let _ = write!(page, "\n### aye, cut off: {}\n\n{}\n", inline(reason), sanitize(text.trim()));
            }
            TranscriptItem::Call(at) => {
                if let Some(card) = transcript.calls.get(*at) {
                    call(&mut page, card);
                }
            }
            TranscriptItem::Summary { text } => {
                let _ = write!(page, "\n### Summary of the conversation so far\n\n{}\n", quoted(text));
            }
            TranscriptItem::Note(text) => {
                let _ = write!(page, "\n_{}_\n", inline(text));
            }
        }
    }
    page
}

fn call(page: &mut String, card: &TranscriptCall) {
    let _ = write!(page, "\n#### {}\n\n", inline(card.heading()));
    for decided in &card.decided {
        let _ = writeln!(page, "- {}", inline(decided));
    }
    let _ = writeln!(page, "- {}: {}", code(&card.tool), inline(&card.end));
    for uri in &card.artifacts {
        let _ = writeln!(page, "- full output: {}", code(uri));
    }
    // A diff is more useful than the call's arguments.
    if card.diff.is_empty() {
        write_fenced(page, "json", &card.arguments);
    }
    write_fenced(page, "diff", &card.diff);
    write_fenced(page, "text", &card.output);
}

fn time(at: Timestamp) -> String {
    at.strftime("%Y-%m-%d %H:%M:%S UTC").to_string()
}

/// Adds a code block with a fence that the text cannot close.
fn write_fenced(page: &mut String, language: &str, text: &str) {
    let cleaned = clean(text);
    let (shown, note) = truncate(cleaned.trim_end());
    if shown.is_empty() {
        return;
    }
    let longest = shown.split(|letter| letter != '`').map(str::len).max().unwrap_or(0);
    let fence = "`".repeat(longest.max(2) + 1);
    let _ = write!(page, "\n{fence}{language}\n{}\n{fence}\n", shown.trim_end_matches('\n'));
    if let Some(note) = note {
        let _ = write!(page, "\n_{note}_\n");
    }
}

/// Escapes text and returns it as a single line that contains no Markdown.
fn inline(text: &str) -> String {
    let mut line = String::new();
    for letter in one_line(text).chars() {
        if letter.is_ascii_punctuation()
            && !matches!(letter, '.' | ',' | ':' | ';' | '?' | '/' | '\'' | '"' | '(' | ')' | '%' | '@' | '=')
        {
            line.push('\\');
        }
        line.push(letter);
    }
    line
}

fn code(text: &str) -> String {
    let line = one_line(text);
    let longest = line.split(|letter| letter != '`').map(str::len).max().unwrap_or(0);
    let tick = "`".repeat(longest + 1);
    let room = if line.starts_with('`') || line.ends_with('`') || line.is_empty() { " " } else { "" };
    format!("{tick}{room}{line}{room}{tick}")
}

/// Quotes text line by line as plain text.
fn quoted(text: &str) -> String {
    let cleaned = clean(text.trim_end());
    let lines = cleaned.lines().map(|line| if line.is_empty() { ">".to_owned() } else { format!("> {}", escaped(line)) });
    lines.collect::<Vec<_>>().join("  \n")
}

/// Escapes the markup in a line.
fn escaped(line: &str) -> String {
    let mut text = String::new();
    let start = line.len() - line.trim_start().len();
    text.push_str(&line[..start].replace('\t', "    ").replace("    ", "   \u{a0}"));
    for (at, letter) in line[start..].char_indices() {
        let at_start = at == 0 && matches!(letter, '#' | '-' | '+' | '=' | '~' | '>' | '|');
        if at_start || matches!(letter, '\\' | '`' | '*' | '_' | '[' | ']' | '<' | '!' | '&') {
            text.push('\\');
        }
        text.push(letter);
    }
    text
}

/// Returns a response's Markdown without tags, images or unsafe links. Its headings are demoted to rank below those
/// of the page.
fn sanitize(text: &str) -> String {
    let mut tamed = clean(text).into_owned();
    // Escaping a tag can turn its content into Markdown.
    for _ in 0..PASSES {
        let before = tamed;
        tamed = sanitize_once(&before);
        if tamed == before {
            // An unclosed code block would swallow the text that follows.
            let open = tamed.lines().filter(|line| line.trim_start().starts_with("```")).count() % 2 == 1;
            return if open { tamed + "\n```" } else { tamed };
        }
    }
    quoted(text)
}

fn sanitize_once(text: &str) -> String {
    let mut changes: Vec<(Range<usize>, &str)> = Vec::new();
    for (event, range) in Parser::new_ext(text, Options::ENABLE_TABLES).into_offset_iter() {
        let here = &text[range.clone()];
        match event {
            Event::Html(_) | Event::InlineHtml(_) => {
                for (at, letter) in here.char_indices().filter(|(_, letter)| matches!(letter, '<' | '&')) {
                    let at = range.start + at;
                    changes.push((at..at + 1, if letter == '<' { "&lt;" } else { "&amp;" }));
                }
            }
            Event::Start(Tag::Image { .. }) if here.starts_with('!') => {
                changes.push((range.start..range.start, "\\"));
            }
            Event::Start(Tag::Link { dest_url, .. }) if here.starts_with(['[', '<']) && !is_web_link(&dest_url) => {
                changes.push((range.start..range.start, "\\"));
            }
            Event::Start(Tag::Heading { level, .. }) if level <= HeadingLevel::H3 => {
                let indent = here.len() - here.trim_start().len();
                if here.trim_start().starts_with('#') {
                    changes.push((range.start + indent..range.start + indent, "###"));
                } else if let Some(underline) = here.trim_end().rfind('\n') {
                    // Otherwise, the underline would create a heading on the level of the page's own headings.
                    let line = &here[underline + 1..];
                    let at = range.start + underline + 1 + line.len() - line.trim_start().len();
                    changes.push((at..at, "\\"));
                }
            }
            _ => {}
        }
    }
    changes.sort_by_key(|(range, _)| range.start);
    let (mut tamed, mut from) = (String::with_capacity(text.len()), 0);
    for (range, with) in changes.into_iter().filter(|(range, _)| range.end <= text.len()) {
        if range.start < from {
            continue;
        }
        tamed.push_str(&text[from..range.start]);
        tamed.push_str(with);
        from = range.end;
    }
    tamed.push_str(&text[from..]);
    tamed
}
