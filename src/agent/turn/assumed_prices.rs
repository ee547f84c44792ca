//! Prices that the user assumes for models whose actual price is unknown, so a budget in dollars can be enforced.

use super::options::{AgentOptions, PriceAssumption};
use super::turn_context::TurnContext;
use crate::ports::{Durability, Record};
use crate::protocol::{AssumedPrice, EventKind, ModelFacts};
use std::collections::BTreeMap;

/// Assumed prices from three sources: the session itself (per model), the parent session (for one model), and the
/// settings (for any model).
#[derive(Debug)]
pub(super) struct AssumedPrices {
    general: Option<PriceAssumption>,
    /// Name of a model, and the price that the parent session assumes for it.
    of_parent: Option<(String, AssumedPrice)>,
    /// Prices that the user assumed during this session, by model name.
    of_session: BTreeMap<String, AssumedPrice>,
    /// Prices recorded in the journal, by model name.
    recorded: BTreeMap<String, AssumedPrice>,
}

impl AssumedPrices {
    pub(crate) fn new(options: &AgentOptions) -> Self {
        Self {
            general: options.prices.general,
            of_parent: options.prices.of_parent.clone(),
            of_session: BTreeMap::new(),
            recorded: BTreeMap::new(),
        }
    }

    /// Adds the assumed price to model facts that lack a price.
    pub(crate) fn apply_to(&self, facts: ModelFacts) -> ModelFacts {
        if facts.price.is_some() && !facts.price_is_assumed {
            return facts;
        }
        let price = self.find(&facts.name).map(AssumedPrice::price);
        ModelFacts { price, price_is_assumed: price.is_some(), ..facts }
    }

    /// Returns the price assumed for a model, if any.
    pub(crate) fn find(&self, model: &str) -> Option<AssumedPrice> {
        let general = |for_this_run| self.general.filter(|one| one.for_this_run == for_this_run).map(|one| one.price);
        let of_parent = self.of_parent.as_ref().filter(|(name, _)| name == model).map(|(_, price)| *price);
        of_parent.or_else(|| general(true)).or_else(|| self.of_session.get(model).copied()).or_else(|| general(false))
    }

    /// Applies the assumptions to the model in use.
    pub(crate) fn apply(&self, cx: &mut TurnContext) {
        cx.options.model = self.apply_to(cx.options.model.clone());
    }

    /// Assumes a price for the model in use. Returns an error with the reason if the price is rejected.
    pub(crate) fn assume(&mut self, price: AssumedPrice, cx: &mut TurnContext) -> Result<(), String> {
        let facts = &cx.options.model;
        if facts.name.is_empty() {
            return Err("no price was assumed: no model is in use".to_owned());
        }
        if facts.price.is_some() && !facts.price_is_assumed {
            return Err(format!("no price was assumed: the price of {} is known", facts.name));
        }
        if !price.is_valid() {
            return Err("no price was assumed: expected US dollars per million tokens".to_owned());
        }
        self.of_session.insert(facts.name.clone(), price);
        // The user's latest choice also overrides a command-line option.
        self.of_parent = None;
        self.general = self.general.map(|general| PriceAssumption { for_this_run: false, ..general });
        self.apply(cx);
        let facts = cx.options.model.clone();
        let message = super::model::describe_model(&facts);
        self.recorded.insert(facts.name.clone(), price);
        cx.record_setting(Record::PriceAssumed { model: facts.name.clone(), price });
        cx.out.event(EventKind::ModelChanged { facts, effort: cx.options.effort, message });
        Ok(())
    }

    /// Records the assumed price that applies to a request to this model, so later runs of the session use the same
    /// price.
    pub(crate) fn record(&mut self, facts: &ModelFacts, cx: &mut TurnContext) {
        let price = self.find(&facts.name).filter(|_| facts.price_is_assumed);
        let Some(price) = price.filter(|price| self.recorded.get(&facts.name) != Some(price)) else { return };
        let model = facts.name.clone();
        self.recorded.insert(model.clone(), price);
        cx.out.record(Record::PriceAssumed { model, price });
        cx.out.commit(Durability::Process);
    }

    /// Restores an assumed price from the journal.
    pub(crate) fn restore(&mut self, model: &str, price: AssumedPrice, cx: &mut TurnContext) {
        self.of_session.insert(model.to_owned(), price);
        self.recorded.insert(model.to_owned(), price);
        self.apply(cx);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_price_of_the_session_above_applies_only_to_its_model() {
        let price = |text: &str| AssumedPrice::parse(text).unwrap();
        let general = Some(PriceAssumption { price: price("3,15"), for_this_run: true });
        let of_parent = Some(("maker/large".to_owned(), price("1,2")));
        let prices = AssumedPrices { general, of_parent, of_session: BTreeMap::new(), recorded: BTreeMap::new() };
        assert_eq!(prices.find("maker/large"), Some(price("1,2")));
        assert_eq!(prices.find("maker/small"), Some(price("3,15")), "the settings apply to the others");
        let alone = AssumedPrices { general: None, ..prices };
        assert_eq!(alone.find("maker/small"), None, "its price stays unknown");
    }
}
