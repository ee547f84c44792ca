//! Tool definitions, proposals and results.

use super::left_out::{LeftOut, truncate_again};
use super::{ARTIFACT_SCHEME, CallId, CommandEnd, FileDiagnostics, FileDiffs, Image, ModelUse, SandboxAccess};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::path::PathBuf;

/// Tool definition sent to the model.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ToolDefinition {
    pub tool_name: String,
    pub description: String,
    /// JSON Schema for the arguments.
    pub input_schema: Value,
}

/// Expected effects of a call, shown before it runs.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Proposal {
    /// One-line summary: `Edit src/main.rs +6 −5`.
    pub summary: String,
    /// Unified diff. Empty if nothing changes or the change cannot be predicted.
    pub diff: FileDiffs,
    /// All affected paths. A byte that is not valid UTF-8 is written as a NUL character and two hexadecimal digits.
    #[serde(with = "super::path_text::list")]
    pub paths: Vec<PathBuf>,
    /// Number of bytes to be written.
    pub bytes: u64,
    /// Details that are not visible in the diff: `creates the file`, `line endings stay CRLF`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<String>,
    /// Number of leading notes that are the same for every command in the session or for every call of the tool, such
    /// as those about the shell and environment, or about the server.
    #[serde(default, skip_serializing_if = "is_none_usual")]
    pub usual_notes: usize,
    /// Note that only estimates the effects of a command. It is obsolete once they are known.
    #[serde(skip)]
    pub estimate: Option<String>,
    /// Changed files that other programs execute or read instructions from.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub runs_code: Vec<RunsCode>,
    /// Errors that language servers report before and after the change. The notes contain the same errors as text.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub diagnostics: Vec<FileDiagnostics>,
    /// Whether the call runs a command in the background.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub background: bool,
    /// Whether the command runs outside the sandbox, as chosen by the user.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub unsandboxed: bool,
}

fn is_none_usual(count: &usize) -> bool {
    *count == 0
}

impl Proposal {
    /// Returns the notes that remain valid once the effects of the command are known.
    pub fn notes_without_estimate(&self) -> Vec<String> {
        self.notes.iter().filter(|note| Some(*note) != self.estimate.as_ref()).cloned().collect()
    }

    /// Returns the notes that are specific to this call, without those shared by all commands or calls of the tool.
    pub fn own_notes(&self) -> &[String] {
        self.notes.get(self.usual_notes..).unwrap_or_default()
    }

    /// Returns the notes that are the same for every command in this session or for every call of the tool.
    pub fn shared_notes(&self) -> &[String] {
        self.notes.get(..self.usual_notes).unwrap_or(&self.notes)
    }
}

/// File that other programs execute, or that determines what they execute.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct RunsCode {
    /// Path, relative to the workspace if inside it.
    pub path: String,
    pub when: RunsWhen,
    /// Programs that read the file: `npm, yarn, pnpm, Bun and Node.js`.
    pub readers: String,
}

/// Occasion on which a file's content is executed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RunsWhen {
    /// When the folder is opened or a program is started in it.
    Opened,
    /// During a build, test or deployment started by the user.
    Built,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ToolStatus {
    Succeeded,
    Failed,
    Denied,
}

/// Error codes reported to the model.
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
    /// The approval timed out before a decision was made.
    ApprovalTimeout,
    NoApprover,
    Conflict,
    Cancelled,
    OutcomeUnknown,
}

/// Error of a failed call. The message includes what to do next.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
#[error("{message}")]
pub struct ToolError {
    pub code: ErrorCode,
    pub message: String,
    /// Policy rule that denied the call.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rule: Option<String>,
}

impl ToolError {
    pub fn new(code: ErrorCode, message: impl Into<String>) -> Self {
        Self { code, message: message.into(), rule: None }
    }

    /// Returns the error for a call that a policy rule denied. `advice` follows the rule and is meant for the model.
    pub fn from_rule(reason: &str, rule: &str, advice: &str) -> Self {
        let message = format!("{reason}{}{advice}", rule_clause(rule));
        Self { code: ErrorCode::PolicyDenied, message, rule: Some(rule.to_owned()) }
    }

    /// Returns the message up to the rule, without the advice to the model. Returns the whole message if no rule denied
    /// the call.
    pub fn without_advice(&self) -> &str {
        let clause = self.rule.as_deref().map(rule_clause);
        let end = clause.and_then(|clause| Some(self.message.rfind(&clause)? + clause.len()));
        end.map_or(self.message.as_str(), |end| &self.message[..end])
    }
}

/// Returns the part of a message that names the rule behind a denial.
fn rule_clause(rule: &str) -> String {
    format!(" (rule: {rule})")
}

/// Secrets of a single kind that were hidden in a text.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Redaction {
    /// Kind of secret, as named in the redaction marker: `github-token`.
    pub kind: String,
    pub count: usize,
}

/// Returns a summary such as `2 secrets hidden from the model (github-token, password)`, or `None` if nothing was
/// hidden.
pub fn redaction_summary(redactions: &[Redaction]) -> Option<String> {
    let count: usize = redactions.iter().map(|redaction| redaction.count).sum();
    let kinds: Vec<&str> = redactions.iter().map(|redaction| redaction.kind.as_str()).collect();
    let noun = if count == 1 { "secret" } else { "secrets" };
    (count > 0).then(|| format!("{count} {noun} hidden from the model ({})", kinds.join(", ")))
}

/// Result of a tool call.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ToolResult {
    pub tool_call_id: CallId,
    pub tool_name: String,
    pub status: ToolStatus,
    /// Output text for the model.
    pub output_text: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<ToolError>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub artifact_uris: Vec<String>,
    /// Images for the model, if it supports them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub images: Vec<Image>,
    /// Secrets that were hidden in the output.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub redactions: Vec<Redaction>,
    /// Access that the sandbox blocked, if this made the command fail.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub denied: Vec<SandboxAccess>,
    /// Changes that a command made to the workspace, for display.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub changed: Option<Box<Proposal>>,
    /// How the command ended, if the call ran one in the foreground.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ended: Option<CommandEnd>,
    /// Part of the output that was omitted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub left_out: Option<Box<LeftOut>>,
    /// The tool's own use of a model. It is added to the totals immediately and is not stored with the result.
    #[serde(skip)]
    pub used: Option<Box<ModelUse>>,
}

impl ToolResult {
    pub fn success(id: CallId, tool: impl Into<String>, output: impl Into<String>) -> Self {
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
            ended: None,
            left_out: None,
            used: None,
        }
    }

    /// Creates a failed result. Its status is `denied` if the error code means that the user, a rule or a missing
    /// approval prevented the call, and `failed` otherwise.
    pub fn from_error(id: CallId, tool: impl Into<String>, error: ToolError) -> Self {
        let status = if error.code.is_denial() { ToolStatus::Denied } else { ToolStatus::Failed };
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
            ended: None,
            left_out: None,
            used: None,
        }
    }

    /// Reduces the result to the form stored in the thread: the output is shortened to about `max_bytes`, and the
    /// workspace changes, which are only for display, are dropped.
    ///
    /// If the output is a sequence of lines or matches, its end is cut off, and a note names the argument with which to
    /// continue. Any other output is cut in the middle, with a note of how many bytes were omitted.
    pub fn truncate_to(mut self, max_bytes: usize) -> Self {
        self.changed = None;
        if self.output_text.len() <= max_bytes {
            return self;
        }
        let LeftOut { gaps, run } = self.left_out.take().map(|left_out| *left_out).unwrap_or_default();
        if let Some((cut, left_out)) = run.and_then(|run| run.truncate(&self.output_text, max_bytes)) {
            self.output_text = cut;
            self.left_out = LeftOut::from_gaps(left_out.gaps, left_out.run);
            return self;
        }
        let rest = self.rest_note();
        let output = self.output_text.strip_suffix(&rest).unwrap_or(&self.output_text);
        if let Some((cut, gaps)) = truncate_again(output, max_bytes, &gaps) {
            self.output_text = format!("{cut}{rest}");
            self.left_out = LeftOut::from_gaps(gaps, None);
        }
        self
    }

    /// Returns the note appended to an output that was cut in the middle, which tells the model where to find the full
    /// text.
    fn rest_note(&self) -> String {
        // Tools read the artifact itself. Copies in an object store are for other programs.
        let here: Vec<&str> =
            self.artifact_uris.iter().map(String::as_str).filter(|uri| uri.starts_with(ARTIFACT_SCHEME)).collect();
        let rest = match &here[..] {
            [] => "request less per call".to_owned(),
            uris => format!("read the rest of {} with ReadFile (`offset`, `limit`) or search it with Grep", uris.join(", ")),
        };
        format!("\n[truncated to fit the conversation; {rest}]")
    }

    /// Returns the text sent to the model: the error code and message, if any, followed by the output.
    pub fn text_for_model(&self) -> String {
        match (&self.error, self.output_text.is_empty()) {
            (None, _) => self.output_text.clone(),
            (Some(error), true) => format!("{}: {}", error.code.as_str(), error.message),
            (Some(error), false) => format!("{}: {}\n{}", error.code.as_str(), error.message, self.output_text),
        }
    }
}

impl ErrorCode {
    /// Returns whether the user, a rule or a missing approval prevented the call.
    pub fn is_denial(self) -> bool {
        match self {
            Self::PolicyDenied | Self::UserDenied | Self::ApprovalTimeout | Self::NoApprover => true,
            Self::ToolNotFound
            | Self::InvalidRequest
            | Self::FileNotFound
            | Self::FileTooLarge
            | Self::PermissionDenied
            | Self::ToolExecutionFailed
            | Self::ToolExecutionTimeout
            | Self::Conflict
            | Self::Cancelled
            | Self::OutcomeUnknown => false,
        }
    }

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
    fn long_output_keeps_its_start_and_end_in_whole_characters() {
        let long = "ä".repeat(10_000);
        let twice = ToolResult::success(CallId::new("c"), "ReadFile", long.clone()).truncate_to(5_001).truncate_to(1_001);
        let once = ToolResult::success(CallId::new("c"), "ReadFile", long.clone()).truncate_to(1_001);
        let missing = |result: &ToolResult| result.left_out.as_ref().map(|left_out| left_out.gaps.clone());
        assert!(missing(&once).is_some_and(|gaps| gaps[0] > 8_000), "{:?}", missing(&once));
        assert_eq!(missing(&once).map(|gaps| gaps.len()), missing(&twice).map(|gaps| gaps.len()));
        assert_eq!(twice.output_text.matches("to fit the conversation").count(), 1, "{}", twice.output_text);
        let result = ToolResult::success(CallId::new("c"), "ReadFile", long.clone()).truncate_to(1_001);
        assert!(
            result.output_text.starts_with(&"ä".repeat(400))
                && result.output_text.contains(&format!("{}\n[truncated to", "ä".repeat(100)))
        );
        assert!(result.output_text.contains("truncated 19000 bytes") && result.output_text.len() < 1_200);
        let kept = ToolResult {
            artifact_uris: vec!["artifact:1".to_owned()],
            ..ToolResult::success(CallId::new("c"), "RunCommand", long.clone())
        };
        assert!(kept.truncate_to(1_001).output_text.contains("read the rest of artifact:1 with ReadFile"));
        let whole = ToolResult::success(CallId::new("c"), "ReadFile", long.clone()).truncate_to(20_000);
        assert_eq!(whole.output_text, long);
    }
}
