//! Client for the session's models: the current model and its response, the model for summaries, and any model being
//! opened.

use super::event_sender::EventSender;
use super::setup::{ModelSetup, SummaryModelSetup};
use crate::agent::images::ImageCache;
use crate::agent::redaction::{RequestRedactor, hide_in_failure};
use crate::agent::turn::Input;
use crate::policy::redact::Redactor;
use crate::ports::{Artifacts, Delta, Model, ModelError, ModelRequest, ModelStream, Models, SearchEngine};
use crate::protocol::{EventKind, Failure, FailureKind, ModelFacts, Remedy, SecretString};
use futures_util::{StreamExt, TryStreamExt};
use std::sync::{Arc, Mutex, PoisonError};
use tokio::sync::mpsc;
use tokio::task::JoinHandle;

/// Maximum number of models that stay open after the user has switched away from them.
const EARLIER_MODELS: usize = 8;

/// The current model, and those that can replace it.
pub(super) struct ModelClient {
    current: Arc<dyn Model>,
    all: Arc<dyn Models>,
    summary: SummaryClient,
    /// Response to the current request, while it is being streamed.
    response: Option<ModelStream>,
    request_redactor: RequestRedactor,
    images: ImageCache,
    /// Previously used models that the user can switch back to, newest last.
    earlier: Vec<Arc<dyn Model>>,
    /// Most recently opened model. It is used once the policy has allowed it and the journal has recorded it.
    opened: Arc<Mutex<Option<Arc<dyn Model>>>>,
    opens: Option<JoinHandle<()>>,
    looks_up: Option<JoinHandle<()>>,
    inputs: mpsc::Sender<Input>,
    sender: EventSender,
}

/// Model used for summaries.
#[derive(Default)]
struct SummaryClient {
    /// Model name in the settings, if they set one.
    name: Option<String>,
    /// The opened model; `None` until it has been opened.
    model: Arc<Mutex<Option<Arc<dyn Model>>>>,
}

impl SummaryClient {
    fn model(&self) -> Option<Arc<dyn Model>> {
        self.model.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

impl ModelClient {
    pub(crate) fn new(
        models: ModelSetup,
        artifacts: Option<Arc<dyn Artifacts>>,
        inputs: mpsc::Sender<Input>,
        sender: EventSender,
    ) -> Self {
        let SummaryModelSetup { name, model } = models.summary;
        Self {
            current: models.current,
            all: models.all,
            summary: SummaryClient { name, model: Arc::new(Mutex::new(model)) },
            response: None,
            request_redactor: RequestRedactor::default(),
            images: ImageCache::new(artifacts),
            earlier: Vec::new(),
            opened: Arc::default(),
            opens: None,
            looks_up: None,
            inputs,
            sender,
        }
    }

    pub(crate) fn facts(&self) -> ModelFacts {
        self.current.facts()
    }

    /// Returns the web search of the current model's provider, if it has one.
    pub(crate) fn web_search(&self) -> Option<Arc<dyn SearchEngine>> {
        self.current.web_search()
    }

    /// Sends a step's request with secrets redacted and images loaded. The response is returned by `next`.
    pub(crate) async fn request(&mut self, redactor: Arc<Redactor>, request: ModelRequest) {
        let model = Arc::clone(&self.current);
        self.send(model, redactor, request).await;
    }

    /// Like `request`, but sends the request to the summary model.
    pub(crate) async fn request_summary(&mut self, redactor: Arc<Redactor>, request: ModelRequest) {
        let model = self.summary.model().unwrap_or_else(|| Arc::clone(&self.current));
        self.send(model, redactor, request).await;
    }

    async fn send(&mut self, model: Arc<dyn Model>, redactor: Arc<Redactor>, request: ModelRequest) {
        let mut request = self.request_redactor.hide_in_request(&redactor, request);
        if model.facts().images {
            request.images = Some(self.images.load(&request.messages).await);
        }
        self.response = Some(stream(&*model, redactor, request));
    }

    /// Sends a server's sampling request with secrets redacted.
    pub(crate) fn sample(&self, redactor: Arc<Redactor>, request: ModelRequest) -> ModelStream {
        // The request uses a separate redaction cache, because it would evict the thread's messages from the shared
        // one.
        let request = RequestRedactor::default().hide_in_request(&redactor, request);
        stream(&*self.current, redactor, request)
    }

    /// Waits for the next part of the response. Never completes while no response is being streamed. A stream that
    /// ends without a completion is reported as cut off.
    pub(crate) async fn next(&mut self) -> Input {
        let Some(open) = &mut self.response else { return std::future::pending().await };
        let next = open.next().await;
        if !matches!(next, Some(Ok(Delta::Text(_) | Delta::Reasoning(_) | Delta::ToolCallProgress { .. }))) {
            self.response = None;
        }
        match next {
            Some(Ok(delta)) => Input::Delta(delta),
            Some(Err(error)) => Input::ModelFailed(error),
            None => {
                let failure =
                    Failure::new(FailureKind::CutStream, "the response was cut off before it ended", "check the connection")
                        .with_remedy(Remedy::Continue);
                Input::ModelFailed(ModelError::from(failure))
            }
        }
    }

    /// Stops the current request.
    pub(crate) fn stop(&mut self) {
        self.response = None;
    }

    /// Clears the redaction cache, because a new redactor may redact more than the old one.
    pub(crate) fn forget_redactions(&mut self) {
        self.request_redactor = RequestRedactor::default();
    }

    /// Saves the API key, if one is given, and opens a different model. Both steps may access a keyring, which may
    /// prompt the user.
    pub(crate) fn open(&mut self, name: String, key: Option<SecretString>) {
        let (models, inputs, slot) = (self.all.clone(), self.inputs.clone(), self.opened.clone());
        let sender = self.sender.clone();
        let keep_and_open = move || {
            if let Some(key) = key {
                let message = models.keep_key(&name, &key)?;
                sender.send(None, None, EventKind::notice(message));
            }
            models.open(&name)
        };
        let opens = tokio::spawn(async move {
            let opened = tokio::task::spawn_blocking(keep_and_open).await.unwrap_or_else(|_| {
                let message = "cannot open the model";
                Err(Failure::new(FailureKind::Internal, message, "see the log, or choose another model"))
            });
            let facts = opened.map(|model| {
                let facts = model.facts();
                *slot.lock().unwrap_or_else(PoisonError::into_inner) = Some(model);
                facts
            });
            let _ = inputs.send(Input::ModelOpened(facts)).await;
        });
        // If the user chooses yet another model in the meantime, the last choice wins.
        if let Some(before) = self.opens.replace(opens) {
            before.abort();
        }
    }

    /// Switches to the most recently opened model or a previously used one. Returns whether a model with this name
    /// was found.
    pub(crate) fn switch_to(&mut self, name: &str) -> bool {
        let opened = self.opened.lock().unwrap_or_else(PoisonError::into_inner).take();
        let earlier = || self.earlier.iter().find(|model| model.name() == name).cloned();
        let Some(model) = opened.filter(|model| model.facts().name == name).or_else(earlier) else { return false };
        let before = std::mem::replace(&mut self.current, model);
        self.earlier.retain(|model| model.name() != before.name());
        self.earlier.push(before);
        if self.earlier.len() > EARLIER_MODELS {
            self.earlier.remove(0);
        }
        true
    }

    /// Asks the current model's server for facts about the model in the background.
    pub(crate) fn query_facts(&mut self) {
        let (asked, inputs) = (self.current.query_facts(), self.inputs.clone());
        let looks_up = tokio::spawn(async move {
            if let Some(facts) = asked.await {
                let _ = inputs.send(Input::ModelOpened(Ok(facts))).await;
            }
        });
        if let Some(before) = self.looks_up.replace(looks_up) {
            before.abort();
        }
    }

    /// Opens the summary model in the background, unless it is already open.
    pub(crate) fn open_summary_model(&self) {
        let Some(name) = self.summary.name.clone().filter(|_| self.summary.model().is_none()) else { return };
        let (models, slot, inputs) = (self.all.clone(), self.summary.model.clone(), self.inputs.clone());
        tokio::spawn(async move {
            // The reason why the model could not be opened was reported when the session started.
            let Ok(Ok(model)) = tokio::task::spawn_blocking(move || models.open(&name)).await else { return };
            let facts = model.facts();
            *slot.lock().unwrap_or_else(PoisonError::into_inner) = Some(model);
            let _ = inputs.send(Input::SummaryModelKnown(facts)).await;
        });
    }

    /// Asks the summary model's server for facts about the model in the background.
    pub(crate) fn query_summary_facts(&self) {
        let Some(model) = self.summary.model() else { return };
        let (asked, inputs) = (model.query_facts(), self.inputs.clone());
        tokio::spawn(async move {
            if let Some(facts) = asked.await {
                let _ = inputs.send(Input::SummaryModelKnown(facts)).await;
            }
        });
    }

    pub(crate) fn list(&self, ask: bool) {
        let (listed, sender) = (self.all.list(ask), self.sender.clone());
        tokio::spawn(async move {
            let (models, notices) = listed.await;
            sender.send(None, None, EventKind::ModelsListed { models, notices });
        });
    }
}

fn stream(model: &dyn Model, redactor: Arc<Redactor>, request: ModelRequest) -> ModelStream {
    model.stream(request).map_err(move |error| hide_in_failure(&redactor, error)).boxed()
}
