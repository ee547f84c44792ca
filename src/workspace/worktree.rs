//! Workspace information for the status row: the branch, the number of changed files, and the output of the user's
//! status command.

use super::git::Repository;
use crate::config::Environment;
use crate::protocol::HostResponse;
use crate::sys::process::{CommandSpec, End, Helper, OutputReceivers, Shell, run_with_receivers};
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

/// Minimum pause between two updates.
const REST: Duration = Duration::from_secs(2);
/// Timeout for the status command.
const TIMEOUT: Duration = Duration::from_secs(5);
/// Maximum size of the status command's output, in bytes. Only the first line is shown.
const OUTPUT_BYTES: usize = 4096;
const LINE_CHARS: usize = 120;

pub(crate) struct Worktree {
    workspace: PathBuf,
    environment: Environment,
    /// Status command from the user's settings. A project cannot set it.
    command: Option<String>,
    looking: Mutex<Looking>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Looking {
    Nobody,
    /// An update is running, or the pause after it has not ended.
    Somebody,
    /// Another update was requested while one was running or during the pause after it.
    Again,
}

impl Worktree {
    pub(crate) fn new(workspace: PathBuf, environment: Environment, command: Option<String>) -> Self {
        Self { workspace, environment, command, looking: Mutex::new(Looking::Nobody) }
    }

    /// Requests an update. No matter how often this is called, updates run one at a time with a pause between them.
    pub(crate) fn request_update(self: &Arc<Self>, tell: impl Fn(HostResponse) + Send + 'static) {
        if !self.try_begin() {
            return;
        }
        let own = Arc::clone(self);
        tokio::spawn(async move {
            loop {
                let told = own.collect_state().await;
                tell(told);
                tokio::time::sleep(REST).await;
                if !own.finish_or_repeat() {
                    return;
                }
            }
        });
    }

    fn try_begin(&self) -> bool {
        let mut looking = self.looking.lock().unwrap_or_else(PoisonError::into_inner);
        let is_free = *looking == Looking::Nobody;
        *looking = if is_free { Looking::Somebody } else { Looking::Again };
        is_free
    }

    fn finish_or_repeat(&self) -> bool {
        let mut looking = self.looking.lock().unwrap_or_else(PoisonError::into_inner);
        let again = *looking == Looking::Again;
        *looking = if again { Looking::Somebody } else { Looking::Nobody };
        again
    }

    async fn collect_state(&self) -> HostResponse {
        let workspace = self.workspace.clone();
        let of_git = tokio::task::spawn_blocking(move || {
            let repository = Repository::find(&workspace);
            repository.map(|repository| (repository.branch(), repository.changes(&workspace))).unwrap_or_default()
        });
        let line = self.line().await;
        let (branch, changed) = of_git.await.unwrap_or_default();
        let (changed, more) = changed.map_or((None, false), |changes| (Some(changes.files as u64), changes.more));
        HostResponse::Worktree { branch, changed, more, line }
    }

    /// Returns the first line of the status command's output, or its error. Returns `None` if there is no status
    /// command.
    async fn line(&self) -> Option<String> {
        let line = self.command.clone()?;
        let variables = self.environment.variables().map(|(name, value)| (name.into(), value.into()));
        let spec = CommandSpec {
            line,
            shell: Shell::Sh,
            directory: self.workspace.clone(),
            environment: variables.chain([("AYE".into(), "1".into())]).collect(),
            stdin: None,
            terminal: None,
            confinement: None,
            proxy: None,
            timeout: TIMEOUT,
            max_output_bytes: OUTPUT_BYTES,
            helper: Helper::default(),
        };
        // The live output is discarded.
        let (live, _) = mpsc::channel(1);
        let finished = match run_with_receivers(spec, live, CancellationToken::new(), OutputReceivers::default()).await {
            Ok(finished) => finished,
            Err(error) => return Some(format!("[status] command: {error}")),
        };
        let printed = finished.stdout.text(OUTPUT_BYTES);
        let printed = crate::text::clean(&printed);
        let first = printed.lines().map(str::trim).find(|line| !line.is_empty());
        match (finished.end, first) {
            (End::TimedOut, _) => Some(format!("[status] command: did not finish within {} s", TIMEOUT.as_secs())),
            (_, Some(first)) => Some(first.chars().take(LINE_CHARS).collect()),
            (End::Exited(0), None) => None,
            (End::Exited(code), None) => Some(format!("[status] command: exited with code {code}")),
            (End::Signalled(_) | End::Killed | End::Interrupted | End::DiskFull | End::LayerFull | End::MemoryFull, None) => {
                Some("[status] command: terminated by a signal".to_owned())
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn worktree(command: &str) -> Worktree {
        Worktree {
            workspace: std::env::temp_dir(),
            environment: Environment::default(),
            command: Some(command.to_owned()),
            looking: Mutex::new(Looking::Nobody),
        }
    }

    #[test]
    fn requests_during_a_scan_cause_exactly_one_more_scan() {
        let worktree = worktree("true");
        assert!(worktree.try_begin());
        assert!(!worktree.try_begin() && !worktree.try_begin());
        assert!(worktree.finish_or_repeat());
        assert!(!worktree.finish_or_repeat());
        assert!(worktree.try_begin());
    }
}
