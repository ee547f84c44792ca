//! Redaction markers, which replace secrets in tool output and are replaced with the secrets again when content is
//! written.

use super::document::content::Document;
use super::document::replacement::with_lf;
use super::error::invalid;
use super::settings::ToolSettings;
use crate::policy::redact::{RedactionCount, Redactor, Restorer, has_marker};
use crate::protocol::{FileDiffs, Proposal, Redaction, Target, ToolError, ToolResult};
use serde_json::{Map, Value};

/// Returns the restorer for the markers in a text file as it is shown, that is, with LF endings. Other files contain no
/// markers.
pub(super) fn restorer(before: Option<&Document>, settings: &ToolSettings) -> Restorer {
    before.map_or_else(Restorer::default, |before| settings.redactor.restorer(&with_lf(&before.text)))
}

/// Returns the text with every marker replaced by the secret that it stands for.
pub(super) fn restore_secrets(restorer: &Restorer, text: &str, argument: &str, target: &Target) -> Result<String, ToolError> {
    restorer.restore(text).map_err(|error| {
        invalid(format!(
            "{argument}: {error} (`{}`); nothing was written. A marker replaces a secret: edit around it, keep it unchanged in its \
             place, or ask the user to make this change",
            target.given
        ))
    })
}

/// Rejects a change that would expose a secret which is currently redacted in the file, for example by renaming or
/// removing the name next to it.
pub(super) fn refuse_exposure(
    restorer: &Restorer,
    before: Option<&Document>,
    after: &str,
    written: &[&str],
    settings: &ToolSettings,
    target: &Target,
) -> Result<(), ToolError> {
    let Some(Document { text, .. }) = before else { return Ok(()) };
    let opened = settings.redactor.exposed_marker(restorer, &with_lf(text), &with_lf(after), written);
    opened.map_or(Ok(()), |marker| Err(exposure_error(&marker, target)))
}

/// Like [`refuse_exposure`], but for a part of a file that is too large to be examined as a whole.
pub(super) fn refuse_partial_exposure(
    before: &str,
    after: &str,
    written: &str,
    settings: &ToolSettings,
    target: &Target,
) -> Result<(), ToolError> {
    let restorer = settings.redactor.restorer(before);
    settings
        .redactor
        .exposed_marker(&restorer, before, after, &[written])
        .map_or(Ok(()), |marker| Err(exposure_error(&marker, target)))
}

fn exposure_error(marker: &str, target: &Target) -> ToolError {
    invalid(format!(
        "`{}` was not changed: the secret behind `{marker}` would no longer be redacted; keep its name and quotes, or ask the \
         user to make this change",
        target.given
    ))
}

/// Rejects a call that contains a marker which the tool cannot restore.
pub(super) fn refuse(tool_name: &str, restores: bool, arguments: &Map<String, Value>) -> Result<(), ToolError> {
    let mut looked_at = arguments.iter().filter(|(name, _)| !restores || name.to_ascii_lowercase().contains("path"));
    let Some(marker) = looked_at.find_map(|(_, value)| first_marker(value)) else { return Ok(()) };
    Err(invalid(format!(
        "`{marker}` replaces a secret, and {tool_name} cannot restore it; remove it, or ask the user to do this"
    )))
}

fn first_marker(value: &Value) -> Option<String> {
    match value {
        Value::String(text) => has_marker(text).map(ToOwned::to_owned),
        Value::Array(values) => values.iter().find_map(first_marker),
        Value::Object(values) => values.values().find_map(first_marker),
        Value::Null | Value::Bool(_) | Value::Number(_) => None,
    }
}

pub(super) fn hide_in_error(redactor: &Redactor, error: ToolError) -> ToolError {
    ToolError { message: redactor.redact(&error.message).text.into_owned(), ..error }
}

pub(super) fn hide_in_proposal(redactor: &Redactor, proposal: Proposal) -> Proposal {
    let summary = redactor.redact(&proposal.summary).text.into_owned();
    Proposal { summary, diff: hide_in_diff(redactor, proposal.diff), ..proposal }
}

/// Redacts secrets in a diff. Because a secret may span several lines, the whole diff is searched as text.
fn hide_in_diff(redactor: &Redactor, diff: FileDiffs) -> FileDiffs {
    let text = diff.to_string();
    let hidden = redactor.redact(&text);
    if hidden.found.is_empty() { diff } else { FileDiffs::read(&hidden.text) }
}

pub(super) fn hide_in_result(redactor: &Redactor, mut result: ToolResult) -> ToolResult {
    let hidden = redactor.redact(&result.output_text);
    if !hidden.found.is_empty() {
        let found = hidden.found.into_iter().map(|RedactionCount { kind, count }| Redaction { kind, count });
        result.redactions.extend(found);
        let shown = hidden.text.into_owned();
        let ranges = redactor.redacted_ranges(&result.output_text);
        result.left_out = result.left_out.and_then(|left_out| left_out.after_hiding(&result.output_text, &shown, &ranges));
        result.output_text = shown;
    }
    result.error = result.error.map(|error| hide_in_error(redactor, error));
    result.changed = result.changed.map(|changed| Box::new(hide_in_proposal(redactor, *changed)));
    result
}
