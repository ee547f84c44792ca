//! Effects of git commands.

use super::{Arg, CommandEffect, Place, join_names, non_option_words, quoted};
use crate::policy::git::{discards, overwrites_reference, subcommand};
use crate::policy::shell::Invocation;
use crate::protocol::Risk;

const PUSH_VALUES: &[&str] = &["-o", "--push-option", "--repo", "--receive-pack", "--exec"];
const FETCH_VALUES: &[&str] = &[
    "--depth",
    "-j",
    "--jobs",
    "-o",
    "--origin",
    "-b",
    "--branch",
    "-c",
    "--config",
    "--reference",
    "-u",
    "--upload-pack",
    "--filter",
    "--shallow-since",
    "-s",
    "-X",
];

/// Options of `git rebase` with which it changes, drops or reorders commits.
const REWRITES: &[&str] = &["-i", "--interactive", "--root", "--onto", "-x", "--exec"];

/// Returns the effect of a git command that cannot be undone or that affects other machines.
pub(crate) fn effect(invocation: &Invocation, place: Place<'_>) -> Option<CommandEffect> {
    let (name, words) = subcommand(invocation)?;
    let has = |options: &[&str]| words.iter().any(|word| options.contains(&word.text.split('=').next().unwrap_or_default()));
    let first = words.iter().map(|word| word.text.as_str()).find(|word| !word.starts_with('-'));
    if discards(invocation) {
        return Some(CommandEffect::new(Risk::High, describe_discard(name, words, place)));
    }
    let medium = |sentence: String| Some(CommandEffect::new(Risk::Medium, sentence));
    let high = |sentence: String| Some(CommandEffect::new(Risk::High, sentence));
    match (name, first) {
        // After an option with a value, these words may be that value.
        ("push", _) => Some(push_effect(words, has(&["-n", "--dry-run"]) && !has(PUSH_VALUES))),
        ("send-email", _) => high("sends commits by email".to_owned()),
        ("daemon" | "instaweb", _) => medium("serves this repository over the network".to_owned()),
        ("clone", _) => medium(format!("downloads {}", object(words, "a repository"))),
        ("fetch" | "pull" | "ls-remote", _) => medium(format!("downloads from {}", object(words, "the remote repository"))),
        ("remote", Some("update" | "prune")) => medium("downloads from the remote repositories".to_owned()),
        ("submodule", Some("add" | "update" | "sync")) => medium("downloads submodules".to_owned()),
        ("lfs", Some("push")) => high("publishes large files".to_owned()),
        ("lfs", Some("pull" | "fetch")) => medium("downloads large files".to_owned()),
        ("filter-branch" | "filter-repo", _) => high("rewrites the whole history".to_owned()),
        ("gc" | "prune", _) if has(&["--prune", "--expire"]) || name == "prune" => {
            high("deletes commits that no branch contains".to_owned())
        }
        ("reflog", Some("expire" | "delete")) => high("deletes reflog entries".to_owned()),
        ("svn", Some("dcommit")) => high("publishes commits to the Subversion repository".to_owned()),
        ("update-ref", _) if has(&["-d", "--delete", "--stdin"]) => high("deletes or changes references".to_owned()),
        ("branch", _) if has(&["-D", "-d", "--delete"]) => medium(format!("deletes {}", name_object("branch", words))),
        ("tag", _) if has(&["-d", "--delete"]) => medium(format!("deletes {}", name_object("tag", words))),
        ("config", _) if has(&["--global", "--system"]) && !has(&["--get", "--list", "-l", "--get-all", "--get-regexp"]) => {
            medium("changes your git configuration".to_owned())
        }
        ("checkout" | "switch" | "branch" | "tag" | "update-ref" | "replace", _) if overwrites_reference(invocation) => {
            medium("overwrites a branch or another reference, so its commits may be lost".to_owned())
        }
        ("remote", Some("remove" | "rm")) => medium(format!("deletes {}", name_object("remote", after_first(words)))),
        ("remote", Some("set-url")) => medium(format!("changes the address of {}", name_object("remote", after_first(words)))),
        ("rebase", _) if has(REWRITES) => medium("rewrites commits of the current branch".to_owned()),
        ("worktree", Some("remove")) => medium(format!("deletes {}", name_object("worktree", &words[1..]))),
        _ => None,
    }
}

fn describe_discard(name: &str, words: &[Arg], place: Place<'_>) -> String {
    match name {
        "clean" => "deletes untracked files".to_owned(),
        "stash" => "deletes stashed changes".to_owned(),
        "worktree" => "deletes a worktree with its uncommitted changes".to_owned(),
        "checkout" | "restore" => match join_names(&discarded_files(name, words, place)) {
            Some(names) => format!("discards uncommitted changes in {names}"),
            None => "discards uncommitted changes".to_owned(),
        },
        _ => "discards uncommitted changes".to_owned(),
    }
}

/// Returns the files whose uncommitted changes a command discards, or an empty list if its arguments do not identify
/// them.
fn discarded_files(name: &str, words: &[Arg], place: Place<'_>) -> Vec<String> {
    let after = words.iter().position(|word| word.text == "--").map(|at| at + 1);
    let forces = words.iter().any(|word| matches!(word.text.as_str(), "-f" | "--force"));
    let mut plain: Vec<&Arg> = match after {
        Some(at) => words.get(at..).unwrap_or_default().iter().collect(),
        None => non_option_words(words, &["-s", "--source"]),
    };
    if name == "checkout" && after.is_none() && (forces || plain.len() > 1) {
        // The first word can be a commit or a branch.
        plain.drain(..1.min(plain.len()));
    }
    // A single `.` is the directory that the command runs in.
    let is_whole = |word: &&Arg| word.text == "." && place.context.roots.iter().any(|root| root == place.cwd);
    if plain.iter().any(is_whole) {
        return Vec::new();
    }
    let files = plain.into_iter().filter(|word| word.is_known());
    files.map(|word| word.text.clone()).collect()
}

fn push_effect(words: &[Arg], dry: bool) -> CommandEffect {
    let plain = non_option_words(words, PUSH_VALUES);
    let remote = plain.first().map_or_else(|| "the remote repository".to_owned(), |word| quoted(&word.text));
    if dry {
        return CommandEffect::new(Risk::Medium, format!("connects to {remote}"));
    }
    let refs = plain.get(1..).unwrap_or_default();
    let targets: Vec<String> = refs.iter().map(|word| pushed_name(word)).collect();
    // If a name is unknown, the sentence names none. `:` and `HEAD` stand for names that are not in the line.
    let is_named = targets.iter().all(|name| !matches!(name.as_str(), "" | "HEAD"));
    let is_known = is_named && refs.iter().all(|word| word.is_known() && !word.glob);
    let targets = join_names(&targets).filter(|_| is_known);
    let has = |long: &[&str], letter: char| {
        words.iter().any(|word| {
            let text = word.text.as_str();
            let name = text.split('=').next().unwrap_or(text);
            long.contains(&name) || text.len() > 1 && text.starts_with('-') && !text.starts_with("--") && text.contains(letter)
        })
    };
    let deletes_all = has(&["--delete"], 'd') || !refs.is_empty() && refs.iter().all(|word| word.text.starts_with(':'));
    let sentence = if let Some(names) = targets.as_ref().filter(|_| deletes_all && !has(&["--prune"], '\0')) {
        format!("deletes {names} on {remote}")
    } else if has(&["--delete", "--prune"], 'd') || refs.iter().any(|word| word.text.starts_with(':')) {
        format!("deletes branches or tags on {remote}")
    } else if has(&["--mirror"], '\0') {
        format!("replaces all branches and tags on {remote}")
    } else if has(&["--force", "--force-with-lease"], 'f') || refs.iter().any(|word| word.text.starts_with('+')) {
        match &targets {
            Some(names) => format!("overwrites commits of {names} on {remote}"),
            None => format!("overwrites commits on {remote}"),
        }
    } else {
        match &targets {
            Some(names) => format!("publishes commits to {names} on {remote}"),
            None => format!("publishes commits to {remote}"),
        }
    };
    CommandEffect::new(Risk::High, sentence)
}

/// Returns the name of the branch or tag to which a refspec pushes: `main` for `main`, `+main` and
/// `feature:refs/heads/main`.
fn pushed_name(word: &Arg) -> String {
    let text = word.text.trim_start_matches('+');
    let target = text.rsplit_once(':').map_or(text, |(_, target)| target);
    let name = target.strip_prefix("refs/heads/").or_else(|| target.strip_prefix("refs/tags/"));
    name.unwrap_or(target).to_owned()
}

/// Returns the words that follow the first word that is not an option.
fn after_first(words: &[Arg]) -> &[Arg] {
    let at = words.iter().position(|word| !word.text.starts_with('-'));
    at.and_then(|at| words.get(at + 1..)).unwrap_or_default()
}

fn object(words: &[Arg], otherwise: &str) -> String {
    non_option_words(words, FETCH_VALUES).first().map_or_else(|| otherwise.to_owned(), |word| quoted(&word.text))
}

/// Describes the branch, tag, remote or worktree that the words name, such as "the branch `x`", or returns "a branch" if they
/// name none.
fn name_object(kind: &str, words: &[Arg]) -> String {
    let name = non_option_words(words, FETCH_VALUES).first().map(|word| quoted(&word.text));
    name.map_or_else(|| format!("a {kind}"), |name| format!("the {kind} {name}"))
}
