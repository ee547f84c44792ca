//! The two rows at the bottom: where one stands, and what the keys do.

use super::approval;
use super::model::{Activity, Model};
use super::theme::Token;
use crate::protocol::{CallId, Mode};
use crate::text;
use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::text::{Line, Span};

/// A part of the status row; what comes later in the order is dropped first.
struct Item {
    words: String,
    token: Token,
    /// Lower stays longer; zero is never dropped.
    order: u8,
}

pub fn draw_status(model: &Model, area: Rect, buffer: &mut Buffer) {
    let separator = format!(" {} ", model.glyphs.separator);
    let mut items = items(model);
    loop {
        let width: usize = items.iter().map(|item| text::width(&item.words) + 3).sum();
        let droppable =
            items.iter().enumerate().filter(|(_, item)| item.order > 0).max_by_key(|(_, item)| item.order).map(|(at, _)| at);
        match droppable {
            Some(at) if width > usize::from(area.width) => {
                items.remove(at);
            }
            Some(_) | None => break,
        }
    }
    let mut spans = vec![Span::raw(" ")];
    for (at, item) in items.into_iter().enumerate() {
        if at > 0 {
            spans.push(Span::styled(separator.clone(), model.theme.style(Token::Faint)));
        }
        spans.push(Span::styled(item.words, model.theme.style(item.token)));
    }
    buffer.set_line(area.x, area.y, &Line::from(spans), area.width);
}

fn items(model: &Model) -> Vec<Item> {
    let header = &model.header;
    let mut items = Vec::new();
    let mut add = |words: String, token, order| {
        if !words.is_empty() {
            items.push(Item { words: text::clean(&words).replace('·', model.glyphs.dot), token, order });
        }
    };
    if model.access.is_none() {
        add("starting".to_owned(), Token::Muted, 0);
    }
    add(header.model.clone(), Token::Muted, 1);
    let (context, token) = context_words(model);
    add(context, token, 3);
    add(model.tally.cost_usd.map(|cost| format!("${cost:.2}")).unwrap_or_default(), Token::Muted, 2);
    if model.access.is_some() {
        let token = if header.mode == Mode::Auto { Token::Danger } else { Token::Muted };
        add(header.mode.as_str().to_owned(), token, 0);
    }
    let open = header.sandbox.contains("OFF") || header.sandbox.contains("NONE") || header.sandbox.contains("off ·");
    add(header.sandbox.clone(), if open { Token::Danger } else { Token::Muted }, 0);
    add(header.branch.clone().unwrap_or_default(), Token::Muted, 4);
    add(model.options.cwd.clone(), Token::Muted, 5);
    items
}

fn context_words(model: &Model) -> (String, Token) {
    let used = model.tally.context_tokens;
    match model.header.context_tokens {
        Some(limit) if limit > 0 && used > 0 => {
            let percent = used * 100 / limit;
            let token = if percent >= 80 { Token::Warn } else { Token::Muted };
            (format!("ctx {percent}% {}/{}", tokens(used), tokens(limit)), token)
        }
        Some(_) | None if used > 0 => (format!("ctx {}", tokens(used)), Token::Muted),
        Some(_) | None => (String::new(), Token::Muted),
    }
}

pub fn draw_hints(model: &Model, area: Rect, buffer: &mut Buffer) {
    let mut hints: Vec<&str> = Vec::new();
    if model.help {
        hints.push("esc closes");
    } else if let Some(panel) = model.panels.open() {
        hints = approval::hints(panel, model.panels.len());
    } else if !model.panels.is_empty() {
        hints.push("tab review");
        hints.push("enter send");
        hints.push(if model.is_running() { "esc stop" } else { "pgup scroll" });
    } else if model.is_running() {
        hints.extend(if model.task.activity == Activity::Stopping {
            ["esc kill", "enter queue"]
        } else {
            ["esc stop", "enter queue"]
        });
        hints.extend(["ctrl+o fold", "pgup scroll"]);
    } else {
        hints.push("enter send");
        hints.push(if model.keys.kitty { "shift+enter new line" } else { "ctrl+j new line" });
        hints.extend(["/help", "ctrl+o fold", "ctrl+d quit"]);
    }
    let style = model.theme.style(Token::Faint);
    let right = match (model.panels.is_open(), model.composer.is_empty()) {
        (true, _) => "",
        (false, true) => "? keys ",
        (false, false) => "f1 keys ",
    };
    let room = usize::from(area.width).saturating_sub(right.len() + 1);
    let separator = format!(" {} ", model.glyphs.dot);
    while hints.len() > 1 && text::width(&hints.join(&separator)) + 1 > room {
        hints.pop();
    }
    let words = format!(" {}", hints.join(&separator));
    buffer.set_stringn(area.x, area.y, words, area.width.into(), style);
    buffer.set_stringn(area.right().saturating_sub(right.len() as u16), area.y, right, right.len(), style);
}

/// What goes on, for the strip: words at the left, what to press at the right.
pub fn activity(model: &Model, now: u64) -> Option<(String, &'static str)> {
    let g = &model.glyphs;
    if model.waits_for_person() {
        let waiting = counted(model.panels.approvals(), "approval");
        return Some((format!("{} Waits for you {} {waiting}", g.waits, g.dot), "esc stops the task"));
    }
    let elapsed = format!("{} s", now.saturating_sub(model.task.since) / 1000);
    let mut words = match &model.task.activity {
        Activity::Idle => return None,
        Activity::Thinking => vec!["Waiting for the model".to_owned()],
        Activity::Answering => vec!["Answering".to_owned()],
        Activity::Calling { tool, bytes } => vec![calling(tool), counted(*bytes as usize, "byte")],
        Activity::Running { calls } => running(calls),
        Activity::Retrying { at, attempt, max_attempts, message } => {
            let left = at.saturating_sub(now).div_ceil(1000);
            let words = format!("{message} {} attempt {attempt} of {max_attempts} in {left} s", g.dot);
            return Some((format!("{} {words}", g.running), "esc stops the task"));
        }
        Activity::Stopping => {
            let words = "Stopping: nothing new starts, what runs may finish";
            return Some((format!("{} {words} {} {elapsed}", g.running, g.dot), "esc kills it"));
        }
    };
    words.push(elapsed);
    if model.task.tokens_in + model.task.tokens_out > 0 {
        let (sent, got) = (tokens(model.task.tokens_in), tokens(model.task.tokens_out));
        words.push(format!("{} {sent} {} {got} tokens", g.up_tokens, g.down_tokens));
    }
    Some((format!("{} {}", g.running, words.join(&format!(" {} ", g.dot))), "esc stops the task"))
}

/// What the model is putting together while it writes the arguments of a call.
fn calling(tool: &str) -> String {
    match tool {
        "EditFile" => "Writing an edit".to_owned(),
        "WriteFile" => "Writing a file".to_owned(),
        "RunCommand" => "Writing a command".to_owned(),
        "ReadFile" | "ListDirectory" => "Choosing what to read".to_owned(),
        "Grep" | "Glob" => "Writing a search".to_owned(),
        other => format!("Preparing `{other}`"),
    }
}

fn running(calls: &[(CallId, String)]) -> Vec<String> {
    let newest = calls.last().map(|(_, summary)| match summary.strip_prefix("$ ") {
        Some(command) => format!("Running {command}"),
        None => summary.clone(),
    });
    let others = (calls.len() > 1).then(|| format!("{} more", calls.len() - 1));
    newest.into_iter().chain(others).collect()
}

pub fn counted(count: usize, noun: &str) -> String {
    if count == 1 { format!("1 {noun}") } else { format!("{count} {noun}s") }
}

/// `940`, `12.1k`, `1.2M`
fn tokens(count: u64) -> String {
    match count {
        0..1_000 => count.to_string(),
        1_000..100_000 => format!("{}.{}k", count / 1000, count % 1000 / 100),
        100_000..1_000_000 => format!("{}k", count / 1000),
        _ => format!("{}.{}M", count / 1_000_000, count % 1_000_000 / 100_000),
    }
}
