//! Fuzz target for policy files: any text yields a bundle or an error with a message.

#![no_main]

use aye::fuzzing::policy::Bundle;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &str| {
    if let Err(error) = Bundle::parse(text, "policy.toml") {
        assert!(!error.to_string().is_empty());
    }
});
