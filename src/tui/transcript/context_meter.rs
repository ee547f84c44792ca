//! Context window usage as a chart: one bar for the total, followed by one row for each share.

use super::RenderContext;
use crate::protocol::ContextUse;
use crate::text;
use crate::tui::format::tokens;
use crate::tui::theme::Token;
use ratatui::text::{Line, Span};

/// Colours of the shares, in turn. The names convey the same information.
const COLOURS: [Token; 6] = [Token::Accent, Token::Ok, Token::Warn, Token::Text, Token::Muted, Token::Faint];
/// Width of the longest bar, in cells.
const BAR: usize = 30;
const MIN_BAR: usize = 5;
/// Maximum width of a share's name, in cells.
const NAME: usize = 22;

pub(crate) fn rows(filled: &ContextUse, width: u16, look: RenderContext<'_>) -> Vec<Line<'static>> {
    let width = usize::from(width);
    let used = filled.used();
    let window = filled.window.max(1);
    let style = |token| look.theme.style(token);
    let dot = look.glyphs.dot;
    let name = line(&filled.model);
    let figures = format!("{} of {} tokens, {} %", tokens(used), tokens(filled.window), used * 100 / window);
    let head = format!("Context of {name} {dot} {figures}");
    let head = if text::width(&head) <= width { head } else { format!("Context {dot} {figures}") };
    let mut rows = vec![Line::styled(text::truncate(&head, width).into_owned(), style(Token::Heading))];
    rows.push(window_bar(filled, width, look));

    let free = filled.window.saturating_sub(used + filled.reserved);
    let mut shares: Vec<(String, u64, Option<Token>)> = Vec::new();
    for (share, token) in filled.shares.iter().zip(COLOURS.into_iter().cycle()) {
        let count = if share.count > 1 { format!(" ({})", share.count) } else { String::new() };
        let name = line(&share.name);
        let name = text::truncate(&name, NAME.saturating_sub(count.len()).max(1));
        shares.push((format!("{name}{count}"), share.tokens, Some(token)));
    }
    shares.push(("reserved for output".to_owned(), filled.reserved, None));
    shares.push(("free".to_owned(), free, None));
    let names = shares.iter().map(|(name, ..)| text::width(name)).max().unwrap_or(0);
    let most = filled.shares.iter().map(|share| share.tokens).max().unwrap_or(0).max(1);
    let beside = |figures: usize| width.saturating_sub(names + figures + 2).min(BAR);
    // If only one of them fits, the bar is more informative than the percentage.
    let (room, has_percent) = match beside(8 + 7) {
        room @ MIN_BAR.. => (room, true),
        _ if beside(8) >= MIN_BAR => (beside(8), false),
        _ => (0, true),
    };
    for (name, count, token) in shares {
        let gap = " ".repeat(names - text::width(&name));
        let percent = count.saturating_mul(100) / window;
        let percent = if percent == 0 && count > 0 { "<1 %".to_owned() } else { format!("{percent} %") };
        let percent = if has_percent { format!("  {percent:>5}") } else { String::new() };
        let words = format!("{name}{gap}  {:>6}{percent}", tokens(count));
        let mut spans = vec![Span::styled(words, style(Token::Text))];
        if let Some(token) = token.filter(|_| room > 0) {
            let cells = cells(count, most, room);
            spans.push(Span::styled(format!("  {}", look.glyphs.block.repeat(cells)), style(token)));
        }
        rows.push(Line::from(spans));
    }
    for words in notes(filled, dot) {
        let parts = text::wrap(&words, width.max(1));
        rows.extend(parts.into_iter().map(|part| Line::styled(words[part].to_owned(), style(Token::Muted))));
    }
    rows
}

/// Draws one bar for the whole window: the shares, the part reserved for output, and the free part.
fn window_bar(filled: &ContextUse, width: usize, look: RenderContext<'_>) -> Line<'static> {
    let width = width.min(2 * BAR);
    let window = filled.window.max(1);
    let mut spans = Vec::new();
    let (mut tokens, mut at) = (0u64, 0);
    for (share, token) in filled.shares.iter().zip(COLOURS.into_iter().cycle()) {
        tokens = tokens.saturating_add(share.tokens);
        let end = cells(tokens, window, width);
        spans.push(Span::styled(look.glyphs.block.repeat(end.saturating_sub(at)), look.theme.style(token)));
        at = at.max(end);
    }
    let reserved = cells(filled.reserved, window, width).min(width - at);
    spans.push(Span::styled(look.glyphs.bar_empty.repeat(width - at - reserved), look.theme.style(Token::Faint)));
    spans.push(Span::styled(look.glyphs.reserved.repeat(reserved), look.theme.style(Token::Faint)));
    Line::from(spans)
}

/// Scales `count` of `all` to `room` cells; a non-zero number takes at least one cell.
fn cells(count: u64, all: u64, room: usize) -> usize {
    let exact = u128::from(count) * room as u128 / u128::from(all.max(1));
    usize::try_from(exact).unwrap_or(room).max(usize::from(count > 0)).min(room)
}

fn notes(filled: &ContextUse, dot: &str) -> Vec<String> {
    let frees = match filled.compactable {
        0 => "/compact would free nothing now".to_owned(),
        count => format!("/compact would free about {} tokens", tokens(count)),
    };
    let own = match filled.compacts_at_percent {
        Some(percent) => format!("runs automatically at {percent} %"),
        None => "never runs automatically".to_owned(),
    };
    let counted = match filled.counted {
        0 => "all counts are estimates".to_owned(),
        count => format!("{} tokens counted by the provider, the rest estimated", tokens(count)),
    };
    vec![format!("{frees} {dot} {own}"), counted]
}

fn line(words: &str) -> String {
    text::reveal(words).replace(['\n', '\r', '\t'], " ")
}
