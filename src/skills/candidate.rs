//! Directories in a folder of skills that may be skills.

use super::SKILL_FILE;
use super::origin::Origin;
use super::tree::{Detail, PinnedFile, SkillTree, read_tree};
use std::collections::HashSet;
use std::path::{Path, PathBuf};

/// Maximum number of skills in a folder.
pub(super) const MAX_SKILLS: usize = 200;
/// Maximum number of entries of a folder that are examined.
const MAX_ENTRIES: usize = 10_000;
/// Maximum size of a `SKILL.md`, in bytes.
const SKILL_BYTES: u64 = 256 << 10;
/// Maximum total bytes of the hashed files of a folder.
const FOLDER_BYTES: u64 = 64 << 20;
/// Maximum total number of hashed files of a folder.
const FOLDER_FILES: usize = 2_000;

/// A folder that can contain skills.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Folder {
    pub path: PathBuf,
    /// Path for display: `~/.claude/skills`.
    pub shown: String,
    pub origin: Origin,
    /// Directory that must contain the folder, its skills and the targets of their symlinks; `None` for no restriction.
    pub boundary: Option<PathBuf>,
    /// Directories that a skill must not contain, such as the home directory.
    pub kept_apart: Vec<PathBuf>,
}

/// A directory that may be a skill.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Candidate {
    /// Name of the directory.
    pub name: String,
    /// Directory path without symlinks.
    pub real: PathBuf,
    /// Directory path for display: `.claude/skills/pdf`.
    pub shown: String,
    pub origin: Origin,
    pub contents: CandidateContents,
}

/// The content of a candidate.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum CandidateContents {
    Read {
        /// Content of `SKILL.md`.
        text: Vec<u8>,
        /// All files with their hashes; `None` for one of the user's own skills, whose files are not pinned.
        files: Option<Vec<PinnedFile>>,
        /// Entries that are not part of the skill, each with the reason.
        left_out: Vec<(String, String)>,
    },
    /// A symlink that points outside the boundary.
    Outside { to: PathBuf },
    /// The directory is not usable, for this reason.
    Closed { why: String },
}

/// The content of a folder.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct FolderContents {
    /// The skills, sorted by name.
    pub candidates: Vec<Candidate>,
    /// Number of directories beyond the limit, which were not examined.
    pub rest: usize,
    /// Reason why the folder itself cannot be used.
    pub problem: Option<String>,
    /// Target of the folder, if it is a symlink that points outside the boundary.
    pub outside: Option<PathBuf>,
}

/// Remaining limit on the content of a folder that may be hashed.
struct HashBudget {
    bytes: u64,
    files: usize,
}

impl Folder {
    /// Returns the skills of the folder. Directories in `seen` were already found in another folder and are skipped.
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
            // Most entries that are not skills are files, or directories with other content.
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

    /// Returns the skill in the directory of this name.
    pub(super) fn find(&self, name: &str) -> Option<Candidate> {
        self.candidate(name.to_owned(), self.path.join(name), &mut HashSet::new(), &mut HashBudget::default())
    }

    /// Reads one directory; `None` if it was already found in another folder.
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
    /// Returns whether the files of a skill fit into the remaining limit.
    fn take(&mut self, tree: &SkillTree) -> bool {
        let bytes: u64 = tree.files.iter().map(|file| file.bytes).sum();
        let fits = bytes <= self.bytes && tree.files.len() <= self.files;
        self.bytes = self.bytes.saturating_sub(bytes);
        self.files = self.files.saturating_sub(tree.files.len());
        fits
    }
}

impl Candidate {
    /// Returns the file of the skill for display.
    pub(crate) fn file(&self) -> String {
        format!("{}/{SKILL_FILE}", self.shown)
    }
}
