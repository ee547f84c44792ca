//! A session's models: the user's choice, assumed prices, fallback models, and the model that writes summaries.

use super::assumed_prices::AssumedPrices;
use super::fallback::{FallbackModels, OpenedFallback};
use super::model::{ModelChoices, ModelUpdate};
use super::options::AgentOptions;
use super::summary_model::SummaryModel;
use super::turn_context::TurnContext;
use crate::protocol::{AssumedPrice, Effort, Failure, ModelFacts, SecretString};

/// A session's models.
#[derive(Debug)]
pub(super) struct TurnModels {
    choice: ModelChoices,
    prices: AssumedPrices,
    fallbacks: FallbackModels,
    summaries: SummaryModel,
}

/// Input to the models.
#[derive(Debug)]
pub(super) enum ModelInput<'a> {
    /// The user chose a model. `key` is an API key to save before the model is opened, if any.
    Chosen { name: String, key: Option<SecretString> },
    /// The user chose an effort.
    EffortChosen(Option<Effort>),
    /// The user assumed a price for the current model.
    PriceAssumed(AssumedPrice),
    /// A model was opened, or facts about the current model were received.
    Opened { opened: Result<ModelFacts, Failure>, request: RequestState },
    /// The summary model was opened, or its server reported facts about it.
    SummaryModelKnown(ModelFacts),
    /// A request failed and its retries are exhausted.
    Overloaded(&'a Failure),
    /// A task begins or continues.
    TaskBegun,
    /// A task's request is about to be sent.
    RequestDue,
    /// A request is being sent to this model.
    RequestSent(&'a ModelFacts),
    /// The journal contains a choice by the user.
    ChoiceRestored { name: String, effort: Option<Effort> },
    /// The journal contains an assumed price.
    PriceRestored { model: &'a str, price: AssumedPrice },
    /// The session was restored.
    Restored,
}

/// State of requests at the time a model is opened.
#[derive(Debug, Default)]
pub(super) struct RequestState {
    /// Response that is still in progress, and the model that is writing it.
    pub current: Option<(&'static str, String)>,
    /// How a fallback model would continue, if a request is waiting for one.
    pub waits_to: Option<&'static str>,
}

/// Output of the models.
#[derive(Debug)]
pub(super) enum ModelOutput {
    /// Another model, or new facts about the current model, are in effect.
    Changed,
    /// The user's choice is in effect, so a waiting request is retried immediately.
    ChoiceReady,
    /// A fallback model is in effect for the request that was waiting for it.
    FallbackReady,
    /// A fallback model cannot be used. Contains the failure that made it necessary.
    FallbackUnusable(Failure),
    /// A fallback model with this name can be opened.
    FallbackFound(String),
    /// An assumed price is in effect.
    Priced,
}

impl TurnModels {
    pub(crate) fn new(options: &AgentOptions) -> Self {
        Self {
            choice: ModelChoices::new(options),
            prices: AssumedPrices::new(options),
            fallbacks: FallbackModels::new(options),
            summaries: SummaryModel::new(options),
        }
    }

    /// Applies the configured output limit and the assumed prices to the current model.
    pub(crate) fn apply(&self, cx: &mut TurnContext) {
        self.choice.limit_output(cx);
        self.prices.apply(cx);
    }

    /// Handles an input.
    pub(crate) fn handle(&mut self, input: ModelInput<'_>, cx: &mut TurnContext) -> Option<ModelOutput> {
        match input {
            ModelInput::Chosen { name, key } => self.choice.open(name, key, cx),
            ModelInput::EffortChosen(effort) => self.choice.set_effort(effort, cx),
            ModelInput::PriceAssumed(price) => match self.prices.assume(price, cx) {
                Ok(()) => return Some(ModelOutput::Priced),
                Err(why) => cx.out.notice(why),
            },
            ModelInput::Opened { opened, request } => return self.on_opened(opened, request, cx),
            ModelInput::SummaryModelKnown(facts) => self.summaries.learn(facts),
            ModelInput::Overloaded(failure) => return self.fallbacks.next(failure, cx).map(ModelOutput::FallbackFound),
            ModelInput::TaskBegun => return self.use_chosen(cx),
            ModelInput::RequestDue => self.choice.report_effort(cx),
            ModelInput::RequestSent(model) => self.prices.record(model, cx),
            ModelInput::ChoiceRestored { name, effort } => self.choice.restore(name, effort, cx),
            ModelInput::PriceRestored { model, price } => self.prices.restore(model, price, cx),
            ModelInput::Restored => self.choice.report_run_model(cx),
        }
        None
    }

    /// Returns the model that will write the next summary, if it is not the current model.
    pub(crate) fn summary_model(&self, cx: &TurnContext) -> Option<ModelFacts> {
        self.summaries.next(&self.prices, cx)
    }

    /// Returns the price assumed for the current model, or `None` if its price is known or no price is assumed.
    pub(crate) fn assumed_price(&self, cx: &TurnContext) -> Option<AssumedPrice> {
        let model = &cx.options.model;
        self.prices.find(&model.name).filter(|_| model.price_is_assumed)
    }

    fn on_opened(
        &mut self,
        opened: Result<ModelFacts, Failure>,
        request: RequestState,
        cx: &mut TurnContext,
    ) -> Option<ModelOutput> {
        let RequestState { current, waits_to } = request;
        let opened = match self.fallbacks.on_opened(opened.map(|facts| self.prices.apply_to(facts))) {
            OpenedFallback::Other(opened) => opened,
            OpenedFallback::Ready(facts, failure) => return self.use_fallback(facts, &failure, waits_to?, cx),
            OpenedFallback::Unusable(why, failure) => {
                cx.out.notice(why);
                return Some(ModelOutput::FallbackUnusable(failure));
            }
        };
        match self.choice.on_opened(opened, cx) {
            ModelUpdate::None => None,
            ModelUpdate::Learned => Some(ModelOutput::Changed),
            ModelUpdate::Chosen(facts) => {
                if !self.choice.adopt(facts, current, cx) {
                    return None;
                }
                // The user's choice permanently replaces the earlier one.
                drop(self.fallbacks.take_chosen());
                Some(ModelOutput::ChoiceReady)
            }
        }
    }

    /// Uses a fallback model for the request that is waiting for it.
    fn use_fallback(&mut self, facts: ModelFacts, failure: &Failure, does: &str, cx: &mut TurnContext) -> Option<ModelOutput> {
        let chosen = cx.options.model.clone();
        let why = format!("{} is not responding ({}); {does} with this model", chosen.name, failure.message);
        self.fallbacks.replace(chosen);
        self.choice.switch(facts, &why, cx);
        Some(ModelOutput::FallbackReady)
    }

    /// Switches back to the chosen model after a fallback model was used.
    fn use_chosen(&mut self, cx: &mut TurnContext) -> Option<ModelOutput> {
        let facts = self.fallbacks.take_chosen()?;
        cx.policy.check_model(&facts.name).ok()?;
        self.choice.switch(facts, "switching back to the chosen model", cx);
        Some(ModelOutput::Changed)
    }
}

#[cfg(test)]
impl TurnModels {
    /// Uses the fallback models and the summary model specified by these options.
    pub(super) fn reload(&mut self, options: &AgentOptions) {
        self.fallbacks = FallbackModels::new(options);
        self.summaries = SummaryModel::new(options);
    }
}
