//! Queued messages: listing, editing, removing, and sending them with the next step or after the task.

use super::draft::{on_draft_changed, take_draft};
use crate::protocol::{Command, QueuedMessage};
use crate::text;
use crate::tui::model::{RetractState, RetractedMessage, UiEffect, UiModel};
use crate::tui::picker::Row;

/// Start of the marker that replaces a redacted secret: `[redacted:KIND:8 hex]`.
const MARKER: &str = "[redacted:";

/// Handles `/steer TEXT`.
pub(crate) fn steer(model: &mut UiModel, words: &str, now: u64, effects: &mut Vec<UiEffect>) {
    let words = words.trim().to_owned();
    if words.is_empty() {
        return model.show_toast("missing message: `/steer use the other parser`", now);
    }
    if super::readiness::is_ready(model, now) {
        take_draft(model, now, effects);
        send(model, words, true, effects);
    }
}

/// Sends a message to the model. If `steer` is set and a task is running, the message is sent with the task's next
/// step.
pub(crate) fn send(model: &mut UiModel, text: String, steer: bool, effects: &mut Vec<UiEffect>) {
    model.transcript.follow_end();
    model.task.sent.push(text.clone());
    let steer = steer && model.is_running();
    effects.push(UiEffect::Send(if steer { Command::Steer { text } } else { Command::Prompt { text } }));
}

/// Handles `/queue edit ID` and `/queue drop ID`.
pub(crate) fn queue(model: &mut UiModel, words: &str, now: u64, effects: &mut Vec<UiEffect>) {
    let (verb, number) = words.split_once(' ').unwrap_or((words, ""));
    let known = matches!(verb, "edit" | "drop" | "remove" | "rm");
    let Some(id) = number.trim().trim_start_matches('#').parse::<u64>().ok().filter(|_| known) else {
        return model.show_toast(
            "`/queue` lists queued messages, `/queue edit 2` moves one to the draft, `/queue drop 2` removes it",
            now,
        );
    };
    if !model.task.waiting.iter().any(|waiting| waiting.id == id) {
        let ids: Vec<String> = model.task.waiting.iter().map(|waiting| waiting.id.to_string()).collect();
        let there = if ids.is_empty() { "none are queued".to_owned() } else { format!("queued: {}", ids.join(", ")) };
        return model.show_toast(format!("no queued message {id}; {there}"), now);
    }
    take_draft(model, now, effects);
    if verb == "edit" {
        return take_back(model, Some(id), now, effects);
    }
    model.task.waiting.retain(|waiting| waiting.id != id);
    effects.push(UiEffect::Send(Command::EditWaiting { id, text: String::new() }));
}

/// Returns one list row per queued message, for `/queue`.
pub(crate) fn rows(model: &UiModel) -> Vec<Row> {
    let row = |waiting: &QueuedMessage| Row {
        key: waiting.id.to_string(),
        cells: vec![waiting.id.to_string(), delivery_text(waiting).to_owned(), text::clean_line(&waiting.text)],
        mark: "",
        lacks: None,
        detail: text::clean(&waiting.text).into_owned(),
    };
    model.task.waiting.iter().map(row).collect()
}

/// Returns the list of queued messages as text for line mode.
pub(crate) fn to_text(model: &UiModel) -> String {
    let head = "queued; /queue edit NUMBER edits one, /queue drop NUMBER removes it".to_owned();
    let lines = model
        .task
        .waiting
        .iter()
        .map(|waiting| format!("{:>3}  {}: {}", waiting.id, delivery_text(waiting), text::clean_line(&waiting.text)));
    [head].into_iter().chain(lines).collect::<Vec<_>>().join("\n")
}

/// Describes when a queued message will be sent.
fn delivery_text(waiting: &QueuedMessage) -> &'static str {
    if waiting.steer { "next step" } else { "after the task" }
}

/// Moves a queued message to the start of the draft: the one with this ID or, if `id` is `None`, the last one.
pub(crate) fn take_back(model: &mut UiModel, id: Option<u64>, now: u64, effects: &mut Vec<UiEffect>) {
    let id = id.or_else(|| model.task.waiting.iter().map(|waiting| waiting.id).max());
    let place = model.task.waiting.iter().position(|waiting| Some(waiting.id) == id);
    let Some(QueuedMessage { id, text, steer }) = place.map(|at| model.task.waiting.remove(at)) else {
        return model.show_toast("no queued message to edit", now);
    };
    let clean = text::clean(&text).into_owned();
    let draft = model.composer.text();
    let whole = if draft.trim().is_empty() { clean.clone() } else { format!("{clean}\n\n{draft}") };
    model.composer.set(&whole);
    model.task.taken_back.push(RetractedMessage { id, text: clean, steer, race: RetractState::Open });
    // The draft is saved before the message leaves the queue. A crash in between then duplicates the message instead of
    // losing it.
    model.draft.save_at = None;
    effects.push(UiEffect::Send(Command::SaveDraft { text: whole }));
    effects.push(UiEffect::Send(Command::EditWaiting { id, text: String::new() }));
}

/// Returns whether the draft contains queued messages, all of which were to be sent with the next step.
pub(crate) fn is_steering_draft(model: &UiModel) -> bool {
    !model.task.taken_back.is_empty() && model.task.taken_back.iter().all(|one| one.steer)
}

/// Applies a change to the session's message queue.
pub(crate) fn on_queue_changed(model: &mut UiModel, mut waiting: Vec<QueuedMessage>, now: u64) {
    for one in &waiting {
        remove_prompt(&mut model.task.sent, &one.text);
    }
    let left = |one: &QueuedMessage| waiting.iter().all(|waits| waits.id != one.id);
    model.task.left_queue = model.task.waiting.iter().filter(|one| left(one)).map(|one| one.text.clone()).collect();
    let mut lost = Vec::new();
    for one in &mut model.task.taken_back {
        let waits = waiting.iter().any(|waiting| waiting.id == one.id);
        one.race = match one.race {
            RetractState::Won => RetractState::Won,
            // Another message with the same text was delivered.
            RetractState::Open | RetractState::Said if waits => RetractState::Open,
            RetractState::Open => RetractState::Gone,
            RetractState::Gone => RetractState::Won,
            RetractState::Said => {
                lost.push(one.id);
                RetractState::Won
            }
        };
    }
    // The message is in the draft, but the session has not confirmed this yet.
    waiting.retain(|waiting| model.task.taken_back.iter().all(|one| one.id != waiting.id));
    model.task.waiting = waiting;
    for id in lost {
        on_retract_failed(model, id, now);
    }
}

/// Updates the queue after text, which may combine several messages, was delivered to the model.
pub(crate) fn on_delivered(model: &mut UiModel, words: &str, now: u64) {
    remove_prompt(&mut model.task.sent, words);
    let clean = text::clean(words);
    let mut lost = Vec::new();
    for one in &mut model.task.taken_back {
        // Another message with the same text was delivered: it has left the queue, or will leave it.
        let other = model.task.left_queue.iter().chain(model.task.waiting.iter().map(|waits| &waits.text));
        if !contains_message(&clean, &one.text) || other.into_iter().any(|other| other.trim() == one.text.trim()) {
            continue;
        }
        match one.race {
            RetractState::Gone => lost.push(one.id),
            RetractState::Open => one.race = RetractState::Said,
            RetractState::Said | RetractState::Won => {}
        }
    }
    if let Some(at) = model.task.waiting.iter().position(|waits| waits.text.trim() == words.trim()) {
        model.task.waiting.remove(at);
    }
    for id in lost {
        on_retract_failed(model, id, now);
    }
}

/// Returns whether `words` equals the message or contains it as one or more whole paragraphs.
fn contains_message(words: &str, message: &str) -> bool {
    let (words, message) = (words.trim(), message.trim());
    !message.is_empty() && format!("\n\n{words}\n\n").contains(&format!("\n\n{message}\n\n"))
}

/// Removes a message from the draft that was delivered before it could be retracted, so it is not sent twice. If the
/// user has edited it since, it stays in the draft.
fn on_retract_failed(model: &mut UiModel, id: u64, now: u64) {
    let Some(at) = model.task.taken_back.iter().position(|one| one.id == id) else { return };
    let RetractedMessage { text, .. } = model.task.taken_back.remove(at);
    let draft = format!("\n\n{}\n\n", model.composer.text());
    let part = format!("\n\n{}\n\n", text.trim());
    if !draft.contains(&part) {
        return model.show_toast("the original was already sent; your changes are still in the draft", now);
    }
    let rest = draft.replacen(&part, "\n\n", 1);
    model.composer.set(rest.trim_matches('\n'));
    on_draft_changed(model, now);
    model.show_toast("the message was already sent to the model", now);
}

fn remove_prompt(prompts: &mut Vec<String>, prompt: &str) {
    if let Some(at) = prompts.iter().position(|waits| is_received_as(waits.trim(), prompt.trim())) {
        prompts.remove(at);
    }
}

/// Returns whether `received` is the message as delivered, which is either unchanged or has markers in place of
/// secrets.
fn is_received_as(message: &str, received: &str) -> bool {
    let mut parts = received.split(MARKER);
    let Some(mut rest) = parts.next().and_then(|first| message.strip_prefix(first)) else { return message == received };
    let mut last = None;
    for part in parts {
        let text = part.split_once(']').map_or("", |(_, text)| text);
        let Some(at) = rest.find(text) else { return message == received };
        rest = &rest[at + text.len()..];
        last = Some(text);
    }
    match last {
        // No text follows a secret at the end of the message.
        Some("") => true,
        Some(text) => message.ends_with(text) || message == received,
        None => rest.is_empty(),
    }
}

#[cfg(test)]
mod tests {
    use super::is_received_as;

    #[test]
    fn a_message_is_recognized_after_redaction_of_its_secrets() {
        let marker = "[redacted:known-value:67620faa]";
        for (message, received, is_same) in [
            ("go on", "go on".to_owned(), true),
            ("go on", "go".to_owned(), false),
            ("go on", "something else".to_owned(), false),
            ("use sk-1 for it", format!("use {marker} for it"), true),
            ("use sk-1", format!("use {marker}"), true),
            ("sk-1 and sk-2, please", format!("{marker} and {marker}, please"), true),
            ("use sk-1 for it", format!("use {marker} for another"), false),
            ("use sk-1 for it, now", format!("use {marker} for it"), false),
            ("what does [redacted: mean", "what does [redacted: mean".to_owned(), true),
        ] {
            assert_eq!(is_received_as(message, &received), is_same, "{message}: {received}");
        }
    }
}
