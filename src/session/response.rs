//! Text of a response that arrives in several parts, because the model stopped early and was asked to continue.

use crate::protocol::{Message, StopReason};

/// Text of all parts except the last.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub(crate) struct ResponseParts(String);

impl ResponseParts {
    /// Returns whether aye asks the model to continue a response that ended with this stop reason.
    pub(crate) fn continues(stop_reason: StopReason) -> bool {
        matches!(stop_reason, StopReason::MaxTokens | StopReason::PauseTurn)
    }

    /// Adds a response from the model. A response that contains calls is complete, so the text collected so far is
    /// discarded.
    pub(crate) fn note(&mut self, message: &Message, stop_reason: StopReason) {
        if message.tool_calls().next().is_some() {
            self.0.clear();
        } else if Self::continues(stop_reason) {
            self.0.push_str(&message.text());
        }
    }

    /// Returns the text of all parts, including the last one, given in `last`.
    pub(crate) fn full_text(&self, last: &str) -> String {
        [&self.0, last].concat()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ports::Record;
    use crate::protocol::{CallArguments, CallId, MessageId, Part, Role, TaskId, ToolCall, Usage};
    use crate::session::SessionState;

    fn response(text: &str, calls: bool, stop_reason: StopReason) -> Record {
        let call = ToolCall {
            tool_call_id: CallId::new("c"),
            tool_name: "ReadFile".to_owned(),
            arguments: CallArguments::Malformed(String::new()),
        };
        let content = [Part::Text { text: text.to_owned() }].into_iter().chain(calls.then_some(Part::ToolCall(call)));
        let message = Message {
            message_id: MessageId::new(format!("msg {text}")),
            role: Role::Assistant,
            content: content.collect(),
            token_count: 0,
            task_id: TaskId::new("t"),
            step_id: None,
            timestamp: jiff::Timestamp::UNIX_EPOCH,
        };
        let (model, latency_ms, cost_usd, estimated) = ("m".to_owned(), 0, None, false);
        Record::Answer { message, usage: Usage::default(), stop_reason, latency_ms, model, cost_usd, estimated }
    }

    fn last_response(records: &[Record]) -> String {
        SessionState::from_records(records).last_response().to_owned()
    }

    #[test]
    fn the_last_response_joins_all_parts_after_the_last_calls() {
        let cut = StopReason::MaxTokens;
        let parts = [response("one ", false, cut), response("two ", false, StopReason::PauseTurn)];
        let end = response("three", false, StopReason::EndTurn);
        let [one, two] = parts.clone();
        assert_eq!(last_response(&[one, two, end.clone()]), "one two three");
        let [one, two] = parts;
        assert_eq!(last_response(&[one, response("look", true, cut), two, end]), "two three");
    }
}
