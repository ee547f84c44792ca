//! Diagnostics: all errors in a bundle at once. The parser stops at the first error, so its value is replaced with a
//! valid one, or else its line is removed, and the rest is parsed again.

use super::bundle::{Bundle, BundleError, MISSING_VERSION};
use std::borrow::Cow;
use std::ops::Range;
use toml::de::DeTable;

/// Maximum number of reported errors.
const MAX: usize = 50;
/// Size, in bytes, above which only the first error is reported.
const MAX_BYTES: usize = 256 * 1024;

const VERSION: &str = "schema_version = 1\n";
/// Values that may be valid in place of an invalid one.
const SUBSTITUTES: &[&str] = &["[\"x\"]", "\"x\"", "\"allow\"", "true", "1"];
/// Keys of rules whose validity depends on other keys of the rule.
const DEPENDENT_KEYS: &[&str] = &["match", "not_match", "args", "sandboxed", "hosts", "exact", "approve"];

impl Bundle {
    /// Returns the errors in line order, omitting those that merely result from other errors.
    pub fn mistakes(text: &str, name: &str) -> Vec<BundleError> {
        if text.len() > MAX_BYTES {
            return Self::parse(text, name).err().into_iter().collect();
        }
        let mut file = Repaired { name, version: "", lines: text.lines().map(Cow::Borrowed).collect() };
        let mut found: Vec<BundleError> = Vec::new();
        // Headers of tables with removed lines, and of tables with substituted values. An error about the whole table or
        // about a key that depends on others may only follow from these changes.
        let (mut torn, mut substituted): (Vec<usize>, Vec<usize>) = (Vec::new(), Vec::new());
        while found.len() < MAX {
            let Some(error) = file.first_error() else { break };
            if error.message == MISSING_VERSION && file.version.is_empty() {
                file.version = VERSION;
                found.push(error);
                continue;
            }
            let Some(at) = error.line.and_then(|line| line.checked_sub(1)).filter(|at| *at < file.lines.len()) else {
                if found.is_empty() {
                    found.push(error);
                }
                break;
            };
            let header = find_header(&file.lines, at);
            let is_changed = |tables: &[usize]| header.is_some_and(|header| tables.contains(&header));
            let is_substitute = matches!(file.lines[at], Cow::Owned(_));
            let follows = is_substitute
                || header == Some(at) && is_changed(&torn)
                || is_dependent(&file.lines[at]) && is_changed(&substituted);
            let Some(taken) = find_faulty_section(&file.lines, at) else {
                found.push(error);
                break;
            };
            if !follows {
                found.push(error);
            }
            torn.extend(header);
            // No value is replaced twice, so this ends.
            if taken == (at..at + 1) && matches!(file.lines[at], Cow::Borrowed(_)) && file.substitute(at) {
                substituted.extend(header);
                continue;
            }
            for line in &mut file.lines[taken] {
                *line = Cow::Borrowed("");
            }
            if !file.lines.iter().any(|line| line.trim_start().starts_with("schema_version")) {
                // An invalid `schema_version` is reported only once.
                file.version = VERSION;
            }
        }
        found.sort_by_key(|error| error.line);
        found
    }
}

/// A bundle from which the errors found so far were removed.
struct Repaired<'a> {
    name: &'a str,
    /// Line before the others that sets the schema version; empty if the file sets it.
    version: &'static str,
    lines: Vec<Cow<'a, str>>,
}

impl Repaired<'_> {
    /// Returns the first error, with its line number in the file.
    fn first_error(&self) -> Option<BundleError> {
        let error = Bundle::parse(&format!("{}{}", self.version, self.lines.join("\n")), self.name).err()?;
        let line = error.line.map(|line| line.saturating_sub(usize::from(!self.version.is_empty())));
        Some(BundleError { line, ..error })
    }

    /// Replaces the invalid value on a line with a valid one. Returns false if there is none, and then changes nothing.
    fn substitute(&mut self, at: usize) -> bool {
        let given = self.lines[at].clone();
        let Some((key, _)) = given.split_once('=').filter(|_| !is_header(&given)) else { return false };
        for value in SUBSTITUTES {
            self.lines[at] = Cow::Owned(format!("{key}= {value}"));
            // A value that spans several lines cannot be replaced on one of them.
            if DeTable::parse(&self.lines.join("\n")).is_ok() && self.first_error().is_none_or(|error| error.line != Some(at + 1))
            {
                return true;
            }
        }
        self.lines[at] = given;
        false
    }
}

/// Returns whether the line sets a key whose validity depends on other keys of its table.
fn is_dependent(line: &str) -> bool {
    let key = line.split_once('=').map_or("", |(key, _)| key.trim());
    DEPENDENT_KEYS.contains(&key)
}

fn is_header(line: &str) -> bool {
    line.trim_start().starts_with('[') && DeTable::parse(line).is_ok()
}

/// Returns the index of the header line of the table that contains line `at`.
fn find_header(lines: &[Cow<'_, str>], at: usize) -> Option<usize> {
    (0..=at).rev().find(|line| is_header(&lines[*line]))
}

/// Returns the lines that must be removed to make the text valid TOML: the whole table if its header is wrong,
/// otherwise as few lines as possible around the error.
fn find_faulty_section(lines: &[Cow<'_, str>], at: usize) -> Option<Range<usize>> {
    if is_header(&lines[at]) {
        let end = (at + 1..lines.len()).find(|line| is_header(&lines[*line])).unwrap_or(lines.len());
        return Some(at..end);
    }
    let first = find_header(lines, at).map_or(0, |header| header + 1);
    let whole = |taken: &Range<usize>| {
        let rest = lines.iter().enumerate().map(|(number, line)| if taken.contains(&number) { "" } else { line.as_ref() });
        DeTable::parse(&rest.collect::<Vec<_>>().join("\n")).is_ok()
    };
    // A value may extend over several lines, above and below.
    const REACH: usize = 60;
    let starts = (first.max(at.saturating_sub(REACH))..=at).rev();
    let ranges = starts.flat_map(|start| (at + 1..=lines.len().min(at + REACH)).map(move |end| start..end));
    let mut ranges: Vec<Range<usize>> = ranges.collect();
    ranges.sort_by_key(|range| range.len());
    ranges.into_iter().take(200).find(whole)
}
