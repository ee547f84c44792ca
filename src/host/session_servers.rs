//! Prepares the MCP servers of a session.

use super::context::AppContext;
use super::mcp_servers::{self, SessionServers, specs};
use super::policy_layers::Policy;
use super::project::ProjectConfig;
use super::sandbox_host::SandboxHost;
use super::session::Session;
use crate::agent::{self, Approver};
use crate::mcp::Spec;

/// Prepares a session's MCP servers. `passed` contains the servers that the front end passed. If a server in the
/// settings has the same name, that server takes precedence.
pub(super) fn connect(
    passed: Vec<Spec>,
    session: &mut Session,
    app: &AppContext,
    policy: &Policy,
    project: &ProjectConfig,
    standing: &SandboxHost,
    approver: Approver,
) -> Option<agent::ServerConnections> {
    let enforcer = standing.enforcer(app, policy);
    let settings = || session.kept.tool_settings(app, &enforcer, standing.sandbox_policy(&enforcer));
    let (mut specs, mut problems) = specs::specs(app, Some(project));
    mcp_servers::add_passed(&passed, &mut specs, &mut problems);
    let (approval, person) = (project.approved_servers(), matches!(approver, Approver::User));
    let connected = mcp_servers::connect(app, (specs, problems), &enforcer, settings, approval, person);
    let SessionServers { mut servers, remote, problems } = connected;
    servers.set_passed(passed);
    session.notices.extend(problems);
    session.kept.connect_servers(servers);
    Some(remote)
}
