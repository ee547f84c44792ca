//! Check that the directory of a view belongs to this user.

use nix::unistd::geteuid;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

/// Checks that a path is a directory that only this user can use. Another user may have written the records in any other
/// directory, and they name the files that are read.
///
/// # Errors
/// Returns an error if the path is anything else.
pub(crate) fn check_private(path: &Path) -> io::Result<()> {
    let metadata = path.symlink_metadata()?;
    if metadata.is_dir() && metadata.uid() == geteuid().as_raw() && metadata.mode().trailing_zeros() >= 6 {
        return Ok(());
    }
    Err(io::Error::new(io::ErrorKind::PermissionDenied, "not a private directory of this user"))
}
