//! A question to the person, with everything they need to answer it.

use super::{Always, Amendable, Amendment, ApprovalId, CallId, Effects, Outside, PreviewOffer, Proposal, Remember};
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

/// Ordered from the mildest to the strictest, so that the verdict of a whole is the `max` of its parts.
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

/// When a command that asks is approved.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum ApproveWhen {
    /// Before it runs.
    #[default]
    Before,
    /// By its effects, after it ran in a layer.
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

/// One simple command of a shell line, as judged.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Part {
    /// The command as written, wrappers included.
    pub text: String,
    pub verdict: VerdictKind,
    /// `built-in`, `user:31`, `session`: which rule decided.
    pub rule: String,
    pub reason: String,
    pub risk: Risk,
    /// Unknown or downloaded code, or destruction outside the workspace.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub critical: bool,
    /// What it does to which object, where that is worth naming: a verb with its object, "publishes commits to `origin`".
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub effect: Option<String>,
    /// The part whose output it reads, counted from 0.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub input_from: Option<usize>,
}

impl Part {
    /// `critical`, or the risk.
    pub fn risk_name(&self) -> &'static str {
        if self.critical { "critical" } else { self.risk.as_str() }
    }
}

/// The question.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Approval {
    pub approval_id: ApprovalId,
    pub tool_call_id: CallId,
    pub tool_name: String,
    /// `File change`, from the bundle's approval rule.
    pub title: String,
    /// What the bundle's approval rule tells the person who decides.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// `Edit src/main.rs`, `Run: cargo test`.
    pub action_summary: String,
    pub risk_level: Risk,
    /// Unknown or downloaded code, or destruction outside the workspace.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub critical: bool,
    /// Which rule asks: `built-in`, `user:31`.
    pub rule: String,
    /// Why it asks, in words.
    pub reason: String,
    /// No rule is about it: its capability asks about everything.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_uncovered: bool,
    /// What exactly would be done.
    #[serde(default)]
    pub details: Details,
    /// What would change; for an edit the diff.
    pub proposal: Proposal,
    /// The line of a command and where it would run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub command: Option<CommandLine>,
    /// The simple commands of a shell line; empty for other tools.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub parts: Vec<Part>,
    /// What the rules that have a say look like, for those that stand in a file.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub origins: Vec<RuleOrigin>,
    /// What "always allow" offers. Not sent by `aye serve`, where no method saves a rule.
    #[serde(default, skip_serializing_if = "is_default")]
    pub always: Always,
    /// Whether a preview can show what the command would do. Not sent by `aye serve`, where no method asks for one.
    #[serde(default, skip_serializing_if = "is_default")]
    pub preview: PreviewOffer,
    /// What the command did in its view; a yes keeps it, and runs nothing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub effects: Option<Box<Effects>>,
    /// What a yes opens for this one run: the command ran before and was kept from it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub opens: Vec<Outside>,
    /// After this time without an answer the call is not approved; absent where it waits without end.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeout_ms: Option<u64>,
    /// How it can be changed before it is done. Not sent by `aye serve`, where no method changes a proposal.
    #[serde(default, skip_serializing_if = "Amendable::is_empty")]
    pub amendable: Amendable,
}

fn is_default<T: Default + PartialEq>(value: &T) -> bool {
    *value == T::default()
}

impl Approval {
    /// What a client can use that decides yes or no.
    pub fn into_question(mut self) -> Self {
        (self.always, self.preview, self.amendable) = Default::default();
        self
    }
}

/// What exactly a call would do, in the terms of the policy.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Details {
    /// The capability: `Shell.Exec`, `File.Write`.
    pub tool_name: String,
    /// The line of a command.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub command: Option<String>,
    /// The directory a command would run in.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cwd: Option<String>,
    /// The files and directories that would be read, written or deleted.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub paths: Vec<String>,
    /// The address of a request.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub url: Option<String>,
    /// The method of a request.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub method: Option<String>,
}

/// Where a rule stands, and what is written there.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct RuleOrigin {
    /// As verdicts name it: `user:31`.
    pub rule: String,
    /// `/home/me/.config/aye/policy.toml:31`
    pub place: String,
    /// The number of the first of these lines.
    pub first: usize,
    /// The line, or the first lines of the table that it heads.
    pub source: Vec<String>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct CommandLine {
    pub line: String,
    pub cwd: String,
    pub timeout_seconds: u64,
    /// `NONE on this kernel: the command can do what you can do`, or what holds it.
    pub sandbox: String,
    /// Whether that is not what holds the other commands of the session.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub has_own_sandbox: bool,
}

impl CommandLine {
    /// Whether nothing holds the command, or its network is open.
    pub fn is_unheld(&self) -> bool {
        ["NONE", "OFF", "OPEN"].iter().any(|word| self.sandbox.contains(word))
    }
}

/// The answer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "decision", rename_all = "snake_case")]
pub enum Decision {
    Approved,
    /// Approved, and a rule is kept, so that the same is not asked again.
    #[serde(alias = "approved_for_session")]
    ApprovedAlways {
        #[serde(flatten)]
        remember: Remember,
    },
    Denied {
        #[serde(default, skip_serializing_if = "Option::is_none")]
        reason: Option<String>,
    },
    /// Neither yes nor no: what it would do is shown first, and asked about in another question.
    Previewed,
    /// Neither yes nor no: it is made anew for what stands on disk by now, and asked about in another question.
    Renewed,
    /// Not as it was proposed. A yes where the person has seen all that comes of it; else that is asked about in another question.
    Amended {
        amendment: Amendment,
    },
}
