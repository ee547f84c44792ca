//! Risk of a command, measured by its program, options and operands.

use super::paths::Context;
use super::shell::builtins::destination;
use super::shell::options::{Reading, reading};
use super::shell::{Arg, COMPUTED, Invocation, Simple};
use super::steering::steers;
use crate::protocol::Risk;
use std::path::Path;

const PRIVILEGED: &[&str] = &[
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
const DELETING: &[&str] = &["rm", "rmdir", "shred", "unlink", "truncate", "srm", "trash"];
const NETWORK: &[&str] = &[
    "curl", "wget", "ssh", "scp", "sftp", "rsync", "nc", "ncat", "netcat", "socat", "telnet", "ftp", "ping", "dig", "nslookup",
    "host", "aria2c", "http", "xh", "gh", "docker", "podman", "kubectl", "aws", "gcloud", "az",
];
const INTERPRETERS: &[&str] = &[
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

/// Devices that hold file systems.
const DISKS: &[&str] = &["/dev/sd", "/dev/hd", "/dev/vd", "/dev/nvme", "/dev/mmcblk", "/dev/disk", "/dev/mapper/", "/dev/loop"];

/// What a part could do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Danger {
    pub risk: Risk,
    pub critical: bool,
    /// It changes nothing.
    pub reads_only: bool,
    /// It must be asked each time.
    pub never_remembered: bool,
}

pub fn of_part(part: &Simple, context: &Context, cwd: &Path) -> Danger {
    let mut danger =
        Danger { risk: Risk::Low, critical: false, reads_only: !part.invocations.is_empty(), never_remembered: false };
    let calls_out = part.invocations.iter().any(|invocation| NETWORK.contains(&invocation.base()));
    for invocation in &part.invocations {
        danger = danger.and(of_invocation(invocation, context, cwd));
    }
    danger.critical |= part.piped && part.invocations.iter().any(runs_its_input);
    for redirect in &part.redirects {
        let name = redirect.target.as_ref().map_or("", |target| target.text.as_str());
        danger.critical |= !redirect.reads_only && DISKS.iter().any(|disk| name.starts_with(disk));
        danger.critical |= calls_out && is_credential(name);
        danger.never_remembered = true;
        let inside = redirect.target.as_ref().is_some_and(|target| context.in_workspace(&context.resolve(&target.text, cwd)));
        danger.reads_only &= redirect.reads_only;
        danger.risk = danger.risk.max(match (redirect.reads_only, inside) {
            (true, true) => Risk::Low,
            (true, false) | (false, true) => Risk::Medium,
            (false, false) => Risk::High,
        });
    }
    if part.invocations.is_empty() || part.variables.iter().any(|name| steers(name)) {
        danger.risk = danger.risk.max(Risk::Medium);
    }
    if part.unknown_code || part.floors.contains(&COMPUTED) || (part.reads_code && part.piped) {
        danger = danger.and(Danger { risk: Risk::High, critical: true, reads_only: false, never_remembered: true });
    }
    danger.never_remembered |= !part.floors.is_empty() || part.reads_code;
    danger.reads_only &= part.floors.is_empty() && !part.reads_code;
    danger
}

/// Whether it throws away what is in no commit: it is asked about each time, whoever allowed it.
pub fn discards(part: &Simple) -> bool {
    part.invocations.iter().any(super::git::discards)
}

/// Whether a line removes files that git ignores too, which no snapshot of a workspace has.
pub fn clears_ignored(line: &str) -> bool {
    super::shell::read(line).parts.iter().flat_map(|part| &part.invocations).any(super::git::clears_ignored)
}

/// The places that a line names for deletion, as it spells them: those that are known before it runs, taken from the directory where it
/// begins. None where it goes to another one.
pub fn deleted(line: &str) -> Vec<String> {
    let line = super::shell::read(line);
    let all = || line.parts.iter().flat_map(|part| &part.invocations);
    if all().any(|invocation| matches!(invocation.base(), "cd" | "pushd" | "popd" | "chroot")) {
        return Vec::new();
    }
    let mut places = Vec::new();
    for invocation in all().filter(|invocation| matches!(invocation.base(), "rm" | "rmdir" | "unlink" | "shred")) {
        let words = &invocation.argv[1..];
        let end = words.iter().position(|word| word.text == "--");
        let operands = words.iter().enumerate().filter(|(at, word)| match end {
            Some(end) if *at >= end => *at > end,
            Some(_) | None => !word.text.starts_with('-'),
        });
        let known =
            operands.map(|(_, word)| word).filter(|word| word.is_known() && !word.glob && !word.tilde && !word.text.is_empty());
        for word in known {
            if !places.contains(&word.text) {
                places.push(word.text.clone());
            }
        }
    }
    places
}

/// The addresses that programs which use the network are given on a line, as it spells them: those that are known before it runs.
pub fn addresses(line: &str) -> Vec<String> {
    let line = super::shell::read(line);
    let invocations = line.parts.iter().flat_map(|part| &part.invocations);
    let asks = |one: &&Invocation| NETWORK.contains(&one.base()) || installs(one.base(), &one.argv);
    let words = invocations.filter(asks).flat_map(|one| &one.argv[1..]);
    let mut addresses = Vec::new();
    for word in words.filter(|word| word.is_known() && (word.text.starts_with("https://") || word.text.starts_with("http://"))) {
        if !addresses.contains(&word.text) {
            addresses.push(word.text.clone());
        }
    }
    addresses
}

/// What a line does that no file here tells of, in the words behind its name; `None` where nothing is known of it.
pub fn lasting(line: &str) -> Option<&'static str> {
    let line = super::shell::read(line);
    let all = || line.parts.iter().flat_map(|part| &part.invocations);
    let local = |one: &Invocation| {
        one.base() == "git" && one.argv.iter().any(|arg| matches!(arg.text.as_str(), "clean" | "reset" | "filter-branch"))
    };
    if all().any(|one| NETWORK.contains(&one.base()) || (installs(one.base(), &one.argv) && !local(one))) {
        Some("used the network")
    } else if all().any(|one| PRIVILEGED.contains(&one.base())) {
        Some("acted on the whole machine")
    } else {
        None
    }
}

/// What a person should know about a part that no rule decides.
pub fn why(part: &Simple) -> Option<&'static str> {
    let any = |list: &[&str]| part.invocations.iter().any(|one| list.contains(&one.base()));
    if discards(part) {
        Some("it throws away work that no commit has")
    } else if any(PRIVILEGED) {
        Some("it acts on the whole machine")
    } else if any(DELETING) {
        Some("it deletes")
    } else if any(NETWORK) {
        Some("it uses the network")
    } else if part.invocations.iter().any(|one| installs(one.base(), &one.argv)) {
        Some("it fetches, publishes or throws changes away")
    } else if part.invocations.iter().any(|one| recursive_change(one.base(), &one.argv)) {
        Some("it cannot easily be undone")
    } else if part.redirects.iter().any(|redirect| !redirect.reads_only) {
        Some("it writes to a file")
    } else {
        None
    }
}

/// Why a part is asked about each time, in the words behind "it"; `None` where nothing about it is risky.
pub fn never(part: &Simple, danger: Danger) -> Option<&'static str> {
    let any = |list: &[&str]| part.invocations.iter().any(|one| list.contains(&one.base()));
    if discards(part) {
        Some("throws away work that no commit has")
    } else if part.unknown_code || (part.reads_code && part.piped) {
        Some("runs code that nobody has seen")
    } else if part.floors.contains(&COMPUTED) {
        Some("runs a program known only when it runs")
    } else if any(PRIVILEGED) {
        Some("acts on the whole machine")
    } else if any(DELETING) {
        Some("deletes")
    } else if any(NETWORK) {
        Some("uses the network")
    } else if part.invocations.iter().any(|one| installs(one.base(), &one.argv)) {
        Some("fetches, publishes or throws changes away")
    } else if part.invocations.iter().any(|one| recursive_change(one.base(), &one.argv)) {
        Some("cannot easily be undone")
    } else if any(INTERPRETERS) || part.invocations.iter().any(|one| one.base().starts_with("python")) {
        Some("is a wrapper or an interpreter, which runs whatever it is given")
    } else if part.redirects.iter().any(|redirect| !redirect.reads_only) {
        Some("writes to a file")
    } else if !part.redirects.is_empty() {
        Some("reads a file of the shell's choosing")
    } else if danger.never_remembered && part.floors.is_empty() {
        Some("is risky each time")
    } else if danger.critical || danger.risk == Risk::High {
        Some("is a high risk each time")
    } else {
        None
    }
}

impl Danger {
    fn and(self, other: Self) -> Self {
        Self {
            risk: self.risk.max(other.risk),
            critical: self.critical || other.critical,
            reads_only: self.reads_only && other.reads_only,
            never_remembered: self.never_remembered || other.never_remembered,
        }
    }
}

fn of_invocation(invocation: &Invocation, context: &Context, cwd: &Path) -> Danger {
    let (argv, name) = (&invocation.argv, invocation.base());
    let has = |list: &[&str]| list.contains(&name);
    let outside = || argv[1..].iter().any(|arg| !arg.text.starts_with('-') && leaves(arg, context, cwd));
    let deletes = has(DELETING) || name == "find" && argv.iter().any(|arg| arg.text == "-delete");
    let privileged = has(PRIVILEGED) || name.starts_with("mkfs.");
    let calls_out = has(NETWORK) || installs(name, argv);
    let reads_only = argv[0].text == name && matches!(reading(argv), Reading::Reads { .. });
    let risk = if privileged || deletes || calls_out || recursive_change(name, argv) {
        Risk::High
    } else if reads_only && !outside() || destination(argv).is_some_and(|to| !leaves(to, context, cwd)) {
        Risk::Low
    } else {
        Risk::Medium
    };
    Danger {
        risk,
        critical: ((deletes || changes_all(name, argv)) && outside())
            || has(NETWORK) && argv[1..].iter().any(|arg| is_credential(&arg.text))
            || matches!(name, "dd" | "mkfs" | "shred" | "wipefs")
            || name.starts_with("mkfs."),
        reads_only,
        never_remembered: privileged || deletes || calls_out || has(INTERPRETERS) || name.starts_with("python"),
    }
}

/// Programs that run what a repository's own configuration names, whatever they are asked for: `filter.*.clean` on
/// `git status`.
pub fn obeys_repository(program: &str) -> bool {
    matches!(program, "git" | "hg")
}

/// An interpreter that is given no program but what comes in.
fn runs_its_input(invocation: &Invocation) -> bool {
    let name = invocation.base();
    let reads =
        name.starts_with("python") || matches!(name, "perl" | "ruby" | "node" | "php" | "lua" | "Rscript" | "deno" | "bun");
    let mut words = invocation.argv[1..].iter().map(|arg| arg.text.as_str());
    reads
        && words.all(|word| {
            word == "-" || word == "/dev/stdin" || (word.starts_with('-') && !word.contains(['c', 'e', 'm', 'V', 'v']))
        })
}

/// Keys, tokens and passwords where people keep them.
fn is_credential(text: &str) -> bool {
    let places = [
        ".ssh/",
        ".aws/",
        ".gnupg/",
        ".netrc",
        ".kube/config",
        ".docker/config",
        "id_rsa",
        "id_ed25519",
        "id_ecdsa",
        ".npmrc",
        ".pypirc",
        ".git-credentials",
        "gcloud/",
        "/etc/shadow",
        ".env",
    ];
    let path = text.trim_end_matches('/');
    places.iter().any(|place| match place.strip_suffix('/') {
        Some(directory) => text.contains(place) || path.ends_with(directory),
        None => path.ends_with(place),
    })
}

/// `chmod -R`, `chown -R`.
fn changes_all(name: &str, argv: &[Arg]) -> bool {
    matches!(name, "chmod" | "chown" | "chgrp") && recursive_change(name, argv)
}

fn installs(name: &str, argv: &[Arg]) -> bool {
    INSTALLERS.iter().any(|(program, words)| *program == name && argv[1..].iter().any(|arg| words.contains(&arg.text.as_str())))
}

/// `chmod -R`, `git reset --hard`, `kill`.
fn recursive_change(name: &str, argv: &[Arg]) -> bool {
    let flag = |wanted: &[&str]| argv[1..].iter().any(|arg| wanted.contains(&arg.text.as_str()));
    match name {
        "chmod" | "chown" | "chgrp" => {
            flag(&["--recursive"])
                || argv[1..].iter().any(|arg| !arg.text.starts_with("--") && arg.text.starts_with('-') && arg.text.contains('R'))
        }
        "git" => flag(&["--hard", "-D", "--force", "-f", "drop", "clear"]),
        "kill" | "pkill" | "killall" => true,
        _ => false,
    }
}

/// Whether a word, taken as a path, leads out of the workspace or cannot be told.
pub fn leaves(arg: &Arg, context: &Context, cwd: &Path) -> bool {
    if !arg.is_known() || (arg.tilde && arg.text != "~" && !arg.text.starts_with("~/")) {
        return true;
    }
    !context.in_workspace(&context.resolve(&as_path(arg), cwd))
}

/// A word as the path it is: a quoted `~` is a letter like any other.
pub fn as_path(arg: &Arg) -> String {
    if arg.tilde { arg.text.clone() } else { arg.text.replacen('~', "./~", usize::from(arg.text.starts_with('~'))) }
}
