//! Handling of requests that concern an open session.

use super::answers::{Recipient, WaitCondition};
use super::{ClientConnection, ConnectionAction, ConnectionStage, unknown_approval, value};
use crate::protocol::{
    Amendment, Approval, BudgetLimit, BudgetScope, BudgetUnit, Command, Decision, DiscardedEffect, Effects, ElicitationAnswer,
    GOAL_ROUNDS, Goal, GoalState, HostCommand, HostRequest, MemoryRequest, SessionQuery, SessionStatus, TaskId, validate_check,
};
use crate::serve::fault::{FaultCode, RpcError};
use crate::serve::methods::{
    ActionDecision, AnswerQuestion, ApproveAction, CancelTask, Cancelling, DecideGoal, DecideMemory, GetPatchPreview,
    GoalDecided, GoalDecision, MemoryDecision, QuestionAnswered, SessionStateTold, Shutdown, StartTask, StopAgent, StoppingAgent,
    TaskGoal, params,
};
use serde_json::{Map, Value};

impl ClientConnection {
    pub(super) fn start(&mut self, slot: Recipient, method: &str, given: Map<String, Value>) {
        let begins = self.waiting.iter().any(|(_, wait)| matches!(wait, WaitCondition::Begin));
        let outcome = params::<StartTask>(method, given).and_then(|asked| {
            let live = self.live_session()?;
            if asked.prompt.trim().is_empty() {
                return Err(RpcError::new(FaultCode::InvalidParams, "`prompt` is empty"));
            }
            if asked.task_options.max_steps == Some(0) {
                return Err(RpcError::new(FaultCode::InvalidParams, "`taskOptions.maxSteps` is 0; must be at least 1"));
            }
            if live.status == SessionStatus::Paused {
                return Err(live.is_paused());
            }
            let goal = asked.task_options.goal.map(|goal| goal_of(&asked.prompt, goal)).transpose()?;
            let goal_runs = live.goal.as_ref().is_some_and(GoalState::is_running);
            if begins || live.is_running() || goal_runs {
                let message = "a task is already running; wait for it to end, or stop it with `CancelTask`";
                return Err(RpcError::new(FaultCode::TaskRunning, message));
            }
            let steps = asked.task_options.max_steps.map_or(live.opened.max_steps, |steps| steps.min(live.opened.max_steps));
            let other = (live.steps != steps).then_some(steps);
            live.steps = steps;
            Ok((goal.map_or(Command::Prompt { text: asked.prompt }, |goal| Command::SetGoal { goal }), other))
        });
        match outcome {
            Ok((command, steps)) => {
                let limit = |steps| BudgetLimit { scope: BudgetScope::Task, unit: BudgetUnit::Steps, limit: f64::from(steps) };
                self.acts.extend(steps.map(|steps| ConnectionAction::Do(Command::SetBudget { limit: limit(steps) })));
                self.acts.push(ConnectionAction::Do(command));
                self.waiting.push((slot, WaitCondition::Begin));
            }
            Err(fault) => self.answer(slot, Err(fault)),
        }
    }

    pub(super) fn decide_goal(&mut self, slot: Recipient, method: &str, given: Map<String, Value>) {
        let outcome = params::<DecideGoal>(method, given).and_then(|asked| {
            let invalid = |message: String| RpcError::new(FaultCode::InvalidParams, message);
            let live = self.live_session_until_end()?;
            if live.goal.is_none() {
                return Err(RpcError::new(FaultCode::NoTask, "no goal is active"));
            }
            let command = match (asked.decision, asked.check) {
                (GoalDecision::Stop, None) => Command::StopGoal,
                (GoalDecision::Stop, Some(_)) => return Err(invalid("`check` can only be set with `continue`".to_owned())),
                (GoalDecision::Continue, None) => Command::Continue,
                (GoalDecision::Continue, Some(check)) => {
                    validate_check(&check).map_err(invalid)?;
                    Command::SetGoalCheck { check }
                }
            };
            Ok((command, asked.decision))
        });
        let outcome = outcome.map(|(command, decision)| {
            self.acts.push(ConnectionAction::Do(command));
            value(&GoalDecided { decision })
        });
        self.answer(slot, outcome);
    }

    pub(super) fn cancel(&mut self, slot: Recipient, method: &str, given: Map<String, Value>) {
        let outcome = params::<CancelTask>(method, given).and_then(|asked| {
            let live = self.live_session_until_end()?;
            let runs = live.is_running() && live.task.as_ref().is_some_and(|task| task.task_id.as_str() == asked.task_id);
            if !runs {
                return Err(RpcError::new(FaultCode::NoTask, format!("task `{}` is not running", asked.task_id)));
            }
            live.cancels_task = true;
            Ok(asked.force)
        });
        let outcome = outcome.map(|force| {
            self.acts.push(ConnectionAction::Do(if force { Command::Kill } else { Command::Cancel }));
            value(&Cancelling { status: "cancelling" })
        });
        self.answer(slot, outcome);
    }

    pub(super) fn state(&mut self, slot: Recipient) {
        let outcome = self.live_session_until_end().map(|live| {
            value(&SessionStateTold {
                session_id: live.opened.session_id.clone(),
                session_status: live.status,
                task: live.task.clone(),
                pending_approvals: live.approvals.clone(),
                pending_questions: live.questions.clone(),
                planned_steps: live.planned_steps.clone(),
                goal: live.goal.clone(),
            })
        });
        self.answer(slot, outcome);
    }

    pub(super) fn preview(&mut self, slot: Recipient, method: &str, given: Map<String, Value>) {
        let outcome = params::<GetPatchPreview>(method, given).and_then(|asked| {
            let live = self.live_session()?;
            match asked.task_id {
                None => Ok(None),
                Some(id) if live.knows_task(&id) => Ok(Some(TaskId::new(id))),
                Some(id) => Err(RpcError::new(FaultCode::NoTask, format!("task `{id}` does not exist in this session"))),
            }
        });
        match outcome {
            Ok(task_id) => {
                self.acts.push(ConnectionAction::Ask(SessionQuery::ListChanges { task_id }));
                self.waiting.push((slot, WaitCondition::Changes));
            }
            Err(fault) => self.answer(slot, Err(fault)),
        }
    }

    pub(super) fn approve(&mut self, slot: Recipient, method: &str, given: Map<String, Value>) {
        let known = params::<ApproveAction>(method, given).and_then(|asked| {
            let same = |wait: &WaitCondition| matches!(wait, WaitCondition::Decided { approval_id } if *approval_id == asked.approval_id);
            let is_decided = self.waiting.iter().any(|(_, wait)| same(wait));
            let live = self.live_session_until_end()?;
            let approval = live.approvals.iter().find(|approval| approval.approval_id.as_str() == asked.approval_id);
            let approval = approval.filter(|_| !is_decided).ok_or_else(|| unknown_approval(&asked.approval_id))?;
            let decision = decision(approval, &asked).map_err(|message| RpcError::new(FaultCode::InvalidParams, message))?;
            Ok((approval.approval_id.clone(), decision, asked.approval_id))
        });
        match known {
            Ok((approval_id, decision, asked_id)) => {
                self.acts.push(ConnectionAction::Do(Command::Decide { approval_id, decision }));
                self.waiting.push((slot, WaitCondition::Decided { approval_id: asked_id }));
            }
            Err(fault) => self.answer(slot, Err(fault)),
        }
    }

    pub(super) fn answer_question(&mut self, slot: Recipient, method: &str, given: Map<String, Value>) {
        let outcome = params::<AnswerQuestion>(method, given).and_then(|asked| {
            let live = self.live_session_until_end()?;
            let place = live.questions.iter().position(|question| question.elicitation_id == asked.elicitation_id);
            let unknown = || RpcError::new(FaultCode::InvalidParams, format!("no open question `{}`", asked.elicitation_id));
            let place = place.ok_or_else(unknown)?;
            if asked.answer.as_ref().is_some_and(|answer| answer.trim().is_empty()) {
                return Err(RpcError::new(FaultCode::InvalidParams, "`answer` is empty; leave it out to decline"));
            }
            let elicitation_id = live.questions.remove(place).elicitation_id;
            let status = if asked.answer.is_some() { "answered" } else { "declined" };
            let answer = asked.answer.map_or(ElicitationAnswer::Decline, ElicitationAnswer::to_question);
            Ok((HostCommand::AnswerElicitation { elicitation_id, answer }, status))
        });
        let outcome = outcome.map(|(command, status)| {
            self.acts.push(ConnectionAction::DoInHost(command));
            value(&QuestionAnswered { status })
        });
        self.answer(slot, outcome);
    }

    pub(super) fn stop_agent(&mut self, slot: Recipient, method: &str, given: Map<String, Value>) {
        let outcome = params::<StopAgent>(method, given).and_then(|asked| {
            let agent_session_id = asked.agent_session_id;
            if !self.live_session_until_end()?.agents.contains(&agent_session_id) {
                return Err(RpcError::new(FaultCode::InvalidParams, format!("no running agent `{agent_session_id}`")));
            }
            Ok(HostCommand::StopAgent { agent_session_id })
        });
        let outcome = outcome.map(|command| {
            self.acts.push(ConnectionAction::DoInHost(command));
            value(&StoppingAgent { status: "stopping" })
        });
        self.answer(slot, outcome);
    }

    pub(super) fn decide_memory(&mut self, slot: Recipient, method: &str, given: Map<String, Value>) {
        let outcome = params::<DecideMemory>(method, given).and_then(|asked| {
            let DecideMemory { proposal_id: id, decision, digest } = asked;
            match (decision, digest) {
                (MemoryDecision::Apply, Some(digest)) => Ok(MemoryRequest::Apply { id, digest }),
                (MemoryDecision::Apply, None) => {
                    let message = "`digest` is missing: the digest of the proposal that the user saw";
                    Err(RpcError::new(FaultCode::InvalidParams, message))
                }
                (MemoryDecision::Drop, _) => Ok(MemoryRequest::Drop { id }),
            }
        });
        self.ask_memory(slot, outcome);
    }

    pub(super) fn ask_memory(&mut self, slot: Recipient, request: Result<MemoryRequest, RpcError>) {
        match request.and_then(|request| self.live_session().map(|_| request)) {
            Ok(request) => {
                let request = HostRequest::Memory(request);
                // A response does not name its request, so only one request runs at a time.
                if self.waiting.iter().any(|(_, wait)| matches!(wait, WaitCondition::Memory)) {
                    self.look_ups.push_back(request);
                } else {
                    self.acts.push(ConnectionAction::LookUp(request));
                }
                self.waiting.push((slot, WaitCondition::Memory));
            }
            Err(fault) => self.answer(slot, Err(fault)),
        }
    }

    pub(super) fn shutdown(&mut self, slot: Recipient, method: &str, given: Map<String, Value>) {
        let asked = match params::<Shutdown>(method, given) {
            Ok(asked) => asked,
            Err(fault) => return self.answer(slot, Err(fault)),
        };
        if let Some(first) = self.leaving.take() {
            // A repeated request answers the first one, because the client may have become impatient.
            self.answer(first, Err(RpcError::new(FaultCode::Internal, "requested again")));
        }
        self.leaving = Some(slot);
        match &mut self.stage {
            ConnectionStage::Live(live) => {
                live.cancelled |= live.is_running();
                if live.is_running() {
                    self.acts.push(ConnectionAction::Do(if asked.force { Command::Kill } else { Command::Finish }));
                }
                // Nothing is running in a paused session, so it can end immediately.
                if !live.is_running() || live.status == SessionStatus::Paused {
                    live.quit(&mut self.acts);
                }
            }
            ConnectionStage::Empty => self.exit_if_idle(),
            // The session ends as soon as it is open.
            ConnectionStage::Opening { .. } => {}
        }
    }
}

/// Returns the decision that a client made. Returns an error if the approval does not permit it.
fn decision(approval: &Approval, asked: &ApproveAction) -> Result<Decision, String> {
    let effects = approval.effects.as_deref();
    if let Some(digest) = &asked.digest
        && effects.is_none_or(|effects| effects.digest != *digest)
    {
        return Err("`digest` does not match the effects of this approval".to_owned());
    }
    match asked.decision {
        ActionDecision::Approved => {
            if let Some(obstacle) = effects.and_then(Effects::approval_obstacle) {
                return Err(format!("these effects cannot be approved: {obstacle}"));
            }
            asked.paths.as_ref().map_or(Ok(Decision::Approved), |paths| select_effects(effects, paths, asked.digest.as_deref()))
        }
        ActionDecision::ApprovedInCleanContext if approval.plan.is_none() => {
            Err("`approved_in_clean_context` is valid only for a plan (`plan`)".to_owned())
        }
        ActionDecision::ApprovedInCleanContext => Ok(Decision::ApprovedInCleanContext),
        ActionDecision::RunAgain if effects.is_none_or(|effects| effects.conflict.is_none()) => {
            Err("`run_again` is valid only after a conflict (`effects.conflict`)".to_owned())
        }
        ActionDecision::RunAgain => Ok(Decision::Previewed),
        ActionDecision::Denied => Ok(Decision::denied(asked.reason.clone().filter(|reason| !reason.trim().is_empty()))),
    }
}

/// Returns a decision that applies only these paths from among a command's effects.
fn select_effects(effects: Option<&Effects>, paths: &[String], digest: Option<&str>) -> Result<Decision, String> {
    let effects = effects.ok_or("`paths` is valid only for the effects of a command")?;
    let digest = digest.ok_or("`paths` requires `digest`, the digest of the effects")?;
    if let Some(unknown) = paths.iter().find(|path| effects.listed_paths().all(|listed| listed != *path)) {
        return Err(format!("the effects do not list `{unknown}`"));
    }
    if paths.is_empty() {
        return Err("`paths` is empty: deny the call instead".to_owned());
    }
    let left = effects.listed_paths().filter(|listed| !paths.iter().any(|path| path == listed));
    let discarded: Vec<DiscardedEffect> = left.map(|path| DiscardedEffect { path: path.to_owned(), hunks: Vec::new() }).collect();
    if discarded.is_empty() {
        return Ok(Decision::Approved);
    }
    Ok(Decision::Amended { amendment: Amendment::Effects { digest: digest.to_owned(), discarded } })
}

/// Creates a goal from a prompt and the goal parameters of the request. Returns an error if the goal is invalid.
fn goal_of(prompt: &str, asked: TaskGoal) -> Result<Goal, RpcError> {
    let TaskGoal { check, budget_usd, time_ms, max_rounds } = asked;
    let goal = Goal { budget_usd, time_ms, max_rounds: max_rounds.unwrap_or(GOAL_ROUNDS), ..Goal::new(prompt, check) };
    goal.validate().map_err(|why| RpcError::new(FaultCode::InvalidParams, format!("`goal` is invalid: {why}")))?;
    Ok(goal)
}
