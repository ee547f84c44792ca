//! Approval requests, with all the information that the user needs to decide.

use super::{
    Amendable, Amendment, ApprovalId, CallDenial, CallId, Denier, Effects, GrantChoice, GrantOptions, PreviewOffer, Proposal,
    ProposedPlan, SandboxAccess, SessionId,
};
use serde::{Deserialize, Serialize};

/// Reason for the approval of an MCP tool if no rule matches it.
pub const CALLS_SERVER_TOOL: &str = "calls a tool on an MCP server";

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Risk {
    #[default]
    Low,
    Medium,
    High,
}

impl Risk {
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Low => "low",
            Self::Medium => "medium",
            Self::High => "high",
        }
    }
}

/// Policy verdicts, from the most lenient to the strictest. A command line gets the strictest verdict on any of its
/// commands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum VerdictKind {
    Allow,
    Ask,
    Deny,
}

impl VerdictKind {
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Allow => "allow",
            Self::Ask => "ask",
            Self::Deny => "deny",
        }
    }
}

/// Subject of the approval of a command that no rule matches: the command before it runs, or its effects after it has
/// run in a copy-on-write layer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Approve {
    #[default]
    Command,
    Effects,
}

impl Approve {
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Command => "command",
            Self::Effects => "effects",
        }
    }

    pub fn from_name(name: &str) -> Option<Self> {
        [Self::Command, Self::Effects].into_iter().find(|approve| approve.as_str() == name)
    }
}

/// Point at which a command is approved.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum ApproveWhen {
    /// The command itself is approved, before it runs.
    #[default]
    Before,
    /// The command's effects are approved, after it has run in a copy-on-write layer.
    Effects,
}

impl ApproveWhen {
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Before => "before",
            Self::Effects => "effects",
        }
    }
}

/// Extent to which a sandbox with a writable workspace permits a command's file effect.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Containment {
    /// The sandbox blocks the effect entirely.
    Blocked,
    /// The sandbox permits the effect only inside the workspace.
    OnlyWorkspace,
}

/// Simple command in a shell line, as judged by the policy.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Part {
    /// The command as written, including wrappers.
    pub text: String,
    pub verdict: VerdictKind,
    /// Name of the rule that determined the verdict, such as `built-in`, `user:31` or `session`.
    pub rule: String,
    pub reason: String,
    pub risk: Risk,
    /// Whether the command runs unknown or downloaded code, or destroys data outside the workspace.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub critical: bool,
    /// The command's most notable effect, as a verb and its object: `publishes commits to origin`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub effect: Option<String>,
    /// Extent to which the sandbox permits this effect, if known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub containment: Option<Containment>,
    /// 0-based index of the command whose output this command reads.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub input_from: Option<usize>,
}

impl Part {
    /// Returns `critical`, or the name of the risk level.
    pub fn risk_name(&self) -> &'static str {
        if self.critical { "critical" } else { self.risk.as_str() }
    }
}

/// Agent whose tool call needs approval.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct AskingAgent {
    /// Name of the agent.
    pub name: String,
    /// The agent's own session.
    pub agent_session_id: SessionId,
}

/// Request for approval.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Approval {
    pub approval_id: ApprovalId,
    pub tool_call_id: CallId,
    pub tool_name: String,
    /// Title given by the policy's approval rule, such as `File change`.
    pub title: String,
    /// Text given by the policy's approval rule and shown to the user.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// One-line summary of the action: `Edit src/main.rs`, `Run: cargo test`.
    pub action_summary: String,
    pub risk_level: Risk,
    /// Whether the command runs unknown or downloaded code, or destroys data outside the workspace.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub critical: bool,
    /// Name of the rule that requires approval, such as `built-in` or `user:31`.
    pub rule: String,
    /// Reason why approval is required.
    pub reason: String,
    /// Agent that made the call. Absent for calls made by the session itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent: Option<AskingAgent>,
    /// Whether no rule matches the action, in which case the default for its capability applies.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_uncovered: bool,
    /// The exact actions that the call would perform.
    #[serde(default)]
    pub details: Details,
    /// Expected change, including the diff if the call edits files.
    pub proposal: Proposal,
    /// Command line, with the directory and sandbox in which it would run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub command: Option<CommandLine>,
    /// Simple commands in the shell line; empty for other tools.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub parts: Vec<Part>,
    /// Source text of the applicable rules that come from files.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub origins: Vec<RuleOrigin>,
    /// Rules offered by "always allow". `aye serve` omits them, because it has no method that saves a rule.
    #[serde(default, skip_serializing_if = "is_default")]
    pub always: GrantOptions,
    /// Whether the command can be previewed. `aye serve` omits this, because it has no method that requests a preview.
    #[serde(default, skip_serializing_if = "is_default")]
    pub preview: PreviewOffer,
    /// Effects that the command had in its preview. Approval applies them without running the command again.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub effects: Option<Box<Effects>>,
    /// Access that the sandbox blocked during the first run. Approval grants this access for one more run.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub opens: Vec<SandboxAccess>,
    /// Whether that run uses a fresh copy of the workspace, in which case its changes need their own approval.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub opens_in_copy: bool,
    /// Plan proposed for the task, including what approving it would allow.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub plan: Option<Box<ProposedPlan>>,
    /// Time limit in milliseconds, after which an undecided call is denied. Absent if there is no limit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeout_ms: Option<u64>,
    /// Ways in which the proposal can be changed. `aye serve` omits them, because it has no method that changes a
    /// proposal.
    #[serde(default, skip_serializing_if = "Amendable::is_empty")]
    pub amendable: Amendable,
}

fn is_default<T: Default + PartialEq>(value: &T) -> bool {
    *value == T::default()
}

impl Approval {
    /// Clears the fields that are useless to a client that can only approve or deny: saved rules, previews and
    /// amendments.
    pub fn into_question(mut self) -> Self {
        (self.always, self.preview, self.amendable) = Default::default();
        self
    }

    /// Describes the run that approval would start: `The command runs once more with exactly that access …`. Returns
    /// `None` if the sandbox blocked nothing.
    pub fn next_run(&self) -> Option<String> {
        if self.opens.is_empty() {
            return None;
        }
        let how = if self.opens_in_copy {
            "The command runs once more with exactly that access, in a fresh copy of the workspace; you review its changes \
             afterwards."
        } else {
            "The command runs once more with exactly that access."
        };
        let sends = self.opens.iter().any(SandboxAccess::is_network);
        let mut words = how.to_owned();
        if sends {
            words.push_str(" Data that it sends cannot be recalled.");
        }
        Some(words)
    }
}

/// Exact actions of a tool call, as the policy describes them.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Details {
    /// Policy capability, such as `Shell.Exec` or `File.Write`.
    pub tool_name: String,
    /// Command line that would run.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub command: Option<String>,
    /// Working directory of the command.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cwd: Option<String>,
    /// Files and directories that the call would read, write or delete.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub paths: Vec<String>,
    /// Requested URL.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub url: Option<String>,
    /// HTTP method of the request.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub method: Option<String>,
    /// Web search query.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub query: Option<String>,
}

/// Location and source text of a policy rule.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct RuleOrigin {
    /// Rule name as used in verdicts, such as `user:31`.
    pub rule: String,
    /// File and line, such as `/home/me/.config/aye/policy.toml:31`.
    pub place: String,
    /// Line number of the first line in `source`.
    pub first: usize,
    /// The rule's source line, or the first lines of its table.
    pub source: Vec<String>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct CommandLine {
    pub line: String,
    pub cwd: String,
    pub timeout_seconds: u64,
    /// Description of the sandbox: `NONE on this kernel: the command has all your permissions`.
    pub sandbox: String,
    /// Whether this sandbox differs from the one that other commands in the session use.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub has_own_sandbox: bool,
}

impl CommandLine {
    /// Returns whether the command is unsandboxed or has network access.
    pub fn is_unheld(&self) -> bool {
        ["NONE", "OFF", "OPEN"].iter().any(|word| self.sandbox.contains(word))
    }
}

/// Decision on an approval request.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "decision", rename_all = "snake_case")]
pub enum Decision {
    Approved,
    /// Approved; the model no longer receives the messages before this point. Applies only to plans; for all other
    /// calls, it is equivalent to `approved`.
    ApprovedInCleanContext,
    /// Approved by the approval service that the user has configured.
    ApprovedByService,
    /// Approved; a saved rule allows the same action without approval from now on.
    #[serde(alias = "approved_for_session")]
    ApprovedAlways {
        #[serde(flatten)]
        remember: GrantChoice,
    },
    Denied(CallDenial),
    /// Undecided: the command first runs in a preview, whose effects are then shown for approval.
    Previewed,
    /// Undecided: the change is replanned against the current files and shown for approval.
    Renewed,
    /// Approved with changes. If the user has not seen the amended result, it is shown for approval first.
    Amended {
        amendment: Amendment,
    },
}

impl Decision {
    /// Returns a denial by the user.
    pub fn denied(reason: Option<String>) -> Self {
        Self::Denied(CallDenial { by: Denier::User, reason })
    }

    /// Returns a denial by something other than the user.
    pub fn denied_by(by: Denier, reason: impl Into<String>) -> Self {
        Self::Denied(CallDenial { by, reason: Some(reason.into()) })
    }

    /// Formats the decision for tests. A denial by the user shows only its reason.
    #[cfg(test)]
    pub(crate) fn test_text(&self) -> String {
        match self {
            Self::Denied(CallDenial { by: Denier::User, reason }) => format!("Denied {{ reason: {reason:?} }}"),
            Self::Denied(CallDenial { by, reason }) => format!("Denied {{ by: {by:?}, reason: {reason:?} }}"),
            decision => format!("{decision:?}"),
        }
    }
}
