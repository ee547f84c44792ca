//! Summary model, as named in the settings. If it cannot write a summary, the model in use writes it.

use super::assumed_prices::AssumedPrices;
use super::options::AgentOptions;
use super::turn_context::TurnContext;
use crate::protocol::ModelFacts;

/// Summary model of a session.
#[derive(Debug)]
pub(super) struct SummaryModel {
    /// Absent if the settings name none, or if it could not be opened.
    facts: Option<ModelFacts>,
}

impl SummaryModel {
    pub(crate) fn new(options: &AgentOptions) -> Self {
        Self { facts: options.summary_model.clone() }
    }

    /// Stores new facts, or that the model is now available.
    pub(crate) fn learn(&mut self, facts: ModelFacts) {
        self.facts = Some(facts);
    }

    /// Returns the model for the next summary, with its price; `None` for the model in use.
    pub(crate) fn next(&self, prices: &AssumedPrices, cx: &TurnContext) -> Option<ModelFacts> {
        let facts = self.facts.clone().filter(|facts| facts.name != cx.model_name())?;
        Some(prices.apply_to(facts))
    }
}

/// Reports that the model in use writes the summary instead, and the reason.
pub(super) fn report_replacement(model: &str, why: &str, cx: &mut TurnContext) {
    let instead = cx.model_name().to_owned();
    cx.out.notice(format!("{model} cannot write the summary: {why}; {instead} writes it instead"));
}
