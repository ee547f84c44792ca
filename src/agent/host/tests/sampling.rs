//! Tests of sampling requests from servers, which are allowed by the policy, approved and counted, or refused with a
//! reason.

use super::servers::Beside;
use super::*;
use crate::agent::BudgetSetting;
use crate::protocol::{BudgetLimit, BudgetScope, BudgetUnit, Command, ElicitationAnswer, ElicitationKind, HostCommand};
use serde_json::{Map, Value, json};

const FREELY: &str = "schema_version = 1\n[capabilities.\"Mcp.Invoke\"]\nallow_sampling = [\"doc?\"]\n";

/// Model that always gives the same response and records its requests.
#[derive(Default)]
pub(crate) struct Asked {
    requests: Mutex<Vec<ModelRequest>>,
}

impl Model for Asked {
    fn name(&self) -> &'static str {
        "test/model"
    }
    fn facts(&self) -> ModelFacts {
        ModelFacts::for_test(self.name(), 100_000, None)
    }
    fn stream(&self, request: ModelRequest) -> ModelStream {
        self.requests.lock().unwrap().push(request);
        let usage = Usage { input_tokens: 30, output_tokens: 4, ..Usage::default() };
        let answer = Completion { usage, ..said("Forty-two.", StopReason::MaxTokens, None) };
        futures_util::stream::iter([Ok(Delta::Text("Forty".to_owned())), Ok(Delta::Completed(answer))]).boxed()
    }
}

fn request() -> Value {
    json!({
        "systemPrompt": "Be brief.",
        "messages": [
            {"role": "user", "content": {"type": "text", "text": "What is it?"}},
            {"role": "assistant", "content": [{"type": "text", "text": "What?"}]},
            {"role": "user", "content": {"type": "text", "text": "The answer."}},
        ],
        "maxTokens": 50,
    })
}

fn beside(policy: &str, person: bool, limits: Vec<BudgetSetting>) -> (Beside, Arc<Asked>) {
    let model = Arc::new(Asked::default());
    let asked: Arc<dyn Model> = model.clone();
    let beside = Beside::under(policy, person, |setup| {
        let models = ModelSetup { current: asked, ..setup.models };
        Setup { models, options: AgentOptions { limits, ..setup.options }, ..setup }
    });
    (beside, model)
}

#[tokio::test]
async fn an_allowed_sampling_request_gets_a_response_and_its_tokens_are_counted() {
    let (mut beside, model) = beside(FREELY, false, Vec::new());
    let answer = beside.asks.sample("docs", request()).await.unwrap();
    let expected = json!({"role": "assistant", "content": {"type": "text", "text": "Forty-two."}, "model": "test/model",
        "stopReason": "maxTokens"});
    assert_eq!(answer, expected);
    assert_eq!(beside.notice().await, "docs (MCP) used test/model: 30 tokens in, 4 out");
    let sent = model.requests.lock().unwrap().pop().unwrap();
    assert_eq!((&*sent.system, sent.messages.len(), sent.tools.len(), sent.max_output_tokens), ("Be brief.", 3, 0, 50));
    assert_eq!(sent.messages[2].text(), "The answer.");
    let refused = beside.asks.sample("web", request()).await.unwrap_err();
    assert!(refused.contains("`web` is not in `allow_sampling`") && refused.contains("(rule: user:2)"), "{refused}");
    beside.send(Command::Quit).await;
    let total = |kind: &EventKind| match kind {
        EventKind::SessionCompleted { total_tokens, .. } => Some(*total_tokens),
        _ => None,
    };
    assert_eq!((beside.until(total).await, model.requests.lock().unwrap().len()), (34, 0));
}

#[tokio::test]
async fn sampling_approval_shows_the_user_everything_sent_to_the_model() {
    let asks = format!("{FREELY}requires_approval = true\n");
    let (mut beside, model) = beside(&asks, true, Vec::new());
    for accepts in [false, true] {
        let port = beside.asks.clone();
        let asking = tokio::spawn(async move { port.sample("docs", request()).await });
        let asked = beside.asked().await;
        assert_eq!((asked.server.as_str(), &asked.wanted), ("docs", &ElicitationKind::Form { fields: Vec::new() }));
        for words in
            ["test/model", "up to 50 tokens", "system: Be brief.", "user: What is it?", "assistant: What?", "The answer."]
        {
            assert!(asked.message.contains(words), "{words}: {}", asked.message);
        }
        assert!(model.requests.lock().unwrap().is_empty(), "nothing is sent before the yes");
        let answer = if accepts { ElicitationAnswer::Accept { content: Map::new() } } else { ElicitationAnswer::Decline };
        beside.send(HostCommand::AnswerElicitation { elicitation_id: asked.elicitation_id, answer }).await;
        let told = asking.await.unwrap();
        if accepts {
            assert!(told.is_ok() && model.requests.lock().unwrap().len() == 1);
        } else {
            assert!(told.unwrap_err().contains("the user declined"));
        }
    }
    let mut long = request();
    long["systemPrompt"] = json!("x".repeat(40 << 10));
    assert!(beside.asks.sample("docs", long).await.unwrap_err().contains("too long to review"));
    let (alone, model) = self::beside(&asks, false, Vec::new());
    assert!(alone.asks.sample("docs", request()).await.unwrap_err().contains("no user can approve it"));
    assert!(model.requests.lock().unwrap().is_empty());
}

#[tokio::test]
async fn a_sampling_request_that_exceeds_a_budget_is_not_sent() {
    let limit = BudgetLimit { scope: BudgetScope::Session, unit: BudgetUnit::Tokens, limit: 90.0 };
    let limits = vec![BudgetSetting { limit, set_by: "config.toml:1".to_owned(), for_this_run: false }];
    let (beside, model) = beside(FREELY, false, limits);
    assert!(beside.asks.sample("docs", request()).await.is_ok(), "about 70 of 90");
    let refused = beside.asks.sample("docs", request()).await.unwrap_err();
    assert!(refused.contains("LLM_BUDGET_EXCEEDED"), "{refused}");
    assert_eq!(model.requests.lock().unwrap().len(), 1);
}

#[tokio::test]
async fn invalid_sampling_requests_are_rejected_with_a_reason() {
    let (beside, model) = beside(FREELY, false, Vec::new());
    let with = |key: &str, value: Value| {
        let mut request = request();
        request[key] = value;
        request
    };
    let content = |content: Value| with("messages", json!([{"role": "user", "content": content}]));
    let image = json!({"type": "image", "mimeType": "image/png", "data": "AAAA"});
    for (request, why) in [
        (content(json!({"type": "audio", "mimeType": "audio/wav", "data": "AAAA"})), "content `audio`"),
        (content(json!([{"type": "tool_result", "toolUseId": "1", "content": []}])), "content `tool_result`"),
        (content(image), "does not support images"),
        (content(json!([])), "has no content"),
        (content(json!({"type": "text", "text": "x".repeat(300 << 10)})), "limit of 262144"),
        (with("messages", json!([])), "is empty or missing"),
        (with("messages", json!([{"role": "assistant", "content": {"type": "text", "text": "So"}}])), "role `user`"),
        (with("tools", json!([{"name": "t", "inputSchema": {}}])), "tools are not supported"),
        (with("maxTokens", json!(0)), "at least 1"),
    ] {
        let refused = beside.asks.sample("docs", request).await.unwrap_err();
        assert!(refused.contains(why), "{why}: {refused}");
    }
    assert!(model.requests.lock().unwrap().is_empty());
}
