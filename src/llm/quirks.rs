//! Server quirks: request features that a server does not support. aye learns about them from errors, and stops using
//! them for the rest of the session.

use super::ids::Ids;
use super::thread::WireSettings;
use std::collections::BTreeSet;

/// Field or format that some servers reject.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Field {
    StreamOptions,
    /// The alternative field name for the output limit: `max_completion_tokens` instead of `max_tokens`, or vice versa.
    OtherLimit,
    Tools,
    Effort,
    Thinking,
    /// The newer way of requesting reasoning.
    Adaptive,
    Cache,
    SystemRole,
    /// A user message that directly follows tool results.
    WordsBehindResults,
}

/// Facts learned about a server and model.
#[derive(Debug, Clone, Default)]
pub(super) struct Quirks {
    without: BTreeSet<Field>,
    /// Highest number of output tokens that can be requested, if known.
    pub most_output: Option<u64>,
    ids: Option<Ids>,
    version: u32,
}

/// Error text produced by chat templates of local models, with varying HTTP statuses.
pub(super) const ROLES_MUST_ALTERNATE: &str = "roles must alternate";

/// Phrases which mean that the field mentioned in an error is not accepted.
const REFUSED: &[&str] = &[
    "unsupported",
    "not supported",
    "does not support",
    "doesn't support",
    "unrecognized",
    "unknown",
    "not permitted",
    "unexpected",
    "not allowed",
    "invalid",
    "no endpoints found",
    "requires",
    "not a valid",
    "must be",
    "should be",
    "cannot be used",
    "must alternate",
];

/// Phrases by which errors refer to a field, and the name of the field in messages to the user.
const NAMES: &[(Field, &[&str], &str)] = &[
    (
        Field::WordsBehindResults,
        &[ROLES_MUST_ALTERNATE, "unexpected role 'user' after role 'tool'"],
        "a user message directly after tool results",
    ),
    (Field::StreamOptions, &["stream_options", "stream options", "include_usage"], "`stream_options`"),
    (Field::Adaptive, &["thinking.type", "adaptive"], "adaptive thinking"),
    (Field::Effort, &["reasoning_effort", "reasoning.effort", "output_config", "effort"], "the effort"),
    (Field::Thinking, &["thinking", "budget_tokens"], "`thinking`"),
    (Field::Cache, &["cache_control"], "`cache_control`"),
    (
        Field::SystemRole,
        &["'system' with this model", "system role", "role 'system'", "developer instruction"],
        "the role `system`",
    ),
    (
        Field::Tools,
        &[
            "support tools",
            "support tool use",
            "tool use",
            "tool calling",
            "function calling",
            "`tools`",
            "'tools'",
            "tools is",
            "--jinja",
        ],
        "tools",
    ),
];

impl Quirks {
    /// Returns the quirks of Anthropic's own server, which validates all call IDs strictly. Other servers that
    /// implement the Messages API receive their own IDs back unchanged.
    pub(crate) fn anthropic() -> Self {
        Self { ids: Some(Ids::Word), ..Self::default() }
    }

    pub(crate) fn sends(&self, field: Field) -> bool {
        !self.without.contains(&field)
    }

    /// Returns the settings for serializing messages. `ids` is the ID format that the server accepts as far as is known
    /// without errors.
    pub(crate) fn form(&self, ids: Ids) -> WireSettings {
        WireSettings { ids: self.ids.unwrap_or(ids), version: self.version }
    }

    /// Learns from an error. Returns a description of what will be done differently from now on, or `None` if nothing
    /// would help. `requested` is the number of output tokens that were requested.
    pub(crate) fn learn(&mut self, refusal: &str, requested: u64) -> Option<String> {
        let text = refusal.to_lowercase();
        let learned = self.learn_limit(&text, requested).or_else(|| self.learn_ids(&text)).or_else(|| self.learn_field(&text))?;
        self.version += 1;
        Some(learned)
    }

    fn learn_limit(&mut self, text: &str, requested: u64) -> Option<String> {
        let names = ["max_tokens", "max_completion_tokens", "completion tokens", "output tokens"];
        if !names.iter().any(|name| text.contains(name)) {
            return None;
        }
        let other = text.contains("max_completion_tokens' instead") || text.contains("`max_completion_tokens` instead");
        let unknown = text.contains("max_completion_tokens")
            && ["unsupported", "unrecognized", "unknown", "not permitted", "unexpected"].iter().any(|word| text.contains(word));
        if (other || unknown) && self.without.insert(Field::OtherLimit) {
            return Some("with the other field name for the output limit".to_owned());
        }
        // Compaction handles a request that exceeds the context window.
        if text.contains("context") {
            return None;
        }
        let numbers = text.split(|c: char| !c.is_ascii_digit()).filter_map(|digits| digits.parse::<u64>().ok());
        let most = numbers.filter(|number| *number < requested && *number >= 256).max()?;
        self.most_output = Some(most);
        Some(format!("with an output limit of {most} tokens"))
    }

    fn learn_ids(&mut self, text: &str) -> Option<String> {
        if !["tool call id", "tool_call_id", "tool_calls[", "tool_use.id", "tool_use_id"].iter().any(|name| text.contains(name)) {
            return None;
        }
        let ids = if text.contains("length of 9") {
            Ids::Nine
        } else if text.contains("maximum length") || text.contains("too long") {
            Ids::UpTo(40)
        } else if text.contains("pattern") {
            Ids::Word
        } else {
            return None;
        };
        if self.ids == Some(ids) {
            return None;
        }
        self.ids = Some(ids);
        Some("with different tool call IDs".to_owned())
    }

    fn learn_field(&mut self, text: &str) -> Option<String> {
        if !REFUSED.iter().any(|word| text.contains(word)) {
            return None;
        }
        let named = |names: &[&str]| names.iter().any(|name| text.contains(name));
        let (field, _, called) = NAMES.iter().find(|(field, names, _)| named(names) && !self.without.contains(field))?;
        self.without.insert(*field);
        Some(format!("without {called}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rejected_parameters_are_learned_once() {
        let cases = [
            ("Unsupported parameter: 'stream_options'", Some("without `stream_options`")),
            ("body.stream_options: Extra inputs are not permitted", Some("without `stream_options`")),
            (
                "Unsupported parameter: 'max_tokens' is not supported with this model. Use 'max_completion_tokens' instead.",
                Some("with the other field name for the output limit"),
            ),
            ("unknown field `max_completion_tokens`", Some("with the other field name for the output limit")),
            (
                "max_tokens: 99999 > 8192, which is the maximum allowed number of output tokens",
                Some("with an output limit of 8192 tokens"),
            ),
            ("Invalid max_tokens value, the valid range of max_tokens is [1, 8192]", Some("with an output limit of 8192 tokens")),
            ("Unsupported value: 'reasoning_effort' does not support 'none'", Some("without the effort")),
            ("\"thinking.type.enabled\" is not supported for this model", Some("without adaptive thinking")),
            ("gemma3:latest does not support tools", Some("without tools")),
            (
                "Unsupported value: 'messages[0].role' does not support 'system' with this model.",
                Some("without the role `system`"),
            ),
            ("Tool call id was call_1 but must be a-z, A-Z, 0-9, with a length of 9.", Some("with different tool call IDs")),
            (
                "Invalid 'messages[1].tool_calls[0].id': string too long. Expected a string with maximum length 40",
                Some("with different tool call IDs"),
            ),
            (
                "messages.1.content.0.tool_use.id: String should match pattern '^[a-zA-Z0-9_-]+$'",
                Some("with different tool call IDs"),
            ),
            (
                "Jinja Exception: After the optional system message, conversation roles must alternate user and assistant roles except for tool calls and results.",
                Some("without a user message directly after tool results"),
            ),
            ("Unexpected role 'user' after role 'tool'", Some("without a user message directly after tool results")),
            ("You uploaded an unsupported image", None),
            ("prompt is too long", None),
            ("This model's maximum context length is 4096 tokens, however max_tokens", None),
        ];
        for (refusal, learned) in cases {
            let mut quirks = Quirks::default();
            assert_eq!(quirks.learn(refusal, 99_999).as_deref(), learned, "{refusal}");
            // Both ways to request reasoning were rejected.
            if learned.is_some() && !refusal.contains("thinking") {
                let asked = quirks.most_output.unwrap_or(99_999);
                assert_eq!(quirks.learn(refusal, asked), None, "again: {refusal}");
            }
        }
    }
}
