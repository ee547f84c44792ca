//! Editing of the user's `config.toml` to add the default model while preserving all other settings.

use super::ConfigError;
use toml_edit::{DocumentMut, Item, Table, value};

#[derive(Debug, PartialEq, Eq)]
pub(crate) enum EditResult {
    /// The file already sets a default model, which is this one.
    Set(String),
    /// New content of the file.
    New(String),
}

/// Adds the default model to the text, unless one is already set.
pub(crate) fn with_default_model(text: &str, model: &str) -> Result<EditResult, ConfigError> {
    let parsed: Result<DocumentMut, _> = text.parse();
    let mut document = parsed.map_err(|error| ConfigError::single(error.message().to_owned()))?;
    let table = document.entry("model").or_insert_with(|| Item::Table(Table::new()));
    let Some(table) = table.as_table_like_mut() else {
        return Err(ConfigError::single("`model` must be a table: `[model]`"));
    };
    if let Some(set) = table.get("default").or_else(|| table.get("main")) {
        return Ok(EditResult::Set(set.as_str().unwrap_or_default().to_owned()));
    }
    table.insert("default", value(model));
    Ok(EditResult::New(document.to_string()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_missing_default_model_is_added_and_nothing_else_changes() {
        let new = |text: &str| with_default_model(text, "acme/one").unwrap();
        let with = |text: &str| EditResult::New(text.to_owned());
        assert_eq!(new(""), with("[model]\ndefault = \"acme/one\"\n"));
        assert_eq!(
            new("# mine\n[ui]\nplain = true # yes\n"),
            with("# mine\n[ui]\nplain = true # yes\n\n[model]\ndefault = \"acme/one\"\n")
        );
        assert_eq!(new("[model]\neffort = \"low\"\n"), with("[model]\neffort = \"low\"\ndefault = \"acme/one\"\n"));
        assert_eq!(new("[model]\ndefault = \"acme/two\"\n"), EditResult::Set("acme/two".to_owned()));
        assert_eq!(new("[model]\nmain = \"acme/two\"\n"), EditResult::Set("acme/two".to_owned()));
        assert!(with_default_model("model = 3", "acme/one").is_err());
        assert!(with_default_model("[", "acme/one").is_err());
    }
}
