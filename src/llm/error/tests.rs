use super::*;
use crate::llm::tests::speaker;

#[derive(serde::Deserialize)]
struct Recorded {
    id: String,
    http_status: u16,
    body: String,
    expect: Expected,
}

#[derive(serde::Deserialize)]
struct Expected {
    kind: String,
    retryable: bool,
    message: String,
}

#[track_caller]
fn check(status: u16, body: &str, kind: FailureKind) {
    let error = speaker().status_error(status, "status", body.as_bytes(), RetryHints::default());
    assert_eq!(error.failure.kind, kind, "{status} {body}");
}

#[test]
#[cfg_attr(not(aye_shared), ignore = "needs the shared test material: set AYE_SHARED")]
fn recorded_errors_are_classified_correctly() {
    let text = std::fs::read_to_string(shared!("fixtures/llm_errors/errors.jsonl")).unwrap();
    for line in text.lines() {
        let recorded: Recorded = serde_json::from_str(line).unwrap();
        let error = speaker().status_error(recorded.http_status, "status", recorded.body.as_bytes(), RetryHints::default());
        let (kind, retryable) = match recorded.expect.kind.as_str() {
            "auth" => (FailureKind::Authentication, recorded.expect.retryable),
            "not_found" => (FailureKind::NotFound, recorded.expect.retryable),
            "context_overflow" => (FailureKind::ContextTooLong, recorded.expect.retryable),
            "rate_limit" => (FailureKind::RateLimited, recorded.expect.retryable),
            // The model wrote an invalid call, so another attempt may succeed.
            "tool_use_failed" => (FailureKind::InvalidRequest, true),
            "invalid_request" => (FailureKind::InvalidRequest, recorded.expect.retryable),
            other => panic!("{}: unknown kind {other}", recorded.id),
        };
        assert_eq!(error.failure.kind, kind, "{}", recorded.id);
        assert_eq!(error.failure.retryable, retryable, "{}", recorded.id);
        assert_eq!(error.failure.message, recorded.expect.message, "{}", recorded.id);
        assert!(!error.failure.hint.is_empty(), "{}", recorded.id);
    }
}

#[test]
fn errors_are_classified_by_status_code_and_wording() {
    use FailureKind::*;
    let cases = [
        (401, r#"{"type":"error","error":{"type":"authentication_error","message":"invalid x-api-key"}}"#, Authentication),
        (
            400,
            r#"{"error":{"message":"API key not valid. Please pass a valid API key.","status":"INVALID_ARGUMENT"}}"#,
            Authentication,
        ),
        (402, r#"{"error":{"message":"Insufficient Balance","type":"unknown_error"}}"#, Billing),
        (
            429,
            r#"{"error":{"message":"You exceeded your current quota","type":"insufficient_quota","code":"insufficient_quota"}}"#,
            Billing,
        ),
        (
            400,
            r#"{"type":"error","error":{"type":"invalid_request_error","message":"Your credit balance is too low to access the API."}}"#,
            Billing,
        ),
        (403, r#"{"type":"error","error":{"type":"permission_error","message":"Your key may not use this model"}}"#, Permission),
        (404, "", NotFound),
        (404, r#"{"error":{"message":"model 'x' not found, try pulling it first"}}"#, NotFound),
        (
            413,
            r#"{"type":"error","error":{"type":"request_too_large","message":"Request exceeds the maximum size"}}"#,
            ContextTooLong,
        ),
        (
            400,
            r#"{"error":{"type":"invalid_request_error","message":"prompt is too long: 210000 tokens > 200000 maximum"}}"#,
            ContextTooLong,
        ),
        (
            400,
            r#"{"error":{"code":400,"message":"the request exceeds the available context size","type":"exceed_context_size_error"}}"#,
            ContextTooLong,
        ),
        (400, r#"{"error":{"code":"content_filter","message":"The response was filtered"}}"#, GuardrailBlocked),
        (
            400,
            r#"{"error":{"message":"filtered due to the prompt triggering Azure's content management policy"}}"#,
            GuardrailBlocked,
        ),
        (
            400,
            r#"{"error":{"message":"max_tokens: 99999 > 8192, which is the maximum allowed","type":"invalid_request_error"}}"#,
            InvalidRequest,
        ),
        (422, r#"{"detail":[{"loc":["body"],"msg":"field required","type":"value_error"}]}"#, InvalidRequest),
        (429, r#"{"type":"error","error":{"type":"rate_limit_error","message":"slow down"}}"#, RateLimited),
        (429, "", RateLimited),
        (529, r#"{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}"#, Overloaded),
        (503, "<html><body>Service Unavailable</body></html>", Overloaded),
        (500, r#"{"error":{"message":"The server had an error","type":"server_error"}}"#, Overloaded),
        (502, "", Overloaded),
        (504, "", Timeout),
        (408, "", Timeout),
        (302, "", InvalidRequest),
    ];
    for (status, body, kind) in cases {
        check(status, body, kind);
    }
}

mod table;

#[test]
fn messages_from_the_provider_are_kept_unchanged() {
    let cases = [
        (r#"{"error":{"message":"a \"b\"\nc"}}"#, "a \"b\"\nc"),
        (r#"{"error":"plain"}"#, "plain"),
        (r#"{"message":"top"}"#, "top"),
        (r#"{"detail":"Not here"}"#, "Not here"),
        (r#"{"detail":[{"msg":"field required"}]}"#, "field required"),
        (r#"[{"error":{"message":"in a list","code":400}}]"#, "in a list"),
        (r#"{"object":"error","message":"of vllm","code":400}"#, "of vllm"),
        (r#"{"Message":"of a cloud"}"#, "of a cloud"),
        ("  no json at all \n", "no json at all"),
        ("<html>\n<title> 400 Bad Request </title><body>nginx", "400 Bad Request"),
        ("<HTML><head><TITLE>401 Authorization\nRequired</TITLE>", "401 Authorization Required"),
        ("<!doctype html><body><h1 class=x>Sorry, you <b>&amp;</b> I</h1>", "Sorry, you & I"),
        ("<html><body>nothing", "the server responded with 400 Bad Request"),
        ("<?xml version='1.0'?><Error><Code>AccessDenied</Code><Message>Denied</Message>", "Denied"),
        (
            r#"{"object":"error","message":{"detail":[{"type":"missing","loc":["body","model"],"msg":"Field required"}]}}"#,
            "Field required",
        ),
        (r#"{"errors":[{"description":"tokens","key":"x"}],"tpe":"fail"}"#, "tokens"),
        (r#"{"base_resp":{"status_code":1004,"status_msg":"not authorized"}}"#, "not authorized"),
        (r#"{"error":{"message":"Provider returned error","metadata":{"raw":"more"}}}"#, "Provider returned error"),
        ("", "the server responded with 400 Bad Request"),
    ];
    for (body, message) in cases {
        let error = speaker().status_error(400, "400 Bad Request", body.as_bytes(), RetryHints::default());
        assert_eq!(error.failure.message, message, "{body}");
    }
}

#[test]
fn errors_inside_the_stream_are_classified() {
    use FailureKind::*;
    let cases = [
        (r#"{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}"#, Overloaded, "Overloaded"),
        (r#"{"type":"error","error":{"type":"api_error","message":"Internal"}}"#, Overloaded, "Internal"),
        (r#"{"type":"error","error":{"type":"rate_limit_error","message":"slow"}}"#, RateLimited, "slow"),
        (r#"{"type":"error","error":{"type":"invalid_request_error","message":"bad"}}"#, InvalidRequest, "bad"),
        (r#"{"error":{"code":429,"message":"later"}}"#, RateLimited, "later"),
        (r#"{"error":{"code":502,"message":"upstream"}}"#, Overloaded, "upstream"),
        (r#"{"error":"something"}"#, Overloaded, "something"),
    ];
    for (data, kind, message) in cases {
        let failure = speaker().error_event(data).failure;
        assert_eq!((failure.kind, failure.message.as_str()), (kind, message), "{data}");
    }
}
