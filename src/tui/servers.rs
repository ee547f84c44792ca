//! The session's MCP servers: their states, and the prompts and resources that they offer.

use crate::protocol::{CustomCommand, ServerPrompt, ServerResource, ServerState, ServerStatus};
use crate::text;

/// Time, in milliseconds, for which text just inserted from a server cannot be sent with a key.
const FRESH_MS: u64 = 500;

#[derive(Debug, Default)]
pub(crate) struct ServerOverview {
    /// Server states, in the order in which the servers appear in the settings.
    pub statuses: Vec<ServerStatus>,
    /// Search text and results of the most recent resource search.
    pub resources: Option<(String, Vec<ServerResource>)>,
    /// Prompts offered by the servers.
    pub prompts: Vec<ServerPrompt>,
    /// Server and name of the prompt whose text has been requested, if any.
    pub asked: Option<(String, String)>,
    /// Time, in milliseconds, at which text from a server was last inserted into the draft.
    pub put_at: Option<u64>,
}

impl ServerOverview {
    pub(crate) fn find_by_name(&self, name: &str) -> Option<&ServerStatus> {
        self.statuses.iter().find(|status| status.name == name)
    }

    /// Returns whether any server is connected. Only connected servers are searched for resources.
    pub(crate) fn any_answers(&self) -> bool {
        self.statuses.iter().any(|status| status.state == ServerState::Ready)
    }

    /// Returns whether the text after an `@` starts with a server's name and a colon, such as `github:`.
    pub(crate) fn is_named_in(&self, words: &str) -> bool {
        words.split_once(':').is_some_and(|(name, _)| self.find_by_name(name).is_some())
    }

    /// Returns whether it is worth searching for resources, because a server is connected or the text names a server
    /// that the search would start.
    pub(crate) fn may_offer(&self, words: &str) -> bool {
        let named = words.split_once(':').and_then(|(name, _)| self.find_by_name(name));
        self.any_answers() || named.is_some_and(|named| matches!(named.state, ServerState::Asleep | ServerState::Starting))
    }

    /// Returns whether text from a server was inserted into the draft so recently that the user cannot have read it.
    pub(crate) fn are_fresh(&self, now: u64) -> bool {
        self.put_at.is_some_and(|at| now < at + FRESH_MS)
    }

    /// Returns the prompts of the servers as commands, omitting those whose names cannot be typed.
    pub(crate) fn commands(&self) -> Vec<CustomCommand> {
        let named = self.prompts.iter().filter_map(|prompt| {
            let name = command_name(prompt);
            let is_typed = !name.contains(|one: char| one.is_whitespace() || one.is_control() || one == '/');
            is_typed.then(|| CustomCommand {
                name,
                description: prompt.description.clone().unwrap_or_else(|| format!("a prompt from {}", prompt.server)),
                argument_hint: hint(prompt),
                text: String::new(),
                source: format!("MCP server {}", prompt.server),
            })
        });
        named.collect()
    }

    /// Returns the prompt whose command name is `command`, if there is one.
    pub(crate) fn prompt(&self, command: &str) -> Option<&ServerPrompt> {
        self.prompts.iter().find(|prompt| command_name(prompt) == command)
    }

    /// Returns the text about servers that need attention for the status row, or `None` if there are none.
    pub(crate) fn problem_text(&self) -> Option<String> {
        let mut troubled = self.statuses.iter().filter_map(|status| match status.state {
            ServerState::NeedsLogin => Some((status, "sign-in required")),
            ServerState::Unreachable { .. } => Some((status, "unreachable")),
            ServerState::Asleep | ServerState::Starting | ServerState::Ready | ServerState::Off { .. } => None,
        });
        let (first, words) = troubled.next()?;
        Some(match troubled.count() {
            0 => format!("MCP: {} {words}", text::reveal_line(&first.name)),
            others => format!("MCP: {} servers down", others + 1),
        })
    }
}

/// Returns the name of the command for a server prompt, such as `docs:explain`.
fn command_name(prompt: &ServerPrompt) -> String {
    format!("{}:{}", prompt.server, prompt.name)
}

/// Returns the argument hint for a prompt, such as `<topic> [language]`.
fn hint(prompt: &ServerPrompt) -> Option<String> {
    let argument = |(name, needed): &(String, bool)| if *needed { format!("<{name}>") } else { format!("[{name}]") };
    let hint = prompt.arguments.iter().map(argument).collect::<Vec<_>>().join(" ");
    (!hint.is_empty()).then_some(hint)
}
