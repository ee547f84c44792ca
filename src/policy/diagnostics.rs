//! Diagnostics: all errors in a bundle at once. The parser stops at the first error, so its line is removed and the
//! rest is parsed again.

use super::bundle::{Bundle, BundleError};
use std::ops::Range;
use toml::de::DeTable;

/// Maximum number of reported errors.
const MAX: usize = 50;
/// Size in bytes above which only the first error is reported.
const MAX_BYTES: usize = 256 * 1024;

impl Bundle {
    /// Returns every error in line order, except errors that merely follow from others.
    pub fn mistakes(text: &str, name: &str) -> Vec<BundleError> {
        let mut lines: Vec<&str> = text.lines().collect();
        let mut found: Vec<BundleError> = Vec::new();
        // Tables from which lines were removed. An error about such a table as a whole may be wrong.
        let mut torn: Vec<usize> = Vec::new();
        if text.len() > MAX_BYTES {
            return Self::parse(text, name).err().into_iter().collect();
        }
        while found.len() < MAX {
            let Err(error) = Self::parse(&lines.join("\n"), name) else { break };
            let Some(at) = error.line.map(|line| line.saturating_sub(1)).filter(|at| *at < lines.len()) else {
                if found.is_empty() {
                    found.push(error);
                }
                break;
            };
            let header = find_header(&lines, at);
            let follows = header == Some(at) && torn.contains(&at);
            let Some(taken) = find_faulty_section(&lines, at) else {
                found.push(error);
                break;
            };
            if !follows {
                found.push(error);
            }
            torn.extend(header);
            for line in &mut lines[taken] {
                *line = "";
            }
            if !lines.iter().any(|line| line.trim_start().starts_with("schema_version")) {
                // A wrong `schema_version` is reported once.
                match lines.first_mut() {
                    Some(first) => *first = "schema_version = 1",
                    None => break,
                }
            }
        }
        found.sort_by_key(|error| error.line);
        found
    }
}

fn is_header(line: &str) -> bool {
    line.trim_start().starts_with('[') && DeTable::parse(line).is_ok()
}

/// Returns the line with the header of the table that contains a line.
fn find_header(lines: &[&str], at: usize) -> Option<usize> {
    (0..=at).rev().find(|line| is_header(lines[*line]))
}

/// Returns the lines to remove so that the rest is valid TOML: the whole table if its header is wrong, otherwise as few
/// lines as possible around the position.
fn find_faulty_section(lines: &[&str], at: usize) -> Option<Range<usize>> {
    if is_header(lines[at]) {
        let end = (at + 1..lines.len()).find(|line| is_header(lines[*line])).unwrap_or(lines.len());
        return Some(at..end);
    }
    let first = find_header(lines, at).map_or(0, |header| header + 1);
    let whole = |taken: &Range<usize>| {
        let rest = lines.iter().enumerate().map(|(number, line)| if taken.contains(&number) { "" } else { *line });
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
