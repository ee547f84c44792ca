//! `aye exec`: runs a single task without a screen.

mod drive;
mod patch;
pub(crate) mod piped_input;

use super::args::{ExecPrompt, OutputFormat};
use crate::agent::{self, Approver, ResumePolicy};
use crate::headless::{self, Format, Output, RunCheck};
use crate::host::console::{warn, warn_all};
use crate::host::context::AppContext;
use crate::host::error::CliError;
use crate::host::exit::Exit;
use crate::host::options::{Common, GoalOptions, RunOptions, SessionChoice};
use crate::host::output_schema::OutputSchema;
use crate::host::prompt_commands::{PromptCommands, PromptMeaning, screen_only_error};
use crate::host::session_builder::front_end::FrontEnd;
use crate::host::session_builder::{ClaimedSession, SessionBuilder};
use crate::host::session_error::SessionError;
use crate::host::startup;
use crate::host::startup::start_log;
use crate::protocol::{Command, Event, EventKind, Goal, Problem};
use crate::store::Store;
use crate::tools::PolicyStamp;
use patch::PatchRun;
use piped_input::PipedInput;
use std::io::{IsTerminal, Read, Write};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::runtime::Runtime;
use tokio::sync::mpsc::{self, UnboundedReceiver};

pub(crate) struct ExecRequest {
    pub prompt: ExecPrompt,
    /// Whether piped input is part of the prompt.
    pub takes_input: bool,
    pub session: SessionChoice,
    pub format: OutputFormat,
    pub options: RunOptions,
    pub approver: Approver,
}

/// Maximum width of a prompt quoted in a notice, in terminal cells.
const TITLE_CELLS: usize = 60;
/// Maximum time to wait for remaining reads and writes at exit.
const LEFTOVERS: Duration = Duration::from_secs(2);
const NEW_TASK: &str = "run `aye exec -c PROMPT` to start a new task";

fn no_prompt() -> CliError {
    CliError::usage("missing prompt")
        .hint("run `aye exec PROMPT`, or `aye exec -` to read the prompt from standard input")
        .hint("run `aye exec -c` to continue the latest session")
}

/// Input for the model: a prompt, piped input, or both. Empty if the session merely continues.
struct ExecInput {
    prompt: Option<String>,
    input: Option<PipedInput>,
}

impl ExecInput {
    /// Returns the prompt that was given, or reads it from stdin.
    fn read(given: ExecPrompt) -> Result<Self, CliError> {
        let nothing = Self { prompt: None, input: None };
        Ok(match given {
            ExecPrompt::Text(text) | ExecPrompt::Literal(text) => Self { prompt: Some(text), ..nothing },
            ExecPrompt::Stdin => Self { prompt: Some(stdin()?), ..nothing },
            ExecPrompt::Piped => {
                let input = piped_input::read(&mut |notice| warn(notice))?.ok_or_else(no_prompt)?;
                Self { input: Some(input), ..nothing }
            }
            ExecPrompt::GoOn => nothing,
        })
    }

    /// If the prompt is a slash command, replaces it with the command's text. Returns an error for a command that is
    /// available only on the screen.
    fn expand(&mut self, commands: &PromptCommands) -> Result<(), CliError> {
        let Some(text) = self.prompt.as_ref().filter(|text| text.trim_start().starts_with('/')) else { return Ok(()) };
        warn_all(&commands.notices(text));
        match commands.parse(text.clone()).map_err(CliError::usage)? {
            PromptMeaning::Prompt(text) => self.prompt = Some(text),
            PromptMeaning::OfScreen(text) => return Err(CliError::usage(screen_only_error(&text))),
        }
        Ok(())
    }

    fn is_empty(&self) -> bool {
        self.prompt.is_none() && self.input.is_none()
    }

    /// Returns the prompt followed by the piped input. If there is a prompt, long input is redacted and shortened.
    fn prompt(self, setup: &agent::Setup) -> Result<Option<String>, CliError> {
        match (self.prompt, self.input) {
            (Some(prompt), Some(input)) => {
                let room = piped_input::InputStorage {
                    redactor: &setup.redactor,
                    artifacts: setup.artifacts.as_deref(),
                    context_window: setup.options.model.context_window,
                };
                Ok(Some(piped_input::attach(&prompt, &input, &room, &mut |notice| warn(notice))))
            }
            (prompt, input) => Ok(prompt.or(input.map(|input| input.text))),
        }
    }
}

pub(crate) fn run(common: &Common, request: ExecRequest) -> Result<Exit, CliError> {
    let mut app = AppContext::find(common)?;
    // Errors in the user's own files are reported before anything is created.
    app.policy(common.policy.as_deref(), None)?;
    let schema = request.options.output_schema.as_deref().map(OutputSchema::load).transpose()?.map(Arc::new);
    let Some(file) = request.options.patch.clone() else {
        // Dropped last, because everything below may write to the directory.
        let ephemeral = if request.options.is_ephemeral { Some(app.save_nothing()?) } else { None };
        let _log = start_log(&app, common.verbosity);
        return run_task(common, app, request, schema, TaskOutput { is_saved: ephemeral.is_none(), captured: None })
            .map(|ended| ended.exit);
    };
    let data = app.save_nothing()?;
    let patch = PatchRun::begin(&app, common, &data, &file)?;
    let _log = start_log(&app, common.verbosity);
    let ended = run_task(common, app.clone(), request, schema, TaskOutput { is_saved: false, captured: None })?;
    // The patch is also written if the task failed, because the changes so far may be useful.
    patch.finish(&app, ended.policy)?;
    Ok(ended.exit)
}

/// A task that aye itself starts to obtain a value.
pub(crate) struct ValueTask {
    pub prompt: String,
    /// JSON Schema to which the value must conform.
    pub schema: &'static str,
    /// Name of the value in messages.
    pub name: &'static str,
    pub is_ephemeral: bool,
}

/// Runs a task in a new session, printing progress to stderr. Returns the value as JSON if the task completed with one.
pub(crate) fn run_for_value(common: &Common, mut app: AppContext, task: ValueTask) -> Result<(Exit, Option<String>), CliError> {
    let schema = Arc::new(OutputSchema::built_in(task.schema, task.name)?);
    // Dropped last, because everything below may write to the directory.
    let ephemeral = if task.is_ephemeral { Some(app.save_nothing()?) } else { None };
    let _log = start_log(&app, common.verbosity);
    let value = CapturedOutput::default();
    let request = ExecRequest {
        prompt: ExecPrompt::Literal(task.prompt),
        takes_input: false,
        session: SessionChoice::New,
        format: OutputFormat::Text,
        options: RunOptions::default(),
        approver: Approver::Nobody,
    };
    let output = TaskOutput { is_saved: ephemeral.is_none(), captured: Some(value.clone()) };
    let ended = run_task(common, app, request, Some(schema), output)?;
    Ok((ended.exit, value.take()))
}

/// Buffer for output that is not printed. All clones share the same buffer.
#[derive(Clone, Default)]
struct CapturedOutput(Arc<Mutex<Vec<u8>>>);

impl CapturedOutput {
    /// Returns the buffered text and clears the buffer. Returns `None` if the text is empty.
    fn take(&self) -> Option<String> {
        let bytes = std::mem::take(&mut *self.0.lock().unwrap_or_else(PoisonError::into_inner));
        String::from_utf8(bytes).ok().filter(|text| !text.trim().is_empty())
    }
}

impl Write for CapturedOutput {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).write(bytes)
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

/// Destination of a task's output.
struct TaskOutput {
    /// Whether the session is saved to disk.
    is_saved: bool,
    /// Receives the output that would otherwise go to stdout.
    captured: Option<CapturedOutput>,
}

/// Exit code of a task that has ended, and the policy under which it ran.
struct EndedTask {
    exit: Exit,
    policy: PolicyStamp,
}

fn run_task(
    common: &Common,
    app: AppContext,
    request: ExecRequest,
    schema: Option<Arc<OutputSchema>>,
    output: TaskOutput,
) -> Result<EndedTask, CliError> {
    let runtime = startup::runtime()?;
    let ended = run_task_in(&runtime, common, app, request, schema, output);
    // The time limit prevents an unresponsive disk from delaying the exit.
    runtime.shutdown_timeout(LEFTOVERS);
    ended
}

fn run_task_in(
    runtime: &Runtime,
    common: &Common,
    app: AppContext,
    request: ExecRequest,
    schema: Option<Arc<OutputSchema>>,
    output: TaskOutput,
) -> Result<EndedTask, CliError> {
    let from_stdin = request.prompt == ExecPrompt::Stdin;
    let goal = request.options.goal.clone();
    let may_be_command = matches!(request.prompt, ExecPrompt::Text(_));
    let mut words = ExecInput::read(request.prompt)?;
    let store = Store::open(&app.directories.data)?;
    // A command that reads the response wrote the prompt.
    let front_end = FrontEnd { writes_prompt: output.captured.is_some(), ..FrontEnd::exec(request.approver) };
    let mut builder = SessionBuilder::find(front_end, common.clone(), app, store, &request.session).map_err(refusal)?;
    if let Some(entries) = &request.options.allowed_tools {
        builder = builder.with_allowed_tools(entries).map_err(CliError::usage)?;
    }
    if let Some(schema) = &schema {
        builder = builder.with_output_schema(schema.json());
    }
    if may_be_command {
        words.expand(&builder.prompt_commands())?;
    }
    let builder = runtime.block_on(builder.with_model())?;
    if request.takes_input && words.input.is_none() && !from_stdin {
        words.input = piped_input::read(&mut |notice| warn(notice))?;
    }
    let policy = builder.policy().stamp(builder.context().mode);
    let printing = OutputMode { format: request.format.into(), schema, is_saved: output.is_saved, captured: output.captured };
    let unfinished = if words.is_empty() { ResumePolicy::Continue } else { ResumePolicy::Discard };
    let claimed = builder.with_unfinished(unfinished).claim().map_err(refusal)?;
    if words.is_empty() && claimed.session().state.is_done() {
        return reprint_result(runtime, &claimed, &printing).map(|exit| EndedTask { exit, policy });
    }
    if unfinished == ResumePolicy::Discard
        && let Some(task) = claimed.session().state.task().filter(|task| !task.stage.is_over())
    {
        warn(replaced_notice(&task.prompt));
    }
    let prepared = runtime.block_on(claimed.prepare())?;
    match words.prompt(prepared.setup()) {
        Ok(prompt) => {
            let exit = runtime.block_on(drive::drive(prepared, prompt.map(|text| first_command(text, goal)), &printing));
            Ok(EndedTask { exit, policy })
        }
        Err(trouble) => {
            runtime.block_on(prepared.close());
            Err(trouble)
        }
    }
}

/// Returns the first command of the session: a plain prompt, or a goal if `goal` is set.
fn first_command(text: String, goal: Option<GoalOptions>) -> Command {
    match goal {
        None => Command::Prompt { text },
        Some(GoalOptions { check, time_ms, max_rounds }) => {
            Command::SetGoal { goal: Goal { time_ms, max_rounds, ..Goal::new(text, check) } }
        }
    }
}

/// Returns a notice that a new prompt replaces the unfinished task that began with `prompt`.
fn replaced_notice(prompt: &str) -> Problem {
    let line = crate::text::clean_line(prompt.trim().lines().next().unwrap_or_default());
    let line = crate::text::truncate(&line, TITLE_CELLS).into_owned();
    Problem::new(format!("the unfinished task \"{line}\" was abandoned, because a new prompt was given"))
        .hint("to finish a task first, run `aye exec -c` without a prompt")
}

/// Converts the reason why a session cannot be opened to an error. If another process owns the session, a hint explains
/// how to take it over.
fn refusal(error: SessionError) -> CliError {
    match error {
        SessionError::Locked { id, pid } => CliError::usage(format!("session `{id}` is in use by process {pid}"))
            .hint("quit aye there, pass `--take-over`, or start another session"),
        error => error.into(),
    }
}

/// Options for printing a run's events.
struct OutputMode {
    format: Format,
    /// Schema that the final response must match.
    schema: Option<Arc<OutputSchema>>,
    is_saved: bool,
    captured: Option<CapturedOutput>,
}

/// Prints events until their sender is dropped. `repairs` is the number of times that the model may correct its
/// response.
async fn print_notices(told: UnboundedReceiver<Event>, printing: &OutputMode, repairs: usize) -> headless::Outcome {
    let OutputMode { format, schema, is_saved, captured } = printing;
    let check = schema.as_deref().map(|schema| RunCheck { by: schema, repairs });
    let mut err = std::io::stderr();
    let out_is_terminal = captured.is_none() && std::io::stdout().is_terminal();
    let mut out: Box<dyn Write + Send> = match captured {
        Some(captured) => Box::new(captured.clone()),
        None => Box::new(std::io::stdout()),
    };
    let (clean, version) = (crate::text::clean, crate::host::version::version());
    let output = Output { out: &mut *out, err: &mut err, out_is_terminal, clean, version, is_saved: *is_saved, check };
    headless::run(told, *format, output).await
}

/// Reprints the result of the last task, because the previous process may have been killed before it printed the
/// result.
fn reprint_result(runtime: &Runtime, claimed: &ClaimedSession, printing: &OutputMode) -> Result<Exit, CliError> {
    let session = claimed.session();
    let events = claimed.history().events(&session.records);
    let Some(mut end) = events.into_iter().rev().find(|event| event.kind.is_over()) else {
        return Err(CliError::usage("nothing to continue").hint(NEW_TASK));
    };
    if let EventKind::TaskCompleted { text, usage, cost_usd, .. } = &mut end.kind {
        session.state.last_response().clone_into(text);
        (*usage, *cost_usd) = (session.state.task_totals.usage, session.state.task_totals.cost_usd);
    }
    warn(Problem::new("nothing to continue: this is the result of the last task").hint(NEW_TASK));
    let (tell, told) = mpsc::unbounded_channel();
    if printing.format == Format::StreamJson {
        // The first line of the output describes the session.
        let model = claimed.model().as_ref().map(|model| model.name().to_owned()).unwrap_or_default();
        let (mode, workspace) = (claimed.context().mode, claimed.context().workspace.display().to_string());
        let kind = EventKind::SessionStarted { model, mode, workspace, resumed: true, facts: None };
        let _ = tell.send(Event { kind, ..end.clone() });
    }
    let _ = tell.send(end);
    drop(tell);
    Ok(runtime.block_on(print_notices(told, printing, 0)).into())
}

impl From<OutputFormat> for Format {
    fn from(format: OutputFormat) -> Self {
        match format {
            OutputFormat::Text => Self::Text,
            OutputFormat::Json => Self::Json,
            OutputFormat::Events => Self::Events,
            OutputFormat::StreamJson => Self::StreamJson,
        }
    }
}

/// Reads the prompt from stdin, unchanged.
fn stdin() -> Result<String, CliError> {
    let mut bytes = Vec::new();
    let read = std::io::stdin().lock().take(piped_input::MAX_READ as u64 + 1).read_to_end(&mut bytes);
    read.map_err(|error| CliError::usage(Problem::new("cannot read the prompt from standard input").because(error)))?;
    if bytes.len() > piped_input::MAX_READ {
        return Err(piped_input::too_large_error());
    }
    let text = piped_input::decode(&bytes, &mut |notice| warn(notice))?;
    if text.trim().is_empty() {
        return Err(CliError::usage("the prompt on standard input is empty"));
    }
    Ok(text)
}
