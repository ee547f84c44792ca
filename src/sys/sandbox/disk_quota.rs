//! Disk quota under a layer: a command must not fill the disk for everything else on this machine.

use nix::sys::statvfs::fstatvfs;
use std::fs::File;
use std::io;
use std::time::Duration;

/// Interval between checks while a command runs.
pub(in crate::sys) const LOOK_EVERY: Duration = Duration::from_millis(250);
/// Space that must stay free, in bytes, or a twentieth of the disk if that is less.
const KEPT_FREE_BYTES: u64 = 256 * 1024 * 1024;

/// Directories with the layers of a command.
#[derive(Default)]
pub(in crate::sys) struct Room(pub(super) Vec<File>);

impl Room {
    pub(in crate::sys) fn is_watched(&self) -> bool {
        !self.0.is_empty()
    }

    /// Returns whether a disk has less free space than required.
    pub(in crate::sys) fn is_short(&self) -> io::Result<bool> {
        for layer in &self.0 {
            let disk = fstatvfs(layer)?;
            let block = disk.fragment_size();
            let (all, free) = (disk.blocks() * block, disk.blocks_available() * block);
            if is_too_little(all, free) {
                return Ok(true);
            }
        }
        Ok(false)
    }
}

pub(super) fn is_too_little(all: u64, free: u64) -> bool {
    free < KEPT_FREE_BYTES.min(all / 20)
}
