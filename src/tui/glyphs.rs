//! Symbols used on the screen, in Unicode and ASCII.

use ratatui::buffer::Buffer;

/// Unicode symbols, each with its ASCII replacement.
const PLAIN: [(&str, &str); 21] = [
    ("…", "~"),
    ("−", "-"),
    ("•", "*"),
    ("◦", "-"),
    ("▪", "+"),
    ("☑", "x"),
    ("▸", ">"),
    ("☐", "o"),
    ("│", "|"),
    ("─", "-"),
    ("┼", "+"),
    ("┬", "+"),
    ("┴", "+"),
    ("╌", "-"),
    ("⋯", "~"),
    ("↪", ">"),
    ("·", "-"),
    ("→", ">"),
    ("←", "<"),
    ("–", "-"),
    ("⚠", "!"),
];

/// Replaces the Unicode symbols on a drawn screen with ASCII characters.
pub(crate) fn make_plain(buffer: &mut Buffer) {
    for cell in &mut buffer.content {
        if let Some((_, plain)) = PLAIN.iter().find(|(sign, _)| *sign == cell.symbol()) {
            cell.set_symbol(plain);
        }
    }
}

/// Symbols at the start of a row.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct StateGlyphs {
    pub done: &'static str,
    pub failed: &'static str,
    pub running: &'static str,
    pub background: &'static str,
    pub waits: &'static str,
    pub denied: &'static str,
    pub note: &'static str,
}

/// Cells of a gauge.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct GaugeGlyphs {
    pub full: &'static str,
    pub empty: &'static str,
}

/// Markers of a section that can be folded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct FoldGlyphs {
    pub folded: &'static str,
    pub unfolded: &'static str,
}

/// Symbols for tokens sent to the model and received from it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct UsageGlyphs {
    pub sent: &'static str,
    pub received: &'static str,
}

/// Checkbox of an entry that can be selected.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct CheckboxGlyphs {
    pub checked: &'static str,
    pub unchecked: &'static str,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Glyphs {
    pub user: &'static str,
    pub state: StateGlyphs,
    pub rule: &'static str,
    pub bar: &'static str,
    pub gauge: GaugeGlyphs,
    pub separator: &'static str,
    pub fold: FoldGlyphs,
    pub more: &'static str,
    pub down: &'static str,
    pub usage: UsageGlyphs,
    pub arming: &'static str,
    /// Symbols for the progress of a choice that is being confirmed, from empty to full.
    filling: [&'static str; 5],
    pub cursor: &'static str,
    pub dot: &'static str,
    pub dash: &'static str,
    pub minus: &'static str,
    pub to: &'static str,
    pub block: &'static str,
    pub checkbox: CheckboxGlyphs,
    /// Prefix shown before the number of changed files.
    pub changed: &'static str,
    /// Marker next to the focused entry.
    pub chosen: &'static str,
}

impl Glyphs {
    /// Returns the progress symbol after `step` confirmation steps.
    pub(crate) fn progress_symbol(&self, step: u64) -> &'static str {
        self.filling[usize::try_from(step).unwrap_or(usize::MAX).min(self.filling.len() - 1)]
    }
}

pub(crate) const UNICODE: Glyphs = Glyphs {
    user: "❯",
    state: StateGlyphs { done: "✓", failed: "✗", running: "◌", background: "&", waits: "▲", denied: "⊘", note: "·" },
    rule: "─",
    bar: "│",
    gauge: GaugeGlyphs { full: "▓", empty: "░" },
    separator: "│",
    fold: FoldGlyphs { folded: "▸", unfolded: "▾" },
    more: "⋯",
    down: "▼",
    usage: UsageGlyphs { sent: "↑", received: "↓" },
    arming: "◔",
    filling: ["▁", "▃", "▅", "▇", "█"],
    cursor: "▏",
    dot: "·",
    dash: "—",
    minus: "−",
    to: "→",
    block: "█",
    checkbox: CheckboxGlyphs { checked: "☑", unchecked: "☐" },
    changed: "±",
    chosen: "▌",
};

pub(crate) const ASCII: Glyphs = Glyphs {
    user: ">",
    state: StateGlyphs { done: "+", failed: "x", running: "*", background: "&", waits: "!", denied: "-", note: "." },
    rule: "-",
    bar: "|",
    gauge: GaugeGlyphs { full: "#", empty: "." },
    separator: "|",
    fold: FoldGlyphs { folded: ">", unfolded: "v" },
    more: "...",
    down: "v",
    usage: UsageGlyphs { sent: "up", received: "down" },
    arming: "...",
    filling: [".", ":", "+", "*", "#"],
    cursor: "_",
    dot: "-",
    dash: "-",
    minus: "-",
    to: "to",
    block: "#",
    checkbox: CheckboxGlyphs { checked: "[x]", unchecked: "[ ]" },
    changed: "+-",
    chosen: "#",
};
