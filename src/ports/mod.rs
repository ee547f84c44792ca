//! Ports: the traits that the agent and the tools need; other modules implement them, and `app` connects them.

mod artifacts;
mod baselines;
mod buffers;
mod checkpoints;
mod doubts;
mod footprint;
mod instructions;
mod journal;
mod layer;
mod model;
mod plan;
mod recovery;
mod remote;
mod rewinds;
mod router;
mod rules;

pub use artifacts::{ARTIFACT_BYTES, ArtifactError, ArtifactWriter, Artifacts, NewArtifact, StoredArtifact};
pub use baselines::{Baselines, Difference, Differences, KnownPath, MarkedState, Owner, Span, Touch, TouchedDirectory, Trail};
pub use buffers::{BUFFER_BYTES, Buffers};
pub use checkpoints::{Changed, Checkpoint, CheckpointError, Checkpoints, ContentId, StoredState};
pub use doubts::Doubts;
pub use footprint::{Reach, touched};
pub use instructions::{InstructionSource, Instructions};
pub use journal::{Durability, Edited, Journal, JournalError, Record, TaskEnd};
pub use layer::{LayerEnd, LayerRun};
pub use model::{Completion, Delta, Images, Model, ModelError, ModelRequest, ModelStream, Models};
pub use plan::{Amends, Plan};
pub use recovery::{RecoveredCalls, RecoveredState, Tail};
pub use remote::{
    Launched, Launcher, MAX_SCHEMA_BYTES, RemoteAsks, RemoteCall, RemoteContent, RemoteContext, RemoteError, RemoteResult,
    RemoteServers, RemoteTool, ServerProgram,
};
pub use rewinds::{FileRewind, FilesPlanned, FilesRewound, RewindStart, TaskChanges};
pub use router::{Followed, RunContext, ToolRouter};
pub use rules::{Rules, Saved};

/// Boxed future that a struct can store.
pub type BoxFuture<'a, T> = futures_util::future::BoxFuture<'a, T>;
