//! Any text as `config.toml`: settings, or an error that says where; and what aye writes into a valid file is valid.

#![no_main]

use aye::fuzzing::check_settings_text;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &str| {
    if let Err(error) = check_settings_text(text) {
        assert!(!error.is_empty() && !error.starts_with("after a change"), "{error}");
    }
});
