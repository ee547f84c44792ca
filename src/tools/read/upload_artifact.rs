//! The `UploadArtifact` tool, which stores the current content of a file for the user.

use crate::ports::{ARTIFACT_BYTES, ArtifactError, Artifacts, BoxFuture, RunContext};
use crate::protocol::{Action, Artifact, ArtifactKind, ErrorCode, Place, Target, ToolError, size};
use crate::sys::path::open_file;
use crate::tools::alias::Alias;
use crate::tools::call_result::{CallResult, ToolFailure, ToolOutput, blocking};
use crate::tools::document::content::{Document, NotText};
use crate::tools::draft::{CallDraft, CallEffect};
use crate::tools::error::invalid;
use crate::tools::output::{image_type, new};
use crate::tools::paths::{ExpectedKind, Paths, not_found_error, open_error, special_file_error};
use crate::tools::settings::ToolSettings;
use crate::tools::tool::Tool;
use encoding_rs::UTF_8;
use schemars::JsonSchema;
use serde::Deserialize;
use std::borrow::Cow;
use std::io::Read;
use std::sync::Arc;
use tokio_util::sync::CancellationToken;

/// Number of bytes to write between two cancellation checks.
const PIECE_BYTES: usize = 4 << 20;
const MAX_TYPE_BYTES: usize = 100;
/// Media types of text files by extension.
const TYPES: &[(&str, &str)] = &[
    ("csv", "text/csv"),
    ("diff", "text/x-diff"),
    ("htm", "text/html"),
    ("html", "text/html"),
    ("json", "application/json"),
    ("md", "text/markdown"),
    ("patch", "text/x-diff"),
    ("pdf", "application/pdf"),
    ("svg", "image/svg+xml"),
    ("xml", "application/xml"),
    ("zip", "application/zip"),
];

pub(in crate::tools) struct UploadArtifact;

#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(in crate::tools) struct Arguments {
    path: String,
    /// The file name by default.
    name: Option<String>,
    /// For example `text/markdown`; detected by default.
    content_type: Option<String>,
}

pub(in crate::tools) struct Work {
    target: Target,
    name: String,
    content_type: Option<String>,
}

impl Tool for UploadArtifact {
    const NAME: &'static str = "UploadArtifact";
    const ALIASES: &'static [Alias<Arguments>] =
        &[Alias::with_same_arguments("upload_artifact"), Alias::with_same_arguments("create_artifact")];
    const CAPABILITY: &'static str = "Workspace.Upload";
    const DESCRIPTION: &'static str = include_str!("../../../assets/tools/UploadArtifact.md");
    type Arguments = Arguments;
    type Work = Work;

    fn actions(arguments: &Arguments, paths: &Paths<'_>) -> Result<Vec<Action>, ToolError> {
        Ok(vec![Action::Upload { target: paths.target("path", &arguments.path, ExpectedKind::File)? }])
    }

    fn draft(arguments: Arguments, settings: &ToolSettings) -> Result<CallDraft<Work>, ToolError> {
        let Arguments { path, name, content_type } = arguments;
        let target = Paths::on_disk(settings).target("path", &path, ExpectedKind::File)?;
        if let Some(given) = content_type.as_deref().filter(|given| !is_media_type(given)) {
            return Err(invalid(format!("`contentType` is `{given}`, expected a media type such as `text/markdown`")));
        }
        let of_file = || target.real.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let name = name.filter(|name| !name.trim().is_empty()).unwrap_or_else(of_file);
        Ok(CallDraft {
            summary: format!("Upload {} as an artifact", target.given),
            actions: vec![Action::Upload { target: target.clone() }],
            proposal: None,
            effect: CallEffect::Reads,
            work: Work { target, name, content_type },
        })
    }

    fn run(work: Work, settings: Arc<ToolSettings>, context: RunContext) -> BoxFuture<'static, CallResult> {
        blocking(move || upload(&work, &settings, &context.kill))
    }
}

fn upload(work: &Work, settings: &ToolSettings, kill: &CancellationToken) -> Result<ToolOutput, ToolFailure> {
    let Some(artifacts) = &settings.session.artifacts else {
        let message = "this session has no artifact store; tell the user where the file is instead";
        return Err(ToolError::new(ErrorCode::ToolExecutionFailed, message).into());
    };
    let bytes = read(&work.target, settings)?;
    let (shown, hidden, is_text) = without_secrets(&bytes, settings);
    let image = image_type(&bytes);
    let content_type = work.content_type.as_deref().or(image).unwrap_or_else(|| media_type(&work.target, is_text));
    let kind = if image.is_some() { ArtifactKind::Image } else { ArtifactKind::File };
    let name = settings.redactor.hide(&work.name).into_owned();
    let name: String = name.chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
    let kept = keep(artifacts.as_ref(), kind, name.trim(), content_type, &shown, kill)?;
    let kept = kept.map_err(|error| {
        let message = format!("`{}` could not be uploaded: {}; the file is unchanged", work.target.given, error.message);
        ToolError::new(ErrorCode::ToolExecutionFailed, message)
    })?;
    let without = if hidden { "; secrets in it are redacted" } else { "" };
    let text = format!(
        "{} is stored as {} ({}, {}){without}; the user sees it in the list of artifacts",
        work.target.given,
        kept.uri,
        kept.content_type,
        size(kept.bytes)
    );
    Ok(ToolOutput { text, artifacts: vec![kept], ..ToolOutput::default() })
}

fn read(target: &Target, settings: &ToolSettings) -> Result<Vec<u8>, ToolError> {
    match target.place {
        Place::Missing => return Err(not_found_error(target, settings)),
        Place::Directory => {
            return Err(invalid(format!("`{}` is a directory, not a file; pack it into an archive first", target.given)));
        }
        Place::Special => return Err(special_file_error(target)),
        Place::File { .. } => {}
    }
    let mut bytes = Vec::new();
    let file = open_file(&target.real).map_err(|error| open_error(target, &error))?;
    file.take(ARTIFACT_BYTES + 1).read_to_end(&mut bytes).map_err(|error| open_error(target, &error))?;
    if bytes.len() as u64 > ARTIFACT_BYTES {
        let message = format!("`{}` is larger than {}; upload part of it", target.given, size(ARTIFACT_BYTES));
        return Err(ToolError::new(ErrorCode::FileTooLarge, message));
    }
    Ok(bytes)
}

/// Redacts the content. Returns the result with two flags: whether anything was redacted, and whether the content is
/// text. Content that contains no secrets is returned unchanged.
fn without_secrets<'a>(bytes: &'a [u8], settings: &ToolSettings) -> (Cow<'a, [u8]>, bool, bool) {
    let text = match Document::decode(bytes) {
        Ok(document) => document.text,
        Err(NotText::Malformed) => UTF_8.decode(bytes).0.into_owned(),
        Err(NotText::Binary) => return (Cow::Borrowed(bytes), false, false),
    };
    if settings.redactor.holds_secret(&text) {
        (Cow::Owned(settings.redactor.hide(&text).into_owned().into_bytes()), true, true)
    } else {
        (Cow::Borrowed(bytes), false, true)
    }
}

fn keep(
    artifacts: &dyn Artifacts,
    kind: ArtifactKind,
    name: &str,
    content_type: &str,
    bytes: &[u8],
    kill: &CancellationToken,
) -> Result<Result<Artifact, ArtifactError>, ToolError> {
    let mut writer = match artifacts.begin(new(kind, name, content_type)) {
        Ok(writer) => writer,
        Err(error) => return Ok(Err(error)),
    };
    for piece in bytes.chunks(PIECE_BYTES) {
        if kill.is_cancelled() {
            return Err(ToolError::new(ErrorCode::Cancelled, "stopped before the whole file was stored; nothing was stored"));
        }
        if let Err(error) = writer.write(piece) {
            return Ok(Err(error));
        }
    }
    Ok(writer.finish())
}

fn media_type(target: &Target, is_text: bool) -> &'static str {
    let ending = target.real.extension().and_then(|ending| ending.to_str()).unwrap_or_default().to_ascii_lowercase();
    let known = TYPES.iter().find(|(known, _)| *known == ending).map(|(_, named)| *named);
    known.unwrap_or(if is_text { "text/plain" } else { "application/octet-stream" })
}

fn is_media_type(given: &str) -> bool {
    let word =
        |word: &str| !word.is_empty() && word.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"!#$&^_.+-".contains(&byte));
    given.len() <= MAX_TYPE_BYTES && given.split_once('/').is_some_and(|(kind, of)| word(kind) && word(of))
}
