//! One-line descriptions of effects, as used in the test cases.

use super::*;
use crate::protocol::{FailedRequest, PlannedStep};

pub(super) fn tag(value: &impl serde::Serialize, key: &str) -> String {
    serde_json::to_value(value).unwrap()[key].as_str().unwrap().to_owned()
}

/// Formats a budget, such as `session tokens 110 of 700 by config.toml:3`.
fn told(budget: &Budget) -> String {
    let Budget { scope, unit, used, limit, set_by, most } = budget;
    let most = most.map_or_else(String::new, |most| format!(" at most {most}"));
    let name = |value| serde_json::to_value(value).unwrap().as_str().unwrap().to_owned();
    let unit = serde_json::to_value(unit).unwrap().as_str().unwrap().to_owned();
    format!("{} {unit} {used:.4} of {limit} by {set_by}{most}", name(scope))
}

fn about(estimated: bool) -> &'static str {
    if estimated { " as estimated" } else { "" }
}

pub(super) fn show(kind: &EventKind) -> String {
    let name = tag(kind, "eventType");
    let detail = match kind {
        EventKind::TextChunk { text } => text.clone(),
        EventKind::ToolRequested { summary, .. } => summary.clone(),
        EventKind::ToolCompleted { status, error, output_text, .. } => match error {
            Some(error) if output_text.is_empty() => format!("{status:?} {}: {}", error.code.as_str(), error.message),
            Some(error) => format!("{status:?} {}: {}\n{output_text}", error.code.as_str(), error.message),
            None => format!("{status:?} {output_text}"),
        },
        EventKind::ApprovalRequested(approval) => {
            let offer = match &approval.preview {
                PreviewOffer::None => String::new(),
                PreviewOffer::Possible => ", can be previewed".to_owned(),
                PreviewOffer::Impossible { reason } => format!(", no preview: {reason}"),
            };
            let effects = approval.effects.as_ref().map_or_else(String::new, |effects| {
                let paths: Vec<_> = effects.files.iter().map(|file| file.path.as_str()).collect();
                let conflict =
                    effects.conflict.as_ref().map_or_else(String::new, |conflict| format!("none, conflict: {conflict}"));
                format!(", with effects: {}{conflict}", paths.join(" "))
            });
            let opens: Vec<_> = approval.opens.iter().map(|opened| format!(", opens {opened}: {}", approval.reason)).collect();
            let opens = opens.concat();
            let why = Some(&approval.reason).filter(|reason| reason.contains("a copy") && approval.opens.is_empty());
            let why = why.map_or_else(String::new, |reason| format!(", because {reason}"));
            let marks = [(approval.amendable.edited, ", edited"), (approval.amendable.renewed, ", made anew")];
            let marks: String = marks.iter().filter(|(is, _)| *is).map(|(_, words)| *words).collect();
            let first = approval.amendable.first.as_ref().map_or_else(String::new, |first| format!(", first {}", first.line));
            let Approval { approval_id, action_summary, tool_call_id, .. } = approval;
            format!("{approval_id} {action_summary} for {tool_call_id}{offer}{effects}{opens}{why}{marks}{first}")
        }
        EventKind::ApprovalResolved { approval_id, decision, .. } => format!("{approval_id} {}", decision.test_text()),
        EventKind::TaskCompleted { text, step_count, .. } => format!("after {step_count}: {text}"),
        EventKind::TaskFailed { failure, step_count } => format!("after {step_count}: {}", failure.message),
        EventKind::TaskCancelled { step_count } => format!("after {step_count}"),
        EventKind::SessionPaused { failure } => failure.message.clone(),
        EventKind::PolicyExpired { message } | EventKind::PolicyRejected { message } => message.clone(),
        EventKind::PolicyInForce { message, .. } => message.clone().unwrap_or_default(),
        EventKind::ModeChanged { mode } => mode.as_str().to_owned(),
        EventKind::Notice { message, .. } => message.clone(),
        EventKind::LlmRetry(FailedRequest { attempt, max_attempts, delay_ms, usage, estimated, .. }) => {
            let used = usage.map_or_else(String::new, |usage| format!(", used {}{}", usage.input_tokens, about(*estimated)));
            format!("{attempt} of {max_attempts} in {delay_ms} ms{used}")
        }
        EventKind::LlmRequestCompleted { estimated: true, usage, .. } => format!("{} estimated", usage.input_tokens),
        EventKind::RuleTold { told, .. } => format!("{told:?}"),
        EventKind::BudgetShown { budgets } => budgets.iter().map(told).collect::<Vec<_>>().join(", "),
        EventKind::AnswerDiscarded { reason } => reason.clone(),
        EventKind::ToolInterrupted { summary, known, last_output, ran_ms, .. } => {
            let ran = ran_ms.map_or_else(String::new, |ms| format!(" after {ms} ms"));
            let printed = last_output.as_ref().map_or_else(String::new, |text| format!(", printed {text}"));
            format!("{summary}: {known}{ran}{printed}")
        }
        EventKind::SandboxInForce { tier, .. } => tier.as_str().to_owned(),
        EventKind::PreviewStarted { tool_call_id, .. } => tool_call_id.to_string(),
        EventKind::RewindPointsListed { points, .. } => points.len().to_string(),
        EventKind::RewindPlanned(plan) => format!("{} files, {} messages", plan.files.len(), plan.messages),
        EventKind::Rewound(done) => done.message.clone(),
        EventKind::ArtifactsListed { artifacts } => artifacts.len().to_string(),
        EventKind::ArtifactRead { artifact, .. } => artifact.uri.clone(),
        EventKind::ProposedShown { text, .. } => text.clone(),
        EventKind::CommandsRunning { commands } => commands.len().to_string(),
        EventKind::ServersChanged { servers } => servers.len().to_string(),
        EventKind::ElicitationRequested(asked) => asked.server.clone(),
        EventKind::ElicitationEnded { outcome, .. } => format!("{outcome:?}"),
        EventKind::StepStarted { step_count } | EventKind::StepCompleted { step_count } => step_count.to_string(),
        EventKind::StepLimitApproaching { step_count, max_steps } => format!("{step_count} of {max_steps}"),
        EventKind::GoalChanged(goal) => {
            let message = goal.message.as_ref().map_or_else(String::new, |message| format!(": {message}"));
            let files = goal.changed_check_files.join(" ");
            format!("{:?} {} {files}{message}", goal.status, goal.progress("·"))
        }
        EventKind::EffectsProgress { tool_call_id, progress } => format!("{tool_call_id} {}", progress.summary()),
        EventKind::PlannedStepsChanged { steps } => PlannedStep::progress(steps),
        EventKind::TaskStarted { prompt, .. } => prompt.replace('\n', "␤"),
        EventKind::QueueChanged { waiting } => waiting.iter().map(|one| one.text.as_str()).collect::<Vec<_>>().join(" │ "),
        EventKind::OwnCommandStarted { line, check: true, .. } => format!("{line}, the check"),
        EventKind::OwnCommandStarted { line, shared, .. } => format!("{line}{}", if *shared { "" } else { ", not shared" }),
        EventKind::OwnCommandEnded { shared, .. } => if *shared { "shared" } else { "not shared" }.to_owned(),
        EventKind::PromptBlocked { hook, reason, .. } => format!("{hook}: {reason}"),
        EventKind::Steered { text } => text.replace('\n', "␤"),
        EventKind::StateChanged { session_status, task } => {
            let task = task.as_ref().map_or_else(String::new, |task| {
                format!(" · {} {} {}/{}", task.task_id, task.status.as_str(), task.step_count, task.max_steps)
            });
            format!("{}{task}", session_status.as_str())
        }
        EventKind::ApprovalOutdated { approval_id, outdated, .. } => {
            format!("{approval_id} {}", if *outdated { "outdated" } else { "as it was shown" })
        }
        EventKind::ApprovalTimeout { approval_id, .. } => approval_id.to_string(),
        EventKind::ModelChanged { message, .. } => message.clone(),
        EventKind::CompactionStarted { trigger, messages, tokens } => format!("{trigger:?} {messages} messages, {tokens} tokens"),
        EventKind::ContextCompacted(compaction) => format!(
            "{} messages, {} kept, {} to {} tokens: {}",
            compaction.summarised, compaction.kept, compaction.tokens_before, compaction.tokens_after, compaction.summary
        ),
        EventKind::ListShown(list) => list.to_text(),
        EventKind::ContextShown(shown) => {
            let shares: Vec<_> =
                shown.shares.iter().map(|share| format!("{} {} ({})", share.name, share.tokens, share.count)).collect();
            format!(
                "{} of {}, {} counted, {} reserved, {} compactable at {:?} %: {}",
                shown.used(),
                shown.window,
                shown.counted,
                shown.reserved,
                shown.compactable,
                shown.compacts_at_percent,
                shares.join(", ")
            )
        }
        EventKind::CompactionUndone { tokens } => tokens.to_string(),
        EventKind::ContextTruncated { removed } => removed.to_string(),
        EventKind::SavingChanged { message, .. } => message.clone(),
        EventKind::ToolStarted { summary, .. } => summary.clone().unwrap_or_default(),
        EventKind::BudgetApproaching { budget } => told(budget),
        EventKind::SessionStarted { .. }
        | EventKind::DraftRestored { .. }
        | EventKind::HistoryLoaded { .. }
        | EventKind::LookedUp(_)
        | EventKind::HistorySummed(_)
        | EventKind::ModelsListed { .. }
        | EventKind::LlmRequestStarted { .. }
        | EventKind::ReasoningChunk { .. }
        | EventKind::ToolCallProgress { .. }
        | EventKind::LlmRequestCompleted { .. }
        | EventKind::ReviewSpent { .. }
        | EventKind::Agent(_)
        | EventKind::ToolOutputChunk { .. }
        | EventKind::ChangedFiles(_)
        | EventKind::SessionCompleted { .. } => String::new(),
    };
    format!("{name} {detail}").trim_end().to_owned()
}
