//! Names of objects below the prefix of the store. Every part is validated, so that a name cannot leave its folder.

use crate::protocol::SessionId;

/// Folder of the heads.
pub(super) const HEADS: &str = "heads";
/// All folders.
pub(super) const FOLDERS: &[&str] = &[HEADS, "histories", "artifacts"];
/// Extension of a head.
const HEAD: &str = ".json";
const DIGEST_DIGITS: usize = 64;

/// Returns the name of a head.
pub(super) fn head(id: &SessionId) -> String {
    format!("{HEADS}/{id}{HEAD}")
}

/// Returns the session of a head, given the last part of its name.
pub(super) fn session_of(file_name: &str) -> Option<SessionId> {
    let id = file_name.strip_suffix(HEAD)?;
    crate::transfer::import::is_an_id(id).then(|| SessionId::new(id.to_ascii_lowercase()))
}

/// Returns the folder with the histories of a session.
pub(super) fn histories(id: &SessionId) -> String {
    format!("histories/{id}")
}

/// Returns the name of a history.
pub(super) fn history(id: &SessionId, digest: &str) -> String {
    format!("{}/{digest}.json", histories(id))
}

/// Returns the name of an artifact.
pub(super) fn artifact(digest: &str) -> String {
    format!("artifacts/{}/{digest}", digest.get(..2).unwrap_or_default())
}

/// Returns whether the text is a BLAKE3 digest: 64 lower-case hexadecimal digits.
pub(super) fn is_digest(text: &str) -> bool {
    text.len() == DIGEST_DIGITS && text.bytes().all(|byte| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte))
}
