//! Finds paths in a command line that are hidden from commands that run without approval.

use super::path_words::{as_path, path_part};
use super::paths::{Context, is_secret_name};
use super::shell::builtins::destination;
use super::shell::option_verdict::OptionVerdict;
use super::shell::options::check_options;
use super::shell::{Arg, Invocation, read};
use std::path::{Path, PathBuf};

/// Directories outside the workspace that every command can see, or of which every command has a private copy.
const SEEN: &[&str] = &[
    "/usr",
    "/bin",
    "/sbin",
    "/lib",
    "/lib32",
    "/lib64",
    "/opt",
    "/etc",
    "/nix",
    "/dev",
    "/proc/self",
    "/proc/cpuinfo",
    "/proc/meminfo",
    "/sys",
    "/tmp",
    "/var/tmp",
];

/// Programs whose first operand is a pattern or a program in their own language.
const TAKING_PATTERNS: &[&str] =
    &["ack", "ag", "awk", "egrep", "fgrep", "gawk", "grep", "gsed", "jq", "mawk", "nawk", "rg", "sed", "yq"];
/// Maximum number of working directories considered for the commands in a line.
const MAX_DIRECTORIES: usize = 8;

/// Returns whether a command line mentions a path that is hidden from commands that run without approval. Such a path
/// is outside the workspace and the visible system directories, or its name suggests that the file contains secrets.
pub(crate) fn mentions_hidden_path(line: &str, cwd: &Path, context: &Context) -> bool {
    let line = read(line);
    let invocations = || line.parts.iter().flat_map(|part| &part.invocations);
    let mut directories = vec![cwd.to_owned()];
    for to in invocations().filter_map(|invocation| destination(&invocation.argv)) {
        let reached: Vec<PathBuf> = directories.iter().map(|from| context.resolve(&as_path(to), from)).collect();
        directories.extend(reached);
        directories.truncate(MAX_DIRECTORIES);
    }
    let words = invocations().flat_map(path_words);
    let targets = line.parts.iter().flat_map(|part| &part.redirects).filter_map(|redirect| redirect.target.as_ref());
    words.chain(targets).filter(|word| word.is_known()).any(|word| is_hidden(word, &directories, context))
}

/// Returns the words of a command that may be paths.
fn path_words(invocation: &Invocation) -> Vec<&Arg> {
    let argv = &invocation.argv;
    if let OptionVerdict::Reads { paths } = check_options(argv) {
        return argv.iter().filter(|word| paths.iter().any(|path| word.text.ends_with(path))).collect();
    }
    let mut words: Vec<&Arg> = argv.iter().collect();
    if TAKING_PATTERNS.contains(&invocation.base()) {
        let is_given = |word: &Arg| matches!(word.text.as_str(), "-e" | "--expression" | "--regexp");
        let given = argv.windows(2).position(|pair| is_given(&pair[0])).map(|at| at + 1);
        let first = argv.iter().skip(1).position(|word| !word.text.starts_with('-')).map(|at| at + 1);
        if let Some(pattern) = given.or(first) {
            words.remove(pattern);
        }
    }
    words
}

/// Returns whether a word ends in a name that suggests secrets. The word may be a path, or a path in a commit such as
/// `HEAD^:.env`.
pub(super) fn names_secret(text: &str) -> bool {
    let in_commit = text.rsplit_once(':').map(|(_, path)| path);
    let names = |path: &str| is_path(path) && is_secret_name(path.trim_end_matches('/').rsplit('/').next().unwrap_or(path));
    names(text) || in_commit.is_some_and(names)
}

/// Returns whether a string can be a path rather than code or a pattern.
fn is_path(text: &str) -> bool {
    !text.trim_matches('/').is_empty() && !text.contains(|c: char| c.is_whitespace() || "{}()|^$\\,;\"'<>".contains(c))
}

/// Returns whether a word is a path that is hidden whichever of these directories it is relative to.
fn is_hidden(word: &Arg, directories: &[PathBuf], context: &Context) -> bool {
    // The value of an option or of `name=value` may be a path too.
    let parts = [path_part(&word.text), word.text.split_once('=').map_or("", |(_, value)| value), word.text.as_str()];
    if parts.into_iter().any(names_secret) {
        return true;
    }
    parts.into_iter().filter(|text| is_path(text)).any(|text| {
        let tilde = word.tilde || text.starts_with("~/");
        if !tilde && !text.starts_with('/') && !text.split('/').any(|part| part == "..") {
            return false;
        }
        let text = as_path(&Arg { text: text.to_owned(), tilde, ..word.clone() });
        directories
            .iter()
            .map(|from| context.resolve(&text, from))
            .all(|path| !context.in_workspace(&path) && !SEEN.iter().any(|seen| path.starts_with(seen)))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::policy::Sandbox;
    use crate::protocol::Mode;
    use std::path::PathBuf;

    #[test]
    fn commands_that_name_a_hidden_path_are_detected() {
        let (root, home) = (PathBuf::from("/home/me/project"), PathBuf::from("/home/me"));
        let context = Context {
            roots: vec![root.clone()],
            home,
            mode: Mode::Ask,
            sandbox: Sandbox::Present,
            own: Vec::new(),
            skills: Vec::new(),
        };
        for line in [
            "cat ~/.ssh/id_rsa",
            "sed -n 1p /home/me/notes",
            "python3 x.py --config=/home/me/x",
            "sort < ../other/file",
            "awk 1 .env",
            "git show HEAD^:.env | sort",
            "git cat-file -p :certs/server.key | sort",
            "openssl x509 -in certs/server.pem",
            "dd if=/home/me/x",
            "cd .. && make",
            "wc /var/log/syslog",
            "ls /mnt",
            "bash -c 'cat ~/x'",
            "cd src && cat ../../other",
            "sed -n '/a/p' /home/me/notes",
            "sed -e '/a/d' ../notes | sort",
            "cut -d/ -f2 ~/notes",
            "sort '/home/me/my notes' /home/me/notes",
        ] {
            assert!(mentions_hidden_path(line, &root, &context), "{line}");
        }
        for line in [
            "make",
            "sed -n 1,20p src/a.rs",
            "python3 -c 'print(1/2)'",
            "cat /usr/include/stdio.h",
            "ls /home/me/project/src",
            "cat .env.example",
            "git show HEAD:src/secrets.rs | sort",
            "sed s/a/b/ x",
            "cd src && make",
            "echo x > /tmp/y",
            "cd src && cat ../Makefile",
            "cd src && ls && cd .. && make",
            "cd src/deep && make && cd ../..",
            "awk '/fn /{n++} END{print n}' a",
            "sed -i '/TODO/d' a",
            "sed -n '/start/,/end/p' a",
            "grep -rn '/api/users' src | sort",
            "grep -rn id_token src | sort",
            "jq .. a.json",
            "cut -d/ -f2 a",
            "tr / -",
        ] {
            assert!(!mentions_hidden_path(line, &root, &context), "{line}");
        }
    }
}
