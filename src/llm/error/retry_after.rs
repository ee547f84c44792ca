//! Retry delays, which providers request in a header, in a body field or in the message, or imply by the state of their
//! rate limits.

use crate::sys::http::retry_after::{date, leading_span, number, seconds, span, span_or_date, time_until};
use jiff::Timestamp;
use serde_json::Value;
use std::time::{Duration, SystemTime};

/// Number of seconds at and above which a value is taken to be a date rather than a duration.
const EPOCH_SECONDS: f64 = 1e9;
const EPOCH_MILLISECONDS: f64 = 1e12;
const MAX_DEPTH: usize = 6;

/// Phrases that precede the delay in error messages.
const PHRASES: [&str; 14] = [
    "try again in ",
    "try again after ",
    "retry in ",
    "retry after ",
    "retry-after: ",
    "retrying in ",
    "please wait ",
    "wait for ",
    "wait ",
    "again in ",
    "reset in ",
    "resets in ",
    "reset after ",
    "available in ",
];

/// Headers that give the time at which a rate limit is reset, each with the header for the amount remaining.
const LIMITS: [(&str, &str); 11] = [
    ("x-ratelimit-reset-requests", "x-ratelimit-remaining-requests"),
    ("x-ratelimit-reset-tokens", "x-ratelimit-remaining-tokens"),
    ("x-ratelimit-reset-input-tokens", "x-ratelimit-remaining-input-tokens"),
    ("x-ratelimit-reset-output-tokens", "x-ratelimit-remaining-output-tokens"),
    ("anthropic-ratelimit-requests-reset", "anthropic-ratelimit-requests-remaining"),
    ("anthropic-ratelimit-tokens-reset", "anthropic-ratelimit-tokens-remaining"),
    ("anthropic-ratelimit-input-tokens-reset", "anthropic-ratelimit-input-tokens-remaining"),
    ("anthropic-ratelimit-output-tokens-reset", "anthropic-ratelimit-output-tokens-remaining"),
    ("anthropic-ratelimit-unified-reset", "anthropic-ratelimit-unified-remaining"),
    ("x-ratelimit-reset", "x-ratelimit-remaining"),
    ("ratelimit-reset", "ratelimit-remaining"),
];

/// Headers in which providers and proxies return request IDs.
const REQUEST_IDS: [&str; 4] = ["request-id", "x-request-id", "x-goog-request-id", "cf-ray"];
/// Maximum length of a request ID in characters.
const MAX_ID: usize = 80;

/// Retry information from the headers of an error response.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub(crate) struct RetryHints {
    /// Delay requested by the provider.
    pub wait: Option<Duration>,
    /// Time until all exhausted rate limits have been reset. Used only if no delay was requested.
    pub limits: Option<Duration>,
    /// Whether the provider recommends retrying, or `None` if it does not say.
    pub again: Option<bool>,
    /// ID that the provider assigned to the request.
    pub request_id: Option<String>,
}

/// Parses the headers of an error response. Dates are interpreted relative to the server's own clock, if the response
/// includes it.
pub(crate) fn parse_headers<'a>(header: impl Fn(&str) -> Option<&'a str>, now: SystemTime) -> RetryHints {
    let now = header("date").and_then(date).or_else(|| Timestamp::try_from(now).ok()).unwrap_or(Timestamp::UNIX_EPOCH);
    let milliseconds = ["retry-after-ms", "x-ms-retry-after-ms"].iter().find_map(|name| number(header(name)?));
    let wait = match milliseconds.filter(|wait| *wait > 0.0) {
        Some(wait) => seconds(wait / 1000.0),
        None => header("retry-after").and_then(|text| span_or_date(text, now)),
    };
    let again = header("x-should-retry").and_then(|text| match text.trim() {
        "true" => Some(true),
        "false" => Some(false),
        _ => None,
    });
    let request_id = REQUEST_IDS.iter().find_map(|name| request_id(header(name)?));
    RetryHints { wait, limits: limits(&header, now), again, request_id }
}

/// Returns the request ID if it is safe to display, which means at most `MAX_ID` printable ASCII characters.
pub(crate) fn request_id(text: &str) -> Option<String> {
    let text = text.trim();
    let is_word = (1..=MAX_ID).contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_graphic());
    is_word.then(|| text.to_owned())
}

/// Returns the latest reset time of the rate limits that are reported as exhausted. If there are none, returns the
/// latest reset time of the limits whose remaining amount is not reported, because any of these may be exhausted.
fn limits<'a>(header: &impl Fn(&str) -> Option<&'a str>, now: Timestamp) -> Option<Duration> {
    let told = |(reset, left): &(&str, &str)| {
        let wait = header(reset).and_then(|text| parse_reset(text, now))?;
        Some((wait, header(left).and_then(number)))
    };
    let known: Vec<_> = LIMITS.iter().filter_map(told).collect();
    let used_up = known.iter().filter(|(_, left)| left.is_some_and(|left| left <= 0.0)).map(|(wait, _)| *wait).max();
    used_up.or_else(|| known.iter().filter(|(_, left)| left.is_none()).map(|(wait, _)| *wait).max())
}

/// Returns the delay requested in a field of the body or, if there is none, in the message.
pub(crate) fn requested_wait(body: Option<&Value>, message: &str) -> Option<Duration> {
    body.and_then(|body| field(body, 0)).or_else(|| parse_message_delay(message))
}

/// Searches at any depth for a delay, given as `retryDelay` in a `google.rpc.RetryInfo`, as `retry_after` or in similar
/// fields.
fn field(value: &Value, depth: usize) -> Option<Duration> {
    if depth > MAX_DEPTH {
        return None;
    }
    match value {
        Value::Object(map) => {
            let own = map.iter().find_map(|(name, value)| match name.as_str() {
                "retryDelay" | "retry_delay" | "retry_after" | "retryAfter" | "retry_after_seconds" | "Retry-After" => {
                    delay(value)
                }
                "retry_after_ms" | "retryAfterMs" => seconds(value.as_f64()? / 1000.0),
                _ => None,
            });
            own.or_else(|| map.values().find_map(|value| field(value, depth + 1)))
        }
        Value::Array(items) => items.iter().take(64).find_map(|value| field(value, depth + 1)),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => None,
    }
}

/// Parses a delay such as `38`, `"38s"` or `{"seconds": 38, "nanos": 5}`.
fn delay(value: &Value) -> Option<Duration> {
    match value {
        Value::Number(number) => seconds(number.as_f64()?),
        Value::String(text) => span(text),
        Value::Object(map) => {
            let part = |name: &str| map.get(name).and_then(|value| value.as_f64().or_else(|| value.as_str()?.parse().ok()));
            seconds(part("seconds")? + part("nanos").unwrap_or(0.0) / 1e9)
        }
        Value::Null | Value::Bool(_) | Value::Array(_) => None,
    }
}

/// Parses a delay in a message such as `Please try again in 6m0.5s.` or `retry after 30 seconds`.
fn parse_message_delay(message: &str) -> Option<Duration> {
    let text = message.to_ascii_lowercase();
    PHRASES.iter().find_map(|phrase| {
        text.match_indices(phrase).find_map(|(at, _)| {
            let rest = &text[at + phrase.len()..];
            let (wait, _) = leading_span(rest)?;
            Some(wait)
        })
    })
}

/// Parses a reset time such as `1s`, `6m0s`, `20ms`, `12`, `1741305600000` or `2015-10-21T07:28:00Z`.
fn parse_reset(text: &str, now: Timestamp) -> Option<Duration> {
    let Some(count) = number(text) else { return span_or_date(text, now) };
    let moment = match count {
        count if count >= EPOCH_MILLISECONDS => Timestamp::from_millisecond(count as i64).ok()?,
        count if count >= EPOCH_SECONDS => Timestamp::from_second(count as i64).ok()?,
        count => return seconds(count),
    };
    Some(time_until(moment, now))
}

#[cfg(test)]
mod tests;
