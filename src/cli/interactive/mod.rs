//! Interactive mode, consisting of the screen and the session behind it.

pub(crate) mod session_lock;
pub(crate) mod session_open;
pub(crate) mod session_prompt;
pub(crate) mod session_runner;
pub(crate) mod session_start;
pub(crate) mod start_hints;

use crate::cli::screen::current_workspace::CurrentWorkspace;
use crate::cli::screen::exit_summary::farewell;
use crate::cli::screen::{TuiChannels, connect, is_plain};
use crate::host::console::{fail, print_text, warn_all};
use crate::host::context::AppContext;
use crate::host::crash::CrashHandler;
use crate::host::error::CliError;
use crate::host::exit::Exit;
use crate::host::options::{Common, SessionChoice};
use crate::host::policy_layers::Policy;
use crate::host::project::ProjectConfig;
use crate::host::prompt_commands::{PromptCommands, PromptMeaning, screen_only_error};
use crate::host::startup;
use crate::host::startup::{open_store, start_log};
use crate::protocol::{Mode, Problem, SessionId};
use crate::sys::allocator;
use crate::tui::{self, ExitReason, SessionTarget, TuiOutcome};
use session_open::SessionOpener;
use session_runner::SessionOutcome;
use std::io::{self, IsTerminal};
use std::path::{Path, PathBuf};
use std::time::Duration;
use tokio::task::JoinHandle;

/// Maximum time that the session has to save its state after the screen has closed.
const SHUTDOWN_TIMEOUT: Duration = Duration::from_secs(5);
/// Shutdown timeout if no session was opened and there is no input to save.
const NO_FAREWELL: Duration = Duration::from_millis(500);
/// Maximum time to wait for other remaining work at exit.
const LEFTOVERS: Duration = Duration::from_secs(2);
/// Time after which startup is assumed to be complete.
const STARTED: Duration = Duration::from_millis(1500);

/// Request to open a screen, made on the command line or by the previous screen.
pub(crate) struct ScreenRequest {
    prompt: Option<String>,
    session: SessionChoice,
    /// Text that the user typed on the previous screen.
    typed: String,
    before: Option<PreviousSession>,
}

/// Context, model and mode of the previous session.
#[derive(Clone)]
pub(crate) struct PreviousSession {
    pub workspace: PathBuf,
    pub model: Option<String>,
    pub mode: Mode,
}

impl ScreenRequest {
    pub(crate) fn new(prompt: Option<String>, session: SessionChoice) -> Self {
        Self { prompt, session, typed: String::new(), before: None }
    }

    /// If the prompt is a slash command, replaces it with the command's text. A command that is available only on the
    /// screen becomes the draft.
    pub(crate) fn expand_command(self, common: &Common) -> Result<Self, CliError> {
        let Some(text) = self.prompt.as_ref().filter(|text| text.trim_start().starts_with('/')) else { return Ok(self) };
        let app = AppContext::find(common)?;
        let project = ProjectConfig::inspect(&app.workspace, &app.directories.config, common.trust);
        let commands = PromptCommands::find(&app, &project);
        warn_all(&commands.notices(text));
        match commands.parse(text.clone()).map_err(CliError::usage)? {
            PromptMeaning::Prompt(text) => Ok(Self { prompt: Some(text), ..self }),
            PromptMeaning::OfScreen(text) if is_plain(common, &app) => Err(CliError::usage(screen_only_error(&text))),
            PromptMeaning::OfScreen(text) => Ok(Self { prompt: None, typed: text, ..self }),
        }
    }
}

pub(crate) fn run(common: &Common, mut request: ScreenRequest) -> Result<Exit, CliError> {
    let watch = CrashHandler::install();
    loop {
        match screen(common, request, &watch)? {
            AfterScreen::Ended(exit) => return Ok(exit),
            AfterScreen::For(next) => request = next,
            AfterScreen::Setup(session) => {
                // Setup errors are reported, and the session continues.
                if let Err(trouble) = super::setup::run(&Common { policy: None, model: None, ..common.clone() }, false) {
                    fail(&trouble);
                }
                request = ScreenRequest::new(None, session.map_or(SessionChoice::New, |id| SessionChoice::Id(id.to_string())));
            }
        }
    }
}

/// Next action after a screen has closed.
enum AfterScreen {
    Ended(Exit),
    For(ScreenRequest),
    /// First-time setup, after which this session is continued.
    Setup(Option<SessionId>),
}

/// Shows a screen until it closes, and returns what to do next.
fn screen(common: &Common, request: ScreenRequest, watch: &CrashHandler) -> Result<AfterScreen, CliError> {
    if !(io::stdin().is_terminal() || common.plain) {
        return Err(CliError::usage("stdin is not a terminal")
            .hint("run `aye exec PROMPT` for a single task, or `aye --plain` to read lines from stdin"));
    }
    // A new session starts in the directory of the previous one.
    let moved = request.before.as_ref().filter(|_| request.session == SessionChoice::New);
    let moved = moved.map(|before| Common { directory: Some(before.workspace.clone()), ..common.clone() });
    let mut app = AppContext::find(moved.as_ref().unwrap_or(common))?;
    app.mode = match &request.before {
        Some(before) => before.mode,
        None => app.session_mode(common.mode),
    };
    // Errors in the user's own files are reported before anything is created.
    let policy = app.policy(common.policy.as_deref(), None)?;
    let _log = start_log(&app, common.verbosity);
    let runtime = startup::runtime()?;
    let after = runtime.block_on(show(common, app, &policy, request, watch));
    // The time limit prevents an unresponsive disk from delaying the exit.
    runtime.shutdown_timeout(LEFTOVERS);
    after
}

/// Shows the screen and runs the session behind it. The screen appears before the store is opened, and problems with
/// the store are reported once the screen has closed.
async fn show(
    common: &Common,
    app: AppContext,
    policy: &Policy,
    request: ScreenRequest,
    watch: &CrashHandler,
) -> Result<AfterScreen, CliError> {
    let (plain, logs) = (is_plain(common, &app), app.directories.data.join("logs"));
    let here = CurrentWorkspace::new(&app, policy);
    let options = crate::cli::screen::tui_options::options(&app, &here, common.color);
    let ScreenRequest { prompt, session: choice, typed, before } = request;
    let (front, wires) = connect(options, prompt.clone(), typed);
    tokio::spawn(async {
        tokio::time::sleep(STARTED).await;
        allocator::release_code_pages();
        allocator::release_free_memory();
    });
    let opening = SessionOpener {
        common: common.clone(),
        app,
        choice,
        before: before.clone(),
        here: here.clone(),
        events: wires.events.clone(),
        watch: watch.clone(),
        sets_up: !plain,
    };
    let behind = if plain { open_as_lines(opening, wires)? } else { tokio::spawn(session_start::open(opening, wires)) };
    let outcome = if plain { tui::run_plain(front).await } else { tui::run(front).await };
    let patience = if outcome.as_ref().is_ok_and(is_empty_outcome) { NO_FAREWELL } else { SHUTDOWN_TIMEOUT };
    // The screen has dropped its command sender, so the session saves itself and ends.
    let remains = tokio::time::timeout(patience, behind).await.ok().and_then(Result::ok).unwrap_or_default();
    warn_all(&remains.notices);
    let outcome =
        outcome.map_err(|error| watch.error().unwrap_or_else(|| terminal_error(&error, remains.session.as_ref(), &logs)))?;
    let model = Some(outcome.model.clone()).filter(|model| !model.is_empty());
    let before = outcome.mode.map(|mode| PreviousSession { workspace: here.workspace(), model, mode }).or(before);
    after_screen(outcome, remains, prompt, before)
}

/// Opens the session for line mode, in which errors are reported immediately and the user selects items by typing a
/// line.
fn open_as_lines(mut opening: SessionOpener, wires: TuiChannels) -> Result<JoinHandle<SessionOutcome>, CliError> {
    let store = open_store(&opening.app)?;
    opening.choice = session_prompt::ask(&store, &opening.app, opening.choice)?;
    Ok(tokio::spawn(session_start::run(opening.open(store)?, wires)))
}

/// Returns whether the user closed the screen without a session and without input.
fn is_empty_outcome(outcome: &TuiOutcome) -> bool {
    outcome.mode.is_none() && outcome.typed.is_empty() && matches!(outcome.ended, ExitReason::Quit | ExitReason::Signal(_))
}

fn terminal_error(error: &io::Error, session: Option<&SessionId>, logs: &Path) -> CliError {
    let resume = session.map_or_else(|| "--resume".to_owned(), |id| format!("--resume={id}"));
    let logs = logs.display();
    CliError::failed(Problem::new("terminal error").because(error))
        .hint(format!("run `aye {resume}` to continue"))
        .hint(format!("details are in {logs}"))
}

/// Returns what to do after a screen has closed. `prompt` is the prompt from the command line.
fn after_screen(
    outcome: TuiOutcome,
    remains: SessionOutcome,
    prompt: Option<String>,
    before: Option<PreviousSession>,
) -> Result<AfterScreen, CliError> {
    let unsent = outcome.unsent.clone().filter(|unsent| Some(unsent) != prompt.as_ref());
    let by_signal = matches!(outcome.ended, ExitReason::Signal(_));
    if let Some(trouble) = remains.trouble.filter(|_| !by_signal) {
        let typed: Vec<String> = unsent.into_iter().chain(Some(outcome.typed).filter(|typed| !typed.trim().is_empty())).collect();
        let mut trouble = trouble;
        if let Some(last) = trouble.problems.last_mut().filter(|_| !typed.is_empty()) {
            last.excerpt.push(format!("your unsent text: {}", typed.join("\n\n")));
        }
        return Err(trouble);
    }
    let session = match &outcome.ended {
        ExitReason::Another => SessionChoice::Pick,
        ExitReason::Open(SessionTarget::New) => SessionChoice::New,
        ExitReason::Open(SessionTarget::Session(id)) => SessionChoice::Id(id.to_string()),
        ExitReason::Setup => return Ok(AfterScreen::Setup(outcome.session)),
        ExitReason::Quit | ExitReason::Signal(_) | ExitReason::Closed => {
            if let Some(unsent) = unsent {
                print_text(&format!("Not sent: {}\n", crate::text::clean(&unsent)));
            }
            return Ok(AfterScreen::Ended(farewell(&outcome, &remains.changed)));
        }
    };
    Ok(AfterScreen::For(ScreenRequest { prompt: outcome.unsent, session, typed: outcome.typed, before }))
}
