//! Actual error messages from servers, each with the kind of failure expected for it.

use super::*;

const CASES: &[(FailureKind, u16, &str)] = &[
    // OpenAI and Azure.
    (
        FailureKind::RateLimited,
        429,
        r#"{"error":{"message":"Rate limit reached for gpt-4o in organization org-x on tokens per min (TPM): Limit 30000, Used 29000, Requested 2000. Please try again in 1.386s.","type":"tokens","param":null,"code":"rate_limit_exceeded"}}"#,
    ),
    (
        FailureKind::ContextTooLong,
        429,
        r#"{"error":{"message":"Request too large for gpt-4o in organization org-x on tokens per min (TPM): Limit 30000, Requested 50000. The input or output tokens must be reduced in order to run successfully.","type":"tokens","code":"rate_limit_exceeded"}}"#,
    ),
    (
        FailureKind::Billing,
        429,
        r#"{"error":{"message":"You exceeded your current quota, please check your plan and billing details. For more information on this error, read the docs.","type":"insufficient_quota","param":null,"code":"insufficient_quota"}}"#,
    ),
    (
        FailureKind::Overloaded,
        503,
        r#"{"error":{"message":"That model is currently overloaded with other requests.","type":"server_error"}}"#,
    ),
    (
        FailureKind::Overloaded,
        429,
        r#"{"error":{"message":"The engine is currently overloaded, please try again later","type":"requests","code":"engine_overloaded"}}"#,
    ),
    (
        FailureKind::Permission,
        403,
        r#"{"error":{"code":"unsupported_country_region_territory","message":"Country, region, or territory not supported","type":"request_forbidden"}}"#,
    ),
    (
        FailureKind::InvalidRequest,
        400,
        r#"{"error":{"message":"Unsupported parameter: 'max_tokens' is not supported with this model. Use 'max_completion_tokens' instead.","type":"invalid_request_error","param":"max_tokens","code":"unsupported_parameter"}}"#,
    ),
    (
        FailureKind::GuardrailBlocked,
        400,
        r#"{"error":{"message":"Invalid prompt: your prompt was flagged as potentially violating our usage policy.","type":"invalid_request_error","code":"invalid_prompt"}}"#,
    ),
    (
        FailureKind::Authentication,
        401,
        r#"{"error":{"code":"401","message":"Access denied due to invalid subscription key or wrong API endpoint."}}"#,
    ),
    (
        FailureKind::RateLimited,
        429,
        r#"{"error":{"code":"429","message":"Requests to the ChatCompletions_Create Operation under Azure OpenAI API version 2024-02-01 have exceeded token rate limit of your current OpenAI S0 pricing tier. Please retry after 26 seconds."}}"#,
    ),
    (FailureKind::NotFound, 404, r#"{"error":{"code":"404","message":"Resource not found"}}"#),
    // LiteLLM without a database.
    (
        FailureKind::Authentication,
        400,
        r#"{"error":{"message":"No connected db.","type":"no_db_connection","param":null,"code":"400"}}"#,
    ),
    (
        FailureKind::GuardrailBlocked,
        400,
        r#"{"error":{"message":"The response was filtered","code":"content_filter","status":400,"innererror":{"code":"ResponsibleAIPolicyViolation"}}}"#,
    ),
    // Anthropic and Bedrock.
    (
        FailureKind::RateLimited,
        429,
        r#"{"type":"error","error":{"type":"rate_limit_error","message":"This request would exceed your organization's rate limit of 40,000 input tokens per minute."}}"#,
    ),
    (
        FailureKind::ContextTooLong,
        400,
        r#"{"type":"error","error":{"type":"invalid_request_error","message":"input length and `max_tokens` exceed context limit: 195000 + 8192 > 200000, decrease input length or `max_tokens` and try again"}}"#,
    ),
    (
        FailureKind::GuardrailBlocked,
        400,
        r#"{"type":"error","error":{"type":"invalid_request_error","message":"Output blocked by content filtering policy"}}"#,
    ),
    (
        FailureKind::Billing,
        400,
        r#"{"type":"error","error":{"type":"invalid_request_error","message":"You have reached your specified API usage limits. You will regain access on 2026-12-01 at 00:00 UTC."}}"#,
    ),
    (
        FailureKind::Permission,
        400,
        r#"{"type":"error","error":{"type":"invalid_request_error","message":"This organization has been disabled."}}"#,
    ),
    (FailureKind::Overloaded, 500, r#"{"type":"error","error":{"type":"api_error","message":"Internal server error"}}"#),
    (
        FailureKind::InvalidRequest,
        400,
        r#"{"type":"error","error":{"type":"invalid_request_error","message":"messages.2: `tool_use` ids were found without `tool_result` blocks immediately after: toolu_1."}}"#,
    ),
    (FailureKind::RateLimited, 429, r#"{"message":"Too many tokens, please wait before trying again."}"#),
    (
        FailureKind::RateLimited,
        400,
        r#"{"__type":"ThrottlingException","message":"Too many requests, please wait before trying again."}"#,
    ),
    (FailureKind::ContextTooLong, 400, r#"{"message":"Input is too long for requested model."}"#),
    (FailureKind::Permission, 403, r#"{"message":"You don't have access to the model with the specified model ID."}"#),
    (
        FailureKind::Authentication,
        403,
        r#"{"__type":"ExpiredTokenException","message":"The security token included in the request is expired"}"#,
    ),
    (
        FailureKind::InvalidRequest,
        400,
        r#"{"message":"Invocation of model ID x with on-demand throughput isn’t supported. Retry your request with an inference profile."}"#,
    ),
    // Google.
    (
        FailureKind::RateLimited,
        429,
        r#"{"error":{"code":429,"message":"You exceeded your current quota, please check your plan and billing details.","status":"RESOURCE_EXHAUSTED","details":[{"@type":"type.googleapis.com/google.rpc.RetryInfo","retryDelay":"38s"}]}}"#,
    ),
    (
        FailureKind::Authentication,
        400,
        r#"{"error":{"code":400,"message":"API key expired. Please renew the API key.","status":"INVALID_ARGUMENT","details":[{"reason":"API_KEY_INVALID"}]}}"#,
    ),
    (
        FailureKind::Permission,
        400,
        r#"{"error":{"code":400,"message":"User location is not supported for the API use.","status":"FAILED_PRECONDITION"}}"#,
    ),
    (
        FailureKind::Overloaded,
        503,
        r#"{"error":{"code":503,"message":"The model is overloaded. Please try again later.","status":"UNAVAILABLE"}}"#,
    ),
    (
        FailureKind::Timeout,
        504,
        r#"{"error":{"code":504,"message":"Deadline expired before operation could complete.","status":"DEADLINE_EXCEEDED"}}"#,
    ),
    (
        FailureKind::NotFound,
        404,
        r#"{"error":{"code":404,"message":"models/gemini-x is not found for API version v1beta","status":"NOT_FOUND"}}"#,
    ),
    (
        FailureKind::RateLimited,
        403,
        r#"{"error":{"code":403,"message":"User Rate Limit Exceeded","errors":[{"reason":"userRateLimitExceeded"}]}}"#,
    ),
    // Self-hosted servers.
    (
        FailureKind::NotFound,
        404,
        r#"{"error":{"message":"model \"x\" not found, try pulling it first","type":"api_error","param":null,"code":null}}"#,
    ),
    (FailureKind::InvalidRequest, 500, r#"{"error":"model requires more system memory (5.6 GiB) than is available (3.1 GiB)"}"#),
    (
        FailureKind::InvalidRequest,
        400,
        r#"{"error":{"message":"registry.ollama.ai/library/gemma3:latest does not support tools","type":"api_error"}}"#,
    ),
    (
        FailureKind::ContextTooLong,
        400,
        r#"{"error":{"code":400,"message":"request (9000 tokens) exceeds the available context size (4096 tokens), try increasing it","type":"exceed_context_size_error","n_prompt_tokens":9000,"n_ctx":4096}}"#,
    ),
    (
        FailureKind::ContextTooLong,
        500,
        r#"{"error":{"code":500,"message":"input is too large to process. increase the physical batch size","type":"server_error"}}"#,
    ),
    (FailureKind::Overloaded, 503, r#"{"error":{"code":503,"message":"Loading model","type":"unavailable_error"}}"#),
    (
        FailureKind::InvalidRequest,
        500,
        r#"{"error":{"code":500,"message":"tools param requires --jinja flag","type":"server_error"}}"#,
    ),
    (
        FailureKind::ContextTooLong,
        400,
        r#"{"object":"error","message":"This model's maximum context length is 4096 tokens. However, you requested 5000 tokens (4000 in the messages, 1000 in the completion).","type":"BadRequestError","param":null,"code":400}"#,
    ),
    (
        FailureKind::NotFound,
        404,
        r#"{"object":"error","message":"The model `x` does not exist.","type":"NotFoundError","param":null,"code":404}"#,
    ),
    (FailureKind::ContextTooLong, 400, r#"{"error":"Cannot truncate prompt with n_keep (5000) >= n_ctx (4096)"}"#),
    (
        FailureKind::NotFound,
        400,
        r#"{"error":"No models loaded. Please load a model in the developer page or use the 'lms load' command."}"#,
    ),
    // Gateways.
    (
        FailureKind::ContextTooLong,
        400,
        r#"{"error":{"message":"litellm.ContextWindowExceededError: litellm.BadRequestError: AnthropicException - {\"type\":\"error\"}","type":null,"param":null,"code":"400"}}"#,
    ),
    (
        FailureKind::GuardrailBlocked,
        400,
        r#"{"error":{"message":"litellm.ContentPolicyViolationError: AzureException","type":null,"code":"400"}}"#,
    ),
    (
        FailureKind::RateLimited,
        429,
        r#"{"error":{"message":"No deployments available for selected model, Try again in 5 seconds. Passed model=x.","type":"None","code":"429"}}"#,
    ),
    (
        FailureKind::Billing,
        400,
        r#"{"error":{"message":"Budget has been exceeded! Current cost: 1.2, Max budget: 1.0","type":"budget_exceeded","param":null,"code":"400"}}"#,
    ),
    (
        FailureKind::Authentication,
        400,
        r#"{"error":{"message":"litellm.AuthenticationError: OpenAIException - no","type":null,"code":"400"}}"#,
    ),
    (FailureKind::Billing, 402, r#"{"error":{"message":"This request requires more credits, or fewer max_tokens.","code":402}}"#),
    (
        FailureKind::ContextTooLong,
        400,
        r#"{"error":{"message":"Provider returned error","code":400,"metadata":{"raw":"{\"error\":{\"message\":\"prompt is too long: 9 tokens > 8\"}}","provider_name":"Anthropic"}}}"#,
    ),
    (
        FailureKind::GuardrailBlocked,
        403,
        r#"{"error":{"message":"The input was rejected","code":403,"metadata":{"reasons":["violence"],"flagged_input":"x","raw":"was flagged by moderation"}}}"#,
    ),
    (FailureKind::Billing, 200, r#"{"error":{"message":"Insufficient credits","code":402}}"#),
    (FailureKind::RateLimited, 200, r#"{"error":{"message":"Provider returned error","code":429}}"#),
    (FailureKind::Overloaded, 200, r#"{"error":{"message":"Provider returned error","code":502}}"#),
    // Others.
    (
        FailureKind::Billing,
        402,
        r#"{"error":{"message":"Insufficient Balance","type":"unknown_error","param":null,"code":"invalid_request_error"}}"#,
    ),
    (
        FailureKind::Overloaded,
        503,
        r#"{"error":{"message":"Service is too busy. We advise users to temporarily switch to alternative LLM API service providers.","type":"service_unavailable_error"}}"#,
    ),
    (
        FailureKind::ContextTooLong,
        400,
        r#"{"object":"error","message":"Prompt contains 40000 tokens and 0 draft tokens, too large for model with 32768 maximum context length","type":"invalid_request_invalid_args","code":"3051"}"#,
    ),
    (
        FailureKind::NotFound,
        400,
        r#"{"object":"error","message":"Invalid model: x","type":"invalid_model","param":null,"code":"1500"}"#,
    ),
    (
        FailureKind::InvalidRequest,
        422,
        r#"{"object":"error","message":{"detail":[{"type":"missing","loc":["body","model"],"msg":"Field required"}]},"type":"invalid_request_error"}"#,
    ),
    (FailureKind::RateLimited, 429, r#"{"message":"Requests rate limit exceeded"}"#),
    (
        FailureKind::Billing,
        403,
        r#"{"code":"Some resource has been exhausted","error":"Your newly created team doesn't have any credits yet."}"#,
    ),
    (
        FailureKind::Billing,
        429,
        r#"{"code":"Some resource has been exhausted","error":"Your team x has either used all available credits or reached its monthly spending limit."}"#,
    ),
    (
        FailureKind::ContextTooLong,
        400,
        r#"{"code":"Client specified an invalid argument","error":"This model's maximum prompt length is 131072 but the request contains 537812 tokens."}"#,
    ),
    (
        FailureKind::ContextTooLong,
        413,
        r#"{"error":{"message":"Request too large for model `x` in organization y on tokens per minute (TPM): Limit 6000, Requested 9000, please reduce your message size and try again.","type":"tokens","code":"rate_limit_exceeded"}}"#,
    ),
    (FailureKind::Overloaded, 498, r#"{"error":{"message":"Flex tier capacity exceeded","type":"capacity_exceeded"}}"#),
    (
        FailureKind::ContextTooLong,
        400,
        r#"{"message":"too many tokens: total number of tokens in the prompt cannot exceed 4081 - received 4292."}"#,
    ),
    (FailureKind::RateLimited, 429, r#"{"message":"You are using a Trial key, which is limited to 40 API calls / minute."}"#),
    (
        FailureKind::ContextTooLong,
        422,
        r#"{"error":{"message":"Input validation error: `inputs` tokens + `max_new_tokens` must be <= 8193. Given: 8000 `inputs` tokens and 500 `max_new_tokens`","type":"invalid_request_error"}}"#,
    ),
    (
        FailureKind::Billing,
        412,
        r#"{"error":{"object":"error","type":"invalid_request_error","message":"Account x is suspended, possibly due to reaching the monthly spending limit."}}"#,
    ),
    (
        FailureKind::Authentication,
        401,
        "<html>\r\n<head><title>401 Authorization Required</title></head>\r\n<body>openresty</body></html>",
    ),
    (
        FailureKind::ContextTooLong,
        413,
        r#"{"error":{"code":"tokens_limit_reached","message":"Request body too large for gpt-4o model. Max size: 8000 tokens.","details":"x"}}"#,
    ),
    (
        FailureKind::NotFound,
        400,
        r#"{"error":{"code":"unknown_model","message":"Unknown model: x","details":"Unknown model: x"}}"#,
    ),
    (FailureKind::Permission, 403, "<!DOCTYPE html><html><head><title>Just a moment...</title></head></html>"),
    (
        FailureKind::Overloaded,
        520,
        "<html><head><title>api.x.com | 520: Web server is returning an unknown error</title></head></html>",
    ),
    (FailureKind::Timeout, 524, "<html><head><title>api.x.com | 524: A timeout occurred</title></head></html>"),
    (FailureKind::RateLimited, 429, "error code: 1015"),
    (FailureKind::ContextTooLong, 400, r#"{"code":"InvalidParameter","message":"Range of input length should be [1, 98304]"}"#),
    (
        FailureKind::Billing,
        429,
        r#"{"error":{"code":"1113","message":"Insufficient balance or no resource package. Please recharge."}}"#,
    ),
    (
        FailureKind::ContextTooLong,
        400,
        r#"{"error":{"message":"Invalid request: Your request exceeded model token limit: 131072","type":"invalid_request_error"}}"#,
    ),
    (
        FailureKind::InvalidRequest,
        400,
        r#"{"error":{"message":"Tool call id was call_123 but must be a-z, A-Z, 0-9, with a length of 9.","type":"invalid_request_error"}}"#,
    ),
];

#[test]
fn errors_of_all_known_servers_are_classified() {
    let wrong: Vec<_> = CASES
        .iter()
        .filter_map(|(kind, status, body)| {
            let failure = speaker().status_error(*status, "status", body.as_bytes(), RetryHints::default()).failure;
            (failure.kind != *kind).then(|| format!("{status} {body}\n    is {:?}, not {kind:?}", failure.kind))
        })
        .collect();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn upstream_errors_are_included_in_the_hint() {
    let body = r#"{"error":{"message":"Provider returned error","code":429,"metadata":{"raw":"x is rate-limited upstream"}}}"#;
    let failure = speaker().status_error(429, "status", body.as_bytes(), RetryHints::default()).failure;
    assert_eq!(failure.message, "Provider returned error");
    assert!(failure.hint.ends_with("upstream error: x is rate-limited upstream"), "{}", failure.hint);
}

#[test]
fn only_transient_errors_are_retried() {
    let of = |status, body: &str, asked| speaker().status_error(status, "status", body.as_bytes(), asked);
    let wait = Some(std::time::Duration::from_secs(5));
    let asked = RetryHints { wait, limits: None, again: None, request_id: None };
    assert_eq!(of(429, "", asked.clone()).retry_after, wait);
    assert_eq!(of(400, r#"{"error":"bad"}"#, asked.clone()).retry_after, None);
    let refused = of(429, "", RetryHints { again: Some(false), ..asked.clone() });
    assert_eq!((refused.failure.retryable, refused.retry_after), (false, None));
    assert!(of(400, r#"{"error":"bad"}"#, RetryHints { again: Some(true), ..asked.clone() }).failure.retryable);
    assert!(!of(401, "", RetryHints { again: Some(true), ..asked.clone() }).failure.retryable);
    let limits = RetryHints { limits: wait, ..RetryHints::default() };
    assert_eq!((of(429, "", limits.clone()).retry_after, of(529, "", limits.clone()).retry_after), (wait, None));
    assert_eq!(
        of(429, r#"{"error":{"message":"Please try again in 2s"}}"#, limits).retry_after.map(|wait| wait.as_secs()),
        Some(2)
    );
}

#[test]
fn request_ids_are_kept_if_they_are_a_single_word() {
    let named = |headers: &[(&str, &'static str)], body: &str| {
        let header = |name: &str| headers.iter().find(|(known, _)| *known == name).map(|(_, value)| *value);
        let asked = crate::llm::error::parse_headers(header, std::time::SystemTime::UNIX_EPOCH);
        speaker().status_error(529, "status", body.as_bytes(), asked).failure.request_id
    };
    let body = r#"{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"},"request_id":"req_body"}"#;
    assert_eq!(named(&[("request-id", " req_011 ")], body).as_deref(), Some("req_011"));
    assert_eq!(named(&[("x-request-id", "abc-1")], "").as_deref(), Some("abc-1"));
    assert_eq!(named(&[], body).as_deref(), Some("req_body"));
    assert_eq!(named(&[("request-id", "two words")], ""), None);
    assert_eq!(speaker().error_event(body).failure.request_id.as_deref(), Some("req_body"));
}
