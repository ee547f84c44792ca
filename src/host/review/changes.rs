//! Determines the changes to review. git is run as a read-only command in the sandbox, without starting any programs of
//! the repository.

use crate::host::error::CliError;
use crate::host::tool_runner::{CallVerdict, ToolRunner};
use crate::ports::RunContext;
use crate::protocol::{
    CallArguments, CallId, FileDiff, FileDiffs, Problem, ReviewSubject, ReviewedChanges, ToolCall, ToolStatus,
};
use crate::tools::line_hunks;
use serde_json::json;

/// Maximum number of files under review.
const MAX_FILES: usize = 100;
/// Maximum total size of the diffs in bytes, limited because they are part of the prompt.
const MAX_BYTES: usize = 256 << 10;
/// Possible names of the default branch, in order of preference.
const DEFAULT_BRANCHES: [&str; 5] = ["origin/HEAD", "origin/main", "origin/master", "main", "master"];
/// Diff command with options that prevent git from running other programs and that make paths relative to the
/// workspace.
const DIFF: &str = "git diff --no-color --no-ext-diff --no-textconv --relative";
/// Command that fails if the repository has no commits.
const HEAD: &str = "git log -1 --format=%H";
/// Text that precedes the output of a successful command.
const PRINTED: &str = "Exit code: 0\n--- stdout ---\n";
const ERRORS: &str = "--- stderr ---";
/// Labels of git errors.
const LABELS: [&str; 2] = ["fatal", "error"];

/// Reads the changes to review. If no subject is given, these are the uncommitted changes or, if there are none, the
/// changes since the default branch.
///
/// # Errors
/// Returns an error if git cannot read the changes, or if the policy does not allow reading them.
pub(crate) async fn collect(runner: &ToolRunner, subject: &ReviewSubject) -> Result<ReviewedChanges, CliError> {
    let git = ReviewGit { runner };
    // Outside a repository, `git diff` compares files instead and prints its usage, so `git status` runs first.
    let status = git.lines("git status --short --untracked-files=all -- .").await?;
    match subject {
        ReviewSubject::Staged => git.changes("staged changes", &format!("{DIFF} --cached"), &[]).await,
        ReviewSubject::Commit(name) => {
            let line = format!("git show --format= --no-color --no-ext-diff --no-textconv --relative {}", quoted(name));
            git.changes(&format!("commit {name}"), &line, &[]).await
        }
        ReviewSubject::Base(name) => git.changes_since(name).await,
        ReviewSubject::Default => {
            let untracked: Vec<String> = status.iter().filter_map(|row| row.strip_prefix("?? ")).map(str::to_owned).collect();
            // Before the first commit, all files are staged or untracked.
            let against = if git.run(HEAD).await.is_ok() { "HEAD" } else { "--cached" };
            let uncommitted = git.changes("uncommitted changes", &format!("{DIFF} {against}"), &untracked).await?;
            if !uncommitted.diffs.is_empty() || !uncommitted.left_out.is_empty() {
                return Ok(uncommitted);
            }
            for name in DEFAULT_BRANCHES {
                if git.run(&format!("git log -1 --format=%H {name}")).await.is_ok() {
                    return git.changes_since(name).await;
                }
            }
            Ok(uncommitted)
        }
    }
}

struct ReviewGit<'a> {
    runner: &'a ToolRunner,
}

impl ReviewGit<'_> {
    async fn changes_since(&self, base: &str) -> Result<ReviewedChanges, CliError> {
        self.changes(&format!("changes since {base}"), &format!("{DIFF} --merge-base {}", quoted(base)), &[]).await
    }

    /// Reads the diffs one file at a time, so that a large diff does not displace other files.
    async fn changes(&self, title: &str, line: &str, untracked: &[String]) -> Result<ReviewedChanges, CliError> {
        let mut changes = ReviewedChanges { title: title.to_owned(), diffs: FileDiffs::default(), left_out: Vec::new() };
        let mut bytes = 0;
        let tracked = self.lines(&format!("{line} --name-only")).await?;
        let files = tracked.iter().map(|path| (path, false)).chain(untracked.iter().map(|path| (path, true)));
        for (number, (path, is_new)) in files.enumerate() {
            // Git quotes unusual names.
            if number >= MAX_FILES || bytes >= MAX_BYTES || path.starts_with('"') {
                changes.left_out.push(path.clone());
                continue;
            }
            let diff = if is_new { self.new_file(path).await } else { self.changed_file(line, path).await };
            match diff.filter(|diff| bytes + diff.text_bytes() <= MAX_BYTES && !diff.hunks.is_empty()) {
                Some(diff) => {
                    bytes += diff.text_bytes();
                    changes.diffs.push(diff);
                }
                None => changes.left_out.push(path.clone()),
            }
        }
        Ok(changes)
    }

    async fn changed_file(&self, line: &str, path: &str) -> Option<FileDiff> {
        let text = self.run(&format!("{line} -- {}", quoted(path))).await.ok()?;
        FileDiffs::read(&text).into_iter().find(|diff| diff.name.as_deref() == Some(path))
    }

    /// Returns the diff of an untracked file.
    async fn new_file(&self, path: &str) -> Option<FileDiff> {
        let text = self.run(&format!("cat -- {}", quoted(path))).await.ok().filter(|text| !text.contains('\0'))?;
        Some(FileDiff::with_title(path, path).created("100644").with_hunks(
            "/dev/null",
            &format!("b/{path}"),
            line_hunks("", &text),
        ))
    }

    async fn lines(&self, line: &str) -> Result<Vec<String>, CliError> {
        let text = self.run(line).await.map_err(unreadable)?;
        Ok(text.lines().filter(|line| !line.is_empty()).map(str::to_owned).collect())
    }

    /// Runs a read-only command line, and returns its output.
    async fn run(&self, line: &str) -> Result<String, String> {
        let arguments = CallArguments::parse(&json!({"command": line}).to_string());
        let call = ToolCall { tool_call_id: CallId::new("review"), tool_name: "RunCommand".to_owned(), arguments };
        let (plan, permit) = match self.runner.judge(call).await {
            Ok(CallVerdict::Allowed(plan, permit)) => (plan, permit),
            Ok(CallVerdict::Asks(_, question)) => return Err(format!("`{line}` needs approval: {}", question.reason)),
            Err(refused) => return Err(refused.text_for_model()),
        };
        let result = self.runner.run(plan, permit, None, RunContext::detached()).await;
        let is_complete = result.status == ToolStatus::Succeeded && result.left_out.is_none();
        let printed = result.output_text.strip_prefix(PRINTED).and_then(|text| text.rsplit_once(ERRORS)).map(|(text, _)| text);
        printed.filter(|_| is_complete).map(str::to_owned).ok_or_else(|| result.text_for_model())
    }
}

/// Converts an error from git or the policy, adding a hint.
fn unreadable(why: String) -> CliError {
    let errors = why.split_once(ERRORS).map_or("", |(_, errors)| errors).lines();
    let told = errors.filter_map(|line| line.split_once(": ").filter(|(label, _)| LABELS.contains(label)));
    let told = told.map(|(_, message)| message).next();
    let why = told.map_or_else(|| why.clone(), str::to_owned);
    let hint = if why.starts_with("not a git repository") {
        "run `git init`, or start aye in a git repository"
    } else if told.is_some() {
        "specify a branch or commit that `git log` accepts"
    } else {
        "check that git is installed, and that the policy allows commands that only read"
    };
    CliError::usage(Problem::new("cannot read the changes").because(why).hint(hint))
}

/// Quotes a word for a shell.
fn quoted(word: &str) -> String {
    format!("'{}'", word.replace('\'', "'\\''"))
}
