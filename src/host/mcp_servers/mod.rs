//! Manages the MCP servers of a session: offers their tools to the router, waits for their first connection, and shuts
//! them down.

pub(crate) mod connect;
pub(crate) mod specs;
pub(crate) mod token_store;
pub(crate) mod tool_counts;

use super::context::AppContext;
use super::project::ProjectConfig;
use super::server_approval::ServerApproval;
use crate::agent;
use crate::config::servers::reserved_name;
use crate::mcp::{self, ServerChange, Spec};
use crate::policy::Enforcer;
use crate::ports::RemoteServers;
use crate::protocol::{BACKEND_SERVER, ServerState, ServerStatus};
use crate::services::backend_tools::{BackendManifest, WithBackendTools};
use crate::text::file_uri;
use crate::tools::{self, Conflict, Pins, RemoteConfig, Router, ServerLauncher};
use specs::{SpecReloader, reload_specs};
use std::collections::{BTreeMap, HashMap};
use std::fmt::Write;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::sync::watch;
use tool_counts::WithToolCounts;

/// Maximum time that the first request waits for servers whose tools are not cached.
pub(crate) const FIRST_WAIT: Duration = Duration::from_secs(3);
/// Maximum time to wait for servers to exit.
const END_WAIT: Duration = Duration::from_secs(4);
/// Default timeout for a tool call.
const CALL_TIMEOUT: Duration = Duration::from_secs(60);
/// Approximate number of bytes per token.
const BYTES_PER_TOKEN: u64 = 4;
const PERCENT: u64 = 100;
/// Maximum number of tools named in a sentence.
const MAX_NAMED: usize = 5;

/// Handle to the MCP servers. Cheap to clone; all clones share the same servers.
#[derive(Clone)]
pub(crate) struct McpServers {
    port: Arc<WithToolCounts>,
    /// The servers themselves, whose settings may be changed.
    own: mcp::Servers,
    /// Servers that the front end passed and that are not configured in any file.
    passed: Arc<[Spec]>,
    approval: Arc<ServerApproval>,
    launcher: Arc<ServerLauncher>,
    pins: Pins,
    timeouts: Arc<Mutex<HashMap<String, Duration>>>,
    /// Policy that applies to servers when they connect.
    in_force: Arc<Mutex<Enforcer>>,
    /// Tools that were available when the last router was built.
    taken: Arc<Mutex<ToolFingerprints>>,
}

/// MCP servers of a session, and the connections through which the session uses them.
pub(crate) struct SessionServers {
    pub servers: McpServers,
    pub remote: agent::ServerConnections,
    /// Problems with the configuration of the servers.
    pub problems: Vec<String>,
}

/// Prepares connections without starting any servers. `approval` is the approved state that project servers must match,
/// and `person` specifies whether a user is present to answer requests.
pub(crate) fn connect(
    app: &AppContext,
    (specs, mut problems): (Vec<Spec>, Vec<String>),
    policy: &Enforcer,
    settings: impl FnOnce() -> tools::ToolSettings,
    approval: Arc<ServerApproval>,
    person: bool,
) -> SessionServers {
    let backend = backend_tools(app, &specs, &mut problems);
    let mut timeouts = timeouts(&specs);
    timeouts.extend(backend.iter().map(|manifest| (BACKEND_SERVER.to_owned(), WithBackendTools::timeout(manifest))));
    let launcher = Arc::new(ServerLauncher::new(settings()));
    let roots = app.roots.iter().map(|root| (file_uri(root), root_name(root))).collect();
    let in_force = Arc::new(Mutex::new(policy.clone()));
    let judge = Arc::clone(&in_force);
    let samples: agent::SamplingFilter = Arc::new(move |server| {
        let judge = judge.lock().unwrap_or_else(PoisonError::into_inner);
        judge.may_sample(server).is_ok_and(|asks| person || !asks)
    });
    let (asks, asked) = agent::request_handler(person, roots, samples);
    let directory = app.directories.shared.join("mcp");
    let own = connect::servers(app, specs, launcher.clone(), (asks, approval.clone()), directory.join("known"));
    let mut all: Arc<dyn RemoteServers> = Arc::new(own.clone());
    if let Some(manifest) = backend {
        let (environment, credentials) = (app.environment.clone(), app.credentials.clone());
        all = Arc::new(WithBackendTools::new(all, manifest, environment, credentials));
    }
    let port = Arc::new(WithToolCounts::new(all));
    let servers = McpServers {
        port: port.clone(),
        own,
        passed: Vec::new().into(),
        approval,
        launcher,
        pins: Pins::in_directory(directory.join("pins")),
        timeouts: Arc::new(Mutex::new(timeouts)),
        in_force,
        taken: Arc::default(),
    };
    servers.disable_unlisted(policy);
    SessionServers { servers, remote: agent::ServerConnections { servers: port, asked }, problems }
}

/// Returns the back-end tools if they are configured, unless an MCP server uses their name.
fn backend_tools(app: &AppContext, specs: &[Spec], problems: &mut Vec<String>) -> Option<BackendManifest> {
    let path = app.settings.backend_manifest(&app.directories, &app.home)?;
    if specs.iter().any(|spec| spec.name.eq_ignore_ascii_case(BACKEND_SERVER)) {
        problems.push(format!("ignored the back-end tools: an MCP server has the name `{BACKEND_SERVER}`; rename it"));
        return None;
    }
    BackendManifest::read(&path).map_err(|problem| problems.push(problem.one_line())).ok()
}

/// Adds the servers passed by a front end. If a server in the settings has the same name, that server takes precedence.
pub(crate) fn add_passed(passed: &[Spec], specs: &mut Vec<Spec>, problems: &mut Vec<String>) {
    for spec in passed {
        if let Some((_, owner)) = reserved_name(&spec.name) {
            problems.push(format!("ignored the MCP server `{}`: the name is reserved for {owner}", spec.name));
        } else if specs.iter().any(|known| known.name.eq_ignore_ascii_case(&spec.name)) {
            problems.push(format!("ignored the MCP server `{}`: the settings already have one with this name", spec.name));
        } else {
            specs.push(spec.clone());
        }
    }
}

fn timeouts(specs: &[Spec]) -> HashMap<String, Duration> {
    specs.iter().map(|spec| (spec.name.clone(), spec.call_timeout)).collect()
}

fn unlisted_reason(server: &str) -> String {
    format!("the policy lists none of its tools; run `aye mcp allow {server}`, and each call then needs approval")
}

impl McpServers {
    /// Sets the servers that the front end passed.
    pub(crate) fn set_passed(&mut self, passed: Vec<Spec>) {
        self.passed = passed.into();
    }

    /// Applies a policy, and returns the MCP servers to use in a toolset under this policy.
    pub(crate) fn offer(&self, app: &AppContext, policy: &Enforcer, settings: &tools::ToolSettings) -> RemoteConfig {
        self.launcher.set_settings(settings.clone());
        self.disable_unlisted(policy);
        policy.clone_into(&mut self.in_force.lock().unwrap_or_else(PoisonError::into_inner));
        *self.taken.lock().unwrap_or_else(PoisonError::into_inner) = self.current_tools();
        let counts = policy.clone();
        self.port.set_policy(Arc::new(move |server, tool| counts.lists(server, tool, jiff::Timestamp::now()).is_ok()));
        self.offer_to_agent(app, policy)
    }

    /// Returns the tools that an agent of the session may use under the agent's own policy. The servers themselves are
    /// unaffected.
    pub(crate) fn offer_to_agent(&self, app: &AppContext, policy: &Enforcer) -> RemoteConfig {
        let judge = policy.clone();
        let timeouts = Arc::clone(&self.timeouts);
        let percent = app.settings.tools.defer_over_percent;
        let tokens = self.port.window().borrow().saturating_mul(percent) / PERCENT;
        RemoteConfig {
            servers: self.port.clone(),
            conflict: match app.settings.tools.conflict.as_str() {
                "mcp-first" => Conflict::McpFirst,
                "error" => Conflict::Error,
                _ => Conflict::LocalFirst,
            },
            may_invoke: Arc::new(move |server, tool| {
                let listed = judge.lists(server, tool, jiff::Timestamp::now());
                listed.map_err(|denial| format!("{} (rule: {})", denial.reason, denial.rule))
            }),
            pins: Some(self.pins.clone()),
            // Without the tool that loads other tools, offer all tools.
            max_bytes: policy
                .offers(tools::FIND_TOOLS)
                .is_ok()
                .then(|| usize::try_from(tokens.saturating_mul(BYTES_PER_TOKEN)).unwrap_or(usize::MAX)),
            timeout: Arc::new(move |server, _| {
                timeouts.lock().unwrap_or_else(PoisonError::into_inner).get(server).copied().unwrap_or(CALL_TIMEOUT)
            }),
        }
    }

    /// Reloads the user's server settings and the project's trusted settings. Returns messages about changes and about
    /// problems.
    pub(crate) fn read_again(&self, app: &AppContext, project: &ProjectConfig) -> (Vec<String>, Vec<String>) {
        let SpecReloader { mut specs, mut problems, trusted } = reload_specs(app, project);
        add_passed(&self.passed, &mut specs, &mut problems);
        if let Some(known) = trusted {
            self.approval.update(known);
        }
        let mut all = self.timeouts.lock().unwrap_or_else(PoisonError::into_inner);
        let of_backend = all.remove(BACKEND_SERVER);
        *all = timeouts(&specs);
        all.extend(of_backend.map(|timeout| (BACKEND_SERVER.to_owned(), timeout)));
        drop(all);
        let off: HashMap<String, String> = specs.iter().filter_map(|spec| Some((spec.name.clone(), spec.off.clone()?))).collect();
        let told = |(name, entry): (String, ServerChange)| match (entry, off.get(&name)) {
            (ServerChange::Removed, _) => format!("{name} (MCP): removed from the settings"),
            (ServerChange::Added, None) => format!("{name} (MCP): added to the settings"),
            (ServerChange::Changed, None) => format!("{name} (MCP): its settings changed; restarting the server"),
            (ServerChange::Added | ServerChange::Changed, Some(why)) => {
                format!("{name} (MCP): its settings changed; the server is off: {why}")
            }
        };
        let changes = self.own.replace(specs);
        if !changes.is_empty() {
            let policy = self.in_force.lock().unwrap_or_else(PoisonError::into_inner).clone();
            self.disable_unlisted(&policy);
            self.discover();
        }
        (changes.into_iter().map(told).collect(), problems)
    }

    /// Disables the servers of which no tool is listed, and enables all other servers.
    fn disable_unlisted(&self, policy: &Enforcer) {
        self.port.disable_unlisted(&|server| (!policy.lists_any(server)).then(|| unlisted_reason(server)));
    }

    /// Sets the size of the model's context window in tokens, which limits the total size of tool definitions.
    pub(crate) fn set_context_window(&self, window_tokens: u64) {
        self.port.set_context_window(window_tokens);
    }

    pub(crate) fn changed(&self) -> watch::Receiver<u64> {
        self.port.changed()
    }

    /// Returns a receiver that is notified when the size of the context window changes.
    pub(crate) fn window(&self) -> watch::Receiver<u64> {
        self.port.window()
    }

    /// Starts connecting to servers whose tools are not cached, and returns immediately.
    pub(crate) fn discover(&self) {
        self.port.discover();
    }

    /// Connects to servers whose tools are not cached, and waits for them for at most `most`. Returns messages about
    /// servers that did not connect in time.
    pub(crate) async fn connect_unknown(&self, most: Duration) -> Vec<String> {
        let mut changed = self.changed();
        self.discover();
        let starting = |status: &ServerStatus| status.state == ServerState::Starting;
        let settled = async {
            while self.port.statuses().iter().any(starting) {
                if changed.changed().await.is_err() {
                    return;
                }
            }
        };
        if self.port.statuses().iter().any(starting) {
            let _ = tokio::time::timeout(most, settled).await;
        }
        self.port.statuses().iter().filter_map(missing_reason).collect()
    }

    pub(crate) async fn end(&self) {
        let _ = tokio::time::timeout(END_WAIT, self.port.end()).await;
    }

    /// Returns the tools that were available when the last router was built.
    pub(crate) fn tools_at_last_router(&self) -> ToolFingerprints {
        self.taken.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Returns the tools that are currently available, for comparison at a later time.
    pub(crate) fn current_tools(&self) -> ToolFingerprints {
        let mut all = ToolFingerprints::new();
        for tool in self.port.tools().iter() {
            all.entry(tool.server.clone()).or_default().insert(tool.name.clone(), tool.fingerprint.clone());
        }
        all
    }
}

/// Returns why the tools of a server are missing.
fn missing_reason(status: &ServerStatus) -> Option<String> {
    let name = &status.name;
    let server = format!("the MCP server `{name}`");
    match &status.state {
        // A server that is off is off on purpose; `aye mcp list` shows the reason.
        ServerState::Ready | ServerState::Asleep | ServerState::Off { .. } => None,
        ServerState::Starting => Some(format!("{server} is still starting; its tools become available when it is ready")),
        ServerState::NeedsLogin => Some(format!("{server} requires sign-in; run `aye mcp login {name}`")),
        ServerState::Unreachable { why } => Some(format!("{server} is unreachable: {why}")),
    }
}

/// Tools of each server, with their fingerprints.
pub(crate) type ToolFingerprints = BTreeMap<String, BTreeMap<String, String>>;

/// Returns one line for each server that changed, such as `docs: 3 tools` or `docs: 4 tools; new: search`.
pub(crate) fn difference(before: &ToolFingerprints, now: &ToolFingerprints, router: &Router) -> Vec<String> {
    let counts = router.remote().map(tools::RemoteTools::counts).unwrap_or_default();
    let nothing = BTreeMap::new();
    let servers: std::collections::BTreeSet<&String> = before.keys().chain(now.keys()).collect();
    let told = |server: &String| {
        let (old, new) = (before.get(server).unwrap_or(&nothing), now.get(server).unwrap_or(&nothing));
        if old == new {
            return None;
        }
        let (listed, unlisted) =
            counts.iter().find(|(name, ..)| name == server).map_or((new.len(), 0), |(_, yes, no)| (*yes, *no));
        let mut words = format!("{server}: {listed} {}", if listed == 1 { "tool" } else { "tools" });
        if unlisted > 0 {
            let are = if unlisted == 1 { "is" } else { "are" };
            let _ = write!(words, " ({unlisted} more {are} not listed by the policy)");
        }
        if !old.is_empty() {
            let names = |what: &str, names: Vec<&String>| {
                let more = names.len().saturating_sub(MAX_NAMED);
                let more = if more > 0 { format!(" and {more} more") } else { String::new() };
                let shown: Vec<&str> = names.iter().take(MAX_NAMED).map(|name| name.as_str()).collect();
                if shown.is_empty() { String::new() } else { format!("; {what}: {}{more}", shown.join(", ")) }
            };
            words.push_str(&names("new", new.keys().filter(|name| !old.contains_key(*name)).collect()));
            words.push_str(&names("removed", old.keys().filter(|name| !new.contains_key(*name)).collect()));
            let changed = new.iter().filter(|(name, print)| old.get(*name).is_some_and(|before| before != *print));
            words.push_str(&names("changed, asking again", changed.map(|(name, _)| name).collect()));
        }
        Some(words)
    };
    servers.into_iter().filter_map(told).collect()
}

fn root_name(root: &Path) -> String {
    root.file_name().map_or_else(|| "/".to_owned(), |name| name.to_string_lossy().into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn roots_are_sent_as_percent_encoded_file_uris() {
        assert_eq!(file_uri(Path::new("/home/me/a b/größe%")), "file:///home/me/a%20b/gr%C3%B6%C3%9Fe%25");
        assert_eq!(root_name(Path::new("/home/me/a b")), "a b");
        assert_eq!(root_name(Path::new("/")), "/");
    }

    #[test]
    fn unavailable_servers_are_reported_with_a_reason_or_fix() {
        let of = |state: ServerState| {
            let (name, reached_by) = ("docs".to_owned(), String::new());
            missing_reason(&ServerStatus { name, reached_by, state, tools: 0, offered: 0, of_project: false, notes: Vec::new() })
        };
        assert_eq!(of(ServerState::Ready), None);
        assert_eq!(of(ServerState::Asleep), None);
        assert_eq!(of(ServerState::Off { why: unlisted_reason("docs") }), None);
        assert!(unlisted_reason("docs").contains("run `aye mcp allow docs`"));
        for (state, part) in [
            (ServerState::Starting, "still starting"),
            (ServerState::NeedsLogin, "aye mcp login docs"),
            (ServerState::Unreachable { why: "connection refused".to_owned() }, "connection refused"),
        ] {
            assert!(of(state).is_some_and(|told| told.contains("`docs`") && told.contains(part)), "{part}");
        }
    }
}
