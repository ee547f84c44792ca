//! Determines whether all commands in a line begin with given words. Allow verdicts do not depend on this module.

use super::shell::{Invocation, SimpleCommand, read};

/// The words with which a command begins.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LinePrefix {
    words: Vec<String>,
    /// Whether the command must not contain any further words.
    is_whole: bool,
}

impl LinePrefix {
    /// Parses a pattern in other agents' notation, such as `git log:*`, `git log *` or `make`. `*` matches every
    /// command.
    pub fn parse(pattern: &str) -> Self {
        let pattern = pattern.trim();
        let open = pattern.strip_suffix(":*").or_else(|| pattern.strip_suffix(" *"));
        let open = open.or_else(|| (pattern == "*").then_some(""));
        let words = open.unwrap_or(pattern).split_whitespace().map(str::to_owned).collect();
        Self { words, is_whole: open.is_none() }
    }

    fn covers(&self, one: &Invocation) -> bool {
        let is_length = if self.is_whole { one.argv.len() == self.words.len() } else { one.argv.len() >= self.words.len() };
        is_length && self.words.iter().zip(&one.argv).all(|(word, arg)| arg.is_known() && !arg.glob && arg.text == *word)
    }
}

/// Returns whether every command in a line begins with one of the prefixes. Returns `false` if the line writes a file
/// or runs unknown code.
pub fn is_covered_by_prefixes(line: &str, prefixes: &[LinePrefix]) -> bool {
    let line = read(line);
    let is_covered = |part: &SimpleCommand| {
        let plain = part.floors.is_empty() && !part.unknown_code && !part.reads_code;
        plain
            && !part.invocations.is_empty()
            && part.invocations.iter().all(|one| prefixes.iter().any(|prefix| prefix.covers(one)))
            && part.redirects.iter().all(|redirect| redirect.reads_only)
    };
    !line.parts.is_empty() && line.floors.is_empty() && !line.hopeless && line.parts.iter().all(is_covered)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_covered_only_if_all_its_commands_are() {
        let prefixes = ["git log:*", "npm run *", "make"].map(LinePrefix::parse);
        for line in ["git log", "git log --oneline", "npm run test", "make", "git log | git log -3", "cd_not=1 git log; make"] {
            assert_eq!(is_covered_by_prefixes(line, &prefixes), !line.contains('='), "{line}");
        }
        for line in [
            "",
            "git",
            "git push",
            "git log && rm a",
            "git log > file",
            "make all",
            "git $X",
            "sudo git log",
            "$(git log)",
            "git log $(rm a)",
            "bash -c 'git log'",
            "g*t log",
        ] {
            assert!(!is_covered_by_prefixes(line, &prefixes), "{line}");
        }
        assert!(is_covered_by_prefixes("rm -r a", &[LinePrefix::parse("*")]) && !is_covered_by_prefixes("ls", &[]));
    }
}
