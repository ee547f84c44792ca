//! What a document consists of, by what its name says it is.

/// A section, a table, a key: lines that belong together.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Part {
    /// 1 for what stands in nothing else.
    pub level: usize,
    pub title: String,
    /// From 1.
    pub first: usize,
    /// The last line of its own heading.
    pub heading: usize,
    pub last: usize,
}

#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Outline {
    pub kind: &'static str,
    /// What else there is to tell of it.
    pub facts: Vec<String>,
    pub parts: Vec<Part>,
    /// What its parts are called: `section`, `table`, `key`.
    pub word: &'static str,
    /// Whether a part can be replaced without harm to what is around it.
    pub is_patchable: bool,
}

impl Outline {
    /// The titles from the outermost part to this one: `Usage > Install`.
    pub(super) fn path_of(&self, index: usize) -> String {
        let mut titles = vec![self.parts[index].title.as_str()];
        titles.extend(self.above(index).map(|part| part.title.as_str()));
        titles.reverse();
        titles.join(" > ")
    }

    /// The parts that this one stands in, the nearest first.
    pub(super) fn above(&self, index: usize) -> impl Iterator<Item = &Part> {
        let mut level = self.parts[index].level;
        self.parts[..index].iter().rev().filter(move |part| {
            let is_above = part.level < level;
            if is_above {
                level = part.level;
            }
            is_above
        })
    }

    /// The innermost part that a line stands in.
    pub(super) fn part_of(&self, line: usize) -> Option<usize> {
        self.parts.iter().rposition(|part| part.first <= line && line <= part.last)
    }
}

/// How many lines a text has; what follows the last line break is one more.
pub(super) fn line_count(text: &str) -> usize {
    text.split_inclusive('\n').count()
}

/// Where each line begins.
pub(super) fn line_starts(text: &str) -> Vec<usize> {
    std::iter::once(0).chain(text.match_indices('\n').map(|(at, _)| at + 1)).collect()
}

/// The line that holds `at`, from 1.
pub(super) fn line_at(starts: &[usize], at: usize) -> usize {
    starts.partition_point(|start| *start <= at).max(1)
}

/// Lets every part reach to the next one on its level or above it.
pub(super) fn close(parts: &mut [Part], lines: usize) {
    for index in 0..parts.len() {
        let level = parts[index].level;
        let next = parts[index + 1..].iter().find(|part| part.level <= level);
        parts[index].last = next.map_or(lines, |part| part.first - 1);
    }
}
