//! Words of scripts and command lines that may be paths.

/// Returns the words of a script that may be paths, without `./` and a final `/`. A leading variable or substitution is
/// removed, as in `$(dirname "$0")/helper.sh`, because it usually stands for a directory of the workspace.
pub fn path_words(text: &str) -> impl Iterator<Item = &str> {
    let is_end = |letter: char| letter.is_whitespace() || "\"'`;|&()=<>,:[]{}".contains(letter);
    let plain = |word| {
        let word: &str = word;
        let word = if word.starts_with('$') { word.split_once('/').map_or("", |(_, rest)| rest) } else { word };
        word.trim_start_matches("./").trim_start_matches('/').trim_end_matches('/')
    };
    text.split(is_end).map(plain).filter(|word| !word.is_empty())
}

#[cfg(test)]
mod tests {
    use super::path_words;

    #[test]
    fn paths_are_found_in_commands_and_scripts() {
        let script = "#!/bin/sh\n. \"$(dirname \"$0\")/helper.sh\"\ngrep -f ./verify/rules.txt \"$ROOT/src/lib.rs\" out/\n";
        let words: Vec<&str> = path_words(script).collect();
        for path in ["helper.sh", "verify/rules.txt", "src/lib.rs", "out"] {
            assert!(words.contains(&path), "{path}: {words:?}");
        }
    }
}
