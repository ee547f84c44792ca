//! Trust in project files.

mod contents;
mod git;
mod identity;
mod nested;
mod record;
#[cfg(test)]
mod tests;

pub(crate) use contents::{Item, TrustContent, TrustItemKind, hook_programs, program_files, project_folder};

use super::{ConfigError, InstructionFile, instructions};
use crate::hooks::HookFile;
use crate::protocol::Problem;
use crate::skills::FolderContents;
use contents::{collect, instruction_item, relative};
pub(crate) use identity::UncoveredDirectory;
use identity::{identity, inode, is_covered};
use nested::NestedFiles;
pub(super) use record::write as write_private;
use record::{StoredTrust, TrustRecord};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// Project directory whose files take effect only with trust.
pub(crate) struct Project {
    real: PathBuf,
    items: Vec<Item>,
    instructions: Vec<InstructionFile>,
    /// Skills in each of the project's skill folders.
    skills: Vec<FolderContents>,
    /// Instruction files in directories below the workspace. `None` until they have been searched for.
    nested: Option<NestedFiles>,
}

/// Trust status of a project.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum TrustStatus {
    Trusted(TrustProof),
    /// The project has changed since it was trusted. Each change is described by a string.
    Changed(Vec<String>),
    NeverAsked,
}

/// Proof that a project is trusted, which is required to access its files.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct TrustProof(());

impl TrustProof {
    /// Returns proof of trust for this run only (`--trust`).
    pub(crate) fn for_this_run() -> Self {
        Self(())
    }
}

impl Project {
    /// Examines a directory, given its canonical path. Its files remain inaccessible until it is trusted.
    pub(crate) fn examine(real: &Path) -> Self {
        let (instructions, skills) = (instructions::project_instructions(real), contents::skills(real));
        let items = collect(real, &instructions, &skills);
        Self { real: real.to_owned(), items, instructions: instructions.files, skills, nested: None }
    }

    /// Returns the items for the trust prompt. They include files that are too large or outside the project.
    pub(crate) fn items(&self) -> &[Item] {
        &self.items
    }

    /// Searches the directories below the workspace for instruction files to list in the trust prompt. The search is
    /// limited.
    pub(crate) fn find_nested(&mut self) {
        self.nested = Some(nested::search_below(&self.real));
    }

    /// Returns the instruction files found by `find_nested` as items for the trust prompt.
    pub(crate) fn nested_items(&self) -> Vec<Item> {
        let Some(nested) = &self.nested else { return Vec::new() };
        let mut items: Vec<Item> = nested.files.iter().map(|file| instruction_item(&self.real, file)).collect();
        if nested.is_cut {
            let why = "more folders, whose instructions are used only after you review them".to_owned();
            items.push(Item {
                name: "other folders".to_owned(),
                kind: TrustItemKind::Rest,
                content: TrustContent::Closed { why },
            });
        }
        items
    }

    /// Describes how known instruction files below the workspace have changed since the project was trusted. Returns an
    /// empty list if the project is not trusted.
    pub(crate) fn nested_changes(&self, config_dir: &Path) -> Vec<String> {
        let Some(kept) = self.note_about_it(config_dir) else { return Vec::new() };
        let changed = kept.nested.iter().filter_map(|(name, digest)| {
            let now = instructions::at_path(&self.real.join(name), &self.real)?;
            match (digest.as_str(), now.digest() == *digest) {
                (_, true) => None,
                ("", _) => Some(format!("{name} is new")),
                _ => Some(format!("{name} changed")),
            }
        });
        changed.collect()
    }

    /// Records that an instruction file below the workspace has not been reviewed yet, so the next trust prompt lists
    /// it. Does nothing in a copy-on-write layer, whose files are not those of the project.
    pub(crate) fn record_nested(real: &Path, config_dir: &Path, name: &str) {
        if is_covered(real) {
            return;
        }
        let path = config_dir.join("projects").join(directory_name(real)).join("trust.toml");
        if let StoredTrust::Note(mut note) = record::read(&path)
            && note.nested.len() < 2 * nested::MAX_FILES
            && !note.nested.contains_key(name)
        {
            note.nested.insert(name.to_owned(), String::new());
            if let Err(error) = note.keep(&path) {
                tracing::warn!(%error, "cannot save a new instruction file");
            }
        }
    }

    fn note_about_it(&self, config_dir: &Path) -> Option<TrustRecord> {
        match record::read(&self.note_path(config_dir)) {
            StoredTrust::Note(note) if note.directory == self.real.to_string_lossy() && note.inode == identity(&self.real) => {
                Some(note)
            }
            StoredTrust::Note(_) | StoredTrust::Nothing | StoredTrust::Unreadable => None,
        }
    }

    /// Returns the names and contents of the files for display in the trust prompt. The contents are those that were
    /// hashed.
    pub(crate) fn texts(&self) -> Vec<(String, Vec<u8>)> {
        let told = |item: &Item| {
            let nested = self.nested.iter().flat_map(|nested| &nested.files);
            let file = self.instructions.iter().chain(nested).find(|file| file.path == self.real.join(&item.name))?;
            Some(file.text.clone().into_bytes())
        };
        let text = |item: &Item| match &item.content {
            TrustContent::Text(bytes) => Some(bytes.clone()),
            TrustContent::Hashed { hash, .. } if item.kind == TrustItemKind::SkillFile => {
                contents::read_if_unchanged(&self.real.join(&item.name), hash)
            }
            TrustContent::Hashed { .. } => told(item),
            TrustContent::TooLarge { .. } | TrustContent::Outside { .. } | TrustContent::Closed { .. } => None,
        };
        self.items.iter().chain(&self.nested_items()).filter_map(|item| Some((item.name.clone(), text(item)?))).collect()
    }

    /// Returns the URL of the git remote, which is read from the git directory without running git.
    pub(crate) fn remote(&self) -> Option<String> {
        git::remote(&self.real)
    }

    /// Returns the items that would take effect if the project were trusted.
    pub(crate) fn effective_items(&self) -> impl Iterator<Item = &Item> {
        self.items.iter().filter(|item| item.is_effective())
    }

    pub(crate) fn instructions(&self, _proof: &TrustProof) -> &[InstructionFile] {
        &self.instructions
    }

    /// Returns the skills in each skill folder, with the content that was hashed.
    pub(crate) fn skills(&self, _proof: &TrustProof) -> &[FolderContents] {
        &self.skills
    }

    /// Returns the hook files, with the content that was hashed.
    pub(crate) fn hooks(&self, proof: &TrustProof) -> Vec<HookFile> {
        let files = self.texts_of_kind(TrustItemKind::Hooks, proof);
        files.into_iter().map(|(path, text)| contents::read_project_hooks(text, &relative(&self.real, &path))).collect()
    }

    /// Returns the path of the project's policy, and its hashed content or an error. Returns `None` if the project has
    /// no policy.
    pub(crate) fn policy(&self) -> Option<(PathBuf, Result<&[u8], String>)> {
        let item = self.items.iter().find(|item| item.kind == TrustItemKind::Policy)?;
        let bytes = match &item.content {
            TrustContent::Text(bytes) => Ok(bytes.as_slice()),
            TrustContent::Hashed { .. }
            | TrustContent::TooLarge { .. }
            | TrustContent::Outside { .. }
            | TrustContent::Closed { .. } => Err(item.summary()),
        };
        Some((self.real.join(&item.name), bytes))
    }

    /// Returns the path and hashed content of each readable file of this kind.
    pub(crate) fn texts_of_kind(&self, kind: TrustItemKind, _proof: &TrustProof) -> Vec<(PathBuf, &[u8])> {
        let items = self.items.iter().filter(|item| item.kind == kind);
        items.filter_map(|item| Some((self.real.join(&item.name), item.text()?))).collect()
    }

    pub(crate) fn root(&self) -> &Path {
        &self.real
    }

    /// Returns the names and hashes of the files that the user trusted. Empty if the user was never asked.
    pub(crate) fn trusted_hashes(&self, config_dir: &Path) -> BTreeMap<String, String> {
        self.note_about_it(config_dir).map_or_else(BTreeMap::new, |note| note.files)
    }

    /// Returns the names and hashes of the trusted instruction files below the workspace.
    pub(crate) fn trusted_nested_hashes(&self, config_dir: &Path) -> BTreeMap<String, String> {
        self.note_about_it(config_dir).map_or_else(BTreeMap::new, |note| note.nested)
    }

    /// Returns the names and hashes of the instruction files found below the workspace.
    pub(crate) fn nested_hashes(&self) -> BTreeMap<String, String> {
        let files = self.nested.iter().flat_map(|nested| &nested.files);
        files.map(|file| (relative(&self.real, &file.path), file.digest())).collect()
    }

    /// Returns the names of the files and their hashes when the project was examined.
    pub(crate) fn now(&self) -> BTreeMap<String, String> {
        self.note().files
    }

    /// Returns whether the policy is still the same as when the project was examined. No other file is read.
    pub(crate) fn is_policy_unchanged(&self) -> bool {
        let kept = self.items.iter().find(|item| item.kind == TrustItemKind::Policy);
        contents::policy(&self.real).map(|item| item.fingerprint()) == kept.map(Item::fingerprint)
    }

    pub(crate) fn trust_status(&self, config_dir: &Path) -> TrustStatus {
        match record::read(&self.note_path(config_dir)) {
            StoredTrust::Nothing => TrustStatus::NeverAsked,
            StoredTrust::Note(kept) => {
                let now = self.note();
                if kept.is_same(&now) {
                    TrustStatus::Trusted(TrustProof(()))
                } else {
                    TrustStatus::Changed(kept.differences(&now))
                }
            }
            // The record of the trusted files cannot be read.
            StoredTrust::Unreadable => TrustStatus::Changed(Vec::new()),
        }
    }

    /// Records that the user trusts exactly the content that was examined. In a copy-on-write layer, nothing is
    /// recorded and the proof is for this run only, because the files of the layer are not those of the project.
    pub(crate) fn record(&self, config_dir: &Path) -> Result<TrustProof, ConfigError> {
        if is_covered(&self.real) {
            return Ok(TrustProof::for_this_run());
        }
        let path = self.note_path(config_dir);
        let nested = if self.nested.is_some() { self.nested_hashes() } else { self.trusted_nested_hashes(config_dir) };
        let kept = TrustRecord { nested, ..self.note() }.keep(&path).map_err(|error| {
            let what = format!("cannot save your decision to trust this project in `{}`", path.display());
            ConfigError::single(Problem::new(what).because(error).hint("make its directory writable"))
        });
        kept.map(|()| TrustProof(()))
    }

    /// Updates the trust record after the user approved a change to one file, so the change does not end trust in the
    /// project. The file's new hash is recorded only if the recorded hash matches its previous content. Changes to
    /// other files still end trust. A hash of `None` means that the file does not exist. Returns whether the record was
    /// updated.
    pub(crate) fn trust_change(
        real: &Path,
        config_dir: &Path,
        name: &str,
        before: Option<String>,
        after: Option<String>,
    ) -> std::io::Result<bool> {
        let path = config_dir.join("projects").join(directory_name(real)).join("trust.toml");
        let StoredTrust::Note(mut note) = record::read(&path) else { return Ok(false) };
        // A change in a layer over the project does not change the project itself.
        let is_of_project = note.directory == real.to_string_lossy() && note.inode == inode(real);
        if !is_of_project || note.files.get(name) != before.as_ref() {
            return Ok(false);
        }
        match after {
            Some(after) => note.files.insert(name.to_owned(), after),
            None => note.files.remove(name),
        };
        note.keep(&path)?;
        Ok(true)
    }

    /// Returns whether the user has declined to trust this directory.
    pub(crate) fn is_declined(&self, config_dir: &Path) -> bool {
        std::fs::read_to_string(self.declined_path(config_dir)).is_ok_and(|declined| declined == identity(&self.real))
    }

    /// Records that the user declined to trust this directory. In a copy-on-write layer, nothing is recorded.
    pub(crate) fn decline(&self, config_dir: &Path) -> Result<(), ConfigError> {
        if is_covered(&self.real) {
            return Ok(());
        }
        let path = self.declined_path(config_dir);
        record::write(&path, &identity(&self.real)).map_err(|error| {
            let what = format!("cannot save your decision not to trust this project in `{}`", path.display());
            ConfigError::single(Problem::new(what).because(error).hint("make its directory writable"))
        })
    }

    fn declined_path(&self, config_dir: &Path) -> PathBuf {
        config_dir.join("projects").join(directory_name(&self.real)).join("trust-declined")
    }

    fn note(&self) -> TrustRecord {
        TrustRecord {
            directory: self.real.to_string_lossy().into_owned(),
            inode: identity(&self.real),
            repository: git::repository(&self.real),
            files: self.items.iter().map(|item| (item.name.clone(), item.fingerprint())).collect(),
            nested: BTreeMap::new(),
        }
    }

    fn note_path(&self, config_dir: &Path) -> PathBuf {
        config_dir.join("projects").join(directory_name(&self.real)).join("trust.toml")
    }
}

/// Returns the name of the directory with the user's own files for a project: `<name>-<hash of the canonical path>`.
pub(crate) fn directory_name(real: &Path) -> String {
    let plain = |letter: char| if letter.is_ascii_alphanumeric() || "-_.".contains(letter) { letter } else { '-' };
    let name: String = real.file_name().unwrap_or_default().to_string_lossy().chars().take(40).map(plain).collect();
    let hash = blake3::hash(real.as_os_str().as_encoded_bytes()).to_hex();
    format!("{}-{}", if name.is_empty() { "root" } else { &name }, hash.get(..16).unwrap_or_default())
}
