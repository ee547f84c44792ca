//! Which lines name a git command that writes to its repository, so that the sandbox has to open it for them.

use super::shell::options::{Reading, reading};
use super::shell::{Arg, Invocation, read};

/// What the git commands of a line need of a repository.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub enum GitWrites {
    /// No git command of it writes there.
    #[default]
    Nothing,
    /// Objects, references, the index.
    Writes,
    /// It makes a repository, and nothing but git runs, so that what it makes is git's own.
    Makes,
}

/// Options of git itself whose value is the next word.
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
/// Subcommands that write nothing in a repository, or nothing that is ever opened.
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
/// Words after which these subcommands only list or show.
const SHOWING: &[(&str, &[&str])] = &[
    ("bisect", &["log", "view", "visualize", "terms"]),
    ("notes", &["list", "show"]),
    ("reflog", &["show", "list", "exists"]),
    ("remote", &["-v", "--verbose", "show", "get-url"]),
    ("stash", &["list", "show"]),
    ("submodule", &["status", "summary"]),
    ("worktree", &["list"]),
];
/// Options with which these list.
const LISTING: &[(&str, &[&str])] = &[
    ("branch", &["-a", "--all", "-r", "--remotes", "-v", "-vv", "--verbose", "-l", "--list", "--show-current", "--contains"]),
    ("tag", &["-l", "--list", "-n", "--contains", "--points-at"]),
];
/// Programs beside which a repository may be made, as beside those that only read: they write nowhere.
const BESIDE: &[&str] = &["git", "cd", "echo", "printf", "true"];

/// Words by which git would take programs or settings from elsewhere into what it makes.
const PROGRAMS: &[&str] = &["--template", "--config", "--exec-path"];

/// What the git commands of this line need, seen through wrappers as any command is.
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
    let harmless = |one: &Invocation| BESIDE.contains(&one.base()) || matches!(reading(&one.argv), Reading::Reads { .. });
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

/// The subcommand of a git invocation and the words after it.
fn subcommand(invocation: &Invocation) -> Option<(&str, &[Arg])> {
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

/// What is not known to write nothing counts as writing: the person sees the words, and the hooks stay shut.
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
        // `git branch -v x` makes a branch, `git branch --list x` does not.
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
    fn a_line_that_names_a_git_command_that_writes_needs_the_repository() {
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
    fn what_only_reads_needs_nothing() {
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
    fn a_repository_is_made_only_where_nothing_but_git_runs() {
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
