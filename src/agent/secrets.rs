//! Secrets in what the person says and in what is sent to the model.

use crate::policy::redact::Redactor;
use crate::ports::{ModelError, ModelRequest};
use crate::protocol::{Command, Decision, Message, Part, Role};
use std::borrow::Cow;
use std::sync::Arc;

/// The command without secrets, and what to tell the person about it.
pub fn hide_in_command(redactor: &Redactor, command: Command) -> (Command, Option<String>) {
    match command {
        Command::Prompt { text } => {
            let hidden = redactor.redact(&text);
            let count: usize = hidden.found.iter().map(|found| found.count).sum();
            let kinds: Vec<&str> = hidden.found.iter().map(|found| found.kind.as_str()).collect();
            let noun = if count == 1 { "secret" } else { "secrets" };
            let notice = (count > 0).then(|| format!("hid {count} {noun} ({}) in your prompt from the model", kinds.join(", ")));
            (Command::Prompt { text: hidden.text.into_owned() }, notice)
        }
        Command::Decide { approval_id, decision: Decision::Denied { reason: Some(reason) } } => {
            let reason = Some(redactor.redact(&reason).text.into_owned());
            (Command::Decide { approval_id, decision: Decision::Denied { reason } }, None)
        }
        // A draft is kept on disk.
        Command::SaveDraft { text } => (Command::SaveDraft { text: redactor.redact(&text).text.into_owned() }, None),
        command => (command, None),
    }
}

/// The last net, for sessions that were kept before there was one: what the person and the tools said. What the model
/// said itself, and what only its provider can read, goes back as it came.
pub fn hide_in_request(redactor: &Redactor, mut request: ModelRequest) -> ModelRequest {
    for message in &mut request.messages {
        if let Some(hidden) = hide_in_message(redactor, message) {
            *message = Arc::new(hidden);
        }
    }
    if let Cow::Owned(system) = redactor.redact(&request.system).text {
        request.system = system.into();
    }
    request
}

/// What a provider says went wrong can repeat what it was sent, the key included.
pub fn hide_in_failure(redactor: &Redactor, mut error: ModelError) -> ModelError {
    error.failure.message = redactor.redact(&error.failure.message).text.into_owned();
    error
}

/// `None` where nothing is to be hidden.
fn hide_in_message(redactor: &Redactor, message: &Message) -> Option<Message> {
    if message.role == Role::Assistant {
        return None;
    }
    let hide = |text: &str| match redactor.redact(text).text {
        Cow::Owned(hidden) => Some(hidden),
        Cow::Borrowed(_) => None,
    };
    let mut changed = false;
    let content = message.content.iter().map(|part| match part {
        Part::Text { text } => match hide(text) {
            Some(text) => {
                changed = true;
                Part::Text { text }
            }
            None => part.clone(),
        },
        Part::ToolResult(result) => {
            let mut result = result.clone();
            if let Some(text) = hide(&result.output_text) {
                changed = true;
                result.output_text = text;
            }
            if let Some(error) = &mut result.error
                && let Some(text) = hide(&error.message)
            {
                changed = true;
                error.message = text;
            }
            Part::ToolResult(result)
        }
        Part::Reasoning { .. } | Part::ToolCall(_) => part.clone(),
    });
    let content = content.collect();
    changed.then(|| Message { content, ..message.clone() })
}
