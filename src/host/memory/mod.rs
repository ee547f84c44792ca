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

/// Maximum number of proposals from the model in one session, so that it cannot fill the inbox.
const MAX_SUGGESTED: usize = 10;
/// Maximum length of a reason in characters.
const REASON_CHARS: usize = 200;

/// The memory inbox of a workspace. Cheap to clone.
#[derive(Clone)]
pub(crate) struct Memory {
    place: AppContext,
    file: InboxFile,
    redactor: Arc<Redactor>,
    /// Number of proposals from the model that this session added.
    suggested: Arc<AtomicUsize>,
}

/// Returns whether proposals are collected: never by agents, in unsaved sessions or in copies.
pub(crate) fn is_enabled(place: &AppContext) -> bool {
    place.settings.memory && place.parent.is_none() && place.directories.data == place.directories.shared
}

impl Memory {
    pub(crate) fn new(place: &AppContext, redactor: Arc<Redactor>) -> Self {
        let name = place.directories.project_dir(&place.workspace);
        let name = name.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let file = InboxFile::new(&place.directories.shared, &name, &place.workspace);
        Self { place: place.clone(), file, redactor, suggested: Arc::default() }
    }

    /// Creates the inbox with the redaction rules of the policy in effect.
    pub(crate) fn for_place(place: &AppContext) -> Result<Self, CliError> {
        let policy = place.policy(None, None)?;
        Ok(Self::new(place, super::redaction::redactor(place, policy.redactions(), &[])))
    }

    /// Returns the memory as the inbox of a session, if proposals are collected.
    pub(crate) fn for_session(place: &AppContext, redactor: &Arc<Redactor>) -> Option<Arc<dyn MemoryInbox>> {
        is_enabled(place).then(|| Arc::new(Self::new(place, Arc::clone(redactor))) as Arc<dyn MemoryInbox>)
    }

    /// Searches the prompts since the last search for instructions that the user repeats.
    pub(crate) fn search_prompts(&self, store: &Store) -> Result<(), CliError> {
        if is_enabled(&self.place) { prompts::search(self, store) } else { Ok(()) }
    }

    /// Returns the open proposals, oldest first, with diffs against the current files. Ends proposals whose text is
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
        Ok(settled.proposals.iter().map(|proposal| target::show(&self.place, proposal)).collect())
    }

    /// Returns the proposal with this ID, or with an ID that has this prefix.
    pub(crate) fn show(&self, id: &str) -> Result<MemoryProposal, CliError> {
        let _ = self.list()?;
        let inbox = self.file.read()?;
        let at = inbox.find(id)?;
        Ok(target::show(&self.place, &inbox.proposals[at]))
    }

    /// Applies a proposal. `digest`: digest of the diff that the user saw.
    ///
    /// # Errors
    ///
    /// Returns an error if the file has changed since then, the policy denies the change, or the file cannot be
    /// written. In these cases nothing is changed.
    pub(crate) fn apply(&self, id: &str, digest: &str) -> Result<AppliedProposal, CliError> {
        apply::apply(self, id, digest)
    }

    /// Ends a proposal whose text is already in the file, for example after an interrupted application. Returns `None`
    /// if the proposal stays open.
    pub(crate) fn settle(&self, id: &str) -> Result<Option<AppliedProposal>, CliError> {
        apply::settle_one(self, id)
    }

    /// Undoes an applied proposal.
    pub(crate) fn undo(&self, id: &str) -> Result<AppliedProposal, CliError> {
        apply::undo(self, id)
    }

    /// Drops a proposal permanently. Returns its text.
    pub(crate) fn drop_proposal(&self, id: &str) -> Result<String, CliError> {
        self.file.update(|inbox| {
            let at = inbox.find(id)?;
            Ok(inbox.end(at, End::Dropped).text)
        })
    }

    /// Adds a proposal by the user, or returns the open one with the same meaning.
    pub(crate) fn add(&self, text: &str, target: MemoryTarget) -> Result<MemoryProposal, CliError> {
        let text = self.checked(text)?;
        let proposal = new_proposal(&text, target, MemorySource::User, None);
        let added = self.file.update(|inbox| {
            let outcome = inbox.add(proposal.clone());
            // It was merged with a proposal of the same meaning.
            let meaning = similarity::WordWeights::from_text(&text);
            let is_it = |known: &&OpenProposal| {
                known.id == proposal.id || similarity::WordWeights::from_text(&known.text).is_same(&meaning)
            };
            Ok((outcome, inbox.proposals.iter().find(is_it).cloned()))
        })?;
        match added {
            (AddOutcome::Full, _) | (_, None) => Err(CliError::failed(full())),
            (_, Some(added)) => Ok(target::show(&self.place, &added)),
        }
    }

    /// Changes the text or the target of a proposal, which also changes its ID. Returns the changed proposal.
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
        Ok(target::show(&self.place, &edited))
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
        let file = target::file(&self.place, suggestion.target);
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
