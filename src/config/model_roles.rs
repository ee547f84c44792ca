//! Models by role: the main model, which is also called the default model, its fallbacks, and the model that writes
//! summaries.

use super::ConfigError;
use super::file::{self, ConfigEntry, ValueOrigin, Values};
use crate::protocol::Problem;

/// Path of the main model under its alternative name, `model.main`. All other code uses `model.default`.
const MAIN: [&str; 2] = ["model", "main"];
const DEFAULT: [&str; 2] = ["model", "default"];

/// Renames `model.main` to `model.default`.
///
/// # Errors
/// Returns an error if both names are set in a file.
pub(super) fn merge_main(values: &mut Values) -> Result<(), ConfigError> {
    let Some(main) = values.remove(MAIN.map(str::to_owned).as_slice()) else { return Ok(()) };
    let default = DEFAULT.map(str::to_owned).to_vec();
    if let (Some(ConfigEntry { origin: ValueOrigin::File { line: first, .. }, .. }), ValueOrigin::File { path, line }) =
        (values.get(&default), &main.origin)
    {
        let problem =
            Problem::new(format!("`{}` line {line}: `model.main` is the same as `model.default` (line {first})", path.display()));
        return Err(ConfigError::single(problem.hint("remove one of them")));
    }
    values.insert(default, main);
    Ok(())
}

/// Returns the model that writes summaries, if one is set, preceded by the key that sets it.
pub(super) fn summary(values: &Values) -> Option<(&'static str, &str)> {
    let named = |key: &'static str, name| file::text(values, &["model", name]).map(|model| (key, model));
    named("[model] summary", "summary").or_else(|| named("[model] small", "small"))
}

/// Returns the fallback models in the order in which they are tried.
pub(super) fn fallbacks(values: &Values) -> Vec<String> {
    file::list(values, &["model", "fallback"]).unwrap_or_default().to_vec()
}

#[cfg(test)]
mod tests {
    use super::super::{Settings, file};
    use std::path::Path;

    fn settings(text: &str, set: &[(&str, &str)]) -> Result<Settings, String> {
        let set: Vec<_> = set.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
        let values = file::parse(text, Path::new("config.toml")).map_err(|error| error.to_string())?;
        Settings::from_values(values, &set).map_err(|error| error.to_string())
    }

    #[test]
    fn the_main_model_has_two_keys_and_setting_both_is_an_error() {
        for text in ["[model]\nmain = \"a/b\"\n", "[model]\ndefault = \"a/b\"\n"] {
            assert_eq!(settings(text, &[]).unwrap().default_model_name(), Some("a/b"), "{text}");
        }
        let both = settings("[model]\nmain = \"a/b\"\ndefault = \"a/c\"\n", &[]).unwrap_err();
        assert!(both.contains("line 2: `model.main` is the same as `model.default` (line 3)"), "{both}");
        let flag = settings("[model]\ndefault = \"a/b\"\n", &[("model.main", "x/y")]).unwrap();
        assert_eq!(flag.default_model_name(), Some("x/y"));
    }

    #[test]
    fn summaries_use_the_summary_model_or_else_the_small_model() {
        for (text, model) in [
            ("", None),
            ("[model]\nsmall = \"a/s\"\n", Some(("[model] small", "a/s"))),
            ("[model]\nsummary = \"a/b\"\nsmall = \"a/s\"\n", Some(("[model] summary", "a/b"))),
        ] {
            assert_eq!(settings(text, &[]).unwrap().summary_model(), model, "{text}");
        }
        let flag = settings("[model]\nsmall = \"a/s\"\n", &[("model.summary", "x/y")]).unwrap();
        assert_eq!(flag.summary_model(), Some(("[model] summary", "x/y")));
        assert!(settings("[model]\nsummary = \"b\"\n", &[]).is_err(), "a name without a provider");
    }

    #[test]
    fn fallbacks_are_model_names() {
        let set = settings("[model]\nfallback = [\"a/b\", \"c/d\"]\n", &[]).unwrap();
        assert_eq!(set.fallback_models(), ["a/b", "c/d"]);
        assert_eq!(settings("", &[]).unwrap().fallback_models(), [""; 0]);
        let error = settings("[model]\nfallback = [\"b\"]\n", &[]).unwrap_err();
        assert!(error.contains("expected an array of PROVIDER/NAME"), "{error}");
    }
}
