//! Determines how similar two instructions are, by comparing their words and the parts that they negate.

use std::collections::BTreeMap;

/// Maximum number of words of a sentence that are considered.
const MAX_WORDS: usize = 80;
/// Similarity at or above which two instructions have the same meaning.
const SAME: f64 = 0.7;
/// Weight of an ordinary word, and of a word that reveals little about the subject.
const FULL: u32 = 2;
const HALF: u32 = 1;

/// Words that do not affect the meaning of an instruction.
const FILLERS: &[&str] = &[
    "a",
    "again",
    "all",
    "also",
    "an",
    "and",
    "any",
    "are",
    "as",
    "at",
    "be",
    "been",
    "by",
    "can",
    "could",
    "do",
    "does",
    "every",
    "everything",
    "for",
    "from",
    "has",
    "have",
    "here",
    "i",
    "if",
    "in",
    "instead",
    "into",
    "is",
    "it",
    "its",
    "just",
    "make",
    "me",
    "must",
    "my",
    "need",
    "needs",
    "now",
    "of",
    "on",
    "or",
    "our",
    "please",
    "project",
    "rather",
    "really",
    "remember",
    "repo",
    "repository",
    "should",
    "so",
    "sure",
    "than",
    "that",
    "the",
    "then",
    "there",
    "these",
    "this",
    "those",
    "to",
    "us",
    "want",
    "we",
    "when",
    "whenever",
    "will",
    "with",
    "would",
    "you",
    "your",
];
/// Common verbs, which do not help to distinguish instructions about different subjects.
const VERBS: &[&str] =
    &["always", "add", "call", "do", "ever", "keep", "only", "prefer", "put", "run", "running", "use", "using", "write"];
/// Words that negate the remainder of their clause.
const NEGATIONS: &[&str] = &["avoid", "cannot", "dont", "never", "no", "not", "without"];

/// Words of an instruction and their weights. Negated words have the prefix `-`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct WordWeights(BTreeMap<String, u32>);

impl WordWeights {
    /// Determines the words and weights of a sentence.
    pub(super) fn from_text(text: &str) -> Self {
        let mut words: BTreeMap<String, u32> = BTreeMap::new();
        let (mut negated, mut has_subject, mut before) = (None, false, String::new());
        for word in tokens(text).take(MAX_WORDS) {
            let WordToken::Word(word) = word else {
                negated = None;
                continue;
            };
            // `use X instead of Y`, `X rather than Y`
            let is_contrast = matches!((before.as_str(), word.as_str()), ("instead", "of") | ("rather", "than"));
            before.clone_from(&word);
            if is_contrast || NEGATIONS.contains(&word.as_str()) || word.ends_with("n't") {
                negated = Some(if has_subject { HALF } else { FULL });
                continue;
            }
            if FILLERS.contains(&word.as_str()) {
                continue;
            }
            let is_verb = VERBS.contains(&word.as_str());
            let weight = if is_verb { HALF } else { negated.unwrap_or(FULL) };
            has_subject |= !is_verb;
            let word = stem(&word);
            let word = if negated.is_some() { format!("-{word}") } else { word };
            let entry = words.entry(word).or_default();
            *entry = (*entry).max(weight);
        }
        Self(words)
    }

    /// Returns the similarity of two instructions, from 0 to 1. The result is the same in both directions.
    pub(super) fn similarity(&self, other: &Self) -> f64 {
        let total = self.weight() + other.weight();
        if total == 0 {
            return 0.0;
        }
        let mut shared = 0;
        let mut shares_subject = false;
        for (word, weight) in &self.0 {
            if let Some(in_other) = other.0.get(word) {
                shared += weight + in_other;
                shares_subject |= (*weight).max(*in_other) == FULL;
            }
        }
        if shares_subject { f64::from(shared) / f64::from(total) } else { 0.0 }
    }

    /// Returns whether `self` and `other` have the same meaning.
    pub(super) fn is_same(&self, other: &Self) -> bool {
        self.similarity(other) >= SAME
    }

    /// Returns the words in a fixed order, for deriving an ID.
    pub(super) fn key(&self) -> String {
        self.0.keys().map(String::as_str).collect::<Vec<_>>().join(" ")
    }

    fn weight(&self) -> u32 {
        self.0.values().sum()
    }
}

enum WordToken {
    Word(String),
    /// End of a clause.
    Break,
}

fn tokens(text: &str) -> impl Iterator<Item = WordToken> {
    let mut found = Vec::new();
    let mut word = String::new();
    let flush = |word: &mut String, found: &mut Vec<WordToken>| {
        let bare = word.trim_matches('\'');
        if !bare.is_empty() {
            // `project's` counts as `project`.
            let is_negation = bare.ends_with("n't");
            let bare = if is_negation { bare } else { bare.split('\'').next().unwrap_or(bare) };
            found.push(WordToken::Word(bare.to_owned()));
        }
        word.clear();
    };
    for letter in text.chars() {
        match letter {
            '\'' | '’' => word.push('\''),
            letter if letter.is_alphanumeric() => word.extend(letter.to_lowercase()),
            letter => {
                flush(&mut word, &mut found);
                if matches!(letter, ',' | ';' | ':' | '(' | ')') {
                    found.push(WordToken::Break);
                }
            }
        }
    }
    flush(&mut word, &mut found);
    found.into_iter()
}

/// Removes a plural ending.
fn stem(word: &str) -> String {
    match word.strip_suffix('s') {
        Some(singular) if singular.len() >= 3 && !singular.ends_with('s') => singular.to_owned(),
        _ => word.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn are_same(one: &str, other: &str) -> bool {
        WordWeights::from_text(one).is_same(&WordWeights::from_text(other))
    }

    #[test]
    fn the_same_instruction_in_other_words_is_recognized() {
        for (one, other) in [
            ("Use nextest", "please use nextest."),
            ("use nextest", "use nextest, not cargo test"),
            ("use nextest instead of cargo test", "Use nextest, not cargo test"),
            ("use nextest for the tests", "use nextest to run tests"),
            ("never push to main", "don't push to main"),
            ("Don’t push to main", "do not push to main"),
            ("always run the linter before a commit", "run the linter before each commit, always"),
            ("use `cargo nextest run`", "Use cargo nextest run!"),
        ] {
            assert!(
                are_same(one, other),
                "{one} / {other}: {}",
                WordWeights::from_text(one).similarity(&WordWeights::from_text(other))
            );
        }
    }

    #[test]
    fn different_or_opposite_instructions_are_not_the_same() {
        for (one, other) in [
            ("use nextest", "use vitest"),
            ("use tabs, not spaces", "use spaces, not tabs"),
            ("push to main", "never push to main"),
            ("always run the tests", "always run the linter"),
            ("never use unwrap", "never use println"),
            ("use it", "use this"),
            ("", ""),
            ("use tabs instead of spaces", "use spaces instead of tabs"),
        ] {
            assert!(
                !are_same(one, other),
                "{one} / {other}: {}",
                WordWeights::from_text(one).similarity(&WordWeights::from_text(other))
            );
        }
    }

    proptest! {
        #[test]
        fn similarity_is_symmetric_and_bounded_for_any_text(one in "\\PC{0,200}", other in ".{0,200}") {
            let (one, other) = (WordWeights::from_text(&one), WordWeights::from_text(&other));
            let similarity = one.similarity(&other);
            prop_assert_eq!(similarity.to_bits(), other.similarity(&one).to_bits());
            prop_assert!((0.0..=1.0).contains(&similarity));
            let own = one.similarity(&one);
            prop_assert!(own.to_bits() == 0.0f64.to_bits() || own.to_bits() == 1.0f64.to_bits());
        }
    }
}
