//! Wording of strings and comments: phrases that the style guide replaces with terms.

use crate::exceptions::{Exception, check};
use crate::names::module;
use crate::source::{Kind, Source, pieces, products};

/// Phrases that are forbidden in strings and comments, in lower case. Only whole words match.
const BANNED: &[&str] = &[
    "what was said",
    "what is said",
    "what were said",
    "in the place of",
    "put away",
    "a yes",
    "says yes to",
    "said yes",
    "say yes to",
    "whoever",
    "anew",
    "meanwhile",
    "stands there",
    "stand there",
    "stood there",
    "stands in",
    "stood in",
    "wants to know",
    "came to nothing",
    "comes to nothing",
    "kept from it",
    "has a say",
    "have a say",
    "goes on with",
    "gone back from",
    "forth again",
    "mend that",
    "read along",
    "is none of",
    "are none of",
    "the person",
];

/// Words with which a doc comment must not begin.
const BANNED_STARTS: &[&str] = &["What", "Whoever", "Those", "That", "It", "Its", "Nobody"];

/// Phrases of earlier versions that are still recognized in stored sessions.
const PHRASES: &[Exception] = &[Exception { modules: &["agent"], count: 1 }, Exception { modules: &["protocol"], count: 1 }];
const STARTS: &[Exception] = &[];

/// Returns the strings and comments of a file outside unit tests, each with its first line.
fn texts(source: &Source) -> Vec<(usize, Kind, String)> {
    let end = source.text.find("#[cfg(test)]\nmod tests {").unwrap_or(source.text.len());
    let mut line = 1;
    let mut found = Vec::new();
    for (kind, piece) in pieces(&source.text[..end]) {
        if kind != Kind::Code {
            found.push((line, kind, piece.to_owned()));
        }
        line += piece.matches('\n').count();
    }
    found
}

/// Returns the first banned phrase in `text`.
fn banned(text: &str) -> Option<&'static str> {
    let lower = text.to_lowercase();
    let text = lower.split_whitespace().filter(|word| *word != "\\").collect::<Vec<_>>().join(" ");
    BANNED.iter().copied().find(|phrase| {
        text.match_indices(phrase).any(|(at, found)| {
            let is_edge = |one: Option<char>| one.is_none_or(|one| !(one.is_alphanumeric() || one == '_' || one == '-'));
            is_edge(text[..at].chars().next_back()) && is_edge(text[at + found.len()..].chars().next())
        })
    })
}

#[test]
fn strings_and_comments_contain_no_banned_phrases() {
    let mut found = Vec::new();
    for source in products() {
        for (line, _, text) in texts(&source) {
            if let Some(phrase) = banned(&text) {
                found.push((module(&source), format!("{}:{line}: `{phrase}`: {}", source.path, text.trim())));
            }
        }
    }
    check("words that the writing style replaces", PHRASES, &found);
}

#[test]
fn doc_comments_begin_with_allowed_words() {
    let mut found = Vec::new();
    for source in products() {
        let mut last = 0;
        for (line, kind, text) in texts(&source) {
            let Some(comment) = text.strip_prefix("///").filter(|_| kind == Kind::Comment) else { continue };
            let is_first = last + 1 != line;
            last = line;
            let start = comment.split_whitespace().next().unwrap_or_default();
            if is_first && BANNED_STARTS.contains(&start) {
                found.push((module(&source), format!("{}:{line}: begins with `{start}`: {}", source.path, comment.trim())));
            }
        }
    }
    check("first words of doc comments", STARTS, &found);
}

#[test]
fn phrases_are_found_across_line_breaks_and_not_inside_words() {
    assert_eq!(banned("\"it is put \\\n    away\""), Some("put away"));
    assert_eq!(banned("// The person decides."), Some("the person"));
    assert_eq!(banned("// the personal settings"), None);
    assert_eq!(banned("\"input away\""), None);
}
