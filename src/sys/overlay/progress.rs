//! Progress of work on many changes.

/// Receiver of progress. It is called for every change or for every few, possibly from several threads, so it must be
/// cheap.
pub(crate) type ProgressHook<'a> = &'a (dyn Fn(Progress) + Sync);

/// Progress of one stage.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Progress {
    pub stage: Stage,
    /// Number of changes or files so far.
    pub done: usize,
    /// Number of changes or files in this stage; `None` if it is unknown.
    pub total: Option<usize>,
}

/// Stage of the work, in order: the first two belong to `changes`, the others to `commit`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Stage {
    /// The changed paths are listed.
    Listing,
    /// Their contents are compared with the previous ones.
    Comparing,
    /// Their contents are prepared on the target file system, and synced at the end.
    Preparing,
    /// They are moved to their paths, and the names are synced at the end.
    Applying,
}

/// Counter of the files of one stage.
pub(super) struct ProgressCounter<'a> {
    hook: ProgressHook<'a>,
    stage: Stage,
    done: usize,
    total: usize,
}

impl<'a> ProgressCounter<'a> {
    pub(super) fn new(hook: ProgressHook<'a>, stage: Stage, total: usize) -> Self {
        Self { hook, stage, done: 0, total }
    }

    /// Counts a file.
    pub(super) fn add_one(&mut self) {
        self.done += 1;
        (self.hook)(Progress { stage: self.stage, done: self.done, total: Some(self.total) });
    }
}
