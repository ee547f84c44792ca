//! Repair of threads that contain calls without results, results without calls, invalid or duplicate IDs, or parts that
//! only another provider can read. Anything that is left out is replaced with a note.

use super::ids::Ids;
use super::opaque_parts;
use crate::protocol::{CallId, ErrorCode, Message, MessageId, Part, Role, ToolCall, ToolError, ToolResult};
use std::collections::{HashMap, HashSet, VecDeque};
use std::sync::Arc;

/// Call in the most recent response.
struct UnansweredCall {
    sent: CallId,
    tool_name: String,
    answered: bool,
}

/// Calls in the most recent response, and which of them have results so far.
pub(super) struct Exchange {
    ids: Ids,
    /// Origin to which the thread is sent, which receives only its own opaque parts. If `None`, it receives all of
    /// them.
    origin: Option<Arc<str>>,
    calls: Vec<UnansweredCall>,
    /// Indexes of the calls that have no results yet, by their ID in the thread.
    waiting: HashMap<CallId, VecDeque<usize>>,
    /// Most recent response, in the form in which it is sent.
    of: Option<Arc<Message>>,
}

impl Exchange {
    pub(crate) fn new(ids: Ids, origin: Option<Arc<str>>) -> Self {
        Self { ids, origin, calls: Vec::new(), waiting: HashMap::new(), of: None }
    }

    /// Returns the repaired message and the IDs of its calls. [`Self::missing_results`] must be called before the next
    /// response is passed in.
    pub(crate) fn repair(&mut self, message: &Arc<Message>, taken: &mut HashSet<CallId>) -> (Arc<Message>, Vec<CallId>) {
        match message.role {
            Role::Assistant => self.answer(message, taken),
            Role::User | Role::Tool => (self.results(message), Vec::new()),
        }
    }

    /// Returns the most recent response in the form in which it is sent.
    pub(crate) fn latest_response(&self) -> Option<&Message> {
        self.of.as_deref()
    }

    /// Returns a message with results for all calls that have none, or `None` if there are no such calls.
    pub(crate) fn missing_results(&mut self) -> Option<Arc<Message>> {
        let content = self.lacking();
        let answer = self.of.as_ref()?;
        if content.is_empty() {
            return None;
        }
        let message_id = MessageId::new(format!("{}+results", answer.message_id));
        Some(Arc::new(Message { message_id, role: Role::Tool, content, ..Message::clone(answer) }))
    }

    fn answer(&mut self, message: &Arc<Message>, taken: &mut HashSet<CallId>) -> (Arc<Message>, Vec<CallId>) {
        self.calls.clear();
        self.waiting.clear();
        let mut ids = Vec::new();
        let mut changed = false;
        let mut content = Vec::new();
        for part in &message.content {
            match part {
                Part::ToolCall(call) => {
                    let sent = self.unique_id(&call.tool_call_id, taken);
                    changed |= sent != call.tool_call_id;
                    self.waiting.entry(call.tool_call_id.clone()).or_default().push_back(self.calls.len());
                    self.calls.push(UnansweredCall { sent: sent.clone(), tool_name: call.tool_name.clone(), answered: false });
                    ids.push(sent.clone());
                    content.push(Part::ToolCall(ToolCall { tool_call_id: sent, ..call.clone() }));
                }
                Part::Reasoning { text, opaque: Some(opaque) } if self.origin.is_some() => {
                    changed = true;
                    let opaque = self.origin.as_deref().and_then(|origin| opaque_parts::content_for(opaque, origin)).cloned();
                    content.push(Part::Reasoning { text: text.clone(), opaque });
                }
                Part::Text { .. } | Part::Reasoning { .. } => content.push(part.clone()),
                Part::ToolResult(_) | Part::Image(_) => changed = true,
            }
        }
        let fitted = if changed { Arc::new(Message { content, ..Message::clone(message) }) } else { Arc::clone(message) };
        self.of = Some(Arc::clone(&fitted));
        (fitted, ids)
    }

    /// Returns a valid ID that is not used by any other call in the thread.
    fn unique_id(&self, given: &CallId, taken: &mut HashSet<CallId>) -> CallId {
        let fit = |text: &str| self.ids.fit(text).map_or_else(|| CallId::new(text), CallId::new);
        let mut sent = fit(given.as_str());
        let mut number = 1;
        while !taken.insert(sent.clone()) {
            number += 1;
            sent = fit(&format!("{given}-{number}"));
        }
        sent
    }

    /// Repairs tool results. They are moved to the front, and every call must have a result before anything else
    /// follows.
    fn results(&mut self, message: &Arc<Message>) -> Arc<Message> {
        let mut results = Vec::new();
        let mut rest = Vec::new();
        let mut changed = false;
        for part in &message.content {
            match part {
                Part::ToolResult(result) => {
                    let Some(waiting) = self.waiting.get_mut(&result.tool_call_id) else {
                        changed = true;
                        let text =
                            format!("[a result of `{}`; its call was removed]\n{}", result.tool_name, result.text_for_model());
                        rest.push(Part::Text { text });
                        continue;
                    };
                    // A second result of the same call is redundant.
                    let Some(at) = waiting.pop_front() else {
                        changed = true;
                        continue;
                    };
                    let call = &mut self.calls[at];
                    call.answered = true;
                    changed |= call.sent != result.tool_call_id || !rest.is_empty();
                    let tool_call_id = call.sent.clone();
                    results.push(Part::ToolResult(ToolResult { tool_call_id, ..result.clone() }));
                }
                Part::Text { .. } | Part::Image(_) => rest.push(part.clone()),
                Part::ToolCall(_) | Part::Reasoning { .. } => changed = true,
            }
        }
        if message.role == Role::User || !rest.is_empty() {
            let lacking = self.lacking();
            changed |= !lacking.is_empty();
            results.extend(lacking);
            self.waiting.clear();
        }
        if !changed {
            return Arc::clone(message);
        }
        results.extend(rest);
        Arc::new(Message { content: results, ..Message::clone(message) })
    }

    /// Returns results for all calls that have none.
    fn lacking(&mut self) -> Vec<Part> {
        let open = self.calls.iter_mut().filter(|call| !call.answered);
        open.map(|call| {
            call.answered = true;
            let error =
                ToolError::new(ErrorCode::OutcomeUnknown, "the result is unknown; check the current state before you continue");
            Part::ToolResult(ToolResult::from_error(call.sent.clone(), call.tool_name.clone(), error))
        })
        .collect()
    }
}
