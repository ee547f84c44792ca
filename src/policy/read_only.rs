//! Recognizes read-only command lines by their words. Allow verdicts do not depend on this module.

use super::shell::option_verdict::OptionVerdict;
use super::shell::options::check_options;
use super::shell::{Invocation, SimpleCommand, read};

/// Returns whether a command line calls all its programs by plain name and all of them are known to only read. Unknown
/// programs are assumed to write.
pub fn is_read_only(line: &str) -> bool {
    let line = read(line);
    !line.parts.is_empty() && line.floors.is_empty() && !line.hopeless && line.parts.iter().all(part_reads)
}

fn part_reads(part: &SimpleCommand) -> bool {
    let plain = part.floors.is_empty() && !part.unknown_code && !part.reads_code;
    plain
        && !part.invocations.is_empty()
        && part.invocations.iter().all(only_reads)
        && part.redirects.iter().all(|redirect| redirect.reads_only)
}

fn only_reads(one: &Invocation) -> bool {
    !one.wrapped && one.argv[0].text == one.base() && matches!(check_options(&one.argv), OptionVerdict::Reads { .. })
}

#[cfg(test)]
mod tests {
    use super::is_read_only;

    #[test]
    fn only_commands_of_plain_readers_are_read_only() {
        let reading =
            ["ls -la src", "cat a | head -n 3", "grep -rn x . 2>/dev/null", "git status --short && git log -3", "wc -l < a"];
        assert_eq!(reading.map(is_read_only), [true; 5]);
        let other = [
            "",
            "cargo test",
            "ls > list",
            "cat a | sh",
            "./ls",
            "find . -delete",
            "git commit -m x",
            "ls; rm a",
            "cat $(make)",
            "xargs cat",
            "sudo ls",
            "X=1",
            "ls &> $HOME/x",
        ];
        assert_eq!(other.map(is_read_only), [false; 13]);
    }
}
