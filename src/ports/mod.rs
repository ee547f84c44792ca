//! Ports: traits that the agent and the tools depend on. Other modules implement them, and `host` connects the two
//! sides.

mod agents;
mod artifacts;
mod baselines;
mod buffers;
mod call_order;
mod checkpoints;
mod diagnostics;
mod doubts;
mod footprint;
mod hooks;
mod instructions;
mod journal;
mod layer;
mod memory;
mod model;
mod plan;
mod progress;
mod recovery;
mod remote;
mod rewinds;
mod router;
mod rules;
mod user_questions;
mod web_search;

pub(crate) use agents::{AgentRunner, AgentTask, AgentTerms};
pub(crate) use artifacts::{
    ARTIFACT_BYTES, ArtifactError, ArtifactUploads, ArtifactWriter, Artifacts, NewArtifact, StoredArtifact,
};
pub(crate) use baselines::{
    Attribution, Baselines, ChangeHistory, Difference, Differences, KnownPath, MarkedState, RunSpan, Touch, TouchedDirectory,
};
pub(crate) use buffers::{BUFFER_BYTES, Buffers};
pub(crate) use call_order::{CallOrder, TurnKind, writes};
pub(crate) use checkpoints::{Checkpoint, CheckpointError, Checkpoints, ContentId, PathDifference, StoredState};
pub(crate) use diagnostics::{Diagnostics, ProposedText};
pub(crate) use doubts::Doubts;
pub(crate) use footprint::{Footprint, touched_path};
pub(crate) use hooks::{HookTrigger, Hooks};
pub(crate) use instructions::{InstructionSource, Instructions};
pub(crate) use journal::{Durability, EditedCommand, GoalChange, Journal, JournalError, Record, ServiceSession, TaskEnd};
pub(crate) use layer::{LayerEnd, LayerRun};
pub(crate) use memory::{MemoryInbox, MemorySuggestion, SuggestionOutcome};
pub(crate) use model::{Completion, Delta, Images, Model, ModelError, ModelRequest, ModelStream, Models};
pub(crate) use plan::{Plan, PlanAmendments, TaskPlanProposal};
pub(crate) use progress::ProgressSender;
pub(crate) use recovery::{RecoveredCalls, RecoveredState, SavedTail};
pub use remote::{
    LaunchedProgram, Launcher, RemoteAsks, RemoteCall, RemoteContext, RemoteError, RemoteServers, RemoteTool, ServerProgram,
};
pub(crate) use remote::{MAX_SCHEMA_BYTES, RemoteContent, RemoteResult};
pub(crate) use rewinds::{FileRewind, FileRewindPlan, FileRewindResult, RewindStart, TaskChangeCounts};
pub(crate) use router::{PendingPlans, RunContext, ToolRouter};
pub(crate) use rules::{Rules, SavedRules};
pub(crate) use user_questions::{UserQuestion, UserQuestions};
pub(crate) use web_search::{SearchAnswer, SearchEngine, SearchRequest, SearchResult};

/// Boxed future that a struct can store.
pub type BoxFuture<'a, T> = futures_util::future::BoxFuture<'a, T>;
