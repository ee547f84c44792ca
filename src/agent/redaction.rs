//! Redacts secrets from user input and from requests to the model.

use crate::policy::redact::Redactor;
use crate::ports::{ModelError, ModelRequest};
use crate::protocol::{CallDenial, Command, Decision, Goal, Message, Part, Role};
use std::borrow::Cow;
use std::collections::HashMap;
use std::sync::Arc;

/// Redacts secrets from a command. Also returns a notice about them for the user, if any were found.
pub(crate) fn hide_in_command(redactor: &Redactor, command: Command) -> (Command, Option<String>) {
    match command {
        Command::Prompt { text } => {
            let (text, notice) = hide_in_message_text(redactor, &text, "prompt");
            (Command::Prompt { text }, notice)
        }
        Command::Steer { text } => {
            let (text, notice) = hide_in_message_text(redactor, &text, "message");
            (Command::Steer { text }, notice)
        }
        Command::EditWaiting { id, text } => {
            let (text, notice) = hide_in_message_text(redactor, &text, "message");
            (Command::EditWaiting { id, text }, notice)
        }
        Command::Compact { focus: Some(focus) } => {
            let (focus, notice) = hide_in_message_text(redactor, &focus, "focus");
            (Command::Compact { focus: Some(focus) }, notice)
        }
        Command::Decide { approval_id, decision: Decision::Denied(CallDenial { by, reason: Some(reason) }) } => {
            let reason = Some(redactor.redact(&reason).text.into_owned());
            (Command::Decide { approval_id, decision: Decision::Denied(CallDenial { by, reason }) }, None)
        }
        Command::Shell { line, shared } => without_a_secret(redactor, line, shared),
        Command::SetGoal { goal } => hide_in_goal(redactor, goal),
        Command::SetGoalCheck { check } => {
            let notice = secret_in_check(redactor, &check);
            (Command::SetGoalCheck { check: if notice.is_some() { String::new() } else { check } }, notice)
        }
        // Drafts are saved to disk.
        Command::SaveDraft { text } => (Command::SaveDraft { text: redactor.redact(&text).text.into_owned() }, None),
        command => (command, None),
    }
}

/// Rejects a command line that contains a secret. The line would be recorded before it runs, and redacting the secret
/// would change the command.
fn without_a_secret(redactor: &Redactor, line: String, shared: bool) -> (Command, Option<String>) {
    match secret_kinds(redactor, &line) {
        None => (Command::Shell { line, shared }, None),
        Some(kinds) => {
            let notice = format!(
                "not run: the command contains a secret ({kinds}), and commands are recorded; put it into a file or an environment \
                 variable"
            );
            (Command::Shell { line: String::new(), shared }, Some(notice))
        }
    }
}

/// Returns the kinds of secrets in a command line, or `None` if it contains none.
fn secret_kinds(redactor: &Redactor, line: &str) -> Option<String> {
    let hidden = redactor.redact(line);
    let kinds: Vec<&str> = hidden.found.iter().map(|found| found.kind.as_str()).collect();
    (!kinds.is_empty()).then(|| kinds.join(", "))
}

/// Redacts secrets from the text of a goal. A check that contains a secret is removed, which means that the goal is
/// not set.
fn hide_in_goal(redactor: &Redactor, mut goal: Goal) -> (Command, Option<String>) {
    let notice = secret_in_check(redactor, &goal.check);
    if notice.is_some() {
        goal.check.clear();
        return (Command::SetGoal { goal }, notice);
    }
    let (text, notice) = hide_in_message_text(redactor, &goal.text, "goal");
    goal.text = text;
    (Command::SetGoal { goal }, notice)
}

/// Returns the reason for rejecting a check that contains a secret, or `None` if it contains none.
fn secret_in_check(redactor: &Redactor, check: &str) -> Option<String> {
    let why = "the check contains a secret, and commands are recorded; put it into a file or an environment variable";
    secret_kinds(redactor, check).map(|kinds| format!("{why} ({kinds})"))
}

/// Redacts secrets from a user message. Also returns a notice about them for the user, if any were found.
fn hide_in_message_text(redactor: &Redactor, text: &str, what: &str) -> (String, Option<String>) {
    let hidden = redactor.redact(text);
    let count: usize = hidden.found.iter().map(|found| found.count).sum();
    let kinds: Vec<&str> = hidden.found.iter().map(|found| found.kind.as_str()).collect();
    let noun = if count == 1 { "secret" } else { "secrets" };
    let notice = (count > 0).then(|| format!("hid {count} {noun} ({}) in your {what} from the model", kinds.join(", ")));
    (hidden.text.into_owned(), notice)
}

/// Final redaction pass over a request, needed for sessions that were recorded before redaction existed. It redacts
/// text from the user and from tools. Text from the model, and data that only its provider can read, is sent back
/// unchanged.
///
/// Every request repeats all earlier messages, but messages that were already checked are not checked again.
#[derive(Default)]
pub(crate) struct RequestRedactor {
    system: Option<(Arc<str>, Arc<str>)>,
    /// Messages in the last request, in order, as pairs of the original message and the one that was sent. Holding
    /// references keeps the messages alive, so no other message can have the same address.
    sent: Vec<(Arc<Message>, Arc<Message>)>,
}

impl RequestRedactor {
    pub(crate) fn hide_in_request(&mut self, redactor: &Redactor, mut request: ModelRequest) -> ModelRequest {
        let same = |((message, _), new): &(&(Arc<Message>, Arc<Message>), &Arc<Message>)| Arc::ptr_eq(message, new);
        let known = self.sent.iter().zip(&request.messages).take_while(same).count();
        let others = self.sent.split_off(known).into_iter();
        let mut others: HashMap<usize, _> = others.map(|pair| (Arc::as_ptr(&pair.0).addr(), pair)).collect();
        for message in &request.messages[known..] {
            let pair = others.remove(&Arc::as_ptr(message).addr()).unwrap_or_else(|| {
                let hidden = hide_in_message(redactor, message).map_or_else(|| Arc::clone(message), Arc::new);
                (Arc::clone(message), hidden)
            });
            self.sent.push(pair);
        }
        for (message, (_, hidden)) in request.messages.iter_mut().zip(&self.sent) {
            // Most messages are sent unchanged, and comparing pointers is cheaper than updating reference counts.
            if !Arc::ptr_eq(message, hidden) {
                *message = Arc::clone(hidden);
            }
        }
        let known = self.system.take().filter(|(system, _)| Arc::ptr_eq(system, &request.system));
        let (_, hidden) = self.system.insert(known.unwrap_or_else(|| {
            let hidden = match redactor.redact(&request.system).text {
                Cow::Owned(hidden) => hidden.into(),
                Cow::Borrowed(_) => Arc::clone(&request.system),
            };
            (Arc::clone(&request.system), hidden)
        }));
        request.system = Arc::clone(hidden);
        request
    }
}

/// Redacts secrets from a provider's error, which may repeat the request, including the API key.
pub(crate) fn hide_in_failure(redactor: &Redactor, mut error: ModelError) -> ModelError {
    error.failure.message = redactor.redact(&error.failure.message).text.into_owned();
    error
}

/// Returns the message with its secrets redacted, or `None` if it does not need to change.
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
        Part::Reasoning { .. } | Part::ToolCall(_) | Part::Image(_) => part.clone(),
    });
    let content = content.collect();
    changed.then(|| Message { content, ..message.clone() })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::protocol::{MessageId, TaskId};

    const SECRET: &str = "correct-horse-battery-staple";

    fn redactor(known: &[&str]) -> Redactor {
        Redactor::new(Vec::new(), known.iter().copied(), || [7; 32])
    }

    fn text_message(id: &str, text: &str) -> Arc<Message> {
        let content = vec![Part::Text { text: text.to_owned() }];
        Arc::new(Message {
            message_id: MessageId::new(id),
            role: Role::User,
            content,
            token_count: 1,
            task_id: TaskId::new("task"),
            step_id: None,
            timestamp: jiff::Timestamp::UNIX_EPOCH,
        })
    }

    fn request(messages: &[&Arc<Message>]) -> ModelRequest {
        let messages = messages.iter().map(|message| Arc::clone(message)).collect();
        ModelRequest { system: SECRET.into(), messages, tools: Arc::new([]), max_output_tokens: 1, images: None, effort: None }
    }

    #[test]
    fn secrets_are_redacted_from_all_user_commands_with_text() {
        let said = |text: &str| format!("use {text} here");
        for command in [
            Command::Prompt { text: said(SECRET) },
            Command::Steer { text: said(SECRET) },
            Command::EditWaiting { id: 1, text: said(SECRET) },
            Command::Compact { focus: Some(said(SECRET)) },
            Command::SaveDraft { text: said(SECRET) },
        ] {
            let told = !matches!(command, Command::SaveDraft { .. });
            let (hidden, notice) = hide_in_command(&redactor(&[SECRET]), command);
            assert!(!format!("{hidden:?}").contains(SECRET), "{hidden:?}");
            assert_eq!(notice.is_some(), told, "{hidden:?}");
        }
    }

    #[test]
    fn redacted_messages_are_reused_in_the_next_request() {
        let (redactor, mut net) = (redactor(&[SECRET]), RequestRedactor::default());
        let (plain, secret) = (text_message("one", "hello"), text_message("two", &format!("it is {SECRET}")));
        let first = net.hide_in_request(&redactor, request(&[&plain, &secret]));
        assert!(Arc::ptr_eq(&first.messages[0], &plain));
        assert!(!format!("{:?}", (&first.messages, &first.system)).contains(SECRET));
        let marked = text_message("three", &format!("truncated; {SECRET}"));
        let second = net.hide_in_request(&redactor, request(&[&marked, &secret, &plain]));
        assert!(Arc::ptr_eq(&second.messages[1], &first.messages[1]) && Arc::ptr_eq(&second.messages[2], &plain));
        assert!(!format!("{:?}", (&second.messages, &second.system)).contains(SECRET));
        assert_eq!(net.sent.len(), 3);
    }
}
