//! Bar above the composer that lists pending dialogs.

use super::DialogStack;
use super::countdown::time_left;
use super::inbox;
use super::summary::name;
use crate::text;
use crate::tui::glyphs::Glyphs;
use crate::tui::metrics::GUTTER;

/// Minimum width, in cells, of a dialog's name next to the key hints.
const NAME: usize = 12;
/// Minimum width, in cells, of each item when several dialogs are pending. Items that do not fit are only counted.
const ITEM: usize = 16;
/// Width, in cells, below which a name is omitted because it would be useless.
const SHORT: usize = 6;
const WAITS: &str = "waiting for you";
const NEXT: &[&str] = &["tab next"];
const REVIEW: &[&str] = &["tab to review"];

/// Parts of the screen on which the row depends.
#[derive(Debug, Clone, Copy)]
pub(crate) struct BarContext {
    /// Whether a menu or a search handles Tab.
    pub is_tab_taken: bool,
    /// Whether the transcript shows the card of the call that needs approval.
    pub shows_card: bool,
}

/// Returns the bar's text and key hints. Returns `None` if the only pending dialog is already visible.
pub(crate) fn bar_text(
    panels: &DialogStack,
    width: u16,
    glyphs: &Glyphs,
    now: u64,
    context: BarContext,
) -> Option<(String, &'static [&'static str])> {
    let BarContext { is_tab_taken, shows_card } = context;
    let first = panels.current().filter(|_| panels.inbox().is_none())?;
    let right = match (panels.is_open(), is_tab_taken) {
        (true, _) => NEXT,
        (false, false) => REVIEW,
        (false, true) => &[],
    };
    if panels.len() > 1 {
        let hint = right.first().map_or(0, |hint| hint.len() + 2);
        let room = usize::from(width.saturating_sub(GUTTER)).saturating_sub(hint);
        return Some((several(panels, room), right));
    }
    if panels.is_open() {
        return None;
    }
    let stays = panels.staying().is_some();
    // The head of a visible dialog contains the remaining time.
    let left = time_left(first, now).map(|(words, _)| words).filter(|_| !stays);
    if stays || shows_card {
        // The title of the dialog is already visible.
        let separator = format!(" {} ", glyphs.dot);
        let hint = Some(REVIEW[0]).filter(|_| !is_tab_taken);
        let short: Vec<&str> = [WAITS].into_iter().chain(left.as_deref()).chain(hint).collect();
        let words = [&short[..], &["typing stays in your draft"]].concat().join(&separator);
        let short = short.join(&separator);
        let fits = text::width(&words) <= usize::from(width.saturating_sub(GUTTER));
        return Some((if fits { words } else { short }, &[]));
    }
    let name = name(first);
    // The hint always remains. The name is shortened first, then the reassurance is dropped.
    let left = left.map(|words| format!(" {} {words}", glyphs.dot)).unwrap_or_default();
    let hint = if is_tab_taken { String::new() } else { format!(" {} {}", glyphs.dot, REVIEW[0]) };
    let tail = format!(" {} {WAITS}{left}{hint}", glyphs.dash);
    let whole = format!("{name}{tail} (typing stays in your draft)");
    let room = usize::from(width.saturating_sub(GUTTER));
    if text::width(&whole) <= room {
        return Some((whole, &[]));
    }
    let short = if is_tab_taken { format!(" {} {WAITS}", glyphs.dash) } else { format!("{left}{hint}") };
    let tail = if text::width(&tail) + NAME > room { short } else { tail };
    Some((format!("{}{tail}", text::truncate_middle(&name, room.saturating_sub(text::width(&tail)))), &[]))
}

/// Returns the bar's text for several dialogs: `3 waiting for you   1 $ touch one.txt  low   2 $ touch two.txt  low`.
/// Omits the open dialog, whose title is already visible.
fn several(panels: &DialogStack, room: usize) -> String {
    let head = inbox::waiting(panels.len());
    let room = room.saturating_sub(text::width(&head));
    let (is_open, current) = (panels.open().is_some(), panels.position_number());
    let named: Vec<_> = panels.iter().enumerate().filter(|(at, _)| !is_open || at + 1 != current).collect();
    let shown = (room / (ITEM + 3)).clamp(1, named.len().max(1));
    let mut left = room;
    let mut words = head;
    // The current dialog is always among the shown ones. If it is open, the one after it is the first.
    let from = if is_open { current - 1 } else { current.saturating_sub(shown) };
    let from = from.min(named.len().saturating_sub(shown));
    for (nth, (at, panel)) in named.into_iter().skip(from).take(shown).enumerate() {
        let each = (left / (shown - nth)).saturating_sub(3);
        let risk = panel.risk.map_or("", |risk| if panel.critical { "CRITICAL" } else { risk.as_str() });
        let risk = if risk.is_empty() { String::new() } else { format!("  {risk}") };
        let name = format!("{} {}", at + 1, name(panel));
        let (name_room, risk) = match each.saturating_sub(risk.len()) {
            room if room >= SHORT => (room, risk),
            // The risk is kept unless only the name fits.
            _ if nth == 0 => (each, String::new()),
            _ => break,
        };
        if name_room < SHORT {
            break;
        }
        let item = format!("{}{risk}", text::truncate(&name, name_room));
        left = left.saturating_sub(text::width(&item) + 3);
        words = format!("{words}   {item}");
    }
    words
}
