//! Determines whether all commands in a line begin with given words. Allow verdicts do not depend on this module.

use super::shell::{Arg, Invocation, SimpleCommand, read};

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

/// Returns whether a line may run a command that matches a pattern in other agents' notation, such as `git log:*` or
/// `* --force`. Returns `true` if the commands of the line cannot be determined.
pub fn may_run_matching(line: &str, pattern: &str) -> bool {
    let pattern = pattern.trim();
    let open = pattern.strip_suffix(":*").or_else(|| pattern.strip_suffix(" *"));
    let text = open.unwrap_or(pattern);
    let wildcards = text.split('*').map(regex::escape).collect::<Vec<_>>().join(".*");
    let end = if open.is_some() { "(?: .*)?" } else { "" };
    let Ok(wildcards) = regex::Regex::new(&format!("(?s)^{wildcards}{end}$")) else { return true };
    let prefix = LinePrefix::parse(pattern);
    let may_match = |one: &Invocation| {
        let is_open = |arg: &Arg| !arg.is_known() || arg.glob;
        let has_open = one.argv.iter().any(is_open);
        if text.contains('*') {
            let words: Vec<&str> = one.argv.iter().map(|arg| arg.text.as_str()).collect();
            return has_open || wildcards.is_match(&words.join(" "));
        }
        let (count, expected) = (one.argv.len(), prefix.words.len());
        let is_length = if prefix.is_whole { count == expected } else { count >= expected };
        let is_word =
            |(at, (word, arg)): (usize, (&String, &Arg))| is_open(arg) || arg.text == *word || (at == 0 && one.base() == word);
        (is_length || has_open) && prefix.words.iter().zip(&one.argv).enumerate().all(is_word)
    };
    let line = read(line);
    let may_run = |part: &SimpleCommand| {
        part.unknown_code || part.reads_code || part.narrowed || part.renames || part.invocations.iter().any(may_match)
    };
    line.hopeless || line.too_long || line.failed || line.parts.iter().any(may_run)
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

    #[test]
    fn a_line_may_run_a_matching_command_anywhere_in_it_or_if_it_cannot_be_determined() {
        for (line, pattern) in [
            ("git commit -m x", "git commit:*"),
            ("git commit", "git commit *"),
            ("cd a && git commit", "git commit:*"),
            ("/usr/bin/git commit", "git commit:*"),
            ("echo $(git commit)", "git commit:*"),
            ("git $X", "git commit:*"),
            ("$X commit", "git commit:*"),
            ("git push --force", "* --force"),
            ("npmx", "npm*"),
            ("make", "make"),
        ] {
            assert!(may_run_matching(line, pattern), "{line}: {pattern}");
        }
        for (line, pattern) in [
            ("git status", "git commit:*"),
            ("git commits", "git commit:*"),
            ("echo git commit", "git commit:*"),
            ("git push", "* --force"),
            ("make all", "make"),
            ("", "make"),
        ] {
            assert!(!may_run_matching(line, pattern), "{line}: {pattern}");
        }
    }
}
