//! Catalogue updates from a file or server. A list is completely validated before it replaces the current one.

use super::entry::{self, Cards};
use super::{Catalogue, changes, document, models_dev};
use jiff::civil::Date;

/// Maximum size in bytes of a list to be read.
const MAX_BYTES: usize = 16 << 20;
/// Maximum size in bytes of a list to be stored.
const MAX_STORED_BYTES: usize = 1 << 20;
const MAX_MODELS: usize = 5_000;
/// Maximum number of errors to report.
const MISTAKES: usize = 5;

/// Reason why a list cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum UpdateError {
    #[error("{0}")]
    Malformed(String),
    #[error("the list is dated {date}, which is older than the catalogue in use ({in_use})")]
    Older { date: Date, in_use: Date },
    #[error("the list is dated {date}, but today is {today}")]
    InFuture { date: Date, today: Date },
}

/// Validated list that can replace the downloaded one.
#[derive(Debug)]
pub(crate) struct CatalogueUpdate {
    cards: Cards,
    /// Description of each change, preceded by the name of the model.
    pub changes: Vec<(String, String)>,
}

impl CatalogueUpdate {
    /// Maximum number of bytes to read from a list.
    pub(crate) const MAX_BYTES: usize = MAX_BYTES;

    /// Parses a list in catalogue format (TOML) or in models.dev format (JSON). `origin` is the URL of the list.
    /// `today` is the current date, which is also used for lists without a date.
    pub(crate) fn read(bytes: &[u8], origin: &str, in_use: &Catalogue, today: Date) -> Result<Self, UpdateError> {
        let mut cards = parse(bytes, today)?;
        let date = cards.date.unwrap_or(today);
        // In another time zone, it may already be the next day. A later date would block all later updates.
        if date > today.tomorrow().unwrap_or(today) {
            return Err(UpdateError::InFuture { date, today });
        }
        // A date in the future comes from a wrong clock and is ignored.
        if let (Some(in_use), _) = in_use.state()
            && date < in_use
            && in_use <= today.tomorrow().unwrap_or(today)
        {
            return Err(UpdateError::Older { date, in_use });
        }
        (cards.date, cards.origin) = (Some(date), Some(origin.to_owned()));
        // The user's list overrides all others, so it is excluded from the comparison.
        let without_own = Catalogue { own: None, ..in_use.clone() };
        let changes = changes::changes(&cards.models, &without_own).into_iter();
        let changes = changes.map(|(name, words)| (name.to_owned(), words)).collect();
        Ok(Self { cards, changes })
    }

    pub(crate) fn date(&self) -> Option<Date> {
        self.cards.date
    }

    /// Returns the content of the file in which the list is stored.
    pub(crate) fn document(&self) -> Result<String, UpdateError> {
        let text = document::write(&self.cards);
        if text.len() > MAX_STORED_BYTES {
            return Err(malformed_error(format!("the list is larger than {} MB", MAX_STORED_BYTES >> 20)));
        }
        // aye must be able to read the stored list at the next start.
        entry::read(&text).map_err(|mistakes| malformed_error(join_mistakes(mistakes)))?;
        Ok(text)
    }
}

fn parse(bytes: &[u8], today: Date) -> Result<Cards, UpdateError> {
    if bytes.len() > MAX_BYTES {
        return Err(malformed_error(format!("the list is larger than {} MB", MAX_BYTES >> 20)));
    }
    let text = std::str::from_utf8(bytes).map_err(|_| malformed_error("the list is not UTF-8 text"))?;
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    if text.trim_start().starts_with('{') {
        return models_dev::read(text, today).map_err(malformed_error);
    }
    if text.trim_start().starts_with('<') {
        return Err(malformed_error("the response is a web page, not a list of models"));
    }
    let cards = entry::read(text).map_err(|mistakes| malformed_error(join_mistakes(mistakes)))?;
    match cards {
        Cards { date: None, .. } => Err(malformed_error("the list has no `date`; expected a date like \"2026-11-29\"")),
        Cards { models, .. } if models.is_empty() => Err(malformed_error("the list has no `[[models]]`")),
        Cards { models, .. } if models.len() > MAX_MODELS => {
            Err(malformed_error(format!("the list has more than {MAX_MODELS} models")))
        }
        cards => Ok(cards),
    }
}

fn malformed_error(what: impl Into<String>) -> UpdateError {
    UpdateError::Malformed(what.into())
}

fn join_mistakes(mistakes: Vec<(usize, String)>) -> String {
    let count = mistakes.len();
    let mut lines: Vec<String> = mistakes.into_iter().take(MISTAKES).map(|(line, what)| format!("line {line}: {what}")).collect();
    if count > MISTAKES {
        lines.push(format!("and {} more", count - MISTAKES));
    }
    lines.join("; ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    const TODAY: Date = Date::constant(2026, 12, 1);

    fn read(text: &str) -> Result<CatalogueUpdate, UpdateError> {
        CatalogueUpdate::read(text.as_bytes(), "https://lists.example/x.toml", &Catalogue::default(), TODAY)
    }

    fn list(date: &str, rest: &str) -> String {
        format!("date = \"{date}\"\n{rest}")
    }

    const NEW: &str = "[[models]]\nname = \"openai/gpt-99\"\ncontext_window = 2_000_000\nprice = { input = 1, output = 2.5 }\n\
        [[models]]\nname = \"openai/gpt-5\"\nprice = { input = 1.25, output = 9, cache_read = 0.125, cache_write = 1.25 }\n\
        [[models]]\nname = \"openai/gpt-5-mini\"\ncontext_window = 400_000\n";

    #[test]
    fn updates_describe_their_changes_and_are_stored_unmodified() {
        let update = read(&list("2026-12-01", NEW)).unwrap();
        let changes: Vec<String> = update.changes.iter().map(|(name, words)| format!("{name}: {words}")).collect();
        assert_eq!(
            changes,
            ["openai/gpt-99: new: 2M window, $1 in, $2.5 out per million tokens", "openai/gpt-5: output price 10 → 9",]
        );
        let catalogue = Catalogue::default().with_updated(&update.document().unwrap()).unwrap();
        assert_eq!(catalogue.facts("openai/gpt-99").context_window, 2_000_000);
        assert!((catalogue.facts("openai/gpt-5").price.unwrap().output - 9.0).abs() < f64::EPSILON);
        assert_eq!(catalogue.facts("openai/gpt-5").context_window, 400_000, "the built-in list fills the gaps");
        assert!(catalogue.lists("openai/gpt-99"));
        assert_eq!(catalogue.state(), (Some(Date::constant(2026, 12, 1)), Some("https://lists.example/x.toml")));
        let own = catalogue.with_user_list("[[models]]\nname = \"openai/gpt-5\"\nprice = { input = 7, output = 8 }\n").unwrap();
        let output = own.facts("openai/gpt-5").price.unwrap().output;
        assert!((output - 8.0).abs() < f64::EPSILON, "the user's own list overrides it: {output}");
        let again = CatalogueUpdate::read(list("2026-12-01", NEW).as_bytes(), "https://x.example", &own, TODAY).unwrap();
        assert!(again.changes.is_empty(), "{:?}", again.changes);
    }

    #[test]
    fn lists_older_than_the_current_one_or_dated_in_the_future_are_rejected() {
        assert_eq!(
            read(&list("2027-06-01", NEW)).unwrap_err().to_string(),
            "the list is dated 2027-06-01, but today is 2026-12-01"
        );
        let older = read(&list("2020-01-01", NEW)).unwrap_err();
        assert!(matches!(older, UpdateError::Older { .. }), "{older}");
        assert!(read(&list("2026-12-02", NEW)).is_ok(), "another time zone");
        // A downloaded list with a date from a wrong clock does not block updates.
        let ahead = Catalogue::default().with_updated(&list("2099-01-01", NEW)).unwrap();
        assert!(CatalogueUpdate::read(list("2026-12-01", NEW).as_bytes(), "https://x.example", &ahead, TODAY).is_ok());
        // A newer release has a newer list than an earlier download.
        let before = Catalogue::default().with_updated(&list("2020-01-01", NEW)).unwrap();
        assert!(!before.lists("openai/gpt-99"));
    }

    #[test]
    fn malformed_lists_are_rejected_as_a_whole() {
        for (text, why) in [
            ("", "no `date`"),
            ("date = \"2026-12-01\"\n", "no `[[models]]`"),
            ("date = \"soon\"\n", "line 1: `date`: expected a day"),
            ("<html>", "a web page"),
            ("{", "not the JSON of a model list"),
            ("{}", "no models from anthropic"),
            (r#"{"openai": {"id": "openai"}}"#, "`openai` has no `models`"),
            ("date = \"2026-12-01\"\n[[models]]\nname = \"a/b\"\nprice = { input = -1, output = 2 }\n", "line 4: `input`"),
            ("date = \"2026-12-01\"\n[[models]]\nname = \"a/b\"\nsource = \"javascript:x\"\n", "line 4: `source`"),
        ] {
            let error = read(text).unwrap_err().to_string();
            assert!(error.contains(why), "{text:?}: {error}");
        }
        let update = CatalogueUpdate::read(&[0xff, 0xfe], "https://x.example", &Catalogue::default(), TODAY);
        assert!(update.unwrap_err().to_string().contains("UTF-8"));
    }

    #[test]
    fn the_models_dev_list_is_converted() {
        let model = json!({"id": "gpt-99", "tool_call": true, "reasoning": true,
            "reasoning_options": [{"type": "effort", "values": ["none", "high", "weird"]}],
            "modalities": {"input": ["text", "image"], "output": ["text"]},
            "cost": {"input": 2, "output": 8.5, "cache_read": 0.2}, "limit": {"context": 500_000, "output": 64_000}});
        let odd = json!({"tool_call": true, "cost": {"input": -3, "output": 1}, "limit": {"context": 0, "output": 0}});
        let text = json!({"openai": {"models": {"gpt-99": model, "painter": {"modalities": {"output": ["image"]}},
            "embedder": {"tool_call": false}, "odd": odd, "bad name": {}}}, "google": {"models": {"gemini-99": odd}},
            "unheard-of": {"models": {"x": model}}});
        let update = read(&text.to_string()).unwrap();
        let names: Vec<&str> = update.cards.models.iter().map(|card| card.name.as_str()).collect();
        assert_eq!(names, ["openai/gpt-99", "openai/odd", "gemini/gemini-99"]);
        assert_eq!(update.date(), Some(TODAY));
        let catalogue = Catalogue::default().with_updated(&update.document().unwrap()).unwrap();
        let facts = catalogue.facts("openai/gpt-99");
        assert_eq!((facts.context_window, facts.max_output_tokens, facts.images), (500_000, Some(64_000), true));
        assert_eq!(facts.price, Some(crate::protocol::Price { input: 2.0, output: 8.5, cache_read: 0.2, cache_write: 2.0 }));
        assert_eq!(facts.supported_efforts(), [crate::protocol::Effort::Off, crate::protocol::Effort::High]);
        assert_eq!(catalogue.facts("openai/odd").price, None);
        let provenance = catalogue.provenance("openai/gpt-99");
        assert_eq!((provenance.documentation.as_deref(), provenance.verified), (Some("https://models.dev"), None));
    }
}
