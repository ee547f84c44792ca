//! `[providers.NAME] headers`, which aye adds to every request to a provider.

use super::api::ApiSetting;
use super::file::{ConfigEntry, ConfigValue};
use super::servers::Values;
use super::servers::expand::{expand, has_variable};
use super::service::ServiceName;
use super::{ConfigError, Environment, Settings, address, servers};
use crate::protocol::Problem;

/// Minimum length in bytes of a header value to be redacted everywhere. Shorter values also occur in unrelated text.
const MIN_SECRET: usize = 8;

/// Returns the headers that aye itself sets for an API, apart from those that concern the connection.
fn own_headers(api: Option<ApiSetting>, service: Option<ServiceName>) -> &'static [&'static str] {
    match service {
        Some(ServiceName::Azure) => return &["api-key", "authorization"],
        Some(ServiceName::Vertex) => return &["authorization", "anthropic-beta", "x-goog-user-project"],
        Some(ServiceName::Bedrock) => return &["authorization", "x-amz-date", "x-amz-security-token"],
        None => {}
    }
    match api {
        Some(ApiSetting::Anthropic) => &["x-api-key", "anthropic-version", "anthropic-beta"],
        Some(ApiSetting::OpenAiChat | ApiSetting::OpenAiResponses) => &["authorization"],
        Some(ApiSetting::Gemini) => &["x-goog-api-key"],
        None => &[],
    }
}

/// Validates a provider's headers. Errors never repeat the values.
pub(super) fn check<'a>(
    headers: impl IntoIterator<Item = (&'a String, &'a String)>,
    api: Option<ApiSetting>,
    service: Option<ServiceName>,
) -> impl Iterator<Item = Problem> {
    headers.into_iter().filter_map(move |(name, value)| {
        let lower = name.to_ascii_lowercase();
        if own_headers(api, service).contains(&lower.as_str()) {
            let problem = Problem::new(format!("the header `{name}` is set by aye for this API"));
            return Some(problem.hint("remove it, and set the key with `aye auth login`, `api_key_env` or `api_key_command`"));
        }
        if ["accept-encoding", "te", "trailer", "upgrade", "keep-alive", "proxy-authorization"].contains(&lower.as_str()) {
            return Some(Problem::new(format!("the header `{name}` is set by aye; remove it")));
        }
        address::check_header(name, value).err().map(Problem::from)
    })
}

/// Returns a provider's headers, with variables replaced by their values.
///
/// # Errors
/// Returns an error if a variable is not set or its value is not allowed in a header.
pub(super) fn headers_for(settings: &Settings, provider: &str, environment: &Environment) -> Result<Values, ConfigError> {
    let Some(ConfigEntry { value: ConfigValue::Table(headers), origin }) = settings.entry(&["providers", provider, "headers"])
    else {
        return Ok(Values::default());
    };
    let mut expanded = Values::default();
    for (name, value) in headers {
        let wrong = |reason: String| {
            let problem = Problem::new(format!("{origin}: cannot use the header `{name}` of `providers.{provider}`"));
            ConfigError::single(problem.because(reason))
        };
        let value = expand(value, environment, &[]).map_err(|error| wrong(error.to_string()))?;
        address::check_header(name, &value).map_err(wrong)?;
        expanded.0.push((name.clone(), value));
    }
    Ok(expanded)
}

/// Returns all header values that may be secrets: those that contain a variable or a digit, and those of authentication
/// headers.
pub(super) fn secrets(settings: &Settings, environment: &Environment) -> Vec<String> {
    let mut found = Vec::new();
    for (path, entry) in &settings.values {
        let (ConfigValue::Table(headers), [table, _, key]) = (&entry.value, path.as_slice()) else { continue };
        if table != "providers" || key != "headers" {
            continue;
        }
        for (name, value) in headers {
            if !has_variable(value) && !servers::is_authentication(name) && !value.bytes().any(|byte| byte.is_ascii_digit()) {
                continue;
            }
            let Ok(value) = expand(value, environment, &[]) else { continue };
            // In `Bearer TOKEN`, only the token is the secret.
            let token = value.rsplit(' ').next().unwrap_or_default().to_owned();
            found.extend([value, token].into_iter().filter(|value| value.len() >= MIN_SECRET));
        }
    }
    found.sort_unstable();
    found.dedup();
    found
}
