//! Dialog for an MCP server's input request or a question from the model.

use super::dialog_kind::{DialogKind, HintState};
use super::{Body, Choice, ChoiceAction, Dialog, DialogAnswer, Note, Verb, choice};
use crate::protocol::QuestionOption;
use crate::text;
use crate::tui::composer::TextField;
use crate::tui::elicitation::{ElicitationForm, FormAction, FormContent, FormEntry};
use crate::tui::theme::Token;
use crate::tui::typeahead_guard::Confirm;
use std::borrow::Cow;

/// Maximum width of the field label, in cells.
const LABEL: usize = 24;
/// Short labels of the answer options, used if all choices share one row and as the words to type in line mode.
const PICKS: [&str; 4] = ["answer 1", "answer 2", "answer 3", "answer 4"];
const VERB: Verb = Verb { long: "send it", short: "send" };

impl ElicitationForm {
    pub(crate) fn panel(self: Box<Self>) -> Dialog {
        let (title, reason, choices, body) = (self.title(), self.reason(), self.choices(), self.body());
        Dialog::new(self, title, reason, choices, body)
    }

    fn title(&self) -> String {
        match &self.wants {
            FormContent::Form(_) => format!("{} (MCP server) asks for input", self.server),
            FormContent::Visit(_) => format!("{} (MCP server) asks you to open a URL", self.server),
            FormContent::Question(question) => match question.place {
                (_, 1) => "The model asks".to_owned(),
                (number, count) => format!("The model asks ({number} of {count})"),
            },
        }
    }

    /// Returns who made the request, as named in notices: the MCP server or "the model".
    pub(crate) fn asker(&self) -> String {
        if self.is_of_model() { "the model".to_owned() } else { format!("{} (MCP)", self.server) }
    }

    fn reason(&self) -> String {
        let server = &self.server;
        match (&self.wants, self.is_filling()) {
            (FormContent::Form(_), true) => {
                format!("your input goes to {server}; enter in the last field sends the form, esc goes back")
            }
            (FormContent::Form(_), false) => format!("your answers go to {server}; nothing is sent until you confirm"),
            (FormContent::Question(_), true) => "enter sends your answer to the model, esc goes back".to_owned(),
            (FormContent::Question(_), false) => "your answer goes to the model and does not approve any action".to_owned(),
            (FormContent::Visit(_), _) => "aye does not open links; check the host, then copy the URL".to_owned(),
        }
    }

    fn choices(&self) -> Vec<Choice> {
        let pick =
            |letter, confirm, pick, words: String, short| choice(letter, confirm, ChoiceAction::Asking(pick), words, short);
        let mut choices = Vec::new();
        match &self.wants {
            FormContent::Question(question) => {
                for (at, (letter, option)) in ('1'..='9').zip(&question.options).enumerate() {
                    let label = text::reveal_line(&option.label);
                    choices.push(pick(
                        letter,
                        Confirm::Letter,
                        FormAction::Pick(at),
                        label,
                        PICKS.get(at).copied().unwrap_or("choose"),
                    ));
                }
                choices.push(pick('t', Confirm::Letter, FormAction::Fill, "type another answer".to_owned(), "type"));
                let words = "decline to answer; aye tells the model".to_owned();
                choices.push(pick('n', Confirm::Letter, FormAction::Decline, words, "decline"));
                return choices;
            }
            FormContent::Form(entries) => {
                let is_whole = self.answer().is_some();
                let words = match (is_whole, entries.is_empty()) {
                    (true, true) => "yes, let the server continue".to_owned(),
                    (true, false) => "send the form as shown".to_owned(),
                    (false, _) => "send: not possible yet, a required field is empty; f fills in the form".to_owned(),
                };
                let send = pick('y', Confirm::LetterThenEnter, FormAction::Send, words, "send");
                choices.push(Choice { enabled: is_whole, ..send });
                if !entries.is_empty() {
                    choices.push(pick('f', Confirm::Letter, FormAction::Fill, "fill in the form".to_owned(), "fill in"));
                }
            }
            FormContent::Visit(_) => {
                let words = "I'll open it myself; let the server continue".to_owned();
                choices.push(pick('y', Confirm::LetterThenEnter, FormAction::Send, words, "I open it"));
                choices.push(pick('c', Confirm::Letter, FormAction::Copy, "copy the URL".to_owned(), "copy"));
            }
        }
        choices.push(pick('n', Confirm::Letter, FormAction::Decline, "decline the request".to_owned(), "decline"));
        let words = "dismiss without an answer".to_owned();
        choices.push(pick('x', Confirm::Letter, FormAction::Dismiss, words, "dismiss"));
        choices
    }

    fn body(&self) -> Body {
        Body::notes(self.notes().0, VERB, String::new())
    }

    /// Returns all paragraphs, together with the index range of those that describe the current field.
    fn notes(&self) -> (Vec<Note>, std::ops::Range<usize>) {
        let mut notes: Vec<Note> = Vec::new();
        for row in text::reveal(&self.message).trim().lines() {
            let row = row.trim_end().replace('\t', "    ");
            notes.push(Note::new(if row.is_empty() { " ".to_owned() } else { row }, Token::Text));
        }
        let mut marked = 0..notes.len();
        match &self.wants {
            FormContent::Visit(url) => notes.extend(address(url)),
            FormContent::Question(question) => {
                for (at, option) in question.options.iter().enumerate() {
                    note_option(at, option, &mut notes);
                }
                if self.is_filling() {
                    let start = notes.len();
                    self.note_entry(&question.answer, true, &mut notes);
                    marked = start..notes.len();
                }
            }
            FormContent::Form(entries) => {
                for (at, entry) in entries.iter().enumerate() {
                    let is_at = self.at == Some(at);
                    let start = notes.len();
                    self.note_entry(entry, is_at, &mut notes);
                    if is_at {
                        marked = start..notes.len();
                    }
                }
            }
        }
        (notes, marked)
    }

    fn note_entry(&self, entry: &FormEntry, is_at: bool, notes: &mut Vec<Note>) {
        let mark = if is_at { "> " } else { "  " };
        let needed = if entry.is_required() { " (required)" } else { "" };
        let token = if is_at { Token::Accent } else { Token::Text };
        notes.push(Note::new(format!("{mark}{}{needed}: {}", entry.title(), entry.display_value()), token));
        if entry.looks_secret() {
            let words = "looks like a secret: servers must not ask for secrets in a form, and your input is not hidden";
            notes.push(Note::new(format!("    {words}"), Token::Warn));
        }
        let about = entry.description().into_iter().chain(Some(entry.describe_accepted()).filter(|_| is_at || self.at.is_none()));
        let about = about.collect::<Vec<_>>().join(" · ");
        if !about.is_empty() {
            notes.push(Note::new(format!("    {about}"), Token::Muted));
        }
        if is_at || self.at.is_none() && !entry.is_typed() {
            let several = entry.is_multi_choice();
            for (name, taken, marked) in entry.options() {
                let sign = match (several, taken) {
                    (true, true) => "[x]",
                    (true, false) => "[ ]",
                    (false, true) => "(x)",
                    (false, false) => "( )",
                };
                let marked = marked && is_at;
                let lead = if marked { "  > " } else { "    " };
                notes.push(Note::new(format!("{lead}{sign} {name}"), if marked { Token::Accent } else { Token::Muted }));
            }
        }
        if let Some(why) = self.problem(entry) {
            notes.push(Note::new(format!("    {why}"), Token::Danger));
        }
    }

    /// Returns the line field, prefilled with the current form field's value, if a form field is being edited.
    pub(crate) fn field(&self) -> Option<TextField> {
        let (_, entry) = self.entry()?;
        let mut field = TextField::new();
        field.insert(&if entry.is_typed() { entry.text() } else { entry.display_value() });
        Some(field)
    }

    /// Returns the hint below the line field: which form field it is, and the values that it accepts.
    fn accepted_hint(&self) -> String {
        let Some((at, entry)) = self.entry() else { return String::new() };
        let count = self.entries().len();
        let keys = match (entry.is_typed(), entry.is_multi_choice()) {
            (true, _) => "",
            (false, true) => " · space select, left right move",
            (false, false) => " · space or left right choose",
        };
        format!("field {} of {count} · {}{keys}", at + 1, entry.describe_accepted())
    }

    /// Returns the key hints for the current state, most useful first.
    fn hints(&self, is_arming: bool) -> Vec<&'static str> {
        match (self.entry(), &self.wants) {
            (Some((at, _)), _) => {
                let enter = if at + 1 == self.entries().len() { "enter send" } else { "enter next" };
                vec![enter, "esc back", "tab shift+tab change field", "ctrl+u clear"]
            }
            (None, _) if is_arming => vec!["just opened: keys only highlight", "esc close"],
            (None, FormContent::Form(_)) => vec!["f fill in", "esc close", "up down enter choose"],
            (None, FormContent::Question(_)) => vec!["1-4 answer", "t type", "esc cancel", "up down enter choose"],
            (None, FormContent::Visit(_)) => vec!["c copy", "esc close", "up down enter choose"],
        }
    }

    /// Returns the current value of every form field.
    fn filled_values(&self) -> Vec<String> {
        self.entries().iter().map(FormEntry::display_value).collect()
    }

    /// Returns the lines that line mode prints to ask for the current field.
    fn question(&self) -> Vec<String> {
        let Some((at, entry)) = self.entry() else { return Vec::new() };
        let needed = if entry.is_required() { ", required" } else { "" };
        let mut lines = vec![format!(
            "Field {} of {}: {}, {}{needed}",
            at + 1,
            self.entries().len(),
            entry.title(),
            entry.describe_accepted()
        )];
        lines.extend(entry.description());
        if entry.looks_secret() {
            lines.push("This looks like a secret: servers must not ask for secrets in a form.".to_owned());
        }
        let options = entry.options().into_iter().enumerate();
        lines.extend(
            options.map(|(nth, (name, taken, _))| format!("{}. {name}{}", nth + 1, if taken { " (selected)" } else { "" })),
        );
        if entry.is_multi_choice() {
            lines.push("Enter your choices, separated by commas.".to_owned());
        }
        lines.push(format!(
            "Current value: {}. Press Enter to keep it, or type `later` to go back to the question.",
            entry.display_value()
        ));
        lines
    }
}

impl DialogKind for ElicitationForm {
    fn answer(&mut self, _act: ChoiceAction, _reason: Option<String>) -> Option<DialogAnswer> {
        None
    }

    fn is_form(&self) -> bool {
        true
    }

    fn leave_field(&mut self) {
        self.leave();
    }

    fn field_label(&self) -> Cow<'_, str> {
        let title = self.entry().map(|(_, entry)| entry.title()).unwrap_or_default();
        format!("{}: ", text::truncate(&title, LABEL)).into()
    }

    fn field_hint(&self) -> Option<String> {
        Some(self.accepted_hint())
    }

    fn field_question(&self) -> Option<Vec<String>> {
        self.is_filling().then(|| self.question())
    }

    fn key_hints(&self, state: HintState) -> Option<Vec<&'static str>> {
        let scroll = state.scrolls.then_some("pgup pgdn scroll");
        Some(self.hints(state.is_arming).into_iter().chain(scroll).collect())
    }

    /// Identifies the dialog by request, current field and entered values, so line mode treats each field as a separate
    /// question.
    fn identity(&self) -> String {
        format!("{}\n{}\n{}", self.id, self.question().join("\n"), self.filled_values().join("\n"))
    }
}

/// Appends the paragraphs for an answer option, including its description and preview, which do not fit into the choice
/// label.
fn note_option(at: usize, option: &QuestionOption, notes: &mut Vec<Note>) {
    notes.push(Note::new(format!("{}. {}", at + 1, text::reveal_line(&option.label)), Token::Heading));
    let texts = [(option.description.as_ref(), Token::Muted), (option.preview.as_ref(), Token::Text)];
    for (words, token) in texts.into_iter().filter_map(|(words, token)| Some((words?, token))) {
        let rows = text::reveal(words);
        notes.extend(rows.lines().map(|row| Note::new(format!("   {}", row.trim_end().replace('\t', "    ")), token)));
    }
}

/// Returns the paragraphs that show a URL, its host, and warnings about it.
fn address(url: &str) -> Vec<Note> {
    let rest = url.split_once("://");
    let authority = rest.map(|(_, rest)| rest.split(['/', '?', '#', '\\']).next().unwrap_or_default()).unwrap_or_default();
    let (login, host) = authority.rsplit_once('@').map_or((None, authority), |(login, host)| (Some(login), host));
    let mut notes = vec![Note::new(format!("  {}", text::reveal_line(url)), Token::Text)];
    if host.is_empty() {
        notes.push(Note::new("  no host: this opens a program, not a web page".to_owned(), Token::Danger));
    } else {
        notes.push(Note::new(format!("  at  {}", text::reveal_line(host)), Token::Heading));
    }
    let scheme = rest.map(|(scheme, _)| scheme.to_ascii_lowercase()).unwrap_or_default();
    let is_here = ["localhost", "127.0.0.1", "[::1]"].iter().any(|own| host == *own || host.starts_with(&format!("{own}:")));
    match scheme.as_str() {
        "https" => {}
        "http" if is_here => {}
        "http" => notes.push(Note::new("  not encrypted: others on the network can read it".to_owned(), Token::Warn)),
        _ => notes.push(Note::new("  not a web address".to_owned(), Token::Danger)),
    }
    if login.is_some() {
        notes.push(Note::new("  the text before @ is a user name, not the host".to_owned(), Token::Warn));
    }
    if host.contains("xn--") || !host.is_ascii() {
        notes.push(Note::new("  the host contains non-ASCII characters: it may imitate another host".to_owned(), Token::Warn));
    }
    notes
}

/// Rebuilds the dialog from the form's current state and scrolls to the current field.
pub(crate) fn refresh_form(panel: &mut Dialog) {
    let Some(asking) = panel.kind.find::<ElicitationForm>() else { return };
    (panel.title, panel.reason, panel.body) = (asking.title(), asking.reason(), asking.body());
    panel.choices = asking.choices();
    if asking.is_filling() {
        let (notes, marked) = asking.notes();
        let width = panel.view.width.max(1);
        let rows = |part: &[Note]| Body::notes(part.to_vec(), VERB, String::new()).rows(width);
        let (from, to) = (rows(&notes[..marked.start]), rows(&notes[..marked.end]));
        let shown = panel.view.shown.max(1);
        if to > panel.view.top + shown {
            panel.view.top = to - shown;
        }
        panel.view.top = panel.view.top.min(from);
    }
}
