//! Command output as the model receives it: notes about the user's edits, the exit code, and the printed text.

use serde::{Deserialize, Serialize};

/// How a command ended. Absent from results if it was stopped in another way, and from those of older versions.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "how", rename_all = "snake_case")]
pub enum CommandEnd {
    /// The command exited.
    Exited {
        /// Exit code.
        code: i32,
    },
    /// A signal killed the command.
    Signalled {
        /// Number of the signal.
        signal: i32,
        /// Name of the signal, such as `SIGKILL`.
        name: String,
    },
    /// The command was killed at its time limit.
    TimedOut {
        /// Time limit in seconds.
        seconds: u64,
    },
}

/// Number that shells add to that of a signal to form the exit code.
const SIGNAL_BASE: i32 = 128;

impl CommandEnd {
    /// Returns the exit code, as a shell reports it.
    pub fn exit_code(&self) -> Option<i32> {
        match self {
            Self::Exited { code } => Some(*code),
            Self::Signalled { signal, .. } => Some(SIGNAL_BASE + signal),
            Self::TimedOut { .. } => None,
        }
    }

    /// Returns the exit code as text: `3`, or `137 (killed by signal 9, SIGKILL)`.
    pub fn exit_text(&self) -> Option<String> {
        let code = self.exit_code()?;
        Some(match self {
            Self::Signalled { signal, name } => format!("{code} (killed by signal {signal}, {name})"),
            Self::Exited { .. } | Self::TimedOut { .. } => code.to_string(),
        })
    }

    /// Returns the exit code as text. If a result of an older version does not say how the command ended, the exit code
    /// is taken from its output.
    pub fn exit_text_of(end: Option<&Self>, output: &str) -> Option<String> {
        end.map_or_else(|| exit_code_in(output).map(str::to_owned), Self::exit_text)
    }
}

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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn how_a_command_ended_is_read_from_its_output_only_if_the_result_does_not_say() {
        let killed = CommandEnd::Signalled { signal: 9, name: "SIGKILL".to_owned() };
        assert_eq!(killed.exit_code(), Some(137));
        let output = "Exit code: 7\nprinted";
        for (end, exit) in [
            (None, Some("7")),
            (Some(CommandEnd::Exited { code: 3 }), Some("3")),
            (Some(killed), Some("137 (killed by signal 9, SIGKILL)")),
            (Some(CommandEnd::TimedOut { seconds: 2 }), None),
        ] {
            assert_eq!(CommandEnd::exit_text_of(end.as_ref(), output).as_deref(), exit, "{end:?}");
        }
    }
}
