//! Shell quoting that passes words to a program exactly as given.

/// Words that have a special meaning at the start of a command.
const RESERVED: &[&str] = &[
    "!", "[[", "case", "coproc", "do", "done", "elif", "else", "esac", "fi", "for", "function", "if", "in", "select", "then",
    "until", "while",
];

/// Returns a shell command line. A single word is taken to be a complete command line already; several words are
/// quoted as needed.
pub(crate) fn quoted_line(words: &[String]) -> String {
    match words {
        [line] => line.clone(),
        words => words.iter().enumerate().map(|(at, word)| quoted(word, at == 0)).collect::<Vec<_>>().join(" "),
    }
}

fn quoted(word: &str, first: bool) -> String {
    let plain = |letter: char| letter.is_alphanumeric() || "%+,-./:@_".contains(letter) || (!first && letter == '=');
    let reserved = first && RESERVED.contains(&word);
    if !word.is_empty() && !reserved && word.chars().all(plain) {
        word.to_owned()
    } else {
        format!("'{}'", word.replace('\'', r"'\''"))
    }
}
