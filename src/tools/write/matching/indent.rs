//! What the indentation of a text is where it stands: worked out of the lines that are in both, never guessed.

/// How each indentation of a given text reads in the file.
pub(super) struct Indents {
    pairs: Vec<(String, String)>,
    /// How many spaces the file indents by; 0 where that cannot be told.
    unit: usize,
}

/// The white space a line begins with.
pub(super) fn indent(line: &str) -> &str {
    &line[..line.len() - line.trim_start_matches(|letter: char| letter.is_whitespace() && letter != '\n').len()]
}

impl Indents {
    /// Of lines that are the same but for their indentation; none where one indentation stands for two.
    pub(super) fn of<'a>(lines: impl Iterator<Item = (&'a str, &'a str)>, unit: usize) -> Option<Self> {
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

    /// A new line as it is indented there; none where that cannot be known.
    pub(super) fn line(&self, line: &str) -> Option<String> {
        if line.trim().is_empty() {
            return Some(line.trim_start_matches([' ', '\t']).to_owned());
        }
        let given = indent(line);
        Some(format!("{}{}", self.there(given)?, &line[given.len()..]))
    }

    fn there(&self, given: &str) -> Option<String> {
        if let Some((_, there)) = self.pairs.iter().find(|(known, _)| known == given) {
            return Some(there.clone());
        }
        match (self.shifted(given), self.scaled(given)) {
            (Some(shifted), Some(scaled)) if shifted != scaled => {
                // Both are possible: the step must fit the file in one of them and not in the other.
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

    /// All of it stands further in, or further out, by the same.
    fn shifted(&self, given: &str) -> Option<String> {
        let (first_given, first_there) = self.pairs.first()?;
        if let Some(more) = first_there.strip_suffix(first_given.as_str()) {
            let all = self.pairs.iter().all(|(given, there)| there.strip_suffix(given.as_str()) == Some(more));
            return all.then(|| format!("{more}{given}"));
        }
        let less = first_given.strip_suffix(first_there.as_str())?;
        let all = self.pairs.iter().all(|(given, there)| given.strip_suffix(there.as_str()) == Some(less));
        all.then(|| given.strip_prefix(less).map(str::to_owned)).flatten()
    }

    /// Every step of it is so many times wider or narrower, or a tab.
    fn scaled(&self, given: &str) -> Option<String> {
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
        // One step alone, of eight spaces for a tab: it may be two of four, one of them left out.
        if known.len() == 1 && from != to && wide.max(narrow) / wide.min(narrow) > 4 {
            return None;
        }
        let length = given.len() * narrow;
        length.is_multiple_of(wide).then(|| String::from(to).repeat(length / wide))
    }
}

/// How many spaces a text indents by: the step from line to line that is there most often.
pub(super) fn unit(text: &str) -> usize {
    const LOOKED_AT: usize = 5_000;
    const WIDEST: usize = 8;
    let mut steps = [0usize; WIDEST + 1];
    let mut last = 0;
    for line in text.lines().take(LOOKED_AT).filter(|line| !line.trim().is_empty()) {
        let width = line.len() - line.trim_start_matches(' ').len();
        if let Some(step) = steps.get_mut(width.saturating_sub(last)) {
            *step += 1;
        }
        last = width;
    }
    let most = (1..=WIDEST).max_by_key(|step| (steps[*step], WIDEST - step)).unwrap_or(0);
    if steps[most] == 0 { 0 } else { most }
}
