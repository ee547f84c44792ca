//! The hunks of a diff as what they are made of, so that each can be taken, left out or written anew by itself.

use crate::protocol::HunkChoice;
use crate::tools::tool::Settings;
use crate::tools::write::line_breaks::{Breaks, only_cr, shown_lines};
use crate::tools::write::replacement::{ending_near, endings, relined, with_lf};
use similar::{DiffOp, DiffTag};
use std::ops::Range;

/// Lines above a hunk that are looked at for what it stands in.
const LOOKED_ABOVE: usize = 400;
/// Letters of a name.
const NAME: usize = 40;

/// What one hunk puts in the place of what, by lines from 0 of the texts as a diff has them; without the lines around it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::tools) struct Cut {
    pub old: Range<usize>,
    pub new: Range<usize>,
    /// What it stands in.
    pub name: Option<String>,
}

/// The hunks as a unified diff groups them.
pub(super) fn cuts(groups: &[Vec<DiffOp>], old: &[&str], new: &[&str]) -> Vec<Cut> {
    let cut = |group: &Vec<DiffOp>| {
        let mut changes = group.iter().filter(|op| op.tag() != DiffTag::Equal);
        let first = changes.next()?;
        let last = changes.next_back().unwrap_or(first);
        let (old_lines, new_lines) =
            (first.old_range().start..last.old_range().end, first.new_range().start..last.new_range().end);
        Some(Cut { name: name(old, &old_lines, new, &new_lines), old: old_lines, new: new_lines })
    };
    groups.iter().filter_map(cut).collect()
}

/// What the first line of a change defines, or the nearest line above it that stands further out.
fn name(old: &[&str], old_lines: &Range<usize>, new: &[&str], new_lines: &Range<usize>) -> Option<String> {
    let mut own = old[old_lines.clone()].first().into_iter().chain(new[new_lines.clone()].first());
    if let Some(name) = own.find_map(|line| defined(line)) {
        return Some(name);
    }
    let indent = |line: &str| line.len() - line.trim_start().len();
    let changed = old[old_lines.clone()].iter().chain(&new[new_lines.clone()]).filter(|line| !line.trim().is_empty());
    let mut within = changed.map(|line| indent(line)).min().unwrap_or(usize::MAX).max(1);
    for line in new[..new_lines.start].iter().rev().take(LOOKED_ABOVE).filter(|line| !line.trim().is_empty()) {
        if indent(line) < within {
            if let Some(name) = defined(line) {
                return Some(name);
            }
            within = indent(line).max(1);
        }
    }
    None
}

/// `greet()` of `pub fn greet(name: &str) {`, `Token` of `struct Token<'a> {`, `Notes` of `## Notes`.
fn defined(line: &str) -> Option<String> {
    const BEFORE: &[&str] = &[
        "pub",
        "pub(crate)",
        "pub(super)",
        "async",
        "const",
        "unsafe",
        "extern",
        "export",
        "default",
        "static",
        "public",
        "private",
        "protected",
        "final",
        "abstract",
        "override",
        "virtual",
        "inline",
        "local",
        "open",
        "internal",
    ];
    const CALLED: &[&str] = &["fn", "def", "func", "function", "fun", "sub"];
    const KINDS: &[&str] = &[
        "struct",
        "enum",
        "trait",
        "impl",
        "class",
        "interface",
        "module",
        "mod",
        "namespace",
        "type",
        "object",
        "protocol",
        "union",
        "macro_rules!",
        "record",
    ];
    let text = line.trim();
    if let Some(heading) = text.strip_prefix('#').map(|rest| rest.trim_start_matches('#')) {
        return heading.strip_prefix(' ').map(|words| short(words.trim()));
    }
    if text.starts_with('[') && text.ends_with(']') && !text.contains(',') {
        return Some(short(text));
    }
    let mut words = text.split_whitespace().skip_while(|word| BEFORE.contains(word));
    let keyword = words.next()?;
    let named = words.next()?;
    let letters = |name: &str| {
        name.chars().take_while(|letter| letter.is_alphanumeric() || matches!(letter, '_' | '$' | ':')).collect::<String>()
    };
    if CALLED.contains(&keyword) {
        let name = letters(named);
        return (!name.is_empty()).then(|| format!("{}()", short(name.trim_end_matches(':'))));
    }
    if KINDS.contains(&keyword) {
        let name = letters(named);
        return (!name.is_empty()).then(|| short(name.trim_end_matches(':')));
    }
    None
}

fn short(name: &str) -> String {
    match name.char_indices().nth(NAME) {
        Some((at, _)) => format!("{}…", &name[..at]),
        None => name.to_owned(),
    }
}

/// A text as it is, by the lines that a diff shows of it.
struct Side<'a> {
    text: &'a str,
    /// Where each line that is shown begins, and where the last one ends.
    starts: Vec<usize>,
}

impl<'a> Side<'a> {
    /// Nothing where it is not sure which lines are shown as which.
    fn of(text: &'a str, settings: &Settings) -> Option<Self> {
        let plain_text = super::plain(text, settings);
        let plain = lines(&plain_text);
        let mut at = 0;
        let mut starts: Vec<usize> = vec![0];
        let breaks = if only_cr(text) { Breaks::Cr } else { Breaks::Lf };
        starts.extend(breaks.lines(text).into_iter().map(|line| {
            at += line.len();
            at
        }));
        if starts.len() == plain + 1 {
            return Some(Self { text, starts });
        }
        // What is hidden stands on one line, however many it has.
        let lf = shown_lines(text);
        let mut within = Vec::new();
        for range in settings.redactor.hidden(&lf) {
            let first = lf[..range.start].matches('\n').count();
            within.extend((1..=lf[range].matches('\n').count()).map(|line| first + line));
        }
        let mut index = 0;
        starts.retain(|_| {
            index += 1;
            within.binary_search(&(index - 1)).is_err()
        });
        (starts.len() == plain + 1).then_some(Self { text, starts })
    }

    fn lines(&self, range: Range<usize>) -> &'a str {
        &self.text[self.starts[range.start]..self.starts[range.end]]
    }

    fn count(&self) -> usize {
        self.starts.len() - 1
    }
}

fn lines(text: &str) -> usize {
    text.split_inclusive('\n').count()
}

/// Whether the hunks of this change can be told apart in the texts themselves; why not, for people.
pub(in crate::tools) fn why_fixed(old: &str, new: &str, settings: &Settings) -> Option<&'static str> {
    if Side::of(old, settings).is_none() || Side::of(new, settings).is_none() {
        return Some("a redacted secret in the file spans several lines");
    }
    match (endings(old), endings(new)) {
        (Some(before), Some(after)) if before != after => Some("the line endings of the whole file change"),
        _ => None,
    }
}

/// The text with some of the hunks, byte for byte what was there and what was proposed but for lines that were written anew:
/// those end as the lines do that they replace, or follow. `restored` puts back what is hidden in them.
pub(in crate::tools) fn with_choices<E>(
    (old_text, new_text): (&str, &str),
    cuts: &[Cut],
    choices: &[HunkChoice],
    settings: &Settings,
    mut restored: impl FnMut(&str) -> Result<String, E>,
) -> Result<Option<String>, E> {
    if choices.iter().all(|choice| *choice == HunkChoice::Taken) {
        return Ok(Some(new_text.to_owned()));
    }
    let (Some(old), Some(new)) = (Side::of(old_text, settings), Side::of(new_text, settings)) else { return Ok(None) };
    let fits = |cut: &Cut| cut.old.end <= old.count() && cut.new.end <= new.count();
    if !cuts.iter().all(fits) || cuts.len() != choices.len() {
        return Ok(None);
    }
    let mut text = String::with_capacity(new_text.len().max(old_text.len()));
    let mut at = 0;
    for (cut, choice) in cuts.iter().zip(choices) {
        text.push_str(old.lines(at..cut.old.start));
        match choice {
            HunkChoice::Taken => text.push_str(new.lines(cut.new.clone())),
            HunkChoice::Left => text.push_str(old.lines(cut.old.clone())),
            HunkChoice::Edited { text: written } => {
                let mut written = restored(&with_lf(written))?;
                if cut.old.end < old.count() && !written.is_empty() && !written.ends_with('\n') {
                    written.push('\n');
                }
                // No LF is near, so that all of its lines end as the file's do.
                if only_cr(old_text) {
                    text.push_str(&written.replace('\n', "\r"));
                    at = cut.old.end;
                    continue;
                }
                let near = if endings(old_text).is_some() {
                    ending_near(old_text, old.starts[cut.old.start])
                } else {
                    ending_near(new_text, 0)
                };
                text.push_str(&relined(old.lines(cut.old.clone()), &written, near));
            }
        }
        at = cut.old.end;
    }
    text.push_str(old.lines(at..old.count()));
    Ok(Some(text))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_hunk_is_named_by_what_it_stands_in() {
        for (line, name) in [
            ("pub async fn greet(name: &str) -> String {", Some("greet()")),
            ("    def total(self):", Some("total()")),
            ("export default function Main() {", Some("Main()")),
            ("struct Token<'a> {", Some("Token")),
            ("class Lexer:", Some("Lexer")),
            ("## How it works", Some("How it works")),
            ("[dependencies]", Some("[dependencies]")),
            ("#include <stdio.h>", None),
            ("    let x = f(1);", None),
            ("", None),
        ] {
            assert_eq!(defined(line).as_deref(), name, "{line}");
        }
        let old: Vec<&str> =
            "class A:\n    def a(self):\n        x = 1\n\n    def b(self):\n        y = 2\n".split_inclusive('\n').collect();
        let mut new = old.clone();
        new[5] = "        y = 3\n";
        assert_eq!(name(&old, &(5..6), &new, &(5..6)).as_deref(), Some("b()"));
    }
}
