//! Classifies programs by name: those that act as root, delete files, use the network, interpret code or install
//! packages.

use super::shell::option_verdict::OptionVerdict;
use super::shell::options::check_options;
use super::shell::{Arg, Invocation};

pub(crate) const PRIVILEGED: &[&str] = &[
    "sudo",
    "su",
    "doas",
    "pkexec",
    "mkfs",
    "dd",
    "shutdown",
    "reboot",
    "halt",
    "poweroff",
    "systemctl",
    "mount",
    "umount",
    "fdisk",
    "parted",
    "wipefs",
    "insmod",
    "modprobe",
    "iptables",
    "nft",
    "useradd",
    "usermod",
    "passwd",
    "crontab",
    "launchctl",
    "init",
    "swapoff",
];
pub(crate) const DELETING: &[&str] = &["rm", "rmdir", "shred", "unlink", "truncate", "srm", "trash"];
pub(crate) const NETWORK: &[&str] = &[
    "curl", "wget", "ssh", "scp", "sftp", "rsync", "nc", "ncat", "netcat", "socat", "telnet", "ftp", "ping", "dig", "nslookup",
    "host", "aria2c", "http", "xh", "gh", "docker", "podman", "kubectl", "aws", "gcloud", "gsutil", "s3cmd", "az",
];
pub(crate) const INTERPRETERS: &[&str] = &[
    "python",
    "python2",
    "python3",
    "node",
    "deno",
    "bun",
    "perl",
    "ruby",
    "php",
    "lua",
    "awk",
    "gawk",
    "mawk",
    "sed",
    "osascript",
    "tclsh",
    "Rscript",
    "julia",
    "ghci",
    "irb",
    "vim",
    "vi",
    "nvim",
    "emacs",
    "ed",
    "ex",
    "sh",
    "bash",
    "dash",
    "zsh",
    "ksh",
    "fish",
    "eval",
    "source",
    ".",
    "xargs",
    "env",
    "find",
    "npx",
    "uvx",
    "pipx",
    "make",
    "tee",
    "trap",
    "exec",
    "command",
    "builtin",
];
const INSTALLERS: &[(&str, &[&str])] = &[
    ("npm", &["install", "i", "ci", "add", "exec", "publish", "update"]),
    ("pnpm", &["install", "i", "add", "dlx", "publish"]),
    ("yarn", &["install", "add", "dlx", "publish"]),
    ("bun", &["install", "add", "x"]),
    ("pip", &["install", "download"]),
    ("pip3", &["install", "download"]),
    ("uv", &["add", "pip", "sync", "tool"]),
    ("pipx", &["install", "inject", "upgrade", "upgrade-all", "reinstall"]),
    ("cargo", &["install", "publish", "add", "fetch"]),
    ("go", &["install", "get"]),
    ("gem", &["install", "push"]),
    ("brew", &["install", "upgrade"]),
    ("apt", &["install", "remove", "upgrade"]),
    ("apt-get", &["install", "remove", "upgrade"]),
    (
        "git",
        &["push", "clone", "fetch", "pull", "ls-remote", "submodule", "clean", "filter-branch", "send-email", "daemon", "reset"],
    ),
];

/// Programs that download a program and run it. Subcommands are listed if only they do so.
const FETCH_AND_RUN: &[(&str, &[&str], FetchedOperand)] = &[
    ("npx", &[], FetchedOperand::Any),
    ("bunx", &[], FetchedOperand::Any),
    ("pnpx", &[], FetchedOperand::Any),
    ("uvx", &[], FetchedOperand::Any),
    ("pkgx", &[], FetchedOperand::Any),
    ("npm", &["exec", "x", "create"], FetchedOperand::Any),
    ("pnpm", &["dlx", "create"], FetchedOperand::Any),
    ("yarn", &["dlx", "create"], FetchedOperand::Any),
    ("bun", &["x", "create"], FetchedOperand::Any),
    ("pipx", &["run"], FetchedOperand::Any),
    ("go", &["run"], FetchedOperand::Remote),
    ("deno", &["run", "serve", "test", "eval", "x"], FetchedOperand::Remote),
    ("nix", &["run", "shell", "develop"], FetchedOperand::Remote),
    ("nix-shell", &[], FetchedOperand::Remote),
];
/// Options with which the programs in `FETCH_AND_RUN` run only what is already installed.
const INSTALLED_ONLY: &[&str] = &["--no-install", "--no", "--offline"];

/// Operands with which a program in `FETCH_AND_RUN` downloads.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum FetchedOperand {
    Any,
    /// Names of packages on other machines, rather than paths.
    Remote,
}

/// Returns the words after the program or subcommand that downloads and runs a program, or `None` if the command does
/// not do so.
pub(crate) fn fetched_and_run<'a>(name: &str, words: &'a [Arg]) -> Option<&'a [Arg]> {
    let (_, verbs, operand) = FETCH_AND_RUN.iter().find(|(program, ..)| *program == name)?;
    let rest = if verbs.is_empty() {
        words
    } else {
        let verb = words.iter().position(|word| !word.text.starts_with('-'))?;
        verbs.contains(&words[verb].text.as_str()).then(|| &words[verb + 1..])?
    };
    let is_remote = |word: &Arg| {
        let text = word.text.as_str();
        let has_scheme = ["http:", "https:", "npm:", "jsr:"].iter().any(|scheme| text.starts_with(scheme));
        match name {
            "go" => text.contains('@'),
            "deno" => has_scheme,
            _ => !text.starts_with(['-', '.', '/']) && !text.is_empty(),
        }
    };
    let fetches = *operand == FetchedOperand::Any || rest.iter().any(is_remote);
    let is_installed = words.iter().any(|word| INSTALLED_ONLY.contains(&word.text.as_str()));
    (fetches && !is_installed).then_some(rest)
}

/// Returns the words of pip in `python -m pip …`.
pub(crate) fn words_of_pip<'a>(name: &str, words: &'a [Arg]) -> Option<&'a [Arg]> {
    let at =
        words.iter().position(|word| word.text == "-m").filter(|_| name.starts_with("python") || name.starts_with("pypy"))?;
    (words.get(at + 1)?.text == "pip").then(|| &words[at + 2..])
}

/// Programs that developers use every day. Any other program has a higher risk if there is no sandbox.
const TOOLS: &[&str] = &[
    "awk",
    "basename",
    "bat",
    "black",
    "bundle",
    "bun",
    "c++",
    "cargo",
    "cat",
    "cc",
    "cd",
    "chmod",
    "clang",
    "clippy-driver",
    "cmake",
    "comm",
    "composer",
    "cp",
    "ctest",
    "cut",
    "date",
    "deno",
    "df",
    "diff",
    "dirname",
    "dotnet",
    "du",
    "echo",
    "eslint",
    "expr",
    "fd",
    "file",
    "gcc",
    "g++",
    "git",
    "go",
    "gofmt",
    "gradle",
    "gradlew",
    "gzip",
    "head",
    "hostname",
    "id",
    "java",
    "javac",
    "jest",
    "jq",
    "just",
    "ln",
    "ls",
    "make",
    "meson",
    "mkdir",
    "mv",
    "mvn",
    "mypy",
    "ninja",
    "npm",
    "patch",
    "pip",
    "pip3",
    "pnpm",
    "poetry",
    "prettier",
    "printf",
    "ps",
    "pwd",
    "pytest",
    "readlink",
    "realpath",
    "rspec",
    "ruff",
    "rustc",
    "rustfmt",
    "rustup",
    "seq",
    "sleep",
    "sort",
    "stat",
    "swift",
    "tar",
    "task",
    "time",
    "timeout",
    "touch",
    "tox",
    "tr",
    "tree",
    "tsc",
    "uname",
    "uniq",
    "unzip",
    "uv",
    "vitest",
    "wc",
    "which",
    "whoami",
    "yarn",
    "zip",
];

/// Returns whether a program, judged by its name, is one that developers use every day.
pub(crate) fn is_known_program(invocation: &Invocation) -> bool {
    let name = invocation.base();
    invocation.argv[0].text == name
        && (TOOLS.contains(&name)
            || INTERPRETERS.contains(&name)
            || !matches!(check_options(&invocation.argv), OptionVerdict::NoTable))
}

/// Returns whether a program runs other programs named in a repository's configuration, such as `filter.*.clean` for
/// `git status`.
pub(crate) fn runs_repository_programs(program: &str) -> bool {
    matches!(program, "git" | "hg")
}

/// Returns whether an interpreter takes its program only from standard input.
pub(crate) fn runs_its_input(invocation: &Invocation) -> bool {
    let name = invocation.base();
    let reads =
        name.starts_with("python") || matches!(name, "perl" | "ruby" | "node" | "php" | "lua" | "Rscript" | "deno" | "bun");
    let mut words = invocation.argv[1..].iter().map(|arg| arg.text.as_str());
    reads
        && words.all(|word| {
            word == "-" || word == "/dev/stdin" || (word.starts_with('-') && !word.contains(['c', 'e', 'm', 'V', 'v']))
        })
}

/// Returns whether a package manager runs a script of the project. The script may have the same name as a subcommand,
/// as in `npm run install`.
pub(crate) fn runs_script(name: &str, words: &[Arg]) -> bool {
    let first = words.first().map(|word| word.text.as_str());
    matches!(name, "npm" | "pnpm" | "yarn" | "bun") && first.is_some_and(|first| matches!(first, "run" | "run-script" | "test"))
        || name == "git" && first == Some("stash")
}

pub(crate) fn installs(name: &str, argv: &[Arg]) -> bool {
    if runs_script(name, &argv[1..]) {
        return false;
    }
    let (name, words) = words_of_pip(name, &argv[1..]).map_or((name, &argv[1..]), |words| ("pip", words));
    let has_word = |wanted: &[&str]| words.iter().any(|arg| wanted.contains(&arg.text.as_str()));
    fetched_and_run(name, words).is_some() || INSTALLERS.iter().any(|(program, wanted)| *program == name && has_word(wanted))
}

/// Returns whether the arguments of `chmod` or a similar program make it process whole trees.
pub(crate) fn is_recursive(words: &[Arg]) -> bool {
    let is_cluster = |text: &str| text.starts_with('-') && !text.starts_with("--");
    words.iter().any(|word| word.text == "--recursive" || is_cluster(&word.text) && word.text.contains('R'))
}

/// Returns whether a command changes many things at once, as `chmod -R`, `git reset --hard` and `kill` do.
pub(crate) fn recursive_change(name: &str, argv: &[Arg]) -> bool {
    let flag = |wanted: &[&str]| argv[1..].iter().any(|arg| wanted.contains(&arg.text.as_str()));
    match name {
        "chmod" | "chown" | "chgrp" => is_recursive(&argv[1..]),
        "git" => flag(&["--hard", "-D", "--force", "-f", "drop", "clear"]),
        "kill" | "pkill" | "killall" => true,
        _ => false,
    }
}
