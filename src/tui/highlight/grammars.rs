//! The grammars, of which one at a time is held ready to run: the expressions of a language take up to 12 MB once they are compiled.

use std::time::{Duration, Instant};

use syntect::parsing::SyntaxSet;

/// How often in a row another language may be made ready, and when one more may. To compile one takes some 20 ms of a core.
const IN_A_ROW: u32 = 3;
const AGAIN: Duration = Duration::from_millis(500);

/// All languages, and which of them has expressions compiled.
#[derive(Default)]
pub(super) struct Grammars {
    set: Option<SyntaxSet>,
    ready: Option<String>,
}

impl Grammars {
    /// Whether something would become free by [`Self::forget`].
    pub fn are_held(&self) -> bool {
        self.set.is_some()
    }

    pub fn forget(&mut self) {
        *self = Self::default();
    }

    /// What the language of this name, alias or file ending is called; `None` where there is no such.
    pub fn name(&mut self, language: &str) -> Option<String> {
        let set = self.set.get_or_insert_with(two_face::syntax::extra_newlines);
        set.find_syntax_by_token(language).map(|syntax| syntax.name.clone())
    }

    pub fn is_ready(&self, name: &str) -> bool {
        self.ready.as_deref() == Some(name)
    }

    /// The grammars, in which no other language than this one has anything compiled.
    pub fn make_ready(&mut self, name: &str) -> &SyntaxSet {
        if self.ready.is_some() && !self.is_ready(name) {
            // What was compiled goes before something else is.
            self.set = None;
        }
        self.ready = Some(name.to_owned());
        self.set.get_or_insert_with(two_face::syntax::extra_newlines)
    }
}

/// Keeps a screen with many languages, or one that flies by, from compiling all the time.
pub(super) struct Allowance {
    left: u32,
    /// Since when the next one is earned.
    since: Option<Instant>,
}

impl Allowance {
    pub fn new() -> Self {
        Self { left: IN_A_ROW, since: None }
    }

    /// Takes one, or says how long it is until there is one again.
    pub fn take(&mut self, now: Instant) -> Result<(), Duration> {
        while let Some(since) = self.since.filter(|since| now.saturating_duration_since(*since) >= AGAIN) {
            self.left += 1;
            self.since = (self.left < IN_A_ROW).then_some(since + AGAIN);
        }
        let since = *self.since.get_or_insert(now);
        if self.left == 0 {
            return Err((since + AGAIN).saturating_duration_since(now));
        }
        self.left -= 1;
        Ok(())
    }
}
