//! Whether a person said yes to what a project brings in.

use super::{ConfigError, InstructionFile, instructions};
use serde::{Deserialize, Serialize};
use std::io::Write;
use std::path::{Path, PathBuf};

/// A directory and what it would bring in.
pub struct Project {
    real: PathBuf,
    instructions: Vec<InstructionFile>,
}

/// What the person said about a project.
#[derive(Debug, PartialEq, Eq)]
pub enum Standing {
    Trusted(Trusted),
    /// They said yes once, to something else.
    Changed,
    NeverAsked,
}

/// Proof of a yes; opens what the project brings in.
#[derive(Debug, PartialEq, Eq)]
pub struct Trusted(());

impl Trusted {
    /// `--trust`: the person's yes for this run.
    pub fn for_this_run() -> Self {
        Self(())
    }
}

/// What is kept of a yes.
#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Note {
    directory: String,
    /// Another directory at the same path is another project.
    inode: String,
    content: String,
}

impl Project {
    /// Looks at a directory by its real path. What it says is kept closed until there is a yes.
    pub fn examine(real: &Path) -> Self {
        Self { real: real.to_owned(), instructions: instructions::of_project(real) }
    }

    /// What it would bring in, by name only, for the question.
    pub fn brings(&self) -> impl Iterator<Item = &Path> {
        self.instructions.iter().map(|file| file.path.as_path())
    }

    pub fn instructions(&self, _proof: &Trusted) -> &[InstructionFile] {
        &self.instructions
    }

    pub fn standing(&self, config_dir: &Path) -> Standing {
        let Ok(kept) = std::fs::read_to_string(self.note_path(config_dir)) else { return Standing::NeverAsked };
        match toml::from_str::<Note>(&kept) {
            Ok(kept) if kept == self.note() => Standing::Trusted(Trusted(())),
            Ok(_) | Err(_) => Standing::Changed,
        }
    }

    /// Keeps the person's yes to exactly this.
    pub fn record(&self, config_dir: &Path) -> Result<Trusted, ConfigError> {
        let path = self.note_path(config_dir);
        let kept = self.keep(&path).map_err(|error| {
            ConfigError::one(format!("cannot keep your yes in `{}`: {error}; make its directory writable", path.display()))
        });
        kept.map(|()| Trusted(()))
    }

    fn keep(&self, path: &Path) -> std::io::Result<()> {
        let directory = path.parent().unwrap_or(path);
        let mut builder = std::fs::DirBuilder::new();
        builder.recursive(true);
        #[cfg(unix)]
        std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
        builder.create(directory)?;
        let text = toml::to_string(&self.note()).map_err(std::io::Error::other)?;
        let mut file = tempfile::NamedTempFile::new_in(directory)?;
        file.write_all(text.as_bytes())?;
        file.as_file().sync_all()?;
        file.persist(path)?;
        Ok(())
    }

    fn note(&self) -> Note {
        Note { directory: self.real.to_string_lossy().into_owned(), inode: inode(&self.real), content: self.content() }
    }

    /// The hash of all that it brings in.
    fn content(&self) -> String {
        let mut hasher = blake3::Hasher::new();
        for file in &self.instructions {
            let path = file.path.as_os_str().as_encoded_bytes();
            for part in [path, file.text.as_bytes()] {
                hasher.update(&(part.len() as u64).to_le_bytes());
                hasher.update(part);
            }
        }
        hasher.finalize().to_hex().to_string()
    }

    fn note_path(&self, config_dir: &Path) -> PathBuf {
        config_dir.join("projects").join(directory_name(&self.real)).join("trust.toml")
    }
}

/// `<name>-<hash of the real path>`: the person's files for one project are kept in a directory of this name.
pub(super) fn directory_name(real: &Path) -> String {
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
