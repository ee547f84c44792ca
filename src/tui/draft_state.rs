//! Work on the draft besides typing: images, the history search, an external editor, and saving.

use super::attachments::Attachments;
use super::history_search::HistorySearch;
use crate::protocol::ApprovalId;

/// Work on the draft besides typing.
#[derive(Debug, Default)]
pub(crate) struct DraftState {
    /// Images that were attached to a draft.
    pub attached: Attachments,
    /// Search in the prompt history.
    pub search: Option<HistorySearch>,
    /// File to open in an editor.
    pub to_edit: Option<EditorText>,
    /// Time at which the draft will be saved, in milliseconds.
    pub save_at: Option<u64>,
}

/// Text to be edited in an editor.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct EditorText {
    pub what: Editable,
    /// Name: `src/main.rs`.
    pub name: String,
    pub text: String,
}

/// Source of the text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Editable {
    Draft,
    /// A file of an approval, by its index.
    Proposed {
        approval_id: ApprovalId,
        file: usize,
    },
    /// The text of a proposal for an instruction file.
    Memory {
        id: String,
    },
}
