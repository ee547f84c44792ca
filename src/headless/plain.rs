//! What a person who reads lines wants to know of each event.

use super::Output;
use crate::protocol::tool::hidden_words;
use crate::protocol::{CallId, EventKind, Failure};
use std::borrow::Cow;
use std::collections::HashMap;
use std::io;

/// A line of progress, not the whole story.
const LINE_CHARS: usize = 200;
/// Why a task ended is said whole; more than this is a provider gone mad.
const END_CHARS: usize = 4_000;

#[derive(Default)]
pub(super) struct Plain {
    /// What each call that runs now is called.
    summaries: HashMap<CallId, String>,
}

impl Plain {
    pub(super) fn tell(&mut self, kind: &EventKind, output: &mut Output<'_>) -> io::Result<()> {
        if let EventKind::TaskCompleted { text, .. } = kind {
            return answer(text, output);
        }
        if let Some(line) = self.line(kind) {
            let line = one_line(&line, if kind.is_over() { END_CHARS } else { LINE_CHARS });
            // Progress that cannot be written is no reason to stop: the answer is on the other stream.
            drop(writeln!(output.err, "{}", (output.clean)(&line)));
        }
        Ok(())
    }

    fn line(&mut self, kind: &EventKind) -> Option<String> {
        match kind {
            EventKind::ToolRequested { tool_call_id, summary, .. } => {
                self.summaries.insert(tool_call_id.clone(), summary.clone());
                None
            }
            EventKind::ToolStarted { tool_call_id, .. } => self.summaries.get(tool_call_id).map(|summary| format!("→ {summary}")),
            EventKind::ToolCompleted { tool_call_id, tool_name, error, redactions, .. } => {
                let summary = self.summaries.remove(tool_call_id).unwrap_or_else(|| tool_name.clone());
                let hidden = hidden_words(redactions);
                match error {
                    Some(error) => Some(format!("✗ {summary}: {}: {}", error.code.as_str(), error.message)),
                    None => hidden.map(|hidden| format!("  {summary}: {hidden}")),
                }
            }
            EventKind::ToolInterrupted { summary, known, .. } => {
                Some(format!("interrupted, outcome unknown: {summary}: {known}"))
            }
            EventKind::LlmRetry { attempt, max_attempts, delay_ms, message, .. } => {
                Some(format!("retry {attempt} of {max_attempts} in {}.{} s: {message}", delay_ms / 1000, delay_ms % 1000 / 100))
            }
            EventKind::AnswerDiscarded { reason } => Some(format!("the answer until here does not count: {reason}")),
            EventKind::StepLimitApproaching { step_count, max_steps } => {
                Some(format!("step {step_count} of at most {max_steps}"))
            }
            EventKind::PolicyExpired { message }
            | EventKind::PolicyRejected { message }
            | EventKind::PolicyInForce { message: Some(message), .. }
            | EventKind::Notice { message } => Some(message.clone()),
            EventKind::ModeChanged { mode } => Some(format!("mode {}", mode.as_str())),
            EventKind::TaskFailed { failure, .. } => Some(failure_line("failed", failure)),
            EventKind::SessionPaused { failure } => Some(failure_line("paused", failure)),
            EventKind::TaskCancelled { .. } => Some("cancelled".to_owned()),
            EventKind::SessionStarted { model, mode, workspace, resumed, .. } => {
                let verb = if *resumed { "going on" } else { "working" };
                Some(format!("{verb} in {workspace} with {model}, mode {}", mode.as_str()))
            }
            EventKind::SandboxInForce { missing: Some(message), .. } => Some(message.clone()),
            EventKind::ChangedFiles(changed) => changed.counts().map(|counts| format!("changed: {counts}")),
            EventKind::SandboxInForce { missing: None, .. }
            | EventKind::PreviewStarted { .. }
            | EventKind::CommandsRunning { .. }
            | EventKind::ArtifactsListed { .. }
            | EventKind::ArtifactRead { .. }
            | EventKind::DraftRestored { .. }
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
            | EventKind::BudgetApproaching { .. }
            | EventKind::TaskStarted { .. }
            | EventKind::PolicyInForce { message: None, .. }
            | EventKind::StepStarted { .. }
            | EventKind::LlmRequestStarted { .. }
            | EventKind::TextChunk { .. }
            | EventKind::ReasoningChunk { .. }
            | EventKind::ToolCallProgress { .. }
            | EventKind::LlmRequestCompleted { .. }
            | EventKind::ApprovalRequested(_)
            | EventKind::ApprovalResolved { .. }
            | EventKind::ToolOutputChunk { .. }
            | EventKind::StepCompleted { .. }
            | EventKind::TaskCompleted { .. }
            | EventKind::SessionCompleted { .. } => None,
        }
    }
}

/// A program gets the bytes of the model, a terminal gets them harmless.
fn answer(text: &str, output: &mut Output<'_>) -> io::Result<()> {
    let text = if output.out_is_terminal { (output.clean)(text) } else { Cow::Borrowed(text) };
    output.out.write_all(text.as_bytes())?;
    if text.is_empty() || text.ends_with('\n') {
        return Ok(());
    }
    output.out.write_all(b"\n")
}

fn failure_line(verb: &str, failure: &Failure) -> String {
    if failure.hint.is_empty() {
        format!("{verb}: {}", failure.message)
    } else {
        // Hints speak to the screen; here a command takes the place of what one would type there.
        format!("{verb}: {} · {}", failure.message, failure.hint.replace("/continue", "`aye exec -c`"))
    }
}

/// Several lines as one, so that no text can pass for a line of its own; cut where it is long.
fn one_line(text: &str, most_chars: usize) -> String {
    let mut line = String::new();
    for (count, word) in text.split_whitespace().enumerate() {
        if count > 0 {
            line.push(' ');
        }
        line.push_str(word);
    }
    match line.char_indices().nth(most_chars) {
        Some((end, _)) => {
            line.truncate(end);
            line.push('…');
            line
        }
        None => line,
    }
}
