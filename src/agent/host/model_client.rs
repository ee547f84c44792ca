//! Model client of the session: the current model, its response, and another model that is being opened.

use super::Host;
use super::event_sender::Teller;
use crate::agent::turn::Input;
use crate::ports::{Model, ModelRequest, ModelStream, Models};
use crate::protocol::{EventKind, Failure, FailureKind, KeyText, ModelFacts};
use std::sync::{Arc, Mutex, PoisonError};
use tokio::sync::mpsc;
use tokio::task::JoinHandle;

/// Current model and the available ones.
pub(super) struct ModelClient {
    current: Arc<dyn Model>,
    all: Arc<dyn Models>,
    /// Response to the current request.
    pub answer: Option<ModelStream>,
    /// Model opened last. It is used once the policy allows it and the journal has recorded it.
    opened: Arc<Mutex<Option<Arc<dyn Model>>>>,
    opens: Option<JoinHandle<()>>,
    looks_up: Option<JoinHandle<()>>,
    inputs: mpsc::Sender<Input>,
    teller: Teller,
}

impl ModelClient {
    pub fn new(current: Arc<dyn Model>, all: Arc<dyn Models>, inputs: mpsc::Sender<Input>, teller: Teller) -> Self {
        Self { current, all, answer: None, opened: Arc::default(), opens: None, looks_up: None, inputs, teller }
    }

    pub fn facts(&self) -> ModelFacts {
        self.current.facts()
    }

    /// Sends a request whose response is read elsewhere.
    pub fn stream(&self, request: ModelRequest) -> ModelStream {
        self.current.stream(request)
    }

    /// Stops the current request.
    pub fn stop(&mut self) {
        self.answer = None;
    }

    /// Saves the API key, if given, and opens another model. Both may read a keyring, which may ask the user.
    pub fn open(&mut self, name: String, key: Option<KeyText>) {
        let (models, inputs, slot) = (self.all.clone(), self.inputs.clone(), self.opened.clone());
        let teller = self.teller.clone();
        let keep_and_open = move || {
            if let Some(key) = key {
                let message = models.keep_key(&name, &key)?;
                teller.tell(None, None, EventKind::Notice { message });
            }
            models.open(&name)
        };
        let opens = tokio::spawn(async move {
            let opened = tokio::task::spawn_blocking(keep_and_open).await.unwrap_or_else(|_| {
                let message = "the model could not be opened";
                Err(Failure::new(FailureKind::Internal, message, "see the log, or choose another model"))
            });
            let facts = opened.map(|model| {
                let facts = model.facts();
                *slot.lock().unwrap_or_else(PoisonError::into_inner) = Some(model);
                facts
            });
            let _ = inputs.send(Input::ModelOpened(facts)).await;
        });
        // If the user chooses again, the last choice counts.
        if let Some(before) = self.opens.replace(opens) {
            before.abort();
        }
    }

    /// Switches to the model opened last. Returns whether it has this name.
    fn switch_to(&mut self, name: &str) -> bool {
        let opened = self.opened.lock().unwrap_or_else(PoisonError::into_inner).take();
        let model = opened.filter(|model| model.facts().name == name);
        let switched = model.is_some();
        if let Some(model) = model {
            self.current = model;
        }
        switched
    }

    /// Queries the model's server for its facts in the background.
    pub fn look_up(&mut self) {
        let (asked, inputs) = (self.current.look_up(), self.inputs.clone());
        let looks_up = tokio::spawn(async move {
            if let Some(facts) = asked.await {
                let _ = inputs.send(Input::ModelOpened(Ok(facts))).await;
            }
        });
        if let Some(before) = self.looks_up.replace(looks_up) {
            before.abort();
        }
    }

    pub fn list(&self, ask: bool) {
        let (listed, teller) = (self.all.list(ask), self.teller.clone());
        tokio::spawn(async move {
            let (models, notices) = listed.await;
            teller.tell(None, None, EventKind::ModelsListed { models, notices });
        });
    }
}

impl Host {
    pub(super) fn use_model(&mut self, name: &str) {
        if self.model.switch_to(name) {
            self.tell_window(self.model.facts().context_window);
            self.model.look_up();
        }
    }

    /// Tells the servers the context window, so that their tools are offered as far as they fit the model.
    fn tell_window(&self, tokens: u64) {
        if let Some(servers) = &self.servers {
            servers.told_to(tokens);
        }
    }

    /// Learns more about a model; applied at once if it is the current one.
    pub(super) fn learn_window(&self, facts: &ModelFacts) {
        if facts.name == self.model.facts().name {
            self.tell_window(facts.context_window);
        }
    }

    /// Reports the budgets at the start, so that a front end shows them at once.
    pub(super) fn tell_of_budgets(&self) {
        let budgets = self.machine.budgets();
        if !budgets.is_empty() {
            self.emit(None, None, EventKind::BudgetShown { budgets });
        }
    }
}
