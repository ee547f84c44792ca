//! Fallback models: the model that continues a task while the provider of the chosen model is overloaded. The user's
//! choice is unchanged: the next task, and a later run of the session, begin with the chosen model again.

use super::options::AgentOptions;
use super::turn_context::TurnContext;
use crate::protocol::{Failure, FailureKind, ModelFacts};

/// Fallback models of a session.
#[derive(Debug)]
pub(super) struct FallbackModels {
    /// Names, in order of preference.
    names: Vec<String>,
    /// Models that failed since the chosen model was last used.
    failed: Vec<String>,
    /// Model chosen by the user, while a fallback replaces it.
    chosen: Option<ModelFacts>,
    /// Name of the fallback being opened, and the failure that it should handle.
    opening: Option<(String, Failure)>,
}

/// Result of opening a model, as far as it concerns a fallback.
pub(super) enum OpenedFallback {
    /// Result for a model that is not a fallback.
    Other(Result<ModelFacts, Failure>),
    Ready(ModelFacts, Failure),
    /// Reason why the fallback cannot be used, and the failure that it should have handled.
    Unusable(String, Failure),
}

impl FallbackModels {
    pub(crate) fn new(options: &AgentOptions) -> Self {
        Self { names: options.fallback_models.clone(), failed: Vec::new(), chosen: None, opening: None }
    }

    /// Returns the next model to open after this failure of the current one, if the failure allows a fallback.
    pub(crate) fn next(&mut self, failure: &Failure, cx: &TurnContext) -> Option<String> {
        let is_overloaded = matches!(failure.kind, FailureKind::RateLimited | FailureKind::Overloaded)
            || failure.status.is_some_and(|status| status >= 500);
        if !is_overloaded {
            return None;
        }
        let current = cx.options.model.name.clone();
        if !self.failed.contains(&current) {
            self.failed.push(current);
        }
        let name = self.names.iter().find(|name| !self.failed.contains(name) && cx.policy.check_model(name).is_ok())?.clone();
        self.opening = Some((name.clone(), failure.clone()));
        Some(name)
    }

    /// Handles the result of opening a model, if that model is a fallback.
    pub(crate) fn on_opened(&mut self, opened: Result<ModelFacts, Failure>) -> OpenedFallback {
        let Some((name, failure)) = self.opening.take() else { return OpenedFallback::Other(opened) };
        match opened {
            Ok(facts) if facts.name == name => OpenedFallback::Ready(facts, failure),
            // Facts about another model say nothing about this one.
            Ok(_) => {
                self.opening = Some((name, failure));
                OpenedFallback::Other(opened)
            }
            Err(reason) => {
                let words = reason.problem().with_location(format!("cannot fall back to {name}")).one_line();
                self.failed.push(name);
                OpenedFallback::Unusable(words, failure)
            }
        }
    }

    /// Records that a fallback replaces this model.
    pub(crate) fn replace(&mut self, model: ModelFacts) {
        self.chosen.get_or_insert(model);
    }

    /// Returns the chosen model if it should be used again, and clears all failures.
    pub(crate) fn take_chosen(&mut self) -> Option<ModelFacts> {
        self.failed.clear();
        self.opening = None;
        self.chosen.take()
    }
}
