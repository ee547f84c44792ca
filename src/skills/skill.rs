//! Usable skills, with their manifest, location and files.

use super::SKILL_FILE;
use super::manifest::{Manifest, ParsedManifest};
use super::origin::Origin;
use super::tree::{Detail, PinnedFile, first_change, is_unchanged, read_tree};
use crate::protocol::CustomCommand;
use std::path::{Path, PathBuf};

/// Prefix of the line that introduces a skill in a prompt or tool result.
const HEADER: &str = "[Skill ";
/// Placeholder that other agents replace with the skill's directory.
const DIRECTORY: &str = "${CLAUDE_SKILL_DIR}";

/// Usable skill.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Skill {
    pub manifest: Manifest,
    /// Directory path with symlinks resolved.
    pub real: PathBuf,
    /// Display path of the directory, such as `.claude/skills/pdf`.
    pub shown: String,
    pub origin: Origin,
    /// Hash of the skill's `SKILL.md`.
    pub digest: String,
    /// Files of a project or plugin skill, as reviewed by the user; `None` for the user's own skills.
    pub pinned: Option<HashedFiles>,
}

/// A skill's files, with their hashes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct HashedFiles {
    pub files: Vec<PinnedFile>,
    /// Directory that must contain the targets of all symlinks in the skill.
    pub boundary: PathBuf,
}

impl Skill {
    pub(crate) fn name(&self) -> &str {
        &self.manifest.name
    }

    /// Returns the display path of the skill's `SKILL.md`.
    pub(crate) fn file(&self) -> String {
        format!("{}/{SKILL_FILE}", self.shown)
    }

    /// Returns the line that introduces the skill in prompts and tool results: `[Skill pdf, from
    /// .claude/skills/pdf/SKILL.md]`.
    pub(crate) fn header(&self) -> String {
        format!("{HEADER}{}, from {}]", self.name(), self.file())
    }

    /// Finds all lines that look like skill headers. Returns the skill name and the full line for each.
    pub(crate) fn names_in_text(text: &str) -> impl Iterator<Item = (&str, &str)> {
        let headers = text.lines().filter(|line| line.starts_with(HEADER));
        headers.filter_map(|line| Some((line[HEADER.len()..].split_once(',')?.0, line)))
    }

    /// Returns the skill's slash command, or `None` if the user may not invoke the skill.
    pub(crate) fn command(&self) -> Option<CustomCommand> {
        let Manifest { name, description, argument_hint, .. } = &self.manifest;
        let owner = match self.origin {
            Origin::Project => "project skill",
            Origin::User => "your skill",
            Origin::Plugin => "plugin skill",
        };
        self.manifest.for_user.then(|| CustomCommand {
            name: name.clone(),
            description: format!("{owner}: {description}"),
            argument_hint: argument_hint.clone(),
            text: format!("{}\n{}\n\n{}", self.header(), self.location_note(), self.body()),
            source: self.file(),
        })
    }

    /// Returns the instructions with the given arguments inserted, as in a slash command.
    pub(crate) fn instructions(&self, arguments: &str) -> String {
        let command = CustomCommand {
            name: String::new(),
            description: String::new(),
            argument_hint: None,
            text: self.body(),
            source: String::new(),
        };
        command.expand(arguments)
    }

    fn body(&self) -> String {
        self.manifest.body.replace(DIRECTORY, &self.real.to_string_lossy())
    }

    /// Rereads the skill's file and returns the skill with the current content.
    ///
    /// # Errors
    /// Returns the reason if the file can no longer be used.
    pub(crate) fn reread(&self, max_bytes: u64) -> Result<Self, String> {
        let file = self.real.join(SKILL_FILE).canonicalize().map_err(|error| error.to_string())?;
        if !file.starts_with(&self.real) {
            return Err(format!("`{SKILL_FILE}` is a symlink to `{}`", file.display()));
        }
        let text = crate::sys::file::read(&file, max_bytes).map_err(|error| error.to_string())?;
        let ParsedManifest { manifest, errors, .. } = Manifest::read(self.name(), &text);
        let manifest = manifest.ok_or_else(|| errors.first().map(|fault| fault.with_file(&self.file())).unwrap_or_default())?;
        Ok(Self { manifest, digest: blake3::hash(&text).to_hex().to_string(), ..self.clone() })
    }

    /// Returns a phrase for messages to the user that says since when the files must not have changed.
    pub(crate) fn reviewed_when(&self) -> &'static str {
        match self.origin {
            Origin::Project | Origin::User => "since you trusted the project",
            Origin::Plugin => "since you added the plugin",
        }
    }

    /// Returns a sentence that tells the model where the skill's files are.
    pub(crate) fn location_note(&self) -> String {
        format!("Its files are in {}; paths in the skill are relative to that directory.", self.real.display())
    }

    /// Returns the skill's files: the pinned ones if it is pinned, or else the files currently on disk.
    pub(crate) fn files(&self) -> Vec<PinnedFile> {
        match &self.pinned {
            Some(pinned) => pinned.files.clone(),
            None => read_tree(&self.real, &self.real, Detail::Listed).map_or_else(|_| Vec::new(), |tree| tree.files),
        }
    }

    /// Describes how a project or plugin skill differs from the content that the user reviewed. Returns `None` if it
    /// is unchanged or not pinned. Reads all of the skill's files.
    pub(crate) fn change(&self) -> Option<String> {
        let pinned = self.pinned.as_ref()?;
        first_change(&self.real, &pinned.boundary, &pinned.files)
    }

    /// Returns whether the skill may only use the exact files that the user reviewed.
    pub(crate) fn is_pinned(&self) -> bool {
        self.pinned.is_some()
    }

    /// Returns whether a file in a pinned skill is new or differs from the content that the user reviewed. Returns
    /// `false` for files outside the skill.
    pub(crate) fn has_changed(&self, real: &Path) -> bool {
        let Some(pinned) = &self.pinned else { return false };
        let Ok(below) = real.strip_prefix(&self.real) else { return false };
        let known = pinned.files.iter().find(|file| Path::new(&file.path) == below);
        known.is_none_or(|known| !is_unchanged(real, known))
    }
}
