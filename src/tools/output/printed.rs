//! What a command prints, kept whole while it runs.

use super::{Keeper, Kept, new, way_to};
use crate::protocol::ArtifactKind;
use crate::sys::process::{Finished, Piece, Printed};
use crate::tools::tool::{Output, Settings};
use std::sync::{Arc, Mutex, PoisonError};
use tokio::sync::mpsc;
use tokio::task::JoinHandle;

/// Pieces that wait to be written.
const DEPTH: usize = 4;

/// Gathers both outputs of a command. Dropped, it keeps nothing.
pub(in crate::tools) struct Whole {
    task: JoinHandle<Wholes>,
}

/// What is kept of them.
#[derive(Default)]
pub(in crate::tools) struct Wholes {
    stdout: Option<Kept>,
    stderr: Option<Kept>,
}

impl Whole {
    /// For a command that is about to start, and where to send what it prints; nothing where nothing is kept.
    pub(in crate::tools) fn begin(line: &str, settings: &Settings) -> (Option<mpsc::Sender<Piece>>, Option<Self>) {
        let Some(artifacts) = &settings.artifacts else { return (None, None) };
        let keeper = |what: &str| {
            let new = new(ArtifactKind::ToolOutput, &format!("{what} of {}", settings.redactor.hide(line)), "text/plain");
            Keeper::new(Arc::clone(artifacts), Arc::clone(&settings.redactor), new)
        };
        let (send, receive) = mpsc::channel(DEPTH);
        let task = tokio::spawn(gather([keeper("output"), keeper("errors")], receive));
        (Some(send), Some(Self { task }))
    }

    /// Once the command is over.
    pub(in crate::tools) async fn finish(mut self) -> Wholes {
        (&mut self.task).await.unwrap_or_default()
    }
}

impl Drop for Whole {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl Wholes {
    /// The same answer, what is kept put to it; where the model has not all of it, it is told how it comes to the rest.
    pub(in crate::tools) fn put_to(self, told: Output, finished: &Finished, limit: usize) -> Output {
        let Self { stdout, stderr } = self;
        let is_cut = finished.stdout.total() + finished.stderr.total() > limit as u64;
        let named = [("the whole stdout", &stdout), ("the whole stderr", &stderr)];
        let way = |(what, kept): (&str, &Option<Kept>)| kept.as_ref().filter(|_| is_cut).map(|kept| way_to(what, kept));
        let lines: Vec<String> = named.into_iter().filter_map(way).collect();
        super::with_kept(told, stdout.into_iter().chain(stderr).collect(), &lines)
    }
}

async fn gather(keepers: [Keeper; 2], mut pieces: mpsc::Receiver<Piece>) -> Wholes {
    let keepers = Arc::new(Mutex::new(keepers));
    while let Some(Piece { on, bytes }) = pieces.recv().await {
        let index = usize::from(on == Printed::Stderr);
        let push = |keepers: &Mutex<[Keeper; 2]>| locked(keepers)[index].push(&bytes);
        if locked(&keepers)[index].is_slow(bytes.len()) {
            let keepers = Arc::clone(&keepers);
            let _ = tokio::task::spawn_blocking(move || locked(&keepers)[index].push(&bytes)).await;
        } else {
            push(&keepers);
        }
    }
    let finish = move || {
        let keepers = Arc::into_inner(keepers)?.into_inner().unwrap_or_else(PoisonError::into_inner);
        let [stdout, stderr] = keepers.map(Keeper::finish);
        Some(Wholes { stdout, stderr })
    };
    tokio::task::spawn_blocking(finish).await.ok().flatten().unwrap_or_default()
}

fn locked<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
