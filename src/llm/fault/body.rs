//! Where the known servers keep the sentence and the codes of an error.

use super::shown;
use super::wait::asked_in_words;
use serde_json::Value;
use std::time::Duration;

/// A sentence longer than this is cut when it is no JSON.
const MAX_PLAIN_CHARS: usize = 1_000;

/// The parts of an error that say which kind it is.
#[derive(Debug, Default)]
pub struct Words {
    pub message: String,
    /// `type`, `code` and the like, lower case, one a line.
    pub codes: String,
    /// A status that stands inside the body.
    pub status: Option<u16>,
    /// How long it asks to be left alone.
    pub wait: Option<Duration>,
}

/// Whether a JSON body without an error's status is an error.
pub fn holds_error(body: &[u8]) -> bool {
    serde_json::from_slice::<Value>(body).is_ok_and(|value| {
        let said = |name: &str| value.get(name).is_some_and(|error| !error.is_null());
        said("error") || said("detail") || value.get("object").is_some_and(|kind| kind == "error")
    })
}

pub fn read_body(status_line: &str, body: &[u8]) -> Words {
    let Ok(value) = serde_json::from_slice::<Value>(body) else {
        let text = String::from_utf8_lossy(body);
        let text: String = page_title(text.trim()).chars().take(MAX_PLAIN_CHARS).collect();
        let message = if text.is_empty() { format!("the server answered {status_line}") } else { text };
        let wait = asked_in_words(None, &message);
        return Words { message, wait, ..Words::default() };
    };
    let mut words = Words::default();
    collect(&value, &mut words, 0);
    if words.message.is_empty() {
        words.message = if body.is_empty() { status_line.to_owned() } else { shown(body) };
    }
    words.wait = asked_in_words(Some(&value), &words.message);
    words
}

/// Of an HTML page its title; a plain text is as it is.
fn page_title(text: &str) -> &str {
    let title = text.starts_with('<').then(|| text.split_once("<title>")?.1.split_once("</title>")).flatten();
    title.map_or(text, |(title, _)| title.trim())
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
            for name in ["error", "message", "Message", "msg", "detail", "details", "errors", "title", "error_description"] {
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
