//! Conversion of session events to updates for an editor.

use super::calls::{self, Names};
use super::client::{EditorCapabilities, Sanitizers};
use crate::protocol::{
    AgentEvent, CallId, Event, EventKind, EventText, EventTone, GoalStatus, PlannedStep, Proposal, SandboxTier, StepStatus,
    ToolStatus, cut_position_before,
};
use agent_client_protocol::v1::schema::{
    CompactionStatus, CompactionUpdate, ContentChunk, Cost, CurrentModeUpdate, Notice, NoticeSeverity, Plan, PlanEntry,
    PlanEntryPriority, PlanEntryStatus, SessionInfoUpdate, SessionUpdate, ToolCall, ToolCallContent, ToolCallStatus,
    ToolCallUpdate, ToolCallUpdateFields, ToolKind, UsageUpdate,
};
use std::borrow::Cow;
use std::collections::HashMap;
use std::path::{Path, PathBuf};

/// Maximum length of a session title in bytes.
const TITLE_BYTES: usize = 80;

/// Whether an event is live or from the history.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum EventTime {
    Now,
    Before,
}

/// Completed call that changed files. The editor displays it together with the diff.
pub(crate) struct ChangedCall {
    name: String,
    fields: ToolCallUpdateFields,
    pub proposal: Proposal,
}

impl ChangedCall {
    pub(crate) fn into_update(self, content: Vec<ToolCallContent>) -> SessionUpdate {
        SessionUpdate::ToolCallUpdate(ToolCallUpdate::new(self.name, self.fields.content(content)))
    }
}

struct OpenToolCall {
    kind: ToolKind,
    /// Most recent output of the call.
    printed: String,
    pending: bool,
}

/// State that is kept while converting events to updates.
pub(crate) struct UpdateMapper {
    looks: Sanitizers,
    understands: EditorCapabilities,
    directory: PathBuf,
    names: Names,
    open: HashMap<CallId, OpenToolCall>,
    message: u64,
    compactions: u64,
    title: Option<String>,
    pub window: u64,
    pub cost: Option<f64>,
    pub used: u64,
}

impl UpdateMapper {
    pub(crate) fn new(looks: Sanitizers, understands: EditorCapabilities, directory: PathBuf, title: Option<String>) -> Self {
        Self {
            looks,
            understands,
            directory,
            names: Names::default(),
            open: HashMap::new(),
            message: 0,
            compactions: 0,
            title,
            window: 0,
            cost: None,
            used: 0,
        }
    }

    pub(crate) fn directory(&self) -> &Path {
        &self.directory
    }

    pub(crate) fn name(&self, call: &CallId) -> String {
        self.names.tool_call_id(call)
    }

    pub(crate) fn tool_kind(&self, call: &CallId) -> Option<ToolKind> {
        self.open.get(call).map(|open| open.kind)
    }

    fn chunk(&self, text: &str) -> ContentChunk {
        let text = (self.looks.clean)(text).into_owned();
        ContentChunk::new(text.into()).message_id(Some(format!("m{}", self.message).into()))
    }

    /// Creates an update that contains text from aye itself.
    pub(crate) fn text_update(&mut self, text: &str) -> SessionUpdate {
        self.message += 1;
        let update = SessionUpdate::AgentMessageChunk(self.chunk(text));
        self.message += 1;
        update
    }

    /// Creates an update that contains a notice for the user.
    pub(crate) fn notice(&mut self, severity: NoticeSeverity, text: &str) -> SessionUpdate {
        let text = (self.looks.clean)(text).into_owned();
        if self.understands.notices {
            let (title, rest) = text.split_once('\n').unwrap_or((&text, ""));
            let rest = Some(rest.to_owned()).filter(|rest| !rest.trim().is_empty());
            return SessionUpdate::Notice(Notice::new(severity, title).description(rest));
        }
        self.message += 1;
        let update = SessionUpdate::AgentThoughtChunk(self.chunk(&format!("{text}\n")));
        self.message += 1;
        update
    }

    /// Converts an event to updates. If it is a file change whose diff must be displayed, the change is returned
    /// separately.
    pub(crate) fn map(&mut self, event: &Event, when: EventTime) -> (Vec<SessionUpdate>, Option<ChangedCall>) {
        let kind = &event.kind;
        let updates = match kind {
            EventKind::ToolCompleted { .. } => return self.completed_call(kind),
            EventKind::ToolStarted { note: Some(note), .. } => {
                let note = self.notice(NoticeSeverity::Info, note);
                self.call(kind).into_iter().chain([note]).collect()
            }
            EventKind::ToolRequested { .. }
            | EventKind::ToolStarted { .. }
            | EventKind::ToolOutputChunk { .. }
            | EventKind::ToolInterrupted { .. } => self.call(kind).into_iter().collect(),
            EventKind::LlmRequestStarted { .. }
            | EventKind::TextChunk { .. }
            | EventKind::ReasoningChunk { .. }
            | EventKind::AnswerDiscarded { .. }
            | EventKind::LlmRetry { .. }
            | EventKind::ReviewSpent { .. }
            | EventKind::Agent(AgentEvent::Spent { .. })
            | EventKind::LlmRequestCompleted { .. } => self.response(kind, when).into_iter().collect(),
            EventKind::CompactionStarted { .. } | EventKind::ContextCompacted(_) => {
                self.compaction_update(kind, when).into_iter().collect()
            }
            EventKind::TaskStarted { prompt, .. } => {
                let own = Some(self.prompt(prompt)).filter(|_| when == EventTime::Before);
                own.into_iter().chain(self.set_title_from_prompt(prompt)).collect()
            }
            EventKind::Steered { text } if when == EventTime::Before => vec![self.prompt(text)],
            EventKind::SessionStarted { facts, .. } => {
                self.window = facts.as_ref().map_or(self.window, |facts| facts.context_window);
                Vec::new()
            }
            EventKind::ModelChanged { facts, .. } => {
                self.window = facts.context_window;
                Vec::new()
            }
            EventKind::PlannedStepsChanged { steps } => vec![self.planned(steps)],
            EventKind::ModeChanged { mode } => vec![SessionUpdate::CurrentModeUpdate(CurrentModeUpdate::new(mode.as_str()))],
            EventKind::TaskFailed { failure, .. } if when == EventTime::Before => {
                vec![self.text_update(&format!("{}\n", failure.message))]
            }
            kind => notice_for(kind, when).map(|(severity, text)| self.notice(severity, &text)).into_iter().collect(),
        };
        (updates, None)
    }

    /// Creates an update that contains the model's planned steps, which the protocol calls a plan.
    fn planned(&self, steps: &[PlannedStep]) -> SessionUpdate {
        let entry = |step: &PlannedStep| {
            let status = match step.status {
                StepStatus::Pending => PlanEntryStatus::Pending,
                StepStatus::InProgress => PlanEntryStatus::InProgress,
                StepStatus::Done => PlanEntryStatus::Completed,
            };
            PlanEntry::new((self.looks.clean)(&step.text).into_owned(), PlanEntryPriority::Medium, status)
        };
        SessionUpdate::Plan(Plan::new(steps.iter().map(entry).collect()))
    }

    /// Creates an update that contains a prompt by the user.
    fn prompt(&mut self, text: &str) -> SessionUpdate {
        self.message += 1;
        let update = SessionUpdate::UserMessageChunk(self.chunk(text));
        self.message += 1;
        update
    }

    /// Converts an event that concerns a model request.
    fn response(&mut self, kind: &EventKind, when: EventTime) -> Option<SessionUpdate> {
        match kind {
            EventKind::LlmRequestStarted { .. } => {
                self.message += 1;
                None
            }
            EventKind::TextChunk { text } => Some(SessionUpdate::AgentMessageChunk(self.chunk(text))),
            EventKind::ReasoningChunk { text } => Some(SessionUpdate::AgentThoughtChunk(self.chunk(text))),
            EventKind::AnswerDiscarded { .. } => EventText::new(kind)
                .map(|text| SessionUpdate::AgentMessageChunk(self.chunk(&format!("\n\n*({})*\n\n", text.sentence)))),
            EventKind::LlmRetry(_) => event_notice(kind).map(|(severity, text)| self.notice(severity, &text)),
            EventKind::LlmRequestCompleted { usage, session_cost_usd, .. } => {
                self.message += 1;
                self.used = usage.input_tokens.saturating_add(usage.output_tokens);
                self.cost = session_cost_usd.or(self.cost);
                if when == EventTime::Now { self.usage() } else { None }
            }
            EventKind::ReviewSpent { session_cost_usd, .. } | EventKind::Agent(AgentEvent::Spent { session_cost_usd, .. }) => {
                self.cost = session_cost_usd.or(self.cost);
                if when == EventTime::Now { self.usage() } else { None }
            }
            _ => None,
        }
    }

    /// Converts an event that concerns a call that has not been completed.
    fn call(&mut self, kind: &EventKind) -> Option<SessionUpdate> {
        match kind {
            EventKind::ToolRequested { tool_call_id, tool_name, capability, arguments, summary } => {
                let name = self.names.assign_name(tool_call_id);
                let kind = calls::kind(tool_name, capability.as_deref());
                let title = calls::title(&(self.looks.reveal)(summary));
                let open = OpenToolCall { kind, printed: String::new(), pending: false };
                self.open.insert(tool_call_id.clone(), open);
                let call = ToolCall::new(name, title)
                    .name(Some(tool_name.clone()))
                    .kind(kind)
                    .status(ToolCallStatus::Pending)
                    .locations(calls::locations(arguments, &self.directory))
                    .raw_input(calls::raw_input(arguments));
                Some(SessionUpdate::ToolCall(call))
            }
            EventKind::ToolStarted { tool_call_id, summary, .. } => {
                let title = summary.as_ref().map(|summary| calls::title(&(self.looks.reveal)(summary)));
                let fields = ToolCallUpdateFields::new().status(ToolCallStatus::InProgress).title(title);
                Some(self.update(tool_call_id, fields))
            }
            EventKind::ToolOutputChunk { tool_call_id, text } => {
                if let Some(open) = self.open.get_mut(tool_call_id) {
                    open.printed.push_str(text);
                    calls::tail(&mut open.printed, calls::TAIL_BYTES);
                    open.pending = true;
                }
                None
            }
            EventKind::ToolInterrupted { tool_call_id, known, .. } => {
                let content = vec![calls::text_content((self.looks.clean)(known).into_owned())];
                let fields = ToolCallUpdateFields::new().status(ToolCallStatus::Failed).content(content);
                self.open.remove(tool_call_id);
                Some(self.update(tool_call_id, fields))
            }
            _ => None,
        }
    }

    /// Converts an event that concerns the compaction of older messages.
    fn compaction_update(&mut self, kind: &EventKind, when: EventTime) -> Option<SessionUpdate> {
        match kind {
            EventKind::CompactionStarted { .. } => {
                self.compactions += 1;
                EventText::new(kind).map(|text| self.compaction(CompactionStatus::InProgress, &text.sentence))
            }
            EventKind::ContextCompacted(compaction) => {
                if when == EventTime::Before {
                    self.compactions += 1;
                }
                self.used = compaction.tokens_after;
                EventText::new(kind).map(|text| self.compaction(CompactionStatus::Completed, &text.sentence))
            }
            _ => None,
        }
    }

    fn completed_call(&mut self, kind: &EventKind) -> (Vec<SessionUpdate>, Option<ChangedCall>) {
        let EventKind::ToolCompleted { tool_call_id, status, output_text, error, proposal, artifact_uris, .. } = kind else {
            return (Vec::new(), None);
        };
        let open = self.open.remove(tool_call_id);
        let is_change = *status == ToolStatus::Succeeded && proposal.as_ref().is_some_and(|change| !change.diff.is_empty());
        let mut fields = ToolCallUpdateFields::new().status(calls::status(*status)).raw_output(calls::raw_output(
            output_text,
            error.as_ref(),
            artifact_uris,
        ));
        let mut content = Vec::new();
        if let Some(error) = error {
            content.push(calls::text_content((self.looks.clean)(&error.message).into_owned()));
        }
        let executes = open.is_none_or(|open| open.kind == ToolKind::Execute);
        if !output_text.trim().is_empty() && (!is_change || executes) {
            let text = calls::excerpt(&(self.looks.clean)(output_text), calls::SHOWN_BYTES);
            content.push(calls::code(&text, ""));
        }
        if let Some(proposal) = proposal.as_ref().filter(|_| *status == ToolStatus::Succeeded) {
            let places = calls::change_locations(&proposal.paths, &proposal.diff, &self.directory);
            if !places.is_empty() {
                fields = fields.locations(places);
            }
        }
        if let Some(proposal) = proposal.clone().filter(|_| is_change && !executes) {
            return (Vec::new(), Some(ChangedCall { name: self.names.tool_call_id(tool_call_id), fields, proposal }));
        }
        (vec![self.update(tool_call_id, fields.content(content))], None)
    }

    pub(crate) fn update(&self, call: &CallId, fields: ToolCallUpdateFields) -> SessionUpdate {
        SessionUpdate::ToolCallUpdate(ToolCallUpdate::new(self.names.tool_call_id(call), fields))
    }

    /// Creates updates with the output of all running commands that have printed anything since the last call.
    pub(crate) fn output_updates(&mut self) -> Vec<SessionUpdate> {
        let mut updates = Vec::new();
        for (call, open) in self.open.iter_mut().filter(|(_, open)| open.pending) {
            open.pending = false;
            let text = (self.looks.clean)(&open.printed).into_owned();
            let content = vec![calls::code(&text, "")];
            let fields = ToolCallUpdateFields::new().content(content);
            updates.push(SessionUpdate::ToolCallUpdate(ToolCallUpdate::new(self.names.tool_call_id(call), fields)));
        }
        updates
    }

    pub(crate) fn has_pending(&self) -> bool {
        self.open.values().any(|open| open.pending)
    }

    /// Closes calls whose outcome is unknown because the process that ran them has ended.
    pub(crate) fn close_open_calls(&mut self) -> Vec<SessionUpdate> {
        let calls: Vec<CallId> = self.open.drain().map(|(call, _)| call).collect();
        let content = || vec![calls::text_content("aye exited here; the outcome is unknown".to_owned())];
        let fields = || ToolCallUpdateFields::new().status(ToolCallStatus::Failed).content(content());
        calls.iter().map(|call| self.update(call, fields())).collect()
    }

    pub(crate) fn usage(&self) -> Option<SessionUpdate> {
        (self.window > 0).then(|| {
            let cost = self.cost.map(|amount| Cost::new(amount, "USD"));
            SessionUpdate::UsageUpdate(UsageUpdate::new(self.used, self.window).cost(cost))
        })
    }

    /// If the session has no title yet, sets it to the beginning of the prompt. Returns an update with the new title.
    fn set_title_from_prompt(&mut self, prompt: &str) -> Option<SessionUpdate> {
        if self.title.is_some() {
            return None;
        }
        let line = prompt.lines().map(str::trim).find(|line| !line.is_empty())?;
        let title = (self.looks.clean)(&line[..cut_position_before(line, TITLE_BYTES)]).into_owned();
        self.title = Some(title.clone());
        let now = jiff::Timestamp::now().to_string();
        Some(SessionUpdate::SessionInfoUpdate(SessionInfoUpdate::new().title(title).updated_at(now)))
    }

    fn compaction(&mut self, status: CompactionStatus, words: &str) -> SessionUpdate {
        if !self.understands.compactions {
            return self.notice(NoticeSeverity::Info, words);
        }
        SessionUpdate::CompactionUpdate(CompactionUpdate::new(format!("c{}", self.compactions), status))
    }
}

/// Returns the notice with the text that all front ends show for an event. Its details become the description.
fn event_notice(kind: &EventKind) -> Option<(NoticeSeverity, String)> {
    let EventText { tone, sentence, details } = EventText::new(kind)?;
    let severity = match tone {
        EventTone::Info => NoticeSeverity::Info,
        EventTone::Warning => NoticeSeverity::Warning,
    };
    Some((severity, details.map_or_else(|| sentence.clone(), |details| format!("{sentence}\n{details}"))))
}

/// Returns the notice to show to the user for an event, or `None` if the event needs none.
fn notice_for(kind: &EventKind, when: EventTime) -> Option<(NoticeSeverity, Cow<'_, str>)> {
    match kind {
        EventKind::ContextTruncated { .. } | EventKind::StepLimitApproaching { .. } | EventKind::BudgetApproaching { .. } => {
            event_notice(kind).map(|(severity, text)| (severity, text.into()))
        }
        EventKind::PolicyRejected { message } | EventKind::PolicyExpired { message } => {
            Some((NoticeSeverity::Error, message.into()))
        }
        EventKind::PromptBlocked { failure, .. } => Some((NoticeSeverity::Error, (&failure.message).into())),
        EventKind::SavingChanged { message, saved } => {
            let severity = if *saved { NoticeSeverity::Info } else { NoticeSeverity::Error };
            Some((severity, message.into()))
        }
        EventKind::SandboxInForce { missing: Some(missing), tier, .. } if when == EventTime::Now => {
            let severity = if *tier == SandboxTier::Guarded { NoticeSeverity::Info } else { NoticeSeverity::Warning };
            Some((severity, missing.into()))
        }
        EventKind::PolicyInForce { message: Some(message), .. } | EventKind::Notice { message, .. } => {
            Some((NoticeSeverity::Info, message.into()))
        }
        EventKind::Rewound(rewound) => Some((NoticeSeverity::Info, (&rewound.message).into())),
        EventKind::GoalChanged(goal) => {
            let is_plain = goal.is_running() || goal.status == GoalStatus::Reached && goal.changed_check_files.is_empty();
            let severity = if is_plain { NoticeSeverity::Info } else { NoticeSeverity::Warning };
            goal.message.as_deref().map(|message| (severity, message.into()))
        }
        _ => None,
    }
}
