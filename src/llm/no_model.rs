//! Null model, for a session that lists the available models and waits for a choice.

use crate::ports::{Model, ModelRequest, ModelStream};
use crate::protocol::{Failure, FailureKind, ModelFacts, Remedy};
use futures_util::{StreamExt, stream};

/// Placeholder for a model. Every request fails with the reason, without being sent.
pub(crate) struct MissingModel {
    facts: ModelFacts,
    why: String,
}

impl MissingModel {
    /// Creates a placeholder. `name`: previous model of the session; may be empty.
    pub(crate) fn new(name: &str, why: String) -> Self {
        Self { facts: super::Catalogue::default().facts(name), why }
    }
}

impl Model for MissingModel {
    fn name(&self) -> &str {
        &self.facts.name
    }

    fn facts(&self) -> ModelFacts {
        self.facts.clone()
    }

    fn stream(&self, _: ModelRequest) -> ModelStream {
        let failure = Failure::new(FailureKind::Authentication, self.why.clone(), "choose a model or save its key")
            .with_remedy(Remedy::Continue);
        stream::iter([Err(failure.into())]).boxed()
    }
}
