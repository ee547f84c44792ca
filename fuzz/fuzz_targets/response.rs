//! Fuzz target for responses in each dialect: the text does not depend on the chunk boundaries.

#![no_main]

use aye::fuzzing::{Api, response_bytes};
use libfuzzer_sys::fuzz_target;
use std::sync::LazyLock;
use tokio::runtime::Runtime;

static RUNTIME: LazyLock<Runtime> =
    LazyLock::new(|| tokio::runtime::Builder::new_current_thread().enable_time().build().expect("a runtime"));

fuzz_target!(|given: (u8, u8, &[u8])| {
    let (dialect, size, bytes) = given;
    let api = [Api::Anthropic, Api::OpenAiChat, Api::OpenAiResponses, Api::Gemini][usize::from(dialect) % 4];
    let heard = |size: usize| {
        let pieces = bytes.chunks(size.max(1)).map(bytes::Bytes::copy_from_slice).collect();
        RUNTIME.block_on(response_bytes(api, pieces))
    };
    let (whole, cut) = (heard(bytes.len()), heard(usize::from(size)));
    assert_eq!(whole.is_ok(), cut.is_ok(), "{whole:?} {cut:?}");
    if whole.is_ok() {
        assert_eq!(whole, cut);
    }
});
