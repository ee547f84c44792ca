//! Redaction markers: inserted into tool output, and restored in written content.

use super::document::content::Document;
use super::document::replacement::with_lf;
use super::error::invalid;
use super::settings::ToolSettings;
use crate::policy::redact::{RedactionCount, Redactor, Restorer, has_marker};
use crate::protocol::{FileDiffs, Proposal, Redaction, Target, ToolError, ToolResult};
use serde_json::{Map, Value};

/// Returns the restorer for the markers of a text file in the form shown, with LF endings. Other files have none.
pub(super) fn restorer(before: Option<&Document>, settings: &ToolSettings) -> Restorer {
    before.map_or_else(Restorer::default, |before| settings.redactor.restorer(&with_lf(&before.text)))
}

/// Returns the text with its markers replaced by the secrets.
pub(super) fn restore_secrets(restorer: &Restorer, text: &str, argument: &str, target: &Target) -> Result<String, ToolError> {
    restorer.restore(text).map_err(|error| {
        invalid(format!(
            "{argument}: {error} (`{}`); nothing was written. A marker replaces a secret: edit around it, keep it unchanged in its \
             place, or ask the user to make this change",
            target.given
        ))
    })
}

/// Refuses a change that would expose a secret that is redacted in the file now, for example under a new or missing
/// name.
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

/// Like `refuse_exposure`, for a part of a file too large to examine as a whole.
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

/// Refuses a call that contains a marker which it cannot restore.
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

/// Redacts secrets in a diff. A secret may span several lines, so the text form is searched.
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
