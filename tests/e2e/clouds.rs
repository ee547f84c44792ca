//! Models of cloud platforms: Azure OpenAI, Vertex AI and Amazon Bedrock, emulated on loopback.

use crate::support::Project;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};
use std::fs;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::thread;

/// Request that the emulation received.
#[derive(Clone, Debug)]
struct Request {
    /// Method and path.
    line: String,
    head: String,
    body: String,
}

impl Request {
    fn header(&self, name: &str) -> Option<&str> {
        self.head
            .lines()
            .find_map(|line| line.split_once(": ").filter(|(known, _)| known.eq_ignore_ascii_case(name)))
            .map(|(_, value)| value)
    }

    fn json(&self) -> Value {
        serde_json::from_str(&self.body).unwrap()
    }
}

/// Response of the emulation: status, headers, body.
type Response = (u16, &'static str, Vec<u8>);

struct Cloud {
    address: String,
    requests: Arc<Mutex<Vec<Request>>>,
}

impl Cloud {
    /// Starts an emulation that sends the responses in order, each of them once.
    fn new(responses: Vec<Response>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = format!("http://{}", listener.local_addr().unwrap());
        let requests = Arc::new(Mutex::new(Vec::new()));
        let record = Arc::clone(&requests);
        thread::spawn(move || {
            for (response, socket) in responses.into_iter().zip(listener.incoming()) {
                respond(socket.unwrap(), &record, &response);
            }
        });
        Self { address, requests }
    }

    fn request(&self, index: usize) -> Request {
        self.requests.lock().unwrap()[index].clone()
    }

    fn count(&self) -> usize {
        self.requests.lock().unwrap().len()
    }
}

fn respond(mut socket: TcpStream, record: &Mutex<Vec<Request>>, (status, headers, body): &Response) {
    let (mut bytes, mut buffer) = (Vec::new(), [0; 4096]);
    let request = loop {
        let text = String::from_utf8_lossy(&bytes).into_owned();
        if let Some((head, body)) = text.split_once("\r\n\r\n") {
            let length =
                head.lines().find_map(|line| line.to_lowercase().strip_prefix("content-length: ")?.parse::<usize>().ok());
            if body.len() >= length.unwrap_or(0) {
                let line = head.lines().next().unwrap().trim_end_matches(" HTTP/1.1").to_owned();
                break Request { line, head: head.to_owned(), body: body.to_owned() };
            }
        }
        match socket.read(&mut buffer) {
            Ok(0) | Err(_) => return,
            Ok(count) => bytes.extend_from_slice(&buffer[..count]),
        }
    };
    record.lock().unwrap().push(request);
    let head = format!("HTTP/1.1 {status} X\r\nconnection: close\r\n{headers}content-length: {}\r\n\r\n", body.len());
    let _ = socket.write_all(head.as_bytes()).and_then(|()| socket.write_all(body));
}

fn events(events: &[Value]) -> Response {
    let body: Vec<u8> = events.iter().flat_map(|event| format!("data: {event}\n\n").into_bytes()).collect();
    (200, "content-type: text/event-stream\r\n", body)
}

fn refused(status: u16, headers: &'static str, body: Value) -> Response {
    (status, headers, body.to_string().into_bytes())
}

/// Returns the events of a response of an Anthropic model.
fn anthropic(text: &str) -> Vec<Value> {
    vec![
        json!({"type": "message_start", "message": {"id": "a", "usage": {"input_tokens": 3}}}),
        json!({"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": text}}),
        json!({"type": "content_block_stop", "index": 0}),
        json!({"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": {"output_tokens": 2}}),
        json!({"type": "message_stop"}),
    ]
}

fn chat(text: &str) -> Response {
    events(&[
        json!({"choices": [{"index": 0, "delta": {"content": text}, "finish_reason": "stop"}]}),
        json!({"choices": [], "usage": {"prompt_tokens": 3, "completion_tokens": 2}}),
    ])
}

/// Encodes one message of the AWS binary event stream.
fn message(headers: &[(&str, &str)], payload: &[u8]) -> Vec<u8> {
    let mut block = Vec::new();
    for (name, value) in headers {
        block.push(u8::try_from(name.len()).unwrap());
        block.extend_from_slice(name.as_bytes());
        block.push(7);
        block.extend_from_slice(&u16::try_from(value.len()).unwrap().to_be_bytes());
        block.extend_from_slice(value.as_bytes());
    }
    let word = |number: usize| u32::try_from(number).unwrap().to_be_bytes();
    let mut message = word(16 + block.len() + payload.len()).to_vec();
    message.extend_from_slice(&word(block.len()));
    message.extend_from_slice(&crc32fast::hash(&message).to_be_bytes());
    message.extend_from_slice(&block);
    message.extend_from_slice(payload);
    message.extend_from_slice(&crc32fast::hash(&message).to_be_bytes());
    message
}

fn bedrock(events: &[Value]) -> Response {
    let chunk = |event: &Value| {
        let payload = json!({"bytes": STANDARD.encode(event.to_string()), "p": "abc"}).to_string();
        message(&[(":event-type", "chunk"), (":message-type", "event")], payload.as_bytes())
    };
    (200, "content-type: application/vnd.amazon.eventstream\r\n", events.iter().flat_map(chunk).collect())
}

fn quick(settings: &str) -> Project {
    Project::empty().config(&format!("[llm]\nmax_retries = 0\n{settings}"))
}

#[test]
fn azure_deployments_work_with_keys_and_tokens_in_both_apis() {
    let cloud = Cloud::new(vec![chat("hello"), chat("hello"), chat("hello")]);
    let settings = |more: &str| format!("[providers.azure]\nbase_url = \"{}\"\napi = \"openai-chat\"\n{more}", cloud.address);
    let output = quick(&settings("")).env("AZURE_OPENAI_API_KEY", "0123456789abcdef").aye(&["exec", "-m", "azure/my-gpt", "hi"]);
    assert!(output.exits(0).stdout.contains("hello"));
    let request = cloud.request(0);
    assert_eq!(request.line, "POST /openai/v1/chat/completions");
    assert_eq!((request.header("api-key"), request.header("authorization")), (Some("0123456789abcdef"), None));
    assert_eq!(request.json()["model"], "my-gpt");
    let dated = quick(&settings("api_version = \"2024-10-21\"\n")).env("AZURE_OPENAI_AD_TOKEN", "eyJ0eXAi.eyJhdWQi.c2ln");
    dated.aye(&["exec", "-m", "azure/my-gpt", "hi"]).exits(0);
    let request = cloud.request(1);
    assert_eq!(request.line, "POST /openai/deployments/my-gpt/chat/completions?api-version=2024-10-21");
    assert_eq!((request.header("api-key"), request.header("authorization")), (None, Some("Bearer eyJ0eXAi.eyJhdWQi.c2ln")));
    let named =
        "[providers.work]\nservice = \"azure\"\napi = \"openai-chat\"\napi_key_command = [\"echo\", \"0123456789abcdef\"]\n";
    let named =
        quick(&format!("{named}base_url = \"{}/openai/v1\"\ndeployments = {{ d = \"openai/gpt-5.5\" }}\n", cloud.address));
    named.aye(&["exec", "-m", "work/d", "hi"]).exits(0);
    assert_eq!(cloud.request(2).line, "POST /openai/v1/chat/completions");
    quick("").aye(&["exec", "-m", "azure/x", "hi"]).exits(5).says(&["no URL for `azure`", "AZURE_OPENAI_ENDPOINT"]);
    let without = quick("").env("AZURE_OPENAI_ENDPOINT", "https://n.openai.azure.com");
    without.aye(&["exec", "-m", "azure/x", "hi"]).exits(5).says(&["no API key for `azure`", "AZURE_OPENAI_API_KEY"]);
}

#[test]
fn azure_uses_the_responses_api_by_default() {
    let cloud = Cloud::new(vec![refused(
        401,
        "",
        json!({"error": {"code": "401", "message": "Access denied due to invalid subscription key"}}),
    )]);
    let project = quick("").env("AZURE_OPENAI_ENDPOINT", &cloud.address).env("AZURE_OPENAI_API_KEY", "0123456789abcdef");
    project.aye(&["exec", "-m", "azure/my-gpt", "hi"]).exits(5).says(&["invalid subscription key", "AZURE_OPENAI_API_KEY"]);
    assert_eq!(cloud.request(0).line, "POST /openai/v1/responses");
}

/// Returns a project whose user is signed in to Google; `cloud` issues the tokens.
fn signed_in_to_google(cloud: &Cloud) -> Project {
    let settings =
        format!("[providers.vertex]\nbase_url = \"{}\"\nproject = \"p-1\"\nlocation = \"europe-west1\"\n", cloud.address);
    let project = quick(&settings);
    let directory = project.directory("home").join(".config/gcloud");
    fs::create_dir_all(&directory).unwrap();
    let file = json!({"type": "authorized_user", "client_id": "c", "client_secret": "s", "refresh_token": "r",
        "token_uri": format!("{}/token", cloud.address)});
    fs::write(directory.join("application_default_credentials.json"), file.to_string()).unwrap();
    project
}

fn token(text: &str) -> Response {
    refused(200, "", json!({"access_token": text, "expires_in": 3600, "token_type": "Bearer"}))
}

#[test]
fn vertex_serves_claude_and_gemini_with_application_default_credentials() {
    let gemini = json!({"candidates": [{"content": {"role": "model", "parts": [{"text": "hello"}]}, "finishReason": "STOP"}],
        "usageMetadata": {"promptTokenCount": 3, "candidatesTokenCount": 2}});
    let cloud =
        Cloud::new(vec![token("token-1-abcdef"), events(&anthropic("hello")), token("token-2-abcdef"), events(&[gemini])]);
    let project = signed_in_to_google(&cloud);
    let output = project.aye(&["exec", "-m", "vertex/claude-sonnet-4-5@20250929", "hi"]).exits(0);
    assert!(output.stdout.contains("hello"), "{}", output.stdout);
    let request = cloud.request(1);
    let path = "/v1/projects/p-1/locations/europe-west1/publishers/anthropic/models/claude-sonnet-4-5@20250929:streamRawPredict";
    assert_eq!(request.line, format!("POST {path}"));
    assert_eq!(request.header("authorization"), Some("Bearer token-1-abcdef"));
    let body = request.json();
    assert_eq!(
        (&body["anthropic_version"], &body["model"], &body["stream"]),
        (&json!("vertex-2023-10-16"), &Value::Null, &json!(true))
    );
    project.aye(&["exec", "-m", "vertex/gemini-2.5-pro", "hi"]).exits(0);
    let path = "/v1/projects/p-1/locations/europe-west1/publishers/google/models/gemini-2.5-pro:streamGenerateContent?alt=sse";
    assert_eq!(cloud.request(3).line, format!("POST {path}"));
    assert_eq!(cloud.request(3).header("authorization"), Some("Bearer token-2-abcdef"));
}

#[test]
fn rejected_google_tokens_are_renewed_once_and_a_revoked_sign_in_is_reported() {
    let rejected = || refused(401, "", json!({"error": {"code": 401, "status": "UNAUTHENTICATED", "message": "token expired"}}));
    let cloud = Cloud::new(vec![token("token-1-abcdef"), rejected(), token("token-2-abcdef"), events(&anthropic("hello"))]);
    signed_in_to_google(&cloud).aye(&["exec", "-m", "vertex/claude-x", "hi"]).exits(0);
    assert_eq!(cloud.request(3).header("authorization"), Some("Bearer token-2-abcdef"));
    let revoked = json!({"error": "invalid_grant", "error_description": "Token has been expired or revoked."});
    let cloud = Cloud::new(vec![refused(400, "", revoked)]);
    let output = signed_in_to_google(&cloud).aye(&["exec", "-m", "vertex/claude-x", "hi"]).exits(5);
    output.says(&["Token has been expired or revoked", "hint: run `gcloud auth application-default login`"]);
    assert_eq!(cloud.count(), 1);
    let without = quick("").aye(&["exec", "-m", "vertex/gemini-2.5-pro", "hi"]).exits(5);
    without.says(&["no Google Cloud project for `vertex`", "GOOGLE_CLOUD_PROJECT"]);
}

fn signed(cloud: &Cloud) -> Project {
    quick("")
        .env("AWS_ENDPOINT_URL_BEDROCK_RUNTIME", &cloud.address)
        .env("AWS_REGION", "eu-central-1")
        .env("AWS_ACCESS_KEY_ID", "AKIDEXAMPLE")
        .env("AWS_SECRET_ACCESS_KEY", "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY")
        .env("AWS_SESSION_TOKEN", "session-token-abcdef")
}

#[test]
fn bedrock_requests_are_signed_and_the_event_stream_is_parsed() {
    let cloud = Cloud::new(vec![bedrock(&anthropic("hello")), bedrock(&anthropic("hello"))]);
    let model = "bedrock/eu.anthropic.claude-sonnet-4-5-20250929-v1:0";
    let output = signed(&cloud).aye(&["exec", "-m", model, "hi"]).exits(0);
    assert!(output.stdout.contains("hello"), "{}", output.stdout);
    let request = cloud.request(0);
    assert_eq!(request.line, "POST /model/eu.anthropic.claude-sonnet-4-5-20250929-v1%3A0/invoke-with-response-stream");
    let authorization = request.header("authorization").unwrap();
    let day = &request.header("x-amz-date").unwrap()[..8];
    let scope = format!("AWS4-HMAC-SHA256 Credential=AKIDEXAMPLE/{day}/eu-central-1/bedrock/aws4_request, ");
    assert!(authorization.starts_with(&scope), "{authorization}");
    assert!(authorization.contains("SignedHeaders=host;x-amz-date;x-amz-security-token, Signature="), "{authorization}");
    assert_eq!(request.header("x-amz-security-token"), Some("session-token-abcdef"));
    let body = request.json();
    assert_eq!(
        (&body["anthropic_version"], &body["model"], &body["stream"]),
        (&json!("bedrock-2023-05-31"), &Value::Null, &Value::Null)
    );
    let key = quick("").env("AWS_ENDPOINT_URL_BEDROCK_RUNTIME", &cloud.address).env("AWS_REGION", "us-east-1");
    key.env("AWS_BEARER_TOKEN_BEDROCK", "bedrock-api-key-abc").aye(&["exec", "-m", model, "hi"]).exits(0);
    assert_eq!(cloud.request(1).header("authorization"), Some("Bearer bedrock-api-key-abc"));
}

#[test]
fn bedrock_errors_are_distinguished_and_expired_credentials_have_a_hint() {
    let expired = || {
        let body = json!({"message": "The security token included in the request is expired"});
        refused(403, "x-amzn-errortype: ExpiredTokenException:http://internal.amazon.com/\r\n", body)
    };
    let cloud = Cloud::new(vec![expired(), expired()]);
    let output = signed(&cloud).aye(&["exec", "-m", "bedrock/anthropic.claude-x", "hi"]).exits(5);
    output.says(&["security token included in the request is expired", "renew AWS_ACCESS_KEY_ID"]);
    assert_eq!(cloud.count(), 2, "the credentials are read again once");
    let mut damaged = bedrock(&anthropic("hello"));
    let last = damaged.2.len() - 1;
    damaged.2[last] ^= 1;
    let throttled = message(
        &[(":exception-type", "throttlingException"), (":message-type", "exception")],
        b"{\"message\":\"Too many requests, please wait\"}",
    );
    let throttled = (200, "content-type: application/vnd.amazon.eventstream\r\n", throttled);
    let cloud = Cloud::new(vec![damaged, throttled]);
    let damaged = signed(&cloud).aye(&["exec", "-m", "bedrock/anthropic.claude-x", "hi"]);
    assert_ne!(damaged.code, 0);
    damaged.says(&["the response is damaged"]);
    let throttled = signed(&cloud).aye(&["exec", "-m", "bedrock/anthropic.claude-x", "hi"]);
    assert_ne!(throttled.code, 0);
    throttled.says(&["Too many requests, please wait"]);
}

#[test]
fn an_aws_profile_sets_the_region_and_an_expired_sign_in_is_reported() {
    let project = quick("").env("AWS_PROFILE", "work").env("AWS_EC2_METADATA_DISABLED", "true");
    project.aye(&["exec", "-m", "bedrock/anthropic.claude-x", "hi"]).exits(2).says(&["no AWS profile `work`"]);
    let directory = project.directory("home").join(".aws");
    fs::create_dir(&directory).unwrap();
    let sso = "[profile work]\nsso_start_url = https://corp.awsapps.com/start\nsso_region = us-east-1\nsso_account_id = 1\n\
        sso_role_name = Dev\n";
    fs::write(directory.join("config"), sso).unwrap();
    project
        .aye(&["exec", "-m", "bedrock/anthropic.claude-x", "hi"])
        .exits(5)
        .says(&["no AWS region for `bedrock`", "AWS_REGION"]);
    fs::write(directory.join("config"), format!("{sso}region = eu-west-1\n")).unwrap();
    let output = project.aye(&["exec", "-m", "bedrock/anthropic.claude-x", "hi"]).exits(5);
    output.says(&["not signed in to AWS with the profile `work`", "hint: run `aws sso login --profile work`"]);
    let status = project.aye(&["auth", "status", "--check"]);
    assert!(status.stdout.contains("bedrock") && status.stdout.contains("aws sso login --profile work"), "{}", status.stdout);
}
