//! The first questions: which model answers, which policy holds, how it looks. Each can be skipped, and nothing is chosen before the
//! person chooses.
//!
//! What happens goes in, what is to be done comes out; the panels that show it are those of all questions, with their guard.

mod dialog;
mod recognise;
#[cfg(test)]
mod tests;

pub use dialog::hints;
pub use recognise::provider_of as provider_of_key;

use crate::protocol::{KeyText, Reach, SetupAsked, SetupFound, SetupTold, TestOutcome};

/// A longer one is a file that was taken for a key.
const TYPED_BYTES: usize = 8 << 10;

/// Where the person is, and what is known.
#[derive(Debug)]
pub struct Onboarding {
    found: SetupFound,
    page: Page,
    /// Something is being done, and its outcome has not come.
    waits: bool,
    /// Why the last thing could not be done.
    problem: Option<String>,
    test: Test,
    tests: u64,
    themes: Vec<String>,
    /// The theme that is shown, and the one that was there before.
    theme: usize,
    theme_before: usize,
}

#[derive(Debug)]
enum Page {
    /// What was found, and the ways to something else.
    Models,
    Typing(Typing),
    /// One was chosen; nothing is kept yet.
    Model(Reach),
    Policy,
}

/// A line as far as it is typed.
#[derive(Debug, Default)]
struct Typing {
    what: Typed,
    text: KeyText,
    /// Whose key it is: its place among the providers.
    provider: Option<usize>,
    /// The person said whose.
    is_said: bool,
    /// The server that the key is for.
    reach: Reach,
}

#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
enum Typed {
    #[default]
    Key,
    Address,
    /// Of the server of one's own.
    AddressKey,
}

#[derive(Debug)]
enum Test {
    Not,
    Runs,
    Done(TestOutcome),
}

/// A choice on one of the pages.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Pick {
    /// One of those that were found.
    Model(usize),
    Key,
    Address,
    Test,
    Take,
    Back,
    Preset(usize),
    /// On to what comes next, with nothing changed.
    Skip,
}

/// What happened.
#[derive(Debug, Clone)]
pub enum Input<'a> {
    Pick(Pick),
    Enter,
    Escape,
    /// All of it is left.
    Leave,
    Letter(char),
    Backspace,
    Clear,
    Pasted(&'a str),
    /// To a neighbour: another theme, another provider.
    Turn(isize),
    Told(SetupTold),
}

/// What is to be done about it.
#[derive(Debug, PartialEq, Eq)]
pub enum Out {
    Ask(SetupAsked),
    /// Another page: keys count once it is on the screen.
    Show,
    /// Other words on the same page.
    Words,
    /// From now on this model is to be asked.
    Use {
        model: String,
        lines: Vec<String>,
    },
    Theme(String),
    End {
        policy: bool,
        lines: Vec<String>,
    },
}

impl Onboarding {
    /// `themes`: by name; `theme`: the one that is set.
    pub fn new(found: SetupFound, themes: Vec<String>, theme: &str) -> Self {
        let theme = themes.iter().position(|name| name == theme).unwrap_or(0);
        Self {
            found,
            page: Page::Models,
            waits: false,
            problem: None,
            test: Test::Not,
            tests: 0,
            themes,
            theme,
            theme_before: theme,
        }
    }

    /// Whether a line is being typed: then keys are for it.
    pub fn types(&self) -> bool {
        matches!(self.page, Page::Typing(_))
    }

    /// Whether something was typed there.
    pub fn has_typed(&self) -> bool {
        matches!(&self.page, Page::Typing(typing) if !typing.text.0.trim().is_empty())
    }

    /// Whether Enter alone ends it.
    pub fn is_at_end(&self) -> bool {
        matches!(self.page, Page::Policy)
    }

    /// Whether pasted words are for it: a key that was pasted at the list is meant as one, and never a draft.
    pub fn takes(&self, pasted: &str) -> bool {
        match self.page {
            Page::Typing(_) => true,
            Page::Models => recognise::provider_of(pasted).is_some(),
            Page::Model(_) | Page::Policy => false,
        }
    }

    pub fn step(&mut self, input: Input<'_>) -> Vec<Out> {
        match input {
            Input::Leave => self.leave(),
            Input::Told(told) => self.told(told),
            input => match self.page {
                Page::Models => self.at_models(&input),
                Page::Typing(_) => self.at_typing(&input),
                Page::Model(_) => self.at_model(&input),
                Page::Policy => self.at_policy(&input),
            },
        }
    }

    fn go(&mut self, page: Page) -> Vec<Out> {
        self.page = page;
        self.problem = None;
        self.test = Test::Not;
        // An answer that is still on its way is about something else.
        self.tests += 1;
        vec![Out::Show]
    }

    fn at_models(&mut self, input: &Input<'_>) -> Vec<Out> {
        match input {
            Input::Pick(Pick::Model(at)) => match self.found.models.get(*at) {
                Some(found) => {
                    let reach = Reach { model: found.model.clone(), ..Reach::default() };
                    self.go(Page::Model(reach))
                }
                None => Vec::new(),
            },
            Input::Pick(Pick::Key) => self.go(Page::Typing(Typing::default())),
            Input::Pick(Pick::Address) => self.go(Page::Typing(Typing { what: Typed::Address, ..Typing::default() })),
            Input::Pick(Pick::Skip) | Input::Escape => self.go(Page::Policy),
            Input::Pasted(words) => {
                let shown = self.go(Page::Typing(Typing::default()));
                self.typed(words);
                shown
            }
            _ => Vec::new(),
        }
    }

    fn at_typing(&mut self, input: &Input<'_>) -> Vec<Out> {
        match input {
            Input::Escape | Input::Pick(Pick::Back) => return self.go(Page::Models),
            Input::Enter => return self.typed_all(),
            Input::Letter(letter) => self.typed(letter.encode_utf8(&mut [0; 4])),
            Input::Pasted(words) => self.typed(words),
            Input::Backspace => self.change(|text| {
                text.pop();
            }),
            Input::Clear => self.change(String::clear),
            Input::Turn(by) => self.turn_provider(*by),
            _ => return Vec::new(),
        }
        vec![Out::Words]
    }

    fn at_model(&mut self, input: &Input<'_>) -> Vec<Out> {
        let Page::Model(reach) = &self.page else { return Vec::new() };
        let reach = reach.clone();
        match input {
            Input::Pick(Pick::Test) if !matches!(self.test, Test::Runs) => {
                self.tests += 1;
                self.test = Test::Runs;
                vec![Out::Ask(SetupAsked::Test { reach, number: self.tests }), Out::Words]
            }
            Input::Pick(Pick::Take) if !self.waits => {
                self.waits = true;
                self.problem = None;
                vec![Out::Ask(SetupAsked::Take { reach }), Out::Words]
            }
            Input::Pick(Pick::Back) | Input::Escape => self.go(Page::Models),
            _ => Vec::new(),
        }
    }

    fn at_policy(&mut self, input: &Input<'_>) -> Vec<Out> {
        match input {
            Input::Turn(by) => {
                self.theme = around(self.theme, *by, self.themes.len());
                vec![Out::Theme(self.themes.get(self.theme).cloned().unwrap_or_default()), Out::Words]
            }
            Input::Pick(Pick::Preset(at)) if !self.waits => {
                let preset = self.found.presets.get(*at).map(|preset| preset.name.clone());
                self.end(preset)
            }
            Input::Pick(Pick::Skip) | Input::Enter if !self.waits => self.end(None),
            Input::Escape => self.leave(),
            _ => Vec::new(),
        }
    }

    fn end(&mut self, preset: Option<String>) -> Vec<Out> {
        self.waits = true;
        self.problem = None;
        let theme = (self.theme != self.theme_before).then(|| self.themes.get(self.theme).cloned()).flatten();
        vec![Out::Ask(SetupAsked::End { preset, theme }), Out::Words]
    }

    /// Nothing more is chosen, and it looks as before. What was taken before stays.
    fn leave(&mut self) -> Vec<Out> {
        let before = self.themes.get(self.theme_before).cloned().filter(|_| self.theme != self.theme_before);
        let ask = Out::Ask(SetupAsked::End { preset: None, theme: None });
        before.map(Out::Theme).into_iter().chain([ask, Out::End { policy: false, lines: Vec::new() }]).collect()
    }

    fn told(&mut self, told: SetupTold) -> Vec<Out> {
        match told {
            SetupTold::Found(_) => Vec::new(),
            SetupTold::Tested { number, outcome } if number == self.tests => {
                self.test = Test::Done(outcome);
                vec![Out::Words]
            }
            SetupTold::Tested { .. } => Vec::new(),
            SetupTold::Taken { model, lines } => {
                self.waits = false;
                let shown = self.go(Page::Policy);
                [Out::Use { model, lines }].into_iter().chain(shown).collect()
            }
            SetupTold::Ended { policy, lines } => vec![Out::End { policy, lines }],
            SetupTold::Failed { message } => {
                self.waits = false;
                self.problem = Some(message);
                vec![Out::Words]
            }
        }
    }

    fn typed(&mut self, words: &str) {
        self.change(|text| {
            let room = TYPED_BYTES.saturating_sub(text.len());
            text.extend(words.chars().filter(|letter| !letter.is_control()).take(room));
        });
    }

    fn change(&mut self, change: impl FnOnce(&mut String)) {
        self.problem = None;
        let Page::Typing(typing) = &mut self.page else { return };
        change(&mut typing.text.0);
        if typing.what == Typed::Key && !typing.is_said {
            let name = recognise::provider_of(&typing.text.0);
            typing.provider = name.and_then(|name| self.found.providers.iter().position(|provider| provider.by == name));
        }
    }

    fn turn_provider(&mut self, by: isize) {
        let count = self.found.providers.len();
        if let Page::Typing(typing) = &mut self.page
            && typing.what == Typed::Key
        {
            let first = if by < 0 { count.saturating_sub(1) } else { 0 };
            typing.provider = Some(typing.provider.map_or(first, |at| around(at, by, count))).filter(|_| count > 0);
            typing.is_said = true;
            self.problem = None;
        }
    }

    /// Enter behind what was typed.
    fn typed_all(&mut self) -> Vec<Out> {
        let Page::Typing(typing) = &mut self.page else { return Vec::new() };
        let text = typing.text.0.trim().to_owned();
        let mut refuse = |why: &str| {
            self.problem = Some(why.to_owned());
            vec![Out::Words]
        };
        match (typing.what, typing.provider.and_then(|at| self.found.providers.get(at))) {
            (Typed::Key | Typed::Address, _) if text.is_empty() => Vec::new(),
            (Typed::Key, None) => refuse("Choose the provider of this key with left and right."),
            (Typed::Key, Some(_)) if text.contains(char::is_whitespace) => refuse("A key cannot contain spaces."),
            (Typed::Key, Some(provider)) => {
                let reach = Reach { model: provider.model.clone(), key: Some(KeyText(text)), address: None };
                self.go(Page::Model(reach))
            }
            (Typed::Address, _) => {
                let (url, model) = text.split_once(char::is_whitespace).unwrap_or((&text, ""));
                if !(url.starts_with("http://") || url.starts_with("https://")) {
                    return refuse("The address must begin with https://, or with http:// for this machine.");
                }
                let reach = Reach { model: model.trim().to_owned(), key: None, address: Some(url.to_owned()) };
                self.go(Page::Typing(Typing { what: Typed::AddressKey, reach, ..Typing::default() }))
            }
            (Typed::AddressKey, _) if text.contains(char::is_whitespace) => refuse("A key cannot contain spaces."),
            (Typed::AddressKey, _) => {
                let key = Some(KeyText(text)).filter(|key| !key.0.is_empty());
                let reach = Reach { key, ..std::mem::take(&mut typing.reach) };
                self.go(Page::Model(reach))
            }
        }
    }
}

/// The neighbour, around the end.
fn around(at: usize, by: isize, count: usize) -> usize {
    let count = count.max(1);
    at.wrapping_add_signed(by.rem_euclid(count.cast_signed())) % count
}
