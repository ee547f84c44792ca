//! Whether a person said yes to what a project brings in.

mod contents;
mod git;
mod note;
#[cfg(test)]
mod tests;

pub use contents::{Content, Item, Kind, programs_of};

use super::{ConfigError, InstructionFile, instructions};
use contents::collect;
use note::{Kept, Note};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// A directory and what it would bring in.
pub struct Project {
    real: PathBuf,
    items: Vec<Item>,
    instructions: Vec<InstructionFile>,
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
        Self { real: real.to_owned(), items: collect(real, &instructions), instructions: instructions.files }
    }

    /// What stands there to be brought in, for the question; also what is too large or leads elsewhere.
    pub fn items(&self) -> &[Item] {
        &self.items
    }

    /// The text of what can be read before the answer, by its name: as it was hashed, to be shown and not to be obeyed.
    pub fn texts(&self) -> Vec<(String, Vec<u8>)> {
        let told = |item: &Item| {
            let file = self.instructions.iter().find(|file| file.path == self.real.join(&item.name))?;
            Some(file.text.clone().into_bytes())
        };
        let text = |item: &Item| match &item.content {
            Content::Text(bytes) => Some(bytes.clone()),
            Content::Hashed { .. } => told(item),
            Content::TooLarge { .. } | Content::Outside { .. } | Content::Closed { .. } => None,
        };
        self.items.iter().filter_map(|item| Some((item.name.clone(), text(item)?))).collect()
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
        match note::read(&self.note_path(config_dir)) {
            Kept::Note(note) if note.directory == self.real.to_string_lossy() && note.inode == inode(&self.real) => note.files,
            Kept::Note(_) | Kept::Nothing | Kept::Unreadable => BTreeMap::new(),
        }
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
        match note::read(&self.note_path(config_dir)) {
            Kept::Nothing => Standing::NeverAsked,
            Kept::Note(kept) => {
                let now = self.note();
                if kept == now { Standing::Trusted(Trusted(())) } else { Standing::Changed(kept.differences(&now)) }
            }
            // A yes to something that nobody knows.
            Kept::Unreadable => Standing::Changed(Vec::new()),
        }
    }

    /// Keeps the person's yes to exactly this.
    pub fn record(&self, config_dir: &Path) -> Result<Trusted, ConfigError> {
        let path = self.note_path(config_dir);
        let kept = self.note().keep(&path).map_err(|error| {
            ConfigError::one(format!("cannot keep your yes in `{}`: {error}; make its directory writable", path.display()))
        });
        kept.map(|()| Trusted(()))
    }

    fn note(&self) -> Note {
        Note {
            directory: self.real.to_string_lossy().into_owned(),
            inode: inode(&self.real),
            repository: git::repository(&self.real),
            files: self.items.iter().map(|item| (item.name.clone(), item.fingerprint())).collect(),
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
