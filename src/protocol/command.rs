//! Commands: all that a front end may tell a session to do. The session takes them in their order.

use super::{ApprovalId, BudgetLimit, CallId, Decision, Effort, ElicitationAnswer, Mode, RewindScope, RewindTarget, RuleAsked};
use serde::{Deserialize, Serialize};
use std::fmt;
use std::path::PathBuf;

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "command", rename_all = "snake_case")]
pub enum Command {
    /// Start a task, or queue it behind the one that runs.
    Prompt {
        text: String,
    },
    /// Say it to the model with the results of the running step; a prompt where no task runs.
    Steer {
        text: String,
    },
    /// Change a message that waits; without words it is taken back. One that was taken by now stays as it was sent.
    EditWaiting {
        id: u64,
        text: String,
    },
    /// Run a command of the person's own, as one of the model would be. `shared`: the model is told of it with what is said next.
    Shell {
        line: String,
        shared: bool,
    },
    Decide {
        approval_id: ApprovalId,
        decision: Decision,
    },
    /// Run the command that is asked about in a view of its own, and ask about its effects.
    Preview {
        approval_id: ApprovalId,
    },
    /// Say what the text of a file would be: its place among those that the question offers.
    ShowProposed {
        approval_id: ApprovalId,
        file: usize,
    },
    /// Let the agent go on while this command runs; without an id, the one that runs longest.
    Background {
        tool_call_id: Option<CallId>,
    },
    /// End a session or a command in the background, by the id the tools give it.
    Stop {
        id: String,
    },
    /// What to do about a call whose outcome a crash left unknown.
    Resolve {
        tool_call_id: CallId,
        resolution: Resolution,
    },
    /// Say something about a rule that may be kept for this question.
    AskRule {
        approval_id: ApprovalId,
        #[serde(flatten)]
        asked: RuleAsked,
    },
    /// Take back the rule that was kept last in this session.
    UndoGrant,
    /// Say which prompts can be gone back to.
    ListRewindPoints,
    /// Say what a rewind would do.
    PlanRewind {
        target: RewindTarget,
        scope: RewindScope,
    },
    /// Go back, or forth again. `overwrite`: of the paths that were changed by hand since, those that go back all the same.
    Rewind {
        target: RewindTarget,
        scope: RewindScope,
        #[serde(default)]
        overwrite: Vec<PathBuf>,
    },
    /// Say which rules are kept.
    ListGrants,
    /// What the person makes of what a server asked.
    AnswerElicitation {
        elicitation_id: String,
        answer: ElicitationAnswer,
    },
    /// End the connection to an MCP server and make a new one.
    ReconnectServer {
        name: String,
    },
    /// Stop the model, start nothing new; running tools finish.
    Cancel,
    /// Kill the running commands too.
    Kill,
    /// Go on with a paused or interrupted task.
    Continue,
    /// Where nothing can be saved: go on all the same, with what is to be saved in memory until it can be. A crash loses it.
    GoOnUnsaved,
    /// Send the request that waits for its repetition now.
    RetryNow,
    /// Put a summary in the place of older messages. `focus`: what it must not lose.
    Compact {
        focus: Option<String>,
    },
    /// Take back the last one.
    UndoCompaction,
    /// Say what fills the window.
    ShowContext,
    /// Say what may be used up, and what is.
    ShowBudget,
    /// Allow more, or less.
    SetBudget {
        limit: BudgetLimit,
    },
    /// Ask another model from now on: `provider/name`.
    SetModel {
        name: String,
    },
    /// Keep a key for the provider of this model, and ask that model from now on. No front end can be asked for it in writing.
    #[serde(skip)]
    AddKey {
        name: String,
        key: KeyText,
    },
    /// Have it think more, or less; without one as it does by itself.
    SetEffort {
        effort: Option<Effort>,
    },
    /// Say which models there are. `ask`: ask the providers too.
    ListModels {
        ask: bool,
    },
    /// Ask more, or less, before something happens; from now on, for this run.
    SetMode {
        mode: Mode,
    },
    /// Read the policy's files again.
    ReloadPolicy,
    /// Read the policy's files again, then continue the paused task under what they say.
    Resume,
    /// Keep what the person has typed but not sent.
    SaveDraft {
        text: String,
    },
    /// Save and end.
    Quit,
}

/// What a session is written as.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ExportForm {
    Markdown,
    Json,
    Html,
}

impl ExportForm {
    pub fn of_word(word: &str) -> Option<Self> {
        match word {
            "md" | "markdown" => Some(Self::Markdown),
            "json" => Some(Self::Json),
            "html" | "htm" => Some(Self::Html),
            _ => None,
        }
    }

    /// By the ending of a name; Markdown where it says nothing.
    pub fn of_file(name: &str) -> Self {
        name.rsplit_once('.').and_then(|(_, ending)| Self::of_word(ending)).unwrap_or(Self::Markdown)
    }

    pub fn ending(self) -> &'static str {
        match self {
            Self::Markdown => "md",
            Self::Json => "json",
            Self::Html => "html",
        }
    }
}

/// A key as it was typed. Nothing prints or writes it.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct KeyText(pub String);

impl fmt::Debug for KeyText {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("KeyText")
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Resolution {
    /// Ask again, then run again.
    Rerun,
    /// Leave it; the model is told that it was skipped.
    Skip,
    /// Tell the model that the outcome is unknown and let it look.
    TellModel,
}
