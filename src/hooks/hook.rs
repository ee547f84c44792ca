//! Hooks, and the list of hooks defined by a file.

use super::condition::HookCondition;
use super::matcher::Matcher;
use crate::protocol::HookEvent;
use serde::Serialize;

/// Default hook timeout, in seconds.
const DEFAULT_TIMEOUT_SECONDS: u64 = 60;
/// Maximum hook timeout, in seconds. Longer timeouts are reduced to this value.
const MAX_TIMEOUT_SECONDS: u64 = 600;
/// Maximum size of a hook file, in bytes.
pub(crate) const MAX_FILE_BYTES: usize = 1 << 20;
/// Maximum number of hooks in a file.
pub(super) const MAX_HOOKS: usize = 100;
/// Maximum size of a command, in bytes.
const MAX_COMMAND_BYTES: usize = 16 << 10;

/// Owner of a hook.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum HookOrigin {
    /// The user's own configuration.
    User,
    /// A project that the user must trust.
    Project,
    /// A plugin that the user added.
    Plugin,
}

/// Hook defined by a hook file.
#[derive(Debug, Clone)]
pub(crate) struct Hook {
    pub event: HookEvent,
    pub matcher: Matcher,
    /// Further condition on a call; `None` if the hook runs for all calls that the matcher selects.
    pub condition: Option<HookCondition>,
    pub action: HookAction,
    pub origin: HookOrigin,
    /// Display path of the hook file.
    pub file: String,
    /// 1-based position among the file's hooks for this event; 0 if the file cannot be read.
    pub number: usize,
}

/// Action that a hook takes when its event occurs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum HookAction {
    /// Command line to run in the shell.
    Command {
        line: String,
        timeout_seconds: u64,
        /// Whether the user allows this command to run outside the sandbox.
        unsandboxed: bool,
    },
    /// The hook cannot run for the given reason. Calls that it matches require approval.
    Unusable(String),
}

impl Hook {
    /// Returns the hook's name, such as `.claude/settings.json PreToolUse 1`.
    pub(crate) fn name(&self) -> String {
        if self.number == 0 { self.file.clone() } else { format!("{} {} {}", self.file, self.event.as_str(), self.number) }
    }

    /// Returns the calls or events for which the hook runs, such as `[Bash] if Bash(git commit:*)`.
    pub(crate) fn selection(&self) -> String {
        let condition = self.condition.as_ref().map(|condition| format!(" if {}", condition.text)).unwrap_or_default();
        format!("[{}]{condition}", self.matcher.text())
    }
}

/// Hooks defined by a file.
#[derive(Debug, Clone, Default)]
pub(crate) struct HookFile {
    pub hooks: Vec<Hook>,
    /// Ignored parts of the file, each with the reason why it is ignored.
    pub notes: Vec<String>,
}

impl HookFile {
    /// Returns a substitute for a hook whose file cannot be read. It makes every call require approval, because
    /// the file might deny the call.
    pub(crate) fn unreadable(file: &str, origin: HookOrigin, why: impl Into<String>) -> Self {
        let mut hooks = Self::default();
        let why = format!("cannot read the hooks: {}", why.into());
        hooks.hooks.push(Hook {
            event: HookEvent::PreToolUse,
            matcher: Matcher::All,
            condition: None,
            action: HookAction::Unusable(why),
            origin,
            file: file.to_owned(),
            number: 0,
        });
        hooks
    }

    /// Adds a hook. A file with more than `MAX_HOOKS` hooks is treated as unreadable.
    pub(super) fn add(&mut self, event: HookEvent, matcher: Matcher, action: HookAction, (file, origin): (&str, HookOrigin)) {
        if self.hooks.len() == MAX_HOOKS {
            let why = format!("the file has more than {MAX_HOOKS} hooks; remove some");
            let all = Self::unreadable(file, origin, why).hooks;
            self.hooks.extend(all);
            return;
        }
        if self.hooks.len() > MAX_HOOKS {
            return;
        }
        let number = 1 + self.hooks.iter().filter(|hook| hook.event == event).count();
        self.hooks.push(Hook { event, matcher, condition: None, action, origin, file: file.to_owned(), number });
    }

    /// Adds a hook that runs only for calls that also meet a condition.
    pub(super) fn add_with_condition(
        &mut self,
        event: HookEvent,
        (matcher, condition): (Matcher, Option<HookCondition>),
        action: HookAction,
        from: (&str, HookOrigin),
    ) {
        self.add(event, matcher, action, from);
        // The substitute for an unreadable file has no condition.
        if let Some(hook) = self.hooks.last_mut().filter(|hook| hook.number != 0) {
            hook.condition = condition;
        }
    }
}

/// Returns the action for a command line. The action is unusable, with a reason, if the command cannot run.
pub(super) fn command(line: &str, timeout: Option<f64>, unsandboxed: bool) -> HookAction {
    let unusable = |why: String| HookAction::Unusable(why);
    if line.trim().is_empty() {
        return unusable("`command` is empty".to_owned());
    }
    if line.contains('\0') {
        return unusable("`command` contains a NUL byte".to_owned());
    }
    if line.len() > MAX_COMMAND_BYTES {
        return unusable(format!("`command` is {} bytes; the limit is {MAX_COMMAND_BYTES}; move it to a script", line.len()));
    }
    let timeout_seconds = match timeout {
        None => DEFAULT_TIMEOUT_SECONDS,
        Some(seconds) if seconds.is_finite() && seconds > 0.0 => {
            // Fractional seconds are rounded up.
            (seconds.ceil() as u64).clamp(1, MAX_TIMEOUT_SECONDS)
        }
        Some(seconds) => return unusable(format!("`timeout` is {seconds}; it must be a number of seconds above 0")),
    };
    HookAction::Command { line: line.to_owned(), timeout_seconds, unsandboxed }
}
