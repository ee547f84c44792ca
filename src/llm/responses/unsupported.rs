//! Features that a server does not support. aye learns about them from errors and leaves them out afterwards.

use crate::llm::error::ErrorContext;
use crate::ports::ModelError;
use crate::protocol::FailureKind;
use std::sync::atomic::{AtomicU8, Ordering};

/// Optional feature of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Extra {
    /// Encrypted reasoning to send back in the next request.
    Sealed,
    /// Summaries of the reasoning.
    Summary,
    Effort,
    CacheKey,
    Parallel,
    Limit,
    /// IDs of items that the server has not stored.
    ItemIds,
    /// Encrypted items. A server rejects those that the account cannot decrypt.
    Kept,
}

/// Lower-case phrases by which errors refer to a feature. More specific entries come first.
const ERROR_WORDS: [(Extra, &[&str]); 8] = [
    (Extra::Kept, &["could not be verified", "could not be decrypted"]),
    (Extra::Sealed, &["encrypted content is not supported", "encrypted_content", "'include'"]),
    (Extra::Summary, &["reasoning.summary", "reasoning summar"]),
    (Extra::Effort, &["reasoning.effort", "reasoning_effort", "'reasoning'"]),
    (Extra::CacheKey, &["prompt_cache_key"]),
    (Extra::Parallel, &["parallel_tool_calls"]),
    (Extra::Limit, &["max_output_tokens"]),
    (Extra::ItemIds, &["items are not persisted"]),
];

/// Phrases which mean that the server does not support a field at all, rather than just its value.
const UNKNOWN: [&str; 11] = [
    "not supported",
    "unsupported",
    "unknown parameter",
    "unrecognized",
    "not permitted",
    "not allowed",
    "must be verified",
    "unexpected",
    "items are not persisted",
    "could not be verified",
    "could not be decrypted",
];

/// Features that a server does not support.
#[derive(Debug, Default)]
pub(in crate::llm) struct MissingFeatures(AtomicU8);

impl MissingFeatures {
    pub(crate) fn has(&self, extra: Extra) -> bool {
        self.0.load(Ordering::Relaxed) & feature_bit(extra) != 0
    }

    /// Learns from an error. Returns whether there is a feature that the next request can leave out, so that retrying
    /// makes sense.
    pub(crate) fn learn(&self, status: u16, speaker: &ErrorContext, error: &mut ModelError) -> bool {
        let failure = &mut error.failure;
        let message = failure.message.to_lowercase();
        if matches!(status, 400 | 404 | 422) && UNKNOWN.iter().any(|word| message.contains(word)) {
            let about = |(_, words): &&(Extra, &[&str])| words.iter().any(|word| message.contains(word));
            let extra = ERROR_WORDS.iter().find(about).map(|(extra, _)| *extra);
            if let Some(extra) = extra.filter(|extra| !self.has(*extra)) {
                self.0.fetch_or(feature_bit(extra), Ordering::Relaxed);
                failure.retryable = true;
                "retried without the fields that this server does not support".clone_into(&mut failure.hint);
                return true;
            }
        }
        let about_model = message.contains("model") || message.contains(&format!("'{}'", speaker.model.to_lowercase()));
        let nowhere = matches!(status, 405 | 501) || (failure.kind == FailureKind::NotFound && !about_model);
        if nowhere {
            failure.retryable = false;
            failure.hint = format!(
                "`{}` may not support the Responses API; set `providers.{}.api = \"openai-chat\"` in config.toml, or correct the address",
                speaker.base_url, speaker.provider
            );
        }
        false
    }
}

fn feature_bit(extra: Extra) -> u8 {
    1 << extra as u8
}
