//! Speed of response parsing, from the bytes of a body to parsed events, over recorded streams of each dialect.
//!
//! `cargo bench --profile dist --bench sse --features fuzzing` prints one row per dialect: the measured throughput by
//! CPU time, and its lower limit. The recordings are in `fixtures/llm` below `AYE_SHARED`, which is `../shared` by
//! default. Without recordings, only generated streams are measured.

#![expect(clippy::unwrap_used, reason = "a failed measurement ends the run")]

use aye::fuzzing::{Api, response_bytes};
use bytes::Bytes;
use nix::sys::resource::{UsageWho, getrusage};
use std::fs;
use std::path::Path;

/// Typical size of a chunk that a connection delivers, in bytes.
const PIECE_BYTES: usize = 16 << 10;
const RUNS: usize = 5;
/// Minimum duration of a run, in seconds.
const AT_LEAST: f64 = 0.2;
const MIN_MB_PER_S: f64 = 100.0;
/// Number of events in a generated response.
const EVENTS: usize = 4_000;

fn main() {
    let fixtures = Path::new(env!("AYE_SHARED_DIR")).join("fixtures/llm");
    println!("{:<44} {:>10} {:>10}", "figure (median)", "measured", "at least");
    for (dialect, api) in
        [("anthropic_messages", Api::Anthropic), ("openai_chat", Api::OpenAiChat), ("openai_responses", Api::OpenAiResponses)]
    {
        match recorded(&fixtures.join(dialect), api) {
            bodies if bodies.is_empty() => println!("skipped: no recordings of {dialect} in {}", fixtures.display()),
            bodies => row(&format!("recorded responses, {dialect}"), api, &bodies),
        }
    }
    for (name, api, begin, event, end) in MADE {
        let body = format!("{begin}{}{end}", event.repeat(EVENTS));
        row(&format!("generated long response, {name}"), *api, &[pieces(body.into())]);
    }
}

/// Dialect, API, and the start, one word and the end of a generated response.
const MADE: &[(&str, Api, &str, &str, &str)] = &[
    (
        "anthropic",
        Api::Anthropic,
        "event: message_start\ndata: {\"type\":\"message_start\",\"message\":{\"id\":\"m\",\"usage\":{\"input_tokens\":3}}}\n\n\
         event: content_block_start\ndata: {\"type\":\"content_block_start\",\"index\":0,\"content_block\":{\"type\":\"text\",\"text\":\"\"}}\n\n",
        "event: content_block_delta\ndata: {\"type\":\"content_block_delta\",\"index\":0,\"delta\":{\"type\":\"text_delta\",\"text\":\" word\"}}\n\n",
        "event: message_stop\ndata: {\"type\":\"message_stop\"}\n\n",
    ),
    (
        "chat",
        Api::OpenAiChat,
        "",
        "data: {\"id\":\"chatcmpl-BX1\",\"object\":\"chat.completion.chunk\",\"created\":1747000000,\"model\":\"m\",\"service_tier\":\"default\",\
         \"system_fingerprint\":\"fp_1\",\"choices\":[{\"index\":0,\"delta\":{\"content\":\" word\"},\"logprobs\":null,\"finish_reason\":null}],\"usage\":null}\n\n",
        "data: {\"id\":\"chatcmpl-BX1\",\"choices\":[{\"index\":0,\"delta\":{},\"finish_reason\":\"stop\"}]}\n\ndata: [DONE]\n\n",
    ),
    (
        "responses",
        Api::OpenAiResponses,
        "event: response.output_item.added\ndata: {\"type\":\"response.output_item.added\",\"output_index\":0,\"item\":{\"id\":\"msg_1\",\
         \"type\":\"message\",\"status\":\"in_progress\",\"role\":\"assistant\",\"content\":[]}}\n\n",
        "event: response.output_text.delta\ndata: {\"type\":\"response.output_text.delta\",\"sequence_number\":5,\"item_id\":\"msg_1\",\
         \"output_index\":0,\"content_index\":0,\"delta\":\" word\",\"logprobs\":[],\"obfuscation\":\"abcdefgh\"}\n\n",
        "event: response.completed\ndata: {\"type\":\"response.completed\",\"response\":{\"status\":\"completed\",\"output\":[]}}\n\n",
    ),
    (
        "gemini",
        Api::Gemini,
        "",
        "data: {\"candidates\":[{\"content\":{\"parts\":[{\"text\":\" word\"}],\"role\":\"model\"},\"index\":0}],\"usageMetadata\":\
         {\"promptTokenCount\":5,\"candidatesTokenCount\":1,\"totalTokenCount\":6},\"modelVersion\":\"m\",\"responseId\":\"r\"}\n\n",
        "data: {\"candidates\":[{\"content\":{\"parts\":[{\"text\":\".\"}],\"role\":\"model\"},\"finishReason\":\"STOP\",\"index\":0}]}\n\n",
    ),
];

/// Returns the recorded bodies of complete responses, and skips those that end in an error.
fn recorded(directory: &Path, api: Api) -> Vec<Vec<Bytes>> {
    let entries = fs::read_dir(directory).into_iter().flatten().filter_map(Result::ok);
    let bodies = entries.filter_map(|entry| fs::read(entry.path().join("stream.sse")).ok()).map(|body| pieces(body.into()));
    bodies.filter(|body| runtime().block_on(response_bytes(api, body.clone())).is_ok()).collect()
}

fn pieces(mut body: Bytes) -> Vec<Bytes> {
    let mut pieces = Vec::new();
    while !body.is_empty() {
        pieces.push(body.split_to(body.len().min(PIECE_BYTES)));
    }
    pieces
}

fn runtime() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap()
}

/// Returns the user and system CPU time of this process, in seconds.
fn cpu() -> f64 {
    let usage = getrusage(UsageWho::RUSAGE_SELF).unwrap();
    [usage.user_time(), usage.system_time()].iter().map(|time| time.tv_sec() as f64 + time.tv_usec() as f64 / 1e6).sum()
}

fn row(figure: &str, api: Api, bodies: &[Vec<Bytes>]) {
    let runtime = runtime();
    let bytes: usize = bodies.iter().flatten().map(Bytes::len).sum();
    let mut speeds: Vec<f64> = (0..RUNS)
        .map(|_| {
            let (began, mut read) = (cpu(), 0);
            while cpu() - began < AT_LEAST {
                for body in bodies {
                    runtime.block_on(response_bytes(api, body.clone())).unwrap();
                }
                read += bytes;
            }
            read as f64 / 1e6 / (cpu() - began)
        })
        .collect();
    speeds.sort_by(f64::total_cmp);
    let speed = speeds[RUNS / 2];
    let mark = if speed < MIN_MB_PER_S { "  under" } else { "" };
    println!("{figure:<44} {speed:>5.0} MB/s {MIN_MB_PER_S:>5.0} MB/s{mark}");
}
