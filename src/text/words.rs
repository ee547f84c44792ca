//! Splits plain command lines into words.

/// Splits a plain command line into words as a shell would. Returns `None` if a quote is not closed.
pub(crate) fn split_words(line: &str) -> Option<Vec<String>> {
    let mut words = Vec::new();
    let mut word: Option<String> = None;
    let mut quote = None;
    let mut letters = line.chars();
    while let Some(letter) = letters.next() {
        match (quote, letter) {
            (Some(end), _) if letter == end => quote = None,
            (Some('"') | None, '\\') => word.get_or_insert_default().push(letters.next()?),
            (Some(_), _) => word.get_or_insert_default().push(letter),
            (None, '"' | '\'') => {
                quote = Some(letter);
                word.get_or_insert_default();
            }
            (None, _) if letter.is_whitespace() => words.extend(word.take()),
            (None, _) => word.get_or_insert_default().push(letter),
        }
    }
    words.extend(word);
    quote.is_none().then_some(words)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_split_like_in_a_shell() {
        for (line, expected) in [
            ("/bin/a  b", Some("/bin/a|b")),
            ("a  'b c' \"d \\\"e\" f\\ g ''", Some("a|b c|d \"e|f g|")),
            ("  ", Some("")),
            ("a 'b", None),
            ("a \"b", None),
            ("a \\", None),
        ] {
            assert_eq!(split_words(line).map(|words| words.join("|")).as_deref(), expected, "{line}");
        }
        assert_eq!(split_words("  "), Some(Vec::new()));
    }
}
