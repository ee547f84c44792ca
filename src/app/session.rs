//! A session made ready: its store, its claim, its model, its tools; nothing runs yet.

use super::cli::{Nesting, SessionChoice};
use super::layers::Policy;
use super::models::ModelsHere;
use super::place::Place;
use super::rules::PersonsRules;
use super::standing::Standing;
use super::toolchain;
use super::trouble::Trouble;
use crate::agent::{self, Approver, Backoff, Options, Setup, Surroundings, Unfinished};
use crate::config::{InstructionFile, Settings};
use crate::policy::{self, Enforcer, Layer};
use crate::ports::{Artifacts, Checkpoints, Model, Record, ToolRouter};
use crate::protocol::{Action, CallId, Event, Mode, SessionId, Target, ToolDefinition, VerdictKind};
use crate::store::{ArtifactStore, Claim, Loaded, NewSession, SessionSummary, Snapshots, Store};
use crate::sys::http::fetch::Fetcher;
use crate::sys::process::{Environment, Helper, Shell};
use crate::sys::sandbox::left_bases;
use crate::tools::{self, Changes, Commands, Holding, Recovered, Router, Seen};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

/// The limit of an answer when neither catalogue nor policy says less.
const OUTPUT_TOKENS: u64 = 32_000;
/// Kept of what a command prints when the policy does not say.
const OUTPUT_BYTES: usize = 100 << 10;

/// A session of the store, held by this process.
pub struct Session {
    pub store: Store,
    pub claim: Claim,
    pub records: Vec<Record>,
    pub draft: String,
    /// What the person should know before anything else.
    pub notices: Vec<String>,
    pub kept: Kept,
}

/// What the tools of a session have in common, whatever policy they are under. Cheap to clone.
#[derive(Clone)]
pub struct Kept {
    session: SessionId,
    /// Those that go on while the agent works.
    commands: Commands,
    /// What the model saw of files in this process.
    seen: Seen,
    /// The workspace as it was before what changed it.
    checkpoints: Arc<dyn Checkpoints>,
    /// What is too long for the thread.
    artifacts: Arc<dyn Artifacts>,
    /// What is not as it was when the session began.
    changes: Changes,
}

impl Kept {
    fn new(place: &Place, session: &SessionId, resumed: bool) -> Self {
        let data = &place.directories.data;
        let snapshots = Arc::new(Snapshots::new(data));
        Self {
            session: session.clone(),
            commands: Commands::default(),
            seen: Seen::default(),
            artifacts: Arc::new(ArtifactStore::new(data, Some(session))),
            changes: Changes::new(snapshots.clone(), snapshots.clone(), session.clone(), resumed),
            checkpoints: snapshots,
        }
    }

    pub fn session(&self) -> &SessionId {
        &self.session
    }

    /// The settings of the tools of this session under a policy.
    pub fn tool_settings(&self, place: &Place, policy: &Enforcer, holding: Holding) -> tools::Settings {
        tools::Settings {
            session: Some(self.session.clone()),
            commands: self.commands.clone(),
            seen: self.seen.clone(),
            checkpoints: Some(self.checkpoints.clone()),
            artifacts: Some(self.artifacts.clone()),
            changes: Some(self.changes.clone()),
            ..tool_settings(place, policy, holding)
        }
    }
}

impl Session {
    pub fn id(&self) -> &SessionId {
        self.claim.id()
    }

    /// What was said and done until now, as events.
    pub fn history(&self, place: &Place) -> Vec<Event> {
        agent::replay(&self.records, &place.workspace_id(), self.id())
    }
}

/// The session a choice names; `None` for a new one. A session named by its id brings its own workspace along.
pub fn choose(store: &Store, place: &mut Place, choice: &SessionChoice) -> Result<Option<SessionSummary>, Trouble> {
    let found = match choice {
        SessionChoice::New => return Ok(None),
        SessionChoice::Latest | SessionChoice::Pick => store.latest(&place.workspace_id())?,
        SessionChoice::Id(id) => Some(store.find(id)?),
    };
    let Some(summary) = found else {
        let message = format!("there is no session in `{}` yet; start one with `aye`", place.workspace.display());
        return Err(Trouble::usage(message));
    };
    if summary.workspace_id != place.workspace_id() {
        let workspace = std::path::Path::new(&summary.workspace).canonicalize().map_err(|error| {
            Trouble::failed(format!("the directory of this session, `{}`, cannot be used: {error}", summary.workspace))
        })?;
        place.roots[0].clone_from(&workspace);
        place.workspace = workspace;
    }
    Ok(Some(summary))
}

/// Takes the chosen session for this process, or makes a new one.
pub fn open(
    store: Store,
    place: &Place,
    policy: &Policy,
    chosen: Option<SessionSummary>,
    model: &str,
) -> Result<Session, Trouble> {
    policy.holds_for(chosen.as_ref().map(|summary| &summary.session_id))?;
    let mut notices = Vec::new();
    if place.is_too_wide() {
        let workspace = place.workspace_for_people();
        notices
            .push(format!("`{workspace}` is so wide that aye asks before every read, write and command; start it in a project"));
    }
    let named: Vec<String> =
        policy.layers.iter().flat_map(|layer| layer.bundle.named.iter().map(|one| one.name.clone())).collect();
    notices.extend(policy.layers.iter().flat_map(|layer| disables_nothing(layer, &named, &place.tools.custom)));
    notices.extend(policy.layers.iter().flat_map(taken_names));
    notices.extend(place.tools.problems.iter().cloned());
    notices.extend(place.tools.custom.iter().filter_map(|tool| named_already(tool, &named)));
    let Some(summary) = chosen else {
        let id = SessionId::new(uuid::Uuid::new_v4().simple().to_string());
        let claim = store.create(NewSession {
            id,
            workspace_id: place.workspace_id(),
            workspace: place.workspace.clone(),
            model: model.to_owned(),
        });
        let kept = Kept::new(place, claim.id(), false);
        return Ok(Session { store, claim, records: Vec::new(), draft: String::new(), notices, kept });
    };
    let claim = store.claim(&summary.session_id)?;
    let Loaded { records, skipped, draft, .. } = store.load(&summary.session_id)?;
    if skipped > 0 {
        notices.push(format!("{skipped} records of this session cannot be read by this version; they stay where they are"));
    }
    let kept = Kept::new(place, claim.id(), true);
    Ok(Session { store, claim, records, draft, notices, kept })
}

/// How the questions of a session are answered and how far it may go.
pub struct Terms {
    pub approver: Approver,
    pub unfinished: Unfinished,
    pub max_steps: Option<u32>,
    /// After so long a question counts as denied; none where somebody sits before it.
    pub approval_timeout: Option<Duration>,
    pub instructions: Vec<InstructionFile>,
    /// Where "always allow" is kept.
    pub rules: Arc<PersonsRules>,
    /// What commands are held with.
    pub standing: Standing,
}

/// Everything the agent's host needs. The claim stays with the caller: it must outlive the session.
pub fn setup(place: &Place, policy: &Policy, session: &mut Session, model: Arc<dyn Model>, terms: Terms) -> Setup {
    let policy_name = policy.name.clone();
    let policy = place.enforcer(policy, terms.standing.sandbox(), place.mode);
    let holding = terms.standing.holding(&policy);
    holding.look_through();
    let sandbox = terms.standing.words(&holding);
    let sandbox_status = terms.standing.status(&holding, &policy);
    let settings = session.kept.tool_settings(place, &policy, holding);
    let (redactor, artifacts) = (settings.redactor.clone(), settings.artifacts.clone());
    let router = Arc::new(Router::new(settings));
    let Recovered { settled, notices } =
        router.recover(&left_bases(&place.directories.data), &|call| awaits(&session.records, call));
    session.notices.extend(notices);
    let tools: Arc<[ToolDefinition]> = offered(&router, &policy).into();
    let facts = model.facts();
    let options = Options {
        effort: None,
        max_output_tokens: facts.max_output_tokens.map_or(OUTPUT_TOKENS, |limit| limit.min(OUTPUT_TOKENS)),
        model: facts,
        max_steps: terms.max_steps.unwrap_or(agent::MAX_STEPS),
        approver: terms.approver,
        approval_timeout: terms.approval_timeout,
        backoff: backoff(&place.settings),
        system: redactor.redact(&system_prompt(place, terms.instructions)).text.into(),
        tools,
        sandbox,
        laxest: match Nesting::of_process() {
            Nesting::Outermost => Mode::Auto,
            // A program that aye runs could ask for more by itself.
            Nesting::InsideAye => place.mode,
        },
    };
    Setup {
        policy,
        options,
        model,
        models: Arc::new(ModelsHere::new(place)),
        router,
        artifacts,
        journal: session.store.journal(session.claim.id(), place.mode),
        rules: terms.rules,
        workspace_id: place.workspace_id(),
        session_id: session.claim.id().clone(),
        workspace: place.workspace.display().to_string(),
        mode: place.mode,
        records: std::mem::take(&mut session.records),
        unfinished: terms.unfinished,
        settled,
        sandbox_status,
        running: Some(session.kept.commands.watch()),
        tell_changes: false,
        redactor,
        policy_name,
        policy_updates: None,
    }
}

/// Whether the call began and nothing says what came of it.
fn awaits(records: &[Record], call: &CallId) -> bool {
    let open = records.iter().rev().find_map(|record| match record {
        Record::Started { tool_call_id, .. } if tool_call_id == call => Some(true),
        Record::Finished { result, .. } if result.tool_call_id == *call => Some(false),
        // What began before these has an end, also where it cannot be read.
        Record::Answer { .. } | Record::StepStarted { .. } | Record::StepCompleted { .. } => Some(false),
        Record::TaskStarted { .. } | Record::TaskEnded { .. } => Some(false),
        _ => None,
    });
    open.unwrap_or(false)
}

/// `[tools.text]`, as the tools know it.
fn text_tools(set: &crate::config::TextTools) -> tools::TextTools {
    tools::TextTools {
        enabled: set.enabled,
        allowed_extensions: set.allowed_extensions.clone(),
        max_file_size: set.max_file_size,
        allow_create: set.allow_create,
        allow_delete: set.allow_delete,
    }
}

/// What the tools are told: the policy's bounds, and what commands must not see.
pub fn tool_settings(place: &Place, policy: &Enforcer, holding: Holding) -> tools::Settings {
    let judge = policy.clone();
    // Only a no is one here: what asks is asked about with the call.
    let may = |action: fn(Target) -> Action| -> Arc<dyn Fn(&Path) -> bool + Send + Sync> {
        let judge = judge.clone();
        Arc::new(move |path| {
            let target = Target { given: String::new(), real: path.to_owned(), place: crate::protocol::Place::File { bytes: 0 } };
            judge.explain(&[action(target)], jiff::Timestamp::UNIX_EPOCH).verdict != VerdictKind::Deny
        })
    };
    let (web, addresses, places, entries) = (policy.clone(), policy.clone(), policy.clone(), policy.clone());
    let offers = policy.clone();
    tools::Settings {
        workspace: place.workspace.clone(),
        home: Some(place.home.clone()),
        max_file_size_bytes: policy.max_file_size_bytes(),
        max_output_bytes: policy
            .terms()
            .max_output_bytes
            .map_or(OUTPUT_BYTES, |bytes| usize::try_from(bytes).unwrap_or(usize::MAX)),
        environment: match policy.environment() {
            policy::Environment::Inherit => Environment::Inherit,
            policy::Environment::Core => Environment::Core,
            policy::Environment::Only(names) => Environment::Listed(names),
            policy::Environment::InheritOf(names) => Environment::InheritOf(names),
            policy::Environment::CoreOf(names) => Environment::CoreOf(names),
        },
        shell: place.settings.tools.shell,
        secret_names: place.settings.key_variables(),
        may_read: may(|target| Action::Read { target }),
        may_read_entry: Some(Arc::new(move |path| entries.entry_may_be_read(path, jiff::Timestamp::UNIX_EPOCH))),
        may_write: may(|target| Action::Write { target }),
        may_delete: may(|target| Action::Delete { target }),
        may_open: Arc::new(move |path| places.may_be_opened(path)),
        relative_paths: !place.settings.tools.absolute_paths_only,
        follow_links: place.settings.tools.follow_symlinks,
        text: text_tools(&place.settings.tools.text),
        helper: Helper::default(),
        named: policy.named_commands().cloned().collect(),
        custom: place.tools.custom.clone(),
        may_use: Arc::new(move |name| offers.offers(name).map_err(|denial| format!("{} (rule: {})", denial.reason, denial.rule))),
        checkpoints: None,
        artifacts: None,
        changes: None,
        holding,
        commands: Commands::default(),
        seen: Seen::default(),
        session: None,
        redactor: super::redaction::redactor(place, policy.redactions(), &[]),
        may_fetch: Arc::new(move |url, method| {
            web.explain(&[Action::Fetch { url: url.to_owned(), method: method.to_owned() }], jiff::Timestamp::now())
        }),
        may_connect: Arc::new(move |url, address| addresses.may_connect(url, address)),
        fetcher: Fetcher::default(),
    }
}

pub fn router(place: &Place, policy: &Enforcer, holding: Holding) -> Router {
    let data = &place.directories.data;
    Router::new(tools::Settings {
        checkpoints: Some(Arc::new(Snapshots::new(data))),
        artifacts: Some(Arc::new(ArtifactStore::new(data, None))),
        ..tool_settings(place, policy, holding)
    })
}

/// What the model is offered: the tools whose capability is granted and that no layer disables.
pub fn offered(router: &Router, policy: &Enforcer) -> Vec<ToolDefinition> {
    let granted = |tool: &ToolDefinition| router.capability(&tool.tool_name).is_some_and(|capability| policy.grants(capability));
    let offered = |tool: &ToolDefinition| policy.offers(&tool.tool_name).is_ok();
    router.definitions().into_iter().filter(granted).filter(offered).collect()
}

/// Names in `[tools] disabled` that no tool has: a slip there would leave a tool that nobody wants.
fn disables_nothing(layer: &Layer, named: &[String], custom: &[Arc<tools::CustomTool>]) -> Vec<String> {
    let of_server = |text: &str| text.to_ascii_lowercase().starts_with("mcp.");
    let idle = layer.bundle.disabled.iter().filter(|one| {
        !of_server(&one.text)
            && tools::name_of(&one.text).is_none()
            && !custom.iter().any(|tool| one.hits(&tool.name))
            && !named.iter().any(|name| one.hits(name))
            && !tools::built_in_names().any(|name| one.hits(name))
    });
    let told = |one: &policy::ToolPattern| {
        let rule = layer.scope.rule(one.line);
        format!("no tool is called `{}`, which the policy disables ({rule}); `aye tool list` shows their names", one.text)
    };
    idle.map(told).collect()
}

/// A custom tool that nobody can call, because a command of the policy has its name.
fn named_already(tool: &tools::CustomTool, named: &[String]) -> Option<String> {
    let name = named.iter().find(|name| name.eq_ignore_ascii_case(&tool.name))?;
    let file = tool.source.file.display();
    Some(format!("the policy has a named command `{name}`, so the tool in `{file}` is not offered; give it another name"))
}

/// Named commands that nobody can call, because a tool has their name.
fn taken_names(layer: &Layer) -> Vec<String> {
    let told = |command: &policy::NamedCommand| {
        let rule = layer.scope.rule(command.line);
        format!("the named command `{}` ({rule}) has the name of a tool and is not offered; give it another", command.name)
    };
    layer.bundle.named.iter().filter(|command| tools::name_of(&command.name).is_some()).map(told).collect()
}

fn backoff(settings: &Settings) -> Backoff {
    let base_ms = u64::try_from(settings.llm.retry_base.as_millis()).unwrap_or(u64::MAX);
    Backoff { max_retries: settings.llm.max_retries, base_ms, ..Backoff::default() }
}

fn system_prompt(place: &Place, project: Vec<InstructionFile>) -> String {
    let toolchain = toolchain::look(&place.workspace, place.environment.get("PATH").unwrap_or_default());
    let own = crate::config::instructions_of_person(&place.directories.config);
    let instructions = own.into_iter().chain(project).map(|file| (file.path.display().to_string(), file.text)).collect();
    agent::system_prompt(&Surroundings {
        workspace: place.workspace.display().to_string(),
        system: std::env::consts::OS,
        date: jiff::Timestamp::now().strftime("%Y-%m-%d").to_string(),
        branch: place.branch(),
        shell: Some(place.settings.tools.shell).filter(|shell| *shell != Shell::Bash).map(Shell::name),
        programs: toolchain.programs,
        missing: toolchain.missing,
        instructions,
    })
}
