//! The redactor of this run: the policy's patterns, the values aye holds itself, and the key of its markers.

use super::place::Place;
use crate::policy::redact::{Key, Redactor, Rule, names_a_secret};
use crate::sys::file::own_secret;
use std::path::Path;
use std::sync::Arc;

/// The same marker stands for the same secret in every session of this person.
const KEY_FILE: &str = "redaction.key";
/// A shorter value of a variable stands in too many texts by chance.
const MIN_BYTES: usize = 8;

/// `known`: values besides those of the environment and of `aye auth` that are secret whatever they look like.
pub fn redactor(place: &Place, rules: Vec<Rule>, known: &[String]) -> Arc<Redactor> {
    let keys = place.settings.key_variables();
    let own = place.environment.variables().filter(|(name, value)| {
        let own = keys.iter().any(|key| key == name);
        value.len() >= MIN_BYTES && (own || (names_a_secret(name) && is_no_word(value)))
    });
    let data = place.directories.data.clone();
    let kept = place.credentials.known_values();
    let of_servers = super::mcp::secrets(place);
    let of_servers = of_servers.iter().filter(|value| value.len() >= MIN_BYTES);
    let known = kept.iter().chain(known).chain(of_servers).map(String::as_str);
    let known: Vec<&str> = own.map(|(_, value)| value).chain(known).collect();
    super::crash::remember(known.iter().copied());
    Arc::new(Redactor::new(rules, known, move || key(&data)))
}

/// A variable whose name says secret may hold a path, a word or a number, which other texts have too.
fn is_no_word(value: &str) -> bool {
    let letters = value.bytes().any(|byte| byte.is_ascii_alphabetic());
    let others = value.bytes().any(|byte| !byte.is_ascii_alphabetic());
    letters && others && !value.starts_with('/') && !value.contains("://")
}

/// Made by the first marker; where it cannot be kept, one for this run.
fn key(data: &Path) -> Key {
    let fresh = || {
        let mut key = Key::default();
        let halves = [uuid::Uuid::new_v4(), uuid::Uuid::new_v4(), uuid::Uuid::new_v4()];
        // Ids of version 4 have six bits that are always the same; three of them have more chance than the key holds.
        let mixed = blake3::hash(&halves.map(|half| *half.as_bytes()).concat());
        key.copy_from_slice(mixed.as_bytes());
        key
    };
    own_secret(&data.join(KEY_FILE), &fresh()).unwrap_or_else(|error| {
        tracing::warn!(%error, "cannot save the redaction key");
        fresh()
    })
}
