//! Settings of the tools: rules of the policy, limits, and state shared by the calls of a session.

use super::background::Commands;
use super::editor_buffers::EditorConnection;
use super::read_state::ReadState;
use super::sandbox::SandboxPolicy;
use crate::policy::redact::Redactor;
use crate::policy::{Explanation, Permit, UnaskedConditions};
use crate::ports::{ArtifactUploads, Artifacts, Checkpoints, Diagnostics, MemoryInbox, UserQuestions};
use crate::protocol::{SessionId, TextTools};
use crate::sys::http::fetch::Fetcher;
use crate::sys::process::{EnvironmentSelection, Helper, Shell};
use crate::sys::sandbox::NetworkAccess;
use crate::tools::change_log::ChangeLog;
use crate::tools::session_agents::SessionAgents;
use crate::tools::session_hooks::SessionHooks;
use crate::tools::session_search::SessionSearch;
use crate::tools::session_skills::SessionSkills;
use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::SystemTime;

pub(super) type MayTouch = Arc<dyn Fn(&Path) -> bool + Send + Sync>;
pub(super) type MayFetch = Arc<dyn Fn(&str, &str) -> Explanation + Send + Sync>;
pub(super) type Grants = Arc<dyn Fn(&str) -> bool + Send + Sync>;
pub(super) type MayUse = Arc<dyn Fn(&str) -> Result<(), String> + Send + Sync>;
pub(super) type MayConnect = Arc<dyn Fn(&str, IpAddr) -> Result<(), String> + Send + Sync>;

/// Settings shared by all tools.
#[derive(Clone)]
pub(crate) struct ToolSettings {
    /// Real path against which relative paths are resolved.
    pub(crate) workspace: PathBuf,
    /// Replacement for `~`.
    pub(crate) home: Option<PathBuf>,
    /// Size limit in bytes for reading a whole file and for editing.
    pub(crate) max_file_size_bytes: u64,
    /// Size limit in bytes for the output of a command.
    pub(crate) max_output_bytes: usize,
    pub(crate) paths: PathAccess,
    pub(crate) http: HttpAccess,
    /// State that the calls of a session share.
    pub(crate) session: SessionServices,
    pub(crate) command: CommandSettings,
    /// Restrictions of the text tools.
    pub(crate) text: TextTools,
    /// Whether the policy grants a capability to any call.
    pub(crate) grants: Grants,
    /// Whether a tool may be used at all, or the reason why it may not.
    pub(crate) may_use: MayUse,
    /// Redacts secrets in all tool output.
    pub(crate) redactor: Arc<Redactor>,
}

/// State and services that the calls of a session share.
#[derive(Clone)]
pub(crate) struct SessionServices {
    /// Session of the calls; `None` if results are not needed after a crash.
    pub(crate) id: Option<SessionId>,
    /// Start of the session in this process. Ignore rules from later times do not make a file build output.
    pub(crate) since: SystemTime,
    /// Running sessions and background commands; unaffected by policy changes.
    pub(crate) commands: Commands,
    /// File content last seen by the model; unaffected by policy changes.
    pub(crate) seen: ReadState,
    /// Store for workspace snapshots before commands; `None` if there is none.
    pub(crate) checkpoints: Option<Arc<dyn Checkpoints>>,
    /// Changes made in the session; `None` if they are not tracked.
    pub(crate) changes: Option<ChangeLog>,
    /// Store for long output; `None` if there is none.
    pub(crate) artifacts: Option<Arc<dyn Artifacts>>,
    /// Copies of the artifacts in an object store.
    pub(crate) uploads: Option<Arc<dyn ArtifactUploads>>,
    /// Web search of the session; unaffected by policy changes.
    pub(crate) search: SessionSearch,
    /// Skills of the session; unaffected by policy changes.
    pub(crate) skills: SessionSkills,
    /// Questions from the model to the user; unaffected by policy changes.
    pub(crate) questions: UserQuestions,
    /// Memory inbox of the workspace; `None` if proposals are not collected.
    pub(crate) memory: Option<Arc<dyn MemoryInbox>>,
    /// Hooks of the session; `None` if there are none.
    pub(crate) hooks: Option<SessionHooks>,
    /// Agents of the session; `None` if it starts none. Unaffected by policy changes.
    pub(crate) agents: Option<SessionAgents>,
    /// Files open in an editor, if one is connected; unaffected by policy changes.
    pub(crate) editor: Option<EditorConnection>,
    /// Language servers of the session; `None` without trust, or if they are disabled. Unaffected by policy changes.
    pub(crate) diagnostics: Option<Arc<dyn Diagnostics>>,
}

impl SessionServices {
    /// Returns the state of calls without a session: nothing is stored, and no user answers.
    pub(crate) fn detached() -> Self {
        Self {
            id: None,
            since: SystemTime::now(),
            commands: Commands::default(),
            seen: ReadState::default(),
            checkpoints: None,
            changes: None,
            artifacts: None,
            uploads: None,
            search: SessionSearch::default(),
            skills: SessionSkills::default(),
            questions: UserQuestions::without_user(),
            memory: None,
            hooks: None,
            agents: None,
            editor: None,
            diagnostics: None,
        }
    }
}

/// Paths that the policy allows tools and commands to use.
#[derive(Clone)]
pub(crate) struct PathAccess {
    /// Whether a search may show this real path. The policy judges where a search starts; this check hides blocked
    /// paths below it.
    pub(crate) may_read: MayTouch,
    /// Faster version of `may_read` for the entries of a directory that may be shown.
    pub(crate) may_read_entry: Option<MayTouch>,
    /// Whether a copied or moved tree may write this real path.
    pub(crate) may_write: MayTouch,
    /// Whether a deleted or moved tree may remove this real path.
    pub(crate) may_delete: MayTouch,
    /// Whether the user may be asked to let one command write this real path outside the workspace.
    pub(crate) may_open: MayTouch,
    /// Whether the user may be asked to let a command read this real path outside the workspace.
    pub(crate) may_show: MayTouch,
    /// Whether a command may read this real path through a symlink without approval.
    pub(crate) may_follow: MayTouch,
    /// Whether a path may be relative to the workspace.
    pub(crate) relative_paths: bool,
    /// Whether a path may contain symlinks. The target is judged in either case.
    pub(crate) follow_links: bool,
}

/// Requests and connections that the policy allows tools to make, and the client that makes them.
#[derive(Clone)]
pub(crate) struct HttpAccess {
    /// Verdict of the policy on a request, checked again for each redirect.
    pub(crate) may_fetch: MayFetch,
    /// Whether a connection for this URL may be opened to this address.
    pub(crate) may_connect: MayConnect,
    pub(crate) fetcher: Fetcher,
}

/// Execution environment of commands.
#[derive(Clone)]
pub(crate) struct CommandSettings {
    /// The shell for the lines of RunCommand.
    pub(crate) shell: Shell,
    pub(crate) environment: EnvironmentSelection,
    /// Names of variables with provider keys, which no command sees.
    pub(crate) secret_names: Vec<String>,
    pub(crate) helper: Helper,
    pub(crate) sandbox: SandboxPolicy,
    /// Whether this is a copy of the workspace without the repository. Writes of a command to `.git` would be lost.
    pub(crate) git_is_read_only: bool,
}

impl PathAccess {
    /// Returns the check for showing entries of this directory.
    pub(super) fn may_read_in(&self, directory: &Path) -> MayTouch {
        // If the directory itself may be shown, so may all entered ones.
        let quick = self.may_read_entry.clone().filter(|_| (self.may_read)(directory));
        quick.unwrap_or_else(|| self.may_read.clone())
    }
}

impl ToolSettings {
    /// Returns the settings with another sandbox for commands.
    pub(super) fn with_sandbox(&self, sandbox: SandboxPolicy) -> Self {
        Self { command: CommandSettings { sandbox, ..self.command.clone() }, ..self.clone() }
    }

    /// Returns the settings with commands limited to reading.
    pub(super) fn read_only(&self) -> Self {
        self.with_sandbox(self.command.sandbox.clone().read_only())
    }

    /// Returns the settings for an unapproved command in a preview, whose changes are reviewed before they are applied.
    pub(super) fn for_preview(&self) -> Self {
        self.with_sandbox(SandboxPolicy { unasked: Some(UnaskedConditions::default()), ..self.command.sandbox.clone() })
    }

    /// Returns the settings for a command that runs in a layer before approval. It sees no secrets, and only the usual
    /// variables.
    pub(super) fn for_layer(&self) -> Self {
        let mut layered = self.for_preview();
        layered.command.sandbox.layered = true;
        layered.command.environment = match layered.command.environment {
            EnvironmentSelection::Inherit | EnvironmentSelection::Core => EnvironmentSelection::Core,
            EnvironmentSelection::Listed(names)
            | EnvironmentSelection::InheritOf(names)
            | EnvironmentSelection::CoreOf(names) => EnvironmentSelection::CoreOf(names),
        };
        layered
    }

    /// Returns the settings for hooks that run in a layer with proposed files. They have no network even if commands
    /// do, because the files are not approved yet.
    pub(super) fn for_hooks_in_layer(&self) -> Self {
        let mut layered = self.for_layer();
        layered.command.sandbox.network = NetworkAccess::Proxied;
        layered
    }

    /// Returns the settings for a command that a rule identifies by the name of its program.
    pub(super) fn for_named_program(mut self) -> Self {
        self.command.sandbox.unasked = Some(UnaskedConditions { by_name: true, ..UnaskedConditions::default() });
        self
    }

    /// Returns the settings for a call with this permit.
    pub(super) fn for_permit(&self, permit: &Permit) -> Self {
        let mut settings = if permit.reads_only() { self.read_only() } else { self.clone() };
        let unasked = permit.unasked_conditions();
        settings.command.sandbox.unasked = unasked;
        settings.command.sandbox.narrowed =
            unasked.is_some_and(|unasked| unasked.as_reading) && !self.command.sandbox.is_read_only_view();
        settings
    }
}
