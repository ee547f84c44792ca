//! `aye mcp test`: connects to a server as a session would, and prints its tools, the verdict on each, and a rule that
//! would allow any denied tools.

use super::list::display_target;
use super::login::find_server;
use crate::host::console::{print_json, print_text};
use crate::host::context::AppContext;
use crate::host::error::CliError;
use crate::host::exit::Exit;
use crate::host::mcp_servers::token_store::vault;
use crate::host::options::Common;
use crate::host::project::ProjectConfig;
use crate::host::sandbox_host::SandboxHost;
use crate::host::session;
use crate::host::startup::runtime;
use crate::mcp::auth::TokenCache;
use crate::mcp::{Identity, McpDeps, Reach, Servers, Spec};
use crate::policy::Enforcer;
use crate::ports::{Launcher, RemoteServers, RemoteTool};
use crate::protocol::{Action, Problem, ServerState, VerdictKind, format_count};
use crate::text::clean;
use crate::tools::ServerLauncher;
use serde::Serialize;
use std::fmt::Write as _;
use std::sync::Arc;

/// Maximum number of tools listed in text output; any further tools are only counted.
const MAX_SHOWN: usize = 200;

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct ServerReport {
    server: String,
    reached_by: String,
    /// Server name, as reported by the server.
    #[serde(skip_serializing_if = "Option::is_none")]
    name: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    version: Option<String>,
    /// Protocol revision of the Model Context Protocol.
    #[serde(skip_serializing_if = "Option::is_none")]
    revision: Option<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    notes: Vec<String>,
    tools: Vec<ToolVerdict>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct ToolVerdict {
    name: String,
    fingerprint: String,
    verdict: VerdictKind,
    rule: String,
    reason: String,
}

pub(crate) fn run(app: &AppContext, common: &Common, name: &str, json: bool) -> Result<Exit, CliError> {
    let spec = find_server(app, common, name)?;
    if let Some(why) = &spec.off {
        return Err(CliError::usage(format!("server `{name}` is off: {why}")));
    }
    let project = ProjectConfig::inspect(&app.workspace, &app.directories.config, common.trust);
    let policy = app.policy(common.policy.as_deref(), Some(&project))?;
    policy.validate_for_session(None)?;
    let standing = match &spec.reach {
        Reach::Program { .. } => SandboxHost::find(app, project.trust()),
        Reach::Http { .. } => SandboxHost::unprobed(app),
    };
    let enforcer = standing.enforcer(app, &policy);
    let launcher = ServerLauncher::new(session::tool_settings(app, &enforcer, standing.sandbox_policy(&enforcer)));
    let wires = McpDeps {
        launcher: Some(Arc::new(launcher) as Arc<dyn Launcher>),
        approval: Some(project.approved_servers()),
        tokens: Some(Arc::new(TokenCache::new(vault(app)))),
        ..McpDeps::default()
    };
    let reached_by = display_target(&spec);
    let ServerProbe { tools, notes, identity } = runtime()?.block_on(probe(spec, wires))?;
    let tools = tools.iter().map(|tool| judge_tool(tool, &enforcer)).collect();
    let (revision, name_of_it, version) = match identity {
        Some(Identity { revision, name, version }) => (Some(revision), name, version),
        None => (None, None, None),
    };
    let tried = ServerReport { server: name.to_owned(), reached_by, name: name_of_it, version, revision, notes, tools };
    if json {
        print_json(&tried);
    } else {
        print_text(&clean(&tried.as_text(app)));
    }
    Ok(Exit::Completed)
}

struct ServerProbe {
    tools: Vec<RemoteTool>,
    notes: Vec<String>,
    identity: Option<Identity>,
}

/// Connects to a server, and returns its tools, its identity and any notes.
async fn probe(spec: Spec, wires: McpDeps) -> Result<ServerProbe, CliError> {
    let name = spec.name.clone();
    let servers = Servers::new(vec![spec], wires);
    let mut changed = servers.changed();
    servers.discover();
    let found = loop {
        match servers.statuses().into_iter().next().map(|status| status.state) {
            Some(ServerState::Ready) => {
                let (tools, notes) = (servers.tools().to_vec(), servers.notes(&name));
                break Ok(ServerProbe { tools, notes, identity: servers.identity(&name) });
            }
            Some(ServerState::NeedsLogin) => {
                let problem = Problem::new(format!("server `{name}` requires sign-in"));
                break Err(CliError::new(Exit::Authentication, problem.hint(format!("run `aye mcp login {name}`"))));
            }
            Some(ServerState::Unreachable { why }) => {
                break Err(CliError::failed(Problem::new(format!("cannot connect to server `{name}`")).because(why)));
            }
            Some(ServerState::Off { why }) => break Err(CliError::failed(format!("server `{name}` is off: {why}"))),
            Some(ServerState::Asleep | ServerState::Starting) => {}
            None => {
                break Err(
                    CliError::failed(format!("unknown MCP server `{name}`")).hint("run `aye mcp list` to list the servers")
                );
            }
        }
        tokio::select! {
            done = changed.changed() => if done.is_err() {
                break Err(CliError::failed(format!("server `{name}` was shut down")));
            },
            done = tokio::signal::ctrl_c() => {
                drop(done);
                break Err(CliError::new(Exit::Interrupted, "stopped"));
            }
        }
    };
    servers.end().await;
    found
}

fn judge_tool(tool: &RemoteTool, enforcer: &Enforcer) -> ToolVerdict {
    let (server, name, fingerprint) = (tool.server.clone(), tool.name.clone(), tool.fingerprint.clone());
    let action = Action::Invoke { server, tool: name, fingerprint, changed: false };
    let told = enforcer.explain(&[action], jiff::Timestamp::now());
    ToolVerdict {
        name: tool.name.clone(),
        fingerprint: tool.fingerprint.clone(),
        verdict: told.verdict,
        rule: told.rule,
        reason: told.reason,
    }
}

impl ServerReport {
    fn as_text(&self, app: &AppContext) -> String {
        let mut text = String::new();
        let count = self.tools.len();
        let offered = format_count(count as u64, "tool", "tools");
        let _ = writeln!(text, "{} ({}) is reachable and offers {offered}", self.server, self.reached_by);
        if let Some(revision) = &self.revision {
            let own = [&self.name, &self.version].map(|word| word.as_deref().unwrap_or_default()).join(" ");
            let own = if own.trim().is_empty() { String::new() } else { format!("{}, ", own.trim()) };
            let _ = writeln!(text, "  {own}MCP revision {revision}");
        }
        for note in &self.notes {
            let _ = writeln!(text, "  {note}");
        }
        let shown = self.tools.iter().take(MAX_SHOWN);
        let widest = shown.clone().map(|tool| tool.name.chars().count()).max().unwrap_or(0);
        for tool in shown {
            let verdict = match tool.verdict {
                VerdictKind::Allow => "allowed",
                VerdictKind::Ask => "asks",
                VerdictKind::Deny => "denied",
            };
            let _ = writeln!(text, "  {:widest$}  {verdict}: {} ({})", tool.name, tool.reason, tool.rule);
            let _ = writeln!(text, "  {:widest$}  fingerprint {}", "", tool.fingerprint);
        }
        if count > MAX_SHOWN {
            let _ = writeln!(text, "  … and {} more; `--json` lists all", count - MAX_SHOWN);
        }
        let mut denied = self.tools.iter().filter(|tool| tool.verdict == VerdictKind::Deny);
        if let Some(tool) = denied.next() {
            let which = match denied.count() + 1 {
                denied if denied == count => "these tools".to_owned(),
                denied => format!("{denied} of these {count} tools"),
            };
            let word = |text: &str| toml::Value::String(text.to_owned()).to_string();
            let _ = write!(
                text,
                "\nthe policy denies {which}\nnext: run `aye mcp allow {}`, unless the policy already lists them. Each call then \
                needs approval.\nThis rule in {}\nallows a tool without approval as long as its definition is \
                unchanged:\n\n[[capabilities.\"Mcp.Invoke\".rules]]\ntools = [{}]\ndecision = \"allow\"\nfingerprint = {}\n",
                self.server,
                app.directories.config.join("policy.toml").display(),
                word(&format!("{}/{}", self.server, tool.name)),
                word(&tool.fingerprint)
            );
        }
        text
    }
}
