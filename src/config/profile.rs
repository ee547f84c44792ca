//! Profiles: named groups of settings in the user's `config.toml` that are selected with `--profile`.

use super::ConfigError;
use super::file::{ConfigEntry, ValueOrigin, Values};
use crate::protocol::{Mode, Problem};
use std::path::{Path, PathBuf};
use strsim::damerau_levenshtein;

const TABLE: &str = "profiles";

/// Profile keys that override another setting, with the path of that setting.
const KEYS: &[(&str, &[&str])] = &[
    ("model", &["model", "default"]),
    ("mode", &["approval", "mode"]),
    ("effort", &["model", "effort"]),
    ("max_steps", &["budget", "task_steps"]),
    ("max_budget_usd", &["budget", "session_cost_usd"]),
];

/// Profile settings that have the same effect as command line options.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Profile {
    pub model: Option<String>,
    pub mode: Option<Mode>,
    pub policy: Option<PathBuf>,
}

impl Profile {
    /// Reads the settings of a profile. A relative policy path is resolved against `config`, the directory of
    /// `config.toml`, and `~/` refers to the home directory.
    pub(super) fn read(values: &Values, name: &str, config: &Path, home: Option<&Path>) -> Self {
        let text = |key: &str| super::file::text(values, &[TABLE, name, key]).map(str::to_owned);
        let policy = text("policy").map(|path| match (path.strip_prefix("~/"), home) {
            (Some(below), Some(home)) => home.join(below),
            _ => config.join(path),
        });
        Self { model: text("model"), mode: text("mode").as_deref().and_then(Mode::from_name), policy }
    }
}

/// Applies a profile to the settings. `file` is the path of the settings file, for use in the error message.
///
/// # Errors
/// Returns an error if no profile has this name.
pub(super) fn apply(values: &mut Values, name: &str, file: &Path) -> Result<(), ConfigError> {
    let names = names(values);
    if !names.iter().any(|known| known == name) {
        return Err(ConfigError::single(unknown_profile(name, &names, file)));
    }
    for (key, path) in KEYS {
        let Some(ConfigEntry { value, origin }) = values.get([TABLE, name, key].map(str::to_owned).as_slice()).cloned() else {
            continue;
        };
        let ValueOrigin::File { path: file, line } = origin else { continue };
        let origin = ValueOrigin::Profile { name: name.to_owned(), path: file, line };
        values.insert(path.iter().map(|&part| part.to_owned()).collect(), ConfigEntry { value, origin });
    }
    Ok(())
}

/// Returns the names of all profiles.
fn names(values: &Values) -> Vec<String> {
    let mut names: Vec<String> =
        values.keys().filter(|path| path.len() > 2 && path[0] == TABLE).map(|path| path[1].clone()).collect();
    names.dedup();
    names
}

fn unknown_profile(name: &str, names: &[String], file: &Path) -> Problem {
    let problem = Problem::new(format!("unknown profile `{name}`"));
    if names.is_empty() {
        let problem = problem.because(format!("`{}` has no profiles", file.display()));
        return problem.hint(format!("add a table `[profiles.{name}]` with keys such as `mode` and `model`"));
    }
    let near = names.iter().map(|known| (damerau_levenshtein(known, name), known)).min();
    let problem = match near.filter(|(far, known)| *far <= 1 + known.len() / 4) {
        Some((_, known)) => problem.hint(format!("did you mean `{known}`?")),
        None => problem,
    };
    let names: Vec<String> = names.iter().map(|name| format!("`{name}`")).collect();
    problem.hint(format!("the profiles in `{}` are {}", file.display(), names.join(", ")))
}

#[cfg(test)]
mod tests {
    use super::super::{Settings, file};
    use super::*;

    const TEXT: &str = "[model]\ndefault = \"acme/big\"\neffort = \"low\"\n[profiles.fast]\nmodel = \"acme/small\"\neffort = \"off\"\n\
        [profiles.ci]\nmode = \"auto-edit\"\npolicy = \"ci.toml\"\nmax_steps = 20\nmax_budget_usd = 0.5\n\
        [profiles.home]\npolicy = \"~/x.toml\"\n";

    fn values() -> Values {
        file::parse(TEXT, Path::new("config.toml")).unwrap()
    }

    #[test]
    fn a_profile_overrides_only_the_settings_it_contains() {
        let mut fast = values();
        apply(&mut fast, "fast", Path::new("config.toml")).unwrap();
        let shown = Settings::from_values(fast, &[]).unwrap().show();
        for line in [
            "model.default = \"acme/small\"  # profile fast, config.toml line 5",
            "model.effort = \"off\"  # profile fast, config.toml line 6",
            "approval.mode = \"ask\"  # default",
        ] {
            assert!(shown.contains(line), "{line}: {shown}");
        }
        let mut ci = values();
        apply(&mut ci, "ci", Path::new("config.toml")).unwrap();
        let settings = Settings::from_values(ci, &[("budget.task_steps".to_owned(), "7".to_owned())]).unwrap();
        assert_eq!((settings.approval.mode, settings.task_steps()), (Mode::AutoEdit, Some(7)), "an option takes precedence");
        let cost = settings.limits.iter().find(|limit| limit.set_by == "profile ci, config.toml:11");
        assert!(cost.is_some_and(|cost| cost.by_flag), "{:?}", settings.limits);
    }

    #[test]
    fn a_relative_policy_path_is_resolved_in_the_configuration_directory() {
        let read = |name: &str| Profile::read(&values(), name, Path::new("/c"), Some(Path::new("/home/me")));
        assert_eq!(read("ci"), Profile { model: None, mode: Some(Mode::AutoEdit), policy: Some("/c/ci.toml".into()) });
        assert_eq!(read("home").policy, Some("/home/me/x.toml".into()));
        assert_eq!(read("fast").model.as_deref(), Some("acme/small"));
    }

    #[test]
    fn the_error_for_an_unknown_profile_lists_the_existing_ones() {
        let message = |name: &str, values: &mut Values| apply(values, name, Path::new("config.toml")).unwrap_err().to_string();
        let fsat = message("fsat", &mut values());
        assert!(fsat.contains("unknown profile `fsat`") && fsat.contains("did you mean `fast`?"), "{fsat}");
        assert!(fsat.contains("the profiles in `config.toml` are `ci`, `fast`, `home`"), "{fsat}");
        let none = message("x", &mut Values::new());
        assert!(none.contains("has no profiles") && none.contains("[profiles.x]"), "{none}");
    }
}
