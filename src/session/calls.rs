//! Calls in the open step: their progress, and the user's decisions about them.

use super::CallChange;
use crate::ports::{EditedCommand, Record};
use crate::protocol::{
    Amendment, Approval, CallDenial, CallHooks, CallId, Decision, Message, Part, PlaceChange, Proposal, Resolution, ToolCall,
    ToolResult,
};

/// Call in the open step.
#[derive(Debug, Clone)]
pub(crate) struct OpenCall {
    pub tool_call_id: CallId,
    pub tool_name: String,
    /// Call as requested by the model or the user; `None` if the journal does not contain the request.
    pub call: Option<ToolCall>,
    pub stage: CallStage,
    /// Command as originally planned.
    pub planned: Option<EditedCommand>,
    /// Most recent one-line summary, such as `$ cargo test`.
    pub summary: String,
    pub changes: bool,
    /// Most recent proposed change.
    pub proposal: Option<Proposal>,
    /// Whether the call ran as a preview. If so, running the call applies the preview's effects.
    pub previewed: bool,
    /// Whether the call started in a layer before it was approved, whether or not that run has ended.
    pub layered: bool,
    /// Digest of the effects of the run in the layer, set once that run has ended.
    pub layer_digest: Option<String>,
    /// Reason why the last run's effects could not be applied, if the call has not run again since.
    pub conflict: Option<String>,
    pub edits: CallEdits,
    /// Outcome of the pre-call hooks.
    pub hooks: Option<CallHooks>,
    /// First run, if the sandbox blocked access during it.
    pub first_run: Option<FirstRun>,
    /// States of the files that the call changes, before and after its last start; `None` if it has not started.
    pub places: Option<Vec<PlaceChange>>,
    /// The user's denial.
    pub denied: Option<CallDenial>,
    pub result: Option<ToolResult>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum CallStage {
    /// Planned or waiting to be planned. No approval is pending, and the call is not running.
    Planning,
    /// An approval is pending.
    Asking,
    Running,
    /// Ended because the sandbox blocked access.
    Blocked,
    Done,
}

/// The user's changes to a call.
#[derive(Debug, Clone, Default)]
pub(crate) struct CallEdits {
    /// Changes in order, since the call was proposed or renewed.
    pub amendments: Vec<Amendment>,
    /// The call as edited, once it ran in that form.
    pub edited: Option<EditedCommand>,
    /// Whether the call started in its edited form and has not been planned again since.
    pub runs_edited: bool,
    /// True if the call was planned again for the current files.
    pub renewed: bool,
    /// Note for the model about the changes, added to the result.
    pub note: Option<String>,
}

impl CallEdits {
    /// Discards the changes that the next plan would use; `edited` keeps what already ran.
    fn renew(&mut self) {
        self.renewed = true;
        (self.note, self.runs_edited) = (None, false);
        self.amendments.clear();
    }

    /// Applies the start of the call, in its edited form if there is one.
    fn start(&mut self, note: Option<&String>, edited: Option<&EditedCommand>) {
        self.note = note.cloned();
        if let Some(edited) = edited {
            self.runs_edited = true;
            self.edited = Some(edited.clone());
        }
    }
}

/// Run during which the sandbox blocked access.
#[derive(Debug, Clone)]
pub(crate) struct FirstRun {
    pub result: ToolResult,
    pub latency_ms: u64,
    /// Whether the call has been started again with additional access.
    pub runs_again: bool,
}

impl OpenCall {
    fn new(tool_call_id: CallId, tool_name: String, call: Option<ToolCall>) -> Self {
        Self {
            tool_call_id,
            tool_name,
            call,
            stage: CallStage::Planning,
            planned: None,
            summary: String::new(),
            changes: false,
            proposal: None,
            previewed: false,
            layered: false,
            layer_digest: None,
            conflict: None,
            edits: CallEdits::default(),
            hooks: None,
            first_run: None,
            places: None,
            denied: None,
            result: None,
        }
    }

    pub(crate) fn is_done(&self) -> bool {
        self.stage == CallStage::Done
    }

    /// Returns whether the call was started but its result is not in the journal.
    pub(crate) fn has_no_result(&self) -> bool {
        self.places.is_some() && self.result.is_none()
    }

    /// Returns the digest of the effects of a run in a layer, if the run has ended but its effects have been neither
    /// applied nor discarded.
    pub(crate) fn undecided_layer(&self) -> Option<&str> {
        let is_open = self.previewed && self.layered && matches!(self.stage, CallStage::Planning | CallStage::Asking);
        self.layer_digest.as_deref().filter(|_| is_open)
    }

    /// Returns whether the call was running when the journal ended.
    pub(crate) fn is_running(&self) -> bool {
        self.stage == CallStage::Running
    }

    fn run(&mut self) {
        self.stage = CallStage::Running;
        if let Some(first) = &mut self.first_run {
            first.runs_again = true;
        }
    }
}

/// Calls in the open step, in the order in which they were requested.
#[derive(Debug, Default)]
pub(crate) struct OpenCalls(Vec<OpenCall>);

impl OpenCalls {
    pub(crate) fn list(&self) -> &[OpenCall] {
        &self.0
    }

    /// Removes and returns all calls when the step ends.
    pub(crate) fn close(&mut self) -> Vec<OpenCall> {
        std::mem::take(&mut self.0)
    }

    /// Replaces the calls with those requested in a step.
    pub(crate) fn request<'a>(&mut self, calls: impl Iterator<Item = &'a ToolCall>) {
        let open = |call: &ToolCall| OpenCall::new(call.tool_call_id.clone(), call.tool_name.clone(), Some(call.clone()));
        self.0 = calls.map(open).collect();
    }

    /// Adds the results of all calls in a step, which are contained in a single message.
    pub(crate) fn finish_all(&mut self, message: &Message) {
        for part in &message.content {
            if let Part::ToolResult(result) = part
                && let Some(call) = self.0.iter_mut().find(|call| call.tool_call_id == result.tool_call_id)
            {
                call.stage = CallStage::Done;
                call.result = Some(result.clone());
            }
        }
    }

    /// Marks every unfinished call as started, because an unreadable record may have started any of them.
    pub(crate) fn assume_started(&mut self) {
        for call in self.0.iter_mut().filter(|call| !call.is_done()) {
            call.run();
            call.changes = true;
        }
    }

    /// Applies a record that concerns a call. Returns the call's ID and the change, or `None` for any other record.
    pub(crate) fn apply<'r>(&mut self, record: &'r Record) -> Option<(&'r CallId, CallChange<'r>)> {
        match record {
            Record::Intent { .. } => self.plan(record),
            Record::Hooked { tool_call_id, hooks } => {
                self.update(tool_call_id, |call| call.hooks = Some(hooks.clone()));
                Some((tool_call_id, CallChange::Hooked { hooks }))
            }
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
                    call.stage = CallStage::Planning;
                    call.edits.renew();
                });
                Some((tool_call_id, CallChange::Renewed))
            }
            Record::Conflicted { tool_call_id, reason } => {
                self.update(tool_call_id, |call| {
                    (call.stage, call.conflict) = (CallStage::Planning, Some(reason.clone()));
                    (call.previewed, call.proposal, call.layer_digest, call.places) = (false, None, None, None);
                });
                Some((tool_call_id, CallChange::Conflicted))
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
            _ => self.apply_to_layer(record),
        }
    }

    /// Applies a record about a command's run in a layer.
    fn apply_to_layer<'r>(&mut self, record: &'r Record) -> Option<(&'r CallId, CallChange<'r>)> {
        match record {
            Record::PreviewStarted { tool_call_id, unasked, .. } => {
                self.update(tool_call_id, |call| {
                    (call.previewed, call.layered) = (true, call.layered || *unasked);
                    (call.layer_digest, call.conflict) = (None, None);
                    // This run has the access that was blocked during the first run.
                    call.first_run.iter_mut().for_each(|first| first.runs_again = true);
                });
                Some((tool_call_id, CallChange::PreviewStarted))
            }
            Record::LayerEnded { tool_call_id, digest, .. } => {
                self.update(tool_call_id, |call| call.layer_digest = Some(digest.clone()));
                Some((tool_call_id, CallChange::LayerEnded))
            }
            Record::Previewed { tool_call_id, proposal } => {
                self.update(tool_call_id, |call| call.proposal.clone_from(proposal));
                Some((tool_call_id, CallChange::Previewed { proposal: proposal.as_ref() }))
            }
            Record::PreviewDropped { tool_call_id } => {
                self.update(tool_call_id, |call| {
                    (call.previewed, call.proposal, call.layer_digest) = (false, None, None);
                });
                Some((tool_call_id, CallChange::PreviewDropped))
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
        open.planned = Some(EditedCommand { summary: summary.clone(), actions: actions.clone() });
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
            // The proposal now contains the change that the call would make.
            call.proposal = Some(approval.proposal.clone()).filter(|proposal| *proposal != Proposal::default());
        });
    }

    fn start(&mut self, id: &CallId, places: &[PlaceChange], told: Option<&String>, edited: Option<&EditedCommand>) {
        if !self.0.iter().any(|call| call.tool_call_id == *id) {
            self.add(id, "");
        }
        self.update(id, |call| {
            call.edits.start(told, edited);
            if let Some(edited) = edited {
                call.summary.clone_from(&edited.summary);
            }
            call.places = Some(places.to_vec());
            call.run();
        });
    }

    fn finish<'r>(&mut self, result: &'r ToolResult, latency_ms: u64) -> (&'r CallId, CallChange<'r>) {
        let id = &result.tool_call_id;
        let mut proposal = None;
        // This includes denied calls, whose result is the text that the model received.
        if let Some(call) = self.0.iter_mut().find(|call| call.tool_call_id == *id) {
            call.stage = CallStage::Done;
            call.result = Some(result.clone());
            proposal = call.proposal.clone().filter(|_| result.error.is_none());
        }
        (id, CallChange::Finished { result, latency_ms, proposal })
    }

    /// Updates the first unfinished call with the given ID, if any.
    fn update(&mut self, id: &CallId, change: impl FnOnce(&mut OpenCall)) {
        if let Some(call) = self.0.iter_mut().find(|call| !call.is_done() && call.tool_call_id == *id) {
            change(call);
        }
    }

    /// Adds a call whose request is missing from the journal.
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
            Decision::Denied(denial) => {
                self.stage = CallStage::Done;
                self.denied = Some(denial.clone());
            }
            // The effects have been applied, or were lost in a crash. A new plan starts without this choice.
            Decision::Amended { amendment: Amendment::Effects { .. } } => {}
            Decision::Amended { amendment } => self.edits.amendments.push(amendment.clone()),
            Decision::Approved
            | Decision::ApprovedInCleanContext
            | Decision::ApprovedByService
            | Decision::ApprovedAlways { .. }
            | Decision::Renewed
            | Decision::Previewed => {}
        }
    }
}
