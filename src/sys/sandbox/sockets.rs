//! Sockets with a place in the file system: whoever may write there can talk to who listens, whatever namespaces hold them.

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::FileTypeExt;
use std::path::PathBuf;

/// Where something listens now, by real path. The names are those the sockets were bound by; a relative one is relative to
/// a directory nobody knows.
pub(super) fn served() -> Vec<PathBuf> {
    let table = std::fs::read("/proc/net/unix").unwrap_or_default();
    let named: BTreeSet<_> = table.split(|byte| *byte == b'\n').filter_map(path_of).collect();
    named.into_iter().filter_map(|path| std::fs::canonicalize(path).ok()).filter(is_socket).collect()
}

fn is_socket(path: &PathBuf) -> bool {
    std::fs::symlink_metadata(path).is_ok_and(|metadata| metadata.file_type().is_socket())
}

/// The eighth field is the rest of the line: an address may hold blanks.
fn path_of(line: &[u8]) -> Option<PathBuf> {
    let at = line.windows(2).position(|pair| pair == b" /")? + 1;
    Some(PathBuf::from(OsStr::from_bytes(&line[at..])))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_socket_is_named_by_the_rest_of_its_line() {
        let line = b"ffff8880: 00000002 00000000 00010000 0001 01 17406 /home/me/a socket";
        assert_eq!(path_of(line), Some(PathBuf::from("/home/me/a socket")));
        for other in
            ["Num       RefCount Protocol Flags    Type St Inode Path", "f: 3 0 0 1 3 17406", "f: 2 0 1 1 1 17406 @/tmp/abstract"]
        {
            assert_eq!(path_of(other.as_bytes()), None, "{other}");
        }
    }
}
