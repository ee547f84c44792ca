//! `aye exec`: runs one task without a screen.

pub mod piped_input;

use super::args::{ExecPrompt, OutputFormat};
use crate::agent::{self, Approver, Unfinished};
use crate::config::NoModel;
use crate::headless::{self, Format, Output};
use crate::host::console;
use crate::host::console::{warn, warn_all};
use crate::host::context::AppContext;
use crate::host::error::CliError;
use crate::host::exit::Exit;
use crate::host::mcp_servers::FIRST_WAIT;
use crate::host::models::ModelCatalog;
use crate::host::options::{Common, SessionChoice};
use crate::host::project::ProjectConfig;
use crate::host::reload::Reload;
use crate::host::retention;
use crate::host::sandbox_host::SandboxHost;
use crate::host::session;
use crate::host::session::{Session, SessionOptions};
use crate::host::startup::{open_store, start_log};
use crate::host::user_rules::UserRules;
use crate::host::{local_models, lock_takeover};
use crate::host::{session_servers, startup};
use crate::ports::Model;
use crate::protocol::{Command, Event, EventKind, SessionId};
use crate::store::{SessionSummary, Store};
use crate::sys::signals::hang_up_is_ignored;
use piped_input::Piped;
use std::io::{IsTerminal, Read};
use std::sync::Arc;
use std::time::Duration;
use tokio::runtime::Runtime;
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::mpsc::{self, UnboundedReceiver};
use tokio::time::{Instant, sleep_until};

/// Time for running tools to end after a signal.
const GRACE: Duration = Duration::from_secs(8);

pub struct Request {
    pub prompt: ExecPrompt,
    /// True if piped input belongs to the prompt.
    pub takes_input: bool,
    pub session: SessionChoice,
    pub format: OutputFormat,
    pub approver: Approver,
}

const NO_PROMPT: &str = "missing prompt\nhint: run `aye exec PROMPT`, `aye exec -` to read it from standard input, or \
    `aye exec -c` to continue the latest session";

/// The input for the model: a prompt, piped input, both, or nothing if the session just continues.
struct ExecInput {
    prompt: Option<String>,
    input: Option<Piped>,
}

impl ExecInput {
    /// Reads the given prompt, or the prompt on stdin.
    fn read(given: ExecPrompt) -> Result<Self, CliError> {
        let nothing = Self { prompt: None, input: None };
        Ok(match given {
            ExecPrompt::Text(text) => Self { prompt: Some(text), ..nothing },
            ExecPrompt::Stdin => Self { prompt: Some(stdin()?), ..nothing },
            ExecPrompt::Piped => {
                let input = piped_input::read(&mut console::warn)?.ok_or_else(|| CliError::usage(NO_PROMPT))?;
                Self { input: Some(input), ..nothing }
            }
            ExecPrompt::GoOn => nothing,
        })
    }

    fn is_empty(&self) -> bool {
        self.prompt.is_none() && self.input.is_none()
    }

    /// Returns the prompt with the piped input, within the context window of the model and redacted.
    fn prompt(self, setup: &agent::Setup) -> Result<Option<String>, CliError> {
        match (self.prompt, self.input) {
            (Some(prompt), Some(input)) => {
                let room = piped_input::Room {
                    redactor: &setup.redactor,
                    artifacts: setup.artifacts.as_deref(),
                    context_window: setup.options.model.context_window,
                };
                Ok(Some(piped_input::attach(&prompt, &input, &room, &mut console::warn)))
            }
            (prompt, input) => Ok(prompt.or(input.map(|input| input.text))),
        }
    }
}

pub fn run(common: &Common, request: Request) -> Result<Exit, CliError> {
    let mut place = AppContext::find(common)?;
    // Errors in the user's own files are reported before anything is created.
    place.policy(common.policy.as_deref(), None)?;
    let _log = start_log(&place, common.verbosity);
    let from_stdin = request.prompt == ExecPrompt::Stdin;
    let mut words = ExecInput::read(request.prompt)?;
    let store = open_store(&place)?;
    let chosen = session::choose(&store, &mut place, &request.session)?;
    if let Some(SessionSummary { session_id, .. }) = &chosen {
        check_lock(&store, session_id, common.take_over)?;
    }
    let runtime = startup::runtime()?;
    let project = ProjectConfig::look(&place.workspace, &place.directories.config, common.trust);
    let policy = place.policy(common.policy.as_deref(), Some(&project))?;
    place.with_tools_of(&project);
    let models = ModelCatalog::new(&place).under(&policy);
    let model = choose_model(&runtime, &models, &place, common.model.as_deref(), chosen.as_ref())?;
    if request.takes_input && words.input.is_none() && !from_stdin {
        words.input = piped_input::read(&mut console::warn)?;
    }
    let mut session = session::open(store, &place, &policy, chosen, model.name(), session::LoadScope::All)?;
    session.goes_on();
    warn_all(&std::mem::take(&mut session.notices));
    if words.is_empty() && session.state.is_done() {
        return told_again(&runtime, &place, &session, request.format);
    }
    project.ignored().iter().for_each(|line| warn(line));
    let instructions = project.instructions();
    let unfinished = if words.is_empty() { Unfinished::GoOn } else { Unfinished::Replace };
    let rules = Arc::new(UserRules::new(&place, common.policy.as_deref(), model.name()));
    let standing = SandboxHost::find(&place, project.trust());
    let remote = session_servers::connect(Vec::new(), &mut session, &place, &policy, &project, &standing, request.approver);
    if let Some(servers) = session.kept.servers() {
        warn_all(&runtime.block_on(servers.settle(FIRST_WAIT)));
    }
    let terms = SessionOptions {
        approver: request.approver,
        unfinished,
        max_steps: common.max_steps,
        // Approvals are answered at once.
        approval_timeout: None,
        instructions,
        guidance: project.guidance(),
        rules,
        standing: standing.clone(),
        remote,
    };
    let mut setup = session::setup(&place, &policy, &mut session, model, terms);
    warn_all(&std::mem::take(&mut session.notices));
    let prompt = match words.prompt(&setup) {
        Ok(prompt) => prompt,
        Err(trouble) => {
            runtime.block_on(session.end_servers());
            return Err(trouble);
        }
    };
    let (own, unread) = (place.clone(), project.unread());
    let (reload, updates) = Reload::new(place, common.policy.clone(), project, &session, &policy, standing);
    setup.policy_updates = Some(updates);
    setup.tell_changes = true;
    let exit = runtime.block_on(drive(setup, reload, prompt, request.format.into()));
    warn_all(&unread.take());
    runtime.block_on(session.end_servers());
    retention::before_the_end(&own, &session.store);
    Ok(exit)
}

/// Returns an error if another process owns the session and is not asked to exit.
fn check_lock(store: &Store, id: &SessionId, takes_over: bool) -> Result<(), CliError> {
    if takes_over {
        lock_takeover::end_holder(store, id).map_err(CliError::usage)?;
    }
    let Some(holder) = store.holder(id)? else { return Ok(()) };
    let pid = holder.instance.pid;
    let help = "exit it there, pass `--take-over` to make it exit, or start another session";
    Err(CliError::usage(format!("session `{id}` is in use by process {pid}; {help}")))
}

/// Chooses the model of the session, or a local one if aye may choose. Reads its key from the keyring if it is there.
fn choose_model(
    runtime: &Runtime,
    models: &ModelCatalog,
    place: &AppContext,
    flag: Option<&str>,
    chosen: Option<&SessionSummary>,
) -> Result<Arc<dyn Model>, CliError> {
    let open = local_models::is_open(&place.settings, flag, chosen);
    let (model, said) = runtime.block_on(local_models::instead(models, &place.settings, models.choose(flag, chosen), open));
    if let Some(line) = &said {
        warn(line);
    }
    let model = model.map_err(|error| match error {
        NoModel::NoKey { message } => CliError { exit: Exit::Authentication, message },
        NoModel::Forbidden { message } => CliError::usage(message),
        NoModel::Wrong(error) => error.into(),
    })?;
    if let Some(ask) = crate::host::models::key_to_ask_for(place, model.name()) {
        ask();
    }
    Ok(model)
}

/// Runs the session until its task ends, and prints its events.
async fn drive(setup: agent::Setup, reload: Reload, prompt: Option<String>, format: Format) -> Exit {
    let (commands, receive_commands) = mpsc::channel(agent::CHANNEL_DEPTH);
    let (events, mut receive_events) = mpsc::unbounded_channel();
    let (tell, told) = mpsc::unbounded_channel();
    let ended = agent::spawn(setup, receive_commands, events).ended;
    tokio::spawn(reload.run());
    if let Some(text) = prompt {
        let _ = commands.send(Command::Prompt { text }).await;
    }
    let watch = tokio::spawn(async move {
        let mut signalled = None;
        let (Ok(mut interrupt), Ok(mut terminate)) = (signal(SignalKind::interrupt()), signal(SignalKind::terminate())) else {
            return signalled;
        };
        // A run under `nohup` outlives the terminal.
        let mut hang_up = if hang_up_is_ignored() { None } else { signal(SignalKind::hangup()).ok() };
        let mut hung_up = async || match &mut hang_up {
            Some(hang_up) => drop(hang_up.recv().await),
            None => std::future::pending().await,
        };
        let mut last_call = None;
        loop {
            let event: Option<Event> = tokio::select! {
                event = receive_events.recv() => event,
                _ = interrupt.recv() => { signalled = Some(Exit::Interrupted); None }
                _ = terminate.recv() => { signalled = Some(Exit::Terminated); None }
                () = hung_up() => { signalled = Some(Exit::Terminated); None }
                () = sleep_until(last_call.unwrap_or_else(Instant::now)), if last_call.is_some() => return signalled,
            };
            match event {
                Some(event) => {
                    let over = event.kind.is_over();
                    let _ = tell.send(event);
                    if over {
                        let _ = commands.send(Command::Quit).await;
                    }
                }
                None if last_call.is_none()
                    && let Some(exit) = signalled =>
                {
                    last_call = Some(Instant::now() + GRACE);
                    // Ctrl+c interrupts the task. Any other signal leaves it paused, so that it can be resumed.
                    let command = if exit == Exit::Interrupted { Command::Cancel } else { Command::Quit };
                    let _ = commands.send(command).await;
                }
                None => return signalled,
            }
        }
    });
    let outcome = tell_all(told, format).await;
    if outcome == headless::Outcome::OutputClosed {
        return outcome.into();
    }
    let signalled = watch.await.unwrap_or(None);
    if signalled.is_none() {
        let _ = ended.await;
    }
    signalled.unwrap_or_else(|| outcome.into())
}

async fn tell_all(told: UnboundedReceiver<Event>, format: Format) -> headless::Outcome {
    let (mut out, mut err) = (std::io::stdout(), std::io::stderr());
    let out_is_terminal = out.is_terminal();
    headless::run(told, format, Output { out: &mut out, err: &mut err, out_is_terminal, clean: crate::text::clean }).await
}

/// Prints the result of the last task again: the previous process may have been killed before it did.
fn told_again(runtime: &Runtime, place: &AppContext, session: &Session, format: OutputFormat) -> Result<Exit, CliError> {
    let events = agent::replay(&session.records, &place.workspace_id(), session.id());
    let Some(mut end) = events.into_iter().rev().find(|event| event.kind.is_over()) else {
        return Err(CliError::usage("nothing to continue; run `aye exec -c PROMPT` to start a new task"));
    };
    if let EventKind::TaskCompleted { text, usage, cost_usd, .. } = &mut end.kind {
        session.state.last_response().clone_into(text);
        (*usage, *cost_usd) = (session.state.task_totals.usage, session.state.task_totals.cost_usd);
    }
    warn("nothing to continue: this is the result of the last task; run `aye exec -c PROMPT` to start a new one");
    let (tell, told) = mpsc::unbounded_channel();
    let _ = tell.send(end);
    drop(tell);
    Ok(runtime.block_on(tell_all(told, format.into())).into())
}

impl From<OutputFormat> for Format {
    fn from(format: OutputFormat) -> Self {
        match format {
            OutputFormat::Text => Self::Text,
            OutputFormat::Json => Self::Json,
            OutputFormat::StreamJson => Self::StreamJson,
        }
    }
}

/// Reads the prompt from stdin, unchanged.
fn stdin() -> Result<String, CliError> {
    let mut bytes = Vec::new();
    let read = std::io::stdin().lock().take(piped_input::MAX_READ as u64 + 1).read_to_end(&mut bytes);
    read.map_err(|error| CliError::usage(format!("cannot read the prompt from standard input: {error}")))?;
    if bytes.len() > piped_input::MAX_READ {
        return Err(piped_input::too_large());
    }
    let text = piped_input::decode(&bytes, &mut console::warn)?;
    if text.trim().is_empty() {
        return Err(CliError::usage("the prompt on standard input is empty"));
    }
    Ok(text)
}
