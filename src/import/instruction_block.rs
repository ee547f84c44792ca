//! Insertion of other agents' instructions into the user's `AGENTS.md`. Each imported file becomes a marked block.

use crate::protocol::size;

/// Number of bytes of `AGENTS.md` that aye reads.
const MAX_BYTES: usize = 64 << 10;
const MARK: &str = "<!-- aye import:";
const END: &str = "<!-- aye import: end -->";

/// Returns the text with a block for an imported file. If the text already contains a block for this file, it is
/// replaced.
///
/// # Errors
/// Returns the reason why the block cannot be added.
pub(super) fn with_block(text: Option<&str>, place: &str, content: &str) -> Result<String, String> {
    let content = content.trim();
    if content.contains(MARK) || place.contains("-->") {
        return Err("the file contains a marker of an earlier import".to_owned());
    }
    let begin = format!("{MARK} {place} -->");
    let block = format!("{begin}\n{content}\n{END}\n");
    let old = text.unwrap_or_default();
    let new = match old.split_once(&format!("{begin}\n")) {
        Some((before, rest)) => {
            let Some((_, after)) = rest.split_once(&format!("{END}\n")) else {
                return Err(format!("the end marker of the imported block in your AGENTS.md is missing; add a line `{END}`"));
            };
            format!("{before}{block}{after}")
        }
        None if old.trim().is_empty() => block,
        None => format!("{}\n\n{block}", old.trim_end()),
    };
    if new.len() > MAX_BYTES {
        let most = size(MAX_BYTES as u64);
        return Err(format!("your AGENTS.md would exceed {most}, the maximum that aye reads"));
    }
    Ok(new)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_instruction_block_is_added_once_and_updated_with_its_source() {
        let first = with_block(None, "~/.claude/CLAUDE.md", "Be brief.\n").unwrap();
        assert_eq!(first, "<!-- aye import: ~/.claude/CLAUDE.md -->\nBe brief.\n<!-- aye import: end -->\n");
        assert_eq!(with_block(Some(&first), "~/.claude/CLAUDE.md", "Be brief.").as_ref(), Ok(&first));
        let own = with_block(Some("# Mine\n"), "~/.claude/CLAUDE.md", "Be brief.").unwrap();
        assert_eq!(own, format!("# Mine\n\n{first}"));
        let two = with_block(Some(&own), "~/.codex/AGENTS.md", "Use tabs.").unwrap();
        let changed = with_block(Some(&two), "~/.claude/CLAUDE.md", "Be long.").unwrap();
        assert_eq!(changed, two.replace("Be brief.", "Be long."));
    }

    #[test]
    fn blocks_that_would_not_be_recognized_later_are_not_added() {
        assert!(with_block(None, "a", "<!-- aye import: b -->").is_err());
        assert!(with_block(Some("<!-- aye import: a -->\nno end"), "a", "text").unwrap_err().contains("missing"));
        assert!(with_block(None, "a", &"x".repeat(MAX_BYTES)).unwrap_err().contains("would exceed"));
    }
}
