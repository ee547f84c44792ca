//! `aye task …` and `aye tasks`: clap definition and checked action.

use super::diff::DiffRequest;
use super::keep::{KeepForm, KeepRequest};
use super::start::StartRequest;
use crate::cli::session_ids::is_possible_id;
use crate::protocol::Problem;
use clap::{Args, Subcommand};

#[derive(Debug, Subcommand)]
pub(crate) enum TaskSub {
    /// Start a task in its own copy of the workspace
    ///
    /// The copy is a copy-on-write layer over the workspace: it does not need git, and includes your build output and
    /// caches. Your files are unchanged until you apply the changes. The command waits for the task and prints its
    /// progress.
    Start {
        /// Run in the background, even after the terminal is closed
        #[arg(long)]
        detach: bool,
        /// Use a git worktree instead of a layer, so that the task can commit
        ///
        /// BRANCH is checked out, or created from the current commit [default: aye/task-ID]. The worktree is created
        /// next to the repository.
        #[arg(
            short = 'w',
            long,
            value_name = "BRANCH",
            num_args = 0..=1,
            require_equals = true,
            default_missing_value = "",
            allow_hyphen_values = false
        )]
        worktree: Option<String>,
        /// Run this command in the copy when the model has finished
        #[arg(long, value_name = "COMMAND")]
        check: Option<String>,
        /// Stop when standard input closes
        #[arg(long, hide = true, conflicts_with = "detach")]
        until_stdin_closes: bool,
        /// Prompt for the model; quote a prompt of several words
        prompt: String,
    },
    /// Open a task on the screen, inside its copy
    ///
    /// A running task is stopped first. Pending approvals are shown again. After you quit, run `aye task resume` to
    /// continue the task without a screen.
    Open {
        /// Task ID, or its first 6 or more digits
        #[arg(value_parser = task_id)]
        id: String,
    },
    /// Continue a stopped or interrupted task without a screen
    Resume {
        /// Run in the background, even after the terminal is closed
        #[arg(long)]
        detach: bool,
        /// Stop when standard input closes
        #[arg(long, hide = true, conflicts_with = "detach")]
        until_stdin_closes: bool,
        /// Task ID, or its first 6 or more digits
        #[arg(value_parser = task_id)]
        id: String,
        /// Message for the model
        prompt: Option<String>,
    },
    /// Stop a running task; it can be resumed later
    Stop {
        /// Task ID, or its first 6 or more digits
        #[arg(value_parser = task_id)]
        id: String,
    },
    /// Show a task's changes, and conflicts with the workspace
    Diff {
        /// Print JSON
        #[arg(long)]
        json: bool,
        /// Task ID, or its first 6 or more digits
        #[arg(value_parser = task_id)]
        id: String,
        /// Show only these files
        paths: Vec<String>,
    },
    /// Apply a task's changes to the workspace
    ///
    /// Every change is checked against the policy and recorded, and can be undone with `aye rewind ID`. A file that was also
    /// changed in the workspace is a conflict: it is reported and not changed. Changes that are not applied remain in
    /// the task.
    Keep {
        /// Choose the files and hunks to apply, on the screen or in line mode
        #[arg(long, short = 'p', conflicts_with = "check")]
        pick: bool,
        /// Do not apply this file or directory
        #[arg(long, value_name = "PATH")]
        except: Vec<String>,
        /// Show what would happen, without doing it
        #[arg(long, conflicts_with = "yes")]
        check: bool,
        /// Approve changes if needed (denied changes stay denied)
        #[arg(long)]
        yes: bool,
        /// Task ID, or its first 6 or more digits
        #[arg(value_parser = task_id)]
        id: String,
        /// Apply only these files
        paths: Vec<String>,
    },
    /// Delete a task with its session and its changes
    Drop {
        /// Delete the task even if it has unapplied changes
        #[arg(long)]
        force: bool,
        /// Task ID, or its first 6 or more digits
        #[arg(value_parser = task_id)]
        id: String,
    },
    /// Run a task in the background
    #[command(hide = true)]
    Run {
        /// Task ID
        #[arg(value_parser = task_id)]
        id: String,
        /// Message for the model
        prompt: Option<String>,
    },
}

#[derive(Debug, Args)]
pub(crate) struct TasksArgs {
    /// List the tasks of all projects
    #[arg(long)]
    pub all: bool,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum TaskAction {
    List {
        all: bool,
        json: bool,
    },
    Start(StartRequest),
    Open {
        id: String,
    },
    Resume {
        id: String,
        prompt: Option<String>,
        detach: bool,
        /// Whether the task stops when standard input is closed.
        is_attached: bool,
    },
    Stop {
        id: String,
    },
    Diff(DiffRequest),
    Keep(KeepRequest),
    Drop {
        id: String,
        force: bool,
    },
    Run {
        id: String,
        prompt: Option<String>,
    },
}

impl TaskAction {
    /// Returns whether the action starts or changes a task.
    pub(crate) fn changes_tasks(&self) -> bool {
        !matches!(self, Self::List { .. } | Self::Diff(_))
    }
}

impl TaskSub {
    pub(crate) fn check(self) -> Result<TaskAction, Problem> {
        Ok(match self {
            Self::Start { detach, worktree, check, until_stdin_closes, prompt } => {
                let check = check.filter(|line| !line.trim().is_empty());
                let branch = worktree.clone().filter(|name| !name.is_empty());
                let prompt = checked_prompt(prompt)?;
                let has_worktree = worktree.is_some();
                TaskAction::Start(StartRequest { prompt, detach, is_attached: until_stdin_closes, has_worktree, branch, check })
            }
            Self::Open { id } => TaskAction::Open { id },
            Self::Resume { detach, until_stdin_closes, id, prompt } => {
                let prompt = prompt.map(checked_prompt).transpose()?;
                TaskAction::Resume { id, prompt, detach, is_attached: until_stdin_closes }
            }
            Self::Stop { id } => TaskAction::Stop { id },
            Self::Diff { json, id, paths } => TaskAction::Diff(DiffRequest { id, paths, json }),
            Self::Keep { pick, except, check, yes, id, paths } => {
                let form = match (check, yes) {
                    (true, _) => KeepForm::Check,
                    (false, true) => KeepForm::Yes,
                    (false, false) => KeepForm::Ask,
                };
                TaskAction::Keep(KeepRequest { id, paths, except, form, pick })
            }
            Self::Drop { force, id } => TaskAction::Drop { id, force },
            Self::Run { id, prompt } => TaskAction::Run { id, prompt },
        })
    }
}

impl TasksArgs {
    pub(crate) fn check(&self) -> TaskAction {
        TaskAction::List { all: self.all, json: self.json }
    }
}

fn checked_prompt(prompt: String) -> Result<String, Problem> {
    if prompt.trim().is_empty() {
        return Err(Problem::new("the prompt is empty").hint("run `aye task start PROMPT`"));
    }
    Ok(prompt)
}

fn task_id(given: &str) -> Result<String, Problem> {
    if is_possible_id(given) {
        return Ok(given.to_ascii_lowercase());
    }
    Err(Problem::new("must be at least 6 hex digits of a task ID").hint("run `aye tasks` to list the IDs"))
}
