//! `aye rewind`, as clap reads it.

use super::definition::session_id;
use crate::app::rewind::{Form, Request};
use crate::protocol::RewindScope;
use clap::Args;

#[derive(Debug, Args)]
pub(super) struct RewindArgs {
    /// The session; the latest of this project without one
    #[arg(value_parser = session_id)]
    pub session: Option<String>,
    /// Back to before this prompt; the last one without it
    #[arg(long, value_name = "N|TASK", conflicts_with = "redo")]
    pub to: Option<String>,
    /// Only files: what was said stays, and the model is told
    #[arg(long, conflicts_with_all = ["conversation", "redo"])]
    pub files: bool,
    /// Only what was said: files stay
    #[arg(long, conflicts_with = "redo")]
    pub conversation: bool,
    /// Take the last rewind back; it can be until the next prompt
    #[arg(long)]
    pub redo: bool,
    /// Say what would happen and do nothing
    #[arg(long, conflicts_with = "yes")]
    pub plan: bool,
    /// Put files back too that were changed by hand since
    #[arg(long)]
    pub overwrite: bool,
    /// Do it without a question
    #[arg(long)]
    pub yes: bool,
    /// As JSON
    #[arg(long)]
    pub json: bool,
}

impl RewindArgs {
    pub(super) fn check(self) -> Request {
        Request {
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
