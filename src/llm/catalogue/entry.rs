//! Catalogue entries in TOML. The built-in list and the user's own list use the same format.

use crate::protocol::{Effort, Price};
use jiff::civil::Date;
use toml::Spanned;
use toml::de::{DeTable, DeValue};

/// Catalogue entry for a model. Missing fields are taken from other lists.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct CatalogueEntry {
    /// Model name, such as `anthropic/claude-sonnet-5`. It also matches the same name followed by a date.
    pub name: String,
    pub context_window: Option<u64>,
    pub max_output_tokens: Option<u64>,
    pub price: Option<Price>,
    pub images: Option<bool>,
    pub tools: Option<bool>,
    /// Whether the reasoning effort can be set. Used by lists that do not say which levels are supported.
    pub reasoning: Option<bool>,
    /// Supported reasoning efforts, in ascending order. Empty if the effort cannot be set.
    pub efforts: Option<Vec<Effort>>,
    /// URL of the documentation from which the entry was created.
    pub source: Option<String>,
    /// Date on which the entry was checked against that documentation.
    pub verified: Option<Date>,
}

#[derive(Debug, Default)]
pub(crate) struct Cards {
    /// Date of the list.
    pub date: Option<Date>,
    /// URL from which the list was downloaded.
    pub origin: Option<String>,
    /// Substrings of model names by which unlisted models that accept images are recognized.
    pub image_families: Vec<String>,
    /// Substrings of model names by which unlisted models with a configurable effort are recognized.
    pub reasoning_families: Vec<String>,
    pub models: Vec<CatalogueEntry>,
}

const TOP: &[&str] = &["date", "image_families", "models", "origin", "reasoning_families"];
const OF_MODEL: &[&str] =
    &["context_window", "efforts", "images", "max_output_tokens", "name", "price", "reasoning", "source", "tools", "verified"];
const OF_PRICE: &[&str] = &["cache_read", "cache_write", "input", "output"];
/// Maximum length of a URL in bytes.
const URL_BYTES: usize = 500;
/// Maximum price in US dollars per million tokens. A higher price is considered a mistake.
const MAX_DOLLARS: f64 = 100_000.0;

/// Parses a list. If it is invalid, returns all errors with their line numbers.
pub(crate) fn read(text: &str) -> Result<Cards, Vec<(usize, String)>> {
    let mut reader = Reader { text, problems: Vec::new() };
    let document = DeTable::parse(text).map_err(|error| {
        let line = reader.line(error.span().map_or(0, |span| span.start));
        vec![(line, format!("{}; expected TOML", error.message()))]
    })?;
    let mut cards = Cards::default();
    for (key, value) in document.get_ref() {
        match key.get_ref().as_ref() {
            "image_families" => cards.image_families = reader.families(key, value),
            "reasoning_families" => cards.reasoning_families = reader.families(key, value),
            "models" => cards.models = reader.models(value),
            "date" => cards.date = reader.date(key, value.get_ref()),
            "origin" => cards.origin = reader.url(key, value.get_ref()),
            other => reader.report_unknown(key.span().start, other, TOP),
        }
    }
    if reader.problems.is_empty() { Ok(cards) } else { Err(reader.problems) }
}

struct Reader<'a> {
    text: &'a str,
    problems: Vec<(usize, String)>,
}

type Name<'a> = Spanned<std::borrow::Cow<'a, str>>;

impl Reader<'_> {
    fn line(&self, byte: usize) -> usize {
        1 + self.text.bytes().take(byte).filter(|byte| *byte == b'\n').count()
    }

    fn report_invalid(&mut self, byte: usize, what: impl Into<String>) {
        let line = self.line(byte);
        self.problems.push((line, what.into()));
    }

    fn report_unknown(&mut self, byte: usize, given: &str, known: &[&str]) {
        let near = |name: &&&str| strsim::damerau_levenshtein(name, given);
        let nearest = known.iter().filter(|name| near(name) <= 1 + name.len() / 4).min_by_key(near);
        let hint = match nearest {
            Some(name) => format!("did you mean `{name}`?"),
            None => format!("expected {}", known.iter().map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", ")),
        };
        self.report_invalid(byte, format!("unknown key `{given}`; {hint}"));
    }

    fn report_expected(&mut self, key: &Name<'_>, what: &str) {
        self.report_invalid(key.span().start, format!("`{}`: expected {what}", key.get_ref()));
    }

    fn families(&mut self, key: &Name<'_>, value: &Spanned<DeValue<'_>>) -> Vec<String> {
        let texts = value.get_ref().as_array().and_then(|array| {
            array
                .iter()
                .map(|item| item.get_ref().as_str().filter(|text| !text.is_empty()).map(str::to_ascii_lowercase))
                .collect()
        });
        texts.unwrap_or_else(|| {
            self.report_expected(key, "a list of quoted strings");
            Vec::new()
        })
    }

    fn models(&mut self, value: &Spanned<DeValue<'_>>) -> Vec<CatalogueEntry> {
        let Some(array) = value.get_ref().as_array() else {
            self.report_invalid(value.span().start, "`models`: expected tables `[[models]]`");
            return Vec::new();
        };
        let mut cards = Vec::with_capacity(array.len());
        for item in array {
            match item.get_ref().as_table() {
                Some(table) => cards.push(self.model(item.span().start, table)),
                None => self.report_invalid(item.span().start, "`models`: expected tables `[[models]]`"),
            }
        }
        cards
    }

    fn model(&mut self, start: usize, table: &DeTable<'_>) -> CatalogueEntry {
        let mut card = CatalogueEntry::default();
        for (key, value) in table {
            let at = key;
            let value = value.get_ref();
            match key.get_ref().as_ref() {
                "name" => match value.as_str().filter(|name| crate::llm::split_name(name).is_some()) {
                    Some(name) => name.clone_into(&mut card.name),
                    None => self.report_expected(at, "a string like \"anthropic/claude-sonnet-5\""),
                },
                "context_window" => card.context_window = self.tokens(at, value),
                "max_output_tokens" => card.max_output_tokens = self.tokens(at, value),
                "images" => card.images = self.flag(at, value),
                "reasoning" => card.reasoning = self.flag(at, value),
                "efforts" => card.efforts = self.efforts(at, value),
                "tools" => card.tools = self.flag(at, value),
                "source" => card.source = self.url(at, value),
                "verified" => card.verified = self.date(at, value),
                "price" => card.price = self.price(at, value),
                other => self.report_unknown(key.span().start, other, OF_MODEL),
            }
        }
        if card.name.is_empty() && !table.contains_key("name") {
            self.report_invalid(start, "a model has no `name`; expected a name like \"anthropic/claude-sonnet-5\"");
        }
        card
    }

    fn tokens(&mut self, key: &Name<'_>, value: &DeValue<'_>) -> Option<u64> {
        let number = value.as_integer().and_then(|number| u64::from_str_radix(number.as_str(), number.radix()).ok());
        let number = number.filter(|number| (1..=1_000_000_000).contains(number));
        if number.is_none() {
            self.report_expected(key, "a number of tokens");
        }
        number
    }

    fn flag(&mut self, key: &Name<'_>, value: &DeValue<'_>) -> Option<bool> {
        if value.as_bool().is_none() {
            self.report_expected(key, "true or false");
        }
        value.as_bool()
    }

    fn date(&mut self, key: &Name<'_>, value: &DeValue<'_>) -> Option<Date> {
        let date = value.as_str().and_then(|text| text.parse().ok());
        if date.is_none() {
            self.report_expected(key, "a day like \"2026-11-29\"");
        }
        date
    }

    fn url(&mut self, key: &Name<'_>, value: &DeValue<'_>) -> Option<String> {
        let is_url = |text: &&str| {
            let shown = text.len() <= URL_BYTES && text.bytes().all(|byte| byte.is_ascii_graphic());
            shown && url::Url::parse(text).is_ok_and(|url| matches!(url.scheme(), "https" | "http" | "file"))
        };
        let url = value.as_str().filter(is_url).map(str::to_owned);
        if url.is_none() {
            self.report_expected(key, "a URL");
        }
        url
    }

    fn efforts(&mut self, key: &Name<'_>, value: &DeValue<'_>) -> Option<Vec<Effort>> {
        let named = |item: &Spanned<DeValue<'_>>| item.get_ref().as_str().and_then(Effort::from_name);
        let efforts: Option<Vec<Effort>> = value.as_array().and_then(|array| array.iter().map(named).collect());
        let Some(mut efforts) = efforts else {
            self.report_expected(key, &format!("a list of {}", Effort::names(&Effort::ALL)));
            return None;
        };
        efforts.sort_unstable();
        efforts.dedup();
        Some(efforts)
    }

    fn price(&mut self, key: &Name<'_>, value: &DeValue<'_>) -> Option<Price> {
        const SHAPE: &str =
            "US dollars per million tokens, like { input = 3.0, output = 15.0, cache_read = 0.3, cache_write = 3.75 }";
        let Some(table) = value.as_table() else {
            self.report_expected(key, SHAPE);
            return None;
        };
        let mut found = [None; 4];
        for (name, value) in table {
            match OF_PRICE.iter().position(|known| known == name.get_ref()) {
                Some(place) => match dollars(value.get_ref()) {
                    Some(number) => found[place] = Some(number),
                    None => self.report_expected(name, "US dollars per million tokens"),
                },
                None => self.report_unknown(name.span().start, name.get_ref(), OF_PRICE),
            }
        }
        let [cache_read, cache_write, input, output] = found;
        let (Some(input), Some(output)) = (input, output) else {
            self.report_expected(key, SHAPE);
            return None;
        };
        // If a price for cached tokens is missing, they cost as much as other input.
        Some(Price { input, output, cache_read: cache_read.unwrap_or(input), cache_write: cache_write.unwrap_or(input) })
    }
}

fn dollars(value: &DeValue<'_>) -> Option<f64> {
    let text = value.as_float().map(|number| number.as_str().to_owned());
    let text = text.or_else(|| value.as_integer().map(|number| number.as_str().to_owned()))?;
    text.replace('_', "").parse::<f64>().ok().filter(|number| number.is_finite() && (0.0..=MAX_DOLLARS).contains(number))
}
