//! The differences between the front ends of a session, as data.

use crate::agent::{Approver, ResumePolicy};
use crate::host::nesting::Nesting;
use crate::host::session::LoadScope;

/// The decisions of a front end about the sessions that it opens. Everything else is the same for all front ends.
#[derive(Debug, Clone, Copy)]
pub(crate) struct FrontEnd {
    pub approver: Approver,
    /// True if the approval service may be asked, if one is configured for that.
    pub asks_service: bool,
    /// True if a user can answer the requests of MCP servers.
    pub answers_servers: bool,
    /// The handling of an unfinished task of an earlier process.
    pub unfinished: ResumePolicy,
    pub lock: LockHandling,
    pub trust: TrustHandling,
    pub model: ModelNeed,
    pub purpose: SessionPurpose,
    /// The part of the journal that is loaded before the session is shown.
    pub history: LoadScope,
    pub servers: ServerStart,
    pub approvals: ApprovalExpiry,
    pub notices: NoticeTarget,
    pub pruning: Pruning,
    /// True if the run ends with a list of the files that the session changed.
    pub reports_changes: bool,
}

/// Handling of a session that another process owns. `--take-over` always asks that process to exit first.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum LockHandling {
    Refuse,
    /// The front end asks the user when the session is claimed.
    AskUser,
}

/// The handling of a project whose files are not trusted yet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum TrustHandling {
    /// Ignores the files, and reports this.
    Ignore,
    /// The front end asks the user after the session has been claimed.
    AskUser,
}

/// Whether a session needs a model.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ModelNeed {
    Required,
    /// The user can choose a model later.
    Optional,
}

/// The purpose of a session.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum SessionPurpose {
    Tasks,
    /// One command that needs no model, no MCP server and no update of the policy. The session is read first, and stays
    /// archived until it is prepared.
    Command,
}

/// When the first request is sent relative to the start of the MCP servers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ServerStart {
    /// The first request waits for servers with unknown tools, up to a limit.
    Wait,
    Background,
    /// The session has no servers.
    Never,
}

/// When an undecided approval expires.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ApprovalExpiry {
    Never,
    /// After the time that the settings or the policy set, whichever is shorter.
    AsSet,
}

/// Destination of notices about opening a session.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum NoticeTarget {
    Stderr,
    /// Collected, to be shown by the front end.
    FrontEnd,
    Both,
}

/// When expired data is pruned.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Pruning {
    InBackground,
    AtTheEnd,
    /// At the end of a process that can run several sessions.
    ByProcess,
}

impl FrontEnd {
    /// `aye`, on a screen or as lines.
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
            // A user at the screen may take any time.
            approvals: ApprovalExpiry::Never,
            notices: NoticeTarget::FrontEnd,
            pruning: Pruning::InBackground,
            reports_changes: false,
        }
    }

    /// `aye exec`.
    pub(crate) fn exec(approver: Approver) -> Self {
        Self {
            approver,
            asks_service: true,
            answers_servers: false,
            // Without a prompt, the caller asks to continue the task.
            unfinished: ResumePolicy::Discard,
            lock: LockHandling::Refuse,
            trust: TrustHandling::Ignore,
            model: ModelNeed::Required,
            purpose: SessionPurpose::Tasks,
            history: LoadScope::All,
            servers: ServerStart::Wait,
            // Approvals are decided at once.
            approvals: ApprovalExpiry::Never,
            notices: NoticeTarget::Stderr,
            pruning: Pruning::AtTheEnd,
            reports_changes: true,
        }
    }

    /// `/review`, alongside the session on screen.
    pub(crate) fn review() -> Self {
        Self {
            asks_service: false,
            notices: NoticeTarget::FrontEnd,
            pruning: Pruning::ByProcess,
            reports_changes: false,
            ..Self::exec(Approver::Nobody)
        }
    }

    /// An agent, next to the session that started it. The approver of that session also approves its calls.
    pub(crate) fn agent(parent: &Self) -> Self {
        Self {
            approver: parent.approver,
            approvals: parent.approvals,
            unfinished: ResumePolicy::Continue,
            servers: ServerStart::Never,
            ..Self::review()
        }
    }

    /// A task in a copy of the workspace, without a screen. Its approvals wait until the user opens it.
    pub(crate) fn task() -> Self {
        Self { asks_service: false, reports_changes: false, ..Self::exec(Approver::User) }
    }

    /// `aye serve`.
    pub(crate) fn serve() -> Self {
        Self {
            approver: user_unless_nested(),
            // No method of the protocol answers them, so they are declined.
            answers_servers: false,
            unfinished: ResumePolicy::Pause,
            approvals: ApprovalExpiry::AsSet,
            notices: NoticeTarget::Both,
            reports_changes: false,
            ..Self::exec(Approver::Nobody)
        }
    }

    /// `aye acp`.
    pub(crate) fn editor() -> Self {
        Self {
            asks_service: false,
            answers_servers: user_unless_nested() == Approver::User,
            // A user who continues does so with a prompt.
            unfinished: ResumePolicy::Discard,
            servers: ServerStart::Background,
            notices: NoticeTarget::FrontEnd,
            pruning: Pruning::ByProcess,
            ..Self::serve()
        }
    }

    /// `aye apply`.
    pub(crate) fn apply(approver: Approver) -> Self {
        Self { approver, ..Self::rewind() }
    }

    /// `aye rewind`.
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

/// Returns the approver behind a program: a program that aye runs must not approve its own actions.
fn user_unless_nested() -> Approver {
    match Nesting::detect() {
        Nesting::Outermost => Approver::User,
        Nesting::InsideAye => Approver::Nobody,
    }
}
