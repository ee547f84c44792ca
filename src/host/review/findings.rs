//! Parses the findings in the model's response and checks them against the diffs.

use crate::protocol::{Finding, Problem, Review, ReviewedChanges};
use serde::Deserialize;

/// JSON Schema for the response.
pub(crate) const SCHEMA: &str = r#"{
  "type": "object", "additionalProperties": false, "required": ["summary", "findings"],
  "properties": {
    "summary": {"type": "string", "description": "One or two sentences about the changes as a whole."},
    "findings": {"type": "array", "maxItems": 100, "items": {
      "type": "object", "additionalProperties": false,
      "required": ["file", "line", "severity", "confidence", "title", "explanation"],
      "properties": {
        "file": {"type": "string", "description": "Path as in the diff."},
        "line": {"type": "integer", "minimum": 1, "description": "Line of the new file, within a hunk of the diff."},
        "severity": {"enum": ["critical", "high", "medium", "low"]},
        "confidence": {"enum": ["high", "medium", "low"]},
        "title": {"type": "string", "maxLength": 200, "description": "One line that says what is wrong."},
        "explanation": {"type": "string", "description": "When it goes wrong, why, and what to do."}
      }
    }}
  }
}"#;

/// Name of the schema in messages.
pub(crate) const SCHEMA_NAME: &str = "the schema of the findings";

/// The model's response.
#[derive(Deserialize)]
struct Response {
    summary: String,
    findings: Vec<Finding>,
}

/// Parses a response that conforms to the schema, and drops findings that do not refer to the changes under review.
///
/// # Errors
/// Returns an error if the response does not conform to the schema.
pub(crate) fn read(value: &str, changes: ReviewedChanges) -> Result<Review, Problem> {
    let Response { summary, mut findings } =
        serde_json::from_str(value).map_err(|error| Problem::new("the findings cannot be read").because(error))?;
    let count = findings.len();
    findings.retain(|finding| changes.diffs.iter().any(|diff| finding.is_in(diff)));
    let dropped = count - findings.len();
    findings.sort_by(|left, right| (left.severity, &left.file, left.line).cmp(&(right.severity, &right.file, right.line)));
    Ok(Review { changes, summary, findings, dropped })
}
