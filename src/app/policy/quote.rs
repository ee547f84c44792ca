//! Words as a shell has to be given them, so that a program gets these very words.

/// What a shell takes for its own where a command begins.
const RESERVED: &[&str] = &[
    "!", "[[", "case", "coproc", "do", "done", "elif", "else", "esac", "fi", "for", "function", "if", "in", "select", "then",
    "until", "while",
];

/// One word is a line as it is; of several each one is quoted as far as it needs it.
pub fn line(words: &[String]) -> String {
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
