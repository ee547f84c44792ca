//! Differences between the front ends of a session, as data.

use crate::agent::{Approver, ResumePolicy};
use crate::host::nesting::Nesting;
use crate::host::session::LoadScope;

/// Choices of a front end about its sessions. Everything else is the same for all front ends.
#[derive(Debug, Clone, Copy)]
pub(crate) struct FrontEnd {
    pub approver: Approver,
    /// True if a configured approval service may be asked.
    pub asks_service: bool,
    /// True if a user can answer the requests from MCP servers.
    pub answers_servers: bool,
    /// Handling of an earlier process's unfinished task.
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
    /// True if the run ends with a list of the files that the session changed.
    pub reports_changes: bool,
}

/// Handling of a session that another process owns. `--take-over` always first asks that process to exit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum LockHandling {
    Refuse,
    /// The front end asks the user when it claims the session.
    AskUser,
}

/// Handling of a project with files that are not trusted yet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum TrustHandling {
    /// The files are ignored, with a notice.
    Ignore,
    /// The front end asks the user after it has claimed the session.
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
    /// One command that needs no model, no MCP servers and no policy update. The session is only read at first, and
    /// stays archived until it is prepared.
    Command,
}

/// Time of the first request relative to the start of the MCP servers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ServerStart {
    /// The first request waits for servers whose tools are not cached, up to a limit.
    Wait,
    Background,
    /// The session has no servers.
    Never,
}

/// Timeout of a pending approval.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ApprovalExpiry {
    Never,
    /// The timeout in the settings or in the policy, whichever is shorter.
    AsSet,
}

/// Destination of notices about opening a session.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum NoticeTarget {
    Stderr,
    /// Collected for the front end, which shows them.
    FrontEnd,
    Both,
}

/// Time at which expired data is pruned.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Pruning {
    InBackground,
    AtTheEnd,
    /// At the end of a process that can run several sessions.
    ByProcess,
}

impl FrontEnd {
    /// Front end of `aye`, on a screen or line by line.
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

    /// Front end of `aye exec`.
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

    /// Front end of `/review`, alongside the session on screen.
    pub(crate) fn review() -> Self {
        Self {
            asks_service: false,
            notices: NoticeTarget::FrontEnd,
            pruning: Pruning::ByProcess,
            reports_changes: false,
            ..Self::exec(Approver::Nobody)
        }
    }

    /// Front end of an agent, alongside the session that started it. The approver of that session also approves the
    /// agent's calls.
    pub(crate) fn agent(parent: &Self) -> Self {
        Self {
            approver: parent.approver,
            approvals: parent.approvals,
            unfinished: ResumePolicy::Continue,
            servers: ServerStart::Never,
            ..Self::review()
        }
    }

    /// Front end of a task in a copy of the workspace, without a screen. Its approvals wait until the user opens the
    /// task.
    pub(crate) fn task() -> Self {
        Self { asks_service: false, reports_changes: false, ..Self::exec(Approver::User) }
    }

    /// Front end of `aye serve`.
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

    /// Front end of `aye acp`.
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

    /// Front end of `aye apply`.
    pub(crate) fn apply(approver: Approver) -> Self {
        Self { approver, writes_prompt: true, ..Self::rewind() }
    }

    /// Front end of `aye rewind`.
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

/// Returns the approver for a front end that is a program. A program that aye runs must not approve its own actions.
fn user_unless_nested() -> Approver {
    match Nesting::detect() {
        Nesting::Outermost => Approver::User,
        Nesting::InsideAye => Approver::Nobody,
    }
}
