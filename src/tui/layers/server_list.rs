//! List of MCP servers (`/mcp`), with the state of each server and advice on what to do about it.

use super::{LayerContext, LayerRequest, Reaction, ScreenLayer, ShownList};
use crate::protocol::{ServerState, ServerStatus};
use crate::text;
use crate::tui::format::format_count;
use crate::tui::picker::{Column, Picker, Row};
use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};

const COLUMNS: &[Column] = &[
    Column { head: "server", is_number: false, rank: 0 },
    Column { head: "state", is_number: false, rank: 0 },
    Column { head: "tools", is_number: true, rank: 1 },
    Column { head: "connection", is_number: false, rank: 2 },
];

pub(crate) struct ServerList(Picker);

impl ServerList {
    /// Creates the server list, with the server called `name` highlighted.
    pub(crate) fn new(servers: &[ServerStatus], name: Option<&str>) -> Self {
        let mut list = Self(Picker::new("MCP servers", COLUMNS));
        list.set_rows(server_rows(servers));
        if let Some(name) = name {
            list.0.highlight(name);
        }
        list
    }
}

impl ScreenLayer for ServerList {
    fn list(&mut self) -> Option<&mut Picker> {
        Some(&mut self.0)
    }

    fn choose(&mut self, row: &str) -> Reaction {
        Reaction::Request(LayerRequest::ShowServer(row.to_owned()))
    }

    fn on_other_key(&mut self, key: KeyEvent) -> Reaction {
        let ctrl = key.modifiers.contains(KeyModifiers::CONTROL);
        match (key.code, self.0.highlighted()) {
            (KeyCode::Char('r'), Some(row)) if ctrl => Reaction::Request(LayerRequest::ReconnectServer(row.key.clone())),
            _ => Reaction::Pass,
        }
    }

    fn shown_list(&self) -> Option<ShownList> {
        Some(ShownList::Servers)
    }

    fn hints(&self, _around: LayerContext) -> Vec<&'static str> {
        vec!["enter details", "ctrl+r reconnect", "esc close", "up down move", "type to filter"]
    }
}

/// Returns one list row per server.
pub(crate) fn server_rows(servers: &[ServerStatus]) -> Vec<Row> {
    servers.iter().map(row).collect()
}

fn row(status: &ServerStatus) -> Row {
    Row {
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
    }
}

/// Returns a server's details as lines of text.
pub(crate) fn server_details(status: &ServerStatus) -> Vec<String> {
    let project = if status.of_project { " · defined by the project" } else { "" };
    let mut lines = vec![
        format!("{} (MCP server) · {}{project}", text::reveal_line(&status.name), state(&status.state)),
        format!("  connection: {}", text::reveal_line(&status.reached_by)),
    ];
    lines.extend(more(status).iter().map(|line| format!("  {line}")));
    lines
}

/// Returns the details that the list omits: advice on the server's state, the number of tools, and notes.
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

/// Returns the number of tools that the policy allows, such as `12 of 30`, or just `30` if it allows all of them.
fn tools(status: &ServerStatus) -> String {
    if status.tools == status.offered { status.tools.to_string() } else { format!("{} of {}", status.tools, status.offered) }
}

/// Returns an explanation of the server's state, with advice on what to do.
fn advice(status: &ServerStatus) -> String {
    let name = text::reveal_line(&status.name);
    match &status.state {
        ServerState::Asleep => "starts with the first call to one of its tools".to_owned(),
        ServerState::Starting => "loading its tool list".to_owned(),
        ServerState::Ready if status.tools == 0 && status.offered > 0 => {
            format!("the policy lists none of its tools, so the model gets none; run `aye mcp allow {name}`")
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
