//! Output of a command for the model: notes about edits by the user, the exit code, and the printed text.

/// Note after the output of a command that ran in a copy without changes.
pub const UNCHANGED_NOTE: &str = "[no file changed]";

/// Returns the output of a command without the lines about edits by the user at its start.
pub fn text_after_changes(output: &str) -> &str {
    let mut rest = output;
    // Sessions of older versions contain the second form.
    while rest.starts_with("[The user ") || rest.starts_with("[The person ") {
        rest = rest.split_once('\n').map_or("", |(_, rest)| rest);
    }
    rest
}

/// Finds the line with the exit code: its offset and the code. It precedes the printed output, so printed text cannot
/// be mistaken for it.
pub fn exit_line(output: &str) -> Option<(usize, &str)> {
    let rest = text_after_changes(output);
    Some((output.len() - rest.len(), rest.strip_prefix("Exit code: ")?.lines().next().unwrap_or_default()))
}

/// Returns the exit code in the output of a command: `3`.
pub fn exit_code_in(output: &str) -> Option<&str> {
    exit_line(output).map(|(_, exit)| exit)
}
