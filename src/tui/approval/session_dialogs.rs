//! Questions that no tool asks: may this project, may this mode.

use super::{Body, ChoiceAction, Confirm, Dialog, Question, YesNo, choice};
use crate::protocol::{Mode, Risk, SessionId};
use crate::text;
use crate::tui::interface::{TrustAnswer, TrustQuestion};

impl Dialog {
    pub fn trust(trust: TrustQuestion) -> Self {
        let title = format!("Trust what {} brings with it?", text::reveal_line(&trust.place));
        let reason = match &trust.changes {
            Some(_) => "it is not what you said yes to",
            None => "nothing of it was run or obeyed until now",
        };
        let mut choices = Vec::new();
        if trust.broken.is_none() {
            let words = "trust: all of this takes effect, now and until it changes".to_owned();
            choices.push(choice('y', Confirm::LetterThenEnter, ChoiceAction::Trust(TrustAnswer::Yes), words, "trust"));
        }
        let words = "open read-only, ignore its settings".to_owned();
        choices.push(choice('n', Confirm::Letter, ChoiceAction::Trust(TrustAnswer::ReadOnly), words, "read-only"));
        if !trust.files.is_empty() {
            choices.push(choice('o', Confirm::Letter, ChoiceAction::Look, "open the files and read them".to_owned(), "open"));
        }
        choices.push(choice('q', Confirm::Letter, ChoiceAction::Trust(TrustAnswer::Quit), "quit".to_owned(), "quit"));
        let body = Body::words(trust_words(&trust));
        Self::new(Question::Trust(Some(trust)), title, reason.to_owned(), choices, body)
    }

    pub fn mode(mode: Mode) -> Self {
        let words = match mode {
            Mode::Plan => "Nothing is written by any tool, and commands only read.",
            Mode::Ask => "What the policy says asks, asks.",
            Mode::AutoEdit => "Writes in the workspace that would ask are done without a question. Commands ask as before.",
            Mode::Auto => {
                "What would ask at low or medium risk is done without a question, commands only where something holds them or your policy does without. High risk still asks."
            }
        };
        let name = mode.as_str();
        let choices = vec![
            choice('y', Confirm::LetterThenEnter, ChoiceAction::Mode(YesNo::Yes), format!("change to {name}"), "change"),
            choice('n', Confirm::Letter, ChoiceAction::Mode(YesNo::No), "stay as it is".to_owned(), "stay"),
        ];
        let panel = Self::new(
            Question::Mode(mode),
            format!("Change the mode to {name}?"),
            "it asks less than now".to_owned(),
            choices,
            Body::words(format!("{words}\n\nNo mode changes what is denied, what is protected, or what a managed policy asks.")),
        );
        Self { risk: Some(Risk::High), ..panel }
    }

    /// Before all that is kept of a session is given up.
    pub fn forget(id: SessionId, title: &str) -> Self {
        let short: String = id.as_str().chars().take(8).collect();
        let choices = vec![
            choice('y', Confirm::LetterThenEnter, ChoiceAction::Forget(YesNo::Yes), "delete it, for good".to_owned(), "delete"),
            choice('n', Confirm::Letter, ChoiceAction::Forget(YesNo::No), "keep it".to_owned(), "keep"),
        ];
        let words = "What was said in it, what is kept of its outputs, and what /rewind would need there are gone then. \
                     Files of the project stay as they are.";
        let title = format!("Delete the session \"{}\"?", text::reveal_line(title));
        let reason = format!("{} cannot be brought back", text::reveal_line(&short));
        let panel = Self::new(Question::Forget(id), title, reason, choices, Body::words(words.to_owned()));
        Self { risk: Some(Risk::Medium), ..panel }
    }

    pub fn is_forget(&self) -> bool {
        matches!(self.question, Question::Forget(_))
    }

    /// Whether it asks about this session.
    pub fn forgets(&self, session: &SessionId) -> bool {
        matches!(&self.question, Question::Forget(id) if id == session)
    }

    /// Whether the person called for it, and nothing waits for the answer.
    pub fn is_called_for(&self) -> bool {
        matches!(self.question, Question::Forget(_) | Question::Mode(_))
    }
}

fn trust_words(trust: &TrustQuestion) -> String {
    let mut words = String::new();
    if let Some(changes) = &trust.changes {
        let what = if changes.is_empty() { "what the project brings".to_owned() } else { changes.join("\n  ") };
        words += &["Changed since you trusted it:\n  ", &what, "\n\n"].concat();
    }
    if let Some(remote) = &trust.remote {
        words += &["From ", remote, "\n\n"].concat();
    }
    words += &["It brings:\n  ", &trust.items.join("\n  "), "\n"].concat();
    if !trust.runs_code.is_empty() {
        let rows: Vec<_> = trust.runs_code.iter().map(|row| text::reveal_line(row)).collect();
        let rows = rows.join("\n  ");
        words += &["\nThese run code when another program opens the folder; aye does not run them:\n  ", &rows, "\n"].concat();
    }
    if let Some(why) = &trust.broken {
        let why = why.replace('\n', "\n  ");
        words += &["\nIt cannot be trusted as it is:\n  ", &why, "\nMend it and start aye again.\n"].concat();
    }
    words.push_str(
        "\nInstructions are told to the model as if you had said them, tools and MCP servers run programs with your rights, ",
    );
    words.push_str("a policy can only forbid more. The model still asks before it writes or runs anything.");
    words
}
