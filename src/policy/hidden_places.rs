//! Paths that are hidden from a command that runs without approval, as far as a line names them.

use super::path_words::{as_path, path_in};
use super::paths::{Context, is_secret_name};
use super::shell::{Arg, read};
use std::path::Path;

/// Directories outside the workspace that every command sees, or has its own copy of.
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

/// Returns whether a word of the line is a path that is hidden from a command without approval: outside the workspace and the
/// system directories, or a file with a name typical of secrets.
pub(crate) fn names_hidden_place(line: &str, cwd: &Path, context: &Context) -> bool {
    let line = read(line);
    let words = line.parts.iter().flat_map(|part| &part.invocations).flat_map(|invocation| &invocation.argv);
    let targets = line.parts.iter().flat_map(|part| &part.redirects).filter_map(|redirect| redirect.target.as_ref());
    words.chain(targets).filter(|word| word.is_known()).any(|word| is_hidden(word, cwd, context))
}

fn is_hidden(word: &Arg, cwd: &Path, context: &Context) -> bool {
    // The value of an option and of `name=value` may be a path too.
    let parts = [path_in(&word.text), word.text.split_once('=').map_or("", |(_, value)| value), word.text.as_str()];
    parts.into_iter().filter(|text| !text.is_empty()).any(|text| {
        let name = text.trim_end_matches('/').rsplit('/').next().unwrap_or(text);
        if is_secret_name(name) {
            return true;
        }
        let tilde = word.tilde || text.starts_with("~/");
        if !tilde && !text.starts_with('/') && !text.split('/').any(|part| part == "..") {
            return false;
        }
        let path = context.resolve(&as_path(&Arg { text: text.to_owned(), tilde, ..word.clone() }), cwd);
        !context.in_workspace(&path) && !SEEN.iter().any(|seen| path.starts_with(seen))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::policy::Sandbox;
    use crate::protocol::Mode;
    use std::path::PathBuf;

    #[test]
    fn a_line_that_names_a_hidden_place_is_known() {
        let (root, home) = (PathBuf::from("/home/me/project"), PathBuf::from("/home/me"));
        let context = Context { roots: vec![root.clone()], home, mode: Mode::Ask, sandbox: Sandbox::Present, own: Vec::new() };
        for line in [
            "cat ~/.ssh/id_rsa",
            "sed -n 1p /home/me/notes",
            "python3 x.py --config=/home/me/x",
            "sort < ../other/file",
            "awk 1 .env",
            "openssl x509 -in certs/server.pem",
            "dd if=/home/me/x",
            "cd .. && make",
            "wc /var/log/syslog",
            "ls /mnt",
            "bash -c 'cat ~/x'",
        ] {
            assert!(names_hidden_place(line, &root, &context), "{line}");
        }
        for line in [
            "make",
            "sed -n 1,20p src/a.rs",
            "python3 -c 'print(1/2)'",
            "cat /usr/include/stdio.h",
            "ls /home/me/project/src",
            "cat .env.example",
            "sed s/a/b/ x",
            "cd src && make",
            "echo x > /tmp/y",
        ] {
            assert!(!names_hidden_place(line, &root, &context), "{line}");
        }
    }
}
