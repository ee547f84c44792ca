//! Any text as a shell line: no panic, the same verdict twice, and never milder with more text behind it.

#![no_main]

mod verdict;

use aye::fuzzing::protocol::VerdictKind;
use libfuzzer_sys::fuzz_target;
use verdict::verdict;

fuzz_target!(|line: &str| {
    let alone = verdict(line);
    assert_eq!(alone, verdict(line));
    // The next line would be part of this one, or the text of a here-document.
    if line.ends_with('\\') || line.contains("<<") {
        return;
    }
    assert!(alone == VerdictKind::Deny || verdict(&format!("{line}\ntouch x")) != VerdictKind::Allow);
});
