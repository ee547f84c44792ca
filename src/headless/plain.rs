//! Text output: progress lines and the final response.

use super::Output;
use crate::protocol::tool::redaction_summary;
use crate::protocol::{
    Approval, BudgetScope, BudgetUnit, CallId, Elicitation, ErrorCode, EventKind, EventText, FailedRequest, Failure, GoalStatus,
    HINT, Mode, ModelFacts, PlannedStep, Remedy, Risk, ServerStatus, ToolError, Usage, budget_key, group_digits,
};
use std::borrow::Cow;
use std::collections::HashMap;
use std::io;

/// Maximum length of a progress line, in characters.
pub(super) const LINE_CHARS: usize = 200;
/// Maximum length of a line about the end of a task or the state of a goal, in characters.
const END_CHARS: usize = 4_000;

/// Name of the tool that runs commands.
const COMMAND_TOOL: &str = "RunCommand";

#[derive(Default)]
pub(super) struct Plain {
    /// Summaries of running calls.
    summaries: HashMap<CallId, String>,
    /// For each running call that needs approval, the reason, and whether the mode `auto-edit` allows the call.
    reasons: HashMap<CallId, (String, bool)>,
    denials: Denials,
    /// Token usage of all requests, including failed ones.
    usage: Usage,
    cost_usd: Option<f64>,
    /// Whether any usage is estimated because a provider did not report it completely.
    is_estimated: bool,
    /// Last reported states of the MCP servers.
    servers: Vec<ServerStatus>,
    /// Name of the model's provider.
    provider: String,
    /// Whether a goal continues after the current task.
    goal_runs: bool,
    /// Response of the goal's most recent task.
    response: Option<String>,
}

/// Calls that were denied in this run.
#[derive(Default)]
struct Denials {
    count: usize,
    /// True if a denied call only edits files, which the mode `auto-edit` allows.
    has_edit: bool,
    /// True if a denied call runs a command.
    has_command: bool,
    /// True if a rule in the policy could have allowed a denied call.
    by_policy: bool,
    /// The mode of the session.
    mode: Mode,
}

impl Denials {
    /// Returns a hint that says how to allow these calls. Returns `None` if there were none, or if there is no advice.
    fn hint(&self) -> Option<String> {
        let denied = match self.count {
            0 => return None,
            1 => "1 action was denied".to_owned(),
            count => format!("{count} actions were denied"),
        };
        if !self.by_policy {
            return None;
        }
        let explain = self.has_command.then_some("`aye policy explain -- COMMAND` shows the rule that decides");
        let advice = match self.mode {
            Mode::Plan => return explain.map(|explain| format!("{HINT}{denied}; {explain}")),
            Mode::Ask if self.has_edit => "allow edits with `--mode auto-edit`, or add a rule to your policy",
            Mode::Ask | Mode::AutoEdit | Mode::Auto => "to allow such actions, add a rule to your policy",
        };
        let explain = explain.map(|explain| format!(" ({explain})")).unwrap_or_default();
        Some(format!("{HINT}{denied}; {advice}{explain}"))
    }
}

impl Plain {
    /// Prints how to allow the denied calls.
    pub(super) fn finish(&self, output: &mut Output<'_>) {
        if let Some(hint) = self.denials.hint() {
            drop(writeln!(output.err, "{hint}"));
        }
    }

    pub(super) fn write(&mut self, kind: &EventKind, output: &mut Output<'_>) -> io::Result<()> {
        self.count(kind);
        if let EventKind::SessionStarted { model: name, .. } | EventKind::ModelChanged { facts: ModelFacts { name, .. }, .. } =
            kind
        {
            name.split('/').next().unwrap_or_default().clone_into(&mut self.provider);
        }
        match kind {
            EventKind::TaskCompleted { text, .. } if self.goal_runs => self.response = Some(text.clone()),
            EventKind::TaskCompleted { text, .. } => format_response(text, output)?,
            // Only the last response for a goal is printed.
            EventKind::GoalChanged(goal) => {
                self.goal_runs = goal.is_running();
                if let Some(text) = self.response.take_if(|_| !goal.is_running()) {
                    format_response(&text, output)?;
                }
            }
            _ => {}
        }
        let spent = kind.is_over().then(|| self.usage_summary()).flatten();
        let failure = match kind {
            EventKind::TaskFailed { failure, .. }
            | EventKind::PromptBlocked { failure, .. }
            | EventKind::SessionPaused { failure } => problem(failure, &self.provider, output.is_saved),
            _ => Vec::new(),
        };
        for line in self.line(kind).into_iter().chain(failure).chain(spent) {
            let is_denial = matches!(kind, EventKind::ToolCompleted { error: Some(error), .. } if error.code.is_denial());
            let is_whole = kind.is_over() || is_denial || matches!(kind, EventKind::GoalChanged(_));
            let line = one_line(&line, if is_whole { END_CHARS } else { LINE_CHARS });
            // Failing to write progress does not stop the run, because the response goes to a different stream.
            drop(writeln!(output.err, "{}", (output.clean)(&line)));
        }
        Ok(())
    }

    fn count(&mut self, kind: &EventKind) {
        if let EventKind::SessionStarted { mode, .. } | EventKind::ModeChanged { mode } = kind {
            self.denials.mode = *mode;
        }
        if let EventKind::ApprovalRequested(approval) = kind {
            let is_edit = approval.command.is_none() && !approval.proposal.diff.is_empty() && approval.risk_level <= Risk::Medium;
            self.reasons.insert(approval.tool_call_id.clone(), (approval_reason(approval), is_edit));
        }
        let (usage, cost, estimated) = match kind {
            EventKind::LlmRequestCompleted { usage, cost_usd, estimated, .. } => (Some(*usage), *cost_usd, *estimated),
            EventKind::LlmRetry(FailedRequest { usage, cost_usd, estimated, .. }) => (*usage, *cost_usd, *estimated),
            _ => return,
        };
        self.is_estimated |= estimated;
        self.usage += usage.unwrap_or_default();
        if let Some(cost) = cost {
            self.cost_usd = Some(self.cost_usd.unwrap_or(0.0) + cost);
        }
    }

    /// Formats the usage, such as `$0.0123 · 12,345 tokens in, 678 out`. A `~` marks estimated costs and counts.
    fn usage_summary(&self) -> Option<String> {
        let Usage { input_tokens, output_tokens, .. } = self.usage;
        if input_tokens + output_tokens == 0 {
            return None;
        }
        let about = if self.is_estimated { "~" } else { "" };
        let cost = self.cost_usd.map(|cost| format!("{about}${cost:.4} · ")).unwrap_or_default();
        Some(format!("{cost}{about}{} tokens in, {} out", group_digits(input_tokens), group_digits(output_tokens)))
    }

    fn line(&mut self, kind: &EventKind) -> Option<String> {
        match kind {
            EventKind::ToolRequested { .. }
            | EventKind::ToolStarted { .. }
            | EventKind::ToolCompleted { .. }
            | EventKind::ToolInterrupted { .. }
            | EventKind::ApprovalTimeout { .. } => self.call_line(kind),
            EventKind::CompactionStarted { .. }
            | EventKind::ContextCompacted(_)
            | EventKind::CompactionUndone { .. }
            | EventKind::ContextTruncated { .. } => shared_sentence(kind),
            EventKind::BudgetApproaching { .. } | EventKind::StepLimitApproaching { .. } => shared_sentence(kind),
            EventKind::LlmRetry(_) | EventKind::AnswerDiscarded { .. } | EventKind::ModeChanged { .. } => shared_sentence(kind),
            EventKind::ServersChanged { servers } => self.servers_line(servers),
            EventKind::ModelChanged { message, .. } => Some(message.clone()),
            EventKind::Steered { text } => Some(format!("sent to the model: {text}")),
            EventKind::PlannedStepsChanged { .. } | EventKind::GoalChanged(_) => progress_line(kind),
            EventKind::PolicyExpired { message }
            | EventKind::PolicyRejected { message }
            | EventKind::SavingChanged { message, .. }
            | EventKind::Notice { message, .. } => Some(message.clone()),
            EventKind::TaskCancelled { .. } => Some("cancelled".to_owned()),
            EventKind::SessionStarted { .. } => start_line(kind),
            EventKind::PolicyInForce { message, .. } | EventKind::SandboxInForce { missing: message, .. } => message.clone(),
            EventKind::ChangedFiles(changed) => changed.summary().map(|counts| format!("changed: {counts}")),
            EventKind::Rewound(done) => Some(done.message.clone()),
            EventKind::ElicitationRequested(asked) => elicitation_line(asked),
            // These events are printed as errors.
            EventKind::TaskFailed { .. } | EventKind::PromptBlocked { .. } | EventKind::SessionPaused { .. } => None,
            EventKind::ContextShown(_) | EventKind::ListShown(_) => None,
            EventKind::OwnCommandStarted { .. }
            | EventKind::OwnCommandEnded { .. }
            | EventKind::RewindPointsListed { .. }
            | EventKind::RewindPlanned(_)
            | EventKind::PreviewStarted { .. }
            | EventKind::CommandsRunning { .. }
            | EventKind::ElicitationEnded { .. }
            | EventKind::ArtifactsListed { .. }
            | EventKind::ArtifactRead { .. }
            | EventKind::ApprovalOutdated { .. }
            | EventKind::ProposedShown { .. }
            | EventKind::DraftRestored { .. }
            | EventKind::HistoryLoaded { .. }
            | EventKind::LookedUp(_)
            | EventKind::HistorySummed(_)
            | EventKind::StateChanged { .. }
            | EventKind::QueueChanged { .. }
            | EventKind::ModelsListed { .. }
            | EventKind::BudgetShown { .. }
            | EventKind::RuleTold { .. }
            | EventKind::TaskStarted { .. }
            | EventKind::StepStarted { .. }
            | EventKind::LlmRequestStarted { .. }
            | EventKind::TextChunk { .. }
            | EventKind::ReasoningChunk { .. }
            | EventKind::ToolCallProgress { .. }
            | EventKind::LlmRequestCompleted { .. }
            | EventKind::ReviewSpent { .. }
            | EventKind::Agent(_)
            | EventKind::ApprovalRequested(_)
            | EventKind::ApprovalResolved { .. }
            | EventKind::ToolOutputChunk { .. }
            | EventKind::EffectsProgress { .. }
            | EventKind::StepCompleted { .. }
            | EventKind::TaskCompleted { .. }
            | EventKind::SessionCompleted { .. } => None,
        }
    }

    /// Returns the line that reports a call, if any.
    fn call_line(&mut self, kind: &EventKind) -> Option<String> {
        match kind {
            EventKind::ToolRequested { tool_call_id, summary, .. } => {
                self.summaries.insert(tool_call_id.clone(), summary.clone());
                None
            }
            EventKind::ToolStarted { tool_call_id, summary, note, .. } => {
                if let Some(summary) = summary {
                    self.summaries.insert(tool_call_id.clone(), summary.clone());
                }
                let note = note.as_ref().map(|note| format!(" ({note})")).unwrap_or_default();
                self.summaries.get(tool_call_id).map(|summary| format!("→ {summary}{note}"))
            }
            EventKind::ToolCompleted { tool_call_id, tool_name, error, redactions, .. } => {
                let summary = self.summaries.remove(tool_call_id).unwrap_or_else(|| tool_name.clone());
                let reason = self.reasons.remove(tool_call_id);
                let hidden = redaction_summary(redactions);
                match error {
                    Some(error) if error.code.is_denial() => {
                        self.denials.count += 1;
                        let (reason, is_edit) = match reason.filter(|_| error.code == ErrorCode::NoApprover) {
                            Some((reason, is_edit)) => (reason, is_edit),
                            None => (refusal(error).to_owned(), false),
                        };
                        self.denials.has_edit |= is_edit;
                        self.denials.has_command |= tool_name == COMMAND_TOOL;
                        self.denials.by_policy |= error.code == ErrorCode::NoApprover || error.rule.is_some();
                        Some(format!("✗ {summary}: denied: {reason}"))
                    }
                    Some(error) => Some(format!("✗ {summary}: {}: {}", error.code.as_str(), error.message)),
                    None => hidden.map(|hidden| format!("  {summary}: {hidden}")),
                }
            }
            EventKind::ToolInterrupted { summary, known, .. } => {
                Some(format!("interrupted, outcome unknown: {summary}: {known}"))
            }
            EventKind::ApprovalTimeout { tool_call_id, .. } => {
                let what = self.summaries.get(tool_call_id).map(|summary| format!(": {summary}")).unwrap_or_default();
                Some(format!("approval timed out and was denied{what}"))
            }
            _ => None,
        }
    }

    /// Returns the line that reports MCP servers whose state changed, or `None` if there are none.
    fn servers_line(&mut self, servers: &[ServerStatus]) -> Option<String> {
        let said = ServerStatus::changes(&self.servers, servers).join("; ");
        self.servers = servers.to_vec();
        (!said.is_empty()).then_some(said)
    }
}

/// Returns why a call needs approval, for the user.
fn approval_reason(approval: &Approval) -> String {
    if approval.effects.is_some() && approval.opens.is_empty() {
        return "the changes of the command need approval".to_owned();
    }
    format!("needs approval ({})", approval.reason)
}

/// Returns the reason in a denial for the model, without the advice to the model after it.
fn refusal(error: &ToolError) -> &str {
    let message = error.without_advice();
    message.strip_prefix("denied: ").unwrap_or(message)
}

/// Returns the sentence with which all front ends report an event.
fn shared_sentence(kind: &EventKind) -> Option<String> {
    EventText::new(kind).map(|text| text.sentence)
}

/// Returns the line printed when a session starts.
fn start_line(kind: &EventKind) -> Option<String> {
    let EventKind::SessionStarted { model, mode, workspace, resumed, .. } = kind else { return None };
    let verb = if *resumed { "continuing" } else { "working" };
    Some(format!("{verb} in {workspace} with {model}, mode {}", mode.as_str()))
}

/// Returns the line that reports input requested by an MCP server. Returns `None` for a question from the model,
/// because the result of its call already answers the question.
fn elicitation_line(asked: &Elicitation) -> Option<String> {
    (!asked.is_question()).then(|| format!("the MCP server {} asks for input that only a user can provide", asked.server))
}

/// Returns the line that reports the planned steps or the goal.
fn progress_line(kind: &EventKind) -> Option<String> {
    match kind {
        EventKind::PlannedStepsChanged { steps } => steps_line(steps),
        EventKind::GoalChanged(goal) => {
            let hint = if goal.status == GoalStatus::Paused { "; `aye exec -c` continues it" } else { "" };
            goal.message.as_ref().map(|message| format!("{message}{hint}"))
        }
        _ => None,
    }
}

fn steps_line(steps: &[PlannedStep]) -> Option<String> {
    (!steps.is_empty()).then(|| PlannedStep::progress(steps))
}

/// Writes a response, cleaned if it goes to a terminal and unchanged otherwise.
fn format_response(text: &str, output: &mut Output<'_>) -> io::Result<()> {
    let text = if output.out_is_terminal { (output.clean)(text) } else { Cow::Borrowed(text) };
    output.out.write_all(text.as_bytes())?;
    if text.is_empty() || text.ends_with('\n') {
        return Ok(());
    }
    output.out.write_all(b"\n")
}

/// Returns the lines that describe a failure. If the session is saved, the last hint is the command that continues
/// the task.
fn problem(failure: &Failure, provider: &str, is_saved: bool) -> Vec<String> {
    let problem = failure.to_provider_problem(provider);
    let problem = match failure.remedy.filter(|_| is_saved) {
        Some(Remedy::Continue | Remedy::ChangePolicy | Remedy::SaveKey) => problem.hint("run `aye exec -c` to continue"),
        Some(Remedy::AssumePrice) => {
            problem.hint("run `aye exec -c --assume-price INPUT,OUTPUT` to continue, in dollars per million tokens")
        }
        Some(Remedy::RaiseBudget { scope: BudgetScope::Session, unit: BudgetUnit::CostUsd, limit }) => {
            problem.hint(format!("run `aye exec -c --max-budget-usd {limit}` to continue"))
        }
        Some(Remedy::RaiseBudget { scope, unit, limit }) => {
            problem.hint(format!("run `aye exec -c --set {}={limit}` to continue", budget_key(scope, unit)))
        }
        None => problem,
    };
    problem.lines().into_iter().map(|(_, line)| line).collect()
}

/// Joins several lines into one, so text cannot imitate another output line, and truncates the result to `most_chars`
/// characters.
pub(super) fn one_line(text: &str, most_chars: usize) -> String {
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
