//! Effects of events that concern model requests and responses.

use super::activity::set_activity;
use super::retry;
use super::{failures, review, spending, streaming};
use crate::protocol::EventKind;
use crate::text;
use crate::tui::model::{Activity, UiModel};

/// Applies an event that concerns a model request or response.
pub(crate) fn apply(model: &mut UiModel, kind: EventKind, now: u64) {
    match kind {
        EventKind::LlmRequestStarted { estimated_input_tokens, .. } => {
            model.info.tally.context_tokens = model.info.tally.context_tokens.max(estimated_input_tokens);
            set_activity(model, Activity::Thinking, now);
        }
        EventKind::TextChunk { text } => streaming::text_chunk(model, &text, now),
        EventKind::ReasoningChunk { text } => streaming::reasoning_chunk(model, &text, now),
        EventKind::ToolCallProgress { tool_name, bytes } => {
            set_activity(model, Activity::Calling { tool: text::clean(&tool_name).into_owned(), bytes }, now);
        }
        EventKind::LlmRequestCompleted { usage, cost_usd, session_cost_usd, estimated, .. } => {
            streaming::complete_response(model);
            model.info.tally.context_tokens = usage.input_tokens + usage.output_tokens;
            spending::on_usage(model, usage, cost_usd, session_cost_usd);
            spending::doubt(model, estimated);
        }
        EventKind::ReviewSpent { usage, cost_usd, session_cost_usd, estimated } => {
            review::on_usage(model, usage, (cost_usd, session_cost_usd), estimated);
        }
        EventKind::LlmRetry(failed) => {
            streaming::complete_response(model);
            spending::doubt(model, failed.estimated);
            retry::on_retry(model, failed, now);
        }
        EventKind::AnswerDiscarded { reason } => failures::on_discarded(model, &reason),
        _ => {}
    }
}
