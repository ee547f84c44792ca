//! Reviews of changes: what to review, the findings, and the requests and updates for a review that runs alongside a
//! session.

use super::{Effort, FileDiff, FileDiffs, Problem, format_count};
use serde::{Deserialize, Serialize};
use std::fmt::Write as _;

/// Options that select the changes to review, each with the placeholder for its value.
const BASE: (&str, &str) = ("--base", "BRANCH");
const COMMIT: (&str, &str) = ("--commit", "COMMIT");
const STAGED: &str = "--staged";

/// Maximum number of paths to name in a note. Any further paths are only counted.
const NAMES: usize = 20;

/// Changes to be reviewed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "subject", content = "name", rename_all = "snake_case")]
pub enum ReviewSubject {
    /// Uncommitted changes or, if there are none, the changes since the default branch.
    Default,
    Staged,
    Base(String),
    Commit(String),
}

impl ReviewSubject {
    /// Parses the arguments of `/review`, which are the same as those of `aye review`.
    ///
    /// # Errors
    /// Returns an error if an argument is unknown, lacks its value, has an invalid value, or conflicts with another
    /// argument.
    pub fn parse(arguments: &str) -> Result<Self, Problem> {
        let mut words = arguments.split_whitespace();
        let mut chosen: Option<(String, Self)> = None;
        while let Some(word) = words.next() {
            let (option, value) = word.split_once('=').map_or((word, None), |(option, value)| (option, Some(value)));
            let mut named = |(name, kind): (&str, &str)| -> Result<(String, String), Problem> {
                let label = format!("{name} <{kind}>");
                let value = value.or_else(|| words.next().filter(|next| !next.starts_with('-')));
                let missing = || Problem::new(format!("a value is required for '{label}' but none was supplied"));
                let name = value.ok_or_else(missing)?;
                let name =
                    revision(name).map_err(|why| Problem::new(format!("invalid value '{name}' for '{label}'")).because(why))?;
                Ok((label, name))
            };
            let (label, subject) = match option {
                "--base" => named(BASE).map(|(label, name)| (label, Self::Base(name)))?,
                "--commit" => named(COMMIT).map(|(label, name)| (label, Self::Commit(name)))?,
                STAGED if value.is_none() => (STAGED.to_owned(), Self::Staged),
                _ => return Err(Problem::new(format!("unexpected argument '{word}' found"))),
            };
            // If an option is repeated, the last one applies.
            if let Some((before, _)) = chosen.replace((label.clone(), subject)).filter(|(before, _)| *before != label) {
                return Err(Problem::new(format!("the argument '{before}' cannot be used with '{label}'")));
            }
        }
        Ok(chosen.map_or(Self::Default, |(_, subject)| subject))
    }
}

/// Validates a revision name, ensuring that git cannot mistake it for an option.
///
/// # Errors
/// If the name is invalid, returns a description of what is valid.
pub fn revision(given: &str) -> Result<String, String> {
    let is_name = |letter: char| letter.is_alphanumeric() || "._/@^~{}+-".contains(letter);
    let is_valid = !given.is_empty() && !given.starts_with('-') && !given.contains("..") && given.chars().all(is_name);
    if is_valid { Ok(given.to_owned()) } else { Err("must be a branch, tag or commit".to_owned()) }
}

/// Severity of a finding, ordered from the most severe.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Severity {
    Critical,
    High,
    Medium,
    Low,
}

impl Severity {
    const ALL: [Self; 4] = [Self::Critical, Self::High, Self::Medium, Self::Low];

    pub fn as_str(self) -> &'static str {
        match self {
            Self::Critical => "critical",
            Self::High => "high",
            Self::Medium => "medium",
            Self::Low => "low",
        }
    }
}

/// The model's confidence in a finding.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Confidence {
    High,
    Medium,
    Low,
}

impl Confidence {
    pub fn as_str(self) -> &'static str {
        match self {
            Self::High => "high",
            Self::Medium => "medium",
            Self::Low => "low",
        }
    }
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Finding {
    /// File path as it appears in the diff.
    pub file: String,
    /// Line number in the new file.
    pub line: usize,
    pub severity: Severity,
    pub confidence: Confidence,
    pub title: String,
    pub explanation: String,
}

impl Finding {
    /// Returns the finding's location, such as `src/main.rs:12`.
    pub fn location(&self) -> String {
        format!("{}:{}", self.file, self.line)
    }

    /// Returns whether the new side of the diff contains the finding's line.
    pub fn is_in(&self, diff: &FileDiff) -> bool {
        let is_in = |start: usize, count: usize| self.line >= start && self.line - start < count;
        diff.name.as_deref() == Some(self.file.as_str()) && diff.hunks.iter().any(|hunk| is_in(hunk.new_start, hunk.new_count))
    }
}

/// Changes under review: the diffs, and the files omitted from them.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ReviewedChanges {
    /// Description of the changes, such as `uncommitted changes`.
    pub title: String,
    pub diffs: FileDiffs,
    /// Changed files that the diffs omit.
    pub left_out: Vec<String>,
}

impl ReviewedChanges {
    /// Returns the title and the number of changed files and lines: `staged changes: 2 files (+3 −1)`.
    pub fn summary(&self) -> String {
        let files = format_count(self.diffs.len() as u64, "file", "files");
        format!("{}: {files} (+{} −{})", self.title, self.diffs.added_lines(), self.diffs.removed_lines())
    }

    /// Returns the message to show if there are no changes to review.
    pub fn no_changes_note(&self) -> String {
        match self.left_out_names() {
            Some(names) => format!("nothing to review in the {}: these files are not text, or too large: {names}", self.title),
            None if self.title.starts_with("commit ") => format!("nothing to review: {} changes no files", self.title),
            None => format!("nothing to review: there are no {}", self.title),
        }
    }

    /// Returns the names of the omitted files, or `None` if there are none. If there are many, only the first ones are
    /// named.
    pub fn left_out_names(&self) -> Option<String> {
        let named: Vec<_> = self.left_out.iter().take(NAMES).map(String::as_str).collect();
        let more = self.left_out.len().saturating_sub(NAMES);
        let more = if more == 0 { String::new() } else { format!(", and {more} more") };
        (!named.is_empty()).then(|| named.join(", ") + &more)
    }
}

/// Result of a review. Findings refer to lines in the diffs.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Review {
    pub changes: ReviewedChanges,
    /// Assessment of the changes as a whole, in one or two sentences.
    pub summary: String,
    /// Findings, most severe first.
    pub findings: Vec<Finding>,
    /// Number of findings that were dropped because they concern files or lines outside the diffs.
    pub dropped: usize,
}

impl Review {
    /// Returns whether any finding is of high or critical severity.
    pub fn is_severe(&self) -> bool {
        self.findings.iter().any(|finding| finding.severity <= Severity::High)
    }

    /// Returns the number of findings, in total and by severity: `3 findings (1 high, 2 low)`.
    pub fn summary(&self) -> String {
        let count = |severity| self.findings.iter().filter(|finding| finding.severity == severity).count();
        let of = |severity: Severity| format!("{} {}", count(severity), severity.as_str());
        let parts: Vec<String> = Severity::ALL.into_iter().filter(|severity| count(*severity) > 0).map(of).collect();
        let all = format_count(self.findings.len() as u64, "finding", "findings");
        if parts.is_empty() { all } else { format!("{all} ({})", parts.join(", ")) }
    }

    /// Returns a note about dropped findings, or `None` if none were dropped.
    pub fn dropped_note(&self) -> Option<String> {
        let count = format_count(self.dropped as u64, "finding", "findings");
        (self.dropped > 0).then(|| format!("dropped: {count} about lines that are not in the diff"))
    }

    /// Formats the findings as text.
    pub fn text(&self) -> String {
        let mut text = String::new();
        for finding in &self.findings {
            let Finding { severity, confidence, title, explanation, .. } = finding;
            let (place, severity, confidence) = (finding.location(), severity.as_str(), confidence.as_str());
            let _ = writeln!(text, "{place}: {severity}: {title} (confidence: {confidence})");
            for line in explanation.lines() {
                let _ = writeln!(text, "    {line}");
            }
        }
        if !self.summary.is_empty() {
            let _ = writeln!(text, "{}", self.summary);
        }
        let _ = writeln!(text, "{}", format_count(self.findings.len() as u64, "finding", "findings"));
        if let Some(note) = self.dropped_note() {
            let _ = writeln!(text, "{note}");
        }
        text
    }
}

/// Request concerning a review that runs independently of the session's task. Only one review can run at a time.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ReviewQuery {
    /// Start a review. The model and effort default to the configured values.
    Start {
        subject: ReviewSubject,
        model: Option<String>,
        effort: Option<Effort>,
    },
    Stop,
}

/// Progress update or result of a review.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "told", content = "content", rename_all = "snake_case")]
pub enum ReviewUpdate {
    /// The changes were read, and the model is starting the review. Contains a summary of the changes.
    Started(String),
    /// Model's current activity, such as `Read src/main.rs`.
    Step(String),
    /// The review ended. If there were no changes, no request was sent to the model.
    Ended(Box<Review>),
    Stopped,
    Failed(Problem),
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn review_arguments_match_the_command_line() {
        for (arguments, expected) in [
            ("", Ok(ReviewSubject::Default)),
            ("--staged", Ok(ReviewSubject::Staged)),
            ("--base main", Ok(ReviewSubject::Base("main".to_owned()))),
            ("--base=origin/main", Ok(ReviewSubject::Base("origin/main".to_owned()))),
            ("--commit HEAD~1", Ok(ReviewSubject::Commit("HEAD~1".to_owned()))),
            ("--base", Err("a value is required for '--base <BRANCH>' but none was supplied")),
            ("--base --staged", Err("a value is required for '--base <BRANCH>' but none was supplied")),
            ("--base a..b", Err("invalid value 'a..b' for '--base <BRANCH>': must be a branch, tag or commit")),
            ("--commit=", Err("invalid value '' for '--commit <COMMIT>': must be a branch, tag or commit")),
            ("--base a --staged", Err("the argument '--base <BRANCH>' cannot be used with '--staged'")),
            ("--staged --staged", Ok(ReviewSubject::Staged)),
            ("--base a --base b", Ok(ReviewSubject::Base("b".to_owned()))),
            ("--staged=yes", Err("unexpected argument '--staged=yes' found")),
            ("the parser", Err("unexpected argument 'the' found")),
        ] {
            let parsed = ReviewSubject::parse(arguments).map_err(|problem| problem.to_string());
            assert_eq!(parsed, expected.map_err(str::to_owned), "{arguments}");
        }
    }

    #[test]
    fn a_review_without_changes_is_reported_in_one_sentence() {
        let changes = |title: &str, left_out: &[&str]| ReviewedChanges {
            title: title.to_owned(),
            left_out: left_out.iter().map(|name| (*name).to_owned()).collect(),
            ..ReviewedChanges::default()
        };
        for (changes, expected) in [
            (changes("staged changes", &[]), "nothing to review: there are no staged changes"),
            (changes("commit HEAD", &[]), "nothing to review: commit HEAD changes no files"),
            (
                changes("staged changes", &["a.png"]),
                "nothing to review in the staged changes: these files are not text, or too large: a.png",
            ),
        ] {
            assert_eq!(changes.no_changes_note(), expected);
        }
    }

    #[test]
    fn findings_are_counted_by_severity() {
        let finding = |severity| Finding {
            file: "a".to_owned(),
            line: 1,
            severity,
            confidence: Confidence::High,
            title: "t".to_owned(),
            explanation: String::new(),
        };
        let review = |all: &[Severity]| Review { findings: all.iter().map(|one| finding(*one)).collect(), ..Review::default() };
        assert_eq!(review(&[]).summary(), "0 findings");
        assert_eq!(review(&[Severity::High]).summary(), "1 finding (1 high)");
        assert_eq!(review(&[Severity::High, Severity::Low, Severity::Low]).summary(), "3 findings (1 high, 2 low)");
    }
}
