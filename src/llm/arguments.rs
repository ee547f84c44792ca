//! Tool call arguments received from a server. They are buffered up to a limit, and parsed as an object only once they
//! are complete.

use super::limits::{ALL_ARGUMENT_BYTES, ARGUMENT_HEAD_BYTES};
use crate::protocol::{ARGUMENT_BYTES, CallArguments, Part, cut_position_before};
use serde_json::{Map, Value};

/// Buffer for arguments that arrive in several parts.
#[derive(Debug, Default)]
pub(super) struct ArgumentBuffer {
    /// The arguments received so far, or only their beginning if they exceed the limit.
    text: String,
    bytes: usize,
}

impl ArgumentBuffer {
    pub(crate) fn push(&mut self, piece: &str) {
        let fitted = self.bytes <= ARGUMENT_BYTES;
        self.bytes = self.bytes.saturating_add(piece.len());
        if self.bytes <= ARGUMENT_BYTES {
            self.text.push_str(piece);
        } else if fitted {
            self.text.push_str(&piece[..cut_position_before(piece, ARGUMENT_HEAD_BYTES)]);
            self.text.truncate(cut_position_before(&self.text, ARGUMENT_HEAD_BYTES));
            self.text.shrink_to_fit();
        }
    }

    /// Replaces everything received so far with the complete arguments.
    pub(crate) fn set(&mut self, whole: &str) {
        *self = Self::default();
        self.push(whole);
    }

    /// Returns the number of bytes received, including those that were not stored.
    pub(crate) fn bytes(&self) -> usize {
        self.bytes
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.text.is_empty()
    }

    pub(crate) fn text(&self) -> &str {
        &self.text
    }

    /// Returns the arguments. They are valid only if `ended`, which is whether the server marked the call as complete.
    pub(crate) fn arguments(&self, ended: bool) -> CallArguments {
        if self.bytes > ARGUMENT_BYTES {
            return CallArguments::over_limit(
                &self.text,
                &format!("{} bytes; a call may have at most {ARGUMENT_BYTES}", self.bytes),
            );
        }
        if !ended {
            return CallArguments::Malformed(self.text.clone());
        }
        if let Some(limit) = CallArguments::describe_exceeded_limit(&self.text) {
            return CallArguments::over_limit(&self.text[..cut_position_before(&self.text, ARGUMENT_HEAD_BYTES)], &limit);
        }
        CallArguments::parse(&self.text)
    }
}

/// Parses arguments that arrived in one piece. `ended` is whether the server marked the call as complete.
pub(super) fn parse_complete(json: &str, ended: bool) -> CallArguments {
    let mut pieces = ArgumentBuffer::default();
    pieces.push(json);
    pieces.arguments(ended)
}

/// Converts arguments that arrived as an object inside an event. `ended` is whether the server marked the call as
/// complete.
pub(super) fn from_map(map: Map<String, Value>, ended: bool) -> CallArguments {
    let json = Value::Object(map);
    let text = json.to_string();
    match (parse_complete(&text, ended), json) {
        (CallArguments::Object(_), Value::Object(map)) => CallArguments::Object(map),
        (arguments, _) => arguments,
    }
}

/// Removes the arguments of calls that would exceed the size limit for all calls in a response.
pub(super) fn enforce_limit(content: &mut [Part]) {
    let mut bytes = 0;
    for part in content {
        let Part::ToolCall(call) = part else { continue };
        let own = argument_bytes(&call.arguments);
        if bytes + own > ALL_ARGUMENT_BYTES {
            let limit = format!("all calls of one response may have at most {ALL_ARGUMENT_BYTES} bytes of arguments");
            call.arguments = CallArguments::over_limit("", &limit);
        } else {
            bytes += own;
        }
    }
}

fn argument_bytes(arguments: &CallArguments) -> usize {
    fn value_bytes(value: &Value) -> usize {
        match value {
            Value::String(text) => text.len(),
            Value::Array(values) => values.iter().map(value_bytes).sum::<usize>() + values.len(),
            Value::Object(map) => map.iter().map(|(key, value)| key.len() + value_bytes(value)).sum(),
            Value::Null | Value::Bool(_) | Value::Number(_) => size_of::<Value>(),
        }
    }
    match arguments {
        CallArguments::Object(map) => map.iter().map(|(key, value)| key.len() + value_bytes(value)).sum(),
        CallArguments::Malformed(text) => text.len(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::protocol::{ArgumentFault, CallId, ToolCall};

    fn object(bytes: usize) -> String {
        let frame = r#"{"content":""}"#;
        format!(r#"{{"content":"{}"}}"#, "x".repeat(bytes - frame.len()))
    }

    #[test]
    fn arguments_over_the_limit_are_reduced_to_their_start() {
        for (bytes, runs) in [(100, true), (ARGUMENT_BYTES, true), (ARGUMENT_BYTES + 1, false), (8 * ARGUMENT_BYTES, false)] {
            let json = object(bytes);
            for size in [1_000, ARGUMENT_BYTES, json.len()] {
                let mut pieces = ArgumentBuffer::default();
                json.as_bytes().chunks(size).for_each(|piece| pieces.push(std::str::from_utf8(piece).unwrap()));
                assert_eq!(pieces.bytes(), bytes);
                assert!(pieces.text.capacity() <= if runs { 2 * bytes } else { 2 * ARGUMENT_HEAD_BYTES }, "{bytes} by {size}");
                let arguments = pieces.arguments(true);
                assert_eq!(matches!(arguments, CallArguments::Object(_)), runs, "{bytes} by {size}");
                let CallArguments::Malformed(text) = &arguments else { continue };
                assert!(text.len() < 2 * ARGUMENT_HEAD_BYTES && text.starts_with("{\"content\""));
                assert!(matches!(arguments.fault(), Some(ArgumentFault::OverLimit(why)) if why.contains(&bytes.to_string())));
            }
        }
    }

    #[test]
    fn calls_beyond_the_total_argument_limit_do_not_run() {
        let call = |number: usize| {
            Part::ToolCall(ToolCall {
                tool_call_id: CallId::new(format!("c{number}")),
                tool_name: "WriteFile".to_owned(),
                arguments: CallArguments::parse(&object(ARGUMENT_BYTES - 100)),
            })
        };
        let mut content: Vec<Part> = (0..20).map(call).collect();
        enforce_limit(&mut content);
        let runs = |part: &Part| matches!(part, Part::ToolCall(call) if call.arguments.fault().is_none());
        assert_eq!(content.iter().map(runs).collect::<Vec<_>>(), (0..20).map(|number| number < 16).collect::<Vec<_>>());
    }

    #[test]
    fn unfinished_calls_do_not_run_even_with_valid_arguments() {
        for json in [r#"{"path":"a"}"#, "", "{}", r#"{"path":"#, r#""{\"path\":\"a\"}""#] {
            assert!(matches!(parse_complete(json, false), CallArguments::Malformed(_)), "{json}");
        }
        assert_eq!(parse_complete(r#"{"path":"a"}"#, false).fault(), Some(ArgumentFault::Unfinished));
        assert_eq!(parse_complete(r#"{"path":"#, true).fault(), Some(ArgumentFault::NotAnObject));
    }

    #[test]
    fn arguments_with_too_many_values_or_levels_are_rejected() {
        let many = format!(r#"{{"list":[{}0]}}"#, "0,".repeat(20_000));
        assert!(matches!(parse_complete(&many, true).fault(), Some(ArgumentFault::OverLimit(_))));
        let deep = format!(r#"{{"list":{}{}}}"#, "[".repeat(10_000), "]".repeat(10_000));
        assert_eq!(parse_complete(&deep, true).fault(), Some(ArgumentFault::NotAnObject));
        let text = format!(r#"{{"content":"{}"}}"#, "[{,".repeat(100_000));
        assert!(matches!(parse_complete(&text, true), CallArguments::Object(_)), "what is in a text is no value");
    }
}
