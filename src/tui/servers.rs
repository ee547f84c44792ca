//! The MCP servers of the session, as far as the screen knows them: how each stands, and what can be done about it.

use super::picker::{Column, Picker, Row};
use super::status::counted;
use crate::protocol::{CustomCommand, ServerPrompt, ServerResource, ServerState, ServerStatus};
use crate::text;

const COLUMNS: &[Column] = &[
    Column { head: "server", is_number: false, rank: 0 },
    Column { head: "state", is_number: false, rank: 0 },
    Column { head: "tools", is_number: true, rank: 1 },
    Column { head: "connection", is_number: false, rank: 2 },
];
/// What came from a server right now is not sent by a key that was typed before it stood there.
const FRESH_MS: u64 = 500;

#[derive(Debug, Default)]
pub struct Servers {
    /// In the order of the settings.
    pub statuses: Vec<ServerStatus>,
    /// The list of them, while it has the keyboard.
    pub list: Option<Picker>,
    /// What they offer to be read, as it was found last, and for which letters.
    pub resources: Option<(String, Vec<ServerResource>)>,
    /// What they offer to be said.
    pub prompts: Vec<ServerPrompt>,
    /// The prompt that was asked for: its server and its name.
    pub asked: Option<(String, String)>,
    /// When the words of one were put into the draft.
    pub put_at: Option<u64>,
}

impl Servers {
    pub fn of_name(&self, name: &str) -> Option<&ServerStatus> {
        self.statuses.iter().find(|status| status.name == name)
    }

    /// Whether any answers now: only those are asked what they offer.
    pub fn any_answers(&self) -> bool {
        self.statuses.iter().any(|status| status.state == ServerState::Ready)
    }

    /// Whether words behind an `@` begin with the name of one: `github:`.
    pub fn are_named_in(&self, words: &str) -> bool {
        words.split_once(':').is_some_and(|(name, _)| self.of_name(name).is_some())
    }

    /// Whether what they offer is worth asking for: one answers, or one that sleeps is called by its name, which wakes it.
    pub fn may_offer(&self, words: &str) -> bool {
        let named = words.split_once(':').and_then(|(name, _)| self.of_name(name));
        self.any_answers() || named.is_some_and(|named| matches!(named.state, ServerState::Asleep | ServerState::Starting))
    }

    /// Whether the draft got words of a server that nobody can have read yet.
    pub fn are_fresh(&self, now: u64) -> bool {
        self.put_at.is_some_and(|at| now < at + FRESH_MS)
    }

    /// What they offer to be said, as commands. Names that nobody can type are left out.
    pub fn commands(&self) -> Vec<CustomCommand> {
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

    /// The one that a command stands for.
    pub fn prompt(&self, command: &str) -> Option<&ServerPrompt> {
        self.prompts.iter().find(|prompt| command_name(prompt) == command)
    }

    /// What the status row says while one of them needs the person.
    pub fn trouble(&self) -> Option<String> {
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

    pub fn open(&mut self) {
        let mut picker = Picker::new("MCP servers", COLUMNS);
        picker.set_rows(self.rows());
        self.list = Some(picker);
    }

    /// The list says how it stands now.
    pub fn refresh(&mut self) {
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
            detail: advice(status),
        };
        self.statuses.iter().map(row).collect()
    }
}

/// `docs:explain`
fn command_name(prompt: &ServerPrompt) -> String {
    format!("{}:{}", prompt.server, prompt.name)
}

/// `<topic> [language]`
fn hint(prompt: &ServerPrompt) -> Option<String> {
    let argument = |(name, needed): &(String, bool)| if *needed { format!("<{name}>") } else { format!("[{name}]") };
    let hint = prompt.arguments.iter().map(argument).collect::<Vec<_>>().join(" ");
    (!hint.is_empty()).then_some(hint)
}

/// All that is known of one, in lines.
pub fn details(status: &ServerStatus) -> Vec<String> {
    let project = if status.of_project { " · defined by the project" } else { "" };
    let offered = match status.offered {
        0 => "tools not known yet".to_owned(),
        offered => {
            let tools = counted(usize::try_from(offered).unwrap_or(usize::MAX), "tool");
            format!("{tools} offered, {} of them allowed by the policy", status.tools)
        }
    };
    let mut lines = vec![
        format!("{} (MCP server) · {}{project}", text::reveal_line(&status.name), state(&status.state)),
        format!("  connection: {}", text::reveal_line(&status.reached_by)),
        format!("  {offered}"),
        format!("  {}", advice(status)),
    ];
    lines.extend(status.notes.iter().map(|note| format!("  {}", text::reveal_line(note))));
    lines
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

/// `12 of 30`: listed by the policy, of those it offers.
fn tools(status: &ServerStatus) -> String {
    if status.tools == status.offered { status.tools.to_string() } else { format!("{} of {}", status.tools, status.offered) }
}

/// Why it is as it is, and what to do.
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
