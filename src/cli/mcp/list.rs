//! `aye mcp list`: lists the MCP servers, where they are configured, and the tools that the policy lists. Does not
//! connect to any server.

use crate::host::console::{print_json, print_text, warn, warn_all};
use crate::host::context::AppContext;
use crate::host::error::CliError;
use crate::host::exit::Exit;
use crate::host::mcp_servers::specs::{ConfiguredServer, find_servers};
use crate::host::options::Common;
use crate::host::policy_layers::Policy;
use crate::host::project::ProjectConfig;
use crate::mcp::{McpDeps, Reach, Servers, Spec};
use crate::policy::ToolPattern;
use crate::ports::RemoteServers as _;
use crate::protocol::{ServerStatus, format_count};
use crate::text::clean;
use serde::Serialize;
use std::fmt::Write as _;

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct ServerRow {
    name: String,
    /// Command or URL of the server, such as `npx -y server` or `https://example.org/mcp`.
    reached_by: String,
    /// File in which the server is configured, with a line number if it is one of the user's servers.
    place: String,
    of_project: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    off: Option<String>,
    /// Patterns in `allowed_tools` that can match one of the server's tools.
    allowed_tools: Vec<String>,
    /// Number of tools offered when aye last connected; absent if it has never connected.
    #[serde(skip_serializing_if = "Option::is_none")]
    offered: Option<u64>,
    /// Notes from the last connection, such as tools that were ignored and why.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    notes: Vec<String>,
}

pub(crate) fn run(app: &AppContext, common: &Common, json: bool) -> Result<Exit, CliError> {
    let project = ProjectConfig::inspect(&app.workspace, &app.directories.config, common.trust);
    let policy = app.policy(common.policy.as_deref(), Some(&project))?;
    let (servers, problems) = find_servers(app, Some(&project));
    let known = saved_states(app, &servers);
    let rows: Vec<ServerRow> = servers.into_iter().map(|server| row(server, &policy, &known)).collect();
    warn_all(&problems);
    if let Some(ignored) = project.ignored_files_notice().filter(|ignored| ignored.contains(".mcp.json")) {
        warn(&ignored);
    }
    if json {
        print_json(&rows);
    } else if rows.is_empty() {
        print_text("no servers; add one with `aye mcp add NAME URL` or `aye mcp add NAME -- COMMAND`\n");
    } else {
        print_text(&clean(&table(&rows)));
    }
    Ok(Exit::Completed)
}

/// Returns the state of each server that was saved when aye last connected to it.
fn saved_states(app: &AppContext, servers: &[ConfiguredServer]) -> Vec<ServerStatus> {
    let specs = servers.iter().map(|found| found.spec.clone()).collect();
    let wires = McpDeps { known: Some(app.directories.shared.join("mcp").join("known")), ..McpDeps::default() };
    Servers::new(specs, wires).statuses()
}

fn row(ConfiguredServer { spec, place }: ConfiguredServer, policy: &Policy, known: &[ServerStatus]) -> ServerRow {
    let reached_by = display_target(&spec);
    let known = known.iter().find(|status| status.name == spec.name && (status.offered > 0 || !status.notes.is_empty()));
    let allowed_tools = allowed_patterns(&spec.name, policy);
    ServerRow {
        name: spec.name,
        reached_by,
        place: place.replace('`', ""),
        of_project: spec.of_project,
        off: spec.off,
        allowed_tools,
        offered: known.map(|status| status.offered),
        notes: known.map(|status| status.notes.clone()).unwrap_or_default(),
    }
}

/// Returns the command or URL for display. The query of a URL is omitted, because it may contain a secret.
pub(super) fn display_target(spec: &Spec) -> String {
    match &spec.reach {
        Reach::Program { argv, .. } => argv.join(" "),
        Reach::Http { url, .. } => url.split(['?', '#']).next().unwrap_or_default().to_owned(),
    }
}

/// Returns the patterns in `allowed_tools` that can match one of this server's tools.
fn allowed_patterns(server: &str, policy: &Policy) -> Vec<String> {
    let layers = policy.layers.iter().filter(|layer| layer.scope.grants());
    let mut patterns: Vec<String> = Vec::new();
    for tools in layers.filter_map(|layer| layer.bundle.capabilities.mcp.as_ref()) {
        match &tools.allowed {
            None => patterns.push("*".to_owned()),
            Some(listed) => {
                patterns
                    .extend(listed.iter().filter(|pattern| pattern_covers(pattern, server)).map(|pattern| pattern.text.clone()));
            }
        }
    }
    patterns.dedup();
    patterns
}

fn pattern_covers(pattern: &ToolPattern, server: &str) -> bool {
    let of_server = pattern.text.split('/').next().unwrap_or_default();
    ToolPattern { text: of_server.to_owned(), line: pattern.line }.names(server)
}

fn table(rows: &[ServerRow]) -> String {
    let widest = rows.iter().map(|row| row.name.chars().count()).max().unwrap_or(0);
    let mut text = String::new();
    for row in rows {
        let _ = writeln!(text, "{:widest$}  {}", row.name, row.reached_by);
        let _ = writeln!(text, "{:widest$}  configured in {}", "", row.place);
        let listed = if row.allowed_tools.is_empty() {
            format!("the policy lists none of its tools yet; run `aye mcp allow {}`", row.name)
        } else {
            format!("the policy lists {} (each call may need approval)", row.allowed_tools.join(", "))
        };
        let _ = writeln!(text, "{:widest$}  {listed}", "");
        if let Some(offered) = row.offered {
            let _ = writeln!(text, "{:widest$}  offered {} at the last connection", "", format_count(offered, "tool", "tools"));
        }
        for note in &row.notes {
            let _ = writeln!(text, "{:widest$}  {note}", "");
        }
        if let Some(off) = &row.off {
            let _ = writeln!(text, "{:widest$}  off: {off}", "");
        }
    }
    text
}
