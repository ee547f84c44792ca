//! Tool statistics of `/stats`.

use super::draft::take_draft;
use super::notes::show_called_for;
use crate::protocol::ToolUse;
use crate::text;
use crate::tui::metrics::GUTTER;
use crate::tui::model::{Effect, Model};
use crate::tui::transcript::{Kind, Tone};

/// Maximum width of a tool name, in cells.
const NAME_COLUMNS: usize = 24;
/// Width of all figures, and of those kept on narrow screens, in cells.
const FIGURES: usize = 41;
const FEW_FIGURES: usize = 24;

/// Shows one row per tool, most used first.
pub(crate) fn show(model: &mut Model, now: u64, effects: &mut Vec<Effect>) {
    take_draft(model, now, effects);
    let uses = model.info.tool_uses.list();
    if uses.is_empty() {
        return model.show_toast("no tool calls in this session yet", now);
    }
    let room = usize::from(model.screen.size.width.saturating_sub(GUTTER));
    let most = NAME_COLUMNS.min(room.saturating_sub(FEW_FIGURES)).max(1);
    let names: Vec<String> = uses.iter().map(|one| text::truncate(&text::clean(&one.tool_name), most).into_owned()).collect();
    let wide = names.iter().map(|name| text::width(name)).max().unwrap_or_default();
    let all = wide + FIGURES <= room;
    let head = if all { "calls  failed  denied     mean  longest" } else { "calls  failed     mean" };
    let mut rows = vec![format!("{:wide$}  {head}", text::truncate("tool", most))];
    rows.extend(uses.iter().zip(&names).map(|(one, name)| row(one, name, wide, all)));
    show_called_for(model, Kind::Note { text: rows.join("\n"), tone: Tone::Plain });
}

fn row(one: &ToolUse, name: &str, wide: usize, all: bool) -> String {
    let gap = " ".repeat(wide.saturating_sub(text::width(name)));
    let (mean, longest) = (took(one.mean_ms()), took(one.longest_ms));
    if !all {
        return format!("{name}{gap}  {:>5}  {:>6}  {mean:>7}", one.calls, one.failed);
    }
    format!("{name}{gap}  {:>5}  {:>6}  {:>6}  {mean:>7}  {longest:>7}", one.calls, one.failed, one.denied)
}

/// Formats a duration: `12 ms`, `3.4 s`, `2 min`.
fn took(ms: u64) -> String {
    match ms {
        0..1_000 => format!("{ms} ms"),
        1_000..60_000 => format!("{}.{} s", ms / 1_000, ms % 1_000 / 100),
        _ => format!("{} min", ms / 60_000),
    }
}
