use super::*;
use crate::llm::error::ErrorContext;
use crate::llm::stream_reader::{Progress, ResponseAssembler};
use crate::ports::{Completion, Delta, ModelError};
use crate::protocol::{CallArguments, FailureKind, Part, StopReason};
use crate::sys::http::HttpError;
use bytes::Bytes;
use futures_util::{StreamExt, stream};
use serde_json::Value;
use std::path::{Path, PathBuf};

mod dialects;
mod ends;
mod faults;
mod faulty_servers;
mod fitness;
pub(super) mod samples;

pub(super) fn speaker() -> ErrorContext {
    ErrorContext {
        provider: "anthropic".to_owned(),
        model: "m".to_owned(),
        key_variable: "ANTHROPIC_API_KEY".to_owned(),
        base_url: "http://127.0.0.1:1".to_owned(),
        remedy: None,
    }
}

/// Feeds these chunks to an assembler. Returns the deltas and the result.
pub(super) async fn play(mut reader: impl ResponseAssembler, chunks: Vec<Bytes>) -> (Vec<Delta>, Result<Completion, ModelError>) {
    let body = stream::iter(chunks.into_iter().map(Ok::<_, HttpError>));
    let mut events = sse::events(body);
    let mut deltas = deltas::Deltas::default();
    let mut progress = Progress::More;
    while let Some(event) = events.next().await {
        let read = event.map_err(|error| speaker().interrupted_stream(error)).and_then(|event| reader.event(&event, &mut deltas));
        match read {
            Ok(Progress::End) => return (deltas.take(), Ok(reader.complete())),
            Ok(Progress::Whole) => progress = Progress::Whole,
            Ok(Progress::More) => {}
            Err(error) => return (deltas.take(), Err(error)),
        }
    }
    let end = if progress == Progress::Whole { Ok(reader.complete()) } else { Err(speaker().missing_end()) };
    (deltas.take(), end)
}

fn reader(dialect: &str) -> Box<dyn ResponseAssembler> {
    match dialect {
        "anthropic_messages" => Box::new(anthropic::MessagesAssembler::new(speaker())),
        "gemini" => Box::new(gemini::GeminiAssembler::new(speaker())),
        "openai_responses" => Box::new(responses::ResponsesAssembler::new(speaker())),
        _ => Box::new(chat::ChatAssembler::new(speaker())),
    }
}

impl ResponseAssembler for Box<dyn ResponseAssembler> {
    fn event(&mut self, event: &sse::SseEvent, deltas: &mut deltas::Deltas) -> Result<Progress, ModelError> {
        (**self).event(event, deltas)
    }
    fn complete(&mut self) -> Completion {
        (**self).complete()
    }
    fn parse_whole_body(&mut self, body: &[u8], deltas: &mut deltas::Deltas) -> Option<Result<(), ModelError>> {
        (**self).parse_whole_body(body, deltas)
    }
    fn part_count(&self) -> usize {
        (**self).part_count()
    }
    fn usage_so_far(&self) -> Option<crate::protocol::Usage> {
        (**self).usage_so_far()
    }
}

struct Recording {
    name: String,
    dialect: &'static str,
    stream: Vec<u8>,
    expected: Value,
}

/// Returns the project's own recordings, which are for the API that has no shared recordings.
fn own_recordings() -> Vec<Recording> {
    recordings_of("gemini", &Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/cases/llm"))
}

fn shared_recordings() -> Vec<Recording> {
    let root = shared!("fixtures/llm");
    ["anthropic_messages", "openai_chat", "openai_responses"].iter().flat_map(|dialect| recordings_of(dialect, &root)).collect()
}

fn recordings_of(dialect: &'static str, root: &Path) -> Vec<Recording> {
    let mut directories: Vec<_> = std::fs::read_dir(root.join(dialect)).unwrap().map(|entry| entry.unwrap().path()).collect();
    directories.sort();
    assert!(!directories.is_empty());
    let recording = |directory: PathBuf| Recording {
        name: directory.file_name().unwrap().to_string_lossy().into_owned(),
        dialect,
        stream: std::fs::read(directory.join("stream.sse")).unwrap(),
        expected: serde_json::from_slice(&std::fs::read(directory.join("expected.json")).unwrap()).unwrap(),
    };
    directories.into_iter().map(recording).collect()
}

fn text(content: &[Part]) -> String {
    content.iter().filter_map(|part| if let Part::Text { text } = part { Some(text.as_str()) } else { None }).collect()
}

fn reasoning(content: &[Part], dialect: &str) -> String {
    let texts =
        content.iter().filter_map(|part| if let Part::Reasoning { text, .. } = part { Some(text.as_str()) } else { None });
    // Reasoning in paragraphs has one part per paragraph.
    let between = if dialect == "openai_responses" { "\n\n" } else { "" };
    texts.filter(|text| !text.is_empty()).collect::<Vec<_>>().join(between)
}

fn streamed(deltas: &[Delta]) -> (String, String) {
    let mut said = (String::new(), String::new());
    for delta in deltas {
        match delta {
            Delta::Text(text) => said.0.push_str(text),
            Delta::Reasoning(text) => said.1.push_str(text),
            Delta::ToolCallProgress { .. } | Delta::Completed(_) => {}
        }
    }
    said
}

fn number(value: &Value) -> u64 {
    value.as_u64().unwrap_or(0)
}

#[track_caller]
fn check_recording(recording: &Recording, deltas: &[Delta], end: &Result<Completion, ModelError>) {
    let (name, expected) = (&recording.name, &recording.expected);
    let refusal = expected["refusal"].as_str().unwrap_or_default();
    let wanted_text = format!("{}{refusal}", expected["text"].as_str().unwrap());
    let (said, thought) = streamed(deltas);
    if expected["complete"] == false || expected["stop_reason"] == "error" {
        let Err(error) = end else { panic!("{name}: a broken answer looks whole: {end:?}") };
        if let Some(message) = expected["error"]["message"].as_str().filter(|_| expected["complete"] == true) {
            assert_eq!(error.failure.message, message, "{name}");
        }
        return;
    }
    let completion = end.as_ref().unwrap_or_else(|error| panic!("{name}: {error}"));
    assert_eq!(said, wanted_text, "{name}: streamed text");
    assert_eq!(text(&completion.content), wanted_text, "{name}: text");
    assert_eq!(thought, expected["reasoning"].as_str().unwrap(), "{name}: streamed reasoning");
    assert_eq!(reasoning(&completion.content, recording.dialect), thought, "{name}: reasoning");
    let stop = serde_json::to_value(completion.stop_reason).unwrap();
    assert_eq!(stop, expected["stop_reason"], "{name}: stop reason");
    let usage = &expected["usage"];
    let counted = [
        completion.usage.input_tokens,
        completion.usage.output_tokens,
        completion.usage.cache_read_tokens,
        completion.usage.cache_write_tokens,
        completion.usage.reasoning_tokens,
    ];
    let wanted = ["prompt_tokens_total", "output_tokens", "cache_read_tokens", "cache_write_tokens", "reasoning_tokens"]
        .map(|field| number(&usage[field]));
    assert_eq!(counted, wanted, "{name}: usage {usage}");
    check_calls(name, completion, &expected["tool_calls"]);
}

#[track_caller]
fn check_calls(name: &str, completion: &Completion, expected: &Value) {
    let calls: Vec<_> =
        completion.content.iter().filter_map(|part| if let Part::ToolCall(call) = part { Some(call) } else { None }).collect();
    let expected = expected.as_array().unwrap();
    assert_eq!(calls.len(), expected.len(), "{name}: calls");
    for (call, expected) in calls.iter().zip(expected) {
        if let Some(id) = expected["id"].as_str().filter(|id| !id.is_empty()) {
            assert_eq!(call.tool_call_id.as_str(), id, "{name}");
        }
        assert_eq!(call.tool_name, expected["name"].as_str().unwrap(), "{name}");
        match &call.arguments {
            CallArguments::Object(map) => assert_eq!(Value::Object(map.clone()), expected["arguments"], "{name}"),
            CallArguments::Malformed(text) => {
                assert!(!expected["arguments"].is_object(), "{name}");
                assert_eq!(text, expected["arguments_raw"].as_str().unwrap(), "{name}");
            }
        }
    }
}

async fn every_recorded_response_is_read_as_expected(recordings: Vec<Recording>) {
    for recording in recordings {
        let (deltas, end) = play(reader(recording.dialect), vec![recording.stream.clone().into()]).await;
        check_recording(&recording, &deltas, &end);
    }
}

/// Returns streams that have the same content but are encoded differently.
fn variants(stream: &[u8]) -> Vec<Vec<u8>> {
    let text = String::from_utf8_lossy(stream).into_owned();
    let plain = text.replace("\r\n", "\n");
    vec![
        plain.replace('\n', "\r\n").into_bytes(),
        plain.replace('\n', "\r").into_bytes(),
        format!("\u{feff}{plain}").into_bytes(),
        plain.replace("\n\n", "\n\n: still here\n\n").into_bytes(),
        plain.replace("\n\n", "\n\nevent: ping\ndata: {\"type\": \"ping\"}\n\nx-unknown: 1\n\n").into_bytes(),
        plain.replace("data: {", "data: {\"x_unknown\":{\"a\":[1,null]},").into_bytes(),
    ]
}

async fn differently_encoded_streams_give_the_same_response(recordings: Vec<Recording>) {
    for recording in recordings {
        // The largest recordings cover nothing new.
        if recording.stream.len() > 200_000 {
            continue;
        }
        for variant in variants(&recording.stream) {
            let (deltas, end) = play(reader(recording.dialect), vec![variant.into()]).await;
            check_recording(&recording, &deltas, &end);
        }
    }
}

async fn chunk_boundaries_do_not_change_the_response(recordings: Vec<Recording>) {
    let mut seed = 1_u64;
    let mut next = |limit: usize| {
        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (seed >> 33) as usize % limit + 1
    };
    for recording in recordings {
        for limit in [1, 97, 4096] {
            if recording.stream.len() / limit > 30_000 {
                continue;
            }
            let mut rest = recording.stream.as_slice();
            let mut chunks = Vec::new();
            while !rest.is_empty() {
                let (chunk, left) = rest.split_at(next(limit).min(rest.len()));
                chunks.push(Bytes::copy_from_slice(chunk));
                rest = left;
            }
            let (deltas, end) = play(reader(recording.dialect), chunks).await;
            check_recording(&recording, &deltas, &end);
        }
    }
}

async fn no_split_position_changes_a_short_response(recordings: Vec<Recording>) {
    for recording in recordings.into_iter().filter(|recording| recording.stream.len() < 2_500) {
        // Positions inside words are equivalent, so one in eight of them is enough.
        let stream = &recording.stream;
        let is_boundary = |at: usize| stream[at - 1..=at].iter().any(|byte| !byte.is_ascii_alphanumeric());
        for at in (1..stream.len()).filter(|at| is_boundary(*at) || at % 8 == 0) {
            let (one, two) = stream.split_at(at);
            let chunks = vec![Bytes::copy_from_slice(one), Bytes::copy_from_slice(two)];
            let (deltas, end) = play(reader(recording.dialect), chunks).await;
            check_recording(&recording, &deltas, &end);
        }
    }
}

async fn a_stream_cut_between_events_is_never_taken_for_complete(recordings: Vec<Recording>) {
    for mut recording in recordings.into_iter().filter(|recording| recording.stream.len() < 20_000) {
        recording.stream.retain(|byte| *byte != b'\r');
        let ends: Vec<usize> =
            recording.stream.windows(2).enumerate().filter(|(_, pair)| pair == b"\n\n").map(|(at, _)| at + 2).collect();
        for end in ends {
            let (deltas, result) = play(reader(recording.dialect), vec![Bytes::copy_from_slice(&recording.stream[..end])]).await;
            let Ok(completion) = result else { continue };
            assert_eq!(streamed(&deltas).0, text(&completion.content), "{}", recording.name);
            let whole =
                recording.expected["text"].as_str().unwrap().len() + recording.expected["refusal"].as_str().map_or(0, str::len);
            assert_eq!(text(&completion.content).len(), whole, "{}: cut at {end} and taken for whole", recording.name);
        }
    }
}

/// Defines these checks as tests for both the project's own recordings and the shared ones.
macro_rules! over_recordings {
    ($($check:ident),+ $(,)?) => {
        mod project_recordings {
            $(#[tokio::test]
            async fn $check() {
                super::$check(super::own_recordings()).await;
            })+
        }

        mod shared_material_recordings {
            $(#[tokio::test]
            #[cfg_attr(not(aye_shared), ignore = "needs the shared test material: set AYE_SHARED")]
            async fn $check() {
                super::$check(super::shared_recordings()).await;
            })+
        }
    };
}

over_recordings!(
    every_recorded_response_is_read_as_expected,
    differently_encoded_streams_give_the_same_response,
    chunk_boundaries_do_not_change_the_response,
    no_split_position_changes_a_short_response,
    a_stream_cut_between_events_is_never_taken_for_complete,
);

#[test]
fn debug_output_of_a_provider_spec_contains_no_key() {
    let spec = ProviderSpec {
        name: "anthropic".to_owned(),
        api: Api::Anthropic,
        base_url: Api::Anthropic.home().to_owned(),
        key: Some(Secret::new("sk-12345")),
        key_variable: "ANTHROPIC_API_KEY".to_owned(),
        headers: crate::llm::ExtraHeaders::default(),
        service: crate::llm::Service::Direct,
        account: None,
        timeouts: Timeouts::default(),
    };
    assert!(!format!("{spec:?}").contains("12345"));
}

#[test]
fn a_missing_key_is_an_error_for_the_provider_but_not_for_a_custom_server() {
    for api in [Api::Anthropic, Api::OpenAiChat, Api::OpenAiResponses, Api::Gemini] {
        let spec = |base_url: &str| ProviderSpec {
            name: "p".to_owned(),
            api,
            base_url: base_url.to_owned(),
            key: None,
            key_variable: "P_KEY".to_owned(),
            headers: crate::llm::ExtraHeaders::default(),
            service: crate::llm::Service::Direct,
            account: None,
            timeouts: Timeouts::default(),
        };
        let failure = connect(spec(api.home()), "m").err().unwrap();
        assert_eq!(failure.kind, FailureKind::Authentication);
        assert!(failure.hint.contains("`P_KEY`"));
        assert_eq!(connect(spec("http://127.0.0.1:9/v1"), "a/b").map(|model| model.name().to_owned()), Ok("p/a/b".to_owned()));
    }
}
