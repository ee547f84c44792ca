//! Estimates how much of the context window a request uses, and corrects the estimates with the token counts that
//! providers report.

use super::limits::{BYTES_PER_TOKEN, MAX_IMAGE_TOKENS, MESSAGE_OVERHEAD_TOKENS, PIXELS_PER_TOKEN};
use crate::protocol::{CallArguments, Image, Part, ToolCall, ToolDefinition, ToolResult};
use std::collections::HashMap;

/// Accepted range for the ratio of a provider's token count to the estimate. Counts outside this range are ignored,
/// because some servers report arbitrary numbers and a count that is too small would overfill the context window.
const RATIO_BELIEVED: std::ops::RangeInclusive<f64> = 0.5..=6.0;
/// Upper limit for a learned ratio.
const RATIO_MAX: f64 = 3.0;
/// Assumed size of the context window after a request was rejected as too long, as a percentage of that request's
/// size.
const TOO_LONG_PERCENT: u64 = 95;
/// Smallest context window that is ever assumed, in tokens. A request smaller than this is not rejected for its
/// length.
const MIN_TOO_LONG_TOKENS: u64 = 4_000;

/// Learned token ratios and input limits for each model, and the token counts of the last request.
#[derive(Debug, Default)]
pub(crate) struct TokenCounts {
    /// Ratio of provider tokens to estimated tokens, by model name.
    ratios: HashMap<String, f64>,
    /// Known input limits in tokens, by model name.
    most: HashMap<String, u64>,
    /// Estimated tokens in the system prompt and the tool definitions.
    pub fixed: u64,
    /// Estimated tokens in the last request, and the model that received it.
    pub asked: u64,
    pub model: String,
    /// Number of tokens that the provider counted for the part of the last request that will be resent.
    pub counted: u64,
}

impl TokenCounts {
    pub(crate) fn ratio(&self, model: &str) -> f64 {
        self.ratios.get(model).copied().unwrap_or(1.0)
    }

    /// Converts an estimated token count to the given model's tokens.
    pub(crate) fn to_model_tokens(&self, model: &str, estimated: u64) -> u64 {
        (estimated as f64 * self.ratio(model)).round() as u64
    }

    /// Converts a count of the given model's tokens to an estimated token count.
    pub(crate) fn to_estimate(&self, model: &str, real: u64) -> u64 {
        (real as f64 / self.ratio(model)) as u64
    }

    /// Updates the model's ratio with the provider's token count for the last request.
    pub(crate) fn learn(&mut self, model: &str, input_tokens: u64) {
        if self.asked == 0 || input_tokens == 0 {
            return;
        }
        let ratio = input_tokens as f64 / self.asked as f64;
        if RATIO_BELIEVED.contains(&ratio) {
            self.ratios.insert(model.to_owned(), ratio.min(RATIO_MAX));
            self.counted = input_tokens;
        } else {
            self.ratios.remove(model);
            self.counted = 0;
        }
    }

    /// Lowers the model's input limit after its provider rejected a request of about this size as too long.
    pub(crate) fn on_too_long(&mut self, model: &str, tokens: u64) {
        let most = (tokens * TOO_LONG_PERCENT / 100).max(MIN_TOO_LONG_TOKENS);
        self.most.entry(model.to_owned()).and_modify(|known| *known = most.min(*known)).or_insert(most);
    }

    /// Returns the model's learned input limit in tokens, or `u64::MAX` if none is known.
    pub(crate) fn input_limit(&self, model: &str) -> u64 {
        self.most.get(model).copied().unwrap_or(u64::MAX)
    }
}

/// Estimates the number of tokens in message content that no provider has counted yet.
pub(crate) fn estimate(content: &[Part]) -> u64 {
    let bytes: usize = content.iter().map(part_bytes).sum();
    estimate_tokens(bytes) + content.iter().map(image_tokens).sum::<u64>() + MESSAGE_OVERHEAD_TOKENS
}

pub(crate) fn estimate_tokens(bytes: usize) -> u64 {
    (bytes / BYTES_PER_TOKEN) as u64
}

/// Estimates the number of tokens in the tool definitions.
pub(crate) fn tool_tokens(tools: &[ToolDefinition]) -> u64 {
    serde_json::to_vec(tools).map_or(0, |json| estimate_tokens(json.len()))
}

/// Returns the number of bytes of text in a message part.
pub(crate) fn part_bytes(part: &Part) -> usize {
    match part {
        Part::Text { text } | Part::Reasoning { text, .. } => text.len(),
        Part::ToolCall(call) => call_bytes(call),
        Part::ToolResult(result) => result_bytes(result),
        Part::Image(_) => 0,
    }
}

fn call_bytes(call: &ToolCall) -> usize {
    call.tool_name.len()
        + match &call.arguments {
            CallArguments::Object(map) => map
                .iter()
                .map(|(key, value)| key.len() + 4 + value.as_str().map_or_else(|| value.to_string().len(), str::len))
                .sum(),
            CallArguments::Malformed(text) => text.len(),
        }
}

fn result_bytes(result: &ToolResult) -> usize {
    result.output_text.len() + result.error.as_ref().map_or(0, |error| error.message.len() + 20)
}

/// Estimates the number of tokens for the images in a message part.
pub(crate) fn image_tokens(part: &Part) -> u64 {
    images(part).iter().map(|image| (pixels(image) / PIXELS_PER_TOKEN).min(MAX_IMAGE_TOKENS)).sum()
}

pub(crate) fn images(part: &Part) -> &[Image] {
    match part {
        Part::ToolResult(result) => &result.images,
        Part::Image(image) => std::slice::from_ref(image),
        Part::Text { .. } | Part::Reasoning { .. } | Part::ToolCall(_) => &[],
    }
}

fn pixels(image: &Image) -> u64 {
    u64::from(image.width) * u64::from(image.height)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::protocol::CallId;

    #[test]
    fn image_token_estimates_depend_on_size_and_are_capped() {
        let image =
            |width, height| Image { uri: "artifact:1".to_owned(), media_type: "image/png".to_owned(), width, height, bytes: 1 };
        let result = |images| {
            let result = ToolResult::success(CallId::new("c"), "ReadFile", "");
            estimate(&[Part::ToolResult(ToolResult { images, ..result })])
        };
        assert_eq!(result(vec![image(750, 2)]) - result(Vec::new()), 2);
        assert_eq!(result(vec![image(8_000, 8_000), image(75, 10)]) - result(Vec::new()), MAX_IMAGE_TOKENS + 1);
    }

    #[test]
    fn a_token_count_from_the_provider_corrects_estimates_for_that_model_only() {
        let mut counting = TokenCounts { asked: 1_000, ..TokenCounts::default() };
        counting.learn("a", 1_500);
        assert_eq!((counting.to_model_tokens("a", 2_000), counting.to_model_tokens("b", 2_000)), (3_000, 2_000));
        assert_eq!((counting.to_estimate("a", 3_000), counting.counted), (2_000, 1_500));
    }

    #[test]
    fn implausible_token_counts_are_ignored_or_clamped() {
        let mut counting = TokenCounts { asked: 1_000, ..TokenCounts::default() };
        for (count, ratio) in [(0, 1.0), (9, 1.0), (500, 0.5), (5_000, 3.0), (0, 3.0), (1_000_000, 1.0), (800, 0.8), (300, 1.0)] {
            counting.learn("a", count);
            assert!((counting.ratio("a") - ratio).abs() < 1e-9, "{count}");
        }
    }

    #[test]
    fn a_smaller_context_window_is_remembered_after_a_rejected_request() {
        let mut counting = TokenCounts::default();
        assert_eq!(counting.input_limit("a"), u64::MAX);
        counting.on_too_long("a", 10_000);
        counting.on_too_long("a", 20_000);
        assert_eq!(counting.input_limit("a"), 9_500);
        counting.on_too_long("a", 5);
        assert_eq!(counting.input_limit("a"), MIN_TOO_LONG_TOKENS);
    }

    #[test]
    fn tool_token_estimates_cover_the_sent_definition() {
        let tool = ToolDefinition {
            tool_name: "Read".to_owned(),
            description: "d".repeat(4_000),
            input_schema: serde_json::json!({"type": "object"}),
        };
        assert_eq!(tool_tokens(&[]), 0);
        assert!((1_000..1_050).contains(&tool_tokens(&[tool])));
    }
}
