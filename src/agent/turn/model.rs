//! Another model, or more that is known of the one that is asked.

use super::{Effect, Machine};
use crate::protocol::{Effort, EventKind, Failure, ModelFacts};

impl Machine {
    pub(super) fn set_model(&mut self, name: String) {
        self.out.push(Effect::OpenModel { name });
    }

    pub(super) fn model_opened(&mut self, opened: Result<ModelFacts, Failure>) {
        match opened {
            Ok(facts) => {
                let message = format!("model {}", facts.name);
                self.options.model = facts.clone();
                self.emit(EventKind::ModelChanged { facts, effort: self.options.effort, message });
            }
            Err(failure) => self.notice(format!("{}; {}", failure.message, failure.hint)),
        }
    }

    pub(super) fn set_effort(&mut self, effort: Option<Effort>) {
        self.options.effort = effort;
        let facts = self.options.model.clone();
        let message = format!("effort {}", effort.map_or("of the model", Effort::as_str));
        self.emit(EventKind::ModelChanged { facts, effort, message });
    }
}
