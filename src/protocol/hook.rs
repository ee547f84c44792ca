//! Hooks: programs supplied by the user or by a trusted project that aye runs on certain events.

use super::CallArguments;
use serde::{Deserialize, Serialize};
use std::fmt::Write;

/// Event that triggers hooks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum HookEvent {
    PreToolUse,
    PostToolUse,
    UserPromptSubmit,
    SessionStart,
    Stop,
    PreCompact,
    Notification,
    SubagentStart,
    SubagentStop,
}

impl HookEvent {
    /// All events, in the order in which the documentation lists them.
    pub const ALL: [Self; 9] = [
        Self::PreToolUse,
        Self::PostToolUse,
        Self::UserPromptSubmit,
        Self::SessionStart,
        Self::Stop,
        Self::PreCompact,
        Self::Notification,
        Self::SubagentStart,
        Self::SubagentStop,
    ];

    pub fn as_str(self) -> &'static str {
        match self {
            Self::PreToolUse => "PreToolUse",
            Self::PostToolUse => "PostToolUse",
            Self::UserPromptSubmit => "UserPromptSubmit",
            Self::SessionStart => "SessionStart",
            Self::Stop => "Stop",
            Self::PreCompact => "PreCompact",
            Self::Notification => "Notification",
            Self::SubagentStart => "SubagentStart",
            Self::SubagentStop => "SubagentStop",
        }
    }

    /// Returns the event with this name, or `None` if the name is unknown.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|event| event.as_str() == name)
    }
}

/// Set of events for which hooks are configured.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct HookEvents(u16);

impl HookEvents {
    pub fn contains(self, event: HookEvent) -> bool {
        self.0 & (1 << event as u16) != 0
    }
}

impl FromIterator<HookEvent> for HookEvents {
    fn from_iter<I: IntoIterator<Item = HookEvent>>(events: I) -> Self {
        Self(events.into_iter().fold(0, |set, event| set | 1 << event as u16))
    }
}

/// A hook's decision about a tool call. Hooks cannot allow calls.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum HookDecision {
    /// The decision is left to the policy.
    #[default]
    None,
    /// The call requires approval.
    Ask,
    Deny,
}

/// Outcome of running one hook.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct HookRun {
    /// The hook's file, event and number: `.claude/settings.json PreToolUse 1`.
    pub hook: String,
    #[serde(default)]
    pub decision: HookDecision,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// Text to add to the model's context.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub context: Option<String>,
    /// Files affected by the call that the hook changed before they were written, as shown to the user.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub changed: Vec<String>,
    /// Whether the hook rewrote the arguments of the call.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub rewrote: bool,
    #[serde(default)]
    pub latency_ms: u64,
}

impl HookRun {
    fn is_after(&self) -> bool {
        self.hook.rsplit(' ').nth(1) == Some(HookEvent::PostToolUse.as_str())
    }
}

/// Outcome of the hooks that ran for a tool call.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct CallHooks {
    pub runs: Vec<HookRun>,
    /// Rewritten arguments, which the policy judges and the tool receives. Absent if no hook rewrote the arguments.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub arguments: Option<CallArguments>,
}

impl CallHooks {
    /// Returns the first hook that denied the call, and its reason. Returns `None` if no hook denied it.
    pub fn denial(&self) -> Option<(&str, &str)> {
        let run = self.runs.iter().find(|run| run.decision == HookDecision::Deny)?;
        Some((&run.hook, run.reason.as_deref().unwrap_or("no reason given")))
    }

    /// Returns the reasons why hooks require approval of the call, or `None` if no hook does.
    pub fn question(&self) -> Option<String> {
        let asks = self.runs.iter().filter(|run| run.decision == HookDecision::Ask);
        let asks: Vec<String> = asks
            .map(|run| match &run.reason {
                Some(reason) => format!("the hook {} asks: {reason}", run.hook),
                None => format!("the hook {} asks for approval", run.hook),
            })
            .collect();
        (!asks.is_empty()).then(|| asks.join("; "))
    }

    /// Returns a note telling the user which hooks rewrote the call: `rewritten by the hook …`.
    pub fn rewriting(&self) -> Option<String> {
        self.arguments.as_ref()?;
        let hooks: Vec<&str> = self.runs.iter().filter(|run| run.rewrote).map(|run| run.hook.as_str()).collect();
        Some(format!("rewritten by the hook {}", hooks.join(" and the hook ")))
    }

    /// Returns a note telling the user which files hooks changed before they were written.
    pub fn changes(&self) -> Option<String> {
        let words = |run: &HookRun| format!("the hook {} changed {}", run.hook, run.changed.join(", "));
        let changes: Vec<String> = self.runs.iter().filter(|run| !run.changed.is_empty()).map(words).collect();
        (!changes.is_empty()).then(|| changes.join("; "))
    }

    /// Replaces the recorded runs of `PostToolUse` hooks.
    pub fn add_runs_after(&mut self, runs: Vec<HookRun>) {
        self.runs.retain(|run| !run.is_after());
        self.runs.extend(runs);
    }

    /// Returns whether any `PostToolUse` hook runs are recorded.
    pub fn has_runs_after(&self) -> bool {
        self.runs.iter().any(HookRun::is_after)
    }

    /// Returns the notes for the model: the rewritten arguments, and context added by hooks.
    pub fn note(&self) -> Option<String> {
        let mut note = String::new();
        if let (Some(words), Some(CallArguments::Object(arguments))) = (self.rewriting(), &self.arguments) {
            let arguments = serde_json::to_string(arguments).unwrap_or_default();
            // Writing to a string cannot fail.
            let _ = writeln!(note, "[This call was {words}; the rewritten arguments are {arguments}]");
        }
        for run in &self.runs {
            if let Some(context) = &run.context {
                let _ = writeln!(note, "[From the hook {}]\n{}", run.hook, context.trim_end());
            }
        }
        (!note.is_empty()).then_some(note)
    }
}

/// Outcome of the hooks for an event that is not tied to a tool call.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct EventHooks {
    /// Hook that blocked the prompt or makes the model continue, and its reason.
    pub block: Option<(String, String)>,
    /// Messages for the model, each preceded by the name of its hook.
    pub context: Vec<(String, String)>,
    /// Hook failures and messages for the user.
    pub notices: Vec<String>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_event_is_found_by_its_name() {
        for event in HookEvent::ALL {
            assert_eq!(HookEvent::from_name(event.as_str()), Some(event));
            let only: HookEvents = [event].into_iter().collect();
            assert!(HookEvent::ALL.into_iter().all(|other| only.contains(other) == (other == event)));
        }
        assert_eq!(HookEvent::from_name("pretooluse"), None);
    }

    #[test]
    fn a_hook_run_is_after_the_call_because_of_its_event_and_not_its_file_name() {
        let run = |hook: &str| HookRun { hook: hook.to_owned(), ..HookRun::default() };
        let before = run("/home/PostToolUse 1/hooks.toml PreToolUse 1");
        let mut hooks = CallHooks { runs: vec![before.clone(), run("hooks.toml PostToolUse 2")], arguments: None };
        assert!(hooks.has_runs_after());
        hooks.add_runs_after(Vec::new());
        assert_eq!((hooks.has_runs_after(), hooks.runs), (false, vec![before]));
    }

    #[test]
    fn the_first_denial_applies_and_all_approval_requests_are_named() {
        let run = |hook: &str, decision, reason: Option<&str>| HookRun {
            hook: hook.to_owned(),
            decision,
            reason: reason.map(str::to_owned),
            ..HookRun::default()
        };
        let hooks = CallHooks {
            runs: vec![
                run("a", HookDecision::Ask, Some("why")),
                run("b", HookDecision::Ask, None),
                run("c", HookDecision::Deny, None),
            ],
            arguments: None,
        };
        assert_eq!(hooks.denial(), Some(("c", "no reason given")));
        assert_eq!(hooks.question().as_deref(), Some("the hook a asks: why; the hook b asks for approval"));
        assert_eq!((hooks.rewriting(), hooks.note()), (None, None));
    }
}
