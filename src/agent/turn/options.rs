//! Session options.

use super::super::limits::{BYTES_PER_TOKEN, MIN_RESULT_BYTES, RESULTS_PERCENT};
use super::super::retry::Backoff;
use crate::ports::ServiceSession;
use crate::protocol::{AskingAgent, AssumedPrice, BudgetLimit, Effort, HookEvents, Mode, ModelFacts, Risk, ToolDefinition};
use std::sync::Arc;
use std::time::Duration;

/// Authority that decides on approvals.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Approver {
    User,
    /// The approval service, which decides on calls up to this risk that are not critical. All other calls that
    /// require approval are denied immediately.
    Service {
        max_risk: Risk,
    },
    /// No approver. Calls that require approval are denied immediately.
    Nobody,
    /// Automatic approval of everything that requires approval. Intended only for disposable environments.
    Everyone,
}

impl Approver {
    /// Returns whether this approver may approve a call with the given risk.
    pub(super) fn may_decide(self, risk: Risk, critical: bool) -> bool {
        match self {
            Self::User | Self::Everyone => true,
            Self::Service { max_risk } => risk <= max_risk && !critical,
            Self::Nobody => false,
        }
    }
}

/// How to handle a task that was unfinished when the process ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ResumePolicy {
    /// Pause the task and request its approvals again. The user decides how to continue.
    Pause,
    /// Continue the task immediately.
    Continue,
    /// End the task, because a new prompt replaces it.
    Discard,
}

/// Limit set before the session starts, with its source.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct BudgetSetting {
    pub limit: BudgetLimit,
    /// Source, such as `config.toml:12` or `--max-steps`.
    pub set_by: String,
    /// Whether the limit was set for this run and therefore overrides an earlier choice in the session.
    pub for_this_run: bool,
}

/// Price assumed for models whose price is unknown, set before the session starts.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct PriceAssumption {
    pub price: AssumedPrice,
    /// Whether the price was set for this run and therefore overrides an earlier assumption in the session.
    pub for_this_run: bool,
}

/// Prices assumed for models whose price is unknown.
#[derive(Debug, Clone, Default)]
pub(crate) struct PriceOptions {
    /// Price for any model, from the settings or for this run.
    pub general: Option<PriceAssumption>,
    /// Name of the parent session's model, with the price that the parent session assumes for it.
    pub of_parent: Option<(String, AssumedPrice)>,
}

/// Origin of the approvals of a session, their authority and their time limit.
#[derive(Debug, Clone)]
pub(crate) struct ApprovalOptions {
    pub approver: Approver,
    /// Agent that this session belongs to, if it was started by another session.
    pub agent: Option<AskingAgent>,
    /// Time after which a pending approval is denied; `None` for no limit.
    pub timeout: Option<Duration>,
}

/// Tools offered to the model.
#[derive(Debug, Clone)]
pub(crate) struct OfferedTools {
    pub definitions: Arc<[ToolDefinition]>,
    /// Names of the tools that are offered, and of those that the model can load.
    pub names: Vec<String>,
}

/// Session options.
pub(crate) struct AgentOptions {
    pub model: ModelFacts,
    pub effort: Option<Effort>,
    /// Maximum number of tokens in a response, if the model supports that many.
    pub max_output_tokens: u64,
    pub max_steps: u32,
    /// Budgets set before the session starts.
    pub limits: Vec<BudgetSetting>,
    pub prices: PriceOptions,
    /// Models that continue a task while the chosen model's provider is overloaded, in order of preference.
    pub fallback_models: Vec<String>,
    /// Model that writes summaries, if it differs from the current model.
    pub summary_model: Option<ModelFacts>,
    /// Most recent model of a resumed session.
    pub model_before: Option<String>,
    /// Whether the effort was set for this run and therefore overrides an earlier choice in the session.
    pub effort_for_this_run: bool,
    pub approvals: ApprovalOptions,
    pub backoff: Backoff,
    pub system: Arc<str>,
    pub tools: OfferedTools,
    /// Description of the command sandbox, shown in approvals.
    pub sandbox: String,
    /// Most permissive mode that can be chosen while the session runs.
    pub laxest: Mode,
    /// Mode that the user chose for this session. It is recorded so that a resumed session is at least as strict.
    pub chosen_mode: Option<Mode>,
    /// Events for which there are hooks.
    pub hooks: HookEvents,
    /// Percentage of the context window at which older messages are summarized automatically; `None` to disable this.
    pub compact_at_percent: Option<u64>,
    /// Registration with the session service, until it is recorded in the journal.
    pub service_session: Option<Box<ServiceSession>>,
}

impl AgentOptions {
    /// Returns the maximum size of each of `count` results in the thread, in bytes. The journal and the user receive
    /// the full output.
    pub(super) fn result_bytes(&self, count: usize) -> usize {
        let tokens = self.model.context_window * RESULTS_PERCENT / 100;
        let bytes = usize::try_from(tokens).unwrap_or(usize::MAX).saturating_mul(BYTES_PER_TOKEN);
        // Together, the results must leave space for the rest of the thread, no matter how many there are.
        let least = MIN_RESULT_BYTES.min(bytes.saturating_mul(2) / count.max(1));
        (bytes / count.max(1)).max(least)
    }
}
