//! Tool usage statistics, for `/stats`.

use crate::protocol::ToolUse;
use crate::text;
use crate::tui::format::format_count;
use crate::tui::model::UiModel;
use crate::tui::picker::Row;

/// Returns one list row per tool, most used first.
pub(crate) fn rows(model: &UiModel) -> Vec<Row> {
    let row = |one: ToolUse| Row {
        key: one.tool_name.clone(),
        cells: vec![
            text::reveal_line(&one.tool_name),
            one.calls.to_string(),
            one.failed.to_string(),
            one.denied.to_string(),
            duration_text(one.mean_ms()),
            duration_text(one.longest_ms),
        ],
        mark: "",
        lacks: None,
        detail: format!(
            "{}, {} failed, {} denied\ntotal time {}, longest {}",
            format_count(usize::try_from(one.calls).unwrap_or(usize::MAX), "call"),
            one.failed,
            one.denied,
            duration_text(one.total_ms),
            duration_text(one.longest_ms)
        ),
    };
    model.info.tool_uses.list().into_iter().map(row).collect()
}

/// Returns the tool usage statistics as text for line mode.
pub(crate) fn to_text(model: &UiModel) -> String {
    let rows = rows(model).into_iter().map(|row| match &row.cells[..] {
        [name, calls, failed, denied, mean, longest] => {
            format!("{name}: {calls} calls, {failed} failed, {denied} denied, mean {mean}, longest {longest}")
        }
        cells => cells.join(" "),
    });
    rows.collect::<Vec<_>>().join("\n")
}

/// Formats a duration given in milliseconds: `12 ms`, `3.4 s`, `2 min`.
fn duration_text(ms: u64) -> String {
    match ms {
        0..1_000 => format!("{ms} ms"),
        1_000..60_000 => format!("{}.{} s", ms / 1_000, ms % 1_000 / 100),
        _ => format!("{} min", ms / 60_000),
    }
}
