//! Secrets in what the person says and in what is sent to the model.

use crate::policy::redact::Redactor;
use crate::ports::{ModelError, ModelRequest};
use crate::protocol::{Command, Decision, Message, Part, Role};
use std::borrow::Cow;
use std::collections::HashMap;
use std::sync::Arc;

/// The command without secrets, and what to tell the person about it.
pub fn hide_in_command(redactor: &Redactor, command: Command) -> (Command, Option<String>) {
    match command {
        Command::Prompt { text } => {
            let (text, notice) = hide_in_words(redactor, &text, "prompt");
            (Command::Prompt { text }, notice)
        }
        Command::Steer { text } => {
            let (text, notice) = hide_in_words(redactor, &text, "message");
            (Command::Steer { text }, notice)
        }
        Command::EditWaiting { id, text } => {
            let (text, notice) = hide_in_words(redactor, &text, "message");
            (Command::EditWaiting { id, text }, notice)
        }
        Command::Compact { focus: Some(focus) } => {
            let (focus, notice) = hide_in_words(redactor, &focus, "words");
            (Command::Compact { focus: Some(focus) }, notice)
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

/// What the person says to the model, and what was hidden of it.
fn hide_in_words(redactor: &Redactor, text: &str, what: &str) -> (String, Option<String>) {
    let hidden = redactor.redact(text);
    let count: usize = hidden.found.iter().map(|found| found.count).sum();
    let kinds: Vec<&str> = hidden.found.iter().map(|found| found.kind.as_str()).collect();
    let noun = if count == 1 { "secret" } else { "secrets" };
    let notice = (count > 0).then(|| format!("hid {count} {noun} ({}) in your {what} from the model", kinds.join(", ")));
    (hidden.text.into_owned(), notice)
}

/// The last net, for sessions that were kept before there was one: what the person and the tools said. What the model
/// said itself, and what only its provider can read, goes back as it came.
///
/// A request repeats all that was sent before it; what was looked at once is not looked at again.
#[derive(Default)]
pub struct LastNet {
    system: Option<(Arc<str>, Arc<str>)>,
    /// The messages of the last request as they are and as they were sent, by their address: they are held, so that no
    /// other message can have it.
    sent: HashMap<usize, (Arc<Message>, Arc<Message>)>,
}

impl LastNet {
    pub fn hide_in_request(&mut self, redactor: &Redactor, mut request: ModelRequest) -> ModelRequest {
        let mut sent = HashMap::with_capacity(request.messages.len());
        for message in &mut request.messages {
            let address = Arc::as_ptr(message).addr();
            let (_, hidden) = sent.entry(address).or_insert_with(|| {
                self.sent.remove(&address).unwrap_or_else(|| {
                    let hidden = hide_in_message(redactor, message).map_or_else(|| Arc::clone(message), Arc::new);
                    (Arc::clone(message), hidden)
                })
            });
            *message = Arc::clone(hidden);
        }
        self.sent = sent;
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

    fn said(id: &str, text: &str) -> Arc<Message> {
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
    fn whatever_the_person_says_while_the_agent_works_is_said_without_secrets() {
        let (redactor, text) = (redactor(&[SECRET]), format!("the password is {SECRET}"));
        let said = [
            Command::Prompt { text: text.clone() },
            Command::Steer { text: text.clone() },
            Command::EditWaiting { id: 1, text: text.clone() },
            Command::Compact { focus: Some(text) },
        ];
        for command in said {
            let (hidden, notice) = hide_in_command(&redactor, command);
            assert!(!format!("{hidden:?}").contains(SECRET), "{hidden:?}");
            assert!(notice.is_some_and(|notice| notice.contains("hid 1 secret")), "{hidden:?}");
        }
    }

    #[test]
    fn what_was_looked_at_for_one_request_is_the_same_in_the_next() {
        let (redactor, mut net) = (redactor(&[SECRET]), LastNet::default());
        let (plain, secret) = (said("one", "hello"), said("two", &format!("it is {SECRET}")));
        let first = net.hide_in_request(&redactor, request(&[&plain, &secret]));
        assert!(Arc::ptr_eq(&first.messages[0], &plain));
        assert!(!format!("{:?}", (&first.messages, &first.system)).contains(SECRET));
        let marked = said("three", &format!("truncated; {SECRET}"));
        let second = net.hide_in_request(&redactor, request(&[&marked, &secret, &plain]));
        assert!(Arc::ptr_eq(&second.messages[1], &first.messages[1]) && Arc::ptr_eq(&second.messages[2], &plain));
        assert!(!format!("{:?}", (&second.messages, &second.system)).contains(SECRET));
        assert_eq!(net.sent.len(), 3);
    }
}
