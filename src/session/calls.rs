//! The calls of the open step: how far each of them is, and what the user decided about it.

use super::CallChange;
use crate::ports::{Edited, Record};
use crate::protocol::{
    Amendment, Approval, CallId, Decision, Message, Part, PlaceChange, Proposal, Resolution, ToolCall, ToolResult,
};

/// A call of the open step.
#[derive(Debug, Clone)]
pub struct OpenCall {
    pub tool_call_id: CallId,
    pub tool_name: String,
    /// The call as the model, or the user, asked for it. Absent where that record is not in the journal.
    pub call: Option<ToolCall>,
    pub stage: CallStage,
    /// The call as it was planned first.
    pub planned: Option<Edited>,
    /// The call as the user edited it, once that ran.
    pub edited: Option<Edited>,
    /// It started as edited, and was not renewed since.
    pub runs_edited: bool,
    /// What it does in one line, as it was said last: `$ cargo test`.
    pub summary: String,
    pub changes: bool,
    /// What it would change, as it was shown last.
    pub proposal: Option<Proposal>,
    /// A preview of it ran, and its effects are applied by running it.
    pub previewed: bool,
    /// It ran in a layer before anybody was asked, or began to.
    pub layered: bool,
    /// It ended there.
    pub layer_ended: bool,
    pub amendments: Vec<Amendment>,
    pub renewed: bool,
    /// What the model is told, with the result, of what the user changed.
    pub told: Option<String>,
    /// The run that the sandbox blocked in part.
    pub first_run: Option<FirstRun>,
    /// The files it changes, before and after, of its last start; absent where it did not start.
    pub places: Option<Vec<PlaceChange>>,
    /// The user denied it.
    pub denied: Option<CallDenial>,
    pub result: Option<ToolResult>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CallStage {
    /// Planned or to be planned: nothing is asked, nothing runs.
    Planning,
    /// An approval prompt is open.
    Asking,
    Running,
    /// It ran, and the sandbox blocked something.
    Blocked,
    Done,
}

/// A run that the sandbox blocked in part.
#[derive(Debug, Clone)]
pub struct FirstRun {
    pub result: ToolResult,
    pub latency_ms: u64,
    /// It started once more, with more access.
    pub runs_again: bool,
}

/// A denial by the user.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CallDenial {
    /// In the user's words, if there are any.
    pub reason: Option<String>,
}

impl OpenCall {
    fn new(tool_call_id: CallId, tool_name: String, call: Option<ToolCall>) -> Self {
        Self {
            tool_call_id,
            tool_name,
            call,
            stage: CallStage::Planning,
            planned: None,
            edited: None,
            summary: String::new(),
            runs_edited: false,
            changes: false,
            proposal: None,
            previewed: false,
            layered: false,
            layer_ended: false,
            amendments: Vec::new(),
            renewed: false,
            told: None,
            first_run: None,
            places: None,
            denied: None,
            result: None,
        }
    }

    pub fn is_done(&self) -> bool {
        self.stage == CallStage::Done
    }

    /// Whether it started and no result of it is in the journal.
    pub fn has_no_result(&self) -> bool {
        self.places.is_some() && self.result.is_none()
    }

    /// Whether it was running when the journal ended.
    pub fn is_running(&self) -> bool {
        self.stage == CallStage::Running
    }

    fn run(&mut self) {
        self.stage = CallStage::Running;
        if let Some(first) = &mut self.first_run {
            first.runs_again = true;
        }
    }
}

/// The calls of the open step, in their order.
#[derive(Debug, Default)]
pub struct Calls(Vec<OpenCall>);

impl Calls {
    pub fn list(&self) -> &[OpenCall] {
        &self.0
    }

    /// Removes and returns all of them: the step ends.
    pub fn close(&mut self) -> Vec<OpenCall> {
        std::mem::take(&mut self.0)
    }

    /// A step has these calls.
    pub fn request<'a>(&mut self, calls: impl Iterator<Item = &'a ToolCall>) {
        let open = |call: &ToolCall| OpenCall::new(call.tool_call_id.clone(), call.tool_name.clone(), Some(call.clone()));
        self.0 = calls.map(open).collect();
    }

    /// The results of a step, all in one message.
    pub fn finish_all(&mut self, message: &Message) {
        for part in &message.content {
            if let Part::ToolResult(result) = part
                && let Some(call) = self.0.iter_mut().find(|call| call.tool_call_id == result.tool_call_id)
            {
                call.stage = CallStage::Done;
                call.result = Some(result.clone());
            }
        }
    }

    /// A record that cannot be read may be the start of any call.
    pub fn assume_started(&mut self) {
        for call in self.0.iter_mut().filter(|call| !call.is_done()) {
            call.run();
            call.changes = true;
        }
    }

    /// Applies a record about a call; `None` where it is about none.
    pub fn apply<'r>(&mut self, record: &'r Record) -> Option<(&'r CallId, CallChange<'r>)> {
        match record {
            Record::Intent { .. } => self.plan(record),
            Record::ApprovalRequested { approval } => {
                self.ask(approval);
                Some((&approval.tool_call_id, CallChange::Asked { approval }))
            }
            Record::Decided { tool_call_id, decision, .. } => {
                self.update(tool_call_id, |call| call.decide(decision));
                Some((tool_call_id, CallChange::Decided { decision }))
            }
            Record::Refused { tool_call_id, rule, reason } => Some((tool_call_id, CallChange::Refused { rule, reason })),
            Record::Renewed { tool_call_id } => {
                self.update(tool_call_id, |call| {
                    (call.stage, call.renewed) = (CallStage::Planning, true);
                    (call.told, call.runs_edited) = (None, false);
                    call.amendments.clear();
                });
                Some((tool_call_id, CallChange::Renewed))
            }
            Record::PreviewStarted { tool_call_id, unasked } => {
                self.update(tool_call_id, |call| (call.previewed, call.layered) = (true, call.layered || *unasked));
                Some((tool_call_id, CallChange::PreviewStarted))
            }
            Record::LayerEnded { tool_call_id, .. } => {
                self.update(tool_call_id, |call| call.layer_ended = true);
                Some((tool_call_id, CallChange::LayerEnded))
            }
            Record::Previewed { tool_call_id, proposal } => {
                self.update(tool_call_id, |call| call.proposal.clone_from(proposal));
                Some((tool_call_id, CallChange::Previewed { proposal: proposal.as_ref() }))
            }
            Record::PreviewDropped { tool_call_id } => {
                self.update(tool_call_id, |call| (call.previewed, call.proposal) = (false, None));
                Some((tool_call_id, CallChange::PreviewDropped))
            }
            Record::Started { tool_call_id, rule, places, told, edited } => {
                self.start(tool_call_id, places, told.as_ref(), edited.as_ref());
                Some((tool_call_id, CallChange::Started { rule, edited: edited.as_ref() }))
            }
            Record::KeptFrom { result, latency_ms } => {
                self.update(&result.tool_call_id, |call| {
                    (call.previewed, call.stage) = (false, CallStage::Blocked);
                    call.first_run = Some(FirstRun { result: result.clone(), latency_ms: *latency_ms, runs_again: false });
                });
                Some((&result.tool_call_id, CallChange::Blocked))
            }
            Record::Finished { result, latency_ms } => Some(self.finish(result, *latency_ms)),
            Record::Resolved { tool_call_id, resolution } => {
                if *resolution == Resolution::Rerun {
                    self.update(tool_call_id, |call| (call.previewed, call.stage) = (false, CallStage::Planning));
                }
                Some((tool_call_id, CallChange::Resolved { resolution: *resolution }))
            }
            _ => None,
        }
    }

    fn plan<'r>(&mut self, record: &'r Record) -> Option<(&'r CallId, CallChange<'r>)> {
        let Record::Intent { call, summary, actions, proposal, changes, .. } = record else { return None };
        let id = &call.tool_call_id;
        let place = self.0.iter().position(|open| open.planned.is_none() && open.tool_call_id == *id);
        let open = match place {
            Some(place) => &mut self.0[place],
            None => self.add(id, &call.tool_name),
        };
        open.planned = Some(Edited { summary: summary.clone(), actions: actions.clone() });
        open.summary.clone_from(summary);
        open.changes = *changes;
        open.proposal = proposal.clone().filter(|_| *changes);
        Some((id, CallChange::Planned { call, summary, actions, proposal: proposal.as_ref(), changes: *changes }))
    }

    fn ask(&mut self, approval: &Approval) {
        let id = &approval.tool_call_id;
        if !self.0.iter().any(|call| call.tool_call_id == *id) {
            self.add(id, &approval.tool_name);
        }
        self.update(id, |call| {
            (call.stage, call.summary) = (CallStage::Asking, approval.action_summary.clone());
            // What is asked about now is what it would change now.
            call.proposal = Some(approval.proposal.clone()).filter(|proposal| *proposal != Proposal::default());
        });
    }

    fn start(&mut self, id: &CallId, places: &[PlaceChange], told: Option<&String>, edited: Option<&Edited>) {
        if !self.0.iter().any(|call| call.tool_call_id == *id) {
            self.add(id, "");
        }
        self.update(id, |call| {
            call.told = told.cloned();
            if let Some(edited) = edited {
                (call.summary, call.runs_edited) = (edited.summary.clone(), true);
                call.edited = Some(edited.clone());
            }
            call.places = Some(places.to_vec());
            call.run();
        });
    }

    fn finish<'r>(&mut self, result: &'r ToolResult, latency_ms: u64) -> (&'r CallId, CallChange<'r>) {
        let id = &result.tool_call_id;
        let mut proposal = None;
        // Also of a call that was denied: the result has the words that the model was told.
        if let Some(call) = self.0.iter_mut().find(|call| call.tool_call_id == *id) {
            call.stage = CallStage::Done;
            call.result = Some(result.clone());
            proposal = call.proposal.clone().filter(|_| result.error.is_none());
        }
        (id, CallChange::Finished { result, latency_ms, proposal })
    }

    /// The call that is not done yet, of several with one id the first.
    fn update(&mut self, id: &CallId, change: impl FnOnce(&mut OpenCall)) {
        if let Some(call) = self.0.iter_mut().find(|call| !call.is_done() && call.tool_call_id == *id) {
            change(call);
        }
    }

    /// A call whose answer is not in the journal.
    fn add(&mut self, id: &CallId, tool_name: &str) -> &mut OpenCall {
        self.0.push(OpenCall::new(id.clone(), tool_name.to_owned(), None));
        let last = self.0.len() - 1;
        &mut self.0[last]
    }
}

impl OpenCall {
    fn decide(&mut self, decision: &Decision) {
        self.stage = CallStage::Planning;
        match decision {
            Decision::Denied { reason } => {
                self.stage = CallStage::Done;
                self.denied = Some(CallDenial { reason: reason.clone() });
            }
            Decision::Amended { amendment } => self.amendments.push(amendment.clone()),
            Decision::Approved | Decision::ApprovedAlways { .. } | Decision::Renewed | Decision::Previewed => {}
        }
    }
}
