//! Conversion of file URIs from servers to paths.

use std::os::unix::ffi::OsStringExt;
use std::path::PathBuf;

/// Converts a file URI, however it is written, to a path. Returns `None` if it does not refer to a local file.
pub(super) fn to_path(uri: &str) -> Option<PathBuf> {
    let rest = uri.strip_prefix("file://")?;
    let path = rest.strip_prefix("localhost").unwrap_or(rest);
    if !path.starts_with('/') {
        return None;
    }
    let mut bytes = Vec::with_capacity(path.len());
    let mut left = path.as_bytes();
    while let Some((first, rest)) = left.split_first() {
        left = rest;
        if *first != b'%' {
            bytes.push(*first);
            continue;
        }
        let digits = std::str::from_utf8(rest.get(..2)?).ok()?;
        bytes.push(u8::from_str_radix(digits, 16).ok()?);
        left = &rest[2..];
    }
    Some(PathBuf::from(std::ffi::OsString::from_vec(bytes)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::text::file_uri;
    use std::path::Path;

    #[test]
    fn paths_round_trip_through_uris_in_any_spelling() {
        let path = Path::new("/home/me/a b/größe%+@.rs");
        assert_eq!(to_path(&file_uri(path)).as_deref(), Some(path));
        assert_eq!(to_path("file://localhost/a/%C3%A4%2b+").as_deref(), Some(Path::new("/a/ä++")));
        for uri in ["/a", "http://h/a", "file://server/a", "file:///a%", "file:///a%zz", "untitled:1"] {
            assert_eq!(to_path(uri), None, "{uri}");
        }
    }
}
