//! First-time setup of model, approvals and theme. Each step can be skipped, and no setting changes before the user
//! chooses.
//!
//! This module turns inputs into actions. The dialogs share their panel and guard with all other dialogs.

mod recognise;
#[cfg(test)]
mod tests;

pub(crate) use recognise::provider_of as provider_of_key;

use crate::protocol::{Mode, ModelAddress, SecretString, SetupEvent, SetupInfo, SetupRequest, TestOutcome};

/// Maximum length of the typed text, in bytes; longer text is probably a file pasted by mistake.
const TYPED_BYTES: usize = 8 << 10;

/// Current page and collected data.
#[derive(Debug)]
pub(crate) struct Onboarding {
    pub found: SetupInfo,
    pub page: SetupPage,
    /// Whether an action is running.
    pub waits: bool,
    /// Why the last action failed.
    pub problem: Option<String>,
    pub test: TestState,
    tests: u64,
    pub themes: Vec<String>,
    /// Index of the visible theme, and of the theme before setup.
    pub theme: usize,
    theme_before: usize,
    /// Choice for approvals, saved when the setup ends.
    approvals: Option<String>,
}

#[derive(Debug)]
pub(crate) enum SetupPage {
    /// Available models, and other ways to add one.
    Models,
    Typing(TypedLine),
    /// Chosen model, not saved yet.
    Model(ModelAddress),
    /// Choice for approvals, and the theme.
    Approvals,
    /// Choice whether to check daily for a new list of models.
    ModelList,
}

/// Line of text being typed.
#[derive(Debug, Default)]
pub(crate) struct TypedLine {
    pub what: TypedInput,
    pub text: SecretString,
    /// Index of the provider to which the key belongs.
    pub provider: Option<usize>,
    /// Whether the user chose the provider.
    pub is_said: bool,
    /// Model and server for the key.
    pub reach: ModelAddress,
}

#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub(crate) enum TypedInput {
    #[default]
    Key,
    Address,
    /// Key for the user's own server.
    AddressKey,
}

#[derive(Debug)]
pub(crate) enum TestState {
    Not,
    Runs,
    Done(TestOutcome),
}

/// Choice on a page.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum SetupChoice {
    /// Model from the list.
    Model(usize),
    Key,
    Address,
    Test,
    Take,
    Back,
    /// Choice for approvals.
    Approvals(usize),
    /// Checks daily for a new list of models.
    LookDaily,
    /// Continues with the next step without changes.
    Skip,
}

/// Input of the setup.
#[derive(Debug, Clone)]
pub(crate) enum SetupInput<'a> {
    Pick(SetupChoice),
    Enter,
    Escape,
    /// Leaves the setup.
    Leave,
    Letter(char),
    Backspace,
    Clear,
    Pasted(&'a str),
    /// Moves to the next or previous theme or provider.
    Turn(isize),
    Told(SetupEvent),
}

/// Action requested by the setup.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum SetupAction {
    Ask(SetupRequest),
    /// Shows another page. Keys take effect once it is on the screen.
    Show,
    /// Shows changed text on the same page.
    Words,
    /// Uses this model for later requests.
    Use {
        model: String,
        lines: Vec<String>,
    },
    Theme(String),
    /// Ends the setup. `mode`: the mode of new sessions, if an approval choice was made.
    End {
        mode: Option<Mode>,
        lines: Vec<String>,
    },
}

impl Onboarding {
    /// Creates the setup with the names of all themes and of the current one.
    pub(crate) fn new(found: SetupInfo, themes: Vec<String>, theme: &str) -> Self {
        let theme = themes.iter().position(|name| name == theme).unwrap_or(0);
        Self {
            found,
            page: SetupPage::Models,
            waits: false,
            problem: None,
            test: TestState::Not,
            tests: 0,
            themes,
            theme,
            theme_before: theme,
            approvals: None,
        }
    }

    /// Skips the choice of a model, because one is configured.
    pub(crate) fn without_models(mut self) -> Self {
        self.page = SetupPage::Approvals;
        self
    }

    /// Returns whether a line is being typed, which then receives the keys.
    pub(crate) fn types(&self) -> bool {
        matches!(self.page, SetupPage::Typing(_))
    }

    /// Returns whether the line has any text.
    pub(crate) fn has_typed(&self) -> bool {
        matches!(&self.page, SetupPage::Typing(typing) if !typing.text.0.trim().is_empty())
    }

    /// Returns whether Enter alone keeps the current setting.
    pub(crate) fn is_keepable(&self) -> bool {
        matches!(self.page, SetupPage::Approvals | SetupPage::ModelList)
    }

    /// Returns whether the setup handles pasted text. A key that is pasted at the model list is treated as a key, never
    /// as a draft.
    pub(crate) fn accepts_paste(&self, pasted: &str) -> bool {
        match self.page {
            SetupPage::Typing(_) => true,
            SetupPage::Models => recognise::provider_of(pasted).is_some(),
            SetupPage::Model(_) | SetupPage::Approvals | SetupPage::ModelList => false,
        }
    }

    pub(crate) fn step(&mut self, input: SetupInput<'_>) -> Vec<SetupAction> {
        match input {
            SetupInput::Leave => self.leave(),
            SetupInput::Told(told) => self.apply_answer(told),
            input => match self.page {
                SetupPage::Models => self.at_models(&input),
                SetupPage::Typing(_) => self.at_typing(&input),
                SetupPage::Model(_) => self.at_model(&input),
                SetupPage::Approvals => self.at_approvals(&input),
                SetupPage::ModelList => self.at_model_list(&input),
            },
        }
    }

    fn go_to_page(&mut self, page: SetupPage) -> Vec<SetupAction> {
        self.page = page;
        self.problem = None;
        self.test = TestState::Not;
        // A response that arrives later is about another model.
        self.tests += 1;
        vec![SetupAction::Show]
    }

    fn at_models(&mut self, input: &SetupInput<'_>) -> Vec<SetupAction> {
        match input {
            SetupInput::Pick(SetupChoice::Model(at)) => match self.found.models.get(*at) {
                Some(found) => {
                    let reach = ModelAddress { model: found.model.clone(), ..ModelAddress::default() };
                    self.go_to_page(SetupPage::Model(reach))
                }
                None => Vec::new(),
            },
            SetupInput::Pick(SetupChoice::Key) => self.go_to_page(SetupPage::Typing(TypedLine::default())),
            SetupInput::Pick(SetupChoice::Address) => {
                self.go_to_page(SetupPage::Typing(TypedLine { what: TypedInput::Address, ..TypedLine::default() }))
            }
            SetupInput::Pick(SetupChoice::Skip) | SetupInput::Escape => self.go_to_page(SetupPage::Approvals),
            SetupInput::Pasted(words) => {
                let shown = self.go_to_page(SetupPage::Typing(TypedLine::default()));
                self.push_text(words);
                shown
            }
            _ => Vec::new(),
        }
    }

    fn at_typing(&mut self, input: &SetupInput<'_>) -> Vec<SetupAction> {
        match input {
            SetupInput::Escape | SetupInput::Pick(SetupChoice::Back) => return self.go_to_page(SetupPage::Models),
            SetupInput::Enter => return self.submit_text(),
            SetupInput::Letter(letter) => self.push_text(letter.encode_utf8(&mut [0; 4])),
            SetupInput::Pasted(words) => self.push_text(words),
            SetupInput::Backspace => self.change(|text| {
                text.pop();
            }),
            SetupInput::Clear => self.change(String::clear),
            SetupInput::Turn(by) => self.turn_provider(*by),
            _ => return Vec::new(),
        }
        vec![SetupAction::Words]
    }

    fn at_model(&mut self, input: &SetupInput<'_>) -> Vec<SetupAction> {
        let SetupPage::Model(reach) = &self.page else { return Vec::new() };
        let reach = reach.clone();
        match input {
            SetupInput::Pick(SetupChoice::Test) if !matches!(self.test, TestState::Runs) => {
                self.tests += 1;
                self.test = TestState::Runs;
                vec![SetupAction::Ask(SetupRequest::Test { reach, number: self.tests }), SetupAction::Words]
            }
            SetupInput::Pick(SetupChoice::Take) if !self.waits => {
                self.waits = true;
                self.problem = None;
                vec![SetupAction::Ask(SetupRequest::Take { reach }), SetupAction::Words]
            }
            SetupInput::Pick(SetupChoice::Back) | SetupInput::Escape => self.go_to_page(SetupPage::Models),
            _ => Vec::new(),
        }
    }

    fn at_approvals(&mut self, input: &SetupInput<'_>) -> Vec<SetupAction> {
        match input {
            SetupInput::Turn(by) => {
                self.theme = wrap_index(self.theme, *by, self.themes.len());
                vec![SetupAction::Theme(self.themes.get(self.theme).cloned().unwrap_or_default()), SetupAction::Words]
            }
            SetupInput::Pick(SetupChoice::Approvals(at)) if !self.waits => {
                self.approvals = self.found.approvals.get(*at).map(|choice| choice.name.clone());
                self.after_approvals()
            }
            SetupInput::Pick(SetupChoice::Skip) | SetupInput::Enter if !self.waits => {
                self.approvals = None;
                self.after_approvals()
            }
            SetupInput::Escape => self.leave(),
            _ => Vec::new(),
        }
    }

    /// Asks about the list of models, unless one is configured.
    fn after_approvals(&mut self) -> Vec<SetupAction> {
        if self.found.public_list.is_some() { self.go_to_page(SetupPage::ModelList) } else { self.end(false) }
    }

    fn at_model_list(&mut self, input: &SetupInput<'_>) -> Vec<SetupAction> {
        match input {
            SetupInput::Pick(SetupChoice::LookDaily) if !self.waits => self.end(true),
            SetupInput::Pick(SetupChoice::Skip) | SetupInput::Enter if !self.waits => self.end(false),
            SetupInput::Escape if !self.waits => self.go_to_page(SetupPage::Approvals),
            _ => Vec::new(),
        }
    }

    fn end(&mut self, looks_daily: bool) -> Vec<SetupAction> {
        self.waits = true;
        self.problem = None;
        let theme = (self.theme != self.theme_before).then(|| self.themes.get(self.theme).cloned()).flatten();
        vec![SetupAction::Ask(SetupRequest::End { approvals: self.approvals.clone(), theme, looks_daily }), SetupAction::Words]
    }

    /// Ends the setup with the previous theme. Completed choices remain.
    fn leave(&mut self) -> Vec<SetupAction> {
        if let SetupPage::ModelList = self.page {
            // The theme and the approvals are chosen. The end of the setup reports what was saved.
            return if self.waits { Vec::new() } else { self.end(false) };
        }
        let before = self.themes.get(self.theme_before).cloned().filter(|_| self.theme != self.theme_before);
        let ask = SetupAction::Ask(SetupRequest::End { approvals: None, theme: None, looks_daily: false });
        before.map(SetupAction::Theme).into_iter().chain([ask, SetupAction::End { mode: None, lines: Vec::new() }]).collect()
    }

    fn apply_answer(&mut self, told: SetupEvent) -> Vec<SetupAction> {
        match told {
            SetupEvent::Found(_) => Vec::new(),
            SetupEvent::Tested { number, outcome } if number == self.tests => {
                self.test = TestState::Done(outcome);
                vec![SetupAction::Words]
            }
            SetupEvent::Tested { .. } => Vec::new(),
            SetupEvent::Taken { model, lines } => {
                self.waits = false;
                let shown = self.go_to_page(SetupPage::Approvals);
                [SetupAction::Use { model, lines }].into_iter().chain(shown).collect()
            }
            SetupEvent::Ended { mode, lines } => vec![SetupAction::End { mode, lines }],
            SetupEvent::Failed { problem } => {
                self.waits = false;
                self.problem = Some(problem.text());
                vec![SetupAction::Words]
            }
        }
    }

    fn push_text(&mut self, words: &str) {
        self.change(|text| {
            let room = TYPED_BYTES.saturating_sub(text.len());
            text.extend(words.chars().filter(|letter| !letter.is_control()).take(room));
        });
    }

    fn change(&mut self, change: impl FnOnce(&mut String)) {
        self.problem = None;
        let SetupPage::Typing(typing) = &mut self.page else { return };
        change(&mut typing.text.0);
        if typing.what == TypedInput::Key && !typing.is_said {
            let name = recognise::provider_of(&typing.text.0);
            typing.provider = name.and_then(|name| self.found.providers.iter().position(|provider| provider.by == name));
        }
    }

    fn turn_provider(&mut self, by: isize) {
        let count = self.found.providers.len();
        if let SetupPage::Typing(typing) = &mut self.page
            && typing.what == TypedInput::Key
        {
            let first = if by < 0 { count.saturating_sub(1) } else { 0 };
            typing.provider = Some(typing.provider.map_or(first, |at| wrap_index(at, by, count))).filter(|_| count > 0);
            typing.is_said = true;
            self.problem = None;
        }
    }

    /// Handles Enter after typed text.
    fn submit_text(&mut self) -> Vec<SetupAction> {
        let SetupPage::Typing(typing) = &mut self.page else { return Vec::new() };
        let text = typing.text.0.trim().to_owned();
        let mut refuse = |why: &str| {
            self.problem = Some(why.to_owned());
            vec![SetupAction::Words]
        };
        match (typing.what, typing.provider.and_then(|at| self.found.providers.get(at))) {
            (TypedInput::Key | TypedInput::Address, _) if text.is_empty() => Vec::new(),
            (TypedInput::Key, None) => refuse("Choose the provider of this key with left and right."),
            (TypedInput::Key, Some(_)) if text.contains(char::is_whitespace) => refuse("A key cannot contain spaces."),
            (TypedInput::Key, Some(provider)) => {
                let reach = ModelAddress { model: provider.model.clone(), key: Some(SecretString(text)), address: None };
                self.go_to_page(SetupPage::Model(reach))
            }
            (TypedInput::Address, _) => {
                let (url, model) = text.split_once(char::is_whitespace).unwrap_or((&text, ""));
                if !(url.starts_with("http://") || url.starts_with("https://")) {
                    return refuse("The address must begin with https://, or with http:// for this machine.");
                }
                let reach = ModelAddress { model: model.trim().to_owned(), key: None, address: Some(url.to_owned()) };
                self.go_to_page(SetupPage::Typing(TypedLine { what: TypedInput::AddressKey, reach, ..TypedLine::default() }))
            }
            (TypedInput::AddressKey, _) if text.contains(char::is_whitespace) => refuse("A key cannot contain spaces."),
            (TypedInput::AddressKey, _) => {
                let key = Some(SecretString(text)).filter(|key| !key.0.is_empty());
                let reach = ModelAddress { key, ..std::mem::take(&mut typing.reach) };
                self.go_to_page(SetupPage::Model(reach))
            }
        }
    }
}

/// Moves an index by a step, wrapping around.
fn wrap_index(at: usize, by: isize, count: usize) -> usize {
    let count = count.max(1);
    at.wrapping_add_signed(by.rem_euclid(count.cast_signed())) % count
}
