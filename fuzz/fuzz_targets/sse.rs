//! Fuzz target for server-sent events: the events do not depend on the chunk boundaries.

#![no_main]

use aye::fuzzing::decode_events;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|given: (&[u8], u8)| {
    let (bytes, size) = given;
    let whole = decode_events(vec![bytes.to_vec()]);
    let pieces = bytes.chunks(usize::from(size).max(1)).map(<[u8]>::to_vec).collect();
    let cut = decode_events(pieces);
    assert_eq!(whole.iter().all(Result::is_ok), cut.iter().all(Result::is_ok));
    if whole.iter().all(Result::is_ok) {
        assert_eq!(whole, cut);
    }
});
