//! Runs a session behind the screen, which is already visible: from opening the session to its end.

use super::session_lock::{LockOutcome as Answered, ReadOnlySession, SessionStart};
use super::start_hints;
use crate::agent::{self, Approver, Unfinished};
use crate::cli::screen::TuiChannels;
use crate::config::NoModel;
use crate::host::context::AppContext;
use crate::host::crash::Watch;
use crate::host::drift;
use crate::host::error::CliError;
use crate::host::history;
use crate::host::history::SessionHistory;
use crate::host::local_models;
use crate::host::models::ModelCatalog;
use crate::host::nesting::Nesting;
use crate::host::options::Trust as TrustFlag;
use crate::host::policy_layers::Policy;
use crate::host::project::ProjectConfig;
use crate::host::query::QueryHandler;
use crate::host::query_service::QueryService;
use crate::host::reload::Reload;
use crate::host::retention;
use crate::host::sandbox_host::SandboxHost;
use crate::host::session;
use crate::host::session::{Session, SessionOptions};
use crate::host::session_servers;
use crate::host::user_rules::UserRules;
use crate::llm::MissingModel;
use crate::ports::Model;
use crate::protocol::{ChangedFiles, Command, Event, EventKind, Mode, SessionId};
use crate::tui::{Header, ModelAccess, Start, TrustAnswer, TrustQuestion};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use tokio::sync::{mpsc, oneshot};

/// The state that is left after the screen has closed.
#[derive(Default)]
pub struct SessionOutcome {
    /// The files changed by the session.
    pub changed: ChangedFiles,
    /// The session, once it was opened.
    pub session: Option<SessionId>,
    /// Notices of the database that the screen hid.
    pub notices: Vec<String>,
    /// The reason why no session was opened.
    pub trouble: Option<CliError>,
}

/// An opened session that is not running yet.
pub struct SessionRunner {
    pub place: AppContext,
    /// True if it is not in the directory where the screen started.
    pub moved: bool,
    pub policy: Policy,
    /// The project, as far as it was already examined.
    pub project: Option<ProjectConfig>,
    pub session: SessionStart,
    pub model: Result<Arc<dyn Model>, NoModel>,
    /// The requested model, from the command line or the configuration.
    pub wanted: Option<String>,
    /// True if aye may choose the model.
    pub open: bool,
    pub rules: Arc<UserRules>,
    /// The file of `--policy FILE`.
    pub file: Option<PathBuf>,
    pub max_steps: Option<u32>,
    pub desk: QueryHandler,
    pub watch: Watch,
    /// True if first-time setup may start automatically.
    pub sets_up: bool,
}

impl SessionRunner {
    /// Runs the session to its end. Returns the files it changed.
    pub async fn run(self, wires: TuiChannels, opened: &mut Option<SessionId>) -> ChangedFiles {
        let nothing = ChangedFiles::default;
        let TuiChannels { start, ahead, commands, queries, events } = wires;
        let Self {
            mut place,
            moved,
            mut policy,
            project,
            session,
            model,
            open,
            mut rules,
            file,
            max_steps,
            desk,
            watch,
            wanted,
            sets_up,
        } = self;
        let service = QueryService::new(desk.clone());
        let serving = service.serve(queries);
        desk.follow_keys();
        let cwd = moved.then(|| place.workspace_for_people());
        let mut session = match session {
            SessionStart::Ready(session) => *session,
            SessionStart::Held(waiting) => {
                let name = model.as_ref().map_or_else(|_| String::new(), |model| model.name().to_owned());
                match waiting.ask(&place, &policy, &name, &ahead).await {
                    Answered::Ours(session) => *session,
                    Answered::ReadOnly(watched) => {
                        look_on(watched, (place, policy, model), cwd, start, commands, (events, &service)).await;
                        return nothing();
                    }
                    Answered::Left => return nothing(),
                }
            }
        };
        session.goes_on();
        // Notices from opening the session are shown on the screen that hid them.
        session.notices.splice(0..0, session.store.notices().to_vec());
        *opened = Some(session.id().clone());
        watch.knows(place.directories.data.join("logs"), format!("aye --resume={}", session.id()));
        let past = SessionHistory::new(&session.store, session.id(), &place);
        service.open_history(past.clone(), place.clone());
        let models = ModelCatalog::new(&place).under(&policy);
        let settings = place.settings.clone();
        // Runs in parallel, because the screen is already visible.
        let looking = tokio::spawn(async move { local_models::instead(&models, &settings, model, open).await });
        let mut notices = std::mem::take(&mut session.notices);
        let mut project =
            project.unwrap_or_else(|| ProjectConfig::look(&place.workspace, &place.directories.config, TrustFlag::AsRecorded));
        project.ask_again_if_broken();
        if project.is_trusted() {
            policy = with_project(&mut place, policy, &project, &session, file.as_deref(), &mut notices);
            tools_of_project(&mut place, &project, &mut notices);
        }
        desk.trust(&project);
        let (answer, receive_answer) = oneshot::channel();
        let Ok((model, said)) = looking.await else { return nothing() };
        notices.extend(said);
        if let (true, Ok(model)) = (open, &model) {
            rules = Arc::new(UserRules::new(&place, file.as_deref(), model.name()).with_log(session.store.clone()));
        }
        // A program that aye runs could press the key itself.
        let asks = (project.waits() || project.has_new_parts()) && Nesting::of_process() == Nesting::Outermost;
        if asks {
            project.look_for_parts();
        }
        let history = past.events(&session.tail.records);
        let (own, trust) = (place.clone(), project.trust());
        let (here, store) = (place.clone(), session.store.clone());
        // In a resumed session, the first lines do not show hints.
        let hints = session.is_new().then(|| tokio::spawn(async move { start_hints::hints(&store, &here).await }));
        let Ok(mut standing) = tokio::task::spawn_blocking(move || SandboxHost::find(&own, trust)).await else {
            return nothing();
        };
        let (last_here, attempt) = match hints {
            Some(hints) => hints.await.unwrap_or_default(),
            None => (None, None),
        };
        let (header, model_access) = head(&place, &policy, (&model, wanted), &standing);
        let is_first = sets_up && session.is_new() && open && model.is_err() && crate::host::setup::write::is_first(&place);
        let trust = asks.then(|| TrustQuestion {
            place: place.workspace_for_people(),
            items: project.lines(),
            runs_code: project.runs_code(),
            files: project.files(),
            remote: project.remote(),
            changes: project.changes().map(<[String]>::to_vec),
            broken: project.broken(),
            answer,
        });
        let older = session.tail.before;
        let (is_trusted, policy_ends) = (project.has_a_say(), start_hints::ends(&policy, jiff::Timestamp::now()));
        let told =
            Start { header, history, older, cwd, model_access, trust, is_trusted, policy_ends, last_here, attempt, is_first };
        if start.send(told).is_err() {
            leave(&session, &place, commands).await;
            return nothing();
        }
        // The part that is already on the screen was read first.
        let loading = history::load(&session);
        // Without a model, the session waits for a choice: the models can be listed, and a key can be added.
        let before = session.model_before.clone().unwrap_or_default();
        let model = model.unwrap_or_else(|error| Arc::new(MissingModel::new(&before, error.to_string())));
        if asks {
            match receive_answer.await {
                Ok(TrustAnswer::Yes) => {
                    if let Err(error) = project.trusted() {
                        notices.push(format!("{error}; the project is trusted for this run only"));
                    }
                    policy = with_project(&mut place, policy, &project, &session, file.as_deref(), &mut notices);
                    tools_of_project(&mut place, &project, &mut notices);
                    desk.trust(&project);
                    standing.trust(&place);
                }
                Ok(TrustAnswer::ReadOnly) => place.mode = Mode::Plan,
                Ok(TrustAnswer::Quit) | Err(_) => {
                    leave(&session, &place, commands).await;
                    return nothing();
                }
            }
        }
        if let Some(ask) = crate::host::models::key_to_ask_for(&place, model.name()) {
            let _ = tokio::task::spawn_blocking(ask).await;
        }
        // The screen is visible, and input waits: nothing is sent before the whole history is known.
        let sum = match loading.await {
            Ok(Ok(loaded)) => {
                session.loaded(loaded);
                older.map(|_| EventKind::HistorySummed(session.state.history_sum()))
            }
            Ok(Err(error)) => return history::unreadable(past, error, &events, commands).await,
            Err(_) => return nothing(),
        };
        let layers = place.enforcer(&policy, standing.sandbox(), place.mode).layers();
        notices.extend(drift::told(&session, &place, &layers).await);
        let instructions = project.instructions();
        let draft = std::mem::take(&mut session.draft);
        let remote = session_servers::connect(Vec::new(), &mut session, &place, &policy, &project, &standing, Approver::Person);
        let terms = SessionOptions {
            approver: Approver::Person,
            unfinished: Unfinished::Wait,
            max_steps,
            // A user at the screen may take any time.
            approval_timeout: None,
            instructions,
            guidance: project.guidance(),
            rules,
            standing: standing.clone(),
            remote,
        };
        let mut setup = session::setup(&place, &policy, &mut session, model, terms);
        notices.append(&mut session.notices);
        retention::in_the_background(&place, &session.store);
        let (reload, updates) = Reload::new(place, file, project, &session, &policy, standing);
        setup.policy_updates = Some(updates);
        let said = notices.into_iter().map(|message| EventKind::Notice { message });
        let draft = Some(draft).filter(|draft| !draft.is_empty()).map(|text| EventKind::DraftRestored { text });
        for kind in sum.into_iter().chain(said).chain(draft) {
            past.say(kind, &events);
        }
        let router = setup.router.clone();
        let running = agent::spawn(setup, commands, events);
        service.open_session(running.queries);
        tokio::spawn(reload.run());
        if let Some(servers) = session.kept.servers() {
            servers.look();
        }
        let _ = running.ended.await;
        serving.end().await;
        session.end_servers().await;
        let changed = router.changed_files(None).await;
        // Releases the session only now.
        drop(session);
        changed
    }
}

/// Shows the current state of a session that is open in another process, until the user leaves.
async fn look_on(
    watched: ReadOnlySession,
    (place, policy, model): (AppContext, Policy, Result<Arc<dyn Model>, NoModel>),
    cwd: Option<String>,
    start: oneshot::Sender<Start>,
    commands: mpsc::Receiver<Command>,
    (events, service): (mpsc::UnboundedSender<Event>, &QueryService),
) {
    let ReadOnlySession { store, id, tail, holder } = watched;
    let past = SessionHistory::new(&store, &id, &place);
    service.open_history(past.clone(), place.clone());
    let own = place.clone();
    let Ok(standing) =
        tokio::task::spawn_blocking(move || SandboxHost::find(&own, crate::tools::RepositoryTrust::Untrusted)).await
    else {
        return;
    };
    let (header, _) = head(&place, &policy, (&model, None), &standing);
    let history = past.events(&tail.records);
    let (older, trust, last_here, attempt) = (tail.before, None, None, None);
    // The answer is ignored if the screen has closed.
    let model_access = ModelAccess::ReadOnly { holder };
    let (is_trusted, policy_ends) = (false, start_hints::ends(&policy, jiff::Timestamp::now()));
    let told =
        Start { header, history, older, cwd, model_access, trust, is_trusted, policy_ends, last_here, attempt, is_first: false };
    drop(start.send(told));
    if older.is_some() {
        past.sum_up(events);
    }
    wait_for_the_end(commands).await;
}

/// Adds the tools of the project. Problems of the user's own tools are not reported again.
fn tools_of_project(place: &mut AppContext, project: &ProjectConfig, notices: &mut Vec<String>) {
    place.with_tools_of(project);
    let new: Vec<String> = place.tools.notices().into_iter().filter(|problem| !notices.contains(problem)).collect();
    notices.extend(new);
}

/// Returns the policy with the layer of the project. If that layer is invalid, the session is read-only, because the
/// layer might have forbidden changes.
fn with_project(
    place: &mut AppContext,
    own: Policy,
    project: &ProjectConfig,
    session: &Session,
    file: Option<&Path>,
    notices: &mut Vec<String>,
) -> Policy {
    let policy = place.policy(file, Some(project)).and_then(|policy| policy.holds_for(Some(session.id())).map(|()| policy));
    policy.unwrap_or_else(|trouble| {
        notices.push(format!("{}\nthis session is in plan mode until the policy is fixed", trouble.message));
        place.mode = Mode::Plan;
        own
    })
}

fn head(
    place: &AppContext,
    policy: &Policy,
    (model, wanted): (&Result<Arc<dyn Model>, NoModel>, Option<String>),
    standing: &SandboxHost,
) -> (Header, ModelAccess) {
    let enforcer = place.enforcer(policy, standing.sandbox(), place.mode);
    let access = match model {
        Ok(_) => ModelAccess::Ready,
        Err(error) => ModelAccess::NoKey { message: error.to_string(), model: wanted },
    };
    let model = model.as_ref().ok();
    let header = Header {
        branch: place.branch(),
        model: model.map_or_else(String::new, |model| model.name().to_owned()),
        context_tokens: model.map(|model| model.facts().context_window),
        effort: place.settings.effort.map(|set| set.effort),
        mode: place.mode,
        policy: policy.name.clone(),
        sandbox: standing.holding(&enforcer).status(),
    };
    (header, access)
}

/// Handles a user who leaves before the session starts: saves the last input as the draft.
async fn leave(session: &Session, place: &AppContext, mut commands: mpsc::Receiver<Command>) {
    let mut kept = None;
    while let Some(command) = commands.recv().await {
        if let Command::Prompt { text } | Command::SaveDraft { text } = command {
            kept = Some(text).filter(|text| !text.is_empty()).or(kept);
        }
    }
    // The previous draft was not on the screen yet.
    let before = Some(&session.draft).filter(|draft| !draft.is_empty());
    let kept = kept.map(|text| before.map_or(text.clone(), |before| format!("{text}\n\n{before}")));
    if let Some(text) = kept
        && let Err(error) = session.store.journal(session.id(), place.mode).save_draft(text).await
    {
        tracing::warn!(%error, "cannot save the draft");
    }
}

/// Waits until the user leaves a screen on which nothing can run.
pub async fn wait_for_the_end(mut commands: mpsc::Receiver<Command>) {
    while commands.recv().await.is_some() {}
}
