//! Differences between the front ends of a session, expressed as data.

use crate::agent::{Approver, ResumePolicy};
use crate::host::nesting::Nesting;
use crate::host::session::LoadScope;

/// A front end's choices for its sessions. Everything else is the same for all front ends.
#[derive(Debug, Clone, Copy)]
pub(crate) struct FrontEnd {
    pub approver: Approver,
    /// Whether approvals may be sent to a configured approval service.
    pub asks_service: bool,
    /// Whether there is a user who can answer requests from MCP servers.
    pub answers_servers: bool,
    /// Handling of a task that an earlier process did not finish.
    pub unfinished: ResumePolicy,
    pub lock: LockHandling,
    pub trust: TrustHandling,
    pub model: ModelNeed,
    pub purpose: SessionPurpose,
    /// Part of the journal that is loaded before the session is shown.
    pub history: LoadScope,
    pub servers: ServerStart,
    pub approvals: ApprovalExpiry,
    pub notices: NoticeTarget,
    pub pruning: Pruning,
    /// True if aye writes the prompt of a new session, which `aye -c` then does not continue.
    pub writes_prompt: bool,
    /// Whether the files that the session changed are listed at the end of the run.
    pub reports_changes: bool,
}

/// Handling of a session that another process owns. With `--take-over`, that process is always asked to exit first.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum LockHandling {
    Refuse,
    /// The front end asks the user what to do when it tries to claim the session.
    AskUser,
}

/// Handling of a project that contains files that are not trusted yet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum TrustHandling {
    /// The files are ignored, and a notice is shown.
    Ignore,
    /// The front end asks the user after claiming the session.
    AskUser,
}

/// Whether a session needs a model.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ModelNeed {
    Required,
    /// The user can choose a model later.
    Optional,
}

/// Purpose of a session.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum SessionPurpose {
    Tasks,
    /// A single command that needs no model, no MCP servers and no policy updates. The session is only read at first,
    /// and it remains archived until it is prepared.
    Command,
}

/// Whether the first request waits for MCP servers to start.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ServerStart {
    /// The first request waits, for a limited time, for servers whose tools are not cached.
    Wait,
    Background,
    /// The session does not use servers.
    Never,
}

/// Timeout of a pending approval.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ApprovalExpiry {
    Never,
    /// After the timeout in the settings or in the policy, whichever is shorter.
    AsSet,
}

/// Destination of notices about opening a session.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum NoticeTarget {
    Stderr,
    /// They are collected for the front end, which shows them.
    FrontEnd,
    Both,
}

/// Time at which expired data is pruned.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Pruning {
    InBackground,
    AtTheEnd,
    /// At the end of the process, which can run several sessions.
    ByProcess,
}

impl FrontEnd {
    /// Returns the front end of `aye`, for a full-screen UI or for line mode.
    pub(crate) fn interactive() -> Self {
        Self {
            approver: Approver::User,
            asks_service: false,
            answers_servers: true,
            unfinished: ResumePolicy::Pause,
            lock: LockHandling::AskUser,
            trust: TrustHandling::AskUser,
            model: ModelNeed::Optional,
            purpose: SessionPurpose::Tasks,
            history: LoadScope::Tail,
            servers: ServerStart::Background,
            // A user at the screen may take any amount of time.
            approvals: ApprovalExpiry::Never,
            notices: NoticeTarget::FrontEnd,
            pruning: Pruning::InBackground,
            writes_prompt: false,
            reports_changes: false,
        }
    }

    /// Returns the front end of `aye exec`.
    pub(crate) fn exec(approver: Approver) -> Self {
        Self {
            approver,
            asks_service: true,
            answers_servers: false,
            // The caller sends no prompt to continue the task.
            unfinished: ResumePolicy::Discard,
            lock: LockHandling::Refuse,
            trust: TrustHandling::Ignore,
            model: ModelNeed::Required,
            purpose: SessionPurpose::Tasks,
            history: LoadScope::All,
            servers: ServerStart::Wait,
            // Approvals are decided immediately.
            approvals: ApprovalExpiry::Never,
            notices: NoticeTarget::Stderr,
            pruning: Pruning::AtTheEnd,
            writes_prompt: false,
            reports_changes: true,
        }
    }

    /// Returns the front end of `/review`, which runs in the background of the session on the screen.
    pub(crate) fn review() -> Self {
        Self {
            asks_service: false,
            notices: NoticeTarget::FrontEnd,
            pruning: Pruning::ByProcess,
            reports_changes: false,
            ..Self::exec(Approver::Nobody)
        }
    }

    /// Returns the front end of an agent, which runs in the background of the session that started it. The agent's
    /// calls are approved by the same approver as that session's calls.
    pub(crate) fn agent(parent: &Self) -> Self {
        Self {
            approver: parent.approver,
            approvals: parent.approvals,
            unfinished: ResumePolicy::Continue,
            servers: ServerStart::Never,
            ..Self::review()
        }
    }

    /// Returns the front end of a task that runs in a copy of the workspace without a screen. Its approvals wait until
    /// the user opens the task.
    pub(crate) fn task() -> Self {
        Self { asks_service: false, reports_changes: false, ..Self::exec(Approver::User) }
    }

    /// Returns the front end of `aye serve`.
    pub(crate) fn serve() -> Self {
        Self {
            approver: user_unless_nested(),
            // The protocol has no method for answers to server requests, so they are declined.
            answers_servers: false,
            unfinished: ResumePolicy::Pause,
            approvals: ApprovalExpiry::AsSet,
            notices: NoticeTarget::Both,
            reports_changes: false,
            ..Self::exec(Approver::Nobody)
        }
    }

    /// Returns the front end of `aye acp`.
    pub(crate) fn editor() -> Self {
        Self {
            asks_service: false,
            answers_servers: user_unless_nested() == Approver::User,
            // A user continues a task with a prompt.
            unfinished: ResumePolicy::Discard,
            servers: ServerStart::Background,
            notices: NoticeTarget::FrontEnd,
            pruning: Pruning::ByProcess,
            ..Self::serve()
        }
    }

    /// Returns the front end of `aye apply`.
    pub(crate) fn apply(approver: Approver) -> Self {
        Self { approver, writes_prompt: true, ..Self::rewind() }
    }

    /// Returns the front end of `aye rewind`.
    pub(crate) fn rewind() -> Self {
        Self {
            asks_service: false,
            // No work of the session continues here.
            unfinished: ResumePolicy::Discard,
            purpose: SessionPurpose::Command,
            reports_changes: false,
            ..Self::exec(Approver::Nobody)
        }
    }
}

/// Returns the approver for a front end that is controlled by another program. A program that aye itself runs must not
/// approve its own actions.
fn user_unless_nested() -> Approver {
    match Nesting::detect() {
        Nesting::Outermost => Approver::User,
        Nesting::InsideAye => Approver::Nobody,
    }
}
