//! Checks that the directory of a view belongs to the current user.

use nix::unistd::geteuid;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

/// Checks that a path is a directory that only the current user can access. In any other directory, another user could
/// have forged the records, which contain the paths of files that aye reads.
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
