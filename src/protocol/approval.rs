//! Approval requests, with all information that the user needs to decide.

use super::{
    Amendable, Amendment, ApprovalId, CallId, Effects, GrantChoice, GrantOptions, PreviewOffer, Proposal, ProposedPlan,
    SandboxAccess, SessionId,
};
use serde::{Deserialize, Serialize};

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

/// Verdicts, from the mildest to the strictest. The verdict on a whole line is the strictest verdict on its parts.
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

/// Subject of an approval for a command without a matching rule: the command before it runs, or its effects after a run
/// in a layer.
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

/// Time at which a command is approved.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum ApproveWhen {
    /// The command, before it runs.
    #[default]
    Before,
    /// The effects of the command, after it ran in a copy-on-write layer.
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

/// Part of an effect on files that remains possible in a sandbox with a writable workspace.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Containment {
    /// No access.
    Blocked,
    /// Only effects on the workspace remain possible.
    OnlyWorkspace,
}

/// One simple command of a shell line, as judged by the policy.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Part {
    /// Command as written, including wrappers.
    pub text: String,
    pub verdict: VerdictKind,
    /// Rule that decided: `built-in`, `user:31`, `session`.
    pub rule: String,
    pub reason: String,
    pub risk: Risk,
    /// Whether the command runs unknown or downloaded code, or destroys data outside the workspace.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub critical: bool,
    /// Most notable effect, as a verb with its object: `publishes commits to origin`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub effect: Option<String>,
    /// Part of this effect that the sandbox permits, if known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub containment: Option<Containment>,
    /// Index of the part whose output this part reads, counted from 0.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub input_from: Option<usize>,
}

impl Part {
    /// Returns `critical`, or the name of the risk level.
    pub fn risk_name(&self) -> &'static str {
        if self.critical { "critical" } else { self.risk.as_str() }
    }
}

/// Agent whose call needs approval.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct AskingAgent {
    /// Name of the agent.
    pub name: String,
    /// Session of the agent.
    pub agent_session_id: SessionId,
}

/// Request for approval.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Approval {
    pub approval_id: ApprovalId,
    pub tool_call_id: CallId,
    pub tool_name: String,
    /// Title from the approval rule of the policy: `File change`.
    pub title: String,
    /// Text from the approval rule of the policy, shown to the user.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// Summary of the action: `Edit src/main.rs`, `Run: cargo test`.
    pub action_summary: String,
    pub risk_level: Risk,
    /// Whether the command runs unknown or downloaded code, or destroys data outside the workspace.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub critical: bool,
    /// Rule that requires the approval: `built-in`, `user:31`.
    pub rule: String,
    /// Reason why approval is required.
    pub reason: String,
    /// Agent that makes the call; absent for calls of the session itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent: Option<AskingAgent>,
    /// Whether no rule matches the action, so that the default of its capability applies.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_uncovered: bool,
    /// Exact actions of the call.
    #[serde(default)]
    pub details: Details,
    /// Expected change; for an edit, the diff.
    pub proposal: Proposal,
    /// Command line, and where it would run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub command: Option<CommandLine>,
    /// Simple commands of a shell line; empty for other tools.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub parts: Vec<Part>,
    /// Source text of the rules that apply, if they are in a file.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub origins: Vec<RuleOrigin>,
    /// Rules that "always allow" offers. Not sent by `aye serve`, which has no method to save a rule.
    #[serde(default, skip_serializing_if = "is_default")]
    pub always: GrantOptions,
    /// Whether the command can be previewed. Not sent by `aye serve`, which has no method to request a preview.
    #[serde(default, skip_serializing_if = "is_default")]
    pub preview: PreviewOffer,
    /// Effects of the command in its preview. Approval applies them without running the command
    /// again.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub effects: Option<Box<Effects>>,
    /// Access that the sandbox blocked in the first run. Approval grants it for one more run.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub opens: Vec<SandboxAccess>,
    /// Whether that run uses a fresh copy of the workspace, so that its changes need their own approval.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub opens_in_copy: bool,
    /// Plan for the task, with the effect of approving it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub plan: Option<Box<ProposedPlan>>,
    /// Time in milliseconds after which an undecided call is denied. Absent if there is no limit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeout_ms: Option<u64>,
    /// Ways to change the proposal. Not sent by `aye serve`, which has no method to change one.
    #[serde(default, skip_serializing_if = "Amendable::is_empty")]
    pub amendable: Amendable,
}

fn is_default<T: Default + PartialEq>(value: &T) -> bool {
    *value == T::default()
}

impl Approval {
    /// Removes the parts that are useless to a client that can only approve or deny.
    pub fn into_question(mut self) -> Self {
        (self.always, self.preview, self.amendable) = Default::default();
        self
    }

    /// Describes the run that approval starts: `The command runs once more, in a fresh copy …`; `None` if nothing was
    /// blocked.
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

/// Exact actions of a call, as the policy describes them.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Details {
    /// Capability: `Shell.Exec`, `File.Write`.
    pub tool_name: String,
    /// Command line.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub command: Option<String>,
    /// Working directory of a command.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cwd: Option<String>,
    /// Files and directories that would be read, written or deleted.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub paths: Vec<String>,
    /// URL of a request.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub url: Option<String>,
    /// HTTP method of a request.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub method: Option<String>,
    /// Query of a web search.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub query: Option<String>,
}

/// Location and source text of a rule.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct RuleOrigin {
    /// Rule name, as in verdicts: `user:31`.
    pub rule: String,
    /// Location: `/home/me/.config/aye/policy.toml:31`
    pub place: String,
    /// Number of the first line in `source`.
    pub first: usize,
    /// Source line of the rule, or the first lines of its table.
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
    /// Whether the sandbox differs from that of other commands in the session.
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
    /// Approved; earlier messages are no longer sent to the model. Applies to plans; for other calls the same as
    /// `approved`.
    ApprovedInCleanContext,
    /// Approved by the approval service that the user configured.
    ApprovedByService,
    /// Approved, and a rule is saved that allows the same action without approval.
    #[serde(alias = "approved_for_session")]
    ApprovedAlways {
        #[serde(flatten)]
        remember: GrantChoice,
    },
    Denied {
        #[serde(default, skip_serializing_if = "Option::is_none")]
        reason: Option<String>,
    },
    /// Not decided: the command runs in a preview, whose effects are shown for approval.
    Previewed,
    /// Not decided: the change is planned again for the current files and shown for approval.
    Renewed,
    /// Approved with changes. A result that the user has not seen is shown for approval first.
    Amended {
        amendment: Amendment,
    },
}
