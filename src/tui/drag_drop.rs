//! Files dropped onto the terminal, which inserts their paths as pasted text, each terminal with its own way of
//! quoting.

/// Maximum size, in bytes, of pasted text that is searched for paths.
const MAX_BYTES: usize = 16 << 10;
/// Maximum number of files per drop, which equals the maximum for a prompt.
const MAX_FILES: usize = 20;

/// Returns the possible interpretations of pasted text as a list of paths, most likely first. The result is empty if
/// the text can only be prose. The caller must check whether the files exist.
pub(crate) fn interpretations(pasted: &str) -> Vec<Vec<String>> {
    let text = pasted.trim();
    if text.is_empty() || text.len() > MAX_BYTES || text.contains(|one: char| one.is_control() && one != '\n' && one != '\r') {
        return Vec::new();
    }
    // Some terminals paste paths with spaces unquoted.
    let lines: Option<Vec<String>> =
        text.lines().map(str::trim).filter(|line| !line.is_empty()).map(|line| path(strip_quotes(line))).collect();
    let words: Option<Vec<String>> = split_words(text).and_then(|words| words.iter().map(|word| path(word)).collect());
    let mut readings: Vec<Vec<String>> = [words, lines].into_iter().flatten().filter(|paths| paths.len() <= MAX_FILES).collect();
    readings.dedup();
    readings
}

/// Removes quotes that enclose the whole line.
fn strip_quotes(line: &str) -> &str {
    let within = |quote: char| line.strip_prefix(quote).and_then(|rest| rest.strip_suffix(quote));
    within('\'').or_else(|| within('"')).unwrap_or(line)
}

/// Splits text into words as a shell would. Returns `None` if a quote is not closed.
fn split_words(text: &str) -> Option<Vec<String>> {
    let (mut words, mut word) = (Vec::new(), None::<String>);
    let mut letters = text.chars();
    while let Some(letter) = letters.next() {
        match letter {
            letter if letter.is_whitespace() => words.extend(word.take()),
            '\'' => {
                let word = word.get_or_insert_default();
                loop {
                    match letters.next()? {
                        '\'' => break,
                        letter => word.push(letter),
                    }
                }
            }
            '"' => {
                let word = word.get_or_insert_default();
                loop {
                    match letters.next()? {
                        '"' => break,
                        '\\' => {
                            let next = letters.next()?;
                            if !"\"\\$`".contains(next) {
                                word.push('\\');
                            }
                            word.push(next);
                        }
                        letter => word.push(letter),
                    }
                }
            }
            '\\' => word.get_or_insert_default().push(letters.next()?),
            letter => word.get_or_insert_default().push(letter),
        }
    }
    words.extend(word);
    Some(words)
}

/// Parses a word as an absolute path, a path relative to the home directory, or a `file:` URL. Returns `None` for any
/// other word.
fn path(word: &str) -> Option<String> {
    let path = match word.strip_prefix("file:") {
        Some(address) => decode_file_url(address)?,
        None => word.to_owned(),
    };
    let rest =
        path.strip_prefix("~/").or_else(|| path.strip_prefix('/')).map(str::to_owned).or_else(|| convert_windows_path(&path))?;
    let is_path = !rest.trim_matches('/').is_empty() && !path.contains(|one: char| one.is_control());
    is_path.then(|| convert_windows_path(&path).unwrap_or(path))
}

/// Decodes the part of a `file:` URL that follows `file:`, such as `///home/me/a%20b`, `//host/home` or `/home`.
fn decode_file_url(address: &str) -> Option<String> {
    let path = match address.strip_prefix("//") {
        Some(rest) => &rest[rest.find('/')?..],
        None => address,
    };
    let mut bytes = Vec::with_capacity(path.len());
    let mut rest = path.as_bytes();
    while let [byte, after @ ..] = rest {
        rest = after;
        match (byte, after) {
            (b'%', [high, low, after @ ..]) => {
                let digit = |byte: &u8| char::from(*byte).to_digit(16);
                bytes.push(u8::try_from(digit(high)? * 16 + digit(low)?).ok()?);
                rest = after;
            }
            (b'%', _) => return None,
            (byte, _) => bytes.push(*byte),
        }
    }
    String::from_utf8(bytes).ok()
}

/// Converts a Windows path, such as `C:\Users\me`, to the corresponding path inside WSL.
fn convert_windows_path(path: &str) -> Option<String> {
    let mut letters = path.chars();
    let drive = letters.next().filter(char::is_ascii_alphabetic)?;
    (letters.next() == Some(':') && letters.next() == Some('\\'))
        .then(|| format!("/mnt/{}/{}", drive.to_ascii_lowercase(), letters.as_str().replace('\\', "/")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dropped_paths_are_parsed_in_the_formats_of_all_terminals() {
        let plain = "/home/me/my notes.md";
        for pasted in [
            "'/home/me/my notes.md'",
            "'/home/me/my notes.md' ",
            "\"/home/me/my notes.md\"",
            "/home/me/my\\ notes.md",
            "/home/me/my notes.md",
            "file:///home/me/my%20notes.md",
            "file://host/home/me/my%20notes.md\r\n",
            "file:/home/me/my%20notes.md\n",
            "/home/me/'my notes'.md",
        ] {
            assert!(interpretations(pasted).contains(&vec![plain.to_owned()]), "{pasted}: {:?}", interpretations(pasted));
        }
        for (pasted, expected) in [
            ("'/a b' '/c'", vec!["/a b", "/c"]),
            ("/a\\ b /c\\'d", vec!["/a b", "/c'd"]),
            ("file:///a%20b\nfile:///gr%C3%B6%C3%9Fe\n", vec!["/a b", "/größe"]),
            ("/a b\n/c d", vec!["/a b", "/c d"]),
            ("'/it'\\''s'", vec!["/it's"]),
            ("\"C:\\Users\\me\\a b.png\"", vec!["/mnt/c/Users/me/a b.png"]),
            ("~/a", vec!["~/a"]),
        ] {
            let expected: Vec<String> = expected.into_iter().map(str::to_owned).collect();
            assert!(interpretations(pasted).contains(&expected), "{pasted}: {:?}", interpretations(pasted));
        }
    }

    #[test]
    fn ordinary_text_is_not_a_path() {
        for pasted in [
            "",
            " \n",
            "hello",
            "src/main.rs",
            "look at /etc/hosts",
            "/",
            "//",
            "'/a",
            "file:",
            "file://host",
            "a:\n/b",
            "~",
            "\u{1b}/a",
        ] {
            assert_eq!(interpretations(pasted), Vec::<Vec<String>>::new(), "{pasted:?}");
        }
        assert_eq!(interpretations(&"/a ".repeat(21)).len(), 1, "as one path with blanks, and never as many files");
        assert!(interpretations(&format!("/{}", "x".repeat(20_000))).is_empty());
    }

    proptest::proptest! {
        #[test]
        fn paths_parsed_from_any_pasted_text_are_absolute(text in "[/a 'b\"\\\\%0é\nfile:~C]{0,60}") {
            for paths in interpretations(&text) {
                proptest::prop_assert!(!paths.is_empty() && paths.iter().all(|path| path.starts_with(['/', '~'])));
            }
        }
    }
}
