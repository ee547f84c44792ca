//! Tool cache, which stores the last known tools of each server. It is kept between sessions, so a session can start
//! without querying its servers.

use super::limits::{DEFINITION_BYTES, TOOLS};
use super::tools::ToolListing;
use super::{Reach, Spec};
use crate::ports::RemoteTool;
use crate::sys::file::private::{self, PrivateError};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::path::{Path, PathBuf};

/// Maximum size of a cache file in bytes. This is the limit for a server's tools, with room for the JSON syntax.
const FILE_BYTES: u64 = 2 * DEFINITION_BYTES as u64;
const VERSION: u32 = 3;

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct CachedTools {
    version: u32,
    server: String,
    /// Whether the server's protocol version includes a handshake, in which case discovery is skipped.
    shakes_hands: bool,
    tools: Vec<KeptTool>,
    #[serde(default)]
    notes: Vec<String>,
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct KeptTool {
    name: String,
    title: Option<String>,
    description: String,
    input_schema: Value,
    output_schema: Option<Value>,
    says_read_only: bool,
    fingerprint: String,
}

/// Returns the path of a server's cache file. Servers with different commands, URLs or directories have different
/// files, even if they have the same name.
fn file(directory: &Path, spec: &Spec) -> PathBuf {
    let reach = match &spec.reach {
        Reach::Program { argv, directory, .. } => format!("{argv:?} {directory:?}"),
        Reach::Http { url, .. } => url.clone(),
    };
    let name = blake3::hash(format!("{}\n{reach}", spec.name).as_bytes()).to_hex();
    directory.join(format!("{}.json", &name[..32]))
}

/// Reads the cached tools, and whether the server uses the handshake. Returns `None` if there is no usable cache file.
pub(super) fn recall(directory: &Path, spec: &Spec) -> Option<(ToolListing, bool)> {
    let kept = private::read(&file(directory, spec), FILE_BYTES).ok()??;
    let kept: CachedTools = serde_json::from_slice(&kept).ok()?;
    if kept.version != VERSION || kept.server != spec.name || kept.tools.len() > TOOLS {
        return None;
    }
    let of_server = |tool: KeptTool| RemoteTool {
        server: spec.name.clone(),
        name: tool.name,
        title: tool.title,
        description: tool.description,
        input_schema: tool.input_schema,
        output_schema: tool.output_schema,
        says_read_only: tool.says_read_only,
        fingerprint: tool.fingerprint,
    };
    Some((ToolListing { tools: kept.tools.into_iter().map(of_server).collect(), notes: kept.notes }, kept.shakes_hands))
}

/// Caches the tools for later sessions. If this fails, the next session queries the server instead.
pub(super) fn keep(directory: &Path, spec: &Spec, listed: &ToolListing, shakes_hands: bool) {
    let tool = |tool: &RemoteTool| KeptTool {
        name: tool.name.clone(),
        title: tool.title.clone(),
        description: tool.description.clone(),
        input_schema: tool.input_schema.clone(),
        output_schema: tool.output_schema.clone(),
        says_read_only: tool.says_read_only,
        fingerprint: tool.fingerprint.clone(),
    };
    let kept = CachedTools {
        version: VERSION,
        server: spec.name.clone(),
        shakes_hands,
        tools: listed.tools.iter().map(tool).collect(),
        notes: listed.notes.clone(),
    };
    let written = serde_json::to_vec(&kept).map_err(|error| PrivateError::Io(error.into())).and_then(|text| {
        // Replace an existing file even if it cannot be read.
        let path = file(directory, spec);
        if private::read(&path, FILE_BYTES).is_err() {
            let _ = std::fs::remove_file(&path);
        }
        private::update(&path, FILE_BYTES, |before| {
            Ok::<_, PrivateError>(Some(if before.as_ref() == Some(&text) { before.unwrap_or_default() } else { text }))
        })
    });
    if let Err(error) = written {
        tracing::warn!(server = %spec.name, %error, "cannot cache the tool list");
    }
}
