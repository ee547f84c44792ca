//! Plans that the model proposes for a task, and the effects of approving them.

use super::Action;
use serde::{Deserialize, Serialize};
use std::fmt;

/// Name of the tool that proposes a plan.
pub const PROPOSE_PLAN: &str = "ProposePlan";

/// Plan as it is shown, stored and approved.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TaskPlan {
    /// Whole document, in Markdown.
    pub text: String,
    /// Digest of the document, to which an approval is bound.
    pub digest: String,
    /// Files, commands and hosts that the document names, in order.
    pub lines: Vec<PlanLine>,
}

/// File, command or host of a plan.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PlanLine {
    pub subject: PlanSubject,
    /// The action, or the reason why the line has none.
    pub action: Result<Action, String>,
}

/// File, command or host, as written in the plan.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", content = "name", rename_all = "snake_case")]
pub enum PlanSubject {
    File(String),
    Command(String),
    Host(String),
}

impl fmt::Display for PlanSubject {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::File(path) => write!(f, "write {path}"),
            Self::Command(line) => write!(f, "run {line}"),
            Self::Host(host) => write!(f, "read from {host}"),
        }
    }
}

/// Effect of approving a plan on one of its lines.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "coverage", rename_all = "snake_case")]
pub enum Coverage {
    /// Allowed until the task ends, without another approval.
    Covered,
    /// Already allowed by this rule.
    Allowed { rule: String },
    /// Needs its own approval in any case.
    Asks { reason: String },
    /// Denied, with or without the plan.
    Denied { reason: String },
}

/// Line of a plan, with the effect that approving the plan has on it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct JudgedLine {
    #[serde(flatten)]
    pub subject: PlanSubject,
    #[serde(flatten)]
    pub coverage: Coverage,
}

/// Proposed plan in an approval.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ProposedPlan {
    /// Whole document, in Markdown.
    pub text: String,
    /// Digest of the document, to which an approval is bound.
    pub digest: String,
    /// Files, commands and hosts that the document names, each with the effect of approval.
    pub lines: Vec<JudgedLine>,
    /// Whether approval ends plan mode.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub leaves_plan_mode: bool,
}

impl ProposedPlan {
    /// Returns the actions that approval allows until the task ends.
    pub fn allows(&self) -> Vec<String> {
        let covered = self.lines.iter().filter(|line| line.coverage == Coverage::Covered);
        covered.map(|line| line.subject.to_string()).collect()
    }

    /// Returns the actions of the plan that approval does not allow, with the reasons.
    pub fn will_ask(&self) -> Vec<String> {
        let line = |line: &JudgedLine| match &line.coverage {
            Coverage::Covered | Coverage::Allowed { .. } => None,
            Coverage::Asks { reason } => Some(format!("{}: {reason}", line.subject)),
            Coverage::Denied { reason } => Some(format!("{}: denied: {reason}", line.subject)),
        };
        self.lines.iter().filter_map(line).collect()
    }

    /// Returns a description of the effect of approval, in sections.
    pub fn effect_of_approval(&self) -> String {
        let mut text = String::new();
        let section = |text: &mut String, title: &str, lines: &[String]| {
            if !lines.is_empty() {
                let gap = if text.is_empty() { "" } else { "\n" };
                text.push_str(&[gap, title, "\n  ", &lines.join("\n  ")].concat());
            }
        };
        let allows = self.allows();
        section(&mut text, "Allowed until the task ends, without another approval:", &allows);
        section(&mut text, "Still needs approval:", &self.will_ask());
        let rest = if allows.is_empty() {
            "Approving the plan does not allow any action: actions need approval as usual."
        } else {
            "Everything else needs approval too, with a note that it is not in the plan."
        };
        format!("{text}{}{rest}", if text.is_empty() { "" } else { "\n" })
    }
}
