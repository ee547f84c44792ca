//! The `CliWrite` tool, which types into a session. A line typed into a shell is checked as a command, and any other
//! text as input to the running program.

use super::cli_read::wait_duration;
use crate::policy::keeps_meaning;
use crate::ports::{BoxFuture, Doubts, RunContext};
use crate::protocol::{Action, ErrorCode, Place, Proposal, Target, ToolError};
use crate::sys::process::{TerminalInput, TerminalState};
use crate::tools::alias::Alias;
use crate::tools::background::{
    BackgroundCommand, BackgroundKind, InputLanguage, Key, PendingInput, first_line, lock_ignoring_poison, new_output,
};
use crate::tools::blocking::off_thread;
use crate::tools::call_result::CallResult;
use crate::tools::draft::{CallDraft, CallEffect};
use crate::tools::error::invalid;
use crate::tools::paths::{ExpectedKind, Paths};
use crate::tools::sandbox::Writes;
use crate::tools::sandbox::{RepositoryTrust, mentions_git};
use crate::tools::settings::ToolSettings;
use crate::tools::shell::command_run::with_input;
use crate::tools::shell::executed_files::PinnedFiles;
use crate::tools::tool::Tool;
use futures_util::FutureExt;
use schemars::JsonSchema;
use serde::Deserialize;
use std::sync::Arc;
use std::time::Duration;

const MAX_TEXT_BYTES: usize = 64 * 1024;
/// Maximum length in bytes of a line that a terminal in line mode accepts.
const MAX_LINE_BYTES: usize = 4095;
/// Default time to wait for output, in seconds.
const ANSWER_SECONDS: u64 = 2;
/// Minimum waiting time. It ensures that a program which has just been started is in the foreground before the next
/// line is checked.
const MIN_WAIT: Duration = Duration::from_millis(400);
/// Maximum time that a program may take to read its input.
const READ_LIMIT: Duration = Duration::from_secs(5);
const INTERRUPT: &str = "ctrl-c";

pub(in crate::tools) struct CliWrite;

#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(in crate::tools) struct Arguments {
    /// ID returned by CliSession, for example `s1`.
    id: String,
    text: Option<String>,
    /// Press Enter after the text; true by default.
    enter: Option<bool>,
    /// Keys after the text: `ctrl-c`, `up`, `escape`, `tab`.
    keys: Option<Vec<String>>,
    /// Seconds to wait for output: 2 by default, at most 25.
    #[schemars(range(min = 0, max = 25))]
    wait_seconds: Option<u64>,
}

pub(in crate::tools) struct PlannedInput {
    entry: Arc<BackgroundCommand>,
    input: SessionInput,
    wait: Duration,
    /// State of the session when the input was checked, or `None` if the verdict does not depend on that state.
    judged: Option<JudgedInput>,
}

/// The text and the keys to type.
#[derive(Debug, Clone, PartialEq, Eq)]
struct SessionInput {
    text: String,
    keys: Vec<Key>,
    enter: bool,
}

/// A line that was checked as a shell command.
struct JudgedInput {
    times: u64,
    directory: Target,
    pinned: PinnedFiles,
}

impl SessionInput {
    fn parse(arguments: &Arguments) -> Result<Self, ToolError> {
        let mut text = arguments.text.clone().unwrap_or_default().replace("\r\n", "\n").replace('\r', "\n");
        if text.len() > MAX_TEXT_BYTES {
            return Err(invalid(format!("`text` is {} bytes; the limit is {MAX_TEXT_BYTES}", text.len())));
        }
        let mut keys = Vec::new();
        for given in arguments.keys.iter().flatten() {
            let unknown = || {
                invalid(format!(
                    "`keys`: unknown key `{given}`; expected enter, ctrl-a to ctrl-z, up, down, left, right, home, end, pageup, pagedown, tab, escape, backspace, delete, f1 to f12"
                ))
            };
            keys.push(Key::parse(given).ok_or_else(unknown)?);
        }
        if let Some(key) = Key::from_control_char(&text).filter(|key| key.name != "tab") {
            text.clear();
            keys.insert(0, key);
        }
        if let Some(odd) = text.chars().find(|letter| letter.is_control() && !matches!(letter, '\n' | '\t')) {
            return Err(invalid(format!("`text` contains the control character U+{:04X}; press keys with `keys`", odd as u32)));
        }
        let mut enter = arguments.enter.unwrap_or(keys.is_empty());
        if keys.len() == 1 && keys[0].name == "enter" {
            keys.clear();
            enter = true;
        }
        // A final newline means Enter, and only once.
        if text.ends_with('\n') {
            text.pop();
            enter = true;
        }
        if text.is_empty() && keys.is_empty() && !enter {
            return Err(invalid("nothing to type; set `text` or `keys`"));
        }
        Ok(Self { text, keys, enter })
    }

    fn bytes(&self) -> String {
        let keys: String = self.keys.iter().map(|key| key.bytes.as_str()).collect();
        format!("{}{keys}{}", self.text.replace('\n', "\r"), if self.enter { "\r" } else { "" })
    }

    /// Formats the input for the user and the policy. `before` is an unfinished line that was typed earlier.
    fn describe(&self, before: &str) -> String {
        let keys = self.keys.iter().flat_map(|key| ["<", &key.name, ">"]).collect::<String>();
        format!("{before}{}{keys}{}", self.text, if self.enter { "\n" } else { "" })
    }

    /// Returns whether the input does nothing but interrupt the running program, which is less than `CliStop` does.
    fn interrupts(&self) -> bool {
        self.text.is_empty() && !self.enter && !self.keys.is_empty() && self.keys.iter().all(|key| key.name == INTERRUPT)
    }

    /// Returns whether the input is a single line that a shell cannot expand to something else.
    fn is_one_line(&self) -> bool {
        // A shell that expands `!` also expands `^` at the start of a line.
        self.enter && self.keys.is_empty() && !self.text.contains(['\n', '\t', '!']) && !self.text.starts_with('^')
    }
}

impl PlannedInput {
    /// Returns the reasons why the input needs approval even if the policy allows it, which are due to the fact that it
    /// runs in the session, without the usual protections.
    pub(in crate::tools) fn doubts(&self, settings: &ToolSettings) -> Doubts {
        let may_write = self.entry.writes > Writes::Nothing;
        let trusted = settings.command.sandbox.trust == RepositoryTrust::Trusted;
        let about_git = mentions_git(&self.input.text) && !trusted;
        Doubts {
            as_reading: may_write.then(|| {
                format!("{} has write access, and a rule allows this line only in a read-only sandbox", self.entry.id())
            }),
            unasked: about_git.then(|| {
                format!(
                    "git in {} may run programs that the repository configures, and the project is not trusted",
                    self.entry.id()
                )
            }),
            ..Doubts::default()
        }
    }
}

impl Tool for CliWrite {
    const NAME: &'static str = "CliWrite";
    const ALIASES: &'static [Alias<Arguments>] = &[
        Alias::with_same_arguments("cli_write"),
        Alias::with_same_arguments("write_stdin"),
        Alias::with_same_arguments("send_input"),
        Alias::with_same_arguments("send_keys"),
        Alias::with_same_arguments("write_to_terminal"),
        Alias::with_same_arguments("type_text"),
    ];
    const CAPABILITY: &'static str = "Shell.Exec";
    const DESCRIPTION: &'static str = include_str!("../../../assets/tools/CliWrite.md");
    type Arguments = Arguments;
    type Work = PlannedInput;

    /// Returns the strictest possible action. As long as the session is not known, whatever reads the input may be a
    /// shell.
    fn actions(arguments: &Arguments, paths: &Paths<'_>) -> Result<Vec<Action>, ToolError> {
        let input = SessionInput::parse(arguments)?;
        if input.interrupts() {
            return Ok(Vec::new());
        }
        let cwd = paths.target("cwd", ".", ExpectedKind::Directory)?;
        Ok(vec![Action::Exec { command: with_input("bash", Some(&input.describe(""))), cwd }])
    }

    fn draft(arguments: Arguments, settings: &ToolSettings) -> Result<CallDraft<PlannedInput>, ToolError> {
        let entry = settings.session.commands.find(&arguments.id)?;
        let (reads, keys) = writable(&entry)?;
        let input = SessionInput::parse(&arguments)?;
        let wait = wait_duration(arguments.wait_seconds, ANSWER_SECONDS)?.max(MIN_WAIT);
        let shown = input.describe("");
        let summary = format!("{} ← {}", entry.id(), first_line(&shown));
        if input.interrupts() {
            let work = PlannedInput { entry, input, wait, judged: None };
            return Ok(CallDraft { summary, actions: Vec::new(), proposal: None, effect: CallEffect::Changes, work });
        }
        let typed = lock_ignoring_poison(&entry.typed).clone();
        let front = keys.front().map_err(|error| ended_error(&entry, &error))?;
        check_input(&entry, &input, reads, &front)?;
        let proposal = Some(Proposal {
            summary: format!("Type into {}: {}", entry.id(), first_line(&shown)),
            notes: vec![format!("typed into {}, which runs `{}`", entry.id(), first_line(&entry.line))],
            ..Proposal::default()
        });
        if let Some(directory) = waiting_shell_directory(&input, reads, &typed, &front) {
            // Enter alone changes nothing.
            if input.text.trim().is_empty() {
                let work = PlannedInput { entry, input, wait, judged: None };
                return Ok(CallDraft { summary, actions: Vec::new(), proposal: None, effect: CallEffect::Changes, work });
            }
            let pinned = PinnedFiles::for_line(&input.text, &directory, settings);
            return Ok(CallDraft {
                summary,
                actions: vec![Action::Exec { command: input.text.clone(), cwd: directory.clone() }],
                proposal,
                effect: CallEffect::Runs { timeout_seconds: 0, files: pinned.files() },
                work: PlannedInput { entry, input, wait, judged: Some(JudgedInput { times: typed.times, directory, pinned }) },
            });
        }
        let command = with_input(&entry.line, Some(&input.describe(&typed.open)));
        Ok(CallDraft {
            summary,
            actions: vec![Action::Exec { command, cwd: entry.cwd.clone() }],
            proposal,
            effect: CallEffect::Runs { timeout_seconds: 0, files: Vec::new() },
            work: PlannedInput { entry, input, wait, judged: None },
        })
    }

    fn run(work: PlannedInput, settings: Arc<ToolSettings>, context: RunContext) -> BoxFuture<'static, CallResult> {
        async move {
            let PlannedInput { entry, input, wait, judged } = work;
            let (reads, keys) = writable(&entry)?;
            if entry.writes > settings.command.sandbox.writes_in_workspace() && !input.interrupts() {
                let message = format!(
                    "{} was started when commands had more write access than now; nothing was typed. Start another session",
                    entry.id()
                );
                return Err(ToolError::new(ErrorCode::PolicyDenied, message).into());
            }
            let times = if let Some(JudgedInput { times, directory, pinned }) = judged {
                let real = directory.real.clone();
                let looked = Arc::clone(&settings);
                off_thread(move || pinned.check_unchanged(&directory, &looked)).await??;
                let front = keys.front().map_err(|error| ended_error(&entry, &error))?;
                if !front.is_leader || !front.takes_letters || front.directory.as_ref() != Some(&real) {
                    return Err(resumed_error(&entry).into());
                }
                Some(times)
            } else {
                None
            };
            type_into(&entry, &input, reads, times)?;
            let before = entry.total();
            match tokio::time::timeout(READ_LIMIT, keys.write_all(input.bytes().as_bytes())).await {
                Ok(Ok(())) => {}
                Ok(Err(error)) => return Err(ended_error(&entry, &error).into()),
                Err(_) => {
                    let message =
                        format!("{} is not reading its input, and only part was typed; check it with CliRead", entry.id());
                    return Err(ToolError::new(ErrorCode::ToolExecutionFailed, message).into());
                }
            }
            tokio::select! {
                () = entry.wait_until_quiet(before, wait) => {}
                () = context.interrupt.cancelled() => {}
            }
            Ok(new_output(&entry, settings.max_output_bytes))
        }
        .boxed()
    }
}

/// Returns the working directory of a shell that will run exactly this line, that is, a shell that is in the foreground
/// and for which no earlier input changes the line's meaning. Returns `None` if there is no such shell.
fn waiting_shell_directory(
    input: &SessionInput,
    reads: InputLanguage,
    typed: &PendingInput,
    front: &TerminalState,
) -> Option<Target> {
    let waits = reads == InputLanguage::Shell
        && typed.plain
        && typed.open.is_empty()
        && front.is_leader
        && front.takes_letters
        && input.is_one_line();
    let real = front.directory.clone().filter(|_| waits)?;
    Some(Target { given: real.display().to_string(), real, place: Place::Directory })
}

/// Checks that no line exceeds the terminal's limit, and that a shell receives only whole lines, because the effect
/// that keys have in a shell cannot be determined.
fn check_input(
    entry: &BackgroundCommand,
    input: &SessionInput,
    reads: InputLanguage,
    front: &TerminalState,
) -> Result<(), ToolError> {
    if front.takes_lines && input.text.lines().any(|line| line.len() > MAX_LINE_BYTES) {
        let message = format!("a line is longer than {MAX_LINE_BYTES} bytes, the limit of the terminal; put the text in a file");
        return Err(invalid(message));
    }
    if reads == InputLanguage::Data || !(front.is_leader || front.takes_lines) {
        return Ok(());
    }
    let edits = input.keys.iter().any(|key| !key.is_plain) || input.text.contains('\t');
    let open = !input.text.is_empty() && (!input.enter || !input.keys.is_empty());
    if edits || open {
        let message = format!(
            "{} currently accepts only complete lines: send a line in `text` and Enter, or a single key (enter, ctrl-c, ctrl-d \
             or ctrl-z)",
            entry.id()
        );
        return Err(invalid(message));
    }
    Ok(())
}

/// Records the input that is about to be typed. Fails if other input has been typed since it was checked.
fn type_into(entry: &BackgroundCommand, input: &SessionInput, reads: InputLanguage, times: Option<u64>) -> Result<(), ToolError> {
    let mut typed = lock_ignoring_poison(&entry.typed);
    if times.is_some_and(|times| times != typed.times) {
        return Err(resumed_error(entry));
    }
    typed.times += 1;
    if reads == InputLanguage::Shell && !input.text.trim().is_empty() {
        typed.plain &= typed.open.is_empty() && input.is_one_line() && keeps_meaning(&input.text);
    }
    if input.enter || input.keys.iter().any(|key| key.name == INTERRUPT) {
        typed.open.clear();
    } else {
        typed.open.push_str(&input.text);
    }
    Ok(())
}

fn writable(entry: &BackgroundCommand) -> Result<(InputLanguage, &TerminalInput), ToolError> {
    let id = entry.id();
    let BackgroundKind::Session { reads, .. } = entry.kind else {
        return Err(invalid(format!("{id} has no terminal to type into; start the command with CliSession")));
    };
    if let Some(how) = entry.end_reason() {
        return Err(invalid(format!("{id} has ended ({how}); start another with CliSession")));
    }
    let keys = entry.keys().ok_or_else(|| invalid(format!("{id} is still starting; try again")))?;
    Ok((reads, keys))
}

fn resumed_error(entry: &BackgroundCommand) -> ToolError {
    let message =
        format!("{} has new output since this was checked; nothing was typed. Read it with CliRead and try again", entry.id());
    ToolError::new(ErrorCode::Conflict, message)
}

fn ended_error(entry: &BackgroundCommand, error: &std::io::Error) -> ToolError {
    ToolError::new(ErrorCode::ToolExecutionFailed, format!("cannot type into {}: {error}; check it with CliRead", entry.id()))
}
