use super::*;
use crate::llm::local_discovery::tests::{json, serve};
use crate::llm::{Api, Timeouts};
use crate::ports::Delta;
use serde_json::json;

const SAID: &str = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n\
    data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"hi\"},\"finish_reason\":\"stop\"}]}\n\ndata: [DONE]\n\n";

async fn server(models: &[&str], tokens: u64) -> u16 {
    let models: Vec<_> = models.iter().map(|name| json!({"id": name, "max_model_len": tokens, "owned_by": "vllm"})).collect();
    serve(&[("/v1/models", json(json!({"data": models}))), ("/v1/chat/completions", SAID.to_owned())]).await
}

fn local(model: &str, home: u16, ports: &[u16]) -> Local {
    let spec = ProviderSpec {
        name: "local".to_owned(),
        api: Api::OpenAiChat,
        base_url: format!("http://localhost:{home}/v1"),
        key: None,
        key_variable: String::new(),
        headers: crate::llm::ExtraHeaders::default(),
        service: crate::llm::Service::Direct,
        account: None,
        timeouts: Timeouts::default(),
    };
    Local::new(spec, model, ports.to_vec(), crate::llm::Catalogue::default()).unwrap()
}

async fn ask(model: &Local) -> Result<(), ModelError> {
    let request = ModelRequest {
        system: "".into(),
        messages: Vec::new(),
        tools: Arc::new([]),
        max_output_tokens: 9,
        images: None,
        effort: None,
    };
    let mut stream = model.stream(request);
    let mut whole = false;
    while let Some(delta) = stream.next().await {
        whole |= matches!(delta?, Delta::Completed(_));
    }
    assert!(whole);
    Ok(())
}

#[tokio::test]
async fn requests_go_to_the_first_server_that_lists_the_model() {
    let (one, two) = (server(&["a"], 4096).await, server(&["b", "c:latest"], 32_768).await);
    for (name, tokens) in [("a", 4096), ("b", 32_768), ("c", 32_768), ("default", 4096)] {
        let model = local(name, 1, &[1, one, two]);
        assert_eq!(model.facts().context_window, 200_000, "{name}: nobody was asked yet");
        let told = model.query_facts().await.unwrap();
        assert_eq!((told.context_window, told.name), (tokens, format!("local/{name}")), "{name}");
        assert_eq!(model.facts().context_window, tokens, "{name}");
        ask(&model).await.unwrap();
    }
}

#[tokio::test]
async fn requests_for_unlisted_models_go_to_the_configured_server() {
    // The server responds, but lists no models.
    let home = serve(&[("/v1/chat/completions", SAID.to_owned())]).await;
    ask(&local("x", home, &[])).await.unwrap();
    // The server lists another model, but may still know this one.
    let home = server(&["a"], 1).await;
    ask(&local("x", home, &[home])).await.unwrap();
}

#[tokio::test]
async fn the_error_for_a_missing_model_lists_the_models_found() {
    let found = server(&["a", "b", "c", "d"], 4096).await;
    let failure = ask(&local("x", 1, &[found])).await.unwrap_err().failure;
    assert_eq!(failure.kind, FailureKind::NotFound);
    assert_eq!(failure.message, "no local model server has a model `x`; found vLLM (a, b, c, …)");
}

#[tokio::test]
async fn a_server_that_starts_later_is_used_by_the_next_request() {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let home = listener.local_addr().unwrap().port();
    drop(listener);
    let model = local("a", home, &[home]);
    assert_eq!(ask(&model).await.unwrap_err().failure.kind, FailureKind::Network);
    assert_eq!(model.query_facts().await, None);
}
