//! Another model for the session, and the list of those there are.

use super::Host;
use crate::agent::turn::Input;
use crate::ports::Model;
use crate::protocol::{EventKind, Failure, FailureKind, KeyText, ModelFacts};
use std::sync::{Arc, Mutex, PoisonError};
use tokio::task::JoinHandle;

/// What is on its way of models.
#[derive(Default)]
pub(super) struct Opening {
    /// The one that was opened last. It is asked once the policy let it through and the journal has it.
    opened: Arc<Mutex<Option<Arc<dyn Model>>>>,
    opens: Option<JoinHandle<()>>,
    looks_up: Option<JoinHandle<()>>,
}

impl Host {
    /// Opening one may read a keyring, which may ask the person; so may keeping a key for it before.
    pub(super) fn open_model(&mut self, name: String, key: Option<KeyText>) {
        let (models, inputs, slot) = (self.models.clone(), self.inputs.clone(), self.opening.opened.clone());
        let teller = self.teller();
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
                Err(Failure::new(FailureKind::Internal, message, "see the log, or choose another one"))
            });
            let facts = opened.map(|model| {
                let facts = model.facts();
                *slot.lock().unwrap_or_else(PoisonError::into_inner) = Some(model);
                facts
            });
            let _ = inputs.send(Input::ModelOpened(facts)).await;
        });
        // Who chooses again means the last one.
        if let Some(before) = self.opening.opens.replace(opens) {
            before.abort();
        }
    }

    pub(super) fn use_model(&mut self, name: &str) {
        let opened = self.opening.opened.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(model) = opened.filter(|model| model.facts().name == name) {
            self.model = model;
            self.tell_window(self.model.facts().context_window);
            self.look_up();
        }
    }

    /// The tools of servers are told as far as they fit the model.
    fn tell_window(&self, tokens: u64) {
        if let Some(servers) = &self.servers {
            servers.told_to(tokens);
        }
    }

    /// More is known of a model; of the one that is asked it counts at once.
    pub(super) fn learn_window(&self, facts: &ModelFacts) {
        if facts.name == self.model.facts().name {
            self.tell_window(facts.context_window);
        }
    }

    /// Asks in the background what the model's server knows of it.
    pub(super) fn look_up(&mut self) {
        let (asked, inputs) = (self.model.look_up(), self.inputs.clone());
        let looks_up = tokio::spawn(async move {
            if let Some(facts) = asked.await {
                let _ = inputs.send(Input::ModelOpened(Ok(facts))).await;
            }
        });
        if let Some(before) = self.opening.looks_up.replace(looks_up) {
            before.abort();
        }
    }

    /// Who comes to a session sees at once what it may use up.
    pub(super) fn tell_of_budgets(&self) {
        let budgets = self.machine.budgets();
        if !budgets.is_empty() {
            self.emit(None, None, EventKind::BudgetShown { budgets });
        }
    }

    pub(super) fn list_models(&self, ask: bool) {
        let (listed, teller) = (self.models.list(ask), self.teller());
        tokio::spawn(async move {
            let (models, notices) = listed.await;
            teller.tell(None, None, EventKind::ModelsListed { models, notices });
        });
    }
}
