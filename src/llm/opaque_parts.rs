//! Opaque parts: signed or encrypted reasoning, and items that must be sent back unchanged. Each of them is stored
//! together with its origin, and sent only to that origin.

use crate::protocol::Part;
use serde_json::{Map, Value};

const FROM: &str = "from";
const OWN: &str = "own";

/// Records the origin of all opaque parts in a response.
pub(super) fn mark(content: &mut [Part], origin: &str) {
    for part in content {
        if let Part::Reasoning { opaque: Some(opaque), .. } = part {
            let mut marked = Map::new();
            marked.insert(FROM.to_owned(), Value::from(origin));
            marked.insert(OWN.to_owned(), opaque.take());
            *opaque = Value::Object(marked);
        }
    }
}

/// Returns the content of an opaque part, provided that it has this origin.
pub(super) fn content_for<'a>(opaque: &'a Value, origin: &str) -> Option<&'a Value> {
    opaque.get(FROM)?.as_str().filter(|from| *from == origin)?;
    opaque.get(OWN)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn marked_parts_go_only_to_their_origin_and_unmarked_parts_to_no_provider() {
        let sealed = json!({"reasoning_content": "hm"});
        let mut content =
            [Part::Reasoning { text: String::new(), opaque: Some(sealed.clone()) }, Part::Text { text: "a".into() }];
        mark(&mut content, "p https://one.example");
        let Part::Reasoning { opaque: Some(opaque), .. } = &content[0] else { panic!("{content:?}") };
        assert_eq!(content_for(opaque, "p https://one.example"), Some(&sealed));
        for other in ["p https://two.example", "q https://one.example", ""] {
            assert_eq!(content_for(opaque, other), None, "{other}");
        }
        assert_eq!((content_for(&sealed, ""), content_for(&json!(7), "")), (None, None));
    }
}
