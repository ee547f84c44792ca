//! Catalogue of well-known models with their limits and prices, to which the user can add entries.

mod changes;
mod document;
mod entry;
mod family;
mod models_dev;
mod name;
mod update;

pub(crate) use family::newest_of_family;
pub(crate) use name::is_same_model;
pub(crate) use update::{CatalogueUpdate, UpdateError};

use crate::protocol::{ModelFacts, Price, PriceElsewhere};
use entry::{Cards, CatalogueEntry};
use jiff::civil::Date;
use std::collections::BTreeMap;
use std::sync::{Arc, OnceLock};

const MODELS: &str = include_str!("../../assets/models.toml");
/// Context window in tokens that is assumed for an unknown model.
const UNKNOWN_WINDOW: u64 = 200_000;
/// Provider name in entries for open models, which any provider may offer. The rest of the entry's name is a prefix of
/// model names.
const OPEN: &str = "any";
/// Name prefix of local models, which are free unless a list gives them a price.
const LOCAL: &str = "local/";
const NOTHING: Price = Price { input: 0.0, output: 0.0, cache_read: 0.0, cache_write: 0.0 };

/// Known models. The built-in list is parsed on first use. A downloaded list overrides it, and the user's own list
/// overrides both. Cheap to clone.
#[derive(Debug, Clone, Default)]
pub(crate) struct Catalogue {
    updated: Option<Arc<Cards>>,
    own: Option<Arc<Cards>>,
    /// Catalogue entries assigned to deployments, by the full name of the deployment.
    deployments: Arc<BTreeMap<String, String>>,
}

/// Where a catalogue entry comes from.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Provenance {
    pub documentation: Option<String>,
    pub verified: Option<Date>,
}

impl Catalogue {
    /// Adds the user's own list. If it is invalid, returns the errors with their line numbers.
    pub(crate) fn with_user_list(self, text: &str) -> Result<Self, Vec<(usize, String)>> {
        Ok(Self { own: Some(Arc::new(entry::read(text)?)), ..self })
    }

    /// Sets the catalogue entries that are assigned to deployments.
    pub(crate) fn with_deployments(self, deployments: BTreeMap<String, String>) -> Self {
        Self { deployments: Arc::new(deployments), ..self }
    }

    /// Returns the name under which a model is listed. It differs from the model's own name only for deployments.
    fn listed_name<'a>(&'a self, full_name: &'a str) -> &'a str {
        self.deployments.get(full_name).map_or(full_name, String::as_str)
    }

    /// Adds a downloaded list, which is ignored if the built-in list is newer. If it is invalid, returns the errors
    /// with their line numbers.
    pub(crate) fn with_updated(self, text: &str) -> Result<Self, Vec<(usize, String)>> {
        let cards = entry::read(text)?;
        let updated = (cards.date >= built_in().date).then(|| Arc::new(cards));
        Ok(Self { updated, ..self })
    }

    /// Returns the date of the list in use and, if it was downloaded, its URL.
    pub(crate) fn state(&self) -> (Option<Date>, Option<&str>) {
        match &self.updated {
            Some(updated) => (updated.date, updated.origin.as_deref()),
            None => (built_in().date, None),
        }
    }

    /// Returns where a model's entry comes from. If a downloaded entry adds nothing to the built-in entry, this is the
    /// source of the built-in entry.
    pub(crate) fn provenance(&self, full_name: &str) -> Provenance {
        let listed = built_in().find_exact(full_name);
        let downloaded = self.updated.as_ref().and_then(|updated| updated.find_exact(full_name));
        let same = |card: &&CatalogueEntry| listed.is_some_and(|listed| card.repeats(listed));
        let card = downloaded.filter(|card| !same(card)).or(listed).or(downloaded);
        card.map(|card| Provenance { documentation: card.source.clone(), verified: card.verified }).unwrap_or_default()
    }

    /// Returns what is known about the model `provider/name`. An unlisted model has the capabilities of its family, the
    /// assumed context window, and no price.
    pub(crate) fn facts(&self, full_name: &str) -> ModelFacts {
        let mut facts = built_in().facts(self.listed_name(full_name), unknown_model(full_name));
        if let Some(updated) = &self.updated {
            facts = updated.facts(self.listed_name(full_name), facts);
        }
        if let Some(own) = &self.own {
            facts = own.facts(full_name, facts);
        }
        facts
    }

    /// Returns whether a list contains exactly this model, in which case its server need not be queried.
    pub(crate) fn lists(&self, full_name: &str) -> bool {
        let own = self.own.as_ref().and_then(|own| own.find_exact(full_name)).is_some_and(|card| card.context_window.is_some());
        let updated = self.updated.as_ref().is_some_and(|updated| updated.find_exact(self.listed_name(full_name)).is_some());
        own || updated || built_in().find_exact(self.listed_name(full_name)).is_some()
    }

    /// Overrides facts about a model with those in the user's own entry, if there is one.
    pub(crate) fn apply_user_entry(&self, facts: ModelFacts) -> ModelFacts {
        match self.own.as_ref().and_then(|own| own.find_exact(&facts.name)) {
            Some(card) => card.apply_to(facts),
            None => facts,
        }
    }

    /// Returns all listed models of a provider, starting with those in the user's own list.
    pub(crate) fn models_of_provider(&self, provider: &str) -> Vec<ModelFacts> {
        let mut names: Vec<String> = Vec::new();
        let added = self.own.iter().chain(&self.updated).flat_map(|cards| &cards.models);
        for card in added.chain(&built_in().models) {
            let name = card.name.split_once('/').filter(|(seller, _)| *seller == name::seller(provider)).map(|(_, name)| name);
            let name = name.map(|name| format!("{provider}/{name}"));
            names.extend(name.filter(|name| !names.contains(name)));
        }
        names.iter().map(|name| self.facts(name)).collect()
    }

    /// Returns the full name of the listed model whose name without a provider is the most similar to this one. Of equally
    /// similar models, the first one in the lists is returned.
    pub(crate) fn similar_name(&self, bare_name: &str) -> Option<String> {
        similar_name(self.full_names(), bare_name).map(str::to_owned)
    }

    /// Returns each provider's newest listed model of a family, such as `sonnet`.
    pub(crate) fn newest_of_family(&self, family: &str) -> Vec<String> {
        newest_of_family(self.full_names(), family).into_iter().map(str::to_owned).collect()
    }

    /// Returns whether the full name of a listed model contains this text.
    pub(crate) fn has_name_with(&self, part: &str) -> bool {
        let part = part.to_ascii_lowercase();
        self.full_names().any(|name| name.to_ascii_lowercase().contains(&part))
    }

    /// Returns the full names of the listed models that one provider sells, the user's first.
    fn full_names(&self) -> impl Iterator<Item = &str> {
        let cards = self.own.iter().chain(&self.updated).flat_map(|cards| &cards.models).chain(&built_in().models);
        let names = cards.map(|card| card.name.as_str());
        names.filter(|name| name.split_once('/').is_some_and(|(provider, _)| provider != OPEN))
    }

    /// Returns the listed model of the same provider whose name is most similar, or `None` if no name is similar
    /// enough.
    pub(crate) fn nearest(&self, full_name: &str) -> Option<String> {
        let (provider, asked) = super::split_name(full_name)?;
        let asked = asked.to_ascii_lowercase();
        let distance = |name: &str| strsim::damerau_levenshtein(&name.to_ascii_lowercase(), &asked);
        let names =
            self.models_of_provider(provider).into_iter().filter_map(|facts| Some(facts.name.split_once('/')?.1.to_owned()));
        let near = names.filter(|name| distance(name) > 0 && distance(name) <= 1 + name.len() / 5);
        near.min_by_key(|name| distance(name)).map(|name| format!("{provider}/{name}"))
    }
}

/// Returns the full name, PROVIDER/NAME, whose NAME is the most similar to this one.
pub(crate) fn similar_name<'a>(names: impl Iterator<Item = &'a str>, bare_name: &str) -> Option<&'a str> {
    let asked = bare_name.to_ascii_lowercase();
    let distance =
        |name: &str| name.split_once('/').map(|(_, name)| strsim::damerau_levenshtein(&name.to_ascii_lowercase(), &asked));
    let near = names.filter_map(|name| Some((distance(name)?, name)));
    near.filter(|(distance, _)| *distance <= 1 + asked.len() / 5).min_by_key(|(distance, _)| *distance).map(|(_, name)| name)
}

impl Cards {
    fn find_exact(&self, full_name: &str) -> Option<&CatalogueEntry> {
        self.models.iter().find(|card| name::is_same_model(&card.name, full_name))
    }

    /// Overrides facts about a model with those in this list.
    fn facts(&self, full_name: &str, before: ModelFacts) -> ModelFacts {
        let lower = full_name.to_ascii_lowercase();
        let of = |families: &[String]| families.iter().any(|family| lower.contains(family.as_str()));
        let by_family = ModelFacts {
            images: before.images || of(&self.image_families),
            reasoning: before.reasoning || of(&self.reasoning_families),
            ..before
        };
        if let Some(card) = self.find_exact(full_name) {
            return card.apply_to(by_family);
        }
        match self.find_at_maker(full_name) {
            Some(card) => {
                let facts = CatalogueEntry { price: None, ..card.clone() }.apply_to(by_family);
                let there = card.price.filter(|_| facts.price.is_none());
                let there = there.map(|price| PriceElsewhere { model: card.name.clone(), price });
                ModelFacts { price_elsewhere: there.or(facts.price_elsewhere), ..facts }
            }
            None => by_family,
        }
    }

    /// Returns the entry for the same model as offered by its maker, or as an open model. It has the same capabilities
    /// but may have a different price.
    fn find_at_maker(&self, full_name: &str) -> Option<&CatalogueEntry> {
        let asked = name::bare_name(full_name);
        let made = self.models.iter().find(|card| {
            let (seller, listed) = card.name.split_once('/').unwrap_or_default();
            seller != OPEN && name::is_bare(listed, &asked)
        });
        made.or_else(|| {
            let open = self.models.iter().filter_map(|card| {
                let listed = card.name.strip_prefix(OPEN)?.strip_prefix('/')?;
                name::is_variant_of(listed, &asked).then_some((listed.len(), card))
            });
            open.max_by_key(|(length, _)| *length).map(|(_, card)| card)
        })
    }
}

impl CatalogueEntry {
    /// Returns whether this entry adds nothing to `other`, an entry for the same model.
    fn repeats(&self, other: &Self) -> bool {
        let base = ModelFacts { name: other.name.clone(), ..built_in().facts(&other.name, unknown_model(&other.name)) };
        self.apply_to(base.clone()) == base
    }

    fn apply_to(&self, facts: ModelFacts) -> ModelFacts {
        let efforts = self.efforts.clone();
        // `reasoning` only determines whether the model has efforts, not which ones.
        let reasoning = efforts.as_ref().map(|efforts| !efforts.is_empty()).or(self.reasoning).unwrap_or(facts.reasoning);
        ModelFacts {
            name: facts.name,
            context_window: self.context_window.unwrap_or(facts.context_window),
            max_output_tokens: self.max_output_tokens.or(facts.max_output_tokens),
            price: self.price.or(facts.price),
            price_is_assumed: false,
            price_elsewhere: facts.price_elsewhere.filter(|_| self.price.is_none()),
            images: self.images.unwrap_or(facts.images),
            tools: self.tools.or(facts.tools),
            reasoning,
            efforts: if reasoning { efforts.unwrap_or(facts.efforts) } else { Vec::new() },
        }
    }
}

/// Returns the facts that are assumed about an unknown model.
fn unknown_model(full_name: &str) -> ModelFacts {
    ModelFacts::new(full_name, UNKNOWN_WINDOW, full_name.starts_with(LOCAL).then_some(NOTHING))
}

fn built_in() -> &'static Cards {
    static CARDS: OnceLock<Cards> = OnceLock::new();
    // A test parses the built-in list, so parsing cannot fail.
    CARDS.get_or_init(|| entry::read(MODELS).unwrap_or_default())
}

#[cfg(test)]
mod tests;
