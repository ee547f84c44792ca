//! Turn machine, which decides on the next action without using a clock, the network or the disk.
//!
//! The host performs the effects in order and stops at a failed commit, so no effect is performed before the commits
//! that precede it. The machine is composed of sub-machines, each with its own state. A sub-machine receives its
//! inputs as arguments, writes records, events and effects to the context's output buffer, and returns the next
//! action.

mod amend;
mod approval;
mod assumed_prices;
mod budget;
mod call;
mod call_batch;
mod call_recovery;
mod call_runner;
mod calls;
mod compaction;
mod completed_request;
mod context_breakdown;
mod context_window;
mod denial;
mod effects_approval;
mod fallback;
mod goal_files;
mod goals;
mod grants;
mod guardrail;
mod hooked_call;
mod io;
mod layer;
mod loop_guard;
mod machine;
mod mentions;
mod model;
mod models;
mod numbering;
mod options;
mod outputs;
mod plan_approval;
mod policy;
mod policy_in_force;
mod preview;
mod prompt_hooks;
mod prompt_queue;
mod prompts;
mod requests;
mod response;
mod resume;
mod rewind;
mod rule_files;
mod sampling;
mod sandbox_escalation;
mod side_effects;
mod spending;
mod state;
mod steps;
mod stop_hooks;
mod summary_model;
mod tasks;
#[cfg(test)]
mod tests;
mod turn_context;
mod unasked_runs;
mod usage;
mod user_command;
mod work_queue;

pub(crate) use effects_approval::{EffectsDecision, blocked_reason, decide_effects, is_by_mode, killed_error, layer_permit};
pub(crate) use io::{Effect, Input, InputTime, PlanResult, Resource};
pub(crate) use machine::TurnMachine;
pub(crate) use options::{
    AgentOptions, ApprovalOptions, Approver, BudgetSetting, OfferedTools, PriceAssumption, PriceOptions, ResumePolicy,
};
pub(crate) use policy::{PolicyChange, SandboxStatus};
pub(crate) use rule_files::RuleFileResult;
pub(crate) use sampling::SamplingUsage;
