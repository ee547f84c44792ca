//! Fuzz target for shell lines: the verdict is reproducible, and a second line that writes a file is never allowed.

#![no_main]

mod verdict;

use aye::fuzzing::protocol::VerdictKind;
use libfuzzer_sys::fuzz_target;
use verdict::verdict;

fuzz_target!(|line: &str| {
    let alone = verdict(line);
    assert_eq!(alone, verdict(line));
    // The second line would continue the first one or belong to a here-document.
    if line.ends_with('\\') || line.contains("<<") {
        return;
    }
    assert!(alone == VerdictKind::Deny || verdict(&format!("{line}\ntouch x")) != VerdictKind::Allow);
});
