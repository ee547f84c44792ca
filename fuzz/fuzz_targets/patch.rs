//! Any text as a patch of any other: an error with a sentence, or a text that differs only where the patch names lines.

#![no_main]

use aye::fuzzing::apply_to_text;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|input: (&str, &str)| {
    let (text, patch) = input;
    match apply_to_text(text, patch) {
        Ok(results) => {
            for result in results {
                // Every byte comes from the text, from the patch, or ends a line.
                assert!(result.len() <= text.len() + 2 * patch.len() + 2);
            }
        }
        Err(error) => assert!(!error.is_empty()),
    }
});
