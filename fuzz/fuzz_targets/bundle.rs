//! Any text as a policy file: a bundle or an error that says where, never a panic.

#![no_main]

#[allow(dead_code, unused_imports)]
#[path = "../../src/policy/mod.rs"]
mod policy;
#[allow(dead_code, unused_imports)]
#[path = "../../src/protocol/mod.rs"]
mod protocol;

use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &str| {
    if let Err(error) = policy::Bundle::parse(text, "policy.toml") {
        assert!(!error.to_string().is_empty());
    }
});
