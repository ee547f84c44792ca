//! MCP servers of the session: their state, with hints.

use super::format::format_count;
use super::picker::{Column, Picker, Row};
use crate::protocol::{CustomCommand, ServerPrompt, ServerResource, ServerState, ServerStatus};
use crate::text;

const COLUMNS: &[Column] = &[
    Column { head: "server", is_number: false, rank: 0 },
    Column { head: "state", is_number: false, rank: 0 },
    Column { head: "tools", is_number: true, rank: 1 },
    Column { head: "connection", is_number: false, rank: 2 },
];
/// Time in milliseconds during which keys cannot send text that a server just inserted.
const FRESH_MS: u64 = 500;

#[derive(Debug, Default)]
pub(crate) struct Servers {
    /// Servers, in the order of the settings.
    pub statuses: Vec<ServerStatus>,
    /// The server list, while it has the keyboard.
    pub list: Option<Picker>,
    /// Resources found last, and the search text.
    pub resources: Option<(String, Vec<ServerResource>)>,
    /// Prompts the servers offer.
    pub prompts: Vec<ServerPrompt>,
    /// Requested prompt: its server and its name.
    pub asked: Option<(String, String)>,
    /// Time at which the text of a prompt was inserted into the draft.
    pub put_at: Option<u64>,
}

impl Servers {
    pub(crate) fn find_by_name(&self, name: &str) -> Option<&ServerStatus> {
        self.statuses.iter().find(|status| status.name == name)
    }

    /// Returns whether any server is connected; only those are searched for resources.
    pub(crate) fn any_answers(&self) -> bool {
        self.statuses.iter().any(|status| status.state == ServerState::Ready)
    }

    /// Returns whether the words after an `@` begin with a server name: `github:`.
    pub(crate) fn is_named_in(&self, words: &str) -> bool {
        words.split_once(':').is_some_and(|(name, _)| self.find_by_name(name).is_some())
    }

    /// Returns whether searching for resources is useful: a server is connected, or an inactive one is named, which
    /// starts it.
    pub(crate) fn may_offer(&self, words: &str) -> bool {
        let named = words.split_once(':').and_then(|(name, _)| self.find_by_name(name));
        self.any_answers() || named.is_some_and(|named| matches!(named.state, ServerState::Asleep | ServerState::Starting))
    }

    /// Returns whether the draft contains server text that is too new for the user to have read.
    pub(crate) fn are_fresh(&self, now: u64) -> bool {
        self.put_at.is_some_and(|at| now < at + FRESH_MS)
    }

    /// Returns the prompts of the servers as commands, except those with names that cannot be typed.
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

    /// Opens the list, with this server highlighted.
    pub(crate) fn open(&mut self, name: Option<&str>) {
        let mut picker = Picker::new("MCP servers", COLUMNS);
        picker.set_rows(self.rows());
        if let Some(name) = name {
            picker.highlight(name);
        }
        self.list = Some(picker);
    }

    /// Updates the list to the current state.
    pub(crate) fn refresh(&mut self) {
        let rows = self.rows();
        if let Some(list) = &mut self.list {
            list.set_rows(rows);
        }
    }

    fn rows(&self) -> Vec<Row> {
        let row = |status: &ServerStatus| Row {
            key: status.name.clone(),
            cells: vec![
                text::reveal_line(&status.name),
                state(&status.state).to_owned(),
                tools(status),
                text::reveal_line(&status.reached_by),
            ],
            mark: if status.of_project { "from project" } else { "" },
            lacks: None,
            detail: more(status).join("\n"),
        };
        self.statuses.iter().map(row).collect()
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

/// Returns the details of a server, in lines.
pub(crate) fn details(status: &ServerStatus) -> Vec<String> {
    let project = if status.of_project { " · defined by the project" } else { "" };
    let mut lines = vec![
        format!("{} (MCP server) · {}{project}", text::reveal_line(&status.name), state(&status.state)),
        format!("  connection: {}", text::reveal_line(&status.reached_by)),
    ];
    lines.extend(more(status).iter().map(|line| format!("  {line}")));
    lines
}

/// Returns the details that the list of servers does not show: the meaning of the state, the tools, and notes.
fn more(status: &ServerStatus) -> Vec<String> {
    let offered = match status.offered {
        0 => "tools not known yet".to_owned(),
        offered => {
            let tools = format_count(usize::try_from(offered).unwrap_or(usize::MAX), "tool");
            format!("{tools} offered, {} of them allowed by the policy", status.tools)
        }
    };
    let notes = status.notes.iter().map(|note| text::reveal_line(note));
    [advice(status), offered].into_iter().chain(notes).collect()
}

fn state(state: &ServerState) -> &'static str {
    match state {
        ServerState::Asleep => "not started",
        ServerState::Starting => "starting",
        ServerState::Ready => "ready",
        ServerState::NeedsLogin => "sign-in required",
        ServerState::Unreachable { .. } => "unreachable",
        ServerState::Off { .. } => "off",
    }
}

/// Returns the tool count: `12 of 30` allowed by the policy.
fn tools(status: &ServerStatus) -> String {
    if status.tools == status.offered { status.tools.to_string() } else { format!("{} of {}", status.tools, status.offered) }
}

/// Returns the reason for the state of the server, with a hint.
fn advice(status: &ServerStatus) -> String {
    let name = text::reveal_line(&status.name);
    match &status.state {
        ServerState::Asleep => "starts with the first call to one of its tools".to_owned(),
        ServerState::Starting => "loading the list of its tools".to_owned(),
        ServerState::Ready if status.tools == 0 && status.offered > 0 => {
            "the model gets none of its tools, because the policy lists none of them (`allowed_tools` of Mcp.Invoke)".to_owned()
        }
        ServerState::Ready => "connected".to_owned(),
        ServerState::NeedsLogin => {
            format!("run `aye mcp login {name}` in another terminal, then /mcp reconnect {name}")
        }
        ServerState::Unreachable { why } => {
            let why = if why.is_empty() { String::new() } else { format!("{}; ", text::reveal_line(why)) };
            format!("{why}the next call retries; /mcp reconnect {name} retries now")
        }
        ServerState::Off { why } => text::reveal_line(why),
    }
}
