//! Which kind of failure a refusal is; status and code alone do not tell, for servers use both as they like.

use super::body::Words;
use crate::protocol::FailureKind;

const KEY: &[&str] = &[
    "invalid_api_key",
    "authentication_error",
    "unauthenticated",
    "unauthorized",
    "incorrect api key",
    "invalid api key",
    "invalid x-api-key",
    "api key not valid",
    "api key not found",
    "api_key_invalid",
    "api key provided",
    "missing api key",
    "no api key",
    "api key is missing",
    "security token included in the request is invalid",
    "invalid access token",
    "invalid bearer token",
    "invalid api token",
    "unregistered callers",
    "invalid authentication",
    "token is expired",
    "token has expired",
];
const MONEY: &[&str] = &[
    "insufficient_quota",
    "billing_error",
    "billing_not_active",
    "billing_hard_limit",
    "insufficient_credits",
    "insufficient credits",
    "have any credits",
    "out of credits",
    "insufficient balance",
    "insufficient funds",
    "credit balance is too low",
    "exceeded your current quota, please check your plan and billing",
    "payment required",
    "requires more credits",
];
const WINDOW: &[&str] = &[
    "context_length_exceeded",
    "context_window_exceeded",
    "context length",
    "context window",
    "context size",
    "context limit",
    "exceed_context_size",
    "too_many_prompt_tokens",
    "request_too_large",
    "prompt is too long",
    "prompt too long",
    "input is too long",
    "input too long",
    "inputs too long",
    "maximum prompt length",
    "maximum input length",
    "max input tokens",
    "maximum allowed input length",
    "all messages is too long",
    "exceeds the maximum number of tokens allowed",
    "input token count",
    "input tokens exceeded",
    "input tokens exceed",
    "too many input tokens",
    "too many tokens",
    "tokens in prompt",
    "reduce the length of the messages",
    "reduce the length of your prompt",
    "context the overflows",
    "string_above_max_length",
    "larger than the model's context",
    "token limit exceeded",
];
const GUARD: &[&str] = &[
    "content_filter",
    "content_policy_violation",
    "content policy",
    "content management policy",
    "responsibleaipolicyviolation",
    "guardrail",
    "flagged by",
    "was flagged",
    "content exists risk",
    "prohibited_content",
    "blocked by safety",
    "safety system",
    "violates our usage polic",
    "violating our usage polic",
    "moderation",
    "data_inspection_failed",
    "inappropriate content",
];
const MODEL: &[&str] = &[
    "model_not_found",
    "not_found_error",
    "deploymentnotfound",
    "model identifier is invalid",
    "not a valid model",
    "invalid model",
    "unknown model",
    "model not found",
    "model not exist",
    "model does not exist",
    "no such model",
    "model_not_supported",
    "model_decommissioned",
    "has been decommissioned",
    "no endpoints found",
];
const BUSY: &[&str] = &[
    "overloaded",
    "server_error",
    "api_error",
    "internal_error",
    "internalservererror",
    "service_unavailable",
    "serviceunavailable",
    "unavailable",
    "engine_overloaded",
    "capacity",
    "insufficient_system_resource",
];
const LIMIT: &[&str] =
    &["rate_limit", "ratelimit", "rate limit", "too many requests", "too_many_requests", "resource_exhausted", "throttl"];
const TIME: &[&str] = &["timeout_error", "deadline_exceeded", "request_timeout"];

/// Status and codes first, wording where they do not decide.
pub fn kind_of(status: u16, words: &Words) -> FailureKind {
    let text = words.message.to_lowercase();
    let one_of = |list: &[&str]| list.iter().any(|word| words.codes.contains(word) || text.contains(word));
    let coded = |list: &[&str]| list.iter().any(|word| words.codes.contains(word));
    let client = status == 0 || (400..500).contains(&status);
    match status {
        401 => return FailureKind::Authentication,
        402 => return FailureKind::Billing,
        _ if client && one_of(MONEY) => return FailureKind::Billing,
        _ if client && status != 404 && status != 429 && one_of(KEY) => return FailureKind::Authentication,
        413 => return FailureKind::ContextTooLong,
        429 => return FailureKind::RateLimited,
        // Some servers of one's own answer 500 to a prompt that does not fit.
        _ if status != 404 && one_of(WINDOW) => return FailureKind::ContextTooLong,
        403 if one_of(GUARD) => return FailureKind::GuardrailBlocked,
        403 => return FailureKind::Permission,
        404 => return FailureKind::NotFound,
        408 | 504 => return FailureKind::Timeout,
        409 | 425 | 500.. => return FailureKind::Overloaded,
        300..=399 => return FailureKind::InvalidRequest,
        _ => {}
    }
    if one_of(GUARD) {
        FailureKind::GuardrailBlocked
    } else if one_of(MODEL) {
        FailureKind::NotFound
    } else if coded(&["permission_error", "permission_denied", "forbidden"]) {
        FailureKind::Permission
    } else if status == 0 && coded(LIMIT) {
        FailureKind::RateLimited
    } else if status == 0 && coded(TIME) {
        FailureKind::Timeout
    } else if status == 0 && (coded(BUSY) || !coded(&["invalid_request", "bad_request", "invalid"])) {
        FailureKind::Overloaded
    } else {
        FailureKind::InvalidRequest
    }
}
