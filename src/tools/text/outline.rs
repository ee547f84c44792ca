//! Outlines of documents, whose format the file name indicates.

/// A section, table or key of a document, with the lines that belong to it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Part {
    /// Nesting level, which is 1 for the outermost parts.
    pub level: usize,
    pub title: String,
    /// First line (1-based).
    pub first: usize,
    /// Last line of the heading.
    pub heading: usize,
    pub last: usize,
}

#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Outline {
    pub kind: &'static str,
    /// Other facts about the document.
    pub facts: Vec<String>,
    pub parts: Vec<Part>,
    /// Word for the parts of this document: `section`, `table` or `key`.
    pub word: &'static str,
    /// Whether a part can be replaced without affecting the text around it.
    pub is_patchable: bool,
}

impl Outline {
    /// Returns the titles from the outermost enclosing part down to this one, as in `Usage > Install`.
    pub(super) fn title_path(&self, index: usize) -> String {
        let mut titles = vec![self.parts[index].title.as_str()];
        titles.extend(self.ancestors(index).map(|part| part.title.as_str()));
        titles.reverse();
        titles.join(" > ")
    }

    /// Returns the parts that enclose this one, innermost first.
    pub(super) fn ancestors(&self, index: usize) -> impl Iterator<Item = &Part> {
        let mut level = self.parts[index].level;
        self.parts[..index].iter().rev().filter(move |part| {
            let is_above = part.level < level;
            if is_above {
                level = part.level;
            }
            is_above
        })
    }

    /// Returns the index of the innermost part that contains a line.
    pub(super) fn part_at(&self, line: usize) -> Option<usize> {
        self.parts.iter().rposition(|part| part.first <= line && line <= part.last)
    }
}

/// Returns the number of lines, counting any text after the last line break as a line.
pub(super) fn line_count(text: &str) -> usize {
    text.split_inclusive('\n').count()
}

/// Returns the byte position at which each line starts.
pub(super) fn line_starts(text: &str) -> Vec<usize> {
    std::iter::once(0).chain(text.match_indices('\n').map(|(at, _)| at + 1)).collect()
}

/// Returns the number (1-based) of the line that contains the byte position `at`.
pub(super) fn line_at(starts: &[usize], at: usize) -> usize {
    starts.partition_point(|start| *start <= at).max(1)
}

/// Extends each part to the start of the next one of the same or a higher level.
pub(super) fn close(parts: &mut [Part], lines: usize) {
    for index in 0..parts.len() {
        let level = parts[index].level;
        let next = parts[index + 1..].iter().find(|part| part.level <= level);
        parts[index].last = next.map_or(lines, |part| part.first - 1);
    }
}
