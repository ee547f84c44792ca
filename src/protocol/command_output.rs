//! Command output as the model receives it: notes about the user's edits, the exit code, and the printed text.

/// Note appended to the output of a command that ran in a copy of the workspace and changed no files.
pub const UNCHANGED_NOTE: &str = "[no file changed]";

/// Returns command output without the leading notes about the user's edits.
pub fn text_after_changes(output: &str) -> &str {
    let mut rest = output;
    // Sessions of older versions contain the second form.
    while rest.starts_with("[The user ") || rest.starts_with("[The person ") {
        rest = rest.split_once('\n').map_or("", |(_, rest)| rest);
    }
    rest
}

/// Returns the byte offset of the exit code line, and the exit code. This line precedes the printed text, which
/// therefore cannot be mistaken for it.
pub fn exit_line(output: &str) -> Option<(usize, &str)> {
    let rest = text_after_changes(output);
    Some((output.len() - rest.len(), rest.strip_prefix("Exit code: ")?.lines().next().unwrap_or_default()))
}

/// Returns the exit code recorded in command output, such as `3`.
pub fn exit_code_in(output: &str) -> Option<&str> {
    exit_line(output).map(|(_, exit)| exit)
}
