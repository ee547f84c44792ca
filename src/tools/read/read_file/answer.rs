//! Builds the result of reading a file: the text and, if it is incomplete, how to continue.

use super::lines::{LineSelection, RemainingText};
use super::{PlannedRead, ReadRequest};
use crate::protocol::{Items, LeftOut, Run, ToolError, Within};
use crate::tools::call_result::ToolOutput;
use crate::tools::error::invalid;

pub(super) fn answer(taken: &LineSelection, work: &PlannedRead) -> Result<ToolOutput, ToolError> {
    let (given, ReadRequest { range, manner }) = (&work.target.given, &work.asked);
    let name = manner.first_line;
    let (first, last) = (range.first, taken.seen);
    if let RemainingText::ShortLine { columns } = taken.rest {
        return Err(invalid(format!(
            "`column` {} is past the end of line {first} of `{given}`, which has {columns} characters",
            range.column
        )));
    }
    if taken.text.is_empty() && last < first {
        let noun = if last == 1 { "line" } else { "lines" };
        return Err(invalid(format!("`{name}` {first} is past the end of `{given}`, which has {last} {noun}")));
    }
    let bytes = manner.max_bytes;
    let from = if range.column > 1 { format!(" (from column {})", range.column) } else { String::new() };
    let note = match taken.rest {
        RemainingText::Nothing | RemainingText::ShortLine { .. } => String::new(),
        RemainingText::Lines => format!("[lines {first}{from} to {last}; more follow from `{name}` {}]", last + 1),
        RemainingText::Bound => {
            format!("[lines {first}{from} to {last}; cut at {bytes} bytes, continue with `{name}` {}]", last + 1)
        }
        RemainingText::LongLine { column } => format!(
            "[columns {} to {} of line {first}; the line is longer. Cut at {bytes} bytes, continue with `{name}` {first} and \
             `column` {column}]",
            range.column,
            column - 1
        ),
    };
    let gap = if taken.text.ends_with('\n') || note.is_empty() { "" } else { "\n" };
    let within = Within {
        column: range.column,
        note: format!(
            "[columns {} to {{last}} of line {first}; {{missing}} more bytes are left out, continue with `{name}` {first} and \
             `column` {{next}}]",
            range.column
        ),
    };
    let run = Run {
        body_bytes: taken.text.len(),
        note_bytes: gap.len() + note.len(),
        first,
        items: Items::Lines { folded: if taken.folded > 0 { vec![(0, taken.folded)] } else { Vec::new() } },
        note: format!("[lines {first}{from} to {{last}}; {{missing}} more bytes are left out, continue with `{name}` {{next}}]"),
        within: Some(within),
        missing: 0,
    };
    let text = format!("{}{gap}{note}", taken.text);
    Ok(ToolOutput { text, left_out: LeftOut::from_gaps(Vec::new(), Some(run)), ..ToolOutput::default() })
}
