//! The hooks of a session, read at its start.

use crate::hooks::{Hook, HookAction, HookOrigin};
use crate::protocol::{AskingAgent, HookEvent, HookEvents, SessionId};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Checks that a hook matches the content that the user trusts or has pinned. Returns the files that it runs.
pub(crate) type CheckHook = Arc<dyn Fn(&Hook) -> Result<HookFiles, String> + Send + Sync>;

/// Files outside the workspace that a hook must be able to read.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct HookFiles {
    pub programs: Vec<PathBuf>,
    /// Folder of the plugin that contains the hook.
    pub plugin: Option<PathBuf>,
}

/// The hooks of a session. Cheap to clone.
#[derive(Clone)]
pub(crate) struct SessionHooks {
    hooks: Arc<[Hook]>,
    check: CheckHook,
    /// Working directory for hooks of the user and of plugins. Hooks of a project start in the workspace.
    directory: PathBuf,
    /// Agent that the session belongs to, and the session that started it.
    agent: Option<(AskingAgent, SessionId)>,
}

impl SessionHooks {
    /// Returns the hooks; `None` if there are none.
    pub(crate) fn new(hooks: Vec<Hook>, check: CheckHook, directory: PathBuf) -> Option<Self> {
        (!hooks.is_empty()).then(|| Self { hooks: hooks.into(), check, directory, agent: None })
    }

    /// Returns the hooks for the session of an agent, whose start and end have their own events.
    #[must_use]
    pub(crate) fn for_agent(mut self, agent: AskingAgent, session: SessionId) -> Self {
        self.agent = Some((agent, session));
        self
    }

    /// Returns the agent that the session belongs to, and the session that started it.
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

    /// Returns the events that have hooks. A hook that cannot run is relevant only before a call.
    pub(crate) fn events(&self) -> HookEvents {
        let matters = |hook: &&Hook| hook.event == HookEvent::PreToolUse || matches!(hook.action, HookAction::Command { .. });
        self.hooks.iter().filter(matters).filter_map(|hook| self.moment(hook.event)).collect()
    }

    /// Maps an event of hooks to the event of this session at which they run; `None` if they do not run.
    fn moment(&self, event: HookEvent) -> Option<HookEvent> {
        match (event, &self.agent) {
            (HookEvent::SubagentStart, Some(_)) => Some(HookEvent::UserPromptSubmit),
            (HookEvent::SubagentStop, Some(_)) => Some(HookEvent::Stop),
            (HookEvent::SubagentStart | HookEvent::SubagentStop, None)
            | (HookEvent::UserPromptSubmit | HookEvent::SessionStart | HookEvent::Stop, Some(_)) => None,
            (event, _) => Some(event),
        }
    }

    /// Returns the hooks of an event that match one of these names.
    pub(crate) fn matching<'a>(&'a self, event: HookEvent, names: &'a [String]) -> impl Iterator<Item = &'a Hook> {
        self.hooks.iter().filter(move |hook| hook.event == event && hook.matcher.matches(names))
    }

    /// Returns the hooks of an event that has no names to match.
    pub(crate) fn for_event(&self, event: HookEvent) -> impl Iterator<Item = &Hook> {
        self.hooks.iter().filter(move |hook| hook.event == event)
    }

    /// Returns the files that a hook runs, if they match the content that the user trusts or has pinned. Reads them.
    pub(crate) fn check(&self, hook: &Hook) -> Result<HookFiles, String> {
        (self.check)(hook)
    }
}
