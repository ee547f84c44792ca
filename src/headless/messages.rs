//! Output in the message format shared with other agents: one JSON line for the session, one for each message part,
//! and one for the result.

use super::lines;
use crate::protocol::{
    BudgetUnit, CallArguments, CallId, Event, EventKind, FailedRequest, Failure, FailureKind, GoalStatus, Mode, Remedy,
    ServerState, ServerStatus, SessionId, StepId, StopReason, ToolError, Usage,
};
use jiff::Timestamp;
use serde_json::{Map, Value, json};
use std::collections::HashMap;
use std::io::{self, Write};

/// Format version. It changes when the meaning of a JSON member changes.
const VERSION: u32 = 1;

/// Converts events to messages.
pub(super) struct Messages {
    /// aye version.
    program: &'static str,
    session: SessionPreamble,
    /// Response that is being received or whose calls are running.
    response: Response,
    /// Calls that do not have a result yet.
    calls: HashMap<CallId, (String, Value)>,
    denials: Vec<Value>,
    spent: SpendingTotals,
    /// Number of tasks started so far.
    tasks: u32,
    started: Option<Timestamp>,
    last: Option<Timestamp>,
    end: Option<End>,
    /// Final JSON value, if the response had to match a schema.
    structured: Option<Value>,
    begun: bool,
}

/// Session facts for the first line.
#[derive(Default)]
struct SessionPreamble {
    id: Option<SessionId>,
    directory: String,
    model: String,
    mode: Mode,
    tools: Vec<String>,
    servers: Vec<ServerStatus>,
}

#[derive(Default)]
struct Response {
    /// Number of the response within this run.
    number: u64,
    step: Option<StepId>,
    text: String,
    usage: Usage,
    stop_reason: Option<StopReason>,
}

#[derive(Default)]
struct SpendingTotals {
    usage: Usage,
    cost_usd: Option<f64>,
    latency_ms: u64,
}

/// Outcome of the last task.
struct End {
    subtype: &'static str,
    text: String,
    errors: Vec<String>,
    turns: u32,
}

impl Messages {
    pub(super) fn new(program: &'static str) -> Self {
        Self {
            program,
            session: SessionPreamble::default(),
            response: Response::default(),
            calls: HashMap::new(),
            denials: Vec::new(),
            spent: SpendingTotals::default(),
            tasks: 0,
            started: None,
            last: None,
            end: None,
            structured: None,
            begun: false,
        }
    }

    pub(super) fn write(&mut self, event: Event, out: &mut dyn Write) -> io::Result<()> {
        let Event { session_id, step_id, timestamp, kind, .. } = event;
        self.session.id.get_or_insert(session_id);
        self.started.get_or_insert(timestamp);
        self.last = Some(timestamp);
        self.spent.count(&kind);
        match kind {
            EventKind::TaskStarted { prompt, .. } => self.start_task(&prompt, out),
            EventKind::StepStarted { .. } => self.begin(out),
            EventKind::TextChunk { text } => {
                self.response.text.push_str(&text);
                Ok(())
            }
            EventKind::LlmRetry { .. } | EventKind::AnswerDiscarded { .. } => {
                self.response.text.clear();
                Ok(())
            }
            EventKind::LlmRequestCompleted { usage, stop_reason, .. } => self.complete_response(step_id, usage, stop_reason, out),
            EventKind::ToolRequested { tool_call_id, tool_name, arguments, .. } => {
                let input = match arguments {
                    CallArguments::Object(members) => Value::Object(members),
                    CallArguments::Malformed(_) => Value::Object(Map::new()),
                };
                self.request(tool_call_id, tool_name, input, out)
            }
            EventKind::ToolCompleted { tool_call_id, tool_name, output_text, error, .. } => {
                self.complete_call(tool_call_id, tool_name, output_text, error, out)
            }
            EventKind::ContextCompacted(compaction) => {
                let metadata = json!({"trigger": "auto", "pre_tokens": compaction.tokens_before});
                self.system("compact_boundary", json!({"compact_metadata": metadata}), out)
            }
            EventKind::TaskCompleted { text, step_count, .. } => {
                self.end = Some(End { subtype: "success", text, errors: Vec::new(), turns: step_count });
                Ok(())
            }
            EventKind::GoalChanged(goal) => {
                // A goal that was not reached is reported as an error, even if its last task completed.
                if let (Some(end), Some(message), false) = (&mut self.end, goal.message.clone(), goal.is_running())
                    && goal.status != GoalStatus::Reached
                    && end.errors.is_empty()
                {
                    (end.subtype, end.errors) = ("error_during_execution", vec![message]);
                }
                Ok(())
            }
            EventKind::TaskFailed { failure, step_count } => {
                self.end = Some(End::from_failure(&failure, step_count));
                Ok(())
            }
            EventKind::PromptBlocked { failure, .. } => {
                self.end = Some(End::from_failure(&failure, 0));
                Ok(())
            }
            EventKind::SessionPaused { failure } => {
                self.end = Some(End::from_failure(&failure, self.turn_count()));
                Ok(())
            }
            EventKind::TaskCancelled { step_count } => {
                self.end = Some(End::error("error_during_execution", "the task was interrupted".to_owned(), step_count));
                Ok(())
            }
            other => {
                self.session.learn(other);
                Ok(())
            }
        }
    }

    /// Sets the final JSON value of a response that had to match a schema.
    pub(super) fn set_structured(&mut self, value: Value) {
        self.structured = Some(value);
    }

    /// Reports a completed task as an error because its response does not match the schema.
    pub(super) fn set_mismatch(&mut self, message: String) {
        if let Some(end) = &mut self.end {
            end.subtype = "error_max_structured_output_retries";
            end.errors = vec![message];
        }
    }

    /// Writes the last line, which contains the result.
    pub(super) fn finish(&mut self, out: &mut dyn Write) -> io::Result<()> {
        if self.session.id.is_none() {
            return Ok(());
        }
        self.begin(out)?;
        let turns = self.turn_count();
        let end = self.end.take().unwrap_or_else(|| {
            End::error("error_during_execution", "the session ended before the task was completed".to_owned(), turns)
        });
        let duration = self.started.zip(self.last).map_or(0, |(start, last)| last.duration_since(start).as_millis().max(0));
        let mut result = json!({
            "type": "result",
            "subtype": end.subtype,
            "is_error": end.subtype != "success",
            "duration_ms": i64::try_from(duration).unwrap_or(i64::MAX),
            "duration_api_ms": self.spent.latency_ms,
            "num_turns": end.turns,
            "result": end.text,
            "session_id": self.session.id,
            "total_cost_usd": self.spent.cost_usd,
            "usage": usage(&self.spent.usage),
            "permission_denials": self.denials,
        });
        if let Some(members) = result.as_object_mut() {
            if !end.errors.is_empty() {
                members.insert("errors".to_owned(), json!(end.errors));
            }
            if let Some(value) = self.structured.take() {
                members.insert("structured_output".to_owned(), value);
            }
        }
        lines::write(out, &result)
    }

    fn turn_count(&self) -> u32 {
        u32::try_from(self.response.number).unwrap_or(u32::MAX)
    }

    /// Writes the first line unless it has already been written.
    fn begin(&mut self, out: &mut dyn Write) -> io::Result<()> {
        if std::mem::replace(&mut self.begun, true) {
            return Ok(());
        }
        let SessionPreamble { directory, model, mode, tools, servers, .. } = &self.session;
        let servers: Vec<Value> =
            servers.iter().map(|server| json!({"name": server.name, "status": server_status(&server.state)})).collect();
        let init = json!({
            "version": VERSION,
            "aye_version": self.program,
            "cwd": directory,
            "tools": tools,
            "mcp_servers": servers,
            "model": model,
            "permissionMode": permission_mode(*mode),
        });
        self.system("init", init, out)
    }

    fn system(&mut self, subtype: &str, members: Value, out: &mut dyn Write) -> io::Result<()> {
        self.begin(out)?;
        let mut line = json!({"type": "system", "subtype": subtype, "session_id": self.session.id});
        if let (Some(line), Value::Object(members)) = (line.as_object_mut(), members) {
            line.extend(members);
        }
        lines::write(out, &line)
    }

    /// Writes the prompt that starts a task. The first task's prompt is omitted, because the caller provided it.
    fn start_task(&mut self, prompt: &str, out: &mut dyn Write) -> io::Result<()> {
        self.begin(out)?;
        self.tasks += 1;
        if self.tasks == 1 {
            return Ok(());
        }
        self.end = None;
        self.user(json!({"type": "text", "text": prompt}), out)
    }

    fn complete_response(
        &mut self,
        step: Option<StepId>,
        usage: Usage,
        stop_reason: StopReason,
        out: &mut dyn Write,
    ) -> io::Result<()> {
        let text = std::mem::take(&mut self.response.text);
        let number = self.response.number + 1;
        self.response = Response { number, step, text: String::new(), usage, stop_reason: Some(stop_reason) };
        if text.is_empty() { Ok(()) } else { self.assistant(json!({"type": "text", "text": text}), out) }
    }

    fn request(&mut self, id: CallId, name: String, input: Value, out: &mut dyn Write) -> io::Result<()> {
        let part = json!({"type": "tool_use", "id": id, "name": name, "input": input});
        self.calls.insert(id, (name, input));
        self.assistant(part, out)
    }

    fn complete_call(
        &mut self,
        id: CallId,
        name: String,
        output: String,
        error: Option<ToolError>,
        out: &mut dyn Write,
    ) -> io::Result<()> {
        if !self.calls.contains_key(&id) {
            self.request(id.clone(), name, Value::Object(Map::new()), out)?;
        }
        let call = self.calls.remove(&id);
        let content = match &error {
            None => output,
            Some(error) if output.is_empty() => format!("{}: {}", error.code.as_str(), error.message),
            Some(error) => format!("{}: {}\n{output}", error.code.as_str(), error.message),
        };
        if error.as_ref().is_some_and(|error| error.code.is_denial())
            && let Some((name, input)) = call
        {
            self.denials.push(json!({"tool_name": name, "tool_use_id": id, "tool_input": input}));
        }
        let is_error = error.is_some();
        self.user(json!({"type": "tool_result", "tool_use_id": id, "content": content, "is_error": is_error}), out)
    }

    /// Writes one part of a response. All parts of a response share a message ID.
    fn assistant(&mut self, part: Value, out: &mut dyn Write) -> io::Result<()> {
        self.begin(out)?;
        let Response { number, step, usage: used, stop_reason, .. } = &self.response;
        let step = step.as_ref().map_or("", StepId::as_str);
        let line = json!({
            "type": "assistant",
            "message": {
                "id": format!("msg_{step}_{number}"),
                "type": "message",
                "role": "assistant",
                "model": self.session.model,
                "content": [part],
                "stop_reason": stop_reason,
                "stop_sequence": null,
                "usage": usage(used),
            },
            "parent_tool_use_id": null,
            "session_id": self.session.id,
        });
        lines::write(out, &line)
    }

    fn user(&mut self, part: Value, out: &mut dyn Write) -> io::Result<()> {
        self.begin(out)?;
        let line = json!({
            "type": "user",
            "message": {"role": "user", "content": [part]},
            "parent_tool_use_id": null,
            "session_id": self.session.id,
        });
        lines::write(out, &line)
    }
}

impl SessionPreamble {
    fn learn(&mut self, kind: EventKind) {
        match kind {
            EventKind::SessionStarted { model, mode, workspace, .. } => {
                (self.model, self.mode, self.directory) = (model, mode, workspace);
            }
            EventKind::PolicyInForce { tools, .. } => self.tools = tools,
            EventKind::ServersChanged { servers } => self.servers = servers,
            EventKind::ModelChanged { facts, .. } => self.model = facts.name,
            EventKind::ModeChanged { mode } => self.mode = mode,
            _ => {}
        }
    }
}

impl SpendingTotals {
    fn count(&mut self, kind: &EventKind) {
        let (usage, cost) = match kind {
            EventKind::LlmRequestCompleted { usage, cost_usd, latency_ms, .. } => {
                self.latency_ms = self.latency_ms.saturating_add(*latency_ms);
                (Some(*usage), *cost_usd)
            }
            EventKind::LlmRetry(FailedRequest { usage, cost_usd, .. }) => (*usage, *cost_usd),
            _ => return,
        };
        self.usage += usage.unwrap_or_default();
        if let Some(cost) = cost {
            self.cost_usd = Some(self.cost_usd.unwrap_or(0.0) + cost);
        }
    }
}

impl End {
    fn from_failure(failure: &Failure, turns: u32) -> Self {
        let subtype = match (failure.kind, failure.remedy) {
            (FailureKind::MaxStepsExceeded, _)
            | (FailureKind::BudgetExceeded, Some(Remedy::RaiseBudget { unit: BudgetUnit::Steps, .. })) => "error_max_turns",
            (FailureKind::BudgetExceeded, _) => "error_max_budget_usd",
            _ => "error_during_execution",
        };
        Self::error(subtype, failure.problem().one_line(), turns)
    }

    fn error(subtype: &'static str, message: String, turns: u32) -> Self {
        Self { subtype, text: message.clone(), errors: vec![message], turns }
    }
}

/// Returns the usage with the message format's member names. In that format, the input count excludes cached tokens.
fn usage(usage: &Usage) -> Value {
    let cached = usage.cache_read_tokens.saturating_add(usage.cache_write_tokens);
    json!({
        "input_tokens": usage.input_tokens.saturating_sub(cached),
        "cache_creation_input_tokens": usage.cache_write_tokens,
        "cache_read_input_tokens": usage.cache_read_tokens,
        "output_tokens": usage.output_tokens,
    })
}

fn permission_mode(mode: Mode) -> &'static str {
    match mode {
        Mode::Plan => "plan",
        Mode::Ask => "default",
        Mode::AutoEdit => "acceptEdits",
        Mode::Auto => "auto",
    }
}

fn server_status(state: &ServerState) -> &'static str {
    match state {
        ServerState::Ready => "connected",
        ServerState::Asleep | ServerState::Starting => "pending",
        ServerState::NeedsLogin => "needs-auth",
        ServerState::Unreachable { .. } => "failed",
        ServerState::Off { .. } => "disabled",
    }
}
