//! Long tool output, which is stored in full as an artifact and shortened in the conversation, with a reference to the
//! artifact.

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
/// Maximum number of bytes of an artifact to show to the user.
const MAX_SHOWN_BYTES: u64 = 1024 * 1024;
/// Maximum length of an artifact's name in bytes.
const NAME_BYTES: usize = 80;

/// A stored artifact, or the reason why it could not be stored.
pub(in crate::tools) type Kept = Result<Artifact, String>;

/// Describes an artifact that is about to be stored.
pub(in crate::tools) fn new(kind: ArtifactKind, name: &str, content_type: &str) -> NewArtifact {
    let line = name.lines().next().unwrap_or_default();
    let end = cut_position_before(line, NAME_BYTES);
    let more = if end < name.trim_end().len() { "…" } else { "" };
    NewArtifact { kind, name: format!("{}{more}", &line[..end]), content_type: content_type.to_owned() }
}

/// Returns a note that tells the model how to read `what` (for example `the whole stdout`), which has been stored.
pub(in crate::tools) fn reading_hint(what: &str, kept: &Kept) -> String {
    match kept {
        Ok(Artifact { uri, bytes, .. }) => {
            format!("[{what} is {uri} ({}); read it with ReadFile (`offset`, `limit`) or search it with Grep]", size(*bytes))
        }
        Err(reason) => format!("[{what} could not be stored: {reason}]"),
    }
}

/// Adds stored artifacts, and the `lines` that describe them, to an output.
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

/// Returns an artifact and its text for display to the user. Long text is shortened to its start and end.
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

/// Uploads a result's artifacts and adds the URLs of the copies.
pub(in crate::tools) async fn with_uploads(mut result: ToolResult, uploads: Option<Arc<dyn ArtifactUploads>>) -> ToolResult {
    if let Some(uploads) = uploads
        && !result.artifact_uris.is_empty()
    {
        let copies = uploads.upload(result.artifact_uris.clone()).await;
        result.artifact_uris.extend(copies);
    }
    result
}

/// Stores a call's diff if it is long. The diff is either the proposed one or the detected changes of a command.
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
