//! The interface of tools: typed arguments in, actions and deferred work out.

use super::alias::Alias;
use super::arguments;
use super::hints::{self, Hints};
use super::paths::Paths;
use crate::policy::Explanation;
use crate::policy::redact::Redactor;
use crate::policy::{NamedCommand, Permit, Unasked};
use crate::ports::{Artifacts, BoxFuture, Checkpoints, RunContext};
use crate::protocol::{
    Action, Amendable, Amendment, Arguments, Artifact, ErrorCode, Image, LeftOut, Outside, PlaceChange, Proposal, SessionId,
    Target, ToolError,
};
use crate::sys::http::fetch::Fetcher;
use crate::sys::process::{Environment, Helper, Shell};
use crate::tools::changes::Changes;
use crate::tools::custom::CustomTool;
use crate::tools::in_editor::InEditor;
use crate::tools::on_demand::{FindTools, LoadedTools};
use crate::tools::remote::RemoteTools;
use crate::tools::seen::Seen;
use crate::tools::shell::commands::Commands;
use crate::tools::shell::confine::Holding;
use crate::tools::text::TextTools;
use futures_util::FutureExt;
use schemars::JsonSchema;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};
use std::any::Any;
use std::marker::PhantomData;
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
pub struct Settings {
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
    /// Commands that the policy offers as tools.
    pub named: Vec<NamedCommand>,
    /// Custom tools from manifests.
    pub custom: Vec<Arc<CustomTool>>,
    /// MCP tools; `None` if no server is configured.
    pub remote: Option<Arc<RemoteTools>>,
    /// Whether rarely needed built-in tools are loaded on demand.
    pub on_demand: bool,
    /// The tools loaded by the session, kept when the policy changes.
    pub loaded: LoadedTools,
    /// The tool that loads others, set by `Router::new`; `None` if all tools are offered.
    pub finder: Option<Arc<FindTools>>,
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
    pub changes: Option<Changes>,
    /// Store for long output; `None` if there is none.
    pub artifacts: Option<Arc<dyn Artifacts>>,
    /// Files open in an editor, if one is connected; kept when the policy changes.
    pub editor: Option<InEditor>,
    /// The sandbox of commands.
    pub holding: Holding,
    /// Running sessions and background commands, kept when the policy changes.
    pub commands: Commands,
    /// File content last seen by the model, kept when the policy changes.
    pub seen: Seen,
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
        Self { holding: Holding { unasked: Some(Unasked::default()), ..self.holding.clone() }, ..self.clone() }
    }

    /// Returns the settings for a command in a layer before approval: it sees no secrets, and only the usual variables.
    pub(super) fn layered(&self) -> Self {
        let viewed = self.viewed();
        let environment = match viewed.environment {
            Environment::Inherit | Environment::Core => Environment::Core,
            Environment::Listed(names) | Environment::InheritOf(names) | Environment::CoreOf(names) => Environment::CoreOf(names),
        };
        Self { environment, holding: Holding { layered: true, ..viewed.holding }, ..viewed }
    }

    /// Returns the settings for a call with this permit.
    pub(super) fn under(&self, permit: &Permit) -> Self {
        let settings = if permit.reads_only() { self.reading_only() } else { self.clone() };
        let unasked = permit.relies_on();
        let narrowed = unasked.is_some_and(|unasked| unasked.as_reading) && !self.holding.is_read_only_view();
        Self { holding: Holding { unasked, narrowed, ..settings.holding }, ..settings }
    }
}

/// A planned call before anything is done.
pub(super) struct Draft<Work> {
    /// One-line summary for the user.
    pub summary: String,
    pub actions: Vec<Action>,
    pub proposal: Option<Proposal>,
    pub effect: Effect,
    pub work: Work,
}

impl<Work> Draft<Work> {
    /// Drafts a call that reads at one path.
    pub(super) fn reads(summary: String, target: Target, work: Work) -> Self {
        Self { summary, actions: vec![Action::Read { target }], proposal: None, effect: Effect::Reads, work }
    }

    /// Drafts a call that makes the proposed changes.
    pub(super) fn changes(actions: Vec<Action>, proposal: Proposal, work: Work) -> Self {
        Self { summary: proposal.summary.clone(), actions, proposal: Some(proposal), effect: Effect::Changes, work }
    }
}

impl<Work> Draft<Work> {
    /// Converts the work of a draft.
    pub(super) fn map<Other>(self, make: impl FnOnce(Work) -> Other) -> Draft<Other> {
        let Self { summary, actions, proposal, effect, work } = self;
        Draft { summary, actions, proposal, effect, work: make(work) }
    }
}

impl<Work> Draft<Option<Work>> {
    /// Drafts a call that the policy will deny for these actions; nothing else is examined.
    pub(super) fn denied(summary: String, actions: Vec<Action>) -> Self {
        Self { summary, actions, proposal: None, effect: Effect::Changes, work: None }
    }
}

/// Error of a call whose denial was lifted by a policy change in the meantime.
pub(super) fn never_allowed() -> ToolError {
    ToolError::new(ErrorCode::Conflict, "the policy changed since the call was checked; nothing was done. Try again")
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Effect {
    Reads,
    Changes,
    /// `files` are the files that it would run.
    Runs {
        timeout_seconds: u64,
        files: Vec<PathBuf>,
    },
}

/// A failed call, and its output until then.
#[derive(Debug)]
pub(super) struct Failed {
    pub error: ToolError,
    pub printed: String,
    pub denied: Vec<Outside>,
    pub changed: Option<Box<Proposal>>,
    /// Artifacts with the complete output.
    pub artifacts: Vec<Artifact>,
    /// Parts of the output that were left out.
    pub left_out: Option<Box<LeftOut>>,
}

impl From<ToolError> for Failed {
    fn from(error: ToolError) -> Self {
        Self { error, printed: String::new(), denied: Vec::new(), changed: None, artifacts: Vec::new(), left_out: None }
    }
}

/// The result of a call.
#[derive(Debug, Default)]
pub(super) struct Told {
    pub text: String,
    /// Blocked access that made a command fail.
    pub denied: Vec<Outside>,
    /// Changes made by a command, if known.
    pub changed: Option<Box<Proposal>>,
    /// Artifacts stored with the text.
    pub artifacts: Vec<Artifact>,
    /// Images for models that accept them; each is also an artifact.
    pub images: Vec<Image>,
    /// Parts that the text leaves out.
    pub left_out: Option<Box<LeftOut>>,
}

impl Told {
    /// Appends a note to the text.
    pub(super) fn and(mut self, note: &str) -> Self {
        self.text.push_str(note);
        self
    }
}

impl From<String> for Told {
    fn from(text: String) -> Self {
        Self { text, ..Self::default() }
    }
}

pub(super) type Output = Result<Told, Failed>;

/// One tool. A new tool is a type with this trait and an entry in the registry.
pub(super) trait Tool: Send + Sync + 'static {
    const NAME: &'static str;
    /// Names that other agents use for it; accepted, but not listed.
    const ALIASES: &'static [Alias<Self::Arguments>];
    const CAPABILITY: &'static str;
    const DESCRIPTION: &'static str;
    /// Whether it writes into the file that its markers come from, and can restore their secrets.
    const RESTORES: bool = false;
    type Arguments: DeserializeOwned + JsonSchema + 'static;
    type Work: Send + 'static;

    /// Returns the actions of a call.
    fn actions(arguments: &Self::Arguments, paths: &Paths<'_>) -> Result<Vec<Action>, ToolError>;
    /// Drafts a call. It may read files, but reveals their content only to the user in the approval prompt.
    fn draft(arguments: Self::Arguments, settings: &Settings) -> Result<Draft<Self::Work>, ToolError>;
    /// Returns the state of the changed paths before and after, if known in advance.
    fn places(work: &Self::Work) -> Vec<PlaceChange> {
        let _ = work;
        Vec::new()
    }
    /// Returns what the user may edit, and the resulting texts for that.
    fn amendable(work: &Self::Work, settings: &Settings) -> (Amendable, Vec<String>) {
        let _ = (work, settings);
        (Amendable::default(), Vec::new())
    }
    /// Applies the user's edits, and returns a note about them for the model.
    fn amend(work: Self::Work, amendment: &Amendment, settings: &Settings) -> Result<(Draft<Self::Work>, String), ToolError> {
        let _ = (work, amendment, settings);
        Err(not_amended())
    }
    fn run(work: Self::Work, settings: Arc<Settings>, context: RunContext) -> BoxFuture<'static, Output>;
}

pub(super) fn not_amended() -> ToolError {
    invalid("this call can only be approved unchanged, or denied")
}

pub(super) type Payload = Box<dyn Any + Send>;

/// A tool without its type parameters, for lists of tools.
pub(super) trait AnyTool: Send + Sync {
    fn name(&self) -> &str;
    /// Returns the name offered to the model.
    fn offered_name(&self) -> &str {
        self.name()
    }
    fn alias_names(&self) -> Vec<&'static str>;
    fn capability(&self) -> &'static str;
    fn description(&self) -> &str;
    fn restores(&self) -> bool;
    /// Returns the hints for other agents; `None` if the tool is not for them.
    fn hints(&self) -> Option<Hints> {
        None
    }
    /// Returns the schema of the arguments under this name.
    fn schema(&self, called: &str) -> Value;
    /// Returns the schema of the output, if it is always such JSON.
    fn output_schema(&self) -> Option<Value> {
        None
    }
    fn actions(&self, called: &str, arguments: Map<String, Value>, paths: &Paths<'_>) -> Result<Vec<Action>, ToolError>;
    fn draft(&self, called: &str, arguments: Map<String, Value>, settings: &Settings) -> Result<Draft<Payload>, ToolError>;
    fn places(&self, payload: &Payload) -> Vec<PlaceChange> {
        let _ = payload;
        Vec::new()
    }
    fn amendable(&self, payload: &Payload, settings: &Settings) -> (Amendable, Vec<String>) {
        let _ = (payload, settings);
        (Amendable::default(), Vec::new())
    }
    fn amend(&self, payload: Payload, amendment: &Amendment, settings: &Settings) -> Result<(Draft<Payload>, String), ToolError> {
        let _ = (payload, amendment, settings);
        Err(not_amended())
    }
    fn run(&self, payload: Payload, settings: Arc<Settings>, context: RunContext) -> BoxFuture<'static, Output>;
}

pub(super) struct Hidden<T>(pub PhantomData<T>);

impl<T: Tool> Hidden<T> {
    /// Returns the alias of this name; `None` for the tool's own name.
    fn alias(called: &str) -> Option<&'static Alias<T::Arguments>> {
        if called == T::NAME {
            return None;
        }
        let exact = T::ALIASES.iter().find(|alias| alias.name == called);
        exact.or_else(|| T::ALIASES.iter().find(|alias| alias.name.eq_ignore_ascii_case(called)))
    }

    fn parse(called: &str, arguments: Map<String, Value>) -> Result<T::Arguments, ToolError> {
        Self::alias(called).map_or(arguments::parse as fn(_) -> _, |alias| alias.parse)(arguments)
    }
}

impl<T: Tool> AnyTool for Hidden<T> {
    fn name(&self) -> &'static str {
        T::NAME
    }

    fn alias_names(&self) -> Vec<&'static str> {
        T::ALIASES.iter().map(|alias| alias.name).collect()
    }

    fn capability(&self) -> &'static str {
        T::CAPABILITY
    }

    fn description(&self) -> &'static str {
        T::DESCRIPTION.trim_end()
    }

    fn restores(&self) -> bool {
        T::RESTORES
    }

    fn hints(&self) -> Option<Hints> {
        hints::of(T::NAME)
    }

    fn schema(&self, called: &str) -> Value {
        Self::alias(called).map_or(arguments::schema::<T::Arguments> as fn() -> _, |alias| alias.schema)()
    }

    fn actions(&self, called: &str, arguments: Map<String, Value>, paths: &Paths<'_>) -> Result<Vec<Action>, ToolError> {
        T::actions(&Self::parse(called, arguments)?, paths)
    }

    fn draft(&self, called: &str, arguments: Map<String, Value>, settings: &Settings) -> Result<Draft<Payload>, ToolError> {
        T::draft(Self::parse(called, arguments)?, settings).map(|draft| draft.map(|work| Box::new(work) as Payload))
    }

    fn amendable(&self, payload: &Payload, settings: &Settings) -> (Amendable, Vec<String>) {
        payload.downcast_ref::<T::Work>().map(|work| T::amendable(work, settings)).unwrap_or_default()
    }

    fn amend(&self, payload: Payload, amendment: &Amendment, settings: &Settings) -> Result<(Draft<Payload>, String), ToolError> {
        let Ok(work) = payload.downcast::<T::Work>() else { return Err(not_amended()) };
        T::amend(*work, amendment, settings).map(|(draft, told)| (draft.map(|work| Box::new(work) as Payload), told))
    }

    fn places(&self, payload: &Payload) -> Vec<PlaceChange> {
        payload.downcast_ref::<T::Work>().map(T::places).unwrap_or_default()
    }

    fn run(&self, payload: Payload, settings: Arc<Settings>, context: RunContext) -> BoxFuture<'static, Output> {
        if let Ok(work) = payload.downcast::<T::Work>() {
            return T::run(*work, settings, context);
        }
        let error = ToolError::new(ErrorCode::ToolExecutionFailed, "the plan belongs to another router; plan the call again");
        futures_util::future::ready(Err(error.into())).boxed()
    }
}

/// Runs blocking work on a separate thread.
pub(super) fn blocking<T: Into<Told> + Send + 'static>(
    work: impl FnOnce() -> Result<T, Failed> + Send + 'static,
) -> BoxFuture<'static, Output> {
    async move {
        tokio::task::spawn_blocking(|| work().map(Into::into)).await.unwrap_or_else(|error| {
            let message = format!("the tool crashed: {error}");
            Err(ToolError::new(ErrorCode::ToolExecutionFailed, message).into())
        })
    }
    .boxed()
}

pub(super) fn invalid(message: impl Into<String>) -> ToolError {
    ToolError::new(ErrorCode::InvalidRequest, message)
}

/// Returns the arguments of a call as an object.
pub(super) fn object(arguments: &Arguments) -> Result<Map<String, Value>, ToolError> {
    match arguments {
        Arguments::Object(object) => Ok(object.clone()),
        Arguments::Malformed(text) => {
            let shown: String = text.chars().take(200).collect();
            let reason =
                serde_json::from_str::<Map<String, Value>>(text).err().map(|error| format!(" ({error})")).unwrap_or_default();
            Err(invalid(format!(
                "the arguments are not a JSON object{reason}: `{shown}`; send the call again with a JSON object"
            )))
        }
    }
}
