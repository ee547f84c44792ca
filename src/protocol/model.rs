//! Model information: limits, capabilities and prices.

use super::Usage;
use serde::{Deserialize, Serialize};

const MILLION: f64 = 1_000_000.0;

/// Information about a provider's model.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ModelFacts {
    /// Full name, such as `anthropic/claude-sonnet-5`.
    pub name: String,
    /// Context window in tokens, shared by a request and its response.
    pub context_window: u64,
    /// Maximum number of output tokens. Absent if unknown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_output_tokens: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub price: Option<Price>,
    /// Whether the price is one that the user assumed, because the actual price is unknown.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub price_is_assumed: bool,
    /// Price of the same model at another provider, given if this provider's price is unknown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub price_elsewhere: Option<PriceElsewhere>,
    /// Whether the model accepts images.
    #[serde(default)]
    pub images: bool,
    /// Whether the model can call tools. Absent if unknown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tools: Option<bool>,
    /// Whether the model's reasoning effort is configurable.
    #[serde(default)]
    pub reasoning: bool,
    /// Supported reasoning efforts, in ascending order. Empty if they are unknown or the model has none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub efforts: Vec<Effort>,
}

/// Price of a model at another provider.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct PriceElsewhere {
    /// Name of the model at that provider, such as `anthropic/claude-sonnet-5`.
    pub model: String,
    pub price: Price,
}

/// A tool's own use of a model.
#[derive(Debug, Clone, PartialEq)]
pub struct ModelUse {
    pub model: ModelFacts,
    pub usage: Usage,
    /// Fee in US dollars charged in addition to the token price, such as a fee per search.
    pub fee_usd: f64,
}

/// Prices in US dollars per million tokens.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Price {
    pub input: f64,
    pub output: f64,
    /// Price of cached tokens. Also accepted as `cache_read`, the name used in the catalogue.
    #[serde(alias = "cache_read")]
    pub cache_read: f64,
    #[serde(alias = "cache_write")]
    pub cache_write: f64,
}

impl Price {
    /// Returns the cost of this usage in US dollars.
    pub fn cost_usd(&self, usage: &Usage) -> f64 {
        let fresh = usage.input_tokens.saturating_sub(usage.cache_read_tokens + usage.cache_write_tokens);
        let sum = fresh as f64 * self.input
            + usage.cache_read_tokens as f64 * self.cache_read
            + usage.cache_write_tokens as f64 * self.cache_write
            + usage.output_tokens as f64 * self.output;
        sum / MILLION
    }
}

/// Price that the user assumes for a model whose price is unknown, in US dollars per million tokens.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct AssumedPrice {
    pub input: f64,
    pub output: f64,
}

impl AssumedPrice {
    /// Highest accepted price in US dollars per million tokens. A higher value is treated as a typing error.
    const MOST: f64 = 100_000.0;

    /// Returns the full price, at which cached tokens cost as much as uncached input.
    pub fn price(self) -> Price {
        Price { input: self.input, output: self.output, cache_read: self.input, cache_write: self.input }
    }

    /// Parses an input and an output price, separated by a comma or a space: `3,15`, `$0.50 $1.50`.
    pub fn parse(text: &str) -> Option<Self> {
        let mut amounts = text.split([',', ' ']).filter(|word| !word.is_empty()).map(|word| {
            let digits = word.strip_prefix('$').unwrap_or(word);
            let plain = digits.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.');
            digits.parse::<f64>().ok().filter(|amount| plain && *amount <= Self::MOST)
        });
        match (amounts.next(), amounts.next(), amounts.next()) {
            (Some(Some(input)), Some(Some(output)), None) => Some(Self { input, output }),
            _ => None,
        }
    }

    /// Returns whether both amounts are in the accepted range.
    pub fn is_valid(self) -> bool {
        [self.input, self.output].iter().all(|amount| (0.0..=Self::MOST).contains(amount))
    }
}

impl ModelFacts {
    /// Creates a description of a model about which nothing else is known.
    pub fn new(name: &str, context_window: u64, price: Option<Price>) -> Self {
        Self {
            name: name.to_owned(),
            context_window,
            max_output_tokens: None,
            price,
            price_is_assumed: false,
            price_elsewhere: None,
            images: false,
            tools: None,
            reasoning: false,
            efforts: Vec::new(),
        }
    }

    /// Creates a model description for tests.
    #[cfg(test)]
    pub fn for_test(name: &str, context_window: u64, price: Option<Price>) -> Self {
        Self::new(name, context_window, price)
    }

    /// Returns the cost of this usage in US dollars, or `None` if the price is unknown.
    pub fn cost_usd(&self, usage: &Usage) -> Option<f64> {
        self.price.map(|price| price.cost_usd(usage))
    }

    /// Returns the efforts that can be chosen. If the model's efforts are unknown, returns those that most models
    /// support.
    pub fn supported_efforts(&self) -> &[Effort] {
        match (self.reasoning, self.efforts.as_slice()) {
            (false, _) => &[],
            (true, []) => &Effort::USUAL,
            (true, efforts) => efforts,
        }
    }

    /// Returns the supported effort nearest to `wanted`, or `None` if the effort is not configurable. Reasoning is
    /// turned off only if `wanted` is `Off`. If two efforts are equally near, the lower one is returned because it
    /// costs less.
    pub fn nearest_effort(&self, wanted: Effort) -> Option<Effort> {
        let supported = self.supported_efforts().iter().copied();
        let others = supported.clone().filter(|effort| *effort != Effort::Off || wanted == Effort::Off);
        let distance = |effort: &Effort| (*effort as u8).abs_diff(wanted as u8);
        others.min_by_key(distance).or_else(|| supported.min_by_key(distance))
    }
}

/// Reasoning effort of a model.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Effort {
    /// No reasoning, if the model supports turning it off. Also accepted as `none`, the name that providers use.
    #[serde(alias = "none")]
    Off,
    Minimal,
    Low,
    Medium,
    High,
    Xhigh,
    Max,
}

impl Effort {
    /// All efforts, in ascending order.
    pub const ALL: [Self; 7] = [Self::Off, Self::Minimal, Self::Low, Self::Medium, Self::High, Self::Xhigh, Self::Max];
    /// Efforts assumed for a model whose configurable efforts are unknown.
    const USUAL: [Self; 4] = [Self::Off, Self::Low, Self::Medium, Self::High];

    pub fn as_str(self) -> &'static str {
        match self {
            Self::Off => "off",
            Self::Minimal => "minimal",
            Self::Low => "low",
            Self::Medium => "medium",
            Self::High => "high",
            Self::Xhigh => "xhigh",
            Self::Max => "max",
        }
    }

    /// Returns the effort with this name, or `None` if the name is unknown. `none` is an alias for `off`.
    pub fn from_name(name: &str) -> Option<Self> {
        match name {
            "none" => Some(Self::Off),
            _ => Self::ALL.into_iter().find(|effort| effort.as_str() == name),
        }
    }

    /// Returns the names of the given efforts, separated by commas.
    pub fn names(efforts: &[Self]) -> String {
        efforts.iter().map(|effort| effort.as_str()).collect::<Vec<_>>().join(", ")
    }
}

/// Entry in the list of available models.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ListedModel {
    #[serde(flatten)]
    pub facts: ModelFacts,
    /// Reason why the model cannot currently be used, such as `set ANTHROPIC_API_KEY or aye auth login anthropic`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lacks: Option<String>,
    /// The model's provider, if a missing API key is the only thing that prevents its use.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub key_of: Option<String>,
    /// Where the entry comes from: `catalogue`, `config.toml`, `listed by http://localhost:11434/v1`.
    pub source: String,
    /// URL of the provider's documentation, or of the list from which the catalogue entry was taken.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub documentation: Option<String>,
    /// Date on which the entry was checked against the provider's documentation: `2026-11-29`. Absent if it was never
    /// checked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub verified: Option<String>,
}

#[cfg(test)]
mod tests {
    use super::Effort::{High, Low, Max, Medium, Minimal, Off, Xhigh};
    use super::*;

    #[test]
    fn the_nearest_effort_is_used_and_reasoning_is_disabled_only_on_request() {
        let cases: [(&[Effort], Effort, Effort); 9] = [
            (&[Low, Medium, High], Max, High),
            (&[Low, Medium, High], Off, Low),
            (&[Off, Low, Medium, High], Minimal, Low),
            (&[Off, Low, Medium, High], Off, Off),
            (&[Minimal, Low, Medium, High], Off, Minimal),
            (&[Low, Medium, High, Max], Xhigh, High),
            (&[Low, High], Medium, Low),
            (&[Off, High], Low, High),
            (&[Off], High, Off),
        ];
        for (efforts, wanted, nearest) in cases {
            let facts = ModelFacts { reasoning: true, efforts: efforts.to_vec(), ..ModelFacts::for_test("a/b", 1, None) };
            assert_eq!(facts.nearest_effort(wanted), Some(nearest), "{efforts:?} {wanted:?}");
        }
        let unknown = ModelFacts { reasoning: true, ..ModelFacts::for_test("a/b", 1, None) };
        assert_eq!(unknown.nearest_effort(Xhigh), Some(High));
        let none = ModelFacts { efforts: vec![Low], ..ModelFacts::for_test("a/b", 1, None) };
        assert_eq!(none.nearest_effort(Low), None);
    }

    #[test]
    fn an_assumed_price_consists_of_two_amounts() {
        for text in ["3,15", "3, 15", "$3 $15", " 3.0 15.00 "] {
            assert_eq!(AssumedPrice::parse(text), Some(AssumedPrice { input: 3.0, output: 15.0 }), "{text}");
        }
        for text in ["", "3", "3,15,1", "-1,2", "a,b", "1e9,2", "inf,1", "nan nan", "200000,1", "$"] {
            assert_eq!(AssumedPrice::parse(text), None, "{text}");
        }
    }

    #[test]
    fn effort_none_means_off_and_model_facts_of_earlier_versions_are_accepted() {
        assert_eq!(Effort::from_name("none"), Some(Off));
        assert_eq!(serde_json::from_str::<Effort>("\"none\"").unwrap(), Off);
        assert_eq!(serde_json::to_string(&Off).unwrap(), "\"off\"");
        for effort in Effort::ALL {
            assert_eq!(Effort::from_name(effort.as_str()), Some(effort));
            assert_eq!(serde_json::to_string(&effort).unwrap(), format!("\"{}\"", effort.as_str()));
        }
        let before: ModelFacts =
            serde_json::from_str(r#"{"name":"a/b","contextWindow":5,"images":true,"reasoning":true}"#).unwrap();
        assert_eq!(before.supported_efforts(), [Off, Low, Medium, High]);
    }
}
