//! Splits a diff into hunks that can be applied, omitted or edited separately.

use crate::protocol::HunkChoice;
use crate::tools::document::line_breaks::{Breaks, display_lines, only_cr};
use crate::tools::document::replacement::{adapt_endings, ending_near, endings, with_lf};
use crate::tools::settings::ToolSettings;
use similar::{DiffOp, DiffTag};
use std::ops::Range;

/// Number of lines above a hunk that are searched for the enclosing definition.
const LINES_ABOVE: usize = 400;
/// Maximum number of characters in a definition's name.
const NAME: usize = 40;

/// Ranges of the replaced and the new lines of a hunk (0-based), without context.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::tools) struct HunkLines {
    pub old: Range<usize>,
    pub new: Range<usize>,
    /// Name of the definition that encloses the hunk.
    pub name: Option<String>,
}

/// Converts the change groups of a unified diff to hunks.
pub(super) fn cuts(groups: &[Vec<DiffOp>], old: &[&str], new: &[&str]) -> Vec<HunkLines> {
    let cut = |group: &Vec<DiffOp>| {
        let mut changes = group.iter().filter(|op| op.tag() != DiffTag::Equal);
        let first = changes.next()?;
        let last = changes.next_back().unwrap_or(first);
        let (old_lines, new_lines) =
            (first.old_range().start..last.old_range().end, first.new_range().start..last.new_range().end);
        Some(HunkLines { name: name(old, &old_lines, new, &new_lines), old: old_lines, new: new_lines })
    };
    groups.iter().filter_map(cut).collect()
}

/// Returns the name of the definition on the first changed line or, failing that, on the nearest less indented line
/// above.
fn name(old: &[&str], old_lines: &Range<usize>, new: &[&str], new_lines: &Range<usize>) -> Option<String> {
    let mut own = old[old_lines.clone()].first().into_iter().chain(new[new_lines.clone()].first());
    if let Some(name) = own.find_map(|line| definition_name(line)) {
        return Some(name);
    }
    let indent = |line: &str| line.len() - line.trim_start().len();
    let changed = old[old_lines.clone()].iter().chain(&new[new_lines.clone()]).filter(|line| !line.trim().is_empty());
    let mut within = changed.map(|line| indent(line)).min().unwrap_or(usize::MAX).max(1);
    for line in new[..new_lines.start].iter().rev().take(LINES_ABOVE).filter(|line| !line.trim().is_empty()) {
        if indent(line) < within {
            if let Some(name) = definition_name(line) {
                return Some(name);
            }
            within = indent(line).max(1);
        }
    }
    None
}

/// Extracts the name of a definition, such as `greet()` from `pub fn greet(name: &str) {`, `Token` from `struct
/// Token<'a> {`, or `Notes` from `## Notes`.
fn definition_name(line: &str) -> Option<String> {
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
        return heading.strip_prefix(' ').map(|words| shorten_name(words.trim()));
    }
    if text.starts_with('[') && text.ends_with(']') && !text.contains(',') {
        return Some(shorten_name(text));
    }
    let mut words = text.split_whitespace().skip_while(|word| BEFORE.contains(word));
    let keyword = words.next()?;
    let named = words.next()?;
    let letters = |name: &str| {
        name.chars().take_while(|letter| letter.is_alphanumeric() || matches!(letter, '_' | '$' | ':')).collect::<String>()
    };
    if CALLED.contains(&keyword) {
        let name = letters(named);
        return (!name.is_empty()).then(|| format!("{}()", shorten_name(name.trim_end_matches(':'))));
    }
    if KINDS.contains(&keyword) {
        let name = letters(named);
        return (!name.is_empty()).then(|| shorten_name(name.trim_end_matches(':')));
    }
    None
}

fn shorten_name(name: &str) -> String {
    match name.char_indices().nth(NAME) {
        Some((at, _)) => format!("{}…", &name[..at]),
        None => name.to_owned(),
    }
}

/// One side of a diff: its original text, and where the displayed lines are in it.
struct SideText<'a> {
    text: &'a str,
    /// Byte offsets at which the displayed lines start, followed by the end of the last one.
    starts: Vec<usize>,
}

impl<'a> SideText<'a> {
    /// Maps the displayed lines to the original text. Returns `None` if the mapping is ambiguous.
    fn map(text: &'a str, settings: &ToolSettings) -> Option<Self> {
        let plain_text = super::prepare_text(text, settings);
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
        // A redacted secret is shown on one line, even if it spans several.
        let lf = display_lines(text);
        let mut within = Vec::new();
        for range in settings.redactor.redacted_ranges(&lf) {
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

/// Returns the reason why a change's hunks cannot be applied separately, or `None` if they can.
pub(in crate::tools) fn indivisible_reason(old: &str, new: &str, settings: &ToolSettings) -> Option<&'static str> {
    if SideText::map(old, settings).is_none() || SideText::map(new, settings).is_none() {
        return Some("a redacted secret in the file spans several lines");
    }
    match (endings(old), endings(new)) {
        (Some(before), Some(after)) if before != after => Some("the line endings of the whole file change"),
        _ => None,
    }
}

/// Returns the text with the chosen hunks applied and all other bytes unchanged, or `None` if the hunks do not match
/// the text. Edited lines receive the line endings of the lines that they replace or follow. `restored` restores the
/// secrets in edited lines.
pub(in crate::tools) fn with_choices<E>(
    (old_text, new_text): (&str, &str),
    cuts: &[HunkLines],
    choices: &[HunkChoice],
    settings: &ToolSettings,
    mut restored: impl FnMut(&str) -> Result<String, E>,
) -> Result<Option<String>, E> {
    if choices.iter().all(|choice| *choice == HunkChoice::Taken) {
        return Ok(Some(new_text.to_owned()));
    }
    let (Some(old), Some(new)) = (SideText::map(old_text, settings), SideText::map(new_text, settings)) else { return Ok(None) };
    let fits = |cut: &HunkLines| cut.old.end <= old.count() && cut.new.end <= new.count();
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
                // The file uses only lone CR, so edited lines end with CR too.
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
                text.push_str(&adapt_endings(old.lines(cut.old.clone()), &written, near));
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
    fn hunks_are_named_after_their_enclosing_definition() {
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
            assert_eq!(definition_name(line).as_deref(), name, "{line}");
        }
        let old: Vec<&str> =
            "class A:\n    def a(self):\n        x = 1\n\n    def b(self):\n        y = 2\n".split_inclusive('\n').collect();
        let mut new = old.clone();
        new[5] = "        y = 3\n";
        assert_eq!(name(&old, &(5..6), &new, &(5..6)).as_deref(), Some("b()"));
    }
}
