//! Reaction of a layer to an input, with its requests to the rest of the screen.

use crate::protocol::{Branch, Effort, SecretString, SessionId, TaskId};
use crate::tui::interface::{TaskProgram, ThemeChoice};

/// Reaction of a layer to a key or pasted text.
pub(crate) enum Reaction {
    /// The layer has handled the input.
    Done,
    /// The layer does not handle the input.
    Pass,
    /// The layer closes.
    Close,
    /// The layer closes, and the view below handles the key.
    ClosePass,
    /// The layer stays open and requests something.
    Request(LayerRequest),
    /// The layer closes and requests something.
    CloseWith(LayerRequest),
}

/// Request from a layer.
pub(crate) enum LayerRequest {
    /// Shows a notice above the composer.
    ShowToast(String),
    /// Opens a text viewer above this layer.
    OpenText {
        title: String,
        text: String,
    },
    /// Runs the command with this name. A command that needs an argument is put into the draft.
    ChooseCommand(String),
    /// Runs a command without changing the draft.
    RunCommand(String),
    /// Moves a queued message to the draft.
    EditQueued(u64),
    /// Opens the finding with this index.
    OpenFinding(usize),
    /// Writes a task into the draft to fix the finding with this index.
    DraftFix(usize),
    /// Requests the changed files again.
    ReloadChanges,
    /// Uses a model. The effort is set only if the user changed it.
    UseModel {
        name: String,
        effort: Option<Effort>,
    },
    /// Saves an API key for the provider of this model, and uses the model.
    SaveKey {
        name: String,
        key: SecretString,
    },
    /// Requests the sessions that match the filter.
    ListSessions,
    /// Requests the preview of a session.
    PreviewSession(SessionId),
    OpenSession(SessionId),
    ForkSession(SessionId),
    /// Shows the conversation of a session.
    ShowConversation(SessionId),
    /// Archives or unarchives a session.
    ArchiveSession(SessionId, bool),
    /// Sets the title of a session.
    RenameSession(SessionId, String),
    /// Asks whether to delete the session with this title.
    AskToDelete(SessionId, String),
    OpenBranch(Branch),
    /// Applies a theme to the screen without saving the choice.
    ShowTheme(ThemeChoice),
    /// Restores the previous theme.
    RestoreTheme(ThemeChoice),
    /// Uses a theme and saves the choice.
    UseTheme(String),
    /// Shows the details of an MCP server.
    ShowServer(String),
    ReconnectServer(String),
    /// Plans a rewind to the state before the prompt of this task.
    PlanRewind(TaskId),
    /// Cancels the rewind that was requested.
    ForgetRewind,
    /// Releases the terminal to a command about a task.
    RunTaskProgram(String, TaskProgram),
    /// Shows a proposal for an instruction file.
    ShowProposal(String),
    ApplyProposal(String),
    EditProposal(String),
    /// Proposes the instruction for another file.
    MoveProposal(String),
    DropProposal(String),
    ResumeTask(String),
    StopTask(String),
    /// Quits, because there is nothing below the layer.
    Quit,
}
