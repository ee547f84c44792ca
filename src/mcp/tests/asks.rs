use super::*;
use crate::mcp::form;
use crate::ports::{RemoteAsks, RemoteContent};
use crate::protocol::{Elicitation, ElicitationAnswer, ElicitationKind, FieldKind};
use std::sync::Mutex;

/// User who takes a long time before giving a prepared answer.
struct Person {
    answer: ElicitationAnswer,
    asked: Mutex<Vec<Elicitation>>,
}

impl RemoteAsks for Person {
    fn elicit(&self, elicitation: Elicitation) -> BoxFuture<'_, ElicitationAnswer> {
        self.asked.lock().unwrap().push(elicitation);
        Box::pin(async {
            tokio::time::sleep(Duration::from_secs(600)).await;
            self.answer.clone()
        })
    }

    fn roots(&self) -> Vec<(String, String)> {
        vec![("file:///w".to_owned(), "w".to_owned())]
    }
}

/// Returns the response that a server receives for a request that it makes during a call.
async fn told(answer: Option<ElicitationAnswer>, method: &'static str, params: Value) -> (Value, Vec<Elicitation>) {
    let launcher = scripted(move |mut pipes: Pipes| {
        let params = params.clone();
        async move {
            let request = pipes.until_call(&[tool("ask")]).await.unwrap();
            pipes.say(json!({"jsonrpc": "2.0", "id": "q", "method": method, "params": params})).await;
            let answer = pipes.next().await.unwrap();
            pipes.answer(&request, text(&answer.to_string())).await;
        }
    });
    let person = answer.map(|answer| Arc::new(Person { answer, asked: Mutex::default() }));
    let asks = person.clone().map(|person| person as Arc<dyn RemoteAsks>);
    let servers = Servers::new(vec![spec("one")], McpDeps { launcher: Some(launcher), asks, ..McpDeps::default() });
    let result = call(&servers, "ask").await.unwrap();
    let [RemoteContent::Text(text)] = &result.content[..] else { panic!() };
    let asked = person.map(|person| person.asked.lock().unwrap().clone()).unwrap_or_default();
    (serde_json::from_str(text).unwrap(), asked)
}

fn wanted() -> Value {
    json!({"message": "who?", "requestedSchema": {"type": "object", "required": ["name"], "properties": {
        "name": {"type": "string", "minLength": 2},
        "age": {"type": "integer", "default": 30},
    }}})
}

fn accept(content: Value) -> ElicitationAnswer {
    ElicitationAnswer::Accept { content: content.as_object().unwrap().clone() }
}

#[tokio::test(start_paused = true)]
async fn forms_are_completed_with_defaults_and_do_not_use_up_the_call_timeout() {
    let (answer, asked) = told(Some(accept(json!({"name": "Ada"}))), "elicitation/create", wanted()).await;
    assert_eq!(answer["result"], json!({"action": "accept", "content": {"name": "Ada", "age": 30}}));
    assert_eq!((asked[0].server.as_str(), asked[0].message.as_str()), ("one", "who?"));
}

#[tokio::test(start_paused = true)]
async fn invalid_form_answers_are_not_sent() {
    for wrong in [json!({"name": "A"}), json!({}), json!({"name": "Ada", "key": "secret"}), json!({"name": "Ada", "age": 1.5})] {
        let (answer, _) = told(Some(accept(wrong)), "elicitation/create", wanted()).await;
        assert_eq!(answer["result"], json!({"action": "cancel"}));
    }
}

#[tokio::test(start_paused = true)]
async fn without_a_user_all_server_requests_are_declined() {
    let (answer, _) = told(None, "elicitation/create", wanted()).await;
    assert_eq!(answer["result"], json!({"action": "decline"}));
    let sampling = json!({"messages": [{"role": "user", "content": {"type": "text", "text": "hi"}}], "maxTokens": 5});
    let (answer, _) = told(None, "sampling/createMessage", sampling.clone()).await;
    assert!(answer["error"]["message"].as_str().unwrap().contains("not allowed"));
    let (answer, _) = told(Some(ElicitationAnswer::Decline), "sampling/createMessage", sampling).await;
    assert!(answer["error"]["message"].as_str().unwrap().contains("not allowed"));
    let (answer, _) = told(None, "ping", json!({})).await;
    assert_eq!(answer["result"], json!({}));
}

#[tokio::test(start_paused = true)]
async fn roots_are_listed_and_requested_urls_are_checked() {
    let (answer, _) = told(Some(ElicitationAnswer::Decline), "roots/list", json!({})).await;
    assert_eq!(answer["result"]["roots"], json!([{"uri": "file:///w", "name": "w"}]));
    let visit = |url: &str| json!({"mode": "url", "message": "sign in", "url": url, "elicitationId": "e"});
    let (answer, asked) = told(Some(accept(json!({}))), "elicitation/create", visit("https://example.org/a")).await;
    assert_eq!(answer["result"]["action"], "accept");
    assert_eq!(asked[0].wanted, ElicitationKind::Visit { url: "https://example.org/a".to_owned() });
    for bad in ["http://example.org", "file:///etc/passwd", "javascript:alert(1)", "https://a:b@example.org"] {
        let (answer, asked) = told(Some(accept(json!({}))), "elicitation/create", visit(bad)).await;
        assert_eq!((&answer["result"]["action"], asked.len()), (&json!("decline"), 0), "{bad}");
    }
}

#[test]
fn all_kinds_of_form_fields_are_supported() {
    let schema = json!({"type": "object", "properties": {
        "mail": {"type": "string", "format": "email", "title": "Mail"},
        "rate": {"type": "number", "minimum": 0, "maximum": 1, "default": 7},
        "old": {"type": "string", "enum": ["a", "b"], "enumNames": ["A", "B"]},
        "new": {"type": "string", "oneOf": [{"const": "x", "title": "X"}]},
        "some": {"type": "array", "maxItems": 1, "items": {"anyOf": [{"const": "p", "title": "P"}, {"const": "q", "title": "Q"}]}},
        "plain": {"type": "array", "items": {"type": "string", "enum": ["r"]}},
        "ok": {"type": "boolean"},
    }});
    let fields = form::fields(&schema, None).unwrap();
    let kind = |name: &str| &fields.iter().find(|field| field.name == name).unwrap().takes;
    let pair = |value: &str, title: &str| (value.to_owned(), title.to_owned());
    assert_eq!(kind("old"), &FieldKind::Choice { choices: vec![pair("a", "A"), pair("b", "B")] });
    assert_eq!(kind("new"), &FieldKind::Choice { choices: vec![pair("x", "X")] });
    assert_eq!(kind("plain"), &FieldKind::Choices { choices: vec![pair("r", "r")], min: None, max: None });
    assert_eq!(fields[1].default, None, "a default out of bounds is none");
    let fits = |content: Value| form::answer(&fields, content.as_object().unwrap().clone()).is_ok();
    assert!(fits(json!({"mail": "a@b.c", "rate": 0.5, "old": "b", "new": "x", "some": ["q"], "plain": [], "ok": false})));
    for wrong in [
        json!({"mail": "nobody"}),
        json!({"rate": 2}),
        json!({"old": "A"}),
        json!({"some": ["p", "q"]}),
        json!({"plain": ["z"]}),
        json!({"ok": "yes"}),
    ] {
        assert!(!fits(wrong.clone()), "{wrong}");
    }
    assert!(form::fields(&json!({"properties": {"deep": {"type": "object"}}}), None).is_err());
}

/// Calls a tool of a server that responds with `-32042` the given number of times. Returns the result, the number of
/// calls, and the requests made to the user.
async fn visiting(
    answer: Option<ElicitationAnswer>,
    refusals: usize,
    data: Value,
) -> (Result<String, String>, usize, Vec<Elicitation>) {
    let calls = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&calls);
    let launcher = scripted(move |mut pipes: Pipes| {
        let (calls, data) = (Arc::clone(&counted), data.clone());
        async move {
            while let Some(request) = pipes.until_call(&[tool("ask")]).await {
                if calls.fetch_add(1, Ordering::SeqCst) < refusals {
                    let error = json!({"code": -32042, "message": "visit first", "data": data});
                    pipes.say(json!({"jsonrpc": "2.0", "id": request["id"], "error": error})).await;
                } else {
                    pipes.answer(&request, text("there")).await;
                }
            }
        }
    });
    let person = answer.map(|answer| Arc::new(Person { answer, asked: Mutex::default() }));
    let asks = person.clone().map(|person| person as Arc<dyn RemoteAsks>);
    let servers = Servers::new(vec![spec("one")], McpDeps { launcher: Some(launcher), asks, ..McpDeps::default() });
    let told = call(&servers, "ask").await.map_err(|error| error.to_string()).map(|result| match &result.content[..] {
        [RemoteContent::Text(text)] => text.clone(),
        other => panic!("{other:?}"),
    });
    let asked = person.map(|person| person.asked.lock().unwrap().clone()).unwrap_or_default();
    (told, calls.load(Ordering::SeqCst), asked)
}

#[tokio::test(start_paused = true)]
async fn a_call_that_requires_a_url_visit_is_repeated_once_after_the_visit() {
    let url = "https://example.org/sign?a=1";
    let data = json!({"elicitations": [{"mode": "url", "elicitationId": "e", "url": url, "message": "Sign in."}]});
    let (told, calls, asked) = visiting(Some(accept(json!({}))), 1, data.clone()).await;
    assert_eq!((told.as_deref(), calls), (Ok("there"), 2));
    assert_eq!((asked[0].message.as_str(), &asked[0].wanted), ("Sign in.", &ElicitationKind::Visit { url: url.to_owned() }));
    let (told, calls, asked) = visiting(Some(accept(json!({}))), 9, data.clone()).await;
    assert_eq!((calls, asked.len()), (2, 1), "once more, and no oftener");
    assert!(told.unwrap_err().contains("-32042"));
    for nobody in [Some(ElicitationAnswer::Decline), None] {
        let (told, calls, _) = visiting(nobody, 9, data.clone()).await;
        let told = told.unwrap_err();
        assert!(calls == 1 && told.contains(url) && told.contains("continues only after"), "{told}");
    }
    let odd = json!({"elicitations": [{"url": "file:///etc/passwd", "message": "x"}]});
    let (told, calls, asked) = visiting(Some(accept(json!({}))), 9, odd).await;
    assert!(told.is_err() && calls == 1 && asked.is_empty(), "no address of a page");
    let (told, ..) = visiting(Some(accept(json!({}))), 9, Value::Null).await;
    assert!(told.unwrap_err().contains("does not name it"));
}
