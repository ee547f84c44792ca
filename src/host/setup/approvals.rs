//! Approval step of first-time setup, which offers three choices.

use crate::config::{ApprovalSettings, Settings};
use crate::protocol::{ApprovalsChoice, Mode};

/// A choice, with its name, settings, title and a description of its consequences.
pub(crate) struct ApprovalPreset {
    pub(crate) name: &'static str,
    /// Value for `[approval] approve`.
    pub(crate) approve: &'static str,
    /// Value for `[approval] mode`.
    pub(crate) mode: Mode,
    title: &'static str,
    words: &'static str,
}

const ANSWERS: [ApprovalPreset; 3] = [
    ApprovalPreset {
        name: "command",
        approve: "command",
        mode: Mode::Ask,
        title: "ask about every command",
        words: "aye asks before every edit and every command that the policy does not allow.",
    },
    ApprovalPreset {
        name: "effects",
        approve: "effects",
        mode: Mode::Ask,
        title: "ask about effects",
        words: "A command first runs in a sandboxed copy without network, and aye asks only if it would change your files.",
    },
    ApprovalPreset {
        name: "auto",
        approve: "effects",
        mode: Mode::Auto,
        title: "auto",
        words: "Edits and sandboxed commands change your files without asking; aye still asks about high-risk actions, permanent \
                deletions and network access.",
    },
];

pub(crate) fn choices() -> Vec<ApprovalsChoice> {
    let choice = |answer: &ApprovalPreset| ApprovalsChoice {
        name: answer.name.to_owned(),
        title: answer.title.to_owned(),
        words: answer.words.to_owned(),
        suggested: answer.name == "effects",
    };
    ANSWERS.iter().map(choice).collect()
}

pub(crate) fn from_name(name: &str) -> Result<&'static ApprovalPreset, String> {
    ANSWERS
        .iter()
        .find(|answer| answer.name == name)
        .ok_or_else(|| format!("unknown choice `{name}`: must be command, effects or auto"))
}

/// Returns whether the user has configured approvals.
pub(crate) fn are_set(settings: &Settings) -> bool {
    settings.sets("approval.mode") || settings.sets("approval.approve")
}

/// Returns the choice that matches the settings, if any.
pub(crate) fn current(set: &ApprovalSettings) -> Option<&'static ApprovalPreset> {
    ANSWERS.iter().find(|answer| answer.mode == set.mode && (answer.approve == "effects") == set.by_effects)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[test]
    fn every_answer_is_recognized_from_its_settings() {
        for answer in &ANSWERS {
            let by_effects = answer.approve == "effects";
            let set = ApprovalSettings { strict: false, by_effects, mode: answer.mode, arming_ms: 500, timeout: Duration::ZERO };
            assert_eq!(current(&set).map(|found| found.name), Some(answer.name));
            assert!(from_name(answer.name).is_ok());
        }
        assert!(from_name("yolo").is_err_and(|why| why.contains("command, effects or auto")));
    }
}
