//! The `CliSession` tool, which starts a command on a terminal of its own. The command continues to run while the agent
//! works.

use super::cli_read::size;
use crate::policy::{quoted, runs_input};
use crate::ports::{BoxFuture, RunContext};
use crate::protocol::{Action, Proposal, ToolError};
use crate::sys::process::TerminalSize;
use crate::tools::alias::Alias;
use crate::tools::background::{BackgroundCommand, BackgroundKind, InputLanguage, NewCommand, first_line, new_output, session};
use crate::tools::blocking::off_thread;
use crate::tools::call_result::CallResult;
use crate::tools::draft::{CallDraft, CallEffect};
use crate::tools::error::invalid;
use crate::tools::paths::{ExpectedKind, Paths};
use crate::tools::settings::ToolSettings;
use crate::tools::shell::checkpoint;
use crate::tools::shell::command_run::{self, check_unchanged, environment_note, process_error};
use crate::tools::shell::command_sandbox::ExtraAccess;
use crate::tools::shell::executed_files::PinnedFiles;
use crate::tools::shell::git_notes::git_notes;
use crate::tools::shell::run_command::directory;
use crate::tools::tool::Tool;
use futures_util::FutureExt;
use schemars::JsonSchema;
use serde::Deserialize;
use std::sync::Arc;
use std::time::Duration;

/// Default terminal size.
const USUAL: TerminalSize = TerminalSize { rows: 24, columns: 120 };
/// Maximum time to wait for the first output.
const FIRST_LOOK: Duration = Duration::from_secs(2);
/// Terminal type that the screen emulation supports.
const TERM: &str = "xterm-256color";

pub(in crate::tools) struct CliSession;

#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(in crate::tools) struct Arguments {
    /// A shell by default.
    command: Option<String>,
    /// `auto` (default), `bash` or `sh`.
    shell: Option<String>,
    cwd: Option<String>,
    /// 24 by default.
    #[schemars(range(min = 2, max = 200))]
    rows: Option<u16>,
    /// 120 by default.
    #[schemars(range(min = 20, max = 400))]
    columns: Option<u16>,
}

pub(in crate::tools) struct Work {
    /// The command line in the form that the policy checks.
    line: String,
    command: command_run::PlannedCommand,
    reads: InputLanguage,
    size: TerminalSize,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum SessionShell {
    Bash,
    Sh,
}

impl SessionShell {
    fn from_name(name: Option<&str>) -> Result<Self, ToolError> {
        match name.unwrap_or("auto").trim().to_ascii_lowercase().as_str() {
            "auto" | "bash" | "" => Ok(Self::Bash),
            "sh" => Ok(Self::Sh),
            "pwsh" | "powershell" | "cmd" => {
                let name = name.unwrap_or_default();
                Err(invalid(format!("`shell`: `{name}` is a Windows shell; use `auto`, `bash` or `sh`")))
            }
            other => Err(invalid(format!("`shell` is `{other}`; it must be `auto`, `bash` or `sh`"))),
        }
    }

    fn name(self) -> &'static str {
        match self {
            Self::Bash => "bash",
            Self::Sh => "sh",
        }
    }

    /// Returns a command that starts a shell which runs exactly the lines given to it: without startup files, and
    /// without expanding `!`, which could change a line.
    fn waiting_command(self) -> &'static str {
        match self {
            Self::Bash => "exec bash --noprofile --norc +H -i",
            Self::Sh => "exec sh -i",
        }
    }
}

impl Arguments {
    /// Returns the line in the form that the policy checks and the user sees.
    fn line(&self) -> Result<String, ToolError> {
        let shell = SessionShell::from_name(self.shell.as_deref())?;
        Ok(match (self.given_line(), shell) {
            (None, shell) => shell.name().to_owned(),
            (Some(command), SessionShell::Bash) => command.to_owned(),
            (Some(command), SessionShell::Sh) => format!("sh -c {}", quoted(command)),
        })
    }

    fn given_line(&self) -> Option<&str> {
        self.command.as_deref().filter(|command| !command.trim().is_empty())
    }
}

impl Tool for CliSession {
    const NAME: &'static str = "CliSession";
    const ALIASES: &'static [Alias<Arguments>] = &[
        Alias::with_same_arguments("cli_session"),
        Alias::with_same_arguments("start_session"),
        Alias::with_same_arguments("open_terminal"),
        Alias::with_same_arguments("new_terminal"),
        Alias::with_same_arguments("start_process"),
        Alias::with_same_arguments("interactive_shell"),
    ];
    const CAPABILITY: &'static str = "Shell.Exec";
    const DESCRIPTION: &'static str = include_str!("../../../assets/tools/CliSession.md");
    type Arguments = Arguments;
    type Work = Work;

    fn actions(arguments: &Arguments, paths: &Paths<'_>) -> Result<Vec<Action>, ToolError> {
        let cwd = paths.target("cwd", arguments.cwd.as_deref().unwrap_or("."), ExpectedKind::Directory)?;
        Ok(vec![Action::Exec { command: arguments.line()?, cwd }])
    }

    fn draft(arguments: Arguments, settings: &ToolSettings) -> Result<CallDraft<Work>, ToolError> {
        let line = arguments.line()?;
        if line.contains('\0') {
            return Err(invalid("`command` contains a NUL byte"));
        }
        let size = size(arguments.rows, arguments.columns, USUAL)?;
        let cwd = directory(arguments.cwd.as_deref(), settings)?;
        let shell = SessionShell::from_name(arguments.shell.as_deref())?;
        let (runs, reads) = match arguments.given_line() {
            None => (shell.waiting_command().to_owned(), InputLanguage::Shell),
            Some(_) => (line.clone(), if runs_input(&line) { InputLanguage::Code } else { InputLanguage::Data }),
        };
        let pinned = PinnedFiles::for_line(&line, &cwd, settings);
        let shown = first_line(&line);
        let usual = git_notes(&line, settings);
        Ok(CallDraft {
            summary: format!("$ {shown} (session)"),
            actions: vec![Action::Exec { command: line.clone(), cwd: cwd.clone() }],
            proposal: Some(Proposal {
                summary: format!("Start a session: {shown}"),
                usual_notes: usual.len(),
                notes: usual
                    .into_iter()
                    .chain([environment_note(settings), "in a terminal, until it is stopped".to_owned()])
                    .collect(),
                ..Proposal::default()
            }),
            effect: CallEffect::Runs { timeout_seconds: 0, files: pinned.files() },
            work: Work {
                line,
                command: command_run::PlannedCommand {
                    line: runs,
                    cwd,
                    timeout_seconds: 0,
                    stdin: None,
                    pinned: Some(pinned),
                    opens: Vec::new(),
                    background: true,
                    without_stderr: false,
                    answer: None,
                    narrow: command_run::AccessRestrictions::default(),
                    shell: crate::sys::process::Shell::Bash,
                },
                reads,
                size,
            },
        })
    }

    fn run(work: Work, settings: Arc<ToolSettings>, context: RunContext) -> BoxFuture<'static, CallResult> {
        async move {
            let Work { line, mut command, reads, size } = work;
            check_unchanged(&mut command, &settings).await?;
            let apart = command_run::unapproved_run(&command, &settings).await?;
            let (wanted, sandbox) = (ExtraAccess::for_line(&line, Vec::new()), Arc::clone(&settings));
            let mut hold = off_thread(move || sandbox.prepare_sandbox(&wanted)).await?;
            hold.set_session_mode();
            let mut spec = command_run::spec(&command, hold.confinement.clone(), &apart, &settings);
            let cwd = command.cwd;
            spec.terminal = Some(size);
            spec.environment.retain(|(name, _)| name != "TERM" && name != "HISTFILE");
            // Typed lines are not saved in a history.
            spec.environment.extend([("TERM".into(), TERM.into()), ("HISTFILE".into(), "".into())]);
            let (kind, writes) = (BackgroundKind::Session { size, reads }, settings.command.sandbox.writes_in_workspace());
            let redactor = Arc::clone(&settings.redactor);
            let entry = BackgroundCommand::new(NewCommand { line, cwd, call: context.tool_call_id, kind, writes, redactor });
            settings.session.commands.admit(&entry)?;
            // Changes made in the session are detected later, on request.
            if let Err(error) = checkpoint::snapshot_before(&settings, &context.interrupt).await {
                tracing::warn!(%error, "cannot take a snapshot before a session");
            }
            let after = Box::new(move |_: Option<&_>| hold.over().map(|gone| format!("[sandbox: {gone}]")).into_iter().collect());
            if let Err(error) = session(&entry, spec, after).await {
                entry.end(error.to_string());
                settings.session.commands.forget(&entry);
                return Err(process_error(&error).into());
            }
            tokio::select! {
                () = entry.wait_until_quiet(0, FIRST_LOOK) => {}
                () = context.interrupt.cancelled() => entry.kill.cancel(),
            }
            let (id, told) = (entry.id(), new_output(&entry, settings.max_output_bytes));
            let next = match entry.end_reason() {
                Some(_) => String::new(),
                None => format!("\n[CliWrite {id} types into it, CliRead {id} reads more, CliStop {id} ends it]"),
            };
            Ok(told.with_note(&next))
        }
        .boxed()
    }
}
