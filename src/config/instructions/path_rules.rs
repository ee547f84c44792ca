//! Front matter of rule files in `.claude/rules`, which lists the paths to which a rule applies.

/// Maximum number of patterns per file.
const MAX_PATTERNS: usize = 50;

/// Returns the patterns listed after `paths:` in a file's front matter. The list is empty if the rule applies to all
/// files.
///
/// # Errors
/// Returns the reason why the front matter is invalid.
pub(super) fn patterns(text: &str) -> Result<Vec<String>, String> {
    let text = text.replace("\r\n", "\n");
    let Some(rest) = text.strip_prefix("---\n") else { return Ok(Vec::new()) };
    let Some(end) = rest.find("\n---\n").or_else(|| rest.strip_suffix("\n---").map(str::len)) else {
        return Err("the front matter is not closed".to_owned());
    };
    let mut patterns = Vec::new();
    let mut is_list = false;
    for line in rest[..end].lines() {
        let entry = line.trim();
        if let Some(value) = line.strip_prefix("paths:") {
            is_list = value.trim().is_empty();
            patterns.extend(values(value));
        } else if let Some(value) = entry.strip_prefix('-').filter(|_| is_list) {
            patterns.extend(values(value));
        } else if !entry.is_empty() && !entry.starts_with('#') && !line.starts_with([' ', '\t']) {
            is_list = false;
        }
    }
    if patterns.len() > MAX_PATTERNS {
        return Err(format!("the file has more than {MAX_PATTERNS} patterns"));
    }
    for pattern in &patterns {
        globset::Glob::new(pattern).map_err(|error| format!("`{pattern}` is not a valid glob: {}", error.kind()))?;
    }
    Ok(patterns)
}

/// Splits a value into patterns. The value is a single pattern, several patterns separated by commas, or a list in
/// brackets. Commas inside braces are part of a pattern.
fn values(text: &str) -> Vec<String> {
    let text = text.trim();
    let text = text.strip_prefix('[').and_then(|inner| inner.strip_suffix(']')).unwrap_or(text);
    let (mut found, mut depth, mut from) = (Vec::new(), 0_usize, 0);
    for (at, letter) in text.char_indices() {
        match letter {
            '{' => depth += 1,
            '}' => depth = depth.saturating_sub(1),
            ',' if depth == 0 => {
                found.push(&text[from..at]);
                from = at + 1;
            }
            _ => {}
        }
    }
    found.push(&text[from..]);
    let bare = |text: &str| {
        let text = text.trim();
        let inner = ['"', '\''].into_iter().find_map(|quote| text.strip_prefix(quote)?.strip_suffix(quote));
        inner.unwrap_or(text).trim_start_matches("./").to_owned()
    };
    found.into_iter().map(bare).filter(|pattern| !pattern.is_empty()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_parsed_in_every_notation() {
        for (text, expected) in [
            ("Always.\n", Vec::new()),
            ("---\ndescription: x\n---\nAlways.\n", Vec::new()),
            ("---\npaths: src/**/*.ts\n---\n", vec!["src/**/*.ts"]),
            ("---\npaths: \"src/**/*.{ts,tsx}\", lib/*\n---\n", vec!["src/**/*.{ts,tsx}", "lib/*"]),
            ("---\npaths:\n  - \"./src/**\"\n  - 'lib/*.rs' \nother:\n  - x\n---\nText\n", vec!["src/**", "lib/*.rs"]),
            ("---\r\npaths: [a, \"b\"]\r\n---", vec!["a", "b"]),
        ] {
            assert_eq!(patterns(text), Ok(expected.into_iter().map(str::to_owned).collect()), "{text}");
        }
        assert!(patterns("---\npaths: a\n").unwrap_err().contains("not closed"));
        assert!(patterns("---\npaths: \"{a\"\n---\n").unwrap_err().contains("not a valid glob"));
    }
}
