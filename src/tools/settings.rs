//! Settings of the tools: the rules of the policy, limits, and what a session shares between its calls.

use super::background::Commands;
use super::editor_buffers::InEditor;
use super::read_state::ReadState;
use super::sandbox::SandboxPolicy;
use crate::policy::redact::Redactor;
use crate::policy::{Explanation, Permit, Unasked};
use crate::ports::{Artifacts, Checkpoints};
use crate::protocol::SessionId;
use crate::sys::http::fetch::Fetcher;
use crate::sys::process::{Environment, Helper, Shell};
use crate::tools::change_log::ChangeLog;
use crate::tools::text_tools::TextTools;
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
pub(crate) struct Settings {
    /// Real path that relative paths refer to.
    pub workspace: PathBuf,
    /// Replacement for `~`.
    pub home: Option<PathBuf>,
    /// Size limit in bytes for reading a whole file and for editing.
    pub max_file_size_bytes: u64,
    /// Size limit in bytes for the output of a command.
    pub max_output_bytes: usize,
    pub environment: Environment,
    /// The shell for the lines of RunCommand.
    pub shell: Shell,
    /// Names of variables with provider keys, which no command sees.
    pub secret_names: Vec<String>,
    /// Whether a search may show this real path. The policy judges where a search starts; this hides blocked paths below.
    pub may_read: MayTouch,
    /// A faster version of `may_read` for the entries of a directory that may be shown.
    pub may_read_entry: Option<MayTouch>,
    /// Whether a copied or moved tree may write this real path.
    pub may_write: MayTouch,
    /// Whether a deleted or moved tree may remove this real path.
    pub may_delete: MayTouch,
    /// Whether the user may be asked to let one command write this real path outside the workspace.
    pub may_open: MayTouch,
    /// Whether the user may be asked to let a command read this real path outside the workspace.
    pub may_show: MayTouch,
    /// Whether a symlink may lead a command to read this real path without approval.
    pub may_follow: MayTouch,
    /// Whether a path may be relative to the workspace.
    pub relative_paths: bool,
    /// Whether a path may contain symlinks. The target is judged in either case.
    pub follow_links: bool,
    /// Restrictions of the text tools.
    pub text: TextTools,
    pub helper: Helper,
    /// Whether the policy grants a capability to any call.
    pub grants: Grants,
    /// Whether a tool may be used at all, or why not.
    pub may_use: MayUse,
    /// Verdict of the policy for a request, checked again for each redirect.
    pub may_fetch: MayFetch,
    /// Whether a connection for this URL may be opened to this address.
    pub may_connect: MayConnect,
    pub fetcher: Fetcher,
    /// Store for workspace snapshots before commands; `None` if there is none.
    pub checkpoints: Option<Arc<dyn Checkpoints>>,
    /// Changes made in the session; `None` if they are not tracked.
    pub changes: Option<ChangeLog>,
    /// Store for long output; `None` if there is none.
    pub artifacts: Option<Arc<dyn Artifacts>>,
    /// Files open in an editor, if one is connected; kept when the policy changes.
    pub editor: Option<InEditor>,
    /// The sandbox of commands.
    pub holding: SandboxPolicy,
    /// Running sessions and background commands, kept when the policy changes.
    pub commands: Commands,
    /// File content last seen by the model, kept when the policy changes.
    pub seen: ReadState,
    /// Session of the calls; `None` if results are not needed after a crash.
    pub session: Option<SessionId>,
    /// Start of the session in this process. Later ignore rules do not make a file build output.
    pub since: SystemTime,
    /// Redacts secrets in all tool output.
    pub redactor: Arc<Redactor>,
}

impl Settings {
    /// Returns the check for showing entries of this directory.
    pub(super) fn may_read_in(&self, directory: &Path) -> Arc<dyn Fn(&Path) -> bool + Send + Sync> {
        // If the directory itself may be shown, so may all entered ones.
        let quick = self.may_read_entry.clone().filter(|_| (self.may_read)(directory));
        quick.unwrap_or_else(|| self.may_read.clone())
    }

    /// Returns the settings with commands limited to reading.
    pub(super) fn reading_only(&self) -> Self {
        Self { holding: self.holding.clone().read_only(), ..self.clone() }
    }

    /// Returns the settings for an unapproved command in a preview, whose changes are reviewed before they apply.
    pub(super) fn viewed(&self) -> Self {
        Self { holding: SandboxPolicy { unasked: Some(Unasked::default()), ..self.holding.clone() }, ..self.clone() }
    }

    /// Returns the settings for a command in a layer before approval: it sees no secrets, and only the usual variables.
    pub(super) fn layered(&self) -> Self {
        let viewed = self.viewed();
        let environment = match viewed.environment {
            Environment::Inherit | Environment::Core => Environment::Core,
            Environment::Listed(names) | Environment::InheritOf(names) | Environment::CoreOf(names) => Environment::CoreOf(names),
        };
        Self { environment, holding: SandboxPolicy { layered: true, ..viewed.holding }, ..viewed }
    }

    /// Returns the settings for a call with this permit.
    pub(super) fn under(&self, permit: &Permit) -> Self {
        let settings = if permit.reads_only() { self.reading_only() } else { self.clone() };
        let unasked = permit.relies_on();
        let narrowed = unasked.is_some_and(|unasked| unasked.as_reading) && !self.holding.is_read_only_view();
        Self { holding: SandboxPolicy { unasked, narrowed, ..settings.holding }, ..settings }
    }
}
