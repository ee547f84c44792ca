//! Editing of the user's `config.toml` to set values while preserving all other settings.

use super::ConfigError;
use toml_edit::{Array, DocumentMut, Item, Table, TableLike, Value};

/// New value for a key.
#[derive(Debug, Clone, Copy)]
pub(crate) enum NewValue<'a> {
    Text(&'a str),
    /// List that consists of a single string.
    OneText(&'a str),
    Flag(bool),
}

impl NewValue<'_> {
    fn value(self) -> Value {
        match self {
            Self::Text(text) => Value::from(text),
            Self::OneText(text) => Value::Array(Array::from_iter([text])),
            Self::Flag(flag) => Value::from(flag),
        }
    }
}

/// Sets values in the text. Comments that follow replaced values are preserved.
pub(crate) fn with_values(text: &str, values: &[(&[&str], NewValue<'_>)]) -> Result<String, ConfigError> {
    let parsed: Result<DocumentMut, _> = text.parse();
    let mut document = parsed.map_err(|error| ConfigError::single(error.message().to_owned()))?;
    for (path, value) in values {
        let Some((key, tables)) = path.split_last() else { continue };
        let mut table: &mut dyn TableLike = document.as_table_mut();
        for name in tables {
            let new = || {
                let mut table = Table::new();
                // A table that contains only other tables needs no header.
                table.set_implicit(true);
                Item::Table(table)
            };
            let next = table.entry(name).or_insert_with(new);
            table =
                next.as_table_like_mut().ok_or_else(|| ConfigError::single(format!("`{name}` must be a table: `[{name}]`")))?;
        }
        let mut value = value.value();
        // The main model has two names, of which only one may be set.
        let key = if tables == ["model"] && *key == "default" && table.get("main").is_some() { &"main" } else { key };
        if let Some(old) = table.get(key).and_then(Item::as_value) {
            *value.decor_mut() = old.decor().clone();
        }
        table.insert(key, Item::Value(value));
    }
    Ok(document.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_set_in_their_tables_and_nothing_else_changes() {
        let default: &[&str] = &["model", "default"];
        let with = |text: &str, values: &[(&[&str], NewValue<'_>)]| with_values(text, values).unwrap();
        let one = [(default, NewValue::Text("acme/one"))];
        for (before, after) in [
            ("", "[model]\ndefault = \"acme/one\"\n"),
            ("# mine\n[ui]\nplain = true # yes\n", "# mine\n[ui]\nplain = true # yes\n\n[model]\ndefault = \"acme/one\"\n"),
            (
                "[model]\neffort = \"low\"\ndefault = \"acme/two\" # dear\n",
                "[model]\neffort = \"low\"\ndefault = \"acme/one\" # dear\n",
            ),
        ] {
            assert_eq!(with(before, &one), after);
        }
        let server: &[(&[&str], NewValue<'_>)] = &[
            (&["providers", "custom", "base_url"], NewValue::Text("http://h/v1")),
            (&["providers", "custom", "models"], NewValue::OneText("m")),
        ];
        assert_eq!(with("", server), "[providers.custom]\nbase_url = \"http://h/v1\"\nmodels = [\"m\"]\n");
        assert!(with_values("model = 3", &one).unwrap_err().to_string().contains("must be a table"));
        assert!(with_values("[", &one).is_err());
    }
}
