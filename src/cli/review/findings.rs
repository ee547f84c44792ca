//! Findings of a review: their schema, the check against the differences, and their output.

use super::changes::ReviewedChanges;
use crate::protocol::{FileDiff, counted};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use std::fmt::Write as _;

/// Version of the JSON output.
const VERSION: u32 = 1;

/// JSON Schema of the response.
pub(super) const SCHEMA: &str = r#"{
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

/// Ordered from the strongest.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Severity {
    Critical,
    High,
    Medium,
    Low,
}

impl Severity {
    fn as_str(self) -> &'static str {
        match self {
            Self::Critical => "critical",
            Self::High => "high",
            Self::Medium => "medium",
            Self::Low => "low",
        }
    }
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct Finding {
    file: String,
    line: usize,
    severity: Severity,
    confidence: String,
    title: String,
    explanation: String,
}

/// A response with its findings that are about the differences.
#[derive(Debug, Default, Deserialize)]
pub(super) struct Review {
    summary: String,
    findings: Vec<Finding>,
    /// Number of findings about files or lines that the differences do not have.
    #[serde(skip)]
    dropped: usize,
}

impl Review {
    /// Reads a response that matches the schema, and drops the findings that are not about these differences.
    pub(super) fn read(value: &str, diffs: &[FileDiff]) -> Result<Self, String> {
        let mut review: Self = serde_json::from_str(value).map_err(|error| error.to_string())?;
        let count = review.findings.len();
        review.findings.retain(|finding| diffs.iter().any(|diff| has_line(diff, finding)));
        review.dropped = count - review.findings.len();
        review
            .findings
            .sort_by(|left, right| (left.severity, &left.file, left.line).cmp(&(right.severity, &right.file, right.line)));
        Ok(review)
    }

    /// Returns whether a finding is high or critical.
    pub(super) fn is_severe(&self) -> bool {
        self.findings.iter().any(|finding| finding.severity <= Severity::High)
    }

    /// Returns the findings as text, the strongest first.
    pub(super) fn text(&self) -> String {
        let mut text = String::new();
        for Finding { file, line, severity, confidence, title, explanation } in &self.findings {
            let _ = writeln!(text, "{file}:{line}: {}: {title} (confidence: {confidence})", severity.as_str());
            for line in explanation.lines() {
                let _ = writeln!(text, "    {line}");
            }
        }
        if !self.summary.is_empty() {
            let _ = writeln!(text, "{}", self.summary);
        }
        let _ = writeln!(text, "{}", counted(self.findings.len() as u64, "finding", "findings"));
        if self.dropped > 0 {
            let _ = writeln!(
                text,
                "dropped: {} about lines that are not in the diff",
                counted(self.dropped as u64, "finding", "findings")
            );
        }
        text
    }

    pub(super) fn json(&self, changes: &ReviewedChanges) -> Value {
        json!({
            "version": VERSION,
            "reviewed": changes.title,
            "files": changes.diffs.len(),
            "leftOut": changes.left_out,
            "summary": self.summary,
            "findings": self.findings,
            "dropped": self.dropped,
        })
    }
}

/// Returns whether a finding is about a line of the new side of a difference.
fn has_line(diff: &FileDiff, finding: &Finding) -> bool {
    let is_in = |start: usize, count: usize| finding.line >= start && finding.line < start + count;
    diff.name.as_deref() == Some(finding.file.as_str()) && diff.hunks.iter().any(|hunk| is_in(hunk.new_start, hunk.new_count))
}
