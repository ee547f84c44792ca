//! Tests of servers that do not support every feature of a request.

use super::*;

fn learned(lacks: &MissingFeatures, status: u16, message: &str) -> Failure {
    let body = json!({"error": {"message": message, "type": "invalid_request_error"}}).to_string();
    let mut error = speaker().status_error(status, "status", body.as_bytes(), crate::llm::error::RetryHints::default());
    lacks.learn(status, &speaker(), &mut error);
    error.failure
}

fn sent(lacks: &MissingFeatures) -> Map<String, Value> {
    let answer = message("2", Role::Assistant, vec![item(sealed("rs_1")), text("so")]);
    let request = ModelRequest { effort: Some(Effort::Low), ..request(vec![answer]) };
    serde_json::from_slice(&written("m", lacks, &request, &mut ThreadCache::default())).unwrap()
}

#[test]
fn parameters_that_a_server_rejects_are_omitted_from_the_next_request() {
    type IsThere = fn(&Map<String, Value>) -> bool;
    let cases: [(&str, Extra, IsThere); 8] = [
        ("Encrypted content is not supported with this model.", Extra::Sealed, |body| body.contains_key("include")),
        ("Your organization must be verified to generate reasoning summaries.", Extra::Summary, |body| {
            body.get("reasoning").is_some_and(|reasoning| reasoning.get("summary").is_some())
        }),
        ("Unsupported parameter: 'reasoning.effort' is not supported with this model.", Extra::Effort, |body| {
            body.contains_key("reasoning")
        }),
        ("Unknown parameter: 'prompt_cache_key'.", Extra::CacheKey, |body| body.contains_key("prompt_cache_key")),
        ("Unsupported parameter: 'parallel_tool_calls'", Extra::Parallel, |body| body.contains_key("parallel_tool_calls")),
        ("Unsupported parameter: max_output_tokens", Extra::Limit, |body| body.contains_key("max_output_tokens")),
        ("Item with id 'rs_1' not found. Items are not persisted when `store` is set to false.", Extra::ItemIds, |body| {
            body["input"][0].get("id").is_some()
        }),
        ("The encrypted content for item rs_1 could not be verified.", Extra::Kept, |body| {
            body["input"].as_array().unwrap().len() == 2
        }),
    ];
    for (message, extra, is_there) in cases {
        let lacks = MissingFeatures::default();
        assert!(is_there(&sent(&lacks)), "{message}");
        let first = learned(&lacks, 400, message);
        assert!(first.retryable && lacks.has(extra), "{message}");
        assert_eq!(first.message, message);
        assert!(!is_there(&sent(&lacks)), "{message}");
        assert!(!learned(&lacks, 400, message).retryable, "only once: {message}");
    }
}

#[test]
fn other_rejections_are_not_retryable() {
    for message in [
        "Invalid value for 'max_output_tokens': integer above maximum value.",
        "Invalid type for 'input[1].content'.",
        "The model 'x' is not supported.",
    ] {
        let lacks = MissingFeatures::default();
        let failure = learned(&lacks, 400, message);
        assert!(!failure.retryable, "{message}");
    }
}

#[test]
fn the_error_of_a_server_without_this_api_names_the_api_to_configure() {
    let hint = "set `providers.anthropic.api = \"openai-chat\"`";
    for (status, message) in [(404, "404 page not found"), (404, ""), (405, "Method Not Allowed"), (501, "not implemented")] {
        let failure = learned(&MissingFeatures::default(), status, message);
        assert!(failure.hint.contains(hint) && !failure.retryable, "{status} {message}: {failure:?}");
    }
    let failure = learned(&MissingFeatures::default(), 404, "The model `m` does not exist");
    assert!(!failure.hint.contains("openai-chat"), "{failure:?}");
}
