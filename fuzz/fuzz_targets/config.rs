//! Fuzz target for `config.toml`: any text yields settings or an error, and a valid file stays valid after aye changes
//! it.

#![no_main]

use aye::fuzzing::check_settings_text;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &str| {
    if let Err(error) = check_settings_text(text) {
        assert!(!error.is_empty() && !error.starts_with("after a change"), "{error}");
    }
});
