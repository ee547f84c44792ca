//! The vocabulary every part shares: ids, messages, tool calls, actions, proposals, approvals, commands, events.
//!
//! Nothing here does anything. What is serialised uses camelCase fields and `snake_case` event names.

pub mod action;
pub mod approval;
mod artifact;
mod budget;
mod changes;
pub mod command;
mod context;
pub mod cut;
pub mod event;
pub mod failure;
pub mod grant;
pub mod id;
pub mod layer;
pub mod message;
pub mod mode;
mod model;
mod queue;
pub mod sandbox;
mod state;
pub mod tool;
mod tool_use;
pub mod usage;

pub use action::{Action, Place, Target};
pub use approval::{Approval, Decision, Part as CommandPart, Risk, RuleOrigin, VerdictKind};
pub use artifact::{ARTIFACT_SCHEME, Artifact, ArtifactKind, Image};
pub use budget::{Budget, BudgetLimit, BudgetScope, BudgetUnit};
pub use changes::{ChangeStatus, ChangedBy, ChangedFile, ChangedFiles};
pub use command::{Command, Resolution};
pub use context::{Compaction, CompactionTrigger, ContextShare, ContextUse};
pub use cut::{counted, cut_after, cut_before, size, truncated};
pub use event::{Event, EventKind};
pub use failure::{Failure, FailureKind};
pub use grant::{Always, GrantRule, GrantScope, Offer, Remember, RulePlace};
pub use id::{ApprovalId, CallId, MessageId, SessionId, StepId, TaskId, WorkspaceId};
pub use layer::PolicyLayer;
pub use message::{Arguments, Message, Part, Role, StopReason, ToolCall};
pub use mode::Mode;
pub use model::{Effort, ListedModel, ModelFacts, Price};
pub use queue::Waiting;
pub use sandbox::{
    CountedEffects, EffectKind, Effects, FileEffect, Outside, PreviewOffer, RefusedEffect, RunningCommand, RunningState,
    SandboxTier,
};
pub use state::{SessionState, SessionStatus, TaskState, TaskStatus};
pub use tool::{ErrorCode, Proposal, Redaction, ToolDefinition, ToolError, ToolResult, ToolStatus};
pub use tool_use::{ToolUse, ToolUses};
pub use usage::Usage;
