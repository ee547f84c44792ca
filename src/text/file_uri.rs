//! Conversion of paths to `file:` URIs.

use std::fmt::Write as _;
use std::path::Path;

/// Returns the `file:` URI of a path. All bytes except ASCII letters, digits, `/`, `-`, `.`, `_` and `~` are
/// percent-encoded.
pub(crate) fn file_uri(path: &Path) -> String {
    let mut uri = "file://".to_owned();
    for byte in path.as_os_str().as_encoded_bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'/' | b'-' | b'.' | b'_' | b'~' => uri.push(char::from(*byte)),
            other => {
                // Writing to a string cannot fail.
                let _ = write!(uri, "%{other:02X}");
            }
        }
    }
    uri
}
