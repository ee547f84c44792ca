//! The grammars, of which few at a time are held ready to run: the expressions of a language take some 10 MB once they are compiled.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

use syntect::parsing::SyntaxSet;

/// Languages that are held ready, so that an answer in two of them compiles each once.
const HELD: usize = 2;
/// How often in a row another language may be made ready, and when one more may. To compile one takes some 30 ms of a core.
const IN_A_ROW: u32 = 3;
const AGAIN: Duration = Duration::from_secs(1);

/// All languages, once for each that is ready: what was compiled of a set goes only with all of it.
#[derive(Default)]
pub(super) struct Grammars {
    /// The one used last is first. One without a name has nothing compiled yet.
    sets: VecDeque<(Option<String>, SyntaxSet)>,
}

impl Grammars {
    /// Whether something would become free by [`Self::forget`].
    pub fn are_held(&self) -> bool {
        !self.sets.is_empty()
    }

    pub fn forget(&mut self) {
        *self = Self::default();
    }

    /// What the language of this name, alias or file ending is called; `None` where there is no such.
    pub fn name(&mut self, language: &str) -> Option<String> {
        if self.sets.is_empty() {
            self.sets.push_front((None, two_face::syntax::extra_newlines()));
        }
        let (_, set) = self.sets.front()?;
        set.find_syntax_by_token(language).map(|syntax| syntax.name.clone())
    }

    pub fn is_ready(&self, name: &str) -> bool {
        self.place(name).is_some()
    }

    fn place(&self, name: &str) -> Option<usize> {
        self.sets.iter().position(|(ready, _)| ready.as_deref() == Some(name))
    }

    /// The grammars, in which no other language than this one has anything compiled.
    pub fn make_ready(&mut self, name: &str) -> &SyntaxSet {
        let unused = || self.sets.iter().position(|(ready, _)| ready.is_none());
        let held = self.place(name).or_else(unused).and_then(|at| self.sets.remove(at));
        // What was compiled goes before something else is.
        self.sets.truncate(HELD - 1);
        let set = held.map_or_else(two_face::syntax::extra_newlines, |(_, set)| set);
        self.sets.push_front((Some(name.to_owned()), set));
        &self.sets[0].1
    }
}

/// Keeps a screen with many languages, or one that flies by, from compiling all the time.
pub(super) struct CompileQuota {
    left: u32,
    /// Since when the next one is earned.
    since: Option<Instant>,
}

impl CompileQuota {
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
