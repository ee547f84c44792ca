//! Slash commands: the requests that they send to the session, and the text with which they respond.

use super::calls;
use super::markdown::fence;
use crate::protocol::{
    Approve, Budget, ChangedFiles, Command, ContextUse, EventKind, EventText, ExportForm, GOAL_FORM, Goal, HostResponse, Query,
    Review, ReviewQuery, ReviewSubject, ReviewUpdate, RewindPlan, RewindScope, RewindTarget, SessionQuery, validate_check,
};
use std::path::PathBuf;

/// Maximum size in bytes of a diff in the output.
const DIFF_BYTES: usize = 24 << 10;
/// Maximum number of files to list in the output.
const MAX_FILES: usize = 60;

/// Kind of event that a slash command is waiting for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum AwaitedEvent {
    Context,
    Summary,
    Budget,
    Changes,
    /// Plan for a rewind. Once it has been confirmed, the result of the rewind follows.
    Rewind,
    Model,
    Mode,
    Policy,
    /// A notice.
    Notice,
    Artifacts,
    /// End of a review, which runs independently of the session's task.
    Review,
    /// A change to the goal.
    Goal,
}

/// Next action for a slash command.
pub(crate) enum SlashOutcome {
    /// Send this output, which is already complete.
    Reply(String),
    /// Send a command to the session, and wait for the event.
    Request(Command, AwaitedEvent),
    /// Send a query to the session, and wait for the event.
    Query(Query, AwaitedEvent),
    /// Continue the task that was stopped.
    Continue,
    /// Set a goal. The prompt ends when the goal does.
    Goal(Command),
}

/// Session information for commands that do not need to send a request.
pub(crate) struct SlashContext<'a> {
    pub help: &'a dyn Fn() -> String,
    pub status: &'a dyn Fn() -> String,
    pub cost: &'a dyn Fn() -> String,
    pub policy: &'a dyn Fn() -> String,
    pub goal: &'a dyn Fn() -> String,
    pub running: &'a dyn Fn() -> String,
    pub options: &'a super::options::Options,
}

pub(crate) fn start(name: &str, behind: &str, known: &SlashContext<'_>) -> Result<SlashOutcome, String> {
    let asked = |command, waits| Ok(SlashOutcome::Request(command, waits));
    let query = |query, waits| Ok(SlashOutcome::Query(Query::Session(query), waits));
    let words = Some(behind).filter(|words| !words.is_empty());
    match (name, words) {
        ("help", _) => Ok(SlashOutcome::Reply((known.help)())),
        ("status", _) => Ok(SlashOutcome::Reply((known.status)())),
        ("cost", _) => Ok(SlashOutcome::Reply((known.cost)())),
        ("policy", None) => Ok(SlashOutcome::Reply((known.policy)())),
        ("policy", Some("reload")) => asked(Command::ReloadPolicy, AwaitedEvent::Policy),
        ("policy", Some("grants")) => asked(Command::ListGrants, AwaitedEvent::Notice),
        ("policy", Some("undo")) => asked(Command::UndoGrant, AwaitedEvent::Notice),
        ("policy", Some(other)) => Err(format!("unknown command `/policy {other}`; must be reload, grants or undo")),
        ("ps", _) => Ok(SlashOutcome::Reply((known.running)())),
        ("stop", Some(id)) => asked(Command::Stop { id: id.to_owned() }, AwaitedEvent::Notice),
        ("stop", None) => Err("missing command ID; for example `/stop s1` (`/ps` lists the IDs)".to_owned()),
        ("context", _) => asked(Command::ShowContext, AwaitedEvent::Context),
        ("compact", Some("undo")) => asked(Command::UndoCompaction, AwaitedEvent::Summary),
        ("compact", focus) => asked(Command::Compact { focus: focus.map(str::to_owned) }, AwaitedEvent::Summary),
        ("budget", _) => asked(Command::ShowBudget, AwaitedEvent::Budget),
        ("goal", words) => goal(words, known),
        ("diff", _) => query(SessionQuery::ListChanges { task_id: None }, AwaitedEvent::Changes),
        ("review", words) => {
            let subject = ReviewSubject::parse(words.unwrap_or_default()).map_err(|problem| problem.to_string())?;
            let (model, effort) = (Some(known.options.model.clone()), known.options.effort);
            let asked = ReviewQuery::Start { subject, model, effort };
            Ok(SlashOutcome::Query(Query::Review(asked), AwaitedEvent::Review))
        }
        ("undo", _) => asked(plan(RewindTarget::Last), AwaitedEvent::Rewind),
        ("redo", _) => asked(plan(RewindTarget::Redo), AwaitedEvent::Rewind),
        ("continue", _) => Ok(SlashOutcome::Continue),
        ("mode", Some(name)) => asked(known.options.set_mode(name)?, AwaitedEvent::Mode),
        ("mode", None) => Ok(SlashOutcome::Reply(format!("mode {}", known.options.mode.as_str()))),
        ("approve", name) => match name.and_then(Approve::from_name) {
            Some(approve) => asked(Command::SetApprove { approve }, AwaitedEvent::Notice),
            None => Err("choose what aye asks about: `/approve command` or `/approve effects`".to_owned()),
        },
        ("ran", _) => asked(Command::ListUnasked, AwaitedEvent::Notice),
        ("model", Some(name)) => asked(super::options::set_model(name)?, AwaitedEvent::Model),
        ("model", None) => Ok(SlashOutcome::Reply(models(known.options))),
        ("effort", Some(name)) => asked(super::options::set_effort(name)?, AwaitedEvent::Model),
        ("effort", None) => {
            Ok(SlashOutcome::Reply(format!("effort {}", known.options.effort.map_or("auto", crate::protocol::Effort::as_str))))
        }
        ("lsp", _) => query(SessionQuery::ListLanguageServers, AwaitedEvent::Notice),
        ("artifacts", _) => query(SessionQuery::ListArtifacts, AwaitedEvent::Artifacts),
        ("export", words) => export(words.unwrap_or_default()),
        (other, _) => Err(format!("unknown command `/{other}`; `/help` lists the commands")),
    }
}

/// Handles `/goal` and its subcommands.
fn goal(words: Option<&str>, known: &SlashContext<'_>) -> Result<SlashOutcome, String> {
    let Some(words) = words else { return Ok(SlashOutcome::Reply((known.goal)())) };
    match words.split_once(char::is_whitespace).unwrap_or((words, "")) {
        ("stop", "") => Ok(SlashOutcome::Request(Command::StopGoal, AwaitedEvent::Goal)),
        ("continue", "") => Ok(SlashOutcome::Goal(Command::Continue)),
        ("check", check) => {
            validate_check(check)?;
            Ok(SlashOutcome::Goal(Command::SetGoalCheck { check: check.trim().to_owned() }))
        }
        _ => {
            let goal = Goal::parse(words).map_err(|why| format!("{why}: `{GOAL_FORM}`"))?;
            Ok(SlashOutcome::Goal(Command::SetGoal { goal }))
        }
    }
}

fn plan(target: RewindTarget) -> Command {
    Command::PlanRewind { target, scope: RewindScope::Both }
}

fn export(words: &str) -> Result<SlashOutcome, String> {
    let (first, rest) = words.split_once(char::is_whitespace).unwrap_or((words, ""));
    let (form, name) = match ExportForm::from_name(first) {
        Some(form) => (form, rest.trim()),
        None => (ExportForm::from_file_name(words), words),
    };
    let path = Some(PathBuf::from(name)).filter(|_| !name.is_empty());
    Ok(SlashOutcome::Query(Query::Export { form, path }, AwaitedEvent::Notice))
}

fn models(options: &super::options::Options) -> String {
    let lines = options.models.iter().take(100).map(|name| format!("- `{name}`"));
    format!("Current model: `{}`. Available:\n{}", options.model, lines.collect::<Vec<_>>().join("\n"))
}

/// Returns the output of a command that is waiting for this event, or `None` if it is waiting for a different one.
pub(crate) fn answer(waits: AwaitedEvent, event: &EventKind) -> Option<String> {
    match (waits, event) {
        (AwaitedEvent::Context, EventKind::ContextShown(filled)) => Some(context(filled)),
        (AwaitedEvent::Notice, EventKind::ListShown(list)) => Some(list.to_text()),
        (AwaitedEvent::Summary, EventKind::ContextCompacted(compaction)) => Some(format!(
            "Compacted from {} to {} tokens.\n\n{}",
            compaction.tokens_before, compaction.tokens_after, compaction.summary
        )),
        (AwaitedEvent::Summary, EventKind::CompactionUndone { .. }) => EventText::new(event).map(|text| text.sentence),
        (AwaitedEvent::Budget, EventKind::BudgetShown { budgets }) => Some(budget(budgets)),
        (AwaitedEvent::Changes, EventKind::ChangedFiles(changed)) => Some(changes(changed)),
        (AwaitedEvent::Rewind, EventKind::Rewound(rewound)) => Some(rewound.message.clone()),
        (AwaitedEvent::Model, EventKind::ModelChanged { message, .. }) => Some(message.clone()),
        (AwaitedEvent::Mode, EventKind::ModeChanged { .. }) => EventText::new(event).map(|text| text.sentence),
        (AwaitedEvent::Policy, EventKind::PolicyInForce { message, layers, .. }) => {
            let layers = || layers.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ");
            Some(message.clone().unwrap_or_else(layers))
        }
        (AwaitedEvent::Policy, EventKind::PolicyRejected { message }) => Some(message.clone()),
        (AwaitedEvent::Artifacts, EventKind::ArtifactsListed { artifacts }) => {
            let lines: Vec<String> = artifacts.iter().map(|one| format!("- `{}` {}", one.uri, one.name)).collect();
            Some(if lines.is_empty() { "no artifacts yet".to_owned() } else { lines.join("\n") })
        }
        (AwaitedEvent::Review, EventKind::LookedUp(HostResponse::Review(told))) => match told {
            ReviewUpdate::Started(_) | ReviewUpdate::Step(_) => None,
            ReviewUpdate::Ended(done) => Some(review(done)),
            ReviewUpdate::Stopped => Some("review stopped".to_owned()),
            ReviewUpdate::Failed(problem) => Some(problem.text()),
        },
        (AwaitedEvent::Goal, EventKind::GoalChanged(goal)) => goal.message.clone(),
        // Other events of the session are unrelated to a review.
        (AwaitedEvent::Review, _) => None,
        (_, EventKind::Notice { message, .. }) => Some(message.clone()),
        (
            _,
            EventKind::TaskFailed { failure, .. }
            | EventKind::PromptBlocked { failure, .. }
            | EventKind::SessionPaused { failure },
        ) => Some(failure.message.clone()),
        _ => None,
    }
}

fn context(filled: &ContextUse) -> String {
    let percent = |tokens: u64| tokens.saturating_mul(100) / filled.window.max(1);
    let mut lines = vec![format!(
        "{}: {} of {} tokens ({} %), {} reserved for the response",
        filled.model,
        filled.used(),
        filled.window,
        percent(filled.used()),
        filled.reserved
    )];
    lines.extend(
        filled.shares.iter().map(|share| format!("- {}: {} tokens ({} %)", share.name, share.tokens, percent(share.tokens))),
    );
    lines.push(match filled.compactable {
        0 => "`/compact` would free nothing now".to_owned(),
        tokens => format!("`/compact` would free about {tokens} tokens"),
    });
    lines.join("\n")
}

fn budget(budgets: &[Budget]) -> String {
    if budgets.is_empty() {
        return "no budget is set".to_owned();
    }
    let line = |budget: &Budget| format!("- {}, {}", budget.usage_text(), budget.origin_text());
    budgets.iter().map(line).collect::<Vec<_>>().join("\n")
}

fn changes(changed: &ChangedFiles) -> String {
    let Some(counts) = changed.summary() else { return "no changes since the session began".to_owned() };
    let mut lines = vec![format!("{counts} since the session began")];
    lines.extend(changed.files.iter().take(MAX_FILES).map(|file| {
        let by = file.by.iter().map(|by| by.description()).collect::<Vec<_>>().join(", ");
        format!("- {} `{}` (+{} −{}) by {by}", file.status.status_char(), file.path, file.added, file.removed)
    }));
    lines.extend(changed.notes.iter().cloned());
    let diffs: String = changed.files.iter().map(|file| file.diff.to_string()).collect();
    let diff = calls::excerpt(&diffs, DIFF_BYTES);
    if !diff.trim().is_empty() {
        let fence = fence(&diff);
        lines.push(format!("\n{fence}diff\n{}\n{fence}", diff.trim_end()));
    }
    lines.join("\n")
}

/// Formats the findings of a review as a list.
fn review(review: &Review) -> String {
    if review.changes.diffs.is_empty() {
        return review.changes.no_changes_note();
    }
    let mut lines = vec![format!("Review of {}: {}", review.changes.title, review.summary())];
    for finding in &review.findings {
        let (severity, confidence) = (finding.severity.as_str(), finding.confidence.as_str());
        let explanation = finding.explanation.replace('\n', "\n  ");
        lines.push(format!("- **{severity}** `{}`: {} (confidence: {confidence})", finding.location(), finding.title));
        lines.push(format!("  {explanation}"));
    }
    lines.extend(review.dropped_note());
    lines.extend(Some(review.summary.clone()).filter(|summary| !summary.is_empty()).map(|summary| format!("\n{summary}")));
    lines.join("\n")
}

/// Describes a planned rewind that the user must confirm.
pub(crate) fn rewind(plan: &RewindPlan) -> String {
    let mut lines = Vec::new();
    if let Some(point) = &plan.point {
        lines.push(format!("rewind to before prompt {}: {}", point.number, calls::title(&point.prompt)));
    }
    lines.push(format!("messages of the conversation: {}", plan.messages));
    lines.extend(plan.files.iter().take(MAX_FILES).map(|file| {
        let stays = file.conflict.as_ref().map(|why| format!("; left as is: {why}")).unwrap_or_default();
        format!("- {} {} (+{} −{}){stays}", file.path.display(), file.change.verb(), file.added, file.removed)
    }));
    lines.extend(plan.cannot.iter().map(|why| format!("- {why}")));
    lines.join("\n")
}
