//! Runs hooks: builds their input for an event and applies their responses.

use super::command::{CommandOutcome, RunPlace, run_command};
use crate::hooks::{Hook, HookResponse};
use crate::ports::{BoxFuture, HookTrigger, Hooks};
use crate::protocol::{CallHooks, EventHooks, HookDecision, HookEvent, Mode, ToolCall, ToolResult};
use crate::tools::session_hooks::SessionHooks;
use crate::tools::settings::ToolSettings;
use crate::tools::toolset::Toolset;
use futures_util::FutureExt;
use serde_json::{Map, Value, json};
use std::sync::Arc;
use tokio_util::sync::CancellationToken;

/// Notification type sent when a task ends.
const IDLE: &str = "idle_prompt";

/// Runs a session's hooks.
pub(in crate::tools) struct HookRunner {
    pub(super) tools: Arc<Toolset>,
    pub(super) hooks: SessionHooks,
}

impl HookRunner {
    pub(in crate::tools) fn new(tools: Arc<Toolset>, hooks: SessionHooks) -> Self {
        Self { tools, hooks }
    }

    pub(super) fn settings(&self) -> &Arc<ToolSettings> {
        self.tools.settings()
    }

    /// Returns the part of the input that all hooks have in common.
    pub(super) fn input(&self, event: HookEvent) -> Map<String, Value> {
        let settings = self.settings();
        let own = settings.session.id.as_ref().map_or("", |session| session.as_str());
        let agent = self.hooks.agent();
        let mut input = json!({
            "session_id": agent.map_or(own, |(_, session)| session.as_str()),
            "cwd": settings.workspace.to_string_lossy(),
            "hook_event_name": event.as_str(),
        });
        if let Some(agents) = &settings.session.agents {
            input["permission_mode"] = permission_mode(agents.runner().mode()).into();
        }
        if let Some((agent, _)) = agent {
            input["agent_id"] = agent.agent_session_id.as_str().into();
            input["agent_type"] = agent.name.as_str().into();
        }
        match input {
            Value::Object(input) => input,
            _ => Map::new(),
        }
    }

    /// Runs a hook and redacts secrets in its response.
    pub(super) async fn run(
        &self,
        hook: &Hook,
        input: &Map<String, Value>,
        stop: &CancellationToken,
        place: RunPlace,
    ) -> CommandOutcome {
        let outcome = run_command((&self.hooks, hook), input, self.settings(), (stop.clone(), place)).await;
        let hide = |text: String| self.settings().redactor.redact(&text).text.into_owned();
        match outcome {
            CommandOutcome::Response(response) => CommandOutcome::Response(HookResponse {
                reason: response.reason.map(hide),
                context: response.context.map(hide),
                message: response.message.map(hide),
                ..response
            }),
            CommandOutcome::NotRun(why) => CommandOutcome::NotRun(hide(why)),
            CommandOutcome::Failed(why) => CommandOutcome::Failed(hide(why)),
        }
    }

    /// Runs the hooks for an event that is not a call. If a hook fails, this is reported, and the remaining hooks still
    /// run.
    async fn run_all(
        &self,
        (event, detail): (HookEvent, &str),
        input: Map<String, Value>,
        stop: &CancellationToken,
        outcome: &mut EventHooks,
    ) {
        let names = if detail.is_empty() { Vec::new() } else { vec![detail.to_owned()] };
        let matching: Vec<Hook> = match event {
            // These events have no name to match.
            HookEvent::UserPromptSubmit | HookEvent::Stop => self.hooks.for_event(event).cloned().collect(),
            _ => self.hooks.matching(event, &names).cloned().collect(),
        };
        for hook in matching {
            let name = hook.name();
            match self.run(&hook, &input, stop, RunPlace::Workspace).await {
                CommandOutcome::Response(response) => {
                    outcome.notices.extend(response.message.map(|message| format!("message from the hook {name}: {message}")));
                    outcome.context.extend(response.context.map(|context| (name.clone(), context)));
                    if response.decision == HookDecision::Deny && outcome.block.is_none() {
                        outcome.block = Some((name, response.reason.unwrap_or_default()));
                    }
                }
                CommandOutcome::NotRun(why) => outcome.notices.push(format!("the hook {name} was not run: {why}")),
                CommandOutcome::Failed(why) => outcome.notices.push(format!("the hook {name} failed: {why}")),
            }
        }
    }

    async fn session_start(&self, resumed: bool, stop: &CancellationToken, outcome: &mut EventHooks) {
        let source = if resumed { "resume" } else { "startup" };
        let mut input = self.input(HookEvent::SessionStart);
        input.insert("source".to_owned(), source.into());
        self.run_all((HookEvent::SessionStart, source), input, stop, outcome).await;
        report_objection(outcome);
    }

    /// Runs the hooks for the start of an agent. They can add context, but cannot prevent the agent from starting.
    async fn agent_start(&self, agent: &str, prompt: String, stop: &CancellationToken) -> EventHooks {
        let mut outcome = EventHooks::default();
        let mut input = self.input(HookEvent::SubagentStart);
        input.insert("prompt".to_owned(), prompt.into());
        self.run_all((HookEvent::SubagentStart, agent), input, stop, &mut outcome).await;
        report_objection(&mut outcome);
        outcome
    }

    async fn prompt(&self, text: String, (first, resumed): (bool, bool), stop: &CancellationToken) -> EventHooks {
        let mut outcome = EventHooks::default();
        if first {
            self.session_start(resumed, stop, &mut outcome).await;
        }
        let mut input = self.input(HookEvent::UserPromptSubmit);
        input.insert("prompt".to_owned(), text.into());
        self.run_all((HookEvent::UserPromptSubmit, ""), input, stop, &mut outcome).await;
        outcome
    }
}

impl Hooks for HookRunner {
    fn before_call(&self, call: ToolCall, stop: CancellationToken) -> BoxFuture<'_, CallHooks> {
        async move { self.before(call, &stop).await }.boxed()
    }

    fn after_call(
        &self,
        call: ToolCall,
        result: ToolResult,
        (ran_before, stop): (bool, CancellationToken),
    ) -> BoxFuture<'_, ToolResult> {
        async move { self.after(call, result, ran_before, &stop).await }.boxed()
    }

    fn on_occasion(&self, occasion: HookTrigger, stop: CancellationToken) -> BoxFuture<'_, EventHooks> {
        async move {
            let mut outcome = EventHooks::default();
            match occasion {
                HookTrigger::Prompt { text, first, resumed } => {
                    return match self.hooks.agent() {
                        Some((agent, _)) => self.agent_start(&agent.name, text, &stop).await,
                        None => self.prompt(text, (first, resumed), &stop).await,
                    };
                }
                HookTrigger::SessionStart { resumed } => self.session_start(resumed, &stop, &mut outcome).await,
                HookTrigger::Stop { response, repeated } => {
                    let (event, agent) = match self.hooks.agent() {
                        Some((agent, _)) => (HookEvent::SubagentStop, agent.name.as_str()),
                        None => (HookEvent::Stop, ""),
                    };
                    let mut input = self.input(event);
                    input.insert("stop_hook_active".to_owned(), repeated.into());
                    input.insert("last_assistant_message".to_owned(), response.into());
                    self.run_all((event, agent), input, &stop, &mut outcome).await;
                }
                HookTrigger::Compaction { manual } => {
                    let trigger = if manual { "manual" } else { "auto" };
                    let mut input = self.input(HookEvent::PreCompact);
                    input.insert("trigger".to_owned(), trigger.into());
                    self.run_all((HookEvent::PreCompact, trigger), input, &stop, &mut outcome).await;
                    report_objection(&mut outcome);
                }
                // The user waits for the session, not for its agents.
                HookTrigger::Notification { kind: IDLE, .. } if self.hooks.agent().is_some() => {}
                HookTrigger::Notification { kind, message } => {
                    let mut input = self.input(HookEvent::Notification);
                    input.insert("notification_type".to_owned(), kind.into());
                    input.insert("message".to_owned(), message.into());
                    self.run_all((HookEvent::Notification, kind), input, &stop, &mut outcome).await;
                    report_objection(&mut outcome);
                }
            }
            outcome
        }
        .boxed()
    }
}

/// Converts the block of an event that no hook can block to a notice.
fn report_objection(outcome: &mut EventHooks) {
    if let Some((hook, reason)) = outcome.block.take() {
        outcome.notices.push(format!("the hook {hook} failed: {reason}"));
    }
}

/// Returns Claude Code's name of a mode.
fn permission_mode(mode: Mode) -> &'static str {
    match mode {
        Mode::Plan => "plan",
        Mode::Ask => "default",
        Mode::AutoEdit => "acceptEdits",
        Mode::Auto => "auto",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_block_of_an_event_that_no_hook_can_block_becomes_a_notice() {
        let mut outcome = EventHooks { block: Some(("h".to_owned(), "no".to_owned())), ..EventHooks::default() };
        report_objection(&mut outcome);
        assert!(outcome.block.is_none());
        assert_eq!(outcome.notices, ["the hook h failed: no"]);
    }
}
