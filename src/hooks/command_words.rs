//! Splits a hook's command line into words, to find the files that the hook runs.

use super::PROJECT_DIR;

/// Splits a command line into simple commands and their words, with `.` in place of the workspace. This is not a full
/// shell parser, but it finds the files that a command line usually names. A file that it misses is merely not
/// compared with its trusted version.
pub(crate) fn simple_commands(line: &str) -> Vec<Vec<String>> {
    let line = with_workspace(line);
    let (mut commands, mut words, mut word) = (Vec::new(), Vec::new(), String::new());
    let (mut quote, mut is_word) = (None, false);
    let mut letters = line.chars();
    while let Some(letter) = letters.next() {
        match (quote, letter) {
            (Some(open), letter) if open == letter => quote = None,
            (Some('\''), letter) => word.push(letter),
            (_, '\\') => word.extend(letters.next()),
            (Some(_), letter) => word.push(letter),
            (None, '\'' | '"') => (quote, is_word) = (Some(letter), true),
            (None, letter) if letter.is_whitespace() || ";|&()<>`".contains(letter) => {
                if is_word || !word.is_empty() {
                    words.push(std::mem::take(&mut word));
                }
                is_word = false;
                if letter == '\n' || ";|&()`".contains(letter) {
                    commands.push(std::mem::take(&mut words));
                }
            }
            (None, letter) => word.push(letter),
        }
    }
    if is_word || !word.is_empty() {
        words.push(word);
    }
    commands.push(words);
    commands.retain(|words| !words.is_empty());
    commands
}

/// Replaces variables that contain the workspace path with `.`.
fn with_workspace(line: &str) -> String {
    let mut text = line.to_owned();
    for name in [PROJECT_DIR, "PWD"] {
        let braced = format!("${{{name}");
        while let Some(start) = text.find(&braced) {
            let Some(length) = text[start..].find('}') else { break };
            text.replace_range(start..=start + length, ".");
        }
        text = text.replace(&format!("${name}"), ".");
    }
    text.replace("$(pwd)", ".")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_found_through_quotes_variables_and_operators() {
        let words = |line: &str| simple_commands(line).iter().map(|words| words.join(" ")).collect::<Vec<_>>();
        assert_eq!(words("python3 \"$CLAUDE_PROJECT_DIR\"/.claude/hooks/a.py -x"), ["python3 ./.claude/hooks/a.py -x"]);
        assert_eq!(words("${CLAUDE_PROJECT_DIR:-.}/b.sh 'a b'; c | d && e"), ["./b.sh a b", "c", "d", "e"]);
        assert_eq!(words("cd $(pwd)/x && (run)"), ["cd ./x", "run"]);
        assert_eq!(words("jq -r '.x | .y' <in >out"), ["jq -r .x | .y in out"]);
        assert_eq!(words("a\\ b '' \"q\\\"r\""), ["a b  q\"r"]);
        assert!(words("  ;; ").is_empty());
        assert_eq!(words("${CLAUDE_PROJECT_DIR"), ["${CLAUDE_PROJECT_DIR"]);
    }
}
