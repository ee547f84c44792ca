//! `aye policy redact`: redacts text read from stdin, to try out a `[[redaction]]`.

use crate::host::console::{print_json, print_text, warn};
use crate::host::context::AppContext;
use crate::host::error::CliError;
use crate::host::exit::Exit;
use crate::host::options::Common;
use crate::host::redaction;
use crate::policy::Sandbox;
use crate::policy::redact::{Redactor, has_marker};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use std::fmt::Display;
use std::io::{BufRead, Read};

/// Maximum size of the text in bytes, limited because the whole text is read into memory.
const TEXT_BYTES: u64 = 256 << 20;

#[derive(Deserialize)]
struct Line {
    id: Option<Box<RawValue>>,
    text: String,
    /// Additional values to redact, regardless of their form.
    #[serde(default, rename = "knownValues", alias = "known_values")]
    known_values: Vec<String>,
}

#[derive(Serialize)]
struct RedactionReport {
    kind: String,
    count: usize,
}

#[derive(Serialize)]
struct Answer {
    id: Option<Box<RawValue>>,
    text: String,
    redacted: Vec<RedactionReport>,
}

pub(crate) fn run(app: &AppContext, common: &Common, jsonl: bool) -> Result<Exit, CliError> {
    let policy = super::load_policy(app, common)?;
    let rules = app.enforcer(&policy, Sandbox::Absent, app.mode).redactions();
    let redactor = redaction::redactor(app, rules.clone(), &[]);
    let input = std::io::stdin().lock();
    if !jsonl {
        return Ok(redact_text(&redactor, &read_text(input, TEXT_BYTES)?));
    }
    for (number, line) in input.lines().enumerate() {
        let line = line.map_err(|error| CliError::usage(format!("cannot read stdin: {error}")))?;
        let line: Line = serde_json::from_str(&line)
            .map_err(|error| CliError::usage(format!("line {}: {error}; expected {{\"id\": …, \"text\": \"…\"}}", number + 1)))?;
        if line.known_values.is_empty() {
            answer(&redactor, line);
        } else {
            answer(&redaction::redactor(app, rules.clone(), &line.known_values), line);
        }
    }
    Ok(Exit::Completed)
}

/// Reads text of up to `limit` bytes.
fn read_text(input: impl Read, limit: u64) -> Result<String, CliError> {
    let unreadable = |error: &dyn Display| CliError::usage(format!("cannot read stdin: {error}"));
    let mut bytes = Vec::new();
    input.take(limit + 1).read_to_end(&mut bytes).map_err(|error| unreadable(&error))?;
    if bytes.len() as u64 > limit {
        let problem = format!("stdin is larger than {} MiB", limit >> 20);
        return Err(CliError::usage(problem).hint("split the text, or pass it as lines of JSON with `--jsonl`"));
    }
    String::from_utf8(bytes).map_err(|error| unreadable(&error))
}

fn answer(redactor: &Redactor, line: Line) {
    let hidden = redactor.redact(&line.text);
    let redacted = hidden.found.into_iter().map(|found| RedactionReport { kind: found.kind, count: found.count }).collect();
    print_json(&Answer { id: line.id, text: hidden.text.into_owned(), redacted });
}

fn redact_text(redactor: &Redactor, text: &str) -> Exit {
    let hidden = redactor.redact(text);
    print_text(&hidden.text);
    let kinds: Vec<String> = hidden.found.iter().map(|found| format!("{} {}", found.count, found.kind)).collect();
    match (kinds.is_empty(), has_marker(text)) {
        (false, _) => warn(format!("redacted {}", kinds.join(", "))),
        (true, None) => warn("nothing to redact"),
        (true, Some(_)) => warn("nothing left to redact: the rest is already redacted"),
    }
    Exit::Completed
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_that_is_larger_than_the_limit_is_refused() {
        let limit = 1 << 20;
        let text = "a".repeat(limit as usize);
        assert_eq!(read_text(text.as_bytes(), limit).unwrap(), text);
        let error = read_text(format!("{text}a").as_bytes(), limit).unwrap_err();
        assert_eq!(error.exit, Exit::Usage);
        let says = "stdin is larger than 1 MiB; split the text, or pass it as lines of JSON with `--jsonl`";
        assert_eq!(error.into_problem().one_line(), says);
        let error = read_text(&b"\xff"[..], limit).unwrap_err().into_problem().one_line();
        assert!(error.starts_with("cannot read stdin: invalid utf-8"), "{error}");
    }
}
