//! Syntax grammars. Only a few stay compiled, because the expressions of a language take about 10
//! MB.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

use syntect::parsing::SyntaxSet;

/// Number of languages that stay compiled. With two, each language of a mixed response is compiled
/// only once.
const HELD: usize = 2;
/// Burst limit and refill interval for the compilation of languages, which takes about 30 ms of one core each.
const IN_A_ROW: u32 = 3;
const AGAIN: Duration = Duration::from_secs(1);

/// Syntax sets, one for each compiled language, because compiled expressions are freed only with their set.
#[derive(Default)]
pub(super) struct Grammars {
    /// Sets, most recently used first. A set without a name is not compiled yet.
    sets: VecDeque<(Option<String>, SyntaxSet)>,
}

impl Grammars {
    /// Returns whether [`Self::forget`] would free memory.
    pub(crate) fn is_loaded(&self) -> bool {
        !self.sets.is_empty()
    }

    pub(crate) fn forget(&mut self) {
        *self = Self::default();
    }

    /// Returns the name of the language for this name, alias or file extension.
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

    /// Returns a set in which only this language is compiled.
    pub(crate) fn make_ready(&mut self, name: &str) -> &SyntaxSet {
        let unused = || self.sets.iter().position(|(ready, _)| ready.is_none());
        let held = self.index_of(name).or_else(unused).and_then(|at| self.sets.remove(at));
        // Free old sets before compiling another language.
        self.sets.truncate(HELD - 1);
        let set = held.map_or_else(two_face::syntax::extra_newlines, |(_, set)| set);
        self.sets.push_front((Some(name.to_owned()), set));
        &self.sets[0].1
    }
}

/// Rate limit that prevents constant compilation on a screen with many languages, or during fast scrolling.
pub(super) struct CompileQuota {
    left: u32,
    /// Start of the current refill interval.
    since: Option<Instant>,
}

impl CompileQuota {
    pub(crate) fn new() -> Self {
        Self { left: IN_A_ROW, since: None }
    }

    /// Takes one compilation from the quota, or returns the time until the next one is available.
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
