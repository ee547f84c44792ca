//! Creates the redactor for a run from the policy's patterns, the secrets known to aye, and the marker key.

use super::context::AppContext;
use crate::config::Environment;
use crate::policy::redact::{Key, RedactionRule, Redactor, names_a_secret};
use crate::sys::file::read_or_create;
use std::path::Path;
use std::sync::Arc;

/// File that contains the marker key, with which a given secret has the same marker in all of the user's sessions.
const KEY_FILE: &str = "redaction.key";
/// Minimum length, in bytes, of a secret value that is redacted wherever it appears. Shorter values may occur in text
/// by chance.
const MIN_BYTES: usize = 8;

/// Creates the redactor. `known` contains secret values in addition to those in the environment and the keys saved with
/// `aye auth`.
pub(crate) fn redactor(app: &AppContext, rules: Vec<RedactionRule>, known: &[String]) -> Arc<Redactor> {
    let keys = app.key_variables();
    let own = app.environment.variables().filter(|(name, value)| {
        let own = keys.iter().any(|key| key == name);
        value.len() >= MIN_BYTES && (own || (names_a_secret(name) && may_be_secret(value)))
    });
    let data = app.directories.data.clone();
    let kept = app.credentials.known_values();
    let of_servers = super::mcp_servers::specs::secrets(app);
    let of_servers = of_servers.iter().filter(|value| value.len() >= MIN_BYTES);
    let of_proxies = proxy_secrets(&app.environment);
    let of_headers = app.settings.header_secrets(&app.environment);
    let known = kept.iter().chain(known).chain(of_servers).chain(&of_headers).chain(&of_proxies).map(String::as_str);
    let known: Vec<&str> = own.map(|(_, value)| value).chain(known).collect();
    super::crash::remember(known.iter().copied());
    Arc::new(Redactor::new(rules, known, move || key(&data)))
}

/// Returns whether a value may be a secret. A variable whose name suggests a secret may also contain a path, a word or
/// a number that occurs elsewhere in text.
fn may_be_secret(value: &str) -> bool {
    let letters = value.bytes().any(|byte| byte.is_ascii_alphabetic());
    let others = value.bytes().any(|byte| !byte.is_ascii_alphabetic());
    letters && others && !value.starts_with('/') && !value.contains("://")
}

/// Returns the passwords in proxy variables, both as they are and percent-decoded.
fn proxy_secrets(environment: &Environment) -> Vec<String> {
    let names = ["http_proxy", "https_proxy", "all_proxy"];
    let values = environment.variables().filter(|(name, _)| names.contains(&name.to_ascii_lowercase().as_str()));
    let urls = values.filter_map(|(_, value)| {
        let with_scheme = if value.contains("://") { value.to_owned() } else { format!("http://{value}") };
        url::Url::parse(&with_scheme).ok()
    });
    let passwords = urls.filter_map(|url| {
        let password = url.password()?.to_owned();
        // Form encoding decodes `+` as a space; a URL does not.
        let form = format!("p={}", password.replace('+', "%2B"));
        let decoded = url::form_urlencoded::parse(form.as_bytes()).next().map(|(_, value)| value.into_owned());
        Some([Some(password), decoded])
    });
    passwords.flatten().flatten().filter(|password| password.len() >= MIN_BYTES).collect()
}

/// Returns the marker key, which is created when the first marker is needed. If the key cannot be saved, it is valid
/// only for this run.
fn key(data: &Path) -> Key {
    let fresh = || {
        let mut key = Key::default();
        let halves = [uuid::Uuid::new_v4(), uuid::Uuid::new_v4(), uuid::Uuid::new_v4()];
        // Version 4 UUIDs have six constant bits; three of them have more entropy than the key needs.
        let mixed = blake3::hash(&halves.map(|half| *half.as_bytes()).concat());
        key.copy_from_slice(mixed.as_bytes());
        key
    };
    read_or_create(&data.join(KEY_FILE), &fresh()).unwrap_or_else(|error| {
        tracing::warn!(%error, "cannot save the redaction key");
        fresh()
    })
}
