//! Git commands that write to their repository. The sandbox makes the repository writable for them.

use super::shell::option_verdict::OptionVerdict;
use super::shell::options::check_options;
use super::shell::{Arg, Invocation, ParsedLine, SimpleCommand, read};
use std::borrow::Cow;

/// Access to a repository that the git commands in a line need.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub enum GitWrites {
    /// No git command in the line writes to a repository.
    #[default]
    Nothing,
    /// A command writes objects, references or the index.
    Writes,
    /// A git command creates a repository. No program other than git writes files in this line, so all of the
    /// repository's content comes from git.
    Makes,
}

/// Options of git itself that take a value as the next word.
const VALUED: &[&str] = &[
    "-C",
    "-c",
    "--git-dir",
    "--work-tree",
    "--namespace",
    "--super-prefix",
    "--config-env",
    "--exec-path",
    "--attr-source",
    "--list-cmds",
];
/// Subcommands that write no files in a repository, or only files that are never executed.
const READING: &[&str] = &[
    "annotate",
    "archive",
    "blame",
    "bugreport",
    "cat-file",
    "check-attr",
    "check-ignore",
    "check-mailmap",
    "check-ref-format",
    "cherry",
    "column",
    "config",
    "count-objects",
    "credential",
    "describe",
    "diagnose",
    "diff",
    "diff-files",
    "diff-index",
    "diff-tree",
    "for-each-ref",
    "format-patch",
    "fsck",
    "get-tar-commit-id",
    "grep",
    "help",
    "interpret-trailers",
    "log",
    "ls-files",
    "ls-remote",
    "ls-tree",
    "mailinfo",
    "mailsplit",
    "merge-base",
    "merge-tree",
    "name-rev",
    "patch-id",
    "range-diff",
    "request-pull",
    "rev-list",
    "rev-parse",
    "shortlog",
    "show",
    "show-branch",
    "show-index",
    "show-ref",
    "status",
    "stripspace",
    "var",
    "verify-commit",
    "verify-pack",
    "verify-tag",
    "version",
    "whatchanged",
];
/// For each of these subcommands, the words with which it only lists or shows something.
const SHOWING: &[(&str, &[&str])] = &[
    ("bisect", &["log", "view", "visualize", "terms"]),
    ("notes", &["list", "show"]),
    ("reflog", &["show", "list", "exists"]),
    ("remote", &["-v", "--verbose", "show", "get-url"]),
    ("stash", &["list", "show"]),
    ("submodule", &["status", "summary"]),
    ("worktree", &["list"]),
];
/// For each of these subcommands, the options with which it only lists something.
const LISTING: &[(&str, &[&str])] = &[
    ("branch", &["-a", "--all", "-r", "--remotes", "-v", "-vv", "--verbose", "-l", "--list", "--show-current", "--contains"]),
    ("tag", &["-l", "--list", "-n", "--contains", "--points-at"]),
];
/// Programs that may accompany `git init` because they write no files.
const BESIDE: &[&str] = &["git", "cd", "echo", "printf", "true"];

/// Options that make git copy programs or settings from elsewhere into a new repository.
const PROGRAMS: &[&str] = &["--template", "--config", "--exec-path"];

/// Returns the access that the git commands in a line need, including git commands that are run by wrappers.
pub fn git_writes(line: &str) -> GitWrites {
    let line = read(line);
    let named = invocations(&line).filter_map(subcommand).map(|(name, words)| (name, writes(name, words)));
    let (mut found, mut makes) = (GitWrites::Nothing, false);
    for (name, writes) in named {
        makes |= name == "init";
        if writes {
            found = GitWrites::Writes;
        }
    }
    if makes && consists_of_git(&line) { GitWrites::Makes } else { found }
}

/// Git commands that write what an arbitrary file contains.
const PATCHES: &[&str] = &["am", "apply"];

/// Returns whether a line consists of git commands and of commands that only read, so that all files that it writes
/// come from a repository. Returns `false` if the line applies patches, or sets configuration with which git could start
/// other programs.
pub fn is_git_only(line: &str) -> bool {
    let line = read(line);
    let applies = invocations(&line).filter_map(subcommand).any(|(name, _)| PATCHES.contains(&name));
    invocations(&line).any(|one| one.base() == "git") && consists_of_git(&line) && !applies
}

fn invocations(line: &ParsedLine) -> impl Iterator<Item = &Invocation> {
    line.parts.iter().flat_map(|part| &part.invocations)
}

fn consists_of_git(line: &ParsedLine) -> bool {
    let plain = line.floors.is_empty() && line.parts.iter().all(|part| part.floors.is_empty() && part.redirects.is_empty());
    let harmless =
        |one: &Invocation| BESIDE.contains(&one.base()) || matches!(check_options(&one.argv), OptionVerdict::Reads { .. });
    let alone = invocations(line).all(|one| !one.wrapped && one.argv[0].text == one.base() && harmless(one));
    let free = invocations(line).any(|one| {
        one.argv.windows(2).any(|pair| match pair {
            [before, word] if before.text == "-c" => !word.text.starts_with("user."),
            [_, word] => word.text == "config" || PROGRAMS.iter().any(|odd| word.text.starts_with(odd)),
            _ => false,
        })
    });
    plain && alone && !free
}

/// Returns the subcommand of a git invocation and the words that follow it.
pub(super) fn subcommand(invocation: &Invocation) -> Option<(&str, &[Arg])> {
    if invocation.base() != "git" {
        return None;
    }
    let mut words = invocation.argv[1..].iter().enumerate();
    while let Some((at, word)) = words.next() {
        let text = word.text.as_str();
        if VALUED.contains(&text) {
            words.next();
        } else if !text.starts_with('-') {
            return Some((text, &invocation.argv[at + 2..]));
        } else if matches!(text, "--version" | "--help" | "-h" | "-v") {
            return None;
        }
    }
    None
}

/// Returns the words of a `git commit` command without its messages: `-m TEXT` and `--message=TEXT` are removed, and
/// `-am TEXT` becomes `-a`. Returns `None` for any other command, or if some words are known only at run time.
pub(super) fn without_messages(argv: &[Arg]) -> Option<Vec<Arg>> {
    let [git, commit, words @ ..] = argv else { return None };
    if git.text != "git" || commit.text != "commit" || argv.iter().any(|word| word.glob || !word.is_known()) {
        return None;
    }
    let mut rest = vec![git.clone(), commit.clone()];
    let mut words = words.iter();
    while let Some(word) = words.next() {
        let text = word.text.as_str();
        if text == "--" {
            rest.push(word.clone());
            rest.extend(words.by_ref().cloned());
        } else if text.starts_with("--message=") {
        } else if matches!(text, "-m" | "-am" | "--message") {
            words.next()?;
            rest.extend((text == "-am").then(|| Arg::plain("-a")));
        } else if text.starts_with("-m") {
        } else {
            rest.push(word.clone());
        }
    }
    Some(rest)
}

/// Removes the message from a commit command, because it contains neither options nor files.
pub(super) fn without_message(part: &SimpleCommand) -> Cow<'_, SimpleCommand> {
    let stripped = |invocation: &Invocation| {
        let argv = without_messages(&invocation.argv).unwrap_or_else(|| invocation.argv.clone());
        Invocation { argv, wrapped: invocation.wrapped }
    };
    let invocations: Vec<Invocation> = part.invocations.iter().map(stripped).collect();
    if invocations == part.invocations { Cow::Borrowed(part) } else { Cow::Owned(SimpleCommand { invocations, ..part.clone() }) }
}

/// Returns whether a `git add` command contains only options that select files or list the added ones.
pub(super) fn is_plain_add(argv: &[Arg]) -> bool {
    const OPTIONS: &[&str] =
        &["-A", "--all", "-u", "--update", "-v", "--verbose", "-n", "--dry-run", "-N", "--intent-to-add", "--no-all", "--"];
    let [git, add, words @ ..] = argv else { return false };
    let names = |word: &Arg| !word.text.starts_with(['-', ':']) || OPTIONS.contains(&word.text.as_str());
    git.text == "git" && add.text == "add" && words.iter().all(|word| !word.glob && names(word))
}

/// Returns whether a git command discards work that is not part of any commit.
pub(super) fn discards(invocation: &Invocation) -> bool {
    let Some((name, words)) = subcommand(invocation) else { return false };
    let has = |long: &[&str], short: Option<char>| {
        words.iter().take_while(|word| word.text != "--").any(|word| {
            let text = word.text.as_str();
            let cluster = text.strip_prefix('-').filter(|rest| !rest.starts_with('-'));
            long.contains(&text) || short.is_some_and(|short| cluster.is_some_and(|letters| letters.contains(short)))
        })
    };
    let plain = || words.iter().filter(|word| !word.text.starts_with('-'));
    match name {
        "reset" => has(&["--hard", "--merge"], None),
        "clean" => !has(&["--dry-run", "--help", "-h"], Some('n')),
        "checkout" => {
            let makes =
                has(&["--orphan", "--track"], None) || words.iter().any(|word| matches!(word.text.as_str(), "-b" | "-B" | "-t"));
            let rest = words.iter().position(|word| word.text == "--").is_some_and(|at| at + 1 < words.len());
            let names_a_file = plain().any(|word| is_a_path(&word.text)) || plain().count() > 1;
            has(&["--force", "--ours", "--theirs"], Some('f')) || (!makes && (rest || names_a_file))
        }
        "checkout-index" => has(&["--force"], Some('f')),
        "restore" => !has(&["--staged"], Some('S')) || has(&["--worktree"], Some('W')),
        "stash" => words.first().is_some_and(|word| matches!(word.text.as_str(), "drop" | "clear")),
        "switch" => has(&["--force", "--discard-changes"], Some('f')),
        "worktree" => words.first().is_some_and(|word| word.text == "remove") && has(&["--force"], Some('f')),
        _ => false,
    }
}

/// Returns whether a `git clean` command also deletes ignored files.
pub(super) fn deletes_ignored(invocation: &Invocation) -> bool {
    let Some(("clean", words)) = subcommand(invocation) else { return false };
    let letters = |word: &Arg, one| word.text.starts_with('-') && !word.text.starts_with("--") && word.text.contains(one);
    discards(invocation) && words.iter().any(|word| letters(word, 'x') || letters(word, 'X'))
}

/// Returns whether an argument of `git checkout` looks like a file rather than a branch.
fn is_a_path(word: &str) -> bool {
    let extension = || word.rsplit('/').next().and_then(|name| name.rsplit_once('.')).map(|(_, end)| end);
    let like_one = |end: &str| (1..=4).contains(&end.len()) && end.chars().all(|letter| letter.is_ascii_alphabetic());
    word == "." || word.starts_with("./") || word.starts_with("../") || word.contains('*') || extension().is_some_and(like_one)
}

/// Returns whether a subcommand writes. Unknown subcommands are treated as writing, which is safe because the user sees
/// the command and hooks remain protected.
fn writes(name: &str, words: &[Arg]) -> bool {
    let first = words.first().map(|word| word.text.as_str());
    let of =
        |table: &[(&str, &'static [&'static str])]| table.iter().find(|(of, _)| *of == name).map_or(&[][..], |(_, known)| *known);
    if READING.contains(&name) || first.is_some_and(|first| of(SHOWING).contains(&first)) {
        return false;
    }
    let listing = of(LISTING);
    let lists = |word: &Arg| listing.contains(&word.text.split('=').next().unwrap_or_default());
    match first {
        None => !matches!(name, "branch" | "tag" | "notes" | "reflog" | "remote" | "submodule" | "bisect" | "worktree"),
        // `git branch -v x` creates a branch, `git branch --list x` does not.
        Some(_) if !listing.is_empty() => {
            let plain = words.iter().all(|word| word.text.starts_with('-'));
            let asked = |word: &Arg| matches!(word.text.as_str(), "--list" | "-l" | "--contains" | "--points-at" | "-n");
            !(words.iter().any(lists) && (plain || words.iter().any(asked)))
        }
        Some(_) => true,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn is(wanted: GitWrites, lines: &[&str]) {
        for line in lines {
            assert_eq!(git_writes(line), wanted, "{line}");
        }
    }

    #[test]
    fn writing_git_commands_need_the_repository() {
        is(
            GitWrites::Writes,
            &[
                "git commit -m x",
                "git add -A && git commit -m 'a b'",
                "git -C sub commit -m x",
                "git -c user.name=x commit",
                "cd sub && git checkout -b feature",
                "cargo test && git commit -am done",
                "bash -c 'git stash'",
                "env A=b git rebase main",
                "timeout 5 git merge x",
                "git branch feature",
                "git branch -D feature",
                "git tag v1",
                "git stash",
                "git --git-dir=x/.git commit",
                "git worktree add ../x",
                "git an-alias",
                "/usr/bin/git commit",
                "if true; then git reset --hard; fi",
            ],
        );
    }

    #[test]
    fn lines_that_consist_of_git_are_distinguished_from_mixed_ones() {
        for line in [
            "git clean -fd",
            "git stash -u; git stash pop",
            "cd sub && git checkout feat",
            "git -c user.name=x commit -m y && git log --oneline | head -3",
            "echo start; git merge feat",
        ] {
            assert!(is_git_only(line), "{line}");
        }
        for line in [
            "git add -A; echo x > .envrc",
            "cargo fmt && git commit -am x",
            "git add -A; mkdir .vscode",
            "env A=b git checkout feat",
            "bash -c 'git checkout feat'",
            "/usr/bin/git checkout feat",
            "git -c core.hooksPath=x checkout feat",
            "git config a.b c; git checkout feat",
            "git apply evil.patch",
            "git -C sub am < evil.mbox",
            "ls",
            "git $x",
        ] {
            assert!(!is_git_only(line), "{line}");
        }
    }

    fn throws_away(line: &str) -> bool {
        read(line).parts.iter().flat_map(|part| &part.invocations).any(discards)
    }

    #[test]
    fn commands_that_discard_uncommitted_work_are_detected() {
        let throwing = [
            "git reset --hard",
            "git reset --hard HEAD~1",
            "git -C sub reset --hard origin/main",
            "git clean -fd",
            "git clean -fdx",
            "git clean -xdf .",
            "git clean --force",
            "git checkout -- .",
            "git checkout .",
            "git checkout src/main.rs",
            "git checkout HEAD -- src",
            "git checkout HEAD~1 src/lib",
            "git checkout -f main",
            "git restore src/main.rs",
            "git restore .",
            "git restore --staged --worktree .",
            "git restore -SW a",
            "git stash drop",
            "git stash clear",
            "git switch -f main",
            "git switch --discard-changes main",
            "cargo test && git reset --hard",
            "bash -c 'git clean -fd'",
            "env A=b git checkout -- a",
        ];
        let keeping = [
            "git reset",
            "git reset --soft HEAD~1",
            "git reset HEAD a.rs",
            "git clean -n",
            "git clean -nfd",
            "git clean --dry-run -fdx",
            "git checkout main",
            "git checkout feature/login",
            "git checkout -b fix/x.y",
            "git checkout -b new origin/main",
            "git checkout v1.2.3",
            "git restore --staged a.rs",
            "git restore -S .",
            "git stash",
            "git stash pop",
            "git switch main",
            "git switch -c new",
            "git status",
            "git commit -am 'git reset --hard'",
            "echo git clean -fdx",
        ];
        assert_eq!(throwing.iter().filter(|line| !throws_away(line)).collect::<Vec<_>>(), [&""; 0]);
        assert_eq!(keeping.iter().filter(|line| throws_away(line)).collect::<Vec<_>>(), [&""; 0]);
    }

    #[test]
    fn read_only_git_commands_do_not_need_write_access() {
        is(
            GitWrites::Nothing,
            &[
                "git status",
                "git log --oneline | head",
                "git -C sub diff",
                "git branch",
                "git branch -a",
                "git branch --list 'f*'",
                "git tag -l",
                "git stash list",
                "git remote -v",
                "git worktree list",
                "git --version",
                "git config user.name x",
                "git",
                "cargo test",
                "echo git commit",
                "grep 'git commit' README.md",
                "./commit.sh",
            ],
        );
    }

    #[test]
    fn a_repository_may_be_created_only_if_only_git_runs() {
        is(
            GitWrites::Makes,
            &[
                "git init",
                "git init -b main && git add -A && git commit -m first",
                "cd . && git init && git status --short | head",
                "git init -q && git -c user.name=a commit -m first",
            ],
        );
        is(
            GitWrites::Writes,
            &[
                "git init && cargo test",
                "git init --template=x",
                "git -c init.templateDir=x init",
                "git init && echo x > .git/hooks/pre-commit",
                "git init && git config core.fsmonitor ./x",
                "$(x); git init",
                "./git init",
            ],
        );
    }
}
