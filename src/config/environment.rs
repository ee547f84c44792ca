//! The environment variables with which aye was started.

use std::collections::HashMap;
use std::fmt;

/// Environment variables that are set to a non-empty value.
#[derive(Clone, Default)]
pub(crate) struct Environment {
    variables: HashMap<String, String>,
}

impl Environment {
    pub(crate) fn from_process() -> Self {
        Self::from_pairs(
            std::env::vars_os().filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?))),
        )
    }

    pub(crate) fn from_pairs(pairs: impl IntoIterator<Item = (String, String)>) -> Self {
        Self { variables: pairs.into_iter().filter(|(_, value)| !value.trim().is_empty()).collect() }
    }

    pub(crate) fn get(&self, name: &str) -> Option<&str> {
        self.variables.get(name).map(|value| value.trim())
    }

    pub(crate) fn variables(&self) -> impl Iterator<Item = (&str, &str)> {
        self.variables.iter().map(|(name, value)| (name.as_str(), value.trim()))
    }

    pub(super) fn secret(&self, name: &str) -> Option<ApiKey> {
        self.get(name).map(|value| ApiKey(value.to_owned()))
    }
}

/// API key. Its value is never displayed.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct ApiKey(String);

impl ApiKey {
    pub(crate) fn new(text: impl Into<String>) -> Self {
        Self(text.into())
    }

    pub(crate) fn reveal(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for ApiKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret")
    }
}
