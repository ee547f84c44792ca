//! Reports a command's state and output to the model.

use super::entry::{BackgroundCommand, Read};
use super::ring_buffer::NewOutput;
use crate::protocol::LeftOut;
use crate::sys::process::OutputCapture;
use crate::tools::call_result::ToolOutput;

/// Returns the first line of a command, followed by a mark if there are more. The approval prompt shows all lines.
pub(crate) fn first_line(command: &str) -> String {
    match command.trim().split_once('\n') {
        Some((first, _)) => format!("{} …", first.trim_end()),
        None => command.trim().to_owned(),
    }
}

/// Describes the state of a command in one line.
fn state(entry: &BackgroundCommand) -> String {
    let what = first_line(&entry.line);
    match entry.end_reason() {
        None => format!("{} is running: {what}", entry.id()),
        Some(how) => format!("{} has ended ({how}): {what}", entry.id()),
    }
}

/// Returns the state and the new output. The state is read first, so if it says that the command has ended, the output
/// is complete.
pub(crate) fn new_output(entry: &BackgroundCommand, max_output_bytes: usize) -> ToolOutput {
    let (state, is_over) = (state(entry), entry.end_reason().is_some());
    let fresh = match entry.read() {
        Read::Screen(text) => return format!("{state}\n--- screen ---\n{text}").into(),
        Read::New(fresh) => fresh,
    };
    let NewOutput { text, missed } = fresh;
    if text.trim().is_empty() && missed.is_none() {
        let hint = if is_over { "no more output" } else { "no new output; `waitSeconds` waits for more" };
        return format!("{state}\n[{hint}]").into();
    }
    let mut kept = OutputCapture::new(max_output_bytes);
    kept.push(text.as_bytes());
    let missed = missed.map(|missed| format!("[{missed} before this were lost: too much output at once]\n")).unwrap_or_default();
    let (shown, gap) = kept.text_with_gap(max_output_bytes);
    let text = format!("{state}\n--- output ---\n{missed}{}", shown.trim_end_matches('\n'));
    ToolOutput { text, left_out: LeftOut::from_gaps(gap.into_iter().collect(), None), ..ToolOutput::default() }
}

/// Returns the state and the whole screen content.
pub(crate) fn screen_text(entry: &BackgroundCommand) -> String {
    format!("{}\n--- screen ---\n{}", state(entry), entry.screen().unwrap_or_default())
}
