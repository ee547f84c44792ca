//! MCP servers of the session: their state, and the prompts and resources that they offer.

use crate::protocol::{CustomCommand, ServerPrompt, ServerResource, ServerState, ServerStatus};
use crate::text;

/// Time in milliseconds during which keys cannot send text that a server has just inserted.
const FRESH_MS: u64 = 500;

#[derive(Debug, Default)]
pub(crate) struct ServerOverview {
    /// Servers, in the order of the settings.
    pub statuses: Vec<ServerStatus>,
    /// Latest resource results, and their search text.
    pub resources: Option<(String, Vec<ServerResource>)>,
    /// Prompts that the servers offer.
    pub prompts: Vec<ServerPrompt>,
    /// Requested prompt: its server and its name.
    pub asked: Option<(String, String)>,
    /// Time at which the text of a prompt was inserted into the draft.
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

    /// Returns whether the words after an `@` begin with a server name: `github:`.
    pub(crate) fn is_named_in(&self, words: &str) -> bool {
        words.split_once(':').is_some_and(|(name, _)| self.find_by_name(name).is_some())
    }

    /// Returns whether a search for resources is useful: a server is connected, or the words name an inactive one,
    /// which starts it.
    pub(crate) fn may_offer(&self, words: &str) -> bool {
        let named = words.split_once(':').and_then(|(name, _)| self.find_by_name(name));
        self.any_answers() || named.is_some_and(|named| matches!(named.state, ServerState::Asleep | ServerState::Starting))
    }

    /// Returns whether the draft contains text from a server that the user has had no time to read.
    pub(crate) fn are_fresh(&self, now: u64) -> bool {
        self.put_at.is_some_and(|at| now < at + FRESH_MS)
    }

    /// Returns the server prompts as commands, except those whose names cannot be typed.
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

    /// Returns the prompt of a command.
    pub(crate) fn prompt(&self, command: &str) -> Option<&ServerPrompt> {
        self.prompts.iter().find(|prompt| command_name(prompt) == command)
    }

    /// Returns the text of the status row while a server needs attention.
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

/// Returns the command name of a prompt: `docs:explain`.
fn command_name(prompt: &ServerPrompt) -> String {
    format!("{}:{}", prompt.server, prompt.name)
}

/// Returns the arguments of a prompt: `<topic> [language]`.
fn hint(prompt: &ServerPrompt) -> Option<String> {
    let argument = |(name, needed): &(String, bool)| if *needed { format!("<{name}>") } else { format!("[{name}]") };
    let hint = prompt.arguments.iter().map(argument).collect::<Vec<_>>().join(" ");
    (!hint.is_empty()).then_some(hint)
}
