use super::*;
use crate::llm::catalogue::Catalogue;
use crate::llm::{Api, Secret, connect};
use crate::protocol::Price;
use crate::sys::http::Timeouts;
use serde_json::json;
use std::sync::{Arc, Mutex};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;

fn only(model: Value) -> ModelEntry {
    let [told] = entry::read(&json!({"object": "list", "data": [model]})).unwrap().try_into().unwrap();
    told
}

fn limits(model: Value) -> (Option<u64>, Option<u64>) {
    let told = only(model);
    (told.context_window, told.max_output_tokens)
}

#[test]
fn context_windows_are_read_from_the_fields_of_each_server() {
    for (model, window, output) in [
        (json!({"id": "vllm", "max_model_len": 40960}), Some(40_960), None),
        (json!({"id": "groq", "context_window": 131_072, "max_completion_tokens": 65536}), Some(131_072), Some(65_536)),
        (json!({"id": "mistral", "max_context_length": 131_072, "capabilities": {"completion_chat": true}}), Some(131_072), None),
        (json!({"id": "llama.gguf", "meta": {"n_vocab": 1, "n_ctx_train": 32768}}), Some(32_768), None),
        (json!({"id": "llama.gguf", "meta": {"n_ctx": 8192, "n_ctx_train": 32768}}), Some(8_192), None),
        (json!({"id": "lm", "max_context_length": 32768, "loaded_context_length": 4096}), Some(4_096), None),
        (
            json!({"id": "claude", "type": "model", "max_input_tokens": 200_000, "max_tokens": 64_000}),
            Some(200_000),
            Some(64_000),
        ),
        (json!({"id": "other", "max_tokens": 64_000}), None, None),
        (
            json!({"id": "routed", "context_length": 1_000_000,
                "top_provider": {"context_length": 200_000, "max_completion_tokens": 64_000}}),
            Some(200_000),
            Some(64_000),
        ),
        (json!({"id": "text", "context_length": "131072"}), Some(131_072), None),
        (json!({"id": "float", "context_length": 131_072.0}), Some(131_072), None),
        (json!({"id": "none"}), None, None),
    ] {
        assert_eq!(limits(model.clone()), (window, output), "{model}");
    }
    let gemini = json!({"models": [
        {"name": "models/gemini-2.5-pro", "inputTokenLimit": 1_048_576, "outputTokenLimit": 65536,
            "supportedGenerationMethods": ["generateContent", "countTokens"], "thinking": true},
        {"name": "models/embedding-001", "inputTokenLimit": 2048, "supportedGenerationMethods": ["embedContent"]}
    ]});
    let told = entry::read(&gemini).unwrap();
    assert_eq!((told.len(), told[0].id.as_str(), told[0].reasoning), (1, "gemini-2.5-pro", Some(true)));
    assert_eq!((told[0].context_window, told[0].max_output_tokens), (Some(1_048_576), Some(65_536)));
    assert_eq!(entry::read(&json!([{"id": "top-level"}])).unwrap()[0].id, "top-level");
}

#[test]
fn effort_levels_are_read_from_the_server_list() {
    use crate::protocol::Effort::{High, Low, Max, Off};
    let level = |supported: bool| json!({"supported": supported});
    let effort = json!({"supported": true, "low": level(true), "high": level(true), "xhigh": null, "max": level(false)});
    let told = only(json!({"id": "a", "capabilities": {"effort": effort}}));
    assert_eq!((told.reasoning, told.efforts), (Some(true), Some(vec![Low, High])));
    for (mandatory, efforts) in [(true, vec![Low, Max]), (false, vec![Off, Low, Max])] {
        let reasoning = json!({"supported_efforts": ["max", "low", "unheard-of", null], "mandatory": mandatory});
        let told = only(json!({"id": "a/b", "supported_parameters": ["reasoning"], "reasoning": reasoning}));
        assert_eq!(told.efforts, Some(efforts));
    }
    assert_eq!(only(json!({"id": "a", "supports_reasoning": true})).efforts, None);
}

#[test]
fn router_prices_are_per_token() {
    let pricing = json!({"prompt": "0.000003", "completion": "0.000015", "request": "0", "input_cache_read": "0.0000003",
        "input_cache_write": "0.00000375"});
    let told = only(json!({"id": "a/b", "pricing": pricing, "supported_parameters": ["tools", "reasoning"],
        "architecture": {"input_modalities": ["text", "image"], "output_modalities": ["text"]}}));
    assert_eq!(told.price, Some(Price { input: 3.0, output: 15.0, cache_read: 0.3, cache_write: 3.75 }));
    assert_eq!((told.images, told.reasoning), (Some(true), Some(true)));
    let without_cache = only(json!({"id": "a/b", "pricing": {"prompt": "0.0000001", "completion": 0.000_000_4}}));
    assert_eq!(without_cache.price, Some(Price { input: 0.1, output: 0.4, cache_read: 0.1, cache_write: 0.1 }));
    for pricing in [
        json!({"prompt": "-1", "completion": "-1"}),
        json!({"prompt": "NaN", "completion": "inf"}),
        json!({"prompt": "3", "completion": "15"}),
        json!({"input": 0.6, "output": 0.6}),
        json!({"prompt": "0.1"}),
        json!("free"),
    ] {
        assert_eq!(only(json!({"id": "a/b", "pricing": pricing})).price, None, "{pricing}");
    }
}

#[test]
fn invalid_entries_of_a_model_list_are_ignored() {
    for model in [
        json!({"id": "a\u{1b}[31mb"}),
        json!({"id": "a\nb"}),
        json!({"id": "a\u{202e}b"}),
        json!({"id": "\u{200b}"}),
        json!({"id": "   "}),
        json!({"id": ""}),
        json!({"id": 7}),
        json!({"id": "x".repeat(301)}),
        json!("text"),
        json!(null),
        json!({"id": "vectors", "type": "embeddings"}),
        json!({"id": "mistral-ocr", "capabilities": {"completion_chat": false}}),
        json!({"id": "painter", "architecture": {"output_modalities": ["image"]}}),
    ] {
        assert_eq!(entry::read(&json!({"data": [model]})), Some(Vec::new()), "{model}");
    }
    for window in
        [json!(0), json!(-5), json!(1e300), json!("many"), json!([1]), json!({"a": 1}), json!(18_446_744_073_709_551_615_u64)]
    {
        assert_eq!(limits(json!({"id": "a", "context_length": window})), (None, None), "{window}");
    }
    for body in [json!({}), json!({"data": {}}), json!("x"), json!(null), json!({"error": {"message": "no"}})] {
        assert_eq!(entry::read(&body), None, "{body}");
    }
    let told = only(json!({"id": "a", "context_length": 8192, "max_completion_tokens": 100_000}));
    let facts = told.apply_to(Catalogue::default().facts("x/a"));
    assert_eq!((facts.context_window, facts.max_output_tokens), (8_192, None), "no answer is longer than the window");
}

/// Starts a server that answers each request with the next of these bodies. Returns its address and the request lines
/// that it has received.
async fn serve(bodies: Vec<String>) -> (String, Arc<Mutex<Vec<String>>>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = format!("http://{}", listener.local_addr().unwrap());
    let asked: Arc<Mutex<Vec<String>>> = Arc::default();
    let heard = Arc::clone(&asked);
    tokio::spawn(async move {
        for body in bodies {
            let (mut socket, _) = listener.accept().await.unwrap();
            let mut request = Vec::new();
            while !request.ends_with(b"\r\n\r\n") && socket.read_buf(&mut request).await.unwrap() > 0 {}
            heard.lock().unwrap().push(String::from_utf8_lossy(&request).into_owned());
            let head = format!("HTTP/1.1 200 OK\r\ncontent-length: {}\r\nconnection: close\r\n\r\n", body.len());
            // The client may close the connection early.
            let _ = socket.write_all(format!("{head}{body}").as_bytes()).await;
        }
    });
    (address, asked)
}

fn spec(api: Api, base_url: &str) -> ProviderSpec {
    ProviderSpec {
        name: "p".to_owned(),
        api,
        base_url: base_url.to_owned(),
        key: Some(Secret::later(|| Ok("kept-key-4711".to_owned()))),
        key_variable: "P_KEY".to_owned(),
        headers: crate::llm::ExtraHeaders::default(),
        service: crate::llm::Service::Direct,
        account: None,
        timeouts: Timeouts::default(),
    }
}

#[tokio::test]
async fn all_pages_of_a_list_are_read_with_the_provider_key() {
    let pages = [
        json!({"data": [{"id": "one", "type": "model"}], "has_more": true, "last_id": "one&x"}),
        json!({"data": [{"id": "two", "type": "model"}, {"id": "one"}], "has_more": false, "last_id": "two"}),
    ];
    let (address, asked) = serve(pages.map(|page| page.to_string()).into()).await;
    let told = models(spec(Api::Anthropic, &address)).await.unwrap();
    assert_eq!(told.iter().map(|told| told.id.as_str()).collect::<Vec<_>>(), ["one", "two"]);
    let asked = asked.lock().unwrap().clone();
    assert!(asked[0].starts_with("GET /v1/models?limit=1000 ") && asked[0].contains("x-api-key: kept-key-4711"), "{}", asked[0]);
    assert!(asked[1].starts_with("GET /v1/models?limit=1000&after_id=one%26x "), "{}", asked[1]);

    let pages = [
        json!({"models": [{"name": "models/g"}], "nextPageToken": "t"}),
        json!({"models": [{"name": "models/h"}], "nextPageToken": "t"}),
    ];
    let (address, asked) = serve(pages.map(|page| page.to_string()).into()).await;
    assert_eq!(models(spec(Api::Gemini, &address)).await.unwrap().len(), 2, "a page that names itself is the last");
    let asked = asked.lock().unwrap().clone();
    assert!(asked[1].starts_with("GET /v1beta/models?pageSize=1000&pageToken=t ") && asked[1].contains("x-goog-api-key: "));
}

#[tokio::test]
async fn unbounded_and_malformed_lists_are_failures() {
    for body in [format!("{{\"data\": [\"{}", "x".repeat(BODY_BYTES)), "<html>".to_owned(), "[".repeat(100_000), "{}".to_owned()]
    {
        let (address, _) = serve(vec![body]).await;
        let failure = models(spec(Api::OpenAiChat, &address)).await.unwrap_err();
        assert_eq!(failure.kind, FailureKind::Protocol, "{failure}");
    }
}

#[tokio::test]
async fn an_unlisted_model_is_queried_once_and_a_listed_model_never() {
    let list = json!({"data": [{"id": "other"}, {"id": "mine", "max_model_len": 16384}]});
    let (address, asked) = serve(vec![list.to_string()]).await;
    let model = connect(spec(Api::OpenAiChat, &address), "mine").unwrap();
    let facts = model.query_facts().await.unwrap();
    assert_eq!((facts.context_window, facts.name.as_str(), model.facts()), (16_384, "p/mine", facts.clone()));
    assert_eq!(model.query_facts().await, None);
    assert!(asked.lock().unwrap()[0].starts_with("GET /models ") && asked.lock().unwrap()[0].contains("Bearer kept-key-4711"));
    let listed = ProviderSpec { name: "anthropic".to_owned(), ..spec(Api::Anthropic, &address) };
    assert_eq!(connect(listed, "claude-sonnet-5").unwrap().query_facts().await, None);
    let gone = connect(spec(Api::OpenAiChat, "http://127.0.0.1:9"), "mine").unwrap();
    assert_eq!(gone.query_facts().await, None, "never an error");
    assert_eq!(asked.lock().unwrap().len(), 1);
}

#[tokio::test]
async fn an_unavailable_key_is_a_failure_with_a_hint() {
    let spec = ProviderSpec {
        key: Some(Secret::later(|| Err("the keyring is locked".to_owned()))),
        ..spec(Api::OpenAiChat, "http://127.0.0.1:9")
    };
    let failure = models(spec).await.unwrap_err();
    assert_eq!((failure.kind, failure.message.as_str()), (FailureKind::Authentication, "the keyring is locked"));
    assert!(failure.hint.contains("aye auth login p"), "{}", failure.hint);
}
