use super::*;
use std::collections::HashMap;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;

/// Starts a server that returns these responses, given by path, and does not respond to any other path. Returns its
/// port.
pub(in crate::llm) async fn serve(answers: &[(&'static str, String)]) -> u16 {
    let answers: HashMap<&str, String> = answers.iter().cloned().collect();
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    tokio::spawn(async move {
        while let Ok((mut socket, _)) = listener.accept().await {
            let answers = answers.clone();
            tokio::spawn(async move {
                let mut head = Vec::new();
                while !head.windows(4).any(|end| end == b"\r\n\r\n") {
                    if socket.read_buf(&mut head).await.unwrap_or(0) == 0 {
                        return;
                    }
                }
                let text = String::from_utf8_lossy(&head).into_owned();
                let path = text.split(' ').nth(1).unwrap_or_default();
                match answers.get(path) {
                    Some(answer) => drop(socket.write_all(answer.as_bytes()).await),
                    // Waits for the client to disconnect.
                    None => drop(socket.read(&mut [0; 1]).await),
                }
            });
        }
    });
    port
}

pub(in crate::llm) fn json(value: Value) -> String {
    let body = value.to_string();
    format!(
        "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: {}\r\nconnection: close\r\n\r\n{body}",
        body.len()
    )
}

fn names(server: &LocalServer) -> Vec<(&str, Option<u64>)> {
    server.models.iter().map(|model| (model.name.as_str(), model.context_window)).collect()
}

#[tokio::test]
async fn server_kinds_are_detected_by_their_responses() {
    let ollama = serve(&[
        (
            "/v1/models",
            json(serde_json::json!({"object": "list", "data": [
            {"id": "qwen3:8b", "object": "model", "created": 1, "owned_by": "library"},
            {"id": "llama3:latest", "object": "model", "created": 1, "owned_by": "library"}]})),
        ),
        (
            "/api/ps",
            json(serde_json::json!({"models": [{"name": "qwen3:8b", "model": "qwen3:8b", "size": 1, "context_length": 4096}]})),
        ),
    ])
    .await;
    let studio = serve(&[
        ("/v1/models", json(serde_json::json!({"data": [{"id": "google/gemma-3-12b", "owned_by": "organization_owner"}]}))),
        (
            "/api/v0/models",
            json(serde_json::json!({"data": [
            {"id": "google/gemma-3-12b", "state": "loaded", "max_context_length": 131_072, "loaded_context_length": 8192}]})),
        ),
    ])
    .await;
    let llama = serve(&[
        (
            "/v1/models",
            json(
                serde_json::json!({"data": [{"id": "/models/q.gguf", "owned_by": "llamacpp", "meta": {"n_ctx_train": 40_960}}]}),
            ),
        ),
        ("/props", json(serde_json::json!({"default_generation_settings": {"n_ctx": 32_768}}))),
    ])
    .await;
    let vllm =
        serve(&[("/v1/models", json(serde_json::json!({"data": [{"id": "m", "owned_by": "vllm", "max_model_len": 65_536}]})))])
            .await;
    let other = serve(&[("/v1/models", json(serde_json::json!({"data": [{"id": "m"}]})))]).await;
    let found = local_servers(&[ollama, studio, llama, vllm, other]).await;
    let told: Vec<_> = found.iter().map(|server| (server.name.as_str(), names(server))).collect();
    let elsewhere = format!("the server at port {other}");
    assert_eq!(
        told,
        [
            ("Ollama", vec![("qwen3:8b", Some(4096)), ("llama3:latest", None)]),
            ("LM Studio", vec![("google/gemma-3-12b", Some(8192))]),
            ("llama.cpp", vec![("/models/q.gguf", Some(32_768))]),
            ("vLLM", vec![("m", Some(65_536))]),
            (elsewhere.as_str(), vec![("m", None)]),
        ]
    );
    assert_eq!(found[0].base_url, format!("http://127.0.0.1:{ollama}/v1"));
    assert_eq!(found[0].model("llama3").map(|model| model.name.as_str()), Some("llama3:latest"));
    assert_eq!(found[0].model("qwen3"), None);
}

#[tokio::test]
async fn servers_without_a_model_list_are_ignored() {
    let deep = format!("{}{}", "[".repeat(100_000), "]".repeat(100_000));
    let bodies = [
        "HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\n<p>Hello!".to_owned(),
        "HTTP/1.1 404 Not Found\r\ncontent-length: 2\r\n\r\n{}".to_owned(),
        "HTTP/1.1 302 Found\r\nlocation: http://127.0.0.1:1/v1/models\r\ncontent-length: 0\r\n\r\n".to_owned(),
        "SSH-2.0-OpenSSH_9.6\r\n".to_owned(),
        String::new(),
        format!("HTTP/1.1 200 OK\r\ncontent-length: {}\r\n\r\n{deep}", deep.len()),
        format!("HTTP/1.1 200 OK\r\ncontent-length: 900000000\r\n\r\n{}", "{\"data\":[".repeat(300_000)),
        "HTTP/1.1 200 OK\r\ncontent-length: 100\r\n\r\n{\"data\":".to_owned(),
    ];
    let mut ports = Vec::new();
    for body in bodies {
        ports.push(serve(&[("/v1/models", body)]).await);
    }
    ports.push(serve(&[]).await);
    let closed = TcpListener::bind("127.0.0.1:0").await.unwrap();
    ports.push(closed.local_addr().unwrap().port());
    drop(closed);
    assert_eq!(local_servers(&ports).await, []);
    assert_eq!(local_servers(&[]).await, []);
}

#[tokio::test]
async fn unprintable_and_overlong_model_names_are_omitted() {
    let long = "x".repeat(MAX_NAME_CHARS + 1);
    let hostile = ["", "a\u{1b}[2J", "a\nb", "a\u{202e}b", "two words", long.as_str()];
    let entries = hostile.iter().map(|name| serde_json::json!({"id": name})).chain([
        serde_json::json!({"id": 7}),
        serde_json::json!("x"),
        serde_json::json!({"id": "nomic", "type": "embeddings"}),
        serde_json::json!({"id": "good:1b", "max_model_len": -1}),
        serde_json::json!({"id": "large", "max_model_len": u64::MAX}),
        serde_json::json!({"id": "small", "meta": {"n_ctx": 1}}),
    ]);
    let many = entries.chain((0..900).map(|number| serde_json::json!({"id": format!("m{number}")})));
    let port = serve(&[("/v1/models", json(serde_json::json!({"data": many.collect::<Vec<_>>()})))]).await;
    let found = local_servers(&[port]).await;
    assert_eq!(found[0].models.len(), MAX_MODELS);
    for (model, name) in found[0].models.iter().zip(["good:1b", "large", "small"]) {
        assert_eq!(*model, LocalModel { name: name.to_owned(), context_window: None });
    }
}
