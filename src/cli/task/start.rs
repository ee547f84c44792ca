//! `aye task start`: creates a task and runs it, either in this process or in the background.

use super::drive::OutputTarget;
use super::run::{self, READY, TaskRunRequest};
use crate::host::console::{print_text, warn};
use crate::host::context::AppContext;
use crate::host::error::CliError;
use crate::host::exit::Exit;
use crate::host::options::Common;
use crate::host::project::ProjectConfig;
use crate::host::tasks::description::VERSION;
use crate::host::tasks::directory::SHORT_DIGITS;
use crate::host::tasks::{CopyKind, StartOptions, TaskDescription, TaskDirectory, worktree};
use crate::protocol::Problem;
use crate::tools::RepositoryTrust;
use std::fs::OpenOptions;
use std::io::{BufRead, BufReader, Read, Seek, SeekFrom};
use std::os::unix::fs::OpenOptionsExt;
use std::process::{Command, Stdio};

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct StartRequest {
    pub prompt: String,
    pub detach: bool,
    /// Whether the task stops when standard input is closed.
    pub is_attached: bool,
    pub has_worktree: bool,
    /// Branch for the worktree. If `None`, a new branch is created.
    pub branch: Option<String>,
    pub check: Option<String>,
}

/// Maximum number of log lines included in an error.
const LOG_LINES: usize = 20;
/// Maximum number of bytes read from the log for an error.
const LOG_BYTES: u64 = 64 << 10;

pub(super) fn run(common: &Common, app: &AppContext, request: StartRequest) -> Result<Exit, CliError> {
    if !common.add_dirs.is_empty() {
        let problem = Problem::new("a task cannot be combined with `--add-dir`");
        return Err(CliError::usage(problem.because("a task's copy contains only one directory")));
    }
    // Errors in the user's own files are reported before anything is created.
    app.policy(common.policy.as_deref(), None)?;
    let task = create(common, app, &request)?;
    if request.detach {
        return detach(&task, None);
    }
    warn(Problem::new(format!("task {} runs in its own copy of the workspace", task.short_id())));
    let prompt = None;
    run::run(common, &task, TaskRunRequest { prompt, target: OutputTarget::Terminal, is_attached: request.is_attached })
}

/// Creates the task directory and, if requested, the worktree.
fn create(common: &Common, app: &AppContext, request: &StartRequest) -> Result<TaskDirectory, CliError> {
    let id = TaskDirectory::new_id();
    let mut description = TaskDescription {
        version: VERSION,
        prompt: request.prompt.clone(),
        workspace: app.workspace.clone(),
        created: jiff::Timestamp::now(),
        copy: CopyKind::Layer,
        options: StartOptions::new(common),
        check: request.check.clone(),
    };
    if request.has_worktree {
        let project = ProjectConfig::inspect(&app.workspace, &app.directories.config, common.trust);
        if project.trust() == RepositoryTrust::Untrusted {
            let problem = Problem::new("cannot create a git worktree: you have not trusted this project");
            let problem = problem.because("git could run programs from the repository");
            return Err(CliError::usage(problem.hint("run `aye` to review and trust the project, or pass `--trust`")));
        }
        let short = id.get(..SHORT_DIGITS).unwrap_or(&id);
        description.copy = worktree::create(&app.workspace, short, request.branch.as_deref())?;
    }
    let created = TaskDirectory::create(&app.directories.shared, id, &description);
    if created.is_err() {
        let _ = worktree::remove_of(&description);
    }
    created
}

/// Starts the background process of a task, and waits until the process has started the session.
///
/// # Errors
/// If the process exits before that, returns an error that contains the process output.
pub(super) fn detach(task: &TaskDirectory, prompt: Option<&str>) -> Result<Exit, CliError> {
    let failed =
        |error: std::io::Error| CliError::failed(Problem::new(format!("cannot start task `{}`", task.short_id())).because(error));
    let mut log = OpenOptions::new().create(true).read(true).append(true).mode(0o600).open(task.output()).map_err(failed)?;
    let before = log.metadata().map_err(failed)?.len();
    let program = std::env::current_exe().map_err(failed)?;
    let mut process = Command::new(program);
    process.args(["task", "run", task.id()]).args(prompt.map(|prompt| ["--", prompt]).into_iter().flatten());
    process.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(log.try_clone().map_err(failed)?);
    let mut child = process.spawn().map_err(failed)?;
    let mut line = String::new();
    if let Some(output) = child.stdout.take() {
        BufReader::new(output).read_line(&mut line).map_err(failed)?;
    }
    let id = task.short_id();
    if line.trim() != READY {
        let status = child.wait().map_err(failed)?;
        // The process may have removed the task with its log, which is still open here.
        log.seek(SeekFrom::Start(before)).map_err(failed)?;
        let mut new = Vec::new();
        log.take(LOG_BYTES).read_to_end(&mut new).map_err(failed)?;
        let mut problem = Problem::new(format!("task `{id}` did not start ({status})"));
        problem.excerpt = String::from_utf8_lossy(&new).lines().take(LOG_LINES).map(str::to_owned).collect();
        return Err(CliError::failed(problem));
    }
    print_text(&format!("{id}\n"));
    warn(Problem::new(format!("task {id} runs in the background")).hint("run `aye tasks` to see its state"));
    Ok(Exit::Completed)
}
