//! Effects of programs that act as root, change the whole system or manage packages. This module also determines which
//! arguments of a program are files.

use super::{Arg, CommandEffect, DISKS, Place, join_names, non_option_words, quoted, variable_effect};
use crate::policy::path_words::path_part;
use crate::policy::program_kinds::{fetched_and_run, is_recursive, runs_script, words_of_pip};
use crate::policy::steering::steers;
use crate::protocol::Risk;

/// Programs that change the whole system, with their effects.
const SYSTEM: &[(&str, &str)] = &[
    ("shutdown", "shuts this machine down"),
    ("poweroff", "shuts this machine down"),
    ("halt", "shuts this machine down"),
    ("reboot", "restarts this machine"),
    ("init", "changes the state of the whole system"),
    ("systemctl", "changes system services"),
    ("launchctl", "changes system services"),
    ("mount", "changes which file systems are mounted"),
    ("umount", "changes which file systems are mounted"),
    ("swapoff", "turns off swap space"),
    ("insmod", "loads code into the kernel"),
    ("modprobe", "loads code into the kernel"),
    ("iptables", "changes the firewall"),
    ("nft", "changes the firewall"),
    ("useradd", "changes user accounts"),
    ("usermod", "changes user accounts"),
    ("passwd", "changes a password"),
    ("crontab", "changes scheduled jobs"),
    ("userdel", "changes user accounts"),
    ("groupadd", "changes user accounts"),
    ("groupmod", "changes user accounts"),
    ("groupdel", "changes user accounts"),
    ("chpasswd", "changes a password"),
    ("visudo", "changes who may run commands as root"),
    ("sysctl", "changes settings of the kernel"),
    ("setenforce", "changes the protection of the whole system"),
    ("aa-disable", "changes the protection of the whole system"),
    ("aa-teardown", "changes the protection of the whole system"),
    ("ufw", "changes the firewall"),
    ("firewall-cmd", "changes the firewall"),
    ("ip6tables", "changes the firewall"),
    ("pfctl", "changes the firewall"),
    ("loginctl", "changes the sessions of users"),
    ("service", "changes system services"),
    ("rmmod", "removes code from the kernel"),
];
const SERVICE_READS: &[&str] =
    &["status", "show", "cat", "is-active", "is-enabled", "is-failed", "list-units", "list-unit-files", "list-timers", "list"];

/// Package managers, as (program, subcommands, effect, risk).
const PACKAGES: &[(&str, &[&str], &str, Risk)] = &[
    ("npm", &["publish", "unpublish", "deprecate"], "publishes to the npm registry", Risk::High),
    ("pnpm", &["publish"], "publishes to the npm registry", Risk::High),
    ("yarn", &["publish"], "publishes to the npm registry", Risk::High),
    ("bun", &["publish"], "publishes to the npm registry", Risk::High),
    ("cargo", &["publish", "yank", "owner"], "publishes to crates.io", Risk::High),
    ("gem", &["push", "yank"], "publishes to rubygems.org", Risk::High),
    ("twine", &["upload"], "publishes to PyPI", Risk::High),
    ("uv", &["publish"], "publishes to PyPI", Risk::High),
    ("poetry", &["publish"], "publishes to PyPI", Risk::High),
    ("npm", &["install", "i", "ci", "add", "update"], "installs packages from the npm registry", Risk::Medium),
    ("pnpm", &["install", "i", "add", "update"], "installs packages from the npm registry", Risk::Medium),
    ("yarn", &["install", "add"], "installs packages from the npm registry", Risk::Medium),
    ("bun", &["install", "add"], "installs packages from the npm registry", Risk::Medium),
    ("pip", &["install", "download"], "installs packages from PyPI", Risk::Medium),
    ("pip3", &["install", "download"], "installs packages from PyPI", Risk::Medium),
    ("uv", &["add", "pip", "sync", "tool"], "installs packages from PyPI", Risk::Medium),
    ("pipx", &["install", "inject", "upgrade", "upgrade-all", "reinstall"], "installs packages from PyPI", Risk::Medium),
    ("poetry", &["install", "add", "update"], "installs packages from PyPI", Risk::Medium),
    ("cargo", &["install"], "downloads and installs programs", Risk::Medium),
    ("cargo", &["add", "fetch", "update"], "downloads from crates.io", Risk::Medium),
    ("go", &["install", "get"], "downloads Go modules", Risk::Medium),
    ("gem", &["install"], "installs packages from rubygems.org", Risk::Medium),
    ("brew", &["install", "upgrade", "uninstall"], "changes the programs installed on this machine", Risk::High),
    ("apt", &["install", "remove", "upgrade", "purge"], "changes the programs installed on this machine", Risk::High),
    ("apt-get", &["install", "remove", "upgrade", "purge"], "changes the programs installed on this machine", Risk::High),
    ("dnf", &["install", "remove", "upgrade"], "changes the programs installed on this machine", Risk::High),
    ("pacman", &["-S", "-R", "-Syu"], "changes the programs installed on this machine", Risk::High),
];
/// Programs whose first argument is an expression rather than a file.
const EXPRESSION_FIRST: &[&str] =
    &["sed", "awk", "gawk", "mawk", "jq", "yq", "perl", "grep", "egrep", "fgrep", "rg", "ag", "git"];
/// Programs whose arguments are not files.
const WORDS_ONLY: &[&str] =
    &["echo", "printf", "tr", "expr", "seq", "sleep", "date", "basename", "dirname", "true", "false", ":", "export", "set"];

/// Returns the effect of a program that changes the whole system, runs as root or manages packages.
pub(crate) fn effect(program: &str, words: &[Arg], place: Place<'_>) -> Option<CommandEffect> {
    if let Some(effect) = as_another_user(program, words).or_else(|| disk_effect(program, words, place)) {
        return Some(effect);
    }
    if let Some((_, sentence)) = SYSTEM.iter().find(|(name, _)| *name == program) {
        return (!only_shows(program, words)).then(|| CommandEffect::new(Risk::High, *sentence));
    }
    if matches!(program, "gpg" | "gpg2") && words.iter().any(|word| word.text.trim_start_matches('-').starts_with("delete-")) {
        return Some(CommandEffect::new(Risk::High, "deletes keys"));
    }
    let (program, words) = words_of_pip(program, words).map_or((program, words), |words| ("pip", words));
    if let Some(rest) = fetched_and_run(program, words) {
        let package = non_option_words(rest, &["-p", "--package", "--from"]);
        let package = package.into_iter().find(|word| word.text != "run");
        let name = package.map_or_else(|| "a package".to_owned(), |word| quoted(&word.text));
        return Some(CommandEffect::new(Risk::Medium, format!("runs {name}, downloading it first if needed")));
    }
    let in_packages = !runs_script(program, words);
    if let Some((.., sentence, risk)) = PACKAGES
        .iter()
        .filter(|_| in_packages)
        .find(|(name, subcommands, ..)| *name == program && words.iter().any(|word| subcommands.contains(&word.text.as_str())))
    {
        return Some(CommandEffect::new(*risk, *sentence));
    }
    match program {
        "env" => words
            .iter()
            .filter_map(|word| word.text.split_once('='))
            .map(|(name, _)| name)
            .find(|name| steers(name))
            .map(variable_effect),
        // A variable may be exported after it was set in another way.
        "export" | "declare" | "typeset" | "readonly" | "local" | "read" | "readarray" | "mapfile" => {
            let names = words.iter().map(|word| word.text.split_once('=').map_or(word.text.as_str(), |(name, _)| name));
            names.into_iter().find(|name| steers(name)).map(variable_effect)
        }
        "kill" | "pkill" | "killall" => Some(signal_effect(program, words)),
        "chmod" | "chown" | "chgrp" => permission_effect(words, place),
        _ => None,
    }
}

/// Returns whether a program in `SYSTEM` only shows a state. After an option, the first word may be the value of that
/// option, so options are not skipped.
fn only_shows(program: &str, words: &[Arg]) -> bool {
    let first = words.first().map_or("", |word| word.text.as_str());
    let has = |wanted: &[&str]| words.iter().any(|word| wanted.contains(&word.text.as_str()));
    match program {
        "systemctl" | "launchctl" => SERVICE_READS.contains(&first),
        "loginctl" => {
            first.is_empty() || ["list-", "show-"].iter().any(|start| first.starts_with(start)) || first.ends_with("-status")
        }
        "service" => first == "--status-all" || words.get(1).is_some_and(|word| word.text == "status"),
        "ufw" => matches!(first, "status" | "version" | "show" | "--version" | "--help"),
        "firewall-cmd" => first == "--state" || first.starts_with("--list") || first.starts_with("--get"),
        "sysctl" => {
            let is_set = |word: &Arg| word.text.contains('=') || matches!(word.text.as_str(), "--load" | "--write" | "--system");
            let is_letter =
                |word: &Arg| word.text.starts_with('-') && !word.text.starts_with("--") && word.text.contains(['w', 'p', 'f']);
            !words.iter().any(|word| is_set(word) || is_letter(word))
        }
        "crontab" => has(&["-l"]),
        "mount" => words.is_empty(),
        _ => false,
    }
}

/// Returns the effect of sending a signal, including the processes that receive it.
fn signal_effect(program: &str, words: &[Arg]) -> CommandEffect {
    if program == "kill" && words.first().is_some_and(|word| matches!(word.text.as_str(), "-l" | "-L")) {
        return CommandEffect::new(Risk::Low, "lists the names of signals");
    }
    let plain = non_option_words(words, &["-s", "--signal", "-n", "-u", "-t"]);
    let all = plain.iter().any(|word| matches!(word.text.as_str(), "-1")) || words.last().is_some_and(|word| word.text == "-1");
    let named = join_names(&plain.iter().map(|word| word.text.clone()).collect::<Vec<_>>());
    let sentence = match (named, program) {
        _ if program == "kill" && all => return CommandEffect::new(Risk::High, "stops all of your processes"),
        (None, _) => "stops processes".to_owned(),
        (Some(names), "kill") => format!("stops the process {names}"),
        (Some(names), _) => format!("stops all processes named {names}"),
    };
    CommandEffect::new(Risk::Medium, sentence)
}

/// Returns the effect of a program whose operands include an output path, if that path is outside the workspace.
pub(crate) fn write_effect(program: &str, words: &[Arg], place: Place<'_>) -> Option<CommandEffect> {
    let plain = non_option_words(words, &["-t", "--target-directory", "-m", "--mode", "-o", "-g", "-S", "--suffix", "-d", "-r"]);
    let given = |word: &Arg, at: usize| match word.text.as_str() {
        "-t" | "--target-directory" => words.get(at + 1).cloned(),
        text => text.strip_prefix("--target-directory=").map(|text| Arg { text: text.to_owned(), ..word.clone() }),
    };
    let to = words.iter().enumerate().find_map(|(at, word)| given(word, at));
    let (sources, targets): (&[&Arg], Vec<&Arg>) = match (program, &to) {
        ("tee" | "touch" | "mkdir", _) => (&[], plain.clone()),
        ("cp" | "mv" | "install" | "ln", Some(to)) => (&plain, vec![to]),
        ("cp" | "mv" | "install" | "ln", None) => {
            let (last, sources) = plain.split_last().filter(|(_, sources)| !sources.is_empty())?;
            (sources, vec![*last])
        }
        _ => return None,
    };
    let moved: Vec<String> = sources.iter().filter(|word| place.is_outside(word)).map(|word| word.text.clone()).collect();
    if let Some(names) = join_names(&moved).filter(|_| program == "mv") {
        return Some(CommandEffect::new(Risk::High, format!("moves {names} from outside the workspace")));
    }
    targets
        .into_iter()
        .filter_map(|target| super::write_effect(target, place))
        .reduce(|one, other| if other.rank() > one.rank() { other } else { one })
}

fn as_another_user(program: &str, words: &[Arg]) -> Option<CommandEffect> {
    if !matches!(program, "sudo" | "su" | "doas" | "pkexec" | "run0") {
        return None;
    }
    let named =
        words.iter().position(|word| matches!(word.text.as_str(), "-u" | "--user")).and_then(|index| words.get(index + 1));
    let named = if program == "su" { non_option_words(words, &["-c", "-s"]).first().copied() } else { named };
    Some(match named.filter(|word| !matches!(word.text.as_str(), "root" | "-")) {
        Some(user) => CommandEffect::new(Risk::High, format!("runs as the user {}", quoted(&user.text))),
        None => CommandEffect::new(Risk::High, "runs as root"),
    })
}

/// Returns the effect of a program that writes to disks directly, bypassing the file system.
fn disk_effect(program: &str, words: &[Arg], place: Place<'_>) -> Option<CommandEffect> {
    let disks: Vec<String> = words
        .iter()
        .map(|word| word.text.strip_prefix("of=").unwrap_or(&word.text))
        .filter(|text| DISKS.iter().any(|disk| text.starts_with(disk)))
        .map(str::to_owned)
        .collect();
    let named = join_names(&disks).map(|disks| format!("the disk {disks}"));
    match program {
        "fdisk" | "parted" | "sfdisk" => {
            Some(CommandEffect::critical(format!("changes the partitions of {}", named.unwrap_or_else(|| "a disk".to_owned()))))
        }
        "mkfs" | "wipefs" | "mkswap" => {
            Some(CommandEffect::critical(format!("erases {}", named.unwrap_or_else(|| "a disk".to_owned()))))
        }
        _ if program.starts_with("mkfs.") => {
            Some(CommandEffect::critical(format!("erases {}", named.unwrap_or_else(|| "a disk".to_owned()))))
        }
        "dd" => {
            let target =
                words.iter().find_map(|word| Some(Arg { text: word.text.strip_prefix("of=")?.to_owned(), ..word.clone() }));
            Some(match (named, target) {
                (Some(disk), _) => CommandEffect::critical(format!("overwrites {disk}")),
                (None, Some(target)) if place.is_outside(&target) => {
                    CommandEffect::critical(format!("overwrites {}, outside the workspace", quoted(&target.text)))
                }
                (None, Some(target)) => CommandEffect::new(Risk::Medium, format!("overwrites {}", quoted(&target.text))),
                (None, None) => CommandEffect::critical("copies raw data"),
            })
        }
        _ => None,
    }
}

/// Returns the effect of changing permissions or ownership of a whole tree or of a path outside the workspace.
fn permission_effect(words: &[Arg], place: Place<'_>) -> Option<CommandEffect> {
    // A mode or an owner, resolved as a path, is inside the workspace.
    let targets = non_option_words(words, &[]);
    let recursive = is_recursive(words);
    let outside: Vec<String> = targets.iter().filter(|word| place.is_outside(word)).map(|word| word.text.clone()).collect();
    match (join_names(&outside), recursive) {
        (Some(names), true) => {
            Some(CommandEffect::critical(format!("changes the permissions of all files in {names}, outside the workspace")))
        }
        (Some(names), false) => {
            Some(CommandEffect::new(Risk::High, format!("changes the permissions of {names}, outside the workspace")))
        }
        (None, true) => Some(CommandEffect::new(Risk::Medium, "changes the permissions of a whole directory")),
        (None, false) => None,
    }
}

/// Returns the arguments that may be files, for a program without an option table.
pub(crate) fn operands<'a>(program: &str, words: &'a [Arg]) -> Vec<&'a str> {
    if WORDS_ONLY.contains(&program) {
        return Vec::new();
    }
    let expression =
        |index: usize| EXPRESSION_FIRST.contains(&program) && words[..index].iter().all(|word| word.text.starts_with('-'));
    let candidates = words.iter().enumerate().filter(|(index, word)| word.text.starts_with('-') || !expression(*index));
    candidates.map(|(_, word)| path_part(&word.text)).filter(|path| !path.contains("://")).collect()
}
