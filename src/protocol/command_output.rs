//! Output of a command for the model: notes about the user's edits, the exit code, and the printed text.

/// Note after the output of a command that ran in a copy without changes.
pub const UNCHANGED_NOTE: &str = "[no file changed]";

/// Skips the lines about the user's edits at the start of a command's output.
pub fn text_after_changes(output: &str) -> &str {
    let mut rest = output;
    // Older sessions contain the second form.
    while rest.starts_with("[The user ") || rest.starts_with("[The person ") {
        rest = rest.split_once('\n').map_or("", |(_, rest)| rest);
    }
    rest
}

/// Finds the exit code line of a command: its offset and the code. It precedes the printed output, so output is never mistaken
/// for it.
pub fn exit_line(output: &str) -> Option<(usize, &str)> {
    let rest = text_after_changes(output);
    Some((output.len() - rest.len(), rest.strip_prefix("Exit code: ")?.lines().next().unwrap_or_default()))
}

/// Returns the exit code of a command, from its output: `3`.
pub fn exit_code_in(output: &str) -> Option<&str> {
    exit_line(output).map(|(_, exit)| exit)
}
