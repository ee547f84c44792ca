//! Memory inbox of a workspace. This is a private file in the data directory that contains open proposals and the
//! outcomes of earlier ones.

use super::similarity::WordWeights;
use crate::host::error::CliError;
use crate::protocol::{MemoryQuote, MemorySource, MemoryTarget, MessageId, Problem, SessionId};
use crate::sys::file::private::{self, PrivateError};
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use std::path::{Path, PathBuf};

/// Maximum size of the file in bytes.
const FILE_BYTES: u64 = 4 << 20;
/// Maximum number of open proposals.
pub(super) const MAX_OPEN: usize = 30;
/// Maximum number of closed proposals that are stored. The oldest are removed first, but dropped proposals are removed
/// last.
const MAX_ENDED: usize = 1_000;
/// Maximum number of stored instructions that were found in prompts.
const MAX_SAID: usize = 500;
/// Maximum number of quotes stored with a proposal.
const MAX_QUOTES: usize = 5;
/// Number of digits in a proposal ID.
const ID_DIGITS: usize = 8;

/// File that contains an inbox. Cheap to clone.
#[derive(Debug, Clone)]
pub(crate) struct InboxFile {
    path: PathBuf,
    /// Workspace path, included for people who read the file.
    directory: String,
}

/// Content of an inbox file.
#[derive(Debug, Default, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct InboxContent {
    directory: String,
    pub proposals: Vec<OpenProposal>,
    pub ended: Vec<ClosedProposal>,
    /// Instructions found in prompts, stored in order to recognize repetitions.
    pub said: Vec<DetectedInstruction>,
    /// Time up to which prompts have already been searched.
    pub searched: Option<Timestamp>,
}

/// An open proposal.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct OpenProposal {
    pub id: String,
    pub text: String,
    pub target: MemoryTarget,
    pub source: MemorySource,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub said: Vec<MemoryQuote>,
    pub created: Timestamp,
    /// Change that is being written. After a crash, it makes it possible to determine whether the file was written.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub applying: Option<Change>,
}

/// A change to an instruction file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Change {
    pub file: PathBuf,
    /// Hash of the previous content; absent if the file did not exist.
    pub before: Option<String>,
    pub after: String,
    /// Added text, needed to undo the change.
    pub added: String,
    /// Name under which the trust record lists the file, if the project was trusted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub trusted_name: Option<String>,
}

/// A proposal that is no longer open.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct ClosedProposal {
    pub id: String,
    pub text: String,
    pub target: MemoryTarget,
    pub end: End,
    pub time: Timestamp,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "end", rename_all = "snake_case")]
pub(super) enum End {
    Dropped,
    /// `change` is absent if the file already contained the text.
    Applied {
        #[serde(default, skip_serializing_if = "Option::is_none")]
        change: Option<Change>,
    },
    Undone,
}

/// An instruction found in a prompt.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct DetectedInstruction {
    pub session: SessionId,
    pub message: MessageId,
    pub task: String,
    /// Hash of the complete prompt. Sending the same prompt again is not treated as a repetition.
    pub prompt: String,
    /// Whether the prompt consists only of this instruction.
    pub alone: bool,
    pub quote: MemoryQuote,
}

/// Result of adding a proposal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum AddOutcome {
    Added,
    Merged,
    DecidedBefore,
    Full,
}

impl InboxFile {
    pub(super) fn new(data: &Path, name: &str, directory: &Path) -> Self {
        Self { path: data.join("memory").join(format!("{name}.json")), directory: directory.to_string_lossy().into_owned() }
    }

    /// Reads the inbox. Returns an empty one if the file does not exist.
    pub(super) fn read(&self) -> Result<InboxContent, CliError> {
        self.parse(private::read(&self.path, FILE_BYTES).map_err(|error| self.problem(&error))?.as_deref())
    }

    /// Changes the content of the inbox while holding a lock. The file is not written if `change` fails or makes no
    /// changes.
    pub(super) fn update<T>(&self, change: impl FnOnce(&mut InboxContent) -> Result<T, CliError>) -> Result<T, CliError> {
        let mut outcome = None;
        let updated = private::update(&self.path, FILE_BYTES, |old| {
            let before = self.parse(old.as_deref()).map_err(InboxError::Inbox)?;
            let mut inbox = before.clone();
            outcome = Some(change(&mut inbox).map_err(InboxError::Inbox)?);
            if inbox == before {
                return Ok(old);
            }
            inbox.directory.clone_from(&self.directory);
            inbox.limit();
            let bytes =
                serde_json::to_vec_pretty(&inbox).map_err(|error| InboxError::File(std::io::Error::other(error).into()))?;
            Ok(Some(bytes))
        });
        match (updated, outcome) {
            (Ok(()), Some(outcome)) => Ok(outcome),
            (Err(InboxError::Inbox(error)), _) => Err(error),
            (Err(InboxError::File(error)), _) => Err(self.problem(&error)),
            (Ok(()), None) => Err(CliError::failed("the memory inbox was not changed")),
        }
    }

    /// Acquires the lock for applying proposals, which prevents two processes from writing to an instruction file at
    /// the same time.
    pub(super) fn lock_writing(&self) -> Result<std::fs::File, CliError> {
        let failed = |error: std::io::Error| {
            CliError::failed(Problem::new("cannot lock the memory inbox").because(error).hint("try again in a moment"))
        };
        let parent = self.path.parent().unwrap_or(&self.path);
        std::fs::create_dir_all(parent).map_err(failed)?;
        crate::sys::file::lock(&self.path.with_extension("apply.lock")).map_err(failed)
    }

    fn parse(&self, bytes: Option<&[u8]>) -> Result<InboxContent, CliError> {
        let Some(bytes) = bytes else { return Ok(InboxContent::default()) };
        serde_json::from_slice(bytes).map_err(|error| {
            let problem = Problem::new(format!("cannot read the memory inbox `{}`", self.path.display())).because(error);
            CliError::failed(problem.hint("move the file away to start with an empty inbox"))
        })
    }

    fn problem(&self, error: &PrivateError) -> CliError {
        let problem = Problem::new(format!("cannot use the memory inbox `{}`", self.path.display())).because(error);
        CliError::failed(match error.remedy() {
            Some(hint) => problem.hint(hint),
            None => problem,
        })
    }
}

enum InboxError {
    Inbox(CliError),
    File(PrivateError),
}

impl From<PrivateError> for InboxError {
    fn from(error: PrivateError) -> Self {
        Self::File(error)
    }
}

/// Returns the ID for an instruction with this text and target.
pub(super) fn id(text: &str, target: MemoryTarget) -> String {
    let key = WordWeights::from_text(text).key();
    let key = if key.is_empty() { text.to_lowercase() } else { key };
    let hash = blake3::hash(format!("{}\n{key}", target.as_str()).as_bytes()).to_hex();
    hash.chars().take(ID_DIGITS).collect()
}

impl InboxContent {
    /// Adds a proposal. If an open proposal has the same meaning, merges the new proposal with it, even if their
    /// targets differ. A dropped proposal can be added again only by the user.
    pub(super) fn add(&mut self, new: OpenProposal) -> AddOutcome {
        let meaning = WordWeights::from_text(&new.text);
        let is_same = |text: &str| text == new.text || WordWeights::from_text(text).is_same(&meaning);
        if let Some(known) = self.proposals.iter_mut().find(|known| is_same(&known.text)) {
            known.reason = known.reason.take().or(new.reason);
            for quote in new.said {
                if !known.said.contains(&quote) && known.said.len() < MAX_QUOTES {
                    known.said.push(quote);
                }
            }
            return AddOutcome::Merged;
        }
        if new.source != MemorySource::User && self.ended.iter().any(|ended| is_same(&ended.text)) {
            return AddOutcome::DecidedBefore;
        }
        if self.proposals.len() >= MAX_OPEN && !self.make_room(new.source) {
            return AddOutcome::Full;
        }
        let mut new = new;
        new.said.truncate(MAX_QUOTES);
        self.proposals.push(new);
        AddOutcome::Added
    }

    /// Removes the oldest proposal that a new one from this source may replace. Returns `false` if there is none. The
    /// user's own proposals are never removed, and the model can replace only its own proposals. A removed proposal may
    /// be made again later.
    fn make_room(&mut self, source: MemorySource) -> bool {
        let (own, weaker): (&[MemorySource], &[MemorySource]) = match source {
            MemorySource::Model => (&[MemorySource::Model], &[]),
            MemorySource::Repeated | MemorySource::User => (&[MemorySource::Repeated], &[MemorySource::Model]),
        };
        let oldest = |sources: &[MemorySource]| {
            let gives_way = |proposal: &OpenProposal| sources.contains(&proposal.source) && proposal.applying.is_none();
            self.proposals.iter().position(gives_way)
        };
        let Some(at) = oldest(weaker).or_else(|| oldest(own)) else { return false };
        self.proposals.remove(at);
        true
    }

    /// Returns the index of the proposal whose ID is, or begins with, `id`.
    pub(super) fn find(&self, id: &str) -> Result<usize, CliError> {
        let found: Vec<usize> = (0..self.proposals.len()).filter(|at| self.proposals[*at].id.starts_with(id)).collect();
        match found[..] {
            [at] => Ok(at),
            [] => {
                let hint = "run `aye memory list` to list the proposals";
                let ended = self.ended.iter().rev().find(|ended| ended.id.starts_with(id)).map(|ended| match ended.end {
                    End::Dropped => "was dropped",
                    End::Applied { .. } => "is already applied",
                    End::Undone => "was undone",
                });
                let what = match ended {
                    Some(end) => format!("the proposal `{id}` {end}"),
                    None => format!("no proposal `{id}`"),
                };
                Err(CliError::usage(Problem::new(what).hint(hint)))
            }
            _ => {
                Err(CliError::usage(Problem::new(format!("`{id}` matches several proposals")).hint("type more digits of the ID")))
            }
        }
    }

    /// Closes the proposal at index `at`.
    pub(super) fn end(&mut self, at: usize, end: End) -> ClosedProposal {
        let OpenProposal { id, text, target, .. } = self.proposals.remove(at);
        let ended = ClosedProposal { id, text, target, end, time: Timestamp::now() };
        self.ended.push(ended.clone());
        ended
    }

    /// Removes the oldest entries that exceed the limits.
    fn limit(&mut self) {
        while self.ended.len() > MAX_ENDED {
            let applied = self.ended.iter().position(|ended| ended.end != End::Dropped);
            self.ended.remove(applied.unwrap_or(0));
        }
        let excess = self.said.len().saturating_sub(MAX_SAID);
        self.said.drain(..excess);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn proposal(text: &str, source: MemorySource) -> OpenProposal {
        let target = MemoryTarget::Personal;
        let created = Timestamp::UNIX_EPOCH;
        OpenProposal {
            id: id(text, target),
            text: text.to_owned(),
            target,
            source,
            reason: None,
            said: vec![],
            created,
            applying: None,
        }
    }

    #[test]
    fn equivalent_proposals_are_merged_and_dropped_ones_do_not_return() {
        let mut inbox = InboxContent::default();
        assert_eq!(inbox.add(proposal("Use nextest", MemorySource::Model)), AddOutcome::Added);
        assert_eq!(inbox.add(proposal("please use nextest, not cargo test", MemorySource::Repeated)), AddOutcome::Merged);
        assert_eq!(inbox.proposals.len(), 1);
        inbox.end(0, End::Dropped);
        assert_eq!(inbox.add(proposal("use nextest", MemorySource::Model)), AddOutcome::DecidedBefore);
        assert_eq!(inbox.add(proposal("use nextest", MemorySource::User)), AddOutcome::Added, "the user may add it");
        for number in 0..MAX_OPEN * 2 {
            inbox.add(proposal(&format!("use tool{number}"), MemorySource::Model));
        }
        assert_eq!(inbox.proposals.len(), MAX_OPEN);
    }

    #[test]
    fn a_full_inbox_replaces_suggestions_from_the_model_first() {
        let mut inbox = InboxContent::default();
        let count = |inbox: &InboxContent, source| inbox.proposals.iter().filter(|proposal| proposal.source == source).count();
        inbox.add(proposal("use mine", MemorySource::User));
        for number in 1..MAX_OPEN {
            inbox.add(proposal(&format!("use tool{number}"), MemorySource::Model));
        }
        assert_eq!(inbox.add(proposal("use another one", MemorySource::Model)), AddOutcome::Added);
        assert!(inbox.proposals.iter().all(|proposal| proposal.text != "use tool1"), "the oldest one of the model is replaced");
        for number in 0..MAX_OPEN - 1 {
            assert_eq!(inbox.add(proposal(&format!("use found{number}"), MemorySource::Repeated)), AddOutcome::Added);
        }
        assert_eq!((inbox.proposals.len(), count(&inbox, MemorySource::Model)), (MAX_OPEN, 0));
        assert_eq!(inbox.add(proposal("use one more", MemorySource::Model)), AddOutcome::Full, "the model replaces only its own");
        assert_eq!(inbox.add(proposal("use found again", MemorySource::Repeated)), AddOutcome::Added);
        for number in 1..MAX_OPEN {
            assert_eq!(inbox.add(proposal(&format!("use own{number}"), MemorySource::User)), AddOutcome::Added);
        }
        assert_eq!(count(&inbox, MemorySource::User), MAX_OPEN);
        for source in [MemorySource::User, MemorySource::Repeated, MemorySource::Model] {
            assert_eq!(inbox.add(proposal("use nothing else", source)), AddOutcome::Full, "{source:?}");
        }
    }

    #[test]
    fn ids_depend_only_on_the_instruction_and_the_target() {
        let of = |text| id(text, MemoryTarget::Personal);
        assert_eq!(of("Use nextest"), of("please use nextest."));
        assert_ne!(of("Use nextest"), of("Never use nextest"));
        assert_ne!(of("Use nextest"), id("Use nextest", MemoryTarget::Project));
        assert_ne!(of("use it"), of("this is it"), "without words that count, the text itself counts");
        assert_eq!(of("x").len(), ID_DIGITS);
    }

    #[test]
    fn a_damaged_file_is_reported_and_left_unchanged() {
        let dir = tempfile::tempdir().unwrap();
        let file = InboxFile::new(dir.path(), "here", Path::new("/w"));
        assert_eq!(file.read().unwrap(), InboxContent::default());
        file.update(|inbox| Ok(inbox.add(proposal("Use nextest", MemorySource::Model)))).unwrap();
        assert_eq!(file.read().unwrap().proposals.len(), 1);
        private::update::<PrivateError>(&file.path, FILE_BYTES, |_| Ok(Some(b"{".to_vec()))).unwrap();
        let error = file.update(|_| Ok(())).unwrap_err();
        assert!(error.to_string().contains("cannot read the memory inbox"), "{error}");
        assert_eq!(std::fs::read(&file.path).unwrap(), b"{");
    }
}
