//! The first lines of the transcript: where one is, what is allowed here, what one could try.

use crate::text;
use crate::tui::front::ModelAccess;
use crate::tui::ink::{Ink, Inked};
use crate::tui::model::Model;
use crate::tui::status;
use crate::tui::theme::Token;

/// For someone who looks at an empty screen.
const TRY: [&str; 2] = ["explain this project", "find what is not tested"];

pub fn lines(model: &Model, access: &ModelAccess, resumed: bool) -> Vec<Inked> {
    let mut lines = vec![place(model), rules(model)];
    if !resumed && *access == ModelAccess::Ready {
        lines.push(Inked::default());
        lines.push(attempts(model));
    }
    lines
}

fn place(model: &Model) -> Inked {
    let mut line = Inked::new(&format!("aye {}", model.options.version), Ink::of(Token::Heading));
    let branch = model.header.branch.as_ref().map(|branch| format!(" on {branch}")).unwrap_or_default();
    let place = format!(" {} {}{branch}", model.glyphs.dot, model.options.cwd);
    line.push(&text::clean(&place), Ink::of(Token::Text));
    line
}

fn rules(model: &Model) -> Inked {
    let header = &model.header;
    let dot = format!(" {} ", model.glyphs.dot);
    let policy = if header.policy.is_empty() { String::new() } else { format!("policy {}{dot}", header.policy) };
    let words = format!("{policy}mode {}{dot}", header.mode.as_str());
    let mut line = Inked::new(&text::clean(&words), Ink::of(Token::Muted));
    if status::is_open(&header.sandbox) {
        let words = format!("{}: a command can do what you can do", header.sandbox);
        line.push(&text::clean(&words), Ink::of(Token::Warn));
    } else {
        line.push(&text::clean(&header.sandbox), Ink::of(Token::Muted));
    }
    line
}

fn attempts(model: &Model) -> Inked {
    let mut line = Inked::new("Try: ", Ink::of(Token::Muted));
    for words in TRY {
        line.push(words, Ink::of(Token::Text));
        line.push(&format!(" {} ", model.glyphs.dot), Ink::of(Token::Muted));
    }
    line.push("? shows the keys", Ink::of(Token::Muted));
    line
}
