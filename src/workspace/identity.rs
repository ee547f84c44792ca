//! Workspace identity.

use crate::protocol::WorkspaceId;
use std::path::Path;

/// Returns a workspace ID derived from a hash of the canonical path.
pub(crate) fn workspace_id(real: &Path) -> WorkspaceId {
    let hash = blake3::hash(real.as_os_str().as_encoded_bytes()).to_hex();
    WorkspaceId::new(format!("ws_{}", &hash[..16]))
}
