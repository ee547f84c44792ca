//! Directories within a skill folder that may be skills.

use super::SKILL_FILE;
use super::origin::Origin;
use super::tree::{Detail, PinnedFile, SkillTree, read_tree};
use std::collections::HashSet;
use std::path::{Path, PathBuf};

/// Maximum number of skills per folder.
pub(super) const MAX_SKILLS: usize = 200;
/// Maximum number of directory entries examined per folder.
const MAX_ENTRIES: usize = 10_000;
/// Maximum size of a `SKILL.md`, in bytes.
const SKILL_BYTES: u64 = 256 << 10;
/// Maximum total size of hashed files per folder, in bytes.
const FOLDER_BYTES: u64 = 64 << 20;
/// Maximum total number of hashed files per folder.
const FOLDER_FILES: usize = 2_000;

/// Folder that can contain skills.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Folder {
    pub path: PathBuf,
    /// Display path, such as `~/.claude/skills`.
    pub shown: String,
    pub origin: Origin,
    /// Directory that must contain the folder, its skills and the targets of their symlinks; `None` if there is no
    /// such restriction.
    pub boundary: Option<PathBuf>,
    /// Directories that a skill's directory must not contain, such as the home directory.
    pub kept_apart: Vec<PathBuf>,
}

/// Directory that may be a skill.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Candidate {
    /// Directory name.
    pub name: String,
    /// Directory path with symlinks resolved.
    pub real: PathBuf,
    /// Display path of the directory, such as `.claude/skills/pdf`.
    pub shown: String,
    pub origin: Origin,
    pub contents: CandidateContents,
}

/// Content found in a candidate.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum CandidateContents {
    Read {
        /// Content of `SKILL.md`.
        text: Vec<u8>,
        /// Every file with its hash; `None` for the user's own skills, whose files are not pinned.
        files: Option<Vec<PinnedFile>>,
        /// Entries that are not part of the skill, each with the reason why.
        left_out: Vec<(String, String)>,
    },
    /// The directory or its `SKILL.md` is a symlink to a path outside the boundary.
    Outside { to: PathBuf },
    /// The directory cannot be used for the given reason.
    Closed { why: String },
}

/// Content found in a skill folder.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct FolderContents {
    /// Candidates, sorted by name.
    pub candidates: Vec<Candidate>,
    /// Number of directories that were not examined because the folder exceeds the limit.
    pub rest: usize,
    /// Reason why the folder itself cannot be used.
    pub problem: Option<String>,
    /// Target of the folder's symlink, if it points outside the boundary.
    pub outside: Option<PathBuf>,
}

/// Amount of content in a folder that may still be hashed.
struct HashBudget {
    bytes: u64,
    files: usize,
}

impl Folder {
    /// Returns the candidates in the folder. Directories in `seen`, which were already found in another folder, are
    /// skipped.
    pub(crate) fn contents(&self, seen: &mut HashSet<PathBuf>) -> FolderContents {
        let mut contents = FolderContents::default();
        if self.path.symlink_metadata().is_err() {
            return contents;
        }
        let real = match self.path.canonicalize() {
            Ok(real) => real,
            Err(error) => return FolderContents { problem: Some(format!("cannot be read: {error}")), ..contents },
        };
        if self.boundary.as_ref().is_some_and(|boundary| !real.starts_with(boundary)) {
            return FolderContents { outside: Some(real), ..contents };
        }
        let entries = match crate::sys::path::entries(&real) {
            Ok(entries) => entries,
            Err(error) => return FolderContents { problem: Some(format!("cannot be read: {error}")), ..contents },
        };
        let is_shown = |name: &String| !name.starts_with('.');
        let names = entries.take(MAX_ENTRIES).filter_map(|entry| Some(entry.ok()?.file_name().to_string_lossy().into_owned()));
        let mut names: Vec<String> = names.filter(is_shown).collect();
        names.sort();
        let mut budget = HashBudget::default();
        for name in names {
            let path = self.path.join(&name);
            // Most entries without a `SKILL.md` are files or unrelated directories.
            if path.join(SKILL_FILE).symlink_metadata().is_err() {
                continue;
            }
            if contents.candidates.len() >= MAX_SKILLS {
                contents.rest += 1;
                continue;
            }
            if let Some(candidate) = self.candidate(name, path, seen, &mut budget) {
                contents.candidates.push(candidate);
            }
        }
        contents
    }

    /// Returns the candidate in the directory with the given name.
    pub(super) fn find(&self, name: &str) -> Option<Candidate> {
        self.candidate(name.to_owned(), self.path.join(name), &mut HashSet::new(), &mut HashBudget::default())
    }

    /// Reads a single directory. Returns `None` if it was already found in another folder.
    fn candidate(
        &self,
        name: String,
        directory: PathBuf,
        seen: &mut HashSet<PathBuf>,
        budget: &mut HashBudget,
    ) -> Option<Candidate> {
        let shown = format!("{}/{name}", self.shown);
        let real = directory.canonicalize().unwrap_or(directory);
        if !seen.insert(real.clone()) {
            return None;
        }
        let contents = self.read(&real, budget);
        Some(Candidate { name, real, shown, origin: self.origin, contents })
    }

    fn read(&self, real: &Path, budget: &mut HashBudget) -> CandidateContents {
        let closed = |why: String| CandidateContents::Closed { why };
        if self.boundary.as_ref().is_some_and(|boundary| !real.starts_with(boundary)) {
            return CandidateContents::Outside { to: real.to_owned() };
        }
        if let Some(apart) = self.kept_apart.iter().find(|apart| apart.starts_with(real)) {
            return closed(format!("a symlink to a directory that contains `{}`", apart.display()));
        }
        let boundary = self.boundary.as_deref().unwrap_or(real);
        let file = match real.join(SKILL_FILE).canonicalize() {
            Ok(file) if !file.starts_with(boundary) => return CandidateContents::Outside { to: file },
            Ok(file) => file,
            Err(_) => return closed(format!("`{SKILL_FILE}` is a dangling symlink, or not readable")),
        };
        let text = match crate::sys::file::read(&file, SKILL_BYTES) {
            Ok(text) => text,
            Err(crate::sys::file::ReadError::TooLarge { bytes, .. }) => {
                let size = crate::protocol::size(bytes);
                return closed(format!("`{SKILL_FILE}` is too large ({size}); the limit is {} KB", SKILL_BYTES >> 10));
            }
            Err(crate::sys::file::ReadError::Io(error)) => return closed(format!("cannot read `{SKILL_FILE}`: {error}")),
        };
        if self.origin == Origin::User {
            return CandidateContents::Read { text, files: None, left_out: Vec::new() };
        }
        let tree = match read_tree(real, boundary, Detail::Hashed) {
            Ok(tree) => tree,
            Err(why) => return closed(why),
        };
        if !budget.take(&tree) {
            return closed("the skills of this folder are too large or too many in total".to_owned());
        }
        // The file may have changed between the two reads.
        let digest = blake3::hash(&text).to_hex().to_string();
        if !tree.files.iter().any(|pinned| pinned.path == SKILL_FILE && pinned.hash == digest) {
            return closed(format!("`{SKILL_FILE}` changed while it was read"));
        }
        CandidateContents::Read { text, files: Some(tree.files), left_out: tree.left_out }
    }
}

impl Default for HashBudget {
    fn default() -> Self {
        Self { bytes: FOLDER_BYTES, files: FOLDER_FILES }
    }
}

impl HashBudget {
    /// Deducts a skill's files from the budget. Returns whether they fit.
    fn take(&mut self, tree: &SkillTree) -> bool {
        let bytes: u64 = tree.files.iter().map(|file| file.bytes).sum();
        let fits = bytes <= self.bytes && tree.files.len() <= self.files;
        self.bytes = self.bytes.saturating_sub(bytes);
        self.files = self.files.saturating_sub(tree.files.len());
        fits
    }
}

impl Candidate {
    /// Returns the display path of the skill's `SKILL.md`.
    pub(crate) fn file(&self) -> String {
        format!("{}/{SKILL_FILE}", self.shown)
    }
}
