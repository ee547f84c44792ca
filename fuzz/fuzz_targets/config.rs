//! Any text as `config.toml`: settings, or an error that says where; and what aye writes into a valid file is valid.

#![no_main]

use aye::fuzzing::settings_in;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &str| {
    if let Err(error) = settings_in(text) {
        assert!(!error.is_empty() && !error.starts_with("after a change"), "{error}");
    }
});
