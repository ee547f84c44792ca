//! Fuzz target for output of an MCP server: the messages do not depend on the chunk boundaries, and an invalid line
//! does not affect the next one.

#![no_main]

use aye::fuzzing::mcp::decode_messages;
use futures_util::FutureExt;
use libfuzzer_sys::fuzz_target;

fn messages(pieces: &[&[u8]]) -> Vec<Result<String, String>> {
    // All chunks are in memory, so the future is ready at once.
    decode_messages(pieces).now_or_never().expect("all pieces are there")
}

fuzz_target!(|given: (&[u8], u8)| {
    let (bytes, size) = given;
    let pieces: Vec<&[u8]> = bytes.chunks(usize::from(size).max(1)).collect();
    assert_eq!(messages(&[bytes]), messages(&pieces));
    let hello = br#"{"jsonrpc":"2.0","id":1,"result":{}}"#;
    let followed = [bytes, b"\n", hello, b"\n"].concat();
    assert!(messages(&[&followed]).last().is_some_and(Result::is_ok), "a message is read whatever came before it");
});
