//! Tools: what is offered, what a call would do, what it did.

use super::left_out::{LeftOut, truncated_again};
use super::{CallId, Image, Outside};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::path::PathBuf;

/// What a model is told about a tool.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ToolDefinition {
    pub tool_name: String,
    pub description: String,
    /// JSON Schema of the arguments.
    pub input_schema: Value,
}

/// What a call would do, shown before it does it.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Proposal {
    /// One line: `Edit src/main.rs +6 −5`.
    pub summary: String,
    /// Unified diff, empty when nothing changes or nothing can be foretold.
    pub diff: String,
    /// Every path an effect touches.
    pub paths: Vec<PathBuf>,
    /// Bytes that would be written.
    pub bytes: u64,
    /// What the diff cannot show: `creates the file`, `line endings stay CRLF`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<String>,
    /// How many of the notes, from the first, say the same of every command here, such as its shell and environment.
    #[serde(default, skip_serializing_if = "is_none_usual")]
    pub usual_notes: usize,
    /// Changed files that other programs run, or whose instructions they follow.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub runs_code: Vec<RunsCode>,
}

fn is_none_usual(count: &usize) -> bool {
    *count == 0
}

impl Proposal {
    /// The notes that say something of this call alone.
    pub fn own_notes(&self) -> &[String] {
        self.notes.get(self.usual_notes..).unwrap_or_default()
    }

    /// The notes that say the same of every command here.
    pub fn shared_notes(&self) -> &[String] {
        self.notes.get(..self.usual_notes).unwrap_or(&self.notes)
    }
}

/// A file that other programs run, or that names what they run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct RunsCode {
    /// Relative to the workspace where it lies in it.
    pub path: String,
    pub when: RunsWhen,
    /// `npm, yarn, pnpm, Bun and Node.js`.
    pub readers: String,
}

/// When the content of a file is run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RunsWhen {
    /// As soon as the folder is opened or a program starts in it.
    Opened,
    /// In a build, test or deployment that the user starts.
    Built,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ToolStatus {
    Succeeded,
    Failed,
    Denied,
}

/// Codes a model can act on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub enum ErrorCode {
    ToolNotFound,
    InvalidRequest,
    FileNotFound,
    FileTooLarge,
    PermissionDenied,
    ToolExecutionFailed,
    ToolExecutionTimeout,
    PolicyDenied,
    UserDenied,
    /// Nobody answered the approval in time.
    ApprovalTimeout,
    NoApprover,
    Conflict,
    Cancelled,
    OutcomeUnknown,
}

/// Why a call gave no result; the message says what to do next.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
#[error("{message}")]
pub struct ToolError {
    pub code: ErrorCode,
    pub message: String,
}

impl ToolError {
    pub fn new(code: ErrorCode, message: impl Into<String>) -> Self {
        Self { code, message: message.into() }
    }
}

/// Secrets of one kind that a text was shown without.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Redaction {
    /// `github-token`, as it stands in the marker.
    pub kind: String,
    pub count: usize,
}

/// `2 secrets hidden from the model (github-token, password)`; `None` where nothing was.
pub fn hidden_words(redactions: &[Redaction]) -> Option<String> {
    let count: usize = redactions.iter().map(|redaction| redaction.count).sum();
    let kinds: Vec<&str> = redactions.iter().map(|redaction| redaction.kind.as_str()).collect();
    let noun = if count == 1 { "secret" } else { "secrets" };
    (count > 0).then(|| format!("{count} {noun} hidden from the model ({})", kinds.join(", ")))
}

/// What a call did.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ToolResult {
    pub tool_call_id: CallId,
    pub tool_name: String,
    pub status: ToolStatus,
    /// What the model reads.
    pub output_text: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<ToolError>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub artifact_uris: Vec<String>,
    /// What it shows to models that take images.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub images: Vec<Image>,
    /// What was hidden in the output.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub redactions: Vec<Redaction>,
    /// What a command was kept from, where that is why it failed.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub denied: Vec<Outside>,
    /// What a command changed in the workspace, for the person.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub changed: Option<Box<Proposal>>,
    /// What the output leaves out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub left_out: Option<Box<LeftOut>>,
}

impl ToolResult {
    pub fn succeeded(id: CallId, tool: impl Into<String>, output: impl Into<String>) -> Self {
        Self {
            tool_call_id: id,
            tool_name: tool.into(),
            status: ToolStatus::Succeeded,
            output_text: output.into(),
            error: None,
            artifact_uris: Vec::new(),
            images: Vec::new(),
            redactions: Vec::new(),
            denied: Vec::new(),
            changed: None,
            left_out: None,
        }
    }

    /// `denied` for the codes that mean a person or a rule said no, `failed` for all others.
    pub fn refused(id: CallId, tool: impl Into<String>, error: ToolError) -> Self {
        let status = match error.code {
            ErrorCode::PolicyDenied | ErrorCode::UserDenied | ErrorCode::ApprovalTimeout | ErrorCode::NoApprover => {
                ToolStatus::Denied
            }
            ErrorCode::ToolNotFound
            | ErrorCode::InvalidRequest
            | ErrorCode::FileNotFound
            | ErrorCode::FileTooLarge
            | ErrorCode::PermissionDenied
            | ErrorCode::ToolExecutionFailed
            | ErrorCode::ToolExecutionTimeout
            | ErrorCode::Conflict
            | ErrorCode::Cancelled
            | ErrorCode::OutcomeUnknown => ToolStatus::Failed,
        };
        Self {
            tool_call_id: id,
            tool_name: tool.into(),
            status,
            output_text: String::new(),
            error: Some(error),
            artifact_uris: Vec::new(),
            images: Vec::new(),
            redactions: Vec::new(),
            denied: Vec::new(),
            changed: None,
            left_out: None,
        }
    }

    /// What the thread has of it: at most about `most_bytes` of output, and not what is for the user.
    ///
    /// Of a run of lines or matches it is the start, with the argument that continues it; of other outputs the start and the end,
    /// and between them how many bytes are left out.
    pub fn fitted(mut self, most_bytes: usize) -> Self {
        self.changed = None;
        if self.output_text.len() <= most_bytes {
            return self;
        }
        let LeftOut { gaps, run } = self.left_out.take().map(|left_out| *left_out).unwrap_or_default();
        if let Some((cut, left_out)) = run.and_then(|run| run.cut(&self.output_text, most_bytes)) {
            self.output_text = cut;
            self.left_out = LeftOut::of(left_out.gaps, left_out.run);
            return self;
        }
        let rest = self.rest_note();
        let output = self.output_text.strip_suffix(&rest).unwrap_or(&self.output_text);
        if let Some((cut, gaps)) = truncated_again(output, most_bytes, &gaps) {
            self.output_text = format!("{cut}{rest}");
            self.left_out = LeftOut::of(gaps, None);
        }
        self
    }

    /// The note after an output that was cut in its middle: where the rest is.
    fn rest_note(&self) -> String {
        let rest = match &self.artifact_uris[..] {
            [] => "ask for less at once".to_owned(),
            uris => format!("read the rest of {} with ReadFile (`offset`, `limit`) or search it with Grep", uris.join(", ")),
        };
        format!("\n[truncated to fit the conversation; {rest}]")
    }

    /// What the model reads: the error's code and sentence before whatever was printed.
    pub fn text_for_model(&self) -> String {
        match (&self.error, self.output_text.is_empty()) {
            (None, _) => self.output_text.clone(),
            (Some(error), true) => format!("{}: {}", error.code.as_str(), error.message),
            (Some(error), false) => format!("{}: {}\n{}", error.code.as_str(), error.message, self.output_text),
        }
    }
}

impl ErrorCode {
    pub fn as_str(self) -> &'static str {
        match self {
            Self::ToolNotFound => "TOOL_NOT_FOUND",
            Self::InvalidRequest => "INVALID_REQUEST",
            Self::FileNotFound => "FILE_NOT_FOUND",
            Self::FileTooLarge => "FILE_TOO_LARGE",
            Self::PermissionDenied => "PERMISSION_DENIED",
            Self::ToolExecutionFailed => "TOOL_EXECUTION_FAILED",
            Self::ToolExecutionTimeout => "TOOL_EXECUTION_TIMEOUT",
            Self::PolicyDenied => "POLICY_DENIED",
            Self::UserDenied => "USER_DENIED",
            Self::ApprovalTimeout => "APPROVAL_TIMEOUT",
            Self::NoApprover => "NO_APPROVER",
            Self::Conflict => "CONFLICT",
            Self::Cancelled => "CANCELLED",
            Self::OutcomeUnknown => "OUTCOME_UNKNOWN",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_output_keeps_its_start_and_its_end_in_whole_characters() {
        let long = "ä".repeat(10_000);
        let twice = ToolResult::succeeded(CallId::new("c"), "ReadFile", long.clone()).fitted(5_001).fitted(1_001);
        let once = ToolResult::succeeded(CallId::new("c"), "ReadFile", long.clone()).fitted(1_001);
        let missing = |result: &ToolResult| result.left_out.as_ref().map(|left_out| left_out.gaps.clone());
        assert!(missing(&once).is_some_and(|gaps| gaps[0] > 8_000), "{:?}", missing(&once));
        assert_eq!(missing(&once).map(|gaps| gaps.len()), missing(&twice).map(|gaps| gaps.len()));
        assert_eq!(twice.output_text.matches("to fit the conversation").count(), 1, "{}", twice.output_text);
        let result = ToolResult::succeeded(CallId::new("c"), "ReadFile", long.clone()).fitted(1_001);
        assert!(
            result.output_text.starts_with(&"ä".repeat(400))
                && result.output_text.contains(&format!("{}\n[truncated to", "ä".repeat(100)))
        );
        assert!(result.output_text.contains("truncated 19000 bytes") && result.output_text.len() < 1_200);
        let kept = ToolResult {
            artifact_uris: vec!["artifact:1".to_owned()],
            ..ToolResult::succeeded(CallId::new("c"), "RunCommand", long.clone())
        };
        assert!(kept.fitted(1_001).output_text.contains("read the rest of artifact:1 with ReadFile"));
        let whole = ToolResult::succeeded(CallId::new("c"), "ReadFile", long.clone()).fitted(20_000);
        assert_eq!(whole.output_text, long);
    }
}
