//! Dialogs about the session rather than a call: project trust, approval mode, and session deletion.

use super::dialog_kind::DialogKind;
use super::pager::Pager;
use super::{Body, ChoiceAction, Confirm, Dialog, DialogAnswer, YesNo, choice};
use crate::protocol::{Mode, Risk, SessionId};
use crate::text;
use crate::tui::interface::{TrustAnswer, TrustQuestion};

/// Project settings that the user is asked to trust. `trust` is `None` once the user has answered.
struct TrustDialog {
    trust: Option<TrustQuestion>,
}

impl DialogKind for TrustDialog {
    fn answer(&mut self, act: ChoiceAction, _reason: Option<String>) -> Option<DialogAnswer> {
        let ChoiceAction::Trust(answer) = act else { return None };
        self.trust.take().map(|trust| DialogAnswer::Trust(trust, answer))
    }

    fn details(&self) -> Option<Dialog> {
        Pager::files(&self.trust.as_ref()?.files).panel()
    }
}

/// Mode, more permissive than the current one, that the user is asked to confirm.
pub(crate) struct ModeDialog {
    mode: Mode,
}

impl DialogKind for ModeDialog {
    fn answer(&mut self, act: ChoiceAction, _reason: Option<String>) -> Option<DialogAnswer> {
        match act {
            ChoiceAction::Mode(YesNo::Yes) => Some(DialogAnswer::Mode(self.mode)),
            ChoiceAction::Mode(YesNo::No) => Some(DialogAnswer::ModeStays),
            _ => None,
        }
    }

    fn is_called_for(&self) -> bool {
        true
    }
}

/// Session whose deletion the user is asked to confirm.
pub(crate) struct DeletionDialog {
    pub session: SessionId,
}

impl DialogKind for DeletionDialog {
    fn answer(&mut self, act: ChoiceAction, _reason: Option<String>) -> Option<DialogAnswer> {
        match act {
            ChoiceAction::Forget(YesNo::Yes) => Some(DialogAnswer::Forget(self.session.clone())),
            ChoiceAction::Forget(YesNo::No) => Some(DialogAnswer::ForgetNot),
            _ => None,
        }
    }

    fn is_called_for(&self) -> bool {
        true
    }
}

pub(crate) fn trust_dialog(trust: TrustQuestion) -> Dialog {
    let title = format!("Trust the project {}?", text::reveal_line(&trust.place));
    let reason = match &trust.changes {
        // The text begins with the changes.
        Some(_) => "",
        None if !trust.has_items() => "aye would run commands in a sandboxed copy of it without asking",
        None => "nothing from this project has been run or applied yet",
    };
    let mut choices = Vec::new();
    if trust.broken.is_none() {
        let words = if trust.has_items() { "trust: apply all of this until it changes" } else { "trust: ask only about effects" };
        choices.push(choice('y', Confirm::LetterThenEnter, ChoiceAction::Trust(TrustAnswer::Yes), words.to_owned(), "trust"));
    }
    if trust.has_items() {
        let words = "open read-only and ignore its settings".to_owned();
        choices.push(choice('n', Confirm::Letter, ChoiceAction::Trust(TrustAnswer::ReadOnly), words, "read-only"));
    } else {
        let words = "do not trust: ask before each command".to_owned();
        choices.push(choice('n', Confirm::Letter, ChoiceAction::Trust(TrustAnswer::Decline), words, "ask first"));
    }
    if !trust.files.is_empty() {
        choices.push(choice('o', Confirm::Letter, ChoiceAction::Look, "view the files".to_owned(), "open"));
    }
    choices.push(choice('q', Confirm::Letter, ChoiceAction::Trust(TrustAnswer::Quit), "quit".to_owned(), "quit"));
    let body = Body::from_text(trust_text(&trust));
    Dialog::new(Box::new(TrustDialog { trust: Some(trust) }), title, reason.to_owned(), choices, body)
}

/// Describes which calls a mode allows without approval.
pub(crate) fn mode_description(mode: Mode) -> &'static str {
    match mode {
        Mode::Plan => "Tools do not write, and commands only read.",
        Mode::Ask => "aye asks whenever the policy requires approval.",
        Mode::AutoEdit => "Writes in the workspace run without asking. aye asks about commands as before.",
        Mode::Auto => {
            "Low- and medium-risk actions run without asking. Commands do so only in a sandbox, unless your policy turns the sandbox off. aye still asks about high-risk actions."
        }
    }
}

pub(crate) fn mode_dialog(mode: Mode) -> Dialog {
    let words = mode_description(mode);
    let name = mode.as_str();
    let choices = vec![
        choice('y', Confirm::LetterThenEnter, ChoiceAction::Mode(YesNo::Yes), format!("change to {name}"), "change"),
        choice('n', Confirm::Letter, ChoiceAction::Mode(YesNo::No), "keep the current mode".to_owned(), "keep"),
    ];
    let panel = Dialog::new(
        Box::new(ModeDialog { mode }),
        format!("Change the mode to {name}?"),
        "this mode asks less often".to_owned(),
        choices,
        Body::from_text(format!("{words}\n\nNo mode overrides a deny, a protected path or a managed policy.")),
    );
    Dialog { risk: Some(Risk::High), ..panel }
}

/// Creates the dialog that asks the user to confirm the deletion of a session.
pub(crate) fn deletion_dialog(id: SessionId, title: &str) -> Dialog {
    let short: String = id.as_str().chars().take(8).collect();
    let choices = vec![
        choice('y', Confirm::LetterThenEnter, ChoiceAction::Forget(YesNo::Yes), "delete permanently".to_owned(), "delete"),
        choice('n', Confirm::Letter, ChoiceAction::Forget(YesNo::No), "keep it".to_owned(), "keep"),
    ];
    let words = "This deletes the conversation, its artifacts and its rewind checkpoints for good. \
                 Project files are not touched.";
    let title = format!("Delete the session \"{}\"?", text::reveal_line(title));
    let reason = format!("session {} cannot be restored", text::reveal_line(&short));
    let panel = Dialog::new(Box::new(DeletionDialog { session: id }), title, reason, choices, Body::from_text(words.to_owned()));
    Dialog { risk: Some(Risk::Medium), ..panel }
}

fn trust_text(trust: &TrustQuestion) -> String {
    let mut words = String::new();
    if let Some(changes) = &trust.changes {
        let what = if changes.is_empty() { "the project's settings".to_owned() } else { changes.join("\n  ") };
        words += &["Changed since you trusted it:\n  ", &what, "\n\n"].concat();
    }
    if let Some(remote) = &trust.remote {
        words += &["From ", remote, "\n\n"].concat();
    }
    if trust.items.is_empty() {
        words.push_str("The project contains no instructions and no settings for aye.\n");
    } else {
        words += &["The project contains:\n  ", &trust.items.join("\n  "), "\n"].concat();
    }
    if !trust.runs_code.is_empty() {
        let rows: Vec<_> = trust.runs_code.iter().map(|row| text::reveal_line(row)).collect();
        let rows = rows.join("\n  ");
        words += &["\nThese run code when another program opens the folder; aye does not run them:\n  ", &rows, "\n"].concat();
    }
    if let Some(why) = &trust.broken {
        let why = why.replace('\n', "\n  ");
        words += &["\nThe project cannot be trusted yet:\n  ", &why, "\nFix this and start aye again.\n"].concat();
    }
    words.push('\n');
    if trust.has_items() {
        words.push_str(
            "Instructions reach the model as if you had written them. Tools and MCP servers run programs with your permissions. ",
        );
        words.push_str("A policy can only add restrictions. ");
    }
    words.push_str(if trust.approves_effects {
        "Commands that match no rule then run first in a sandboxed copy of the project, without network. They can run the \
         project's own programs, such as tests and build scripts. aye asks before they change your files, according to the mode."
    } else {
        "aye still asks you before the model writes or runs anything."
    });
    words
}
