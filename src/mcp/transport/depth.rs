//! Removal of excessively nested JSON, which makes it possible to parse the rest of the text.

use std::borrow::Cow;

/// Replaces every object and list that is nested deeper than `limit` with `null`. Invalid JSON stays invalid.
pub(super) fn prune(text: &[u8], limit: usize) -> Cow<'_, [u8]> {
    if !is_deeper(text, limit) {
        return Cow::Borrowed(text);
    }
    let mut kept = Vec::with_capacity(text.len().min(1 << 16));
    let mut scan = DepthScan::default();
    for &byte in text {
        let before = scan.depth;
        scan.take(byte);
        match (before > limit, scan.depth > limit) {
            (false, false) => kept.push(byte),
            (false, true) => kept.extend_from_slice(b"null"),
            (true, _) => {}
        }
    }
    Cow::Owned(kept)
}

fn is_deeper(text: &[u8], limit: usize) -> bool {
    let mut scan = DepthScan::default();
    text.iter().any(|&byte| {
        scan.take(byte);
        scan.depth > limit
    })
}

#[derive(Default)]
struct DepthScan {
    depth: usize,
    in_string: bool,
    escaped: bool,
}

impl DepthScan {
    fn take(&mut self, byte: u8) {
        if self.in_string {
            match byte {
                _ if self.escaped => self.escaped = false,
                b'\\' => self.escaped = true,
                b'"' => self.in_string = false,
                _ => {}
            }
            return;
        }
        match byte {
            b'"' => self.in_string = true,
            b'{' | b'[' => self.depth += 1,
            b'}' | b']' => self.depth = self.depth.saturating_sub(1),
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::prune;

    #[test]
    fn values_nested_too_deeply_are_replaced_and_the_rest_is_kept() {
        assert_eq!(&*prune(br#"{"a":[1,{"b":[2]}],"c":"[[[["}"#, 2), br#"{"a":[1,null],"c":"[[[["}"#);
        assert_eq!(&*prune(br#"{"a":[]}"#, 2), br#"{"a":[]}"#);
        let bomb = format!("{{\"a\":{}{},\"b\":1}}", "[".repeat(100_000), "]".repeat(100_000));
        let value: serde_json::Value = serde_json::from_slice(&prune(bomb.as_bytes(), 100)).unwrap();
        assert_eq!(value["b"], 1);
    }

    #[test]
    fn invalid_json_stays_invalid() {
        assert!(serde_json::from_slice::<serde_json::Value>(&prune(b"[[[", 2)).is_err());
        assert!(serde_json::from_slice::<serde_json::Value>(&prune(b"]]]", 2)).is_err());
    }
}
