//! State of the draft apart from its text: attachments, history search, editing in an external editor, and saving.

use super::attachments::Attachments;
use super::history_search::HistorySearch;
use crate::protocol::ApprovalId;

/// State of the draft apart from its text.
#[derive(Debug, Default)]
pub(crate) struct DraftState {
    /// Images and files named in the draft.
    pub attached: Attachments,
    /// Search through the prompt history, if it is open.
    pub search: Option<HistorySearch>,
    /// Text waiting to be opened in an editor.
    pub to_edit: Option<EditorText>,
    /// Time, in milliseconds, at which the draft will be saved.
    pub save_at: Option<u64>,
}

/// Text to be edited in the user's editor.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct EditorText {
    pub what: Editable,
    /// Name to display, such as `src/main.rs`.
    pub name: String,
    pub text: String,
}

/// Source of the text to edit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Editable {
    Draft,
    /// File of a proposal, given by its index among the files that can be edited.
    Proposed {
        approval_id: ApprovalId,
        file: usize,
    },
    /// Proposed instruction, with the proposal's ID.
    Memory {
        id: String,
    },
}
