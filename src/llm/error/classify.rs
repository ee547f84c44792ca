//! Classification of provider errors. Servers use both statuses and codes inconsistently, so neither can be relied on
//! alone.

use super::body::ErrorFields;
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
    "authenticationerror",
    "authentication fails",
    "authentication failed",
    "missing authentication",
    "no auth credentials",
    "no cookie auth",
    "invalid subscription key",
    "bad credentials",
    "invalid credentials",
    "unrecognizedclientexception",
    "expiredtoken",
    "api key expired",
    "api key is invalid",
    "api key is not valid",
    "not authenticated",
    // A gateway without a database received a key for another service.
    "no_db_connection",
    "no connected db",
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
    "insufficient_balance",
    "balance is insufficient",
    "budget has been exceeded",
    "budgetexceedederror",
    "budget_exceeded",
    "exceededbudget",
    "spending limit",
    "spend limit",
    "credit limit exceeded",
    "specified api usage limits",
    "extra usage is required",
    "arrearage",
    "account is suspended",
    "recharge",
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
    "contextwindowexceedederror",
    "tokens_limit_reached",
    "request body too large",
    "request too large",
    "maximum context",
    "exceeds the context",
    "exceed the context",
    "`inputs` tokens + `max_new_tokens`",
    "range of input length should be",
    "exceeded model token limit",
    "exceeds model token limit",
    "model_max_prompt_tokens_exceeded",
    "prompt token count of",
    "prompt exceeds max length",
    "prompt is longer than",
    "input is too large to process",
    "n_keep",
    "maximum sequence length",
    "max_seq_len",
    "too large for model with",
    "exceeds the maximum input",
    "exceeds the max tokens",
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
    "content filtering policy",
    "contentpolicyviolationerror",
    "content_blocked",
    "content_moderation",
    "safety_check",
    "invalid prompt: your prompt was",
    "sensitive content",
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
    "unknown_model",
    "invalid_model",
    "modelnotfound",
    "model_not_available",
    "no models loaded",
    "no model loaded",
    "unable to access model",
    "model is not available",
    "does not have access to model",
    "modelnotready",
    "notfounderror",
    "isn't supported for this model",
    "no healthy deployments",
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
const LIMIT: &[&str] = &[
    "rate_limit",
    "ratelimit",
    "rate limit",
    "rate-limit",
    "too many requests",
    "too_many_requests",
    "toomanyrequests",
    "resource_exhausted",
    "request_limit_exceeded",
    "throttl",
    "userratelimitexceeded",
];
const TIME: &[&str] =
    &["timeout_error", "deadline_exceeded", "request_timeout", "timeouterror", "litellm.timeout", "upstream request timeout"];
const FORBIDDEN: &[&str] = &[
    "permission_error",
    "permission_denied",
    "permission-denied",
    "permissiondenied",
    "forbidden",
    "access_denied",
    "accessdenied",
    "unsupported_country",
    "user location is not supported",
    "organization has been disabled",
    "organization is disabled",
];
/// Phrases in error messages about an unsuitable request that servers report as a server error. Retrying such a request
/// would fail again.
const UNFIT: &[&str] = &[
    "does not support",
    "requires more system memory",
    "requires --jinja",
    "invalid tool",
    "unsupported",
    "invalid_request_error",
    "badrequesterror",
];
/// Phrases in error messages about a single request that exceeds the per-minute limit, which servers report as rate
/// limiting.
const TOO_LARGE: &[&str] = &["request too large for", "tokens must be reduced in order to run"];
const OVERLOADED: &[&str] = &["overloaded", "model is busy", "server is busy", "service is too busy"];

/// Classifies an error by its status and codes or, if these are inconclusive, by the wording of its message.
pub(crate) fn classify(status: u16, words: &ErrorFields) -> FailureKind {
    let text = format!("{}\n{}", words.message, words.behind).to_lowercase();
    let coded = |list: &[&str]| list.iter().any(|word| words.codes.contains(word));
    let one_of = |list: &[&str]| coded(list) || list.iter().any(|word| text.contains(word));
    let client = status == 0 || (400..500).contains(&status);
    // Servers use the same words for a quota per minute and for a paid quota.
    let by_the_minute = words.codes.contains("resource_exhausted") || words.codes.contains("rate_limit");
    match status {
        401 => return FailureKind::Authentication,
        402 => return FailureKind::Billing,
        _ if client && !by_the_minute && one_of(MONEY) => return FailureKind::Billing,
        _ if client && status != 404 && status != 429 && one_of(KEY) => return FailureKind::Authentication,
        413 => return FailureKind::ContextTooLong,
        429 if one_of(TOO_LARGE) => return FailureKind::ContextTooLong,
        429 if one_of(OVERLOADED) => return FailureKind::Overloaded,
        429 => return FailureKind::RateLimited,
        // Some self-hosted servers respond with 500 to a prompt that exceeds the context window.
        _ if status != 404 && one_of(WINDOW) => return FailureKind::ContextTooLong,
        403 if one_of(GUARD) => return FailureKind::GuardrailBlocked,
        403 if one_of(LIMIT) => return FailureKind::RateLimited,
        403 => return FailureKind::Permission,
        404 | 410 => return FailureKind::NotFound,
        408 | 504 | 522 | 524 => return FailureKind::Timeout,
        501 | 505 => return FailureKind::InvalidRequest,
        500.. if coded(LIMIT) => return FailureKind::RateLimited,
        500.. if one_of(UNFIT) => return FailureKind::InvalidRequest,
        409 | 425 | 498 | 499 | 500.. => return FailureKind::Overloaded,
        300..=399 => return FailureKind::InvalidRequest,
        _ => {}
    }
    if one_of(GUARD) {
        FailureKind::GuardrailBlocked
    } else if one_of(MODEL) {
        FailureKind::NotFound
    } else if one_of(FORBIDDEN) {
        FailureKind::Permission
    } else if coded(LIMIT) || (status == 0 && one_of(LIMIT)) {
        FailureKind::RateLimited
    } else if coded(TIME) || (status == 0 && one_of(TIME)) {
        FailureKind::Timeout
    } else if coded(OVERLOADED) || (status == 0 && (coded(BUSY) || !coded(&["invalid_request", "bad_request", "invalid"]))) {
        FailureKind::Overloaded
    } else {
        FailureKind::InvalidRequest
    }
}
