//! Output of `aye exec`, which writes events as lines.

pub(crate) mod lines;
mod messages;
mod plain;

use crate::protocol::{Event, EventKind, FailureKind, GoalReason, GoalState, GoalStatus, Problem};
use messages::Messages;
use plain::Plain;
use std::borrow::Cow;
use std::io::{self, Write};
use tokio::sync::mpsc::UnboundedReceiver;

/// Output format for a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Format {
    /// The final response on stdout and progress lines on stderr.
    Text,
    /// A single JSON object at the end, which is the event that ended the task.
    Json,
    /// Every event as a JSON line, written as it happens.
    Events,
    /// Messages as JSON lines, in the format shared with other agents.
    StreamJson,
}

/// Outcome of a run, which determines the exit code.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
    Completed,
    /// The run completed, but an action was denied or nobody approved it.
    CompletedWithDenials,
    /// The run completed, but the final response does not match the schema.
    SchemaMismatch,
    Failed,
    LimitReached,
    AuthenticationFailed,
    Cancelled,
    /// The reader closed the output.
    OutputClosed,
}

/// Checks the final response against a schema.
pub(crate) trait ResponseCheck: Send + Sync {
    /// Extracts the JSON value from a response and returns it on one line.
    ///
    /// # Errors
    /// Returns a description of why the response does not match the schema.
    fn extract_value(&self, text: &str) -> Result<String, String>;

    /// Returns the name of the schema, for messages; a path is in backticks.
    fn name(&self) -> String;
}

/// Schema check for a run, and the number of times the model may correct its response.
#[derive(Clone, Copy)]
pub(crate) struct RunCheck<'a> {
    pub by: &'a dyn ResponseCheck,
    pub repairs: usize,
}

/// Maximum number of lines to show from a response that does not match the schema.
const MAX_RESPONSE_LINES: usize = 20;

/// Function that makes text safe to print to a terminal.
pub(crate) type Sanitizer = fn(&str) -> Cow<'_, str>;

/// Streams and settings for the output.
pub(crate) struct Output<'a> {
    pub out: &'a mut (dyn Write + Send),
    pub err: &'a mut (dyn Write + Send),
    pub out_is_terminal: bool,
    pub clean: Sanitizer,
    /// aye version, for the first line of `Format::StreamJson`.
    pub version: &'static str,
    /// Whether the session is saved and can therefore be continued.
    pub is_saved: bool,
    pub check: Option<RunCheck<'a>>,
}

/// Prints a run's events until their sender is dropped. Returns the outcome of the run.
pub(crate) async fn run(mut events: UnboundedReceiver<Event>, format: Format, output: Output<'_>) -> Outcome {
    let mut writer = EventWriter::new(format, output);
    while let Some(event) = events.recv().await {
        let told = writer.write(event).and_then(|()| if events.is_empty() { writer.output.out.flush() } else { Ok(()) });
        if told.is_err() {
            return Outcome::OutputClosed;
        }
    }
    match writer.finish() {
        Ok(()) => writer.verdict.outcome(),
        Err(_) => Outcome::OutputClosed,
    }
}

struct EventWriter<'a> {
    format: Format,
    output: Output<'a>,
    plain: Plain,
    messages: Messages,
    checked: CheckState,
    verdict: RunVerdict,
    /// Event that ended the last task, or the most recent event if no task has ended.
    last: Option<Event>,
}

impl<'a> EventWriter<'a> {
    fn new(format: Format, output: Output<'a>) -> Self {
        let messages = Messages::new(output.version);
        let (plain, checked, verdict) = (Plain::default(), CheckState::default(), RunVerdict::default());
        Self { format, output, plain, messages, checked, verdict, last: None }
    }

    fn write(&mut self, mut event: Event) -> io::Result<()> {
        self.verdict.learn(&event.kind);
        self.check(&mut event.kind);
        match self.format {
            Format::Text => self.plain.write(&event.kind, &mut self.output)?,
            Format::Events => lines::write(self.output.out, &event)?,
            Format::StreamJson => self.messages.write(event, self.output.out)?,
            Format::Json => {
                let ended = self.last.as_ref().is_some_and(|last| last.kind.is_over());
                // The event that ends a goal is more informative than the one that ends its last task.
                let is_over = event.kind.is_over() || has_goal_ended(&event.kind);
                if (is_over && !self.last.as_ref().is_some_and(|last| has_goal_ended(&last.kind))) || !ended {
                    self.last = Some(event);
                }
            }
        }
        Ok(())
    }

    /// Checks the response of a completed task. In text format, only a value that matches is printed.
    fn check(&mut self, kind: &mut EventKind) {
        let Some(RunCheck { by, repairs }) = self.output.check else { return };
        if kind.is_over() {
            self.checked.last = None;
        }
        let EventKind::TaskCompleted { text, .. } = kind else { return };
        let checked = by.extract_value(text);
        if let Err(mismatch) = &checked {
            if self.checked.count < repairs && self.format == Format::Text {
                let line = format!("the response does not match {}; asking the model to correct it: {mismatch}", by.name());
                drop(writeln!(self.output.err, "{}", (self.output.clean)(&plain::one_line(&line, plain::LINE_CHARS))));
            }
            self.checked.count += 1;
        }
        if self.format == Format::Text {
            let json = checked.clone().unwrap_or_default();
            self.checked.response = std::mem::replace(text, json);
        }
        self.checked.last = Some(checked);
    }

    /// Reports a final response that does not match the schema, or passes a matching value on to `messages`.
    fn finish_check(&mut self) {
        let Some((check, checked)) = self.output.check.zip(self.checked.last.take()) else { return };
        match checked {
            Ok(json) => self.messages.set_structured(serde_json::from_str(&json).unwrap_or_default()),
            Err(mismatch) => {
                let problem = Problem::new(format!("the response does not match {}", check.by.name())).because(mismatch);
                self.messages.set_mismatch(problem.to_string());
                self.verdict.mismatched = true;
                let lines = self.checked.response.lines().take(MAX_RESPONSE_LINES);
                let excerpt = lines.map(|line| format!("    {}", plain::one_line(line, plain::LINE_CHARS))).collect();
                let problem = Problem { excerpt, ..problem };
                drop(writeln!(self.output.err, "{}", (self.output.clean)(&problem.text())));
            }
        }
    }

    fn finish(&mut self) -> io::Result<()> {
        self.finish_check();
        if self.format == Format::Text {
            self.plain.finish(&mut self.output);
        }
        if let Some(last) = self.last.take() {
            lines::write(self.output.out, &last)?;
        }
        if self.format == Format::StreamJson {
            self.messages.finish(self.output.out)?;
        }
        self.output.out.flush()
    }
}

/// Returns whether the event reports that a goal was reached or stopped, independently of the goal's task.
fn has_goal_ended(kind: &EventKind) -> bool {
    matches!(kind, EventKind::GoalChanged(goal) if goal_outcome(goal).is_some())
}

/// Results of the schema checks so far.
#[derive(Default)]
struct CheckState {
    /// Number of responses that did not match the schema.
    count: usize,
    /// Result for the last task, if that task completed.
    last: Option<Result<String, String>>,
    /// Final response exactly as the model wrote it.
    response: String,
}

/// Outcome of the run, derived from the events so far.
#[derive(Debug, Default)]
struct RunVerdict {
    ended: Option<Outcome>,
    /// Outcome of the goal, which takes precedence over that of the task.
    goal: Option<Outcome>,
    denied: bool,
    /// Whether the final response does not match the schema.
    mismatched: bool,
}

impl RunVerdict {
    fn learn(&mut self, kind: &EventKind) {
        match kind {
            EventKind::ToolCompleted { error, .. } => self.denied |= error.as_ref().is_some_and(|error| error.code.is_denial()),
            EventKind::TaskCompleted { .. } => self.ended = Some(Outcome::Completed),
            EventKind::TaskFailed { failure, .. }
            | EventKind::PromptBlocked { failure, .. }
            | EventKind::SessionPaused { failure } => self.fail(failure.kind),
            EventKind::TaskCancelled { .. } => self.ended = Some(Outcome::Cancelled),
            EventKind::GoalChanged(goal) => self.goal = goal_outcome(goal),
            // All other events only report progress.
            _ => {}
        }
    }

    fn fail(&mut self, kind: FailureKind) {
        self.ended = Some(failure_outcome(kind));
    }

    fn outcome(&self) -> Outcome {
        match self.goal.or(self.ended) {
            Some(Outcome::Completed) if self.mismatched => Outcome::SchemaMismatch,
            Some(Outcome::Completed) if self.denied => Outcome::CompletedWithDenials,
            Some(outcome) => outcome,
            None => Outcome::Failed,
        }
    }
}

/// Returns the outcome of a goal, or `None` if the outcome of its task applies instead.
fn goal_outcome(goal: &GoalState) -> Option<Outcome> {
    match (goal.status, goal.reason) {
        (GoalStatus::Working | GoalStatus::Checking, _) => None,
        (GoalStatus::Reached, _) => Some(Outcome::Completed),
        (_, Some(GoalReason::BudgetUsedUp | GoalReason::TimeUsedUp | GoalReason::RoundsUsedUp)) => Some(Outcome::LimitReached),
        // The task's own events report the reason.
        (GoalStatus::Paused, Some(GoalReason::TaskFailed | GoalReason::Interrupted | GoalReason::SessionEnded)) => None,
        (GoalStatus::Paused | GoalStatus::Ended, _) => Some(Outcome::Failed),
    }
}

fn failure_outcome(kind: FailureKind) -> Outcome {
    match kind {
        FailureKind::Authentication => Outcome::AuthenticationFailed,
        FailureKind::BudgetExceeded | FailureKind::MaxStepsExceeded => Outcome::LimitReached,
        FailureKind::RateLimited
        | FailureKind::Overloaded
        | FailureKind::Billing
        | FailureKind::Permission
        | FailureKind::NotFound
        | FailureKind::ContextTooLong
        | FailureKind::GuardrailBlocked
        | FailureKind::InvalidRequest
        | FailureKind::Network
        | FailureKind::Timeout
        | FailureKind::CutStream
        | FailureKind::Protocol
        | FailureKind::PolicyExpired
        | FailureKind::NotSaved
        | FailureKind::NotHeld
        | FailureKind::Internal => Outcome::Failed,
    }
}

#[cfg(test)]
mod tests;
