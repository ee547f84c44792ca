//! Watches the policy files during a session and reloads them when they change. If a file is invalid, the last valid
//! policy remains in effect.

use super::agent_authority::ParentSession;
use super::configured_tools::own_directory;
use super::context::AppContext;
use super::error::CliError;
use super::mcp_servers;
use super::mcp_servers::{McpServers, ToolFingerprints};
use super::offered_tools;
use super::policy_layers::Policy;
use super::project::ProjectConfig;
use super::sandbox_host::SandboxHost;
use super::server_approval::SERVERS;
use super::session::{Session, SharedToolState};
use super::tool_name_lints::{find_misnamed, find_unmatched};
use crate::agent::{OfferedTools, PolicyChange, PolicyUpdate, PolicyUpdates, ReloadRequest};
use crate::config::trust::directory_name;
use crate::protocol::Mode;
use crate::sys::watch::Watch;
use crate::tools::{RemoteTools, Router};
use std::path::PathBuf;
use std::sync::Arc;
use tokio::sync::{mpsc, oneshot, watch};

/// Capacity of the channel for updates.
const DEPTH: usize = 4;
/// Policy file of the project. Changes to it are reported but not applied.
const PROJECT_FILE: &str = ".aye/policy.toml";

pub(crate) struct PolicyReloader {
    app: AppContext,
    file: Option<PathBuf>,
    project: ProjectConfig,
    /// State shared by the tools of the session.
    kept: SharedToolState,
    /// Error in a policy file that was reported last.
    broken: Option<String>,
    project_reported: bool,
    /// Error in the settings that was reported last.
    broken_settings: Option<String>,
    /// Problems with manifests that have already been reported.
    reported: Vec<String>,
    /// Policy that is in effect.
    policy: Policy,
    modes: watch::Receiver<Mode>,
    updates: mpsc::Sender<PolicyUpdate>,
    requests: mpsc::UnboundedReceiver<ReloadRequest>,
    standing: SandboxHost,
    /// Number of times that tools have been loaded on demand. Subscribed from the start, so that no change is missed.
    loads: watch::Receiver<u64>,
    /// Tools of MCP servers that were reported last, and the last notices about them.
    offered: ToolFingerprints,
    reported_servers: Vec<String>,
    /// Names in the settings and the policy that match no tool, as reported last.
    reported_names: Vec<String>,
}

/// Event that triggers a reload.
#[derive(Clone, Copy, PartialEq, Eq)]
enum ReloadTrigger {
    Person,
    Change,
    /// The mode changed, which affects the sandbox, or a new key must be redacted. No files are read.
    ModeOrKey,
    /// MCP servers offer different tools or have changed state, or an instruction file is ignored.
    OtherTools,
    /// The permissions of the parent session have changed.
    Authority,
}

/// Waits until a watched file changes. Never completes if there is no watch.
async fn changed(watch: &mut Option<Watch>) -> std::io::Result<()> {
    match watch {
        Some(watch) => watch.wait_for_change().await,
        None => std::future::pending().await,
    }
}

/// Waits until the permissions of the parent session change. Never completes if there is no parent.
async fn authority_changed(parent: &mut Option<ParentSession>) {
    match parent {
        Some(parent) => parent.changed().await,
        None => std::future::pending().await,
    }
}

/// Waits for the next change. Never completes if there is no source of changes.
async fn next(changed: &mut Option<watch::Receiver<u64>>) {
    if let Some(open) = changed
        && open.changed().await.is_ok()
    {
        return;
    }
    *changed = None;
    std::future::pending::<()>().await;
}

/// Returns notices about names that match no tool. Those in `reported` are omitted, because they come from manifests
/// and are reported together with the tools.
fn names_without_tool(app: &AppContext, policy: &Policy, reported: &[String], unmatched: &[String]) -> Vec<String> {
    let named = find_misnamed(app, policy).into_iter().filter(|notice| !reported.contains(notice));
    named.chain(unmatched.iter().cloned()).collect()
}

impl PolicyReloader {
    /// Creates the reloader, together with the receivers for the session.
    pub(crate) fn new(
        app: AppContext,
        file: Option<PathBuf>,
        project: ProjectConfig,
        session: &Session,
        policy: &Policy,
        standing: SandboxHost,
    ) -> (Self, PolicyUpdates) {
        let (updates, receive) = mpsc::channel(DEPTH);
        let (reload, requests) = mpsc::unbounded_channel();
        let (modes, mode) = watch::channel(app.mode);
        let reported = app.tools.notices();
        let reported_names = names_without_tool(&app, policy, &reported, &session.unmatched_names);
        let follower = Self {
            app,
            file,
            project,
            loads: session.kept.loaded_tools().watch(),
            kept: session.kept.clone(),
            policy: policy.clone(),
            modes: mode,
            broken: None,
            project_reported: false,
            broken_settings: None,
            reported,
            updates,
            requests,
            standing,
            offered: session.kept.servers().map(McpServers::tools_at_last_router).unwrap_or_default(),
            reported_servers: Vec::new(),
            reported_names,
        };
        (follower, PolicyUpdates { updates: receive, reload, modes })
    }

    /// Returns a sender through which notices can be sent to the session.
    pub(crate) fn notices(&self) -> mpsc::Sender<PolicyUpdate> {
        self.updates.clone()
    }

    /// Returns the files that must be watched.
    fn files(&self) -> Vec<PathBuf> {
        let sources = self.app.sources(self.file.as_deref());
        let mut files: Vec<PathBuf> = sources.files();
        if self.project.is_trusted() {
            files.push(self.app.workspace.join(PROJECT_FILE));
            files.push(self.app.workspace.join(SERVERS));
            let own = directory_name(&self.app.workspace);
            // If the user trusts the project later, the decision is saved there.
            files.push(self.app.directories.config.join("projects").join(own).join("trust.toml"));
        }
        files.push(self.app.directories.config_file());
        files
    }

    /// Reloads files as necessary until the session ends.
    pub(crate) async fn run(mut self) {
        let mut watch = match Watch::with_directories(self.files(), vec![own_directory(&self.app.directories)]) {
            Ok(watch) => Some(watch),
            Err(error) => {
                tracing::warn!(%error, "cannot watch the policy files");
                None
            }
        };
        let servers = self.kept.servers().cloned();
        let mut searches = Some(self.kept.search().changes());
        let (mut other_tools, mut loads) = (servers.as_ref().map(McpServers::changed), Some(self.loads.clone()));
        // Number of tool loads that the next update includes.
        let mut included = None;
        let mut window = servers.as_ref().map(McpServers::window);
        // The first reload includes changes since the start.
        let mut trigger = ReloadTrigger::Change;
        let mut waits: Option<oneshot::Sender<()>> = None;
        loop {
            let mut updates = if trigger == ReloadTrigger::OtherTools { Vec::new() } else { self.collect_updates(trigger) };
            updates.extend(self.server_updates());
            updates.extend(self.project.unread_reports().take().into_iter().map(|message| PolicyUpdate::Notice { message }));
            for update in updates {
                if self.updates.send(update).await.is_err() {
                    return;
                }
            }
            if let Some(waits) = waits.take() {
                // Ignored if the requester is gone.
                let _ = waits.send(());
            }
            if let Some(included) = included.take() {
                self.kept.loaded_tools().mark_offered(included);
            }
            let unread = self.project.unread_reports();
            trigger = tokio::select! {
                event = changed(&mut watch) => {
                    if let Err(error) = event {
                        tracing::warn!(%error, "stopped watching the policy files");
                        watch = None;
                    }
                    ReloadTrigger::Change
                }
                Some(request) = self.requests.recv() => {
                    let (trigger, asker) = match request {
                        ReloadRequest::Files(asker) => (ReloadTrigger::Person, asker),
                        ReloadRequest::ServerTools(asker) => (ReloadTrigger::OtherTools, asker),
                    };
                    waits = Some(asker);
                    trigger
                }
                Ok(()) = self.modes.changed() => ReloadTrigger::ModeOrKey,
                () = self.kept.new_key() => ReloadTrigger::ModeOrKey,
                () = self.app.credentials.wait_for_new_secret() => ReloadTrigger::ModeOrKey,
                () = next(&mut other_tools) => ReloadTrigger::OtherTools,
                () = unread.wait_for_report() => ReloadTrigger::OtherTools,
                // A tool was loaded, so the next request offers it.
                () = next(&mut loads) => { included = Some(*self.loads.borrow()); ReloadTrigger::ModeOrKey }
                // The model changed: its provider's search and its context window determine which tools are offered.
                () = next(&mut searches) => ReloadTrigger::ModeOrKey,
                () = next(&mut window) => ReloadTrigger::ModeOrKey,
                () = authority_changed(&mut self.app.parent) => ReloadTrigger::Authority,
                () = self.updates.closed() => return,
            };
        }
    }

    fn collect_updates(&mut self, trigger: ReloadTrigger) -> Vec<PolicyUpdate> {
        self.app.mode = *self.modes.borrow();
        if let (ReloadTrigger::Authority, Some(parent)) = (trigger, &self.app.parent) {
            self.policy = parent.policy();
        }
        if matches!(trigger, ReloadTrigger::ModeOrKey | ReloadTrigger::Authority) {
            return vec![self.update_for(&self.policy, None)];
        }
        let mut updates = Vec::new();
        if self.project.is_trusted() && self.project.policy_changed() {
            if !std::mem::replace(&mut self.project_reported, true) || trigger == ReloadTrigger::Person {
                let message = "the project's policy changed; the version you trusted stays in effect. Restart aye to \
                    review the change";
                updates.push(PolicyUpdate::Notice { message: message.to_owned() });
            }
        } else {
            self.project_reported = false;
        }
        let message = self.tools(&mut updates);
        self.servers(&mut updates);
        let policy = match self.read() {
            Ok(policy) => {
                self.on_valid(&policy, trigger).or_else(|| message.map(|message| self.update_for(&self.policy, Some(&message))))
            }
            Err(trouble) => {
                // Keep the last valid policy, with the current tools.
                updates.extend(message.map(|message| self.update_for(&self.policy, Some(&message))));
                self.on_invalid(&trouble.into_problem().detailed_message(), trigger)
            }
        };
        updates.extend(policy);
        if updates.iter().any(|update| matches!(update, PolicyUpdate::Accepted { .. })) {
            updates.extend(self.unmatched_names().into_iter().map(|message| PolicyUpdate::Notice { message }));
        }
        updates
    }

    /// Returns notices about names that match no tool, omitting those already reported.
    fn unmatched_names(&mut self) -> Vec<String> {
        let enforcer = self.standing.enforcer(&self.app, &self.policy);
        let sandbox_policy = self.standing.sandbox_policy(&enforcer);
        let router = Router::new(self.kept.toolset(&self.app, &enforcer, sandbox_policy));
        let unmatched = find_unmatched(&self.app.tools.limits, &router);
        let now = names_without_tool(&self.app, &self.policy, &self.reported, &unmatched);
        let new = now.iter().filter(|notice| !self.reported_names.contains(notice)).cloned().collect();
        self.reported_names = now;
        new
    }

    /// Returns updates if the tools of MCP servers have changed.
    fn server_updates(&mut self) -> Vec<PolicyUpdate> {
        let Some(now) = self.kept.servers().map(McpServers::current_tools).filter(|now| *now != self.offered) else {
            return Vec::new();
        };
        let before = std::mem::replace(&mut self.offered, now);
        let (update, router) = self.with_router(&self.policy, None);
        let mut notices = mcp_servers::difference(&before, &self.offered, &router);
        let of_tools = router.remote().map(RemoteTools::notices).unwrap_or_default().into_iter();
        let new: Vec<String> = of_tools.filter(|notice| !self.reported_servers.contains(notice)).collect();
        self.reported_servers.extend(new.iter().cloned());
        notices.extend(new);
        notices.extend(self.unmatched_names());
        notices.into_iter().map(|message| PolicyUpdate::Notice { message }).chain([update]).collect()
    }

    /// Reloads the settings and manifests, and returns a description of the changes. Repeated errors are reported only
    /// once.
    fn tools(&mut self, updates: &mut Vec<PolicyUpdate>) -> Option<String> {
        let changed = match self.app.reload_project_parts(&self.project) {
            Ok(changed) => {
                let mended = self.broken_settings.take().is_some();
                changed.or_else(|| mended.then(|| format!("tools reloaded ({})", self.app.tools.names())))
            }
            Err(error) => {
                let message = error.to_string();
                if self.broken_settings.replace(message.clone()).as_ref() != Some(&message) {
                    let message = format!("{message}\nthe previous tool settings apply until this is fixed");
                    updates.push(PolicyUpdate::Notice { message });
                }
                return None;
            }
        };
        let problems = self.app.tools.notices();
        let new = problems.iter().filter(|problem| !self.reported.contains(problem));
        updates.extend(new.map(|message| PolicyUpdate::Notice { message: message.clone() }));
        self.reported = problems;
        changed
    }

    /// Reloads the settings of MCP servers and reports changes. The tools are updated later, when the servers report
    /// them.
    fn servers(&mut self, updates: &mut Vec<PolicyUpdate>) {
        let Some(servers) = self.kept.servers().cloned() else { return };
        let (changes, problems) = servers.read_again(&self.app, &self.project);
        let new: Vec<String> = problems.into_iter().filter(|problem| !self.reported_servers.contains(problem)).collect();
        self.reported_servers.extend(new.iter().cloned());
        updates.extend(changes.into_iter().chain(new).map(|message| PolicyUpdate::Notice { message }));
    }

    fn read(&self) -> Result<Policy, CliError> {
        let policy = self.app.policy(self.file.as_deref(), Some(&self.project))?;
        policy.validate_for_session(Some(self.kept.session()))?;
        Ok(policy)
    }

    fn on_valid(&mut self, policy: &Policy, trigger: ReloadTrigger) -> Option<PolicyUpdate> {
        let mended = self.broken.take().is_some();
        if policy.print == self.policy.print && !mended && trigger == ReloadTrigger::Change {
            return None;
        }
        self.policy = policy.clone();
        Some(self.update_for(policy, Some("policy reloaded")))
    }

    /// Returns an update that contains the policy in the current mode and the tools under this policy.
    fn update_for(&self, policy: &Policy, message: Option<&str>) -> PolicyUpdate {
        self.with_router(policy, message).0
    }

    fn with_router(&self, policy: &Policy, message: Option<&str>) -> (PolicyUpdate, Arc<Router>) {
        let enforcer = self.standing.enforcer(&self.app, policy);
        self.kept.set_authority(policy, &enforcer);
        let sandbox_policy = self.standing.sandbox_policy(&enforcer);
        sandbox_policy.start_scan();
        let sandbox = self.standing.describe(&sandbox_policy);
        let mut sandbox_status = self.standing.status(&sandbox_policy, &enforcer);
        if message.is_none() {
            // The missing features were already reported.
            sandbox_status.missing = None;
        }
        let tools = self.kept.toolset(&self.app, &enforcer, sandbox_policy);
        let redactor = tools.settings().redactor.clone();
        let router = Router::new(tools);
        let layers = enforcer.layers().iter().map(ToString::to_string).collect::<Vec<_>>().join(", ");
        let change = PolicyChange {
            tools: OfferedTools {
                definitions: offered_tools::tools_for_model(&router, &enforcer).into(),
                names: offered_tools::available(&router, &enforcer),
            },
            sandbox,
            sandbox_status,
            name: policy.name.clone(),
            message: message.map(|message| format!("{message}: {layers}")),
            enforcer,
        };
        let router = Arc::new(router);
        (PolicyUpdate::Accepted { change: Box::new(change), router: router.clone(), redactor }, router)
    }

    fn on_invalid(&mut self, message: &str, trigger: ReloadTrigger) -> Option<PolicyUpdate> {
        let known = self.broken.replace(message.to_owned()).is_some_and(|before| before == message);
        if known && trigger == ReloadTrigger::Change {
            return None;
        }
        let message = format!("{message}\nthe previous policy applies until this is fixed");
        Some(PolicyUpdate::Rejected { message })
    }
}
