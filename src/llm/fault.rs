//! What a provider's refusal means, told from status, codes and wording, for the provider's own words are all there is.

use super::sse::SseError;
use crate::ports::ModelError;
use crate::protocol::{Failure, FailureKind};
use crate::sys::http::HttpError;
use serde_json::Value;
use std::time::Duration;

/// A sentence longer than this is cut when it is no JSON.
const MAX_PLAIN_CHARS: usize = 1_000;
const SHOWN_CHARS: usize = 160;

/// Who is speaking, for the hints.
#[derive(Debug, Clone)]
pub(super) struct Speaker {
    pub provider: String,
    pub model: String,
    pub key_variable: String,
    pub base_url: String,
}

/// The parts of an error that say which kind it is.
#[derive(Debug, Default)]
struct Words {
    message: String,
    /// `type`, `code` and the like, lower case, one a line.
    codes: String,
    /// A status that stands inside the body.
    status: Option<u16>,
}

impl Speaker {
    /// An answer with a status that is no success, or a body that holds an error.
    pub fn refused(&self, status: u16, status_line: &str, body: &[u8], retry_after: Option<Duration>) -> ModelError {
        let words = read_body(status_line, body);
        let status = if status < 300 { words.status.unwrap_or(0) } else { status };
        ModelError { failure: self.judge(status, words), retry_after }
    }

    /// An error object inside the stream.
    pub fn error_event(&self, error: &str) -> ModelError {
        let words = read_body("the provider reported an error without words", error.as_bytes());
        self.judge(words.status.unwrap_or(0), words).into()
    }

    /// The stream did not carry events to its end.
    pub fn broken(&self, error: SseError) -> ModelError {
        match error {
            SseError::Http(error) => self.transport(&error),
            SseError::NotEvents(body) if body.trim_ascii_start().starts_with(b"{") && holds_error(&body) => {
                self.refused(200, "200 OK", &body, None)
            }
            SseError::NotEvents(body) => {
                let text = if body.is_empty() { "nothing".to_owned() } else { format!("`{}`", shown(&body)) };
                self.garbage(&format!("expected an event stream from `{}`, got {text}", self.base_url))
            }
            SseError::TooLarge | SseError::NotText => self.garbage(&error.to_string()),
        }
    }

    pub fn transport(&self, error: &HttpError) -> ModelError {
        let message = error.to_string();
        let failure = match error {
            HttpError::Address { .. } | HttpError::Setup(_) => Failure::new(
                FailureKind::InvalidRequest,
                message,
                format!("check the address and the key of provider `{}`", self.provider),
            ),
            HttpError::Unreachable { .. } => {
                Failure::new(FailureKind::Network, message, format!("check the network and that `{}` is right", self.base_url))
            }
            HttpError::ConnectTimeout { .. } => {
                Failure::new(FailureKind::Timeout, message, "check the network and the proxy variables")
            }
            HttpError::Silent { .. } => {
                Failure::new(FailureKind::Timeout, message, "try again, or raise `llm.idle_timeout_seconds` for a slow server")
            }
            HttpError::Cut { .. } => Failure::new(FailureKind::CutStream, message, "try again"),
        };
        failure.into()
    }

    /// The answer stopped without its end marker.
    pub fn cut(&self) -> ModelError {
        let message = format!("the answer of `{}` ended in the middle", self.provider);
        Failure::new(FailureKind::CutStream, message, "try again").into()
    }

    /// Something that is no answer in this provider's language.
    pub fn garbage(&self, what: &str) -> ModelError {
        let hint = format!("check that `{}` is the address of an API that `{}` speaks", self.base_url, self.provider);
        Failure::new(FailureKind::Protocol, what, hint).into()
    }

    fn judge(&self, status: u16, words: Words) -> Failure {
        let kind = kind_of(status, &words);
        let mut failure = Failure::new(kind, words.message, self.hint(kind));
        // The model's own call was refused by the server; another attempt may bring a better one.
        failure.retryable |= words.codes.contains("tool_use_failed");
        failure
    }

    fn hint(&self, kind: FailureKind) -> String {
        match kind {
            FailureKind::Authentication => format!("check `{}`", self.key_variable),
            FailureKind::Billing => format!("check the balance of your account at `{}`", self.provider),
            FailureKind::Permission => format!("check what the key in `{}` may use", self.key_variable),
            FailureKind::NotFound => format!("check the model name `{}` and the address `{}`", self.model, self.base_url),
            FailureKind::ContextTooLong => "compact the conversation or start a new session".to_owned(),
            FailureKind::GuardrailBlocked => "say it in other words".to_owned(),
            FailureKind::RateLimited => "wait a little and try again".to_owned(),
            FailureKind::Overloaded => "the provider has trouble; try again later".to_owned(),
            FailureKind::Timeout | FailureKind::Network | FailureKind::CutStream | FailureKind::Protocol => {
                "try again".to_owned()
            }
            FailureKind::InvalidRequest => {
                format!("the provider cannot use this request; try another model than `{}`", self.model)
            }
            FailureKind::BudgetExceeded | FailureKind::MaxStepsExceeded | FailureKind::PolicyExpired | FailureKind::Internal => {
                String::new()
            }
        }
    }
}

/// The first bytes of something unexpected, on one line.
pub(super) fn shown(bytes: &[u8]) -> String {
    let text: String = String::from_utf8_lossy(bytes)
        .trim()
        .chars()
        .map(|c| if c.is_control() { ' ' } else { c })
        .take(SHOWN_CHARS + 1)
        .collect();
    match text.char_indices().nth(SHOWN_CHARS) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text,
    }
}

fn holds_error(body: &[u8]) -> bool {
    serde_json::from_slice::<Value>(body).is_ok_and(|value| {
        let said = |name: &str| value.get(name).is_some_and(|error| !error.is_null());
        said("error") || said("detail") || value.get("object").is_some_and(|kind| kind == "error")
    })
}

fn read_body(status_line: &str, body: &[u8]) -> Words {
    let Ok(value) = serde_json::from_slice::<Value>(body) else {
        let text = String::from_utf8_lossy(body);
        let text: String = text.trim().chars().take(MAX_PLAIN_CHARS).collect();
        let message = if text.is_empty() { format!("the server answered {status_line}") } else { text };
        return Words { message, ..Words::default() };
    };
    let mut words = Words::default();
    collect(&value, &mut words, 0);
    if words.message.is_empty() {
        words.message = if body.is_empty() { status_line.to_owned() } else { shown(body) };
    }
    words
}

/// Goes where the known shapes keep their sentence: `error.message`, `message`, `error`, `detail`, `errors[0]`, `[{error}]`.
fn collect(value: &Value, words: &mut Words, depth: usize) {
    if depth > 4 {
        return;
    }
    match value {
        Value::String(text) if words.message.is_empty() => text.clone_into(&mut words.message),
        Value::Array(items) => {
            if let Some(first) = items.first() {
                collect(first, words, depth + 1);
            }
        }
        Value::Object(map) => {
            for name in ["type", "code", "status", "status_code", "reason", "innererror"] {
                match map.get(name) {
                    Some(Value::String(code)) => note(words, code),
                    Some(Value::Number(code)) => {
                        let status = code.as_u64().and_then(|code| u16::try_from(code).ok());
                        words.status = words.status.or(status.filter(|status| (400..600).contains(status)));
                    }
                    Some(Value::Object(inner)) => {
                        if let Some(Value::String(code)) = inner.get("code") {
                            note(words, code);
                        }
                    }
                    Some(Value::Null | Value::Bool(_) | Value::Array(_)) | None => {}
                }
            }
            for name in ["error", "message", "msg", "detail", "details", "errors", "title", "error_description"] {
                if let Some(inner) = map.get(name)
                    && (words.message.is_empty() || name == "error")
                {
                    collect(inner, words, depth + 1);
                }
            }
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

fn note(words: &mut Words, code: &str) {
    words.codes.push_str(&code.to_lowercase());
    words.codes.push('\n');
}

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
    "invalid token",
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
    "has been deprecated",
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

fn kind_of(status: u16, words: &Words) -> FailureKind {
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
