//! Files that define custom slash commands.

use crate::protocol::CustomCommand;
use std::path::Path;

/// Parses a command file. Returns the command and any notices about its content.
pub(crate) fn parse_command(name: &str, source: String, bytes: &[u8]) -> (CustomCommand, Vec<String>) {
    let content = String::from_utf8_lossy(bytes);
    let (command, mut notices) = CustomCommand::parse(name.to_owned(), source, &content);
    if matches!(content, std::borrow::Cow::Owned(_)) {
        notices.push(format!("`{}` is not valid UTF-8; invalid bytes are shown as �", command.source));
    }
    (command, notices)
}

/// Returns the command name for a file, such as `fix` for `fix.md` and `git:commit` for `git/commit.md`. Returns `None`
/// if the name contains spaces, because such a command cannot be typed.
pub(crate) fn command_name(path: &Path) -> Option<String> {
    let path = path.with_extension("");
    let parts: Option<Vec<&str>> = path.components().map(|part| part.as_os_str().to_str()).collect();
    let name = parts?.join(":");
    (!name.is_empty() && !name.contains(|letter: char| letter.is_whitespace() || letter.is_control())).then_some(name)
}
