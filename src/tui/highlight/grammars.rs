//! Syntax grammars. Only a few languages stay compiled, because the regular expressions of each take up about 10 MB.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

use syntect::parsing::SyntaxSet;

/// Number of languages that stay compiled. Two are enough for a response that alternates between two languages to
/// compile each of them only once.
const HELD: usize = 2;
/// Maximum number of languages that are compiled in quick succession, after which compilations are spaced out in time.
/// Compiling a language keeps one core busy for about 30 ms.
const IN_A_ROW: u32 = 3;
const AGAIN: Duration = Duration::from_secs(1);

/// Syntax sets, one per compiled language. The expressions of a language can only be freed together with their set.
#[derive(Default)]
pub(super) struct Grammars {
    /// Syntax sets with the names of their languages, most recently used first. A set without a name has not compiled
    /// any language yet.
    sets: VecDeque<(Option<String>, SyntaxSet)>,
}

impl Grammars {
    /// Returns whether calling [`Self::forget`] would free any memory.
    pub(crate) fn is_loaded(&self) -> bool {
        !self.sets.is_empty()
    }

    pub(crate) fn forget(&mut self) {
        *self = Self::default();
    }

    /// Returns the name of the language with the given name, alias or file extension, if it is known.
    pub(crate) fn name(&mut self, language: &str) -> Option<String> {
        if self.sets.is_empty() {
            self.sets.push_front((None, two_face::syntax::extra_newlines()));
        }
        let (_, set) = self.sets.front()?;
        set.find_syntax_by_token(language).map(|syntax| syntax.name.clone())
    }

    pub(crate) fn is_ready(&self, name: &str) -> bool {
        self.index_of(name).is_some()
    }

    fn index_of(&self, name: &str) -> Option<usize> {
        self.sets.iter().position(|(ready, _)| ready.as_deref() == Some(name))
    }

    /// Returns a set in which no other language is compiled. It compiles the language when the language is first used.
    pub(crate) fn make_ready(&mut self, name: &str) -> &SyntaxSet {
        let unused = || self.sets.iter().position(|(ready, _)| ready.is_none());
        let held = self.index_of(name).or_else(unused).and_then(|at| self.sets.remove(at));
        // Old sets are freed before another language is compiled.
        self.sets.truncate(HELD - 1);
        let set = held.map_or_else(two_face::syntax::extra_newlines, |(_, set)| set);
        self.sets.push_front((Some(name.to_owned()), set));
        &self.sets[0].1
    }
}

/// Rate limit on compilations, which prevents constant compiling on a screen with many languages or during fast
/// scrolling.
pub(super) struct CompileQuota {
    left: u32,
    /// Time at which the current refill interval started.
    since: Option<Instant>,
}

impl CompileQuota {
    pub(crate) fn new() -> Self {
        Self { left: IN_A_ROW, since: None }
    }

    /// Takes one compilation from the quota. If none is left, fails with the time until the next one is allowed.
    pub(crate) fn take(&mut self, now: Instant) -> Result<(), Duration> {
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
