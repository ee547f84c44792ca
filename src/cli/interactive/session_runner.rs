//! Runs the session behind a visible screen, from when it has been opened until it ends.

use super::session_lock::{LockOutcome, ReadOnlySession, SessionStart};
use super::start_hints;
use crate::cli::screen::TuiChannels;
use crate::host::catalogue_update;
use crate::host::context::AppContext;
use crate::host::crash::CrashHandler;
use crate::host::error::CliError;
use crate::host::history;
use crate::host::history::SessionHistory;
use crate::host::local_models::ModelSelection;
use crate::host::nesting::Nesting;
use crate::host::policy_layers::Policy;
use crate::host::query::QueryHandler;
use crate::host::query_service::QueryService;
use crate::host::review::ReviewService;
use crate::host::sandbox_host::SandboxHost;
use crate::host::session_builder::ClaimedSession;
use crate::protocol::{ChangedFiles, Command, Event, EventKind, Problem, SessionCommand, SessionId};
use crate::tui::{ModelAccess, SessionHeader, Start, TrustAnswer, TrustQuestion};
use tokio::sync::{mpsc, oneshot};

/// Information about a session that is needed after the screen has closed.
#[derive(Default)]
pub(crate) struct SessionOutcome {
    /// Files that the session changed.
    pub changed: ChangedFiles,
    /// ID of the session, if it was opened.
    pub session: Option<SessionId>,
    /// Notices about the database, which cannot be shown while the screen is open.
    pub notices: Vec<String>,
    /// Error that prevented a session from being opened, if any.
    pub trouble: Option<CliError>,
}

/// A session that has been opened but is not running yet.
pub(crate) struct SessionRunner {
    pub session: SessionStart,
    /// Whether the session belongs to a different directory from the one in which the screen was opened.
    pub moved: bool,
    /// Model requested on the command line or in the configuration.
    pub wanted: Option<String>,
    pub desk: QueryHandler,
    pub watch: CrashHandler,
    /// Whether first-time setup may start automatically.
    pub sets_up: bool,
}

/// The parts of a screen's state that do not depend on its session.
struct StartContext {
    moved: bool,
    wanted: Option<String>,
    sets_up: bool,
}

/// Error that indicates that the screen was closed before the session was shown.
struct ScreenClosed;

/// Receives the user's answer to the trust prompt.
type TrustDecision = oneshot::Receiver<TrustAnswer>;

impl SessionRunner {
    /// Runs the session until it ends. Returns the files that it changed.
    pub(crate) async fn run(self, wires: TuiChannels, opened: &mut Option<SessionId>) -> ChangedFiles {
        let nothing = ChangedFiles::default;
        let TuiChannels { start, ahead, commands, queries, events } = wires;
        let Self { session, moved, wanted, desk, watch, sets_up } = self;
        let service = QueryService::new(desk.clone());
        let serving = service.serve(queries);
        desk.follow_keys();
        let mut claimed = match session {
            SessionStart::Ready(claimed) => *claimed,
            SessionStart::Held(locked) => match locked.ask(&ahead).await {
                LockOutcome::Locked(claimed) => *claimed,
                LockOutcome::ReadOnly(watched) => {
                    show_read_only(*watched, moved, start, commands, (events, &service)).await;
                    return nothing();
                }
                LockOutcome::Left => return nothing(),
            },
        };
        let id = claimed.session().id().clone();
        watch.set_session(claimed.context().directories.data.join("logs"), format!("aye --resume={id}"));
        *opened = Some(id);
        let past = claimed.history();
        service.open_history(past.clone(), claimed.context().clone());
        desk.trust(claimed.project());
        let context = StartContext { moved, wanted, sets_up };
        let Ok(decision) = show(&mut claimed, &past, context, start).await else {
            leave(&claimed, commands).await;
            return nothing();
        };
        let older = claimed.session().tail.before;
        // The screen already shows the latest part of the history. The rest is loaded now.
        let loading = history::load(claimed.session());
        if let Some(decision) = decision
            && !apply(&mut claimed, decision, &desk).await
        {
            leave(&claimed, commands).await;
            return nothing();
        }
        // The screen is visible and accepts input, but nothing is sent until the whole history is loaded.
        match loading.await {
            Ok(Ok(loaded)) => claimed.add_history(loaded),
            Ok(Err(error)) => return history::unreadable(past, Problem::from(error).one_line(), &events, commands).await,
            Err(_) => return nothing(),
        }
        let sum = older.map(|_| EventKind::HistorySummed(claimed.session().state.history_sum()));
        let draft = Some(claimed.session().draft.clone()).filter(|draft| !draft.is_empty());
        let app = claimed.context().clone();
        let reviews = ReviewService::new(claimed.common(), &app);
        let mut prepared = match Box::pin(claimed.prepare()).await {
            Ok(prepared) => prepared,
            Err(error) => return history::unreadable(past, CliError::from(error).to_string(), &events, commands).await,
        };
        let notices = prepared.take_notices().into_iter().map(EventKind::notice);
        for kind in sum.into_iter().chain(notices).chain(draft.map(|text| EventKind::DraftRestored { text })) {
            past.emit(kind, &events);
        }
        // This check runs after the screen was drawn, and nothing waits for it.
        let looks = tokio::spawn(report_catalogue_update(app, past.clone(), events.clone()));
        let mut running = prepared.start(commands, events, None);
        service.open_session(running.queries().clone());
        service.open_reviews(reviews.clone(), running.account().clone());
        running.wait_until_ended().await;
        looks.abort();
        reviews.end().await;
        serving.end().await;
        let changed = running.changed_files().await;
        running.close().await;
        changed
    }
}

/// If update checks are enabled, notifies the user when the list of models has changed.
async fn report_catalogue_update(app: AppContext, past: SessionHistory, events: mpsc::UnboundedSender<Event>) {
    if let Some(message) = catalogue_update::daily_look(&app).await {
        past.emit(EventKind::notice(message), &events);
    }
}

/// Shows the session. If the user has not decided whether to trust the project, also shows the trust prompt.
async fn show(
    claimed: &mut ClaimedSession,
    past: &SessionHistory,
    context: StartContext,
    start: oneshot::Sender<Start>,
) -> Result<Option<TrustDecision>, ScreenClosed> {
    let StartContext { moved, wanted, sets_up } = context;
    let probe = tokio::task::spawn_blocking(claimed.sandbox_probe());
    let (here, store) = (claimed.context().clone(), claimed.session().store.clone());
    // A resumed session shows no hints in its first lines.
    let hints = claimed.session().is_new().then(|| tokio::spawn(async move { start_hints::hints(&store, &here).await }));
    claimed.find_local_model().await;
    if let Ok(sandbox) = probe.await {
        claimed.set_sandbox(sandbox);
    }
    let (last_here, attempt) = match hints {
        Some(hints) => hints.await.unwrap_or_default(),
        None => (None, None),
    };
    let (question, decision) = trust_question(claimed).unzip();
    let sandbox = claimed.find_sandbox();
    let (app, policy, model) = (claimed.context(), claimed.policy(), claimed.model());
    let (header, model_access) = head(app, policy, (model, wanted), claimed.summary_model(), &sandbox);
    // The key may be missing even if the user has chosen a model with an option or in the settings.
    let has_questions = match model {
        // No prompt is needed if the user has chosen a mode for this session or configured approvals.
        Ok(_) => !claimed.is_mode_named() && !crate::host::setup::approvals::are_set(&app.settings),
        Err(_) => claimed.may_choose_model(),
    };
    let may_set_up = sets_up && claimed.session().is_new() && has_questions;
    let told = Start {
        header,
        history: past.events(&claimed.session().tail.records),
        older: claimed.session().tail.before,
        cwd: moved.then(|| app.workspace_display()),
        model_access,
        trust: question,
        is_trusted: claimed.project().has_trusted_files(),
        policy_ends: start_hints::expiry_hint(policy, jiff::Timestamp::now()),
        last_here,
        attempt,
        task_check: claimed.common().copy.as_ref().and_then(|copy| copy.check.clone()),
        is_first: may_set_up && Nesting::detect() == Nesting::Outermost && crate::host::setup::write::is_first(app),
    };
    start.send(told).map(|()| decision).map_err(|_| ScreenClosed)
}

/// Returns the trust prompt for a project on which the user has not decided, and the receiver of the answer.
fn trust_question(claimed: &mut ClaimedSession) -> Option<(TrustQuestion, TrustDecision)> {
    let (answer, decision) = oneshot::channel();
    let place = claimed.context().workspace_display();
    claimed.project_to_trust()?;
    let approves_effects = claimed.approves_effects();
    let project = claimed.project();
    let question = TrustQuestion {
        place,
        items: project.lines(),
        runs_code: project.code_files(),
        files: project.files(),
        remote: project.remote(),
        changes: project.changes().map(<[String]>::to_vec),
        broken: project.policy_error(),
        approves_effects,
        answer,
    };
    Some((question, decision))
}

/// Applies the answer to the trust prompt. Returns `false` if the user quits.
async fn apply(claimed: &mut ClaimedSession, decision: TrustDecision, desk: &QueryHandler) -> bool {
    match decision.await {
        Ok(TrustAnswer::Yes) => {
            claimed.trust_project();
            desk.trust(claimed.project());
        }
        Ok(TrustAnswer::ReadOnly) => claimed.restrict_to_plan_mode(),
        Ok(TrustAnswer::Decline) => claimed.decline_trust(),
        Ok(TrustAnswer::Quit) | Err(_) => return false,
    }
    true
}

/// Shows the current state of a session that another process owns, until the user closes it.
async fn show_read_only(
    watched: ReadOnlySession,
    moved: bool,
    start: oneshot::Sender<Start>,
    commands: mpsc::Receiver<SessionCommand>,
    (events, service): (mpsc::UnboundedSender<Event>, &QueryService),
) {
    let ReadOnlySession { builder, id, tail, holder } = watched;
    let (app, policy) = (builder.context(), builder.policy());
    let past = SessionHistory::new(builder.store(), &id, app);
    service.open_history(past.clone(), app.clone());
    let own = app.clone();
    let Ok(sandbox) =
        tokio::task::spawn_blocking(move || SandboxHost::find(&own, crate::tools::RepositoryTrust::Untrusted)).await
    else {
        return;
    };
    let (header, _) = head(app, policy, (builder.model(), None), None, &sandbox);
    let older = tail.before;
    let told = Start {
        header,
        history: past.events(&tail.records),
        older,
        cwd: moved.then(|| app.workspace_display()),
        model_access: ModelAccess::ReadOnly { holder },
        trust: None,
        is_trusted: false,
        policy_ends: start_hints::expiry_hint(policy, jiff::Timestamp::now()),
        last_here: None,
        attempt: None,
        is_first: false,
        task_check: None,
    };
    // Fails only if the screen has closed.
    drop(start.send(told));
    if older.is_some() {
        past.emit_totals(events);
    }
    wait_for_exit(commands).await;
}

fn head(
    app: &AppContext,
    policy: &Policy,
    (model, wanted): (&ModelSelection, Option<String>),
    summary_model: Option<String>,
    standing: &SandboxHost,
) -> (SessionHeader, ModelAccess) {
    let enforcer = standing.enforcer(app, policy);
    let access = match model {
        Ok(_) => ModelAccess::Ready,
        Err(error) => ModelAccess::NoKey { message: error.message_in_session(), model: wanted },
    };
    let model = model.as_ref().ok();
    let header = SessionHeader {
        branch: app.branch(),
        model: model.map_or_else(String::new, |model| model.name().to_owned()),
        summary_model,
        context_tokens: model.map(|model| model.facts().context_window),
        effort: app.settings.effort.map(|set| set.effort),
        mode: app.mode,
        policy: policy.name.clone(),
        sandbox: standing.sandbox_policy(&enforcer).status(),
    };
    (header, access)
}

/// Saves the user's last input as a draft, because the user quit before the session started.
async fn leave(claimed: &ClaimedSession, mut commands: mpsc::Receiver<SessionCommand>) {
    let session = claimed.session();
    let mut kept = None;
    while let Some(command) = commands.recv().await {
        if let SessionCommand::Turn(Command::Prompt { text } | Command::SaveDraft { text }) = command {
            kept = Some(text).filter(|text| !text.is_empty()).or(kept);
        }
    }
    // The previous draft, which the screen did not show yet, is preserved.
    let before = Some(&session.draft).filter(|draft| !draft.is_empty());
    let kept = kept.map(|text| before.map_or(text.clone(), |before| format!("{text}\n\n{before}")));
    if let Some(text) = kept
        && let Err(error) = session.store.journal(session.id(), claimed.context().mode).save_draft(text).await
    {
        tracing::warn!(%error, "cannot save the draft");
    }
}

/// Waits until a screen without a running session closes, discarding all commands.
pub(crate) async fn wait_for_exit(mut commands: mpsc::Receiver<SessionCommand>) {
    while commands.recv().await.is_some() {}
}
