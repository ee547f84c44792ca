//! Editing of the user's `config.toml` to set the theme while preserving all other settings.

use super::ConfigError;
use toml_edit::{DocumentMut, Item, Table, value};

/// Sets the theme in the text of `config.toml`. Returns the new text.
pub(crate) fn with_theme(text: &str, name: &str) -> Result<String, ConfigError> {
    let parsed: Result<DocumentMut, _> = text.parse();
    let mut document = parsed.map_err(|error| ConfigError::single(error.message().to_owned()))?;
    let table = document.entry("ui").or_insert_with(|| Item::Table(Table::new()));
    let Some(table) = table.as_table_like_mut() else {
        return Err(ConfigError::single("`ui` must be a table: `[ui]`"));
    };
    match table.get_mut("theme").and_then(Item::as_value_mut) {
        // Preserve spaces and comments around the value.
        Some(set) => {
            let around = set.decor().clone();
            *set = name.into();
            *set.decor_mut() = around;
        }
        None => drop(table.insert("theme", value(name))),
    }
    Ok(document.to_string())
}

#[cfg(test)]
mod tests {
    use super::with_theme;

    #[test]
    fn saving_a_theme_changes_only_the_theme() {
        for (before, after) in [
            ("", "[ui]\ntheme = \"light\"\n"),
            ("# mine\nmodel.default = \"a/b\" # best\n", "# mine\nmodel.default = \"a/b\" # best\n\n[ui]\ntheme = \"light\"\n"),
            (
                "[ui] # looks\nvim = true\ntheme   =  'dark'   # at night\n\n[llm]\nmax_retries = 2\n",
                "[ui] # looks\nvim = true\ntheme   =  \"light\"   # at night\n\n[llm]\nmax_retries = 2\n",
            ),
            ("ui = { vim = true }\n", "ui = { vim = true , theme = \"light\" }\n"),
            ("ui.vim = true\n", "ui.vim = true\nui.theme = \"light\"\n"),
        ] {
            let made = with_theme(before, "light").unwrap();
            assert_eq!(made, after);
            assert_eq!(with_theme(&made, "light").unwrap(), made);
        }
        for broken in ["[ui", "ui = 3\n"] {
            assert!(with_theme(broken, "light").is_err(), "{broken}");
        }
    }
}
