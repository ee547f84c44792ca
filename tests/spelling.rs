//! Spell check of the program, its assets and its documents against a list of common misspellings.
#![expect(clippy::panic, reason = "a test that cannot go on fails")]

#[expect(dead_code, reason = "shared with the rules of the source tree")]
#[path = "tidy/source.rs"]
mod source;

use std::collections::BTreeSet;
use std::path::Path;

use unicase::UniCase;

/// Words that look misspelled but are correct here: names, abbreviations, and examples of misspellings.
const PROJECT_WORDS: &str = include_str!("spelling/words.txt");
/// Directories with documents and other text files outside `src`.
const DIRECTORIES: &[&str] = &["docs", "assets", ".github"];
const ROOT_FILES: &[&str] = &["README.md", "CHANGELOG.md", "CONTRIBUTING.md", "SECURITY.md", "Cargo.toml"];
const TEXT_EXTENSIONS: &[&str] = &["md", "toml", "txt", "yml", "yaml"];

/// Splits text at all characters except letters, and between a lower-case and an upper-case letter, so that the parts
/// of names in code are checked too. Omits words with letters outside ASCII. Returns each word with its byte offset.
fn words(text: &str) -> Vec<(usize, &str)> {
    let mut found = Vec::new();
    let (mut start, mut last, mut foreign) = (0, ' ', false);
    for (at, letter) in text.char_indices().chain([(text.len(), ' ')]) {
        let is_escape = last == '\\' && matches!(letter, 'n' | 'r' | 't' | 'x' | 'u');
        let begins = !letter.is_alphabetic() || is_escape || last.is_lowercase() && letter.is_uppercase();
        if begins {
            if !foreign && start < at && text[start..at].starts_with(|first: char| first.is_ascii_alphabetic()) {
                found.push((start, &text[start..at]));
            }
            start = if letter.is_alphabetic() && !is_escape { at } else { at + letter.len_utf8() };
            foreign = false;
        }
        foreign |= letter.is_alphabetic() && !letter.is_ascii();
        last = letter;
    }
    found
}

/// Returns the misspelled words in `text` as `line: word (suggestions)`.
fn misspellings(text: &str, allowed: &BTreeSet<String>) -> Vec<String> {
    let misspelled = words(text).into_iter().filter(|(_, word)| word.len() > 2).filter_map(|(at, word)| {
        let corrections = typos_dict::WORD.find(&UniCase::new(word))?;
        let line = text[..at].matches('\n').count() + 1;
        (!allowed.contains(&word.to_lowercase())).then(|| format!("{line}: `{word}` ({})", corrections.join(", ")))
    });
    misspelled.collect()
}

fn allowed() -> BTreeSet<String> {
    PROJECT_WORDS.lines().filter(|line| !line.starts_with('#')).map(|line| line.trim().to_lowercase()).collect()
}

/// Collects the paths of the text files below a directory, relative to the package.
fn collect(directory: &Path, into: &mut Vec<String>) {
    for entry in std::fs::read_dir(source::package().join(directory)).into_iter().flatten().flatten() {
        let path = directory.join(entry.file_name());
        if entry.path().is_dir() {
            collect(&path, into);
        } else if path.extension().and_then(|extension| extension.to_str()).is_some_and(|end| TEXT_EXTENSIONS.contains(&end)) {
            into.push(path.to_string_lossy().into_owned());
        }
    }
}

#[test]
fn code_and_documents_contain_no_common_misspellings() {
    let mut texts: Vec<(String, String)> = Vec::new();
    for product in source::products() {
        let end = product.text.find("#[cfg(test)]\nmod tests {").unwrap_or(product.text.len());
        texts.push((product.path, product.text[..end].to_owned()));
    }
    let mut files: Vec<String> =
        ROOT_FILES.iter().filter(|file| source::package().join(file).exists()).map(|file| (*file).into()).collect();
    for directory in DIRECTORIES {
        collect(Path::new(directory), &mut files);
    }
    assert!(texts.len() > 500 && files.len() > 20, "{} source files and {} documents", texts.len(), files.len());
    texts.extend(files.into_iter().map(|file| (source::read(&file), file)).map(|(text, file)| (file, text)));
    let allowed = allowed();
    let found: Vec<String> = texts
        .iter()
        .flat_map(|(path, text)| misspellings(text, &allowed).into_iter().map(move |found| format!("{path}:{found}")))
        .collect();
    assert!(
        found.is_empty(),
        "misspelled words; correct them, or add a word that is right to tests/spelling/words.txt:\n{}",
        found.join("\n")
    );
}

#[test]
fn every_word_in_the_project_dictionary_is_needed() {
    let needless: Vec<String> =
        allowed().into_iter().filter(|word| typos_dict::WORD.find(&UniCase::new(word)).is_none()).collect();
    assert!(needless.is_empty(), "not in the list of misspellings: {}", needless.join(", "));
}

#[test]
fn words_are_found_in_identifiers_and_sentences() {
    let found = |text| words(text).into_iter().map(|(_, word)| word).collect::<Vec<_>>();
    assert_eq!(found("let teh_name = HttpsRecieve(x1);"), ["let", "teh", "name", "Https", "Recieve", "x"]);
    assert_eq!(found("\"line\\nduring café\""), ["line", "during"]);
    let none = BTreeSet::new();
    assert_eq!(misspellings("fine\nfn recieve_all()", &none), ["2: `recieve` (receive)"]);
    assert!(misspellings("recieve", &BTreeSet::from(["recieve".to_owned()])).is_empty());
}
