//! Detection of an API key's provider from the prefix of the key.

/// Minimum length of an API key, in bytes.
const MIN: usize = 16;

/// Prefixes of API keys, each with its provider. If one prefix starts with another, the longer one comes first.
const BEGINNINGS: [(&str, &str); 9] = [
    ("sk-ant-", "anthropic"),
    ("sk-or-", "openrouter"),
    ("sk-proj-", "openai"),
    ("sk-svcacct-", "openai"),
    ("AIza", "gemini"),
    ("xai-", "xai"),
    ("gsk_", "groq"),
    // DeepSeek keys have the same prefix. The user can choose another provider.
    ("sk-", "openai"),
    ("AQ.", "gemini"),
];

/// Returns the provider that an API key belongs to, or `None` if the prefix is unknown or the text is not a key.
pub(crate) fn provider_of(typed: &str) -> Option<&'static str> {
    let key = typed.trim();
    let is_key = key.len() >= MIN && key.bytes().all(|byte| byte.is_ascii_graphic());
    BEGINNINGS.iter().find(|(beginning, _)| is_key && key.starts_with(beginning)).map(|(_, provider)| *provider)
}
