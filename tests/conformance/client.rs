//! Client for the public MCP conformance suite, started as `mcp-conformance URL`. It connects to the server as a
//! session does, and uses every tool, resource and prompt that the server offers.

use aye::conformance::{
    BoxFuture, Elicitation, ElicitationAnswer, ElicitationKind, FieldKind, HttpKind, McpDeps, Reach, RegisteredClient,
    RemoteAsks, RemoteCall, RemoteContext, RemoteError, RemoteServers, RemoteTool, ServerState, Servers, SignIn, Spec,
    UnattendedLogin,
};
use serde_json::{Map, Value, json};
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

const NAME: &str = "conformance";
const START: Duration = Duration::from_secs(20);
const CALL: Duration = Duration::from_secs(20);
/// Client metadata document that the authorization servers of the suite know.
const DOCUMENT: &str = "https://conformance-test.local/client-metadata.json";

#[tokio::main]
async fn main() -> ExitCode {
    let Some(url) = std::env::args().nth(1) else {
        eprintln!("usage: mcp-conformance URL");
        return ExitCode::from(2);
    };
    let context = std::env::var("MCP_CONFORMANCE_CONTEXT").ok();
    let tokens = UnattendedLogin::new(registered(context.as_deref()));
    let wires = McpDeps { asks: Some(Arc::new(Willing)), tokens: Some(Arc::new(tokens)), ..McpDeps::default() };
    let servers = Servers::new(vec![spec(url)], wires);
    let used = use_all(&servers, context.as_deref()).await;
    servers.end().await;
    match used {
        Ok(()) => ExitCode::SUCCESS,
        Err(message) => {
            eprintln!("error: {message}");
            ExitCode::FAILURE
        }
    }
}

/// Returns the credentials that the suite has registered with its authorization servers.
fn registered(context: Option<&str>) -> RegisteredClient {
    let context: Value = context.and_then(|text| serde_json::from_str(text).ok()).unwrap_or_default();
    let text = |name: &str| context.get(name).and_then(Value::as_str).map(str::to_owned);
    RegisteredClient { client_id: text("client_id"), client_secret: text("client_secret"), document: Some(DOCUMENT.to_owned()) }
}

fn spec(url: String) -> Spec {
    let sign_in = SignIn::OAuth { client_id: None, scopes: Vec::new(), redirect_port: None };
    Spec {
        name: NAME.to_owned(),
        reach: Reach::Http { url, headers: Vec::new(), sign_in, kind: HttpKind::Auto },
        off: None,
        of_project: false,
        plugin: None,
        retry_attempts: 0,
        retry_delay: Duration::from_millis(100),
        start_timeout: START,
        call_timeout: CALL,
        tool_timeouts: Vec::new(),
    }
}

async fn use_all(servers: &Servers, context: Option<&str>) -> Result<(), String> {
    let mut changed = servers.changed();
    servers.discover();
    loop {
        match servers.statuses().into_iter().next().map(|status| status.state) {
            Some(ServerState::Ready) => break,
            Some(ServerState::Asleep | ServerState::Starting) => {
                changed.changed().await.map_err(|error| error.to_string())?;
            }
            Some(ServerState::NeedsLogin) => return Err("the server wants to know who asks".to_owned()),
            Some(ServerState::Unreachable { why } | ServerState::Off { why }) => return Err(why),
            None => return Err("there is no server".to_owned()),
        }
    }
    let mut failures = Vec::new();
    for (tool, arguments) in calls(servers, context) {
        // Nobody reads the output, so output beyond the capacity is dropped.
        let (output, _unread) = mpsc::channel(1);
        let call =
            RemoteCall { server: NAME.to_owned(), tool: tool.name.clone(), fingerprint: tool.fingerprint.clone(), arguments };
        let context = RemoteContext { output, cancel: CancellationToken::new(), timeout: CALL };
        match servers.call(call, context).await {
            // A server may reject a call of its own tool. That is not a fault of the client.
            Ok(_) | Err(RemoteError::Refused { .. }) => {}
            Err(error) => failures.push(format!("{}: {error}", tool.name)),
        }
    }
    for resource in servers.resources(Some(NAME)).await.unwrap_or_default().into_iter().filter(|resource| !resource.is_template) {
        let _ = servers.read_resource(NAME, &resource.uri).await;
    }
    for prompt in servers.prompts().await {
        let arguments = prompt.arguments.iter().map(|(name, _)| (name.clone(), Value::from("text"))).collect();
        let _ = servers.prompt(NAME, &prompt.name, arguments).await;
    }
    if failures.is_empty() { Ok(()) } else { Err(failures.join("\n")) }
}

/// Returns the calls that the suite names, or else one call for each tool.
fn calls(servers: &Servers, context: Option<&str>) -> Vec<(RemoteTool, Map<String, Value>)> {
    let tools = servers.tools();
    let context: Value = context.and_then(|text| serde_json::from_str(text).ok()).unwrap_or_default();
    if let Some(named) = context.get("toolCalls").and_then(Value::as_array) {
        let one = |call: &Value| {
            let tool = tools.iter().find(|tool| call.get("name").and_then(Value::as_str) == Some(&tool.name))?;
            Some((tool.clone(), call.get("arguments").and_then(Value::as_object).cloned().unwrap_or_default()))
        };
        return named.iter().filter_map(one).collect();
    }
    // A tool that takes a schema gets the schema of another tool.
    let schema = tools.first().map(|tool| tool.input_schema.clone()).unwrap_or_default();
    tools.iter().map(|tool| (tool.clone(), arguments(&tool.input_schema, &schema))).collect()
}

/// Returns a value of the right type for each required argument.
fn arguments(schema: &Value, schema_of_another: &Value) -> Map<String, Value> {
    let required = schema.get("required").and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_str);
    let value = |name: &str| {
        let field = schema.get("properties").and_then(|properties| properties.get(name));
        match field.and_then(|field| field.get("type")).and_then(Value::as_str) {
            Some("number" | "integer") => json!(2),
            Some("boolean") => json!(true),
            Some("array") => json!([]),
            Some("object") if name == "schema" => schema_of_another.clone(),
            Some("object") => json!({}),
            _ => json!("text"),
        }
    };
    required.map(|name| (name.to_owned(), value(name))).collect()
}

/// User who fills in the fields without a default and leaves the other fields unchanged.
struct Willing;

impl RemoteAsks for Willing {
    fn elicit(&self, elicitation: Elicitation) -> BoxFuture<'_, ElicitationAnswer> {
        let content = match elicitation.wanted {
            ElicitationKind::Visit { .. } | ElicitationKind::Question { .. } => {
                return Box::pin(std::future::ready(ElicitationAnswer::Decline));
            }
            ElicitationKind::Form { fields } => fields
                .into_iter()
                .filter(|field| field.default.is_none())
                .map(|field| {
                    let value = match field.takes {
                        FieldKind::Text { .. } => json!("text"),
                        FieldKind::Number { minimum, .. } => json!(minimum.unwrap_or(1.0)),
                        FieldKind::Flag => json!(true),
                        FieldKind::Choice { choices } => json!(choices.first().map(|(value, _)| value)),
                        FieldKind::Choices { choices, .. } => {
                            json!(choices.iter().take(1).map(|(value, _)| value).collect::<Vec<_>>())
                        }
                    };
                    (field.name, value)
                })
                .collect(),
        };
        Box::pin(std::future::ready(ElicitationAnswer::Accept { content }))
    }

    fn roots(&self) -> Vec<(String, String)> {
        vec![("file:///workspace".to_owned(), "workspace".to_owned())]
    }
}
