//! What a tool is: typed arguments in, actions and work out, the work done later.

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

/// What all tools are told once.
#[derive(Clone)]
pub struct Settings {
    /// The real path that relative paths start from.
    pub workspace: PathBuf,
    /// What `~` stands for.
    pub home: Option<PathBuf>,
    /// Largest file that is read whole or edited.
    pub max_file_size_bytes: u64,
    /// Kept of what a command prints.
    pub max_output_bytes: usize,
    pub environment: Environment,
    /// What reads the lines of RunCommand.
    pub shell: Shell,
    /// Names of variables that hold provider keys; no command sees them.
    pub secret_names: Vec<String>,
    /// Whether a search may show what is at this real path. A search is judged by where it starts; this keeps it from
    /// what is blocked below.
    pub may_read: MayTouch,
    /// The same of an entry of a directory that may be shown, where that is told more quickly.
    pub may_read_entry: Option<MayTouch>,
    /// The same for what a tree that is copied or moved would bring to this real path.
    pub may_write: MayTouch,
    /// The same for what a tree that is deleted or moved would take from it.
    pub may_delete: MayTouch,
    /// Whether the person may be asked to let one command write at this real path outside the workspace.
    pub may_open: MayTouch,
    /// Whether the user may be asked to let a command read this real path outside the workspace.
    pub may_show: MayTouch,
    /// Whether a command may read this real path without an approval where a link leads it there.
    pub may_follow: MayTouch,
    /// Whether a path may be relative to the workspace.
    pub relative_paths: bool,
    /// Whether a path may lead through links; where it leads is judged either way.
    pub follow_links: bool,
    /// What the text tools are kept to.
    pub text: TextTools,
    pub helper: Helper,
    /// Commands of the policy that are tools of their own.
    pub named: Vec<NamedCommand>,
    /// Tools of manifests.
    pub custom: Vec<Arc<CustomTool>>,
    /// Tools of MCP servers; none where no server is configured.
    pub remote: Option<Arc<RemoteTools>>,
    /// Whether built-in tools that few tasks need are loaded on demand.
    pub on_demand: bool,
    /// The tools that the session loaded; another policy keeps them.
    pub loaded: LoadedTools,
    /// The tool that loads others, set by `Router::new`; none where all are offered.
    pub finder: Option<Arc<FindTools>>,
    /// Whether the policy grants a capability to any call.
    pub grants: Grants,
    /// Whether a tool of this name may be used at all, or why not.
    pub may_use: MayUse,
    /// What the policy says of a request by this method to this URL; asked again for each redirect.
    pub may_fetch: MayFetch,
    /// Whether a connection for this URL may be opened to this address.
    pub may_connect: MayConnect,
    pub fetcher: Fetcher,
    /// Where the workspace is kept before a command can change it; none where it is not.
    pub checkpoints: Option<Arc<dyn Checkpoints>>,
    /// What the session changed; none where nobody asks.
    pub changes: Option<Changes>,
    /// Where what is too long for a thread is kept whole; none where nothing is.
    pub artifacts: Option<Arc<dyn Artifacts>>,
    /// What an editor has open; none where there is none that says. Another policy keeps what is known of it.
    pub editor: Option<InEditor>,
    /// What holds commands.
    pub holding: Holding,
    /// Those that go on; another policy keeps them.
    pub commands: Commands,
    /// What the model last saw of each file; another policy keeps that too.
    pub seen: Seen,
    /// Whose calls they are; nothing where nobody would ask for them after a crash.
    pub session: Option<SessionId>,
    /// When the session began in this process: what says since then that a file is build output does not count.
    pub since: SystemTime,
    /// Hides what is secret in all that a tool tells.
    pub redactor: Arc<Redactor>,
}

impl Settings {
    /// What says whether an entry of this directory may be shown.
    pub(super) fn may_read_in(&self, directory: &Path) -> Arc<dyn Fn(&Path) -> bool + Send + Sync> {
        // Where the directory itself may be shown, all that is entered may be.
        let quick = self.may_read_entry.clone().filter(|_| (self.may_read)(directory));
        quick.unwrap_or_else(|| self.may_read.clone())
    }

    /// The same where commands change nothing.
    pub(super) fn reading_only(&self) -> Self {
        Self { holding: self.holding.clone().read_only(), ..self.clone() }
    }

    /// The same for a command that nobody approved and that runs in a view, where it is looked at before it counts.
    pub(super) fn viewed(&self) -> Self {
        Self { holding: Holding { unasked: Some(Unasked::default()), ..self.holding.clone() }, ..self.clone() }
    }

    /// The same for a command that runs in a layer before anybody is asked: it sees no secrets, and gets no variables but the usual.
    pub(super) fn layered(&self) -> Self {
        let viewed = self.viewed();
        let environment = match viewed.environment {
            Environment::Inherit | Environment::Core => Environment::Core,
            Environment::Listed(names) | Environment::InheritOf(names) | Environment::CoreOf(names) => Environment::CoreOf(names),
        };
        Self { environment, holding: Holding { layered: true, ..viewed.holding }, ..viewed }
    }

    /// The same for a command that runs by this permit.
    pub(super) fn under(&self, permit: &Permit) -> Self {
        let settings = if permit.reads_only() { self.reading_only() } else { self.clone() };
        let unasked = permit.relies_on();
        let narrowed = unasked.is_some_and(|unasked| unasked.as_reading) && !self.holding.is_read_only_view();
        Self { holding: Holding { unasked, narrowed, ..settings.holding }, ..settings }
    }
}

/// What a call comes to, before anything of it is done.
pub(super) struct Draft<Work> {
    /// One line for people.
    pub summary: String,
    pub actions: Vec<Action>,
    pub proposal: Option<Proposal>,
    pub effect: Effect,
    pub work: Work,
}

impl<Work> Draft<Work> {
    /// Of a call that reads at one place.
    pub(super) fn reads(summary: String, target: Target, work: Work) -> Self {
        Self { summary, actions: vec![Action::Read { target }], proposal: None, effect: Effect::Reads, work }
    }

    /// Of a call that changes what the proposal shows.
    pub(super) fn changes(actions: Vec<Action>, proposal: Proposal, work: Work) -> Self {
        Self { summary: proposal.summary.clone(), actions, proposal: Some(proposal), effect: Effect::Changes, work }
    }
}

impl<Work> Draft<Work> {
    /// The same with work of another kind.
    pub(super) fn map<Other>(self, make: impl FnOnce(Work) -> Other) -> Draft<Other> {
        let Self { summary, actions, proposal, effect, work } = self;
        Draft { summary, actions, proposal, effect, work: make(work) }
    }
}

impl<Work> Draft<Option<Work>> {
    /// Of a call that the policy will refuse for these actions: more is not looked at.
    pub(super) fn denied(summary: String, actions: Vec<Action>) -> Self {
        Self { summary, actions, proposal: None, effect: Effect::Changes, work: None }
    }
}

/// What running such a call comes to, if the policy changed its mind meanwhile.
pub(super) fn never_allowed() -> ToolError {
    ToolError::new(ErrorCode::Conflict, "the policy changed since the call was checked; nothing was done. Try again")
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Effect {
    Reads,
    Changes,
    /// `files` are those that it would run.
    Runs {
        timeout_seconds: u64,
        files: Vec<PathBuf>,
    },
}

/// A call that came to nothing, and what it printed until then.
#[derive(Debug)]
pub(super) struct Failed {
    pub error: ToolError,
    pub printed: String,
    pub denied: Vec<Outside>,
    pub changed: Option<Box<Proposal>>,
    /// What it printed, whole.
    pub artifacts: Vec<Artifact>,
    /// What is left out of what it printed.
    pub left_out: Option<Box<LeftOut>>,
}

impl From<ToolError> for Failed {
    fn from(error: ToolError) -> Self {
        Self { error, printed: String::new(), denied: Vec::new(), changed: None, artifacts: Vec::new(), left_out: None }
    }
}

/// What a call came to.
#[derive(Debug, Default)]
pub(super) struct Told {
    pub text: String,
    /// What a command was kept from, where that is why it failed.
    pub denied: Vec<Outside>,
    /// What a command changed, where that is known.
    pub changed: Option<Box<Proposal>>,
    /// What is kept whole beside the text.
    pub artifacts: Vec<Artifact>,
    /// For models that take them; each is one of what is kept.
    pub images: Vec<Image>,
    /// What the text leaves out.
    pub left_out: Option<Box<LeftOut>>,
}

impl Told {
    /// The same with a note after it.
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

/// One tool. A new one is a type with this trait and a line in the registry.
pub(super) trait Tool: Send + Sync + 'static {
    const NAME: &'static str;
    /// Names other agents use for it; accepted, never listed.
    const ALIASES: &'static [Alias<Self::Arguments>];
    const CAPABILITY: &'static str;
    const DESCRIPTION: &'static str;
    /// Whether it writes text into the very file that its markers come from, and so can put back what they hide.
    const RESTORES: bool = false;
    type Arguments: DeserializeOwned + JsonSchema + 'static;
    type Work: Send + 'static;

    /// What a call would touch.
    fn actions(arguments: &Self::Arguments, paths: &Paths<'_>) -> Result<Vec<Action>, ToolError>;
    /// The whole plan; reads what it must, and tells nothing of what it read but to the person who is asked.
    fn draft(arguments: Self::Arguments, settings: &Settings) -> Result<Draft<Self::Work>, ToolError>;
    /// What stands at the places that it changes, before and after, where that can be told before it runs.
    fn places(work: &Self::Work) -> Vec<PlaceChange> {
        let _ = work;
        Vec::new()
    }
    /// How the person may have it otherwise, and what the files would be that this offers.
    fn amendable(work: &Self::Work, settings: &Settings) -> (Amendable, Vec<String>) {
        let _ = (work, settings);
        (Amendable::default(), Vec::new())
    }
    /// The same call as the person has it, and what the model is told of that.
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

/// A tool whose types are hidden, so that a list can hold all of them.
pub(super) trait AnyTool: Send + Sync {
    fn name(&self) -> &str;
    /// What the model calls it.
    fn offered_name(&self) -> &str {
        self.name()
    }
    fn alias_names(&self) -> Vec<&'static str>;
    fn capability(&self) -> &'static str;
    fn description(&self) -> &str;
    fn restores(&self) -> bool;
    /// What it is to other agents; none where it is not for them.
    fn hints(&self) -> Option<Hints> {
        None
    }
    /// Of the arguments that it takes under this name.
    fn schema(&self, called: &str) -> Value;
    /// Of what it tells, where that is always JSON of this shape.
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
    /// The alias it is called by; none by its own name.
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

/// Does work that waits for a disk where waiting harms nobody.
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

/// The arguments of a call, if they are an object.
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
