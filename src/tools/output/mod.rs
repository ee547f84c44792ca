//! Long tool output: stored completely in an artifact, and shortened in the conversation with a reference to it.

mod command_output;
mod image;
mod spool;

pub(in crate::tools) use command_output::{OutputCollector, OutputCollectors};
pub(in crate::tools) use image::{image_type, keep_image};
pub(in crate::tools) use spool::{ArtifactSpool, keep_text};

use super::call_result::CallResult;
use super::settings::ToolSettings;
use crate::ports::{ArtifactError, ArtifactUploads, Artifacts, NewArtifact, StoredArtifact};
use crate::protocol::{Artifact, ArtifactKind, Proposal, ToolResult, cut_position_before, size};
use std::io::{Read, Seek, SeekFrom};
use std::sync::Arc;

/// Size in bytes above which output is stored.
pub(in crate::tools) const KEPT_FROM_BYTES: usize = 10 * 1024;
/// Maximum number of bytes of an artifact shown to the user.
const MAX_SHOWN_BYTES: u64 = 1024 * 1024;
/// Maximum length of an artifact name in bytes.
const NAME_BYTES: usize = 80;

/// A stored artifact, or the reason why it is missing.
pub(in crate::tools) type Kept = Result<Artifact, String>;

/// Creates the description of a new artifact.
pub(in crate::tools) fn new(kind: ArtifactKind, name: &str, content_type: &str) -> NewArtifact {
    let line = name.lines().next().unwrap_or_default();
    let end = cut_position_before(line, NAME_BYTES);
    let more = if end < name.trim_end().len() { "…" } else { "" };
    NewArtifact { kind, name: format!("{}{more}", &line[..end]), content_type: content_type.to_owned() }
}

/// Returns a note for the model on how to read the stored `what` (`the whole stdout`).
pub(in crate::tools) fn reading_hint(what: &str, kept: &Kept) -> String {
    match kept {
        Ok(Artifact { uri, bytes, .. }) => {
            format!("[{what} is {uri} ({}); read it with ReadFile (`offset`, `limit`) or search it with Grep]", size(*bytes))
        }
        Err(reason) => format!("[{what} could not be stored: {reason}]"),
    }
}

/// Adds stored artifacts and the `lines` about them to an output.
pub(in crate::tools) fn with_kept(told: CallResult, kept: Vec<Kept>, lines: &[String]) -> CallResult {
    let after = |text: String| lines.iter().fold(text, |text, line| format!("{text}\n{line}"));
    let kept = kept.into_iter().filter_map(Result::ok);
    match told {
        Ok(mut told) => {
            told.artifacts.extend(kept);
            told.text = after(told.text);
            Ok(told)
        }
        Err(mut failed) => {
            failed.artifacts.extend(kept);
            failed.printed = after(failed.printed);
            Err(failed)
        }
    }
}

/// Returns an artifact for the user. Of a long one, returns only its start and end.
pub(in crate::tools) fn preview_for_user(artifacts: &dyn Artifacts, uri: &str) -> Result<(Artifact, String), ArtifactError> {
    let StoredArtifact { artifact, path } = artifacts.find(uri)?;
    if artifact.kind == ArtifactKind::Image {
        return Err(ArtifactError { message: format!("{uri} is an image, stored at `{}`", path.display()) });
    }
    if artifact.kind == ArtifactKind::File && !reads_as_text(&artifact.content_type) {
        let kind = &artifact.content_type;
        return Err(ArtifactError { message: format!("{uri} is not text ({kind}); it is stored at `{}`", path.display()) });
    }
    let read = || -> std::io::Result<String> {
        let mut file = crate::sys::path::open_file(&path)?;
        if artifact.bytes <= MAX_SHOWN_BYTES {
            let mut bytes = Vec::new();
            file.take(MAX_SHOWN_BYTES).read_to_end(&mut bytes)?;
            return Ok(String::from_utf8_lossy(&bytes).into_owned());
        }
        let mut part = |from: u64| -> std::io::Result<String> {
            file.seek(SeekFrom::Start(from))?;
            let mut bytes = Vec::new();
            file.by_ref().take(MAX_SHOWN_BYTES / 2).read_to_end(&mut bytes)?;
            Ok(String::from_utf8_lossy(&bytes).into_owned())
        };
        let (start, end) = (part(0)?, part(artifact.bytes - MAX_SHOWN_BYTES / 2)?);
        let cut = artifact.bytes - MAX_SHOWN_BYTES;
        Ok(format!("{start}\n[... {cut} bytes not shown; everything is stored at {} ...]\n{end}", path.display()))
    };
    let text = read().map_err(|error| ArtifactError { message: format!("cannot read {uri}: {error}") })?;
    Ok((artifact, text))
}

fn reads_as_text(content_type: &str) -> bool {
    content_type.starts_with("text/") || ["json", "xml", "yaml", "toml"].iter().any(|word| content_type.ends_with(word))
}

pub(in crate::tools) fn uris(artifacts: &[Artifact]) -> Vec<String> {
    artifacts.iter().map(|artifact| artifact.uri.clone()).collect()
}

/// Uploads the artifacts of a result, and adds the URLs of their copies.
pub(in crate::tools) async fn with_uploads(mut result: ToolResult, uploads: Option<Arc<dyn ArtifactUploads>>) -> ToolResult {
    if let Some(uploads) = uploads
        && !result.artifact_uris.is_empty()
    {
        let copies = uploads.upload(result.artifact_uris.clone()).await;
        result.artifact_uris.extend(copies);
    }
    result
}

/// Stores the diff of a call if it is long: the proposed diff, or the detected changes of a command.
pub(in crate::tools) fn keep_diff(result: &mut ToolResult, proposal: Option<&Proposal>, settings: &ToolSettings) {
    for proposal in proposal.into_iter().chain(result.changed.clone().as_deref()) {
        let new = new(ArtifactKind::FileDiff, &format!("diff of {}", proposal.summary), "text/x-diff");
        match keep_text(settings, new, &proposal.diff.to_string()) {
            Some(Ok(artifact)) => result.artifact_uris.push(artifact.uri),
            Some(Err(reason)) => tracing::warn!(reason, "cannot store a diff"),
            None => {}
        }
    }
}
