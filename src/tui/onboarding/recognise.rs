//! Detection of an API key's provider from the prefix of the key.

/// Minimum length of a key, in bytes.
const MIN: usize = 16;

/// Key prefixes of the providers. Longer prefixes come before shorter ones that they start with.
const BEGINNINGS: [(&str, &str); 9] = [
    ("sk-ant-", "anthropic"),
    ("sk-or-", "openrouter"),
    ("sk-proj-", "openai"),
    ("sk-svcacct-", "openai"),
    ("AIza", "gemini"),
    ("xai-", "xai"),
    ("gsk_", "groq"),
    // DeepSeek keys have the same prefix; the user can choose another provider.
    ("sk-", "openai"),
    ("AQ.", "gemini"),
];

/// Returns the provider of a key, if its prefix is known.
pub(crate) fn provider_of(typed: &str) -> Option<&'static str> {
    let key = typed.trim();
    let is_key = key.len() >= MIN && key.bytes().all(|byte| byte.is_ascii_graphic());
    BEGINNINGS.iter().find(|(beginning, _)| is_key && key.starts_with(beginning)).map(|(_, provider)| *provider)
}
