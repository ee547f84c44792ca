//! The turn machine, its host, and the components of a session.

mod context;
mod host;
mod images;
mod limits;
mod mentions;
mod prompt;
mod redaction;
mod replay;
mod retry;
mod thread;
mod turn;

pub(crate) use host::call_timeout::{plan_with_timeout as plan_in_time, run as run_in_time};
pub(crate) use host::{
    Account, AccountState, EVENTS, ModelSetup, PolicySetup, PolicyUpdate, PolicyUpdates, ReloadRequest, RestoredSession,
    SamplingFilter, ServerConnections, SessionHandle, SessionQueries, Setup, SummaryModelSetup, request_handler, spawn,
};
pub(crate) use limits::{CHANNEL_DEPTH, MAX_STEPS};
pub(crate) use prompt::{PromptFacts, system_prompt};
pub(crate) use replay::replay;
pub(crate) use retry::Backoff;
pub(crate) use turn::{
    AgentOptions, ApprovalOptions, Approver, BudgetSetting, EffectsDecision, OfferedTools, PolicyChange, PriceAssumption,
    PriceOptions, ResumePolicy, SandboxStatus, blocked_reason, decide_effects, is_by_mode, killed_error, layer_permit,
};
