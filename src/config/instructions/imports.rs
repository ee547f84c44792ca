//! Imports in instruction files, which are written as `@path` outside of code.

use pulldown_cmark::{Event, Parser, Tag};

/// Maximum number of imports per file.
const MAX_IMPORTS: usize = 100;
/// Maximum length of an imported path in bytes.
const MAX_PATH_BYTES: usize = 1024;

/// Punctuation that ends a sentence rather than being part of a path.
pub(crate) const PUNCTUATION: [char; 8] = ['.', ',', ';', ':', '!', '?', ')', '"'];

/// Returns the paths that a text imports, exactly as written. Imports in code or HTML are ignored.
pub(crate) fn imports(text: &str) -> Vec<String> {
    let mut plain = text.as_bytes().to_vec();
    for (event, range) in Parser::new(text).into_offset_iter() {
        let is_code = matches!(event, Event::Code(_) | Event::Start(Tag::CodeBlock(_)) | Event::Html(_) | Event::InlineHtml(_));
        if is_code {
            // Preserve line endings, so that a path before code does not continue after it.
            plain[range].iter_mut().filter(|byte| **byte != b'\n').for_each(|byte| *byte = b' ');
        }
    }
    let plain = String::from_utf8_lossy(&plain);
    let mut found: Vec<String> = Vec::new();
    for (at, _) in plain.match_indices('@') {
        let starts = plain[..at].chars().next_back().is_none_or(char::is_whitespace);
        let path = leading_path(&plain[at + 1..]);
        if starts && !path.is_empty() && path.len() <= MAX_PATH_BYTES && !found.contains(&path) && found.len() < MAX_IMPORTS {
            found.push(path);
        }
    }
    found
}

/// Returns the path at the start of the text, which extends to the first space not preceded by a backslash.
fn leading_path(text: &str) -> String {
    let mut path = String::new();
    let mut letters = text.chars();
    while let Some(letter) = letters.next() {
        match letter {
            '\\' => match letters.next() {
                Some(' ') => path.push(' '),
                Some(_) | None => return path,
            },
            letter if letter.is_whitespace() || letter.is_control() => return path,
            letter => path.push(letter),
        }
    }
    path
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn only_paths_outside_code_are_imports() {
        let text = "See @README and @docs/style_guide.md.\n- @my\\ notes.md\n\nmail a@b.example, `@code` and <!-- @comment -->\n\n\
                    ```\n@block\n```\n\n    @indented\n\n@~/home.md @/etc/x @docs/style_guide.md. @\n";
        assert_eq!(imports(text), ["README", "docs/style_guide.md.", "my notes.md", "~/home.md", "/etc/x"]);
    }

    proptest! {
        #[test]
        fn any_text_can_be_scanned_for_imports(text in "[@`a-z/ \\\\\n<>é-]{0,80}") {
            for path in imports(&text) {
                prop_assert!(!path.is_empty() && !path.contains('\n'));
            }
        }
    }
}
