//! Identity of a workspace.

use crate::protocol::WorkspaceId;
use std::path::Path;

/// Returns the ID of a workspace: a hash of its canonical path.
pub(crate) fn workspace_id(real: &Path) -> WorkspaceId {
    let hash = blake3::hash(real.as_os_str().as_encoded_bytes()).to_hex();
    WorkspaceId::new(format!("ws_{}", &hash[..16]))
}
