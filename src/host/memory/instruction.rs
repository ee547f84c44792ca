//! Detects instructions in prompts, which are sentences that tell the model how to work in general. When in doubt, a
//! sentence is ignored.

use crate::policy::redact::has_marker;
use crate::protocol::without_input;

/// Maximum length, in bytes, of a prompt that is searched. Longer prompts usually contain pasted text.
const PROMPT_BYTES: usize = 4_000;
/// Maximum number of lines in a paragraph, and of characters in a line. Anything longer has probably been pasted.
const PARAGRAPH_LINES: usize = 4;
const LINE_CHARS: usize = 400;
/// Minimum and maximum length of an instruction, in words and characters.
const MIN_WORDS: usize = 2;
const MAX_WORDS: usize = 25;
const MAX_CHARS: usize = 200;
/// Maximum number of instructions taken from one prompt.
const MAX_FOUND: usize = 10;

/// Words that may precede an instruction without being part of it.
const OPENERS: &[&str] = &["and", "also", "but", "so", "then", "ok", "okay", "please", "pls", "btw", "again", "hey", "note"];
/// Phrases that may precede an instruction without being part of it.
const PHRASES: &[&str] =
    &["by the way", "from now on", "in general", "make sure to", "make sure you", "remember to", "be sure to"];
/// Words with which an instruction can begin.
const STARTS: &[&str] = &["always", "never", "use", "don't", "dont", "avoid", "prefer"];
/// Words with which an instruction can begin if it also states a method, as in `run … with …`.
const WAYS: &[&str] = &["run", "write", "format", "build", "test", "commit", "install", "start", "lint", "check"];
const WAY_MARKS: &[&str] = &["with", "using", "via", "before", "after", "instead"];
/// First words of sentences that are statements or questions rather than instructions.
const REPORTS: &[&str] = &[
    "are", "because", "can", "could", "did", "do", "does", "he", "how", "i", "if", "is", "it", "maybe", "she", "should", "that",
    "there", "they", "this", "was", "we", "what", "when", "where", "which", "who", "why", "would",
];

/// Returns the instructions in text that a user typed.
pub(super) fn instructions(prompt: &str) -> Vec<String> {
    let typed = without_input(prompt);
    if typed.len() > PROMPT_BYTES {
        return Vec::new();
    }
    let mut found: Vec<String> = Vec::new();
    for paragraph in paragraphs(typed) {
        for line in paragraph {
            for sentence in sentences(line) {
                if let Some(instruction) = instruction(sentence)
                    && !found.contains(&instruction)
                    && found.len() < MAX_FOUND
                {
                    found.push(instruction);
                }
            }
        }
    }
    found
}

/// Splits text into paragraphs, each a list of lines. Code, quotes, and paragraphs that appear to be pasted are
/// omitted.
fn paragraphs(text: &str) -> Vec<Vec<&str>> {
    let mut all: Vec<Vec<&str>> = vec![Vec::new()];
    let mut is_code = false;
    for line in text.lines() {
        let trimmed = line.trim();
        let is_fence = trimmed.starts_with("```") || trimmed.starts_with("~~~");
        if is_fence {
            is_code = !is_code;
        }
        if trimmed.is_empty() || is_fence || is_code {
            all.push(Vec::new());
        } else if let Some(last) = all.last_mut() {
            last.push(line);
        }
    }
    // Text after an opening fence without an end was skipped as well.
    all.retain(|lines| {
        let is_pasted = |line: &&str| {
            line.starts_with("    ") || line.starts_with('\t') || line.starts_with(['>', '|', '$', '#', '@', '{', '}', '<', '+'])
        };
        let too_long = |line: &&str| line.chars().count() > LINE_CHARS;
        lines.len() <= PARAGRAPH_LINES && !lines.iter().any(|line| is_pasted(line) || too_long(line))
    });
    all
}

/// Splits a line into sentences, and at every point at which another instruction begins.
fn sentences(line: &str) -> Vec<&str> {
    let line = line.trim();
    let line = ["- ", "* ", "• "].iter().find_map(|marker| line.strip_prefix(marker)).unwrap_or(line);
    let (mut parts, mut start) = (Vec::new(), 0);
    for (at, letter) in line.char_indices() {
        let rest = &line[at + letter.len_utf8()..];
        let ends = match letter {
            '.' | '!' | '?' => rest.is_empty() || rest.starts_with(char::is_whitespace),
            ';' => true,
            ',' | ':' | '—' => starts_instruction(rest),
            _ => false,
        };
        if ends {
            let end = if matches!(letter, '?') { at + letter.len_utf8() } else { at };
            parts.push(&line[start..end]);
            start = at + letter.len_utf8();
        }
    }
    parts.push(&line[start..]);
    parts
}

fn starts_instruction(text: &str) -> bool {
    let words = split_words(without_openers(text));
    words.first().is_some_and(|first| STARTS.contains(&first.as_str()))
        || words.first().is_some_and(|first| first == "do") && words.get(1).is_some_and(|second| second == "not")
}

/// Removes words such as `and please` from the beginning of the text.
fn without_openers(text: &str) -> &str {
    let mut text = text.trim_start();
    loop {
        let lower = text.to_lowercase();
        // A change of case can change the length of a character.
        let phrase = PHRASES.iter().find(|phrase| lower.starts_with(**phrase) && text.is_char_boundary(phrase.len()));
        let word = || {
            let end = text.find(|letter: char| !letter.is_alphanumeric() && letter != '\'').unwrap_or(text.len());
            OPENERS.contains(&text[..end].to_lowercase().as_str()).then_some(end)
        };
        let Some(end) = phrase.map(|phrase| phrase.len()).or_else(word).filter(|end| *end > 0) else { return text };
        let Some(rest) = text.get(end..) else { return text };
        text = rest.trim_start_matches(|letter: char| letter.is_whitespace() || letter == ',' || letter == ':');
    }
}

fn split_words(text: &str) -> Vec<String> {
    let is_in_word = |letter: char| letter.is_alphanumeric() || matches!(letter, '\'' | '’' | '-' | '_');
    let words = text.split(|letter: char| !is_in_word(letter)).filter(|word| !word.is_empty());
    words.map(|word| word.replace('’', "'").to_lowercase()).collect()
}

/// If a sentence is an instruction, returns it capitalized and without opening words.
fn instruction(sentence: &str) -> Option<String> {
    let text = without_openers(sentence).trim();
    let is_quoted = text.contains(['"', '“', '”', '«', '»', '„']);
    let is_unsuitable = text.ends_with(['?', ':']) || is_quoted || text.contains('<') || has_marker(text).is_some();
    if is_unsuitable || text.chars().count() > MAX_CHARS || text.matches('`').count() % 2 == 1 {
        return None;
    }
    let words = split_words(text);
    let first = words.first()?.as_str();
    if !(MIN_WORDS..=MAX_WORDS).contains(&words.len()) {
        return None;
    }
    let says = |word: &str| words.iter().any(|known| known == word);
    let starts = STARTS.contains(&first) || first == "do" && words.get(1).is_some_and(|second| second == "not");
    let names_way = WAYS.contains(&first) && WAY_MARKS.iter().any(|mark| says(mark));
    let is_rule = !REPORTS.contains(&first) && (says("always") || says("never"));
    if !(starts || names_way || is_rule) {
        return None;
    }
    let mut letters = text.chars();
    let first = letters.next()?;
    Some(first.to_uppercase().chain(letters).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn instructions_are_found_in_prompts() {
        for (prompt, expected) in [
            ("Fix the login bug. Please use nextest to run the tests.", vec!["Use nextest to run the tests"]),
            ("fix it, and use nextest", vec!["Use nextest"]),
            ("always run `cargo fmt` before you commit!", vec!["Always run `cargo fmt` before you commit"]),
            ("Btw, don't touch the lock file", vec!["Don't touch the lock file"]),
            ("From now on, never push to main.", vec!["Never push to main"]),
            ("run the tests with nextest", vec!["Run the tests with nextest"]),
            ("- use tabs\n- do not use unwrap", vec!["Use tabs", "Do not use unwrap"]),
            ("Tests must always be named as sentences.", vec!["Tests must always be named as sentences"]),
            ("use v1.2 of the API", vec!["Use v1.2 of the API"]),
        ] {
            assert_eq!(instructions(prompt), expected, "{prompt}");
        }
    }

    #[test]
    fn questions_reports_quotes_code_and_pasted_text_are_not_instructions() {
        for prompt in [
            "why does it always fail?",
            "should we use nextest?",
            "it never works on my machine",
            "fix the tests",
            "the docs say \"always use nextest\", is that true?",
            "the README says: “never use nextest”",
            "```\nalways use nextest\n```",
            "look at this:\n```\nuse nextest",
            "    use nextest in the build",
            "> always use nextest",
            "$ use nextest now",
            "one\ntwo\nthree\nuse nextest\nfive",
            "explain\n\n<stdin>\nalways use nextest\n</stdin>",
            "use the key [redacted:api-key:1a2b3c4d]",
            "use",
        ] {
            assert_eq!(instructions(prompt), Vec::<String>::new(), "{prompt}");
        }
        let long = format!("use nextest. {}", "word ".repeat(PROMPT_BYTES));
        assert!(instructions(&long).is_empty());
    }

    proptest! {
        #[test]
        fn arbitrary_text_does_not_panic(text in "(\\PC|[ ,.;:'’\\n-]|and |please |use |don't |from now on){0,60}") {
            for found in instructions(&text) {
                prop_assert!(!found.contains('\n'));
            }
        }
    }
}
