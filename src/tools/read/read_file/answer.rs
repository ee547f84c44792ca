//! What was read, as it is told: the text, and how to go on where that is not all.

use super::lines::{Rest, Taken};
use super::{Asked, Work};
use crate::protocol::ToolError;
use crate::tools::tool::invalid;

pub(super) fn answer(taken: &Taken, work: &Work) -> Result<String, ToolError> {
    let (given, Asked { range, manner }) = (&work.target.given, &work.asked);
    let name = manner.first_line;
    let (first, last) = (range.first, taken.seen);
    if let Rest::ShortLine { columns } = taken.rest {
        return Err(invalid(format!(
            "`column` {} is past the end of line {first} of `{given}`, which has {columns} characters",
            range.column
        )));
    }
    if taken.text.is_empty() && last < first {
        let noun = if last == 1 { "line" } else { "lines" };
        return Err(invalid(format!("`{name}` {first} is past the end of `{given}`, which has {last} {noun}")));
    }
    let bytes = manner.most_bytes;
    let from = if range.column > 1 { format!(" (from column {})", range.column) } else { String::new() };
    let note = match taken.rest {
        Rest::Nothing | Rest::ShortLine { .. } => return Ok(taken.text.clone()),
        Rest::Lines => format!("[lines {first}{from} to {last}; more follow from `{name}` {}]", last + 1),
        Rest::Bound => format!("[lines {first}{from} to {last}; cut at {bytes} bytes, go on with `{name}` {}]", last + 1),
        Rest::LongLine { column } => format!(
            "[columns {} to {} of line {first}, which is longer; cut at {bytes} bytes, go on with `{name}` {first} and `column` {column}]",
            range.column,
            column - 1
        ),
    };
    let gap = if taken.text.ends_with('\n') { "" } else { "\n" };
    Ok(format!("{}{gap}{note}", taken.text))
}
