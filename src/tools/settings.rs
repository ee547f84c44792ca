//! Tool settings: rules from the policy, limits, and state that the calls in a session share.

use super::background::Commands;
use super::editor_buffers::EditorConnection;
use super::read_state::ReadState;
use super::sandbox::SandboxPolicy;
use crate::policy::redact::Redactor;
use crate::policy::{Explanation, Permit, UnaskedConditions};
use crate::ports::{ArtifactUploads, Artifacts, Checkpoints, Diagnostics, MemoryInbox, UserQuestions};
use crate::protocol::{SessionId, TextTools, ToolError};
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
pub(super) type MayUse = Arc<dyn Fn(&str) -> Result<(), ToolError> + Send + Sync>;
pub(super) type MayConnect = Arc<dyn Fn(&str, IpAddr) -> Result<(), String> + Send + Sync>;

/// Settings shared by all tools.
#[derive(Clone)]
pub(crate) struct ToolSettings {
    /// Real path to which relative paths are resolved.
    pub(crate) workspace: PathBuf,
    /// Directory that replaces `~`.
    pub(crate) home: Option<PathBuf>,
    /// Size limit in bytes for reading a file as a whole and for editing it.
    pub(crate) max_file_size_bytes: u64,
    /// Size limit in bytes for a command's output.
    pub(crate) max_output_bytes: usize,
    pub(crate) paths: PathAccess,
    pub(crate) http: HttpAccess,
    /// State that the calls of a session share.
    pub(crate) session: SessionServices,
    pub(crate) command: CommandSettings,
    /// Restrictions that apply to the text tools.
    pub(crate) text: TextTools,
    /// Returns whether the policy grants a capability to any call at all.
    pub(crate) grants: Grants,
    /// Checks whether a tool may be used at all. The error is the reason why not.
    pub(crate) may_use: MayUse,
    /// Redacts secrets in the output of all tools.
    pub(crate) redactor: Arc<Redactor>,
}

/// State and services that the calls of a session share.
#[derive(Clone)]
pub(crate) struct SessionServices {
    /// Session to which the calls belong, or `None` if results are not needed after a crash.
    pub(crate) id: Option<SessionId>,
    /// When the session was started in this process. Ignore rules changed after that cannot turn a file into build
    /// output.
    pub(crate) since: SystemTime,
    /// Running sessions and background commands. Not affected by policy changes.
    pub(crate) commands: Commands,
    /// File content as the model last saw it. Not affected by policy changes.
    pub(crate) seen: ReadState,
    /// Store for snapshots of the workspace that are taken before commands run, or `None` if there is none.
    pub(crate) checkpoints: Option<Arc<dyn Checkpoints>>,
    /// Changes made in the session, or `None` if they are not tracked.
    pub(crate) changes: Option<ChangeLog>,
    /// Store for long output, or `None` if there is none.
    pub(crate) artifacts: Option<Arc<dyn Artifacts>>,
    /// Uploads copies of artifacts to an object store.
    pub(crate) uploads: Option<Arc<dyn ArtifactUploads>>,
    /// The session's web search. Not affected by policy changes.
    pub(crate) search: SessionSearch,
    /// The session's skills. Not affected by policy changes.
    pub(crate) skills: SessionSkills,
    /// Questions that the model asks the user. Not affected by policy changes.
    pub(crate) questions: UserQuestions,
    /// The workspace's memory inbox, or `None` if proposals are not collected.
    pub(crate) memory: Option<Arc<dyn MemoryInbox>>,
    /// The session's hooks, or `None` if there are none.
    pub(crate) hooks: Option<SessionHooks>,
    /// Agents of the session; `None` if it starts none. Unaffected by policy changes.
    pub(crate) agents: Option<SessionAgents>,
    /// Files that are open in an editor, if one is connected. Not affected by policy changes.
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

/// Which paths the policy allows tools and commands to use.
#[derive(Clone)]
pub(crate) struct PathAccess {
    /// Returns whether a search may show this real path. The policy checks where a search starts, and this check hides
    /// the blocked paths below that.
    pub(crate) may_read: MayTouch,
    /// Faster version of `may_read` for the entries of a directory that may itself be shown.
    pub(crate) may_read_entry: Option<MayTouch>,
    /// Returns whether copying or moving a tree may write this real path.
    pub(crate) may_write: MayTouch,
    /// Returns whether deleting or moving a tree may remove this real path.
    pub(crate) may_delete: MayTouch,
    /// Returns whether the user may be asked to let a single command write to this real path outside the workspace.
    pub(crate) may_open: MayTouch,
    /// Returns whether the user may be asked to let a command read this real path outside the workspace.
    pub(crate) may_show: MayTouch,
    /// Returns whether a command may read this real path through a symlink without approval.
    pub(crate) may_follow: MayTouch,
    /// Whether a path may be relative to the workspace.
    pub(crate) relative_paths: bool,
    /// Whether a path may contain symlinks. In either case, the policy checks the target.
    pub(crate) follow_links: bool,
}

/// Which requests and connections the policy allows tools to make, and the client that makes them.
#[derive(Clone)]
pub(crate) struct HttpAccess {
    /// Returns the policy's verdict on a request. Called again for each redirect.
    pub(crate) may_fetch: MayFetch,
    /// Checks whether a connection for this URL may be made to this address.
    pub(crate) may_connect: MayConnect,
    pub(crate) fetcher: Fetcher,
}

/// The branch to which `git commit` would commit, and the number of files in the commit if it is known.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct CommitTarget {
    pub branch: Option<String>,
    pub files: Option<usize>,
}

/// Determines the target of a commit in a directory. The flag is set if the commit includes all changed files that git
/// tracks.
pub(crate) type FindCommitTarget = fn(&Path, bool) -> CommitTarget;

/// The environment in which commands run.
#[derive(Clone)]
pub(crate) struct CommandSettings {
    /// The shell that runs the lines of `RunCommand`.
    pub(crate) shell: Shell,
    pub(crate) environment: EnvironmentSelection,
    /// Names of variables that contain provider keys, which no command can see.
    pub(crate) secret_names: Vec<String>,
    pub(crate) helper: Helper,
    pub(crate) sandbox: SandboxPolicy,
    /// Whether the workspace is a copy without the repository, in which anything that a command writes to `.git` would
    /// be lost.
    pub(crate) git_is_read_only: bool,
    /// Function that finds the target of a commit for its approval prompt, if there is one.
    pub(crate) commit_target: Option<FindCommitTarget>,
}

impl PathAccess {
    /// Returns the check to use for the entries of this directory.
    pub(super) fn may_read_in(&self, directory: &Path) -> MayTouch {
        // If the directory may be shown, so may all directories entered below it.
        let quick = self.may_read_entry.clone().filter(|_| (self.may_read)(directory));
        quick.unwrap_or_else(|| self.may_read.clone())
    }
}

impl ToolSettings {
    /// Returns the settings with a different sandbox for commands.
    pub(super) fn with_sandbox(&self, sandbox: SandboxPolicy) -> Self {
        Self { command: CommandSettings { sandbox, ..self.command.clone() }, ..self.clone() }
    }

    /// Returns the settings with commands restricted to reading.
    pub(super) fn read_only(&self) -> Self {
        self.with_sandbox(self.command.sandbox.clone().read_only())
    }

    /// Returns the settings for an unapproved command that runs in a preview, where its changes are reviewed before
    /// they are applied.
    pub(super) fn for_preview(&self) -> Self {
        self.with_sandbox(SandboxPolicy { unasked: Some(UnaskedConditions::default()), ..self.command.sandbox.clone() })
    }

    /// Returns the settings for a command that runs in a layer before it is approved. Such a command sees no secrets,
    /// and only the core environment variables and those listed by name.
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

    /// Returns the settings for hooks that run in a layer on proposed files. They have no network access even if
    /// commands do, because the files have not been approved yet.
    pub(super) fn for_hooks_in_layer(&self) -> Self {
        let mut layered = self.for_layer();
        layered.command.sandbox.network = NetworkAccess::Proxied;
        layered
    }

    /// Returns the settings for a command that a rule allows by the name of its program.
    pub(super) fn for_named_program(mut self) -> Self {
        self.command.sandbox.unasked = Some(UnaskedConditions { by_name: true, ..UnaskedConditions::default() });
        self
    }

    /// Returns the settings for a call that has this permit.
    pub(super) fn for_permit(&self, permit: &Permit) -> Self {
        let mut settings = if permit.reads_only() { self.read_only() } else { self.clone() };
        let unasked = permit.unasked_conditions();
        settings.command.sandbox.unasked = unasked;
        settings.command.sandbox.narrowed =
            unasked.is_some_and(|unasked| unasked.as_reading) && !self.command.sandbox.is_read_only_view();
        settings
    }
}
