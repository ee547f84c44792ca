//! Disk quota for layers. A command must neither fill the disk nor write more to its layers than the policy allows.

use super::{Confinement, View};
use nix::dir::{Dir, Type};
use nix::fcntl::{AtFlags, OFlag};
use nix::sys::stat::{Mode, fstatat};
use nix::sys::statvfs::fstatvfs;
use std::fs::File;
use std::io;
use std::os::fd::AsFd;
use std::time::{Duration, Instant};

/// Interval between checks while a command runs.
pub(in crate::sys) const LOOK_EVERY: Duration = Duration::from_millis(250);
/// Space in bytes that must remain free on a disk, unless `KEPT_FREE_SHARE` results in less.
const KEPT_FREE_BYTES: u64 = 256 * 1024 * 1024;
/// Divisor for the fraction of a disk that must remain free.
const KEPT_FREE_SHARE: u64 = 20;
/// Minimum pause after each measurement, as a multiple of the time that it took.
const REST: u32 = 10;
const BLOCK_BYTES: u64 = 512;

/// A command's layer directories with their quota.
#[derive(Default)]
pub(in crate::sys) struct LayerDirectories {
    layers: Vec<File>,
    quota: Option<Quota>,
}

/// Limit on the total size of the data that a command writes to its layers.
struct Quota {
    max_bytes: u64,
    /// Reason to report if the limit is exceeded.
    excess: Excess,
    next: Instant,
}

/// Why a command must not write any more data.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::sys) enum Excess {
    /// The disk is nearly full.
    Disk,
    /// The layers exceed their limit.
    Layer,
}

impl LayerDirectories {
    /// Creates the quota for a command's layers. Only new layers, which will be either discarded or applied, are
    /// limited.
    pub(super) fn new(layers: Vec<File>, confinement: &Confinement) -> io::Result<Self> {
        let limit = match confinement.view {
            View::CopyOnWrite(_) => confinement.limits.layer_bytes,
            View::ReadOnly | View::Real => None,
        };
        let Some(limit) = limit else { return Ok(Self { layers, quota: None }) };
        let mut left = u64::MAX;
        for layer in &layers {
            let (all, free) = space(layer)?;
            left = left.min(free.saturating_sub(all / KEPT_FREE_SHARE));
        }
        let (max_bytes, excess) = if left < limit { (left, Excess::Disk) } else { (limit, Excess::Layer) };
        Ok(Self { layers, quota: Some(Quota { max_bytes, excess, next: Instant::now() }) })
    }

    pub(in crate::sys) fn is_watched(&self) -> bool {
        !self.layers.is_empty()
    }

    /// Returns the reason why the command must not write any more data, if there is one: either a disk has too little
    /// free space left, or the layers exceed their limit.
    pub(in crate::sys) fn excess(&mut self) -> io::Result<Option<Excess>> {
        for layer in &self.layers {
            let (all, free) = space(layer)?;
            if is_too_little(all, free) {
                return Ok(Some(Excess::Disk));
            }
        }
        let begun = Instant::now();
        let Some(quota) = self.quota.as_mut().filter(|quota| begun >= quota.next) else { return Ok(None) };
        let mut written = 0;
        for layer in &self.layers {
            add_written(layer, &mut written);
        }
        let ended = Instant::now();
        quota.next = ended + (ended - begun).saturating_mul(REST);
        Ok((written > quota.max_bytes).then_some(quota.excess))
    }
}

/// Returns the total size of the disk and its free space, in bytes.
fn space(layer: &File) -> io::Result<(u64, u64)> {
    let disk = fstatvfs(layer)?;
    let block = disk.fragment_size();
    Ok((disk.blocks() * block, disk.blocks_available() * block))
}

pub(super) fn is_too_little(all: u64, free: u64) -> bool {
    free < KEPT_FREE_BYTES.min(all / KEPT_FREE_SHARE)
}

/// Adds the size in bytes of every file below a directory to `written`. Does not follow symlinks, and skips entries
/// that the command is just removing.
fn add_written(directory: &impl AsFd, written: &mut u64) {
    let flags = OFlag::O_RDONLY | OFlag::O_DIRECTORY | OFlag::O_NOFOLLOW | OFlag::O_CLOEXEC;
    let Ok(opened) = nix::fcntl::openat(directory, ".", flags, Mode::empty()) else { return };
    let Ok(at) = opened.try_clone() else { return };
    let Ok(entries) = Dir::from_fd(opened) else { return };
    for entry in entries.into_iter().flatten() {
        let name = entry.file_name();
        if matches!(name.to_bytes(), b"." | b"..") {
            continue;
        }
        if matches!(entry.file_type(), Some(Type::File) | None)
            && let Ok(data) = fstatat(&at, name, AtFlags::AT_SYMLINK_NOFOLLOW)
        {
            *written += u64::try_from(data.st_blocks).unwrap_or(0) * BLOCK_BYTES;
        }
        if matches!(entry.file_type(), Some(Type::Directory) | None)
            && let Ok(below) = nix::fcntl::openat(&at, name, flags, Mode::empty())
        {
            add_written(&below, written);
        }
    }
}
