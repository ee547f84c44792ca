//! The changes under review. Git runs as a read-only command of aye: in the sandbox, and without programs of the repository.

use crate::cli::args::ReviewSubject;
use crate::host::error::CliError;
use crate::host::tool_runner::{Judged, ToolRunner};
use crate::ports::RunContext;
use crate::protocol::{Arguments, CallId, FileDiff, FileDiffs, Problem, ToolCall, ToolStatus, counted};
use crate::tools::line_hunks;
use serde_json::json;

/// Maximum number of files under review.
const MAX_FILES: usize = 100;
/// Maximum bytes of all differences, because they are in the prompt.
const MAX_BYTES: usize = 256 << 10;
/// Maximum number of paths in a note; the rest are counted.
const NAMES: usize = 20;
/// Possible names of the default branch, the best first.
const DEFAULT_BRANCHES: [&str; 5] = ["origin/HEAD", "origin/main", "origin/master", "main", "master"];
/// Options that keep git from running programs, and paths relative to the workspace.
const DIFF: &str = "git diff --no-color --no-ext-diff --no-textconv --relative";
/// Rows around the output of a command that succeeded.
const PRINTED: &str = "Exit code: 0\n--- stdout ---\n";
const ERRORS: &str = "--- stderr ---";

/// The differences, and what was left out.
pub(super) struct ReviewedChanges {
    /// Name of the reviewed changes: `uncommitted changes`.
    pub title: String,
    pub diffs: FileDiffs,
    /// Changed files that are not among the differences.
    pub left_out: Vec<String>,
}

impl ReviewedChanges {
    /// Reads the changes. Without a subject, these are the uncommitted ones, or else those since the default branch.
    pub(super) async fn collect(runner: &ToolRunner, subject: &ReviewSubject) -> Result<Self, CliError> {
        let git = Git { runner };
        match subject {
            ReviewSubject::Staged => git.changes("staged changes", &format!("{DIFF} --cached"), &[]).await,
            ReviewSubject::Commit(name) => {
                let line = format!("git show --format= --no-color --no-ext-diff --no-textconv --relative {}", quoted(name));
                git.changes(&format!("commit {name}"), &line, &[]).await
            }
            ReviewSubject::Base(name) => git.since(name).await,
            ReviewSubject::Default => {
                let status = git.lines("git status --short --untracked-files=all -- .").await?;
                let untracked: Vec<String> = status.iter().filter_map(|row| row.strip_prefix("?? ")).map(str::to_owned).collect();
                let uncommitted = git.changes("uncommitted changes", &format!("{DIFF} HEAD"), &untracked).await?;
                if !uncommitted.diffs.is_empty() || !uncommitted.left_out.is_empty() {
                    return Ok(uncommitted);
                }
                for name in DEFAULT_BRANCHES {
                    if git.run(&format!("git log -1 --format=%H {name}")).await.is_ok() {
                        return git.since(name).await;
                    }
                }
                Ok(uncommitted)
            }
        }
    }

    pub(super) fn summary(&self) -> String {
        let files = counted(self.diffs.len() as u64, "file", "files");
        format!("{}: {files} (+{} −{})", self.title, self.diffs.added(), self.diffs.removed())
    }

    /// Returns the sentences about what was left out, for the model.
    pub(super) fn notes(&self) -> String {
        if self.left_out.is_empty() {
            return String::new();
        }
        let named: Vec<_> = self.left_out.iter().take(NAMES).map(String::as_str).collect();
        let more = self.left_out.len().saturating_sub(NAMES);
        let more = if more == 0 { String::new() } else { format!(", and {more} more") };
        format!("The diff leaves out these changed files; read them if you need them: {}{more}.\n", named.join(", "))
    }

    pub(super) fn text(&self) -> String {
        self.diffs.to_string()
    }
}

struct Git<'a> {
    runner: &'a ToolRunner,
}

impl Git<'_> {
    async fn since(&self, base: &str) -> Result<ReviewedChanges, CliError> {
        self.changes(&format!("changes since {base}"), &format!("{DIFF} --merge-base {}", quoted(base)), &[]).await
    }

    /// Reads the differences that a line prints, file by file, so that a large one does not hide the others.
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

    /// Returns the difference of a file that git does not know.
    async fn new_file(&self, path: &str) -> Option<FileDiff> {
        let text = self.run(&format!("cat -- {}", quoted(path))).await.ok().filter(|text| !text.contains('\0'))?;
        Some(FileDiff::titled(path, path).created("100644").with_hunks("/dev/null", &format!("b/{path}"), line_hunks("", &text)))
    }

    async fn lines(&self, line: &str) -> Result<Vec<String>, CliError> {
        let text = self.run(line).await.map_err(|why| {
            CliError::usage(Problem::new("cannot read the changes").because(why)).hint("run `aye review` in a git repository")
        })?;
        Ok(text.lines().filter(|line| !line.is_empty()).map(str::to_owned).collect())
    }

    /// Runs a line that only reads, and returns its output.
    async fn run(&self, line: &str) -> Result<String, String> {
        let arguments = Arguments::parse(&json!({"command": line}).to_string());
        let call = ToolCall { tool_call_id: CallId::new("review"), tool_name: "RunCommand".to_owned(), arguments };
        let (plan, permit) = match self.runner.judged(call).await {
            Ok(Judged::Allowed(plan, permit)) => (plan, permit),
            Ok(Judged::Asks(_, question)) => return Err(format!("`{line}` needs approval: {}", question.reason)),
            Err(refused) => return Err(refused.text_for_model()),
        };
        let result = self.runner.run(plan, permit, None, RunContext::unwatched()).await;
        let is_complete = result.status == ToolStatus::Succeeded && result.left_out.is_none();
        let printed = result.output_text.strip_prefix(PRINTED).and_then(|text| text.rsplit_once(ERRORS)).map(|(text, _)| text);
        printed.filter(|_| is_complete).map(str::to_owned).ok_or_else(|| result.text_for_model())
    }
}

/// Quotes a word for the shell.
fn quoted(word: &str) -> String {
    format!("'{}'", word.replace('\'', "'\\''"))
}
