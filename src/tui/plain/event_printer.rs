//! What an event is in lines: the answer in whole lines, a call when it begins and when it is done.

use super::writer::LineWriter;
use crate::protocol::{
    APPROVED_BY_YOU, CallId, ChangedFiles, ContextUse, Decision, EventKind, ListedModel, Proposal, RewindPoint, TaskId,
    ToolError, ToolStatus,
};
use crate::text;
use crate::tui::diff::Diff;
use crate::tui::format;
use crate::tui::transcript::take_exit;
use std::collections::HashMap;
use std::io::{self, Write};

/// Of a long output the first and the last lines are read out.
const HEAD: usize = 3;
const TAIL: usize = 5;
/// Models that are read out; the others are counted.
const MODELS: usize = 40;

#[derive(Default)]
pub struct EventPrinter {
    answer: Answer,
    calls: HashMap<CallId, Call>,
    /// The prompts that can be gone back to, as they were listed last.
    points: Vec<(u32, TaskId)>,
    /// Lists of models that were asked for and have not come, and what was said of them.
    models_due: u8,
    models_said: Vec<String>,
}

/// The answer that streams.
#[derive(Default)]
struct Answer {
    filter: text::Filter,
    line: String,
    begun: bool,
}

struct Call {
    summary: String,
    /// The line it printed last, for who asks what it does.
    printed: text::Cleaner,
    last: String,
}

impl EventPrinter {
    pub fn tell<W: Write>(&mut self, kind: &EventKind, paper: &mut LineWriter<W>) -> io::Result<()> {
        match kind {
            EventKind::TextChunk { text } => return self.answer.push(text, paper),
            EventKind::ReasoningChunk { .. } | EventKind::ToolCallProgress { .. } => return Ok(()),
            // What is noted meanwhile parts no line of the answer.
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
                let call = Call { summary, printed: text::Cleaner::new(), last: String::new() };
                self.calls.insert(tool_call_id.clone(), call);
            }
            EventKind::ToolStarted { tool_call_id, rule, summary } => {
                if let (Some(call), Some(summary)) = (self.calls.get_mut(tool_call_id), summary) {
                    call.summary = text::reveal_line(summary);
                }
                let rule = if rule.is_empty() { String::new() } else { format!(" ({})", allowed_by(rule)) };
                if let Some(call) = self.calls.get(tool_call_id) {
                    paper.say(&format!("Tool: {} started{rule}", call.summary))?;
                }
            }
            EventKind::PreviewStarted { tool_call_id, .. } => {
                if let Some(call) = self.calls.get(tool_call_id) {
                    paper.say(&format!("Tool: {} runs in a preview; no changes are applied until you approve", call.summary))?;
                }
            }
            EventKind::ToolOutputChunk { tool_call_id, text } => {
                if let Some(call) = self.calls.get_mut(tool_call_id) {
                    call.hears(text);
                }
            }
            EventKind::ApprovalResolved { tool_call_id, decision, .. } => {
                let what = self.calls.get(tool_call_id).map_or("tool call", |call| &call.summary);
                match decision {
                    Decision::Approved => paper.say(&format!("Approved once: {what}"))?,
                    Decision::ApprovedAlways { .. } => paper.say(&format!("Approved, and a rule was saved: {what}"))?,
                    Decision::Amended { .. } => paper.say(&format!("Approved with your edits: {what}"))?,
                    Decision::Denied { .. } => paper.say(&format!("Denied: {what}"))?,
                    Decision::Previewed | Decision::Renewed => {}
                }
            }
            EventKind::ToolCompleted { tool_call_id, tool_name, status, latency_ms, output_text, error, proposal, .. } => {
                let call = self.calls.remove(tool_call_id);
                let summary = call.map_or_else(|| text::reveal_line(tool_name), |call| call.summary);
                completed(&summary, (*status, *latency_ms), output_text, error.as_ref(), proposal.as_ref(), paper)?;
            }
            EventKind::ContextShown(filled) => context(filled, paper)?,
            EventKind::RewindPointsListed { points, can_redo } => self.points(points, *can_redo, paper)?,
            EventKind::ModelsListed { models, notices } => self.models(models, notices, paper)?,
            _ => {}
        }
        Ok(())
    }

    /// Two lists follow: of what is known, and of what the providers say.
    pub fn models_asked(&mut self) {
        self.models_due = 2;
        self.models_said.clear();
    }

    /// The task whose prompt has this number.
    pub fn point(&self, number: u32) -> Option<&TaskId> {
        self.points.iter().find(|(nth, _)| *nth == number).map(|(_, task)| task)
    }

    /// What the command that runs longest printed last.
    pub fn last_printed(&self) -> Option<&str> {
        self.calls.values().map(|call| call.last.as_str()).find(|last| !last.is_empty())
    }

    fn points<W: Write>(&mut self, points: &[RewindPoint], can_redo: bool, paper: &mut LineWriter<W>) -> io::Result<()> {
        self.points = points.iter().map(|point| (point.number, point.task_id.clone())).collect();
        for point in points {
            let files = match point.files {
                0 => "no files".to_owned(),
                count => format!("{count} files, {} added, {} removed", point.added, point.removed),
            };
            let commands: Vec<String> = point.commands.iter().map(|command| text::reveal_line(command)).collect();
            let ran = if commands.is_empty() { String::new() } else { format!("; ran {}", commands.join(", ")) };
            paper.say(&format!("Prompt {}: {} ({files}{ran})", point.number, text::reveal_line(&point.prompt)))?;
        }
        if !points.is_empty() {
            let redo = if can_redo { "; /redo undoes the last rewind" } else { "" };
            paper.say(&format!("Type /rewind NUMBER to go back to before that prompt; you are asked first{redo}"))?;
        }
        Ok(())
    }

    fn models<W: Write>(&mut self, models: &[ListedModel], notices: &[String], paper: &mut LineWriter<W>) -> io::Result<()> {
        if self.models_due == 0 {
            return Ok(());
        }
        self.models_due -= 1;
        let new: Vec<&ListedModel> = models.iter().filter(|model| !self.models_said.contains(&model.facts.name)).collect();
        for model in new.iter().take(MODELS) {
            let lacks = model.lacks.as_ref().map(|why| format!("; {}", text::reveal_line(why))).unwrap_or_default();
            let window = format::tokens(model.facts.context_window);
            paper.say(&format!("Model: {}, context window {window}{lacks}", text::reveal_line(&model.facts.name)))?;
        }
        if new.len() > MODELS {
            paper.say(&format!("and {} more; `aye models` lists them", new.len() - MODELS))?;
        }
        self.models_said.extend(new.iter().map(|model| model.facts.name.clone()));
        for notice in notices {
            paper.say(&format!("Note: {}", text::reveal_line(notice)))?;
        }
        if self.models_due == 0 {
            paper.say("Type /model NAME to choose one; `aye auth login` saves an API key")?;
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
    fn hears(&mut self, chunk: &str) {
        let mut lines = String::new();
        self.printed.push(chunk, &mut lines);
        if let Some(last) = lines.lines().rev().find(|line| !line.trim().is_empty()) {
            self.last = text::reveal_line(last);
        }
    }
}

/// Who let it run, or which rule.
fn allowed_by(rule: &str) -> String {
    if rule == APPROVED_BY_YOU { rule.to_owned() } else { format!("allowed by {}", text::reveal_line(rule)) }
}

/// Whether what was said until here is a whole answer, or stands before something else.
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

fn completed<W: Write>(
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
            paper.say(&format!("Tool: {summary} denied: {}", text::reveal_line(&error.message)))?;
        }
        (_, Some(error)) => paper.say(&format!("Tool: {summary} failed: {}", text::reveal_line(&error.message)))?,
        (_, None) => paper.say(&format!("Tool: {summary} done, {took}"))?,
    }
    if let Some(proposal) = proposal.filter(|proposal| !proposal.diff.is_empty() && error.is_none()) {
        let diff = Diff::parse(&proposal.diff, None);
        return paper.say(&format!("Tool: {} lines added, {} removed", diff.added(), diff.removed()));
    }
    // What is read and searched is for the model; what a command printed is for the person too.
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
            paper.say(&format!("({left} lines omitted; /artifacts lists the complete outputs)"))?;
            paper.write(&lines[lines.len() - TAIL..].join("\n"))?;
        }
    }
    exit.map_or(Ok(()), |exit| paper.say(&format!("Tool: exit code {exit}")))
}

fn context<W: Write>(filled: &ContextUse, paper: &mut LineWriter<W>) -> io::Result<()> {
    let (used, window) = (filled.used(), filled.window.max(1));
    let percent = used.saturating_mul(100) / window;
    let model = text::reveal_line(&filled.model);
    paper.say(&format!(
        "Context of {model}: {} of {} tokens used, {percent} percent",
        format::tokens(used),
        format::tokens(window)
    ))?;
    for share in &filled.shares {
        paper.say(&format!("  {}: {} tokens", text::reveal_line(&share.name), format::tokens(share.tokens)))?;
    }
    paper.say(&format!("/compact would free about {} tokens", format::tokens(filled.compactable)))
}

/// All that changed, file by file, with what becomes of each line.
pub fn changes<W: Write>(changed: &ChangedFiles, paper: &mut LineWriter<W>) -> io::Result<()> {
    let Some(counts) = changed.counts() else { return paper.say("Nothing has changed.") };
    paper.say(&format!("Changed: {counts}"))?;
    for file in &changed.files {
        let note = file.note.as_ref().map(|note| format!(": {}", text::reveal_line(note))).unwrap_or_default();
        paper.say(&format!(
            "{} {}, {} added, {} removed{note}",
            file.status.letter(),
            text::reveal_line(&file.path),
            file.added,
            file.removed
        ))?;
        let diff = Diff::parse(&file.diff, None);
        diff.spoken().iter().try_for_each(|line| paper.write(line))?;
    }
    if changed.more_files > 0 {
        paper.say(&format!("and {} more files", changed.more_files))?;
    }
    changed.notes.iter().try_for_each(|note| paper.say(&format!("Note: {}", text::reveal_line(note))))
}
