//! Fuzz target for redaction: chunk boundaries and a second pass change nothing, and the original text can be restored.

#![no_main]

use aye::fuzzing::policy::redact::{Redactor, Stream, has_marker};
use libfuzzer_sys::fuzz_target;
use std::sync::{Arc, LazyLock};

const MAX_CUTS: usize = 12;

static REDACTOR: LazyLock<Arc<Redactor>> =
    LazyLock::new(|| Arc::new(Redactor::new(Vec::new(), ["correct horse battery staple"], || [7; 32])));

fuzz_target!(|given: (&str, Vec<u8>)| {
    let (text, cuts) = given;
    let hidden = REDACTOR.hide(text);
    assert_eq!(REDACTOR.hide(&hidden), hidden, "a second pass changes it");
    if has_marker(text).is_none()
        && let Ok(restored) = REDACTOR.restorer(text).restore(&hidden)
    {
        assert_eq!(restored, text);
    }
    let mut stream = Stream::new(REDACTOR.clone());
    let (mut rest, mut given) = (text, String::new());
    // Each chunk costs a search of the whole text.
    for cut in cuts.into_iter().filter(|cut| *cut > 0).take(MAX_CUTS) {
        let mut cut = usize::from(cut).min(rest.len());
        while !rest.is_char_boundary(cut) {
            cut -= 1;
        }
        given.push_str(&stream.push(&rest[..cut]));
        rest = &rest[cut..];
    }
    given.push_str(&stream.push(rest));
    given.push_str(&stream.finish());
    // If a key has an end but no beginning, the stream has already passed on the lines before that end.
    let begins = |text: &str| {
        text.split("-----BEGIN ").skip(1).any(|rest| rest.lines().next().is_some_and(|line| line.contains("PRIVATE KEY-----")))
    };
    let end = text.find("-----END ");
    if end.is_none_or(|end| begins(&text[..end])) {
        assert_eq!(given, hidden, "in pieces it is hidden otherwise");
    }
});
