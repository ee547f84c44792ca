use super::*;
use serde_json::{Value, json};

#[test]
fn each_service_has_its_own_urls() {
    let azure = |version: Option<&str>| Service::Azure { version: version.map(str::to_owned) };
    let vertex = || Service::Vertex { project: "p".to_owned(), location: "europe-west1".to_owned() };
    let arn = "arn:aws:bedrock:eu-west-1:1:application-inference-profile/x";
    for (service, api, base, model, expected) in [
        (azure(None), Api::OpenAiResponses, "https://n.openai.azure.com", "my-gpt", "/openai/v1/responses"),
        (azure(None), Api::OpenAiChat, "https://n.openai.azure.com/openai", "my-gpt", "/v1/chat/completions"),
        (azure(None), Api::OpenAiChat, "https://n.openai.azure.com/openai/v1", "my-gpt", "/chat/completions"),
        (azure(Some("preview")), Api::OpenAiResponses, "https://n", "d", "/openai/v1/responses?api-version=preview"),
        (
            azure(Some("2024-10-21")),
            Api::OpenAiChat,
            "https://n",
            "my gpt",
            "/openai/deployments/my%20gpt/chat/completions?api-version=2024-10-21",
        ),
        (
            azure(Some("2025-04-01-preview")),
            Api::OpenAiResponses,
            "https://n",
            "d",
            "/openai/responses?api-version=2025-04-01-preview",
        ),
        (
            vertex(),
            Api::Gemini,
            "https://h",
            "gemini-2.5-pro",
            "/v1/projects/p/locations/europe-west1/publishers/google/models/gemini-2.5-pro:streamGenerateContent?alt=sse",
        ),
        (
            vertex(),
            Api::Anthropic,
            "https://h",
            "claude-sonnet-4-5@20250929",
            "/v1/projects/p/locations/europe-west1/publishers/anthropic/models/claude-sonnet-4-5@20250929:streamRawPredict",
        ),
        (
            Service::Bedrock,
            Api::Anthropic,
            "https://h",
            "eu.anthropic.claude-sonnet-4-5-20250929-v1:0",
            "/model/eu.anthropic.claude-sonnet-4-5-20250929-v1%3A0/invoke-with-response-stream",
        ),
        (
            Service::Bedrock,
            Api::Anthropic,
            "https://h",
            arn,
            "/model/arn%3Aaws%3Abedrock%3Aeu-west-1%3A1%3Aapplication-inference-profile%2Fx/invoke-with-response-stream",
        ),
        (Service::Direct, Api::Anthropic, "https://h", "m", "/v1/messages"),
    ] {
        assert_eq!(service.path(api, base, model), expected, "{service:?} {api:?} {base}");
    }
}

#[test]
fn azure_keys_and_entra_tokens_use_different_headers() {
    let headers = |key: &str| azure::headers(Some(key.to_owned()));
    assert_eq!(headers("0123abcd"), [("api-key", "0123abcd".to_owned())]);
    assert_eq!(headers("eyJh.eyJi.c"), [("authorization", "Bearer eyJh.eyJi.c".to_owned())]);
}

#[test]
fn request_bodies_are_changed_only_for_services_that_need_changes() {
    let body = br#"{"model":"m","max_tokens":1,"stream":true,"messages":[{"content":1.50}]}"#.to_vec();
    let read = |body: Vec<u8>| serde_json::from_slice::<Value>(&body).unwrap();
    let vertex = Service::Vertex { project: String::new(), location: String::new() };
    assert_eq!(
        read(vertex.body(Api::Anthropic, body.clone(), Some("b"))),
        json!({"anthropic_version": "vertex-2023-10-16", "max_tokens": 1, "stream": true, "messages": [{"content": 1.5}]})
    );
    let bedrock = Service::Bedrock.body(Api::Anthropic, body.clone(), Some("a, b"));
    assert!(String::from_utf8(bedrock.clone()).unwrap().contains("1.50"), "numbers stay as they are written");
    assert_eq!(
        read(bedrock),
        json!({"anthropic_version": "bedrock-2023-05-31", "anthropic_beta": ["a", "b"], "max_tokens": 1,
            "messages": [{"content": 1.5}]})
    );
    assert_eq!(Service::Direct.body(Api::Anthropic, body.clone(), None), body);
    assert_eq!(vertex.body(Api::Gemini, body.clone(), None), body);
}
