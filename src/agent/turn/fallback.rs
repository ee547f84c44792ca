//! Fallback models, which continue a task while the chosen model's provider is overloaded. They do not change the
//! user's choice: the next task and any later run of the session begin with the chosen model again.

use super::options::AgentOptions;
use super::turn_context::TurnContext;
use crate::protocol::{Failure, FailureKind, ModelFacts};

/// A session's fallback models.
#[derive(Debug)]
pub(super) struct FallbackModels {
    /// Model names, in order of preference.
    names: Vec<String>,
    /// Models that have failed since the chosen model was last used.
    failed: Vec<String>,
    /// Model chosen by the user; set while a fallback model replaces it.
    chosen: Option<ModelFacts>,
    /// Name of the fallback model being opened, with the failure that made it necessary.
    opening: Option<(String, Failure)>,
}

/// Result of opening a model that may be a fallback model.
pub(super) enum OpenedFallback {
    /// The result concerns a model that is not a fallback model.
    Other(Result<ModelFacts, Failure>),
    Ready(ModelFacts, Failure),
    /// Reason why the fallback model cannot be used, with the failure that made it necessary.
    Unusable(String, Failure),
}

impl FallbackModels {
    pub(crate) fn new(options: &AgentOptions) -> Self {
        Self { names: options.fallback_models.clone(), failed: Vec::new(), chosen: None, opening: None }
    }

    /// Returns the next model to open after the current model failed. Returns `None` if the failure does not call for
    /// a fallback or no model is left.
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

    /// Handles the result of opening a model that may be a fallback model.
    pub(crate) fn on_opened(&mut self, opened: Result<ModelFacts, Failure>) -> OpenedFallback {
        let Some((name, failure)) = self.opening.take() else { return OpenedFallback::Other(opened) };
        match opened {
            Ok(facts) if facts.name == name => OpenedFallback::Ready(facts, failure),
            // The fallback model is still being opened; these facts concern a different model.
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

    /// Records that a fallback model replaces this model.
    pub(crate) fn replace(&mut self, model: ModelFacts) {
        self.chosen.get_or_insert(model);
    }

    /// Returns the chosen model if a fallback model had replaced it, and forgets all failures.
    pub(crate) fn take_chosen(&mut self) -> Option<ModelFacts> {
        self.failed.clear();
        self.opening = None;
        self.chosen.take()
    }
}
