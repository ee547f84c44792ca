//! Edits instruction files as text: adds an instruction to the list in a section, and removes it again.

use super::similarity::WordWeights;

/// Heading of the section in which aye adds instructions.
const HEADING: &str = "## Memory";

/// The text after adding an instruction, and the part that was added.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Added {
    pub text: String,
    pub added: String,
}

/// Adds an instruction to the end of the `## Memory` section, creating the section if necessary.
pub(super) fn add(old: &str, instruction: &str) -> Added {
    let newline = if old.contains("\r\n") { "\r\n" } else { "\n" };
    let item = format!("- {instruction}{newline}");
    let (at, added) = if let Some(Section { end, is_ended, is_empty }) = section_end(old) {
        let missing = usize::from(!is_ended) + usize::from(is_empty);
        (end, format!("{}{item}", newline.repeat(missing)))
    } else {
        let lead = if old.trim().is_empty() {
            ""
        } else if old.ends_with('\n') {
            newline
        } else {
            &newline.repeat(2)
        };
        (old.len(), format!("{lead}{HEADING}{newline}{newline}{item}"))
    };
    Added { text: format!("{}{added}{}", &old[..at], &old[at..]), added }
}

struct Section {
    /// Position after the last non-blank line of the section.
    end: usize,
    /// Whether the last non-blank line ends with a line break.
    is_ended: bool,
    /// Whether the section contains only its heading.
    is_empty: bool,
}

/// Finds the end of the section. Returns `None` if the text does not contain the section.
fn section_end(text: &str) -> Option<Section> {
    let (mut found, mut at, mut is_code): (Option<Section>, usize, bool) = (None, 0, false);
    for line in text.split_inclusive('\n') {
        let trimmed = line.trim();
        if trimmed.starts_with("```") || trimmed.starts_with("~~~") {
            is_code = !is_code;
        }
        let is_heading = !is_code && (trimmed.starts_with("# ") || trimmed.starts_with("## "));
        match &mut found {
            Some(_) if is_heading => break,
            Some(section) if !trimmed.is_empty() => {
                *section = Section { end: at + line.len(), is_ended: line.ends_with('\n'), is_empty: false };
            }
            None if !is_code && trimmed == HEADING => {
                found = Some(Section { end: at + line.len(), is_ended: line.ends_with('\n'), is_empty: true });
            }
            Some(_) | None => {}
        }
        at += line.len();
    }
    found
}

/// Removes the added part from the text. Returns `None` unless the text contains that part exactly once.
pub(super) fn remove(text: &str, added: &str) -> Option<String> {
    let mut places = text.match_indices(added);
    let (at, _) = places.next()?;
    places.next().is_none().then(|| format!("{}{}", &text[..at], &text[at + added.len()..]))
}

/// Returns whether the text contains a line with exactly this instruction, in the form in which aye adds it.
pub(super) fn has_line(text: &str, instruction: &str) -> bool {
    text.lines().any(|line| line.trim().strip_prefix("- ").is_some_and(|item| item.trim() == instruction))
}

/// Returns whether the text contains a line with the same meaning as an instruction.
pub(super) fn says(text: &str, instruction: &str) -> bool {
    let meaning = WordWeights::from_text(instruction);
    text.lines().any(|line| WordWeights::from_text(line).is_same(&meaning))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn instructions_are_added_to_their_section_and_removed_again() {
        for (old, new) in [
            ("", "## Memory\n\n- Use nextest\n"),
            ("# Rules\n", "# Rules\n\n## Memory\n\n- Use nextest\n"),
            ("# Rules", "# Rules\n\n## Memory\n\n- Use nextest\n"),
            ("# Rules\r\n", "# Rules\r\n\r\n## Memory\r\n\r\n- Use nextest\r\n"),
            ("## Memory\n\n- Use tabs\n", "## Memory\n\n- Use tabs\n- Use nextest\n"),
            ("## Memory\n\n- Use tabs", "## Memory\n\n- Use tabs\n- Use nextest\n"),
            ("## Memory\n", "## Memory\n\n- Use nextest\n"),
            ("## Memory\n\n- Use tabs\n\n## Other\n\ntext\n", "## Memory\n\n- Use tabs\n- Use nextest\n\n## Other\n\ntext\n"),
            ("```\n## Memory\n```\n", "```\n## Memory\n```\n\n## Memory\n\n- Use nextest\n"),
        ] {
            let Added { text, added } = add(old, "Use nextest");
            assert_eq!(text, new, "{old:?}");
            assert!(has_line(&text, "Use nextest") && says(&text, "please use nextest"));
            assert_eq!(remove(&text, &added).as_deref(), Some(old), "{old:?}");
            assert_eq!(remove(&format!("{text}{added}"), &added), None, "twice: it is not clear which one");
        }
    }
}
