//! Any passage of any text, replaced by any other: a sentence about what is wrong, or a text that differs only there.

#![no_main]

use aye::fuzzing::edit_text;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|given: (&str, &str, &str, bool)| {
    let (text, old, new, all) = given;
    let is_plain = [text, old, new].iter().all(|part| !part.contains('\r'));
    // A passage that overlaps itself is at two places.
    let is_once = is_plain && !old.is_empty() && text.contains(old) && text.find(old) == text.rfind(old);
    match edit_text(text, old, new, all) {
        Ok(result) if is_once => assert_eq!(result, text.replacen(old, new, 1), "an exact place is replaced exactly"),
        Ok(result) => {
            // At most one place a byte, and each takes the new text with other indentation or line endings.
            let places = text.len() + 1;
            assert!(result.len() <= text.len() + places * 2 * (new.len() + text.len() + old.len() + 1));
        }
        Err(error) => assert!(!is_once && !error.is_empty(), "an exact place is found: {error}"),
    }
});
