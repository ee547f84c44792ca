//! A session's hooks, which are read when the session starts.

use crate::hooks::{Hook, HookAction, HookOrigin};
use crate::protocol::{AskingAgent, HookEvent, HookEvents, SessionId};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Function that checks whether a hook matches the content that the user trusts or has pinned. Returns the files that
/// the hook runs.
pub(crate) type CheckHook = Arc<dyn Fn(&Hook) -> Result<HookFiles, String> + Send + Sync>;

/// Files outside the workspace that a hook must be able to read.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct HookFiles {
    pub programs: Vec<PathBuf>,
    /// Folder of the plugin to which the hook belongs.
    pub plugin: Option<PathBuf>,
}

/// A session's hooks. Cheap to clone.
#[derive(Clone)]
pub(crate) struct SessionHooks {
    hooks: Arc<[Hook]>,
    check: CheckHook,
    /// Working directory for hooks that come from the user or from plugins. A project's hooks start in the workspace.
    directory: PathBuf,
    /// Agent to which the session belongs, and the session that started that agent.
    agent: Option<(AskingAgent, SessionId)>,
}

impl SessionHooks {
    /// Returns the hooks, or `None` if there are none.
    pub(crate) fn new(hooks: Vec<Hook>, check: CheckHook, directory: PathBuf) -> Option<Self> {
        (!hooks.is_empty()).then(|| Self { hooks: hooks.into(), check, directory, agent: None })
    }

    /// Returns the hooks for an agent's session, the start and end of which have events of their own.
    #[must_use]
    pub(crate) fn for_agent(mut self, agent: AskingAgent, session: SessionId) -> Self {
        self.agent = Some((agent, session));
        self
    }

    /// Returns the agent to which the session belongs, and the session that started that agent.
    pub(in crate::tools) fn agent(&self) -> Option<(&AskingAgent, &SessionId)> {
        self.agent.as_ref().map(|(agent, session)| (agent, session))
    }

    /// Returns the directory in which a hook starts.
    pub(in crate::tools) fn directory(&self, hook: &Hook, workspace: &Path) -> PathBuf {
        match hook.origin {
            HookOrigin::User | HookOrigin::Plugin => self.directory.clone(),
            HookOrigin::Project => workspace.to_owned(),
        }
    }

    /// Returns the events for which there are hooks. A hook that cannot run matters only before a call.
    pub(crate) fn events(&self) -> HookEvents {
        let matters = |hook: &&Hook| hook.event == HookEvent::PreToolUse || matches!(hook.action, HookAction::Command { .. });
        self.hooks.iter().filter(matters).filter_map(|hook| self.moment(hook.event)).collect()
    }

    /// Maps a hook event to the event of this session at which such hooks run. Returns `None` if they do not run.
    fn moment(&self, event: HookEvent) -> Option<HookEvent> {
        match (event, &self.agent) {
            (HookEvent::SubagentStart, Some(_)) => Some(HookEvent::UserPromptSubmit),
            (HookEvent::SubagentStop, Some(_)) => Some(HookEvent::Stop),
            (HookEvent::SubagentStart | HookEvent::SubagentStop, None)
            | (HookEvent::UserPromptSubmit | HookEvent::SessionStart | HookEvent::Stop, Some(_)) => None,
            (event, _) => Some(event),
        }
    }

    /// Returns the hooks for an event that match one of these names.
    pub(crate) fn matching<'a>(&'a self, event: HookEvent, names: &'a [String]) -> impl Iterator<Item = &'a Hook> {
        self.hooks.iter().filter(move |hook| hook.event == event && hook.matcher.matches(names))
    }

    /// Returns the hooks for an event that has no names to match.
    pub(crate) fn for_event(&self, event: HookEvent) -> impl Iterator<Item = &Hook> {
        self.hooks.iter().filter(move |hook| hook.event == event)
    }

    /// Returns the files that a hook runs. Reads them and fails if they do not match the content that the user trusts
    /// or has pinned.
    pub(crate) fn check(&self, hook: &Hook) -> Result<HookFiles, String> {
        (self.check)(hook)
    }
}
