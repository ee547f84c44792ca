//! Any bytes as an answer, cut anywhere: the same events however they come.

#![no_main]

use aye::fuzzing::events_in;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|given: (&[u8], u8)| {
    let (bytes, size) = given;
    let whole = events_in(vec![bytes.to_vec()]);
    let pieces = bytes.chunks(usize::from(size).max(1)).map(<[u8]>::to_vec).collect();
    let cut = events_in(pieces);
    assert_eq!(whole.iter().all(Result::is_ok), cut.iter().all(Result::is_ok));
    if whole.iter().all(Result::is_ok) {
        assert_eq!(whole, cut);
    }
});
