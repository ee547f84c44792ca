//! Fuzz target for terminal input: the decoded keys, pastes and reports do not depend on the chunk boundaries.

#![no_main]

use aye::fuzzing::decode_inputs;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|given: (&[u8], u8)| {
    let (bytes, size) = given;
    let pieces: Vec<&[u8]> = bytes.chunks(usize::from(size).max(1)).collect();
    assert_eq!(decode_inputs(&[bytes]), decode_inputs(&pieces));
});
