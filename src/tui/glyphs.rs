//! Symbols on the screen, with and without Unicode.

use ratatui::buffer::Buffer;

/// Unicode symbols in text and their ASCII replacements.
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

/// Replaces Unicode symbols that parts of the screen have drawn with ASCII.
pub(crate) fn make_plain(buffer: &mut Buffer) {
    for cell in &mut buffer.content {
        if let Some((_, plain)) = PLAIN.iter().find(|(sign, _)| *sign == cell.symbol()) {
            cell.set_symbol(plain);
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Glyphs {
    pub user: &'static str,
    pub done: &'static str,
    pub failed: &'static str,
    pub running: &'static str,
    pub background: &'static str,
    pub waits: &'static str,
    pub denied: &'static str,
    pub note: &'static str,
    pub rule: &'static str,
    pub bar: &'static str,
    pub bar_full: &'static str,
    pub bar_empty: &'static str,
    pub separator: &'static str,
    pub folded: &'static str,
    pub unfolded: &'static str,
    pub more: &'static str,
    pub down: &'static str,
    pub up_tokens: &'static str,
    pub down_tokens: &'static str,
    pub arming: &'static str,
    /// Progress of a choice being confirmed, from empty to full.
    filling: [&'static str; 5],
    pub cursor: &'static str,
    pub dot: &'static str,
    pub dash: &'static str,
    pub minus: &'static str,
    pub to: &'static str,
    pub block: &'static str,
    pub taken: &'static str,
    pub left: &'static str,
    /// Prefix of the number of changed files.
    pub changed: &'static str,
    /// Marker next to the focused entry.
    pub chosen: &'static str,
}

impl Glyphs {
    /// Returns the progress symbol after this many confirmation steps.
    pub(crate) fn progress_symbol(&self, step: u64) -> &'static str {
        self.filling[usize::try_from(step).unwrap_or(usize::MAX).min(self.filling.len() - 1)]
    }
}

pub(crate) const UNICODE: Glyphs = Glyphs {
    user: "❯",
    done: "✓",
    failed: "✗",
    running: "◌",
    background: "&",
    waits: "▲",
    denied: "⊘",
    note: "·",
    rule: "─",
    bar: "│",
    bar_full: "▓",
    bar_empty: "░",
    separator: "│",
    folded: "▸",
    unfolded: "▾",
    more: "⋯",
    down: "▼",
    up_tokens: "↑",
    down_tokens: "↓",
    arming: "◔",
    filling: ["▁", "▃", "▅", "▇", "█"],
    cursor: "▏",
    dot: "·",
    dash: "—",
    minus: "−",
    to: "→",
    block: "█",
    taken: "☑",
    left: "☐",
    changed: "±",
    chosen: "▌",
};

pub(crate) const ASCII: Glyphs = Glyphs {
    user: ">",
    done: "+",
    failed: "x",
    running: "*",
    background: "&",
    waits: "!",
    denied: "-",
    note: ".",
    rule: "-",
    bar: "|",
    bar_full: "#",
    bar_empty: ".",
    separator: "|",
    folded: ">",
    unfolded: "v",
    more: "...",
    down: "v",
    up_tokens: "up",
    down_tokens: "down",
    arming: "...",
    filling: [".", ":", "+", "*", "#"],
    cursor: "_",
    dot: "-",
    dash: "-",
    minus: "-",
    to: "to",
    block: "#",
    taken: "[x]",
    left: "[ ]",
    changed: "+-",
    chosen: "#",
};
