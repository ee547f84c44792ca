//! What a verdict carries; the only place where a `Permit` is made.

use crate::protocol::{Action, CommandPart, Risk};

/// Leave to do exactly these actions, once. Not `Clone`, and only this module makes one.
#[derive(Debug)]
pub struct Permit {
    actions: Vec<Action>,
    rule: String,
}

impl Permit {
    pub(super) fn new(actions: Vec<Action>, rule: String) -> Self {
        Self { actions, rule }
    }

    /// For tests of what takes a permit.
    #[cfg(test)]
    pub(crate) fn for_test(actions: Vec<Action>) -> Self {
        Self::new(actions, "test".to_owned())
    }

    /// Whether this permit was given for these very actions.
    pub fn covers(&self, actions: &[Action]) -> bool {
        self.actions == actions
    }

    /// Which rule, or whose yes, let it happen.
    pub fn rule(&self) -> &str {
        &self.rule
    }
}

#[derive(Debug)]
pub enum Verdict {
    Allow(Permit),
    Ask(Question),
    Deny(Denial),
}

/// What the person has to decide; becomes a permit by their yes.
#[derive(Debug)]
pub struct Question {
    pub(super) actions: Vec<Action>,
    /// From the bundle's approval rule: `File change`.
    pub title: String,
    /// `built-in`, `user:31`.
    pub rule: String,
    pub reason: String,
    pub risk: Risk,
    pub critical: bool,
    pub parts: Vec<CommandPart>,
    /// What "always, until I quit" would allow; absent where nothing may be remembered.
    pub remember: Option<Grant>,
}

impl Question {
    /// The person said yes to this question.
    pub fn approve(self) -> Permit {
        Permit::new(self.actions, "approved by you".to_owned())
    }
}

/// A rule of this run only, made by the person's "until I quit".
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Grant {
    /// Writes to this file.
    Write { path: std::path::PathBuf },
    /// Simple commands whose words are exactly these, run in this directory.
    Command { words: Vec<String>, directory: std::path::PathBuf },
}

impl std::fmt::Display for Grant {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Write { path } => write!(f, "changes to {}", path.display()),
            Self::Command { words, directory } => {
                let words: Vec<_> = words.iter().map(|word| quoted(word)).collect();
                write!(f, "the command `{}` in {}", words.join(" "), directory.display())
            }
        }
    }
}

/// A word as a shell would have to be given it, so that no two commands read the same.
pub fn quoted(word: &str) -> std::borrow::Cow<'_, str> {
    let plain = |letter: char| letter.is_alphanumeric() || "%+,-./:=@_^~".contains(letter);
    if !word.is_empty() && word.chars().all(plain) { word.into() } else { format!("'{}'", word.replace('\'', r"'\''")).into() }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Denial {
    pub rule: String,
    pub reason: String,
    pub parts: Vec<CommandPart>,
}
