//! Commit journal: the planned steps, stored on disk before the first one is performed.

use super::discard::remove_tree;
use super::outcome::CommitOutcome;
use super::plan::Step;
use super::staging::sync_names;
use crate::sys::file::lock;
use crate::sys::path::{open_below, open_directory};
use nix::errno::Errno;
use nix::fcntl::{OFlag, openat, renameat};
use nix::sys::stat::Mode;
use nix::unistd::{UnlinkatFlags, unlinkat};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use std::fs::File;
use std::io::{self, BufReader, BufWriter, Write};
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};

pub(super) const VERSION: u32 = 1;
/// File that lists the staging directories, where files are prepared before the commit starts.
pub(super) const STAGES: &str = "commit.stages.json";
/// File that contains the steps. While it exists, the commit has started and may be incomplete.
pub(super) const BEGUN: &str = "commit.json";
/// File that contains the steps once all of them have been completed.
pub(super) const OVER: &str = "commit.over.json";
/// File that contains the outcome if some steps could not be completed.
pub(super) const DONE: &str = "commit.done.json";
const LOCK: &str = "commit.lock";

#[derive(Debug, Serialize, Deserialize)]
pub(super) struct CommitJournal {
    pub version: u32,
    pub roots: Vec<JournalRoot>,
}

impl CommitJournal {
    /// Returns the steps of all directories.
    pub(super) fn steps(&self) -> impl Iterator<Item = &Step> {
        self.roots.iter().flat_map(|root| &root.steps)
    }
}

#[derive(Debug, Serialize, Deserialize)]
pub(super) struct JournalRoot {
    #[serde(with = "super::name")]
    pub directory: PathBuf,
    pub inode: u64,
    #[serde(with = "super::name")]
    pub upper: PathBuf,
    #[serde(with = "super::name")]
    pub stage: PathBuf,
    /// Whether files are staged in the real directory because the view is on another file system.
    pub in_directory: bool,
    pub steps: Vec<Step>,
}

#[derive(Serialize, Deserialize)]
pub(super) struct Stage(#[serde(with = "super::name")] pub PathBuf);

/// Returns whether a commit was started from this directory. If so, the commit must be recovered before the directory
/// is deleted.
pub(crate) fn has_begun(preview: &Path) -> bool {
    [BEGUN, OVER].iter().any(|name| preview.join(name).symlink_metadata().is_ok())
}

/// Locks the directory, so only one commit runs at a time.
pub(super) fn lock_directory(preview: &Path) -> io::Result<File> {
    lock(&preview.join(LOCK))
}

pub(super) fn note_stages(base: &OwnedFd, journal: &CommitJournal) -> io::Result<()> {
    let stages: Vec<Stage> = journal.roots.iter().map(|root| Stage(root.stage.clone())).collect();
    write(base, STAGES, &stages)
}

pub(super) fn begin(base: &OwnedFd, journal: &CommitJournal) -> io::Result<()> {
    write(base, BEGUN, journal)
}

/// Ends a commit once all steps are done or the remaining ones are permanently blocked. This works even if the disk is
/// full.
pub(super) fn finish(base: &OwnedFd, journal: &CommitJournal, outcome: &CommitOutcome) -> io::Result<()> {
    if outcome.is_whole() {
        renameat(base, BEGUN, base, OVER)?;
        sync_names(base)?;
    } else {
        write(base, DONE, outcome)?;
    }
    clear_stages(journal);
    Ok(())
}

/// Deletes the plan of a commit that was never started.
pub(super) fn forget(base: &OwnedFd) {
    let _ = unlinkat(base, STAGES, UnlinkatFlags::NoRemoveDir);
}

pub(super) fn clear_stages(journal: &CommitJournal) {
    journal.roots.iter().for_each(|root| remove_stage(&root.stage));
}

/// Removes a staging directory, provided that its name has the form that aye generates.
pub(super) fn remove_stage(path: &Path) {
    let Some(name) = path.file_name().filter(|name| {
        let name = name.as_encoded_bytes();
        name.starts_with(b".aye-") || name.starts_with(b"stage-")
    }) else {
        return;
    };
    let Some(Ok(parent)) = path.parent().map(open_directory) else { return };
    let _ = remove_tree(&parent, name);
}

fn write<T: Serialize>(base: &OwnedFd, name: &str, value: &T) -> io::Result<()> {
    let new = format!("{name}.new");
    let flags = OFlag::O_WRONLY | OFlag::O_CREAT | OFlag::O_TRUNC | OFlag::O_NOFOLLOW | OFlag::O_CLOEXEC;
    let file = File::from(openat(base, new.as_str(), flags, Mode::S_IRUSR | Mode::S_IWUSR)?);
    let mut writer = BufWriter::new(file);
    serde_json::to_writer(&mut writer, value)?;
    writer.flush()?;
    writer.get_ref().sync_all()?;
    renameat(base, new.as_str(), base, name)?;
    sync_names(base)
}

pub(super) fn read<T: DeserializeOwned>(base: &OwnedFd, name: &str) -> io::Result<Option<T>> {
    match open_below(base, Path::new(name), OFlag::O_RDONLY | OFlag::O_NONBLOCK) {
        Ok(file) => Ok(Some(serde_json::from_reader(BufReader::new(File::from(file)))?)),
        Err(Errno::ENOENT) => Ok(None),
        Err(errno) => Err(errno.into()),
    }
}
