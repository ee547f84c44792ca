//! Where the git data of a directory is, read from small files; git itself is never asked.

use super::contents::read_small;
use std::path::Path;

/// A pointer of git's is one line.
const POINTER_BYTES: u64 = 4096;

/// Empty where the git data is in the directory or there is none; else where it is said to be.
///
/// A `.git` file names a directory, whose `commondir` names another: either could be pointed at a place that
/// somebody trusts, so that both are a part of what a yes was said to.
pub fn repository(real: &Path) -> String {
    let git = real.join(".git");
    let pointer = match git.symlink_metadata() {
        Ok(metadata) if metadata.is_file() => line(&git),
        Ok(metadata) if metadata.is_symlink() => std::fs::read_link(&git).ok().map(|to| format!("link: {}", to.display())),
        Ok(_) => return line(&git.join("commondir")).map(|common| format!("commondir: {common}")).unwrap_or_default(),
        Err(_) => return String::new(),
    };
    let Some(pointer) = pointer else { return "unreadable".to_owned() };
    let place = pointer.strip_prefix("gitdir:").map(|place| real.join(place.trim()));
    let common = place.and_then(|place| line(&place.join("commondir")));
    common.map_or_else(|| pointer.clone(), |common| format!("{pointer}, commondir: {common}"))
}

fn line(path: &Path) -> Option<String> {
    let bytes = read_small(&path.canonicalize().ok()?, POINTER_BYTES).ok()??;
    Some(String::from_utf8_lossy(&bytes).trim_end().to_owned())
}
