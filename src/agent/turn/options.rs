//! Options of a session.

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
    /// The approval service, for calls up to this risk that are not critical. All other calls are denied immediately.
    Service {
        max_risk: Risk,
    },
    /// No user: actions that require approval are denied immediately.
    Nobody,
    /// Everything that requires approval is approved; only for disposable environments.
    Everyone,
}

impl Approver {
    /// Returns whether this approver may approve a call with this risk.
    pub(super) fn may_decide(self, risk: Risk, critical: bool) -> bool {
        match self {
            Self::User | Self::Everyone => true,
            Self::Service { max_risk } => risk <= max_risk && !critical,
            Self::Nobody => false,
        }
    }
}

/// Handling of a task that was not finished when the process ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ResumePolicy {
    /// Pause the task and request its approvals again; the user decides.
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
    /// Source: `config.toml:12`, `--max-steps`.
    pub set_by: String,
    /// Whether the limit was set for this run, so that it overrides an earlier choice of the session.
    pub for_this_run: bool,
}

/// Assumed price, set before the session starts, for models whose price is unknown.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct PriceAssumption {
    pub price: AssumedPrice,
    /// Whether the price was set for this run, so that it overrides an earlier assumption of the session.
    pub for_this_run: bool,
}

/// Prices assumed for models whose price is unknown.
#[derive(Debug, Clone, Default)]
pub(crate) struct PriceOptions {
    /// Price for any model, from the settings or for this run.
    pub general: Option<PriceAssumption>,
    /// Price that the session above this one assumes for its model, with the name of that model.
    pub of_parent: Option<(String, AssumedPrice)>,
}

/// Origin of the approvals of a session, their authority and their time limit.
#[derive(Debug, Clone)]
pub(crate) struct ApprovalOptions {
    pub approver: Approver,
    /// Agent that the session belongs to, if another session started it.
    pub agent: Option<AskingAgent>,
    /// Time after which a pending approval is denied; `None` for no limit.
    pub timeout: Option<Duration>,
}

/// Tools offered to the model.
#[derive(Debug, Clone)]
pub(crate) struct OfferedTools {
    pub definitions: Arc<[ToolDefinition]>,
    /// Names of these tools, and of those that the model can load.
    pub names: Vec<String>,
}

/// Options of a session.
pub(crate) struct AgentOptions {
    pub model: ModelFacts,
    pub effort: Option<Effort>,
    /// Maximum number of tokens of a response, if the model supports that many.
    pub max_output_tokens: u64,
    pub max_steps: u32,
    /// Budgets set before the session starts.
    pub limits: Vec<BudgetSetting>,
    pub prices: PriceOptions,
    /// Models that continue a task while the provider of the chosen model is overloaded, in order of preference.
    pub fallback_models: Vec<String>,
    /// Model that writes summaries, if it differs from the model in use.
    pub summary_model: Option<ModelFacts>,
    /// Last model of a resumed session.
    pub model_before: Option<String>,
    /// Whether the effort was set for this run, so that it overrides an earlier choice of the session.
    pub effort_for_this_run: bool,
    pub approvals: ApprovalOptions,
    pub backoff: Backoff,
    pub system: Arc<str>,
    pub tools: OfferedTools,
    /// Sandbox of commands, described for approvals.
    pub sandbox: String,
    /// Least strict mode that can be chosen while the session runs.
    pub laxest: Mode,
    /// True if the user chose the mode for this session, so that it is restored when the session is resumed.
    pub is_mode_chosen: bool,
    /// Events that have hooks.
    pub hooks: HookEvents,
    /// Percentage of the context window at which older messages are summarized automatically; `None` to disable.
    pub compact_at_percent: Option<u64>,
    /// Session of the session service that the journal does not have yet.
    pub service_session: Option<Box<ServiceSession>>,
}

impl AgentOptions {
    /// Returns the maximum bytes in the thread for each of `count` results. The journal and the user get the whole
    /// output.
    pub(super) fn result_bytes(&self, count: usize) -> usize {
        let tokens = self.model.context_window * RESULTS_PERCENT / 100;
        let bytes = usize::try_from(tokens).unwrap_or(usize::MAX).saturating_mul(BYTES_PER_TOKEN);
        // Together they must leave space for the rest, however many there are.
        let least = MIN_RESULT_BYTES.min(bytes.saturating_mul(2) / count.max(1));
        (bytes / count.max(1)).max(least)
    }
}
