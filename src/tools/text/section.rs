//! Finds the section to which a model refers.

use super::outline::{Outline, Part};
use crate::protocol::ToolError;
use crate::tools::error::invalid;

/// Maximum number of parts to list in an error.
const MAX_NAMED: usize = 20;

/// Returns the index of the part to which `wanted` refers, such as `## Usage`, `Usage` or `Usage > Install`.
///
/// # Errors
///
/// If no part matches, or more than one does, the error lists the candidates.
pub(super) fn find(outline: &Outline, wanted: &str, argument: &str) -> Result<usize, ToolError> {
    let given = wanted.trim();
    if given.is_empty() {
        return Err(invalid(format!("`{argument}` is empty; specify a heading, such as `Usage > Install`")));
    }
    if outline.parts.is_empty() {
        return Err(invalid(format!("`{argument}`: this file has no sections; use `startLine` and `endLine` instead")));
    }
    let words: Vec<Heading> = given.split('>').map(Heading::parse).collect();
    let whole = [Heading::parse(given)];
    // A title may contain `>` itself.
    let found = [&whole[..], &words[..]].into_iter().map(|words| matches(outline, words)).find(|found| !found.is_empty());
    match found.as_deref() {
        Some([one]) => Ok(*one),
        Some(several) => Err(invalid(format!(
            "`{argument}`: `{given}` matches {} sections: {}; add the parent headings, as in `A > B`, or use line numbers",
            several.len(),
            list_titles(outline, several)
        ))),
        None => Err(invalid(format!("`{argument}`: section `{given}` not found; {}", nearest(outline, given)))),
    }
}

/// A title in a form suitable for comparison, with the level indicated by its `#` characters.
struct Heading {
    level: Option<usize>,
    exact: String,
    loose: String,
}

impl Heading {
    fn parse(given: &str) -> Self {
        let given = given.trim();
        let marks = given.bytes().take_while(|byte| *byte == b'#').count();
        let rest = given[marks..].trim();
        let level = (marks > 0 && given[marks..].starts_with(' ')).then_some(marks);
        let exact = if level.is_some() { rest.trim_end_matches('#').trim_end() } else { given };
        Self { level, exact: exact.to_owned(), loose: loose(exact) }
    }

    fn matches(&self, part: &Part, exactly: bool) -> bool {
        self.level.is_none_or(|level| level == part.level)
            && (part.title == self.exact || (!exactly && loose(&part.title) == self.loose))
    }
}

/// Normalizes a title by removing formatting characters and converting it to lower case.
fn loose(title: &str) -> String {
    let plain: String = title.chars().filter(|letter| !"`*_[]\"'".contains(*letter)).collect();
    plain.split_whitespace().collect::<Vec<_>>().join(" ").to_lowercase()
}

fn matches(outline: &Outline, words: &[Heading]) -> Vec<usize> {
    let search = |exactly| -> Vec<usize> {
        let fits = |index: &usize| {
            let Some((last, above)) = words.split_last() else { return false };
            let mut parents = outline.ancestors(*index);
            last.matches(&outline.parts[*index], exactly)
                && above.iter().rev().all(|word| parents.any(|parent| word.matches(parent, exactly)))
        };
        (0..outline.parts.len()).filter(fits).collect()
    };
    let exact = search(true);
    if exact.is_empty() { search(false) } else { exact }
}

fn list_titles(outline: &Outline, indices: &[usize]) -> String {
    let line = |index: &usize| format!("`{}` (line {})", outline.title_path(*index), outline.parts[*index].first);
    let mut text = indices.iter().take(MAX_NAMED).map(line).collect::<Vec<_>>().join(", ");
    if indices.len() > MAX_NAMED {
        text.push_str(", …");
    }
    text
}

fn nearest(outline: &Outline, given: &str) -> String {
    const ALIKE: f64 = 0.75;
    let wanted = loose(given.rsplit('>').next().unwrap_or(given).trim_start_matches(['#', ' ']));
    let alike = |index: &usize| strsim::jaro_winkler(&loose(&outline.parts[*index].title), &wanted) >= ALIKE;
    let near: Vec<usize> = (0..outline.parts.len()).filter(alike).collect();
    if near.is_empty() {
        let all: Vec<usize> = (0..outline.parts.len()).collect();
        return format!("sections: {}", list_titles(outline, &all));
    }
    format!("did you mean {}?", list_titles(outline, &near))
}
