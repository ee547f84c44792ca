//! Determines whether a line typed into a running shell changes the meaning of later lines.

use super::read;

/// Builtins that may change the meaning of later lines or end the shell.
const CHANGES: &[&str] = &[
    ".",
    "alias",
    "bg",
    "bind",
    "builtin",
    "command",
    "compgen",
    "complete",
    "compopt",
    "coproc",
    "declare",
    "dirs",
    "disown",
    "enable",
    "eval",
    "exec",
    "exit",
    "export",
    "fc",
    "fg",
    "getopts",
    "hash",
    "history",
    "let",
    "local",
    "logout",
    "mapfile",
    "popd",
    "printf",
    "pushd",
    "read",
    "readarray",
    "readonly",
    "return",
    "set",
    "shift",
    "shopt",
    "source",
    "suspend",
    "trap",
    "typeset",
    "ulimit",
    "umask",
    "unalias",
    "unset",
    "wait",
];

/// Returns whether this line leaves the meaning of later lines unchanged. Does not check whether the working directory
/// changes.
pub fn keeps_meaning(line: &str) -> bool {
    let line = read(line);
    let alone = line.parts.len() == 1;
    let plain = !(line.hopeless || line.multiplies || line.too_long) && line.floors.is_empty();
    plain
        && line.parts.iter().all(|part| {
            let [invocation] = &part.invocations[..] else { return false };
            let name = invocation.argv[0].text.as_str();
            let known = part.floors.is_empty() && part.redirects.is_empty() && !part.unknown_code && !part.reads_code;
            // In a list or a pipe, `cd` may not have run in this shell.
            let moves = name == "cd" && !alone;
            known && !invocation.wrapped && !moves && !name.starts_with('%') && !CHANGES.contains(&name)
        })
}

/// Returns whether a shell that runs this line would execute its input.
pub fn runs_input(line: &str) -> bool {
    let line = read(line);
    line.hopeless || line.parts.iter().any(|part| part.reads_code || part.unknown_code)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_that_change_the_state_of_the_shell_are_detected() {
        for line in ["ls", "ls -la src | grep x", "git status && cargo test", "cd src", "cat a; cat b", "python3", "echo hi"] {
            assert!(keeps_meaning(line), "{line}");
        }
        let changing = [
            "alias ls='rm -rf'",
            "ls() { rm -rf .; }",
            "PATH=.:$PATH",
            "export A=b",
            "set -H",
            "source x",
            ". x",
            "cd x && ls",
            "ls; cd x",
            "ls $(id)",
            "echo $x",
            "ls \\",
            "ls &&",
            "ls &",
            "cat <<X",
            "if true",
            "ls \"a",
            "read x",
            "trap ls INT",
            "exec ls",
            "eval ls",
            "command cd x",
            "%1",
            "fg",
            "printf -v ls x",
            "coproc ls",
            "time bash",
            "bash",
            "unset x",
            "ls > x",
        ];
        for line in changing {
            assert!(!keeps_meaning(line), "{line}");
        }
    }

    #[test]
    fn interactive_shells_are_detected_behind_wrappers() {
        for line in ["bash", "sh -i", "env A=b bash", "nohup sh", "cd x; bash", "sudo -s"] {
            assert!(runs_input(line), "{line}");
        }
        for line in ["python3 -i", "less x", "cargo run", "bash -c ls", "git log"] {
            assert!(!runs_input(line), "{line}");
        }
    }
}
