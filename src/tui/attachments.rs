//! Files named in the draft: their sizes in tokens, and whether they are images.

use super::format::tokens;
use crate::text;
use std::collections::{HashSet, VecDeque};

/// File name extensions of images, in lower case.
const ENDINGS: [&str; 5] = [".png", ".jpg", ".jpeg", ".gif", ".webp"];

/// Maximum number of files for which the size is stored.
const SIZES: usize = 64;

#[derive(Debug, Default)]
pub(crate) struct Attachments {
    /// Files as named in a draft, including the `@`, with their token counts. The most recently named file comes first.
    sizes: VecDeque<(String, u64)>,
    /// Names of images that have no image extension, such as `artifact:7f3a…`.
    images: HashSet<String>,
    /// Draft for which the user has been told that the model does not support images.
    pub said: Option<String>,
}

impl Attachments {
    pub(crate) fn add(&mut self, path: &str) {
        self.images.insert(path.to_owned());
    }

    /// Records the approximate number of tokens in a file named in the draft.
    pub(crate) fn set_tokens(&mut self, named: String, count: u64) {
        self.sizes.retain(|(known, _)| *known != named);
        self.sizes.truncate(SIZES - 1);
        self.sizes.push_front((named, count));
    }

    /// Returns the sizes of the files named in the draft, such as `@src/main.rs ~1.2k, @Cargo.toml ~300 tokens`. If
    /// that does not fit into `room` cells, returns only the number of files and the total. Returns `None` if not even
    /// the total fits, or if the draft names no file whose size is known.
    pub(crate) fn sizes_in(&self, draft: impl FnOnce() -> String, room: usize) -> Option<String> {
        if self.sizes.is_empty() {
            return None;
        }
        let draft = draft();
        // `@src/main.rs:10-20` names only part of a file, whose size is unknown.
        let is_all =
            |rest: &str| !rest.strip_prefix(':').is_some_and(|lines| lines.starts_with(|one: char| one.is_ascii_digit()));
        let ends =
            |rest: &str| is_all(rest) && rest.chars().next().is_none_or(|next| next.is_whitespace() || ",;:!?)".contains(next));
        let place = |named: &str| draft.match_indices(named).find(|(at, _)| ends(&draft[at + named.len()..])).map(|(at, _)| at);
        let mut named: Vec<_> = self.sizes.iter().filter_map(|(named, count)| Some((place(named)?, named, *count))).collect();
        named.sort_unstable();
        let total = tokens(named.iter().map(|(.., count)| count).sum());
        let each: Vec<String> =
            named.iter().map(|(_, named, count)| format!("{} ~{}", text::reveal(named), tokens(*count))).collect();
        let few = match named.len() {
            0 => return None,
            1 => format!("~{total} tokens"),
            count => format!("{count} files ~{total} tokens"),
        };
        [format!("{} tokens", each.join(", ")), few].into_iter().find(|words| text::width(words) <= room)
    }

    /// Returns the path of the first image named in the text, if any.
    pub(crate) fn find_image<'t>(&self, text: &'t str) -> Option<&'t str> {
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
    fn sizes_of_mentions_follow_draft_order_and_are_totalled_when_space_is_short() {
        let sizes_in = |attached: &Attachments, draft: &str, room| attached.sizes_in(|| draft.to_owned(), room);
        let mut attached = Attachments::default();
        for (named, count) in [("@Cargo.toml", 300), ("@src/main.rs", 1200), ("@src/main.rs.bak", 9000), ("@Cargo.toml", 310)] {
            attached.set_tokens(named.to_owned(), count);
        }
        let draft = "look at @src/main.rs, and @Cargo.toml";
        assert_eq!(sizes_in(&attached, draft, 60).as_deref(), Some("@src/main.rs ~1.2k, @Cargo.toml ~310 tokens"));
        assert_eq!(sizes_in(&attached, draft, 30).as_deref(), Some("2 files ~1.5k tokens"));
        assert_eq!(sizes_in(&attached, draft, 10), None);
        assert_eq!(sizes_in(&attached, "@src/main.rs", 14).as_deref(), Some("~1.2k tokens"));
        assert_eq!(sizes_in(&attached, "@src/main.rsx @src/mai @src/main.rs:10-20", 60), None);
        for number in 0..200 {
            attached.set_tokens(format!("@{number}"), 1);
        }
        assert_eq!((attached.sizes.len(), sizes_in(&attached, draft, 60)), (SIZES, None));
    }

    #[test]
    fn images_are_detected_by_extension_or_because_they_were_pasted() {
        let mut attached = Attachments::default();
        attached.add("artifact:0123456789ab");
        for (text, expected) in [
            ("look at @docs/a.PNG, please", Some("docs/a.PNG")),
            ("@\"my notes/b c.jpeg\"", Some("my notes/b c.jpeg")),
            ("@artifact:0123456789ab?", Some("artifact:0123456789ab")),
            ("@artifact:ffff a.png me@example.org @src/main.rs", None),
        ] {
            assert_eq!(attached.find_image(text), expected, "{text}");
        }
    }
}
