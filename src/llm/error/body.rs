//! Extraction of messages and codes from the error bodies of known servers.

use super::body_excerpt;
use super::retry_after::{request_id, requested_wait};
use serde_json::Value;
use std::time::Duration;

/// Maximum length in characters of an error message that is not JSON.
const MAX_PLAIN_CHARS: usize = 1_000;
/// Maximum length in characters of an upstream error that follows the message.
const MAX_BEHIND_CHARS: usize = 400;
const MAX_DEPTH: usize = 6;

/// Fields that may contain an error code.
const CODES: [&str; 14] = [
    "type",
    "code",
    "status",
    "status_code",
    "error_code",
    "errorCode",
    "reason",
    "innererror",
    "inner_error",
    "__type",
    "error_type",
    "tpe",
    "kind",
    "base_resp",
];
/// Fields that may contain the error message, in order of preference.
const SENTENCES: [&str; 18] = [
    "error",
    "message",
    "Message",
    "msg",
    "detail",
    "details",
    "errors",
    "title",
    "error_description",
    "error_message",
    "errorMessage",
    "description",
    "status_msg",
    "base_resp",
    "reason",
    "fault",
    "faultstring",
    "body",
];

/// Information extracted from an error body.
#[derive(Debug, Default)]
pub(crate) struct ErrorFields {
    pub message: String,
    /// Values of `type`, `code` and similar fields, in lower case, one per line.
    pub codes: String,
    /// Message of the upstream server, if this server forwarded one.
    pub behind: String,
    /// HTTP status given in the body.
    pub status: Option<u16>,
    /// Delay after which the provider asks clients to retry.
    pub wait: Option<Duration>,
    /// ID that the provider assigned to the request.
    pub request_id: Option<String>,
}

/// Returns whether the JSON body of a successful response actually reports an error.
pub(crate) fn is_error_body(body: &[u8]) -> bool {
    let Ok(value) = serde_json::from_slice::<Value>(body) else { return false };
    // Some servers send a list with one element.
    let value = value.get(0).unwrap_or(&value);
    let has = |name: &str| value.get(name).is_some_and(|error| !error.is_null());
    let answers = has("choices") || has("content") || has("output") || has("candidates");
    let is = |name: &str, kind: &str| value.get(name).is_some_and(|value| value == kind);
    let refused = value.pointer("/base_resp/status_code").and_then(Value::as_i64).is_some_and(|code| code != 0);
    let status = value.get("code").or_else(|| value.get("status")).and_then(parse_status).is_some();
    has("error")
        || is("object", "error")
        || is("type", "error")
        || refused
        || (!answers && (has("detail") || has("errors") || (status && (has("message") || has("msg")))))
}

pub(crate) fn read_body(status_line: &str, body: &[u8]) -> ErrorFields {
    let Ok(value) = serde_json::from_slice::<Value>(body) else {
        let text = String::from_utf8_lossy(body);
        let text: String = match page(text.trim()) {
            Some(title) => title,
            None => text.trim().chars().take(MAX_PLAIN_CHARS).collect(),
        };
        let message = if text.is_empty() { format!("the server responded with {status_line}") } else { text };
        let wait = requested_wait(None, &message);
        return ErrorFields { message, wait, ..ErrorFields::default() };
    };
    let mut words = ErrorFields::default();
    collect(&value, &mut words, 0);
    if words.message.is_empty() {
        words.message = if body.is_empty() { status_line.to_owned() } else { body_excerpt(body) };
    }
    words.request_id = value.get("request_id").and_then(Value::as_str).and_then(request_id);
    words.wait = requested_wait(Some(&value), &words.message).or_else(|| requested_wait(None, &words.behind));
    words
}

/// Returns the title or first heading of an HTML page, or an empty string if it has neither. Returns `None` if the text
/// is not HTML.
fn page(text: &str) -> Option<String> {
    if !text.starts_with('<') {
        return None;
    }
    let lower = text.to_ascii_lowercase();
    let element = |name: &str| {
        let start = lower.find(&format!("<{name}"))?;
        let open = start + lower[start..].find('>')? + 1;
        let end = open + lower[open..].find(&format!("</{name}"))?;
        Some(html_to_text(&text[open..end])).filter(|text| !text.is_empty())
    };
    Some(element("title").or_else(|| element("h1")).or_else(|| element("message")).unwrap_or_default())
}

/// Converts HTML to a single line of plain text.
fn html_to_text(html: &str) -> String {
    let mut text = String::new();
    let mut inside = false;
    for letter in html.chars() {
        match letter {
            '<' => inside = true,
            '>' if inside => inside = false,
            _ if inside => {}
            letter => text.push(letter),
        }
    }
    let entities =
        [("&lt;", "<"), ("&gt;", ">"), ("&quot;", "\""), ("&#39;", "'"), ("&#039;", "'"), ("&nbsp;", " "), ("&amp;", "&")];
    let text = entities.iter().fold(text, |text, (entity, letter)| text.replace(entity, letter));
    let words: Vec<&str> = text.split_whitespace().collect();
    words.join(" ").chars().take(MAX_PLAIN_CHARS).collect()
}

/// Looks for a message in its known locations: `error.message`, `message`, `error`, `detail`, `errors[0]` and
/// `[{error}]`. Also collects error codes and the status.
fn collect(value: &Value, words: &mut ErrorFields, depth: usize) {
    if depth > MAX_DEPTH {
        return;
    }
    match value {
        Value::String(text) if words.message.is_empty() => text.clone_into(&mut words.message),
        Value::Array(items) => {
            if let Some(first) = items.first() {
                collect(first, words, depth + 1);
            }
            reasons(items, words);
        }
        Value::Object(map) => {
            for name in CODES {
                match map.get(name) {
                    Some(Value::String(code)) => {
                        add_code(words, code);
                        words.status = words.status.or(map.get(name).and_then(parse_status));
                    }
                    Some(number @ Value::Number(_)) => words.status = words.status.or(parse_status(number)),
                    Some(Value::Object(inner)) => {
                        if let Some(Value::String(code)) = inner.get("code") {
                            add_code(words, code);
                        }
                    }
                    Some(Value::Null | Value::Bool(_) | Value::Array(_)) | None => {}
                }
            }
            for name in SENTENCES {
                if let Some(inner) = map.get(name)
                    && (words.message.is_empty() || name == "error" || name == "details")
                {
                    collect(inner, words, depth + 1);
                }
            }
            add_upstream_message(map, words);
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

/// Adds the codes found in a list of error details.
fn reasons(items: &[Value], words: &mut ErrorFields) {
    for reason in items.iter().take(16).filter_map(|item| item.get("reason")?.as_str()) {
        add_code(words, reason);
    }
}

/// Adds the message that a server forwarded from an upstream server.
fn add_upstream_message(map: &serde_json::Map<String, Value>, words: &mut ErrorFields) {
    let Some(Value::Object(metadata)) = map.get("metadata") else { return };
    let raw = match metadata.get("raw") {
        Some(Value::String(raw)) => raw.clone(),
        Some(raw @ (Value::Object(_) | Value::Array(_))) => raw.to_string(),
        Some(Value::Null | Value::Bool(_) | Value::Number(_)) | None => String::new(),
    };
    let mut inner = ErrorFields::default();
    match serde_json::from_str::<Value>(&raw) {
        Ok(value) => collect(&value, &mut inner, 1),
        Err(_) => inner.message = raw,
    }
    words.codes.push_str(&inner.codes);
    let told = inner.message.trim().chars().take(MAX_BEHIND_CHARS).collect::<String>();
    if !told.is_empty() && told != words.message {
        words.behind = told;
    }
    for reason in metadata.get("reasons").and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_str) {
        add_code(words, reason);
    }
}

/// Parses an HTTP error status that is given as a number or as a string of digits.
fn parse_status(value: &Value) -> Option<u16> {
    let number = value.as_u64().or_else(|| value.as_str()?.parse().ok())?;
    u16::try_from(number).ok().filter(|status| (400..600).contains(status))
}

fn add_code(words: &mut ErrorFields, code: &str) {
    words.codes.push_str(&code.to_lowercase());
    words.codes.push('\n');
}
