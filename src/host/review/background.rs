//! Reviews that run in the background of the session on the screen. They run one at a time, each in an ephemeral
//! session of its own.

use super::{SCHEMA, SCHEMA_NAME, collect, prompt, read};
use crate::agent::{self, Account, AccountState};
use crate::config::SetEffort;
use crate::headless::ResponseCheck;
use crate::host::blocking::off_thread;
use crate::host::context::AppContext;
use crate::host::ephemeral::EphemeralData;
use crate::host::error::CliError;
use crate::host::options::{Common, SessionChoice};
use crate::host::output_schema::{OutputSchema, REPAIRS};
use crate::host::project::ProjectConfig;
use crate::host::session_builder::front_end::FrontEnd;
use crate::host::session_builder::{PreparedSession, SessionBuilder};
use crate::host::tool_runner::{Starts, ToolEnvironment, ToolRunner};
use crate::protocol::{
    Command, Effort, Event, EventKind, FailedRequest, Failure, Mode, Problem, Remedy, Review, ReviewQuery, ReviewSubject,
    ReviewUpdate, ReviewedChanges,
};
use crate::session::Expense;
use crate::store::Store;
use std::sync::{Arc, Mutex, PoisonError};
use tokio::sync::mpsc;
use tokio::task::{JoinHandle, spawn_blocking};
use tokio_util::sync::CancellationToken;

/// Name of the review in the error that is returned if its thread panics.
const WORKER: &str = "the review";

/// Review service for a front end. Cheap to clone.
#[derive(Clone)]
pub(crate) struct ReviewService {
    inner: Arc<Inner>,
}

struct Inner {
    common: Common,
    app: AppContext,
    running: Mutex<Option<ActiveReview>>,
}

/// A review that has been started.
struct ActiveReview {
    stop: CancellationToken,
    task: JoinHandle<()>,
}

impl ReviewService {
    /// Creates the service with the options and the environment of a session.
    pub(crate) fn new(common: &Common, app: &AppContext) -> Self {
        // The review writes nothing and asks no user.
        let common = Common { mode: Some(Mode::Plan), take_over: false, ..common.clone() };
        let mut app = app.clone();
        app.mode = Mode::Plan;
        Self { inner: Arc::new(Inner { common, app, running: Mutex::default() }) }
    }

    /// Starts or stops a review, and reports its progress and its result. The review is paid for by `account`.
    pub(crate) fn answer(&self, asked: ReviewQuery, account: Account, tell: impl Fn(ReviewUpdate) + Send + Sync + 'static) {
        let Inner { common, app, running } = &*self.inner;
        let mut running = running.lock().unwrap_or_else(PoisonError::into_inner);
        let open = running.as_ref().filter(|running| !running.task.is_finished());
        match asked {
            ReviewQuery::Stop => open.into_iter().for_each(|open| open.stop.cancel()),
            ReviewQuery::Start { .. } if open.is_some() => {
                tell(ReviewUpdate::Failed(Problem::new("a review is running").hint("wait until it ends, or stop it")));
            }
            ReviewQuery::Start { subject, model, effort } => {
                let stop = CancellationToken::new();
                let common = Common { model: model.or_else(|| common.model.clone()), ..common.clone() };
                let app = with_effort(app.clone(), effort);
                let run = ReviewRun { common, app, account, stop: stop.clone(), tell: Box::new(tell) };
                let task = tokio::spawn(async move {
                    let told = match Box::pin(run.review(&subject)).await {
                        Ok(Some(review)) => ReviewUpdate::Ended(Box::new(review)),
                        Ok(None) => ReviewUpdate::Stopped,
                        Err(error) => ReviewUpdate::Failed(error.into_problem()),
                    };
                    (run.tell)(told);
                });
                *running = Some(ActiveReview { stop, task });
            }
        }
    }

    /// Stops the running review, and waits until its data has been deleted.
    pub(crate) async fn end(&self) {
        let running = self.inner.running.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(ActiveReview { stop, task }) = running {
            stop.cancel();
            let _ = task.await;
        }
    }
}

/// Returns the environment with the session's current reasoning effort.
fn with_effort(mut app: AppContext, effort: Option<Effort>) -> AppContext {
    app.settings.effort = effort.map(|effort| SetEffort { effort, by_flag: true });
    app
}

/// Returns the environment with the price that the session assumes for its model, which would not be known otherwise.
fn with_price(mut app: AppContext, state: Option<&AccountState>) -> AppContext {
    app.settings.price_of_parent = state.and_then(|state| Some((state.model.clone(), state.assumed_price?)));
    app
}

/// A single review while it runs.
struct ReviewRun {
    common: Common,
    app: AppContext,
    account: Account,
    stop: CancellationToken,
    tell: Box<dyn Fn(ReviewUpdate) + Send + Sync>,
}

impl ReviewRun {
    /// Returns the review, or `None` if it was stopped.
    async fn review(&self, subject: &ReviewSubject) -> Result<Option<Review>, CliError> {
        let (common, app) = (self.common.clone(), self.app.clone());
        // The directory is dropped last, because everything below may write to it.
        let (ephemeral, app, runner) = off_thread(WORKER, move || prepare_tools(&common, app)).await??;
        let Some(changes) = self.unless_stopped(collect(&runner, subject)).await.transpose()? else { return Ok(None) };
        drop(runner);
        if changes.diffs.is_empty() {
            return Ok(Some(Review { changes, ..Review::default() }));
        }
        (self.tell)(ReviewUpdate::Started(changes.summary()));
        let state = self.account.state().await;
        if let Some(failure) = state.as_ref().and_then(|state| state.failure.as_ref()) {
            return Err(spending_error(failure));
        }
        let schema = OutputSchema::built_in(SCHEMA, SCHEMA_NAME)?;
        let app = with_price(app, state.as_ref());
        let preparing = Box::pin(self.prepare(app, schema.json()));
        let Some(prepared) = self.unless_stopped(preparing).await.transpose()? else { return Ok(None) };
        let review = self.request_findings(prepared, schema, changes).await;
        // Removes the directory.
        let _ = spawn_blocking(move || drop(ephemeral)).await;
        review
    }

    /// Opens the session for the review.
    async fn prepare(&self, app: AppContext, schema: String) -> Result<PreparedSession, CliError> {
        let common = self.common.clone();
        let builder = off_thread(WORKER, move || {
            let store = Store::open(&app.directories.data)?;
            let builder = SessionBuilder::find(FrontEnd::review(), common, app, store, &SessionChoice::New)?;
            Ok::<_, CliError>(builder.with_output_schema(schema))
        });
        let builder = builder.await??.with_model().await?;
        let mut claimed = off_thread(WORKER, move || builder.claim()).await??;
        let sandbox = off_thread(WORKER, claimed.sandbox_probe()).await?;
        claimed.set_sandbox(sandbox);
        Ok(Box::pin(claimed.prepare()).await?)
    }

    /// Requests findings from the model, and closes the session afterwards.
    async fn request_findings(
        &self,
        prepared: PreparedSession,
        schema: OutputSchema,
        changes: ReviewedChanges,
    ) -> Result<Option<Review>, CliError> {
        let (commands, receive_commands) = mpsc::channel(agent::CHANNEL_DEPTH);
        let (events, mut receive_events) = mpsc::unbounded_channel();
        let mut session = prepared.start(receive_commands, events, None);
        let _ = commands.send(Command::Prompt { text: prompt(&changes) }.into()).await;
        let mut outcome = ReviewOutcome { schema, repairs: REPAIRS, provider: String::new(), ended: None };
        let mut is_stopping = false;
        loop {
            let event: Option<Event> = tokio::select! {
                event = receive_events.recv() => event,
                () = self.stop.cancelled(), if !is_stopping => {
                    is_stopping = true;
                    let _ = commands.send(Command::Kill.into()).await;
                    continue;
                }
            };
            let Some(Event { kind, .. }) = event else { break };
            if let EventKind::SessionStarted { model, .. } = &kind {
                outcome.provider = model.split('/').next().unwrap_or_default().to_owned();
            }
            if let Some(failure) = self.on_event(&kind).await {
                outcome.ended.get_or_insert(Err(spending_error(&failure)));
                let _ = commands.send(Command::Kill.into()).await;
            }
            if kind.is_over() {
                let _ = commands.send(outcome.after_task(kind).into()).await;
            }
        }
        session.wait_until_ended().await;
        session.close().await;
        if is_stopping {
            return Ok(None);
        }
        let value = outcome.ended.unwrap_or_else(|| Err(CliError::failed("the review ended without a result")))?;
        Ok(Some(read(&value, changes).map_err(CliError::failed)?))
    }

    /// Reports the step that an event describes, or counts the usage that it contains. If no further request may be
    /// sent, returns the reason.
    async fn on_event(&self, kind: &EventKind) -> Option<Failure> {
        match kind {
            EventKind::ToolRequested { summary, .. } => (self.tell)(ReviewUpdate::Step(summary.clone())),
            EventKind::LlmRequestCompleted { usage, cost_usd, estimated, .. }
            | EventKind::LlmRetry(FailedRequest { usage: Some(usage), cost_usd, estimated, .. }) => {
                let spent = Expense { usage: *usage, cost_usd: *cost_usd, estimated: *estimated };
                return self.account.count(spent).await;
            }
            _ => {}
        }
        None
    }

    /// Waits for a future to complete. Returns `None` if the review is stopped first.
    async fn unless_stopped<T>(&self, work: impl Future<Output = T>) -> Option<T> {
        tokio::select! {
            done = work => Some(done),
            () = self.stop.cancelled() => None,
        }
    }
}

/// Collects the result of the review's task.
struct ReviewOutcome {
    schema: OutputSchema,
    /// Number of times that the model may still correct its response.
    repairs: usize,
    /// Provider of the model, which errors mention.
    provider: String,
    /// The validated response as JSON, or an error. `None` until the task has ended.
    ended: Option<Result<String, CliError>>,
}

impl ReviewOutcome {
    /// Returns the command to send after a task has ended: a prompt that requests a correction, or a command that ends
    /// the session.
    fn after_task(&mut self, end: EventKind) -> Command {
        let ended = match end {
            EventKind::TaskCompleted { text, .. } => {
                if let Some(text) = self.schema.correction(&text, &mut self.repairs) {
                    return Command::Prompt { text };
                }
                self.schema.extract_value(&text).map_err(|mismatch| {
                    let problem = Problem::new("the model's response does not match the format for findings");
                    CliError::failed(problem.because(mismatch).hint("run /review again, or choose another model with /model"))
                })
            }
            EventKind::TaskFailed { failure, .. }
            | EventKind::PromptBlocked { failure, .. }
            | EventKind::SessionPaused { failure } => Err(task_error(failure.to_provider_problem(&self.provider))),
            _ => Err(CliError::failed("the review was interrupted")),
        };
        self.ended.get_or_insert(ended);
        Command::Quit
    }
}

/// Creates the data directory for the review, and the tools that read the changes.
fn prepare_tools(common: &Common, mut app: AppContext) -> Result<(EphemeralData, AppContext, ToolRunner), CliError> {
    let ephemeral = app.save_nothing()?;
    let project = ProjectConfig::inspect(&app.workspace, &app.directories.config, common.trust);
    let environment = ToolEnvironment::find_for_screen(&app, common, &project, Starts::Programs)?;
    Ok((ephemeral, app, ToolRunner::new(environment, None)))
}

/// Returns the error for a review that may not send any request.
fn spending_error(failure: &Failure) -> CliError {
    let mut problem = failure.problem();
    if failure.remedy == Some(Remedy::AssumePrice) {
        problem.hints = vec!["use /budget price 3,15 (dollars per million input and output tokens), then /review".to_owned()];
    }
    task_error(problem)
}

/// Returns the error for a review whose task failed.
fn task_error(problem: Problem) -> CliError {
    CliError::failed(problem.with_location("the review failed"))
}
