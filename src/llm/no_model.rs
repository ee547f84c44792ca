//! Null model, used by a session that lists the available models until the user chooses one.

use crate::ports::{Model, ModelRequest, ModelStream};
use crate::protocol::{Failure, FailureKind, ModelFacts, Remedy};
use futures_util::{StreamExt, stream};

/// Placeholder for a missing model. Every request fails with the reason why there is no model, without anything being
/// sent.
pub(crate) struct MissingModel {
    facts: ModelFacts,
    why: String,
}

impl MissingModel {
    /// Creates a placeholder. `name` is the model that the session used previously, or empty.
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
