//! Fuzzy name matching.

use nucleo_matcher::pattern::{AtomKind, CaseMatching, Normalization, Pattern};
use nucleo_matcher::{Config, Matcher, Utf32Str};

/// Fuzzy matcher that finds characters in order and can be reused for many names. Words separated by spaces match
/// independently. Capital letters make a match case-sensitive.
pub(crate) struct Fuzzy {
    pattern: Pattern,
    matcher: Matcher,
    letters: Vec<char>,
}

impl Fuzzy {
    /// Creates a matcher for names and sentences.
    pub(crate) fn for_words(words: &str) -> Self {
        Self::new(words, Config::DEFAULT)
    }

    /// Creates a matcher for paths, in which matches after a `/` score higher.
    pub(crate) fn paths(words: &str) -> Self {
        Self::new(words, Config::DEFAULT.match_paths())
    }

    fn new(words: &str, config: Config) -> Self {
        let pattern = Pattern::new(words, CaseMatching::Smart, Normalization::Smart, AtomKind::Fuzzy);
        Self { pattern, matcher: Matcher::new(config), letters: Vec::new() }
    }

    /// Returns the score of a name, or `None` if it does not match. Better matches have higher scores.
    pub(crate) fn score(&mut self, name: &str) -> Option<u32> {
        let name = Utf32Str::new(name, &mut self.letters);
        self.pattern.score(name, &mut self.matcher)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn best<'a>(words: &str, names: &[&'a str]) -> Vec<&'a str> {
        let mut fuzzy = Fuzzy::paths(words);
        let mut found: Vec<(u32, &str)> = names.iter().filter_map(|name| Some((fuzzy.score(name)?, *name))).collect();
        found.sort_by_key(|(score, name)| (std::cmp::Reverse(*score), name.len()));
        found.into_iter().map(|(_, name)| name).collect()
    }

    #[test]
    fn letters_in_order_match_a_path_and_the_best_match_is_first() {
        let names = ["src/tui/model.rs", "src/tui/models.rs", "docs/MODELS.md", "src/main.rs"];
        assert_eq!(best("tuimod", &names)[0], "src/tui/model.rs");
        assert_eq!(best("main", &names), ["src/main.rs"]);
        assert_eq!(best("MOD", &names), ["docs/MODELS.md"]);
        assert_eq!(best("xyz", &names), Vec::<&str>::new());
        assert_eq!(best("", &names).len(), 4);
    }

    #[test]
    fn accented_and_non_latin_letters_match_in_the_same_way_as_other_letters() {
        let names = ["docs/größe.md", "docs/日本語.md"];
        assert_eq!(best("größ", &names), ["docs/größe.md"]);
        assert_eq!(best("grosse", &names), Vec::<&str>::new());
        assert_eq!(best("日語", &names), ["docs/日本語.md"]);
    }
}
