//! Plan documents: Markdown that ends with lists of files, commands and hosts.

use crate::protocol::{Action, PLAN_LISTS, PlanLine, PlanSubject, TaskPlan};
use crate::tools::paths::{ExpectedKind, Paths};
use crate::tools::shell::preview::copy_obstacle;
use sha2::{Digest, Sha256};
use std::fmt::Write;

/// Maximum size of a document in bytes.
const MAX_BYTES: usize = 64 << 10;
/// Maximum number of lines in all three sections together.
const MAX_LINES: usize = 100;
/// Maximum number of characters in a title.
const TITLE_CHARS: usize = 80;

/// Builds a document from its text and from the files, commands and hosts.
///
/// # Errors
/// Returns a description of the problem if the text or one of the entries is invalid.
pub(super) fn render(text: &str, named: [&[String]; 3]) -> Result<String, String> {
    if text.trim().is_empty() {
        return Err("`plan` is empty; describe what you will do".to_owned());
    }
    let mut document = format!("{}\n", text.trim());
    for ((heading, lines), argument) in PLAN_LISTS.iter().zip(named).zip(["files", "commands", "hosts"]) {
        if lines.is_empty() {
            continue;
        }
        // Writing to a string cannot fail.
        let _ = writeln!(document, "\n{heading}\n");
        for (at, line) in lines.iter().enumerate() {
            let line = line.trim();
            if line.is_empty() || line.contains(char::is_control) {
                return Err(format!("`{argument}[{at}]` must be one line that is not empty"));
            }
            let _ = writeln!(document, "- {line}");
        }
    }
    Ok(document)
}

/// Parses a document as it was built, or as the user has edited it.
///
/// # Errors
/// Returns an error if the document is empty or too long.
pub(super) fn read(text: String, paths: &Paths<'_>) -> Result<TaskPlan, String> {
    if text.trim().is_empty() {
        return Err("the plan is empty; deny it instead".to_owned());
    }
    if text.len() > MAX_BYTES {
        return Err(format!("the plan is {} bytes; the limit is {MAX_BYTES}, so shorten it", text.len()));
    }
    let subjects = subjects(&text);
    if subjects.len() > MAX_LINES {
        return Err(format!("the plan names {} files, commands and hosts; the limit is {MAX_LINES}", subjects.len()));
    }
    let no_copies = copy_obstacle(paths.settings).map(|why| format!("commands cannot run in a copy of the workspace: {why}"));
    let line = |subject: PlanSubject| {
        let obstacle = no_copies.clone().filter(|_| matches!(subject, PlanSubject::Command(_)));
        PlanLine { action: action(&subject, paths), subject, obstacle }
    };
    let lines = subjects.into_iter().map(line).collect();
    let digest = Sha256::digest(text.as_bytes()).iter().fold(String::new(), |mut hex, byte| {
        // Writing to a string cannot fail.
        let _ = write!(hex, "{byte:02x}");
        hex
    });
    Ok(TaskPlan { text, digest, lines })
}

/// Returns the first non-empty line of a document, which serves as its title.
pub(super) fn title(text: &str) -> String {
    let lines = text.lines().map(|line| line.trim().trim_start_matches('#').trim());
    let line = lines.into_iter().find(|line| !line.is_empty()).unwrap_or_default();
    if line.chars().count() <= TITLE_CHARS {
        return line.to_owned();
    }
    line.chars().take(TITLE_CHARS - 1).chain(['…']).collect()
}

/// Returns the files, commands and hosts in a document: the list items below the respective headings.
fn subjects(text: &str) -> Vec<PlanSubject> {
    let (mut section, mut subjects) = (None, Vec::new());
    for line in text.lines() {
        let line = line.trim_end();
        if line.starts_with('#') {
            section = PLAN_LISTS.iter().position(|heading| line.eq_ignore_ascii_case(heading));
            continue;
        }
        let Some(name) = line.trim_start().strip_prefix("- ").map(|name| unquoted(name.trim())) else { continue };
        let subject = match section {
            Some(0) => PlanSubject::File(name),
            Some(1) => PlanSubject::Command(name),
            Some(_) => PlanSubject::Host(name),
            None => continue,
        };
        if !subjects.contains(&subject) {
            subjects.push(subject);
        }
    }
    subjects
}

/// Removes the backticks around an entry if they enclose it as a whole.
fn unquoted(name: &str) -> String {
    let inner = name.strip_prefix('`').and_then(|rest| rest.strip_suffix('`'));
    inner.filter(|inner| !inner.contains('`')).unwrap_or(name).to_owned()
}

/// Returns the action that a list item describes.
///
/// # Errors
/// Returns the reason if the item does not describe an action.
fn action(subject: &PlanSubject, paths: &Paths<'_>) -> Result<Action, String> {
    match subject {
        PlanSubject::File(path) => {
            if path.contains(['*', '?', '[', '{']) {
                return Err("the entry is a pattern; name each file".to_owned());
            }
            if path.len() > 1 && path.ends_with('/') {
                return Err("the entry is a directory; name each file".to_owned());
            }
            // An existing directory is then reported as too broad, not as a wrong argument.
            let target = paths.target("files", path, ExpectedKind::Directory).map_err(|error| error.message)?;
            Ok(Action::Write { target })
        }
        PlanSubject::Command(line) => {
            let cwd = paths.target("cwd", ".", ExpectedKind::Directory).map_err(|error| error.message)?;
            Ok(Action::Exec { command: line.clone(), cwd })
        }
        PlanSubject::Host(host) => {
            if host.contains('*') {
                return Err("the entry is a pattern; name each host".to_owned());
            }
            let is_host = |letter: char| letter.is_ascii_alphanumeric() || "-._:[]".contains(letter);
            if !host.chars().all(is_host) {
                return Err("the entry is not a host name, such as `docs.rs`".to_owned());
            }
            Ok(Action::Fetch { url: format!("https://{host}/"), method: "GET".to_owned() })
        }
    }
}
