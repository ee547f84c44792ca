//! One call of a response, with its plan, its approval and its result.

use super::amend::AppliedAmendments;
use super::hooked_call::HookedCall;
use super::loop_guard::RepeatCount;
use super::preview::ActivePreview;
use super::sandbox_escalation::BlockedRun;
use super::side_effects::{self, SideEffects};
use crate::policy::Question;
use crate::ports::{CallOrder, EditedCommand, LayerRun, Plan, SavedTail, touched_path};
use crate::protocol::{
    Action, Amendment, ApprovalId, CallHooks, Effects, ErrorCode, GrantOptions, HookRun, Proposal, SandboxAccess, ToolCall,
    ToolError, ToolResult,
};
use jiff::Timestamp;
use std::fmt::Write;
use std::path::{Path, PathBuf};

/// Maximum number of paths listed for a call with an unknown outcome; further ones are only counted.
const NAMED_PATHS: usize = 10;
/// Maximum number of leftover files listed in a message.
const NAMED_LEFT: usize = 5;

/// One call of a response.
#[derive(Debug)]
pub(super) struct Call {
    pub call: ToolCall,
    pub summary: String,
    /// Paths that the call touches, known after planning. `changes`: whether the call changes them.
    pub touches: Vec<PathBuf>,
    pub changes: bool,
    /// Actions based on the arguments alone.
    pub scope: Vec<Action>,
    /// Order relative to earlier calls.
    pub order: CallOrder,
    /// Effects that a rewind cannot undo.
    pub ran: SideEffects,
    /// Proposed change, for displaying the result.
    pub proposal: Option<Proposal>,
    /// Announced and recorded form of the call: as the model proposed it, or as edited.
    pub announced: Option<EditedCommand>,
    /// Whether an approval was already requested. If so, the call requires one even if a rule allows it in the
    /// meantime.
    pub asked: bool,
    pub preview: PreviewAttempt,
    pub layer: LayerAttempt,
    /// Explanation for the user of why the call required no approval.
    pub note: Option<String>,
    /// Result of a run in which the sandbox blocked access.
    pub held: Option<BlockedRun>,
    pub row: RepeatCount,
    pub interrupted: InterruptedRun,
    pub amended: AppliedAmendments,
    /// Outcome of the hooks before the call, once they have run.
    pub hooked: Option<HookedCall>,
    /// Whether the call only polls for the end of other work.
    pub polls: bool,
    pub state: CallState,
}

/// Run of a call in a copy of the workspace: a preview, or a layer before approval.
#[derive(Debug, Default)]
pub(super) struct PreviewAttempt {
    /// Whether a run has started whose changes are not yet applied or dropped. If so, running the call applies them.
    pub has_started: bool,
    /// Reason why an attempted preview failed.
    pub failure: Option<String>,
    /// Reason why the effects of the last run could not be applied. The call runs again only if the user approves it.
    pub conflict: Option<String>,
}

/// Run of a call in a layer before approval, which happens at most once.
#[derive(Debug, Default)]
pub(super) struct LayerAttempt {
    /// Whether the call ran or started in a layer.
    pub has_started: bool,
    /// Hosts that rules allow the command to connect to.
    pub hosts: Vec<SandboxAccess>,
    /// Digest of the undecided effects that an earlier process left.
    pub digest: Option<String>,
    /// Reason why the layer was discarded. If set, the command requires approval before it runs.
    pub discard_reason: Option<String>,
}

/// Traces of a run that a crash interrupted.
#[derive(Debug, Default)]
pub(super) struct InterruptedRun {
    /// Paths with new and with old content.
    pub partly: Option<String>,
    /// Last saved output.
    pub tail: Option<SavedTail>,
    /// Temporary files left by an earlier, failed run.
    pub leftover_files: Vec<PathBuf>,
}

#[derive(Debug)]
pub(super) enum CallState {
    /// Waits for an earlier call on the same path.
    Deferred,
    Planning,
    /// Waits for the user's decision.
    Asking(Box<Pending>),
    /// Runs in a preview; its effects are not applied.
    Previewing(Box<ActivePreview>),
    Running,
    /// The outcome is unknown after a crash; waits for the user.
    Unknown,
    Done(ToolResult),
}

/// Planned call with its pending approval.
#[derive(Debug)]
pub(super) struct Pending {
    pub plan: Plan,
    pub question: Question,
    /// Offered rules.
    pub always: GrantOptions,
    pub approval_id: ApprovalId,
    pub since: Timestamp,
    /// Ticket of the approval timeout, if there is one.
    pub ticket: Option<u64>,
}

impl Call {
    pub(crate) fn new(call: ToolCall, state: CallState) -> Self {
        Self {
            summary: call.tool_name.clone(),
            call,
            touches: Vec::new(),
            changes: false,
            scope: Vec::new(),
            order: CallOrder::default(),
            ran: SideEffects::default(),
            proposal: None,
            announced: None,
            asked: false,
            preview: PreviewAttempt::default(),
            layer: LayerAttempt::default(),
            note: None,
            held: None,
            row: RepeatCount::default(),
            interrupted: InterruptedRun::default(),
            amended: AppliedAmendments::default(),
            hooked: None,
            polls: false,
            state,
        }
    }

    /// Returns the effects of a run in a copy that are applied without approval.
    pub(super) fn unasked_effects(&self, plan: &Plan) -> Option<Effects> {
        let effects = plan.effects.as_deref().filter(|_| !self.asked)?;
        Some(Effects { output: String::new(), ..effects.clone() })
    }

    pub(crate) fn mark_running(&mut self) {
        self.state = CallState::Running;
        if let Some(held) = &mut self.held {
            held.mark_rerun();
        }
    }

    /// Returns whether the plan is another run, with more access, of a command that ran in a layer. Such a command runs
    /// in a layer again.
    pub(crate) fn runs_again_in_layer(&self, plan: &Plan) -> bool {
        let is_possible = matches!(plan.layer, LayerRun::Possible) && self.preview.failure.is_none();
        self.layer.has_started && !plan.opens.is_empty() && is_possible
    }

    pub(crate) fn is_done(&self) -> bool {
        matches!(self.state, CallState::Done(_))
    }

    /// Sets the result of a call that is not carried out. If it ran in a copy, the model gets nothing of that run.
    pub(crate) fn refuse(&mut self, code: ErrorCode, message: impl Into<String>) {
        self.forget_hook_runs_after();
        let error = ToolError::new(code, message);
        let refused = ToolResult::from_error(self.call.tool_call_id.clone(), self.call.tool_name.clone(), error);
        self.set_result(refused);
    }

    /// Sets the result. An empty result does not replace an earlier one.
    pub(crate) fn set_result(&mut self, result: ToolResult) {
        let mut result = ToolResult { tool_call_id: self.call.tool_call_id.clone(), ..result };
        if !self.interrupted.leftover_files.is_empty() {
            let told = result.error.as_mut().map_or(&mut result.output_text, |error| &mut error.message);
            let words =
                format!(". An earlier run crashed before it changed anything{}", leftover_note(&self.interrupted.leftover_files));
            told.push_str(&words);
            self.interrupted.leftover_files.clear();
        }
        self.amended.annotate(&mut result);
        if let Some(hooked) = &self.hooked {
            hooked.annotate(&mut result);
        }
        self.state = CallState::Done(self.held.as_ref().map_or_else(|| result.clone(), |held| held.result_or(result.clone())));
    }

    /// Returns the command line to run if it differs from the proposed or started one; `None` if the user restored that
    /// line.
    pub(crate) fn edited_command(&self, plan: &Plan) -> Option<EditedCommand> {
        let runs = EditedCommand { summary: plan.summary.clone(), actions: plan.actions.clone() };
        let is_another = self.has_another_line() && self.announced.as_ref() != Some(&runs);
        (self.amended.began || is_another).then_some(runs)
    }

    /// Returns whether the last edit restored the proposed command line, so that no edit is reported.
    pub(crate) fn is_line_again(&self) -> bool {
        self.amended.by.last().is_some_and(Amendment::is_another_line)
    }

    fn has_another_line(&self) -> bool {
        self.amended.by.iter().any(Amendment::is_another_line)
    }

    /// Uses the edited command, and reports the call in this form from now on.
    pub(crate) fn set_edited_command(&mut self, edited: &EditedCommand) {
        self.amended.began = true;
        self.plan_as(edited);
    }

    /// Sets the actions and paths of the call as planned or edited.
    pub(crate) fn plan_as(&mut self, EditedCommand { summary, actions }: &EditedCommand) {
        self.summary.clone_from(summary);
        self.touches = actions.iter().filter_map(touched_path).collect();
        self.ran = side_effects::side_effects_of(actions, summary, self.changes);
    }

    pub(crate) fn proposes_files(&self) -> bool {
        self.changes && self.proposal.as_ref().is_some_and(|proposal| !proposal.paths.is_empty())
    }

    /// Marks the plan as edited or renewed, for the approval.
    pub(crate) fn marks(&self, plan: &mut Plan) {
        plan.amends.offer.renewed = self.amended.renewed;
        if self.has_another_line() {
            plan.amends.offer.edited = self.edited_command(plan).is_some();
        }
    }

    /// Returns whether the call must wait until an earlier call has finished.
    pub(crate) fn waits_for_earlier(&self, before: &[Call]) -> bool {
        before.iter().any(|earlier| !earlier.is_done() && self.order.waits_for(&earlier.order))
    }

    /// Defers the call until after an earlier one. It is then planned and judged again, because the effect may have
    /// changed.
    pub(crate) fn defer(&mut self) {
        self.state = CallState::Deferred;
    }

    /// Returns the result, once there is one.
    pub(crate) fn result(&self) -> Option<ToolResult> {
        match &self.state {
            CallState::Done(result) => Some(result.clone()),
            CallState::Deferred
            | CallState::Planning
            | CallState::Asking(_)
            | CallState::Previewing(_)
            | CallState::Running
            | CallState::Unknown => None,
        }
    }

    /// Sets a result with an unknown outcome.
    pub(crate) fn outcome_unknown(&mut self) {
        let mut message = match &self.interrupted.partly {
            Some(words) => {
                format!(
                    "aye exited while this call ran, and the call is partly complete; {words}. Check the result before you \
                repeat it"
                )
            }
            None => format!(
                "aye exited while this call ran, so it may be complete, partly complete or not started; check the result before \
                you repeat it{}",
                self.leftovers()
            ),
        };
        if let Some(SavedTail { text, ran_ms }) = &self.interrupted.tail {
            let seconds = ran_ms / 1_000;
            let printed: String = text.chars().filter(|letter| !letter.is_control() || matches!(letter, '\n' | '\t')).collect();
            let printed = printed.trim_end();
            let _ = match printed {
                "" => write!(message, ". It had printed nothing after {seconds} s"),
                _ => write!(message, ". Its last saved output, after {seconds} s:\n{printed}"),
            };
        }
        self.refuse(ErrorCode::OutcomeUnknown, message);
    }

    /// Describes where an unfinished file change may have left files: next to the file, under another name. If there
    /// are several files, each is either old or new.
    pub(crate) fn leftovers(&self) -> String {
        match self.touches.as_slice() {
            [] => String::new(),
            [_] => " (an unfinished copy or removal may be next to the file as `.aye-…`)".to_owned(),
            several => {
                let named: Vec<_> = several.iter().take(NAMED_PATHS).map(|path| format!("`{}`", path.display())).collect();
                let more = several.len() - named.len();
                let more = if more == 0 { String::new() } else { format!(" and {more} more") };
                let named = named.join(", ");
                format!(
                    " (each of {named}{more} is either unchanged or already changed, so check all of them; the original or an unfinished \
                     copy may be next to a file as `.aye-…`)"
                )
            }
        }
    }
}

/// Hooks.
impl Call {
    /// Applies the outcome of the hooks, including arguments that they changed.
    pub(super) fn use_hooks(&mut self, hooks: CallHooks) {
        let requested = self.call.arguments.clone();
        if let Some(arguments) = &hooks.arguments {
            self.call.arguments.clone_from(arguments);
        }
        self.hooked = Some(HookedCall { hooks, requested });
    }

    /// Adds the runs of the hooks after the call on its proposal. Returns the outcome of all hooks.
    pub(super) fn add_hook_runs(&mut self, runs: Vec<HookRun>) -> CallHooks {
        let requested = self.call.arguments.clone();
        let hooked = self.hooked.get_or_insert_with(|| HookedCall { hooks: CallHooks::default(), requested });
        hooked.hooks.add_runs_after(runs);
        hooked.hooks.clone()
    }

    /// Returns whether hooks after the call have run on its proposal or its effects.
    pub(super) fn has_hook_runs_after(&self) -> bool {
        self.hooked.as_ref().is_some_and(|hooked| hooked.hooks.has_runs_after())
    }

    /// Discards the runs of the hooks after a command in a copy, because its output is withheld or it runs again.
    /// Returns the other hooks if there were such runs. Hooks on a proposal have seen no output, so their runs are
    /// kept.
    pub(super) fn forget_hook_runs_after(&mut self) -> Option<CallHooks> {
        let hooked = self.hooked.as_mut().filter(|hooked| hooked.hooks.has_runs_after())?;
        if !self.preview.has_started && !self.layer.has_started {
            return None;
        }
        hooked.hooks.add_runs_after(Vec::new());
        Some(hooked.hooks.clone())
    }

    /// Discards the outcome of the hooks, because an earlier call has changed files that they may have read.
    pub(super) fn forget_hooks(&mut self) {
        if let Some(hooked) = self.hooked.take() {
            self.call.arguments = hooked.requested;
        }
    }

    /// Returns the reason for which a hook requires approval.
    pub(super) fn hook_question(&self) -> Option<String> {
        self.hooked.as_ref().and_then(|hooked| hooked.hooks.question())
    }

    /// Returns the sentence about a rewritten call, for the user.
    pub(super) fn rewriting(&self) -> Option<String> {
        self.hooked.as_ref().and_then(|hooked| hooked.hooks.rewriting())
    }
}

/// Returns a note about leftover files, which are in the directories of the call's files.
pub(super) fn leftover_note(left: &[PathBuf]) -> String {
    if left.is_empty() {
        return String::new();
    }
    let named: Vec<_> = left
        .iter()
        .take(NAMED_LEFT)
        .filter_map(|path| path.file_name())
        .map(|name| format!("`{}`", Path::new(name).display()))
        .collect();
    let more = left.len().saturating_sub(NAMED_LEFT);
    let more = if more == 0 { String::new() } else { format!(" and {more} more") };
    format!(" (left over next to them: {}{more})", named.join(", "))
}
