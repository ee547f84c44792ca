//! Sentences about events, which all front ends share. A front end only adds what is specific to it, such as the
//! command that reacts to an event.

use super::{Compaction, EventKind, FailedRequest, FailureKind, format_count, group_digits};

/// Importance of an event for the user.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EventTone {
    Info,
    Warning,
}

/// Text about an event.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EventText {
    pub tone: EventTone,
    pub sentence: String,
    /// Further facts, for front ends that have room for them.
    pub details: Option<String>,
}

impl EventText {
    /// Returns the text about an event, or `None` if front ends show the event in another form or not at all.
    pub fn new(kind: &EventKind) -> Option<Self> {
        Some(match kind {
            EventKind::LlmRetry(failed) => Self::warning(retry(failed)),
            EventKind::BudgetApproaching { budget } => {
                Self { details: Some(budget.origin_text()), ..Self::warning(budget.usage_text()) }
            }
            EventKind::StepLimitApproaching { step_count, max_steps } => {
                Self::warning(format!("step {step_count} of at most {max_steps}"))
            }
            EventKind::ContextTruncated { removed: 1 } => {
                Self::warning("the oldest message is no longer sent to the model".to_owned())
            }
            EventKind::ContextTruncated { removed } => {
                Self::warning(format!("the {removed} oldest messages are no longer sent to the model"))
            }
            EventKind::AnswerDiscarded { reason } => Self::warning(format!("the response above was discarded: {reason}")),
            EventKind::CompactionStarted { messages, .. } => {
                Self::info(format!("compacting {} into a summary", format_count(*messages, "message", "messages")))
            }
            EventKind::ContextCompacted(compaction) => Self::info(compacted(compaction)),
            EventKind::CompactionUndone { tokens } => {
                Self::info(format!("summary removed, messages restored: {} tokens", group_digits(*tokens)))
            }
            EventKind::ModeChanged { mode } => Self::info(format!("mode {}", mode.as_str())),
            _ => return None,
        })
    }

    fn info(sentence: String) -> Self {
        Self { tone: EventTone::Info, sentence, details: None }
    }

    fn warning(sentence: String) -> Self {
        Self { tone: EventTone::Warning, sentence, details: None }
    }
}

fn retry(failed: &FailedRequest) -> String {
    let FailedRequest { attempt, max_attempts, delay_ms, kind, message, cost_usd, estimated, .. } = failed;
    let lower = message.to_lowercase();
    let cause = match kind {
        FailureKind::RateLimited if !lower.contains("rate limit") => "rate limited: ",
        FailureKind::Overloaded if !lower.contains("overload") => "overloaded: ",
        _ => "",
    };
    let about = if *estimated { "~" } else { "" };
    let wasted = cost_usd.map(|cost| format!(" (the attempt cost {about}${cost:.4})")).unwrap_or_default();
    let (seconds, tenths) = (delay_ms / 1000, delay_ms % 1000 / 100);
    format!("retry {attempt} of {max_attempts} in {seconds}.{tenths} s{wasted}: {cause}{message}")
}

fn compacted(compaction: &Compaction) -> String {
    let Compaction { model, summarised, kept, tokens_before, tokens_after, .. } = compaction;
    format!(
        "compacted {} into a summary{}: {} → {} tokens, {} unchanged",
        format_count(*summarised, "message", "messages"),
        model.as_ref().map(|name| format!(" by {name}")).unwrap_or_default(),
        group_digits(*tokens_before),
        group_digits(*tokens_after),
        format_count(*kept, "message", "messages"),
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::protocol::{Budget, BudgetScope, BudgetUnit};

    fn budget_text(unit: BudgetUnit, used: f64, limit: f64) -> String {
        let (scope, set_by) = (BudgetScope::Task, "policy.toml:12".to_owned());
        let budget = Budget { scope, unit, limit, used, set_by, most: None };
        EventText::new(&EventKind::BudgetApproaching { budget }).unwrap().sentence
    }

    #[test]
    fn budget_warnings_state_the_unit_and_the_real_percentage() {
        assert_eq!(budget_text(BudgetUnit::CostUsd, 2.25, 2.5), "task: $2.25 of $2.50 used, 90 %");
        assert_eq!(budget_text(BudgetUnit::Tokens, 1_700_000.0, 2e6), "task: 1,700,000 of 2,000,000 tokens used, 85 %");
        assert_eq!(budget_text(BudgetUnit::Steps, 8.0, 10.0), "task: 8 of 10 steps used, 80 %");
    }

    #[test]
    fn the_origin_and_the_highest_limit_of_a_budget_are_details() {
        let (scope, unit, set_by) = (BudgetScope::Session, BudgetUnit::CostUsd, "policy.toml:12".to_owned());
        let budget = Budget { scope, unit, limit: 5.0, used: 4.1, set_by, most: Some(50.0) };
        let text = EventText::new(&EventKind::BudgetApproaching { budget }).unwrap();
        assert_eq!(text.details.as_deref(), Some("set by policy.toml:12, at most $50.00"));
    }

    #[test]
    fn a_retry_names_its_cause_unless_the_message_does() {
        let text = |kind, message: &str| {
            let failed = FailedRequest {
                attempt: 1,
                max_attempts: 3,
                delay_ms: 20_500,
                asked_ms: None,
                kind,
                message: message.to_owned(),
                usage: None,
                cost_usd: None,
                estimated: false,
                request_id: None,
            };
            EventText::new(&EventKind::LlmRetry(failed)).unwrap().sentence
        };
        assert_eq!(text(FailureKind::RateLimited, "too many"), "retry 1 of 3 in 20.5 s: rate limited: too many");
        assert_eq!(text(FailureKind::RateLimited, "Rate limit hit"), "retry 1 of 3 in 20.5 s: Rate limit hit");
        assert_eq!(text(FailureKind::Network, "no route"), "retry 1 of 3 in 20.5 s: no route");
    }
}
