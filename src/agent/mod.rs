//! Turn machine, its host, and the parts of a session.

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

pub use host::call_timeout::{planned as plan_in_time, run as run_in_time};
pub use host::{
    EVENTS, PolicyUpdate, PolicyUpdates, ReloadRequest, Remote, Running, Samples, SessionQueries, Setup, asks, spawn,
};
pub use limits::{CHANNEL_DEPTH, MAX_STEPS};
pub use prompt::{Surroundings, system_prompt};
pub use replay::replay;
pub use retry::Backoff;
pub use turn::{Allowance, Approver, Options, PolicyChange, SandboxStatus, Unfinished};
