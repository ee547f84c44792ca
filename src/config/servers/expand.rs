//! Expansion of `${VAR}` and `${VAR:-default}` in MCP server settings.

use crate::config::Environment;

/// Reason why a value cannot be expanded.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(in crate::config) enum ExpandError {
    #[error("the environment variable {0} is not set")]
    Unset(String),
    #[error("{0} contains one of aye's API keys, which a project's MCP servers cannot use")]
    OwnKey(String),
}

/// Replaces the variables in a string. Any other `$` is left as it is, and inserted values are not expanded further.
pub(in crate::config) fn expand(text: &str, environment: &Environment, withheld: &[String]) -> Result<String, ExpandError> {
    let mut expanded = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(start) = rest.find("${") {
        expanded.push_str(&rest[..start]);
        let inside = &rest[start + 2..];
        let Some(end) = inside.find('}') else {
            rest = &rest[start..];
            break;
        };
        let (name, default) = match inside[..end].split_once(":-") {
            Some((name, default)) => (name, Some(default)),
            None => (&inside[..end], None),
        };
        if !is_name(name) {
            expanded.push_str(&rest[start..=start + 2 + end]);
        } else if withheld.iter().any(|own| own == name) {
            return Err(ExpandError::OwnKey(name.to_owned()));
        } else {
            match environment.get(name).or(default) {
                Some(value) => expanded.push_str(value),
                None => return Err(ExpandError::Unset(name.to_owned())),
            }
        }
        rest = &inside[end + 1..];
    }
    expanded.push_str(rest);
    Ok(expanded)
}

/// Returns whether the text refers to an environment variable.
pub(in crate::config) fn has_variable(text: &str) -> bool {
    !variable_names(text).is_empty()
}

/// Returns the names of the variables that the text refers to, in order.
pub(crate) fn variable_names(text: &str) -> Vec<&str> {
    let name = |(start, _): (usize, &str)| {
        let inside = &text[start + 2..];
        let end = inside.find('}')?;
        Some(inside[..end].split(":-").next().unwrap_or_default()).filter(|name| is_name(name))
    };
    text.match_indices("${").filter_map(name).collect()
}

fn is_name(text: &str) -> bool {
    let mut letters = text.chars();
    letters.next().is_some_and(|first| first.is_ascii_alphabetic() || first == '_')
        && letters.all(|letter| letter.is_ascii_alphanumeric() || letter == '_')
}
