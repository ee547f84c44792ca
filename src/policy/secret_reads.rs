//! Finds files with secrets whose content a read-only command would show to the model.

use super::git::subcommand;
use super::hidden_places::names_secret;
use super::shell::option_verdict::OptionVerdict;
use super::shell::options::check_options;
use super::shell::{Invocation, SimpleCommand, read};

/// Programs that show names and properties of files, but not their content.
const WITHOUT_CONTENT: &[&str] = &["ls", "find", "wc", "pwd", "cd", "test", "[", "[[", "echo", "printf"];
/// Options with which `git log` shows content.
const PATCH_OPTIONS: &[&str] = &["-p", "-u", "--patch", "--cc", "-c", "-m"];
/// Programs that read all files below a directory.
const SEARCHING: &[&str] = &["rg", "grep", "egrep", "fgrep"];

/// Returns the operand or the input with a name that suggests secrets, for a command that only reads. Returns `None` if
/// the command shows no content of such a file, as `ls` does.
pub(crate) fn shown_secret(part: &SimpleCommand) -> Option<String> {
    let shows = |one: &&Invocation| shows_content(one);
    let operands = part.invocations.iter().filter(shows).flat_map(paths);
    let inputs = part.redirects.iter().filter(|redirect| redirect.reads_only).filter_map(|redirect| redirect.target.as_ref());
    let inputs = inputs.filter(|target| target.is_known() && part.invocations.iter().any(shows_content));
    operands.chain(inputs.map(|target| target.text.as_str())).find(|text| names_secret(text)).map(str::to_owned)
}

/// Returns whether a line may read files whose names it does not contain, other than through git, which reads tracked
/// files. Files with secrets are hidden from such a line if it runs without approval.
pub fn reads_unnamed_files(line: &str) -> bool {
    let line = read(line);
    let reads = |one: &Invocation| {
        let words = || one.argv[1..].iter();
        let is_recursive = || one.base() == "rg" || words().any(|word| recurses(&word.text));
        one.base() != "git"
            && shows_content(one)
            && (SEARCHING.contains(&one.base()) && is_recursive() || words().any(|word| word.glob || !word.is_known()))
    };
    line.parts.iter().flat_map(|part| &part.invocations).any(reads)
}

/// Returns whether a word is an option with which `grep` reads directories.
fn recurses(word: &str) -> bool {
    let letters = word.strip_prefix('-').filter(|letters| !letters.starts_with('-'));
    letters.is_some_and(|letters| letters.contains(['r', 'R', 'd']))
        || ["--rec", "--deref", "--dir"].iter().any(|option| word.starts_with(option))
}

/// Returns whether a command prints the content of the files in its arguments.
fn shows_content(invocation: &Invocation) -> bool {
    let Some((name, words)) = subcommand(invocation) else {
        return invocation.base() != "git" && !WITHOUT_CONTENT.contains(&invocation.base());
    };
    let is_patch = |text: &str| PATCH_OPTIONS.contains(&text) || text.starts_with("-L") || text.starts_with("-U");
    match name {
        "status" => false,
        "log" => words.iter().any(|word| is_patch(&word.text)),
        _ => true,
    }
}

/// Returns the arguments of a command that only reads that may be paths.
fn paths(invocation: &Invocation) -> Vec<&str> {
    let OptionVerdict::Reads { paths } = check_options(&invocation.argv) else { return Vec::new() };
    let lines = invocation.argv.iter().map(|word| word.text.as_str()).filter(|text| text.starts_with("-L") && text.contains(':'));
    let lines = lines.filter(|_| invocation.base() == "git");
    paths.into_iter().chain(lines).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(line: &str) -> Option<String> {
        read(line).parts.iter().find_map(shown_secret)
    }

    #[test]
    fn read_only_commands_that_show_files_with_secrets_are_detected() {
        for (line, secret) in [
            ("cat a server.key", "server.key"),
            ("head -n 5 certs/id_rsa", "certs/id_rsa"),
            ("tail prod.tfstate | grep x", "prod.tfstate"),
            ("grep x .netrc", ".netrc"),
            ("rg x config/.env", "config/.env"),
            ("cat < .env", ".env"),
            ("cat .env*", ".env*"),
            ("ls && cat secrets.yaml", "secrets.yaml"),
            ("git show HEAD:.env", "HEAD:.env"),
            ("git show HEAD~2^:deep/server.key", "HEAD~2^:deep/server.key"),
            ("git diff main -- .env", ".env"),
            ("git log -p .env", ".env"),
        ] {
            assert_eq!(shown(line).as_deref(), Some(secret), "{line}");
        }
        for line in [
            "cat a.rs",
            "cat .env.example",
            "ls -l .env",
            "find . -name '*.pem'",
            "wc -c server.key",
            "grep -r server.key src",
            "git status .env",
            "git log -- .env",
            "git log --oneline .env",
            "git show HEAD:src/secrets.rs",
            "ls > .env",
        ] {
            assert_eq!(shown(line), None, "{line}");
        }
    }

    #[test]
    fn commands_that_read_files_which_the_line_does_not_name_are_detected() {
        for line in
            ["grep -r x .", "grep -nR x", "grep --recursive x .", "rg -uu x", "cat *", "ls; git status; rg x", "head -1 */*"]
        {
            assert!(reads_unnamed_files(line), "{line}");
        }
        for line in ["cat a", "grep -n x a", "git status", "git diff | head -5", "ls *", "find . -name '*.rs'", "git grep x"] {
            assert!(!reads_unnamed_files(line), "{line}");
        }
    }
}
