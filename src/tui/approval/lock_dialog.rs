//! Dialog about a session that is locked by another process.

use super::dialog_kind::DialogKind;
use super::{Body, Choice, ChoiceAction, Confirm, Dialog, DialogAnswer, choice};
use crate::text;
use crate::tui::interface::{LockAnswer, LockQuestion};

/// Number of characters of a session ID that are shown to distinguish sessions.
const ID: usize = 4;

/// Locked session about which the dialog asks. `lock` is `None` once the user has answered.
pub(crate) struct LockDialog {
    lock: Option<LockQuestion>,
}

impl DialogKind for LockDialog {
    fn answer(&mut self, act: ChoiceAction, _reason: Option<String>) -> Option<DialogAnswer> {
        let ChoiceAction::Held(answer) = act else { return None };
        self.lock.take().map(|lock| DialogAnswer::Held(lock, answer))
    }
}

pub(crate) fn lock_dialog(held: LockQuestion) -> Dialog {
    let id: String = held.session.as_str().chars().take(ID).collect();
    let since = held.since.as_ref().map(|since| format!(" (since {})", text::reveal_line(since))).unwrap_or_default();
    let title = match held.pid {
        // No process has the session open, but it cannot be opened either.
        0 => format!("Session {id} cannot be opened"),
        pid => format!("Session {id} is open in process {pid}{since}"),
    };
    let reason = match &held.problem {
        Some(problem) => text::reveal_line(problem),
        None => "only one process may write, or they would overwrite each other's changes".to_owned(),
    };
    let act = |letter, confirm, answer, words: String, short| choice(letter, confirm, ChoiceAction::Held(answer), words, short);
    let read = "read-only: view the conversation; nothing is sent".to_owned();
    let choices = vec![
        act('r', Confirm::Letter, LockAnswer::ReadOnly, read, "read-only"),
        take_over_choice(&held),
        act('n', Confirm::Letter, LockAnswer::Another, "choose another session".to_owned(), "another"),
        act('q', Confirm::Letter, LockAnswer::Quit, "quit".to_owned(), "quit"),
    ];
    let words = "Unsent text moves here when you take over. Commands running there are stopped, and you are asked \
                 before any of them runs again.";
    Dialog::new(Box::new(LockDialog { lock: Some(held) }), title, reason, choices, Body::from_text(words.to_owned()))
}

/// Returns the choice that takes over the session. It requires two keys, because it makes the other process exit.
fn take_over_choice(held: &LockQuestion) -> Choice {
    let words = match &held.stays {
        Some(why) => format!("cannot take over: {}", text::reveal_line(why)),
        None => "take over: aye saves and exits there first".to_owned(),
    };
    let act = ChoiceAction::Held(LockAnswer::TakeOver);
    Choice { enabled: held.stays.is_none(), ..choice('t', Confirm::LetterThenEnter, act, words, "take over") }
}
