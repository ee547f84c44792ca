//! Stores the complete output of a command while it is running.

use super::{ArtifactSpool, Kept, new, reading_hint};
use crate::protocol::ArtifactKind;
use crate::sys::process::{FinishedRun, OutputChunk, Printed};
use crate::tools::call_result::CallResult;
use crate::tools::settings::ToolSettings;
use std::sync::{Arc, Mutex, PoisonError};
use tokio::sync::mpsc;
use tokio::task::JoinHandle;

/// Maximum number of chunks that are waiting to be written.
const DEPTH: usize = 4;

/// Collects a command's stdout and stderr. If it is dropped, nothing is stored.
pub(in crate::tools) struct OutputCollector {
    task: JoinHandle<OutputCollectors>,
}

/// The outputs that were stored.
#[derive(Default)]
pub(in crate::tools) struct OutputCollectors {
    stdout: Option<Kept>,
    stderr: Option<Kept>,
}

impl OutputCollector {
    /// Starts collecting. Returns the channel to which the output must be sent, along with the collector, or `None` for
    /// both if output is not stored.
    pub(in crate::tools) fn begin(line: &str, settings: &ToolSettings) -> (Option<mpsc::Sender<OutputChunk>>, Option<Self>) {
        let Some(artifacts) = &settings.session.artifacts else { return (None, None) };
        let keeper = |what: &str| {
            let new = new(ArtifactKind::ToolOutput, &format!("{what} of {}", settings.redactor.hide(line)), "text/plain");
            ArtifactSpool::new(Arc::clone(artifacts), Arc::clone(&settings.redactor), new)
        };
        let (send, receive) = mpsc::channel(DEPTH);
        let task = tokio::spawn(gather([keeper("output"), keeper("errors")], receive));
        (Some(send), Some(Self { task }))
    }

    /// Completes the artifacts once the command has ended.
    pub(in crate::tools) async fn finish(mut self) -> OutputCollectors {
        (&mut self.task).await.unwrap_or_default()
    }
}

impl Drop for OutputCollector {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl OutputCollectors {
    /// Adds the artifacts to a result. If the output shown is truncated, also tells the model how to read the rest.
    pub(in crate::tools) fn attach_to(self, told: CallResult, finished: &FinishedRun, limit: usize) -> CallResult {
        let Self { stdout, stderr } = self;
        let is_cut = finished.stdout.total() + finished.stderr.total() > limit as u64;
        let named = [("the whole stdout", &stdout), ("the whole stderr", &stderr)];
        let way = |(what, kept): (&str, &Option<Kept>)| kept.as_ref().filter(|_| is_cut).map(|kept| reading_hint(what, kept));
        let lines: Vec<String> = named.into_iter().filter_map(way).collect();
        super::with_kept(told, stdout.into_iter().chain(stderr).collect(), &lines)
    }
}

async fn gather(keepers: [ArtifactSpool; 2], mut pieces: mpsc::Receiver<OutputChunk>) -> OutputCollectors {
    let keepers = Arc::new(Mutex::new(keepers));
    while let Some(OutputChunk { on, bytes }) = pieces.recv().await {
        let index = usize::from(on == Printed::Stderr);
        let push = |keepers: &Mutex<[ArtifactSpool; 2]>| lock_ignoring_poison(keepers)[index].push(&bytes);
        if lock_ignoring_poison(&keepers)[index].is_slow(bytes.len()) {
            let keepers = Arc::clone(&keepers);
            let _ = tokio::task::spawn_blocking(move || lock_ignoring_poison(&keepers)[index].push(&bytes)).await;
        } else {
            push(&keepers);
        }
    }
    let finish = move || {
        let keepers = Arc::into_inner(keepers)?.into_inner().unwrap_or_else(PoisonError::into_inner);
        let [stdout, stderr] = keepers.map(ArtifactSpool::finish);
        Some(OutputCollectors { stdout, stderr })
    };
    tokio::task::spawn_blocking(finish).await.ok().flatten().unwrap_or_default()
}

fn lock_ignoring_poison<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
