//! Tests of model changes during a session: a model is used once it has been allowed and saved, with facts from its
//! server.

use super::servers::Beside;
use super::*;

const ONLY_TEST: &str = "schema_version = 1\n[llm]\nallowed_models = [\"test/*\"]\n[capabilities.\"Shell.Exec\"]\n";

/// Model that responds with its own name and reports its server's context window.
struct Named(String);

impl Model for Named {
    fn name(&self) -> &str {
        &self.0
    }
    fn facts(&self) -> ModelFacts {
        ModelFacts::for_test(&self.0, 100_000, None)
    }
    fn query_facts(&self) -> BoxFuture<'static, Option<ModelFacts>> {
        let facts = ModelFacts::for_test(&self.0, 32_000, None);
        Box::pin(std::future::ready(Some(facts)))
    }
    fn stream(&self, _: ModelRequest) -> ModelStream {
        let answer = said(&self.0, StopReason::EndTurn, None);
        futures_util::stream::iter([Ok(Delta::Completed(answer))]).boxed()
    }
}

/// Model list that accepts any name.
struct All;

impl Models for All {
    fn open(&self, name: &str) -> Result<Arc<dyn Model>, Failure> {
        Ok(Arc::new(Named(name.to_owned())))
    }
    fn keep_key(&self, name: &str, _: &SecretString) -> Result<String, Failure> {
        Ok(format!("the key of {name} is kept"))
    }
    fn list(&self, _: bool) -> BoxFuture<'static, (Vec<ListedModel>, Vec<String>)> {
        Box::pin(std::future::ready(Default::default()))
    }
}

fn session(policy: &str) -> Session {
    let disk = Arc::new(Disk::default());
    let tools = Arc::new(Tools { disk: disk.clone(), fills: AtomicBool::new(false), ran: Mutex::default() });
    let script = Arc::new(Script(Mutex::default()));
    let mut setup = setup(policy, tools.clone(), disk.clone(), script.clone());
    setup.models.all = Arc::new(All);
    let (commands, receive_commands) = mpsc::channel(8);
    let (events, receive_events) = mpsc::unbounded_channel();
    let ended = spawn(setup, receive_commands, events).ended;
    Session { commands, events: receive_events, disk, tools, script, ended, status: SessionStatus::Created }
}

impl Session {
    /// Sends a prompt and returns the name of the model that responded.
    async fn answered_by(&mut self, text: &str) -> String {
        self.say(text).await;
        let completed = |kind: &EventKind| match kind {
            EventKind::TaskCompleted { text, .. } => Some(text.clone()),
            _ => None,
        };
        self.until(completed).await
    }
}

#[tokio::test]
async fn the_next_request_uses_the_chosen_model_and_its_facts_are_updated_by_the_server() {
    let mut session = session(POLICY);
    assert_eq!(session.answered_by("hello").await, "Done.");
    session.send(Command::SetModel { name: "other/model".to_owned() }).await;
    let changed = |kind: &EventKind| match kind {
        EventKind::ModelChanged { facts, .. } => Some((facts.name.clone(), facts.context_window)),
        _ => None,
    };
    assert_eq!(session.until(changed).await, ("other/model".to_owned(), 100_000));
    assert_eq!(session.until(changed).await, ("other/model".to_owned(), 32_000));
    assert_eq!(session.answered_by("and now?").await, "other/model");
    assert!(session.saved().iter().any(|record| matches!(record, Record::ModelChosen { model, .. } if model == "other/model")));
}

#[tokio::test]
async fn a_model_that_the_policy_denies_receives_no_request() {
    let mut session = session(ONLY_TEST);
    session.send(Command::SetModel { name: "other/model".to_owned() }).await;
    let refused =
        |kind: &EventKind| matches!(kind, EventKind::Notice { message, .. } if message.contains("does not allow")).then_some(());
    session.until(refused).await;
    assert_eq!(session.answered_by("hello").await, "Done.");
}

#[tokio::test]
async fn mcp_servers_receive_the_context_window_of_the_chosen_model() {
    let mut beside =
        Beside::under(POLICY, true, |setup| Setup { models: ModelSetup { all: Arc::new(All), ..setup.models }, ..setup });
    beside.send(Command::SetModel { name: "other/model".to_owned() }).await;
    let known = |kind: &EventKind| match kind {
        EventKind::ModelChanged { facts, .. } => (facts.context_window == 32_000).then_some(()),
        _ => None,
    };
    beside.until(known).await;
    assert_eq!(beside.fake.log(), ["100000 tokens", "32000 tokens"]);
}

/// Model list that reports the name of every model that is opened.
struct Reporting(mpsc::UnboundedSender<String>);

impl Models for Reporting {
    fn open(&self, name: &str) -> Result<Arc<dyn Model>, Failure> {
        let _ = self.0.send(name.to_owned());
        All.open(name)
    }
    fn keep_key(&self, name: &str, key: &SecretString) -> Result<String, Failure> {
        All.keep_key(name, key)
    }
    fn list(&self, ask: bool) -> BoxFuture<'static, (Vec<ListedModel>, Vec<String>)> {
        All.list(ask)
    }
}

#[tokio::test]
async fn an_unavailable_summary_model_is_opened_when_a_model_is_chosen() {
    let (report, mut opened) = mpsc::unbounded_channel();
    let summary = SummaryModelSetup { name: Some("small/model".to_owned()), model: None };
    let beside = Beside::under(POLICY, true, |setup| {
        let models = ModelSetup { all: Arc::new(Reporting(report)), summary, ..setup.models };
        Setup { models, ..setup }
    });
    for (chosen, expected) in [("other/model", &["other/model", "small/model"][..]), ("third/model", &["third/model"])] {
        beside.send(Command::SetModel { name: chosen.to_owned() }).await;
        for name in expected {
            assert_eq!(opened.recv().await.as_deref(), Some(*name));
        }
    }
}
