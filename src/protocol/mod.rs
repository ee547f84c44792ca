//! Shared types: IDs, messages, tool calls, actions, proposals, approvals, commands, queries, events.
//!
//! This module has no side effects. Serialized types use camelCase fields and `snake_case` event names.

pub mod action;
mod agent_event;
mod amendment;
pub mod approval;
mod artifact;
mod budget;
mod changes;
pub mod command;
mod command_output;
mod context;
mod custom_command;
mod denial;
mod diagnostics;
mod effects_progress;
pub mod event;
mod event_text;
pub mod failure;
mod file_diff;
mod file_diffs;
mod goal;
pub mod grant;
mod hook;
mod host_request;
pub mod id;
pub mod layer;
pub mod left_out;
pub mod memory;
mod message;
pub mod mode;
mod model;
mod path_state;
pub mod path_text;
mod path_words;
mod piped;
mod planned_step;
mod problem;
mod query;
mod queue;
mod requested_list;
pub mod review;
mod rewind;
pub mod sandbox;
mod server;
mod setup;
mod state;
mod task_plan;
mod text_tools;
pub mod tool;
mod tool_use;
pub mod truncate;
pub mod usage;

pub use action::{Action, Place, Target};
pub use agent_event::{AgentEvent, AgentState};
pub use amendment::{Amendable, Amendment, DiscardedEffect, EffectPart, FirstParts, Hunk, HunkChoice};
pub use approval::{
    Approval, Approve, ApproveWhen, AskingAgent, CALLS_SERVER_TOOL, Containment, Decision, Details, Part as CommandPart, Risk,
    RuleOrigin, VerdictKind,
};
pub use artifact::{ARTIFACT_SCHEME, Artifact, ArtifactKind, Image};
pub use budget::{Budget, BudgetLimit, BudgetScope, BudgetUnit, budget_key, format_dollars};
pub use changes::{ChangeStatus, ChangedBy, ChangedFile, ChangedFiles};
pub use command::{Command, ExportForm, HostCommand, Resolution, SecretString, SessionCommand};
pub use command_output::{CommandEnd, UNCHANGED_NOTE, exit_code_in, exit_line, text_after_changes};
pub use context::{Compaction, CompactionTrigger, ContextShare, ContextUse};
pub use custom_command::CustomCommand;
pub use denial::{CallDenial, DENIED_BY_SERVICE, Denier, NO_ANSWER, NO_USER, POLICY_DENIES, TASK_CANCELLED};
pub use diagnostics::{Diagnostic, FileDiagnostics, LanguageServerStatus};
pub use effects_progress::{EffectsProgress, EffectsStage};
pub use event::{
    APPLIED_UNASKED, APPROVED_BY_SERVICE, APPROVED_BY_YOU, APPROVED_UNSANDBOXED, Event, EventKind, FailedRequest, HistorySum,
    IN_BACKGROUND, NoticeKind, OUTSIDE_SANDBOX,
};
pub use event_text::{EventText, EventTone};
pub use failure::{Failure, FailureKind, Remedy};
pub use file_diff::{DiffHunk, DiffLine, DiffSide, FileDiff, FileDiffKind};
pub use file_diffs::FileDiffs;
pub use goal::{
    GOAL_FORM, GOAL_ROUNDS, Goal, GoalReason, GoalState, GoalStatus, parse_rounds, parse_time, time_text, validate_check,
};
pub use grant::{CommandRule, GrantChoice, GrantOption, GrantOptions, GrantRule, GrantScope, RuleInfo, RulePlace, RuleQuery};
pub use hook::{CallHooks, EventHooks, HookDecision, HookEvent, HookEvents, HookRun};
pub use host_request::{
    Branch, ClipboardData, DroppedFile, ForkUntil, FoundFile, FoundSymbol, HostRequest, HostResponse, ListedSession, ListedState,
    ListedTask, ListedTaskState, PreviewLine, PreviewLineKind, SessionPreview,
};
pub use id::{ApprovalId, CallId, MessageId, SessionId, StepId, TaskId, WorkspaceId};
pub use layer::PolicyLayer;
pub use left_out::{Items, LeftOut, Run, Within};
pub use memory::{MemoryProposal, MemoryQuote, MemoryRequest, MemorySource, MemoryTarget, SUGGEST_MEMORY};
pub use message::{ARGUMENT_BYTES, ArgumentFault, CallArguments, Message, Part, Role, StopReason, ToolCall, value_count};
pub use mode::Mode;
pub use model::{AssumedPrice, Effort, ListedModel, ModelFacts, ModelUse, Price, PriceElsewhere};
pub use path_state::{PathState, PlaceChange};
pub use path_words::path_words;
pub use piped::{with_input, without_input};
pub use planned_step::{PlannedStep, StepStatus, UPDATE_STEPS};
pub use problem::{HINT, Problem, ProblemLine};
pub use query::{Query, SessionQuery};
pub use queue::QueuedMessage;
pub use requested_list::{ListedGrant, ListedRun, RequestedList};
pub use review::{Finding, Review, ReviewQuery, ReviewSubject, ReviewUpdate, ReviewedChanges, Severity, revision};
pub use rewind::{RewindChange, RewindFile, RewindPlan, RewindPoint, RewindScope, RewindTarget, Rewound};
pub(crate) use sandbox::ONLY_TOUCHED;
pub use sandbox::{
    CountedEffects, CreatedFiles, EffectKind, Effects, FileEffect, PreviewOffer, RefusedEffect, RunningCommand, RunningState,
    SandboxAccess, SandboxTier,
};
pub(crate) use server::SAMPLED_BY_AGENT;
pub use server::{
    BACKEND_SERVER, Elicitation, ElicitationAnswer, ElicitationKind, ElicitationOutcome, FieldKind, FormField, QUESTION_ANSWER,
    QuestionOption, ServerPrompt, ServerResource, ServerState, ServerStatus,
};
pub use setup::{ApprovalsChoice, FoundModel, ModelAddress, SetupEvent, SetupInfo, SetupRequest, TestOutcome};
pub use state::{SessionSnapshot, SessionStatus, TaskState, TaskStatus};
pub use task_plan::{Coverage, JudgedLine, PLAN_LISTS, PROPOSE_PLAN, PlanLine, PlanSubject, ProposedPlan, TaskPlan};
pub use text_tools::TextTools;
pub use tool::{ErrorCode, Proposal, Redaction, RunsCode, RunsWhen, ToolDefinition, ToolError, ToolResult, ToolStatus};
pub use tool_use::{ToolUse, ToolUses};
pub use truncate::{
    cut_position_after, cut_position_before, format_count, format_seconds, group_digits, size, truncate, truncate_with_gap,
};
pub use usage::Usage;
