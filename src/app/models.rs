//! Which model answers: chosen by the flag, the session or the settings, and opened at its provider.

use super::local::LOCAL;
use super::place::Place;
use crate::config::{Api, Environment, ModelChoice, NoModel, Settings};
use crate::llm::{self, ProviderSpec};
use crate::ports::{BoxFuture, Model, Models};
use crate::protocol::{Failure, FailureKind, ListedModel};
use crate::store::SessionSummary;
use crate::sys::http::Timeouts;
use std::sync::Arc;

/// The provider name of the recorded model.
pub const DEMO: &str = "demo";

/// The models a person can ask from here.
pub struct ModelsHere {
    settings: Settings,
    environment: Environment,
}

impl ModelsHere {
    pub fn new(place: &Place) -> Self {
        Self { settings: place.settings.clone(), environment: place.environment.clone() }
    }

    /// The model to ask: the flag's, the resumed session's, or the one that is set.
    pub fn choose(&self, flag: Option<&str>, resumed: Option<&SessionSummary>) -> Result<Arc<dyn Model>, NoModel> {
        // A session that never had a model says nothing.
        let asked = flag.or(resumed.map(|summary| summary.model.as_str()).filter(|model| !model.is_empty()));
        if asked.and_then(llm::split_name).is_some_and(|(provider, _)| provider == DEMO) {
            let demo = llm::demo::Demo::new(llm::demo::Pace::Recorded);
            return demo
                .map(|demo| Arc::new(demo) as Arc<dyn Model>)
                .map_err(|failure| NoModel::NoKey { message: failure.message });
        }
        self.connect(self.settings.choose_model(asked, &self.environment)?)
    }

    fn connect(&self, choice: ModelChoice) -> Result<Arc<dyn Model>, NoModel> {
        let api = match choice.api {
            Api::Anthropic => llm::Api::Anthropic,
            Api::OpenAiChat => llm::Api::OpenAiChat,
            Api::OpenAiResponses => llm::Api::OpenAiResponses,
            Api::Gemini => llm::Api::Gemini,
        };
        let llm = self.settings.llm;
        let spec = ProviderSpec {
            name: choice.provider,
            api,
            base_url: choice.base_url,
            key: choice.key.map(|key| llm::Secret::new(key.reveal())),
            key_variable: choice.key_variable,
            timeouts: Timeouts { connect: llm.connect_timeout, idle: llm.idle_timeout },
        };
        let connected = if spec.name == LOCAL && !self.settings.says_where_local_is() {
            llm::connect_local(spec, &choice.model, self.settings.local_ports())
        } else {
            llm::connect(spec, &choice.model)
        };
        connected.map_err(|failure| NoModel::NoKey { message: format!("{}; {}", failure.message, failure.hint) })
    }
}

impl Models for ModelsHere {
    fn open(&self, name: &str) -> Result<Arc<dyn Model>, Failure> {
        self.choose(Some(name), None).map_err(|error| {
            let kind = match error {
                NoModel::NoKey { .. } => FailureKind::Authentication,
                NoModel::Wrong(_) => FailureKind::InvalidRequest,
            };
            Failure::new(kind, error.to_string(), "the model stays as it is")
        })
    }

    fn list(&self, _ask: bool) -> BoxFuture<'static, (Vec<ListedModel>, Vec<String>)> {
        Box::pin(std::future::ready((Vec::new(), Vec::new())))
    }
}
