//! A layer's reaction to an input, and the requests that it can make to the rest of the UI.

use crate::protocol::{Branch, Effort, SecretString, SessionId, TaskId};
use crate::tui::interface::{TaskProgram, ThemeChoice};

/// Reaction of a layer to a key press or pasted text.
pub(crate) enum Reaction {
    /// The layer handled the input and stays open.
    Done,
    /// The layer does not handle the input, and stays open.
    Pass,
    /// The layer handled the input and closes.
    Close,
    /// The layer closes and passes the input on to the view below.
    ClosePass,
    /// The layer handled the input, stays open and makes a request.
    Request(LayerRequest),
    /// The layer handled the input, closes and makes a request.
    CloseWith(LayerRequest),
}

/// Request that a layer makes to the rest of the UI.
pub(crate) enum LayerRequest {
    /// Shows a notice above the composer.
    ShowToast(String),
    /// Opens a text viewer in front of the layer.
    OpenText {
        title: String,
        text: String,
    },
    /// Runs the slash command with this name. If it needs an argument, inserts it into the draft instead.
    ChooseCommand(String),
    /// Runs a slash command, preserving the draft.
    RunCommand(String),
    /// Moves the queued message with this ID to the draft.
    EditQueued(u64),
    /// Opens the view of the finding at this index.
    OpenFinding(usize),
    /// Inserts a prompt that asks the model to fix the finding at this index into the draft.
    DraftFix(usize),
    /// Requests the list of changed files again.
    ReloadChanges,
    /// Switches to a model. The reasoning effort is set only if the user changed it.
    UseModel {
        name: String,
        effort: Option<Effort>,
    },
    /// Saves an API key for the model's provider and switches to the model.
    SaveKey {
        name: String,
        key: SecretString,
    },
    /// Requests the sessions that match the filter of the session list.
    ListSessions,
    /// Requests the preview of a session.
    PreviewSession(SessionId),
    OpenSession(SessionId),
    ForkSession(SessionId),
    /// Shows a session's transcript.
    ShowConversation(SessionId),
    /// Archives a session if the flag is `true`; otherwise, unarchives it.
    ArchiveSession(SessionId, bool),
    /// Changes a session's title.
    RenameSession(SessionId, String),
    /// Asks the user whether to delete the session with this ID and title.
    AskToDelete(SessionId, String),
    OpenBranch(Branch),
    /// Applies a theme to the screen without saving it as the user's choice.
    ShowTheme(ThemeChoice),
    /// Restores the theme that was in use before the list was opened.
    RestoreTheme(ThemeChoice),
    /// Applies a theme and saves it as the user's choice.
    UseTheme(String),
    /// Shows the details of an MCP server.
    ShowServer(String),
    ReconnectServer(String),
    /// Requests the plan for rewinding to the state before this task's prompt.
    PlanRewind(TaskId),
    /// Cancels the pending rewind request.
    ForgetRewind,
    /// Hands the terminal over to an external command for the task with this ID.
    RunTaskProgram(String, TaskProgram),
    /// Shows the diff of the proposal with this ID.
    ShowProposal(String),
    ApplyProposal(String),
    EditProposal(String),
    /// Moves the proposal with this ID to another instruction file.
    MoveProposal(String),
    DropProposal(String),
    ResumeTask(String),
    StopTask(String),
    /// Quits aye, because there is no conversation below the layer.
    Quit,
}
