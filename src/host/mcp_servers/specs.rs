//! Collects the MCP servers that a session uses: those of the user, those of plugins, and approved servers of the
//! project.

use crate::config::servers::{self, HttpTransport as Kind, ServerDefinition, ServerTransport};
use crate::host::context::AppContext;
use crate::host::options::Trust;
use crate::host::project::ProjectConfig;
use crate::host::server_approval::{CHANGED, SERVERS};
use crate::mcp::{Header, HttpKind, PluginFiles, Reach, SignIn, Spec};
use crate::sys::file;
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

/// Maximum size of a server file, in bytes.
const SERVERS_BYTES: u64 = 1 << 20;

/// Returns all servers, the user's servers first, and descriptions of any problems. Does not start or contact any
/// server.
pub(crate) fn specs(place: &AppContext, project: Option<&ProjectConfig>) -> (Vec<Spec>, Vec<String>) {
    let (found, problems) = find_servers(place, project);
    (found.into_iter().map(|found| found.spec).collect(), problems)
}

/// A server and the file in which it is configured.
pub(crate) struct ConfiguredServer {
    pub spec: Spec,
    pub place: String,
}

pub(crate) fn find_servers(place: &AppContext, project: Option<&ProjectConfig>) -> (Vec<ConfiguredServer>, Vec<String>) {
    let own = place.settings.servers(&place.environment, &place.workspace, &place.home);
    let mut problems = own.problems;
    let mut all: Vec<ConfiguredServer> = own.servers.into_iter().map(|server| spec(server, false)).collect();
    for plugin in place.plugins().enabled().plugins {
        let files = PluginFiles { name: plugin.name().to_owned(), root: plugin.root.clone() };
        let brought = plugin.servers(&place.environment, &place.key_variables());
        problems.extend(brought.problems);
        for mut server in brought.servers {
            if !project.is_some_and(ProjectConfig::is_trusted) {
                start_outside_project(&mut server, &plugin.root, &place.workspace);
            }
            let ConfiguredServer { spec, place } = spec(server, false);
            all.push(ConfiguredServer { spec: Spec { plugin: Some(files.clone()), ..spec }, place });
        }
    }
    let Some((project, (file, bytes))) = project.and_then(|project| Some((project, project.servers()?))) else {
        return (all, problems);
    };
    let brought = servers::parse_project_servers(bytes, &file, &place.environment, &place.key_variables());
    problems.extend(brought.problems);
    for mut server in brought.servers {
        if let Some(known) = all.iter().find(|known| known.spec.name.eq_ignore_ascii_case(&server.name)) {
            let (name, own) = (&server.name, &known.place);
            problems.push(format!("the project also has a server `{name}`; the one in {own} is used"));
            continue;
        }
        let (argv, directory) = match &server.way {
            ServerTransport::Program { argv, directory, .. } => (argv.as_slice(), directory.as_deref()),
            ServerTransport::Http { .. } => (&[] as &[String], None),
        };
        // `--trust` does not approve the programs of servers.
        if !project.is_server_trusted(argv, directory) {
            server.off =
                Some("this version of the server is not approved; open the project in `aye` and trust it there".to_owned());
        }
        all.push(spec(server, true));
    }
    (all, problems)
}

/// Sets the working directory of a plugin's server to the plugin's folder, unless the server's entry specifies one.
/// Disables the server if the directory is inside an untrusted project.
fn start_outside_project(server: &mut ServerDefinition, root: &Path, workspace: &Path) {
    let ServerTransport::Program { directory, .. } = &mut server.way else { return };
    let started = directory.get_or_insert_with(|| root.to_owned());
    let real = |path: &Path| path.canonicalize().unwrap_or_else(|_| path.to_owned());
    if real(started).starts_with(real(workspace)) && !real(started).starts_with(root) {
        let why = "it starts in the project, which is not trusted; start `aye` in this project to review and trust it";
        server.off.get_or_insert_with(|| why.to_owned());
    }
}

/// Current servers, as configured in all files.
pub(crate) struct SpecReloader {
    pub specs: Vec<Spec>,
    pub problems: Vec<String>,
    /// Content that the user has trusted since the session started, if it differs from what was trusted then.
    pub trusted: Option<Arc<BTreeMap<String, String>>>,
}

/// Returns the servers after their files have changed during a session that started with `project`. A project server
/// that differs from the trusted version is disabled until the user trusts the project again.
pub(crate) fn reload_specs(place: &AppContext, project: &ProjectConfig) -> SpecReloader {
    let (specs, problems) = specs(place, Some(project));
    let before = SpecReloader { specs, problems, trusted: None };
    if !project.is_trusted() || !project.servers_changed() {
        return before;
    }
    let now = ProjectConfig::inspect(&place.workspace, &place.directories.config, Trust::AsRecorded);
    if now.is_trusted() {
        let (specs, problems) = self::specs(place, Some(&now));
        return SpecReloader { specs, problems, trusted: Some(now.trusted_hashes()) };
    }
    // No server of this file is started; it only shows which entries changed since they were trusted.
    let file = place.workspace.join(SERVERS);
    let named = file::read(&file, SERVERS_BYTES)
        .map(|bytes| servers::parse_project_servers(&bytes, &file, &place.environment, &place.key_variables()).servers);
    let (mut specs, known): (Vec<Spec>, Vec<Spec>) = before.specs.into_iter().partition(|spec| !spec.of_project);
    for server in named.unwrap_or_default() {
        let ConfiguredServer { spec: now, .. } = spec(server, true);
        if specs.iter().any(|own| own.name.eq_ignore_ascii_case(&now.name)) {
            continue;
        }
        let same = known.iter().find(|old| Spec { off: None, ..(*old).clone() } == Spec { off: None, ..now.clone() });
        let off = || Some(format!("`{SERVERS}` {CHANGED}"));
        specs.push(same.cloned().unwrap_or_else(|| Spec { off: off(), ..now }));
    }
    SpecReloader { specs, problems: before.problems, trusted: None }
}

/// Returns the secrets that the server settings contain in plain text.
pub(crate) fn secrets(place: &AppContext) -> Vec<String> {
    place.settings.servers(&place.environment, &place.workspace, &place.home).literal_secrets
}

fn spec(server: ServerDefinition, of_project: bool) -> ConfiguredServer {
    let reach = match server.way {
        ServerTransport::Program { argv, environment, directory, network } => {
            Reach::Program { argv, environment: environment.0, directory, network }
        }
        ServerTransport::Http { url, kind, headers, oauth } => {
            let sign_in = if headers.names("authorization") {
                SignIn::None
            } else {
                SignIn::OAuth { client_id: oauth.client_id, scopes: oauth.scopes, redirect_port: oauth.redirect_port }
            };
            let headers = headers.0.into_iter().map(|(name, value)| Header { name, value }).collect();
            let kind = match kind {
                Kind::Auto => HttpKind::Auto,
                Kind::Streamable => HttpKind::Streamable,
                Kind::Sse => HttpKind::Sse,
            };
            Reach::Http { url, headers, sign_in, kind }
        }
    };
    let spec = Spec {
        name: server.name,
        reach,
        off: server.off,
        of_project,
        plugin: None,
        retry_attempts: server.retry_attempts,
        retry_delay: server.retry_delay,
        start_timeout: server.start_timeout,
        call_timeout: server.call_timeout,
        tool_timeouts: server.tool_timeouts,
    };
    ConfiguredServer { spec, place: server.place }
}
