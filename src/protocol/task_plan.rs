//! Plans that the model proposes for a task, and what approving them allows.

use super::Action;
use serde::{Deserialize, Serialize};
use std::fmt;

/// Name of the tool with which the model proposes a plan.
pub const PROPOSE_PLAN: &str = "ProposePlan";

/// Headings of the lists at the end of a plan: files, commands and hosts.
pub const PLAN_LISTS: [&str; 3] = ["## Files to change", "## Commands to run", "## Hosts to read from"];

/// Plan in the form in which it is shown, stored and approved.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TaskPlan {
    /// Complete plan document, in Markdown.
    pub text: String,
    /// Digest of the document. An approval applies only to a document with this digest.
    pub digest: String,
    /// Files, commands and hosts named in the document, in order of appearance.
    pub lines: Vec<PlanLine>,
}

/// File, command or host named in a plan.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PlanLine {
    pub subject: PlanSubject,
    /// Action that the line describes, or the reason why it describes none.
    pub action: Result<Action, String>,
    /// Reason why this system or project does not let a plan cover the action.
    pub obstacle: Option<String>,
}

/// File, command or host, as written in a plan.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", content = "name", rename_all = "snake_case")]
pub enum PlanSubject {
    File(String),
    Command(String),
    Host(String),
}

impl PlanSubject {
    /// Returns the path, the command line or the host.
    pub fn name(&self) -> &str {
        match self {
            Self::File(name) | Self::Command(name) | Self::Host(name) => name,
        }
    }
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

/// Effect that approving a plan has on one of its lines.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "coverage", rename_all = "snake_case")]
pub enum Coverage {
    /// Allowed without further approval until the task ends.
    Covered,
    /// Already allowed by this rule, even without the plan.
    Allowed { rule: String },
    /// Still needs its own approval.
    Asks { reason: String },
    /// Denied, whether or not the plan is approved.
    Denied { reason: String },
}

/// Plan line, with the effect that approving the plan has on it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct JudgedLine {
    #[serde(flatten)]
    pub subject: PlanSubject,
    #[serde(flatten)]
    pub coverage: Coverage,
}

/// Plan proposed in an approval request.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ProposedPlan {
    /// Complete plan document, in Markdown.
    pub text: String,
    /// Digest of the document. An approval applies only to a document with this digest.
    pub digest: String,
    /// Files, commands and hosts named in the document, each with the effect of approving the plan.
    pub lines: Vec<JudgedLine>,
    /// Whether approval ends plan mode.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub leaves_plan_mode: bool,
}

impl ProposedPlan {
    /// Returns the actions that would be allowed until the task ends.
    pub fn allows(&self) -> Vec<String> {
        let covered = self.lines.iter().filter(|line| line.coverage == Coverage::Covered);
        covered.map(|line| line.subject.to_string()).collect()
    }

    /// Returns the actions that would still need approval or be denied, with the reasons.
    pub fn will_ask(&self) -> Vec<String> {
        let line = |line: &JudgedLine| match &line.coverage {
            Coverage::Covered | Coverage::Allowed { .. } => None,
            Coverage::Asks { reason } => Some(format!("{}: {reason}", line.subject)),
            Coverage::Denied { reason } => Some(format!("{}: denied: {reason}", line.subject)),
        };
        self.lines.iter().filter_map(line).collect()
    }

    /// Returns the document without the lists at its end, if they contain nothing but the entries in `lines`, and the
    /// whole document otherwise.
    pub fn text_without_lists(&self) -> &str {
        let is_heading = |line: &str| PLAN_LISTS.iter().any(|heading| line.trim_end().eq_ignore_ascii_case(heading));
        let mut at = 0;
        let mut starts = self.text.split_inclusive('\n').map(|line| {
            let start = at;
            at += line.len();
            (start, line)
        });
        let Some((start, _)) = starts.find(|(_, line)| is_heading(line)) else { return &self.text };
        let is_entry = |line: &str| {
            let name = line.trim_start().strip_prefix("- ").map(|name| name.trim().trim_matches('`'));
            name.is_some_and(|name| self.lines.iter().any(|line| line.subject.name() == name))
        };
        let is_listed = |line: &str| line.trim().is_empty() || is_heading(line) || is_entry(line);
        if self.text[start..].lines().all(is_listed) { &self.text[..start] } else { &self.text }
    }

    /// Describes the effect of approving the plan, in sections.
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
        let is_allowed = |line: &&JudgedLine| matches!(line.coverage, Coverage::Allowed { .. });
        let allowed: Vec<String> = self.lines.iter().filter(is_allowed).map(|line| line.subject.to_string()).collect();
        section(&mut text, "Already allowed:", &allowed);
        section(&mut text, "Still needs approval:", &self.will_ask());
        let rest = if allows.is_empty() {
            "Approving the plan does not allow any action: actions need approval as usual."
        } else {
            "Everything else needs approval too, with a note that it is not in the plan."
        };
        format!("{text}{}{rest}", if text.is_empty() { "" } else { "\n" })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn proposed(text: &str) -> ProposedPlan {
        let line = |name: &str| JudgedLine { subject: PlanSubject::File(name.to_owned()), coverage: Coverage::Covered };
        ProposedPlan { text: text.to_owned(), digest: String::new(), lines: vec![line("a.rs")], leaves_plan_mode: false }
    }

    #[test]
    fn only_lists_that_are_described_elsewhere_are_left_out() {
        for (text, shown) in [
            ("# Plan\n\nDo it.\n\n## Files to change\n\n- a.rs\n", "# Plan\n\nDo it.\n\n"),
            ("Do it.\n## files to change\n- `a.rs`\n\n## Commands to run\n", "Do it.\n"),
            // Text that the list of effects does not contain is shown.
            ("Do it.\n## Files to change\n- a.rs\n- b.rs\n", "Do it.\n## Files to change\n- a.rs\n- b.rs\n"),
            ("Do it.\n## Files to change\n- a.rs\nand more\n", "Do it.\n## Files to change\n- a.rs\nand more\n"),
            ("## Files\n- a.rs\n", "## Files\n- a.rs\n"),
        ] {
            assert_eq!(proposed(text).text_without_lists(), shown, "{text:?}");
        }
    }
}
