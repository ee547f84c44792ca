//! The description of the tool that loads skills: their names, with one line each, within a limit.

use crate::protocol::cut_before;
use crate::skills::SkillSet;
use std::fmt::Write;

const INTRODUCTION: &str = "Loads the instructions of a skill. Load a skill before you do what it is about. Skills:";
/// Maximum bytes of the list of skills.
const LIST_BYTES: usize = 4 << 10;
/// Possible line lengths in bytes, longest first; the longest that fits for all skills is used. With 0 bytes, only names are
/// listed.
const LINE_BYTES: [usize; 6] = [1024, 512, 256, 128, 64, 0];

/// Returns the description; `None` if the model may load no skill.
pub(super) fn describe(set: &SkillSet) -> Option<String> {
    let skills: Vec<(&str, &str)> = set.for_model().map(|skill| (skill.name(), skill.manifest.description.as_str())).collect();
    if skills.is_empty() {
        return None;
    }
    let lists = LINE_BYTES.into_iter().map(|bytes| list(&skills, bytes));
    let fitting = lists.into_iter().find(|list| list.len() <= LIST_BYTES);
    Some(format!("{INTRODUCTION}\n{}", fitting.unwrap_or_else(|| first_names(&skills))))
}

fn list(skills: &[(&str, &str)], bytes: usize) -> String {
    if bytes == 0 {
        let names: Vec<&str> = skills.iter().map(|(name, _)| *name).collect();
        return names.join(", ");
    }
    let mut text = String::new();
    for (name, description) in skills {
        let line = if description.len() <= bytes {
            (*description).to_owned()
        } else {
            format!("{}…", description[..cut_before(description, bytes)].trim_end())
        };
        // Writing to a string cannot fail.
        let _ = writeln!(text, "- {name}: {line}");
    }
    text.trim_end().to_owned()
}

/// Returns as many names as fit, and a hint how to find the others.
fn first_names(skills: &[(&str, &str)]) -> String {
    let mut text = String::new();
    for (at, (name, _)) in skills.iter().enumerate() {
        if text.len() + name.len() > LIST_BYTES {
            let _ = write!(text, "{} more; pass a word as `name` to find them", skills.len() - at);
            break;
        }
        let _ = write!(text, "{name}, ");
    }
    text
}
