//! Model for summaries, as named in the settings. If it cannot write a summary, the current model does so.

use super::assumed_prices::AssumedPrices;
use super::options::AgentOptions;
use super::turn_context::TurnContext;
use crate::protocol::ModelFacts;

/// Model that writes a session's summaries.
#[derive(Debug)]
pub(super) struct SummaryModel {
    /// Facts about the model; `None` if the settings do not name one or it could not be opened.
    facts: Option<ModelFacts>,
}

impl SummaryModel {
    pub(crate) fn new(options: &AgentOptions) -> Self {
        Self { facts: options.summary_model.clone() }
    }

    /// Stores facts about the summary model, which is available from now on.
    pub(crate) fn learn(&mut self, facts: ModelFacts) {
        self.facts = Some(facts);
    }

    /// Returns the model for the next summary, with its price, or `None` if the current model should write it.
    pub(crate) fn next(&self, prices: &AssumedPrices, cx: &TurnContext) -> Option<ModelFacts> {
        let facts = self.facts.clone().filter(|facts| facts.name != cx.model_name())?;
        Some(prices.apply_to(facts))
    }
}

/// Reports that the current model writes the summary instead, and why.
pub(super) fn report_replacement(model: &str, why: &str, cx: &mut TurnContext) {
    let instead = cx.model_name().to_owned();
    cx.out.notice(format!("{model} cannot write the summary: {why}; {instead} writes it instead"));
}
