//! Opens the model that writes summaries, as specified in the settings.

use super::models::{DEMO, ModelCatalog};
use crate::agent::SummaryModelSetup;
use crate::config::NoModel;
use crate::llm;
use crate::protocol::Problem;

/// Opens the model that writes summaries, as specified in the settings, without sending a request. `main` is the
/// session's model, if there is one.
///
/// # Errors
/// Returns an error if the policy does not allow the model and `is_strict` is set. Any other problem results in a
/// notice, and the session's own model writes the summaries.
pub(super) fn open(
    models: &ModelCatalog,
    main: Option<&str>,
    is_strict: bool,
) -> Result<(SummaryModelSetup, Option<String>), NoModel> {
    let is_demo = main.and_then(llm::split_name).is_some_and(|(provider, _)| provider == DEMO);
    let Some((key, name)) = models.summary_model().filter(|_| !is_demo) else { return Ok(Default::default()) };
    let forbidden = models.allowed_models().forbidding_rule(name).map(|rule| forbidden_problem(name, key, &rule));
    let mut notice = match forbidden {
        Some(problem) if is_strict => return Err(NoModel::Forbidden(problem)),
        Some(problem) => Some(problem.to_string()),
        None => None,
    };
    // A forbidden model is opened too, because the policy may change during the session.
    let model = match models.choose(Some(name), None) {
        Ok(model) => Some(model),
        Err(error) => {
            let problem = error.into_problem().with_location(format!("cannot use `{name}` ({key} in config.toml)"));
            notice = notice.or(Some(problem.one_line()));
            None
        }
    };
    let notice = notice.map(|notice| format!("{notice}\nThe session's model writes the summaries instead."));
    Ok((SummaryModelSetup { name: Some(name.to_owned()), model }, notice))
}

fn forbidden_problem(name: &str, key: &str, rule: &str) -> Problem {
    let what = "the policy does not allow the model";
    Problem::new(format!("{what} `{name}`, which `{key}` in config.toml names (rule: {rule})"))
        .hint(format!("change `{key}`, or add the model to `allowed_models`"))
}
