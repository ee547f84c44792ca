//! Git commands that write to their repository. The sandbox makes the repository writable for them.

use super::shell::option_verdict::OptionVerdict;
use super::shell::options::check_options;
use super::shell::{Arg, COMPUTED, Invocation, SimpleCommand, read};
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
/// Subcommands that write and that run no program named in their words, apart from those with a check of their own.
const WRITING: &[&str] = &[
    "add",
    "am",
    "apply",
    "bisect",
    "branch",
    "checkout",
    "checkout-index",
    "cherry-pick",
    "clean",
    "clone",
    "commit",
    "commit-tree",
    "fetch",
    "gc",
    "init",
    "maintenance",
    "merge",
    "mv",
    "notes",
    "pack-refs",
    "prune",
    "pull",
    "push",
    "read-tree",
    "rebase",
    "reflog",
    "remote",
    "repack",
    "replace",
    "rerere",
    "reset",
    "restore",
    "revert",
    "rm",
    "sparse-checkout",
    "stash",
    "submodule",
    "switch",
    "symbolic-ref",
    "tag",
    "update-index",
    "update-ref",
    "worktree",
    "write-tree",
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

/// Programs that only run the command in their arguments.
const PASSING: &[&str] = &["command", "nice", "time", "timeout"];

/// Options with which git runs a program or writes to a file that the line names.
const PROGRAM_OPTIONS: &[&str] = &[
    "--config",
    "--config-env",
    "--exec",
    "--exec-path",
    "--ext-diff",
    "--open-files-in-pager",
    "--output",
    "--receive-pack",
    "--template",
    "--upload-pack",
];

/// Options that make git copy programs or settings from elsewhere into a new repository.
const PROGRAMS: &[&str] = &["--template", "--config", "--exec-path"];

/// Returns the access that the git commands in a line need, including git commands that are run by wrappers.
pub fn git_writes(line: &str) -> GitWrites {
    let line = read(line);
    let all = || line.parts.iter().flat_map(|part| &part.invocations);
    let named = all().filter_map(subcommand).map(|(name, words)| (name, writes(name, words)));
    let (mut found, mut makes) = (GitWrites::Nothing, false);
    for (name, writes) in named {
        makes |= name == "init";
        if writes {
            found = GitWrites::Writes;
        }
    }
    let plain = line.floors.is_empty() && line.parts.iter().all(|part| part.floors.is_empty() && part.redirects.is_empty());
    let harmless =
        |one: &Invocation| BESIDE.contains(&one.base()) || matches!(check_options(&one.argv), OptionVerdict::Reads { .. });
    let alone = all().all(|one| !one.wrapped && one.argv[0].text == one.base() && harmless(one));
    let free = all().any(|one| {
        one.argv.windows(2).any(|pair| match pair {
            [before, word] if before.text == "-c" => !word.text.starts_with("user."),
            [_, word] => word.text == "config" || PROGRAMS.iter().any(|odd| word.text.starts_with(odd)),
            _ => false,
        })
    });
    if makes && plain && alone && !free { GitWrites::Makes } else { found }
}

/// Returns whether a line contains a git command that changes the settings of the repository, such as its remotes or
/// the upstream of a branch. The sandbox never makes these settings writable.
pub fn git_changes_settings(line: &str) -> bool {
    let changes = |invocation: &Invocation| {
        let Some((name, words)) = subcommand(invocation) else { return false };
        let first = words.first().map_or("", |word| word.text.as_str());
        match name {
            "remote" => ["add", "remove", "rm", "rename", "set-url", "set-branches"].contains(&first),
            "branch" => words.iter().any(|word| {
                let option = word.text.split('=').next().unwrap_or_default();
                matches!(option, "-u" | "--set-upstream-to" | "--unset-upstream")
            }),
            _ => false,
        }
    };
    read(line).parts.iter().flat_map(|part| &part.invocations).any(changes)
}

/// Returns whether a line that contains git commands that write also runs other programs that may write, or writes to
/// files itself.
pub(super) fn mixes_git_writes(line: &str) -> bool {
    let line = read(line);
    let all = || line.parts.iter().flat_map(|part| &part.invocations);
    if !all().filter_map(subcommand).any(|(name, words)| writes(name, words)) {
        return false;
    }
    let is_plain = |one: &Invocation| {
        let base = one.base();
        let reads = || matches!(check_options(&one.argv), OptionVerdict::Reads { .. });
        one.argv[0].text == base && (BESIDE.contains(&base) || PASSING.contains(&base) || reads()) && !runs_other_program(one)
    };
    let is_plain_part = |part: &SimpleCommand| {
        !part.unknown_code
            && !part.reads_code
            && !part.renames
            && !part.floors.contains(&COMPUTED)
            && part.redirects.iter().all(|redirect| redirect.reads_only)
            && !part.variables.iter().any(|name| changes_programs(name))
            && part.invocations.iter().all(is_plain)
    };
    line.hopeless || !line.parts.iter().all(is_plain_part)
}

/// Returns whether a git command may run a program that its words name, or that an alias stands for.
fn runs_other_program(invocation: &Invocation) -> bool {
    if invocation.base() != "git" {
        return false;
    }
    let is_setting = |pair: &[Arg]| match pair {
        [option, setting] => option.text == "-c" && !setting.text.starts_with("user."),
        _ => false,
    };
    let found = subcommand(invocation);
    // After the subcommand, `-c` has another meaning, as in `git switch -c NAME`.
    let general = invocation.argv.len() - found.map_or(0, |(_, words)| words.len() + 1);
    let is_set = invocation.argv[..general].windows(2).any(is_setting);
    if is_set || invocation.argv.iter().any(|word| is_program_option(&word.text)) {
        return true;
    }
    let Some((name, words)) = found else { return false };
    let has = |text: &str| words.iter().any(|word| word.text == text);
    let has_short = |letters: &[char]| {
        let mut clusters = words.iter().filter_map(|word| word.text.strip_prefix('-')).filter(|rest| !rest.starts_with('-'));
        clusters.any(|cluster| cluster.contains(letters))
    };
    match name {
        "rebase" => has_short(&['x']),
        "grep" => has_short(&['O']),
        // The options `-c` and `-u` set a variable and a program.
        "clone" => has_short(&['c', 'u']),
        "bisect" => has("run"),
        "submodule" => has("foreach"),
        _ => !READING.contains(&name) && !WRITING.contains(&name),
    }
}

/// Returns whether a word may be an option with which git runs a program or writes to a file that the word names. Git
/// accepts abbreviated options.
fn is_program_option(word: &str) -> bool {
    let name = word.split_once('=').map_or(word, |(name, _)| name);
    name.len() > 2 && name.starts_with("--") && PROGRAM_OPTIONS.iter().any(|option| option.starts_with(name))
}

/// Returns whether a variable can determine which programs git runs.
fn changes_programs(name: &str) -> bool {
    let is_author = name.starts_with("GIT_AUTHOR_") || name.starts_with("GIT_COMMITTER_");
    (name.starts_with("GIT_") && !is_author)
        || name.starts_with("LD_")
        || name.starts_with("SSH_")
        || matches!(name, "PATH" | "EDITOR" | "VISUAL" | "PAGER" | "HOME" | "XDG_CONFIG_HOME" | "SHELL" | "ENV" | "BASH_ENV")
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

/// Commit that a line makes.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct PlannedCommit {
    pub message: Option<String>,
    /// Whether the commit includes all changed files that git tracks.
    pub all: bool,
    /// Whether `git add` changes the index first, in which case the files of the commit are not known yet.
    pub adds: bool,
}

/// Returns the commit that a line makes. Returns `None` if the line contains commands other than one `git commit` and
/// preceding `git add` commands, or if the commit has unusual options, such as `--amend` or paths.
pub fn planned_commit(line: &str) -> Option<PlannedCommit> {
    let line = read(line);
    let only = |part: &SimpleCommand| match part.invocations.as_slice() {
        [one] if part.redirects.is_empty() && part.variables.is_empty() && !part.piped => Some(one.argv.clone()),
        _ => None,
    };
    let (last, before) = line.parts.split_last().filter(|_| line.floors.is_empty())?;
    if !before.iter().all(|part| only(part).is_some_and(|argv| is_plain_add(&argv))) {
        return None;
    }
    let argv = only(last)?;
    let [git, commit, words @ ..] = argv.as_slice() else { return None };
    if git.text != "git" || commit.text != "commit" || argv.iter().any(|word| word.glob || !word.is_known()) {
        return None;
    }
    let mut found = PlannedCommit { adds: !before.is_empty(), ..PlannedCommit::default() };
    let mut words = words.iter().map(|word| word.text.as_str());
    while let Some(word) = words.next() {
        let message = match word {
            "-a" | "--all" => {
                found.all = true;
                continue;
            }
            "-q" | "--quiet" | "-v" | "--verbose" | "-s" | "--signoff" => continue,
            "-am" => {
                found.all = true;
                words.next()?
            }
            "-m" | "--message" => words.next()?,
            _ => word.strip_prefix("--message=")?,
        };
        found.message.get_or_insert_with(|| message.to_owned());
    }
    Some(found)
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
        "read-tree" => has(&["--reset"], None),
        "restore" => !has(&["--staged"], Some('S')) || has(&["--worktree"], Some('W')),
        "stash" => drops_stash(invocation),
        "switch" => has(&["--force", "--discard-changes"], Some('f')),
        "worktree" => words.first().is_some_and(|word| word.text == "remove") && has(&["--force"], Some('f')),
        _ => false,
    }
}

/// Returns whether a git command deletes stashed changes.
pub(super) fn drops_stash(invocation: &Invocation) -> bool {
    let Some(("stash", words)) = subcommand(invocation) else { return false };
    words.first().is_some_and(|word| matches!(word.text.as_str(), "drop" | "clear"))
}

/// Returns whether a git command can make a branch or another reference point to another commit, regardless of the
/// commits that it contains.
pub(super) fn overwrites_reference(invocation: &Invocation) -> bool {
    let Some((name, words)) = subcommand(invocation) else { return false };
    let has = |long: &[&str], short: &[char]| {
        words.iter().take_while(|word| word.text != "--").any(|word| {
            let text = word.text.as_str();
            let cluster = text.strip_prefix('-').filter(|rest| !rest.starts_with('-'));
            long.contains(&text) || cluster.is_some_and(|letters| letters.contains(short))
        })
    };
    match name {
        "checkout" => has(&[], &['B']),
        "switch" => has(&["--force-create"], &['C']),
        "branch" => has(&["--force"], &['M', 'C', 'f']),
        "tag" => has(&["--force"], &['f']),
        "update-ref" | "replace" => !words.is_empty(),
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
    fn a_plain_commit_is_recognized_with_its_message() {
        let commit = |message: Option<&str>, all, adds| Some(PlannedCommit { message: message.map(str::to_owned), all, adds });
        for (line, expected) in [
            ("git commit -m 'Add x'", commit(Some("Add x"), false, false)),
            ("git commit -am 'Add x'", commit(Some("Add x"), true, false)),
            ("git commit -q -a --message='a b' -m c", commit(Some("a b"), true, false)),
            ("git add -A && git commit -m x", commit(Some("x"), false, true)),
            ("git commit", commit(None, false, false)),
            ("git commit --amend -m x", None),
            ("git commit -m x src/a.rs", None),
            ("git commit -m \"$MESSAGE\"", None),
            ("git commit -m x && git push", None),
            ("make && git commit -m x", None),
            ("git commit -m x > log", None),
            ("git -C sub commit -m x", None),
        ] {
            assert_eq!(planned_commit(line), expected, "{line}");
        }
    }

    #[test]
    fn commands_that_change_the_settings_of_a_repository_are_detected() {
        for line in ["git remote add x y", "git fetch; git -C sub remote set-url x y", "git branch --set-upstream-to=x/y"] {
            assert!(git_changes_settings(line), "{line}");
        }
        for line in ["git remote -v", "git remote", "git branch x", "git status", "echo git remote add x y"] {
            assert!(!git_changes_settings(line), "{line}");
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
    fn lines_that_mix_git_writes_with_other_writing_programs_are_detected() {
        let mixed = [
            "git add README.md; python3 t.py",
            "make && git add .",
            "echo x > README.md; git add README.md",
            "git log > x; git add x",
            "git checkout -b x && touch y",
            "git rebase -x 'python3 t.py' HEAD~1",
            "git rebase --exec='python3 t.py' HEAD~1",
            "git rebase -ix 'python3 t.py' HEAD~1",
            "git rebase --exe='python3 t.py' HEAD~1",
            "git fetch --upload='python3 t.py' .",
            "git clone -u 'python3 t.py' . x",
            "git grep -O'python3 t.py' x; git stash",
            "git diff --output=README.md; git add README.md",
            "git bisect run python3 t.py",
            "timeout 5 python3 t.py; git stash",
            "git -c alias.x='!python3 t.py' x",
            "git -c core.editor='python3 t.py' commit",
            "git an-alias",
            "GIT_EDITOR='python3 t.py' git commit",
            "bash -c 'git stash; python3 t.py'",
            "./git add .",
            "$x; git add .",
        ];
        let plain = [
            "git add -A && git commit -m x | tail -1",
            "cd sub && git add . 2>/dev/null",
            "git -c user.name=x commit -m y",
            "timeout 5 git merge x",
            "[ -f x ] && git add x",
            "git ls-files --exclude=x; git stash",
            "git switch -c x && git commit -m y",
            "git clone --depth 1 -q . x",
            "git commit -m \"$(cat <<'EOF'\ntext\nEOF\n)\"",
            "git status; git stash",
            // These lines do not write to a repository.
            "python3 t.py",
            "git log > x",
        ];
        assert_eq!(mixed.iter().filter(|line| !mixes_git_writes(line)).collect::<Vec<_>>(), [&""; 0]);
        assert_eq!(plain.iter().filter(|line| mixes_git_writes(line)).collect::<Vec<_>>(), [&""; 0]);
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
