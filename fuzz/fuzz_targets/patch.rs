//! Fuzz target for patches: any text, applied to any other, yields a result of limited size or an error with a message.

#![no_main]

use aye::fuzzing::apply_to_text;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|input: (&str, &str)| {
    let (text, patch) = input;
    match apply_to_text(text, patch) {
        Ok(results) => {
            for result in results {
                // Every byte comes from the text or the patch, or ends a line.
                assert!(result.len() <= text.len() + 2 * patch.len() + 2);
            }
        }
        Err(error) => assert!(!error.is_empty()),
    }
});
