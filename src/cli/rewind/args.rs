//! `aye rewind`: clap definition and checked action.

use super::{Form, RewindRequest};
use crate::cli::session_ids::session_id;
use crate::protocol::RewindScope;
use clap::Args;

#[derive(Debug, Args)]
pub(crate) struct RewindArgs {
    /// Session ID [default: the latest session of this project]
    #[arg(value_parser = session_id)]
    pub session: Option<String>,
    /// Rewind to before this prompt (number or task) [default: last]
    #[arg(long, value_name = "N|TASK", conflicts_with = "redo")]
    pub to: Option<String>,
    /// Rewind files only, and tell the model
    #[arg(long, conflicts_with_all = ["conversation", "redo"])]
    pub files: bool,
    /// Rewind the conversation only; files are unchanged
    #[arg(long, conflicts_with = "redo")]
    pub conversation: bool,
    /// Undo the last rewind; possible until the next prompt
    #[arg(long)]
    pub redo: bool,
    /// Show what would happen, without doing it
    #[arg(long, conflicts_with = "yes")]
    pub plan: bool,
    /// Also restore files that were edited outside aye
    #[arg(long)]
    pub overwrite: bool,
    /// Rewind without asking
    #[arg(long)]
    pub yes: bool,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

impl RewindArgs {
    pub(crate) fn check(self) -> RewindRequest {
        RewindRequest {
            session: self.session,
            to: self.to,
            scope: match (self.files, self.conversation) {
                (true, _) => RewindScope::Files,
                (false, true) => RewindScope::Conversation,
                (false, false) => RewindScope::Both,
            },
            redo: self.redo,
            form: match (self.plan, self.yes) {
                (true, _) => Form::Plan,
                (false, true) => Form::Yes,
                (false, false) => Form::Ask,
            },
            overwrite: self.overwrite,
            json: self.json,
        }
    }
}
