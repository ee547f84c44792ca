//! Trust in a project's files.

mod contents;
mod git;
mod nested;
mod record;
#[cfg(test)]
mod tests;

pub use contents::{Content, Item, Kind, programs_of};

use super::{ConfigError, InstructionFile, instructions};
use contents::{collect, relative, told};
use nested::Nested;
use record::{Kept, Note};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// A directory and what it would bring in.
pub struct Project {
    real: PathBuf,
    items: Vec<Item>,
    instructions: Vec<InstructionFile>,
    /// Instruction files below it, once somebody looked for them.
    nested: Option<Nested>,
}

/// What the person said about a project.
#[derive(Debug, PartialEq, Eq)]
pub enum Standing {
    Trusted(Trusted),
    /// They said yes once, to something else; what is different, in words.
    Changed(Vec<String>),
    NeverAsked,
}

/// Proof of a yes; opens what the project brings in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Trusted(());

impl Trusted {
    /// `--trust`: the person's yes for this run.
    pub fn for_this_run() -> Self {
        Self(())
    }
}

impl Project {
    /// Looks at a directory by its real path. What it says is kept closed until there is a yes.
    pub fn examine(real: &Path) -> Self {
        let instructions = instructions::of_project(real);
        Self { real: real.to_owned(), items: collect(real, &instructions), instructions: instructions.files, nested: None }
    }

    /// What stands there to be brought in, for the question; also what is too large or leads elsewhere.
    pub fn items(&self) -> &[Item] {
        &self.items
    }

    /// Looks for instruction files below it, for the question. It takes a walk of the workspace, within bounds.
    pub fn look_for_nested(&mut self) {
        self.nested = Some(nested::look(&self.real));
    }

    /// Those that were found, as items of the question.
    pub fn nested(&self) -> Vec<Item> {
        let Some(nested) = &self.nested else { return Vec::new() };
        let mut items: Vec<Item> = nested.files.iter().map(|file| told(&self.real, file)).collect();
        if nested.is_cut {
            let why = "more folders, whose instructions are used only after you review them".to_owned();
            items.push(Item { name: "other folders".to_owned(), kind: Kind::Rest, content: Content::Closed { why } });
        }
        items
    }

    /// What is no longer as it was trusted of the instruction files below it that are known, in words. None where it is not trusted.
    pub fn nested_changes(&self, config_dir: &Path) -> Vec<String> {
        let Some(kept) = self.note_about_it(config_dir) else { return Vec::new() };
        let changed = kept.nested.iter().filter_map(|(name, digest)| {
            let path = self.real.join(name);
            let now = instructions::in_directory(path.parent()?, &self.real).filter(|file| file.path == path)?;
            match (digest.as_str(), now.digest() == *digest) {
                (_, true) => None,
                ("", _) => Some(format!("{name} is new")),
                _ => Some(format!("{name} changed")),
            }
        });
        changed.collect()
    }

    /// Keeps in mind that an instruction file below it was met that nobody trusted, so that the next question lists it.
    pub fn met(real: &Path, config_dir: &Path, name: &str) {
        let path = config_dir.join("projects").join(directory_name(real)).join("trust.toml");
        if let Kept::Note(mut note) = record::read(&path)
            && note.nested.len() < 2 * nested::MAX_FILES
            && !note.nested.contains_key(name)
        {
            note.nested.insert(name.to_owned(), String::new());
            if let Err(error) = note.keep(&path) {
                tracing::warn!(%error, "cannot save a new instruction file");
            }
        }
    }

    fn note_about_it(&self, config_dir: &Path) -> Option<Note> {
        match record::read(&self.note_path(config_dir)) {
            Kept::Note(note) if note.directory == self.real.to_string_lossy() && note.inode == inode(&self.real) => Some(note),
            Kept::Note(_) | Kept::Nothing | Kept::Unreadable => None,
        }
    }

    /// The text of what can be read before the answer, by its name: as it was hashed, to be shown and not to be obeyed.
    pub fn texts(&self) -> Vec<(String, Vec<u8>)> {
        let told = |item: &Item| {
            let nested = self.nested.iter().flat_map(|nested| &nested.files);
            let file = self.instructions.iter().chain(nested).find(|file| file.path == self.real.join(&item.name))?;
            Some(file.text.clone().into_bytes())
        };
        let text = |item: &Item| match &item.content {
            Content::Text(bytes) => Some(bytes.clone()),
            Content::Hashed { .. } => told(item),
            Content::TooLarge { .. } | Content::Outside { .. } | Content::Closed { .. } => None,
        };
        self.items.iter().chain(&self.nested()).filter_map(|item| Some((item.name.clone(), text(item)?))).collect()
    }

    /// Where its git data says that it comes from; git is not asked.
    pub fn remote(&self) -> Option<String> {
        git::remote(&self.real)
    }

    /// What a yes would let in.
    pub fn brings(&self) -> impl Iterator<Item = &Item> {
        self.items.iter().filter(|item| item.counts())
    }

    pub fn instructions(&self, _proof: &Trusted) -> &[InstructionFile] {
        &self.instructions
    }

    /// The project's policy, where it has one: its path, and the very bytes that were hashed or why there are none.
    pub fn policy(&self) -> Option<(PathBuf, Result<&[u8], String>)> {
        let item = self.items.iter().find(|item| item.kind == Kind::Policy)?;
        let bytes = match &item.content {
            Content::Text(bytes) => Ok(bytes.as_slice()),
            Content::Hashed { .. } | Content::TooLarge { .. } | Content::Outside { .. } | Content::Closed { .. } => {
                Err(item.summary())
            }
        };
        Some((self.real.join(&item.name), bytes))
    }

    /// The files of one kind that can be read, with the very bytes that were hashed.
    pub fn texts_of(&self, kind: Kind, _proof: &Trusted) -> Vec<(PathBuf, &[u8])> {
        let items = self.items.iter().filter(|item| item.kind == kind);
        items.filter_map(|item| Some((self.real.join(&item.name), item.text()?))).collect()
    }

    pub fn root(&self) -> &Path {
        &self.real
    }

    /// What a person said yes to when they were asked, by name and hash; nothing where they never were.
    pub fn kept(&self, config_dir: &Path) -> BTreeMap<String, String> {
        self.note_about_it(config_dir).map_or_else(BTreeMap::new, |note| note.files)
    }

    /// The instruction files below it that were trusted, by name and hash.
    pub fn kept_nested(&self, config_dir: &Path) -> BTreeMap<String, String> {
        self.note_about_it(config_dir).map_or_else(BTreeMap::new, |note| note.nested)
    }

    /// Those that were found, in the same form.
    pub fn now_nested(&self) -> BTreeMap<String, String> {
        let files = self.nested.iter().flat_map(|nested| &nested.files);
        files.map(|file| (relative(&self.real, &file.path), file.digest())).collect()
    }

    /// What is there now, in the same form.
    pub fn now(&self) -> BTreeMap<String, String> {
        self.note().files
    }

    /// Whether the policy that stands there is the one that was looked at; nothing else is read for that.
    pub fn still_has_its_policy(&self) -> bool {
        let kept = self.items.iter().find(|item| item.kind == Kind::Policy);
        contents::policy(&self.real).map(|item| item.fingerprint()) == kept.map(Item::fingerprint)
    }

    pub fn standing(&self, config_dir: &Path) -> Standing {
        match record::read(&self.note_path(config_dir)) {
            Kept::Nothing => Standing::NeverAsked,
            Kept::Note(kept) => {
                let now = self.note();
                if kept.is_same(&now) { Standing::Trusted(Trusted(())) } else { Standing::Changed(kept.differences(&now)) }
            }
            // A yes to something that nobody knows.
            Kept::Unreadable => Standing::Changed(Vec::new()),
        }
    }

    /// Keeps the person's yes to exactly this.
    pub fn record(&self, config_dir: &Path) -> Result<Trusted, ConfigError> {
        let path = self.note_path(config_dir);
        let nested = if self.nested.is_some() { self.now_nested() } else { self.kept_nested(config_dir) };
        let kept = Note { nested, ..self.note() }.keep(&path).map_err(|error| {
            ConfigError::one(format!(
                "cannot save your decision to trust this project in `{}`: {error}; make its \
                directory writable",
                path.display()
            ))
        });
        kept.map(|()| Trusted(()))
    }

    fn note(&self) -> Note {
        Note {
            directory: self.real.to_string_lossy().into_owned(),
            inode: inode(&self.real),
            repository: git::repository(&self.real),
            files: self.items.iter().map(|item| (item.name.clone(), item.fingerprint())).collect(),
            nested: BTreeMap::new(),
        }
    }

    fn note_path(&self, config_dir: &Path) -> PathBuf {
        config_dir.join("projects").join(directory_name(&self.real)).join("trust.toml")
    }
}

/// `<name>-<hash of the real path>`: the person's files for one project are kept in a directory of this name.
pub fn directory_name(real: &Path) -> String {
    let plain = |letter: char| if letter.is_ascii_alphanumeric() || "-_.".contains(letter) { letter } else { '-' };
    let name: String = real.file_name().unwrap_or_default().to_string_lossy().chars().take(40).map(plain).collect();
    let hash = blake3::hash(real.as_os_str().as_encoded_bytes()).to_hex();
    format!("{}-{}", if name.is_empty() { "root" } else { &name }, hash.get(..16).unwrap_or_default())
}

#[cfg(unix)]
fn inode(path: &Path) -> String {
    use std::os::unix::fs::MetadataExt;
    path.metadata().map(|metadata| format!("{}:{}", metadata.dev(), metadata.ino())).unwrap_or_default()
}

#[cfg(not(unix))]
fn inode(_path: &Path) -> String {
    String::new()
}
