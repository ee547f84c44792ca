//! Formats names with a one-line description each, shortened to fit into a tool description.

use crate::protocol::cut_position_before;
use std::fmt::Write;

/// Maximum list size in bytes.
const LIST_BYTES: usize = 4 << 10;
/// Possible limits on the length of a line in bytes, longest first. The first one with which the whole list fits is
/// used. With 0, only the names are listed.
const LINE_BYTES: [usize; 6] = [1024, 512, 256, 128, 64, 0];

/// Lists names with their descriptions, shortened so that the list is about `LIST_BYTES` bytes long at most.
pub(super) fn described_list(entries: &[(&str, &str)]) -> String {
    let lists = LINE_BYTES.into_iter().map(|bytes| list(entries, bytes));
    let fitting = lists.into_iter().find(|list| list.len() <= LIST_BYTES);
    fitting.unwrap_or_else(|| first_names(entries))
}

fn list(entries: &[(&str, &str)], bytes: usize) -> String {
    if bytes == 0 {
        let names: Vec<&str> = entries.iter().map(|(name, _)| *name).collect();
        return names.join(", ");
    }
    let mut text = String::new();
    for (name, description) in entries {
        let line = if description.len() <= bytes {
            (*description).to_owned()
        } else {
            format!("{}…", description[..cut_position_before(description, bytes)].trim_end())
        };
        // Writing to a string cannot fail.
        let _ = writeln!(text, "- {name}: {line}");
    }
    text.trim_end().to_owned()
}

/// Lists as many names as fit, followed by a hint on how to find the others.
fn first_names(entries: &[(&str, &str)]) -> String {
    let mut text = String::new();
    for (at, (name, _)) in entries.iter().enumerate() {
        if text.len() + name.len() > LIST_BYTES {
            let _ = write!(text, "{} more; to find them, pass a search word as the name", entries.len() - at);
            break;
        }
        let _ = write!(text, "{name}, ");
    }
    text
}
