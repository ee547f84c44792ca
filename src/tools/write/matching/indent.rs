//! Adjusts the indentation of text to its position in the file. The indentation is derived from lines that occur in
//! both and is never guessed.

use similar::{Algorithm, DiffOp, capture_diff_slices};

/// Maps each indentation that was given to the one used in the file.
pub(super) struct Indents {
    pairs: Vec<(String, String)>,
    /// Number of spaces by which the file indents each level, or 0 if unknown.
    unit: usize,
}

/// Returns the whitespace at the start of a line.
pub(super) fn indent(line: &str) -> &str {
    &line[..line.len() - line.trim_start_matches(|letter: char| letter.is_whitespace() && letter != '\n').len()]
}

impl Indents {
    /// Derives the mapping from pairs of lines that differ only in their indentation. Returns `None` if it is
    /// ambiguous.
    pub(super) fn derive<'a>(lines: impl Iterator<Item = (&'a str, &'a str)>, unit: usize) -> Option<Self> {
        let mut pairs: Vec<(String, String)> = Vec::new();
        for (given, there) in lines.filter(|(given, _)| !given.trim().is_empty()) {
            let (given, there) = (indent(given), indent(there));
            match pairs.iter().find(|(known, _)| known == given) {
                Some((_, known)) if known != there => return None,
                Some(_) => {}
                None => pairs.push((given.to_owned(), there.to_owned())),
            }
        }
        Some(Self { pairs, unit })
    }

    /// Indents a new line. Returns `None` if the indentation that it should have is not known.
    pub(super) fn line(&self, line: &str) -> Option<String> {
        if line.trim().is_empty() {
            return Some(line.trim_start_matches([' ', '\t']).to_owned());
        }
        let given = indent(line);
        Some(format!("{}{}", self.map_indent(given)?, &line[given.len()..]))
    }

    fn map_indent(&self, given: &str) -> Option<String> {
        if let Some((_, there)) = self.pairs.iter().find(|(known, _)| known == given) {
            return Some(there.clone());
        }
        match (self.shift(given), self.scale(given)) {
            (Some(shifted), Some(scaled)) if shifted != scaled => {
                // Both a shift and a ratio are possible: the result must fit the file in exactly one case.
                let fits = |text: &str| self.unit > 0 && text.chars().count().is_multiple_of(self.unit);
                match (fits(&shifted), fits(&scaled)) {
                    (true, false) => Some(shifted),
                    (false, true) => Some(scaled),
                    _ => None,
                }
            }
            (shifted, scaled) => {
                let fits = |text: &String| text.starts_with('\t') || self.unit == 0 || text.len().is_multiple_of(self.unit);
                shifted.or(scaled.filter(fits))
            }
        }
    }

    /// Determines an indentation on the assumption that all indentation is shifted by the same amount.
    fn shift(&self, given: &str) -> Option<String> {
        let (first_given, first_there) = self.pairs.first()?;
        if let Some(more) = first_there.strip_suffix(first_given.as_str()) {
            let all = self.pairs.iter().all(|(given, there)| there.strip_suffix(given.as_str()) == Some(more));
            return all.then(|| format!("{more}{given}"));
        }
        let less = first_given.strip_suffix(first_there.as_str())?;
        let all = self.pairs.iter().all(|(given, there)| given.strip_suffix(there.as_str()) == Some(less));
        all.then(|| given.strip_prefix(less).map(str::to_owned)).flatten()
    }

    /// Determines an indentation on the assumption that the widths of the steps have a constant ratio, or that tabs
    /// replace spaces.
    fn scale(&self, given: &str) -> Option<String> {
        let known: Vec<_> = self.pairs.iter().filter(|(given, there)| !(given.is_empty() && there.is_empty())).collect();
        let only = |text: &str| text.chars().next().filter(|first| text.chars().all(|letter| letter == *first));
        let from = only(given)?;
        let to = only(&known.first()?.1)?;
        let (wide, narrow) = (known.first()?.0.len(), known.first()?.1.len());
        let alike = |(given, there): &&(String, String)| {
            only(given) == Some(from) && only(there) == Some(to) && given.len() * narrow == there.len() * wide
        };
        if !known.iter().all(alike) {
            return None;
        }
        // A single step of eight spaces for a tab may also be two steps of four with one missing.
        if known.len() == 1 && from != to && wide.max(narrow) / wide.min(narrow) > 4 {
            return None;
        }
        let length = given.len() * narrow;
        length.is_multiple_of(wide).then(|| String::from(to).repeat(length / wide))
    }
}

/// Returns the new text as it is if its lines already have the indentation used in the file rather than that of the old
/// text, judging by every line that is kept and by the smallest indentation. Returns `None` otherwise.
pub(super) fn as_there(there: &str, old: &str, new: &str) -> Option<String> {
    let lines = |text| -> Vec<&str> { str::split_inclusive(text, '\n').collect() };
    let (there_lines, old, new_lines) = (lines(there), lines(old), lines(new));
    if there_lines.len() != old.len() || margin(new) != margin(there) {
        return None;
    }
    let trimmed = |lines: &[&str]| -> Vec<String> { lines.iter().map(|line| line.trim().to_owned()).collect() };
    let (mut result, mut says) = (String::new(), false);
    for op in capture_diff_slices(Algorithm::Myers, &trimmed(&old), &trimmed(&new_lines)) {
        let DiffOp::Equal { old_index, new_index, len } = op else {
            result.extend(new_lines[op.new_range()].iter().copied());
            continue;
        };
        for step in 0..len {
            let (there, old, new) = (there_lines[old_index + step], old[old_index + step], new_lines[new_index + step]);
            if !new.trim().is_empty() && indent(new) != indent(there) {
                return None;
            }
            says |= indent(old) != indent(there);
            result.push_str(there);
            if new.ends_with('\n') && !there.ends_with('\n') {
                result.push('\n');
            }
        }
    }
    (says && result != there).then_some(result)
}

/// Returns the indentation that all lines have in common.
pub(super) fn margin(text: &str) -> &str {
    let mut indents = text.lines().filter(|line| !line.trim().is_empty()).map(indent);
    let first = indents.next().unwrap_or_default();
    indents.fold(first, |margin, indent| {
        let same = margin.bytes().zip(indent.bytes()).take_while(|(left, right)| left == right).count();
        margin.get(..same).unwrap_or_default()
    })
}

/// Returns the number of spaces by which the text indents each level, judging by the most frequent step between lines.
pub(super) fn unit(text: &str) -> usize {
    const MAX_EXAMINED: usize = 5_000;
    const WIDEST: usize = 8;
    let mut steps = [0usize; WIDEST + 1];
    let mut last = 0;
    for line in text.lines().take(MAX_EXAMINED).filter(|line| !line.trim().is_empty()) {
        let width = line.len() - line.trim_start_matches(' ').len();
        if let Some(step) = steps.get_mut(width.saturating_sub(last)) {
            *step += 1;
        }
        last = width;
    }
    let most = (1..=WIDEST).max_by_key(|step| (steps[*step], WIDEST - step)).unwrap_or(0);
    if steps[most] == 0 { 0 } else { most }
}
