//! Applies proposals. First the change is recorded in the inbox, then the file is written, and finally the proposal is
//! closed.

use super::Memory;
use super::document;
use super::inbox::{Change, ClosedProposal, End, InboxContent, OpenProposal};
use super::target::{self, PlannedInstruction, TargetFile, hash};
use crate::config::trust::{Project, TrustStatus};
use crate::host::error::CliError;
use crate::host::options::Trust;
use crate::host::project::ProjectConfig;
use crate::policy::{Sandbox, Verdict};
use crate::protocol::{Action, MemoryTarget, Mode, Place, Problem, Target};
use crate::sys::file::{CurrentState, Parents, PreImage, TargetState, WriteError, create_private_directory, replace, restore};
use std::os::unix::fs::PermissionsExt;

/// Result of applying a proposal.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct AppliedProposal {
    pub id: String,
    pub text: String,
    /// File path for display.
    pub file: String,
    pub outcome: ApplyOutcome,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ApplyOutcome {
    Written,
    /// The file was written, but its project is not trusted. aye will ask about the file the next time it starts.
    WrittenUntrusted,
    /// The file already contained the instruction.
    AlreadyThere,
}

impl ApplyOutcome {
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::Written => "applied",
            Self::WrittenUntrusted => "applied_untrusted",
            Self::AlreadyThere => "already_there",
        }
    }
}

impl AppliedProposal {
    /// Returns whether the file was changed.
    pub(crate) fn is_written(&self) -> bool {
        self.outcome != ApplyOutcome::AlreadyThere
    }

    /// Describes the result as a sentence without a full stop.
    pub(crate) fn describe(&self) -> String {
        let Self { id, file, .. } = self;
        match self.outcome {
            ApplyOutcome::Written => format!("applied {id} to {file}; new sessions use it"),
            ApplyOutcome::WrittenUntrusted => {
                format!("applied {id} to {file}; this project is not trusted, so aye asks about the file when it starts")
            }
            ApplyOutcome::AlreadyThere => format!("{file} already contains the text of {id}; nothing was written"),
        }
    }
}

/// Applies a proposal. `digest` identifies the diff that was shown to the user.
///
/// # Errors
///
/// Returns an error if the file has changed since the diff was shown, if the policy denies the change, or if the file
/// cannot be written. Nothing is changed in these cases.
pub(super) fn apply(memory: &Memory, id: &str, digest: &str) -> Result<AppliedProposal, CliError> {
    let _lock = memory.file.lock_writing()?;
    let before = memory.file.read()?;
    let wanted = before.proposals[before.find(id)?].clone();
    for ended in memory.file.update(|inbox| Ok(settle(memory, inbox)))? {
        if ended.id == wanted.id {
            return Ok(already_there(memory, &wanted));
        }
    }
    let planned = target::file(&memory.app, wanted.target).and_then(|file| file.plan(&wanted.text));
    let planned = planned.map_err(|why| {
        CliError::failed(Problem::new(format!("cannot apply {}", wanted.id)).because(why).hint("nothing was written"))
    })?;
    if planned.digest != digest {
        return Err(conflict(&planned.file.shown, &wanted.id));
    }
    let is_trusted = wanted.target == MemoryTarget::Project && is_trusted(memory);
    check_policy(memory, &wanted, &planned)?;
    let change = planned.change(is_trusted);
    memory.file.update(|inbox| {
        let at = inbox.find(&wanted.id)?;
        inbox.proposals[at].applying = Some(change.clone());
        Ok(())
    })?;
    if let Err(error) = write(&planned.file, &planned.after) {
        memory.file.update(|inbox| {
            let at = inbox.find(&wanted.id)?;
            inbox.proposals[at].applying = None;
            Ok(())
        })?;
        return Err(match error {
            WriteError::Changed => conflict(&planned.file.shown, &wanted.id),
            error => {
                let problem = Problem::new(format!("cannot write `{}`", planned.file.shown)).because(error);
                CliError::failed(problem.hint("nothing was written; the proposal is still in the inbox"))
            }
        });
    }
    keep_trust(memory, &change, planned.file.before.as_deref(), Some(&planned.after));
    memory.file.update(|inbox| {
        let at = inbox.find(&wanted.id)?;
        inbox.end(at, End::Applied { change: Some(change.clone()) });
        Ok(())
    })?;
    let outcome = match wanted.target {
        MemoryTarget::Project if !is_trusted => ApplyOutcome::WrittenUntrusted,
        _ => ApplyOutcome::Written,
    };
    Ok(AppliedProposal { id: wanted.id, text: wanted.text, file: planned.file.shown, outcome })
}

/// Closes a proposal whose text is already in the file, for example because applying it was interrupted. Returns `None`
/// if the proposal remains open.
pub(super) fn settle_one(memory: &Memory, id: &str) -> Result<Option<AppliedProposal>, CliError> {
    let _lock = memory.file.lock_writing()?;
    let before = memory.file.read()?;
    let wanted = before.proposals[before.find(id)?].clone();
    let ended = memory.file.update(|inbox| Ok(settle(memory, inbox)))?;
    Ok(ended.iter().any(|ended| ended.id == wanted.id).then(|| already_there(memory, &wanted)))
}

fn already_there(memory: &Memory, proposal: &OpenProposal) -> AppliedProposal {
    let file = target::show(&memory.app, proposal).file;
    AppliedProposal { id: proposal.id.clone(), text: proposal.text.clone(), file, outcome: ApplyOutcome::AlreadyThere }
}

fn conflict(file: &str, id: &str) -> CliError {
    let problem = Problem::new(format!("`{file}` changed after its diff was shown; nothing was written"));
    CliError::failed(problem.hint(format!("review the new diff: aye memory show {id}")))
}

/// Undoes an applied proposal, preserving later changes to the file.
///
/// # Errors
///
/// Returns an error if the file does not contain exactly the text that was added, or if it cannot be written.
pub(super) fn undo(memory: &Memory, id: &str) -> Result<AppliedProposal, CliError> {
    let _lock = memory.file.lock_writing()?;
    let inbox = memory.file.read()?;
    let found = inbox.ended.iter().rev().find_map(|ended| match &ended.end {
        End::Applied { change: Some(change) } if ended.id.starts_with(id) => Some((ended.clone(), change.clone())),
        End::Applied { .. } | End::Dropped | End::Undone => None,
    });
    let Some((ended, change)) = found else {
        return Err(CliError::usage(
            Problem::new(format!("aye has not applied a proposal `{id}`")).hint("`aye memory apply` prints the ID"),
        ));
    };
    let failed = |why: String| {
        let problem = Problem::new(format!("cannot undo {}", ended.id)).because(why);
        CliError::failed(problem.hint(format!("remove the line yourself: - {}", ended.text)))
    };
    let file = target::file(&memory.app, ended.target).map_err(failed)?;
    let shown = file.shown.clone();
    if file.path != change.file {
        return Err(failed(format!("the proposal was applied to `{}`, which is no longer in use", change.file.display())));
    }
    let after = document::remove(file.text(), &change.added);
    let after = after.ok_or_else(|| failed(format!("`{shown}` no longer contains the text that was added")))?;
    let is_trusted = ended.target == MemoryTarget::Project && is_trusted(memory);
    // Remove a file that aye created and that has no other content.
    let is_removed = change.before.is_none() && after.is_empty();
    let written = if is_removed { remove(&file) } else { write(&file, &after) };
    written.map_err(|error| failed(error.to_string()))?;
    let trusted_name = file.project_name.clone().filter(|_| is_trusted);
    let change = Change { trusted_name, ..change };
    keep_trust(memory, &change, file.before.as_deref(), Some(after.as_str()).filter(|_| !is_removed));
    memory.file.update(|inbox| {
        let is_it = |known: &&mut ClosedProposal| known.id == ended.id && matches!(known.end, End::Applied { .. });
        if let Some(known) = inbox.ended.iter_mut().rev().find(is_it) {
            known.end = End::Undone;
        }
        Ok(())
    })?;
    Ok(AppliedProposal { id: ended.id, text: ended.text, file: shown, outcome: ApplyOutcome::Written })
}

/// Closes all proposals whose text is already in the file, for example because applying them was interrupted, and
/// returns them.
pub(super) fn settle(memory: &Memory, inbox: &mut InboxContent) -> Vec<ClosedProposal> {
    let mut ended = Vec::new();
    for at in (0..inbox.proposals.len()).rev() {
        let proposal = &inbox.proposals[at];
        let file = target::file(&memory.app, proposal.target).ok();
        let is_there = file.as_ref().is_some_and(|file| document::has_line(file.text(), &proposal.text));
        match (proposal.applying.clone(), is_there) {
            (None, false) => {}
            (Some(_), false) => inbox.proposals[at].applying = None,
            (change, true) => {
                if let (Some(change), Some(file)) = (&change, &file)
                    && file.before.as_deref().map(hash).as_ref() == Some(&change.after)
                {
                    let before = document::remove(file.text(), &change.added).filter(|_| change.before.is_some());
                    keep_trust(memory, change, before.as_deref(), file.before.as_deref());
                }
                ended.push(inbox.end(at, End::Applied { change }));
            }
        }
    }
    ended
}

/// Returns whether the user trusts the project exactly as it is now.
fn is_trusted(memory: &Memory) -> bool {
    let project = Project::examine(&memory.app.workspace);
    matches!(project.trust_status(&memory.app.directories.config), TrustStatus::Trusted(_))
}

/// Updates the trust in a project after the user approved changing a file's content from `before` to `after`.
fn keep_trust(memory: &Memory, change: &Change, before: Option<&str>, after: Option<&str>) {
    let Some(name) = &change.trusted_name else { return };
    // A blank file does not count as an instruction file.
    let digest = |text: Option<&str>| text.filter(|text| !text.trim().is_empty()).map(hash);
    let app = &memory.app;
    let kept = Project::trust_change(&app.workspace, &app.directories.config, name, digest(before), digest(after));
    match kept {
        Ok(true) => {}
        Ok(false) => tracing::warn!("the trust in a project was not updated, because another file changed"),
        Err(error) => tracing::warn!(%error, "cannot update the trust in a project"),
    }
}

/// Returns an error if a policy denies changing a file in the workspace.
fn check_policy(memory: &Memory, proposal: &OpenProposal, planned: &PlannedInstruction) -> Result<(), CliError> {
    if proposal.target != MemoryTarget::Project {
        return Ok(());
    }
    let app = &memory.app;
    let project = ProjectConfig::inspect(&app.workspace, &app.directories.config, Trust::AsRecorded);
    let policy = app.policy(None, Some(&project))?;
    let bytes = planned.after.len() as u64;
    let target = Target { given: planned.file.shown.clone(), real: planned.file.path.clone(), place: Place::File { bytes } };
    let enforcer = app.enforcer(&policy, Sandbox::Absent, Mode::default());
    match enforcer.judge(&[Action::Write { target }], jiff::Timestamp::now()) {
        // The user has approved the diff, so an action that the policy asks about is allowed.
        Verdict::Allow(_) | Verdict::Ask(_) => Ok(()),
        Verdict::Deny(denial) => {
            let problem = Problem::new(format!("the policy denies changes to `{}`", planned.file.shown));
            let problem = problem.because(format!("{} (rule: {})", denial.reason, denial.rule));
            Err(CliError::failed(problem.hint(format!("choose another file: aye memory edit {} --target personal", proposal.id))))
        }
    }
}

fn write(file: &TargetFile, text: &str) -> Result<(), WriteError> {
    if file.project_name.is_none()
        && let Some(parent) = file.path.parent()
    {
        // The user's own directories are private.
        create_private_directory(parent)?;
    }
    replace(&file.path, text.as_bytes(), &file.pre_image(), Parents::Create)
}

fn remove(file: &TargetFile) -> Result<(), WriteError> {
    let PreImage::Content(hash) = file.pre_image() else { return Ok(()) };
    let mode = file.path.metadata()?.permissions().mode();
    restore(&file.path, &CurrentState::File { hash, mode }, TargetState::Nothing)
}
