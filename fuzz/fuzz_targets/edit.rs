//! Fuzz target for edits: the passage is replaced at its place, or the edit fails with a message.

#![no_main]

use aye::fuzzing::edit_text;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|given: (&str, &str, &str, bool)| {
    let (text, old, new, all) = given;
    let is_plain = [text, old, new].iter().all(|part| !part.contains('\r'));
    // Overlapping occurrences count as two places.
    let is_once = is_plain && !old.is_empty() && text.contains(old) && text.find(old) == text.rfind(old);
    match edit_text(text, old, new, all) {
        Ok(result) if is_once => assert_eq!(result, text.replacen(old, new, 1), "an exact place is replaced exactly"),
        Ok(result) => {
            // The number of places is at most the number of bytes plus one. Each place receives the new text, possibly
            // with other indentation or line endings.
            let places = text.len() + 1;
            assert!(result.len() <= text.len() + places * 2 * (new.len() + text.len() + old.len() + 1));
        }
        Err(error) => assert!(!is_once && !error.is_empty(), "an exact place is found: {error}"),
    }
});
