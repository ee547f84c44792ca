//! Output of `aye exec`: events as lines.

pub(crate) mod lines;
mod messages;
mod plain;

use crate::protocol::{ErrorCode, Event, EventKind, FailureKind};
use messages::Messages;
use plain::Plain;
use std::borrow::Cow;
use std::io::{self, Write};
use tokio::sync::mpsc::UnboundedReceiver;

/// The output format of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Format {
    /// The final response on stdout, progress lines on stderr.
    Text,
    /// A single JSON object at the end: the event that ended the task.
    Json,
    /// Each event as one JSON line, as it happens.
    Events,
    /// Messages as JSON lines, in the format that other agents share.
    StreamJson,
}

/// The outcome of a run, which determines the exit code.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
    Completed,
    /// Completed, but the policy denied an action or nobody could approve it.
    CompletedWithDenials,
    Failed,
    LimitReached,
    AuthenticationFailed,
    Cancelled,
    /// The reader of the output disconnected.
    OutputClosed,
}

/// A function that makes text safe for a terminal.
pub(crate) type Clean = fn(&str) -> Cow<'_, str>;

/// The destination of the lines.
pub(crate) struct Output<'a> {
    pub out: &'a mut (dyn Write + Send),
    pub err: &'a mut (dyn Write + Send),
    pub out_is_terminal: bool,
    pub clean: Clean,
    /// Version of aye, for the first line of `Format::StreamJson`.
    pub version: &'static str,
}

/// Prints the events of a run until their sender is gone.
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
    verdict: Verdict,
    /// The event that ended the last task, or the last event if no task has ended.
    last: Option<Event>,
}

impl<'a> EventWriter<'a> {
    fn new(format: Format, output: Output<'a>) -> Self {
        let messages = Messages::new(output.version);
        Self { format, output, plain: Plain::default(), messages, verdict: Verdict::default(), last: None }
    }

    fn write(&mut self, event: Event) -> io::Result<()> {
        self.verdict.learn(&event.kind);
        match self.format {
            Format::Text => self.plain.write(&event.kind, &mut self.output)?,
            Format::Events => lines::write(self.output.out, &event)?,
            Format::StreamJson => self.messages.write(event, self.output.out)?,
            Format::Json => {
                let ended = self.last.as_ref().is_some_and(|last| last.kind.is_over());
                if event.kind.is_over() || !ended {
                    self.last = Some(event);
                }
            }
        }
        Ok(())
    }

    fn finish(&mut self) -> io::Result<()> {
        if let Some(last) = self.last.take() {
            lines::write(self.output.out, &last)?;
        }
        if self.format == Format::StreamJson {
            self.messages.finish(self.output.out)?;
        }
        self.output.out.flush()
    }
}

/// The outcome of the run by the events so far.
#[derive(Debug, Default)]
struct Verdict {
    ended: Option<Outcome>,
    denied: bool,
}

impl Verdict {
    fn learn(&mut self, kind: &EventKind) {
        match kind {
            EventKind::ToolCompleted { error: Some(error), .. } => self.denied |= is_denial(error.code),
            EventKind::TaskCompleted { .. } => self.ended = Some(Outcome::Completed),
            EventKind::TaskFailed { failure, .. } | EventKind::SessionPaused { failure } => {
                self.ended = Some(failed(failure.kind));
            }
            EventKind::TaskCancelled { .. } => self.ended = Some(Outcome::Cancelled),
            EventKind::SessionStarted { .. }
            | EventKind::PolicyInForce { .. }
            | EventKind::PolicyRejected { .. }
            | EventKind::ModeChanged { .. }
            | EventKind::DraftRestored { .. }
            | EventKind::TaskStarted { .. }
            | EventKind::StateChanged { .. }
            | EventKind::QueueChanged { .. }
            | EventKind::Steered { .. }
            | EventKind::ApprovalTimeout { .. }
            | EventKind::ModelChanged { .. }
            | EventKind::ModelsListed { .. }
            | EventKind::CompactionStarted { .. }
            | EventKind::ContextCompacted(_)
            | EventKind::CompactionUndone { .. }
            | EventKind::ContextTruncated { .. }
            | EventKind::ContextShown(_)
            | EventKind::BudgetShown { .. }
            | EventKind::RuleTold { .. }
            | EventKind::BudgetApproaching { .. }
            | EventKind::OwnCommandStarted { .. }
            | EventKind::OwnCommandEnded { .. }
            | EventKind::StepStarted { .. }
            | EventKind::LlmRequestStarted { .. }
            | EventKind::TextChunk { .. }
            | EventKind::ReasoningChunk { .. }
            | EventKind::ToolCallProgress { .. }
            | EventKind::LlmRequestCompleted { .. }
            | EventKind::LlmRetry { .. }
            | EventKind::AnswerDiscarded { .. }
            | EventKind::ToolRequested { .. }
            | EventKind::ApprovalRequested(_)
            | EventKind::ApprovalResolved { .. }
            | EventKind::ToolStarted { .. }
            | EventKind::ToolOutputChunk { .. }
            | EventKind::ToolCompleted { error: None, .. }
            | EventKind::ToolInterrupted { .. }
            | EventKind::StepCompleted { .. }
            | EventKind::StepLimitApproaching { .. }
            | EventKind::SandboxInForce { .. }
            | EventKind::PreviewStarted { .. }
            | EventKind::CommandsRunning { .. }
            | EventKind::ArtifactsListed { .. }
            | EventKind::ArtifactRead { .. }
            | EventKind::ApprovalOutdated { .. }
            | EventKind::ProposedShown { .. }
            | EventKind::ChangedFiles(_)
            | EventKind::RewindPointsListed { .. }
            | EventKind::RewindPlanned(_)
            | EventKind::Rewound(_)
            | EventKind::PolicyExpired { .. }
            | EventKind::SavingChanged { .. }
            | EventKind::HistoryLoaded { .. }
            | EventKind::LookedUp(_)
            | EventKind::ServersChanged { .. }
            | EventKind::ElicitationRequested(_)
            | EventKind::ElicitationEnded { .. }
            | EventKind::HistorySummed(_)
            | EventKind::Notice { .. }
            | EventKind::SessionCompleted { .. } => {}
        }
    }

    fn outcome(&self) -> Outcome {
        match self.ended {
            Some(Outcome::Completed) if self.denied => Outcome::CompletedWithDenials,
            Some(outcome) => outcome,
            None => Outcome::Failed,
        }
    }
}

fn is_denial(code: ErrorCode) -> bool {
    matches!(code, ErrorCode::NoApprover | ErrorCode::PolicyDenied)
}

fn failed(kind: FailureKind) -> Outcome {
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
