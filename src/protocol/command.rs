//! Commands that a front end sends to a session, which processes them in order.

use super::{
    ApprovalId, Approve, AssumedPrice, BudgetLimit, CallId, Decision, Effort, ElicitationAnswer, Goal, Mode, RewindScope,
    RewindTarget, RuleQuery, SessionId,
};
use serde::{Deserialize, Serialize};
use std::fmt;
use std::path::PathBuf;

/// Command sent by a front end to its session.
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

/// Command for the services that surround the turn: the MCP servers, the journal and the policy.
#[derive(Debug, Clone, PartialEq)]
pub enum HostCommand {
    /// Answer an MCP server's input request.
    AnswerElicitation { elicitation_id: String, answer: ElicitationAnswer },
    /// Reconnect to an MCP server.
    ReconnectServer { name: String },
    /// Stop an agent. The call that started the agent fails, and the task continues.
    StopAgent { agent_session_id: SessionId },
    /// Continue although records cannot be saved. They stay in memory until saving succeeds; a crash loses them.
    GoOnUnsaved,
    /// Reload the policy files, then continue the paused task under the new policy.
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
    /// Send a message to the model together with the results of the running step. If no step is running, start a task.
    Steer {
        text: String,
    },
    /// Change a queued message, or remove it if `text` is empty. Messages that have already been delivered are not
    /// affected.
    EditWaiting {
        id: u64,
        text: String,
    },
    /// Run a command entered by the user, in the same sandbox as the model's commands. If `shared` is set, the model
    /// sees the command and its output with the next message.
    Shell {
        line: String,
        shared: bool,
    },
    Decide {
        approval_id: ApprovalId,
        decision: Decision,
    },
    /// Run the command that is waiting for approval in a preview, then ask for approval of its effects.
    Preview {
        approval_id: ApprovalId,
    },
    /// Show the proposed text of a file. `file` is the file's index in the approval.
    ShowProposed {
        approval_id: ApprovalId,
        file: usize,
    },
    /// Move a running command to the background. Without an ID, this is the command that has been running longest.
    Background {
        tool_call_id: Option<CallId>,
    },
    /// Stop the background command or shell session with this ID, which the tools also use.
    Stop {
        id: String,
    },
    /// Decide what to do with a call whose outcome is unknown after a crash.
    Resolve {
        tool_call_id: CallId,
        resolution: Resolution,
    },
    /// Check a rule that could be saved with this approval.
    AskRule {
        approval_id: ApprovalId,
        #[serde(flatten)]
        asked: RuleQuery,
    },
    /// Remove the rule most recently saved in this session.
    UndoGrant,
    /// List the prompts to which the session can be rewound.
    ListRewindPoints,
    /// Show what a rewind would do.
    PlanRewind {
        target: RewindTarget,
        scope: RewindScope,
    },
    /// Rewind or redo. `overwrite` lists files to restore even though they were changed outside aye.
    Rewind {
        target: RewindTarget,
        scope: RewindScope,
        #[serde(default, with = "super::path_text::list")]
        overwrite: Vec<PathBuf>,
    },
    /// List the saved rules.
    ListGrants,
    /// Interrupt the task. The model and running commands stop immediately, and no new work starts, but file changes in
    /// progress are completed. The text of an interrupted response stays in the conversation.
    Cancel,
    /// Interrupt the task, and kill all running processes.
    Kill,
    /// Stop the model and start no further calls. The task ends once the running calls have finished.
    Finish,
    /// Continue a paused or interrupted task.
    Continue,
    /// Retry the pending request now.
    RetryNow,
    /// Replace older messages with a summary. `focus` describes the information that the summary must preserve.
    Compact {
        focus: Option<String>,
    },
    /// Undo the last compaction.
    UndoCompaction,
    /// Show how the context window is used.
    ShowContext,
    /// Show the budgets and their usage.
    ShowBudget,
    /// Set a budget.
    SetBudget {
        limit: BudgetLimit,
    },
    /// Set the session's goal and start a task with its text. After each task, a check determines whether another task
    /// starts.
    SetGoal {
        goal: Goal,
    },
    /// Replace the goal's check. A paused goal resumes with the new check.
    SetGoalCheck {
        check: String,
    },
    /// End the goal and interrupt the task or check that is running for it.
    StopGoal,
    /// Assume a price for the current model, if its actual price is unknown.
    AssumePrice {
        price: AssumedPrice,
    },
    /// Switch to another model, given as `provider/name`.
    SetModel {
        name: String,
    },
    /// Save an API key for the provider of this model, then switch to the model. Front ends never accept this command
    /// as text.
    #[serde(skip)]
    AddKey {
        name: String,
        key: SecretString,
    },
    /// Set the reasoning effort. Without a value, the model's default is used.
    SetEffort {
        effort: Option<Effort>,
    },
    /// List the models. If `ask` is set, also query the providers.
    ListModels {
        ask: bool,
    },
    /// Set the approval mode for the rest of this run.
    SetMode {
        mode: Mode,
    },
    /// For the rest of this run, set whether commands that no rule matches need approval before they run, or only
    /// approval of their effects. A stricter policy takes precedence.
    SetApprove {
        approve: Approve,
    },
    /// List the commands that ran without approval.
    ListUnasked,
    /// Reload the policy files.
    ReloadPolicy,
    /// Save the text in the composer.
    SaveDraft {
        text: String,
    },
    /// Save the session and exit.
    Quit,
}

impl Command {
    /// Returns the ID of the approval that the command concerns.
    pub fn approval_id(&self) -> Option<&ApprovalId> {
        match self {
            Self::Decide { approval_id, .. }
            | Self::Preview { approval_id }
            | Self::ShowProposed { approval_id, .. }
            | Self::AskRule { approval_id, .. } => Some(approval_id),
            _ => None,
        }
    }

    /// Replaces the approval ID, if the command contains one.
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

    /// Returns the format indicated by the extension of a file name, or Markdown if the extension is unknown.
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

/// API key as typed by the user. It is never displayed or logged.
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
    /// Skip the call and inform the model.
    Skip,
    /// Tell the model that the outcome is unknown, so it can check what happened.
    TellModel,
}
