//! The question about a session that another process has open.

use super::{Act, Body, Choice, Confirm, Panel, Question, choice};
use crate::text;
use crate::tui::front::{Held, HeldAnswer};

/// So much of an id tells a session from others.
const ID: usize = 4;

impl Panel {
    pub fn held(held: Held) -> Self {
        let id: String = held.session.as_str().chars().take(ID).collect();
        let since = held.since.as_ref().map(|since| format!(" (since {})", text::reveal_line(since))).unwrap_or_default();
        let title = match held.pid {
            // Nobody has it, and still it does not open.
            0 => format!("Session {id} cannot be opened"),
            pid => format!("Session {id} is open in process {pid}{since}"),
        };
        let reason = match &held.problem {
            Some(problem) => text::reveal_line(problem),
            None => "two at once would each undo what the other saves, so only one of them writes".to_owned(),
        };
        let act = |letter, confirm, answer, words: String, short| choice(letter, confirm, Act::Held(answer), words, short);
        let read = "read-only: look at what was said, nothing is sent".to_owned();
        let choices = vec![
            act('r', Confirm::Letter, HeldAnswer::ReadOnly, read, "read-only"),
            take_over(&held),
            act('n', Confirm::Letter, HeldAnswer::Another, "another session".to_owned(), "another"),
            act('q', Confirm::Letter, HeldAnswer::Quit, "quit".to_owned(), "quit"),
        ];
        let words = "What is typed and not sent there comes along when it is taken over. What runs there is stopped: \
                     this session then says what it was and asks before anything runs again.";
        Self::new(Question::Held(Some(held)), title, reason, choices, Body::words(words.to_owned()))
    }
}

/// It ends another process: two keys.
fn take_over(held: &Held) -> Choice {
    let words = match &held.stays {
        Some(why) => format!("take over: not possible, {}", text::reveal_line(why)),
        None => "take over: ends aye there, it saves first".to_owned(),
    };
    let act = Act::Held(HeldAnswer::TakeOver);
    Choice { enabled: held.stays.is_none(), ..choice('t', Confirm::LetterThenEnter, act, words, "take over") }
}
