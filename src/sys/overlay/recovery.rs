//! Recovers an interrupted commit by performing the remaining steps in its journal.

use super::apply::{CommitHooks, FaultHook, apply};
use super::journal::{
    BEGUN, CommitJournal, DONE, OVER, STAGES, Stage, VERSION, clear_stages, finish, forget, lock_directory, read, remove_stage,
};
use super::outcome::CommitOutcome;
use crate::sys::path::open_directory;
use std::io;
use std::os::fd::OwnedFd;
use std::path::Path;

/// Finishes a commit that was started from this directory and returns its outcome, or `None` if no commit was started.
/// Must be called again if it is interrupted, or if there are steps left to retry.
pub(crate) fn recover(preview: &Path) -> io::Result<Option<CommitOutcome>> {
    recover_with_hook(preview, &mut || Ok(()))
}

pub(super) fn recover_with_hook(preview: &Path, pace: FaultHook<'_>) -> io::Result<Option<CommitOutcome>> {
    let _held = lock_directory(preview)?;
    let base = open_directory(preview)?;
    if let Some(journal) = read::<CommitJournal>(&base, OVER)? {
        clear_stages(&journal);
        return Ok(Some(CommitOutcome { done: journal.roots.iter().map(|root| root.steps.len()).sum(), left: Vec::new() }));
    }
    if let Some(outcome) = read::<CommitOutcome>(&base, DONE)? {
        if let Some(journal) = read::<CommitJournal>(&base, BEGUN)? {
            clear_stages(&journal);
        }
        return Ok(Some(outcome));
    }
    let Some(journal) = read::<CommitJournal>(&base, BEGUN)? else {
        for Stage(path) in read::<Vec<Stage>>(&base, STAGES)?.unwrap_or_default() {
            remove_stage(&path);
        }
        forget(&base);
        return Ok(None);
    };
    if journal.version != VERSION {
        let message = format!("the commit in `{}` was started by another version of aye, which can finish it", preview.display());
        return Err(io::Error::new(io::ErrorKind::InvalidData, message));
    }
    run_steps(&base, &journal, &mut CommitHooks { pace, progress: &|_| {} }).map(Some)
}

/// Performs the steps. Steps that the system refuses are retried once immediately, without further progress, and again
/// at the next recovery.
pub(super) fn run_steps(base: &OwnedFd, journal: &CommitJournal, hooks: &mut CommitHooks<'_>) -> io::Result<CommitOutcome> {
    let mut outcome = apply(journal, hooks)?;
    if !outcome.is_over() {
        outcome = apply(journal, &mut CommitHooks { pace: &mut *hooks.pace, progress: &|_| {} })?;
    }
    if outcome.is_over() {
        finish(base, journal, &outcome)?;
    }
    Ok(outcome)
}
