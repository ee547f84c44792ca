//! Commands that a front end sends to a session. The session processes them in order.

use super::{
    ApprovalId, Approve, AssumedPrice, BudgetLimit, CallId, Decision, Effort, ElicitationAnswer, Goal, Mode, RewindScope,
    RewindTarget, RuleQuery, SessionId,
};
use serde::{Deserialize, Serialize};
use std::fmt;
use std::path::PathBuf;

/// Command of a front end to its session.
#[derive(Debug, Clone, PartialEq)]
pub enum SessionCommand {
    Turn(Command),
    Host(HostCommand),
}

impl From<Command> for SessionCommand {
    fn from(command: Command) -> Self {
        Self::Turn(command)
    }
}

impl From<HostCommand> for SessionCommand {
    fn from(command: HostCommand) -> Self {
        Self::Host(command)
    }
}

/// Command for the services around the turn: the MCP servers, the journal and the policy.
#[derive(Debug, Clone, PartialEq)]
pub enum HostCommand {
    /// Answer a request from an MCP server.
    AnswerElicitation { elicitation_id: String, answer: ElicitationAnswer },
    /// Close the connection to an MCP server and open a new one.
    ReconnectServer { name: String },
    /// Stop an agent. The call that started it fails, and the task continues.
    StopAgent { agent_session_id: SessionId },
    /// Continue although saving fails. Unsaved records stay in memory until they can be saved; a crash loses them.
    GoOnUnsaved,
    /// Reload the policy files, then continue the paused task under them.
    Resume,
}

/// Command for the turn.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "command", rename_all = "snake_case")]
pub enum Command {
    /// Start a task, or queue the prompt if a task is running.
    Prompt {
        text: String,
    },
    /// Send a message to the model together with the results of the running step; without a running
    /// step, start a task.
    Steer {
        text: String,
    },
    /// Change a queued message, or remove it if the text is empty. Messages that were already delivered do not change.
    EditWaiting {
        id: u64,
        text: String,
    },
    /// Run a user command in the same sandbox as the model's commands. `shared`: the model sees it with the
    /// next message.
    Shell {
        line: String,
        shared: bool,
    },
    Decide {
        approval_id: ApprovalId,
        decision: Decision,
    },
    /// Run the command that waits for approval in a preview, and ask for approval of its effects.
    Preview {
        approval_id: ApprovalId,
    },
    /// Show the proposed text of a file, selected by its index in the approval.
    ShowProposed {
        approval_id: ApprovalId,
        file: usize,
    },
    /// Move a running command to the background; without an ID, the longest-running one.
    Background {
        tool_call_id: Option<CallId>,
    },
    /// End a background command or shell session, selected by the ID that the tools use.
    Stop {
        id: String,
    },
    /// Resolve a call whose outcome is unknown after a crash.
    Resolve {
        tool_call_id: CallId,
        resolution: Resolution,
    },
    /// Check a rule that could be saved for this approval.
    AskRule {
        approval_id: ApprovalId,
        #[serde(flatten)]
        asked: RuleQuery,
    },
    /// Remove the last rule that was saved in this session.
    UndoGrant,
    /// List the prompts to which the session can be rewound.
    ListRewindPoints,
    /// Show the effects of a rewind.
    PlanRewind {
        target: RewindTarget,
        scope: RewindScope,
    },
    /// Rewind or redo. `overwrite`: files to restore although they changed outside aye.
    Rewind {
        target: RewindTarget,
        scope: RewindScope,
        #[serde(default)]
        overwrite: Vec<PathBuf>,
    },
    /// List the saved rules.
    ListGrants,
    /// Interrupt the task: the model and running commands stop immediately, and no new work starts. File changes are
    /// completed. The text of an interrupted response remains in the conversation.
    Cancel,
    /// Interrupt the task, and kill all running processes.
    Kill,
    /// Stop the model and start no more calls. The task ends when the running calls have ended.
    Finish,
    /// Continue a paused or interrupted task.
    Continue,
    /// Retry the pending request now.
    RetryNow,
    /// Replace older messages with a summary. `focus`: information that the summary must preserve.
    Compact {
        focus: Option<String>,
    },
    /// Undo the last compaction.
    UndoCompaction,
    /// Show the usage of the context window.
    ShowContext,
    /// Show the budgets and their usage.
    ShowBudget,
    /// Set a budget.
    SetBudget {
        limit: BudgetLimit,
    },
    /// Set the session's goal, and start a task with its text. A check after each task decides whether another task
    /// starts.
    SetGoal {
        goal: Goal,
    },
    /// Replace the check of the goal. A paused goal continues with the new check.
    SetGoalCheck {
        check: String,
    },
    /// End the goal, and interrupt its running work.
    StopGoal,
    /// Assume a price for the model in use, if its price is unknown.
    AssumePrice {
        price: AssumedPrice,
    },
    /// Use another model from now on: `provider/name`.
    SetModel {
        name: String,
    },
    /// Save an API key for the provider of this model, and use that model from now on. Front ends never accept this
    /// command as text.
    #[serde(skip)]
    AddKey {
        name: String,
        key: SecretString,
    },
    /// Set the reasoning effort; without a value, the model's default.
    SetEffort {
        effort: Option<Effort>,
    },
    /// List the models. `ask`: also query the providers.
    ListModels {
        ask: bool,
    },
    /// Set the approval mode for the rest of this run.
    SetMode {
        mode: Mode,
    },
    /// Set whether commands without a rule need approval before they run, or for their effects, for the rest of this
    /// run. A stricter policy takes precedence.
    SetApprove {
        approve: Approve,
    },
    /// List the commands that ran without approval.
    ListUnasked,
    /// Reload the policy files.
    ReloadPolicy,
    /// Save the text of the composer.
    SaveDraft {
        text: String,
    },
    /// Save the session and exit.
    Quit,
}

impl Command {
    /// Returns the approval that the command is about.
    pub fn approval_id(&self) -> Option<&ApprovalId> {
        match self {
            Self::Decide { approval_id, .. }
            | Self::Preview { approval_id }
            | Self::ShowProposed { approval_id, .. }
            | Self::AskRule { approval_id, .. } => Some(approval_id),
            _ => None,
        }
    }

    /// Returns the command for the approval with another ID.
    #[must_use]
    pub fn with_approval_id(mut self, id: ApprovalId) -> Self {
        match &mut self {
            Self::Decide { approval_id, .. }
            | Self::Preview { approval_id }
            | Self::ShowProposed { approval_id, .. }
            | Self::AskRule { approval_id, .. } => *approval_id = id,
            _ => {}
        }
        self
    }
}

/// File format of an exported session.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ExportForm {
    Markdown,
    Json,
    Html,
}

impl ExportForm {
    pub fn from_name(word: &str) -> Option<Self> {
        match word {
            "md" | "markdown" => Some(Self::Markdown),
            "json" => Some(Self::Json),
            "html" | "htm" => Some(Self::Html),
            _ => None,
        }
    }

    /// Returns the format for a file extension; Markdown if the extension is unknown.
    pub fn from_file_name(name: &str) -> Self {
        name.rsplit_once('.').and_then(|(_, ending)| Self::from_name(ending)).unwrap_or(Self::Markdown)
    }

    pub fn ending(self) -> &'static str {
        match self {
            Self::Markdown => "md",
            Self::Json => "json",
            Self::Html => "html",
        }
    }
}

/// API key as typed. It is never printed or written.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct SecretString(pub String);

impl fmt::Debug for SecretString {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("KeyText")
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Resolution {
    /// Ask for approval, then run the call again.
    Rerun,
    /// Skip the call and tell the model.
    Skip,
    /// Tell the model that the outcome is unknown and let it check.
    TellModel,
}
