//! Images in a draft: which of the files it names are some, and whether the model takes them.

use std::collections::HashSet;

/// What the names of images end with.
const ENDINGS: [&str; 5] = [".png", ".jpg", ".jpeg", ".gif", ".webp"];

#[derive(Debug, Default)]
pub struct Attached {
    /// What they are named by, as far as their names do not tell: `artifact:7f3a…`.
    images: HashSet<String>,
    /// The draft of which it was said that the model takes no images.
    pub said: Option<String>,
}

impl Attached {
    pub fn add(&mut self, path: &str) {
        self.images.insert(path.to_owned());
    }

    /// The first image that a text names.
    pub fn in_text<'t>(&self, text: &'t str) -> Option<&'t str> {
        let named = text.split('@').skip(1).map(|rest| match rest.strip_prefix('"') {
            Some(quoted) => quoted.split('"').next().unwrap_or_default(),
            None => rest.split(|one: char| one.is_whitespace() || "\"'`<>()[]{}|,;".contains(one)).next().unwrap_or_default(),
        });
        named.map(|path| path.trim_end_matches(['.', ':', '!', '?'])).find(|path| {
            let lower = path.to_ascii_lowercase();
            self.images.contains(*path) || ENDINGS.iter().any(|ending| lower.len() > ending.len() && lower.ends_with(ending))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn images_are_known_by_their_names_or_because_they_were_pasted() {
        let mut attached = Attached::default();
        attached.add("artifact:0123456789ab");
        for (text, expected) in [
            ("look at @docs/a.PNG, please", Some("docs/a.PNG")),
            ("@\"my notes/b c.jpeg\"", Some("my notes/b c.jpeg")),
            ("@artifact:0123456789ab?", Some("artifact:0123456789ab")),
            ("@artifact:ffff a.png me@example.org @src/main.rs", None),
        ] {
            assert_eq!(attached.in_text(text), expected, "{text}");
        }
    }
}
