//! Names of objects below the store's prefix. Every component is validated so that no name can lead outside its folder.

use crate::protocol::SessionId;

/// Folder that contains the heads.
pub(super) const HEADS: &str = "heads";
/// All folders.
pub(super) const FOLDERS: &[&str] = &[HEADS, "histories", "artifacts"];
/// File extension of a head.
const HEAD: &str = ".json";
const DIGEST_DIGITS: usize = 64;

/// Returns the name of a session's head object.
pub(super) fn head(id: &SessionId) -> String {
    format!("{HEADS}/{id}{HEAD}")
}

/// Returns the session to which a head with this file name belongs, or `None` if the name is invalid.
pub(super) fn session_of(file_name: &str) -> Option<SessionId> {
    let id = file_name.strip_suffix(HEAD)?;
    crate::transfer::import::is_an_id(id).then(|| SessionId::new(id.to_ascii_lowercase()))
}

/// Returns the folder that contains a session's histories.
pub(super) fn histories(id: &SessionId) -> String {
    format!("histories/{id}")
}

/// Returns the name of the history object with this digest.
pub(super) fn history(id: &SessionId, digest: &str) -> String {
    format!("{}/{digest}.json", histories(id))
}

/// Returns the name of the artifact object with this digest.
pub(super) fn artifact(digest: &str) -> String {
    format!("artifacts/{}/{digest}", digest.get(..2).unwrap_or_default())
}

/// Returns whether the text is a BLAKE3 digest, written as 64 lower-case hexadecimal digits.
pub(super) fn is_digest(text: &str) -> bool {
    text.len() == DIGEST_DIGITS && text.bytes().all(|byte| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte))
}
