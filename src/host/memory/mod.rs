//! Memory: proposals for instruction files, which the user applies, edits or drops.

mod apply;
mod document;
mod inbox;
mod instruction;
mod prompts;
mod similarity;
mod statement;
mod target;

pub(crate) use apply::AppliedProposal;

use super::context::AppContext;
use super::error::CliError;
use crate::policy::redact::Redactor;
use crate::ports::{MemoryInbox, MemorySuggestion, SuggestionOutcome};
use crate::protocol::{MemoryProposal, MemorySource, MemoryTarget, Problem};
use crate::store::Store;
use inbox::{AddOutcome, End, InboxFile, MAX_OPEN, OpenProposal};
use jiff::Timestamp;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Maximum number of proposals that the model can add in one session, limited so that it cannot fill the inbox.
const MAX_SUGGESTED: usize = 10;
/// Maximum length of the reason for a proposal, in characters.
const REASON_CHARS: usize = 200;

/// Memory inbox of a workspace. Cheap to clone.
#[derive(Clone)]
pub(crate) struct Memory {
    app: AppContext,
    file: InboxFile,
    redactor: Arc<Redactor>,
    /// Number of proposals that the model has added in this session.
    suggested: Arc<AtomicUsize>,
}

/// Returns whether proposals are collected. This is never the case for agents, in unsaved sessions, or in copies of the
/// workspace.
pub(crate) fn is_enabled(app: &AppContext) -> bool {
    app.settings.memory && app.parent.is_none() && app.directories.data == app.directories.shared
}

impl Memory {
    pub(crate) fn new(app: &AppContext, redactor: Arc<Redactor>) -> Self {
        let name = app.directories.project_dir(&app.workspace);
        let name = name.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let file = InboxFile::new(&app.directories.shared, &name, &app.workspace);
        Self { app: app.clone(), file, redactor, suggested: Arc::default() }
    }

    /// Creates the inbox of a workspace, using the redaction rules of the policy in effect.
    pub(crate) fn for_place(app: &AppContext) -> Result<Self, CliError> {
        let policy = app.policy(None, None)?;
        Ok(Self::new(app, super::redaction::redactor(app, policy.redactions(), &[])))
    }

    /// Returns the inbox for use by a session, or `None` if proposals are not collected.
    pub(crate) fn for_session(app: &AppContext, redactor: &Arc<Redactor>) -> Option<Arc<dyn MemoryInbox>> {
        is_enabled(app).then(|| Arc::new(Self::new(app, Arc::clone(redactor))) as Arc<dyn MemoryInbox>)
    }

    /// Searches the prompts sent since the last search for instructions that the user repeats.
    pub(crate) fn search_prompts(&self, store: &Store) -> Result<(), CliError> {
        if is_enabled(&self.app) { prompts::search(self, store) } else { Ok(()) }
    }

    /// Returns the open proposals, oldest first, with diffs against the current files. Closes proposals whose text is
    /// already in the file.
    pub(crate) fn list(&self) -> Result<Vec<MemoryProposal>, CliError> {
        let inbox = self.file.read()?;
        let mut settled = inbox.clone();
        if !apply::settle(self, &mut settled).is_empty() || settled != inbox {
            let _lock = self.file.lock_writing()?;
            settled = self.file.update(|inbox| {
                apply::settle(self, inbox);
                Ok(inbox.clone())
            })?;
        }
        Ok(settled.proposals.iter().map(|proposal| target::show(&self.app, proposal)).collect())
    }

    /// Returns the proposal whose ID is, or begins with, `id`.
    pub(crate) fn show(&self, id: &str) -> Result<MemoryProposal, CliError> {
        let _ = self.list()?;
        let inbox = self.file.read()?;
        let at = inbox.find(id)?;
        Ok(target::show(&self.app, &inbox.proposals[at]))
    }

    /// Applies a proposal. `digest` identifies the diff that was shown to the user.
    ///
    /// # Errors
    ///
    /// Returns an error if the file has changed since the diff was shown, if the policy denies the change, or if the
    /// file cannot be written. Nothing is changed in these cases.
    pub(crate) fn apply(&self, id: &str, digest: &str) -> Result<AppliedProposal, CliError> {
        apply::apply(self, id, digest)
    }

    /// Closes a proposal whose text is already in the file, for example because applying it was interrupted. Returns
    /// `None` if the proposal remains open.
    pub(crate) fn settle(&self, id: &str) -> Result<Option<AppliedProposal>, CliError> {
        apply::settle_one(self, id)
    }

    /// Undoes an applied proposal.
    pub(crate) fn undo(&self, id: &str) -> Result<AppliedProposal, CliError> {
        apply::undo(self, id)
    }

    /// Drops a proposal permanently, and returns its text.
    pub(crate) fn drop_proposal(&self, id: &str) -> Result<String, CliError> {
        self.file.update(|inbox| {
            let at = inbox.find(id)?;
            Ok(inbox.end(at, End::Dropped).text)
        })
    }

    /// Adds a proposal made by the user. If there is already an open proposal with the same meaning, returns that one.
    pub(crate) fn add(&self, text: &str, target: MemoryTarget) -> Result<MemoryProposal, CliError> {
        let text = self.checked(text)?;
        let proposal = new_proposal(&text, target, MemorySource::User, None);
        let added = self.file.update(|inbox| {
            let outcome = inbox.add(proposal.clone());
            // The proposal may have been merged with another proposal of the same meaning.
            let meaning = similarity::WordWeights::from_text(&text);
            let is_it = |known: &&OpenProposal| {
                known.id == proposal.id || similarity::WordWeights::from_text(&known.text).is_same(&meaning)
            };
            Ok((outcome, inbox.proposals.iter().find(is_it).cloned()))
        })?;
        match added {
            (AddOutcome::Full, _) | (_, None) => Err(CliError::failed(full())),
            (_, Some(added)) => Ok(target::show(&self.app, &added)),
        }
    }

    /// Changes the text or the target of a proposal, which also changes its ID, and returns the new version.
    pub(crate) fn edit(&self, id: &str, text: Option<&str>, target: Option<MemoryTarget>) -> Result<MemoryProposal, CliError> {
        let text = text.map(|text| self.checked(text)).transpose()?;
        let edited = self.file.update(|inbox| {
            let at = inbox.find(id)?;
            let old = &inbox.proposals[at];
            let (text, target) = (text.unwrap_or_else(|| old.text.clone()), target.unwrap_or(old.target));
            let new = OpenProposal { id: inbox::id(&text, target), text, target, applying: None, ..old.clone() };
            if let Some(other) = inbox.proposals.iter().enumerate().find(|(other, known)| *other != at && known.id == new.id) {
                let problem = Problem::new(format!("another proposal says the same thing: {}", other.1.id));
                return Err(CliError::usage(problem.hint(format!("drop one of them: aye memory drop {}", old.id))));
            }
            inbox.proposals[at] = new.clone();
            Ok(new)
        })?;
        Ok(target::show(&self.app, &edited))
    }

    fn checked(&self, text: &str) -> Result<String, CliError> {
        statement::checked(text, &self.redactor).map_err(|why| {
            let limit = statement::MAX_CHARS;
            let problem = Problem::new("cannot use this text as an instruction").because(why);
            CliError::usage(problem.hint(format!("write one plain sentence of at most {limit} characters")))
        })
    }
}

fn new_proposal(text: &str, target: MemoryTarget, source: MemorySource, reason: Option<String>) -> OpenProposal {
    let (id, text, created) = (inbox::id(text, target), text.to_owned(), Timestamp::now());
    OpenProposal { id, text, target, source, reason, said: Vec::new(), created, applying: None }
}

fn full() -> Problem {
    let problem = Problem::new(format!("the memory inbox is full ({MAX_OPEN} proposals)"));
    problem.hint("apply or drop some of them: aye memory list")
}

impl MemoryInbox for Memory {
    fn check(&self, text: &str) -> Result<String, String> {
        statement::checked(text, &self.redactor)
    }

    fn suggest(&self, suggestion: &MemorySuggestion) -> Result<SuggestionOutcome, String> {
        let text = self.check(&suggestion.text)?;
        let file = target::file(&self.app, suggestion.target);
        if file.is_ok_and(|file| document::says(file.text(), &text)) {
            return Ok(SuggestionOutcome::AlreadyInFile);
        }
        if self.suggested.load(Ordering::Relaxed) >= MAX_SUGGESTED {
            return Err(format!("a session can suggest at most {MAX_SUGGESTED} instructions; this one was not added"));
        }
        let reason = suggestion.reason.as_deref().map(crate::text::clean_line).filter(|reason| !reason.is_empty());
        // A reason is only shown to the user.
        let reason = reason.map(|reason| self.redactor.hide(&reason).chars().take(REASON_CHARS).collect());
        let proposal = new_proposal(&text, suggestion.target, MemorySource::Model, reason);
        match self.file.update(|inbox| Ok(inbox.add(proposal))).map_err(|error| error.to_string())? {
            AddOutcome::Added => {
                self.suggested.fetch_add(1, Ordering::Relaxed);
                Ok(SuggestionOutcome::Added)
            }
            AddOutcome::Merged => Ok(SuggestionOutcome::Merged),
            AddOutcome::DecidedBefore => Ok(SuggestionOutcome::DecidedBefore),
            AddOutcome::Full => Err(full().one_line()),
        }
    }
}
