//! Printing of events as lines: responses line by line, and tool calls as they start and end.

use super::writer::LineWriter;
use crate::protocol::{
    APPROVED_BY_YOU, APPROVED_UNSANDBOXED, CallId, ChangedFiles, ContextUse, Decision, Effects, EffectsProgress, EventKind,
    ListedModel, PlannedStep, Proposal, RewindPoint, TaskId, ToolError, ToolStatus,
};
use crate::text;
use crate::tui::diff::Diff;
use crate::tui::format;
use crate::tui::transcript::take_exit;
use std::collections::HashMap;
use std::io::{self, Write};

/// Number of lines printed from the start of a long output. [`TAIL`] lines are printed from its end.
const HEAD: usize = 3;
const TAIL: usize = 5;
/// Maximum number of models that are printed per list. Any others are only counted.
const MODELS: usize = 40;
/// Time after which the progress of a call's effects is printed, and interval between such lines, in milliseconds.
const FIRST_PROGRESS_MS: u64 = 2_000;
const PROGRESS_MS: u64 = 10_000;

#[derive(Default)]
pub(crate) struct EventPrinter {
    answer: Answer,
    calls: HashMap<CallId, Call>,
    /// Number of output chunks so far.
    chunks: u64,
    /// Number and task of each prompt in the most recent list of rewind points.
    points: Vec<(u32, TaskId)>,
    /// Number of model lists that have been requested but have not arrived. `printed_models` contains the names of the
    /// models printed so far.
    models_due: u8,
    printed_models: Vec<String>,
}

/// Response that is currently being streamed.
#[derive(Default)]
struct Answer {
    filter: text::Filter,
    line: String,
    begun: bool,
}

struct Call {
    summary: String,
    /// Cleans the printed output. `last` is the last line that was printed, which progress lines repeat.
    printed: text::Cleaner,
    last: String,
    /// Number of the output chunk with that line.
    last_chunk: u64,
    /// Time of the next line about the progress of its effects, in milliseconds since their first progress.
    progress_due_ms: u64,
}

impl EventPrinter {
    pub(crate) fn print<W: Write>(&mut self, kind: &EventKind, paper: &mut LineWriter<W>) -> io::Result<()> {
        match kind {
            EventKind::TextChunk { text } => return self.answer.push(text, paper),
            EventKind::ReasoningChunk { .. } | EventKind::ToolCallProgress { .. } => return Ok(()),
            // Notices that arrive during a response must not interrupt its lines.
            EventKind::Notice { .. }
            | EventKind::QueueChanged { .. }
            | EventKind::StateChanged { .. }
            | EventKind::CommandsRunning { .. }
            | EventKind::ServersChanged { .. } => return Ok(()),
            _ => {}
        }
        if ends_answer(kind) {
            self.answer.finish(paper)?;
        }
        match kind {
            EventKind::ToolRequested { tool_call_id, tool_name, summary, .. } => {
                let summary = text::reveal_line(if summary.is_empty() { tool_name } else { summary });
                self.calls.insert(tool_call_id.clone(), Call::new(summary));
            }
            EventKind::ToolStarted { tool_call_id, rule, summary, effects, note } => {
                if let Some(call) = self.calls.get_mut(tool_call_id) {
                    call.on_started(summary.as_deref());
                    let rule = if rule.is_empty() { String::new() } else { format!(" ({})", describe_approver(rule)) };
                    paper.write_text(&format!("Tool: {} started{rule}", call.summary))?;
                    for line in unasked_changes(effects.as_deref(), note.as_deref()) {
                        paper.write_text(&line)?;
                    }
                }
            }
            EventKind::PreviewStarted { approval_id, tool_call_id } => {
                if let Some(call) = self.calls.get_mut(tool_call_id) {
                    paper.write_text(&call.on_preview_started(approval_id.is_some()))?;
                }
            }
            EventKind::ToolOutputChunk { tool_call_id, text } => {
                self.chunks += 1;
                if let Some(call) = self.calls.get_mut(tool_call_id) {
                    call.push_output(text, self.chunks);
                }
            }
            EventKind::EffectsProgress { tool_call_id, progress } => {
                if let Some(line) = self.calls.get_mut(tool_call_id).and_then(|call| call.progress_line(progress)) {
                    paper.write_text(&line)?;
                }
            }
            EventKind::ApprovalResolved { tool_call_id, decision, .. } => {
                let what = self.calls.get(tool_call_id).map_or("tool call", |call| &call.summary);
                decided(decision, what, paper)?;
            }
            EventKind::ToolCompleted { tool_call_id, tool_name, status, latency_ms, output_text, error, proposal, .. } => {
                let call = self.calls.remove(tool_call_id);
                let summary = call.map_or_else(|| text::reveal_line(tool_name), |call| call.summary);
                print_completed(&summary, (*status, *latency_ms), output_text, error.as_ref(), proposal.as_ref(), paper)?;
            }
            EventKind::PlannedStepsChanged { steps } => planned_steps(steps, paper)?,
            EventKind::GoalChanged(goal) if goal.is_running() => paper.write_text(&text::reveal_line(&goal.progress(",")))?,
            EventKind::ContextShown(filled) => context(filled, paper)?,
            EventKind::RewindPointsListed { points, can_redo } => self.points(points, *can_redo, paper)?,
            EventKind::ModelsListed { models, notices } => self.models(models, notices, paper)?,
            _ => {}
        }
        Ok(())
    }

    /// Prepares for printing the next two model lists: the known models, and the models that the providers offer.
    pub(crate) fn expect_models(&mut self) {
        self.models_due = 2;
        self.printed_models.clear();
    }

    /// Returns the task whose prompt has this number in the most recent list of rewind points.
    pub(crate) fn point(&self, number: u32) -> Option<&TaskId> {
        self.points.iter().find(|(nth, _)| *nth == number).map(|(_, task)| task)
    }

    /// Returns the last line of the running command that printed last.
    pub(crate) fn last_printed(&self) -> Option<&str> {
        let printed = self.calls.values().filter(|call| !call.last.is_empty());
        printed.max_by_key(|call| call.last_chunk).map(|call| call.last.as_str())
    }

    fn points<W: Write>(&mut self, points: &[RewindPoint], can_redo: bool, paper: &mut LineWriter<W>) -> io::Result<()> {
        self.points = points.iter().map(|point| (point.number, point.task_id.clone())).collect();
        for point in points {
            let files = match point.files {
                0 => "no files".to_owned(),
                count => {
                    let files = format::format_count(usize::try_from(count).unwrap_or(usize::MAX), "file");
                    format!("{files}, {} added, {} removed", point.added, point.removed)
                }
            };
            let commands: Vec<String> = point.commands.iter().map(|command| text::reveal_line(command)).collect();
            let ran = if commands.is_empty() { String::new() } else { format!("; ran {}", commands.join(", ")) };
            paper.write_text(&format!("Prompt {}: {} ({files}{ran})", point.number, text::reveal_line(&point.prompt)))?;
        }
        if !points.is_empty() {
            let redo = if can_redo { "; /redo undoes the last rewind" } else { "" };
            paper.write_text(&format!("Type /rewind NUMBER to rewind to before that prompt; aye asks for confirmation{redo}"))?;
        }
        Ok(())
    }

    fn models<W: Write>(&mut self, models: &[ListedModel], notices: &[String], paper: &mut LineWriter<W>) -> io::Result<()> {
        if self.models_due == 0 {
            return Ok(());
        }
        self.models_due -= 1;
        let new: Vec<&ListedModel> = models.iter().filter(|model| !self.printed_models.contains(&model.facts.name)).collect();
        for model in new.iter().take(MODELS) {
            let lacks = model.lacks.as_ref().map(|why| format!("; {}", text::reveal_line(why))).unwrap_or_default();
            let window = format::tokens(model.facts.context_window);
            paper.write_text(&format!("Model: {}, context window {window}{lacks}", text::reveal_line(&model.facts.name)))?;
        }
        if new.len() > MODELS {
            paper.write_text(&format!("and {} more; `aye models` lists them", new.len() - MODELS))?;
        }
        self.printed_models.extend(new.iter().map(|model| model.facts.name.clone()));
        for notice in notices {
            paper.write_text(&format!("Note: {}", text::reveal_line(notice)))?;
        }
        if self.models_due == 0 {
            paper.write_text("Type /model NAME to choose one; `aye auth login` saves an API key")?;
        }
        Ok(())
    }
}

impl Answer {
    fn push<W: Write>(&mut self, chunk: &str, paper: &mut LineWriter<W>) -> io::Result<()> {
        self.filter.push(chunk, &mut self.line);
        while let Some(end) = self.line.find('\n') {
            let line: String = self.line.drain(..=end).collect();
            self.write(line.trim_end_matches('\n'), paper)?;
        }
        Ok(())
    }

    fn finish<W: Write>(&mut self, paper: &mut LineWriter<W>) -> io::Result<()> {
        self.filter.finish(&mut self.line);
        self.filter = text::Filter::default();
        let line = std::mem::take(&mut self.line);
        if !line.trim().is_empty() {
            self.write(&line, paper)?;
        }
        self.begun = false;
        Ok(())
    }

    fn write<W: Write>(&mut self, line: &str, paper: &mut LineWriter<W>) -> io::Result<()> {
        if self.begun {
            return paper.write(line);
        }
        if line.trim().is_empty() {
            return Ok(());
        }
        self.begun = true;
        paper.write(&format!("aye: {line}"))
    }
}

impl Call {
    /// Notes the start of a run in a copy, and returns the line about it.
    fn on_preview_started(&mut self, is_requested: bool) -> String {
        self.progress_due_ms = FIRST_PROGRESS_MS;
        let how = if is_requested {
            "runs in a preview; no changes are applied until you approve"
        } else {
            "runs in a copy of the workspace"
        };
        format!("Tool: {} {how}", self.summary)
    }

    fn new(summary: String) -> Self {
        let (printed, last) = (text::Cleaner::new(), String::new());
        Self { summary, printed, last, last_chunk: 0, progress_due_ms: FIRST_PROGRESS_MS }
    }

    /// Starts the call, with another summary if the user edited it.
    fn on_started(&mut self, summary: Option<&str>) {
        self.progress_due_ms = FIRST_PROGRESS_MS;
        if let Some(summary) = summary {
            self.summary = text::reveal_line(summary);
        }
    }

    /// Returns a line about progress, if one is due.
    fn progress_line(&mut self, progress: &EffectsProgress) -> Option<String> {
        if progress.elapsed_ms < self.progress_due_ms {
            return None;
        }
        self.progress_due_ms = progress.elapsed_ms.saturating_add(PROGRESS_MS);
        Some(format!("Tool: {}: {}", self.summary, progress.summary()))
    }

    /// Records output; `number`: the number of its chunk.
    fn push_output(&mut self, chunk: &str, number: u64) {
        let mut lines = String::new();
        self.printed.push(chunk, &mut lines);
        if let Some(last) = lines.lines().rev().find(|line| !line.trim().is_empty()) {
            self.last = text::reveal_line(last);
            self.last_chunk = number;
        }
    }
}

/// Describes who allowed a call, which is the user or a rule.
fn describe_approver(rule: &str) -> String {
    if [APPROVED_BY_YOU, APPROVED_UNSANDBOXED].contains(&rule) {
        rule.to_owned()
    } else {
        format!("allowed by {}", text::reveal_line(rule))
    }
}

/// Returns a line about the changes that a command made without approval, and a line with the note about them. Either
/// is omitted if there is nothing to say.
fn unasked_changes(effects: Option<&Effects>, note: Option<&str>) -> impl Iterator<Item = String> {
    let applied = effects.map(Effects::summary).filter(|applied| !applied.is_empty());
    let applied = applied.map(|applied| format!("Changed without an approval: {}", text::reveal_line(&applied)));
    applied.into_iter().chain(note.map(|note| format!("Note: {}", text::reveal_line(note))))
}

/// Returns whether an event ends the response that is being streamed.
fn ends_answer(kind: &EventKind) -> bool {
    kind.is_over()
        || matches!(
            kind,
            EventKind::LlmRequestCompleted { .. }
                | EventKind::LlmRetry { .. }
                | EventKind::AnswerDiscarded { .. }
                | EventKind::ToolRequested { .. }
                | EventKind::TaskStarted { .. }
                | EventKind::Steered { .. }
                | EventKind::SessionCompleted { .. }
        )
}

/// Prints the progress of the planned steps, if there are any.
fn planned_steps<W: Write>(steps: &[PlannedStep], paper: &mut LineWriter<W>) -> io::Result<()> {
    if steps.is_empty() {
        return Ok(());
    }
    paper.write_text(&text::reveal_line(&PlannedStep::progress(steps)))
}

/// Prints the decision about a call.
fn decided<W: Write>(decision: &Decision, what: &str, paper: &mut LineWriter<W>) -> io::Result<()> {
    match decision {
        Decision::ApprovedInCleanContext => paper.write_text(&format!("Approved, in a clean context: {what}")),
        Decision::Approved => paper.write_text(&format!("Approved once: {what}")),
        Decision::ApprovedByService => paper.write_text(&format!("Approved by the approval service: {what}")),
        Decision::ApprovedAlways { .. } => paper.write_text(&format!("Approved, and a rule was saved: {what}")),
        Decision::Amended { .. } => paper.write_text(&format!("Approved with your edits: {what}")),
        Decision::Denied(_) => paper.write_text(&format!("Denied: {what}")),
        Decision::Previewed | Decision::Renewed => Ok(()),
    }
}

fn print_completed<W: Write>(
    summary: &str,
    (status, latency_ms): (ToolStatus, u64),
    output: &str,
    error: Option<&ToolError>,
    proposal: Option<&Proposal>,
    paper: &mut LineWriter<W>,
) -> io::Result<()> {
    let took = format!("{}.{} s", latency_ms / 1000, latency_ms % 1000 / 100);
    match (status, error) {
        (ToolStatus::Denied, Some(error)) => {
            paper.write_text(&format!("Tool: {summary} denied: {}", text::reveal_line(&error.message)))?;
        }
        (_, Some(error)) => paper.write_text(&format!("Tool: {summary} failed: {}", text::reveal_line(&error.message)))?,
        (_, None) => paper.write_text(&format!("Tool: {summary} done, {took}"))?,
    }
    if let Some(proposal) = proposal.filter(|proposal| !proposal.diff.is_empty() && error.is_none()) {
        let (added, removed) = (proposal.diff.added_lines(), proposal.diff.removed_lines());
        return paper.write_text(&format!("Tool: {} added, {removed} removed", format::format_count(added, "line")));
    }
    // The output of commands is also for the user. Results of reads and searches are only for the model.
    if summary.starts_with('$') { excerpt(output, paper) } else { Ok(()) }
}

fn excerpt<W: Write>(output: &str, paper: &mut LineWriter<W>) -> io::Result<()> {
    let mut cleaner = text::Cleaner::new();
    let mut text = String::new();
    cleaner.push(output, &mut text);
    cleaner.finish(&mut text);
    let exit = take_exit(&mut text);
    let lines: Vec<&str> = text.trim_end().split('\n').collect();
    if !text.trim().is_empty() {
        if lines.len() <= HEAD + TAIL + 1 {
            paper.write(&lines.join("\n"))?;
        } else {
            paper.write(&lines[..HEAD].join("\n"))?;
            let left = lines.len() - HEAD - TAIL;
            paper.write_text(&format!("({left} lines omitted; /artifacts lists the complete outputs)"))?;
            paper.write(&lines[lines.len() - TAIL..].join("\n"))?;
        }
    }
    exit.map_or(Ok(()), |exit| paper.write_text(&format!("Tool: exit code {exit}")))
}

fn context<W: Write>(filled: &ContextUse, paper: &mut LineWriter<W>) -> io::Result<()> {
    let (used, window) = (filled.used(), filled.window.max(1));
    let percent = used.saturating_mul(100) / window;
    let model = text::reveal_line(&filled.model);
    paper.write_text(&format!(
        "Context of {model}: {} of {} tokens used, {percent} percent",
        format::tokens(used),
        format::tokens(window)
    ))?;
    for share in &filled.shares {
        paper.write_text(&format!("  {}: {} tokens", text::reveal_line(&share.name), format::tokens(share.tokens)))?;
    }
    paper.write_text(&format!("/compact would free about {} tokens", format::tokens(filled.compactable)))
}

/// Prints all changes, one file and one line at a time.
pub(crate) fn changes<W: Write>(changed: &ChangedFiles, paper: &mut LineWriter<W>) -> io::Result<()> {
    let Some(counts) = changed.summary() else { return paper.write_text("Nothing has changed.") };
    let since = if changed.since_task.is_some() { "this task" } else { "this session" };
    paper.write_text(&format!("Changed since {since} began: {counts}"))?;
    for file in &changed.files {
        let note = file.note.as_ref().map(|note| format!(": {}", text::reveal_line(note))).unwrap_or_default();
        paper.write_text(&format!(
            "{} {}, {} added, {} removed{note}",
            file.status.status_char(),
            text::reveal_line(&file.path),
            file.added,
            file.removed
        ))?;
        Diff::new(&file.diff, None).to_sentences().iter().try_for_each(|line| paper.write(line))?;
    }
    if changed.more_files > 0 {
        paper.write_text(&format!("and {} more files", changed.more_files))?;
    }
    changed.notes.iter().try_for_each(|note| paper.write_text(&format!("Note: {}", text::reveal_line(note))))
}
