//! Fuzz target for tool arguments: any text yields actions or an error with a message.

#![no_main]

use aye::fuzzing::{actions, tool_names};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &str| {
    for tool in tool_names() {
        if let Err(error) = actions(tool, text) {
            assert!(!error.is_empty());
        }
    }
});
