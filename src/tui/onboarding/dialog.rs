//! The first questions as panels.

use super::{Onboarding, Page, Pick, Test, Typed, Typing};
use crate::protocol::{FoundModel, Reach, TestOutcome};
use crate::text;
use crate::tui::approval::{Body, Choice, ChoiceAction, Dialog, Height, Note, Question, choice};
use crate::tui::composer::Field;
use crate::tui::theme::Token;
use crate::tui::typeahead_guard::Confirm;

/// How many signs stand for a key at most; its length is said beside it.
const SIGNS: usize = 24;
/// Of a key so many of its last letters are shown, and nothing of a short one.
const TAIL: usize = 4;
/// A change, to see what it looks like.
const SAMPLE: &str = "--- a/src/greet.rs\n+++ b/src/greet.rs\n@@ -1,4 +1,4 @@\n fn greet(name: &str) -> String {\n\
    -    format!(\"Hello, {name}\")\n+    format!(\"Hello, {name}!\")\n }\n";

impl Onboarding {
    pub fn panel(self: Box<Self>) -> Dialog {
        let (title, reason, choices, body, words) = (self.title(), self.reason(), self.choices(), self.body(), self.field());
        let mut panel = Dialog::new(Question::Setup(self), title, reason, choices, body);
        (panel.words, panel.height) = (words, Height::Full);
        panel
    }

    /// What is typed, as it is shown: of a key only that there is one.
    pub fn field(&self) -> Option<Field> {
        let Page::Typing(typing) = &self.page else { return None };
        let mut field = Field::new();
        match typing.what {
            Typed::Address => field.insert(&text::reveal(&typing.text.0)),
            Typed::Key | Typed::AddressKey => field.insert(&"*".repeat(typing.text.0.chars().count().min(SIGNS))),
        }
        Some(field)
    }

    /// What stands before it.
    pub fn label(&self) -> &'static str {
        match &self.page {
            Page::Typing(Typing { what: Typed::Address, .. }) => "address: ",
            Page::Typing(_) | Page::Models | Page::Model(_) | Page::Policy => "key: ",
        }
    }

    pub fn title(&self) -> String {
        match &self.page {
            Page::Models => "Which model answers?".to_owned(),
            Page::Typing(Typing { what: Typed::Key, .. }) => "A key".to_owned(),
            Page::Typing(Typing { what: Typed::Address, .. }) => "A server of your own".to_owned(),
            Page::Typing(Typing { what: Typed::AddressKey, .. }) => "The key of that server, if it wants one".to_owned(),
            Page::Model(reach) => match &reach.address {
                Some(address) => format!("Use the server at {}?", text::reveal_line(address)),
                None => format!("Use {}?", text::reveal_line(&reach.model)),
            },
            Page::Policy => "What may run without asking?".to_owned(),
        }
    }

    pub fn reason(&self) -> String {
        match &self.page {
            Page::Models => "setup 1 of 2 · nothing is sent or kept before you say so".to_owned(),
            Page::Typing(Typing { what: Typed::Address, .. }) => {
                "anything that speaks Chat Completions; nothing is checked but the address".to_owned()
            }
            Page::Typing(_) => "it is not shown, and nothing is kept yet".to_owned(),
            Page::Model(_) => "setup 1 of 2 · nothing is kept yet".to_owned(),
            Page::Policy => "setup 2 of 2 · enter alone changes nothing".to_owned(),
        }
    }

    fn choices(&self) -> Vec<Choice> {
        let pick = |letter, pick, words: String, short: &'static str| {
            choice(letter, Confirm::Letter, ChoiceAction::Setup(pick), words, short)
        };
        match &self.page {
            Page::Models => {
                let models = self.found.models.iter().take(9).zip('1'..).enumerate();
                let models = models.map(|(at, (found, digit))| {
                    let words = format!("{} · {}", text::reveal_line(&found.model), text::reveal_line(&found.by));
                    let name = found.model.rsplit('/').next().unwrap_or_default();
                    let short = text::truncate(&text::reveal_line(name), 20).into_owned();
                    let choice = choice(digit, Confirm::LetterThenEnter, ChoiceAction::Setup(Pick::Model(at)), words, "");
                    Choice { short: short.into(), ..choice }
                });
                let others = [
                    pick('k', Pick::Key, "paste a key".to_owned(), "a key"),
                    pick('u', Pick::Address, "any other server, by its address".to_owned(), "a server"),
                    pick('s', Pick::Skip, "skip: as it is".to_owned(), "skip"),
                ];
                models.chain(others).collect()
            }
            Page::Typing(_) => Vec::new(),
            Page::Model(_) => vec![
                pick('y', Pick::Take, "use it here and in new sessions".to_owned(), "use it"),
                pick('t', Pick::Test, "test it: one tiny request".to_owned(), "test"),
                pick('b', Pick::Back, "back to the list".to_owned(), "back"),
            ],
            Page::Policy => {
                let presets = self.found.presets.iter().zip('1'..).enumerate().map(|(at, (preset, digit))| {
                    let suggested = if preset.suggested { " · suggested" } else { "" };
                    let words = format!("{}{suggested}", text::reveal_line(&preset.name));
                    let choice = choice(digit, Confirm::LetterThenEnter, ChoiceAction::Setup(Pick::Preset(at)), words, "");
                    Choice { short: text::reveal_line(&preset.name).into(), ..choice }
                });
                presets.chain([pick('s', Pick::Skip, "skip: the policy stays as it is".to_owned(), "skip")]).collect()
            }
        }
    }

    pub fn body(&self) -> Body {
        let mut words = match &self.page {
            Page::Models => self.models_words(),
            Page::Typing(typing) => self.typing_words(typing),
            Page::Model(reach) => self.model_words(reach),
            Page::Policy => return self.policy_body(),
        };
        if let Some(problem) = &self.problem {
            words = format!("{words}\n\n{problem}");
        }
        Body::words(words)
    }

    fn models_words(&self) -> String {
        let now = match &self.found.model_now {
            Some(model) => format!("New sessions ask {model}.\n"),
            None => "No model answers yet.\n".to_owned(),
        };
        let found = if self.found.models.is_empty() {
            "No key was found in the environment, and no server of models on this machine. Without one `aye demo` shows a whole session."
        } else {
            "The numbers below were found: in the environment, kept before, or listening on this machine."
        };
        format!("{now}{found}")
    }

    fn typing_words(&self, typing: &Typing) -> String {
        let letters = typing.text.0.trim().chars().count();
        let counted = if letters == 1 { "1 letter".to_owned() } else { format!("{letters} letters") };
        match (typing.what, typing.provider.and_then(|at| self.found.providers.get(at))) {
            (Typed::Address, _) => {
                "Such as http://localhost:8000/v1, and behind a blank the name of the model; without a name the first \
                one that the server lists."
                    .to_owned()
            }
            (Typed::AddressKey, _) if letters == 0 => "Enter alone: none.".to_owned(),
            (Typed::AddressKey, _) => format!("{counted}\n{}", self.keeping()),
            (Typed::Key, _) if letters == 0 => {
                format!("Paste or type it: it is recognised by how it begins.\n{}", self.keeping())
            }
            (Typed::Key, Some(FoundModel { by, model })) => {
                let how = if typing.is_said { "" } else { ", as it looks" };
                format!("{counted} · of {by}{how} (left, right: another)\nasks {model}\n{}", self.keeping())
            }
            (Typed::Key, None) => format!("{counted} · whose? left and right say it\n{}", self.keeping()),
        }
    }

    fn keeping(&self) -> String {
        format!("kept in {}", self.found.keys_go_to)
    }

    fn model_words(&self, reach: &Reach) -> String {
        let mut lines = vec![match &self.test {
            _ if self.waits => "Keeping it …".to_owned(),
            Test::Not => "Not tested yet.".to_owned(),
            Test::Runs => "Testing: one tiny request is on its way …".to_owned(),
            Test::Done(TestOutcome::Answered { model, latency_ms }) => format!("It works: {model} answered in {latency_ms} ms."),
            Test::Done(TestOutcome::Failed { message }) => format!("The test failed:\n{message}\n"),
        }];
        if let Some(address) = &reach.address {
            let model = if reach.model.is_empty() { "the first one it lists" } else { &reach.model };
            lines.push(format!("address  {address}\nmodel    {model}"));
        }
        match &reach.key {
            Some(key) => lines.push(format!("key      {}; it goes to {}", described(&key.0), self.found.keys_go_to)),
            None if reach.address.is_some() => lines.push("key      none".to_owned()),
            None => {
                let found = self.found.models.iter().find(|found| found.model == reach.model);
                lines.extend(found.map(|found| format!("by       {}", found.by)));
            }
        }
        lines.join("\n")
    }

    fn policy_body(&self) -> Body {
        let mut notes = vec![Note::row(["", "runs", "asks", "never"], Token::Faint)];
        notes.extend(self.found.presets.iter().map(|preset| {
            let cells = [&preset.name, &preset.runs, &preset.asks, &preset.never].map(|cell| text::reveal_line(cell));
            Note::row(cells.each_ref().map(String::as_str), Token::Text)
        }));
        if self.found.has_policy {
            let words = "There is a policy.toml of yours: another choice takes its place, and it is kept as a backup.";
            notes.push(Note::new(words.to_owned(), Token::Warn));
        }
        notes.push(Note::new(text::reveal_line(&self.found.sandbox), Token::Muted));
        if let Some(problem) = &self.problem {
            notes.push(Note::new(text::reveal_rows(problem), Token::Danger));
        } else if self.waits {
            notes.push(Note::new("Keeping it …".to_owned(), Token::Muted));
        }
        let theme = self.themes.get(self.theme).map_or("auto", String::as_str);
        notes.push(Note::new(format!("theme {} · left and right show others", text::reveal_line(theme)), Token::Heading));
        Body::sample(notes, SAMPLE)
    }
}

impl Dialog {
    /// The same page with other words.
    pub fn refresh_setup(&mut self) {
        let Question::Setup(setup) = &self.question else { return };
        (self.title, self.reason, self.body, self.words) = (setup.title(), setup.reason(), setup.body(), setup.field());
    }
}

/// What the keys do now, most likely first.
pub fn hints(onboarding: &Onboarding, is_arming: bool) -> Vec<&'static str> {
    match &onboarding.page {
        Page::Typing(Typing { what: Typed::Key, .. }) => {
            vec!["enter goes on", "esc back", "left right whose it is", "ctrl+u clears"]
        }
        Page::Typing(_) => vec!["enter goes on", "esc back", "ctrl+u clears"],
        _ if is_arming => vec!["a moment … letters go to your draft", "esc skips"],
        Page::Models => vec!["esc skips", "letter, or up down enter", "ctrl+c leaves all of it"],
        Page::Model(_) => vec!["esc back", "letter, or up down enter"],
        Page::Policy => vec!["enter ends", "left right theme", "esc skips", "number, then enter", "pgup pgdn scroll"],
    }
}

/// `51 letters, …k3f9`; of a short one only how long it is.
fn described(key: &str) -> String {
    let count = key.chars().count();
    let tail: String = key.chars().skip(count.saturating_sub(TAIL)).collect();
    if count > 4 * TAIL { format!("{count} letters, …{tail}") } else { format!("{count} letters") }
}
