//! Another model for the session, and the list of those there are.

use super::Host;
use crate::agent::turn::Input;
use crate::protocol::EventKind;

impl Host {
    pub(super) fn open_model(&mut self, name: &str) {
        let opened = self.models.open(name).map(|model| {
            let facts = model.facts();
            self.model = model;
            facts
        });
        let inputs = self.inputs.clone();
        tokio::spawn(async move {
            let _ = inputs.send(Input::ModelOpened(opened)).await;
        });
    }

    pub(super) fn list_models(&self, ask: bool) {
        let (listed, teller) = (self.models.list(ask), self.teller());
        tokio::spawn(async move {
            let (models, notices) = listed.await;
            teller.tell(None, None, EventKind::ModelsListed { models, notices });
        });
    }
}
