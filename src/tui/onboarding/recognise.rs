//! Whose key it is, by how it begins.

/// A shorter word is none.
const MIN: usize = 16;

/// How keys of a provider begin; longer beginnings stand before those they begin with.
const BEGINNINGS: [(&str, &str); 9] = [
    ("sk-ant-", "anthropic"),
    ("sk-or-", "openrouter"),
    ("sk-proj-", "openai"),
    ("sk-svcacct-", "openai"),
    ("AIza", "gemini"),
    ("xai-", "xai"),
    ("gsk_", "groq"),
    // DeepSeek's begin so too: another one can be said.
    ("sk-", "openai"),
    ("AQ.", "gemini"),
];

/// The provider that gives out such keys, where it can be told.
pub fn provider_of(typed: &str) -> Option<&'static str> {
    let key = typed.trim();
    let is_key = key.len() >= MIN && key.bytes().all(|byte| byte.is_ascii_graphic());
    BEGINNINGS.iter().find(|(beginning, _)| is_key && key.starts_with(beginning)).map(|(_, provider)| *provider)
}
