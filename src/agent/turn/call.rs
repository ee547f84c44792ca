//! A single call in a response, with its plan, approval and result.

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

/// Maximum number of paths listed for a call whose outcome is unknown. Any further paths are only counted.
const NAMED_PATHS: usize = 10;
/// Maximum number of leftover files listed in a message.
const NAMED_LEFT: usize = 5;

/// A single call in a response.
#[derive(Debug)]
pub(super) struct Call {
    pub call: ToolCall,
    pub summary: String,
    /// Paths that the call touches, known once it is planned. `changes` says whether the call changes them.
    pub touches: Vec<PathBuf>,
    pub changes: bool,
    /// Actions derived from the arguments alone.
    pub scope: Vec<Action>,
    /// The call's order relative to earlier calls.
    pub order: CallOrder,
    /// Effects of the call that a rewind cannot undo.
    pub ran: SideEffects,
    /// Proposed change, used to display the result.
    pub proposal: Option<Proposal>,
    /// The call as it was announced and recorded, either as proposed by the model or as edited by the user.
    pub announced: Option<EditedCommand>,
    /// Whether approval was already requested. If so, the call still requires approval even if a rule allows it in
    /// the meantime.
    pub asked: bool,
    pub preview: PreviewAttempt,
    pub layer: LayerAttempt,
    /// Note that explains to the user why the call did not require approval.
    pub note: Option<String>,
    /// Result of a run in which the sandbox blocked access.
    pub held: Option<BlockedRun>,
    pub row: RepeatCount,
    pub interrupted: InterruptedRun,
    pub amended: AppliedAmendments,
    /// Outcome of the pre-call hooks, once they have run.
    pub hooked: Option<HookedCall>,
    /// Whether the call merely polls for the end of other work.
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
    /// Reason why the last run's effects could not be applied. The call runs again only if the user approves it.
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
    /// Temporary files left behind by an earlier run that failed.
    pub leftover_files: Vec<PathBuf>,
}

#[derive(Debug)]
pub(super) enum CallState {
    /// Waiting for an earlier call on the same path.
    Deferred,
    Planning,
    /// Waiting for the user's decision.
    Asking(Box<Pending>),
    /// Running in a preview, whose effects have not been applied.
    Previewing(Box<ActivePreview>),
    Running,
    /// Unknown outcome after a crash; waiting for the user.
    Unknown,
    Done(ToolResult),
}

/// Planned call that is waiting for approval.
#[derive(Debug)]
pub(super) struct Pending {
    pub plan: Plan,
    pub question: Question,
    /// Rules that the user can choose to save.
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

    /// Returns the effects of a run in a layer that are applied without approval, if any.
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

    /// Returns whether the plan runs a command again with more access after it ran in a layer. Such a command runs in
    /// a layer again.
    pub(crate) fn runs_again_in_layer(&self, plan: &Plan) -> bool {
        let is_possible = matches!(plan.layer, LayerRun::Possible) && self.preview.failure.is_none();
        self.layer.has_started && !plan.opens.is_empty() && is_possible
    }

    pub(crate) fn is_done(&self) -> bool {
        matches!(self.state, CallState::Done(_))
    }

    /// Sets the result of a call that will not be carried out. If the call ran in a layer, the model receives none of
    /// that run's output.
    pub(crate) fn refuse(&mut self, code: ErrorCode, message: impl Into<String>) {
        self.refuse_with(ToolError::new(code, message));
    }

    /// Same as `refuse`, for an error that already exists.
    pub(crate) fn refuse_with(&mut self, error: ToolError) {
        self.forget_hook_runs_after();
        let refused = ToolResult::from_error(self.call.tool_call_id.clone(), self.call.tool_name.clone(), error);
        self.set_result(refused);
    }

    /// Sets the result. If an earlier run was blocked by the sandbox, its result is included.
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

    /// Returns the command line to run if it differs from the one proposed or started. Returns `None` if the user
    /// restored that line.
    pub(crate) fn edited_command(&self, plan: &Plan) -> Option<EditedCommand> {
        let runs = EditedCommand { summary: plan.summary.clone(), actions: plan.actions.clone() };
        let is_another = self.has_another_line() && self.announced.as_ref() != Some(&runs);
        (self.amended.began || is_another).then_some(runs)
    }

    /// Returns whether the last amendment set a command line. If [`Self::edited_command`] then returns `None`, the
    /// amendment restored the proposed line.
    pub(crate) fn is_line_again(&self) -> bool {
        self.amended.by.last().is_some_and(Amendment::is_another_line)
    }

    fn has_another_line(&self) -> bool {
        self.amended.by.iter().any(Amendment::is_another_line)
    }

    /// Adopts the edited command. From now on, the call is reported in this form.
    pub(crate) fn set_edited_command(&mut self, edited: &EditedCommand) {
        self.amended.began = true;
        self.plan_as(edited);
    }

    /// Sets the call's actions and paths, as planned or edited.
    pub(crate) fn plan_as(&mut self, EditedCommand { summary, actions }: &EditedCommand) {
        self.summary.clone_from(summary);
        self.touches = actions.iter().filter_map(touched_path).collect();
        self.ran = side_effects::side_effects_of(actions, summary, self.changes);
    }

    pub(crate) fn proposes_files(&self) -> bool {
        self.changes && self.proposal.as_ref().is_some_and(|proposal| !proposal.paths.is_empty())
    }

    /// Marks the plan as edited or renewed for the approval.
    pub(crate) fn marks(&self, plan: &mut Plan) {
        plan.amends.offer.renewed = self.amended.renewed;
        if self.has_another_line() {
            plan.amends.offer.edited = self.edited_command(plan).is_some();
        }
    }

    /// Returns whether the call must wait for an earlier call to finish.
    pub(crate) fn waits_for_earlier(&self, before: &[Call]) -> bool {
        before.iter().any(|earlier| !earlier.is_done() && self.order.waits_for(&earlier.order))
    }

    /// Defers the call until an earlier call has finished. It is then planned and judged again, because its effect
    /// may have changed.
    pub(crate) fn defer(&mut self) {
        self.state = CallState::Deferred;
    }

    /// Returns the result, if there is one yet.
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

    /// Sets a result that says that the outcome is unknown.
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

    /// Describes where an unfinished file change may have left files, which is next to the changed file under another
    /// name. If the call changes several files, each of them has either its old or its new content.
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

/// Hook outcomes.
impl Call {
    /// Applies the outcome of the pre-call hooks, including any arguments that they changed.
    pub(super) fn use_hooks(&mut self, hooks: CallHooks) {
        let requested = self.call.arguments.clone();
        if let Some(arguments) = &hooks.arguments {
            self.call.arguments.clone_from(arguments);
        }
        self.hooked = Some(HookedCall { hooks, requested });
    }

    /// Adds the runs of the post-call hooks on the call's proposal. Returns the outcome of all hooks.
    pub(super) fn add_hook_runs(&mut self, runs: Vec<HookRun>) -> CallHooks {
        let requested = self.call.arguments.clone();
        let hooked = self.hooked.get_or_insert_with(|| HookedCall { hooks: CallHooks::default(), requested });
        hooked.hooks.add_runs_after(runs);
        hooked.hooks.clone()
    }

    /// Returns whether the post-call hooks have already run on the call's proposal or effects.
    pub(super) fn has_hook_runs_after(&self) -> bool {
        self.hooked.as_ref().is_some_and(|hooked| hooked.hooks.has_runs_after())
    }

    /// Discards the runs of the hooks that followed a command in a layer, because its output is withheld or the
    /// command runs again. Returns the remaining hook outcome if there were such runs. Hooks that ran on a proposal
    /// have not seen any output, so their runs are kept.
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

    /// Returns the reason why a hook requires approval, if one does.
    pub(super) fn hook_question(&self) -> Option<String> {
        self.hooked.as_ref().and_then(|hooked| hooked.hooks.question())
    }

    /// Returns a sentence that tells the user how hooks rewrote the call, if they did.
    pub(super) fn rewriting(&self) -> Option<String> {
        self.hooked.as_ref().and_then(|hooked| hooked.hooks.rewriting())
    }
}

/// Returns a note about leftover files, which are in the same directories as the call's files.
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
