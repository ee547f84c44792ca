//! Gemini response chunks, reduced to the fields that aye uses.

use crate::llm::json::Text;
use crate::protocol::Usage;
use serde::Deserialize;
use serde_json::value::RawValue;
use std::borrow::Cow;

/// Chunk of a response. Unknown fields and kinds of parts are ignored.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct GeminiChunk<'a> {
    #[serde(default, borrow)]
    pub candidates: Option<Vec<GeminiCandidate<'a>>>,
    #[serde(default, borrow)]
    pub prompt_feedback: Option<Feedback<'a>>,
    #[serde(default, borrow)]
    pub usage_metadata: Option<&'a RawValue>,
    #[serde(default, borrow)]
    pub model_version: Option<Text<'a>>,
    #[serde(default, borrow)]
    pub error: Option<&'a RawValue>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct GeminiCandidate<'a> {
    #[serde(default)]
    pub index: Option<u64>,
    #[serde(default, borrow)]
    pub content: Option<Content<'a>>,
    #[serde(default, borrow)]
    pub finish_reason: Option<Cow<'a, str>>,
    #[serde(default, borrow)]
    pub finish_message: Option<Cow<'a, str>>,
}

#[derive(Deserialize)]
pub(crate) struct Content<'a> {
    #[serde(default, borrow)]
    pub parts: Option<Vec<&'a RawValue>>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Part<'a> {
    #[serde(default, borrow)]
    pub text: Option<&'a RawValue>,
    #[serde(default)]
    pub thought: Option<bool>,
    #[serde(default, borrow, alias = "thought_signature")]
    pub thought_signature: Option<&'a RawValue>,
    #[serde(default, borrow)]
    pub function_call: Option<FunctionCall<'a>>,
    #[serde(default, borrow)]
    pub executable_code: Option<&'a RawValue>,
    #[serde(default, borrow)]
    pub code_execution_result: Option<&'a RawValue>,
}

#[derive(Deserialize)]
pub(crate) struct FunctionCall<'a> {
    #[serde(default, borrow)]
    pub id: Option<&'a RawValue>,
    #[serde(default, borrow)]
    pub name: Option<&'a RawValue>,
    #[serde(default, borrow)]
    pub args: Option<&'a RawValue>,
    #[serde(default, borrow, rename = "partialArgs")]
    pub partial_args: Option<&'a RawValue>,
    #[serde(default, rename = "willContinue")]
    pub will_continue: Option<bool>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Feedback<'a> {
    #[serde(default, borrow)]
    pub block_reason: Option<Cow<'a, str>>,
    #[serde(default, borrow)]
    pub block_reason_message: Option<Cow<'a, str>>,
}

/// Token counts received so far. Later counts replace earlier ones.
#[derive(Deserialize, Default)]
#[serde(rename_all = "camelCase")]
pub(crate) struct GeminiUsage {
    #[serde(default)]
    prompt_token_count: Option<u64>,
    /// Number of cached tokens, which the prompt count includes.
    #[serde(default)]
    cached_content_token_count: Option<u64>,
    /// Number of input tokens used by the provider's own tools. The prompt count does not include them, but they are
    /// billed at the same rate.
    #[serde(default)]
    tool_use_prompt_token_count: Option<u64>,
    #[serde(default)]
    candidates_token_count: Option<u64>,
    /// Number of thinking tokens, which the candidates count does not include.
    #[serde(default)]
    thoughts_token_count: Option<u64>,
}

impl GeminiUsage {
    /// Replaces counts with later ones. Counts in an unknown format are ignored rather than failing the whole response.
    pub(crate) fn merge(&mut self, later: &RawValue) {
        let Ok(later) = serde_json::from_str::<Self>(later.get()) else { return };
        self.prompt_token_count = later.prompt_token_count.or(self.prompt_token_count);
        self.cached_content_token_count = later.cached_content_token_count.or(self.cached_content_token_count);
        self.tool_use_prompt_token_count = later.tool_use_prompt_token_count.or(self.tool_use_prompt_token_count);
        self.candidates_token_count = later.candidates_token_count.or(self.candidates_token_count);
        self.thoughts_token_count = later.thoughts_token_count.or(self.thoughts_token_count);
    }

    pub(crate) fn total(&self) -> Usage {
        let reasoning_tokens = self.thoughts_token_count.unwrap_or(0);
        Usage {
            input_tokens: self.prompt_token_count.unwrap_or(0).saturating_add(self.tool_use_prompt_token_count.unwrap_or(0)),
            cache_read_tokens: self.cached_content_token_count.unwrap_or(0),
            cache_write_tokens: 0,
            output_tokens: self.candidates_token_count.unwrap_or(0).saturating_add(reasoning_tokens),
            reasoning_tokens,
        }
    }

    /// Returns the usage reported so far, if any.
    pub(crate) fn usage_so_far(&self) -> Option<Usage> {
        let total = self.total();
        (total != Usage::default()).then_some(total)
    }
}
